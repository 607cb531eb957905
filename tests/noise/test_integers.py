"""The public integer samplers: shapes, ranges, scales for each coordinate, and quick law checks."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.frequencies import pvalue_of_counts

from hushed.errors import ParameterError
from hushed.noise import (
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    uniform_integers,
)

FALSE_ALARM = 1e-9  # of each statistical assertion in this file


def counts_fit(draws: np.ndarray, log_weight) -> float:
    """Probability value of draws against weights given by their logarithm."""
    reach = int(np.abs(draws).max()) + 2
    support = np.arange(-reach, reach + 1)
    weights = np.exp(log_weight(support.astype(float)))
    expected = weights / weights.sum() * draws.size
    observed = np.bincount(draws + reach, minlength=support.size)
    return pvalue_of_counts(observed, expected)


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.5])
def test_draws_follow_their_laws(scale: float) -> None:
    """60000 draws of each law, in vectors; false alarms 1e-9 each."""
    laplace = discrete_laplace(scale, 60_000)
    gaussian = discrete_gaussian(scale, 60_000)
    assert counts_fit(laplace, lambda x: -np.abs(x) / scale) > FALSE_ALARM
    assert counts_fit(gaussian, lambda x: -(x**2) / (2 * scale**2)) > FALSE_ALARM


@pytest.mark.slow
def test_draws_made_one_by_one_follow_their_laws() -> None:
    """12000 single draws of each law; false alarms 1e-9 each."""
    laplace = np.array([int(discrete_laplace(1.5)) for _ in range(12_000)])
    gaussian = np.array([int(discrete_gaussian(1.5)) for _ in range(12_000)])
    assert counts_fit(laplace, lambda x: -np.abs(x) / 1.5) > FALSE_ALARM
    assert counts_fit(gaussian, lambda x: -(x**2) / 4.5) > FALSE_ALARM


def test_the_law_test_sees_a_wrong_scale() -> None:
    """The same test refuses a scale that is 5 % off."""
    draws = discrete_laplace(5.5, 300_000)
    assert counts_fit(draws, lambda x: -np.abs(x) / 5.8) < FALSE_ALARM


def test_each_coordinate_has_its_own_scale() -> None:
    """Columns with scales from 0.2 to 1e12 have the right mean size, within 6 standard errors."""
    scales = np.array([0.2, 3.0, 1e4, 1e12])
    n = 40_000
    laplace = np.abs(discrete_laplace(scales, (n, 4))).astype(float)
    q = np.exp(-1 / scales)
    mean = 2 * q / (1 - q * q)
    spread = np.sqrt(2 * q / (1 - q) ** 2 - mean**2)
    assert (np.abs(laplace.mean(axis=0) - mean) < 6 * spread / math.sqrt(n)).all()
    gaussian = discrete_gaussian(scales, (n, 4)).astype(float)
    variance = (gaussian[:, 1:] ** 2).mean(axis=0)
    assert (np.abs(variance / scales[1:] ** 2 - 1) < 6 * math.sqrt(2 / n)).all()


@pytest.mark.parametrize("size", [(), 0, 3, 40, (2, 3), (40, 50), (0, 4)])
def test_shapes_are_kept(size: int | tuple[int, ...]) -> None:
    """Every sampler returns int64 of the shape asked for."""
    shape = (size,) if isinstance(size, int) else size
    draws = [
        discrete_laplace(2.5, size),
        discrete_gaussian(Fraction(5, 2), size),
        uniform_integers(6, size),
    ]
    for drawn in draws:
        assert drawn.shape == shape
        assert drawn.dtype == np.int64


def test_uniform_integers_are_uniform() -> None:
    """Counts of 70000 rolls of a seven-sided die; the largest bounds stay in range."""
    rolls = uniform_integers(7, 70_000)
    assert pvalue_of_counts(np.bincount(rolls, minlength=7), np.ones(7)) > FALSE_ALARM
    assert rolls.min() >= 0
    for bound in (1, (1 << 63) - 25, 1 << 63):
        drawn = uniform_integers(bound, 1000)
        assert drawn.min() >= 0
        assert int(drawn.max()) < bound


def test_coins_have_their_probability() -> None:
    """Bernoulli shares lie within the binomial's 1e-9 quantiles."""
    n = 3000
    for toss, probability in [
        (lambda: bernoulli(Fraction(1, 3)), 1 / 3),
        (lambda: bernoulli_exp(0.7), math.exp(-0.7)),
    ]:
        hits = sum(toss() for _ in range(n))
        low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n, probability)
        assert low <= hits <= high
    assert bernoulli(1)
    assert not bernoulli(0)
    assert bernoulli_exp(0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 2.0**56, Fraction(0)])
@pytest.mark.parametrize("size", [1, 100])
def test_scales_out_of_range_are_refused(bad: float | Fraction, size: int) -> None:
    """A scale must be positive and at most 2**55; arrays are checked too."""
    for sampler in (discrete_laplace, discrete_gaussian):
        with pytest.raises(ParameterError, match="scale"):
            sampler(bad, size)
        if isinstance(bad, float):
            with pytest.raises(ParameterError, match="scale"):
                sampler(np.array([1.0, bad]), 2)


def test_other_bad_parameters_are_refused() -> None:
    """Shapes that do not broadcast, bounds, probabilities and exponents out of range."""
    with pytest.raises(ParameterError, match="broadcast"):
        discrete_laplace(np.ones(3), (4, 2))
    for bound in (0, -1, (1 << 63) + 1):
        with pytest.raises(ParameterError, match="bound"):
            uniform_integers(bound, 1)
    for probability in (-0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="probability"):
            bernoulli(probability)
    for exponent in (-0.1, math.nan, math.inf):
        with pytest.raises(ParameterError, match="exponent"):
            bernoulli_exp(exponent)


def test_tiny_scales_give_zero() -> None:
    """A scale of 1e-300 does not overflow; all but zero has probability exp(-1e300)."""
    assert not discrete_laplace(1e-300, 1000).any()
    assert not discrete_gaussian(1e-300, 1000).any()
    assert not discrete_gaussian(1e-300, 3).any()
