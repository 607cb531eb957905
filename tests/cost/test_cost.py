"""Costs: the health-centre illustration to the cent, and plans checked by simulation."""

import math

import mpmath
import numpy as np
import pytest

import hushed as hs
from hushed import privacy_loss
from hushed.cost import CostModel, Need, epsilon_for_error, error_of, plan
from hushed.errors import NotFeasible, ParameterError

HEALTH_CENTRE = CostModel(per_person=5500, people=100)


class TestIllustration:
    def test_baseline_to_the_cent(self):
        """100 people, 5500 each, epsilon0 = 0.5: 74434.41."""
        assert round(HEALTH_CENTRE.cost(0.5), 2) == 74434.41
        assert epsilon_for_error(2.0) == 0.5

    def test_published_optimum_to_the_cent(self):
        """Published basis: 0.274115, 37805.86, saving 36628.55."""
        best = HEALTH_CENTRE.optimum(epsilon0=0.5, basis="published")
        assert best.epsilon == pytest.approx(0.274115, abs=5e-7)
        assert round(best.budget, 2) == 37805.86
        assert round(best.saving, 2) == 36628.55

    def test_exact_optimum_to_the_cent(self):
        """Exact basis: 0.155622, 12523.72, and said to be nominal."""
        best = HEALTH_CENTRE.optimum(epsilon0=0.5)
        assert best.basis == "exact"
        assert best.epsilon == pytest.approx(0.155622, abs=5e-7)
        assert round(best.budget, 2) == 12523.72
        assert any("nominal" in text for text in best.warnings)

    @pytest.mark.parametrize(("rate", "epsilon0"), [(1e-5, 0.5), (0.001, 5.0), (0.01, 500.0)])
    @pytest.mark.parametrize("basis", ["exact", "published"])
    def test_the_optimum_of_a_small_rate_is_the_cheapest_level(self, rate, epsilon0, basis):
        """Where costs rise far below epsilon0: four times as much was said to be the least."""
        model = CostModel(per_person=5500, people=100, rate=rate)
        costs = [
            model.cost_at_risk(level, epsilon0, basis=basis)
            for level in np.geomspace(rate / 100, epsilon0, 2000).tolist()
        ]
        assert model.optimum(epsilon0, basis=basis).budget <= min(costs) * (1 + 1e-9)

    @pytest.mark.parametrize("numbers", [(5e-324, 1e300), (1e300, 5e-324), (1.0, 1e-320)])
    def test_optimum_at_the_ends_of_the_doubles(self, numbers):
        """A level is found, whatever the rate."""
        best = CostModel(per_person=1, rate=numbers[0]).optimum(numbers[1])
        assert 0 <= best.epsilon <= numbers[1]

    def test_warning_shows_the_numbers(self):
        """The published basis says why it may over-promise, with risk, delta and tail."""
        text = " ".join(HEALTH_CENTRE.optimum(epsilon0=0.5, basis="published").warnings)
        for number in ("0.3907", "0.1068", "0.893"):
            assert number in text
        assert HEALTH_CENTRE.optimum(epsilon0=0.5, basis="loss").warnings == ()

    def test_levels_within_budget(self):
        """A budget of 50000 allows [0.13913, 0.40056] on the published basis, rounded inwards."""
        found = HEALTH_CENTRE.levels_within(50_000, 0.5, basis="published")
        assert found.low == pytest.approx(0.13913, abs=5e-6)
        assert found.high == pytest.approx(0.40056, abs=5e-6)
        for level in (found.low, found.high):
            assert HEALTH_CENTRE.cost_at_risk(level, 0.5, basis="published") <= 50_000

    @pytest.mark.parametrize("epsilon0", [0.05, 0.5, 1.5, 4.0, 20.0])
    def test_published_optimum_solves_the_published_equation(self, epsilon0):
        """The optimum is the root of the published condition, also where it is not convex."""
        best = HEALTH_CENTRE.optimum(epsilon0, basis="published").epsilon
        with mpmath.workdps(30):
            e = mpmath.mpf(best)
            left = 1 / e - 1 / mpmath.mpf(epsilon0)
            assert float(left - mpmath.log(1 + mpmath.expm1(e) / e**2)) == pytest.approx(
                0.0, abs=1e-5 / best
            )

    @pytest.mark.parametrize("basis", ["published", "exact", "loss"])
    @pytest.mark.parametrize("epsilon0", [0.1, 1.0, 3.0, 10.0])
    def test_nothing_on_a_fine_grid_is_cheaper(self, basis, epsilon0):
        """No level on a grid of 5000 is cheaper than the optimum."""
        best = HEALTH_CENTRE.optimum(epsilon0, basis=basis)
        levels = np.linspace(epsilon0 / 5000, epsilon0, 5000)
        costs = [HEALTH_CENTRE.cost_at_risk(float(x), epsilon0, basis=basis) for x in levels]
        assert best.budget <= min(costs) * (1 + 1e-9)
        assert best.budget <= best.baseline


