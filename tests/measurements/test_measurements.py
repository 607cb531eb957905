"""Losses of measurements against laws counted by hand, compositions, and maps read backwards."""

import itertools
import math
import re
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hushed as hs
from hushed import measurements as m
from hushed import noise
from hushed import transformations as t
from hushed.errors import BadRows, NotFeasible, ParameterError, SpaceMismatch
from hushed.measurements import _losses as losses
from hushed.spaces import (
    ABSOLUTE,
    CHANGE_ONE,
    L1,
    L2,
    PRIVACY_PROFILE,
    PURE,
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

NUMBER = Space(domain=Numbers(), metric=ABSOLUTE)
UNIT = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC)
SIZED = Space(domain=Column(cell=Cell(low=0, high=1), size=20), metric=CHANGE_ONE)
TABLE = Space(
    domain=Table.of({"key": Cell(type="string"), "x": Cell(low=0, high=1)}), metric=SYMMETRIC
)
SUM = UNIT >> t.sum_of()
MEAN = SIZED >> t.mean()


def rounded(value, exponent):
    """Nearest multiple of the grid, in steps, by exact arithmetic."""
    return round(Fraction(value) / Fraction(2) ** exponent)


class TestNoise:
    @given(
        st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
        st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3),
        st.sampled_from([1e-9, 0.3, 1.0, 7e5]),
    )
    def test_laplace_covers_the_law_that_is_drawn(self, one, other, scale):
        """The largest log-ratio of the integer law, counted exactly, is at most the map's."""
        space = Space(domain=Numbers(dims=3), metric=L1)
        moved = sum(abs(Fraction(a) - Fraction(b)) for a, b in zip(one, other, strict=True))
        distance = math.nextafter(float(moved), math.inf) if moved else 0.0
        grid = noise.laplace_grid(sensitivity=scale, epsilon=1.0, dims=3)
        steps = sum(
            abs(rounded(a, grid.exponent) - rounded(b, grid.exponent))
            for a, b in zip(one, other, strict=True)
        )
        # Probabilities of the discrete Laplace law are proportional to exp(-|k| / scale).
        assert steps / Fraction(grid.scale) <= (space >> m.laplace(scale)).map(distance)

    @given(
        st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2),
        st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2),
    )
    def test_gaussian_covers_the_law_that_is_drawn(self, one, other):
        """Rho of the discrete Gaussian, half the squared shift in sigmas, is at most the map's."""
        space = Space(domain=Numbers(dims=2), metric=L2)
        grid = noise.gaussian_grid(sensitivity=0.7, sigma=0.7, dims=2)
        shift = [
            rounded(a, grid.exponent) - rounded(b, grid.exponent)
            for a, b in zip(one, other, strict=True)
        ]
        moved = math.hypot(*(a - b for a, b in zip(one, other, strict=True))) * (1 + 1e-15)
        rho = sum(k * k for k in shift) / (2 * Fraction(grid.scale) ** 2)
        assert rho <= (space >> m.gaussian(0.7)).map(moved)

    def test_answers_on_both_sides_of_a_half_step(self):
        """Answers a hair apart may round to different grid points: that is paid for, too."""
        for grid, step in (
            (noise.laplace_grid(sensitivity=0.7, epsilon=1.0, dims=1), m.laplace(0.7)),
            (noise.gaussian_grid(sensitivity=0.7, sigma=0.7, dims=1), m.gaussian(0.7)),
        ):
            half = math.ldexp(0.5, grid.exponent)
            one, other = math.nextafter(half, 0.0), math.nextafter(half, 1.0)
            assert rounded(other, grid.exponent) - rounded(one, grid.exponent) == 1
            lost = 1 / Fraction(grid.scale)
            release = NUMBER >> step
            claimed = release.map(other - one)
            assert (lost if release.measure == PURE else lost**2 / 2) <= claimed

    def test_close_to_the_textbook(self):
        """Epsilon is d / b, rho is d^2 / (2 sigma^2), the exponential's epsilon is 2 d / b."""
        scores = Space(domain=Numbers(dims=4), metric=SUP)
        for distance in (1e-3, 1.0, 50.0):
            assert (NUMBER >> m.laplace(2.0)).map(distance) == pytest.approx(distance / 2, 1e-9)
            rho = (NUMBER >> m.gaussian(2.0)).map(distance)
            assert rho == pytest.approx(distance**2 / 8, 1e-9)
            assert (scores >> m.exponential(2.0)).map(distance) == pytest.approx(distance, 1e-9)

    @given(st.lists(st.floats(-5, 5), min_size=3, max_size=3), st.floats(0, 2))
    def test_exponential_covers_the_law_that_is_drawn(self, scores, moved):
        """The log-ratio of every choice on the rounded scores is at most the map's."""
        space = Space(domain=Numbers(dims=3), metric=SUP)
        claimed = (space >> m.exponential(1.5)).map(moved)
        one = np.array(scores)
        other = one + moved * np.array([1, -1, 0.5])
        exact = max(abs(Fraction(a) - Fraction(b)) for a, b in zip(one, other, strict=True))
        if exact > moved:  # rounding in the sum above
            claimed = (space >> m.exponential(1.5)).map(math.nextafter(float(exact), math.inf))
        exponent = math.frexp(1.5)[1] - 1 - noise.GRID_BITS
        laws = []
        for values in (one, other):
            weights = [
                mpmath.exp(mpmath.mpf(rounded(v, exponent)) * mpmath.ldexp(1, exponent) / 1.5)
                for v in values
            ]
            laws.append([w / sum(weights) for w in weights])
        worst = max(abs(mpmath.log(p / q)) for p, q in zip(*laws, strict=True))
        assert worst <= claimed + 1e-14

    def test_nothing_moves_nothing_is_lost(self):
        """At distance 0 every loss is 0; at an infinite distance it is infinite."""
        for step in (m.laplace(1.0), m.gaussian(1.0)):
            release = NUMBER >> step
            assert release.map(0) == 0
            assert release.map(0, PRIVACY_PROFILE).delta(0.0) == 0
            assert release.map(math.inf) == math.inf
            assert release.map(math.inf, PRIVACY_PROFILE).delta(5.0) == 1

    @pytest.mark.parametrize("step", [t.clip(0, 1), m.laplace(1.0), t.clip(0, 1) >> t.count()])
    def test_noise_ends_the_chain(self, step):
        """A step behind noise is refused with what to do; plain functions may follow."""
        release = SUM >> m.laplace(1.0)
        with pytest.raises(SpaceMismatch, match=r"noise ends the chain: .* plain function"):
            _ = release >> step
        with pytest.raises(SpaceMismatch, match="noise ends the chain"):
            _ = SUM >> (m.laplace(1.0) >> step)
        assert isinstance((release >> round)([0.5]), int)

    def test_the_gaussian_curve(self):
        """Delta agrees with the formula of Balle and Wang, computed in 40 digits, and covers it."""
        release = UNIT >> t.count() >> m.gaussian(3.0)
        with mpmath.workdps(40):
            ratio = mpmath.mpf(1) / 3
            for epsilon in (0.1, 0.5, 1.0):
                exact = mpmath.ncdf(ratio / 2 - epsilon / ratio) - mpmath.exp(
                    epsilon
                ) * mpmath.ncdf(-ratio / 2 - epsilon / ratio)
                found = release.map(1, PRIVACY_PROFILE).delta(epsilon)
                assert exact <= found <= exact * (1 + 1e-5)
                assert release.guarantee(1, delta=found).epsilon == pytest.approx(epsilon, 1e-9)

    @pytest.mark.slow
    def test_like_the_mechanisms(self):
        """The smallest scale for a target is that of the mechanism with the same sensitivity."""
        s = m.chain_sensitivity(SUM)
        found = m.smallest_scale(lambda b: SUM >> m.laplace(b), 1, 0.5)
        assert found == pytest.approx(hs.Laplace(s, epsilon=0.5).scale, rel=1e-11)
        target = hs.Guarantee(epsilon=0.5, delta=1e-6, neighbours="add-remove")
        found = m.smallest_scale(lambda b: SUM >> m.gaussian(b), 1, target)
        s = m.chain_sensitivity(SUM, norm="l2")
        assert found == pytest.approx(hs.Gaussian(s, epsilon=0.5, delta=1e-6).scale, rel=1e-6)

    @pytest.mark.slow
    def test_draws(self):
        """Draws are answers with noise: on the mean within five standard errors of 2000 draws."""
        rows = [0.25] * 20
        laplace = np.array([(MEAN >> m.laplace(0.1))(rows) for _ in range(2000)])
        assert abs(laplace.mean() - 0.25) < 5 * 0.1 * math.sqrt(2 / 2000)  # false alarm 6e-7
        gaussian = np.array([(MEAN >> m.gaussian(0.1))(rows) for _ in range(2000)])
        assert abs(gaussian.mean() - 0.25) < 5 * 0.1 / math.sqrt(2000)
        assert len(set(laplace.tolist())) > 1900
        choose = UNIT >> t.quantile_scores([0.0, 0.5, 1.0], 0.5) >> m.exponential(0.1)
        assert choose([0.5] * 60) == 1  # otherwise with probability below e^-200

    def test_the_domain_is_checked_before_the_draw(self, assert_silent):
        """Rows out of bounds are refused."""
        with pytest.raises(BadRows) as caught:
            (SUM >> m.laplace(1.0))([0.5, 987654.321])
        assert_silent(str(caught.value))


