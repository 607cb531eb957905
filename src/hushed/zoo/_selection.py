"""Report noisy max: the index (private) and the value (not), with Laplace or exponential noise."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hushed.guarantee import Guarantee
from hushed.zoo._curves import discrete_epsilon, discrete_truth
from hushed.zoo._draws import Noise, Noisy, every_row
from hushed.zoo._events import compare
from hushed.zoo._quadrature import laplace_below, laplace_density, rule
from hushed.zoo._record import Rows, Specimen

Kind = Literal["laplace", "exponential"]
Values = NDArray[np.float64]
_SOURCE = "Dwork and Roth 2014, Claim 3.9; audited by Ding et al., CCS 2018"
_ALIASES = {
    ("index", "laplace"): ("v1a", "RNM1", "ReportNoisyMax1"),
    ("index", "exponential"): ("v2a", "RNM2", "ReportNoisyMax2"),
    ("value", "laplace"): ("v1b", "RNM3", "ReportNoisyMax3"),
    ("value", "exponential"): ("v2b", "RNM4", "ReportNoisyMax4"),
}


def noisy_max_index(epsilon: float = 0.1, k: int = 5, noise: Kind = "laplace") -> Specimen:
    """Index of the largest noisy answer, which is private.

    Outputs are indices, shape ``(size,)``. Its pair is the worst of those that move the first
    answer against all others. The true loss is 0.0946 for Laplace noise, k = 5 and epsilon = 0.1,
    and exactly epsilon for exponential noise.
    """
    scale = 2 / epsilon
    neighbour, rows = np.ones(k), np.r_[2.0, np.zeros(k - 1)]
    swapped = np.r_[0.0, np.full(k - 1, 2.0)]
    pairs = [(rows, neighbour), (neighbour, rows), (neighbour, swapped), (swapped, neighbour)]
    laws = [[index_probabilities(x, scale, noise) for x in pair] for pair in pairs]
    best = max(range(len(pairs)), key=lambda i: discrete_epsilon(*laws[i]))
    p, q = laws[best]
    truth = discrete_truth(p, q)
    exact = noise == "exponential"
    return Specimen(
        name=f"noisy max index, {noise}",
        aliases=_ALIASES["index", noise],
        mechanism=Noisy(every_row, Noise(noise, scale), after=partial(np.argmax, axis=1)),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=(pairs[best],),
        private=True,
        epsilon=min(discrete_epsilon(p, q), epsilon) if exact else truth.epsilon,
        delta=truth.delta,
        supremum=epsilon if exact else None,
        event=compare("==", float(np.argmax(p / q))),
        output="index from 0, shape (size,)",
        source=_SOURCE,
        argument="index probabilities by one-dimensional quadrature over the winning value",
    )


def noisy_max_value(epsilon: float = 0.1, k: int = 5, noise: Kind = "laplace") -> Specimen:
    """Value of the largest noisy answer, which is not private.

    Outputs are values, shape ``(size,)``. On all ones against all twos the loss is ``k epsilon /
    2`` with Laplace noise; with exponential noise it is infinite, on a mass of ``(1 -
    exp(-epsilon/2))^k``.
    """
    scale = 2 / epsilon
    loss = math.inf if noise == "exponential" else k * epsilon / 2
    return Specimen(
        name=f"noisy max value, {noise}",
        aliases=_ALIASES["value", noise],
        mechanism=Noisy(every_row, Noise(noise, scale), after=partial(np.max, axis=1)),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.ones(k), np.full(k, 2.0)),),
        private=False,
        epsilon=loss,
        supremum=loss,
        delta=partial(_value_delta, scale=scale, k=k, noise=noise),
        event=compare("<=", _value_cut(epsilon, scale, k, noise)),
        output="value, shape (size,)",
        source=_SOURCE,
        argument=(
            "the maximum of k noisy answers has distribution function F^k; its likelihood ratio "
            "falls in the value, so the optimal events are lower half lines"
        ),
    )


def index_probabilities(rows: Rows, scale: float, noise: Kind) -> Values:
    """Probability that each answer wins, by quadrature over the winning value, to about 1e-13."""
    grid = rule(rows.tolist(), shortest=scale, longest=scale, per_scale=4)
    density, below = _LAWS[noise]
    gap = grid.at - rows[:, None]
    under = below(gap, scale)
    chances = [
        float((grid.weights * density(gap[i], scale) * np.delete(under, i, axis=0).prod(0)).sum())
        for i in range(rows.size)
    ]
    return np.array(chances)


def _exponential_density(x: Values, scale: float) -> Values:
    return np.asarray(np.where(x > 0, np.exp(-np.maximum(x, 0) / scale) / scale, 0.0))


def _exponential_below(x: Values, scale: float) -> Values:
    return np.asarray(-np.expm1(-np.maximum(x, 0) / scale))


_LAWS = {
    "laplace": (laplace_density, laplace_below),
    "exponential": (_exponential_density, _exponential_below),
}


def _value_cut(epsilon: float, scale: float, k: int, noise: Kind) -> float:
    """Threshold at which the loss of the maximum, ones against twos, falls to epsilon."""
    from scipy.optimize import brentq  # noqa: PLC0415

    density, below = _LAWS[noise]

    def loss(t: float) -> float:
        ones, twos = np.array([t - 1]), np.array([t - 2])
        ratio = np.log(density(ones, scale)) - np.log(density(twos, scale))
        ratio += (k - 1) * (np.log(below(ones, scale)) - np.log(below(twos, scale)))
        return float(ratio[0]) - epsilon

    # Exponential noise on twos starts at 2, where the loss is infinite: for an epsilon that is
    # not reached a hair above 2, the half line that twos cannot reach is the whole event.
    start, none = (1.0, 1.0) if noise == "laplace" else (2 + 1e-9 * scale, 2.0)
    return none if loss(start) <= 0 else float(brentq(loss, start, 2 + 40 * scale, xtol=1e-13))


def _value_delta(epsilon: float, *, scale: float, k: int, noise: Kind) -> float:
    """Divergence of the maximum on all ones from that on all twos."""
    if noise == "laplace" and epsilon >= k / scale:
        return 0.0
    _, below = _LAWS[noise]
    cut = _value_cut(epsilon, scale, k, noise)
    ones, twos = (float(below(np.array([cut - x]), scale)[0]) ** k for x in (1, 2))
    return ones - math.exp(epsilon) * twos
