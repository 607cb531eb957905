"""The query as the engine runs it: exact whole numbers for each group, and nothing else.

Everything before the aggregation works row by row, or on the rows of one user at a time. Which rows
of a user the contribution bounds keep depends on the rows of that user and on a fresh secret key
only: the rows are ordered by a keyed hash of the user and of the columns that the query uses, then
by these columns, so rows that still tie are equal. So for every key, adding or removing a user
leaves the rows of all others as they were. No guarantee depends on how random the order is.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hushed.errors import ParameterError, QueryFailed
from hushed.tables import _engine as engine
from hushed.tables._engine import operations
from hushed.tables._expressions import columns_in
from hushed.tables._measurements import Feature, Measurement, UnitContribution
from hushed.tables._query import Query
from hushed.tables._requests import Derive, Filter, Keys
from hushed.tables._translation import find_arithmetic, translate

Key = tuple[Any, ...]
_MOST_STEPS = 50  # nested selects take Ibis a time that grows with the square of their number
_TOO_LONG = (
    "the query is too long to be compiled: derive fewer columns in one query "
    f"(conditions, derived columns and operations in them: about {_MOST_STEPS})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What the engine has to do."""

    connection: engine.Connection  # the table
    query: Query  # what is asked
    contribution: UnitContribution  # what one unit of privacy contributes at most
    measured: tuple[Measurement, ...]  # what is counted and added up


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Exact answers, before noise. They never leave this package."""

    keys: tuple[Key, ...]  # the public keys; under partition selection one opaque key each
    # For each measurement, one whole number (or list of them) for each key.
    values: tuple[Sequence[Any], ...]
    users: list[int] | None  # units of privacy of each opaque key


class _BinColumn(Sequence[list[int]]):
    """Bins of every group, each written out when it is asked for.

    How many groups there are is private under partition selection, and bins without rows are not in
    the engine's answer: all of them at once might not fit into the memory.
    """

    __slots__ = ("_bins", "_counts", "_keys")

    def __init__(self, keys: Sequence[Key], counts: Mapping[Key, Mapping[int, int]], bins: int):
        self._keys, self._counts, self._bins = keys, counts, bins

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, place: Any) -> Any:
        written = [0] * self._bins
        for number, count in self._counts.get(self._keys[place], {}).items():
            written[number] = count
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedScan:
    """A query that the engine has planned and can run."""

    scan: Scan  # the scan
    secret: int  # fresh random number in [0, 2**63), used once: the key of all hashes
    # Rows, users and sums of every group; None if only bins are counted.
    plain: engine.PlannedQuery | None
    # Rows in each bin of every group, for each feature that is binned.
    binned: Mapping[Feature, engine.PlannedQuery]
    # Rows on each rung in all groups together, for each bound that is searched.
    searched: Mapping[Feature, engine.PlannedQuery] = field(default_factory=dict)


_NO_LIMIT = engine.Clock()


def prepare(
    connection: engine.Connection, query: Query, secret: int, clock: engine.Clock = _NO_LIMIT
) -> PreparedScan:
    """Compile all queries of a scan, and let the engine plan them; no row is read."""
    scan = Scan(
        connection=connection,
        query=query,
        contribution=query.contribution,
        measured=query.measured,
    )
    with suppress(RecursionError):  # Ibis runs out of stack over nested selects
        if query.keys.selected:  # the last query has this form, too
            engine.plan(connection, _key_lookup(scan, secret, ["0" * 32]), clock)
        plan = partial(engine.plan, connection, clock=clock)
        planned = _plan_scan(scan, secret, plan)
        features = dict.fromkeys(each.feature for each in query.searched)
        return replace(
            planned,
            searched={each: plan(_count_rungs(scan, secret, each)) for each in features},
        )
    raise ParameterError(_TOO_LONG)


def prepare_again(prepared: PreparedScan, query: Query) -> PreparedScan:
    """Compile a scan with other bounds, which are constants in the same queries."""
    scan = replace(prepared.scan, query=query, measured=query.measured)
    return _plan_scan(scan, prepared.secret, engine.compile_query)


def _plan_scan(scan: Scan, secret: int, plan: Callable[[Any], engine.PlannedQuery]) -> PreparedScan:
    features = _features(scan.measured)
    names = {feature: f"v{i}" for i, feature in enumerate(features)}
    bounded = _bound_contributions(scan, _select_relevant(scan, names), secret)
    bin_queries = {
        feature: _count_bins(scan, bounded, secret, names[feature])
        for feature in features
        if feature.kind in ("bin", "rung")
    }
    plain = _aggregate_groups(scan, bounded, secret, names)
    return PreparedScan(
        scan=scan,
        secret=secret,
        plain=None if plain is None else plan(plain),
        binned={feature: plan(query) for feature, query in bin_queries.items()},
    )


def run_searches(prepared: PreparedScan, clock: engine.Clock = _NO_LIMIT) -> list[list[int]]:
    """Count the rows on each rung, for each bound that is searched; exact."""
    found = {}
    for feature, planned in prepared.searched.items():
        answer = engine.fetch(prepared.scan.connection, planned, clock)
        found[feature] = [0] * feature.bins
        for rung, rows in zip(answer["rung"], answer["rows"], strict=True):
            if rung >= 0:  # a value that is missing has none
                found[feature][rung] = int(rows)
    return [found[each.feature] for each in prepared.scan.query.searched]


def run_scan(prepared: PreparedScan, clock: engine.Clock = _NO_LIMIT) -> Cells:
    """Run the queries of a scan.

    The result is exact. Groups without rows are zeros if the keys are public, and absent otherwise.
    """
    scan = prepared.scan
    names = {feature: f"v{i}" for i, feature in enumerate(_features(scan.measured))}
    plain: dict[Key, dict[str, Any]] = {}
    if prepared.plain is not None:
        plain = _index_by_key(scan, engine.fetch(scan.connection, prepared.plain, clock))
    binned = {
        feature: _read_bins(scan, engine.fetch(scan.connection, planned, clock), names[feature])
        for feature, planned in prepared.binned.items()
    }
    keys = tuple(plain) if scan.query.keys.selected else tuple(scan.query.keys.combinations())
    empty: dict[str, int] = defaultdict(int)
    values: list[Sequence[Any]] = []
    for each in scan.measured:
        if each.role in ("bins", "rank") and each.feature is not None:
            column = _BinColumn(keys, binned[each.feature], each.feature.bins)
            lazily = scan.query.keys.selected or each.role == "rank"
            values.append(column if lazily else list(column))
        else:
            cell = _cell_name(each, names)
            values.append([int(plain.get(key, empty)[cell] or 0) for key in keys])
    users = [int(plain[key]["users"]) for key in keys] if scan.query.keys.selected else None
    return Cells(keys=keys, values=tuple(values), users=users)


def fetch_keys(
    prepared: PreparedScan, chosen: Sequence[str], clock: engine.Clock = _NO_LIMIT
) -> dict[str, Key]:
    """Fetch the keys that partition selection chose by their opaque keys."""
    if not chosen:
        return {}
    scan = prepared.scan
    query = engine.compile_query(_key_lookup(scan, prepared.secret, chosen))
    found = engine.fetch(scan.connection, query, clock)
    columns = _key_names(scan)
    keys_by_id = dict(zip(found["id"], zip(*(found[c] for c in columns), strict=True), strict=True))
    if set(keys_by_id) != set(chosen):
        raise QueryFailed("the table changed during the query")
    return keys_by_id


def _key_lookup(scan: Scan, secret: int, chosen: Sequence[str]) -> Any:
    """Query for the keys that belong to opaque keys."""
    keys = _select_relevant(scan, {}).select(*_key_names(scan)).distinct()
    known = operations.constant_table(chosen, "string")
    with_id = keys.mutate(id=_opaque_column(scan, keys, secret))
    return with_id.semi_join(known, with_id["id"] == known["constant"])


def _require_short(steps: Sequence[Filter | Derive]) -> None:
    """Refuse at once a query that the engine would refuse after minutes."""
    if len(steps) + sum(len(find_arithmetic(_tree(each))) for each in steps) > _MOST_STEPS:
        raise ParameterError(_TOO_LONG)


def _tree(step: Filter | Derive) -> ast.expr:
    return step.value.tree if isinstance(step, Derive) else step.condition.tree


def _key_names(scan: Scan) -> list[str]:
    return [f"k{i}" for i in range(len(scan.query.keys.columns))]


def _opaque_column(scan: Scan, rows: Any, secret: int) -> Any:
    keys = [rows[name] for name in _key_names(scan)]
    return operations.opaque_key(scan.connection.engine, secret, keys).name("id")


def _features(measured: Sequence[Measurement]) -> list[Feature]:
    return list(dict.fromkeys(each.feature for each in measured if each.feature is not None))


def _cell_name(measurement: Measurement, names: Mapping[Feature, str]) -> str:
    if measurement.feature is None:
        return {"top": "rows", "top users": "users"}.get(measurement.role, measurement.role)
    return f"t_{names[measurement.feature]}"


def _select_relevant(scan: Scan, names: Mapping[Feature, str]) -> Any:
    """Select the user, the keys and the features of the filtered rows, and nothing else."""
    columns = list(dict.fromkeys(feature.column for feature in names))
    rows, places = _apply_steps(scan, columns)
    if not _filters_groups(scan):
        rows = _keep_known_keys(rows, scan.query.keys, places)
    picked = [
        rows[places[column]].name(f"k{i}") for i, column in enumerate(scan.query.keys.columns)
    ]
    if scan.query.user is not None:
        rows = rows.filter(rows[places[scan.query.user]].notnull())
        picked.append(rows[places[scan.query.user]].name("user"))
    values = {column: f"w{i}" for i, column in enumerate(columns)}
    picked += [operations.as_double(rows[places[each]]).name(values[each]) for each in columns]
    if not picked:
        return rows
    stages: dict[str, list[operations.Stage]] = {}
    for each, name in names.items():
        stages |= _stages(each, values[each.column], name)
    rows = operations.apply_stages(operations.materialise(rows.select(*picked)), stages)
    helpers = [*values.values(), *(each for each in stages if each not in names.values())]
    return rows.drop(*helpers) if helpers else rows


def _apply_steps(scan: Scan, columns: Sequence[str]) -> tuple[Any, dict[str, str]]:
    """Apply filters and derived columns in order; also give the new name of each column.

    The columns that the query needs get names of our own from the start: an engine may ignore the
    case of names, and then confuse two columns.
    """
    needed = {scan.query.user, *scan.query.keys.columns, *columns}
    steps: list[Filter | Derive] = []
    for step in reversed(scan.query.steps):
        if isinstance(step, Filter) or step.name in needed:
            steps.insert(0, step)
            needed |= columns_in(_tree(step))
    _require_short(steps)
    stored = [name for name in scan.connection.casts if name in needed]
    places = {name: f"c{i}" for i, name in enumerate(stored)}
    rows = engine.normalise_columns(scan.connection, places)
    for i, step in enumerate(steps):
        if isinstance(step, Derive):
            rows = translate(step.value, rows, f"d{i}", places)
            places[step.name] = f"d{i}"
            continue
        rows = translate(step.condition, rows, "condition", places)
        rows = rows.filter(rows["condition"]).drop("condition")
    return rows, places


def _keep_known_keys(rows: Any, keys: Keys, places: Mapping[str, str]) -> Any:
    """Drop rows, or groups, whose key is missing or is not a public key."""
    for i, column in enumerate(keys.columns):
        if keys.values is None:
            rows = rows.filter(rows[places[column]].notnull())
        else:
            known = operations.constant_table(keys.values[i], keys.types[i])
            rows = rows.semi_join(known, rows[places[column]] == known["constant"])
    return rows


def _filters_groups(scan: Scan) -> bool:
    """Whether public keys filter the groups, which are fewer than the rows.

    With contribution bounds they filter the rows: else other rows of a user could use up the bound.
    """
    return scan.query.user is None and not scan.query.keys.selected


def _stages(feature: Feature, value: str, name: str) -> dict[str, list[operations.Stage]]:
    """Stages of a feature, and of what helps to compute it."""
    if feature.kind == "bin":
        low, high, count = feature.low, feature.high, feature.bins
        return {name: operations.bins_stages(value, name, low=low, high=high, count=count)}
    if feature.kind == "rung" and feature.ladder is not None:
        return operations.ladder_stages(value, name, f"{name}_rest", feature.ladder)
    if feature.kind == "present":
        return {name: operations.presence_stages(value)}
    if feature.grid is None:
        raise NotImplementedError(feature.kind)
    steps = operations.steps_stages(value, name, feature.grid)
    if feature.kind == "steps":
        return {name: steps}
    most, shift = feature.grid.most, feature.shift
    return {name: [*steps, *operations.squares_stages(value, name, most=most, shift=shift)]}


def _bound_contributions(scan: Scan, rows: Any, secret: int) -> Any:
    """Apply the contribution bounds to each user, in the order of a keyed hash."""
    if scan.query.user is None:
        return rows
    keys = _key_names(scan)
    rest = [name for name in rows.columns if name not in (*keys, "user")]
    who = scan.connection.engine
    bounds, contribution = scan.query.contribution_bounds, scan.contribution
    if keys and bounds.max_groups_per_user is not None:
        columns = [rows[name] for name in ("user", *keys)]
        order = [operations.keyed_hash(who, secret ^ 1, columns)]
        rank = operations.dense_rank([rows["user"]], [*order, *(rows[k] for k in keys)])
        rows = _keep_ranked(rows, rank, contribution.groups)
    if bounds.max_rows_per_user is not None:
        columns = [rows[name] for name in (*keys, *rest)]
        order = [operations.keyed_hash(who, secret ^ 2, [rows["user"], *columns])]
        rank = operations.row_rank([rows["user"]], [*order, *columns])
        rows = _keep_ranked(rows, rank, bounds.max_rows_per_user)
    return rows


def _keep_ranked(rows: Any, rank: Any, limit: int) -> Any:
    ranked = rows.mutate(place=rank)
    return ranked.filter(ranked["place"] < limit).drop("place")


def _aggregate_groups(scan: Scan, rows: Any, secret: int, names: Mapping[Feature, str]) -> Any:
    """Query that counts and adds up every group, in one scan; None if only bins are counted."""
    if (
        all(each.role in ("bins", "rank") for each in scan.measured)
        and not scan.query.keys.selected
    ):
        return None
    sums = {
        _cell_name(each, names): operations.exact_sum(
            scan.connection.engine, rows[names[each.feature]]
        )
        for each in scan.measured
        if each.role == "total" and each.feature is not None
    }
    cells: dict[str, Any] = {"rows": rows.count(), **sums}
    if scan.query.keys.selected or any(
        _cell_name(each, names) == "users" for each in scan.measured
    ):
        cells["users"] = rows["user"].nunique() if scan.query.user is not None else rows.count()
    return _aggregate(scan, rows, secret, [], cells)


def _index_by_key(scan: Scan, found: Mapping[str, list[Any]]) -> dict[Key, dict[str, Any]]:
    """Index the cells of an answer by group."""
    ids = _group_columns(scan)
    return {
        tuple(found[name][i] for name in ids): {cell: found[cell][i] for cell in found}
        for i in range(len(found["rows"]))
    }


def _group_columns(scan: Scan) -> list[str]:
    """Columns that identify a group of an answer."""
    return ["id"] if scan.query.keys.selected else _key_names(scan)


def _aggregate(
    scan: Scan, rows: Any, secret: int, others: Sequence[str], cells: Mapping[str, Any]
) -> Any:
    """Aggregate by key, and by what else is given.

    Rows are grouped by the keys themselves, never by a hash of them. After that, partition
    selection replaces each key by an opaque key; the key itself does not leave the engine.
    """
    keys = _key_names(scan)
    by = [*keys, *others]
    grouped = rows.group_by(by).aggregate(**cells) if by else rows.aggregate(**cells)
    if _filters_groups(scan):
        grouped = _keep_known_keys(
            grouped, scan.query.keys, dict(zip(scan.query.keys.columns, keys, strict=True))
        )
    if not scan.query.keys.selected:
        return grouped
    return grouped.select(_opaque_column(scan, grouped, secret), *others, *cells)


def _count_bins(scan: Scan, rows: Any, secret: int, bin_name: str) -> Any:
    """Query for the number of rows in each bin of every group: a scan of its own.

    Rows without a value are counted, too, in a bin that nobody reads: Spark would move a condition
    on the bin down to the rows, and write every stage of it out, again and again.
    """
    return _aggregate(scan, rows, secret, [bin_name], {"rows": rows.count()})


def _count_rungs(scan: Scan, secret: int, feature: Feature) -> Any:
    """Query for the number of rows on each rung, all groups together: a scan of its own."""
    rows = _bound_contributions(scan, _select_relevant(scan, {feature: "rung"}), secret)
    if not _filters_groups(scan) or not scan.query.keys.columns:
        return rows.group_by("rung").aggregate(rows=rows.count())
    keys = _key_names(scan)
    grouped = rows.group_by([*keys, "rung"]).aggregate(rows=rows.count())
    places = dict(zip(scan.query.keys.columns, keys, strict=True))
    known = _keep_known_keys(grouped, scan.query.keys, places)
    whole = operations.exact_sum(scan.connection.engine, known["rows"])
    return known.group_by("rung").aggregate(rows=whole)


def _read_bins(
    scan: Scan, found: Mapping[str, list[Any]], bin_name: str
) -> dict[Key, dict[int, int]]:
    """Read the number of rows in each bin of each group; bins without rows are left out."""
    ids = _group_columns(scan)
    counts: dict[Key, dict[int, int]] = {}
    for i, number in enumerate(found["rows"]):
        key = tuple(found[name][i] for name in ids)
        if found[bin_name][i] >= 0:
            counts.setdefault(key, {})[found[bin_name][i]] = number
    return counts
