"""Run a certificate's sampling again and compare bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any, Literal, get_args

from hushed._functions._environment import differences, rounding_limit
from hushed._printing import flat
from hushed.blocks import Blocks
from hushed.engines._choice import Workers, opens_engine
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms import Mechanism
from hushed.mechanisms._posterior_draw import PosteriorDraw
from hushed.populations import Population, Promise, PublicTable, from_description
from hushed.releasing._blocks import is_rebuilt_blocks, rebuild_blocks
from hushed.releasing._certificate import (
    Certificate,
    MechanismRecord,
    SamplingRecord,
    certify,
    certify_blocks,
    certify_statistic,
)
from hushed.releasing._consistency import SAME_SPLIT, build_mechanism, rebuild_mechanism
from hushed.releasing._statistics import is_rebuilt, rebuild
from hushed.runs import Keep
from hushed.runs._journal import read_keep
from hushed.sensitivity import Blockwise, Sensitivity, Update, sample_sensitivity
from hushed.sensitivity._plan import plan

MOST_DRAWS = 2**40  # rows in all tables that are asked about
_MOST_ROUNDING = 0.01  # of the sensitivity, where answers are coarser than doubles
_UNCHECKED = ("created", "versions", "charged", "person")
_OF_BLOCKS = "number of blocks"
_SPLIT = ("tail_mass", "sampling_error")
# Of a release whose sensitivity was sampled: what happened then, and how things were called.
_UNCHECKED_OF_SAMPLES = (
    *_UNCHECKED,
    "confirmed",
    "the choice of outside",
    "sampling.environment",
    "sampling.unwatched",
    "the name of the function, also in guarantee.estimates",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What running the sampling again has shown.

    It shows that the certificate's numbers follow from the function, the population, the seed and
    the parameters. It does not show who wrote the certificate, that a published value was released
    under it, or that a population known by name only is the same one.

    Parameters
    ----------
    agreement : {"bits", "rounding", "different"}
        Whether sensitivity, all recorded movements, scale and guarantee came out bit for bit; or
        differ by no more than computers round differently; or neither.
    reproduced : bool
        True for bits only.
    recorded, recomputed : float
        The two sensitivities.
    judged, differing : int
        Movements that the certificate keeps, and how many of them came out otherwise.
    largest, limit : float
        Largest difference of movements or sensitivities, and what counts as rounding: 64 units in
        the last place of the largest answer, in the type that the function answers in, times what
        the norm makes of several numbers; of a type coarser than doubles no more than a hundredth
        of the sensitivity.
    differences : tuple of str
        What did not come out the same, in words.
    environments : tuple of str
        What differs between the computers: versions, processor, BLAS. A possible reason.
    unchecked : tuple of str
        Fields that nothing here speaks for: they may have been written by anybody.
    proven : bool, default False
        True if the sensitivity was stated, not sampled, so that nothing was run.
    statistic : str, default ""
        Kind of the statistic that was released, if it was one of `hushed.statistics`; of `Blocks`
        that it is about their number.
    """

    agreement: Literal["bits", "rounding", "different"]
    reproduced: bool
    recorded: float
    recomputed: float
    judged: int
    differing: int
    largest: float
    limit: float
    differences: tuple[str, ...]
    environments: tuple[str, ...]
    unchecked: tuple[str, ...]
    proven: bool = False
    statistic: str = ""

    def explain(self) -> str:
        """Say the outcome in a sentence or two.

        Returns
        -------
        str
            Plain words.
        """
        return f"{self._found()}. Not checked: {', '.join(self.unchecked)}"

    def _found(self) -> str:
        if self.agreement == "bits" and self.statistic:
            return (
                f"scale, accuracy and guarantee follow, bit for bit, from the {self.statistic} and "
                "the public choices; they hold for every table, by the theorems in "
                f"docs/{'blocks' if self.statistic == _OF_BLOCKS else 'worst-case'}.md"
            )
        if self.agreement == "bits" and self.proven:
            return (
                f"scale, accuracy and guarantee follow, bit for bit, from the sensitivity "
                f"{self.recorded!r}, which is stated and not sampled: its proof is not checked here"
            )
        if self.agreement == "bits":
            return f"reproduced bit for bit: sensitivity {self.recorded!r}"
        if self.agreement == "rounding":
            kept = "equal" if self.recorded == self.recomputed else "among them"
            text = (
                f"not bit for bit, but within rounding: {self.differing} of the {self.judged} "
                f"recorded movements differ; the largest difference is {self.largest:.2g}, and "
                f"rounding may reach {self.limit:.2g} in answers of this size. The kept movement "
                f"is {kept}"
            )
        else:
            text = "not reproduced: " + "; ".join(self.differences)
            if 0 < self.largest < math.inf:
                text += (
                    f". {self.differing} of the {self.judged} recorded movements differ, by up to "
                    f"{self.largest:.2g}, where rounding would reach {self.limit:.2g}"
                )
        if self.environments:
            text += f". The computers differ: {'; '.join(self.environments)}"
        if self.environments and self.agreement == "different":
            text += (
                ". If the function magnifies rounding (a matrix that is nearly singular), run it "
                "on a like computer, or set OPENBLAS_CORETYPE to the kernel recorded"
            )
        elif not self.environments:
            text += (
                ". The computers are alike in all that is recorded: the function may be different"
            )
        return text


