"""Sparse vector: exact losses by enumeration, the rule, its state, its charge, its certificate."""

import copy
import itertools
import json
import math
import os
import pickle
import signal
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
from tests.sparse_vector_laws import (
    largest_loss,
    log_law,
    one_sided,
    one_sided_tail,
    two_sided,
    two_sided_tail,
)

import hushed as hs
from hushed.errors import Overspent, ParameterError, Refusal, WrongNorm, ZeroSensitivity
from hushed.mechanisms import _sparse_vector as sparse
from hushed.releasing import _above_threshold as above

VALUES = (-2, 0, 1)
EXACT = 1e-12  # the enumeration is in doubles


def every_shift(k):
    return list(itertools.product((-1, 0, 1), repeat=k))


def same_way(k):
    return list(itertools.product((0, 1), repeat=k))


def enumerated_loss(e1, scale, positives, shifts, *, k=3, gaps=None, noise=None):
    """Largest loss over all answers in VALUES, on integers, threshold noise of scale 1 / e1.

    With `noise`, each yes is told with a value, with discrete Laplace noise of this scale.
    """

    def mass(need):
        law = -math.expm1(-1 / scale) * np.exp(-np.maximum(need, 0) / scale)
        return np.where(need >= 0, law, 0.0)

    def law(answers):
        return log_law(
            answers,
            positives=positives,
            bar=one_sided(1 / e1),
            query_tail=one_sided_tail(scale),
            gaps=gaps,
            query_mass=mass,
            values=noise and range(-4, 4),
            value_mass=noise
            and dict(zip(*map(np.ndarray.tolist, two_sided(noise)), strict=True)).get,
        )

    return largest_loss(list(itertools.product(VALUES, repeat=k)), shifts, law)


def plan_of(epsilon=1.0, **options):
    movement = hs.proven_sensitivity(options.pop("moved", 1.0), argument="by assumption")
    return sparse.SparseVector(movement, epsilon=epsilon, threshold=0.0, **options)


