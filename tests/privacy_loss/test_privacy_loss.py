"""Privacy profiles against integrals, exact sums, simulation and a second library."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from hushed import privacy_loss
from hushed.errors import ParameterError
from hushed.privacy_loss._composed import ComposedPLD
from hushed.privacy_loss._composition import window
from hushed.privacy_loss._families import BoundedRangePLD, LaplacePLD
from hushed.privacy_loss._gaussian import GaussianPLD

CURVES = {
    "laplace": lambda: privacy_loss.laplace(0.7),
    "gaussian": lambda: privacy_loss.gaussian(0.7),
    "bounded range": lambda: privacy_loss.bounded_range(0.7),
    "randomised response": lambda: privacy_loss.randomised_response(0.7, 4),
    "discrete laplace": lambda: privacy_loss.discrete_laplace(2.5, 3),
    "discrete gaussian": lambda: privacy_loss.discrete_gaussian(3.0, 2),
    "pair": lambda: privacy_loss.pair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
}
WITH_INFINITE = {
    **CURVES,
    "approximate": lambda: privacy_loss.approximate(0.7, 1e-3),
    "pair with a hole": lambda: privacy_loss.pair([0.5, 0.3, 0.2], [0.3, 0.7, 0.0]),
}


def hockey_stick(p, q, epsilon, points):
    """Integral of max(p - exp(epsilon) q, 0), piece by piece."""
    total = 0.0
    for a, b in itertools.pairwise(points):
        total += integrate.quad(
            lambda y: max(p(y) - math.exp(epsilon) * q(y), 0.0), a, b, epsabs=1e-13, limit=400
        )[0]
    return total


class TestDelta:
    @pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.3, 0.65, 0.8, 2.0])
    def test_laplace_equals_the_integral(self, epsilon):
        """Delta of Laplace noise is the integral of the hockey stick of the two densities."""
        cut = (0.7 - epsilon) / 1.4  # where the density ratio crosses
        points = [-40.0, 0.0, min(max(cut, 0.0), 1.0), 1.0, 40.0]
        p, q = stats.laplace(0, 1 / 0.7).pdf, stats.laplace(1, 1 / 0.7).pdf
        assert privacy_loss.laplace(0.7).delta(epsilon) == pytest.approx(
            hockey_stick(p, q, epsilon, points), abs=1e-11
        )

    @pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.3, 2.0])
    def test_gaussian_equals_the_integral(self, epsilon):
        """Delta of Gaussian noise is the integral of the hockey stick of the two densities."""
        cut = 0.5 - epsilon / 0.49
        points = [cut - 20, cut - 4, cut, cut + 20]
        p, q = stats.norm(0, 1 / 0.7).pdf, stats.norm(1, 1 / 0.7).pdf
        assert privacy_loss.gaussian(0.7).delta(epsilon) == pytest.approx(
            hockey_stick(p, q, epsilon, points), abs=1e-12
        )

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9])
    @pytest.mark.parametrize("law", ["laplace", "gaussian"])
    def test_discrete_noise_equals_the_sum(self, law, epsilon):
        """Delta of noise on whole numbers is the sum over the outcomes, with exact shift."""
        y = np.arange(-400, 401)
        weight = -np.abs(y) / 2.5 if law == "laplace" else -(y**2) / 18.0
        shifted = -np.abs(y - 3) / 2.5 if law == "laplace" else -((y - 3) ** 2) / 18.0
        p, q = np.exp(weight), np.exp(shifted)
        p, q = p / p.sum(), q / q.sum()
        curve = (
            privacy_loss.discrete_laplace(2.5, 3)
            if law == "laplace"
            else privacy_loss.discrete_gaussian(3.0, 3)
        )
        wanted = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert curve.delta(epsilon) == pytest.approx(wanted, rel=1e-11)

    @pytest.mark.parametrize("epsilon", [-0.6, 0.0, 0.5, 1.1])
    def test_bounded_range_is_the_worst_two_outcome_mechanism(self, epsilon):
        """The bounded-range curve is the largest delta over all two-outcome mechanisms."""
        bound = 1.2
        t = np.linspace(1e-9, bound - 1e-9, 200_001)
        p = (np.exp(bound) - np.exp(t)) / math.expm1(bound)
        high = p * np.maximum(1 - np.exp(epsilon - t), 0)
        low = (1 - p) * np.maximum(1 - np.exp(epsilon - t + bound), 0)
        assert privacy_loss.bounded_range(bound).delta(epsilon) == pytest.approx(
            (high + low).max(), rel=1e-8
        )

    def test_exponential_mechanism_stays_below_bounded_range(self):
        """No exponential mechanism on random scores exceeds the bounded-range curve."""
        rng = np.random.default_rng(5)
        curve = privacy_loss.bounded_range(1.0)
        for _ in range(200):
            scores = rng.uniform(0, 4, size=6)
            other = scores + rng.uniform(0, 1, size=6)
            p, q = np.exp(scores), np.exp(other)
            p, q = p / p.sum(), q / q.sum()
            for epsilon in (0.0, 0.2, 0.6):
                assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= curve.delta(epsilon)

    def test_pair_takes_the_worse_direction(self):
        """A pair's delta is the larger of its two directions at every epsilon."""
        p, q = np.array([0.6, 0.25, 0.1, 0.05]), np.array([0.3, 0.3, 0.1, 0.3])
        curve = privacy_loss.pair(p, q)
        for epsilon in np.linspace(-2, 3, 41):
            there = np.maximum(p - math.exp(epsilon) * q, 0).sum()
            back = np.maximum(q - math.exp(epsilon) * p, 0).sum()
            assert curve.delta(epsilon) == pytest.approx(max(there, back), abs=1e-12)
            assert privacy_loss.one_sided(p, q).delta(epsilon) == pytest.approx(there, abs=1e-14)

    @pytest.mark.parametrize("name", WITH_INFINITE)
    def test_epsilon_inverts_delta(self, name):
        """epsilon(delta(e)) is e again, never below by more than round-off."""
        curve = WITH_INFINITE[name]()
        for epsilon in (0.01, 0.2, 0.45):
            assert curve.epsilon(curve.delta(epsilon)) == pytest.approx(epsilon, rel=1e-9)

    def test_simulated_losses_agree(self):
        """Delta and the distribution function match 200,000 simulated Laplace losses."""
        rng = np.random.default_rng(11)
        y = rng.laplace(0, 1 / 0.7, 200_000)
        losses = (np.abs(y - 1) - np.abs(y)) * 0.7
        curve = privacy_loss.laplace(0.7)
        hits = np.maximum(1 - np.exp(0.2 - losses), 0)
        # Five standard errors: a false alarm once in two million runs; the seed is fixed.
        assert abs(hits.mean() - curve.delta(0.2)) < 5 * hits.std() / math.sqrt(200_000)
        assert abs((losses <= 0.2).mean() - (1 - curve.tail(0.2))) < 5 * 0.5 / math.sqrt(200_000)