@opens_engine
def verify(
    certificate: Certificate | str | bytes,
    f: Callable[[Any], Any] | None = None,
    *,
    population: Population | None = None,
    mechanism: type[Mechanism] | None = None,
    update: Update | None = None,
    workers: Workers = None,
    progress: bool = False,
    keep: str | PathLike[str] | Keep | None = None,
) -> Verification:
    """Run the sampling of a certificate again, or follow its numbers from a proven sensitivity.

    Parameters
    ----------
    certificate : Certificate, str or bytes
        The certificate, or its JSON.
    f : callable, optional
        The function that was released. Not needed if the sensitivity was proven: then there is
        nothing to run.
    population : Population, optional
        The public table or simulator, which the certificate names but does not contain. Not
        needed for ranges and distributions.
    mechanism : type, optional
        The class of the mechanism, if it is not one of hushed: a certificate names it, but its code
        is loaded by nobody else. That it keeps what it promises is not checked.
    update : callable, optional
        What updated the answers where the sensitivity was sampled with ``update``, and only there.
    workers : int, str, Engine or distributed.Client, optional
        Worker processes, or a cluster: ``"dask://HOST:8786"``, ``"ray"``, a session of Spark;
        see `hushed.engines.engine_of`.
    progress : bool, default False
        Show a progress bar on a terminal.
    keep : str, path or hushed.runs.Keep, optional
        Where finished trials are kept, as by `hushed.sample_sensitivity`. Only those of earlier
        verifications are used: what was kept when the sensitivity was sampled is run again.

    Returns
    -------
    Verification
        Whether sensitivity, movements, scale and guarantee come out bit for bit, or within
        rounding; for a proven sensitivity whether scale, accuracy and guarantee follow from it.
        The proof itself is not checked.

    Raises
    ------
    ParameterError
        If it is not a certificate or contradicts itself, the function or the population is missing,
        or the sampling it is about would take more than `MOST_DRAWS` draws.
    """
    known = certificate
    if isinstance(known, str | bytes):
        known = Certificate.from_json(known)
    if not isinstance(known, Certificate):
        raise ParameterError(
            f"verify takes a certificate or its JSON text, got {type(known).__name__}; of a "
            "release give its certificate; the answer of a query has no certificate to verify"
        )
    _check_kind(known.mechanism, mechanism)
    sampling = known.sampling
    if known.statistic is not None:
        return _follow_statistic(known)
    if known.mechanism.name == Blocks.name:
        return _follow_blocks(known)
    if sampling is None:
        return _follow(known, mechanism)
    if f is None:
        raise ParameterError("give the function that was released: its sensitivity was sampled")
    _check_update(sampling, update)
    _check_work(sampling)
    blocks = f.blocks(sampling.rows) if type(f) is Blockwise else 1
    by = "" if sampling.user is None else f", user={sampling.user!r}"
    if blocks != sampling.blocks:
        raise ParameterError(
            f"the certificate averages over {sampling.blocks} block(s), the function over {blocks}"
            + (f": hs.Blockwise(f, rows={sampling.rows // sampling.blocks}{by})" * (blocks == 1))
        )
    source = _as_recorded(population, sampling) if population else _rebuild_population(sampling)
    again = _sample_again(
        known,
        sampling,
        f,
        source,
        update=update,
        workers=workers,
        progress=progress,
        keep=keep,
    )
    if sampling.shift:
        again = again.shifted(sampling.shift)
    rebuilt = build_mechanism(known.mechanism, again, mechanism)
    fresh = certify(rebuilt, values=math.prod(again.sampling.shape if again.sampling else ()))
    return _compare(known, sampling, fresh)