class TestModel:
    def test_cost_grows_from_floor_to_everything(self):
        """Cost is the floor at 0, all compensation at infinity, and delta counts in full."""
        model = CostModel(per_person=100, people=10, rate=2.0, floor=3.0)
        assert model.cost(0.0) == 30.0
        assert model.cost(math.inf) == 1030.0
        assert model.cost(0.0, 0.5) == 530.0
        levels = [model.cost(x) for x in np.linspace(0.01, 20, 200)]
        assert levels == sorted(levels)

    def test_epsilon_within_inverts_cost(self):
        """The largest level within a budget costs the budget, and never more."""
        model = CostModel(per_person=100, people=10, rate=2.0, floor=3.0)
        for budget in (31.0, 200.0, 900.0):
            level = model.epsilon_within(budget, 0.0005)
            assert model.cost(level, 0.0005) <= budget
            assert model.cost(level, 0.0005) == pytest.approx(budget, rel=1e-9)
        assert model.epsilon_within(2000.0) == math.inf
        with pytest.raises(NotFeasible, match="unavoidable"):
            model.epsilon_within(29.0)

    def test_budget_below_the_optimum_is_refused_with_the_number(self):
        """An impossible budget names the smallest possible cost."""
        with pytest.raises(NotFeasible, match=r"37,805\.86"):
            HEALTH_CENTRE.levels_within(30_000, 0.5, basis="published")

    @pytest.mark.parametrize(
        "call",
        [
            lambda: CostModel(per_person=-1),
            lambda: CostModel(per_person=math.nan),
            lambda: CostModel(per_person=1, people=0),
            lambda: CostModel(per_person=1, rate=0),
            lambda: CostModel(per_person=1, floor=-1),
            lambda: HEALTH_CENTRE.cost(-1.0),
            lambda: HEALTH_CENTRE.cost(1.0, 1.5),
            lambda: HEALTH_CENTRE.cost_at_risk(0.6, 0.5),
            lambda: HEALTH_CENTRE.optimum(0.5, basis="hope"),
            lambda: HEALTH_CENTRE.levels_within(-5, 0.5),
            lambda: HEALTH_CENTRE.epsilon_within(math.nan),
            lambda: Need(error=-2.0),
            lambda: Need(error=2.0, beta=1.0),
            lambda: Need(error=math.inf),
            lambda: plan([]),
            lambda: plan([Need(error=1.0)], delta=1.0),
            lambda: plan([Need(error=1.0)], budget=-1.0),
            lambda: error_of(0.0),
        ],
    )
    def test_bad_input_is_refused(self, call):
        """Negative money, levels above epsilon0 and NaN are refused."""
        with pytest.raises(ParameterError):
            call()


