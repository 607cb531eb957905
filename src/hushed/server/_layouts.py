"""What is public of the table of a data set, and what another file changes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import shown
from hushed.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hushed.server._config import DatasetSettings
    from hushed.tables import Table


def write_layout(table: Table, places: Sequence[str] = (), user: str | None = None) -> str:
    """Write down the columns, in order with their types, what separates the cells, and where.

    And by which column people were protected.
    """
    found = table.connection
    told: dict[str, Any] = {"columns": [*found.columns.items()], "delimiter": found.delimiter}
    told |= {"places": [*places]} if places else {}
    return json.dumps(told | ({} if user is None else {"user": user}))


def read_places(layout: str) -> set[str]:
    """Read where a table lay; of one that an older version wrote down nothing is known."""
    return set(json.loads(layout).get("places", ())) if layout else set()


def read_user(layout: str) -> str | None:
    """Read by which column people were protected; None of rows, and of an older version."""
    found: str | None = json.loads(layout).get("user") if layout else None
    return found


def list_changes(before: str, table: Table) -> tuple[str, ...]:
    """Say what of a layout has changed; nothing of one that an older version did not keep."""
    if not before:
        return ()
    old, new = json.loads(before), json.loads(write_layout(table))
    was, now = dict(old["columns"]), dict(new["columns"])
    found = []
    if old["delimiter"] != new["delimiter"]:
        found.append(f"the cells were separated by {old['delimiter']!r}, now {new['delimiter']!r}")
    gone, more = ([each for each in a if each not in b] for a, b in ((was, now), (now, was)))
    found += [f"gone: {_list(gone)}"] if gone else []
    found += [f"new: {_list(more)}"] if more else []
    if [each for each in was if each in now] != [each for each in now if each in was]:
        found.append("the columns have another order")
    found += [
        f"{shown(each)} was {was[each]}, now {now[each]}"
        for each in now
        if each in was and was[each] != now[each]
    ]
    return tuple(found)


def require_read_alike(
    name: str, settings: DatasetSettings, before: str, table: Table, changes: tuple[str, ...]
) -> None:
    """Refuse a file whose described columns would be read in another way than those before."""
    if not changes:
        return
    old: dict[str, Any] = json.loads(before)
    described = {*settings.column, *filter(None, [settings.user])}
    was, now = dict(old["columns"]), table.columns
    other = [each for each in described if each in was and was[each] != now[each]]
    cells = old["delimiter"] != table.connection.delimiter and bool(table.connection.remarks)
    if other or cells:
        raise ParameterError(
            f"the new file of {name!r} would be read in another way: {'; '.join(changes)}. Look at "
            "how its numbers and dates are written; if this is meant, run hushed serve confirm "
            f"{name} --accept-change. Nothing was confirmed"
        )


def _list(names: list[str]) -> str:
    return ", ".join(map(shown, names))
