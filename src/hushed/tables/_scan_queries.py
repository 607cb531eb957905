"""The queries of a scan, for Ibis: from bounded rows to exact whole numbers for each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hushed.tables import _engine as engine
from hushed.tables._engine import operations
from hushed.tables._measurements import Feature, Measurement
from hushed.tables._scan_rows import (
    Scan,
    bound_rows,
    filters_groups,
    keep_known_keys,
    key_names,
    select_rows,
)

Key = tuple[Any, ...]


def name_features(measured: Sequence[Measurement]) -> dict[Feature, str]:
    """Name the column of each feature, once each, in order."""
    found = dict.fromkeys(each.feature for each in measured if each.feature is not None)
    return {feature: f"v{i}" for i, feature in enumerate(found)}


def cell_name(measurement: Measurement, names: Mapping[Feature, str]) -> str:
    """Name the column that a measurement is read from."""
    if measurement.feature is None:
        return {"top": "rows", "top users": "users"}.get(measurement.role, measurement.role)
    return f"t_{names[measurement.feature]}"


def text_keys(scan: Scan) -> list[str]:
    """Name the columns of keys that are strings."""
    keys = zip(key_names(scan), scan.query.keys.types, strict=True)
    return [name for name, key_type in keys if key_type == "string"]


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
    rows = measured_rows(scan, secret, {feature: "rung"})
    if not filters_groups(scan) or not scan.query.keys.columns:
        return rows.group_by("rung").aggregate(rows=rows.count())
    keys = key_names(scan)
    grouped = rows.group_by([*keys, "rung"]).aggregate(rows=rows.count())
    places = dict(zip(scan.query.keys.columns, keys, strict=True))
    known = keep_known_keys(grouped, scan.query.keys, places)
    whole = operations.exact_sum(scan.connection.engine, known["rows"])
    return known.group_by("rung").aggregate(rows=whole)


def look_up_keys(scan: Scan, secret: int, chosen: Sequence[str]) -> Any:
    """Query for the keys that belong to opaque keys."""
    rows = (
        select_rows(scan, secret, [])
        if scan.copy is None
        else engine.read_copy(scan.connection, scan.copy)
    )
    keys = rows.select(*key_names(scan)).distinct()
    known = operations.constant_table(chosen, "string")
    with_id = keys.mutate(id=_opaque_column(scan, keys, secret))
    found = with_id.semi_join(known, with_id["id"] == known["constant"])
    send = scan.connection.engine.send_text
    return found.mutate(send(found[name]).name(name) for name in text_keys(scan))


def feature_columns(features: Iterable[Feature]) -> list[str]:
    """List the columns that features are computed from, once each, in order of their names."""
    return sorted({each.column for each in features})


def measured_rows(scan: Scan, secret: int, names: Mapping[Feature, str]) -> Any:
    """Give the rows within the contribution bounds, with each feature under its name."""
    columns: Sequence[str] = feature_columns(names)
    if scan.copy is not None:
        rows, columns = engine.read_copy(scan.connection, scan.copy), scan.copy.columns
    else:
        rows = bound_rows(scan, secret, columns)
    if not names:
        return rows
    values = {column: f"w{i}" for i, column in enumerate(columns)}
    used = [values[column] for column in feature_columns(names)]
    kept = [name for name in rows.columns if not name.startswith("w")]
    doubles = [operations.as_double(rows[name]).name(name) for name in used]
    stages: dict[str, list[operations.Stage]] = {}
    for each, name in names.items():
        stages |= _stages(each, values[each.column], name)
    return operations.apply_stages(operations.materialise(rows.select(*kept, *doubles)), stages)


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
    if filters_groups(scan):
        grouped = keep_known_keys(
            grouped, scan.query.keys, dict(zip(scan.query.keys.columns, keys, strict=True))
        )
    if not scan.query.keys.selected:
        return grouped
    return grouped.select(_opaque_column(scan, grouped, secret), *others, *cells)


def _opaque_column(scan: Scan, rows: Any, secret: int) -> Any:
    keys = [rows[name] for name in key_names(scan)]
    return operations.opaque_key(scan.connection.engine, secret, keys).name("id")
