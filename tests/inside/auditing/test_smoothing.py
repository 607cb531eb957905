"""Smooth log ratios: straight or bent as the truth is, finite, and good for rare events."""

import math

import numpy as np
import pytest

from hushed.auditing._outputs import Encoder
from hushed.auditing._scores.histogram import Binning, fit_columns, fit_histograms
from hushed.auditing._scores.pattern import fit_mixtures
from hushed.auditing._scores.smoothing import fit_p_spline

SMOOTH = Binning(bins=64, penalty=None, smooth=True)
STEPPED = Binning(bins=64, penalty=3.0)


def even_counts(ratios, size, seed):
    """Counts of two samples whose bins have these log ratios."""
    rng = np.random.default_rng(seed)
    return rng.poisson(size * np.exp(ratios)), rng.poisson(np.full(len(ratios), size))


class TestPSpline:
    def test_straight_line(self):
        """A line has two parameters, each bin a scatter of .07: .07 * sqrt(2 / 60) = .013 is left.

        The square of the error is chi-squared with 2 degrees of freedom: above .028 once in 100.
        """
        line = np.linspace(-0.3, 0.3, 60)
        first, second = even_counts(line, 400, 1)
        found = fit_p_spline(first, second, 0.0)
        raw = np.log((first + 0.5) / (second + 0.5))
        assert np.sqrt(np.mean((raw - line) ** 2)) > 0.05
        assert np.sqrt(np.mean((found - line) ** 2)) < 0.028

    def test_bend_is_followed(self):
        """With many counts the straight line is given up: a bump of .5 is seen as high as it is."""
        bump = 0.5 * np.exp(-0.5 * np.linspace(-4, 4, 60) ** 2)
        found = fit_p_spline(*even_counts(bump, 20_000, 2), 0.0)
        assert np.abs(found - bump).max() < 0.04

    def test_goes_on_straight_where_nothing_is_seen(self):
        """Ten bins without a count at the end continue the line of the others."""
        line = np.linspace(0, 1, 50)
        first, second = even_counts(line, 5_000, 3)
        first[40:] = second[40:] = 0
        assert fit_p_spline(first, second, 0.0)[-1] == pytest.approx(1.0, abs=0.1)

    @pytest.mark.parametrize("bins", [1, 2, 3, 4, 5, 80])
    @pytest.mark.parametrize("size", [0, 1, 10**9])
    def test_separated_samples_stay_finite(self, bins, size):
        """No overlap at all, huge or no counts, few bins: numbers, of the right sign."""
        first = np.where(np.arange(bins) < bins / 2, size, 0)
        found = fit_p_spline(first, size - first, 0.0)
        assert np.isfinite(found).all()
        assert found[0] >= 0

    def test_size_of_samples(self):
        """The offset is taken off: equal laws, one sample four times as large, show nothing."""
        first, second = even_counts(np.zeros(30), 1_000, 4)
        assert np.abs(fit_p_spline(4 * first, second, math.log(4))).max() < 0.05


class TestColumn:
    def test_gaussian_tail(self):
        """Log ratio of two normal laws far out, where a histogram has its last bin."""
        rng = np.random.default_rng(5)
        sides = rng.normal(0.2, 1, 400_000), rng.normal(0, 1, 400_000)
        [(edges, ratios)] = fit_columns(sides, (SMOOTH,))
        at = np.array([-3.0, 3.0])
        found = ratios[np.searchsorted(edges, at, side="right")]
        assert found.tolist() == pytest.approx((0.2 * at - 0.02).tolist(), abs=0.08)

    def test_repeated_value_keeps_its_own_ratio(self):
        """A spike at 0 in one of two like laws has its own bin, which the curve passes by."""
        rng = np.random.default_rng(6)
        first, second = (rng.normal(size=40_000) for _ in range(2))
        first[:8_000] = 0.0
        second[:4_000] = 0.0
        [(edges, ratios)] = fit_columns((first, second), (SMOOTH,))
        at, beside = np.searchsorted(edges, [0.0, 0.01], side="right")
        assert ratios[at] == pytest.approx(math.log(2), abs=0.06)
        assert ratios[beside] == pytest.approx(math.log(32 / 36), abs=0.06)

    def test_missing_numbers_keep_their_own_ratio(self):
        """NaN on a hundredth of one sample and a fiftieth of the other; the rest looks alike.

        Scatter of the first log ratio: .06.
        """
        rng = np.random.default_rng(7)
        first, second = (rng.normal(size=40_000) for _ in range(2))
        first[:400] = second[:800] = np.nan
        [(_, ratios)] = fit_columns((first, second), (SMOOTH,))
        assert ratios[-1] == pytest.approx(-math.log(2), abs=0.15)
        assert np.abs(ratios[:-1]).max() < 0.2  # the largest numbers, last of all, included