class TestPlan:
    def test_the_question_everybody_asks(self):
        """Error at most 2 with 95 %, at most 40,000: level, mechanism, sentence, or what helps."""
        need = Need(error=2.0, beta=0.05, name="the number of obese staff")
        found = plan([need], budget=40_000, model=HEALTH_CENTRE)
        assert found.choices[0].mechanism == "Laplace"
        assert found.epsilon == pytest.approx(math.log(20) / 2, rel=1e-12)
        assert found.feasible is False
        with pytest.raises(NotFeasible, match=r"3\.926 times"):
            found.require()
        eased = plan([Need(error=7.853, beta=0.05)], budget=40_000, model=HEALTH_CENTRE)
        assert eased.require().feasible is True
        assert "epsilon = 0.3815" in eased.sentence
        assert "within 7.853 of the exact answer with probability 0.95" in eased.sentence

    def test_each_remedy_alone_is_enough(self):
        """Every remedy's number makes the plan fit, and a little less does not."""
        needs = [Need(error=5, beta=0.05, name="a"), Need(error=20, name="b")]
        bad = plan(needs, budget=40_000, model=HEALTH_CENTRE)
        text = "; ".join(bad.remedies)
        factor = float(text.split("tolerate errors ")[1].split()[0])
        people = int(text.split("at most ")[1].split()[0])

        def scaled(s):
            return [Need(error=n.error * s, beta=n.beta, name=n.name) for n in needs]

        assert plan(scaled(factor), budget=40_000, model=HEALTH_CENTRE).feasible
        assert not plan(scaled(factor * 0.998), budget=40_000, model=HEALTH_CENTRE).feasible
        fewer = CostModel(per_person=5500, people=people)
        more = CostModel(per_person=5500, people=people + 1)
        assert plan(needs, budget=40_000, model=fewer).feasible
        assert not plan(needs, budget=40_000, model=more).feasible
        amount = float(text.split("raise the budget to ")[1].split(";")[0].replace(",", ""))
        assert plan(needs, budget=amount, model=HEALTH_CENTRE).feasible
        assert not plan(needs, budget=amount - 0.02, model=HEALTH_CENTRE).feasible

    def test_without_a_cost_model_the_exposure_is_named(self):
        """Without E and people, the plan says for how much exposure the budget is enough."""
        found = plan([Need(error=2.0, beta=0.05)], budget=40_000)
        assert found.feasible is None
        limit = float(found.remedies[0].split("below ")[1].split(";")[0].replace(",", ""))
        model = CostModel(per_person=limit)
        assert model.cost(found.epsilon) == pytest.approx(40_000, abs=0.01)

    @pytest.mark.slow_cases("0.05-1e-06", "None-1e-06")
    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    @pytest.mark.parametrize("beta", [None, 0.05])
    def test_errors_are_kept_in_simulation(self, delta, beta):
        """Simulated errors of every chosen mechanism keep what was tolerated (5 sigma)."""
        rng = np.random.default_rng(17)
        needs = [Need(error=30.0, beta=beta, name=f"q{i}") for i in range(30)]
        found = plan(needs, delta=delta)
        choice = found.choices[0]
        assert choice.mechanism == ("Gaussian" if delta else "Laplace")
        draw = rng.normal if choice.mechanism == "Gaussian" else rng.laplace
        errors = np.abs(draw(0.0, choice.scale, 200_000))
        if beta is None:
            assert errors.mean() <= 30.0 + 5 * errors.std() / math.sqrt(errors.size)
            assert errors.mean() >= 30.0 - 5 * errors.std() / math.sqrt(errors.size)
        else:
            slack = 5 * math.sqrt(beta * (1 - beta) / errors.size)
            assert abs((errors > 30.0).mean() - beta) <= slack

    @pytest.mark.slow
    def test_joint_level_is_what_the_accountant_says(self):
        """The plan's joint level is the composition of its own mechanisms."""
        needs = [Need(error=5.0 + i, beta=0.05, sensitivity=0.1) for i in range(40)]
        found = plan(needs, delta=1e-6)
        ratios = [0.1 / c.scale for c in found.choices]
        assert {c.mechanism for c in found.choices} == {"Gaussian"}
        wanted = privacy_loss.gaussian(math.hypot(*ratios)).epsilon(1e-6)
        assert found.epsilon == pytest.approx(wanted, rel=1e-9)
        assert found.epsilon < plan(needs).epsilon

    def test_delta_is_not_spent_for_nothing(self):
        """One release keeps delta = 0 even when a delta is allowed."""
        assert plan([Need(error=2.0, beta=0.05)], delta=1e-6).delta == 0.0

    def test_leaving_one_out_is_offered(self):
        """A single greedy release is named as the one to leave out."""
        needs = [Need(error=1.0, beta=0.05, name="greedy"), Need(error=100.0, name="modest")]
        found = plan(needs, budget=10_000, model=HEALTH_CENTRE)
        assert "leave out greedy" in found.remedies
        assert "leave out modest" not in found.remedies

    def test_floor_above_budget_offers_no_larger_error(self):
        """No tolerated error helps when the unavoidable cost alone exceeds the budget."""
        model = CostModel(per_person=100, people=10, floor=50)
        found = plan([Need(error=2.0)], budget=400, model=model)
        assert found.feasible is False
        assert not any("tolerate" in text for text in found.remedies)

    def test_error_and_epsilon_invert(self):
        """error_of and epsilon_for_error are inverses for any beta and dimension."""
        for beta, dims in ((None, 1), (0.05, 1), (0.01, 7)):
            level = epsilon_for_error(3.0, sensitivity=2.0, beta=beta, dims=dims)
            error = error_of(level, sensitivity=2.0, beta=beta, dims=dims)
            assert error == pytest.approx(3.0, rel=1e-14)