class TestGuarantee:
    def test_relations(self):
        """The promise names the relation that the source metric counts."""
        assert (SUM >> m.laplace(1.0)).guarantee(1).neighbours == "add-remove"
        assert (MEAN >> m.laplace(1.0)).guarantee(1).neighbours == "replace-one"
        both = Space(domain=SIZED.domain, metric=SYMMETRIC) >> t.mean() >> m.laplace(0.05)
        found = both.guarantee(2)
        assert found.neighbours == "replace-one"
        assert found.epsilon == pytest.approx(1.0, rel=1e-9)

    @pytest.mark.parametrize("d_in", [0, 1, 3])
    def test_an_empty_promise_is_refused(self, d_in):
        """No two tables of equal size lie one row apart: that promise would be about nobody."""
        both = Space(domain=SIZED.domain, metric=SYMMETRIC) >> t.mean()
        with pytest.raises(ParameterError, match="d_in=2"):
            (both >> m.laplace(1.0)).guarantee(d_in)
        with pytest.raises(ParameterError, match="d_in=2"):
            m.chain_sensitivity(both, d_in)

    def test_answers_have_no_neighbours(self):
        """A measurement of an answer alone promises nothing to rows."""
        with pytest.raises(ParameterError, match="chain it behind"):
            (NUMBER >> m.laplace(1.0)).guarantee(1)

    def test_a_gaussian_has_no_pure_epsilon(self):
        """Without delta the level of a Gaussian is infinite."""
        assert (SUM >> m.gaussian(1.0)).guarantee(1).epsilon == math.inf

    def test_gamma_travels_and_is_counted_once(self):
        """Two releases with one sampled sensitivity share its gamma; t rows cost t of it."""
        pop = hs.populations.Uniform(low=0, high=1)
        s = hs.sample_sensitivity(np.mean, pop, rows=10, gamma=0.05, workers=1)
        chain = t.from_sensitivity(np.mean, s)
        one, other = chain >> m.laplace(0.1), chain >> m.gaussian(0.2)
        assert one.guarantee(1).gamma == s.gamma
        assert one.guarantee(1).estimates == s.guarantee(1.0).estimates
        assert one.guarantee(3).gamma == pytest.approx(3 * s.gamma)
        assert m.compose([one, other]).guarantee(1, delta=1e-6).gamma == s.gamma
        second = hs.sample_sensitivity(np.mean, pop, rows=10, gamma=0.05, seed=1, workers=1)
        third = t.from_sensitivity(np.mean, second) >> m.laplace(0.1)
        assert m.compose([one, third]).guarantee(1).gamma == pytest.approx(s.gamma + second.gamma)
        assert m.largest_distance(one, hs.Guarantee(epsilon=1e9, gamma=0.12)) == math.floor(
            0.12 / s.gamma
        )


