"""Audits: right mechanisms pass, wrong ones are caught with a witness, bad input is refused."""

import json
import math
import pickle
import random
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from hushed import populations
from hushed._rows import _containers as containers
from hushed.auditing import (
    Command,
    PopulationPairs,
    Raised,
    Renyi,
    ZeroConcentrated,
    _search,
    audit,
    extreme_pairs,
)
from hushed.auditing._fixed import plan_samples
from hushed.auditing._goal import Goal, adapt_claim
from hushed.auditing._mechanisms import adapt_mechanism, find_carried_generator
from hushed.auditing._outputs import choose_encoder, find_lowest_bit
from hushed.auditing._pairs import pattern_pairs, read_pairs
from hushed.auditing._runs import prepare_runs
from hushed.auditing._search import Search
from hushed.auditing._storage import read_report, write_report
from hushed.errors import BadFunction, ParameterError, TooFewPairs, TooFewSamples
from hushed.guarantee import Guarantee

ONE = Guarantee(epsilon=1.0)


def grid_laplace(rows, rng, size):
    """Private at epsilon 1 for a sum that moves by 1: noise and answer on one grid."""
    steps = rng.geometric(-math.expm1(-1 / 64), (2, size))
    return np.round(rows.sum() * 64) / 64 + (steps[0] - steps[1]) / 64


def responses(rows, rng, size):
    """Randomised response at epsilon log 3."""
    return np.where(rng.random(size) < 0.75, rows[0], 1 - rows[0])


def wrong_scale(rows, rng, size):
    """Noise of scale epsilon where 1 / epsilon is meant, at epsilon 0.1."""
    return rows + rng.laplace(scale=0.1, size=(size, len(rows)))


SURE = 0.999999


def quick(mechanism, pairs="one below", **options):
    options = {"claim": ONE, "samples": 8000, "batch": True, "workers": 1, "answers": 1} | options
    return audit(mechanism, pairs, **options)


