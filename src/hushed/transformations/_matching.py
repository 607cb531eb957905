"""What would convert one space into another: the advice in the message of a mismatch."""

from __future__ import annotations

from typing import TypeVar

from hushed._ground.printing import format_exactly
from hushed.errors import SpaceMismatch
from hushed.spaces import Cell, Column, Groups, Numbers, Opaque, Space, Table, Vectors

_AnyDomain = TypeVar("_AnyDomain", Column, Table, Vectors, Groups, Numbers, Opaque)


def conversions(given: Space, wanted: Space) -> str:
    """Say which steps lead from one space to another."""
    found = _domains(given, wanted)
    size, metric = wanted.domain.size, given.metric.name
    if size is not None and given.domain.size != size:
        found.append(f"resize({size})")
        metric = "change-one"
    if (given.metric.unit, wanted.metric.unit) == ("user", "row"):
        found.append("limit_rows(most)")
    elif (metric, wanted.metric.name) == ("symmetric", "change-one"):
        found.append("resize(size)" if size is None else "to_change_one()")
    elif (metric, wanted.metric.name) == ("change-one", "symmetric"):
        found.append("to_symmetric()")
    return f"put {' >> '.join(found)} between them" if found else "no step converts them"


_BETWEEN: dict[tuple[type, type], str] = {
    (Table, Column): "select(column)",
    (Table, Groups): "group_by(column, keys)",
    (Table, Vectors): "stack(columns)",
    (Groups, Numbers): "each(step)",
}


def _domains(given: Space, wanted: Space) -> list[str]:
    one, other = given.domain, wanted.domain
    if isinstance(one, Column) and isinstance(other, Column):
        return _cells(one.cell, other.cell)
    if isinstance(one, Vectors) and isinstance(other, Vectors):
        longer = one.bound is None or other.bound is None or one.bound > other.bound
        return [f"clip_norm({other.bound}, {other.norm!r})"] if other.bound and longer else []
    step = _BETWEEN.get((type(one), type(other)))
    return [step] if step else []


def _cells(one: Cell, other: Cell) -> list[str]:
    found = []
    if one.type != other.type:
        found.append(f"cast({other.type!r})")
    if (one.missing or found) and not other.missing:
        found.append("impute(value)")
    ends = (other.low, other.high)
    if other.low is not None and other.high is not None and (one.low, one.high) != ends:
        found.append(f"clip({format_exactly(other.low)}, {format_exactly(other.high)})")
    return found


def refuse(step: str, given: Space, wanted: str, fix: str) -> SpaceMismatch:
    """Make the error of a step that does not take what it is given."""
    advice = f"put {fix} before it" if fix else "no step converts it"
    return SpaceMismatch(f"{step} takes {wanted}, but is given {given}; {advice}")


def take_domain(
    space: Space, kind: type[_AnyDomain], step: str, wanted: str, fix: str
) -> _AnyDomain:
    """Refuse a space whose domain is of another kind."""
    if not isinstance(space.domain, kind):
        raise refuse(step, space, wanted, fix)
    if space.metric.name == "discrete" or space.metric.unit == "user":
        raise refuse(step, space, "distances counted in rows", "limit_rows(most)")
    return space.domain


def take_users(space: Space, step: str, otherwise: str = "") -> tuple[Table, str]:
    """Refuse a space whose distances do not count users; gives the table and its key."""
    table = space.domain
    if not isinstance(table, Table) or table.key is None or space.metric.unit != "user":
        raise SpaceMismatch(
            f"{step} takes a keyed table under users, but is given {space}; no step makes users "
            "out of rows: declare them where the chain starts, as "
            "Space(domain=Table.of({...}, key=COLUMN), metric=hushed.spaces.USERS)"
            + (otherwise and f", {otherwise}")
        )
    return table, table.key


def take_column(
    space: Space,
    step: str,
    *,
    numeric: bool = False,
    bounded: bool = False,
    complete: bool = False,
) -> Column:
    """Refuse a space that is not a column, or lacks what a step needs."""
    wanted = "a column" + " of numbers" * (numeric or bounded)
    wanted += " with bounds" * bounded + " without missing values" * complete
    if isinstance(space.domain, Table):
        raise refuse(step, space, wanted, "select(column)")
    column = take_domain(space, Column, step, wanted, "")
    fixes = []
    cell = column.cell
    if (numeric or bounded) and cell.type == "bool":
        raise refuse(step, space, wanted, "cast('int')")
    if (numeric or bounded) and cell.type == "string":
        fixes.append("cast('float')")
    if complete and (cell.missing or fixes):
        fixes.append("impute(value)")
    if bounded and cell.low is None:
        fixes.append("clip(low, high)")
    if fixes:
        raise refuse(step, space, wanted, " >> ".join(fixes))
    return column
