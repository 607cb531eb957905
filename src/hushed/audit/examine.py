"""`audit`: a black box and its claim in, a verdict with confidence out."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from hushed.audit.claims import Claim, check, contradicts, in_words, measure, stated
from hushed.audit.fixed import detectable, estimated, find, plan_for, weight_of
from hushed.audit.mechanisms import source
from hushed.audit.pairs import Pair, Relation, read_pairs
from hushed.audit.report import AuditReport, Verdict, Witness
from hushed.audit.runs import Tell, prepare
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.trials import seed_from

__all__ = ["audit"]


def audit(
    mechanism: Any,
    pairs: str | Iterable[Any] = "patterns",
    *,
    claim: Claim,
    samples: int = 100_000,
    confidence: float = 0.95,
    batch: bool = False,
    seed: int | np.random.Generator | None = 0,
    workers: int | None = None,
    relation: Relation | None = None,
    answers: int = 5,
    tell: Tell | None = None,
) -> AuditReport:
    """Judge what a mechanism claims on pairs of neighbours.

    Parameters
    ----------
    mechanism : callable, Command, object with a method draw, or OpenDP measurement
        ``mechanism(rows, rng) -> output``; with ``batch`` ``mechanism(rows, rng, size) ->
        outputs``. One that takes only the rows is trusted to draw its own fresh entropy. Outputs
        may be anything; a run that raises is an outcome, too.
    pairs : str, or iterable of Pair or (rows, neighbour), default "patterns"
        What to run it on: a family of vectors of query answers (see `pattern_pairs`), or pairs.
    claim : Guarantee, ZeroConcentrated or Renyi
        What the mechanism promises. With ``gamma`` above 0 the pairs must be `PopulationPairs`.
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
        How two inputs of a pair may differ; the claim's relation by default.
    answers : int, default 5
        Length of the vectors of a named family.
    tell : callable, optional
        Told in words how far the audit is.

    Returns
    -------
    AuditReport
        ``"violated"`` with its witness, or ``"not refuted"`` with the smallest violation that
        would have been caught. The latter is not a proof of privacy.

    Raises
    ------
    TooFewSamples
        If the samples cannot contradict the claim whatever they show.
    ParameterError
        If a parameter leaves its range, the claim says nothing, or a pair holds no neighbours.
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
    alpha = _alpha(confidence)
    number = _count(samples)
    listed = read_pairs(pairs, relation=relation or claim.neighbours, answers=answers)
    if isinstance(claim, Guarantee) and claim.gamma > 0:
        raise ParameterError(
            f"gamma = {claim.gamma:g} speaks of pairs drawn from a population; give "
            "pairs=PopulationPairs(...)"
        )
    plan = plan_for(number, len(listed), claim, alpha)
    told = tell or _silent
    root = seed_from(seed)
    runs = prepare(
        source(mechanism, batch=batch, workers=workers),
        listed,
        seed=root,
        workers=workers,
        tell=told,
    )
    finding = find(runs, listed, plan, claim, alpha)
    region, counts = finding.region, finding.counts
    violated = contradicts(claim, region)
    verdict: Verdict = "violated" if violated else "not refuted"
    at = claim if isinstance(claim, Guarantee) else Guarantee(epsilon=0.0)
    floor = at if violated and isinstance(claim, Guarantee) else Guarantee(epsilon=0.0)
    epsilon_low = max(region.epsilon_low(at.delta), floor.epsilon)
    share = counts.other_hits / counts.other_samples
    weight = weight_of(claim, finding.pick)
    return AuditReport(
        verdict=verdict,
        claim=claim,
        confidence=confidence,
        mode="fixed",
        epsilon_low=epsilon_low,
        delta_low=max(region.delta_low(at.epsilon), floor.delta),
        measured=epsilon_low if isinstance(claim, Guarantee) else measure(claim, region),
        witness=Witness(
            pair=finding.pair,
            likelier="rows" if finding.pick.event.first else "neighbour",
            event=finding.pick.event.words(),
            counts=counts,
        ),
        detectable=detectable(claim, share, counts.samples, alpha, weight),
        estimate=estimated(finding, claim),
        samples=number,
        tried=tuple(pair.name for pair in listed),
        seconds=time.perf_counter() - begun,
        seed=root,
    )


def _alpha(confidence: float) -> float:
    if not 0.5 < confidence < 1:
        raise ParameterError(f"confidence must lie in (0.5, 1), got {confidence}")
    return 1 - confidence


def _count(samples: int) -> int:
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise ParameterError(f"samples must be an integer of 1 or more, got {samples!r}")
    return int(samples)


def _silent(_: str) -> None:
    pass
