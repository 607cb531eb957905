"""Report noisy max: the index (private) and the value (not), with Laplace or exponential noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.zoo.curves import discrete_delta, discrete_epsilon
from hushed.zoo.events import at_most, equal
from hushed.zoo.quadrature import laplace_below, laplace_density, rule
from hushed.zoo.record import Rows, Specimen

__all__ = ["index_probabilities", "noisy_max_index", "noisy_max_value"]

Noise = Literal["laplace", "exponential"]
_SOURCE = "Dwork and Roth 2014, Claim 3.9; audited by Ding et al., CCS 2018"


def noisy_max_index(epsilon: float = 0.1, k: int = 5, noise: Noise = "laplace") -> Specimen:
    """Index of the largest noisy answer, which is private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 5
        Number of answers; 2 or more.
    noise : {"laplace", "exponential"}, default "laplace"
        Law of the noise, of scale ``2/epsilon``.

    Returns
    -------
    Specimen
        Outputs are indices, shape ``(size,)``. Its pair is the worst of those that move the first
        answer against all others. The true loss is 0.0946 for Laplace noise, k = 5 and
        epsilon = 0.1, and exactly epsilon for exponential noise.

    Raises
    ------
    ParameterError
        If k is below 2 or the noise has no such name.
    """
    if k < 2:
        raise ParameterError(f"k must be 2 or more, got {k}")
    scale = 2 / epsilon
    neighbour, rows = np.ones(k), np.r_[2.0, np.zeros(k - 1)]
    swapped = np.r_[0.0, np.full(k - 1, 2.0)]
    pairs = [(rows, neighbour), (neighbour, rows), (neighbour, swapped), (swapped, neighbour)]
    laws = [[index_probabilities(x, scale, noise) for x in pair] for pair in pairs]
    best = max(range(len(pairs)), key=lambda i: discrete_epsilon(*laws[i]))
    p, q = laws[best]
    top = int(np.argmax(p / q))
    exact = noise == "exponential"
    return Specimen(
        name=f"noisy max index, {noise}",
        aliases=("v2a", "RNM2", "ReportNoisyMax2") if exact else ("v1a", "RNM1", "ReportNoisyMax1"),
        mechanism=partial(_draw_index, scale=scale, noise=_checked(noise)),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=(pairs[best],),
        private=True,
        epsilon=min(discrete_epsilon(p, q), epsilon) if exact else discrete_epsilon(p, q),
        delta=partial(discrete_delta, p, q),
        supremum=epsilon if exact else None,
        event=partial(equal, to=float(top)),
        event_words=f"the index is {top}",
        output="index from 0, shape (size,)",
        source=_SOURCE,
        argument="index probabilities by one-dimensional quadrature over the winning value",
    )


def noisy_max_value(epsilon: float = 0.1, k: int = 5, noise: Noise = "laplace") -> Specimen:
    """Value of the largest noisy answer, which is not private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 5
        Number of answers; 3 or more, so that the claim fails with Laplace noise.
    noise : {"laplace", "exponential"}, default "laplace"
        Law of the noise, of scale ``2/epsilon``.

    Returns
    -------
    Specimen
        Outputs are values, shape ``(size,)``. On all ones against all twos the loss is
        ``k epsilon / 2`` with Laplace noise; with exponential noise it is infinite, on a mass of
        ``(1 - exp(-epsilon/2))^k``.

    Raises
    ------
    ParameterError
        If k is below 3 or the noise has no such name.
    """
    if k < 3:
        raise ParameterError(f"k must be 3 or more for the claim to fail, got {k}")
    scale = 2 / epsilon
    exact = _checked(noise) == "exponential"
    return Specimen(
        name=f"noisy max value, {noise}",
        aliases=("v2b", "RNM4", "ReportNoisyMax4") if exact else ("v1b", "RNM3", "ReportNoisyMax3"),
        mechanism=partial(_draw_value, scale=scale, noise=noise),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.ones(k), np.full(k, 2.0)),),
        private=False,
        epsilon=math.inf if exact else k * epsilon / 2,
        supremum=math.inf if exact else k * epsilon / 2,
        delta=partial(_value_delta, scale=scale, k=k, noise=noise),
        event=partial(at_most, bound=_value_cut(epsilon, scale, k, noise)),
        event_words="the value lies below a threshold",
        output="value, shape (size,)",
        source=_SOURCE,
        argument=(
            "the maximum of k noisy answers has distribution function F^k; its likelihood ratio "
            "falls in the value, so the optimal events are lower half lines"
        ),
    )


def index_probabilities(rows: Rows, scale: float, noise: Noise) -> NDArray[np.float64]:
    """Probability that each answer wins, by quadrature over the winning value.

    Parameters
    ----------
    rows : ndarray of float, shape (k,)
        Query answers.
    scale : float
        Scale of the noise; above 0.
    noise : {"laplace", "exponential"}
        Law of the noise.

    Returns
    -------
    ndarray of float, shape (k,)
        Probabilities, to about 1e-13.
    """
    grid = rule(rows.tolist(), shortest=scale, longest=scale, per_scale=4)
    density, below = _law(noise)
    gap = grid.at - rows[:, None]
    under = below(gap, scale)
    chances = [
        float((grid.weights * density(gap[i], scale) * np.delete(under, i, axis=0).prod(0)).sum())
        for i in range(rows.size)
    ]
    return np.array(chances)


def _law(noise: Noise) -> tuple[Callable[..., NDArray[np.float64]], ...]:
    """Density and distribution function of the noise."""
    if _checked(noise) == "laplace":
        return laplace_density, laplace_below
    return _exponential_density, _exponential_below


def _checked(noise: Noise) -> Noise:
    if noise not in ("laplace", "exponential"):
        raise ParameterError(f"noise must be 'laplace' or 'exponential', got {noise!r}")
    return noise


def _exponential_density(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    return np.asarray(np.where(x > 0, np.exp(-np.maximum(x, 0) / scale) / scale, 0.0))


def _exponential_below(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    return np.asarray(-np.expm1(-np.maximum(x, 0) / scale))


def _value_cut(epsilon: float, scale: float, k: int, noise: Noise) -> float:
    """Threshold at which the loss of the maximum, ones against twos, falls to epsilon."""
    from scipy.optimize import brentq  # noqa: PLC0415

    density, below = _law(noise)

    def loss(t: float) -> float:
        ones, twos = np.array([t - 1]), np.array([t - 2])
        ratio = np.log(density(ones, scale)) - np.log(density(twos, scale))
        ratio += (k - 1) * (np.log(below(ones, scale)) - np.log(below(twos, scale)))
        return float(ratio[0]) - epsilon

    # Exponential noise on twos starts at 2, where the loss is infinite: for an epsilon that is
    # not reached a hair above 2, the half line that twos cannot reach is the whole event.
    start, none = (1.0, 1.0) if noise == "laplace" else (2 + 1e-9 * scale, 2.0)
    return none if loss(start) <= 0 else float(brentq(loss, start, 2 + 40 * scale, xtol=1e-13))


def _value_delta(epsilon: float, *, scale: float, k: int, noise: Noise) -> float:
    """Divergence of the maximum on all ones from that on all twos."""
    if noise == "laplace" and epsilon >= k / scale:
        return 0.0
    _, below = _law(noise)
    cut = _value_cut(epsilon, scale, k, noise)
    ones, twos = (float(below(np.array([cut - x]), scale)[0]) ** k for x in (1, 2))
    return ones - math.exp(epsilon) * twos


def _noisy(
    rows: Rows, rng: np.random.Generator, size: int, scale: float, noise: Noise
) -> NDArray[np.float64]:
    draw = rng.laplace if noise == "laplace" else rng.exponential
    return np.asarray(rows + draw(scale=scale, size=(size, rows.size)))


def _draw_index(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, noise: Noise
) -> NDArray[np.int64]:
    return np.asarray(_noisy(rows, rng, size, scale, noise).argmax(axis=1))


def _draw_value(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, noise: Noise
) -> NDArray[np.float64]:
    return np.asarray(_noisy(rows, rng, size, scale, noise).max(axis=1))