class TestVerdicts:
    @pytest.mark.slow_cases("False-grid_laplace")
    @pytest.mark.parametrize("mechanism", [grid_laplace, responses])
    @pytest.mark.parametrize("sequential", [False, True])
    def test_right_claims_stand_and_wrong_ones_fall(self, mechanism, sequential):
        """The true epsilon is not refuted, half of it is, and the bound lies in between."""
        truth = 1.0 if mechanism is grid_laplace else math.log(3)
        right = quick(
            mechanism, claim=Guarantee(epsilon=truth), samples=20_000, sequential=sequential
        )
        wrong = quick(
            mechanism, claim=Guarantee(epsilon=truth / 2), samples=20_000, sequential=sequential
        )
        assert right.verdict == "not refuted"
        assert wrong.verdict == "violated"
        assert truth / 2 <= wrong.epsilon_low <= truth
        assert right.minimum_detectable > truth

    def test_delta_at_epsilon(self):
        """Laplace at epsilon 1/2 needs delta 1 - exp(-1/4): bound and estimate lie below.

        The event is the one that shows most epsilon, which is not the best one for delta.
        """
        found = quick(grid_laplace, claim=Guarantee(epsilon=0.5, delta=0.01), samples=40_000)
        assert found.verdict == "violated"
        assert 0.13 < found.delta_low < 1 - math.exp(-0.25)
        near = abs(found.estimate.epsilon - 0.5).argmin()
        estimate, error = found.estimate.values[near], found.estimate.standard_error[near]
        # Outputs are merged by their score, which can only lower the truth.
        assert found.delta_low < estimate < 1 - math.exp(-0.25) + 3 * error

    @pytest.mark.slow
    def test_wrong_scale_has_its_witness(self):
        """The pair, the side and the counts of the event come with the verdict."""
        claim = Guarantee(epsilon=0.1)
        found = quick(wrong_scale, "histogram", claim=claim, samples=60_000, answers=3, bits=False)
        assert found.verdict == "violated"
        assert 5 < found.epsilon_low < 10
        assert found.witness.pair.name in ("one below", "one above")
        assert found.witness.counts.hits > 100 * found.witness.counts.other_hits
        seen = found.witness.counts
        likelier, other = found.outcomes
        assert (sum(likelier), sum(other)) == (seen.samples, seen.other_samples)
        ends = [(sum(likelier[i:]), sum(other[i:])) for i in range(len(likelier))]
        assert (seen.hits, seen.other_hits) in ends
        words = found.explain()
        assert words.startswith("VIOLATED")
        assert words.index("Certified") < words.index("Estimate, not a certificate")

    @pytest.mark.slow
    def test_a_violated_verdict_says_how_often_a_right_mechanism_gets_it(self):
        """One in twenty by default; a verdict that accuses nobody does not say so."""
        told = "in independent runs gets this verdict with probability at most"
        found = quick(wrong_scale, "histogram", claim=Guarantee(epsilon=0.1), bits=False)
        assert f"{told} 0.05." in found.explain()
        found = quick(
            wrong_scale,
            "histogram",
            claim=Guarantee(epsilon=0.1),
            bits=False,
            confidence=0.999,
        )
        assert f"{told} 0.001." in found.explain()
        assert told not in quick(grid_laplace).explain()

    def test_not_refuted_is_not_private(self):
        """The report says what would have been caught, and that more may be missed."""
        found = quick(grid_laplace)
        assert found.verdict == "not refuted"
        assert math.isfinite(found.minimum_detectable)
        words = f"An epsilon of {found.minimum_detectable:.4g}"[:-1]
        assert f"Not refuted is not private. {words}" in found.explain()
        assert "may have been missed" in found.explain()
        soon = quick(grid_laplace, sequential=True)
        assert "An epsilon of about " in soon.explain()

    def test_blindness_is_told(self):
        """An output that never varies shows nothing: the report says so, and claims no power."""
        found = quick(lambda rows, rng, size: np.zeros(size))
        assert found.minimum_detectable == math.inf
        assert "shows no violation of this claim, however large" in found.explain()
        assert "would have been caught" not in found.explain()

    @pytest.mark.slow_cases("60000")
    @pytest.mark.parametrize("samples", [20_000, 60_000])
    def test_a_violation_is_not_compared_with_what_would_have_been_caught(self, samples):
        """That number is about the power of an audit that found nothing."""
        found = quick(responses, claim=Guarantee(epsilon=0.5), samples=samples)
        assert found.verdict == "violated"
        assert "caught" not in found.explain()
        assert found.to_dict()["minimum_detectable"] == found.minimum_detectable

    @pytest.mark.parametrize("claim", [ZeroConcentrated(rho=0.125), Renyi(order=4, epsilon=0.5)])
    def test_claims_about_divergences(self, claim):
        """A Gaussian of the claimed rho stands, one of a third of its spread falls."""

        def gauss(spread):
            return lambda rows, rng, size: (
                np.round((rows[0] + rng.normal(0, spread, size)) * 1024) / 1024
            )

        assert quick(gauss(2.0), claim=claim).verdict == "not refuted"
        found = quick(gauss(0.7), claim=claim)
        assert found.verdict == "violated"
        assert found.measured > (0.125 if isinstance(claim, ZeroConcentrated) else 0.5)
        named = {True: "rho", False: "the Renyi divergence of order 4"}
        said = f"{named[isinstance(claim, ZeroConcentrated)]} is at least {found.measured:.3f}"
        assert f"confidence 0.95: {said[:-1]}" in found.explain()

    @pytest.mark.slow
    def test_gamma_lets_a_share_of_pairs_fail(self):
        """Sums of uniforms move less than 0.9 on 99 % of pairs, and less than 0.1 on 19 %."""
        pairs = PopulationPairs(population=populations.Uniform(low=0, high=1), rows=3, count=12)
        options = {"samples": 24_000}
        right = quick(grid_laplace, pairs, claim=Guarantee(epsilon=0.9, gamma=0.05), **options)
        wrong = quick(grid_laplace, pairs, claim=Guarantee(epsilon=0.1, gamma=0.05), **options)
        assert (right.verdict, wrong.verdict) == ("not refuted", "violated")
        assert 0.05 < wrong.population.share_low < 0.81
        few = PopulationPairs(population=pairs.population, rows=3, count=2)
        with pytest.raises(TooFewPairs, match="draw more pairs") as caught:
            quick(grid_laplace, few, claim=Guarantee(epsilon=0.1, gamma=0.3), **options)
        assert caught.value.needed > 2

    @pytest.mark.slow
    def test_workers_do_not_change_the_answer(self):
        """One worker and two give the same counts."""
        found = [quick(grid_laplace, samples=300_000, workers=n).to_dict() for n in (1, 2)]
        for each in found:
            del each["seconds"]
        assert found[0] == found[1]

    def test_json_has_no_nan(self):
        """The record is plain JSON, with certificate and estimate in different places."""
        record = json.loads(quick(responses).to_json())
        assert record["certified"]["epsilon_low"] > 0
        assert "not a certificate" in record["estimate"]["note"]