def _compare(known: Certificate, old: SamplingRecord, fresh: Certificate) -> Verification:
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
        environments=tuple(map(flat, dict.fromkeys((*then, *between)))),
        unchecked=(*_UNCHECKED_OF_SAMPLES, *_unproven(known)),
    )


def _limit(old: SamplingRecord, new: SamplingRecord, fresh: Certificate) -> float:
    """Bound what counts as rounding: of answers coarser than doubles, never much of the movement.

    Movements that such answers can hardly tell would else agree with nearly any others.
    """
    largest = max(old.largest, new.largest)
    exact = rounding_limit(largest, new.shape, fresh.norm)
    coarse = rounding_limit(largest, new.shape, fresh.norm, new.dtype)
    return min(coarse, max(exact, _MOST_ROUNDING * fresh.sensitivity))


def _check_kind(record: MechanismRecord, kind: type[Mechanism] | None) -> None:
    """Ask for the class of a caller's own mechanism, and for that alone."""
    if record.stated and kind is None:
        raise ParameterError(
            f"the mechanism {record.name!r} is not one of hushed: give its class, "
            "mechanism=CLASS, which the certificate names but does not contain"
        )
    if kind is not None and not record.stated:
        raise ParameterError(f"{record.name} is a mechanism of hushed: leave mechanism= out")


def _follow(known: Certificate, kind: type[Mechanism] | None) -> Verification:
    """Follow scale, accuracy and guarantee from a proven sensitivity."""
    fresh = certify(rebuild_mechanism(known, kind), values=known.mechanism.values)
    unproven = ("the sensitivity and its argument", *_unproven(known))
    return _compare_promises(known, fresh, unproven)


def _follow_statistic(known: Certificate) -> Verification:
    """Follow scale, accuracy and guarantee from a statistic and public choices."""
    fresh = certify_statistic(rebuild(known))
    unchecked: tuple[str, ...] = ("that this statistic was computed",)
    if not is_rebuilt(known):  # whatever can be followed was followed when it was read
        fresh = replace(fresh, mechanism=known.mechanism)
        unchecked += ("the given candidates and prior, of which only a fingerprint is stated",)
    return _compare_promises(known, fresh, unchecked)


def _follow_blocks(known: Certificate) -> Verification:
    """Follow scale, accuracy and guarantee from public choices, whatever the function is."""
    stated = known.mechanism.parameters
    unchecked: tuple[str, ...] = (
        "that this function was asked, and in processes of its own",
        "the name of the function",
    )
    fresh = certify_blocks(rebuild_blocks(known), str(stated["function"]))
    if not is_rebuilt_blocks(known):  # whatever can be followed was followed when it was read
        fresh = replace(fresh, mechanism=known.mechanism, guarantee=known.guarantee)
        unchecked += (
            "the given candidates, prior or centre, of which only a fingerprint is stated",
        )
    return _compare_promises(known, fresh, unchecked, kind=_OF_BLOCKS)


def _compare_promises(
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
        unchecked=(*_UNCHECKED, *unchecked),
        proven=True,
        statistic=kind if known.statistic is None else str(known.statistic["kind"]),
    )


