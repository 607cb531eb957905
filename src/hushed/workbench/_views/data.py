"""The page Data: from its fields to a table that is described; its rows are not read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hushed._ground.printing import flat, shown
from hushed._web.fields import Form
from hushed.errors import HushedError, NotFound, Overspent
from hushed.guarantee import Guarantee
from hushed.ledger import Ledger
from hushed.tables import Table, table
from hushed.workbench._marks import mark_source
from hushed.workbench._privates import Private, require_public
from hushed.workbench._views.addresses import with_password
from hushed.workbench._views.columns import Column, check_bounds, list_columns, read_keys
from hushed.workbench._views.question import Described, Reading
from hushed.workbench._workspace import Workspace, find_file, find_table

_PRICE = 1e-6  # an epsilon that hardly anything is, to ask whether a budget takes such promises

Opener = Callable[..., Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataView:
    """What the page shows, and the description if nothing is missing."""

    fields: Mapping[str, str]
    columns: tuple[Column, ...] = ()
    hidden: int = 0  # columns that the search leaves out
    errors: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    opened: bool = False
    fixed: bool = False  # the database says the kinds of columns
    stale: bool = False
    mark: str = ""
    described: Described | None = None
    sentence: str = ""


def describe_data(
    workspace: Workspace,
    fields: Mapping[str, str],
    *,
    password: str = "",
    ledger: Ledger | None = None,
    opener: Opener = table,
    others: tuple[Private, ...] = (),
) -> DataView:
    """Read the fields of the page; names and types of columns are all that is read of the table."""
    form = Form(fields)
    source = find_source(workspace, form, password)
    if source is None:
        return DataView(fields=fields, errors=form.errors)
    mark = mark_source(source)
    stale = bool(mark and form.text("mark")) and mark != form.text("mark")
    plain = _open(form, opener, source, types={}, user=None)
    if plain is None:
        return DataView(fields=fields, errors=form.errors, mark=mark, stale=stale)
    columns, hidden = list_columns(plain, fields)
    chosen = {each.name: each.kind for each in columns if each.kind}
    fixed = isinstance(source, str) and not source.startswith("duckdb:")
    types = {} if fixed else chosen
    typed = _open_typed(form, opener, source, types, tuple(plain.columns))
    described = None
    if typed is not None:
        described = _describe(form, workspace, typed, columns, source, types, opener, others)
        check_budget(form, ledger, unit="row" if typed.user is None else "user")
    if stale:
        form.refuse(
            "file",
            f"{shown(form.text('file'))} changed since you described it; look whether its columns "
            "still mean the same, then press 'Keep this description'",
        )
    whole = described is not None and not form.errors
    return DataView(
        fields=fields,
        columns=columns,
        hidden=hidden,
        errors=form.errors,
        warnings=tuple(map(flat, (typed or plain).connection.told)),
        opened=True,
        fixed=fixed,
        stale=stale,
        mark=mark,
        described=described if whole else None,
        sentence=_say(described) if described is not None and whole else "",
    )


def find_source(workspace: Workspace, form: Form, password: str) -> str | Path | None:
    """Find where the table lies: a file of the folder, or a database."""
    if form.text("where") == "database":
        address = form.text("address")
        if not address:
            form.refuse("address", "give the address, such as postgresql://ada@localhost/clinic")
            return None
        if not address.startswith(("postgresql://", "postgres://")):
            form.refuse("address", "an address begins with postgresql://; files are picked above")
            return None
        return with_password(address, password)
    name = form.text("file")
    if not name:
        return None
    with form.at("file"):
        path = find_table(workspace, name)
        return f"duckdb:///{path}" if path.suffix == ".duckdb" else path
    return None


def _open(
    form: Form, opener: Opener, source: str | Path, types: Mapping[str, str], user: str | None
) -> Table | None:
    """Open a table; what cannot be used is told at the field that it is about."""
    if form.text("first") == "record" and not form.text("header") and _is_csv(form):
        form.refuse("header", "write the names of the columns, as the first line would have them")
        return None
    place = form.text("place") or "rows"
    at = "file" if form.text("where") != "database" else "address"
    options = {"types": types, "user": user, **_read_how(form).as_arguments()}
    try:
        return opener(source, place, **options)
    except NotFound as error:
        form.refuse("place" if isinstance(source, str) else at, error.message)
    except HushedError as error:
        named = error.parameter == "header" and form.text("first") == "record"
        form.refuse("header" if named else "user" if user is not None else at, error.message)
    return None


def _open_typed(
    form: Form,
    opener: Opener,
    source: str | Path,
    types: Mapping[str, str],
    names: tuple[str, ...],
) -> Table | None:
    """Open the table with its kinds and its column of people."""
    user: str | None = None
    if form.text("protect") == "person":
        user = form.text("user")
        if user not in names:
            form.refuse("user", "choose the column that says whose row it is")
            return None
    elif form.text("protect") != "row":
        form.refuse("protect", "say who is protected: one row, or one person with all rows")
        return None
    return _open(form, opener, source, types, user)


def _describe(
    form: Form,
    workspace: Workspace,
    typed: Table,
    columns: tuple[Column, ...],
    source: str | Path,
    types: Mapping[str, str],
    opener: Opener,
    others: tuple[Private, ...],
) -> Described | None:
    """Check bounds and keys by asking the library for a sum and a grouping; no row is read."""
    limits: dict[str, tuple[str, str]] = {}
    keys: dict[str, tuple[Any, ...]] = {}
    for each in columns:
        if each.bounded and (each.low or each.high) and check_bounds(form, typed, each):
            limits[each.name] = (each.low, each.high)
        if each.keyed and each.keys.strip():
            at, column = f"col.{each.number}.keys", (each.name, each.kind)
            found = read_keys(form, at, typed, column, each.keys)
            if found:
                keys[each.name] = found
    kinds = {each.name: each.kind for each in columns if each.kind}
    if not kinds:
        form.refuse("columns", "say the kind of one column at least; the others are not used")
    limit = form.whole("max_rows") if typed.user is not None else None
    if typed.user is not None and limit is None:
        form.refuse("max_rows", "say how many rows of one person count, such as 5")
    return Described(
        table=typed,
        budget=form.fields.get("budget", ""),
        source=_name_source(form, source),
        reading=_read_how(form),
        place=form.text("place") or "rows",
        kinds=kinds,
        limits=limits,
        keys=keys,
        rows=form.whole("rows"),
        max_rows_per_user=limit,
        public=_open_public(form, workspace, types, typed.user, opener, others),
    )


def _name_source(form: Form, source: str | Path) -> str:
    """Name a table as exports do, without a password; a folder ends with a slash."""
    if isinstance(source, Path):
        return f"{source}/" if source.is_dir() else str(source)
    return source if source.startswith("duckdb:") else with_password(form.text("address"))


def _is_csv(form: Form) -> bool:
    named = form.text("file").lower().endswith((".csv", ".tsv"))
    return named and form.text("where") != "database"


def _read_how(form: Form) -> Reading:
    """Read how the lines of a CSV file are rows; other tables say it themselves."""
    if not _is_csv(form):
        return Reading()
    header = form.text("header") if form.text("first") == "record" else None
    return Reading(header=header or None, newlines_in_values=bool(form.text("newlines")))


def _open_public(
    form: Form,
    workspace: Workspace,
    types: Mapping[str, str],
    user: str | None,
    opener: Opener,
    others: tuple[Private, ...],
) -> Table | None:
    """Open a public table of the same columns, if one is named."""
    if not form.text("public"):
        return None
    with form.at("public"):
        found: Table = opener(find_public(workspace, form, others), "rows", types=types, user=user)
        missing = [each for each in types if each not in found.columns]
        if missing:
            form.refuse("public", f"it has no column {shown(missing[0])}")
            return None
        return found
    return None


def find_public(workspace: Workspace, form: Form, others: tuple[Private, ...] = ()) -> Path:
    """Find the public table; it is never a private one, by whatever name."""
    path = find_file(workspace, form.text("public"))
    own = find_source(workspace, Form(form.fields), "") if form.text("file") else None
    require_public(path, own, others)
    return path


def check_budget(form: Form, ledger: Ledger | None, *, unit: str) -> None:
    """Ask whether the budget takes promises of this table; nothing is charged."""
    name = form.fields.get("budget", "")
    if not name:
        return
    if ledger is None:
        form.refuse("budget", f"there is no budget {shown(name)}; open it on the page Ledger")
        return
    promise = Guarantee(
        epsilon=_PRICE, neighbours="add-remove", unit="user" if unit == "user" else "row"
    )
    try:
        ledger.quote(name, promise)
    except Overspent:
        pass  # told where a price is asked
    except HushedError as error:
        form.refuse("budget", f"{error.message}. Open another budget on the page Ledger.")


def _say(described: Described) -> str:
    """Say what is described, in one sentence."""
    whom = "each person, with all rows" if described.table.user is not None else "each row"
    used = len(described.kinds)
    budget = f"the budget '{shown(described.budget)}'" if described.budget else "no budget"
    return (
        f"{used} column{'s' * (used > 1)} can be asked about; protected is {whom}; "
        f"what is released is charged to {budget}."
    )