class TestOutputs:
    def test_an_exception_is_an_event(self):
        """A mechanism that raises on one table only is caught by it."""

        def fails(rows, rng):
            if rows[0] == 0 and rng.random() < 0.2:
                raise KeyError("gone")
            return 1

        found = quick(fails, batch=False, samples=2000)
        assert found.verdict == "violated"
        assert "KeyError" in found.witness.event
        assert found.witness.counts.other_hits == 0

    @pytest.mark.parametrize("batch", [True, False])
    def test_a_mechanism_that_only_raises_is_not_judged(self, batch):
        """Not refuted would be true and useless: the exception and its message are told."""

        def fails(rows, rng, size=1):
            raise TypeError("takes a frame")

        with pytest.raises(BadFunction, match=r"ended in TypeError \(takes a frame\)"):
            quick(fails, batch=batch)
        seldom = quick(lambda rows, rng: 1 / int(rng.random() < 0.3), batch=False, samples=2000)
        assert seldom.verdict == "not refuted"

    def test_a_batch_that_raises_is_run_one_by_one(self):
        """What fails in a batch becomes an outcome of single runs."""

        def fails(rows, rng, size):
            if rows[0] == 0 and (rng.random(size) < 0.2).any():
                raise KeyError("gone")
            return np.ones(size)

        found = quick(fails, samples=1000)
        assert found.verdict == "violated"
        assert 0.1 < found.witness.counts.hits / found.witness.counts.samples < 0.3

    @pytest.mark.slow_cases("<lambda>-output1")
    @pytest.mark.parametrize(
        ("leak", "word"),
        [
            (lambda rows, rng: [1.5] * int(2 + rows[0]), "output"),
            (lambda rows, rng: None if rows[0] and rng.random() < 0.5 else 0.25, "None"),
            (lambda rows, rng: {"a": [rng.random()], "b": {1}} if rows[0] else "text", "output"),
            (lambda rows, rng: 1 if rows[0] else 1.0, "output"),
            (lambda rows, rng: [None, rng.random()][: int(1 + rows[0])], "output"),
        ],
    )
    def test_lengths_types_and_none(self, leak, word):
        """Lengths, None, unhashable outputs and types alone give a mechanism away."""
        found = quick(leak, batch=False, samples=1500)
        assert found.verdict == "violated"
        assert word in found.witness.event

    def test_arrays_without_a_dimension(self):
        """A mechanism may give an array of no dimension: it is read as the number it holds."""

        def shifted(rows, rng):
            return np.array(rows[0] + rng.integers(2)) if rows[0] else None

        found = quick(shifted, batch=False, samples=1500)
        assert found.verdict == "violated"
        whole = choose_encoder([[np.array(1.5), np.array(2)]])
        assert whole.values(whole.encode([np.array(1.5)])).tolist() == [[1.5]]

    def test_bits_of_doubles(self):
        """Laplace noise on doubles is told by its lowest bit, and is fine when only rounded."""

        def naive(rows, rng, size):
            return rows[0] + rng.laplace(size=size)

        found = quick(naive)
        assert found.verdict == "violated"
        assert found.epsilon_low > 3
        assert "lowest set bit" in found.witness.event
        assert quick(naive, bits=False).verdict == "not refuted"
        assert quick(grid_laplace).verdict == "not refuted"

    def test_lowest_bit(self):
        """Exponents of lowest set bits, against exact fractions."""
        values = np.array([6.0, 0.75, -5e-324, 3 * 2.0**-60, 1 + 2.0**-52])
        exact = [-(float(v).as_integer_ratio()[1].bit_length() - 1) for v in values]
        exact[0] = 1
        assert find_lowest_bit(values).tolist() == exact
        without = find_lowest_bit(np.array([0, np.nan, np.inf]))
        assert without[0] == 2000
        assert np.isnan(without[1:]).all()  # what is no number has no bits

    def test_codes_keep_outputs_apart(self):
        """Different outputs have different rows, equal ones equal rows, addresses do not count."""
        outputs = [1, 1.0, True, "1", None, [1], (1,), {1}, {"a": 1}, Raised("E"), [1, None], b"1"]
        encoder = choose_encoder([outputs])
        rows = {encoder.encode([output])[0].tobytes() for output in outputs}
        assert len(rows) == len(outputs)
        assert encoder.encode([object()]).tobytes() == encoder.encode([object()]).tobytes()


