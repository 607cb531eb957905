"""Laws behind a query: thresholds, error bars, the split of the budget, the grid."""

import math
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.noise import selection_scale
from hushed.tables._grid import choose_grid
from hushed.tables._noise import add_noise, select_partitions
from hushed.tables._plan import Choice, GaussianNoise, LaplaceNoise, PartitionSelection
from hushed.tables._release import plan_query
from hushed.tables._selection import exposure_probability, tau_threshold


@lru_cache
def masses(scale):
    """Probabilities of 0, 1, ... 4000 under the discrete Laplace law, normalised by summing."""
    with mpmath.workdps(40):
        weights = [
            mpmath.exp(-k / (mpmath.mpf(scale.numerator) / scale.denominator)) for k in range(4001)
        ]
        norm = 2 * mpmath.fsum(weights) - weights[0]
        return [weight / norm for weight in weights]


def mass(x, scale):
    """Probability of an integer."""
    return masses(scale)[abs(x)]


class TestThreshold:
    @pytest.mark.slow_cases("0.001-1-scale1")
    @pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(7, 3)])
    @pytest.mark.parametrize("groups", [1, 4])
    @pytest.mark.parametrize("delta", [1e-3, 1e-9])
    def test_delta_is_exactly_what_the_law_gives(self, scale, groups, delta):
        """The threshold keeps delta, one less does not; by summing the law term by term."""
        limit = tau_threshold(scale=scale, groups=groups, delta=delta)
        for candidate, holds in ((limit, True), (limit - 1, False)):
            one = sum(mass(x, scale) for x in range(candidate - 1, candidate + 350))
            chance = 1 - (1 - one) ** groups
            assert exposure_probability(candidate, scale=scale, groups=groups) == pytest.approx(
                float(chance), rel=1e-9
            )
            assert (chance <= delta) is holds

    def test_the_limit_itself_is_enough(self, monkeypatch):
        """A noisy count equal to the threshold names the key; one less does not."""
        from hushed import noise

        monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.zeros(size, int))
        law = LaplaceNoise.of_steps(Fraction(1), Fraction(1))
        selection = PartitionSelection(noise=law, threshold=10, epsilon=1.0, delta=0.1)
        assert select_partitions(selection, [7, 8, 9], [9, 10, 11]) == [8, 9]


class TestErrors:
    @pytest.mark.slow_cases("0.5-scale3")
    @pytest.mark.parametrize(
        "scale", [Fraction(1, 50), Fraction(1, 3), Fraction(5), Fraction(99, 2)]
    )
    @pytest.mark.parametrize("beta", [0.5, 0.05, 0.001])
    def test_laplace_error_is_the_smallest_that_holds(self, scale, beta):
        """P(|X| > error) <= beta, and not for one step less; by summing the law."""
        error = int(LaplaceNoise.of_steps(scale, Fraction(1)).error(beta))
        inside = sum(mass(x, scale) for x in range(-error, error + 1))
        assert 1 - inside <= beta
        if error:
            assert 1 - (inside - 2 * mass(error, scale)) > beta

    @pytest.mark.parametrize("candidates", [2, 1001])
    def test_the_error_of_a_quantile_counts_the_grid_of_the_choice(self, candidates):
        """Ranks that so many candidates may miss at the temperature that is drawn, in 40 digits."""
        choice = Choice(epsilon=0.3, probability=Fraction(9, 10), width=36)
        drawn, _ = selection_scale(width=36.0, epsilon=0.3)
        with mpmath.workdps(40):
            missed = drawn * mpmath.log(mpmath.mpf(candidates) / mpmath.mpf(0.05)) / 10
            assert missed <= choice.error(0.05, candidates) < missed * (1 + 1e-12)


