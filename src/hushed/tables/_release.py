"""From a query to its plan, and from the plan to a noisy answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

from hushed import noise
from hushed._types import StoredType
from hushed.errors import ParameterError, QueryFailed
from hushed.releasing._keeping import Payment, write_failure
from hushed.releasing._release import default_note
from hushed.tables import _engine as engine
from hushed.tables._answers import Answer, evaluate, rank_errors
from hushed.tables._measurements import measurements, unit_contribution
from hushed.tables._noise import add_noise, select_partitions
from hushed.tables._plan import (
    GaussianNoise,
    NoiseName,
    Plan,
    count_numbers,
    gaussian_numbers,
    noise_dims,
    plan_noise,
)
from hushed.tables._requests import Aggregate, ContributionBounds, Derive, Filter, Keys
from hushed.tables._scan import Key, PreparedScan, Scan, fetch_keys, prepare, run_scan
from hushed.tables._storage import read_answer, write_answer
from hushed.tables._warnings import data_warnings, present_rows

_MOST_AGGREGATES = 100
_MOST_NUMBERS = 5_000_000  # about 500 MB, and half a minute of noise


class Query(Protocol):
    """A query, as planning and answering see it."""

    @property
    def connection(self) -> engine.Connection:
        """Where the rows are."""

    @property
    def user(self) -> str | None:
        """Column of the user."""

    @property
    def columns(self) -> Mapping[str, StoredType]:
        """Type of each column."""

    @property
    def steps(self) -> tuple[Filter | Derive, ...]:
        """Filters and derived columns."""

    @property
    def keys(self) -> Keys:
        """The grouping."""

    @property
    def contribution_bounds(self) -> ContributionBounds:
        """How much of one user counts."""

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates."""

    @property
    def unit(self) -> Literal["user", "row"]:
        """What the guarantee protects."""


def plan_query(
    query: Query, *, epsilon: float, delta: float, noise_name: NoiseName
) -> tuple[Plan, Scan]:
    """Plan the noise and the scan of a query; nothing is read."""
    if not query.aggregates:
        raise ParameterError(
            "the query has no aggregate",
            parameter="count",
            hint="add .count(), .sum(...) or another one",
        )
    if len(query.aggregates) > _MOST_AGGREGATES:
        raise ParameterError(
            f"one query has at most {_MOST_AGGREGATES} aggregates: use several queries"
        )
    contribution = unit_contribution(
        query.keys, query.contribution_bounds, by_user=query.user is not None
    )
    measured = tuple(
        part
        for each in query.aggregates
        for part in measurements(each, contribution, query.columns)
    )
    plan = plan_noise(
        query.aggregates,
        measured,
        contribution=contribution,
        unit=query.unit,
        select_partitions=query.keys.selected,
        epsilon=epsilon,
        delta=delta,
        noise_name=noise_name,
    )
    if query.keys.values is not None:
        groups = math.prod(map(len, query.keys.values))
        _require_few(plan, groups, ParameterError, "use fewer keys, bins or aggregates")
    scan = Scan(
        connection=query.connection,
        user=query.user,
        steps=query.steps,
        keys=query.keys,
        contribution_bounds=query.contribution_bounds,
        contribution=contribution,
        measured=measured,
    )
    return plan, scan


def _require_few(
    plan: Plan, groups: int, problem: type[ParameterError | QueryFailed], advice: str
) -> None:
    """Refuse more numbers than the memory or, with Gaussian noise, the proof allows."""
    whole = count_numbers(plan.parts, groups)
    if whole > _MOST_NUMBERS:
        raise problem(
            f"a query reads at most {_MOST_NUMBERS} numbers (every bin, and every candidate of a "
            f"quantile, of every group), and this one would read {whole}: {advice}"
        )
    found = gaussian_numbers(plan.parts, groups)
    if found > noise_dims():
        raise problem(
            f"a query releases at most {noise_dims()} numbers with Gaussian noise, and this one "
            f"would release {found}: {advice}"
        )


def describe_query(query: Query) -> str:
    """Describe a query for the ledger by public names: no constant, no key, no row."""
    aggregates = ", ".join(
        each.kind if each.column is None else f"{each.kind}({each.column})"
        for each in query.aggregates
    )
    filtered = " of filtered rows" if any(isinstance(s, Filter) for s in query.steps) else ""
    grouped = f" by {', '.join(query.keys.columns)}" if query.keys.columns else ""
    return default_note(f"query: {aggregates}{filtered}{grouped}")