class TestHonesty:
    @pytest.mark.slow
    def test_reusing_the_selection_split_would_be_noticed(self):
        """Counts of the split that chose the event accuse an innocent; fresh ones do not.

        Both tables give the same law, so any bound above 0 is wrong. At 90 % at most 10 of 40
        are allowed by chance (exceeded with probability 0.15 %).
        """

        def innocent(rows, rng, size):
            return rng.random((size, 8))

        pair = pattern_pairs("one below", 1)[0]
        claim = adapt_claim(Guarantee(epsilon=0.0))
        goal, wrong = Goal(claim=claim, final=200, alpha=0.1), {"fresh": 0, "reused": 0}
        from hushed.auditing._bounds import Counts, JointTest

        for seed in range(40):
            runs = prepare_runs(
                adapt_mechanism(innocent, batch=True, workers=1),
                [pair],
                seed=seed,
                workers=1,
                progress=lambda _: None,
                bits=False,
            )
            search = Search(pair=pair)
            search.draw_more(runs, 400, "quick", alive=1)
            found, _ = search.choose_event(runs, goal)
            for name, stage in (("reused", "quick/select"), ("fresh", "final")):
                sides = runs.sample(pair, 200, stage)
                hits = [int(found.event.contains(side).sum()) for side in sides]
                ahead, behind = hits if found.event.first else hits[::-1]
                seen = Counts(hits=ahead, samples=200, other_hits=behind, other_samples=200)
                wrong[name] += JointTest(counts=seen, weight=1.0, alpha=0.1).rejects(0, 0)
        assert wrong["fresh"] <= 10
        assert wrong["reused"] > 10

    def test_a_carried_generator_is_refused(self):
        """Generators in closures, defaults, objects, bound methods and globals are found."""
        rng = np.random.default_rng(0)

        class Holder:
            def __init__(self):
                self.source = rng

            def __call__(self, rows):
                return self.source.random()

        def default(rows, g=rng):
            return g.random()

        draw = rng.normal
        shuffler = random.Random(1)
        for bad in (
            lambda rows: rng.normal(),
            lambda rows: draw(),
            lambda rows: shuffler.random(),
            default,
            Holder(),
            lambda rows: MODULE_RNG.random(),
        ):
            assert find_carried_generator(bad)
            with pytest.raises(BadFunction, match="carries a random generator"):
                quick(bad, batch=False, workers=2)
        assert find_carried_generator(lambda rows: random.SystemRandom().random()) is None
        assert find_carried_generator(grid_laplace) is None
        assert quick(lambda rows: float(rng.random() < 0.5), batch=False, samples=500)

    def test_a_mechanism_that_seeds_itself_is_refused(self):
        """The same numbers at every call are no samples."""

        def seeded(rows, rng, size):
            return rows[0] + np.random.default_rng(0).laplace(size=size)

        with pytest.raises(BadFunction, match="same numbers at every call"):
            quick(seeded)