class TestSplit:
    def table(self):
        frame = pa.table({"u": [1], "x": [1.0], "g": ["a"]})
        return hs.table(frame, user="u").bound_contributions(
            max_rows_per_user=4, max_groups_per_user=2
        )

    def test_laplace_epsilons_add_up_to_the_target_exactly(self):
        """Sensitivity over scale, summed over all parts and the selection, is epsilon."""
        query = self.table().group_by("g", select_partitions=True)
        query = query.count(weight=0.3).mean("x", low=0, high=7).variance("x", low=-1, high=3)
        plan = plan_query(query.query, epsilon=0.7, delta=1e-6, noise_name="laplace")
        spent = sum(Fraction(p.measurement.l1) / p.noise.scale for p in plan.parts)
        spent += Fraction(2) / plan.selection.noise.scale
        assert spent == Fraction(7, 10)

    def test_gaussian_parts_are_one_gaussian_mechanism(self):
        """The squared ratios of sensitivity and sigma add up to that of one calibrated release."""
        query = self.table().group_by("g", keys=["a", "b", "c"]).count().count_users()
        query = query.sum("x", low=-5, high=1)
        plan = plan_query(query.query, epsilon=0.5, delta=1e-7, noise_name="gaussian")
        assert all(isinstance(p.noise, GaussianNoise) for p in plan.parts)
        ratio = math.sqrt(sum((p.noise.bound / p.noise.sigma) ** 2 for p in plan.parts))
        assert hs.privacy_loss.gaussian(ratio).delta(0.5) <= 1e-7
        assert hs.privacy_loss.gaussian(ratio * (1 + 1e-9)).delta(0.5) > 0.999e-7
        users = plan.parts[1].noise
        assert users.bound**2 >= 2 > (users.bound * (1 - 1e-12)) ** 2

    def test_too_small_an_epsilon_is_refused(self):
        """A scale beyond the sampler is refused when priced."""
        query = self.table().sum("x", low=0, high=1)
        with pytest.raises(ParameterError, match="too small"):
            query.quote(epsilon=1e-12)


class TestGrid:
    @pytest.mark.parametrize(
        ("low", "high"), [(0, 100), (-3.5, 1e6), (1e9, 1e9 + 1), (-1e-9, 2e-9)]
    )
    @pytest.mark.parametrize("rows", [1, 1000])
    @pytest.mark.parametrize("centred", [True, False])
    def test_steps_are_the_nearest_whole_number(self, low, high, rows, centred):
        """Exact rational arithmetic: half a step at most, and never beyond the largest."""
        grid = choose_grid(low=low, high=high, rows=rows, centred=centred, integers=False)
        rng = np.random.default_rng(3)
        for value in [*rng.uniform(low, high, 200), low, high, math.inf, -math.inf]:
            kept = Fraction(min(max(float(value), float(low)), float(high)))
            offset = (kept - Fraction(grid.centre)) / Fraction(2) ** grid.exponent
            assert abs(grid.steps(float(value)) - offset) <= Fraction(1, 2) + Fraction(1, 2**20)
            assert abs(grid.steps(float(value))) <= grid.most
        assert grid.most * rows <= 2**32
        assert grid.most <= 2**30
        assert grid.steps(math.nan) == 0

    def test_whole_numbers_are_exact(self):
        """Whole bounds of a whole column give steps of 1."""
        grid = choose_grid(low=-7, high=1_000_000_000, rows=100, centred=False, integers=True)
        assert (grid.step, grid.steps(999_999_999.0)) == (1.0, 999_999_999)


class TestDraws:
    def test_gaussian_noise_is_added_exactly(self, monkeypatch):
        """Without noise a sum far beyond 2**53 steps comes back as its nearest double."""
        from hushed import noise

        query = TestSplit().table().sum("x", low=0, high=1)
        plan = plan_query(query.query, epsilon=0.5, delta=1e-7, noise_name="gaussian")
        monkeypatch.setattr(noise, "discrete_gaussian", lambda scale, size: np.zeros(size, int))
        for exact in (0, 12345, -(2**61 + 12345)):
            assert add_noise(plan.parts[0], [exact]) == [float(exact)]

    def test_a_choice_prefers_the_candidate_of_the_wanted_rank(self):
        """With a huge epsilon: the candidate that the row of the wanted rank is nearest to."""
        choice = Choice(epsilon=1e6, probability=Fraction(1, 2), width=1)
        part = type("Part", (), {"noise": choice})()
        assert add_noise(part, [[4, 3, 4], [3, 4, 2, 0], [0, 0, 9, 1]]) == [1, 1, 2]
        assert {add_noise(part, [[5, 0, 5]])[0] for _ in range(60)} == {0, 1, 2}  # all between


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("small", "large"), [(5e-324, 1e300), (1e-310, 1.0), (1e-70, 1.0)])
@pytest.mark.parametrize("searched", [False, True])
def test_a_share_next_to_nothing_is_refused_in_words(noise, small, large, searched):
    """Its root would be 0, or of few digits: less noise would be drawn than is promised."""
    table = hs.table(pa.table({"cost": [1.0, 2.0]}))
    bounds = {"low": 0, "high": "search" if searched else 5}
    query = table.count(weight=large).sum("cost", **bounds, weight=small)
    delta = 1e-6 if noise == "gaussian" else 0.0
    with pytest.raises(ParameterError, match="for one part of the query is too small"):
        query.quote(epsilon=1.0, delta=delta, noise=noise)