class TestMeasures:
    def test_pure_in_other_terms(self):
        """A pure promise at its worst is randomised response: known rho and Renyi divergence."""
        known = {PURE: 1.0}
        p = 1 / (1 + math.exp(-1.0))
        order = 3.0
        exact = math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order))
        renyi = losses.restated(known, RENYI)(order)
        assert renyi == pytest.approx(exact / (order - 1), rel=1e-9)
        assert renyi >= exact / (order - 1)
        assert losses.restated(known, ZCDP) <= 0.5  # Bun and Steinke: epsilon^2 / 2
        assert losses.restated(known, PRIVACY_PROFILE).delta(0.0) == pytest.approx(2 * p - 1)

    def test_rho_to_epsilon(self):
        """The conversion of rho alone lies above the exact curve, and not by half."""
        alone = losses.epsilon_at({ZCDP: 0.125}, 1e-6)
        exact = (NUMBER >> m.gaussian(2.0)).map(1.0, PRIVACY_PROFILE).epsilon(1e-6)
        assert exact < alone < 1.5 * exact
        assert losses.epsilon_at({ZCDP: 0.125}, 0.0) == math.inf

    def test_what_cannot_be_said(self):
        """A rho gives no pure epsilon and no curve; the message says what is known."""
        for measure in (PURE, PRIVACY_PROFILE):
            with pytest.raises(ParameterError, match="known as ZCDP"):
                losses.restated({ZCDP: 0.5}, measure)
        with pytest.raises(ParameterError):
            (NUMBER >> m.gaussian(2.0)).to(PURE).map(1.0)

    def test_the_curve_of_the_drawn_law(self):
        """The curve covers discrete noise, and delta at its level is kept, however small."""
        curve = (NUMBER >> m.gaussian(2.0)).map(1.0, PRIVACY_PROFILE)
        for delta in (1e-3, 1e-9, 1e-24, 1e-60):
            assert curve.delta(curve.epsilon(delta)) <= delta


