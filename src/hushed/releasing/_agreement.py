"""Compare a certificate with one that was made again: bit for bit, or within rounding."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Literal

from hushed._functions._environment import differences, rounding_limit
from hushed._ground.printing import flat
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms._objective_draw import ObjectiveDraw
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.releasing._certificate import Certificate, MechanismRecord, SamplingRecord
from hushed.releasing._sampling_consistency import SAME_SPLIT
from hushed.releasing._statistic_words import say_kind
from hushed.releasing._verification_record import Verification

_MOST_ROUNDING = 0.01  # of the sensitivity, where answers are coarser than doubles
_UNCHECKED = ("created", "versions", "charged", "person")
LABELS = ("what each number is called",)
_SPLIT = ("tail_mass", "sampling_error")
# Of a release whose sensitivity was sampled: what happened then, and how things were called.
_UNCHECKED_OF_SAMPLES = (
    *_UNCHECKED,
    "confirmed",
    "the choice of outside",
    "sampling.environment",
    "sampling.elsewhere",
    "sampling.unwatched",
    "sampling.asked_anew",
    "sampling.unsearched",
    "the name of the function, also in guarantee.estimates",
)


def compare_samples(known: Certificate, old: SamplingRecord, fresh: Certificate) -> Verification:
    new = fresh.sampling
    if new is None:
        raise ParameterError("the sampling that was run again gave none")
    pairs = list(zip(old.movements, new.movements, strict=False))
    apart = [abs(a - b) for a, b in pairs]
    largest = max([*apart, abs(known.sensitivity - fresh.sensitivity)])
    limit = _limit(old, new, fresh)
    exact, rounded = _differences(known, old, fresh, new)
    near = largest <= limit and _near(known.mechanism, fresh, largest)
    agreement: Literal["bits", "rounding", "different"] = "different"
    if not exact and (near or not rounded):
        agreement = "rounding" if rounded else "bits"
    then = differences(known.versions, fresh.versions)
    between = differences(old.environment, new.environment)
    return Verification(
        agreement=agreement,
        reproduced=agreement == "bits",
        recorded=known.sensitivity,
        recomputed=fresh.sensitivity,
        judged=len(pairs),
        differing=sum(each > 0 for each in apart),
        largest=largest,
        limit=limit,
        differences=(*exact, *rounded),
        environments=tuple(
            map(
                flat,
                dict.fromkeys((*then, *between, *_elsewhere(old, "then"), *_elsewhere(new, "now"))),
            )
        ),
        unchecked=(*_UNCHECKED_OF_SAMPLES, *LABELS * bool(known.labels), *name_unproven(known)),
    )


def _elsewhere(sampling: SamplingRecord, when: str) -> list[str]:
    """Say how many movements were measured where something differs."""
    return [
        f"{count} of {sampling.pairs} movements were measured {when} by a worker of which was "
        f"noted: {note}"
        for note, count in sorted(sampling.elsewhere.items())
    ]


def _limit(old: SamplingRecord, new: SamplingRecord, fresh: Certificate) -> float:
    """Bound what counts as rounding: of answers coarser than doubles, never much of the movement.

    Movements that such answers can hardly tell would else agree with nearly any others.
    """
    largest = max(old.largest, new.largest)
    exact = rounding_limit(largest, new.shape, fresh.norm)
    coarse = rounding_limit(largest, new.shape, fresh.norm, new.dtype)
    return min(coarse, max(exact, _MOST_ROUNDING * fresh.sensitivity))


def compare_promises(
    known: Certificate, fresh: Certificate, unchecked: tuple[str, ...], *, kind: str = ""
) -> Verification:
    """Compare what was stated with what follows."""
    found = ["scale or accuracy of the mechanism"] if known.mechanism != fresh.mechanism else []
    if known.guarantee != fresh.guarantee:
        found.append("guarantee")
    return Verification(
        agreement="different" if found else "bits",
        reproduced=not found,
        recorded=known.sensitivity,
        recomputed=fresh.sensitivity,
        judged=0,
        differing=0,
        largest=0.0,
        limit=0.0,
        differences=tuple(found),
        environments=tuple(map(flat, differences(known.versions, fresh.versions))),
        unchecked=(*_UNCHECKED, *LABELS * bool(known.labels), *unchecked),
        proven=True,
        statistic=kind if known.statistic is None else say_kind(known.statistic),
    )


def name_unproven(known: Certificate) -> tuple[str, ...]:
    """Say what follows from nothing: what was declared, stated by an author, or left out."""
    declared = _name_declared(known)
    if known.mechanism.name == PosteriorDraw.name:
        return (
            "the candidates and the prior, of which only a fingerprint and a share are stated",
            "unsearched",
            *declared,
        )
    if known.mechanism.name == ObjectiveDraw.name:
        return ("the penalty that was asked for, where a larger one was taken", *declared)
    if not known.mechanism.stated:
        return declared
    return (
        f"that {known.mechanism.name} keeps its guarantee, and how it draws its noise",
        *declared,
    )


def _name_declared(known: Certificate) -> tuple[str, ...]:
    """Say what the caller declared of the function: a few trials, or nobody, speak for it."""
    sampling = known.sampling
    names = () if sampling is None else ("symmetric", "batch", "monotone", "updated")
    tried = [name.replace("updated", "update") for name in names if getattr(sampling, name)]
    found = [f"beyond a few trials, what was declared: {', '.join(tried)}"] * bool(tried)
    if known.mechanism.parameters.get("monotone") is True and not known.mechanism.stated:
        found.append("that all answers move the same way, as declared")
    return tuple(found)


def _near(old: MechanismRecord, fresh: Certificate, moved: float) -> bool:
    """Whether scale and accuracy differ by no more than the sensitivity does."""
    new = fresh.mechanism
    share = 1e-9 + (2 * moved / fresh.sensitivity if fresh.sensitivity else 0.0)
    same = (old.name, old.parameters, old.values) == (new.name, new.parameters, new.values)
    return same and all(
        a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=share))
        for a, b in ((old.scale, new.scale), (old.accuracy, new.accuracy))
    )


def _differences(
    known: Certificate, old: SamplingRecord, fresh: Certificate, new: SamplingRecord
) -> tuple[list[str], list[str]]:
    """List what differs: first what rounding cannot explain, then what it may."""
    exact = []
    if old.population != new.population:
        exact.append("the population is different")
    if (old.pairs, old.rank, old.gamma) != (new.pairs, new.rank, new.gamma):
        exact.append(f"rank {old.rank} of {old.pairs} recorded, {new.rank} of {new.pairs} now")
    if len(old.movements) != len(new.movements):
        exact.append("the number of recorded movements differs")
    # The function's name is a label: a renamed function may be verified. What it kept to itself
    # depends on what it was asked before.
    settled = {"function", "population", "pairs", "rank", "gamma"}
    names = {field.name for field in fields(SamplingRecord)} - settled
    names -= {"unwatched", "asked_anew", "unsearched"}
    names -= {"movements", "largest", "environment", "elsewhere", *_SPLIT}
    exact += _unequal(old, new, sorted(names))
    exact += _unequal(known, fresh, ["norm", "neighbours", "argument"])
    if _of_draws(known.guarantee) != _of_draws(fresh.guarantee):
        exact.append("guarantee")
    exact += [
        name
        for name in _SPLIT
        if not math.isclose(getattr(old, name), getattr(new, name), rel_tol=SAME_SPLIT)
    ]
    if not math.isclose(old.largest, new.largest, rel_tol=1e-9):
        exact.append("largest answer")
    roundable = _roundable(known, old, fresh, new)
    if _names(known.guarantee) != _names(fresh.guarantee):
        # The name is a digest of all draws: it differs where one of them does, and not else.
        # A certificate keeps 201 of them at most; of the others only a like computer may judge.
        alike = old.environment == new.environment and not (old.elsewhere or new.elsewhere)
        kept = len(old.movements) == old.pairs or alike
        forged = kept and old.movements == new.movements
        (exact if forged else roundable).append("name of the estimate")
    return exact, roundable


def _roundable(
    known: Certificate, old: SamplingRecord, fresh: Certificate, new: SamplingRecord
) -> list[str]:
    found = []
    if known.sensitivity != fresh.sensitivity:
        found.append(f"sensitivity {known.sensitivity!r} recorded, {fresh.sensitivity!r} now")
    if old.movements != new.movements:
        found.append("the sampled movements differ")
    if known.mechanism != fresh.mechanism:
        found.append("scale or accuracy of the mechanism")
    found += [f"{name} in its last digits" for name in _unequal(old, new, list(_SPLIT))]
    if old.largest != new.largest:
        found.append("largest answer in its last digits")
    return found


def _of_draws(guarantee: Guarantee) -> Guarantee:
    """Leave out how the estimates are called; see `_names`."""
    return replace(guarantee, estimates=tuple(("", gamma) for _, gamma in guarantee.estimates))


def _names(guarantee: Guarantee) -> list[str]:
    """Name the estimates by their draws alone: how a function is named may differ between runs."""
    return [name.partition(".")[0] for name, _ in guarantee.estimates]


def _unequal(old: object, new: object, names: list[str]) -> list[str]:
    return [name for name in names if getattr(old, name) != getattr(new, name)]
