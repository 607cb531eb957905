"""Guarantees at the ends of the doubles, where digits cancel, squares vanish, and deltas meet."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import hushed as hs
from hushed import accounting
from hushed._ground.numeric import float_above
from hushed.accounting._filters import privacy_filters
from hushed.accounting._theorems import renyi_conversion
from hushed.errors import ParameterError

CURVES = hs.privacy_loss


def first_order(ratio, share):
    """Delta of Gaussian noise at ``epsilon = share * ratio``, up to a factor ``1 + ratio``."""
    with mpmath.workdps(60):
        s = mpmath.mpf(share)
        return mpmath.mpf(ratio) * (mpmath.npdf(s) - s * mpmath.ncdf(-s))


@pytest.mark.parametrize("ratio", [1e-20, 1e-58, 1e-62, 1e-70, 1e-100, 1e-200, 1e-290])
def test_a_tiny_gaussian_loss_is_not_lost_in_cancellation(ratio):
    """The curve of a tiny ratio is what the first term of its series is."""
    for share in (0.0, 0.5, 3.0):
        true = first_order(ratio, share)
        found = CURVES.gaussian(ratio).delta(share * ratio)
        assert true * (1 - 1e-12) <= found <= true * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-300, 1e-100), (1e-90, 1e-80), (5e-324, 1e-300)])
def test_noise_for_a_tiny_delta_is_as_large_as_it_must_be(epsilon, delta):
    """Sigma gives at most the delta asked for, at the smallest levels, too."""
    unit = hs.proven_sensitivity(1.0, "l2", argument="test")
    noise = hs.Gaussian(unit, epsilon=epsilon, delta=delta)
    ratio = 1 / noise.scale
    assert first_order(ratio, epsilon / ratio) <= delta * (1 + 1e-12)


@pytest.mark.slow_cases("1e-180")
@pytest.mark.parametrize("level", [1e-100, 1e-160, 1e-170, 1e-180])
def test_a_tiny_choice_still_tells_something(level):
    """Advantage and rho of a tiny level are above 0: a square below all doubles is not nothing."""
    curve = CURVES.bounded_range(level)
    assert curve.advantage() >= Decimal(repr(level)) / 4 * (1 - Decimal("1e-9"))
    assert CURVES.laplace(level).advantage() > 0
    assert CURVES.randomised_response(level).advantage() > 0
    if level < 1e-170:  # where the square is no double
        assert min(curve.zcdp(), CURVES.laplace(level).zcdp()) > 0


class TestDeltaIsAllUsedUp:
    """A joint delta of exactly what the releases lose anyway."""

    RELEASES = (CURVES.approximate(1, 1e-6), CURVES.laplace(1))

    @pytest.mark.parametrize("delta", [1e-6, 0.1, 0.3, 1e-300])
    def test_their_largest_losses_add_up(self, delta):
        """All that is left is the sum of the finite ones, which is what is stated."""
        promises = [hs.Guarantee(epsilon=1, delta=delta), hs.Guarantee(epsilon=1)]
        curves = [CURVES.approximate(1, delta), CURVES.laplace(1)]
        for releases in (promises, curves):
            found = hs.compose(releases, delta=delta)
            assert found.epsilon == 2
            assert 2 * (1 - 1e-12) <= found.exact.low <= found.exact.high == 2
        assert 2 <= hs.compose(promises, delta=delta, method="optimal").epsilon <= 2 + 1e-12

    def test_one_alone_is_what_it_was(self):
        """The best theorem on one promise gives the promise back."""
        alone = [hs.Guarantee(epsilon=1, delta=1e-6)]
        assert hs.compose(alone, delta=1e-6, method="optimal").epsilon == 1

    def test_unbounded_losses_need_more(self):
        """Then no epsilon is enough, and the message says so instead of naming itself."""
        with pytest.raises(ParameterError, match=r"all used up.*larger delta") as met:
            hs.compose([self.RELEASES[0], CURVES.gaussian(0.1)], delta=1e-6)
        assert "use method=" not in str(met.value)

    def test_a_little_less_is_out_of_reach(self):
        """And is printed with the digits that tell the two apart."""
        with pytest.raises(ParameterError, match=r"delta=9\.999999e-07 cannot .* 1e-06"):
            hs.compose(self.RELEASES, delta=9.999999e-7)

    @pytest.mark.parametrize("delta", [1e-6, 0.2, 0.99999])
    def test_both_ends_hold_for_several_that_lose_everything(self, delta):
        """At and beyond the largest loss the bracket holds the exact probability of losing all."""
        level = Fraction(repr(delta))
        exact = 1 - (1 - level) ** 3
        found = CURVES.approximate(1e-5, delta).compose(3).delta_bracket(1.0)
        assert Fraction(repr(found.low)) <= exact <= Fraction(repr(found.high))
        epsilon = CURVES.approximate(1.0, delta).compose(3).epsilon_bracket(float(exact))
        assert epsilon.low <= 3


@pytest.mark.parametrize("value", [Fraction(1, 3), Decimal("0.3"), Fraction(2, 3), 2**60 + 1])
def test_an_exact_bound_is_never_read_as_a_smaller_one(value):
    """The double that stands for a proven bound is not below it."""
    assert Fraction(hs.proven_sensitivity(value, "l1", argument="test").value) >= Fraction(value)


BAD = ["0.1", b"1", None, [1], 1j, object()]
ONE = CURVES.laplace(1)
UNIT = hs.proven_sensitivity(1.0, "l1", argument="test")
DOORS = {
    "gaussian sigma": lambda x: CURVES.gaussian(sigma=1 if x is None else x, sensitivity=x or "0"),
    "gaussian": lambda x: CURVES.gaussian(x or "0"),
    "discrete_laplace": CURVES.discrete_laplace,
    "discrete_laplace sensitivity": lambda x: CURVES.discrete_laplace(1, x),
    "discrete_gaussian": CURVES.discrete_gaussian,
    "discrete_gaussian sensitivity": lambda x: CURVES.discrete_gaussian(1, x),
    "categories": lambda x: CURVES.randomised_response(1, x),
    "profile": CURVES.profile,
    "pair": lambda x: CURVES.pair([x, 0.5], [0.5, 0.5]),
    "pair as it is": lambda x: CURVES.pair(x, x if x != [1] else [2]),
    "one-sided": lambda x: CURVES.one_sided([0.5, 0.5], [0.5, x]),
    "a bound on delta": lambda x: CURVES.profile(lambda _: x),
    "gammas": hs.union_gamma,
    "a gamma": lambda x: hs.union_gamma([x]),
    "estimates": lambda x: hs.Guarantee(epsilon=1, estimates=x),
    "estimate": lambda x: hs.Guarantee(epsilon=1, estimates=(("name", x),)),
    "bounds": lambda x: hs.populations.Uniform(low=0, high=x),
    "advanced": lambda x: hs.accounting.advanced_epsilon([x], 1e-6),
    "advanced delta": lambda x: hs.accounting.advanced_epsilon([0.1], x),
    "optimal": lambda x: hs.accounting.optimal_epsilon(x, 0.0, 2, 1e-6),
    "optimal delta": lambda x: hs.accounting.optimal_epsilon(0.1, x, 2, 1e-6),
    "optimal count": lambda x: hs.accounting.optimal_epsilon(0.1, 0, x, 1e-6),
    "optimal slack": lambda x: hs.accounting.optimal_epsilon(0.1, 0, 2, x),
    "level bound": lambda x: hs.accounting.optimal_bound_epsilon([x], [0], 1e-6),
    "bound deltas": lambda x: hs.accounting.optimal_bound_epsilon([0.1], [x], 1e-6),
    "bound delta": lambda x: hs.accounting.optimal_bound_epsilon([0.1], [0], x),
    "risk epsilon0": lambda x: hs.accounting.at_risk_epsilon(x, 0.1, 2, 1e-6, confidence=0.5),
    "risk level": lambda x: hs.accounting.at_risk_epsilon(1, x, 2, 1e-6, confidence=0.5),
    "risk count": lambda x: hs.accounting.at_risk_epsilon(1, 0.1, x, 1e-6, confidence=0.5),
    "risk confidence": lambda x: hs.accounting.at_risk_epsilon(1, 0.1, 2, 1e-6, confidence=x),
    "curves": lambda x: CURVES.compose([x]),
    "compose": lambda x: hs.compose([x]),
    "no list": lambda x: hs.compose(x or 3),
    "levels": lambda x: hs.compose([ONE], method="at-risk", confidence_levels=[x]),
    "parallel": lambda x: hs.parallel(x or 3),
    "tail": ONE.tail,
    "renyi": ONE.renyi,
    "moment": ONE.moment,
    "tradeoff": ONE.tradeoff,
    "count": ONE.compose,
    "advantage": hs.epsilon_for_advantage,
    "releases": lambda x: hs.epsilon_for_advantage(0.1, releases=x),
    "dims": lambda x: hs.risk.assess(0.1, 1, dims=x),
    "samples": lambda x: hs.risk.data_confidence(0.5, rho=0.1, samples=x),
    "need": lambda x: hs.cost.Need(error=1, dims=x),
    "plan": lambda x: hs.cost.plan([x]),
    "accuracy": hs.Laplace(UNIT, epsilon=1.0).accuracy,
    "bound": lambda x: hs.proven_sensitivity(x, "l1", argument="test"),
    "argument": lambda x: hs.proven_sensitivity(1.0, "l1", argument=x if x != "0.1" else ""),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("value", BAD, ids=[type(value).__name__ for value in BAD])
def test_what_is_no_number_is_refused_in_words(door, value):
    """Text, bytes, nothing, lists and complex numbers never become errors of Python's own."""
    with pytest.raises(ParameterError):
        DOORS[door](value)