class TestTogether:
    def test_compose(self):
        """Epsilons and rhos add up, and the joint curve is that of the convolution."""
        parts = [SUM >> m.laplace(2.0), SUM >> m.laplace(4.0)]
        both = m.compose(parts)
        assert both.map(1) >= parts[0].map(1) + parts[1].map(1)
        assert both.map(1) == pytest.approx(0.75, rel=1e-6)
        by_hand = hs.compose(
            [hs.privacy_loss.laplace(0.5), hs.privacy_loss.laplace(0.25)], delta=1e-3
        )
        assert both.guarantee(1, delta=1e-3).epsilon == pytest.approx(by_hand.epsilon, rel=1e-4)
        assert len(both([0.5, 0.5])) == 2
        mixed = m.compose([SUM >> m.gaussian(2.0), parts[0]])
        rho = mixed.map(1)
        assert rho == pytest.approx(0.125 + parts[0].map(1, ZCDP), rel=2e-3)
        assert mixed.map(1, RENYI)(2.0) <= 2 * rho
        with pytest.raises(SpaceMismatch):
            m.compose([parts[0], MEAN >> m.laplace(1.0)])
        with pytest.raises(ParameterError):
            m.compose([])

    def test_a_count_keeps_its_loss_across_a_postprocessing(self):
        """A function of the released answer changes the answer and not the loss."""
        release = SUM >> m.laplace(2.0)
        after = release >> (lambda answer: round(float(answer)) // 10)
        assert isinstance(after([1.0] * 50), int)
        assert after.map(1) == release.map(1)
        assert after.guarantee(2) == release.guarantee(2)

    @pytest.mark.parametrize("rows", [1, 2, 3, 4])
    @pytest.mark.parametrize("parts", [1, 2, 3])
    def test_parallel_is_the_worst_split(self, rows, parts):
        """The loss over disjoint parts is the largest over all ways to spread the rows."""
        keys = ["a", "b", "c"][:parts]
        inner = t.select("x") >> t.variance() >> m.laplace(0.25)  # saturates after one row
        release = TABLE >> t.group_by("key", keys) >> m.parallel(inner)
        alone = TABLE >> inner
        splits = [s for s in itertools.product(range(rows + 1), repeat=parts) if sum(s) <= rows]
        worst = max(sum(alone.map(share) for share in split) for split in splits)
        assert worst <= release.map(rows) <= worst * (1 + 1e-12)
        counted = TABLE >> t.group_by("key", keys) >> m.parallel(t.count() >> m.laplace(1.0))
        assert counted.map(rows) == pytest.approx(rows, rel=1e-9)

    def test_parallel_measures_and_draws(self):
        """One row touches one part; a replaced row may touch two; curves are for one row."""
        step = t.group_by("key", ["a", "b"]) >> m.parallel(t.count() >> m.gaussian(1.0))
        release = TABLE >> step
        assert release.map(1) == pytest.approx(0.5, rel=1e-9)
        assert release.map(2) == pytest.approx(2.0, rel=1e-9)
        assert release.map(2, RENYI)(3.0) == pytest.approx(6.0, rel=1e-9)
        one = TABLE >> t.count() >> m.gaussian(1.0)
        assert release.guarantee(1, delta=1e-6) == one.guarantee(1, delta=1e-6)
        with pytest.raises(ParameterError):
            release.map(2, PRIVACY_PROFILE)
        assert release.guarantee(2, delta=1e-6).epsilon > one.guarantee(1, delta=1e-6).epsilon
        assert set(release({"key": ["a", "a"], "x": [0, 1]})) == {"a", "b"}
        changed = Space(domain=TABLE.domain, metric=CHANGE_ONE) >> step
        assert changed.map(1) == release.map(2)

    def test_groups_of_vectors(self):
        """Sums by group end in one vector with one noise; a row moves one of them by 1."""
        chain = TABLE >> t.group_by("key", ["a", "b"]) >> t.each(t.select("x") >> t.sum_of())
        release = chain >> m.laplace(2.0)
        assert release.map(1) == pytest.approx(0.5, rel=1e-6)
        assert release({"key": ["a", "b", "z"], "x": [1, 1, 1]}).shape == (2,)


class TestBackwards:
    @pytest.mark.parametrize("target", [0.3, 1.0, 17.5])
    def test_largest_distance(self, target):
        """The found number of rows keeps the target, and one more does not."""
        for chain, reached in (
            (SUM, lambda d: SUM.map(d).value),
            (SUM >> m.laplace(0.7), (SUM >> m.laplace(0.7)).map),
            (SUM >> m.gaussian(0.7), (SUM >> m.gaussian(0.7)).map),
        ):
            found = m.largest_distance(chain, target)
            assert found == 0 or reached(found) <= target
            assert reached(found + 1) > target
        assert m.largest_distance(SIZED >> t.count() >> m.laplace(1.0), 0.5) == 2**40

    @pytest.mark.slow
    def test_no_scale_for_a_distance_that_no_two_tables_have(self):
        """Where the number of rows is public they differ by an even number; it was 1e-271."""
        both = Space(domain=SIZED.domain, metric=SYMMETRIC)
        chain = both >> t.sum_of()
        for nowhere in (0, 1, 3):
            with pytest.raises(ParameterError, match="neighbours differ in one row or more"):
                m.smallest_scale(lambda b: chain >> m.laplace(b), nowhere, hs.Guarantee(epsilon=1))
        assert m.smallest_scale(lambda b: chain >> m.laplace(b), 2, 1.0) >= 1
        assert m.largest_distance(chain >> m.laplace(1.0), 0.5) == 0  # one replaced row loses 1
        for each in (chain, chain >> m.laplace(1.0)):
            assert "at a distance of 2" in each._card().facts[-1][1]

    @pytest.mark.slow
    def test_smallest_scale(self):
        """The found scale keeps the target, and one smaller by a hair does not."""
        for step, target in (
            (m.laplace, 0.01),
            (m.laplace, 40.0),
            (m.gaussian, hs.Guarantee(epsilon=1.0, delta=1e-5)),
        ):
            found = m.smallest_scale(lambda b, step=step: SUM >> step(b), 2, target)

            def kept(scale, step=step, target=target):
                release = SUM >> step(scale)
                if isinstance(target, float):
                    return release.map(2) <= target
                return release.guarantee(2, delta=target.delta).epsilon <= target.epsilon

            assert kept(found)
            assert not kept(found * (1 - 2.0**-30))

    def test_what_no_noise_keeps(self):
        """A gamma that exceeds the target is out of reach, whatever the scale."""
        pop = hs.populations.Uniform(low=0, high=1)
        s = hs.sample_sensitivity(np.mean, pop, rows=10, gamma=0.1, workers=1)
        chain = t.from_sensitivity(np.mean, s)
        with pytest.raises(NotFeasible):
            m.smallest_scale(lambda b: chain >> m.laplace(b), 1, hs.Guarantee(epsilon=1.0))
        with pytest.raises(ParameterError):
            m.largest_distance(SUM >> m.gaussian(1.0).build(SUM.target).to(PRIVACY_PROFILE), 1.0)


class TestRelease:
    def test_through_the_verb(self, ledger):
        """A chain is charged, released and certified like any function, its steps named."""
        frame = pd.DataFrame({"key": ["a", "b"], "x": [0.25, 0.5]})
        chain = TABLE >> t.select("x") >> t.sum_of()
        mechanism = hs.Laplace(m.chain_sensitivity(chain), epsilon=0.5)
        released = hs.release(chain, frame, mechanism, ledger, budget="study")
        assert ledger.log[0][2] == released.certificate.guarantee
        assert released.certificate.neighbours == "add-remove"
        assert "select('x') >> sum_of()" in released.certificate.argument
        assert "computed from what each step says" in released.certificate.explain()
        assert "not checked" not in released.certificate.explain()
        assert released.certificate.guarantee.epsilon == 0.5

    def test_norms(self):
        """The l1 norm of a chain bounds l2 and sup, and not the other way round."""
        counts = UNIT >> t.histogram([0.0, 0.5, 1.0], norm="l2")
        assert m.chain_sensitivity(counts).norm == "l2"
        assert m.chain_sensitivity(counts, norm="sup").value == 1
        with pytest.raises(ParameterError, match="not 'l1'"):
            m.chain_sensitivity(counts, norm="l1")
        assert m.chain_sensitivity(SUM, 3, norm="l2").value == SUM.map(3).value
        with pytest.raises(ParameterError):
            m.chain_sensitivity(UNIT >> t.clip(0, 1))

    def test_sampled_chains_keep_their_gamma(self):
        """A sampled movement cannot be passed off as a proven one."""
        pop = hs.populations.Uniform(low=0, high=1)
        s = hs.sample_sensitivity(np.mean, pop, rows=10, gamma=0.1, workers=1)
        with pytest.raises(ParameterError, match="sampled sensitivity"):
            m.chain_sensitivity(t.from_sensitivity(np.mean, s))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-8, 1e-3, 0.5, 20.0])
