"""A privacy parameter given as a float is its shortest decimal: drawn, charged, promised, split."""

import math
from decimal import Decimal
from fractions import Fraction
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

import hushed as hs
from hushed import noise, privacy_loss
from hushed._ground.decimals import (
    decimal_of,
    lower_double,
    read,
    stated_above,
    stated_below,
    upper_double,
)
from hushed.accounting._filters import filter_cost, privacy_filters
from hushed.errors import Overspent, ParameterError
from hushed.measurements import exponential, gaussian, laplace
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._plan import plan
from hushed.spaces import ABSOLUTE, PURE, SUP, ZCDP, Numbers, Space

PROVEN = {
    norm: hs.proven_sensitivity(0.7, norm, argument="test") for norm in ("l1", "l2", "sup", "range")
}
LEVELS = st.one_of(
    st.floats(1e-6, 50.0),
    st.integers(1, 3000).map(lambda k: k / 1000),
    st.sampled_from([0.1, 0.3, 0.7, 1 / 3, 2 / 3, 1 / 11, 1e-3, 1.1, 2.2]),
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def decimal(value):
    """What a float stands for, by another road than the reader's."""
    return Fraction(Decimal(str(value)))


def step_loss(grid, sensitivity, dims):
    """Largest loss of Laplace noise as it is drawn: steps moved over the integer scale; exact."""
    moved = Fraction(sensitivity) / Fraction(2) ** grid.exponent + dims
    return moved / Fraction(grid.scale)


class TestReader:
    """One reader, for every kind of number."""

    @given(FINITE, FINITE)
    def test_it_keeps_the_order_and_stays_between_neighbours(self, one, other):
        """Decimals grow with their doubles, and none reaches the next double."""
        assert (decimal_of(one) < decimal_of(other)) == (one < other)
        below, above = math.nextafter(one, -math.inf), math.nextafter(one, math.inf)
        assert math.isinf(below) or Fraction(below) < decimal_of(one)
        assert math.isinf(above) or decimal_of(one) < Fraction(above)

    @given(FINITE)
    def test_doubles_on_either_side(self, value):
        """`lower_double` and `upper_double` enclose the decimal, tightly."""
        low, high = lower_double(value), upper_double(value)
        assert math.isinf(low) or Fraction(low) <= decimal(value)
        assert math.isinf(high) or decimal(value) <= Fraction(high)
        assert value in (low, high)

    @given(st.fractions(-(10**9), 10**9))
    def test_exact_numbers_are_stated_on_the_safe_side(self, exact):
        """The float stated stands for the nearest decimal of a float on the side asked for."""
        above, below = stated_above(exact), stated_below(exact)
        assert decimal(below) <= exact <= decimal(above)
        assert decimal(math.nextafter(above, -math.inf)) < exact
        assert exact < decimal(math.nextafter(below, math.inf))

    @pytest.mark.parametrize(
        ("given", "wanted"),
        [
            (0.1, 0.1),
            (np.float64(0.1), 0.1),
            (np.longdouble(0.1), 0.1),
            (np.float32(0.1), 0.10000000149011612),
            (np.float16(0.5), 0.5),
            (np.int64(3), 3.0),
            (Decimal("0.1"), 0.1),
            (Fraction(1, 10), 0.1),
            (math.inf, math.inf),
            (Decimal("inf"), math.inf),
            (Decimal("1e-999999999"), 5e-324),
            (10**400, math.inf),
        ],
        ids=str,
    )
    def test_kinds_of_numbers(self, given, wanted):
        """Floats of every kind, decimals and fractions of one tenth are one tenth."""
        found = read("epsilon", given, up=True)
        assert (type(found), found) == (float, wanted)

    def test_a_zero_has_no_sign(self):
        """A zero below zero is written otherwise, and PostgreSQL takes no such entry."""
        estimates = (("a", -0.0), ("b", Decimal("0.1")))
        slack = np.float64(-0.0)
        promise = hs.Guarantee(epsilon=-0.0, delta=slack, gamma=-0.0, estimates=estimates)
        found = (promise.epsilon, promise.delta, promise.gamma, *dict(promise.estimates).values())
        assert [each.hex() for each in found] == ["0x0.0p+0"] * 4 + [(0.1).hex()]

    @pytest.mark.parametrize(
        "bad",
        [True, np.True_, math.nan, np.float32("nan"), Decimal("sNaN"), "0.1", None, 1j, [0.1]],
        ids=repr,
    )
    def test_what_is_no_number_is_refused(self, bad):
        """Everywhere that a parameter is read, by a ParameterError."""
        for use in (
            lambda x: read("epsilon", x, up=True),
            lambda x: hs.Guarantee(epsilon=x),
            lambda x: hs.Laplace(PROVEN["l1"], epsilon=x),
            lambda x: noise.laplace_grid(sensitivity=1.0, epsilon=x, dims=1),
            lambda x: noise.select(np.zeros(2), width=1.0, epsilon=x),
            privacy_loss.laplace,
            lambda x: privacy_loss.laplace(1.0).delta(x),
            lambda x: hs.compose([hs.Laplace(PROVEN["l1"], epsilon=1)], delta=x),
            lambda x: (
                plan("marginal", Neighbourhood(rows=5), gamma=x, pairs=100)
                if x is not None
                else read("gamma", x, up=False)
            ),
        ):
            with pytest.raises(ParameterError):
                use(bad)

    @pytest.mark.parametrize("order", [(0.3, Fraction(0.3)), (Fraction(0.3), 0.3)], ids=str)
    def test_equal_hashes_do_not_meet_in_a_cache(self, order):
        """Fraction(0.3) equals 0.3 and hashes alike, but lies below three tenths: more noise."""
        dims = 3 if isinstance(order[0], float) else 4
        found = {
            type(x): noise.laplace_grid(sensitivity=1.0, epsilon=x, dims=dims).scale for x in order
        }
        assert found[float] < found[Fraction]
        assert decimal_of(Fraction(0.1)) == decimal_of(0.1) == Fraction(1, 10)


class TestDrawn:
    """The exact loss of the noise that is drawn is at most the decimal that is promised."""

    @settings(max_examples=60, deadline=None)
    @given(LEVELS, st.integers(1, 50))
    def test_laplace_and_bernstein(self, epsilon, dims):
        """In rationals, from the grid and the integer scale."""
        mechanism = hs.Laplace(PROVEN["l1"], epsilon=epsilon)
        grid = noise.laplace_grid(sensitivity=0.7, epsilon=epsilon, dims=dims)
        assert step_loss(grid, 0.7, dims) <= decimal(mechanism.guarantee.epsilon)
        assert mechanism.guarantee.epsilon == epsilon
        other = hs.Bernstein(PROVEN["sup"], epsilon=epsilon, lattice=3)
        grid = noise.laplace_grid(sensitivity=other.total, epsilon=epsilon, dims=4)
        assert step_loss(grid, 4 * Fraction(0.7), 4) <= decimal(other.guarantee.epsilon)

    @settings(max_examples=60, deadline=None)
    @given(LEVELS)
    def test_exponential(self, epsilon):
        """In rationals, for scores that move by the width."""
        lost = noise.selection_loss(width=1.4, epsilon=epsilon, moved=1.4)
        assert lost <= decimal(hs.Exponential(PROVEN["sup"], epsilon=epsilon).guarantee.epsilon)

    @settings(max_examples=15, deadline=None)
    @given(LEVELS, st.sampled_from([0.1, 0.3, 1e-3, 1e-9, 1 / 3]), st.booleans())
    def test_gaussian(self, epsilon, delta, classic):
        """In 60 digits at the exact decimals, for the ratio of the integers that are drawn."""
        variant = "classic" if classic and epsilon <= 1 else "analytic"
        m = hs.Gaussian(PROVEN["l2"], epsilon=epsilon, delta=delta, variant=variant)
        grid = noise.gaussian_grid(sensitivity=0.7, sigma=m.scale, dims=1)
        with mpmath.workdps(60):
            ratio = step_loss(grid, 0.7, 1)
            r = mpmath.mpf(ratio.numerator) / ratio.denominator
            level, slack = decimal(epsilon), decimal(delta)
            e = mpmath.mpf(level.numerator) / level.denominator
            lost = mpmath.ncdf(r / 2 - e / r) - mpmath.exp(e) * mpmath.ncdf(-r / 2 - e / r)
            assert lost <= mpmath.mpf(slack.numerator) / slack.denominator
        assert (m.guarantee.epsilon, m.guarantee.delta) == (epsilon, delta)

    @settings(max_examples=30, deadline=None)
    @given(st.floats(1e-3, 30.0), st.floats(1e-3, 5.0))
    def test_chains(self, scale, moved):
        """What a chain states is at least the exact loss of its noise, read as a decimal."""
        number = Space(domain=Numbers(), metric=ABSOLUTE)
        grid = noise.laplace_grid(sensitivity=scale, epsilon=1.0, dims=1)
        stated = (number >> laplace(scale)).map(moved, PURE)
        assert step_loss(grid, moved, 1) <= decimal(stated)
        grid = noise.gaussian_grid(sensitivity=scale, sigma=scale, dims=1)
        assert step_loss(grid, moved, 1) ** 2 / 2 <= decimal(
            (number >> gaussian(scale)).map(moved, ZCDP)
        )
        scores = Space(domain=Numbers(dims=3), metric=SUP)
        lost = noise.selection_loss(width=scale, epsilon=1.0, moved=2 * moved)
        assert lost <= decimal((scores >> exponential(scale)).map(moved, PURE))

    def test_a_fraction_asked_for_is_rounded_down(self):
        """A third is asked for: the noise keeps a decimal below it, and three fit into 1."""
        m = hs.Laplace(PROVEN["l1"], epsilon=Fraction(1, 3))
        assert decimal(m.epsilon) < Fraction(1, 3) < decimal(math.nextafter(m.epsilon, 1))
        assert hs.Guarantee(epsilon=Fraction(1, 3)).epsilon > 1 / 3


class TestCurves:
    """Curves speak of decimals: law and level alike."""

    @settings(max_examples=100, deadline=None)
    @given(LEVELS, LEVELS)
    def test_laplace(self, bound, level):
        """Never below the closed form at the exact decimals, 0 from the bound on, and close."""
        found = privacy_loss.laplace(bound).delta(level)
        gap = decimal(bound) - decimal(level)
        if gap <= 0:
            assert found == 0.0
            return
        with mpmath.workdps(60):
            exact = -mpmath.expm1(-mpmath.mpf(gap.numerator) / gap.denominator / 2)
            assert exact <= mpmath.mpf(found) <= exact * (1 + 1e-14) + 1e-14
            bracket = privacy_loss.laplace(bound).delta_bracket(level)
            assert bracket.low <= exact

    @settings(max_examples=60, deadline=None)
    @given(LEVELS, LEVELS)
    def test_the_worst_of_a_promise(self, promised, level):
        """Randomised response at the exact decimals, and its end is the promise itself."""
        curve = privacy_loss.approximate(promised, 0.0)
        assert curve.supremum == promised
        assert curve.tail(promised) == 0.0
        gap = decimal(level) - decimal(promised)
        with mpmath.workdps(60):
            e = mpmath.mpf(decimal(promised).numerator) / decimal(promised).denominator
            lost = -mpmath.expm1(mpmath.mpf(gap.numerator) / gap.denominator) / (1 + mpmath.exp(-e))
            assert curve.delta(level) >= max(lost, 0)

    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.7, 1 / 3]), min_size=1, max_size=12))
    def test_sums(self, levels):
        """Composed largest losses are sums of decimals; `hs.compose` charges what the parts say."""
        exact = sum(map(decimal, levels))
        parts = [hs.Laplace(PROVEN["l1"], epsilon=level) for level in levels]
        joint = privacy_loss.compose([part.loss for part in parts])
        basic = hs.compose(parts, method="basic")
        for found in (joint.supremum, basic.epsilon, hs.compose(parts, delta=0).epsilon):
            assert decimal(math.nextafter(found, 0)) < exact <= decimal(found)

    @pytest.mark.slow
    @settings(max_examples=40, deadline=None)
    @given(LEVELS)
    def test_prices_in_filters_cover_the_decimal(self, level):
        """Rho of randomised response at the exact decimal is at most the price, as a decimal."""
        with mpmath.workdps(60):
            e = mpmath.mpf(decimal(level).numerator) / decimal(level).denominator
            for name in ("zcdp", "renyi", "gaussian"):
                (found,) = privacy_filters(1.0, 1e-6, method=name)
                price = decimal(filter_cost(found, hs.Guarantee(epsilon=level), None).amount)
                price = mpmath.mpf(price.numerator) / price.denominator
                if name == "zcdp":
                    assert price >= e * mpmath.tanh(e / 2)
                elif name == "gaussian":
                    kink = 1 / (1 + mpmath.exp(-e))
                    assert mpmath.ncdf(mpmath.sqrt(price) / 2) >= kink * (1 - mpmath.mpf(10) ** -40)
                else:
                    a, kept = mpmath.mpf(found.order), 1 / (1 + mpmath.exp(-e))
                    lost = 1 - kept
                    exact = mpmath.log(kept**a * lost ** (1 - a) + lost**a * kept ** (1 - a))
                    assert price >= exact / (a - 1)


