"""`audit`: a black box and its claim in, a verdict with confidence out."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from hushed.auditing._claims import Claim, check, contradicts, measure
from hushed.auditing._fixed import Finding, detectable, estimated, find, plan_for, weight_of
from hushed.auditing._mechanisms import source
from hushed.auditing._pairs import Pair, Relation, read_pairs
from hushed.auditing._populations import PopulationFinding, PopulationPairs, draw_pairs, judge
from hushed.auditing._report import AuditReport, PopulationCount, Witness
from hushed.auditing._runs import Tell, prepare
from hushed.auditing._sequential import Outcome, play
from hushed.divergences import DeltaEstimate
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours
from hushed.trials import seed_from

__all__ = ["audit", "error_of"]


def audit(
    mechanism: Any,
    pairs: str | PopulationPairs | Iterable[Any] | None = None,
    *,
    claim: Claim,
    samples: int = 100_000,
    confidence: float = 0.95,
    batch: bool = False,
    seed: int | np.random.Generator | None = 0,
    workers: int | None = None,
    relation: Relation | None = None,
    answers: int = 5,
    bits: bool = True,
    sequential: bool = False,
    tell: Tell | None = None,
) -> AuditReport:
    """Judge what a mechanism claims on pairs of neighbours.

    Parameters
    ----------
    mechanism : callable, Command, object with a method draw, or OpenDP measurement
        ``mechanism(rows, rng) -> output``; with ``batch`` ``mechanism(rows, rng, size) ->
        outputs``. One that takes only the rows is trusted to draw its own fresh entropy. Outputs
        may be anything; a run that raises is an outcome, too.
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
        Seed of every stream; None for fresh entropy.
    workers : int, optional
        Worker processes; the answer does not depend on them. See `hushed.trials.run_trials`.
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
    tell : callable, optional
        Told in words how far the audit is.

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
    BadFunction
        If the mechanism cannot be run, carries a generator into workers, or changes its rows.

    Notes
    -----
    Pair, direction, event and threshold are chosen on the first splits; the final split is used
    once, by an exact test of both probabilities together (`JointTest`), or Clopper-Pearson bounds
    (`Rectangle`) for claims about divergences; epsilon_low and delta_low come from one region
    and hold together. The events follow Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper*, S&P 2021,
    in that a classifier is trained and thresholded, but the mass of the event is not fixed.
    """
    begun = time.perf_counter()
    check(claim)
    alpha, number, told, root = (
        error_of(confidence),
        _count(samples),
        tell or _silent,
        seed_from(seed),
    )
    differ = _relation(pairs, claim, relation)
    listed = _listed(pairs, claim, differ, answers, root, sequential=sequential)
    least = plan_for(number, 1 if sequential else len(listed), claim, alpha)
    runs = prepare(
        source(mechanism, batch=batch, workers=workers),
        listed,
        seed=root,
        workers=workers,
        tell=told,
        bits=bits,
    )
    if isinstance(claim, Guarantee) and claim.gamma > 0 and isinstance(pairs, PopulationPairs):
        judged = judge(runs, listed, claim, number, alpha, symmetric=pairs.symmetric)
        parts = _population(judged, differ)
    elif isinstance(claim, Guarantee) and sequential:
        parts = _sequential(play(runs, listed, claim, number, alpha), claim, alpha, differ)
    else:
        parts = _fixed(find(runs, listed, least, claim, alpha), claim, alpha, differ)
    return AuditReport(
        claim=claim,
        confidence=confidence,
        verdict="violated" if parts.violated else "not refuted",
        mode=parts.mode,
        epsilon_low=parts.epsilon_low,
        delta_low=parts.delta_low,
        measured=parts.measured,
        witness=parts.witness,
        detectable=parts.detectable,
        estimate=parts.estimate,
        population=parts.population,
        samples=parts.samples or number,
        tried=tuple(pair.name for pair in listed),
        seconds=time.perf_counter() - begun,
        seed=root,
        named=parts.named,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the three ways of spending samples have in common."""

    violated: bool
    mode: Literal["fixed", "sequential", "population"]
    epsilon_low: float
    delta_low: float
    measured: float
    witness: Witness
    detectable: float
    estimate: DeltaEstimate | None = None
    population: PopulationCount | None = None
    samples: int = 0
    named: tuple[str, ...] = ()


