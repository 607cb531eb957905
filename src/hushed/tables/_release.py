"""From a query to its plan, and from the plan to a noisy answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hushed import noise
from hushed.errors import ParameterError, QueryFailed
from hushed.ledger._postgres import LONGEST_ANSWER
from hushed.tables import _engine as engine
from hushed.tables._answers import Answer, Asked
from hushed.tables._held import held_warnings, unlisted_warnings
from hushed.tables._joins import publish_warnings
from hushed.tables._ladders import describe_candidates
from hushed.tables._left_out import LeftOut, count_missing
from hushed.tables._noise import add_noise, select_partitions
from hushed.tables._outputs import evaluate, make_whole, rank_errors, shortfalls
from hushed.tables._plan import (
    GaussianNoise,
    NoiseName,
    Plan,
    count_numbers,
    gaussian_numbers,
    noise_dims,
    plan_noise,
)
from hushed.tables._query import Query
from hushed.tables._scan import (
    PreparedScan,
    fetch_keys,
    prepare,
    prepare_again,
    run_scan,
    run_searches,
)
from hushed.tables._scan_queries import Key
from hushed.tables._searching import Side
from hushed.tables._storage import bound_length
from hushed.tables._warnings import (
    data_warnings,
    guess_warnings,
    present_rows,
    say_empty,
    zero_warnings,
)

_MOST_AGGREGATES = 100
_MOST_NUMBERS = 5_000_000  # about 500 MB, and half a minute of noise


def plan_query(query: Query, *, epsilon: float, delta: float, noise_name: NoiseName) -> Plan:
    """Plan the noise of a query; nothing is read."""
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
    if query.chooses_keys and noise_name == "gaussian":
        raise ParameterError(
            "top_k chooses keys and adds no Gaussian noise: it spends no delta",
            parameter="noise",
            hint="leave noise and delta out",
        )
    plan = plan_noise(
        query.aggregates,
        query.measured,
        contribution=query.contribution,
        unit=query.unit,
        select_partitions=query.keys.selected,
        epsilon=epsilon,
        delta=delta,
        noise_name=noise_name,
        searched=query.searched,
    )
    if query.keys.values is not None:
        groups = math.prod(map(len, query.keys.values))
        _require_few(plan, groups, ParameterError, "use fewer keys, bins, candidates or aggregates")
    return plan


def _require_few(
    plan: Plan, groups: int, problem: type[ParameterError | QueryFailed], advice: str
) -> None:
    """Refuse more numbers than the memory or, with Gaussian noise, the proof allows."""
    whole = count_numbers(plan.parts, groups)
    if whole > _MOST_NUMBERS:
        raise problem(
            f"a query reads at most {_MOST_NUMBERS} numbers (every bin, and every ten candidates "
            f"of a quantile, of every group), and this one would read {whole}: {advice}"
        )
    found = gaussian_numbers(plan.parts, groups)
    if found > noise_dims():
        raise problem(
            f"a query releases at most {noise_dims()} numbers with Gaussian noise, and this one "
            f"would release {found}: {advice}"
        )


def rehearse(
    connection: engine.Connection,
    query: Query,
    plan: Plan,
    beta: float,
    clock: engine.Clock,
    asked: Asked,
) -> PreparedScan:
    """Do all that does not depend on the rows, before anything is charged.

    The engine plans the queries that will run. Then noise is added to one empty group, and an
    answer is made and written of it: what a grid, a scale, an error bar or the form in which it is
    stored would refuse is refused now, and an answer that may be too long for a ledger.
    """
    secret = int(noise.uniform_integers(1 << 63))
    ready = prepare(connection, query, secret, clock, copied=True)
    places = query.aggregates[0].k  # a top is drawn from as many as it chooses, or more
    empty_group = [
        [[0] * part.measurement.feature.bins]
        if part.measurement.role in ("bins", "rank") and part.measurement.feature
        else [0] * places
        for part in plan.parts
    ]
    for part in plan.parts:
        if isinstance(part.noise, GaussianNoise):
            part.noise.grid(noise_dims())
    _draw_bounds(plan, [[0] * part.search.feature.bins for part in plan.searches])
    if plan.selection is not None:
        select_partitions(plan.selection, ["0" * 32], [0])
    keys = [("",) * len(query.keys.columns)] * places
    group = _build_answer(ready, plan, keys, empty_group, beta)
    values = known_keys(connection, query)
    if query.keys.selected:  # whoever chooses them does not know how many: all of them may be kept
        few = "use fewer bins, candidates or aggregates, or public keys"
        _require_few(plan, math.prod(map(len, values)), ParameterError, few)
    long = bound_length(group, values, asked)
    if long > LONGEST_ANSWER:
        raise ParameterError(
            f"an answer takes at most {LONGEST_ANSWER:,} characters, and this one may take "
            f"{long:,}: ask for fewer or shorter keys, or for fewer numbers of each"
        )
    return ready


def known_keys(connection: engine.Connection, query: Query) -> tuple[tuple[Any, ...], ...]:
    """Give the keys that an answer may have, by column: public ones, or lists that were declared.

    None where keys are chosen privately among some that nobody has listed.
    """
    columns, lists = query.keys.columns, connection.listed
    if query.keys.values is not None or query.chooses_keys:
        return query.keys.values or ()
    return tuple(tuple(lists[each]) for each in columns) if lists.keys() >= set(columns) else ()


def run_plan(
    ready: PreparedScan,
    plan: Plan,
    beta: float,
    clock: engine.Clock,
    left_out: LeftOut | None = None,
) -> Answer:
    """Run the scan, add noise, and build the answer; exact numbers end here."""
    if plan.searches:
        query = ready.scan.query.with_bounds(_draw_bounds(plan, run_searches(ready, clock)))
        promise = plan.guarantee
        plan = plan_query(
            query, epsilon=promise.epsilon, delta=promise.delta, noise_name=plan.noise_name
        )
        ready = prepare_again(ready, query)
    cells = run_scan(ready, clock)
    engine.require_time(ready.scan.connection, clock)  # how many keys there are may be private
    keys, values = list(cells.keys), list(cells.values)
    if plan.selection is not None and cells.users is not None:
        chosen = select_partitions(plan.selection, [key[0] for key in keys], cells.users)
        _require_few(plan, len(chosen), QueryFailed, "partition selection kept too many keys")
        place = {key[0]: i for i, key in enumerate(keys)}
        names = fetch_keys(ready, chosen, clock)
        ordered = sorted(chosen, key=lambda name: names[name])
        values = [[column[place[name]] for name in ordered] for column in values]
        keys = [names[name] for name in ordered]
    return _build_answer(ready, plan, keys, values, beta, left_out)


def _draw_bounds(plan: Plan, counts: Sequence[Sequence[int]]) -> dict[tuple[str, Side], float]:
    """Choose the bounds that are searched, by output and side; they are public from here on."""
    return {
        (part.search.output, part.search.side): part.draw(rows)
        for part, rows in zip(plan.searches, counts, strict=True)
    }


def _build_answer(
    ready: PreparedScan,
    plan: Plan,
    keys: Sequence[Key],
    values: Sequence[Sequence[Any]],
    beta: float,
    left_out: LeftOut | None = None,
) -> Answer:
    """Add noise to exact cells, and compute the answer from the noisy ones."""
    query = ready.scan.query
    noisy = [add_noise(part, column) for part, column in zip(plan.parts, values, strict=True)]
    if query.chooses_keys:  # the places of the chosen keys, and nothing of the others
        keys, noisy = [keys[place] for place in noisy[0]], [list(range(1, len(noisy[0]) + 1))]
    missing = count_missing(query, left_out)
    found, low, high = evaluate(query.aggregates, plan.parts, noisy, beta, missing)
    for each in query.aggregates:
        if each.kind == "quantiles" and query.columns.get(each.column or "") == "int":
            found[each.name] = make_whole(each, found[each.name])
    columns = query.keys.columns
    return Answer(
        keys={name: tuple(key[i] for key in keys) for i, name in enumerate(columns)},
        values=found,
        low=low,
        high=high,
        rank_error=rank_errors(query.aggregates, plan.parts, beta, missing),
        shortfall=shortfalls(query.aggregates, plan.parts, beta, missing),
        candidates={
            each.name: describe_candidates(each.low, each.high, each.bins, each.spacing)
            for each in query.aggregates
            if each.kind == "quantiles"
        },
        bounds={each.name: (each.low, each.high) for each in query.aggregates if each.search},
        edges={
            each.name: tuple(np.linspace(each.low, each.high, each.bins + 1).tolist())
            for each in query.aggregates
            if each.kind == "histogram"
        },
        probabilities={
            each.name: each.probabilities for each in query.aggregates if each.kind == "quantiles"
        },
        present=present_rows(query.aggregates, plan.parts, noisy),
        warnings=(
            *ready.scan.connection.told,
            *publish_warnings(query.joins),
            *held_warnings(ready.scan.connection.casts, query),
            *unlisted_warnings(ready.scan.connection.listed, query),
            *(() if keys or plan.selection is None else say_empty(plan.selection, plan.unit)),
            *data_warnings(query.aggregates, plan.parts, noisy, beta),
            *zero_warnings(query.aggregates, low, high),
            *guess_warnings(query.aggregates, low, left_out),
        ),
        level=1 - beta,
        guarantee=plan.guarantee,
        unit=plan.unit,
    )