def test_names_of_needs_are_shown_on_one_line_without_controls():
    """Also where nothing fits: one that turns the direction of writing could turn a number."""
    needs = [Need(error=2, beta=0.05, name=f"count \u202e{i}\n") for i in range(2)]
    assert "\u202e" not in plan(needs).require().sentence
    with pytest.raises(NotFeasible) as refused:
        plan(needs, budget=20.0, model=CostModel(per_person=100, people=2)).require()
    assert "count  0" in str(refused.value)
    assert str(refused.value).isprintable()


def sampled(**options):
    """A sensitivity that was sampled, of an average over blocks if asked for."""
    function = hs.Blockwise(np.max, rows=5) if options.pop("blocks", False) else np.max
    box = hs.populations.Uniform(low=0, high=1)
    given = {"rows": 20, "gamma": 0.05, "symmetric": True, "seed": 1, **options}
    return hs.sample_sensitivity(function, box, **given)


class TestKnownSensitivities:
    def test_a_number_is_said_to_be_assumed(self):
        """It is a plan, of what nobody released, and no more than the number is right."""
        told = plan([Need(error=1.0)]).sentence
        assert told.startswith("We plan to release the answer")
        assert "sensitivity of 1, assumed" in told
        assert "If the assumed sensitivity is right, this would satisfy" in told
        assert "released" not in told

    def test_a_sampled_one_brings_its_gamma(self):
        """The same level as by its number, and gamma in words, number and card."""
        s = sampled()
        found = plan([Need(error=1.0, sensitivity=s), Need(error=2.0, sensitivity=s)])
        alone = plan([Need(error=e, sensitivity=s.value) for e in (1.0, 2.0)])
        assert (found.epsilon, found.gamma, alone.gamma) == (alone.epsilon, 0.05, 0.0)
        assert "gamma = 0.05" in found.sentence
        assert "none of this holds" in found.sentence
        assert "its rows in the same order" in found.sentence
        assert "assumed" not in found.sentence
        assert "gamma 0.05" in str(found)
        other = plan([Need(error=1.0, sensitivity=s), Need(error=1.0, sensitivity=sampled(seed=2))])
        assert other.gamma == 0.1

    def test_an_average_over_blocks_is_named(self):
        """What the error is from."""
        need = Need(error=1.0, beta=0.05, sensitivity=sampled(blocks=True))
        assert "within 1 of the exact average over blocks" in plan([need]).sentence

    def test_a_proven_one_is_neither_assumed_nor_sampled(self):
        """Nothing is left open."""
        s = hs.proven_sensitivity(1.0, argument="a count")
        told = plan([Need(error=1.0, sensitivity=s)])
        assert "sensitivity of 1, proven" in told.sentence
        assert "This would satisfy" in told.sentence
        assert (told.gamma, told.epsilon) == (0.0, pytest.approx(1.0))

    def test_the_cost_of_a_plan_with_a_delta_is_nominal(self):
        """The loss exceeds epsilon with a chance of 0.0111, ten times the delta that is counted."""
        needs = [Need(error=30, beta=0.05, name=f"count {i}") for i in range(40)]
        model = CostModel(per_person=5500, people=100)
        loose, pure = (plan(needs, delta=delta, model=model) for delta in (1e-3, 0.0))
        assert "but for a chance of 0.0111" in loose.sentence
        assert loose.cost < 0.9889 * model.cost(loose.epsilon) + 0.011 * model.cost(math.inf)
        assert "would nominally cost" in loose.sentence
        assert "cost at most" not in loose.sentence
        assert "in name" in loose._repr_html_()
        assert "would cost at most" in pure.sentence
        assert "in the worst case" in pure._repr_html_()
        with pytest.raises(NotFeasible, match="in name"):
            plan(needs, budget=1.0, delta=1e-3, model=model).require()

    def test_what_does_not_fit_is_refused(self):
        """Norms that do not bound a sum, relations that do not go together, gammas above 1."""
        norm = hs.proven_sensitivity(1.0, "l2", argument="a sum")
        assert plan([Need(error=1.0, sensitivity=norm)]).epsilon == pytest.approx(1.0)
        with pytest.raises(ParameterError, match="norm='l1'"):
            Need(error=1.0, sensitivity=norm, dims=2)
        added = hs.proven_sensitivity(1.0, argument="a count", neighbours="add-remove")
        with pytest.raises(ParameterError, match="different neighbour relations"):
            plan([Need(error=1.0, sensitivity=s) for s in (added, sampled())])
        box = hs.populations.Uniform(low=0, high=1)
        drawn = [
            hs.sample_sensitivity(np.mean, box, rows=20, gamma=0.5, symmetric=True, seed=i)
            for i in range(2)
        ]
        several = [Need(error=1.0, sensitivity=each) for each in drawn]
        with pytest.raises(ParameterError, match="add up to 1"):
            plan(several)

    @pytest.mark.parametrize("norm", ["l1", "l2", "sup"])
    def test_one_of_several_numbers_is_for_so_many(self, norm):
        """In another norm the level of one number would be too small, and promise too much."""
        box = hs.populations.Uniform(low=[0, 0], high=[1, 1])
        terms = {"rows": 20, "gamma": 0.1, "symmetric": True, "seed": 1, "norm": norm}
        s = hs.sample_sensitivity(lambda rows: rows.sum(axis=0), box, **terms)
        with pytest.raises(ParameterError, match=r"answers with 2 numbers.*give dims=2"):
            Need(error=1.0, sensitivity=s)
        if norm == "l1":
            assert plan([Need(error=1.0, sensitivity=s, dims=2)]).epsilon >= s.value
        with pytest.raises(ParameterError, match=r"answers with 1 number.*give dims=1"):
            Need(error=1.0, sensitivity=sampled(), dims=2)

    def test_a_plan_speaks_of_people_only_where_they_were_declared(self):
        """As a certificate does; a number is for whatever its caller means."""
        for unit, told in {"row": "a change of one row", "person": "one person's record"}.items():
            s = hs.proven_sensitivity(1.0, argument="a count", unit=unit)
            sentence = plan([Need(error=1.0, sensitivity=s)]).sentence
            assert f"{told} would multiply" in sentence
            assert ("person" in sentence) == (unit == "person")

    def test_scopes_are_joined_as_they_are_of_releases(self):
        """What was sampled with two protect= is planned, too: for the weaker of both."""
        scopes = [sampled(), sampled(protect="everyone")]
        found = plan([Need(error=1.0, sensitivity=each) for each in scopes])
        assert found.gamma == 0.1