def _relation(pairs: object, claim: Claim, relation: Relation | None) -> Relation:
    """How the inputs may differ: as said, and as the claim says of tables."""
    if isinstance(pairs, PopulationPairs):
        return claim.neighbours
    if relation in get_args(Neighbours) and relation != claim.neighbours:
        raise ParameterError(
            f"the claim is about {claim.neighbours} neighbours and cannot be judged on pairs that "
            f"are {relation} neighbours; leave relation out, or claim what was promised for those"
        )
    return relation or ("answers" if isinstance(pairs, str) else claim.neighbours)


def _listed(
    pairs: str | PopulationPairs | Iterable[Any] | None,
    claim: Claim,
    relation: Relation,
    answers: int,
    seed: int,
    *,
    sequential: bool,
) -> list[Pair]:
    """Pairs to try, once the options are known to fit each other."""
    if sequential and (not isinstance(claim, Guarantee) or claim.gamma > 0):
        raise ParameterError(
            "the sequential mode judges hs.Guarantee(epsilon, delta) with gamma = 0"
        )
    if isinstance(claim, Guarantee) and claim.gamma > 0:
        if not isinstance(pairs, PopulationPairs):
            raise ParameterError(
                f"gamma = {claim.gamma:g} speaks of pairs drawn from a population; give "
                "pairs=PopulationPairs(population=..., rows=..., count=...)"
            )
        return draw_pairs(pairs, claim.neighbours, seed)
    if isinstance(pairs, PopulationPairs):
        return draw_pairs(pairs, claim.neighbours, seed)
    return read_pairs(pairs, relation=relation, answers=answers)


def _likelier(relation: Relation, *, first: bool) -> Literal["rows", "answers", "neighbour"]:
    if not first:
        return "neighbour"
    return "answers" if relation == "answers" else "rows"


def _witness(finding: Finding, relation: Relation) -> Witness:
    return Witness(
        pair=finding.pair,
        relation=relation,
        likelier=_likelier(relation, first=finding.pick.event.first),
        event=finding.pick.event.words(),
        counts=finding.counts,
    )


def _fixed(finding: Finding, claim: Claim, alpha: float, relation: Relation) -> _Parts:
    region, counts = finding.region, finding.counts
    violated = contradicts(claim, region)
    at = claim if isinstance(claim, Guarantee) else Guarantee(epsilon=0.0)
    # The search for a bound stops a little early; the claim itself was tested.
    floor = at if violated and isinstance(claim, Guarantee) else Guarantee(epsilon=0.0)
    epsilon_low = max(region.epsilon_low(at.delta), floor.epsilon)
    share = counts.other_hits / counts.other_samples
    return _Parts(
        violated=violated,
        mode="fixed",
        epsilon_low=epsilon_low,
        delta_low=max(region.delta_low(at.epsilon), floor.delta),
        measured=epsilon_low if isinstance(claim, Guarantee) else measure(claim, region),
        witness=_witness(finding, relation),
        detectable=detectable(claim, share, counts.samples, alpha, weight_of(claim, finding.pick)),
        estimate=estimated(finding, claim),
        named=(finding.pair.name,) if violated else (),
    )


def _population(judged: PopulationFinding, relation: Relation) -> _Parts:
    return _Parts(
        violated=judged.count.caught >= judged.count.needed,
        mode="population",
        epsilon_low=judged.epsilon_low,
        delta_low=judged.delta_low,
        measured=judged.epsilon_low,
        witness=_witness(judged.finding, relation),
        detectable=judged.detectable,
        population=judged.count,
    )


def _sequential(outcome: Outcome, claim: Guarantee, alpha: float, relation: Relation) -> _Parts:
    counts = outcome.counts
    share = counts.other_hits / counts.other_samples
    return _Parts(
        violated=outcome.violated,
        mode="sequential",
        epsilon_low=outcome.epsilon_low,
        delta_low=outcome.delta_low,
        measured=outcome.epsilon_low,
        witness=Witness(
            pair=outcome.pair,
            relation=relation,
            likelier=_likelier(relation, first=outcome.first),
            event=outcome.event.words(),
            counts=counts,
        ),
        detectable=outcome.detectable(claim, share, alpha),
        samples=outcome.samples,
        named=outcome.named,
    )


def error_of(confidence: float) -> float:
    """Probability of error that a confidence leaves.

    Parameters
    ----------
    confidence : float
        In (0.5, 1).

    Returns
    -------
    float
        What is left to 1.

    Raises
    ------
    ParameterError
        If the confidence leaves its range.
    """
    if not 0.5 < confidence < 1:
        raise ParameterError(f"confidence must lie in (0.5, 1), got {confidence}")
    return 1 - confidence


def _count(samples: int) -> int:
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise ParameterError(f"samples must be an integer of 1 or more, got {samples!r}")
    return int(samples)


def _silent(_: str) -> None:
    pass