@pytest.fixture
def ledger(tmp_path):
    """Ledger in a file."""
    with hs.Ledger(f"sqlite:///{tmp_path}/a.db") as book:
        yield book


class TestLedger:
    """Charged is what is promised, and round numbers add up."""

    @pytest.mark.parametrize("limit", [{}, {"delta": 1e-6}], ids=["basic", "adaptive"])
    @pytest.mark.parametrize(
        ("size", "number", "whole"), [(0.1, 10, 1.0), (0.05, 20, 1.0), (0.3, 7, 2.1), (0.7, 3, 2.1)]
    )
    def test_round_numbers_fit_exactly(self, ledger, size, number, whole, limit):
        """Ten charges of 0.1 fit into 1; nothing is left, and not the least thing more fits."""
        ledger.open_budget("b", hs.Guarantee(epsilon=whole, **limit), method="basic")
        promise = hs.Laplace(PROVEN["l1"], epsilon=size).guarantee
        for done in range(number):
            exact = decimal(whole) - done * decimal(size)
            assert decimal(ledger.balance("b").epsilon_left) == exact
            ledger.charge("b", promise)
        balance = ledger.balance("b")
        assert (balance.spent.epsilon, balance.epsilon_left) == (whole, 0.0)
        with pytest.raises(Overspent):
            ledger.charge("b", hs.Guarantee(epsilon=1e-300))

    @pytest.mark.parametrize(("method", "limit"), [("basic", 1e-6), ("zcdp", 2e-6)])
    def test_round_deltas_fit_exactly(self, ledger, method, limit):
        """Ten of 1e-7 are what is set aside, and the least delta more is too much."""
        ledger.open_budget("b", hs.Guarantee(epsilon=5.0, delta=limit), method=method)
        for _ in range(10):
            ledger.charge("b", hs.Guarantee(epsilon=0.01, delta=1e-7))
        assert ledger.balance("b").delta_left == 0.0
        with pytest.raises(Overspent):
            ledger.charge("b", hs.Guarantee(epsilon=0.01, delta=5e-324))
        assert ledger.charge("b", hs.Guarantee(epsilon=0.01)).number == 11

    @pytest.mark.parametrize("size", [1e-150, 1e-154, 1e-160, 5e-324])
    def test_the_smallest_charge_is_not_nothing(self, ledger, size):
        """Where no delta covers it, zero-concentrated spending says an epsilon above 0."""
        ledger.open_budget("b", hs.Guarantee(epsilon=0.3, delta=5e-324), method="zcdp")
        ledger.charge("b", hs.Guarantee(epsilon=size))
        assert 0 < ledger.balance("b").spent.epsilon < 1e-140

    def test_the_adaptive_rule_takes_ten_tenths_as_well(self, ledger):
        """By its basic filter, with no law known, at a delta too small for the others."""
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0, delta=1e-30))
        for _ in range(10):
            ledger.charge("b", hs.Guarantee(epsilon=0.1))
        with pytest.raises(Overspent):
            ledger.charge("b", hs.Guarantee(epsilon=0.1))

    def test_balances_and_refusals_read_decimals(self, ledger):
        """After 0.5 + 0.1 + 0.1: 0.7 spent, 70.0 %, 0.3 left; the refusal offers all of it."""
        ledger.open_budget("b", hs.Guarantee(epsilon=1.0))
        for size in (0.5, 0.1, 0.1):
            ledger.charge("b", hs.Guarantee(epsilon=size))
        text = ledger.balance("b").explain()
        assert "epsilon 0.7 at delta 0" in text
        assert "70.0 % used" in text
        assert "epsilon 0.3 in one charge" in text
        with pytest.raises(Overspent, match=r"epsilon 0\.3 in one charge") as refused:
            ledger.charge("b", hs.Guarantee(epsilon=0.4))
        ledger.charge("b", hs.Guarantee(epsilon=refused.value.epsilon_left))
        assert ledger.balance("b").epsilon_left == 0.0

    def test_shares_that_exceed_the_whole_are_refused(self, ledger):
        """Eleven floats of 1/11 are decimals above 1; eleven fractions, rounded down, are not."""
        ledger.open_budget("float", hs.Guarantee(epsilon=1.0))
        ledger.open_budget("fraction", hs.Guarantee(epsilon=1.0))
        down = hs.Laplace(PROVEN["l1"], epsilon=Fraction(1, 11)).guarantee
        for _ in range(10):
            ledger.charge("float", hs.Guarantee(epsilon=1 / 11))
            ledger.charge("fraction", down)
        ledger.charge("fraction", down)
        with pytest.raises(Overspent):
            ledger.charge("float", hs.Guarantee(epsilon=1 / 11))

    def test_gamma_and_delta(self, ledger):
        """Three gammas of 0.1 are 0.3, and ten deltas of 1e-7 are 1e-6."""
        limit = hs.Guarantee(epsilon=9.0, delta=1e-6, gamma=0.3)
        ledger.open_budget("b", limit, method="basic")
        for number in range(10):
            gamma = {"gamma": 0.1, "estimates": ((f"e{number % 3}", 0.1),)}
            ledger.charge("b", hs.Guarantee(epsilon=0.1, delta=1e-7, **gamma))
        balance = ledger.balance("b")
        assert (balance.spent.gamma, balance.spent.delta) == (0.3, 1e-6)
        assert (balance.gamma_left, balance.delta_left) == (0.0, 0.0)

    @pytest.mark.slow
    @settings(max_examples=25, deadline=None)
    @given(st.lists(LEVELS, min_size=1, max_size=12), st.floats(0.1, 20.0))
    def test_nothing_is_promised_below_what_is_charged(self, levels, whole):
        """Taken charges add up, as decimals, to the limit at most; a refused one would not fit."""
        with TemporaryDirectory() as folder, hs.Ledger(f"sqlite:///{folder}/a.db") as book:
            book.open_budget("b", hs.Guarantee(epsilon=whole))
            spent = Fraction(0)
            for level in levels:
                promise = hs.Laplace(PROVEN["l1"], epsilon=level).guarantee
                try:
                    book.charge("b", promise)
                except Overspent:
                    assert spent + decimal(level) > decimal(whole)
                    left = decimal(book.balance("b").epsilon_left)
                    assert left <= decimal(whole) - spent
                else:
                    spent += decimal(level)
                assert spent <= min(decimal(whole), decimal(book.balance("b").spent.epsilon))