class TestLoss:
    @pytest.mark.parametrize("epsilon", [0.5, 1.0])
    @pytest.mark.parametrize("positives", [1, 2])
    @pytest.mark.parametrize("monotone", [False, True])
    def test_the_scales_lose_epsilon_and_no_more(self, monkeypatch, epsilon, positives, monotone):
        """On the grid of the integers all outputs lose at most epsilon, and some lose all of it."""
        monkeypatch.setattr(sparse, "_GRID_BITS", 0)
        plan = plan_of(epsilon, positives=positives, monotone=monotone)
        assert (plan.grid, plan.scales.distance) == (0, 1)
        e1 = 1 / float(plan.scales.threshold)
        shifts = same_way(3) if monotone else every_shift(3)
        loss = enumerated_loss(e1, float(plan.scales.query), positives, shifts)
        assert loss == pytest.approx(epsilon, rel=EXACT)

    @pytest.mark.slow_cases("2-4")
    @pytest.mark.parametrize(("positives", "gaps"), [(1, 10), (2, 4)])
    def test_gaps_are_free(self, monkeypatch, positives, gaps):
        """Outputs with the gap of each yes lose epsilon, as those without it do."""
        monkeypatch.setattr(sparse, "_GRID_BITS", 0)
        plan = plan_of(positives=positives)
        e1 = 1 / float(plan.scales.threshold)
        loss = enumerated_loss(e1, float(plan.scales.query), positives, every_shift(3), gaps=gaps)
        assert loss == pytest.approx(1.0, rel=EXACT)

    @pytest.mark.slow_cases("1-3", "2-None")
    @pytest.mark.parametrize(("positives", "gaps"), [(1, None), (1, 3), (2, None)])
    def test_values_cost_their_share_and_no_more(self, monkeypatch, positives, gaps):
        """Outputs with a value of each yes, also with its gap, lose epsilon; some lose all of it.

        Without a share of their own, or with one for all of them together, they lose more.
        """
        monkeypatch.setattr(sparse, "_GRID_BITS", 0)
        right, whole = (plan_of(positives=positives, values=v).scales for v in (0.4, 0.0))
        for scales, noise, lost in (
            (right, right.value, 1.0),
            (whole, right.value, 1.4),
            (right, right.value / positives, 0.6 + 0.4 * positives),
        ):
            e1, scale = float(scales.shares[0]), float(scales.query)
            loss = enumerated_loss(
                e1, scale, positives, every_shift(3), gaps=gaps, noise=float(noise)
            )
            assert loss == pytest.approx(lost, rel=EXACT)

    @pytest.mark.slow_cases("2")
    @pytest.mark.parametrize("positives", [1, 2])
    def test_values_of_monotone_answers_cost_less(self, monkeypatch, positives):
        """What moves is paid as a value or as a yes upwards, and without the threshold downwards.

        So max(e1 + max(e2, e3), e2 + e3) is lost, which is below the epsilon that is charged.
        """
        monkeypatch.setattr(sparse, "_GRID_BITS", 0)
        scales = plan_of(positives=positives, monotone=True, values=0.4).scales
        (e1, e2), e3 = map(float, scales.shares), 0.4
        loss = enumerated_loss(
            e1, float(scales.query), positives, same_way(3), noise=float(scales.value)
        )
        assert loss == pytest.approx(max(e1 + max(e2, e3), e2 + e3), rel=EXACT)
        assert loss < 1

    @pytest.mark.parametrize(("split", "wrong"), [(0.5, 1.5), (0.3, 1.7)])
    @pytest.mark.parametrize("positives", [1, 2])
    def test_the_noise_of_monotone_answers_is_too_little_for_others(self, split, wrong, positives):
        """The published slip: half the noise on general queries loses e1 + 2 e2."""
        scale = positives / (1 - split)
        assert enumerated_loss(split, scale, positives, same_way(3)) == pytest.approx(1, rel=EXACT)
        loss = enumerated_loss(split, scale, positives, every_shift(3))
        assert loss == pytest.approx(wrong, rel=EXACT)

    @pytest.mark.parametrize(("split", "wrong"), [(0.5, 1.5), (0.3, 1.7)])
    def test_laplace_noise_makes_the_same_slip(self, split, wrong):
        """With Laplace noise and 20 queries: epsilon for scale 2D/e2, e1 + 2 e2 for D/e2."""
        found = []
        for factor in (2, 1):
            bar, tail = two_sided(1 / split), two_sided_tail(factor / (1 - split))

            def law(answers, bar=bar, tail=tail):
                return log_law(answers, positives=1, bar=bar, query_tail=tail)

            vectors = [(a,) * 19 + (b,) for a in (-4, 0, 8) for b in (-20, -8)]
            found.append(largest_loss(vectors, [(1,) * 19 + (-1,)], law))
        assert found == pytest.approx([1.0, wrong], rel=1e-9)

    @pytest.mark.parametrize(
        ("positives", "half", "best"), [(1, "6.32", 5.89), (5, "28.4", 18.9), (25, "141", 79)]
    )
    def test_the_split_is_the_best_one(self, positives, half, best):
        """Deviations of a comparison with Laplace noise, as tabulated; here 1.41 times less."""
        at_half = math.sqrt(2) * math.hypot(2, 4 * positives)
        assert f"{at_half:.3g}" == half
        e1, e2 = map(float, plan_of(positives=positives).scales.shares)
        deviation = math.hypot(1 / e1, 2 * positives / e2)
        assert deviation == pytest.approx((1 + (2 * positives) ** (2 / 3)) ** 1.5, rel=1e-6)
        assert math.sqrt(2) * deviation == pytest.approx(best, rel=0.005)
        for other in (0.9 * e1, 1.1 * e1):
            assert deviation < math.hypot(1 / other, 2 * positives / (1 - other))

    @pytest.mark.parametrize("epsilon", [1e-5, 0.1, 0.3, 1.0, 7.0, 1e6])
    @pytest.mark.parametrize("moved", [1 / 3, 1.0, 0.1, 3.7e-300, 1e300])
    @pytest.mark.parametrize("positives", [1, 3])
    def test_the_budget_adds_up_in_rationals(self, epsilon, moved, positives):
        """Shifts of the noise cost epsilon exactly, for the distance on the grid."""
        for values in (0.0, epsilon / 4):
            for monotone in (False, True):
                plan = plan_of(
                    epsilon, moved=moved, positives=positives, monotone=monotone, values=values
                )
                yes = (1 if monotone else 2) * plan.scales.distance
                cost = (
                    plan.scales.distance / plan.scales.threshold
                    + positives * yes / plan.scales.query
                )
                if values:
                    cost += positives * plan.scales.distance / plan.scales.value
                assert cost == Fraction(repr(epsilon))
                assert plan.scales.distance * Fraction(2) ** plan.grid >= Fraction(moved)
                assert plan.scales.distance * Fraction(2) ** plan.grid <= Fraction(moved) * (
                    1 + 2**-19
                )

    def test_rounding_down_moves_no_answer_further_than_the_distance(self):
        """Answers at most D apart are at most `distance` steps apart, also at the ends of cells."""
        rng = np.random.default_rng(3)
        for moved in (1.0, 0.1, 1 / 3, 5e-324, 2.0**-40 + 2.0**-92):
            plan = plan_of(moved=moved)
            for place in (0.0, 1.0, 1e9, moved):
                for low in rng.normal(place, moved + place / 1e8, 50).tolist():
                    high = Fraction(low) + Fraction(moved)
                    steps = [sparse.round_down(each, plan.grid) for each in (Fraction(low), high)]
                    assert 0 <= steps[1] - steps[0] <= plan.scales.distance