def _rehearse(
    query: Query, plan: Plan, scan: Scan, beta: float, clock: engine.Clock
) -> PreparedScan:
    """Do all that does not depend on the rows, before anything is charged.

    The engine plans the queries that will run. Then noise is added to one empty group, and an
    answer is made of it: what a grid, a scale or an error bar would refuse is refused now.
    """
    ready = prepare(scan, int(noise.uniform_integers(1 << 63)), clock)
    empty_group = [
        [[0] * part.measurement.feature.bins]
        if part.measurement.role in ("bins", "rank") and part.measurement.feature
        else [0]
        for part in plan.parts
    ]
    for part in plan.parts:
        if isinstance(part.noise, GaussianNoise):
            part.noise.grid(noise_dims())
    if plan.selection is not None:
        select_partitions(plan.selection, ["0" * 32], [0])
    _build_answer(query, plan, [("",) * len(query.keys.columns)], empty_group, beta)
    return ready


def _run(query: Query, plan: Plan, ready: PreparedScan, beta: float, clock: engine.Clock) -> Answer:
    """Run the scan, add noise, and build the answer; exact numbers end here."""
    cells = run_scan(ready, clock)
    keys, values = list(cells.keys), list(cells.values)
    if plan.selection is not None and cells.users is not None:
        chosen = select_partitions(plan.selection, [key[0] for key in keys], cells.users)
        _require_few(plan, len(chosen), QueryFailed, "partition selection kept too many keys")
        place = {key[0]: i for i, key in enumerate(keys)}
        names = fetch_keys(ready, chosen, clock)
        ordered = sorted(chosen, key=lambda name: names[name])
        values = [[column[place[name]] for name in ordered] for column in values]
        keys = [names[name] for name in ordered]
    return _build_answer(query, plan, keys, values, beta)


def _build_answer(
    query: Query, plan: Plan, keys: Sequence[Key], values: Sequence[Sequence[Any]], beta: float
) -> Answer:
    """Add noise to exact cells, and compute the answer from the noisy ones."""
    noisy = [add_noise(part, column) for part, column in zip(plan.parts, values, strict=True)]
    found, low, high = evaluate(query.aggregates, plan.parts, noisy, beta)
    columns = query.keys.columns
    return Answer(
        keys={name: tuple(key[i] for key in keys) for i, name in enumerate(columns)},
        values=found,
        low=low,
        high=high,
        rank_error=rank_errors(query.aggregates, plan.parts, beta),
        present=present_rows(query.aggregates, plan.parts, noisy),
        warnings=(
            *query.connection.warnings,
            *data_warnings(query.aggregates, plan.parts, noisy, beta),
        ),
        level=1 - beta,
        guarantee=plan.guarantee,
        unit=plan.unit,
    )


def release_query(
    query: Query,
    plan: Plan,
    scan: Scan,
    *,
    beta: float,
    clock: engine.Clock,
    charge: Callable[[], Payment],
    known: bool,
) -> Answer:
    """Plan, charge, query and add noise, while no other thread queries the same table.

    An answer that is stored under the caller's key (`known`) is read again, and nothing is queried.
    An answer is stored before it is shown. So is a failure, which may depend on the rows; but not a
    lost connection or a stop by the user: then the same key repeats the query, at no cost.
    """
    if known:
        paid = charge()
        if paid.kept is not None:
            return _read_stored(paid, paid.kept)
    answer, failed, lost, stopped = None, "", False, False
    with engine.hold(query.connection, clock):
        ready = _rehearse(query, plan, scan, beta, clock)
        clock.require_left()
        begun = time.monotonic()
        paid = charge()
        clock = clock.after_wait(begun)  # for other spenders: it costs no answer that is paid for
        if paid.kept is not None:  # another process was faster
            return _read_stored(paid, paid.kept)
        try:
            answer = _run(query, plan, ready, beta, clock)
        except KeyboardInterrupt:
            failed, stopped = "stopped; nothing was released", True
        except QueryFailed as error:
            failed, lost = str(error), isinstance(error, engine.ConnectionLost)
        except Exception as error:  # whatever it is, its own text may quote a private value
            failed = f"{query.connection.engine} did not answer ({type(error).__name__})"
    if answer is not None:
        return (
            answer if paid.number is None else _read_stored(paid, paid.keep(write_answer(answer)))
        )
    stays = "count the budget as spent" if paid.ledger is None else "the charge stays"
    if stopped or (lost and paid.key is not None):
        again = "" if paid.key is None else f": ask again under the key {paid.key!r}, at no cost"
        raise (KeyboardInterrupt if stopped else QueryFailed)(f"{failed}; {stays}{again}")
    failure = QueryFailed(f"{failed}; {stays}")
    if paid.number is not None and not lost:
        _read_stored(paid, paid.keep(write_failure(failure)))
    raise failure


def _read_stored(paid: Payment, text: str) -> Answer:
    """Read the stored answer; a stored failure is raised."""
    return replace(read_answer(text), entry=paid.number)