class TestMoments:
    @pytest.mark.parametrize("order", [1, 2, 3, 7])
    def test_laplace_moments_are_integrals(self, order):
        """Moments of the Laplace loss equal the integral over the noise."""
        density = stats.laplace(0, 1 / 0.7).pdf
        value = sum(
            integrate.quad(
                lambda y: ((abs(y - 1) - abs(y)) * 0.7) ** order * density(y), a, b, epsabs=1e-13
            )[0]
            for a, b in ((-60, 0), (0, 1), (1, 60))
        )
        assert privacy_loss.laplace(0.7).moment(order) == pytest.approx(value, abs=1e-11)

    @pytest.mark.parametrize("name", CURVES)
    def test_mgf_and_moments_agree_by_difference(self, name):
        """The first two moments are the slopes of the moment generating function at 0."""
        curve = CURVES[name]()
        step = 1e-3
        up, down = (math.exp(curve.log_mgf(order)) for order in (step, -step))
        assert (up - down) / (2 * step) == pytest.approx(curve.moment(1), abs=2e-6)
        assert (up - 2 + down) / step**2 == pytest.approx(curve.moment(2), abs=2e-5)

    @pytest.mark.parametrize("epsilon0", [1e-6, 1e-3, 0.3, 1.0, 3.0, 50.0])
    @pytest.mark.parametrize("order", [1.0 + 1e-6, 1.5, 2.0, 30.0])
    def test_renyi_of_laplace(self, epsilon0, order):
        """The Renyi curve equals Mironov's formula evaluated in 80 digits."""
        with mpmath.workdps(80):
            a, e = mpmath.mpf(order), mpmath.mpf(epsilon0)
            value = mpmath.log(
                a / (2 * a - 1) * mpmath.exp((a - 1) * e)
                + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)
            ) / (a - 1)
        assert privacy_loss.laplace(epsilon0).renyi(order) == pytest.approx(float(value), rel=1e-7)

    @pytest.mark.parametrize("bound", [1e-6, 0.4, 5.0])
    def test_renyi_of_bounded_range(self, bound):
        """The moment generating function is the integral of the stated density."""
        with mpmath.workdps(40):
            b = mpmath.mpf(bound)
            value = mpmath.quad(
                lambda x: mpmath.exp(2 * x) * mpmath.exp(x / 2) / (4 * mpmath.sinh(b / 2)), [-b, b]
            )
            wanted = mpmath.log(value) / 2
        assert privacy_loss.bounded_range(bound).renyi(3.0) == pytest.approx(
            float(wanted), rel=1e-9
        )

    @pytest.mark.parametrize("epsilon", [1e-15, 1e-12, 1e-8, 1e-3, 1.0, 30.0])
    @pytest.mark.parametrize("order", [1.0, 1.0001, 2.0, 1e4])
    def test_renyi_of_a_pure_promise_is_rounded_up(self, epsilon, order):
        """Never below the divergence of randomised response in 80 digits, however small."""
        with mpmath.workdps(80):
            e, a = mpmath.mpf(epsilon), mpmath.mpf(order)
            p = 1 / (1 + mpmath.exp(-e))
            powers = p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)
            value = (2 * p - 1) * e if order == 1 else mpmath.log(powers) / (a - 1)
        found = privacy_loss.approximate(epsilon, 0.0).renyi(order)
        assert value <= found <= value * (1 + 1e-12) + 1e-14 * epsilon

    @pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 1e-3])
    @pytest.mark.parametrize("law", ["approximate", "laplace"])
    def test_zcdp_of_small_losses_is_tight(self, epsilon, law):
        """The largest loss counts at orders beyond its inverse only: rho is about its square."""
        curve = {
            "approximate": lambda: privacy_loss.approximate(epsilon, 0.0),
            "laplace": lambda: privacy_loss.laplace(epsilon),
        }[law]()
        orders = 1 + np.geomspace(1e-4, 1e4 / epsilon, 300)
        largest = max(curve.renyi(a) / a for a in orders)
        assert largest <= curve.zcdp() <= 1.01 * largest

    def test_renyi_of_composition_adds(self):
        """Renyi divergences of independent releases add."""
        both = privacy_loss.compose([privacy_loss.laplace(0.3), privacy_loss.gaussian(0.4)])
        parts = privacy_loss.laplace(0.3).renyi(4.0) + privacy_loss.gaussian(0.4).renyi(4.0)
        assert both.renyi(4.0) == pytest.approx(parts, rel=1e-12)

    @pytest.mark.parametrize("name", CURVES)
    def test_zcdp_covers_every_order(self, name):
        """Rho times alpha is at least the Renyi divergence, and some order almost reaches it."""
        curve = CURVES[name]()
        rho = curve.zcdp()
        orders = [1 + 10.0**x for x in np.linspace(-6, 4, 401)]
        ratios = [curve.renyi(a) / a for a in orders]
        assert max(ratios) <= rho * (1 + 1e-12)
        assert max(ratios) > 0.98 * rho

    def test_composed_moments(self):
        """Mean and variance of a composition are sums; the third central moment too."""
        single = privacy_loss.laplace(0.5)
        many = single.compose(7)
        mean = single.moment(1)
        third = single.moment(3) - 3 * mean * single.moment(2) + 2 * mean**3
        total = many.moment(1)
        assert total == pytest.approx(7 * mean, rel=1e-12)
        assert many.moment(3) - 3 * total * many.moment(2) + 2 * total**3 == pytest.approx(
            7 * third, rel=1e-9
        )