class Scripted:
    """Noise written down in advance; remembers the scales it was asked for."""

    def __init__(self, *draws):
        self.draws, self.scales = list(draws), []

    def __call__(self, scale):
        self.scales.append(scale)
        return self.draws.pop(0)


def scripted(monkeypatch, *draws):
    noise = Scripted(*draws)
    monkeypatch.setattr(above, "discrete_exponential", noise)
    return noise


UNIT = 2**20  # grid steps in a sensitivity of 1


class TestRule:
    @pytest.mark.parametrize(
        ("answer", "noise", "gap"),
        [(5, 0, 2.0), (3, 0, 0.0), (3, 1, 2.0**-20), (2, UNIT, 0.0), (2, UNIT - 1, None)],
    )
    def test_yes_is_said_from_the_noisy_threshold_on(self, monkeypatch, answer, noise, gap):
        """Threshold 2 with noise 1 makes 3: a tie is yes; the gap is what is above it."""
        scripted(monkeypatch, UNIT, noise)
        told = hs.AboveThreshold(2, 1.0).ask(answer)
        assert (bool(told), told.above, told.gap, told.value) == (
            gap is not None,
            gap is not None,
            gap,
            None,
        )

    def test_noise_is_drawn_as_the_proof_says(self, monkeypatch):
        """Once for the threshold, once for each answer, and for a value the difference of two."""
        noise = scripted(monkeypatch, 0, 0, 0, 7 * UNIT, 4 * UNIT)
        search = hs.AboveThreshold(10, 1.0, 1, 2, values=0.25)
        assert not search.ask(9)
        told = search.ask(12.5)
        assert (told.gap, told.value) == (2.5, 15.5)
        e1, e2 = plan_of(0.75, positives=2).scales.shares
        per_step = [1 / e1, 4 / e2, 4 / e2, 8, 8]  # (2 positives) / e2; positives / values
        assert noise.scales == [UNIT * each for each in per_step]

    def test_a_value_does_not_tell_the_noise_of_the_comparison(self, monkeypatch):
        """The value has noise of its own: with none on it, it is the answer, whatever the gap."""
        scripted(monkeypatch, 0, 3 * UNIT, 0, 0)
        told = hs.AboveThreshold(10, 1.0, values=0.5).ask(8)
        assert (told.gap, told.value) == (1.0, 8.0)

    @pytest.mark.parametrize(
        "answer",
        [12, 12.0, np.int64(12), np.uint8(12), np.float32(12), np.longdouble(12), Fraction(12)],
    )
    def test_numbers_of_any_kind_are_read_exactly(self, monkeypatch, answer):
        """Integers, floats and fractions, of NumPy, too."""
        scripted(monkeypatch, 0, 0)
        assert hs.AboveThreshold(10, 1.0).ask(answer).gap == 2.0

    @pytest.mark.parametrize(
        ("moved", "answer", "threshold"),
        [(1e-300, -5e-324, -1e-300), (1e300, 1.7e308, -1.7e308), (1e-310, 1e308, 0.0)],
    )
    def test_numbers_at_the_ends_of_the_doubles_are_compared_exactly(
        self, monkeypatch, moved, answer, threshold
    ):
        """No product under- or overflows; a gap beyond the doubles is told as the largest."""
        scripted(monkeypatch, 0, 0)
        told = hs.AboveThreshold(threshold, 1.0, moved).ask(answer)
        exact = min(Fraction(answer) - Fraction(threshold), Fraction(1.7976931348623157e308))
        assert told.gap == pytest.approx(float(exact), rel=1e-5)

    @pytest.mark.slow
    def test_yes_comes_as_often_as_the_law_says(self):
        """1,000 fresh objects, an answer 2 below: a binomial test at a false alarm of 1e-6."""
        from scipy import stats

        runs = 1000
        plan = plan_of()
        s1, s2 = (float(s) / UNIT for s in (plan.scales.threshold, plan.scales.query))
        # P(nu >= 2 + rho) for independent exponential variables.
        chance = math.exp(-2 / s2) * s2 / (s1 + s2)
        found = sum(bool(hs.AboveThreshold(2, 1.0).ask(0)) for _ in range(runs))
        assert stats.binomtest(found, runs, chance).pvalue > 1e-6

    @pytest.mark.slow
    def test_accuracy_holds_as_often_as_it_says(self):
        """Of 300 runs of 20 questions at the stated distance, those with an error are few."""
        from scipy import stats

        wrong = 0
        for _ in range(300):
            search = hs.AboveThreshold(0, 1.0)
            far = search.accuracy(questions=20, beta=0.2)
            wrong += any(search.ask(-far) for _ in range(19)) or not search.ask(far)
        assert stats.binomtest(wrong, 300, 0.2, alternative="greater").pvalue > 1e-6
        plan = plan_of()
        expected = float(plan.scales.query) / UNIT * math.log(2 * 20 / 0.2)
        assert far == pytest.approx(expected, rel=1e-5)