def test_a_loss_that_is_nan_has_no_tail():
    """NaN is refused, where comparing with it would answer 1 or 0."""
    with pytest.raises(ParameterError, match="NaN"):
        ONE.tail(math.nan)
    with pytest.raises(ParameterError, match="NaN"):
        ONE.tradeoff(np.nan)


def discrete_gaussian_delta(sigma, epsilon):
    """Delta of discrete Gaussian noise, summed to fifty sigma, where nothing is left."""
    with mpmath.workdps(330):
        weights = [mpmath.exp(-((mpmath.mpf(y) / sigma) ** 2) / 2) for y in range(-150, 151)]
        pairs = zip(weights[1:], weights, strict=False)
        gains = [max(0, one - mpmath.exp(epsilon) * other) for other, one in pairs]
        return mpmath.fsum(gains) / mpmath.fsum(weights)


@pytest.mark.parametrize("delta", [1e-280, 1e-290, 3e-290, 1e-300, 5e-324])
def test_a_tail_that_was_cut_off_proves_no_lower_end(delta):
    """At the lower end of the bracket the exact law still exceeds delta, and at the upper not."""
    found = CURVES.discrete_gaussian(3.0).epsilon_bracket(delta)
    assert discrete_gaussian_delta(3, mpmath.mpf(found.low) - 1e-12) > delta
    if math.isfinite(found.high):
        assert discrete_gaussian_delta(3, mpmath.mpf(found.high)) <= delta
    twice = CURVES.discrete_gaussian(3.0).compose(2).epsilon_bracket(delta)
    assert found.low < twice.low < math.inf


