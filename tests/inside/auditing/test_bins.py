"""Bins: looked up as a binary search would, with edges that are quantiles of the whole column."""

import numpy as np
import pytest

from hushed.auditing._outputs import Encoder
from hushed.auditing._scores import bins
from hushed.auditing._scores.bins import (
    assign_bins,
    choose_edges,
    find_places,
    find_values,
    read_quantiles,
)
from hushed.auditing._scores.histogram import (
    Binning,
    fit_columns,
    fit_family,
    fit_histograms,
)

MANY = 100_000  # above what is sorted, and above what is looked up by cells


def draw_numbers(kind, rng):
    """Numbers of one of several kinds, with what is no finite number among them."""
    numbers = {
        "laplace": lambda: rng.laplace(size=MANY),
        "heavy tails": lambda: rng.standard_cauchy(MANY) ** 3,
        "an atom far away": lambda: np.where(rng.random(MANY) < 0.7, -1e5, rng.normal(size=MANY)),
        "tiny": lambda: rng.normal(size=MANY) * 5e-324,
        "huge": lambda: rng.uniform(-1.7, 1.7, MANY) * 1e308,
    }[kind]()
    numbers[:4] = np.inf, -np.inf, np.nan, -0.0
    return numbers


class TestLookUp:
    @pytest.mark.parametrize("kind", ["laplace", "heavy tails", "an atom far away", "tiny", "huge"])
    def test_same_bins_as_a_binary_search(self, kind):
        """Every number is in the bin that a binary search finds, at the edges themselves, too."""
        rng = np.random.default_rng(1)
        column = draw_numbers(kind, rng)
        own = choose_edges(read_quantiles(column), 256)
        for part in (own, own[:1], own[:2], np.append(own, np.inf), np.append(-np.inf, own)):
            edges = np.unique(part)
            close = np.concatenate([np.nextafter(edges, side) for side in (-np.inf, np.inf)])
            both = np.concatenate([column, edges, close, np.full(5, np.nan)])
            expected = np.searchsorted(edges, both, side="right")
            expected[np.isnan(both)] = len(edges) + 1
            assert np.array_equal(assign_bins(both, edges), expected)

    def test_many_edges_at_one_place(self):
        """Hundreds of neighbouring doubles as edges, crowded in one cell, are still told apart."""
        crowd = 1 + np.arange(300) * np.spacing(1.0)
        edges = np.concatenate([np.linspace(-5, 0, 400), crowd, np.linspace(2, 5, 400)])
        column = np.random.default_rng(2).choice(np.append(edges, [0.5, 7.0, -7.0]), MANY)
        assert np.array_equal(
            assign_bins(column, edges), np.searchsorted(edges, column, side="right")
        )

    def test_places_and_what_has_none(self):
        """Known numbers have their place; all others, and NaN, have the place after the last."""
        column = np.array([3.0, 1.0, 2.0, np.nan, -9.0, 9.0])
        assert find_places(column, np.array([1.0, 3.0])).tolist() == [1, 0, 2, 2, 2, 2]
        assert find_places(column, np.zeros(0)).tolist() == [0] * 6


class TestEdges:
    def test_tails_are_exact_and_the_middle_is_close(self):
        """Edges in the tails are order statistics of all numbers; others are off in rank by 1 %."""
        column = np.random.default_rng(3).laplace(size=10 * MANY)
        edges, ordered = choose_edges(read_quantiles(column), 256), np.sort(column)
        ranks = np.searchsorted(ordered, edges) / len(column)
        assert np.isin(edges, column).all()
        for share in 0.5 ** np.arange(8, 16):
            assert ordered[int(share * (len(column) - 1))] in edges
            assert ordered[int((1 - share) * (len(column) - 1))] in edges
        assert np.abs(ranks[:, None] - np.arange(1, 256) / 256).min(axis=0).max() < 0.01

    def test_a_rare_value_among_few_has_its_own_bin(self):
        """One output in ten thousand with a value of its own is told apart, sampled or not."""
        column = np.random.default_rng(4).integers(0, 3, 10 * MANY).astype(float)
        column[[17, 100_003]] = 1.5
        assert choose_edges(read_quantiles(column), 64).tolist() == [0.0, 1.0, 1.5, 2.0]
        assert find_values(column, np.array([0.0, 1.0, 2.0])).tolist() == [0.0, 1.0, 1.5, 2.0]


class TestFamilies:
    def test_binnings_together_are_those_alone(self):
        """Histograms fitted together have the edges and ratios of those fitted one by one."""
        rng = np.random.default_rng(5)
        first, second = rng.normal(0.1, 1, (4000, 3)), rng.normal(0, 1, (4000, 3))
        binnings = (
            Binning(bins=64, penalty=3.0),
            Binning(bins=64, penalty=None, smooth=True),
            Binning(bins=256, penalty=3.0, pooled=True),
        )
        given = Encoder(width=3, objects=False), first, second, ("values", "increments")
        for binning, found in zip(binnings, fit_family(*given, binnings), strict=True):
            alone = fit_histograms(*given, binning)
            assert found.kept == alone.kept
            assert found.edges
            assert all(map(np.array_equal, found.edges, alone.edges))
            assert all(map(np.array_equal, found.ratios, alone.ratios))


@pytest.mark.parametrize("numbers", [[], [1.0], [0.0, 0.0, 0.5, 2.0, 2.0, 2.0], [-1.0, -0.0, 0.0]])
def test_sorted_numbers_are_counted_as_others_are(numbers):
    """Distinct numbers and their counts are those that sorting anew would find."""
    values, counts = bins._count_sorted(np.array(numbers))
    wanted, often = np.unique(np.array(numbers), return_counts=True)
    assert values.tolist() == wanted.tolist()
    assert counts.tolist() == often.tolist()


def test_edges_in_groups_far_apart():
    """Three groups a hundred thousand apart, and NaN: the bins of a plain binary search."""
    rng = np.random.default_rng(3)
    column = rng.laplace(scale=20, size=9_000) + rng.choice([-1e5, 0.0, 1e5], size=9_000)
    column[:5] = np.nan
    edges = np.unique(np.concatenate([rng.choice(column[5:], 150), [-np.inf, np.inf]]))
    wanted = np.searchsorted(edges, column, side="right")
    wanted[:5] = len(edges) + 1
    assert assign_bins(column, edges).tolist() == wanted.tolist()


def test_one_count_for_several_rows_of_edges():
    """Shares of two laws in coarse and fine bins at once are those of each by itself."""
    rng = np.random.default_rng(4)
    sides = rng.normal(size=5_000), rng.normal(0.3, 1, size=4_000)
    sides[0][:9] = np.nan
    binnings = [
        Binning(bins=64, penalty=3.0),
        Binning(bins=16, penalty=None),
        Binning(bins=64, penalty=None, smooth=True),
    ]
    together = fit_columns(sides, binnings)
    for binning, (edges, ratios) in zip(binnings, together, strict=True):
        (alone,) = fit_columns(sides, [binning])
        assert (alone[0].tolist(), alone[1].tolist()) == (edges.tolist(), ratios.tolist())
    edges, ratios = together[1]
    shares = [np.histogram(each, [-np.inf, *edges, np.inf])[0] + 0.5 for each in sides]
    wanted = np.log(shares[0] / shares[1] / (5_000 / 4_000))
    assert ratios[:-1].tolist() == pytest.approx(wanted.tolist())
