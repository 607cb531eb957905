"""Privacy filters: capacities keep the limit, and no analyst who steers by answers beats them."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hushed import Guarantee, privacy_loss
from hushed.accounting import _filters as filters
from hushed.accounting._filters import filter_cost, privacy_filters
from hushed.accounting._pure import pure_gaussian, pure_renyi, pure_zcdp
from hushed.errors import ParameterError
from hushed.ledger._exact import LossSum

STEP = 0.1
SIZES = (1, 3)  # of the two coins that the analyst may toss, in steps
LEVELS = [STEP * size for size in SIZES]


def best_attack(accept, limit, most):
    """Largest delta that any strategy reaches: dynamic programming over all transcripts.

    The analyst tosses biased coins (randomised response at one of two levels), chooses the next
    coin by the losses so far, and stops at will. Exact up to round-off.
    """
    reach = sum(number * size for number, size in zip(most, SIZES, strict=True))
    losses = STEP * np.arange(-reach, reach + 1)
    stopped = np.maximum(0.0, -np.expm1(limit - losses))
    values = {}
    for counts in itertools.product(*(range(number, -1, -1) for number in most)):
        if any(counts) and not accept(counts):
            continue
        best = stopped
        for i, size in enumerate(SIZES):
            after = tuple(n + (j == i) for j, n in enumerate(counts))
            if after in values:
                follow = np.pad(values[after], size, mode="edge")
                truth = 1 / (1 + math.exp(-size * STEP))
                best = np.maximum(
                    best, truth * follow[2 * size :] + (1 - truth) * follow[: -2 * size]
                )
        values[counts] = best
    return float(values[0, 0][reach])


def rule(method, epsilon, delta):
    """Whether some numbers of the two coins pass a filter, and the largest numbers that do."""
    found = privacy_filters(epsilon, delta, method=method, slack=0.0)
    promises = [Guarantee(epsilon=level) for level in LEVELS]

    def accept(counts):
        for each in found:
            costs = [filter_cost(each, promise, None) for promise in promises]
            pairs = list(zip(counts, costs, strict=True))
            amount = sum(n * Fraction(cost.amount) for n, cost in pairs)
            if amount <= Fraction(each.capacity):
                return True
        return False

    return accept, most_of(accept)


def most_of(accept):
    ends = []
    for i in range(len(SIZES)):
        number = 0
        while accept(tuple(number + 1 if j == i else 0 for j in range(len(SIZES)))):
            number += 1
        ends.append(number + 1)
    return ends


@pytest.mark.parametrize("method", ["basic", "zcdp", "renyi", "gaussian", "adaptive"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.5, 0.1), (0.8, 1e-3)])
def test_no_steering_analyst_passes_the_limit(method, epsilon, delta):
    """The best of all adaptive strategies stays below the delta of the limit."""
    accept, most = rule(method, epsilon, delta)
    assert sum(most) > 3
    assert best_attack(accept, epsilon, most) <= delta


def joint_delta(counts, limit):
    """Delta of a fixed number of tosses of each coin, from binomial sums."""
    reach = sum(number * size for number, size in zip(counts, SIZES, strict=True))
    law = np.ones(1)
    for number, size in zip(counts, SIZES, strict=True):
        truth = 1 / (1 + math.exp(-size * STEP))
        coin = np.zeros(2 * size + 1)
        coin[0], coin[-1] = 1 - truth, truth
        for _ in range(number):
            law = np.convolve(law, coin)
    losses = STEP * np.arange(-reach, reach + 1)
    return float(law @ np.maximum(0.0, -np.expm1(limit - losses)))


def test_a_steering_analyst_beats_composition_of_loss_distributions():
    """Why it is not the default: exact composition as a stopping rule breaks its own limit."""
    epsilon, delta = 0.5, 0.1

    def accept(counts):
        return joint_delta(counts, epsilon) <= delta

    reached = best_attack(accept, epsilon, most_of(accept))
    assert reached == pytest.approx(0.1084, abs=1e-4)
    kept = LossSum(epsilon, delta, *filters.privacy_filters(epsilon, delta, method="pld"))
    for counts in ((10, 1), (25, 2), (41, 0), (42, 0), (0, 4), (0, 5)):
        ours = kept._delta(
            [(privacy_loss.approximate(x), n) for x, n in zip(LEVELS, counts, strict=True)]
        )
        assert float(ours) == pytest.approx(joint_delta(counts, epsilon), rel=2e-3)
        assert float(ours) >= joint_delta(counts, epsilon) * (1 - 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-6), (4.0, 1e-9), (20, 1e-3)])
def test_a_gaussian_capacity_is_one_gaussian_release(epsilon, delta):
    """One Gaussian release of the full capacity needs the whole delta and no more."""
    squares = filters.gaussian_capacity(epsilon, delta)
    with mpmath.workdps(40):
        ratio = mpmath.sqrt(mpmath.mpf(squares))
        upper = mpmath.ncdf(ratio / 2 - epsilon / ratio)
        lower = mpmath.exp(epsilon) * mpmath.ncdf(-ratio / 2 - epsilon / ratio)
        assert 0.999999 * delta < upper - lower <= delta


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-6), (4.0, 1e-9)])
def test_a_zcdp_capacity_holds_for_gaussian_noise(epsilon, delta):
    """Gaussian noise of that rho keeps the limit, with not more than 12 % of epsilon to spare."""
    (found,) = privacy_filters(epsilon, delta, method="zcdp", slack=0.0)
    curve = privacy_loss.gaussian(math.sqrt(2 * found.capacity))
    assert 0.88 * epsilon < curve.epsilon(delta) <= epsilon
    assert epsilon * (1 - 1e-9) < found.epsilon(found.capacity) <= epsilon


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0, 300.0])
def test_the_gaussian_pair_behind_epsilon_is_worse_and_barely(epsilon):
    """Its ratio meets the kink of randomised response in 50 digits, within 1e-6."""
    ratio = pure_gaussian(epsilon)
    with mpmath.workdps(200):
        kink = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        assert mpmath.ncdf(-mpmath.mpf(ratio) / 2) <= kink
        assert mpmath.ncdf(-mpmath.mpf(ratio) * (1 - mpmath.mpf(10) ** -6) / 2) > kink


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
def test_closed_forms_of_rho_agree_with_the_numeric_ones(epsilon):
    """Randomised response and Laplace: within the 0.2 % by which the numeric one rounds up."""
    response = privacy_loss.approximate(epsilon).zcdp()
    assert response * 0.998 <= pure_zcdp(epsilon) <= response
    (found,) = privacy_filters(1.0, 1e-6, method="zcdp")
    laplace = filter_cost(found, Guarantee(epsilon=epsilon), privacy_loss.laplace(epsilon))
    numeric = privacy_loss.laplace(epsilon).zcdp()
    assert numeric * 0.998 <= laplace.amount <= numeric


@pytest.mark.parametrize("tiny", [1e-12, 1e-8, 1e-5])
def test_rho_of_little_laplace_noise_is_rounded_up(tiny):
    """No cancellation makes a small Laplace release cheaper than it is."""
    (found,) = privacy_filters(1.0, 1e-6, method="zcdp")
    cost = filter_cost(found, Guarantee(epsilon=tiny), privacy_loss.laplace(tiny))
    with mpmath.workdps(60):
        exact = mpmath.mpf(tiny) + mpmath.expm1(-mpmath.mpf(tiny))
        assert exact <= cost.amount <= exact * 1.001


@pytest.mark.parametrize("order", [1.5, 8.0, 60.0])
@pytest.mark.parametrize("epsilon", [0.02, 0.5, 3.0, 50.0, 800.0])
def test_renyi_costs_are_at_least_the_divergence(order, epsilon):
    """Randomised response: at least log((p^a q^(1-a) + q^a p^(1-a)))/(a-1), in 50 digits."""
    (found,) = privacy_filters(60.0, 1e-3, method="renyi", order=order)
    cost = filter_cost(found, Guarantee(epsilon=epsilon), None)
    with mpmath.workdps(800):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        a = mpmath.mpf(order)
        exact = mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
        assert exact <= cost.amount <= exact * 1.001


def test_costs_of_known_laws():
    """Gaussian parts add their squares, repeats count, own deltas of bare promises are kept."""
    (found,) = privacy_filters(1.0, 1e-6, method="gaussian")
    curve = privacy_loss.compose([privacy_loss.gaussian(0.3), privacy_loss.laplace(0.1)])
    cost = filter_cost(found, Guarantee(epsilon=9.0, delta=1e-9), curve)
    assert cost.amount == pytest.approx(0.09 + pure_gaussian(0.1) ** 2, rel=1e-12)
    assert cost.amount > 0.09 + pure_gaussian(0.1) ** 2 * (1 - 1e-15)
    assert 0 < cost.delta < 1e-18
    bare = filter_cost(found, Guarantee(epsilon=0.1, delta=1e-9), None)
    assert bare.delta == 1e-9
    lossy = privacy_loss.pair([0.5, 0.5, 0.0], [0.0, 0.5, 0.5])
    kept = filter_cost(found, Guarantee(epsilon=0.0, delta=0.5), lossy)
    assert (kept.amount, kept.delta) == (0.0, 0.5)


def test_unbounded_promises_cost_everything():
    """An infinite epsilon never fits."""
    for method in ("basic", "zcdp", "renyi", "gaussian", "pld"):
        (found,) = privacy_filters(1.0, 1e-6, method=method)
        assert filter_cost(found, Guarantee(epsilon=math.inf), None).amount == math.inf


def test_delta_is_divided_and_never_exceeded():
    """The shares of all filters that may let a release through add up to delta at most."""
    for slack in (0.0, 0.3, 0.9):
        found = privacy_filters(1.0, 1e-6, slack=slack)
        spent = sum(Fraction(each.slack) + Fraction(each.conversion) for each in found)
        assert Fraction(999999, 10**12) < spent <= Fraction(1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0, "delta": 0.1}, "above 0"),
        ({"epsilon": math.inf, "delta": 0.1}, "finite"),
        ({"epsilon": math.nan, "delta": 0.1}, "NaN"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": 0.0, "method": "zcdp"}, "basic"),
        ({"epsilon": 1.0, "delta": 0.1, "method": "magic"}, "method"),
        ({"epsilon": 1.0, "delta": 0.1, "slack": 1.0}, "slack"),
        ({"epsilon": 1.0, "delta": 0.1, "order": 2.0}, "renyi"),
        ({"epsilon": 1.0, "delta": 1e-9, "method": "renyi", "order": 1.5}, "larger order"),
    ],
)
def test_bad_limits_are_refused(arguments, message):
    """Every refusal says what is allowed."""
    with pytest.raises(ParameterError, match=message):
        privacy_filters(**arguments)


class TestTinyLosses:
    @pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e-163])
    @pytest.mark.parametrize("method", ["zcdp", "gaussian", "renyi", "pld", "basic"])
    @pytest.mark.parametrize("law", [None, privacy_loss.laplace, privacy_loss.gaussian])
    def test_no_loss_is_free(self, epsilon, method, law):
        """Where the square of a loss underflows it costs something all the same."""
        (found,) = privacy_filters(1.0, 1e-6, method=method)
        loss = None if law is None else law(epsilon)
        cost = filter_cost(found, Guarantee(epsilon=epsilon), loss)
        assert cost.amount > 0
        assert Fraction(cost.amount) >= Fraction(epsilon) ** 2 / 2
        assert filter_cost(found, Guarantee(epsilon=0.0), None).amount == 0

    @pytest.mark.parametrize("epsilon", [1e-14, 1e-10, 1e-8, 1e-3, 0.7, 30.0])
    @pytest.mark.parametrize("order", [1.0625, 2.0, 8.0, 100.0])
    def test_renyi_divergence_of_randomised_response(self, epsilon, order):
        """Never below the divergence in 60 digits, of small losses either, and close to it."""
        with mpmath.workdps(60):
            kept = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
            gone, a = 1 - kept, mpmath.mpf(order)
            exact = mpmath.log(kept**a * gone ** (1 - a) + gone**a * kept ** (1 - a)) / (a - 1)
            found = pure_renyi(epsilon, order)
            assert exact <= found <= min(exact * (1 + mpmath.mpf("3e-9")), epsilon)


@pytest.mark.slow_cases("adaptive", "gaussian")
@pytest.mark.parametrize("method", ["adaptive", "basic", "zcdp", "gaussian"])
def test_the_shares_of_delta_never_exceed_it(method):
    """All that filters set aside or convert adds up, exactly, to delta at most; nothing is lost.

    Of the set-aside share itself no more than the last place is lost: it is a double below.
    """
    draws = np.random.default_rng(11)
    deltas = [*(10 ** draws.uniform(-12, -0.1, size=6)), 1e-6, 5e-320]
    for delta, slack in itertools.product(map(float, deltas), (0.0, 0.5, 0.3, 0.9)):
        found = privacy_filters(1.0, delta, method=method, slack=slack)
        total = sum(Fraction(str(each.slack)) + Fraction(str(each.conversion)) for each in found)
        assert total <= Fraction(str(delta))
        if method == "adaptive":
            assert (
                Fraction(str(found[0].slack))
                <= Fraction(str(delta)) / 2
                < Fraction(str(math.nextafter(found[0].slack, 1.0)))
            )


def test_a_delta_below_all_doubles_is_refused():
    """The smallest double has no quarter."""
    with pytest.raises(ParameterError, match="too small"):
        privacy_filters(1.0, 5e-324)
    assert privacy_filters(1.0, 5e-324, method="basic")[0].slack == 5e-324