def test_no_largest_loss_is_no_largest_double():
    """At delta 0 the bracket of noise without a bound is infinite at both ends."""
    for curve in (CURVES.discrete_gaussian(3.0), CURVES.gaussian(0.5)):
        for one in (curve, CURVES.compose([curve, CURVES.laplace(0.1)])):
            found = one.epsilon_bracket(0.0)
            assert (found.low, found.high) == (math.inf, math.inf)


@pytest.mark.parametrize("gamma", [1e-13, 1e-18, 1e-320])
@pytest.mark.parametrize("calibration", ["marginal", "training-conditional", "dkw"])
def test_a_gamma_that_nobody_can_sample_is_refused_in_a_line(gamma, calibration):
    """Neither with a number of three hundred digits nor with an error of Python's own."""
    with pytest.raises(ParameterError, match="larger gamma") as met:
        hs.sample_sensitivity(
            np.mean,
            hs.populations.Uniform(low=0, high=1),
            rows=5,
            gamma=gamma,
            calibration=calibration,
            workers=1,
        )
    assert len(str(met.value)) < 300


@pytest.mark.parametrize(
    ("gamma", "protect", "pairs"),
    [
        (1e-11, "record", "2,972,409,816,850"),
        (1e-5, "everyone", ""),
        (1e-8, "simultaneous", "tables"),
    ],
)
def test_trillions_of_pairs_are_not_begun_in_silence(gamma, protect, pairs):
    """It says how many they would be; whoever gives the number gets them."""
    asked = []

    def counted(rows):
        asked.append(1)
        return rows.mean()

    uniform = hs.populations.Uniform(low=0, high=1)
    with pytest.raises(ParameterError, match=r"not drawn unless .* larger gamma") as met:
        hs.sample_sensitivity(counted, uniform, rows=1000, gamma=gamma, protect=protect)
    assert pairs in str(met.value)
    assert not asked
    with pytest.raises(ParameterError, match="needs at least"):
        hs.sample_sensitivity(counted, uniform, rows=1000, gamma=gamma, protect=protect, pairs=9)