class TestState:
    def test_it_refuses_after_the_last_yes(self):
        """Two yes are told, then nothing more, and no number of no counts."""
        search = hs.AboveThreshold(100, 1.0, positives=2)
        assert [bool(search.ask(a)) for a in (-1e6, 1e6, -1e6, 1e6)] == [False, True, False, True]
        assert search.left == 0
        for answer in (1e6, -1e6):
            with pytest.raises(Refusal, match="all 2 answers"):
                search.ask(answer)

    @pytest.mark.parametrize(
        "answer",
        [
            *(math.nan, math.inf, -math.inf, np.float32("nan")),
            *("3", None, True, np.bool_(True), 1j, np.array([1.0]), [1.0]),
        ],
    )
    def test_what_is_no_finite_number_is_refused_and_costs_nothing(self, answer):
        """The answer is not shown, and the next question is answered."""
        search = hs.AboveThreshold(100, 1.0)
        with pytest.raises(ParameterError, match="finite") as refused:
            search.ask(answer)
        assert refused.value.__context__ is None
        assert search.left == 1
        assert search.ask(1e6)

    @pytest.mark.parametrize("slow", [False, True])
    def test_eight_threads_find_no_more_than_is_left(self, monkeypatch, slow):
        """Eight threads ask one object 200 times each, also while noise is drawn: five yes."""
        if slow:
            monkeypatch.setattr(above, "discrete_exponential", lambda scale: time.sleep(0.002) or 0)
        search = hs.AboveThreshold(0, 1.0, positives=5)
        told, refused, start = [], [], threading.Barrier(8)

        def ask():
            start.wait()
            for _ in range(200):
                try:
                    told.append(bool(search.ask(1e6)))
                except Refusal:
                    refused.append(1)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert told == [True] * 5
        assert (len(refused), search.left) == (1595, 0)

    def test_a_question_within_a_question_is_refused(self, monkeypatch):
        """A signal handler that asks while an answer is made cannot get the same yes twice."""
        search = hs.AboveThreshold(0, 1.0)
        seen = []

        def interrupted(scale):
            with pytest.raises(Refusal, match="being answered"):
                search.ask(1e6)
            seen.append(scale)
            return 0

        monkeypatch.setattr(above, "discrete_exponential", interrupted)
        assert search.ask(1e6)
        assert (len(seen), search.left) == (1, 0)

    def test_a_stop_while_drawing_leaves_it_usable(self, monkeypatch):
        """Ctrl-C shows nothing and spends nothing."""
        search = hs.AboveThreshold(0, 1.0)

        def stopped(scale):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(above, "discrete_exponential", stopped)
            with pytest.raises(KeyboardInterrupt):
                search.ask(1e6)
        assert search.left == 1
        assert search.ask(1e6)

    @pytest.mark.parametrize(
        "spread", [copy.copy, copy.deepcopy, pickle.dumps, lambda each: pickle.dumps(each, 0)]
    )
    def test_it_cannot_become_two(self, spread):
        """A copy would spend the charge again."""
        with pytest.raises(TypeError, match="second time"):
            spread(hs.AboveThreshold(0, 1.0))

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    @pytest.mark.parametrize("same_number", [False, True])
    def test_a_forked_child_refuses(self, monkeypatch, same_number):
        """Also one that got the process number of the maker; the parent goes on."""
        search = hs.AboveThreshold(0, 1.0)
        number = os.getpid()
        child = os.fork()
        if child == 0:
            code = 3
            try:
                signal.alarm(60)
                if same_number:
                    monkeypatch.setattr(above.os, "getpid", lambda: number)
                search.ask(1e6)
            except Refusal:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert search.ask(1e6)

    def test_a_fork_in_the_middle_of_a_question_is_noticed(self, monkeypatch):
        """The child, which has the same question half answered, shows and spends nothing."""
        search = hs.AboveThreshold(0, 1.0)

        def forked(scale):
            monkeypatch.setattr(above._Process, "mark", object())
            return 0

        with monkeypatch.context() as patch:
            patch.setattr(above, "discrete_exponential", forked)
            with pytest.raises(Refusal, match="another process"):
                search.ask(1e6)
        assert search.left == 1

    def test_nothing_secret_is_printed(self, monkeypatch):
        """Its text holds what was stated, and not the noisy threshold."""
        scripted(monkeypatch, 12345 * UNIT)
        shown = repr(hs.AboveThreshold(7, 1.0, positives=2))
        assert shown == (
            "AboveThreshold(threshold=7, epsilon=1, sensitivity=1, positives=2, left=2)"
        )
        assert not hasattr(hs.AboveThreshold, "__dict__") or "_bar" not in shown


