"""The query as the engine runs it: exact whole numbers for each group, and nothing else.

Everything before the aggregation works row by row, or on the rows of one user at a time. Which
rows of a user are kept depends on that user's rows and on a fresh secret key alone: they are
ordered by a keyed hash of the user and of what the query uses of them, ties by the same columns, so
that rows that still tie are equal. For every key, adding or removing a user therefore leaves the
rows of all others as they were; no promise rests on how random the order is.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hushed.errors import QueryFailed
from hushed.tables import engine
from hushed.tables.expressions import columns_in
from hushed.tables.measurements import Feature, Influence, Measurement
from hushed.tables.requests import Derive, Filter, Keys, Limits
from hushed.tables.translation import translate

__all__ = ["Cells", "Scan", "name_keys", "require_short", "scan"]

Key = tuple[Any, ...]
_SHORT = 50  # parts of conditions and derived columns that can always be written down


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """All that the engine is to do.

    Parameters
    ----------
    connection : Connection
        The table.
    user : str, optional
        Column of the user.
    steps : tuple of Filter or Derive
        In this order.
    keys : Keys
        The grouping.
    limits : Limits
        What is kept of a user.
    touched : Influence
        What that comes to.
    measured : tuple of Measurement
        What is counted and added up.
    """

    connection: engine.Connection
    user: str | None
    steps: tuple[Filter | Derive, ...]
    keys: Keys
    limits: Limits
    touched: Influence
    measured: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Exact answers, before noise. They never leave this package.

    Parameters
    ----------
    keys : tuple of tuple
        The public keys; for private ones, one opaque name each.
    values : tuple of list
        For each measurement, one whole number (or list of them) for each key.
    users : list of int, optional
        Units of privacy behind each private key.
    """

    keys: tuple[Key, ...]
    values: tuple[list[Any], ...]
    users: list[int] | None


def scan(what: Scan, secret: int) -> Cells:
    """Run the query.

    Parameters
    ----------
    what : Scan
        The query.
    secret : int
        Fresh random number in [0, 2**63), used once: the order in which rows are kept.

    Returns
    -------
    Cells
        Exact; groups without rows are zeros if the keys are public, and absent otherwise.

    Raises
    ------
    QueryFailed
        If the engine fails.
    """
    features = _features(what.measured)
    names = {feature: f"v{i}" for i, feature in enumerate(features)}
    bounded = _bounded(what, _narrowed(what, names), secret)
    plain = _grouped(what, bounded, secret, names)
    binned = {
        feature: _counted_bins(what, bounded, secret, names[feature], feature.bins)
        for feature in features
        if feature.kind == "bin"
    }
    keys = tuple(plain) if what.keys.private else tuple(what.keys.combinations())
    empty: dict[str, int] = defaultdict(int)
    values: list[list[Any]] = []
    for each in what.measured:
        if each.role in ("bins", "rank") and each.feature is not None:
            found, empty_bins = binned[each.feature], [0] * each.feature.bins
            values.append([list(found.get(key, empty_bins)) for key in keys])
        else:
            cell = _cell_name(each, names)
            values.append([int(plain.get(key, empty)[cell] or 0) for key in keys])
    users = [int(plain[key]["users"]) for key in keys] if what.keys.private else None
    return Cells(keys=keys, values=tuple(values), users=users)


def require_short(what: Scan) -> None:
    """Refuse a query that is too long to be written down, which no row decides.

    Parameters
    ----------
    what : Scan
        The query. A short one passes at once.

    Raises
    ------
    ParameterError
        If the conditions and derived columns are too many.
    """
    if sum(2 + sum(1 for _ in ast.walk(_tree(step))) for step in what.steps) <= _SHORT:
        return
    names = {feature: f"v{i}" for i, feature in enumerate(_features(what.measured))}
    engine.require_written(_bounded(what, _narrowed(what, names), 0))


def _tree(step: Filter | Derive) -> ast.expr:
    return step.value.tree if isinstance(step, Derive) else step.condition.tree