@pytest.mark.parametrize("family", ["laplace", "bounded-range", "gaussian"])
@pytest.mark.parametrize("advantage", [1e-9, 1e-17, 1e-100, 1 - 2.0**-53])
def test_levels_for_the_smallest_and_largest_advantages(family, advantage):
    """Found in a moment, on the safe side, and close: where halves of 1 are all the same."""
    level = hs.epsilon_for_advantage(advantage, family=family)
    curve = {
        "laplace": CURVES.laplace,
        "bounded-range": CURVES.bounded_range,
        "gaussian": CURVES.gaussian,
    }[family]
    assert curve(level).advantage() <= advantage < curve(1.01 * level).advantage()


def test_an_advantage_below_all_doubles_is_refused():
    """Instead of looking for a level for ever."""
    with pytest.raises(ParameterError, match="too small"):
        hs.epsilon_for_advantage(1e-310)


@pytest.mark.parametrize(("beta", "count"), [(1e-320, 2**20), (5e-324, 5), (1e-300, 1), (0.05, 3)])
def test_a_chance_below_all_doubles_has_its_error(beta, count):
    """The bound on the error keeps that chance, also where each number's share is no double."""
    with mpmath.workdps(400):
        needed = -mpmath.log(1 - (1 - mpmath.mpf(beta)) ** (mpmath.mpf(1) / count))
    assert needed <= hs.Laplace(UNIT, epsilon=1.0).accuracy(beta, count) <= needed * (1 + 1e-6)


@pytest.mark.parametrize(
    "door",
    [CURVES.compose, hs.compose, hs.parallel, hs.union_gamma, hs.measurements.compose],
    ids=lambda door: f"{door.__module__}.{door.__name__}",
)
def test_no_iterator_fills_the_memory(door):
    """One that never ends is refused after a stated number of items."""
    asked, one = itertools.count(), hs.Guarantee(epsilon=0.1)
    with pytest.raises(ParameterError, match="at most"):
        door(one for _ in asked)
    assert next(asked) <= 10**6 + 2


