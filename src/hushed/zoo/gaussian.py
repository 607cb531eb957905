"""Gaussian noise with the classic constant, and mechanisms on a Poisson sample of the rows."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed import privacy_loss
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.zoo.curves import laplace_delta, subsampled_epsilon
from hushed.zoo.events import above, at_least
from hushed.zoo.record import Rows, Specimen

__all__ = ["classic_gaussian", "gaussian_curve", "subsampled_gaussian", "subsampled_laplace"]


def gaussian_curve(epsilon: float, *, ratio: float) -> float:
    """Divergence of Gaussian noise whose centre moves.

    Parameters
    ----------
    epsilon : float
        Privacy loss allowed, in nats; 0 or more.
    ratio : float
        Movement of the centre divided by the standard deviation; above 0.

    Returns
    -------
    float
        `hushed.privacy_loss.gaussian_delta` in doubles.
    """
    return float(privacy_loss.gaussian_delta(ratio, epsilon))


def classic_gaussian(epsilon: float = 8.0, delta: float = 0.05) -> Specimen:
    """Gaussian noise with the classic constant, proved for epsilon below 1 only.

    Parameters
    ----------
    epsilon : float, default 8
        Claimed epsilon; above 0.
    delta : float, default 0.05
        Claimed delta; in (0, 1).

    Returns
    -------
    Specimen
        Outputs of shape ``(size,)``. Whether the claim holds is decided by the exact curve: it
        happens to hold a good way above 1 and fails at the defaults, where the true delta is
        0.110 and not 0.05.
    """
    deviation = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    curve = partial(gaussian_curve, ratio=1 / deviation)
    true = curve(epsilon)
    return Specimen(
        name="Gaussian, classic constant" + (" above 1" if epsilon >= 1 else ""),
        mechanism=partial(_add_gaussian, deviation=deviation),
        claim=Guarantee(epsilon=epsilon, delta=delta),
        relation="every-answer",
        pairs=((np.array([1.0]), np.array([0.0])),),
        private=true <= delta,
        epsilon=math.inf,
        supremum=math.inf,
        delta=curve,
        event=partial(above, bound=0.5 + epsilon * deviation**2),
        event_words="the value is above 1/2 + epsilon sigma^2",
        output="value, shape (size,)",
        source=(
            "Dwork and Roth 2014, Theorem 3.22 (epsilon below 1); "
            "Balle and Wang, ICML 2018, Theorem 8"
        ),
        argument="the optimal events are half lines",
    )


def subsampled_laplace(
    epsilon: float = 1.0, rate: float = 0.2, *, claim: float | None = None
) -> Specimen:
    """Count of a Poisson sample with Laplace noise.

    Parameters
    ----------
    epsilon : float, default 1
        Epsilon of the noise on the sample, scale ``1/epsilon``; above 0.
    rate : float, default 0.2
        Probability with which each row takes part; in (0, 1].
    claim : float, optional
        Claimed epsilon; default the true one, ``log(1 + rate (exp(epsilon) - 1))``.

    Returns
    -------
    Specimen
        Outputs of shape ``(size,)``; the pair is one row against none, for add-remove neighbours.
    """
    _require_rate(rate)
    true = math.log1p(rate * math.expm1(epsilon))
    return Specimen(
        name="Laplace on a Poisson sample" + ("" if claim is None else ", own claim"),
        mechanism=partial(_sampled_laplace, rate=rate, scale=1 / epsilon),
        claim=Guarantee(epsilon=true if claim is None else claim, neighbours="add-remove"),
        relation="one-row",
        pairs=((np.ones(1), np.ones(0)),),
        private=claim is None or true <= claim,
        epsilon=true,
        supremum=true,
        delta=partial(_sampled_laplace_delta, epsilon, rate),
        event=partial(at_least, bound=1.0),
        event_words="the value is at least 1",
        output="value, shape (size,)",
        source="Balle, Barthe, Gaboardi, NeurIPS 2018, Theorems 2 and 8",
        argument="a mixture against one of its parts: rate times a Laplace curve",
    )


def subsampled_gaussian(
    deviation: float = 1.0, rate: float = 0.2, epsilon: float = 0.5
) -> Specimen:
    """Count of a Poisson sample with Gaussian noise, claiming its own exact delta.

    Parameters
    ----------
    deviation : float, default 1
        Standard deviation of the noise; above 0.
    rate : float, default 0.2
        Probability with which each row takes part; in (0, 1].
    epsilon : float, default 0.5
        Claimed epsilon; above 0. The claimed delta is the larger of the two directions.

    Returns
    -------
    Specimen
        Outputs of shape ``(size,)``; the pair is one row against none, for add-remove neighbours.

    Raises
    ------
    ParameterError
        If the rate or the deviation leaves its range.
    """
    _require_rate(rate)
    if not deviation > 0:
        raise ParameterError(f"deviation must be above 0, got {deviation}")
    curve = partial(_sampled_gaussian_delta, ratio=1 / deviation, rate=rate)
    other = _unsampled_gaussian_delta(epsilon, ratio=1 / deviation, rate=rate)
    inner = subsampled_epsilon(epsilon, rate)
    return Specimen(
        name="Gaussian on a Poisson sample",
        aliases=("subsampled Gaussian",),
        mechanism=partial(_sampled_gaussian, rate=rate, deviation=deviation),
        claim=Guarantee(epsilon=epsilon, delta=max(curve(epsilon), other), neighbours="add-remove"),
        relation="one-row",
        pairs=((np.ones(1), np.ones(0)),),
        private=True,
        epsilon=math.inf,
        supremum=math.inf,
        delta=curve,
        event=partial(above, bound=0.5 + inner * deviation**2),
        event_words="the value is above the point where the likelihood ratio is exp(epsilon)",
        output="value, shape (size,)",
        source="Balle, Barthe, Gaboardi, NeurIPS 2018, Theorem 2; Balle and Wang, ICML 2018",
        argument=(
            "a mixture against one of its parts: rate times a Gaussian curve; the other direction "
            "is a multiple of a Gaussian curve as well, and the claim is the larger"
        ),
    )


def _require_rate(rate: float) -> None:
    if not 0 < rate <= 1:
        raise ParameterError(f"rate must lie in (0, 1], got {rate}")


def _sampled_laplace_delta(loss: float, rate: float, epsilon: float) -> float:
    return rate * laplace_delta(loss, subsampled_epsilon(epsilon, rate))


def _sampled_gaussian_delta(epsilon: float, *, ratio: float, rate: float) -> float:
    return rate * gaussian_curve(subsampled_epsilon(epsilon, rate), ratio=ratio)


def _unsampled_gaussian_delta(epsilon: float, *, ratio: float, rate: float) -> float:
    """Divergence of the part from the mixture: ``(1 - c)`` times a Gaussian curve."""
    kept = math.exp(epsilon) * (1 - rate)
    if kept >= 1:
        return 0.0
    inner = epsilon + math.log(rate / (1 - kept))
    if inner >= 0:
        return (1 - kept) * gaussian_curve(inner, ratio=ratio)
    # delta(-e) = 1 - exp(-e) + exp(-e) delta(e), as Gaussian pairs look the same both ways.
    turned = gaussian_curve(-inner, ratio=ratio)
    return (1 - kept) * (-math.expm1(inner) + math.exp(inner) * turned)


def _add_gaussian(
    rows: Rows, rng: np.random.Generator, size: int, /, *, deviation: float
) -> NDArray[np.float64]:
    return np.asarray(rows[0] + rng.normal(scale=deviation, size=size))


def _sampled_laplace(
    rows: Rows, rng: np.random.Generator, size: int, /, *, rate: float, scale: float
) -> NDArray[np.float64]:
    kept = rng.binomial(rows.size, rate, size=size)
    return np.asarray(kept + rng.laplace(scale=scale, size=size))


def _sampled_gaussian(
    rows: Rows, rng: np.random.Generator, size: int, /, *, rate: float, deviation: float
) -> NDArray[np.float64]:
    kept = rng.binomial(rows.size, rate, size=size)
    return np.asarray(kept + rng.normal(scale=deviation, size=size))
