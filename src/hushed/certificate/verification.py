"""Run a certificate's sampling again and compare bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from hushed.calibrate import calibrated
from hushed.certificate.record import Certificate, SamplingRecord, certify
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.populations import Population, from_description
from hushed.sensitivity import Sensitivity, sample_sensitivity

__all__ = ["Verification", "verify"]


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
    """

    reproduced: bool
    recorded: float
    recomputed: float
    differences: tuple[str, ...]
    versions_differ: tuple[str, ...]

    def explain(self) -> str:
        """Say the outcome in a sentence or two.

        Returns
        -------
        str
            Plain words.
        """
        if self.reproduced:
            return f"reproduced bit for bit: sensitivity {self.recorded!r}"
        text = "not reproduced: " + "; ".join(self.differences)
        if self.versions_differ:
            text += f" (versions differ: {', '.join(self.versions_differ)})"
        return text


def verify(
    certificate: Certificate | str,
    f: Callable[[Any], Any],
    *,
    population: Population | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Verification:
    """Run the sampling of a certificate again.

    Parameters
    ----------
    certificate : Certificate or str
        The certificate, or its JSON.
    f : callable
        The function that was released.
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
        Whether sensitivity, movements, scale and guarantee come out bit for bit.

    Raises
    ------
    ParameterError
        If it is no certificate, the sensitivity was proven (there is nothing to run), or the
        population is missing.
    """
    known = Certificate.from_json(certificate) if isinstance(certificate, str) else certificate
    if not isinstance(known, Certificate):
        raise ParameterError(
            "verify takes a certificate or its JSON (of a release its certificate; the answer of "
            "a query has none: its sensitivity is proven, and no sampling can run again), got "
            f"{type(known).__name__}"
        )
    sampling = known.sampling
    if sampling is None:
        raise ParameterError(
            "the certificate rests on a proven sensitivity: there is no sampling to run again; "
            f"check its argument instead: {known.argument}"
        )
    source = population or _rebuilt(sampling)
    again = _sampled_again(known, sampling, f, source, workers=workers, progress=progress)
    if sampling.shift:
        again = again.shifted(sampling.shift)
    options = known.mechanism.parameters
    mechanism = calibrated(known.mechanism.name, again, options)
    fresh = certify(mechanism, values=math.prod(again.sampling.shape if again.sampling else ()))
    now = fresh.versions
    differences = tuple(_differences(known, fresh))
    return Verification(
        reproduced=not differences,
        recorded=known.sensitivity,
        recomputed=again.value,
        differences=differences,
        versions_differ=tuple(
            f"{name} {known.versions.get(name)} then, {now[name]} now"
            for name in now
            if known.versions.get(name) != now[name]
        ),
    )


def _rebuilt(sampling: SamplingRecord) -> Population:
    population = from_description(sampling.population)
    if population is None:
        raise ParameterError(
            f"the certificate names its population ({sampling.population.get('kind')} "
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