class TestTradeoff:
    @pytest.mark.parametrize("rate", [1e-6, 0.01, 0.2, 0.5, 0.9])
    def test_gaussian(self, rate):
        """The best attacker's error is Phi(Phi^-1(1 - rate) - ratio) for Gaussian noise."""
        wanted = stats.norm.cdf(stats.norm.isf(rate) - 0.7)
        found = privacy_loss.gaussian(0.7).tradeoff(rate)
        assert found <= wanted + 1e-15
        assert found == pytest.approx(wanted, abs=1e-9)

    @pytest.mark.parametrize("rate", [0.001, 0.1, 0.4, 0.8])
    def test_neyman_pearson_on_a_finite_pair(self, rate):
        """A finite pair's trade-off is the randomised likelihood-ratio test's."""
        p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
        power, left = 0.0, rate
        for i in np.argsort(-p / q):
            share = min(1.0, left / q[i])
            power, left = power + share * p[i], left - share * q[i]
        assert privacy_loss.pair(p, q).tradeoff(rate) == pytest.approx(1 - power, abs=1e-12)

    def test_composed(self):
        """The composed trade-off is a lower bound of the exact Gaussian one, and close."""
        grid = privacy_loss.PrivacyProfile(ComposedPLD(((GaussianPLD(0.2), 4),)))
        wanted = stats.norm.cdf(stats.norm.isf(0.05) - 0.4)
        assert wanted - 1e-4 < grid.tradeoff(0.05) <= wanted

    @pytest.mark.parametrize("name", CURVES)
    def test_advantage_is_reached_by_some_test(self, name):
        """Advantage is the largest gap 1 - rate - error over all tests."""
        curve = CURVES[name]()
        gaps = [1 - a - curve.tradeoff(a) for a in np.linspace(0.005, 0.995, 199)]
        assert max(gaps) <= curve.advantage() + 1e-12
        assert max(gaps) == pytest.approx(curve.advantage(), abs=5e-3)


