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
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hushed.errors import ParameterError, QueryFailed
from hushed.tables import _engine as engine
from hushed.tables._expressions import columns_in
from hushed.tables._measurements import Feature, Influence, Measurement
from hushed.tables._requests import Derive, Filter, Keys, Limits
from hushed.tables._translation import arithmetic_within, translate

Key = tuple[Any, ...]
_MOST_STEPS = 50  # nested selects take Ibis a time that grows with the square of their number
_TOO_LONG = (
    "the query cannot be written down, it is too long: derive fewer columns in one query "
    f"(conditions, derived columns and operations in them: about {_MOST_STEPS})"
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A query that the engine has planned and can run.

    Parameters
    ----------
    what : Scan
        The query.
    secret : int
        Fresh random number in [0, 2**63), used once: the order in which rows are kept.
    plain : Question, optional
        Rows, users and sums of every group; None where only bins are counted.
    binned : mapping of Feature to Question
        Rows in each bin of every group, for each feature that is binned.
    """

    what: Scan
    secret: int
    plain: engine.Question | None
    binned: Mapping[Feature, engine.Question]


_NO_LIMIT = engine.Clock()


def prepare(what: Scan, secret: int, clock: engine.Clock = _NO_LIMIT) -> Prepared:
    """Write down all that the engine will be asked, and have it planned; no row is read."""
    with suppress(RecursionError):  # Ibis runs out of stack over nested selects
        return _prepared_by_engine(what, secret, clock)
    raise ParameterError(_TOO_LONG)


def _prepared_by_engine(what: Scan, secret: int, clock: engine.Clock) -> Prepared:
    features = _features(what.measured)
    names = {feature: f"v{i}" for i, feature in enumerate(features)}
    bounded = _bounded(what, _narrowed(what, names), secret)
    asked = {
        feature: _counted_bins(what, bounded, secret, names[feature])
        for feature in features
        if feature.kind == "bin"
    }
    plain = _grouped(what, bounded, secret, names)
    if what.keys.private:  # what will be asked last is of this form, too
        engine.plan(what.connection, _naming(what, secret, ["0" * 32]), clock)
    return Prepared(
        what=what,
        secret=secret,
        plain=None if plain is None else engine.plan(what.connection, plain, clock),
        binned={
            feature: engine.plan(what.connection, query, clock) for feature, query in asked.items()
        },
    )


def scan(prepared: Prepared, clock: engine.Clock = _NO_LIMIT) -> Cells:
    """Run the query.

    Exact; groups without rows are zeros if the keys are public, and absent otherwise.
    """
    what = prepared.what
    names = {feature: f"v{i}" for i, feature in enumerate(_features(what.measured))}
    plain: dict[Key, dict[str, Any]] = {}
    if prepared.plain is not None:
        plain = _by_key(what, engine.fetch(what.connection, prepared.plain, clock))
    binned = {
        feature: _bins(what, engine.fetch(what.connection, asked, clock), names[feature], feature)
        for feature, asked in prepared.binned.items()
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


def name_keys(
    prepared: Prepared, chosen: Sequence[str], clock: engine.Clock = _NO_LIMIT
) -> dict[str, Key]:
    """Find the keys behind opaque names that noise has chosen."""
    if not chosen:
        return {}
    what = prepared.what
    asked = engine.write(_naming(what, prepared.secret, chosen))
    found = engine.fetch(what.connection, asked, clock)
    columns = _key_names(what)
    keys_by_id = dict(zip(found["id"], zip(*(found[c] for c in columns), strict=True), strict=True))
    if set(keys_by_id) != set(chosen):
        raise QueryFailed("the table changed during the query")
    return keys_by_id


def _naming(what: Scan, secret: int, chosen: Sequence[str]) -> Any:
    """Query for the keys behind opaque names."""
    keys = _narrowed(what, {}).select(*_key_names(what)).distinct()
    known = engine.listed(chosen, "text")
    named = keys.mutate(id=_opaque(what, keys, secret))
    return named.semi_join(known, named["id"] == known["listed"])


def _require_short(steps: Sequence[Filter | Derive]) -> None:
    """Refuse at once what would take minutes to be found too long."""
    if len(steps) + sum(len(arithmetic_within(_tree(each))) for each in steps) > _MOST_STEPS:
        raise ParameterError(_TOO_LONG)


def _tree(step: Filter | Derive) -> ast.expr:
    return step.value.tree if isinstance(step, Derive) else step.condition.tree


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
    _require_short(steps)
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


def _grouped(what: Scan, rows: Any, secret: int, names: Mapping[Feature, str]) -> Any:
    """Query that counts and adds up every group, in one scan; None if only bins are counted."""
    if all(each.role in ("bins", "rank") for each in what.measured) and not what.keys.private:
        return None
    sums = {
        _cell_name(each, names): engine.total(what.connection.engine, rows[names[each.feature]])
        for each in what.measured
        if each.role == "total" and each.feature is not None
    }
    cells: dict[str, Any] = {"rows": rows.count(), **sums}
    if what.keys.private or any(each.role == "users" for each in what.measured):
        cells["users"] = rows["user"].nunique() if what.user is not None else rows.count()
    return _aggregated(what, rows, secret, [], cells)


def _by_key(what: Scan, found: Mapping[str, list[Any]]) -> dict[Key, dict[str, Any]]:
    """Cells of each group."""
    ids = _ids(what)
    return {
        tuple(found[name][i] for name in ids): {cell: found[cell][i] for cell in found}
        for i in range(len(found["rows"]))
    }


def _ids(what: Scan) -> list[str]:
    """Columns that tell the groups of an answer apart."""
    return ["id"] if what.keys.private else _key_names(what)


def _aggregated(
    what: Scan, rows: Any, secret: int, others: Sequence[str], cells: Mapping[str, Any]
) -> Any:
    """Aggregate by key, and by what else is given.

    Groups are those of the keys themselves, never of a hash of them. A private key is replaced by
    its opaque name only then, and does not leave the engine.
    """
    keys = _key_names(what)
    by = [*keys, *others]
    grouped = rows.group_by(by).aggregate(**cells) if by else rows.aggregate(**cells)
    if _picks_groups(what):
        grouped = _with_keys(grouped, what.keys, dict(zip(what.keys.columns, keys, strict=True)))
    if not what.keys.private:
        return grouped
    return grouped.select(_opaque(what, grouped, secret), *others, *cells)


def _counted_bins(what: Scan, rows: Any, secret: int, bin_name: str) -> Any:
    """Query for the rows in each bin of every group: a scan of its own."""
    there = rows.filter(rows[bin_name] >= 0)
    return _aggregated(what, there, secret, [bin_name], {"rows": there.count()})


def _bins(
    what: Scan, found: Mapping[str, list[Any]], bin_name: str, feature: Feature
) -> dict[Key, list[int]]:
    """Rows in each bin of each group."""
    ids = _ids(what)
    counts: dict[Key, list[int]] = {}
    for i, number in enumerate(found["rows"]):
        key = tuple(found[name][i] for name in ids)
        counts.setdefault(key, [0] * feature.bins)[found[bin_name][i]] = number
    return counts
