"""What a search finds keeps what it was asked to keep: the end that is returned is the safe one."""

import math
from fractions import Fraction
from tempfile import TemporaryDirectory

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hushed as hs
from hushed import privacy_loss, risk
from hushed.accounting import optimal_epsilon
from hushed.accounting._filters import privacy_filters
from hushed.accounting._pure import pure_gaussian
from hushed.cost import CostModel, Need, plan
from hushed.tables._selection import exposure_probability, tau_threshold

LEVELS = st.floats(1e-4, 20)
SLACKS = st.floats(-14, -0.5).map(lambda power: 10**power)
CURVES = {
    "laplace": privacy_loss.laplace,
    "gaussian": privacy_loss.gaussian,
    "bounded range": privacy_loss.bounded_range,
}
METHODS = ["adaptive", "basic", "zcdp", "renyi", "gaussian", "pld"]


def ratio_delta(ratio, epsilon):
    """Delta of a Gaussian pair, in 60 digits: Balle and Wang, Theorem 8."""
    with mpmath.workdps(60):
        r, e = mpmath.mpf(ratio), mpmath.mpf(epsilon)
        return mpmath.ncdf(r / 2 - e / r) - mpmath.exp(e) * mpmath.ncdf(-r / 2 - e / r)


class TestLevels:
    @pytest.mark.slow_cases("gaussian")
    @pytest.mark.parametrize("name", CURVES)
    @settings(max_examples=15)
    @given(level=LEVELS, delta=SLACKS)
    def test_a_curve_keeps_the_delta_at_the_epsilon_it_names(self, name, level, delta):
        """The curve is at most delta at that epsilon."""
        curve = CURVES[name](level)
        assert curve.delta(curve.epsilon(delta)) <= delta

    @pytest.mark.slow
    @settings(max_examples=40)
    @given(LEVELS, SLACKS)
    def test_a_full_gaussian_filter_keeps_its_limit(self, epsilon, delta):
        """One release of the whole capacity has at most the delta that is set aside for it."""
        (found,) = privacy_filters(epsilon, delta, method="gaussian")
        if found.capacity > 1e-290:
            spent = ratio_delta(mpmath.sqrt(Fraction(found.capacity)), epsilon)
            assert spent <= Fraction(repr(found.conversion))
            assert found.epsilon(found.capacity) <= epsilon * (1 + 1e-9)

    @pytest.mark.slow
    @settings(max_examples=40)
    @given(st.floats(1e-3, 600))
    def test_the_gaussian_stand_in_is_no_better_than_the_promise(self, epsilon):
        """Its trade-off passes below the kink of randomised response, by less than a hair."""
        ratio = pure_gaussian(epsilon)
        with mpmath.workdps(400):
            kink = 1 / (1 + mpmath.exp(Fraction(repr(epsilon))))
            assert mpmath.ncdf(-mpmath.mpf(ratio) / 2) <= kink
            closer = mpmath.ncdf(-mpmath.mpf(ratio) * (1 - mpmath.mpf("1e-9")) / 2)
            assert closer > kink or epsilon < 0.1

    @settings(max_examples=40)
    @given(st.floats(1e-3, 3), st.integers(1, 40), SLACKS)
    def test_optimal_composition_keeps_the_joint_slack(self, epsilon, count, slack):
        """Summed in 60 digits over the outcomes of randomised response, delta is at most that."""
        found = optimal_epsilon(epsilon, 0.0, count, slack)
        with mpmath.workdps(60):
            e, level = mpmath.mpf(Fraction(repr(epsilon))), mpmath.mpf(found)
            top = mpmath.exp(e) / (1 + mpmath.exp(e))
            delta = mpmath.fsum(
                mpmath.binomial(count, hits)
                * top**hits
                * (1 - top) ** (count - hits)
                * max(0, 1 - mpmath.exp(level - (2 * hits - count) * e))
                for hits in range(count + 1)
            )
        assert delta <= Fraction(repr(slack))

    @settings(max_examples=25)
    @given(st.floats(0, 1), st.floats(1e-3, 20), st.integers(1, 4))
    def test_a_published_confidence_is_reached(self, confidence, epsilon0, dims):
        """At the level that is found, and not at the double before it."""
        found = risk.published_epsilon(confidence, epsilon0, dims)
        assert risk.published_confidence(found, epsilon0, dims) >= confidence
        if found:
            before = math.nextafter(found, 0.0)
            assert risk.published_confidence(before, epsilon0, dims) < confidence


class TestCounts:
    @settings(max_examples=40)
    @given(st.fractions("1/20", 500), st.integers(1, 50), SLACKS)
    def test_a_threshold_is_the_first_that_keeps_delta(self, scale, groups, delta):
        """One lower would name a key of one user with a larger chance than delta."""
        found = tau_threshold(scale=scale, groups=groups, delta=delta)
        assert exposure_probability(found, scale=scale, groups=groups) <= Fraction(repr(delta))
        if found > 1:
            assert exposure_probability(found - 1, scale=scale, groups=groups) > delta * (1 - 1e-15)


class TestMoney:
    @pytest.mark.parametrize("budget", [38_000, 40_000, 60_000, 74_000])
    def test_levels_at_both_ends_fit_the_budget(self, budget):
        """The cost of either end is within the budget."""
        model = CostModel(per_person=5500, people=100)
        found = model.levels_within(budget, 0.5, basis="published")
        for level in (found.low, found.high):
            assert model.cost_at_risk(level, 0.5, basis="published") <= budget

    @pytest.mark.parametrize("budget", [1_000, 7_000, 40_000])
    def test_errors_that_are_eased_as_advised_fit(self, budget):
        """The factor that a remedy names is large enough."""
        model, needs = CostModel(per_person=5500, people=100), [Need(error=0.5), Need(error=1.0)]
        found = plan(needs, budget=budget, model=model)
        assert not found.feasible
        (advice,) = (each for each in found.remedies if each.startswith("tolerate errors "))
        factor = float(advice.split()[2])
        eased = [Need(error=need.error * factor) for need in needs]
        assert plan(eased, budget=budget, model=model).feasible


class TestBudgets:
    @pytest.mark.parametrize("method", METHODS)
    def test_what_is_said_to_be_left_can_be_charged(self, method):
        """After charges of several sizes, the rest is accepted as a whole."""
        limit = hs.Guarantee(epsilon=1.7, delta=1e-6)
        with TemporaryDirectory() as folder, hs.Ledger(f"sqlite:///{folder}/l.db") as ledger:
            ledger.open_budget("b", limit, method=method)
            for level in (0.05, 0.1, 1e-5):
                ledger.charge("b", hs.Guarantee(epsilon=level))
                left = ledger.balance("b").epsilon_left
                assert left > 0
            ledger.charge("b", hs.Guarantee(epsilon=left))
