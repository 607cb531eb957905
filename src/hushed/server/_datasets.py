"""The data sets of a server: opened once, names and types of columns alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hushed._ground.numerals import read_whole
from hushed._ground.printing import brief, suggest
from hushed._ground.types import ColumnType, StoredType
from hushed.errors import EngineUnavailable, HushedError, NotFound, ParameterError
from hushed.ledger import Budget, Ledger
from hushed.ledger._rows import run
from hushed.ledger._together import reading
from hushed.server._audit import add_event, telling
from hushed.server._config import (
    DUCKDB,
    FILE,
    Column,
    DatasetSettings,
    Settings,
    digest_of,
    source_of,
)
from hushed.server._layouts import read_places, write_layout
from hushed.server._people import MACHINE
from hushed.server._schema import fetch_one
from hushed.server._sources import Source, fingerprint
from hushed.tables import Table
from hushed.tables._engine import execution
from hushed.tables._engine.clock import Clock
from hushed.tables._expressions import find_column
from hushed.tables._requests import GROUPABLE, KEY_TYPES, read_public_keys

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction
    from hushed.tables._engine.connections import Connection

_PLAN_SECONDS = 20.0  # that a database has to say whether the table may be read
_MAY_CHANGE = (
    "its login may change the table; give it one that may read this table and nothing else "
    "(GRANT SELECT)"
)
_UNTYPED = (
    "all columns are texts, for which there are no sums and means: declare what are numbers by "
    "kind = 'int' or 'float' in hushed.toml, as --type COLUMN=int does, then hushed serve confirm"
)
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What a steward has confirmed of a data set: digest of its description, budget, its file."""

    config_digest: str
    budget: str
    fingerprint: str
    layout: str = ""  # what the table was by its header; empty of an older version

    def describes(self, settings: DatasetSettings) -> bool:
        """Whether this is the description that was confirmed."""
        return (self.config_digest, self.budget) == (digest_of(settings), settings.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set that can be asked, or the reason why not."""

    id: str
    settings: DatasetSettings
    source: Source = field(repr=False)  # where processes that judge and read find it
    table: Table | None = field(repr=False)  # its columns; no row is read here
    known: str = ""  # fingerprint of the table when it was opened
    registered: Registered | None = None  # by the steward, as it was found then
    stale: str = ""  # why nobody may ask; for the log and the steward
    away: bool = False  # its database does not answer, which may pass

    @property
    def unit(self) -> str:
        """What the answers protect."""
        return "row" if self.settings.user is None else "user"

    def needs_approval(self, epsilon: float) -> bool:
        """Whether a request of this price waits for a steward."""
        most = self.settings.approve_above
        return most is not None and epsilon > most

    def layout(self) -> dict[str, Any]:
        """Describe what is public: columns, types, bounds and keys; no path, no address."""
        columns = {} if self.table is None else dict(self.table.columns)
        told = self.settings.column
        return {
            "id": self.id,
            "unit": self.unit,
            "user": self.settings.user,
            "max_rows_per_user": self.settings.max_rows_per_user,
            "columns": [
                {"name": name, "kind": kind, **_public(told, name, kind)}
                for name, kind in columns.items()
            ],
            "max_delta": self.settings.max_delta,
            "approve_above": self.settings.approve_above,
        }


def _public(told: Mapping[str, Column], name: str, kind: StoredType) -> dict[str, Any]:
    found = told.get(name)
    if found is None:
        return {"low": None, "high": None, "keys": None}
    keys = None
    with suppress(ParameterError):  # `hushed serve check` tells of it: none are told to who asks
        keys = _read_keys(name, found, kind)
    return {"low": found.low, "high": found.high, "keys": keys}


def _read_keys(name: str, told: Column, kind: StoredType) -> list[Any] | None:
    """Read the declared keys of a column as its type: the command writes them all as texts."""
    if told.keys is None:
        return None
    if kind == "other" or kind not in GROUPABLE:
        raise ParameterError(f"keys of {brief(name)} are declared, of type {kind}; {KEY_TYPES}")
    keys = [_read_key(each, kind) for each in told.keys]
    read_public_keys([name], [kind], {name: keys})
    return keys


def _read_key(key: Any, kind: ColumnType) -> Any:
    if not isinstance(key, str):
        return key
    with suppress(ValueError):
        key = read_whole(key.strip()) if kind == "int" else key
    return _TRUTHS.get(key.strip().lower(), key) if kind == "bool" else key


def require_keys(settings: DatasetSettings, table: Table) -> None:
    """Refuse declared keys by which nobody could group, and bounds of what is no number."""
    for name, each in settings.column.items():
        kind = table.columns[name]
        _read_keys(name, each, kind)
        if each.low is not None and kind not in ("int", "float"):
            raise ParameterError(
                f"a range of {brief(name)} is declared, which is of type {kind}, and bounds are of "
                "numbers: declare its type, as by --type COLUMN=int or kind = 'int', or leave the "
                "range out"
            )


def find_source(folder: Path, settings: DatasetSettings) -> Source:
    """Say where the rows of a data set are."""
    return Source(
        address=source_of(folder, settings.source),
        table=settings.table,
        user=settings.user,
        types=settings.types(),
        header=settings.header,
        listed={name: each.keys for name, each in settings.column.items() if each.keys},
    )


def open_dataset(folder: Path, settings: DatasetSettings) -> Table:
    """Open the table of a data set; no row is read."""
    return _open(find_source(folder, settings), settings)


def _open(source: Source, settings: DatasetSettings) -> Table:
    found = source.open()
    for name in settings.column:
        find_column(name, found.columns)
    if found.connection.in_database:
        _require_readable(found.connection, {*settings.column, *filter(None, [settings.user])})
    return found


def _require_readable(connection: Connection, names: Collection[str]) -> None:
    """Have a database plan to read the columns that are described: it looks up rights, not rows."""
    rows = connection.rows
    asked = rows.select(*sorted(names)) if names else rows.aggregate(rows=rows.count())
    clock = Clock.start(_PLAN_SECONDS if connection.engine.stoppable else None)
    with execution.hold(connection, clock):
        execution.plan(connection, asked, clock)


def say_may_change(table: Table) -> str:
    """Say that the login of a data set may do more than read it, if it may."""
    found = table.connection
    with found.lock:
        changes = found.engine.may_change(found.rows)
    return _MAY_CHANGE if changes else ""


def say_untyped(folder: Path, settings: DatasetSettings, table: Table) -> str:
    """Say that no column has a type but text, if it is a text file: nobody can ask for a sum."""
    text = source_of(folder, settings.source).lower().endswith((".csv", ".csv.gz", ".tsv"))
    return _UNTYPED if text and set(table.columns.values()) <= {"string"} else ""


def list_again(
    folder: Path, settings: Settings, name: str, added: DatasetSettings, table: Table
) -> list[str]:
    """List the other data sets that are the same table, described in whatever way."""
    place, identity = _place_of(folder, added), _identify(table)
    return [
        other
        for other, each in settings.dataset.items()
        if other != name
        and (_place_of(folder, each) == place or _is_identified(folder, each, identity))
    ]


def say_again(settings: Settings, name: str, added: DatasetSettings, others: Sequence[str]) -> str:
    """Say that a table is another data set already: its people have the loss of both budgets."""
    for other in others:
        each = settings.dataset[other]
        if each.budget == added.budget:
            continue
        way = f"take [dataset.{other}] out of {FILE} if this one is to be asked in its place"
        if each.user == added.user:  # else no budget is for both
            way = (
                f"for one budget of both, write budget = {each.budget!r} into a section "
                f"[dataset.{name}] of {FILE}, then stop the server and run hushed serve "
                f"confirm {name}, which charges there what {name} has spent"
            )
        return (
            f"this table is data set {other!r}, too: with a budget for each, whoever is in it "
            f"has the privacy loss of both together; {way}"
        )
    return ""


def _identify(table: Table) -> str:
    """Name a table of a database whatever its address; empty where that cannot be."""
    found = table.connection
    with found.lock:
        return found.engine.identity(found.rows)


def _is_identified(folder: Path, settings: DatasetSettings, identity: str) -> bool:
    """Whether another address is that of a table, too; one that cannot be asked now is not."""
    if not identity or "://" not in source_of(folder, settings.source):
        return False
    with suppress(HushedError):
        return _identify(open_dataset(folder, settings)) == identity
    return False


def list_places(folder: Path, settings: DatasetSettings, table: Table) -> list[str]:
    """Digest where a table lies, whoever logs in there and whatever rows it has now."""
    address, name = _place_of(folder, settings)
    parts = urlsplit(address) if "://" in address else None
    if parts is not None:
        address = f"{parts.netloc.rpartition('@')[2]}{parts.path}?{parts.query}"
    told = [f"{address} {name}", *filter(None, [_identify(table)])]
    return [hashlib.sha256(each.encode()).hexdigest() for each in told]


def _place_of(folder: Path, settings: DatasetSettings) -> tuple[str, str]:
    source = source_of(folder, settings.source)
    prefix = DUCKDB if source.startswith(DUCKDB) else ""
    if "://" in source and not prefix:
        return source, settings.table
    path = os.path.realpath(source.removeprefix(prefix))
    return path, settings.table if prefix else ""


def register(
    ledger: Ledger,
    name: str,
    settings: DatasetSettings,
    table: Table,
    places: Sequence[str],
    *,
    other_people: bool = False,
) -> None:
    """Write down what a data set is, so that a change of its file is noticed.

    Where its rows were before is kept, too: who was in them has spent what was charged.
    """
    old = find_registered(ledger, name)
    before = set() if old is None else read_places(old.layout)
    if not other_people:
        places = [*places, *sorted(before.difference(places))]
    values = {
        "id": name,
        "digest": digest_of(settings),
        "budget": settings.budget,
        "print": f"{fingerprint(table)} {write_layout(table, places, settings.user)}",
    }
    with telling(ledger) as connection:
        if old is not None and before and before.isdisjoint(places):
            _keep_former(connection, name, old)
        run(
            connection,
            "INSERT INTO @.hushed_s_datasets VALUES (:id, :digest, :budget, :print) "
            "ON CONFLICT (id) DO UPDATE SET config_digest = :digest, budget = :budget, "
            "fingerprint = :print",
            values,
        )
        action = "confirmed a data set" + (" of other people" if other_people else "")
        add_event(connection, actor=MACHINE, action=action, about=name)


def _keep_former(connection: Transaction, name: str, old: Registered) -> None:
    """Keep what a name stood for, as a data set that is gone; no data set has a name like that."""
    digest = hashlib.sha256(f"{old.budget} {old.layout}".encode()).hexdigest()[:16]
    run(
        connection,
        "INSERT INTO @.hushed_s_datasets SELECT :kept, config_digest, budget, fingerprint "
        "FROM @.hushed_s_datasets WHERE id = :id ON CONFLICT (id) DO NOTHING",
        {"id": name, "kept": f"{name} {digest}"},
    )


def require_dataset(settings: Settings, name: str) -> DatasetSettings:
    """Find a data set of the file."""
    if name not in settings.dataset:
        raise NotFound(f"there is no data set {name!r} in {FILE}{suggest(name, settings.dataset)}")
    return settings.dataset[name]


def require_budget(ledger: Ledger, settings: DatasetSettings) -> None:
    """Refuse a budget that queries cannot be charged to."""
    found = [each for each in ledger.budgets() if each.name == settings.budget]
    if not found:
        raise NotFound(f"the ledger has no budget {settings.budget!r}")
    require_same_unit(found[0], settings)


def require_same_unit(budget: Budget, settings: DatasetSettings) -> None:
    """Refuse a budget that is for other units or neighbours than the queries of a data set."""
    unit, limit = "row" if settings.user is None else "user", budget.limit
    if (limit.unit, limit.neighbours) != (unit, "add-remove"):
        raise ParameterError(
            f"the budget {budget.name!r} is for {limit.unit}s and {limit.neighbours} "
            f"neighbours, for ever; queries on this table need {unit}s and add-remove: open "
            f"another budget, by hushed ledger open with --neighbours add-remove --unit {unit}, "
            f"and name it in {FILE}; or take the section out, and add the data set under another "
            "name, which gets a budget of its own"
        )


def open_all(folder: Path, settings: Settings, ledger: Ledger) -> dict[str, Dataset]:
    """Open every data set; one that is not as it was registered is there, and cannot be asked."""
    return {
        name: open_as_registered(
            Dataset(id=name, settings=each, source=find_source(folder, each), table=None), ledger
        )
        for name, each in settings.dataset.items()
    }


def open_as_registered(dataset: Dataset, ledger: Ledger) -> Dataset:
    """Open one that is not open yet, if it is as it was registered."""
    settings, registered = dataset.settings, find_registered(ledger, dataset.id)
    dataset = replace(dataset, registered=registered)
    known = "" if registered is None else registered.fingerprint
    try:
        table = _open(dataset.source, settings)
        require_budget(ledger, settings)
    except HushedError as error:
        away = isinstance(error, EngineUnavailable)
        return replace(dataset, known=known, stale=error.message, away=away)
    seen, stale = fingerprint(table), ""
    if registered is None:
        stale = "it was written into the file and not confirmed"
    elif not registered.describes(settings):
        stale = "its description was changed"
    elif known != seen:
        stale = "its file was changed"
    if stale:
        stale += f": look at it, then run hushed serve confirm {dataset.id}"
    return replace(dataset, table=table, known=seen, stale=stale, away=False)


def find_registered(ledger: Ledger, name: str) -> Registered | None:
    """Find what a steward has confirmed last."""
    statement = "SELECT config_digest, budget, fingerprint FROM @.hushed_s_datasets WHERE id = :id"
    with reading(ledger) as connection:
        found = fetch_one(connection, statement, id=name)
    if found is None:
        return None
    seen, _, layout = found["fingerprint"].partition(" ")
    return Registered(**{**found, "fingerprint": seen, "layout": layout})


def was_confirmed(dataset: Dataset, ledger: Ledger) -> bool:
    """Whether a steward has confirmed another file since, described as this server knows it."""
    found = find_registered(ledger, dataset.id)
    return found is not None and found != dataset.registered and found.describes(dataset.settings)


def close_file(dataset: Dataset, others: Collection[Dataset]) -> None:
    """Let go of a DuckDB file, by whichever data set it is open.

    DuckDB would give the old one again under the name of the new one. No row is read here, and
    what is known of a table that is open stays known.
    """
    if not dataset.source.address.startswith(DUCKDB) or dataset.table is None:
        return
    for each in others:
        if each.table is not None and each.table.connection.file == dataset.table.connection.file:
            with each.table.connection.lock:
                each.table.connection.rows.get_backend().disconnect()