def inside(bracket, exact, slack=1e-13):
    """The exact value lies in the bracket."""
    return bracket.low * (1 - slack) <= exact <= bracket.high * (1 + slack)


class TestComposition:
    @pytest.mark.slow_cases("0.05-4000", "1.0-4000")
    @pytest.mark.parametrize("count", [1, 2, 30, 4000])
    @pytest.mark.parametrize("ratio", [1e-6, 0.05, 1.0])
    def test_gaussian_grid_brackets_the_closed_form(self, count, ratio):
        """The grid, forced on Gaussians, brackets the exact delta of the merged Gaussian."""
        curve = privacy_loss.PrivacyProfile(ComposedPLD(((GaussianPLD(ratio), count),)))
        total = ratio * math.sqrt(count)
        for level in (0.0, 0.5, 2.0, 6.0):
            epsilon = total * level + total**2 / 2
            exact = float(privacy_loss.gaussian_delta(total, epsilon))
            bracket = curve.delta_bracket(epsilon)
            assert inside(bracket, exact)
            assert bracket.relative_gap < 5e-3

    @pytest.mark.parametrize("epsilon0", [1e-6, 0.1, 1.0, 20.0])
    @pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
    def test_two_laplace_releases(self, epsilon0, share):
        """Two Laplace releases: the grid brackets the integral of one curve over the other."""
        level = 2 * epsilon0 * share

        def inner(x):
            return 1 - mpmath.exp(-(epsilon0 - x) / 2) if x > -epsilon0 else 1 - mpmath.exp(x)

        def one(x):
            return inner(x) if x < epsilon0 else mpmath.mpf(0)

        with mpmath.workdps(30):
            b = mpmath.mpf(epsilon0)
            middle = mpmath.quad(
                lambda x: mpmath.exp((x - b) / 2) / 4 * one(level - x),
                sorted({-b, b, min(max(level - b, -b), b), min(max(level + b, -b), b)}),
            )
            exact = one(level - b) / 2 + mpmath.exp(-b) / 2 * one(level + b) + middle
        assert inside(privacy_loss.laplace(epsilon0).compose(2).delta_bracket(level), float(exact))

    @pytest.mark.slow_cases("1000-0.05", "40-0.3")
    @pytest.mark.parametrize(("count", "epsilon0"), [(3, 2.0), (40, 0.3), (1000, 0.05)])
    def test_randomised_response_is_binomial(self, count, epsilon0):
        """k-fold randomised response: the bracket holds the exact binomial sum, at any delta."""
        curve = privacy_loss.randomised_response(epsilon0).compose(count)
        with mpmath.workdps(60):
            p = mpmath.exp(epsilon0) / (1 + mpmath.exp(epsilon0))
            for share in (0.0, 0.2, 0.9):
                level = share * count * epsilon0
                exact = mpmath.fsum(
                    mpmath.binomial(count, j)
                    * p**j
                    * (1 - p) ** (count - j)
                    * max(1 - mpmath.exp(level - (2 * j - count) * mpmath.mpf(epsilon0)), 0)
                    for j in range(count + 1)
                )
                bracket = curve.delta_bracket(level)
                assert mpmath.mpf(bracket.low) * (1 - mpmath.mpf(10) ** -12) <= exact
                assert exact <= mpmath.mpf(bracket.high) * (1 + mpmath.mpf(10) ** -12)
                assert bracket.relative_gap < 0.05

    def test_exact_rational_pair(self):
        """Three releases of a rational pair: the bracket holds the exact fraction."""
        p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
        q = [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]
        exact = Fraction(0)
        for a in range(3):
            for b in range(3):
                for c in range(3):
                    exact += max(p[a] * p[b] * p[c] - 2 * q[a] * q[b] * q[c], 0)
        curve = privacy_loss.pair([float(x) for x in p], [float(x) for x in q]).compose(3)
        assert inside(curve.delta_bracket(math.log(2)), float(exact))

    def test_published_truths(self):
        """Gaussian sigma 20 and Laplace scale 10 at delta = 1e-6, to the digits known."""
        single = privacy_loss.gaussian(sigma=20, sensitivity=1)
        for count, truth in ((1, 0.189213), (100, 2.254085), (1000, 8.306225)):
            assert single.compose(count).epsilon(1e-6) == pytest.approx(truth, abs=1e-6)
        assert single.compose(1000).epsilon(1e-5) == pytest.approx(7.51127590, abs=1e-8)
        laplace = privacy_loss.laplace(0.1)
        assert laplace.epsilon(1e-6) == pytest.approx(0.099998, abs=1e-9)
        for count, low, high in ((100, 4.69266, 4.69267), (1000, 18.9498, 18.9508)):
            bracket = laplace.compose(count).epsilon_bracket(1e-6)
            assert bracket.low <= high
            assert bracket.high >= low
            assert bracket.relative_gap <= 2e-4
        assert laplace.compose(500).epsilon(1e-5) == pytest.approx(11.191, abs=1e-3)

    @pytest.mark.slow
    def test_second_library(self):
        """dp-accounting's pessimistic and optimistic curves overlap the bracket."""
        from dp_accounting.pld import privacy_loss_distribution as peer

        curves = [privacy_loss.laplace(0.5), privacy_loss.discrete_laplace(2.0, 3)]
        total = privacy_loss.compose(curves * 15)
        pessimistic = peer.from_laplace_mechanism(2.0, value_discretization_interval=1e-3)
        other = peer.from_discrete_laplace_mechanism(
            0.5, sensitivity=3, value_discretization_interval=1e-3
        )
        high = pessimistic.self_compose(15).compose(other.self_compose(15))
        for level in (2.0, 8.0, 14.0):
            bracket = total.delta_bracket(level)
            assert bracket.low <= high.get_delta_for_epsilon(level)
            assert high.get_delta_for_epsilon(level) == pytest.approx(bracket.high, rel=5e-3)

    def test_tiny_delta(self):
        """Delta of 1e-150 is bracketed to a percent: nothing is lost to round-off."""
        curve = privacy_loss.PrivacyProfile(ComposedPLD(((GaussianPLD(0.1), 100),)))
        bracket = curve.epsilon_bracket(1e-150)
        exact = float(
            mpmath.findroot(
                lambda e: mpmath.log(privacy_loss.gaussian_delta(1.0, e)) + 150 * mpmath.log(10),
                26.0,
            )
        )
        assert inside(bracket, exact)
        assert bracket.relative_gap < 0.01

    def test_mixed_scales(self):
        """One strong release and a thousand weak ones: bracketed by the strong one alone."""
        weak = [privacy_loss.laplace(0.001)] * 1000
        bracket = privacy_loss.compose([privacy_loss.laplace(50.0), *weak]).epsilon_bracket(1e-6)
        assert 50.0 < bracket.low <= bracket.high < 51.0
        assert bracket.relative_gap < 1e-3

    def test_infinite_part_adds(self):
        """Composed bare promises keep 1 - (1 - delta)^k as the delta no epsilon removes."""
        curve = privacy_loss.approximate(0.1, 1e-3).compose(50)
        assert curve.infinite == pytest.approx(1 - 0.999**50, rel=1e-12)
        assert curve.epsilon(0.04) == math.inf
        assert curve.delta(1e9) == curve.infinite

    @pytest.mark.parametrize("law", [LaplacePLD, BoundedRangePLD, GaussianPLD])
    @pytest.mark.parametrize("bound", [1e-6, 0.3, 50.0])
    @pytest.mark.parametrize("step", [0.01, 0.37, 3.0])
    def test_bins_keep_the_mass_under_both_laws(self, law, bound, step):
        """Bins sum to 1 under P, and to 1 under Q when the loss is taken back."""
        family = law(bound)
        reach = bound + (bound**2 / 2 + 40 * bound if law is GaussianPLD else 0)
        width = step * bound
        first = math.floor(-reach / width) - 2
        mass, rise = family.bins(first, 4 - 2 * first, width)
        assert math.fsum(mass) == pytest.approx(1.0, abs=1e-12)
        starts = (first + np.arange(mass.size)) * width
        if bound < 10:
            under_q = math.fsum((mass - rise) * np.exp(-starts))
            assert under_q == pytest.approx(1.0, abs=1e-12)

    def test_tail_of_a_sum(self):
        """The composed tail is an upper bound of the exact Gaussian tail, and close."""
        grid = privacy_loss.PrivacyProfile(ComposedPLD(((GaussianPLD(0.2), 25),)))
        for level in (0.0, 0.5, 1.5):
            exact = stats.norm.sf(level, loc=0.5, scale=1.0)
            assert exact <= grid.tail(level) <= exact + 0.01


