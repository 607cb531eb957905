"""Run a certificate's sampling again and compare bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from hushed.calibrate import calibrated
from hushed.certificate.consistency import rebuilt
from hushed.certificate.record import Certificate, SamplingRecord, certify
from hushed.certificate.words import flat
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.populations import Population, from_description
from hushed.sensitivity import Sensitivity, sample_sensitivity
from hushed.sensitivity.plan import plan

__all__ = ["MOST_DRAWS", "Verification", "verify"]

MOST_DRAWS = 2**40  # rows drawn, all tables together
_UNCHECKED = ("created", "versions", "charged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What running the sampling again has shown.

    It shows that the certificate's numbers follow from the function, the population, the seed and
    the parameters. It does not show who wrote the certificate, that a published value was released
    under it, or that a population known by name only is the same one.

    Parameters
    ----------
    reproduced : bool
        True if sensitivity, all recorded movements, scale and guarantee came out bit for bit.
    recorded, recomputed : float
        The two sensitivities.
    differences : tuple of str
        What did not come out the same, in words.
    versions_differ : tuple of str
        Software whose version is not the recorded one: a possible reason for a difference.
    unchecked : tuple of str
        Fields that nothing here speaks for: they may have been written by anybody.
    proven : bool, default False
        True if the sensitivity was stated, not sampled, so that nothing was run.
    """

    reproduced: bool
    recorded: float
    recomputed: float
    differences: tuple[str, ...]
    versions_differ: tuple[str, ...]
    unchecked: tuple[str, ...]
    proven: bool = False

    def explain(self) -> str:
        """Say the outcome in a sentence or two.

        Returns
        -------
        str
            Plain words.
        """
        text = "not reproduced: " + "; ".join(self.differences)
        if self.reproduced and self.proven:
            text = (
                f"scale, accuracy and guarantee follow, bit for bit, from the sensitivity "
                f"{self.recorded!r}, which is stated and not sampled: its proof is not checked here"
            )
        elif self.reproduced:
            text = f"reproduced bit for bit: sensitivity {self.recorded!r}"
        if self.versions_differ and not self.reproduced:
            text += f" (versions differ: {', '.join(self.versions_differ)})"
        return f"{text}. Not checked: {', '.join(self.unchecked)}"