class TestParameters:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"threshold": math.nan},
            {"threshold": math.inf},
            {"threshold": "3"},
            {"epsilon": 0.0},
            {"epsilon": math.inf},
            {"sensitivity": -1},
            {"sensitivity": math.nan},
            {"positives": 0},
            {"positives": 1.5},
            {"monotone": 1},
            {"values": 1.0},
            {"values": -0.1},
            {"epsilon": 1e-12},
            {"neighbours": "add"},
            {"unit": "person "},
            {"budget": "b"},
        ],
    )
    def test_what_cannot_be_used_is_refused(self, wrong):
        """One wrong parameter each."""
        with pytest.raises(ParameterError):
            hs.AboveThreshold(**{"threshold": 1.0, "epsilon": 1.0} | wrong)

    def test_a_sampled_sensitivity_is_refused(self):
        """Its gamma speaks of the one function that was sampled."""
        sampled = hs.sample_sensitivity(
            lambda rows: rows.sum(), hs.populations.Uniform(low=0, high=1), rows=5, seed=1
        )
        with pytest.raises(ParameterError, match="every question may be another"):
            hs.AboveThreshold(1, 1.0, sampled)

    def test_norms_and_zero(self):
        """A range says nothing of one number, and no movement needs no noise."""
        with pytest.raises(WrongNorm):
            hs.AboveThreshold(1, 1.0, hs.proven_sensitivity(1.0, "range", argument="a"))
        with pytest.raises(ZeroSensitivity, match="stated to be 0"):
            hs.AboveThreshold(1, 1.0, 0)

    def test_neighbours_are_said_once(self):
        """A sensitivity has its own."""
        proven = hs.proven_sensitivity(2.0, neighbours="add-remove", unit="user", argument="a")
        assert hs.AboveThreshold(1, 1.0, proven).guarantee == hs.Guarantee(
            epsilon=1.0, neighbours="add-remove", unit="user"
        )
        with pytest.raises(ParameterError, match="leave"):
            hs.AboveThreshold(1, 1.0, proven, neighbours="add-remove")