class TestBadInput:
    @pytest.mark.parametrize(
        ("pair", "relation", "reason"),
        [
            (([1.0], [1.0, 2.0]), "replace-one", "replacing one keeps the number"),
            (([1.0, 2.0], [3.0, 4.0]), "replace-one", "2 rows differ"),
            (([1.0], [1.0]), "replace-one", "0 rows differ"),
            (([1.0, 2.0, 3.0], [1.0]), "add-remove", "one more or less"),
            (([1.0, 2.0], [3.0]), "add-remove", "more differs"),
            (([1.0], [2.5]), "answers", "more than 1"),
            (([1.0], [1.0]), "answers", "equal"),
        ],
    )
    def test_pairs_that_are_no_neighbours(self, pair, relation, reason):
        """What differs too much, or nowhere, is refused with the reason."""
        arrays = tuple(np.array(side) for side in pair)
        rows = relation if relation != "answers" else "replace-one"
        options = {"relation": relation, "claim": Guarantee(epsilon=1, neighbours=rows)}
        with pytest.raises(ParameterError, match=reason):
            quick(grid_laplace, [arrays], **options)
        with pytest.raises(ParameterError, match=r"no .* neighbours"):
            quick(grid_laplace, [pair], **options)

    @pytest.mark.parametrize(
        ("pair", "stated", "reason"),
        [
            (([1.0, 2.0], [3.0, 4.0]), {"distance": 2}, ""),
            (([1.0, 2.0], [3.0, 2.0]), {"distance": 2}, "1 row differs instead of 2$"),
            (([1.0, 2.0, 3.0], [2.0]), {"distance": 2, "neighbours": "add-remove"}, ""),
            (([1.0, 2.0, 3.0], [4.0]), {"distance": 2, "neighbours": "add-remove"}, "than 2 rows"),
            (([1.0, 2.0], [1.0]), {"distance": 2, "neighbours": "add-remove"}, "2 more or less"),
            (([1.0, 2.0], [3.0, 4.0, 5.0]), {"unit": "user"}, ""),
            (([1.0, 2.0], [1.0, 2.0]), {"unit": "user"}, "they are equal"),
        ],
    )
    def test_pairs_are_as_far_apart_as_the_claim_says(self, pair, stated, reason):
        """All of them differed in one row: a claim about two passed, or could not be tried."""
        judged = partial(
            quick,
            lambda rows, rng, size: rng.laplace(size=size),
            [tuple(map(np.array, pair))],
            claim=Guarantee(epsilon=1, **stated),
            samples=400,
        )
        if reason:
            with pytest.raises(ParameterError, match=reason):
                judged()
            return
        assert ("on your word" in judged().explain()) == ("unit" in stated)

    @pytest.mark.parametrize("stated", [{"distance": 2}, {"unit": "user"}])
    def test_pairs_that_a_population_gives_are_no_farther_apart_than_one_row(self, stated):
        """Nor are query answers, where two rows change at once."""
        drawn = PopulationPairs(population=populations.Uniform(low=0, high=1), rows=3, count=2)
        for pairs in (drawn, "one below")[: 1 + ("distance" in stated)]:
            with pytest.raises(ParameterError, match="and these pairs differ in"):
                quick(grid_laplace, pairs, claim=Guarantee(epsilon=1, **stated))

    def test_pairs_of_a_population_of_users_are_those_of_a_claim_about_users(self):
        """They were refused as if they differed in one row; and for one row they accuse falsely."""
        visits = pd.DataFrame({"who": np.arange(24) // 2, "cost": 1.0})
        public = populations.PublicTable(visits, promise="table")
        unit = populations.Uniform(low=0, high=1)
        for source in (public, populations.Users(unit, sizes={1: 1, 3: 1})):
            people = populations.by_user(source, "who" if source is public else 0)
            drawn = PopulationPairs(population=people, rows=3, count=1)
            judged = partial(quick, lambda _, rng, size: rng.laplace(size=size), drawn, samples=400)
            assert judged(claim=Guarantee(epsilon=1, unit="user")).verdict == "not refuted"
            with pytest.raises(ParameterError, match="these pairs differ in all rows of one user"):
                judged(claim=Guarantee(epsilon=1))

    def test_a_frame_of_many_rows_is_not_compared_row_by_row(self, monkeypatch):
        """Of 20,000 rows in pandas that took eight seconds, before the first run."""
        taken, take = [], containers.take
        monkeypatch.setattr(containers, "take", lambda *given: taken.append(1) or take(*given))
        for gone in ([0, 500, 999], [7, 8, 9]):
            rows = np.zeros(1000)
            rows[gone] = 1.0
            pair = (pd.DataFrame({"a": rows}), pd.DataFrame({"a": np.delete(rows, gone)}))
            assert read_pairs([pair], relation="add-remove", answers=1, distance=3)
        assert len(taken) < 200

    @pytest.mark.parametrize("unit", ["row", "user"])
    def test_frames_of_other_columns_are_no_neighbours(self, unit):
        """Of one row each, they passed as one that was replaced."""
        claim = Guarantee(epsilon=1, unit=unit)
        frames = [pd.DataFrame({name: [1.0]}) for name in "ab"]
        records = [np.ones(1, dtype=[(name, float)]) for name in "ab"]
        for pair in (frames, records):
            with pytest.raises(ParameterError, match="columns have other names"):
                quick(grid_laplace, [pair], claim=claim)
        with pytest.raises(ParameterError, match=r"shape \(2,\) in one, \(3,\) in the other"):
            quick(grid_laplace, [(np.ones((1, 2)), np.ones((1, 3)))], claim=claim)

    def test_pairs_of_one_name_are_told_apart(self):
        """A report names those that violate."""
        both = [*extreme_pairs(0, 1, 2), *extreme_pairs(0, 2, 2)]
        names = [each.name for each in read_pairs(both, relation="replace-one", answers=1)]
        assert len(set(names)) == len(names) == len(both)
        assert names[-1] == f"{both[-1].name} (2)"

    def test_claims_that_promise_nothing(self):
        """Delta 1 and infinite epsilon cannot be contradicted."""
        for claim in (Guarantee(epsilon=1, delta=1), Guarantee(epsilon=math.inf)):
            with pytest.raises(ParameterError, match="promises nothing"):
                quick(grid_laplace, claim=claim)
        with pytest.raises(ParameterError, match="claim must be"):
            quick(grid_laplace, claim=1.0)
        with pytest.raises(ParameterError, match="PopulationPairs"):
            quick(grid_laplace, claim=Guarantee(epsilon=1, gamma=0.1))

    def test_too_few_samples_say_how_many(self):
        """The number in the message is enough for the clearest violation, one fewer is not."""

        def clear(rows, rng, size):
            return np.full(size, rows[0])

        with pytest.raises(TooFewSamples) as caught:
            quick(clear, samples=5)
        needed = caught.value.needed
        assert quick(clear, samples=needed).verdict == "violated"
        with pytest.raises(TooFewSamples):
            quick(clear, samples=needed - 1)

    @pytest.mark.parametrize("pairs", ["patterns", "one above"])
    @pytest.mark.slow
    def test_runs_that_find_no_room_judge(self, monkeypatch, pairs):
        """With room for 500 outputs of a split as many runs are made, most in the final split."""

        def spent():
            made = []

            def mechanism(rows, rng, size):
                made.append(size)
                return rows + rng.laplace(scale=10, size=(size, len(rows)))

            report = quick(mechanism, pairs=pairs, answers=3, samples=40_000)
            return sum(made), report.witness.counts.samples

        roomy, _ = spent()
        monkeypatch.setattr(_search, "_CELLS_KEPT", 500 * 3)
        narrow, final = spent()
        assert narrow == pytest.approx(roomy, abs=100)
        assert final > 36_000

    @pytest.mark.parametrize("pairs", [1, 2, 3, 9, 64, 5_000])
    def test_the_final_split_keeps_its_share(self, pairs):
        """However many pairs are tried, a third of the runs judge, and no run is spent twice."""
        plan = plan_samples(10**7, pairs, adapt_claim(ONE), 0.05)
        left, spent = pairs, 0
        for size in plan.rounds:
            spent += size * left
            left = max(2, (left + 1) // 2)
        assert 10**7 - spent - plan.refine * left == plan.final >= 10**7 / 3

    @pytest.mark.parametrize(
        ("mechanism", "message"),
        [
            (lambda rows, rng, size: np.zeros(size + 1), "asked for .* returned"),
            (lambda rows, rng, size: 1.0, "array or a list"),
            (lambda rows, rng, size: rows.__setitem__(0, 5.0), "changes the rows"),
            (lambda rows: 1.0, "takes .rows, rng, size"),
            ("text", "expected a mechanism"),
        ],
    )
    def test_what_is_no_batch_mechanism(self, mechanism, message):
        """Wrong lengths, wrong arguments and changed rows are refused."""
        with pytest.raises(BadFunction, match=message):
            quick(mechanism)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"samples": 0}, "samples must be"),
            ({"samples": 1.5}, "samples must be"),
            ({"confidence": 1.0}, "confidence must lie"),
            ({"pairs": "nothing"}, "pairs must be one of"),
            ({"pairs": []}, "no pairs were given"),
            ({"pairs": [1]}, "must be .rows, neighbour."),
            ({"answers": 0}, "answers must be"),
        ],
    )
    def test_options_out_of_range(self, options, message):
        """Each option says what it allows."""
        with pytest.raises(ParameterError, match=message):
            quick(grid_laplace, **options)


