"""Scores: like bins become one, categories shrink to their parts, mixtures keep their ratio."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from hushed.auditing import _runs, audit
from hushed.auditing._outputs import Encoder
from hushed.auditing._scores.histogram import (
    Binning,
    Histograms,
    fit_histograms,
    score_together,
)
from hushed.auditing._scores.pattern import fit_categories, fit_mixtures
from hushed.auditing._scores.smoothing import partition_bins
from hushed.auditing._sequential import Betting, choose_bets, close_tests, make_grid
from hushed.guarantee import Guarantee

BINNING = Binning(bins=64, penalty=3.0)


def arrays(width):
    return Encoder(width=width, objects=False)


class TestOptimalPartitioning:
    @pytest.mark.parametrize("seed", range(8))
    def test_best_of_all_cuts(self, seed):
        """The cut found is as good as the best of all 2**7 cuts, tried one by one."""
        rng = np.random.default_rng(seed)
        first, second = rng.integers(0, 30, 8), rng.integers(0, 30, 8)

        def value(cuts):
            total = 0.0
            for start, end in itertools.pairwise([0, *cuts, 8]):
                counts = first[start:end].sum(), second[start:end].sum()
                total += sum(c * math.log(c / sum(counts)) for c in counts if c) - 2.0
            return total

        labels = partition_bins(first, second, 2.0)
        found = value((np.flatnonzero(np.diff(labels)) + 1).tolist())
        every = (c for size in range(8) for c in itertools.combinations(range(1, 8), size))
        assert found == pytest.approx(max(map(value, every)), abs=1e-9)

    def test_equal_laws_stay_whole(self):
        """Two samples of one law are one stretch; a jump is found where it is."""
        even = np.full(100, 1000)
        assert set(partition_bins(even, even, 3.0)) == {0}
        jump = np.where(np.arange(100) < 37, 900, 1100)
        assert np.flatnonzero(np.diff(partition_bins(jump, even, 3.0))).tolist() == [36]


class TestHistograms:
    def test_several_at_once_score_as_each_by_a_search_of_its_own(self):
        """Edges put together, shared ones and none, numbers on edges and what is no number."""
        rng = np.random.default_rng(4)
        family = []
        for kept, counts in (((0, 1), (3, 60)), ((1,), (200,)), ((0, 1, 2), (7, 60, 5)), ((), ())):
            edges = tuple(np.unique(rng.integers(-40, 40, size) / 8) for size in counts)
            ratios = tuple(rng.normal(size=len(each) + 2) for each in edges)
            family.append(
                Histograms(
                    encoder=arrays(3), maps=("values",), edges=edges, ratios=ratios, kept=kept
                )
            )
        outputs = rng.integers(-50, 50, (40_000, 3)) / 8
        outputs[rng.random(outputs.shape) < 0.1] = np.nan
        outputs[0], outputs[1] = np.inf, -np.inf
        together = score_together(family, outputs)
        for each, found in zip(family, together, strict=True):
            expected = np.zeros(len(outputs))
            for column, edges, ratios in zip(each.kept, each.edges, each.ratios, strict=True):
                places = np.searchsorted(edges, outputs[:, column], side="right")
                places[np.isnan(outputs[:, column])] = len(edges) + 1
                expected += ratios[places]
            assert np.array_equal(found, expected)

    def test_pooled_columns_share_their_evidence(self):
        """Twenty faint columns with one law: the pooled score orders outputs as the true one."""
        rng = np.random.default_rng(3)
        first, second = (at + rng.laplace(scale=50, size=(20_000, 20)) for at in (1.0, 0.0))
        fresh = rng.laplace(scale=50, size=(20_000, 20))
        exact = (np.abs(fresh) - np.abs(fresh - 1)).sum(axis=1)
        apart, pooled = (
            np.corrcoef(
                exact, fit_histograms(arrays(20), first, second, ("values",), g).evaluate(fresh)
            )
            for g in (Binning(bins=64, penalty=None), Binning(bins=64, penalty=3.0, pooled=True))
        )
        assert pooled[0, 1] > 0.95
        assert apart[0, 1] < 0.6


class TestCategories:
    @pytest.mark.slow
    def test_rare_outputs_shrink_towards_their_parts(self):
        """Ten coins: ratios of 1024 outputs come closer to the true ones than raw counts do."""
        rng = np.random.default_rng(4)
        first, second = (rng.random((8000, 10)) < at for at in (0.55, 0.5))
        found = fit_categories(arrays(10), first.astype(float), second.astype(float))
        every = np.array(list(itertools.product([0.0, 1.0], repeat=10)))
        yes = every.sum(axis=1)
        exact = yes * math.log(0.55 / 0.5) + (10 - yes) * math.log(0.45 / 0.5)
        counts = [
            np.array([(side == row).all(axis=1).sum() for row in every]) for side in (first, second)
        ]
        raw = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
        error, plain = np.abs(found.evaluate(every) - exact).mean(), np.abs(raw - exact).mean()
        assert error < plain / 3

    def test_outputs_that_differ_from_their_parts_are_believed(self):
        """Two fair bits that agree on one table only: the parts say nothing, the counts do."""
        rng = np.random.default_rng(5)
        bit = rng.integers(0, 2, (4000, 2)).astype(float)
        same = np.repeat(bit[:, :1], 2, axis=1)
        found = fit_categories(arrays(2), same, bit)
        agree, differ = found.evaluate(np.array([[1.0, 1.0], [0.0, 1.0]]))
        assert agree == pytest.approx(math.log(2), abs=0.15)
        assert differ < -5


class TestMixture:
    def test_value_shown_on_yes(self):
        """No, or a number: the score is the log ratio of the mixed density."""
        rng = np.random.default_rng(6)

        def draw(chance, shift, size):
            yes = rng.random(size) < chance
            return np.where(yes, shift + rng.laplace(size=size), -7.0)[:, None]

        sides = draw(0.6, 0.5, 100_000), draw(0.4, 0.0, 100_000)
        [found] = fit_mixtures(arrays(1), *sides, (BINNING,))
        outputs = np.array([[-7.0], [3.0], [-3.0]])
        expected = [math.log(0.4 / 0.6), math.log(1.5) + 0.5, math.log(1.5) - 0.5]
        assert found.evaluate(outputs).tolist() == pytest.approx(expected, abs=0.06)

    def test_nothing_mixed(self):
        """Outputs without repeated values, or of nothing else, have no mixture."""
        rng = np.random.default_rng(7)
        free, coins = rng.random((2, 1000, 3)), rng.integers(0, 2, (2, 1000, 3)).astype(float)
        assert fit_mixtures(arrays(3), *free, (BINNING,)) == []
        assert fit_mixtures(arrays(3), *coins, (BINNING,)) == []


class TestClosedTesting:
    @pytest.mark.parametrize("seed", range(5))
    def test_smallest_average_over_all_sets(self, seed):
        """Closed testing by brute force over every set that holds the hypothesis."""
        values = np.random.default_rng(seed).lognormal(0, 3, 6)
        expected = [
            min(
                np.mean([values[i], *others])
                for size in range(6)
                for others in itertools.combinations(np.delete(values, i), size)
            )
            for i in range(6)
        ]
        assert np.exp(close_tests(np.log(values))).tolist() == pytest.approx(expected)


class TestSplits:
    @pytest.mark.parametrize("sequential", [False, True])
    def test_no_stream_is_used_twice(self, monkeypatch, sequential):
        """Every stage of every pair has streams of its own, and the final split comes once."""
        drawn, seed_of = [], _runs.stage_seed

        def recorded(seed, *parts):
            drawn.append(parts)
            return seed_of(seed, *parts)

        monkeypatch.setattr(_runs, "stage_seed", recorded)
        audit(
            lambda rows, rng, size: rng.random(size) < 0.5 + 0.02 * rows[0],
            "patterns",
            claim=Guarantee(epsilon=1.0),
            answers=2,
            samples=20_000,
            batch=True,
            workers=1,
            sequential=sequential,
        )
        assert len(drawn) > 10
        twice = [parts for parts, times in Counter(drawn).items() if times > 1]
        assert twice == [("probe", "0")]  # whether a seed repeats it; no verdict comes of it
        assert sum(parts[0] == "final" for parts in drawn) == (not sequential)

    def test_bets_are_placed_before_outputs_are_seen(self):
        """What a round wins follows from the shares seen before it, whatever it brings."""

        class Ones:
            def contains(self, encoded):
                return encoded[:, 0] == 1

        claims = make_grid(0.5, 0.0)
        start = np.zeros(len(claims[0]))
        part = Betting(pair=None, first=True, event=Ones(), wealth=start, seen=[30, 100, 10, 100])
        placed = choose_bets(30.5 / 101, 10.5 / 101, claims)
        part.advance(np.ones((50, 1)), np.zeros((50, 1)), claims)
        assert part.wealth == pytest.approx(50 * np.log1p(placed * (1 - claims[1])))
        assert part.seen == [80, 150, 10, 150]
