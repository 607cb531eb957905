"""What is printed promises no more than what is computed; odd requests are refused, not crashed."""

import math
import re
from decimal import Decimal, FloatOperation, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import hushed as hs
from hushed import privacy_loss, risk
from hushed._ground.printing import money_above, money_below
from hushed.accounting import optimal_epsilon
from hushed.cli import app
from hushed.cost import CostModel, Need, plan
from hushed.errors import NotFeasible, ParameterError
from hushed.tables._format import _format_cell, format_bar

NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?)"


def run(*args):
    """What the command prints, on both streams, and its exit code."""
    result = CliRunner().invoke(app, [str(a) for a in args])
    return result.stdout + result.stderr, result.exit_code


def found(pattern, text):
    """The number that follows a phrase, as it is printed."""
    return float(re.search(pattern.replace("#", NUMBER), text)[1])


class TestSentence:
    """The sentence of a plan is for reports: each of its numbers has to hold."""

    @pytest.mark.parametrize("error", [1 / 0.50004, 1.99984, 3.0, 0.7, 1 / 7.00001])
    def test_epsilon_is_rounded_up(self, error):
        """And so are the odds and the belief that follow from it."""
        made = plan([Need(error=error)])
        level = found("epsilon = #:", made.sentence)
        assert level >= made.epsilon >= 1 / error
        assert found("by at most #,", made.sentence) >= math.exp(made.epsilon)
        assert found("at most # %", made.sentence) >= 100 * risk.belief(made.epsilon)
        assert "but for a chance" not in made.sentence

    @pytest.mark.slow_cases("0.001-30", "0.2-30", "1e-05-30")
    @pytest.mark.parametrize(
        ("delta", "number"), [(0.2, 1), (1e-5, 30), (1e-3, 30), (0.2, 30)], ids=str
    )
    def test_the_chance_is_that_of_a_larger_loss(self, delta, number):
        """Not delta, which does not bound it: Pr(|loss| > epsilon), by its own formula.

        A loss below -epsilon counts, too: a conclusion may be that the person is not there.
        """
        made = plan([Need(error=2.0, name=str(i)) for i in range(number)], delta=delta)
        assert made.delta == delta
        assert {choice.mechanism for choice in made.choices} == {"Gaussian"}
        ratio = math.sqrt(sum((1 / choice.scale) ** 2 for choice in made.choices))
        above = float(mpmath.ncdf(-(made.epsilon / ratio - ratio / 2)))
        below = float(mpmath.ncdf(-(made.epsilon / ratio + ratio / 2)))
        stated = found("but for a chance of #,", made.sentence)
        assert above + below <= stated <= 1.02 * above * (1 + math.exp(-made.epsilon))
        assert stated > delta
        assert found("delta = #:", made.sentence) == delta

    @pytest.mark.slow
    def test_a_chance_of_laplace_noise(self):
        """With many small Laplace releases it is counted on draws of their losses."""
        made = plan([Need(error=40.0, beta=1e-9, name=str(i)) for i in range(40)], delta=1e-3)
        stated = found("but for a chance of #,", made.sentence)
        assert stated > made.delta
        if made.choices[0].mechanism == "Laplace":
            b = made.choices[0].epsilon
            x = np.random.default_rng(7).laplace(size=(20_000, 40)) / b
            losses = b * (np.abs(x - 1) - np.abs(x)).sum(axis=1)
            assert (np.abs(losses) > made.epsilon).mean() <= stated + 4.5 * math.sqrt(
                stated / 20_000
            )

    def test_the_probability_of_an_error_is_rounded_down(self):
        """0.99996 is not 1."""
        assert "with probability 0.9999)" in plan([Need(error=1.0, beta=0.00004)]).sentence