@pytest.mark.slow
def test_many_gaussian_columns():
    """Twenty normal columns: the sum of smooth ratios orders outputs better than that of steps."""
    rng = np.random.default_rng(8)
    slopes = np.linspace(-0.05, 0.05, 20)
    first, second = (rng.normal(slopes * at, size=(50_000, 20)) for at in (1, 0))
    fresh = rng.normal(size=(20_000, 20))
    encoder = Encoder(width=20, objects=False)
    smooth, stepped = (
        np.corrcoef(
            fresh @ slopes, fit_histograms(encoder, first, second, ("values",), g).evaluate(fresh)
        )
        for g in (SMOOTH, STEPPED)
    )
    assert smooth[0, 1] > 0.95
    assert smooth[0, 1] > stepped[0, 1] + 0.05


def until_first_yes(answers, rng, size):
    """Noisy answers against a noisy limit: -1e5 for no, the answer for the first yes, then -1."""
    noisy = answers + rng.laplace(scale=20, size=(size, len(answers)))
    flags = noisy >= 1 + rng.laplace(scale=20, size=(size, 1))
    before = np.cumsum(flags, axis=1) - flags
    return np.where(before >= 1, -1.0, np.where(flags, noisy, -1e5))


def density(answers, grid):
    """Its law by quadrature over the limit: place and value of the first yes; no yes at all."""
    step = grid[1] - grid[0]

    def fall(at):
        return np.where(at < 0, np.exp(-np.abs(at) / 20) / 2, 1 - np.exp(-np.abs(at) / 20) / 2)

    limits, found = np.exp(-np.abs(grid - 1) / 20) / 40, []
    for answer in answers:
        below = (np.cumsum(limits) - limits / 2) * step
        found.append(np.exp(-np.abs(grid - answer) / 20) / 40 * below * step)
        limits = limits * fall(grid - answer)
    return np.stack(found), limits.sum() * step


@pytest.mark.slow
def test_rare_outputs_of_a_sparse_vector():
    """One output in 300 of the truly likeliest has log ratio .236; the smooth score finds .18.

    The law is that of the quadrature, not of samples. Steps find .14.
    """
    low, high, count = np.zeros(10), np.ones(10), 200_000
    rng = np.random.default_rng(9)
    sides = [until_first_yes(each, rng, count) for each in (low, high)]
    grid = np.linspace(-300, 400, 3501)
    laws = []
    for answers in (low, high):
        law, never = density(answers, grid)
        assert law.sum() + never == pytest.approx(1.0, abs=1e-3)
        laws.append(law)
    outputs = np.full((10, len(grid), 10), -1.0)
    for place in range(10):
        outputs[place, :, :place] = -1e5
        outputs[place, :, place] = grid

    def shown(scores):
        order = np.argsort(-scores, kind="stable")
        one, other = (np.cumsum(law.ravel()[order]) for law in laws)
        at = np.searchsorted(one, 1 / 300)
        return math.log(one[at] / other[at])

    ideal = shown(np.log(laws[0] / laws[1]).ravel())
    encoder = Encoder(width=10, objects=False)
    smooth, stepped = (
        shown(found.evaluate(outputs.reshape(-1, 10)))
        for found in fit_mixtures(encoder, *sides, (SMOOTH, STEPPED))
    )
    assert ideal == pytest.approx(0.236, abs=0.005)
    assert smooth > 0.75 * ideal
    assert stepped < 0.68 * ideal