def test_a_pure_loss_in_other_terms(epsilon):
    """Rho and divergences of randomised response in 60 digits: never below, and close."""
    theirs = m.Measurement(
        name="pure", source=NUMBER, measure=PURE, draw=float, known=lambda _: {PURE: epsilon}
    )
    with mpmath.workdps(60):
        x = mpmath.mpf(epsilon)
        kept = 1 / (1 + mpmath.exp(-x))
        first = x * mpmath.tanh(x / 2)
        exact = {1.0: first, math.inf: x}
        for order in (1.25, 2.0, 50.0):
            a = mpmath.mpf(order)
            mean = kept**a * (1 - kept) ** (1 - a) + (1 - kept) ** a * kept ** (1 - a)
            exact[order] = mpmath.log(mean) / (a - 1)
        bound = theirs.map(1.0, RENYI)
        for order, divergence in exact.items():
            assert divergence <= bound(order) <= divergence * (1 + mpmath.mpf("3e-9"))
        assert first <= theirs.map(1.0, ZCDP) <= first * (1 + mpmath.mpf("1e-14"))
    with pytest.raises(ParameterError):
        bound(0.5)


class TestUnits:
    def test_a_chain_from_users_promises_to_users(self):
        """Guarantee, sensitivity and mechanism of the chain say so; a chain from rows says rows."""
        table = Table.of({"who": Cell(type="string"), "x": Cell(low=0, high=1)}, key="who")
        for unit in ("row", "user"):
            space = Space(domain=table, metric=Metric(name="symmetric", unit=unit))
            kept = space >> t.limit_rows(2) if unit == "user" else None
            chain = (kept or space >> t.filter_rows(bool)) >> t.select("x") >> t.sum_of()
            assert (chain >> m.laplace(1.0)).guarantee().unit == unit
            stated = m.chain_sensitivity(chain)
            assert stated.unit == unit
            assert hs.Laplace(stated, epsilon=1.0).guarantee.unit == unit

    def test_users_behind_a_sampled_sensitivity_are_refused(self):
        """A gamma about one replaced row is none about a user with several rows."""
        pop = hs.populations.Uniform(low=0, high=1)
        s = hs.sample_sensitivity(np.mean, pop, rows=10, gamma=0.1, workers=1)
        table = Table.of({"who": Cell(type="string"), "x": Cell(low=0, high=1)}, key="who")
        users = Space(domain=table, metric=Metric(name="change-one", unit="user"))
        sized = users >> t.limit_rows(2) >> t.select("x") >> t.resize(10, 0.5)
        with pytest.raises(SpaceMismatch, match="sample the composed function"):
            sized >> t.from_sensitivity(np.mean, s, source=sized.target) >> m.laplace(1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: NUMBER >> m.laplace(0.0),
        lambda: NUMBER >> m.laplace(math.nan),
        lambda: NUMBER >> m.gaussian(math.inf),
        lambda: NUMBER >> m.exponential(1.0),
        lambda: Space(domain=Numbers(dims=2), metric=L2) >> m.laplace(1.0),
        lambda: Space(domain=Numbers(dims=2), metric=SUP) >> m.gaussian(1.0),
        lambda: UNIT >> m.laplace(1.0),
        lambda: (NUMBER >> m.laplace(1.0)).map(-1.0),
        lambda: (NUMBER >> m.laplace(1.0)).map(math.nan),
        lambda: (SUM >> m.laplace(1.0)).map(0.5),
        lambda: TABLE >> m.parallel(t.count() >> m.laplace(1.0)),
        lambda: TABLE >> t.group_by("key", ["a"]) >> m.parallel(t.count()),
        lambda: m.largest_distance(NUMBER >> m.laplace(1.0), 1.0),
        lambda: m.largest_distance(SUM, hs.Guarantee(epsilon=1.0)),
    ],
)
def test_what_is_refused(make):
    """Scales that are none, and norms the noise cannot use, are refused when they are made."""
    with pytest.raises(hs.errors.HushedError):
        make()