class TestCommands:
    """Every privacy number of a command is on the safe side."""

    def test_cost(self):
        """The epsilon of a plan, in title, table and sentence."""
        text, _ = run("cost", "--error", "1.99984")
        level = plan([Need(error=1.99984)]).epsilon
        assert level > 0.50004
        for printed in (found("epsilon = #, delta", text), found("epsilon = #:", text)):
            assert printed >= level
        text, _ = run(
            "cost", "--epsilon0", 0.5, "--per-person", 5500, "--people", 100, "--budget", 70000
        )
        allowed = CostModel(per_person=5500, people=100).levels_within(70000, 0.5)
        assert found("levels from # to", text) >= allowed.low
        assert found("levels from [0-9.]+ to #", text) <= allowed.high
        within = CostModel(per_person=5500, people=100).epsilon_within(70000)
        assert found("epsilon0 up to #", text) <= within

    def test_risk(self):
        """Deltas, risks and levels up, confidences down."""
        text, _ = run("risk", "--epsilon0", "1.2345678", "--confidence", "0.3333333")
        exact = risk.epsilon(1 - 0.3333333, 1.2345678)
        assert found("level # ?;", text.replace("\n", " ")) >= risk.published_epsilon(
            0.3333333, 1.2345678
        )
        assert float(re.search(rf"delta {NUMBER} is {NUMBER}\.", text.replace("\n", " "))[2]) >= (
            exact
        )
        text, _ = run("risk", "--epsilon0", "1.2345678", "--epsilon", "0.9876543")
        printed = [float(x) for x in re.findall(r"\d+\.\d+(?:e-\d+)?", text)]
        for value in (
            risk.delta(0.9876543, 1.2345678),
            risk.loss_exceeds(0.9876543, 1.2345678),
            0.9876543,
        ):
            near = [x for x in printed if abs(x - value) < 1e-5 * value]
            assert near
            assert all(x >= value for x in near)

    def test_sensitivity(self, tmp_path):
        """Gamma of 1000 pairs is 1/1001: 0.000999 is less."""
        code = "def mean(rows):\n    return rows.mean()\n"
        (tmp_path / "f.py").write_text(code)
        text, status = run(
            "sensitivity",
            f"{tmp_path}/f.py:mean",
            "--population",
            "uniform:0,1",
            "--rows",
            20,
            "--pairs",
            1000,
            "--calibration",
            "marginal",
        )
        assert status == 0, text
        assert found(r"gamma = # \(", text) >= 1 / 1001
        sampled = hs.sample_sensitivity(
            lambda rows: rows.mean(),
            hs.populations.Uniform(low=0, high=1),
            rows=20,
            pairs=1000,
            calibration="marginal",
            workers=1,
        )
        assert found("sensitivity # in", text) >= sampled.value


class TestCrashes:
    """Requests beyond all doubles are refused, or answered."""

    @pytest.mark.parametrize("error", [10_000, 1e6, 1e299])
    def test_a_budget_for_next_to_no_loss(self, error):
        """exp(-1/epsilon) is 0 in doubles: no exposure is too large."""
        text, status = run("cost", "--error", error, "--budget", 100)
        assert status == 0, text
        assert "say what full compensation is" in text
        assert math.isfinite(plan([Need(error=error)], budget=100).epsilon)

    @pytest.mark.parametrize(
        "numbers",
        [
            {"per_person": 1e308, "people": 10},
            {"per_person": 1.0, "floor": 1e308, "people": 10},
            {"per_person": 1.0, "people": math.inf},
            {"per_person": 1.0, "people": math.nan},
        ],
        ids=str,
    )
    def test_costs_beyond_all_doubles(self, numbers):
        """Refused when the model is made, so that no sum overflows later."""
        with pytest.raises(ParameterError):
            CostModel(**numbers)

    @pytest.mark.parametrize(
        "numbers",
        [
            {"error": 1e-320},
            {"error": 5e-324, "beta": 0.5},
            {"error": 1.0, "sensitivity": 1e305},
            {"error": 1e300, "sensitivity": 1e-10},
            {"error": 1e-200, "sensitivity": 1e200},
        ],
        ids=str,
    )
    def test_errors_beyond_all_doubles(self, numbers):
        """No sentence says "scale 0" or "epsilon = inf"."""
        with pytest.raises(ParameterError, match="another unit"):
            Need(**numbers)

    @pytest.mark.slow_cases("1e-300-0.001", "1e-300-1.0", "1e-300-1e+290")
    @pytest.mark.parametrize("error", [1e-290, 1e-3, 1.0, 1e290])
    @pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-300])
    def test_what_is_accepted_is_answered(self, error, delta):
        """With and without a model, a plan or a refusal, and no infinity in its sentence."""
        for model in (None, CostModel(per_person=1e290, people=10)):
            made = plan([Need(error=error)], budget=1.0, model=model, delta=delta)
            assert "inf" not in made.sentence
            assert "scale 0 " not in made.sentence
            if made.feasible is False:
                with pytest.raises(NotFeasible):
                    made.require()


