"""Polynomial scores in exact rational arithmetic: unbiased, and free of cancellation."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from hushed.divergences._approximation import best_absolute_value, root_difference, root_sum
from hushed.divergences._known import distance_scores
from hushed.divergences._minimax import Scheme, large_scores, minimax_score, small_scores
from hushed.divergences._unbiased import central_moments, chebyshev_table
from hushed.errors import ParameterError


def binomial(n, p):
    """Exact binomial probabilities."""
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def factorial_moment_mean(scores, rate):
    """Exact mean of a function of a Poisson count that is a polynomial of the count.

    Newton's forward differences write it in falling factorials, whose means are powers.
    """
    values, mean, power = [Fraction(float(s)) for s in scores], Fraction(0), Fraction(1)
    for i in range(len(scores)):
        mean += values[0] * power
        power *= rate / (i + 1)
        values = [b - a for a, b in itertools.pairwise(values)]
    return mean


def falling(count, size, power, model):
    """Estimate of p**power in rationals: falling factorials over powers or falling factorials."""
    result = Fraction(1)
    for i in range(power):
        result *= Fraction(count - i) / Fraction(size - i if model == "fixed" else size)
    return result


def chebyshev_monomials(degree):
    rows = [[Fraction(1)], [Fraction(0), Fraction(1)]]
    while len(rows) <= degree:
        row = [Fraction(0), *[2 * c for c in rows[-1]]]
        for i, c in enumerate(rows[-2]):
            row[i] -= c
        rows.append(row)
    return rows


class TestChebyshevTable:
    @pytest.mark.parametrize("degree", [3, 8])
    def test_mean_over_binomial_counts(self, degree):
        """For a fixed size, the exact mean over counts is the Chebyshev polynomial."""
        n, p, scale = 12, Fraction(3, 11), 1.25
        table = chebyshev_table(n, degree, float(n), scale, "fixed")
        for k in range(degree + 1):
            mean = sum(
                w * Fraction(float(t)) for w, t in zip(binomial(n, p), table[:, k], strict=True)
            )
            expected = math.cos(k * math.acos(2 * scale * float(p) - 1))
            assert float(mean) == pytest.approx(expected, abs=1e-11)

    def test_mean_over_poisson_counts(self):
        """For Poisson counts, falling factorials have powers of the rate as means."""
        n, p, scale, degree = 20, Fraction(1, 9), 2.0, 6
        table = chebyshev_table(degree, degree, float(n), scale, "poisson")
        for k in range(degree + 1):
            mean = factorial_moment_mean(table[:, k], n * p)
            expected = math.cos(k * math.acos(2 * scale * float(p) - 1))
            assert float(mean) == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("model", ["fixed", "poisson"])
    def test_rounds_once_at_degree_40(self, model):
        """At n = 1e6 and degree 40 every entry agrees with rational arithmetic to rounding."""
        n, scale = 10**6, 1e4
        table = chebyshev_table(30, 40, float(n), scale, model)
        shifted = [Fraction(-1), 2 * Fraction(scale)]
        for count in (0, 1, 7, 30):
            powers = [falling(count, n, i, model) for i in range(41)]
            for k in (5, 23, 40):
                monomials = chebyshev_monomials(k)[k]
                exact = Fraction(0)
                for i, c in enumerate(monomials):  # (2 scale p - 1)**i, by the binomial theorem
                    exact += c * sum(
                        math.comb(i, m) * shifted[1] ** m * shifted[0] ** (i - m) * powers[m]
                        for m in range(i + 1)
                    )
                assert table[count, k] == pytest.approx(float(exact), rel=1e-14)


class TestCentralMoments:
    @pytest.mark.parametrize("model", ["fixed", "poisson"])
    @pytest.mark.parametrize(("n", "count"), [(20, 0), (20, 7), (20, 20), (10**6, 300_000)])
    def test_against_rationals(self, model, n, count):
        """The recurrences give the sum over falling factorials, which cancels in doubles."""
        moments = central_moments(np.array([count]), float(n), 12, model)[:, 0]
        c = Fraction(count, n)
        for k in range(13):
            exact = sum(
                math.comb(k, i) * (-c) ** (k - i) * falling(count, n, i, model)
                for i in range(k + 1)
            )
            assert moments[k] == pytest.approx(
                float(exact), rel=1e-12, abs=0.0 if exact else 1e-300
            )


def exact_large(scheme, p, q, width):
    """The large-count score as published, a sum over monomials, in rationals."""
    n, degree = int(scheme.samples[0]), scheme.degree
    monomials = [Fraction(0)] * (degree + 1)
    rows = chebyshev_monomials(degree)
    for k, c in enumerate(best_absolute_value(degree).coefficients):
        for i, m in enumerate(rows[k]):
            monomials[i] += Fraction(float(c)) * m
    a, width = Fraction(scheme.weight), Fraction(width)
    total = falling(q, n, 1, scheme.model) - a * falling(p, n, 1, scheme.model)
    for j, coefficient in enumerate(monomials):
        g = sum(
            math.comb(j, k)
            * a**k
            * (-1) ** (j - k)
            * falling(p, n, k, scheme.model)
            * falling(q, n, j - k, scheme.model)
            for k in range(j + 1)
        )
        total += coefficient * g / width ** (j - 1)
    return float(total / 2)


class TestLargeScores:
    @pytest.mark.parametrize("model", ["fixed", "poisson"])
    @pytest.mark.parametrize(
        ("n", "share", "digits"), [(10**3, 0.05, 13), (10**6, 0.3, 13), (10**12, 0.3, 9)]
    )
    @pytest.mark.parametrize("shift", [-3, 0, 2])
    def test_no_cancellation(self, model, n, share, digits, shift):
        """Thirteen digits at n = 1e6, p = 0.3, where the plain sum gives -4e17."""
        scheme = Scheme(samples=(n, n), weight=math.exp(0.4), model=model)
        p = int(n * share)
        q = int(n * share * scheme.weight + shift * math.sqrt(n * share))
        width = math.sqrt(32 * scheme.rate * (scheme.weight * p + q) / n)
        score = large_scores(scheme, np.array([p]), np.array([q]), np.array([width]))[0]
        assert score == pytest.approx(exact_large(scheme, p, q, width), rel=10.0**-digits)

    def test_mean_is_the_polynomial(self):
        """Over all pairs of counts the exact mean is the best polynomial, sizes unequal."""
        sizes, p, q = (14, 11), Fraction(1, 5), Fraction(2, 7)
        scheme = Scheme(samples=sizes, weight=1.5, model="fixed")
        width = 0.9
        i, j = (grid.ravel() for grid in np.meshgrid(range(15), range(12), indexing="ij"))
        scores = large_scores(scheme, i, j, np.full(len(i), width))
        chances = [a * b for a in binomial(14, p) for b in binomial(11, q)]
        mean = sum(c * Fraction(float(s)) for c, s in zip(chances, scores, strict=True))

        gap = 1.5 * float(p) - float(q)
        best = chebyshev.chebval(gap / width, best_absolute_value(scheme.degree).coefficients)
        assert float(mean) == pytest.approx((width * best - gap) / 2, abs=1e-12)


class TestSmallScores:
    @staticmethod
    def mean_and_polynomial(product):
        """Exact mean of the scores, and the polynomial that it should be."""
        n, p, q = 10, Fraction(1, 13), Fraction(2, 17)
        scheme = Scheme(samples=(n, n), weight=1.4, model="fixed", product=product, growth=1.8)
        i, j = (grid.ravel() for grid in np.meshgrid(range(n + 1), range(n + 1), indexing="ij"))
        chances = [a * b for a in binomial(n, p) for b in binomial(n, q)]
        scores = small_scores(scheme, i, j)
        mean = sum(c * Fraction(float(s)) for c, s in zip(chances, scores, strict=True))
        reach = 2 * scheme.small * scheme.rate
        x, y = 2 * 1.4 * float(p) / reach - 1, 2 * float(q) / reach - 1
        u, v = root_difference(scheme.degree), root_sum(scheme.degree)
        both = chebyshev.chebval2d([y, -1.0], [x, -1.0], u) * chebyshev.chebval2d(
            [y, -1.0], [x, -1.0], v
        )
        return float(mean), reach * float(both[0] - both[1])

    def test_joint_product_is_unbiased(self):
        """The exact mean over all pairs of counts is D times the product polynomial."""
        mean, polynomial = self.mean_and_polynomial("joint")
        assert mean == pytest.approx(polynomial, abs=1e-11)

    def test_product_of_estimates_is_not(self):
        """Multiplying two unbiased estimates, as the authors' code does, is biased."""
        mean, polynomial = self.mean_and_polynomial("separate")
        assert abs(mean - polynomial) > 1e-3

    def test_unseen_symbols_score_nothing(self):
        """Zero counts score zero, so that unlisted symbols change nothing."""
        scheme = Scheme(samples=(1000, 1000), weight=1.2, model="fixed")
        assert minimax_score(scheme)(*np.zeros((4, 3), dtype=np.int64)) == pytest.approx(
            0, abs=1e-15
        )