@pytest.mark.parametrize("false", [-1.0, -1e-300, math.nan, -math.inf])
def test_a_bound_on_delta_below_zero_is_no_perfect_privacy(false):
    """It is a mistake, wherever it occurs."""
    with pytest.raises(ParameterError, match="bound on delta"):
        CURVES.profile(lambda _: false)
    with pytest.raises(ParameterError, match="bound on delta"):
        CURVES.profile(lambda level: false if level > 0.3 else 1e-3)


def test_a_bound_on_delta_may_be_any_number_and_stands_for_its_decimal():
    """Exact ones are rounded up, and those above 1 say nothing."""
    assert CURVES.profile(lambda _: Fraction(1, 3)).delta(1.0) >= Fraction(1, 3)
    assert CURVES.profile(lambda _: 7).delta(0.0) == 1.0


def test_one_estimate_is_named_once():
    """Two entries of one name would be counted as one, below the gamma that both make."""
    with pytest.raises(ParameterError, match="twice"):
        hs.Guarantee(epsilon=1, gamma=0.1, estimates=(("a", 0.05), ("a", 0.05)))


@pytest.mark.parametrize(("level", "count"), [(1e17, 2), (1e12, 10**6), (1e11, 10**7), (1e308, 2)])
def test_levels_whose_masses_are_no_doubles_are_added_up(level, count):
    """The joint level of releases that hide nothing is their sum, and not 0."""
    found = accounting.optimal_epsilon(level, 0.0, count, 1e-6)
    assert found == float_above(count * Fraction(Decimal(repr(level))))


@pytest.mark.parametrize("level", [700.0, 1e154, 1e308])
def test_a_sum_beyond_all_doubles_bounds_nothing(level):
    """Levels whose sum, or that of whose squares, is no double have a joint level or none."""
    assert accounting.advanced_epsilon([level] * 100, 1e-6) == math.inf
    bound = accounting.optimal_bound_epsilon([level] * 100, [0.0] * 100, 1e-6)
    assert bound >= 100 * Decimal(repr(level)) * (1 - Decimal("1e-12"))
    many = [hs.Guarantee(epsilon=level)] * 100
    with pytest.raises(ParameterError, match=r"composed|no finite epsilon"):
        hs.compose(many, method="advanced")
    with pytest.raises(ParameterError, match=r"composed|no finite epsilon"):
        hs.compose([CURVES.laplace(level)] * 100, method="at-risk", confidence_levels=[level] * 100)


@pytest.mark.parametrize("method", ["zcdp", "renyi"])
@pytest.mark.parametrize("limit", [1e24, 1e32, 1e33, 1e60, 1e100])
def test_the_capacity_of_a_huge_limit_is_below_it(limit, method):
    """Rho is at most epsilon, also where the best order is 1 in doubles."""
    (found,) = privacy_filters(limit, 1e-6, method=method)
    assert limit * (1 - 1e-9) < found.capacity < limit
    assert found.epsilon(found.capacity) <= limit * (1 + 1e-9)


def test_what_no_order_bounds_is_unbounded():
    """An order of 1, and a divergence that is not known, are no proof of a level."""
    convert = renyi_conversion
    assert convert([1.0], [0.1], 1e-6) == math.inf
    assert convert([2.0], [math.nan], 1e-6) == math.inf
    assert convert([1.0, 2.0, 3.0], [0.1, 0.2, math.nan], 1e-6) == convert([2.0], [0.2], 1e-6)


def test_a_budget_of_a_huge_epsilon_is_not_overspent(tmp_path):
    """A charge of more than the limit is refused by each rule."""
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        for method in ("adaptive", "zcdp", "renyi"):
            limit = hs.Guarantee(epsilon=1e40, delta=1e-6)
            ledger.open_budget(method, limit, method=method)
            with pytest.raises(hs.errors.Overspent):
                ledger.charge(method, hs.Guarantee(epsilon=1e45), key="more than all")