class TestCharge:
    @pytest.fixture
    def book(self, tmp_path):
        with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as found:
            found.open_budget("b", hs.Guarantee(epsilon=1.0), method="basic")
            yield found

    def test_the_whole_is_charged_when_it_is_made(self, book):
        """One charge of epsilon, none for questions, and no second object where nothing is left."""
        search = hs.AboveThreshold(10, 0.7, positives=3, ledger=book, budget="b")
        assert search.entry == 1
        for answer in (-1e6, 1e6):
            search.ask(answer)
        entries = list(book.entries("b"))
        assert [each.guarantee.epsilon for each in entries] == [0.7]
        assert "AboveThreshold" in entries[0].note
        with pytest.raises(Overspent):
            hs.AboveThreshold(10, 0.7, ledger=book, budget="b")
        with pytest.raises(ParameterError, match="add-remove"):
            hs.AboveThreshold(10, 0.1, neighbours="add-remove", ledger=book, budget="b")

    def test_what_was_told_is_stored_when_the_search_ends(self, book):
        """With the last one found, before it is told; or when it is closed; never twice."""
        found = hs.AboveThreshold(10, 0.3, values=0.1, ledger=book, budget="b")
        assert not found.ask(-1e6)
        assert book.answer("b", 1) is None
        crossing = found.ask(1e6)
        stored = book.answer("b", 1)
        assert found.transcript.found == {2: crossing}
        assert json.loads(stored)["found"] == [
            {"question": 2, "gap": crossing.gap, "value": crossing.value}
        ]
        found.close()
        assert book.answer("b", 1) == stored
        closed = hs.AboveThreshold(10, 0.3, positives=2, ledger=book, budget="b")
        assert closed.ask(1e6)
        closed.close()
        closed.close()
        assert closed.left == 0
        assert [each["question"] for each in json.loads(book.answer("b", 2))["found"]] == [1]
        with pytest.raises(Refusal, match="was closed"):
            closed.ask(1e6)

    def test_a_stop_in_between_tells_no_answer_that_was_not_counted(self, monkeypatch):
        """It costs one of the positives, as it may be known that it was found; and is not told."""
        search = hs.AboveThreshold(10, 1.0, positives=3)
        search.ask(-1e6)

        def stop(*_: object) -> float:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(above, "to_double", stop)
            with pytest.raises(KeyboardInterrupt):
                search.ask(1e6)
        assert (search.transcript.asked, search.transcript.found) == (1, {})
        assert search.ask(1e6)
        assert (search.transcript.asked, list(search.transcript.found)) == (2, [2])
        assert search.left == 1

    def test_what_is_refused_is_not_charged(self, book):
        """A wrong parameter is found before the charge."""
        with pytest.raises(ParameterError):
            hs.AboveThreshold(math.nan, 0.5, ledger=book, budget="b")
        assert list(book.entries("b")) == []

    def test_the_certificate_says_on_whose_word(self, book):
        """Stated by who asked, or by the argument of a proven sensitivity."""
        search = hs.AboveThreshold(10, 0.5, 2, 3, True, ledger=book, budget="b")
        text = search.certificate.explain()
        assert "who asked stated that every answer moves by no more" in text
        assert "who asked stated, too, that all answers move the same way" in text
        assert "nothing was sampled to check it" in text
        assert "also where the question followed from earlier answers" in text
        assert "charged to" in text
        proven = hs.proven_sensitivity(2.0, argument="two rows a person")
        text = hs.AboveThreshold(10, 0.5, proven).certificate.explain()
        assert "two rows a person" in text
        assert "who asked stated" not in text

    def test_the_certificate_is_read_and_verified(self):
        """JSON and back; its numbers follow from what was stated; a changed one is refused."""
        known = hs.AboveThreshold(10, 0.5, 2, 3, values=0.1).certificate
        again = hs.Certificate.from_json(known.to_json())
        assert again == known
        assert hs.verify(again).reproduced
        assert known.mechanism.parameters == {
            "epsilon": 0.5,
            "threshold": 10.0,
            "positives": 3,
            "monotone": False,
            "values": 0.1,
        }
        with pytest.raises(ParameterError, match="does not follow"):
            hs.Certificate.from_json(known.to_json().replace('"positives": 3', '"positives": 4'))

    def test_the_certificate_states_the_noise_of_the_values(self):
        """3 values of answers that move by 2, for 0.1: scale 3 * 2 / 0.1; less is refused."""
        known = hs.AboveThreshold(10, 0.5, 2, 3, values=0.1).certificate
        assert known.mechanism.value_scale == pytest.approx(60, rel=1e-6)
        assert known.mechanism.value_scale >= 60
        text = known.explain()
        assert "Laplace noise of its own of scale 60" in text
        # Of so much noise a twentieth exceeds 60 log(20) = 179.743...
        assert "within 179.8 of the exact answer" in text
        assert hs.verify(known.to_json()).reproduced
        loaded = json.loads(known.to_json())
        for wrong in (30.0, 59.9, None, 0.0):
            loaded["mechanism"]["value_scale"] = wrong
            with pytest.raises(ParameterError, match="value_scale"):
                hs.Certificate.from_json(json.dumps(loaded))
        plain = hs.AboveThreshold(10, 0.5, 2, 3).certificate
        assert plain.mechanism.value_scale is None
        assert "value of each" not in plain.explain()
        moves = hs.proven_sensitivity(1.0, argument="one row more")
        median = hs.InverseSensitivity(hs.statistics.median(rows=5, low=0, high=9), epsilon=1.0)
        others = [
            plain,
            hs.release(len, [1.0], hs.Laplace(moves, epsilon=1.0)).certificate,
            hs.release(median.statistic, [1.0, 2, 3, 4, 5], median).certificate,
        ]
        for other in others:
            loaded = json.loads(other.to_json())
            loaded["mechanism"]["value_scale"] = 1.0
            with pytest.raises(ParameterError, match="value_scale"):
                hs.Certificate.from_json(json.dumps(loaded))


def test_it_is_no_mechanism_of_release():
    """hs.release takes mechanisms that draw; this one is asked."""
    with pytest.raises(ParameterError, match="only a mechanism such as"):
        hs.release(len, [1, 2], hs.AboveThreshold(1, 1.0))