class TestSampler:
    """Gamma is calibrated, booked and printed as one number."""

    @pytest.mark.parametrize("gamma", [0.3, 0.1, 0.18, 1 / 3, np.float64(0.3), Fraction(3, 10)])
    def test_rank_and_promise(self, gamma):
        """The rank keeps the decimal of the gamma that is promised, in rationals."""
        rank, total = plan("marginal", Neighbourhood(rows=9), gamma=gamma, pairs=149)
        assert 1 - Fraction(rank.rank, 150) <= decimal(total)
        assert total == read("gamma", gamma, up=False)

    @pytest.mark.parametrize("pairs", [9, 99, 149, 1000])
    def test_gamma_that_follows(self, pairs):
        """1 / (m + 1), rounded up as a decimal: 0.1 for 9 pairs, and not a hair more."""
        _, total = plan("marginal", Neighbourhood(rows=9), gamma=None, pairs=pairs)
        below = math.nextafter(total, 0)
        assert decimal(below) < Fraction(1, pairs + 1) <= decimal(total)


def test_tables_split_the_decimal_in_rationals(ledger):
    """Three parts of 0.3 draw noise for a tenth each, and 0.3 is charged."""
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0]})
    ledger.open_budget("b", hs.Guarantee(epsilon=0.3, neighbours="add-remove"))
    query = hs.table(frame).count().sum("a", low=0, high=5).count(name="again")
    query.release(epsilon=0.3, ledger=ledger, budget="b")
    assert ledger.balance("b").epsilon_left == 0.0