def name_keys(what: Scan, secret: int, chosen: Sequence[str]) -> dict[str, Key]:
    """Find the keys behind opaque names that noise has chosen.

    Parameters
    ----------
    what : Scan
        The query that was run.
    secret : int
        The same number as then.
    chosen : sequence of str
        Opaque names of the groups that may be named.

    Returns
    -------
    dict of str to tuple
        Key by opaque name.

    Raises
    ------
    QueryFailed
        If the rows changed in between.
    """
    if not chosen:
        return {}
    columns = _key_names(what)
    keys = _narrowed(what, {}).select(*columns).distinct()
    known = engine.listed(chosen, "text")
    named = keys.mutate(id=_opaque(what, keys, secret))
    wanted = named.semi_join(known, named["id"] == known["listed"])
    found = engine.fetch(what.connection, wanted)
    keys_by_id = dict(zip(found["id"], zip(*(found[c] for c in columns), strict=True), strict=True))
    if set(keys_by_id) != set(chosen):
        raise QueryFailed("the table changed during the query")
    return keys_by_id


def _key_names(what: Scan) -> list[str]:
    return [f"k{i}" for i in range(len(what.keys.columns))]


def _opaque(what: Scan, rows: Any, secret: int) -> Any:
    keys = [rows[name] for name in _key_names(what)]
    return engine.opaque(what.connection.engine, secret, keys).name("id")


def _features(measured: Sequence[Measurement]) -> list[Feature]:
    return list(dict.fromkeys(each.feature for each in measured if each.feature is not None))


def _cell_name(measurement: Measurement, names: Mapping[Feature, str]) -> str:
    if measurement.feature is None:
        return measurement.role
    return f"t_{names[measurement.feature]}"


def _narrowed(what: Scan, names: Mapping[Feature, str]) -> Any:
    """User, keys and features of the rows that the query is about, and nothing else."""
    columns = list(dict.fromkeys(feature.column for feature in names))
    rows, places = _prepared(what, columns)
    if not _picks_groups(what):
        rows = _with_keys(rows, what.keys, places)
    picked = [rows[places[column]].name(f"k{i}") for i, column in enumerate(what.keys.columns)]
    if what.user is not None:
        rows = rows.filter(rows[places[what.user]].notnull())
        picked.append(rows[places[what.user]].name("user"))
    values = {column: f"w{i}" for i, column in enumerate(columns)}
    picked += [engine.number(rows[places[each]]).name(values[each]) for each in columns]
    if not picked:
        return rows
    stages = {name: _stages(each, values[each.column], name) for each, name in names.items()}
    rows = engine.staged(engine.fenced(rows.select(*picked)), stages)
    return rows.drop(*values.values()) if values else rows


def _prepared(what: Scan, columns: Sequence[str]) -> tuple[Any, dict[str, str]]:
    """Apply filters and needed derived columns in order; what each column is called after it.

    The columns that the query needs go under names of our own from the start: an engine may fold
    the case of names, and then one column would stand in for another.
    """
    needed = {what.user, *what.keys.columns, *columns}
    steps: list[Filter | Derive] = []
    for step in reversed(what.steps):
        if isinstance(step, Filter) or step.name in needed:
            steps.insert(0, step)
            needed |= columns_in(_tree(step))
    stored = [name for name in what.connection.cells if name in needed]
    places = {name: f"c{i}" for i, name in enumerate(stored)}
    rows = engine.tamed(what.connection, places)
    for i, step in enumerate(steps):
        if isinstance(step, Derive):
            rows = translate(step.value, rows, f"d{i}", places)
            places[step.name] = f"d{i}"
            continue
        rows = translate(step.condition, rows, "condition", places)
        rows = rows.filter(rows["condition"]).drop("condition")
    return rows, places


def _with_keys(rows: Any, keys: Keys, places: Mapping[str, str]) -> Any:
    """Drop rows, or groups, whose key is missing or not among the public ones."""
    for i, column in enumerate(keys.columns):
        if keys.values is None:
            rows = rows.filter(rows[places[column]].notnull())
        else:
            known = engine.listed(keys.values[i], keys.kinds[i])
            rows = rows.semi_join(known, rows[places[column]] == known["listed"])
    return rows


def _picks_groups(what: Scan) -> bool:
    """Whether public keys are picked among the groups, which are fewer than the rows.

    Not where the rows of a user are limited: rows that the query is not about would be kept.
    """
    return what.user is None and not what.keys.private


