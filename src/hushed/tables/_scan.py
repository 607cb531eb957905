"""Plan the queries of a scan, run them, and read the exact answers, before any noise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hushed.errors import ParameterError, QueryFailed
from hushed.tables import _engine as engine
from hushed.tables._measurements import Feature
from hushed.tables._query import Query, digest_question
from hushed.tables._scan_queries import (
    Key,
    aggregate_groups,
    cell_name,
    count_bins,
    count_rungs,
    feature_columns,
    group_columns,
    look_up_keys,
    measured_rows,
    name_features,
    text_keys,
)
from hushed.tables._scan_rows import TOO_LONG, Scan, bound_rows, digest_selection, key_names


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
    # Random number in [0, 2**63) that no row decides: the key of all hashes, but for rows that are
    # copied. A copy has one of its own. Both are fresh when the copy, or the scan, is planned.
    secret: int
    # Rows, users and sums of every group; None if only bins are counted.
    plain: engine.PlannedQuery | None
    # Rows in each bin of every group, for each feature that is binned.
    binned: Mapping[Feature, engine.PlannedQuery]
    # Rows on each rung in all groups together, for each bound that is searched.
    searched: Mapping[Feature, engine.PlannedQuery] = field(default_factory=dict)


_NO_LIMIT = engine.Clock()


def prepare(
    connection: engine.Connection,
    query: Query,
    secret: int,
    clock: engine.Clock = _NO_LIMIT,
    *,
    copied: bool = False,
) -> PreparedScan:
    """Compile all queries of a scan, and let the engine plan them; no row is read.

    The bounded rows may be copied, to share them with later queries; then the plans are kept, too.
    """
    scan = Scan(
        connection=connection,
        query=query,
        contribution=query.contribution,
        measured=query.measured,
    )
    with suppress(RecursionError):  # Ibis runs out of stack over nested selects
        if copied and connection.copies is not None:
            return _prepare_kept(scan, secret, clock)
        return _prepare_new(scan, secret, clock)
    raise ParameterError(TOO_LONG)


def _prepare_kept(scan: Scan, secret: int, clock: engine.Clock) -> PreparedScan:
    """Find the plans of this question, or make and keep them.

    They read a copy of certain columns, so that a copy of others has plans of its own.
    """
    connection, columns = scan.connection, _copied_columns(scan)
    question = (digest_question(scan.query, (), {}), columns)
    found = engine.find_plans(connection, question)
    if found is not None:
        return PreparedScan(
            scan=replace(scan, copy=found.copy),
            secret=found.secret,
            plain=found.plain,
            binned=found.binned,
            searched=found.searched,
        )
    if columns is not None:
        scan = replace(scan, copy=_plan_copy(scan, secret, columns, clock))
    made = _prepare_new(scan, secret, clock)
    plans = engine.Plans(
        copy=scan.copy,
        secret=secret,
        plain=made.plain,
        binned=made.binned,
        searched=made.searched,
    )
    engine.keep_plans(connection, question, plans)
    return made


def _prepare_new(scan: Scan, secret: int, clock: engine.Clock) -> PreparedScan:
    connection, query = scan.connection, scan.query
    if query.keys.selected:  # the last query has this form, too
        engine.plan(connection, look_up_keys(scan, secret, ["0" * 32]), clock)
    plan = partial(engine.plan, connection, clock=clock)
    planned = _plan_scan(scan, secret, plan)
    searched = dict.fromkeys(each.feature for each in query.searched)
    return replace(
        planned, searched={each: plan(count_rungs(scan, secret, each)) for each in searched}
    )


def _copied_columns(scan: Scan) -> tuple[str, ...] | None:
    """List the columns of the copy that a scan reads, there already or not; None without one."""
    if not scan.query.bounds_users:
        return None
    features = [each.feature for each in scan.measured if each.feature is not None]
    features += [each.feature for each in scan.query.searched]
    columns, selection = feature_columns(features), digest_selection(scan.query)
    found = engine.find_copy(scan.connection, selection, columns)
    if found is not None:
        return found.columns
    return engine.join_columns(scan.connection, selection, columns)


def _plan_copy(
    scan: Scan, secret: int, columns: tuple[str, ...], clock: engine.Clock
) -> engine.Copy:
    """Find a copy of the bounded rows, or plan one; it is filled when the query is answered."""
    connection, selection = scan.connection, digest_selection(scan.query)
    found = engine.find_copy(connection, selection, columns)
    if found is not None:
        return found
    rows = bound_rows(scan, secret, columns)
    return engine.plan_copy(connection, selection, columns, rows, clock)


def prepare_again(prepared: PreparedScan, query: Query) -> PreparedScan:
    """Compile a scan with other bounds, which are constants in the same queries."""
    scan = replace(prepared.scan, query=query, measured=query.measured)
    return _plan_scan(scan, prepared.secret, engine.compile_query)


def _plan_scan(scan: Scan, secret: int, plan: Callable[[Any], engine.PlannedQuery]) -> PreparedScan:
    names = name_features(scan.measured)
    bounded = measured_rows(scan, secret, names)
    bin_queries = {
        feature: count_bins(scan, bounded, secret, names[feature])
        for feature in names
        if feature.kind in ("bin", "rung")
    }
    plain = aggregate_groups(scan, bounded, secret, names)
    return PreparedScan(
        scan=scan,
        secret=secret,
        plain=None if plain is None else plan(plain),
        binned={feature: plan(query) for feature, query in bin_queries.items()},
    )


def _fill_copy(prepared: PreparedScan, clock: engine.Clock) -> None:
    if prepared.scan.copy is not None:
        engine.fill_copy(prepared.scan.connection, prepared.scan.copy, clock)


def run_searches(prepared: PreparedScan, clock: engine.Clock = _NO_LIMIT) -> list[list[int]]:
    """Count the rows on each rung, for each bound that is searched; exact."""
    _fill_copy(prepared, clock)
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
    _fill_copy(prepared, clock)
    names = name_features(scan.measured)
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
            cell = cell_name(each, names)
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
    query = engine.compile_query(look_up_keys(scan, prepared.secret, chosen))
    found = engine.fetch(scan.connection, query, clock)
    columns = key_names(scan)
    for name in text_keys(scan):
        found[name] = list(map(scan.connection.engine.read_text, found[name]))
    keys_by_id = dict(zip(found["id"], zip(*(found[c] for c in columns), strict=True), strict=True))
    if set(keys_by_id) != set(chosen):
        raise QueryFailed("the table changed during the query")
    return keys_by_id


def _index_by_key(scan: Scan, found: Mapping[str, list[Any]]) -> dict[Key, dict[str, Any]]:
    """Index the cells of an answer by group."""
    ids = group_columns(scan)
    return {
        tuple(found[name][i] for name in ids): {cell: found[cell][i] for cell in found}
        for i in range(len(found["rows"]))
    }


def _read_bins(
    scan: Scan, found: Mapping[str, list[Any]], bin_name: str
) -> dict[Key, dict[int, int]]:
    """Read the number of rows in each bin of each group; bins without rows are left out."""
    ids = group_columns(scan)
    counts: dict[Key, dict[int, int]] = {}
    for i, number in enumerate(found["rows"]):
        key = tuple(found[name][i] for name in ids)
        if found[bin_name][i] >= 0:
            counts.setdefault(key, {})[found[bin_name][i]] = number
    return counts
