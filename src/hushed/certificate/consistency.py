"""Whether the numbers of a certificate agree with each other; nothing is sampled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hushed import noise
from hushed.calibrate import Mechanism, calibrated
from hushed.errors import HushedError, ParameterError
from hushed.guarantee import Guarantee
from hushed.mechanisms import Bernstein, Exponential, Gaussian
from hushed.sensitivity import Sensitivity

if TYPE_CHECKING:
    from hushed.certificate.record import Certificate, SamplingRecord

__all__ = ["accuracy_of", "check_agreement", "drawn", "rebuilt"]

_FOLLOW = ("epsilon", "delta", "neighbours")
_CLOSE = 1e-9  # mathematical libraries differ in the last digits


def drawn(mechanism: Mechanism, values: int) -> tuple[float, int]:
    """Noise that is drawn, the enlargement by the grid included.

    Parameters
    ----------
    mechanism : Laplace, Gaussian, Exponential or Bernstein
        A calibrated mechanism.
    values : int
        Numbers released together, or candidates chosen from.

    Returns
    -------
    scale : float
        Scale of the noise in the units of the answer; for choices the temperature.
    grid : int
        Answers (or scores) are rounded to multiples of ``2**grid``.
    """
    if isinstance(mechanism, Exponential):
        return noise.selection_scale(width=mechanism.width, epsilon=mechanism.epsilon)
    moved = mechanism.sensitivity.value
    if isinstance(mechanism, Gaussian):
        grid = noise.gaussian_grid(sensitivity=moved, sigma=mechanism.scale, dims=values)
    elif isinstance(mechanism, Bernstein):
        grid = noise.laplace_grid(
            sensitivity=mechanism.total, epsilon=mechanism.epsilon, dims=mechanism.points
        )
    else:
        grid = noise.laplace_grid(sensitivity=moved, epsilon=mechanism.epsilon, dims=values)
    try:
        return math.ldexp(grid.scale, grid.exponent), grid.exponent
    except OverflowError:
        raise ParameterError("the noise would exceed every double: rescale the answer") from None


def rebuilt(certificate: Certificate) -> Mechanism:
    """Build the mechanism again from the stated sensitivity and parameters.

    Parameters
    ----------
    certificate : Certificate
        A certificate.

    Returns
    -------
    Laplace, Gaussian, Exponential or Bernstein
        Calibrated as stated; its sensitivity is taken as proven.

    Raises
    ------
    ParameterError
        If sensitivity and parameters make no mechanism.
    """
    stated = Sensitivity(
        value=certificate.sensitivity,
        norm=certificate.norm,
        neighbours=certificate.neighbours,
        unit=certificate.guarantee.unit,
        argument=certificate.argument,
    )
    return calibrated(certificate.mechanism.name, stated, certificate.mechanism.parameters)


def check_agreement(certificate: Certificate) -> None:
    """Refuse a certificate whose numbers contradict each other.

    Parameters
    ----------
    certificate : Certificate
        The certificate.

    Raises
    ------
    ParameterError
        If scale, grid, accuracy or guarantee do not follow from the sensitivity and the
        parameters, or the guarantee does not say what the sampling says; all are named.
    """
    wrong = [*_of_mechanism(certificate), *_of_gamma(certificate)]
    if certificate.sampling is not None:
        wrong += _of_sampling(certificate.sampling)
    if wrong:
        raise ParameterError(f"the certificate contradicts itself: {'; '.join(wrong)}")


def _of_mechanism(certificate: Certificate) -> list[str]:
    """Compare with the mechanism that sensitivity and parameters make."""
    record, promise = certificate.mechanism, certificate.guarantee
    if record.values < 1:
        return ["mechanism.values must be 1 or more"]
    try:
        mechanism = rebuilt(certificate)
        scale, grid = drawn(mechanism, record.values)
        fresh = mechanism.guarantee
        accuracy = accuracy_of(mechanism, record.values)
    except (HushedError, TypeError, ValueError, OverflowError, ZeroDivisionError) as problem:
        return [f"sensitivity and parameters make no mechanism ({problem})"]
    found = []
    if not _near(record.scale, scale) or record.grid != grid:
        found.append(
            f"mechanism.scale {record.scale!r} on grid {record.grid} does not follow from "
            f"sensitivity and parameters ({scale!r} on {grid} does)"
        )
    if not _near(record.accuracy, accuracy):
        found.append(f"mechanism.accuracy {record.accuracy!r} does not follow ({accuracy!r} does)")
    said = [(name, getattr(promise, name), getattr(fresh, name)) for name in _FOLLOW]
    return found + [
        f"guarantee.{name} {stated!r} does not follow from the mechanism ({right!r} does)"
        for name, stated, right in said
        if stated != right
    ]


def accuracy_of(mechanism: Mechanism, values: int) -> float:
    """Error that no released number exceeds but with probability 5 %.

    Parameters
    ----------
    mechanism : Laplace, Gaussian, Exponential or Bernstein
        A calibrated mechanism.
    values : int
        Numbers released together, or candidates chosen from.

    Returns
    -------
    float
        In the units of the answer.
    """
    if isinstance(mechanism, Bernstein):
        return mechanism.accuracy(0.05)
    return mechanism.accuracy(0.05, values)


def _of_gamma(certificate: Certificate) -> list[str]:
    """Compare what the guarantee says of gamma with where it comes from."""
    promise, sampling = certificate.guarantee, certificate.sampling
    if sampling is None:
        sure = Guarantee(
            epsilon=promise.epsilon,
            delta=promise.delta,
            neighbours=promise.neighbours,
            unit=promise.unit,
        )
        return [] if promise == sure else ["a proven sensitivity has no gamma and no estimate"]
    found = []
    if promise.gamma != sampling.gamma or [g for _, g in promise.estimates] != [sampling.gamma]:
        found.append(
            f"guarantee.gamma {promise.gamma!r} and its estimates are not sampling.gamma "
            f"{sampling.gamma!r}"
        )
    if promise.protect != sampling.protect:
        found.append("guarantee.protect is not sampling.protect")
    if promise.marginal != (sampling.calibration == "marginal"):
        found.append("guarantee.marginal contradicts sampling.calibration")
    hidden = not sampling.population_is_public and not sampling.support  # made from private rows
    if not hidden and (certificate.outside == "no range") == bool(sampling.support):
        found.append("outside contradicts sampling.support")
    if promise.data_dependent == sampling.population_is_public:
        found.append("guarantee.data_dependent contradicts sampling.population_is_public")
    return found


def _of_sampling(sampling: SamplingRecord) -> list[str]:
    """List what no sampler writes."""
    rules = {
        "sampling.rank must lie between 1 and sampling.pairs": 1 <= sampling.rank <= sampling.pairs,
        "sampling.gamma must lie in (0, 1)": 0 < sampling.gamma < 1,
        "sampling.rows must be 1 or more": sampling.rows >= 1,
        "sampling.blocks must divide sampling.rows": sampling.blocks >= 1
        and sampling.rows % sampling.blocks == 0,
        "sampling.shift must be 0 or more": sampling.shift >= 0,
        "sampling.movements must be sorted and not negative": _sorted(sampling.movements),
        "sampling.pairs is not the number asked for": sampling.asked_pairs
        in (None, sampling.pairs),
        "sampling.gamma is not the gamma asked for": sampling.shift > 0
        or sampling.asked_gamma in (None, sampling.gamma),
    }
    return [text for text, holds in rules.items() if not holds]


def _sorted(movements: tuple[float, ...]) -> bool:
    return list(movements) == sorted(movements) and all(each >= 0 for each in movements[:1])


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _CLOSE * abs(other)
