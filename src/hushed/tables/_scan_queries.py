"""The queries of a scan, for Ibis: from filtered rows to exact whole numbers for each group.

Everything before the aggregation works row by row, or on the rows of one user at a time. Which rows
of a user the contribution bounds keep depends on the rows of that user and on a fresh secret key
only: the rows are ordered by a keyed hash of the user and of the columns that the query uses, then
by these columns, so rows that still tie are equal. So for every key, adding or removing a user
leaves the rows of all others as they were. No guarantee depends on how random the order is.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hushed.errors import ParameterError
from hushed.tables import _engine as engine
from hushed.tables._engine import operations
from hushed.tables._expressions import columns_in
from hushed.tables._measurements import Feature, Measurement, UnitContribution
from hushed.tables._query import Query
from hushed.tables._requests import Derive, Filter, Keys
from hushed.tables._translation import find_arithmetic, translate

Key = tuple[Any, ...]
_MOST_STEPS = 50  # nested selects take Ibis a time that grows with the square of their number
TOO_LONG = (
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


def name_features(measured: Sequence[Measurement]) -> dict[Feature, str]:
    """Name the column of each feature, once each, in order."""
    found = dict.fromkeys(each.feature for each in measured if each.feature is not None)
    return {feature: f"v{i}" for i, feature in enumerate(found)}


def cell_name(measurement: Measurement, names: Mapping[Feature, str]) -> str:
    """Name the column that a measurement is read from."""
    if measurement.feature is None:
        return {"top": "rows", "top users": "users"}.get(measurement.role, measurement.role)
    return f"t_{names[measurement.feature]}"


def key_names(scan: Scan) -> list[str]:
    """Name the columns of the keys."""
    return [f"k{i}" for i in range(len(scan.query.keys.columns))]


def group_columns(scan: Scan) -> list[str]:
    """Columns that identify a group of an answer."""
    return ["id"] if scan.query.keys.selected else key_names(scan)


def aggregate_groups(scan: Scan, rows: Any, secret: int, names: Mapping[Feature, str]) -> Any:
    """Query that counts and adds up every group, in one scan; None if only bins are counted."""
    if (
        all(each.role in ("bins", "rank") for each in scan.measured)
        and not scan.query.keys.selected
    ):
        return None
    sums = {
        cell_name(each, names): operations.exact_sum(
            scan.connection.engine, rows[names[each.feature]]
        )
        for each in scan.measured
        if each.role == "total" and each.feature is not None
    }
    cells: dict[str, Any] = {"rows": rows.count(), **sums}
    if scan.query.keys.selected or any(cell_name(each, names) == "users" for each in scan.measured):
        cells["users"] = rows["user"].nunique() if scan.query.user is not None else rows.count()
    return _aggregate(scan, rows, secret, [], cells)


def count_bins(scan: Scan, rows: Any, secret: int, bin_name: str) -> Any:
    """Query for the number of rows in each bin of every group: a scan of its own.

    Rows without a value are counted, too, in a bin that nobody reads: Spark would move a condition
    on the bin down to the rows, and write every stage of it out, again and again.
    """
    return _aggregate(scan, rows, secret, [bin_name], {"rows": rows.count()})


def count_rungs(scan: Scan, secret: int, feature: Feature) -> Any:
    """Query for the number of rows on each rung, all groups together: a scan of its own."""
    rows = bound_rows(scan, secret, {feature: "rung"})
    if not _filters_groups(scan) or not scan.query.keys.columns:
        return rows.group_by("rung").aggregate(rows=rows.count())
    keys = key_names(scan)
    grouped = rows.group_by([*keys, "rung"]).aggregate(rows=rows.count())
    places = dict(zip(scan.query.keys.columns, keys, strict=True))
    known = _keep_known_keys(grouped, scan.query.keys, places)
    whole = operations.exact_sum(scan.connection.engine, known["rows"])
    return known.group_by("rung").aggregate(rows=whole)


def look_up_keys(scan: Scan, secret: int, chosen: Sequence[str]) -> Any:
    """Query for the keys that belong to opaque keys."""
    keys = _select_relevant(scan, {}).select(*key_names(scan)).distinct()
    known = operations.constant_table(chosen, "string")
    with_id = keys.mutate(id=_opaque_column(scan, keys, secret))
    return with_id.semi_join(known, with_id["id"] == known["constant"])


def bound_rows(scan: Scan, secret: int, names: Mapping[Feature, str]) -> Any:
    """Select what the query needs of the filtered rows, within the contribution bounds."""
    return _bound_contributions(scan, _select_relevant(scan, names), secret)


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


def _require_short(steps: Sequence[Filter | Derive]) -> None:
    """Refuse at once a query that the engine would refuse after minutes."""
    if len(steps) + sum(len(find_arithmetic(_tree(each))) for each in steps) > _MOST_STEPS:
        raise ParameterError(TOO_LONG)


def _tree(step: Filter | Derive) -> ast.expr:
    return step.value.tree if isinstance(step, Derive) else step.condition.tree


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
    keys = key_names(scan)
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


def _aggregate(
    scan: Scan, rows: Any, secret: int, others: Sequence[str], cells: Mapping[str, Any]
) -> Any:
    """Aggregate by key, and by what else is given.

    Rows are grouped by the keys themselves, never by a hash of them. After that, partition
    selection replaces each key by an opaque key; the key itself does not leave the engine.
    """
    keys = key_names(scan)
    by = [*keys, *others]
    grouped = rows.group_by(by).aggregate(**cells) if by else rows.aggregate(**cells)
    if _filters_groups(scan):
        grouped = _keep_known_keys(
            grouped, scan.query.keys, dict(zip(scan.query.keys.columns, keys, strict=True))
        )
    if not scan.query.keys.selected:
        return grouped
    return grouped.select(_opaque_column(scan, grouped, secret), *others, *cells)


def _opaque_column(scan: Scan, rows: Any, secret: int) -> Any:
    keys = [rows[name] for name in key_names(scan)]
    return operations.opaque_key(scan.connection.engine, secret, keys).name("id")