class TestWindow:
    @pytest.mark.parametrize("size", [256, 1024, 8192])
    @pytest.mark.parametrize(("count", "epsilon0"), [(3, 1.0), (9, 0.7), (60, 0.11)])
    @pytest.mark.parametrize("tilt", [0.0, 1.3])
    def test_coarse_grids_stay_valid_around_atoms(self, size, count, epsilon0, tilt):
        """However coarse the grid, the bounds hold the exact binomial sum, at and near atoms."""
        law = privacy_loss.randomised_response(epsilon0).family
        found = window(((law, count),), tilt, size)
        p = 1 / (1 + math.exp(-epsilon0))
        masses = [math.comb(count, j) * p**j * (1 - p) ** (count - j) for j in range(count + 1)]
        for atom in range(count // 2, count + 1):
            for shift in (-0.4, -0.01, 0.0, 0.003, 0.3):
                level = (2 * atom - count + shift) * epsilon0
                exact = math.fsum(
                    m * max(-math.expm1(level - (2 * j - count) * epsilon0), 0)
                    for j, m in enumerate(masses)
                )
                low, high = found.delta(level)
                assert low <= exact * (1 + 1e-12)
                assert exact <= high * (1 + 1e-12)

    def test_a_split_of_width_h_is_dominated_by_a_gaussian_pair(self):
        """Two outcomes whose losses differ by h: the Gaussian ratio needed is h sqrt(pi/8)."""
        for h in (1e-4, 0.1, 1.0, 8.0):
            odds = np.linspace(-30, 30, 20_001)
            p, q = 1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(h - odds))
            needed = np.where(
                odds < h / 2,
                stats.norm.ppf(p) - stats.norm.ppf(q),
                stats.norm.isf(1 / (1 + np.exp(odds - h))) * -1
                + stats.norm.isf(1 / (1 + np.exp(odds))),
            )
            assert np.nanmax(needed) <= h * math.sqrt(math.pi / 8) * (1 + 1e-9)
            assert np.nanmax(needed) > 0.9 * h * math.sqrt(math.pi / 8) or h > 1

    def test_round_off_is_inside_the_bounds(self):
        """Without a tilt, deltas far below round-off still lie in the stated bounds."""
        found = window(((GaussianPLD(0.05), 400),), 0.0, 8192)
        tiny = 0
        for level in np.linspace(0.5, 12.0, 116):
            exact = float(privacy_loss.gaussian_delta(1.0, level))
            low, high = found.delta(level)
            assert low <= exact <= high or math.isinf(high)
            tiny += exact < 1e-18
        assert tiny > 10