@pytest.mark.slow_cases("0.001-1000000", "0.1-1000000")
@pytest.mark.parametrize("count", [10**5, 10**6])
@pytest.mark.parametrize("epsilon", [0.001, 0.1])
def test_optimal_composition_of_very_many_is_rounded_up(epsilon, count):
    """At the level found, the exact sum in 50 digits is at most the slack."""
    slack = 1e-6
    level = optimal_epsilon(epsilon, 0.0, count, slack)
    with mpmath.workdps(50):
        e, kept = mpmath.mpf(str(epsilon)), mpmath.mpf(0)
        first = math.ceil((level / epsilon + count) / 2)
        odds = mpmath.exp(e)
        term = mpmath.binomial(count, first) * odds**first / (1 + odds) ** count
        for hits in range(first, count + 1):
            loss = (2 * hits - count) * e
            kept += term * -mpmath.expm1(mpmath.mpf(level) - loss)
            term *= odds * (count - hits) / (hits + 1)
            if term < mpmath.mpf(10) ** -30:
                break
        assert kept <= slack
        assert kept >= slack * (1 - 1e-5)


def test_bracket_and_tail_of_a_curve_are_printed_as_bounds():
    """The words of a composition: promise up, lower end down."""
    made = hs.compose([privacy_loss.laplace(0.1)] * 300, delta=1e-5)
    text = made.explain()
    assert found("epsilon # at delta", text) >= made.epsilon
    low, high = re.search(rf"lies in \[{NUMBER}, {NUMBER}\]", text).groups()
    assert float(low) <= made.exact.low
    assert float(high) >= made.exact.high


@pytest.mark.parametrize("error", [2.0000004, 0.12345649, 1999999.6])
def test_a_tolerated_error_is_not_printed_smaller(error):
    """Neither with a chance nor on average."""
    for beta, words in ((0.05, "within # of"), (None, "off by # on")):
        before, after = words.split("#")
        told = Need(error=error, beta=beta).accuracy()
        number = told.partition(before)[2].partition(after)[0]
        assert Decimal(repr(error)) <= Decimal(number) <= Decimal(repr(error * 1.00001))


@pytest.mark.parametrize("amount", [0.0, 1e-9, 0.07, 1234.561, 74434.4125, 1e15, 1e300])
def test_money_is_rounded_to_the_side_that_promises_less(amount):
    """What something costs up, what may be spent down, by a cent at most."""
    with localcontext(prec=400):
        exact = Decimal(repr(amount))
        low, high = (Decimal(f(amount).replace(",", "")) for f in (money_below, money_above))
        assert low <= exact <= high
        assert high - low <= Decimal("0.01")


def test_a_plan_never_prints_a_cost_below_it():
    """A cost of less than half a cent is not nothing."""
    model = hs.cost.CostModel(per_person=1.0, people=1)
    made = plan([Need(error=6.0)], model=model)
    assert 0.002 < made.cost < 0.005
    assert "cost at most 0.01" in made.sentence


