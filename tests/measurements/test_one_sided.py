"""Scores that move in one direction: every chance of every choice, enumerated on small tables."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hushed as hs
from hushed import measurements as m
from hushed import noise
from hushed import transformations as t
from hushed.errors import ParameterError, SpaceMismatch
from hushed.spaces import (
    CHANGE_ONE,
    L1,
    L2,
    ONE_SIDED,
    PRIVACY_PROFILE,
    RENYI,
    SUP,
    SYMMETRIC,
    ZCDP,
    Cell,
    Column,
    Metric,
    Numbers,
    Space,
    Table,
)
from hushed.transformations import _aggregates

VOTES = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
REPLACED = Space(domain=VOTES.domain, metric=CHANGE_ONE)
CHOICES = ["a", "b", "c"]
COUNTS = t.histogram(CHOICES, norm="one-sided")


def chances(scores, scale):
    """Chances of the choices that are drawn: of scores on the grid, at its wider scale."""
    step = Fraction(2) ** (math.frexp(scale)[1] - 1 - noise.GRID_BITS)
    wider = Fraction(scale) * (1 + Fraction(1, 1 << 49)) + 2 * step
    with mpmath.workdps(40):
        powers = [round(Fraction(float(score)) / step) * step / wider for score in scores]
        weights = [mpmath.exp(mpmath.mpf(x.numerator) / x.denominator) for x in powers]
        return [weight / mpmath.fsum(weights) for weight in weights]


def lost(one, other, scale):
    """Largest log-ratio of a chance in either direction."""
    with mpmath.workdps(40):
        pairs = zip(chances(one, scale), chances(other, scale), strict=True)
        return float(max(abs(mpmath.log(p / q)) for p, q in pairs))


def tables(rows):
    """All vectors of counts with at most so many rows."""
    return [c for c in itertools.product(range(rows + 1), repeat=3) if sum(c) <= rows]


class TestEveryTable:
    @pytest.mark.slow
    def test_one_row_added_or_removed(self):
        """No pair of tables loses more than the map says, which is d / scale up to the grid."""
        chain = VOTES >> COUNTS >> m.exponential(2.0)
        for one, other in itertools.combinations(tables(5), 2):
            distance = sum(abs(a - b) for a, b in zip(one, other, strict=True))
            assert lost(one, other, 2.0) <= chain.map(distance)
        assert chain.map(1) == pytest.approx(0.5, rel=1e-9)
        assert chain.map(4) == pytest.approx(2.0, rel=1e-9)

    def test_the_loss_is_reached(self):
        """One row in an unlikely choice, one added and one removed, one replaced: all tight."""
        added = VOTES >> COUNTS >> m.exponential(1.0)
        replaced = REPLACED >> COUNTS >> m.exponential(1.0)
        assert lost((0, 40, 0), (1, 40, 0), 1.0) > 0.999999 * added.map(1)
        two_ways = lost((0, 40, 1), (1, 40, 0), 1.0)
        assert 0.49 * added.map(2) < two_ways < 0.51 * added.map(2)
        moved = lost((40, 20, 0), (39, 21, 0), 1.0)
        assert 0.999999 * replaced.map(1) < moved <= replaced.map(1)
        assert replaced.map(1) == pytest.approx(2.0, rel=1e-9)

    def test_half_the_loss_would_be_wrong_in_the_sup_norm(self):
        """Replaced rows, and scores that move both ways, do lose more than d / scale."""
        assert lost((40, 20, 0), (39, 21, 0), 1.0) > 1.99
        sup = VOTES >> t.histogram(CHOICES, norm="sup") >> m.exponential(1.0)
        assert sup.map(1) == pytest.approx(2.0, rel=1e-9)

    def test_never_worse_than_the_sup_norm(self):
        """Under replaced rows both norms promise the same, under added ones half."""
        for rows in (1, 2, 7):
            both = [
                (space >> t.histogram(CHOICES, norm=norm) >> m.exponential(3.0)).map(rows)
                for space in (VOTES, REPLACED)
                for norm in ("one-sided", "sup")
            ]
            assert both[0] == pytest.approx(both[1] / 2, rel=1e-9)
            assert both[2] == both[3]

    def test_the_curve_covers_the_law(self):
        """Delta of the two enumerated laws is at most that of the curve, at several levels."""
        curve = (VOTES >> COUNTS >> m.exponential(1.0)).map(2, PRIVACY_PROFILE)
        for one, other in itertools.permutations(tables(3), 2):
            if sum(abs(a - b) for a, b in zip(one, other, strict=True)) > 2:
                continue
            for level in (0.0, 0.3, 1.0, 1.7):
                pairs = zip(chances(one, 1.0), chances(other, 1.0), strict=True)
                delta = sum(max(0, p - mpmath.exp(level) * q) for p, q in pairs)
                assert delta <= curve.delta(level) + 1e-15

    @pytest.mark.slow
    def test_rho_covers_the_law(self):
        """Renyi divergences of the enumerated laws are at most rho times the order; almost tight.

        Rho is the smaller one of epsilon squared over 8 and that of any pure promise.
        """
        chain = VOTES >> COUNTS >> m.exponential(1.0)
        for rows in (1, 2, 9):
            epsilon = chain.map(rows)
            assert chain.map(rows, ZCDP) <= min(epsilon**2 / 8, epsilon) * (1 + 1e-9)
        nearest = 0.0
        for one, other in itertools.permutations(tables(4), 2):
            rows = sum(abs(a - b) for a, b in zip(one, other, strict=True))
            rho = chain.map(rows, ZCDP)
            for order in (1.01, 2.0, 10.0):
                pairs = zip(chances(one, 1.0), chances(other, 1.0), strict=True)
                total = mpmath.fsum(p * (p / q) ** (order - 1) for p, q in pairs)
                reached = float(mpmath.log(total)) / (order - 1)
                assert reached <= chain.map(rows, RENYI)(order) <= rho * order * (1 + 1e-12)
                nearest = max(nearest, reached / (rho * order))
        assert nearest > 0.9


class TestDistances:
    @given(
        st.lists(st.floats(-50, 50), min_size=4, max_size=4),
        st.lists(st.floats(-3, 3), min_size=4, max_size=4),
        st.sampled_from([0.3, 1.0, 7.5]),
    )
    def test_any_scores(self, scores, moves, scale):
        """Real scores on both sides of a rounding step, moved by any amount in any direction."""
        one = np.array(scores)
        other = one + np.array(moves)
        steps = [Fraction(b) - Fraction(a) for a, b in zip(one, other, strict=True)]
        distance = float(max(0, *steps) + max(0, *(-step for step in steps)))
        space = Space(domain=Numbers(dims=4), metric=ONE_SIDED)
        claimed = (space >> m.exponential(scale)).map(math.nextafter(distance, math.inf))
        assert lost(one, other, scale) <= claimed * (1 + 1e-15)

    def test_the_l1_norm_is_enough(self):
        """What moves by d in l1 loses d / scale, and not 2 d / scale."""
        space = Space(domain=Numbers(dims=3), metric=L1)
        assert (space >> m.exponential(2.0)).map(3.0) == pytest.approx(1.5, rel=1e-9)
        assert lost((0.0, 50.0, 0.0), (3.0, 50.0, 0.0), 2.0) > 1.499999

    def test_where_the_rows_go_over_the_parts(self):
        """Of one answer a group, one rises and another falls: at most two parts count."""
        table = Space(
            domain=Table.of({"key": Cell(type="string"), "x": Cell(type="int", low=0, high=7)}),
            metric=SYMMETRIC,
        )
        parts = table >> t.group_by("key", CHOICES)
        total = t.select("x") >> t.sum_of()
        assert (parts >> t.each(t.count(), norm="one-sided")).map(3).value == pytest.approx(
            3, rel=1e-14
        )
        assert (parts >> t.each(total, norm="one-sided")).map(3).value == pytest.approx(
            21, rel=1e-14
        )
        mean = t.select("x") >> t.mean()
        steep = (parts >> t.each(mean, norm="one-sided")).map(3).value
        assert steep == pytest.approx(7 + 3.5, rel=1e-9)
        assert (parts >> t.each(mean, norm="l1")).map(3).value == pytest.approx(10.5, rel=1e-9)
        assert (parts >> t.each(mean, norm="one-sided")).map(4).value == pytest.approx(14)


class TestProofs:
    def test_quantile_scores_move_both_ways(self):
        """One row added moves two scores in opposite directions, each by the whole bound."""
        scores = Space(domain=Column(cell=Cell()), metric=SYMMETRIC) >> t.quantile_scores(
            [1.0, 3.0], 0.5
        )
        rows = [2.0, 2.0]
        move = scores([*rows, 4.0]) - scores(rows)
        assert move.tolist() == [-0.5, 0.5]
        assert scores.map(1).value == 0.5
        assert scores.target.metric == SUP

    @pytest.mark.parametrize("metric", [L2, Metric(name="discrete")])
    def test_other_distances_are_refused(self, metric):
        """The exponential mechanism takes distances that bound the range of the moves."""
        with pytest.raises(SpaceMismatch, match="one-sided"):
            _ = Space(domain=Numbers(dims=3), metric=metric) >> m.exponential(1.0)

    def test_laplace_takes_no_one_sided_scores(self):
        """A one-sided distance bounds no l1 norm."""
        with pytest.raises(SpaceMismatch):
            _ = VOTES >> COUNTS >> m.laplace(1.0)

    def test_no_fact_is_lost_on_the_way_to_a_mechanism(self):
        """The sensitivity of the chain is that of the range, which the mechanism pays once."""
        counts = VOTES >> COUNTS
        found = m.chain_sensitivity(counts)
        assert (found.norm, found.value) == ("range", 1.0)
        assert hs.Exponential(found, epsilon=0.5).scale == 2.0
        sup = m.chain_sensitivity(counts, norm="sup")
        assert hs.Exponential(sup, epsilon=0.5).scale == 4.0
        with pytest.raises(ParameterError, match="bounds range and sup"):
            m.chain_sensitivity(counts, norm="l1")

    def test_bins_of_their_own(self):
        """With few rows a bin the rise and the fall are both bounded by them."""
        for metric, size, expected in (
            ("symmetric", None, [1, 2, 2, 2]),
            ("change-one", None, [2, 2, 2, 2]),
        ):
            found = [
                _aggregates.histogram_sensitivity(
                    d, norm="one-sided", metric=metric, size=size, per_bin=1
                )
                for d in (1, 2, 3, 4)
            ]
            assert found == expected

    def test_the_choice_is_drawn(self):
        """Far ahead, a candidate wins; the chance of another one is below exp(-900)."""
        chain = VOTES >> COUNTS >> m.exponential(0.01)
        assert chain(["b"] * 10 + ["a"]) == 1