class TestEdges:
    @pytest.mark.parametrize("make", [privacy_loss.laplace, privacy_loss.bounded_range])
    def test_nothing_and_everything(self, make):
        """Zero noise loses everything, infinite noise nothing; both are total functions."""
        nothing, everything = make(0.0), make(math.inf)
        assert nothing.delta(0.0) == 0.0
        assert nothing.epsilon(0.0) == 0.0
        assert nothing.compose(5).epsilon(1e-9) == 0.0
        assert everything.delta(100.0) == 1.0
        assert everything.epsilon(0.5) == math.inf
        assert everything.epsilon(1.0) == 0.0
        assert privacy_loss.compose([make(1.0), everything]).delta(3.0) == 1.0

    @pytest.mark.parametrize("name", WITH_INFINITE)
    def test_edges_of_every_curve(self, name):
        """Delta = 0, delta = 1, infinite epsilon and no release are defined for every curve."""
        curve = WITH_INFINITE[name]()
        for some in (curve, curve.compose(3)):
            assert some.epsilon(1.0) == 0.0
            assert some.epsilon(0.0) == some.supremum
            assert some.delta(math.inf) == some.infinite
            assert some.delta(-math.inf) == 1.0
            assert some.tradeoff(1.0) == 0.0
            assert some.tradeoff(0.0) == pytest.approx(1 - some.infinite, abs=1e-12)
        assert curve.compose(0).delta(0.0) == 0.0

    @pytest.mark.slow_cases("100000-0.001", "100000-1.0", "100000-1e-06", "100000-50.0")
    @pytest.mark.parametrize("epsilon0", [1e-6, 1e-3, 1.0, 50.0])
    @pytest.mark.parametrize("count", [2, 1000, 100_000])
    def test_never_nan_from_tiny_to_huge(self, epsilon0, count):
        """From 1e-6 to 50 and up to 1e5 releases, brackets are ordered finite numbers."""
        for curve in (privacy_loss.laplace(epsilon0), privacy_loss.randomised_response(epsilon0)):
            bracket = curve.compose(count).epsilon_bracket(1e-6)
            assert 0 <= bracket.low <= bracket.high <= count * epsilon0 * (1 + 1e-12)
            assert bracket.relative_gap < 2e-3 or bracket.high < 1e-5

    @pytest.mark.parametrize(
        "call",
        [
            lambda: privacy_loss.laplace(-1.0),
            lambda: privacy_loss.laplace(math.nan),
            privacy_loss.gaussian,
            lambda: privacy_loss.gaussian(1.0, sigma=2.0),
            lambda: privacy_loss.gaussian(sigma=0.0),
            lambda: privacy_loss.laplace(1.0).delta(math.nan),
            lambda: privacy_loss.laplace(1.0).epsilon(1.5),
            lambda: privacy_loss.laplace(1.0).epsilon(math.nan),
            lambda: privacy_loss.laplace(1.0).compose(-1),
            lambda: privacy_loss.laplace(1.0).renyi(0.5),
            lambda: privacy_loss.laplace(1.0).moment(-1),
            lambda: privacy_loss.laplace(1.0).tradeoff(2.0),
            lambda: privacy_loss.randomised_response(1.0, 1),
            lambda: privacy_loss.discrete_gaussian(1e6),
            lambda: privacy_loss.discrete_laplace(1.0, -1),
            lambda: privacy_loss.pair([0.5, 0.5], [1.0]),
            lambda: privacy_loss.pair([0.5, 0.6], [0.5, 0.5]),
            lambda: privacy_loss.pair([math.nan, 1.0], [0.5, 0.5]),
            lambda: privacy_loss.approximate(1.0, 2.0),
        ],
    )
    def test_bad_input_is_refused(self, call):
        """Numbers out of range, NaN included, are refused with a ParameterError."""
        with pytest.raises(ParameterError):
            call()
