"""Guarantees refuse what is no promise, and gammas add without counting an estimate twice."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hushed as hs
from hushed._ground.printing import format_down, format_up, percent_up
from hushed.errors import ParameterError

UNIT = hs.populations.Uniform(low=0, high=1)


def mean(rows):
    return rows.mean()


@pytest.mark.parametrize(
    "numbers",
    [
        {"epsilon": -1e-300},
        {"epsilon": float("nan")},
        {"epsilon": 1, "delta": -0.1},
        {"epsilon": 1, "delta": 1.1},
        {"epsilon": 1, "delta": float("nan")},
        {"epsilon": 1, "gamma": 1.0},
        {"epsilon": 1, "gamma": -0.1},
        {"epsilon": 1, "gamma": float("nan")},
        {"epsilon": 1, "neighbours": "replace"},
        {"epsilon": 1, "protect": "nobody"},
        {"epsilon": 1, "unit": "person"},
        {"epsilon": "1"},
        {"epsilon": True},
        {"epsilon": 1j},
        {"epsilon": Decimal("NaN")},
        {"epsilon": None},
        {"epsilon": -(10**400)},
        {"epsilon": 1, "gamma": 1 - Fraction(1, 2**60)},
    ],
)
def test_out_of_range_is_refused(numbers):
    """A number out of its range, NaN included, makes no guarantee."""
    with pytest.raises(ParameterError):
        hs.Guarantee(**numbers)


def test_ends_of_the_ranges_are_allowed():
    """Epsilon 0 and infinity, delta 0 and 1 and gamma 0 are guarantees."""
    assert hs.Guarantee(epsilon=0).gamma == 0
    assert hs.Guarantee(epsilon=float("inf"), delta=1).delta == 1


def test_one_estimate_spends_its_gamma_once():
    """Three releases with one sampled sensitivity have its gamma, not three times."""
    s = hs.sample_sensitivity(mean, UNIT, rows=20, workers=1)
    promises = [hs.Laplace(s, epsilon=e).guarantee for e in (0.1, 1, 2)]
    assert hs.union_gamma(promises) == s.gamma == 0.05


def test_an_estimate_sampled_again_is_the_same_estimate():
    """Repeating the sampling from its seed gives no second event."""
    first, again = (hs.sample_sensitivity(mean, UNIT, rows=20, seed=3) for _ in range(2))
    assert hs.union_gamma([first.guarantee(1), again.guarantee(1)]) == 0.05


def spiked(rows):
    """Agrees with the mean on every sampled pair, and is far off on a rare one."""
    return rows.mean() + (1e9 if rows[0] > 1 - 1e-9 else 0.0)


@pytest.mark.parametrize("spike", [1e6, 1e9])
def test_two_functions_with_the_same_draws_are_two_events(spike):
    """Functions that agree on all sampled pairs may fail on different ones: their gammas add."""

    def closure(rows):
        return rows.mean() + (spike if rows[0] > 1 - 1e-9 else 0.0)

    estimates = [hs.sample_sensitivity(f, UNIT, rows=20) for f in (mean, spiked, closure)]
    assert all((s.draws == estimates[0].draws).all() for s in estimates)
    assert hs.union_gamma(s.guarantee(1) for s in estimates) == pytest.approx(0.15)


def test_closures_over_other_values_are_other_functions():
    """The same code with another constant in its closure is told apart; itself it is not."""

    def made(spike):
        return lambda rows: rows.mean() + (spike if rows[0] > 1 - 1e-9 else 0.0)

    small, large = made(1.0), made(2.0)
    estimates = [hs.sample_sensitivity(f, UNIT, rows=20) for f in (small, large, small)]
    assert estimates[0].fingerprint != estimates[1].fingerprint
    assert estimates[0].fingerprint == estimates[2].fingerprint


def test_different_estimates_add_and_round_up():
    """Gammas of different seeds add, and the sum is never below the exact one."""
    estimates = [
        hs.sample_sensitivity(mean, UNIT, rows=20, gamma=g, seed=i, workers=1)
        for i, g in enumerate((0.1, 0.2, 0.3))
    ]
    total = hs.union_gamma(s.guarantee(1) for s in estimates)
    assert Fraction(repr(total)) == sum(Fraction(repr(s.gamma)) for s in estimates)
    assert total == pytest.approx(0.6, rel=1e-15)


@pytest.mark.parametrize("change", [{"rows": 21}, {"norm": "l2"}, {"gamma": 0.1}, {"seed": 1}])
def test_any_other_setting_is_another_estimate(change):
    """An estimate from other settings has its own name."""
    settings = {"rows": 20, "norm": "l1", "gamma": 0.05, "seed": 0}
    one = hs.sample_sensitivity(mean, UNIT, **settings)
    other = hs.sample_sensitivity(mean, UNIT, **(settings | change))
    assert one.fingerprint != other.fingerprint


def test_gammas_stated_by_hand_are_separate_events():
    """Two stated gammas add although they are equal."""
    stated = hs.Guarantee(epsilon=1, gamma=0.25)
    assert hs.union_gamma([stated, stated]) >= 0.5
    assert hs.union_gamma([]) == 0


@given(st.floats(min_value=0, allow_infinity=True), st.integers(1, 8))
def test_printed_numbers_are_on_the_safe_side(level, digits):
    """What is printed encloses the level, and is at most one unit of its last digit away."""
    above, below = format_up(level, digits), format_down(level, digits)
    assert float(below) <= level <= float(above)
    for text in (above, below):
        mantissa = text.partition("e")[0].replace(".", "").strip("0")
        assert text == "inf" or len(mantissa) <= digits
    if 0 < level < 1e300:
        assert Fraction(float(above)) - Fraction(level) <= Fraction(level) / 10 ** (digits - 1) + (
            Fraction(5e-324)
        )


@pytest.mark.parametrize(
    ("level", "above", "below"),
    [
        (1.0000004, "1.00001", "1"),
        (0.9999996, "1", "0.999999"),
        (0.1, "0.1", "0.1"),
        (0.0, "0", "0"),
        (74_892.25, "74892.3", "74892.2"),
        (7_489_225.5, "7489230", "7489220"),
        (5e-324, "5e-324", "4.94066e-324"),
        (float("inf"), "inf", "inf"),
    ],
)
def test_known_prints(level, above, below):
    """A promise is never printed smaller than it is, and a round one stays as it was written."""
    assert (format_up(level), format_down(level)) == (above, below)


@pytest.mark.parametrize(
    "number",
    [1, 0, Fraction(1, 3), Fraction(1, 10), np.float32(0.1), np.int64(2), 2**60 + 1, 10**400],
    ids=str,
)
def test_real_numbers_become_doubles_that_are_not_below(number):
    """A guarantee holds the decimal at or above what it is given, of whatever real type."""
    epsilon = hs.Guarantee(epsilon=number).epsilon
    assert type(epsilon) is float
    given = number.item() if hasattr(number, "item") else number
    exact = Fraction(str(given)) if isinstance(given, float) else Fraction(given)
    assert math.isinf(epsilon) or Fraction(str(epsilon)) >= exact
    assert math.isinf(epsilon) or Fraction(str(math.nextafter(epsilon, -1))) < exact
    share = Fraction(1, 3)
    promise = hs.Guarantee(epsilon=1, delta=share, gamma=share)
    assert promise.delta == promise.gamma
    assert share < promise.gamma < share + Fraction(1, 2**53)


@pytest.mark.parametrize("name", ["a\x00b", "a\ud800"])
def test_names_of_estimates_that_no_ledger_can_hold(name):
    """A database takes no zero byte and no half of a letter: such a name is refused at once."""
    with pytest.raises(ParameterError, match="zero bytes"):
        hs.Guarantee(epsilon=1.0, gamma=0.1, estimates=((name, 0.1),))


def test_no_share_of_a_hundred_gains_a_digit_by_its_double():
    """A hundred times 0.55 is 55.00000000000001 as doubles, which is rounded up to 55.1."""
    assert [percent_up(each / 100) for each in range(101)] == [f"{each}" for each in range(101)]
    assert (percent_up(0.99999), percent_up(1 / 3)) == ("100", "33.4")


class TestReplacedRows:
    @given(st.floats(0, 3), st.integers(0, 40), st.integers(1, 40))
    def test_two_steps_keep_what_is_stated(self, epsilon, slack, parts):
        """Three laws, each a neighbour of the next one at (epsilon, delta), on two outcomes."""
        delta, factor = slack / 1000, math.exp(epsilon)
        first = parts / 41
        second = min(1.0, factor * first + delta)
        second = min(second, 1 - (1 - first - delta) / factor)
        third = min(factor * second + delta, 1 - (1 - second - delta) / factor, 1.0)
        promise = hs.Guarantee(epsilon=epsilon, delta=delta, neighbours="add-remove")
        found = promise.for_replacement()
        assert found.neighbours == "replace-one"
        bound = math.exp(found.epsilon) * first + found.delta
        assert third <= bound * (1 + 1e-12)
        assert (1 - first) <= (math.exp(found.epsilon) * (1 - third) + found.delta) * (1 + 1e-12)

    def test_it_is_exact_in_decimals_and_rounds_up(self):
        found = hs.Guarantee(epsilon=0.15, delta=1e-6, neighbours="add-remove").for_replacement()
        assert found.epsilon == 0.3
        assert 1e-6 * (1 + math.exp(0.15)) < found.delta < 2.162e-6
        people = hs.Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
        assert people.for_replacement() == hs.Guarantee(epsilon=2.0, unit="user")

    def test_the_largest_losses_say_nothing(self):
        for epsilon in (800.0, 1e308, math.inf):
            promise = hs.Guarantee(epsilon=epsilon, delta=1e-9, neighbours="add-remove")
            found = promise.for_replacement()
            assert (found.epsilon, found.delta) == (2 * epsilon, 1.0)

    @pytest.mark.parametrize(
        "options",
        [
            {"neighbours": "replace-one"},
            {"gamma": 0.05},
            {"distance": 2},
            {"data_dependent": True},
        ],
    )
    def test_what_does_not_follow_is_refused(self, options):
        promise = hs.Guarantee(epsilon=1.0, **{"neighbours": "add-remove"} | options)
        with pytest.raises(ParameterError, match=r"can be turned|is turned into one"):
            promise.for_replacement()

    def test_a_sum_of_both_relations_says_how(self):
        both = [hs.Guarantee(epsilon=1.0), hs.Guarantee(epsilon=0.5, neighbours="add-remove")]
        with pytest.raises(ParameterError, match=r"guarantee\.for_replacement\(\)"):
            hs.compose(both)
        joint = hs.compose([both[0], both[1].for_replacement()], delta=0)
        assert joint.guarantee == hs.Guarantee(epsilon=2.0)

    def test_a_budget_for_replaced_rows_says_how(self, tmp_path):
        """And takes what was turned; one for added rows offers nothing of the kind."""
        added = hs.Guarantee(epsilon=0.5, neighbours="add-remove")
        with hs.Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
            ledger.open_budget("rows", hs.Guarantee(epsilon=1.0))
            ledger.open_budget("added", hs.Guarantee(epsilon=1.0, neighbours="add-remove"))
            wanted = r"ledger\.charge\('rows', guarantee\.for_replacement\(\)\)"
            with pytest.raises(ParameterError, match=wanted):
                ledger.charge("rows", added)
            ledger.charge("rows", added.for_replacement())
            for other in (hs.Guarantee(epsilon=1.0), replace(added, unit="user")):
                with pytest.raises(ParameterError) as told:
                    ledger.charge("added", other)
                assert "for_replacement" not in str(told.value)