class TestKnown:
    def test_low_window_mean(self):
        """With p known and low, the exact mean is within the approximation error of |q - kink|."""
        n, q = 40, Fraction(1, 10)
        scheme = Scheme(samples=(n, n), weight=1.0, model="fixed")
        reach = 2 * (scheme.small + scheme.slack) * scheme.rate
        counts = np.arange(n + 1)
        for kink in (0.02, 0.1, 0.25):
            scores = distance_scores(scheme, counts, float(n), np.full(n + 1, kink))
            mean = sum(c * Fraction(float(s)) for c, s in zip(binomial(n, q), scores, strict=True))
            best = best_absolute_value(scheme.degree, 2 * kink / reach - 1)
            # Twice: once for the approximation, once for the shift that makes it exact at 0.
            assert abs(float(mean) - abs(float(q) - kink)) <= 2 * best.error * reach / 2 + 1e-9

    @pytest.mark.slow
    def test_high_window_mean(self):
        """With p known and high, the bias at the kink is the error of the best polynomial."""
        n, kink = 2000, 0.4
        scheme = Scheme(samples=(n, n), weight=1.0, model="fixed")
        counts = np.arange(n + 1)
        chance = np.array([float(c) for c in binomial(n, Fraction(2, 5))])
        scores = distance_scores(scheme, counts, float(n), np.full(n + 1, kink))
        width = 2 * math.sqrt(4.1 * math.log(n) / n * kink)
        assert chance @ scores == pytest.approx(best_absolute_value(11).error * width, rel=1e-3)

    @pytest.mark.slow
    def test_many_kinks_use_knots(self):
        """Above a few hundred kinks the polynomials are interpolated: 1e-4 off at most."""
        n = 10_000
        scheme = Scheme(samples=(n, n), weight=1.0, model="fixed")
        kinks = np.linspace(1e-5, 3e-3, 300)
        counts = np.full(300, 12)
        together = distance_scores(scheme, counts, float(n), kinks)
        alone = np.concatenate(
            [
                distance_scores(scheme, counts[i : i + 1], float(n), kinks[i : i + 1])
                for i in range(0, 300, 23)
            ]
        )
        assert together[::23] == pytest.approx(alone, abs=1e-4)


def test_too_high_a_degree_is_refused():
    """A growth constant that asks for more than a sample can estimate is refused."""
    with pytest.raises(ParameterError, match="lower growth"):
        minimax_score(Scheme(samples=(20, 20), weight=1.0, model="fixed", growth=5.0))