def count(rows, rng, size):
    """A count of ones, right at epsilon 1 when one row of zeros and ones may change."""
    return grid_laplace(rows, rng, size)


class TestWhatTheInputsAre:
    def test_no_pairs_are_a_reason_to_ask(self):
        """Nothing is guessed: the message names the families and what each is right for."""
        with pytest.raises(ParameterError, match="needs pairs of neighbouring inputs") as caught:
            audit(count, claim=ONE, batch=True, workers=1)
        told = str(caught.value)
        assert "function of rows give pairs of tables" in told
        assert "hs.auditing.extreme_pairs(low, high, rows)" in told
        assert "'patterns' (every answer may move by 1" in told
        assert "'one below, rest above'" in told

    @pytest.mark.parametrize("family", ["extremes", "rows"])
    def test_a_family_that_is_none(self, family):
        """A name that is no family of answers leads to pairs of tables."""
        with pytest.raises(
            ParameterError, match=r"give hs.auditing.extreme_pairs\(low, high, rows\)"
        ):
            quick(count, family)

    def test_answers_are_not_called_rows(self):
        """Five answers that all move refute a right count of rows: the report says of what."""
        found = quick(count, "all above", answers=5)
        assert (found.verdict, found.relation) == ("violated", "answers")
        words = found.explain()
        assert words.startswith(
            "VIOLATED: the claim (epsilon = 1, delta = 0) for neighbours that are query answers, "
            "all of which may move by at most 1."
        )
        assert "A mechanism whose input is a table has other neighbours" in words
        assert "(5 of 5 query answers move)" in words
        for word in ("rows", "replace-one"):
            assert word not in words
            assert word not in found.to_json()

    @pytest.mark.parametrize("first", [True, False])
    @pytest.mark.parametrize("sequential", [True, False])
    def test_sides_have_their_names(self, first, sequential):
        """The side on which the event is likelier is named by what it holds."""

        def leak(rows, rng, size):
            return np.full(size, 1.0) if rows[0] == first else rng.integers(0, 2, size) / 1.0

        options = {"claim": Guarantee(epsilon=0.1), "sequential": sequential}
        by_answers = quick(leak, "one below", **options).witness
        by_rows = quick(leak, [([1.0], [0.0])], **options).witness
        assert by_answers.likelier in ("answers", "neighbour")
        assert by_rows.likelier == by_answers.likelier.replace("answers", "rows")
        assert "(1 of 1 query answers moves)" in str(by_answers)
        for witness, name in ((by_answers, "answers"), (by_rows, "rows")):
            other = name if witness.likelier == "neighbour" else "neighbour"
            assert f"on the {witness.likelier}, " in str(witness)
            assert str(witness).endswith(f"on the {other}")

    def test_a_right_count_stands_on_tables(self):
        """The same function on tables at the ends of its domain keeps its claim."""
        found = quick(count, extreme_pairs(0, 1, 4), samples=20_000)
        assert (found.verdict, found.relation) == ("not refuted", "replace-one")
        assert "for replace-one neighbours" in found.explain()
        assert "answers" not in found.explain()

    def test_a_family_may_be_said_to_hold_rows_if_it_does(self):
        """One entry that moves is one row replaced; five are not."""
        found = quick(count, "one below", relation="replace-one", answers=3)
        assert (found.verdict, found.relation) == ("not refuted", "replace-one")
        with pytest.raises(ParameterError, match="5 rows differ instead of 1"):
            quick(count, "patterns", relation="replace-one", answers=5)
        with pytest.raises(ParameterError, match="relation must be one of"):
            quick(count, "patterns", relation="rows")

    @pytest.mark.parametrize("pairs", ["one below", [([1.0], [0.0])]])
    def test_a_claim_is_judged_on_its_own_neighbours(self, pairs):
        """Replacing a row may cost twice what adding one does: it refutes no claim about that."""
        claim = Guarantee(epsilon=1, neighbours="add-remove")
        with pytest.raises(ParameterError, match="cannot be judged on pairs that are replace-one"):
            quick(count, pairs, claim=claim, relation="replace-one")


