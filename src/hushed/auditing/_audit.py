"""`audit`: a black box and its claim in, a verdict with confidence out."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np

from hushed._functions._trials import seed_from
from hushed._ground.calls import called_as
from hushed._ground.checks import is_real, is_whole
from hushed._ground.printing import as_given
from hushed._ground.progress import read_progress, show_words
from hushed.auditing._bounds import Counts
from hushed.auditing._claims import Claim, read_distance
from hushed.auditing._fixed import (
    Finding,
    find_minimum_detectable,
    plan_samples,
    run_fixed,
)
from hushed.auditing._goal import AuditedClaim, Goal, adapt_claim
from hushed.auditing._keeping import check_keepable
from hushed.auditing._mechanisms import adapt_mechanism, name_mechanism
from hushed.auditing._outcomes import estimate_curve
from hushed.auditing._pairs import Pair, Relation, read_pairs
from hushed.auditing._population import (
    PopulationFinding,
    PopulationPairs,
    draw_pairs,
    draws_users,
    run_population,
)
from hushed.auditing._report import AuditReport, PopulationCount, Witness
from hushed.auditing._runs import Progress, prepare_runs
from hushed.auditing._scores import Event
from hushed.auditing._sequential import Outcome, run_sequential
from hushed.divergences import DeltaEstimate
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import ParameterError
from hushed.guarantee import Neighbours
from hushed.runs import Keep


@called_as("hs.audit(mechanism, [([0.0], [1.0])], claim=hs.Guarantee(epsilon=1.0))")
@opens_engine
def audit(
    mechanism: Any,
    pairs: str | PopulationPairs | Iterable[Any] | None = None,
    *,
    claim: Claim,
    samples: int = 100_000,
    confidence: float = 0.95,
    batch: bool = False,
    seed: int | np.random.Generator | None = 0,
    workers: Workers = None,
    relation: Relation | None = None,
    answers: int = 5,
    bits: bool = True,
    sequential: bool = False,
    progress: bool | Progress | None = None,
    keep: str | PathLike[str] | Keep | None = None,
) -> AuditReport:
    """Judge what a mechanism claims on pairs of neighbours.

    Parameters
    ----------
    mechanism : callable, Command, object with a method draw, or OpenDP measurement
        ``mechanism(rows, rng) -> output``; with ``batch`` ``mechanism(rows, rng, size) ->
        outputs``. One that takes only the rows is trusted to draw its own fresh entropy. Outputs
        may be anything that can be read: a generator or a function is refused, and so is ``None``
        or NaN from every run. A run that raises is an outcome, too.
    pairs : str, PopulationPairs, or iterable of Pair or (rows, neighbour)
        What to run it on. For a function of rows: pairs of tables (see `extreme_pairs`). For a
        function of a list of query answers: a family of them (see `pattern_pairs`), by name.
        There is no default, for the wrong ones accuse a right mechanism.
    claim : Guarantee, ZeroConcentrated or Renyi
        What the mechanism promises. With ``gamma`` above 0 the pairs must be `PopulationPairs`,
        and the verdict is on the share of pairs under the one sensitivity that it has.
    samples : int, default 100_000
        Runs per table in all: search, training, selection and final split.
    confidence : float, default 0.95
        Probability with which everything certified holds together; in (0.5, 1).
    batch : bool, default False
        Whether one call gives many outputs.
    seed : int, Generator or None, default 0
        Seed of every stream; None for fresh entropy. It repeats the audit of a mechanism that takes
        its randomness from `rng` alone; where the first runs, repeated, give other outputs, the
        report says that it does not.
    workers : int, str, Engine or distributed.Client, optional
        Worker processes, or a cluster: ``"dask://HOST:8786"``, ``"ray"``, a session of Spark;
        see `hushed.engines.engine_of`.
    relation : {"replace-one", "add-remove", "answers"}, optional
        How two inputs of a pair may differ; ``"answers"`` by default for a named family, the
        claim's relation for other pairs. All pairs are checked against it.
    answers : int, default 5
        Length of the vectors of a named family.
    bits : bool, default True
        Whether events may look at the bit patterns of doubles, by which mechanisms that are
        private on paper often leak. False judges the values alone.
    sequential : bool, default False
        Bet against the claim as the samples come, and stop as soon as it is contradicted; the
        confidence holds whenever one looks.
    progress : bool or callable, optional
        True shows in a terminal or a notebook how far the audit is; a function is called with these
        words.
    keep : str, path or hushed.runs.Keep, optional
        Folder, or address of an object store, in which outputs are kept as the audit goes: the
        same call goes on where an earlier one was interrupted. They are as private as the pairs.

    Returns
    -------
    AuditReport
        ``"violated"`` with its witness, or ``"not refuted"`` with the smallest violation that
        would have been caught. The latter is not a proof of privacy.

    Raises
    ------
    TooFewSamples, TooFewPairs
        If the samples or pairs cannot contradict the claim whatever they show.
    ParameterError
        If a parameter leaves its range, the claim says nothing or cannot be judged from one
        sensitivity (``calibration="marginal"``), there are no pairs, or a pair holds no neighbours.
    BadRows
        If the rows of a population are not independent.
    BadFunction
        If the mechanism cannot be run, carries a generator into workers, or changes its rows.
        With ``keep`` also if it has a generator of its own, or draws from a global one.
    DamagedRun
        If what is kept contradicts itself.

    Notes
    -----
    Pair, direction, event and threshold are chosen on the first splits; the final split is used
    once, by an exact test of both probabilities together, or by Clopper-Pearson bounds for claims
    about divergences; epsilon_low and delta_low come from one region and hold together. The events
    follow Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper*, S&P 2021, in that a classifier is
    trained and thresholded, but the mass of the event is not fixed.
    """
    begun = time.perf_counter()
    judged = adapt_claim(claim)
    judged.require_testable()
    shown = read_progress(progress)
    alpha, number, root = allowed_error(confidence), _check_samples(samples), seed_from(seed)
    differ = _choose_relation(pairs, claim.neighbours, relation)
    if sequential and not judged.can_be_bet_against:
        raise ParameterError("the sequential mode judges epsilon and delta, with gamma = 0")
    _refuse_other_distance(pairs, claim, differ)
    listed = _list_pairs(pairs, judged, differ, answers, root, claim)
    private = getattr(claim, "data_dependent", False)
    if keep is not None:
        check_keepable(keep, mechanism, private=private)
    # Samples that are too few in any mode are refused before the first run.
    plan = plan_samples(number, 1 if sequential else len(listed), judged, alpha)
    with show_words(shown) as (words, remark):
        runs = prepare_runs(
            adapt_mechanism(mechanism, batch=batch, workers=workers),
            listed,
            seed=root,
            workers=workers,
            progress=words,
            remark=remark,
            bits=bits,
            keep=keep,
            name=name_mechanism(mechanism),
            private=private,
        )
        # Only a fixed audit sets runs aside beforehand; the other two divide all of them.
        final = number if sequential or judged.gamma > 0 else plan.final
        goal = Goal(claim=judged, final=final, alpha=alpha)
        if judged.gamma > 0 and isinstance(pairs, PopulationPairs):
            drawn = run_population(runs, listed, goal, symmetric=pairs.symmetric)
            found = _judge_population(drawn, differ)
        elif sequential:
            found = _judge_sequential(run_sequential(runs, listed, goal), differ)
        else:
            found = _judge_fixed(run_fixed(runs, listed, plan, goal), goal, differ)
    report = _report(found, claim, confidence, number, listed, begun, root)
    failed, made = runs.tally.failed, runs.tally.made
    return replace(report, failed=failed, made=made if failed else 0, seeded=runs.seeded)


def _report(
    found: _Judgement,
    claim: Claim,
    confidence: float,
    samples: int,
    listed: list[Pair],
    begun: float,
    seed: int,
) -> AuditReport:
    """Report of a judgement; samples as asked for, where it counted none itself."""
    return AuditReport(
        claim=claim,
        confidence=confidence,
        verdict="violated" if found.violated else "not refuted",
        mode=found.mode,
        epsilon_low=found.epsilon_low,
        delta_low=found.delta_low,
        measured=found.measured,
        witness=found.witness,
        minimum_detectable=found.minimum_detectable,
        estimate=found.estimate,
        population=found.population,
        samples=found.samples or samples,
        tried=tuple(pair.name for pair in listed),
        seconds=time.perf_counter() - begun,
        seed=seed,
        named=found.named,
        weight=found.weight,
        outcomes=found.outcomes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judgement:
    """What the three ways of spending samples have in common."""

    violated: bool
    mode: Literal["fixed", "sequential", "population"]
    epsilon_low: float
    delta_low: float
    measured: float
    witness: Witness
    minimum_detectable: float
    estimate: DeltaEstimate | None = None
    population: PopulationCount | None = None
    samples: int = 0
    named: tuple[str, ...] = ()
    weight: float | None = None
    outcomes: tuple[tuple[int, ...], tuple[int, ...]] | None = None


def _choose_relation(pairs: object, neighbours: Neighbours, relation: Relation | None) -> Relation:
    """How the inputs may differ: as said, and as the claim says of tables."""
    if isinstance(pairs, PopulationPairs):
        return neighbours
    if relation in get_args(Neighbours) and relation != neighbours:
        raise ParameterError(
            f"the claim is about {neighbours} neighbours and cannot be judged on pairs that "
            f"are {relation} neighbours; leave relation out, or claim what was promised for those"
        )
    return relation or ("answers" if isinstance(pairs, str) else neighbours)


def _list_pairs(
    pairs: str | PopulationPairs | Iterable[Any] | None,
    claim: AuditedClaim,
    relation: Relation,
    answers: int,
    seed: int,
    stated: Claim,
) -> list[Pair]:
    """Pairs to try, once the options are known to fit each other."""
    if isinstance(pairs, PopulationPairs):
        return draw_pairs(pairs, stated.neighbours, seed)
    if claim.gamma > 0:
        raise ParameterError(
            f"gamma = {claim.gamma:g} is about pairs drawn from a population; give "
            "pairs=PopulationPairs(population=..., rows=..., count=...)"
        )
    of_users, distance = read_distance(stated)
    within = None if of_users else distance
    return read_pairs(pairs, relation=relation, answers=answers, distance=within)


def _refuse_other_distance(pairs: object, claim: Claim, relation: Relation) -> None:
    """Refuse pairs that differ otherwise than the claim says; listed ones are compared later."""
    of_users, distance = read_distance(claim)
    apart = "what one row may move" if relation == "answers" and distance > 1 else ""
    if isinstance(pairs, PopulationPairs) and (of_users != draws_users(pairs) or distance > 1):
        apart = "all rows of one user" if draws_users(pairs) else "one row"
    if apart:
        raise ParameterError(
            f"the claim is about {adapt_claim(claim).describe()}, and these pairs differ in "
            f"{apart}: give pairs of tables that differ as it says, or claim what is promised for "
            "these",
            parameter="claim",
        )


def _make_witness(pair: Pair, event: Event, counts: Counts, relation: Relation) -> Witness:
    first: Literal["rows", "answers"] = "answers" if relation == "answers" else "rows"
    return Witness(
        pair=pair,
        relation=relation,
        likelier=first if event.first else "neighbour",
        event=event.describe(),
        counts=counts,
    )


def _judge_fixed(finding: Finding, goal: Goal, relation: Relation) -> _Judgement:
    certified = goal.claim.certify(finding.region)
    event = finding.selected.event
    likelier, other = finding.bins.tolist()
    return _Judgement(
        violated=certified.violated,
        mode="fixed",
        epsilon_low=certified.epsilon_low,
        delta_low=certified.delta_low,
        measured=certified.measured,
        witness=_make_witness(finding.pair, event, finding.counts, relation),
        minimum_detectable=find_minimum_detectable(finding, goal),
        estimate=estimate_curve(finding.bins, goal.claim, finding.selected.predicted),
        named=(finding.pair.name,) if certified.violated else (),
        weight=goal.claim.weigh(finding.selected.predicted),
        outcomes=(tuple(likelier), tuple(other)),
    )


def _judge_population(shown: PopulationFinding, relation: Relation) -> _Judgement:
    finding = shown.finding
    event = finding.selected.event
    return _Judgement(
        violated=shown.count.caught >= shown.count.needed,
        mode="population",
        epsilon_low=shown.epsilon_low,
        delta_low=shown.delta_low,
        measured=shown.epsilon_low,
        witness=_make_witness(finding.pair, event, finding.counts, relation),
        minimum_detectable=shown.minimum_detectable,
        population=shown.count,
    )


def _judge_sequential(outcome: Outcome, relation: Relation) -> _Judgement:
    return _Judgement(
        violated=outcome.violated,
        mode="sequential",
        epsilon_low=outcome.epsilon_low,
        delta_low=outcome.delta_low,
        measured=outcome.epsilon_low,
        witness=_make_witness(outcome.pair, outcome.event, outcome.counts, relation),
        minimum_detectable=outcome.minimum_detectable,
        samples=outcome.samples,
        named=outcome.named,
    )


def allowed_error(confidence: float) -> float:
    """Probability of error that a confidence leaves."""
    if not is_real(confidence) or not 0.5 < confidence < 1:
        raise ParameterError(
            f"confidence must lie in (0.5, 1), got {as_given(confidence)}", parameter="confidence"
        )
    return 1 - confidence


def _check_samples(samples: int) -> int:
    if not is_whole(samples) or samples < 1:
        raise ParameterError(
            f"samples must be an integer of 1 or more, got {as_given(samples)}", parameter="samples"
        )
    return int(samples)