def _stages(feature: Feature, value: str, name: str) -> list[engine.Stage]:
    if feature.kind == "bin":
        low, high, count = feature.low, feature.high, feature.bins
        return engine.bins_stages(value, name, low=low, high=high, count=count)
    if feature.kind == "present":
        return engine.presence_stages(value)
    if feature.grid is None:
        raise NotImplementedError(feature.kind)
    steps = engine.steps_stages(value, name, feature.grid)
    if feature.kind == "steps":
        return steps
    most, shift = feature.grid.most, feature.shift
    return [*steps, *engine.squares_stages(value, name, most=most, shift=shift)]


def _bounded(what: Scan, rows: Any, secret: int) -> Any:
    """Keep what the limits allow of each user, in an order that nobody chose."""
    if what.user is None:
        return rows
    keys = _key_names(what)
    rest = [name for name in rows.columns if name not in (*keys, "user")]
    who = what.connection.engine
    limits, touched = what.limits, what.touched
    if keys and limits.groups is not None:
        columns = [rows[name] for name in ("user", *keys)]
        order = [engine.hashed(who, secret ^ 1, columns)]
        rank = engine.dense_rank([rows["user"]], [*order, *(rows[k] for k in keys)])
        rows = _kept(rows, rank, touched.groups)
    if limits.rows is not None:
        columns = [rows[name] for name in (*keys, *rest)]
        order = [engine.hashed(who, secret ^ 2, [rows["user"], *columns])]
        rank = engine.row_rank([rows["user"]], [*order, *columns])
        rows = _kept(rows, rank, limits.rows)
    return rows


def _kept(rows: Any, rank: Any, limit: int) -> Any:
    ranked = rows.mutate(place=rank)
    return ranked.filter(ranked["place"] < limit).drop("place")


def _grouped(
    what: Scan, rows: Any, secret: int, names: Mapping[Feature, str]
) -> dict[Key, dict[str, Any]]:
    """Count and add up every group, in one scan."""
    sums = {
        _cell_name(each, names): engine.total(what.connection.engine, rows[names[each.feature]])
        for each in what.measured
        if each.role == "total" and each.feature is not None
    }
    cells: dict[str, Any] = {"rows": rows.count(), **sums}
    if what.keys.private or any(each.role == "users" for each in what.measured):
        cells["users"] = rows["user"].nunique() if what.user is not None else rows.count()
    if all(each.role in ("bins", "rank") for each in what.measured) and not what.keys.private:
        return {}
    ids, grouped = _aggregated(what, rows, secret, [], cells)
    found = engine.fetch(what.connection, grouped)
    return {
        tuple(found[name][i] for name in ids): {cell: found[cell][i] for cell in cells}
        for i in range(len(found["rows"]))
    }


def _aggregated(
    what: Scan, rows: Any, secret: int, others: Sequence[str], cells: Mapping[str, Any]
) -> tuple[list[str], Any]:
    """Aggregate by key, and by what else is given; say what the key is in the answer, too.

    Groups are those of the keys themselves, never of a hash of them. A private key is replaced by
    its opaque name only then, and does not leave the engine.
    """
    keys = _key_names(what)
    by = [*keys, *others]
    grouped = rows.group_by(by).aggregate(**cells) if by else rows.aggregate(**cells)
    if _picks_groups(what):
        grouped = _with_keys(grouped, what.keys, dict(zip(what.keys.columns, keys, strict=True)))
    if not what.keys.private:
        return keys, grouped
    return ["id"], grouped.select(_opaque(what, grouped, secret), *others, *cells)


def _counted_bins(
    what: Scan, rows: Any, secret: int, bin_name: str, width: int
) -> dict[Key, list[int]]:
    """Rows in each bin of every group: a scan of its own."""
    there = rows.filter(rows[bin_name] >= 0)
    ids, grouped = _aggregated(what, there, secret, [bin_name], {"rows": there.count()})
    found = engine.fetch(what.connection, grouped)
    counts: dict[Key, list[int]] = {}
    for i, number in enumerate(found["rows"]):
        key = tuple(found[name][i] for name in ids)
        counts.setdefault(key, [0] * width)[found[bin_name][i]] = number
    return counts