class TestPairs:
    def test_the_eight_patterns(self):
        """Eight different pairs, each answer moving by at most 1 but in the X shape's sense."""
        pairs = pattern_pairs("patterns", 6)
        assert len(pairs) == 8
        for pair in pairs:
            assert np.abs(pair.rows - pair.neighbour).max() == 1
        assert len(pattern_pairs("patterns", 1)) < 8

    @pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
    def test_extremes_are_neighbours(self, relation):
        """Tables at the ends of a domain pass the check of neighbours."""
        pairs = extreme_pairs([0, -1], [1, 5], 4, relation)
        assert len(read_pairs(pairs, relation=relation, answers=1)) == len(pairs)
        assert {0.0, 1.0} == set(np.concatenate([p.rows[:, 0] for p in pairs]))

    @pytest.mark.parametrize(
        ("relation", "rows", "number"),
        [("replace-one", 4, 6), ("replace-one", 1, 2), ("add-remove", 4, 4), ("add-remove", 1, 2)],
    )
    def test_no_extreme_is_tried_twice(self, relation, rows, number):
        """Samples are not spent twice on tables that are the same, whichever row is meant."""
        pairs = extreme_pairs(0, 1, rows, relation)
        assert len(pairs) == number
        assert len({(str(p.rows), str(p.neighbour)) for p in pairs}) == number