def verify(
    certificate: Certificate | str,
    f: Callable[[Any], Any] | None = None,
    *,
    population: Population | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Verification:
    """Run the sampling of a certificate again, or follow its numbers from a proven sensitivity.

    Parameters
    ----------
    certificate : Certificate or str
        The certificate, or its JSON.
    f : callable, optional
        The function that was released. Not needed if the sensitivity was proven: then there is
        nothing to run.
    population : Population, optional
        The public table or simulator, which the certificate names but does not contain. Not
        needed for ranges and distributions.
    workers : int, optional
        Worker processes.
    progress : bool, default False
        Show a progress bar on a terminal.

    Returns
    -------
    Verification
        Whether sensitivity, movements, scale and guarantee come out bit for bit; for a proven
        sensitivity whether scale, accuracy and guarantee follow from it. The proof itself is not
        checked.

    Raises
    ------
    ParameterError
        If the certificate contradicts itself, the function or the population is missing, or the
        sampling it speaks of would take more than `MOST_DRAWS` draws.
    """
    known = Certificate.from_json(certificate) if isinstance(certificate, str) else certificate
    sampling = known.sampling
    if sampling is None:
        return _followed(known)
    if f is None:
        raise ParameterError("give the function that was released: its sensitivity was sampled")
    _check_work(sampling)
    source = population or _rebuilt(sampling)
    again = _sampled_again(known, sampling, f, source, workers=workers, progress=progress)
    if sampling.shift:
        again = again.shifted(sampling.shift)
    options = known.mechanism.parameters
    mechanism = calibrated(known.mechanism.name, again, options)
    fresh = certify(mechanism, values=math.prod(again.sampling.shape if again.sampling else ()))
    differences = tuple(_differences(known, fresh))
    return Verification(
        reproduced=not differences,
        recorded=known.sensitivity,
        recomputed=again.value,
        differences=differences,
        versions_differ=_versions_differ(known, fresh),
        unchecked=(*_UNCHECKED, "the name of the function"),
    )


def _followed(known: Certificate) -> Verification:
    """Follow scale, accuracy and guarantee from a proven sensitivity."""
    fresh = certify(rebuilt(known), values=known.mechanism.values)
    found = ["scale or accuracy of the mechanism"] if known.mechanism != fresh.mechanism else []
    if known.guarantee != fresh.guarantee:
        found.append("guarantee")
    return Verification(
        reproduced=not found,
        recorded=known.sensitivity,
        recomputed=fresh.sensitivity,
        differences=tuple(found),
        versions_differ=_versions_differ(known, fresh),
        unchecked=(*_UNCHECKED, "the sensitivity and its argument"),
        proven=True,
    )


def _versions_differ(known: Certificate, fresh: Certificate) -> tuple[str, ...]:
    return tuple(
        f"{name} {flat(known.versions.get(name))} then, {now} now"
        for name, now in fresh.versions.items()
        if known.versions.get(name) != now
    )


def _check_work(sampling: SamplingRecord) -> None:
    """Refuse a certificate, which anybody may have written, that would run for ever."""
    rank, _ = plan(
        sampling.calibration,
        rows=sampling.rows,
        gamma=sampling.asked_gamma,
        pairs=sampling.asked_pairs,
        protect=sampling.protect,
    )
    if rank.pairs * (sampling.rows + 1) > MOST_DRAWS:
        raise ParameterError(
            f"the certificate speaks of {rank.pairs} pairs of tables with {sampling.rows} rows: "
            "more than is sampled again on a certificate's word; sample the sensitivity yourself "
            "and compare"
        )


def _rebuilt(sampling: SamplingRecord) -> Population:
    population = from_description(sampling.population)
    if population is None:
        raise ParameterError(
            f"the certificate names its population ({flat(sampling.population.get('kind'))} "
            f"{sampling.population.get('name')!r}) but does not contain it; hand it in as "
            "population= (--population on the command line)"
        )
    return population


def _sampled_again(
    known: Certificate,
    sampling: SamplingRecord,
    f: Callable[[Any], Any],
    population: Population,
    *,
    workers: int | None,
    progress: bool,
) -> Sensitivity:
    return sample_sensitivity(
        f,
        population,
        rows=sampling.rows,
        norm=known.norm,
        gamma=sampling.asked_gamma,
        pairs=sampling.asked_pairs,
        calibration=sampling.calibration,
        protect=sampling.protect,
        batch=sampling.batch,
        symmetric=sampling.symmetric,
        data_dependent=not sampling.population_is_public,
        seed=sampling.seed,
        workers=workers,
        progress=progress,
    )


def _differences(known: Certificate, fresh: Certificate) -> list[str]:
    found = []
    old, new = known.sampling, fresh.sampling
    if old is None or new is None:
        return ["one of the two sensitivities was not sampled"]
    if old.population != new.population:
        found.append("the population is another one")
    if known.sensitivity != fresh.sensitivity:
        found.append(f"sensitivity {known.sensitivity!r} recorded, {fresh.sensitivity!r} now")
    if old.movements != new.movements:
        found.append("the sampled movements differ")
    if (old.pairs, old.rank, old.gamma) != (new.pairs, new.rank, new.gamma):
        found.append(f"rank {old.rank} of {old.pairs} recorded, {new.rank} of {new.pairs} now")
    # The function's name is a label: a renamed function may be verified.
    settled = {"function", "population", "movements", "pairs", "rank", "gamma"}
    names = {field.name for field in fields(SamplingRecord)} - settled
    found += _unequal(old, new, sorted(names))
    found += _unequal(known, fresh, ["norm", "neighbours", "argument"])
    if known.mechanism != fresh.mechanism:
        found.append("scale or accuracy of the mechanism")
    if _of_draws(known.guarantee) != _of_draws(fresh.guarantee):
        found.append("guarantee")
    return found


def _of_draws(guarantee: Guarantee) -> Guarantee:
    """Name the estimates by their draws alone: how a function is named may differ between runs."""
    named = ((name.partition(".")[0], gamma) for name, gamma in guarantee.estimates)
    return replace(guarantee, estimates=tuple(named))


def _unequal(old: object, new: object, names: list[str]) -> list[str]:
    return [name for name in names if getattr(old, name) != getattr(new, name)]