def test_a_certificate_says_that_a_least_number_of_rows_leaves_pairs_out():
    """Without one of just three people there would be two, of whom the chain promises nothing."""
    column = Column(cell=Cell(low=0, high=1), least=3)
    chain = Space(domain=column, metric=SYMMETRIC) >> t.mean()
    mechanism = hs.Laplace(m.chain_sensitivity(chain), epsilon=1.0)
    words = hs.release(chain, [0.0, 0.5, 1.0, 0.5], mechanism).certificate.explain()
    assert "both have at least 3 rows" in words
    assert "in a table of just 3 nobody can be missing" in words
    free = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC) >> t.mean(least=3)
    assert "pairs of tables that both" not in m.chain_sensitivity(free).argument


def test_a_measure_that_says_nothing_names_what_can_be_typed():
    """The constants of hushed.spaces, each of which answers, and the call for epsilon."""
    space = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC) >> t.sum_of()
    both = m.compose([space >> m.laplace(1.0), space >> m.gaussian(1.0)])
    with pytest.raises(ParameterError) as refused:
        both.map(1)
    named = [word for word in re.findall(r"[A-Z_]{4,}", str(refused.value)) if word != "PURE"]
    assert named
    for name in named:
        both.map(1, getattr(hs.spaces, name))
    assert "guarantee(delta=1e-6)" in str(refused.value)
    assert both.guarantee(delta=1e-6).epsilon > 0