class TestKinds:
    @pytest.mark.slow
    def test_a_command(self, tmp_path):
        """A program that reads and writes lines is audited like a function; its end is an event."""
        program = tmp_path / "p.py"
        program.write_text(
            "import json, random, sys\n"
            "for line in sys.stdin:\n"
            "    run = json.loads(line)\n"
            "    if run['rows'][0] == 0 and run['seed'] % 25 == 0: sys.exit(3)\n"
            "    print(random.Random(run['seed']).random() < 0.5, flush=True)\n"
        )
        found = quick(Command([sys.executable, str(program)]), samples=1500)
        again = quick(Command([sys.executable, str(program)]), samples=1500)
        assert found.witness.counts == again.witness.counts
        assert "exit status 3" in found.witness.event
        with pytest.raises(BadFunction, match="cannot be started"):
            quick(Command([str(tmp_path / "none")]))

    @pytest.mark.slow
    def test_a_mechanism_of_this_library(self):
        """An object with a method draw is run on the answer itself; its bits do not tell."""
        import hushed as hs

        one = hs.proven_sensitivity(1.0, argument="counts one person once")
        # Its noise has no seed: a false alarm is as likely as the confidence leaves it.
        found = quick(hs.Laplace(one, epsilon=1.0), batch=False, samples=6000, confidence=SURE)
        assert found.verdict == "not refuted"
        loud = quick(hs.Laplace(one, epsilon=3.0), batch=False, samples=6000)
        assert loud.verdict == "violated"

    @pytest.mark.slow
    def test_an_opendp_measurement(self):
        """A measurement of OpenDP is called on the rows."""
        import opendp.prelude as dp

        dp.enable_features("contrib")
        domain, metric = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        measurement = dp.m.make_laplace(domain, metric, scale=1.0)
        pairs = [(0.0, 1.0)]
        options = {"batch": False, "samples": 2000, "relation": "answers"}
        found = quick(measurement, pairs, confidence=SURE, **options)  # its noise has no seed
        assert found.verdict == "not refuted"
        claim = Guarantee(epsilon=0.3)
        assert quick(measurement, pairs, claim=claim, **options).verdict == "violated"


MODULE_RNG = np.random.default_rng(3)


@pytest.mark.parametrize("given", [1, 0.5])
def test_a_number_as_a_claim_is_answered_with_the_guarantee_to_write(given):
    """In the words of Python."""
    with pytest.raises(ParameterError) as refused:
        audit(lambda rows, rng: 0.0, [([0.0], [1.0])], claim=given)
    advised = str(refused.value).partition("write claim=")[2]
    assert advised == f"hs.Guarantee(epsilon={given})"


def _from_the_system(rows, rng):
    return sum(rows) + np.random.default_rng().laplace()


def _from_a_global(rows, rng):
    return sum(rows) + np.random.laplace()


def _from_the_generator(rows, rng):
    return sum(rows) + rng.laplace()


@pytest.mark.parametrize("mechanism", [_from_the_system, _from_a_global, _from_the_generator])
def test_a_seed_that_repeats_no_audit_is_told(mechanism):
    """It said "seed 0" of noise of the system, too, though the same call may end in two ways."""
    found = audit(
        mechanism, [([0.0], [1.0])], claim=Guarantee(epsilon=3.0), samples=2000, seed=0, bits=False
    )
    told = mechanism is not _from_the_generator  # draws of doubles are equal by chance never
    assert found.seeded == (not told)
    assert ("The seed does not repeat this audit" in found.explain()) == told
    assert found.to_dict().get("seeded", True) == found.seeded
    assert pickle.loads(pickle.dumps(found)).seeded == found.seeded
    assert read_report(write_report(found)).seeded == found.seeded


@pytest.mark.parametrize("one", [[float("nan"), 1.0], [None, 1.0]])
def test_a_missing_answer_of_a_pair_is_told(one):
    """It was said to move by nan, beside a warning of NumPy."""
    with pytest.raises(ParameterError, match=r"pair 1 .*an answer is missing \(None or NaN\)"):
        quick(lambda rows, rng: 0.0, [(one, [0.0, 1.0])], batch=False, relation="answers")


@pytest.mark.parametrize("hole", [None, float("nan")])
def test_a_missing_cell_is_a_value_like_others_in_a_pair_of_tables(hole):
    """Two missing cells are alike, and one row that differs in such a cell is one row."""

    def count(rows, rng):
        return len(rows) + rng.laplace()

    options = {"claim": Guarantee(epsilon=3.0), "samples": 2000}
    found = audit(count, [([("a", hole), ("b", 1.0)], [("a", hole), ("b", hole)])], **options)
    assert found.tried == ("pair 1",)
    with pytest.raises(ParameterError, match="0 rows differ"):
        audit(count, [([("a", hole)], [("a", hole)])], **options)