def test_levels_of_a_comparison_are_rounded_up():
    """An epsilon of seven digits is not printed as a smaller one of six."""
    s = hs.statistics.median(rows=50, low=0, high=1)
    found = hs.compare(s, hs.populations.Uniform(low=0, high=1), epsilon=0.1234564, trials=2)
    assert "epsilon = 0.123457" in found.explain()


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.12345678, 0.12345612), (-2.0000004, 3.0000004), (123456.4, 987654.6), (-123456.4, 0.0)],
)
def test_an_error_bar_is_not_printed_narrower(low, high):
    """A bar that is rounded inwards would hold less often than is said."""
    printed = re.fullmatch(r"7 \[(.*), (.*)\]", _format_cell(7, low, high))
    assert Decimal(printed[1]) <= Decimal(repr(low))
    assert Decimal(printed[2]) >= Decimal(repr(high))
    assert float(printed[1]) >= low - 1e-5 * abs(low)
    assert float(printed[2]) <= high + 1e-5 * abs(high)


def test_edges_of_bins_are_printed_as_they_are():
    """Two edges in one thousandth of their size are not printed as one."""
    query = hs.table(pa.table({"x": [1.0]}))
    answer = query.histogram("x", low=1234567, high=1234569, bins=4).release(epsilon=1.0)
    assert "1234567 1234567.5 1234568 1234568.5 1234569" in str(answer)


@pytest.mark.parametrize("beta", [1e-17, 1e-300, 1e-9])
def test_no_error_bar_is_said_to_hold_always(beta):
    """A chance that is lost when it is taken from one is there all the same."""
    told = hs.table(pa.table({"x": [1.0]})).count().release(epsilon=1.0, beta=beta).explain()
    assert found("holds with probability # %", told) < 100


@pytest.mark.parametrize(
    ("bar", "said"),
    [
        ((2.73795, 0.449999, 4.6965), ("2.7", "0.4", "4.7")),
        ((3895.12, 3811.7, 3979.3), ("3895", "3811", "3980")),
        ((0.0123456, 0.0123, 0.0125), ("0.01235", "0.01230", "0.01250")),
        ((-0.01, -1.2, 1.2), ("0.0", "-1.2", "1.2")),  # and not -0.0
        ((10283746.2, 9103746.1, 1.1e7), ("10283746", "9103746", "11000000")),
        ((1e3, 1e3 - 1e-9, 1e3 + 1e-9), ("1000", "999.999", "1000.01")),
        ((5.0, 5.0, 5.0), ("5", "5", "5")),
        ((7, 6.2, 8.9), ("7", "6.2", "8.9")),
    ],
)
def test_a_number_has_no_more_decimals_than_its_error_bar_says(bar, said):
    """Whoever reads 2.73795 of something that is off by 2 believes too much, or stops reading."""
    assert format_bar(*bar) == said


@given(
    st.floats(-1e12, 1e12),
    st.floats(0, 1e12),
    st.floats(0, 1e12),
)
def test_a_printed_bar_is_never_narrower(value, below, above):
    """It holds as often as the one that was computed, and loses at most a twentieth of it."""
    low, high = value - below, value + above
    shown_value, shown_low, shown_high = map(Fraction, format_bar(value, low, high))
    assert shown_low <= Fraction(repr(low))
    assert shown_high >= Fraction(repr(high))
    half = (Fraction(high) - Fraction(low)) / 2
    if half > 1e-4 and abs(value) < 1e5 > abs(low) and abs(high) < 1e5:
        assert abs(shown_value - Fraction(value)) <= max(half / 20, abs(Fraction(value)) / 10**5)


@pytest.mark.parametrize("trap", [True, False])
def test_an_answer_is_printed_in_any_decimal_context(trap):
    """It is paid by then: what somebody computes with must not stand in its way."""
    with localcontext() as context:
        context.prec, context.traps[FloatOperation] = 3, trap
        assert format_bar(123.456, 120.1, 126.2) == ("123.5", "120.1", "126.2")