def _check_update(sampling: SamplingRecord, update: Update | None) -> None:
    """Ask for the update that the sensitivity was sampled with, and for none otherwise."""
    if (update is not None) != sampling.updated:
        raise ParameterError(
            "the sensitivity was sampled with an update of the caller's, which the certificate "
            "does not contain: give it, update=..."
            if sampling.updated
            else "the sensitivity was sampled without an update: leave update out",
            parameter="update",
        )


def _check_work(sampling: SamplingRecord) -> None:
    """Refuse a certificate, which anybody may have written, that would run for ever."""
    reach = replace(sampling.reach(), values=len(sampling.values))
    rank, _ = plan(
        sampling.calibration,
        reach,
        gamma=sampling.requested_gamma,
        pairs=sampling.asked_pairs,
    )
    calls = reach.count_calls() if reach.whole and not sampling.updated else 1
    if rank.pairs * reach.drawn * calls > MOST_DRAWS:
        raise ParameterError(
            f"the certificate is about {rank.pairs} pairs of tables with {sampling.rows} rows: "
            "more than is sampled again on a certificate's word; sample the sensitivity yourself "
            "and compare"
        )


def _unproven(known: Certificate) -> tuple[str, ...]:
    """Say what follows from nothing: of a caller's own mechanism, and of candidates not stated."""
    if known.mechanism.name == PosteriorDraw.name:
        return ("the candidates and the prior, of which only a fingerprint and a share are stated",)
    if not known.mechanism.stated:
        return ()
    return (f"that {known.mechanism.name} keeps its guarantee, and how it draws its noise",)


def _near(old: MechanismRecord, fresh: Certificate, moved: float) -> bool:
    """Whether scale and accuracy differ by no more than the sensitivity does."""
    new = fresh.mechanism
    share = 1e-9 + (2 * moved / fresh.sensitivity if fresh.sensitivity else 0.0)
    same = (old.name, old.parameters, old.values) == (new.name, new.parameters, new.values)
    return same and all(
        a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=share))
        for a, b in ((old.scale, new.scale), (old.accuracy, new.accuracy))
    )


def _as_recorded(population: Population, sampling: SamplingRecord) -> Population:
    """Public table with the promise that the certificate names: its rows alone do not tell."""
    named = sampling.population.get("promise")
    for promise in get_args(Promise):
        if isinstance(population, PublicTable) and promise == named:
            return replace(population, promise=promise)
    return population


def _rebuild_population(sampling: SamplingRecord) -> Population:
    population = from_description(sampling.population)
    if population is None:
        named = sampling.population.get("name")
        name = flat(sampling.population.get("kind")) + (f" {flat(named)!r}" if named else "")
        raise ParameterError(
            f"the certificate names its population ({name}) but does not contain it; hand it in as "
            "population= (--population on the command line)"
        )
    return population


def _sample_again(
    known: Certificate,
    sampling: SamplingRecord,
    f: Callable[[Any], Any],
    population: Population,
    *,
    update: Update | None,
    workers: Workers,
    progress: bool,
    keep: str | PathLike[str] | Keep | None,
) -> Sensitivity:
    return sample_sensitivity(
        f,
        population,
        rows=sampling.sizes or sampling.rows,
        neighbours=sampling.neighbours,
        distance=sampling.distance,
        position=sampling.position,
        values=None if sampling.monotone or not sampling.values else sampling.values,
        monotone=sampling.monotone,
        norm=known.norm,
        gamma=sampling.requested_gamma,
        pairs=sampling.asked_pairs,
        calibration=sampling.calibration,
        protect=sampling.protect,
        batch=sampling.batch,
        batch_rows=sampling.batch_rows,
        symmetric=sampling.symmetric,
        update=update,
        data_dependent=not sampling.population_is_public,
        unit="person" if known.person else "row",
        user=sampling.user,
        seed=sampling.seed,
        workers=workers,
        progress=progress,
        keep=None if keep is None else replace(read_keep(keep), purpose="verification"),
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
    settled = {"function", "population", "pairs", "rank", "gamma", "unwatched", "environment"}
    names = {field.name for field in fields(SamplingRecord)} - settled
    names -= {"movements", "largest", *_SPLIT}
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
        kept = len(old.movements) == old.pairs or old.environment == new.environment
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
