"""Defects of mechanisms that look at the table at hand: a smoothing, a test, a posterior."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.mechanisms import ProposeTest
from hushed.statistics import quantile
from hushed.zoo._curves import Truth, certain_truth, discrete_truth
from hushed.zoo._events import compare, released
from hushed.zoo._record import Rows
from hushed.zoo.defects._defect import Defect, Version, Versions

Values = NDArray[np.float64]

_MEDIAN = quantile(0.5, rows=3, low=0.0, high=3.0)
_STABLE, _BESIDE = np.array([2.0, 2.0, 2.0]), np.array([0.0, 2.0, 2.0])  # both medians are 2
_GAMMA = 2  # exponent of the tail of Cauchy noise
_THETAS = np.arange(1, 10) / 10
_DELTA = 0.01


def _smooth_sensitivity(rows: Rows, beta: float) -> float:
    """Largest discounted local sensitivity, in doubles."""
    return max(_MEDIAN.local_sensitivity(rows, k) * math.exp(-beta * k) for k in range(4))


def _median_with_cauchy_noise(
    rows: Rows, rng: np.random.Generator, size: int, /, *, beta: float, factor: float
) -> Values:
    scale = factor * _smooth_sensitivity(rows, beta)
    return np.asarray(float(_MEDIAN.value(rows)) + scale * rng.standard_cauchy(size))


def _crossing(narrow: float, wide: float, epsilon: float) -> float:
    """Distance at which a Cauchy density is e^epsilon times a wider one of the same centre."""
    room = wide - math.exp(epsilon) * narrow
    if room <= 0:
        return 0.0
    return math.sqrt(narrow * wide * room / (math.exp(epsilon) * wide - narrow))


def _cauchy_delta(epsilon: float, *, narrow: float, wide: float) -> float:
    """Divergence of a Cauchy law from a wider one of the same centre; epsilon of 0 or more."""
    end = _crossing(narrow, wide, epsilon)
    inside = math.atan(end / narrow) - math.exp(epsilon) * math.atan(end / wide)
    return max(0.0, 2 / math.pi * inside)


def _cauchy(beta: float, factor: float) -> tuple[Version, float, float]:
    """Mechanism and truth, with the scales on both tables; only the scale differs there."""
    narrow, wide = (factor * _smooth_sensitivity(rows, beta) for rows in (_STABLE, _BESIDE))
    truth = Truth(math.log(wide / narrow), partial(_cauchy_delta, narrow=narrow, wide=wide))
    return (partial(_median_with_cauchy_noise, beta=beta, factor=factor), truth), narrow, wide


def _smoothings(epsilon: float) -> Versions:
    factor = 2 * (_GAMMA + 1) / epsilon
    wrong, narrow, wide = _cauchy(epsilon / 2 * (_GAMMA + 1), factor)
    right, _, _ = _cauchy(epsilon / (2 * (_GAMMA + 1)), factor)
    near = compare("<=", _crossing(narrow, wide, epsilon), of=_away_from_2)
    return Versions(wrong, right, near)


def _lost_by_smoothing(epsilon: float) -> float:
    """Largest loss of Cauchy noise with nine times the smoothing that it hides, over all tables."""
    beta, factor = epsilon / 2 * (_GAMMA + 1), 2 * (_GAMMA + 1) / epsilon
    return math.acosh(math.cosh(beta) + math.exp(-beta) / (2 * factor**2))


def _away_from_2(outputs: Values, /) -> Values:
    return np.abs(outputs - 2.0)


def _tested_median(
    rows: Rows, rng: np.random.Generator, size: int, /, *, chance: dict[float, float], scale: float
) -> Values:
    """Draw the median with Laplace noise, or NaN; the chance of an answer is by the first row."""
    noisy = float(_MEDIAN.value(rows)) + rng.laplace(scale=scale, size=size)
    return np.where(rng.random(size) < chance[float(rows[0])], noisy, np.nan)


def _tests(epsilon: float) -> Versions:
    mechanism = ProposeTest(_MEDIAN, bound=0.5, epsilon=epsilon, delta=_DELTA)
    tables = (_STABLE, _BESIDE)
    small = [float(_MEDIAN.local_sensitivity(rows) <= mechanism.bound) for rows in tables]
    far = [mechanism.chance_on(rows) for rows in tables]

    def version(chances: list[float], truth: Truth) -> Version:
        chance = {float(rows[0]): each for rows, each in zip(tables, chances, strict=True)}
        return partial(_tested_median, chance=chance, scale=mechanism.scale), truth

    # Where an answer is given its law is the same on both tables.
    laws = (np.array([1 - each, each]) for each in far)
    return Versions(
        version(small, certain_truth(1.0)), version(far, discrete_truth(*laws)), released
    )


def _posterior(rows: Rows, weight: float) -> Values:
    """Give the posterior of a coin's chance on a grid, with a weight on the likelihood."""
    ones = float(rows.sum())
    likelihood = ones * np.log(_THETAS) + (rows.size - ones) * np.log1p(-_THETAS)
    law = np.exp(weight * (likelihood - likelihood.max()))
    return np.asarray(law / law.sum())


def _draw_posterior(rows: Rows, rng: np.random.Generator, size: int, /, *, weight: float) -> Values:
    return np.asarray(rng.choice(_THETAS, size=size, p=_posterior(rows, weight)))


def _posteriors(epsilon: float) -> Versions:
    tables = np.array([1.0]), np.array([0.0])
    span = 2 * (math.log(_THETAS[-1]) - math.log(_THETAS[0]))  # replaced, by both ends of the grid

    def version(weight: float) -> Version:
        laws = (_posterior(rows, weight) for rows in tables)
        return partial(_draw_posterior, weight=weight), discrete_truth(*laws)

    telling = compare(">", 1 / (1 + math.exp(-epsilon)))
    return Versions(version(1.0), version(epsilon / span), telling)


WORST_CASE = (
    Defect(
        name="median: smoothing without its brackets",
        pair=(_STABLE, _BESIDE),
        at=_smoothings,
        most=_lost_by_smoothing,
        output="median, shape (size,)",
        source=(
            "defect class: operator precedence, epsilon / 2 * (gamma + 1) for epsilon / (2 (gamma "
            "+ 1)) of Nissim, Raskhodnikova, Smith, STOC 2007"
        ),
        why=(
            "the scale of the noise differs by e^(3 epsilon / 2) between neighbours; with a median "
            "that moves as well up to arcosh(cosh(3 e/2) + exp(-3 e/2) e^2/72) is lost"
        ),
    ),
    Defect(
        name="propose-test-release: test without the distance",
        pair=(_STABLE, _BESIDE),
        at=_tests,
        output="median, NaN if it was refused, shape (size,)",
        delta=_DELTA,
        source="defect class: Dwork and Lei, STOC 2009, test how far a table is from a refusal",
        why="the local sensitivity itself is compared, so that one row decides on the refusal",
    ),
    Defect(
        name="posterior: a draw without tempering",
        pair=([1.0], [0.0]),
        at=_posteriors,
        output="chance of a 1, on a grid, shape (size,)",
        source=(
            "defect class: a posterior is taken for private because it is random; Wang, Fienberg, "
            "Smola, ICML 2015, say what it costs"
        ),
        why="one row multiplies the odds of two ends of the grid by 9 each, at any epsilon",
    ),
)
