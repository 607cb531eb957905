"""What OpenDP's metrics, domains and measures mean in our spaces, and what they do not."""

import itertools
import math
from fractions import Fraction

import pytest

from hushed import measurements as m
from hushed import privacy_loss
from hushed import transformations as t
from hushed.errors import BadRows, ParameterError, SpaceMismatch
from hushed.spaces import (
    CHANGE_ONE,
    DISCRETE,
    L2,
    ONE_SIDED,
    PRIVACY_PROFILE,
    RENYI,
    SUP,
    SYMMETRIC,
    ZCDP,
    Cell,
    Column,
    Numbers,
    Space,
    Table,
)

dp = pytest.importorskip("opendp.prelude")


@pytest.fixture(autouse=True)
def trusting():
    """Let OpenDP take functions on our word."""
    dp.enable_features("contrib", "honest-but-curious")


def unit(size=None):
    return dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=size)


def noisy_max(kind="i64", measure=None, scale=2.0, monotonic=True):
    nan = {"nan": False} if kind == "f64" else {}
    return dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T=kind, **nan), size=3),
        dp.linf_distance(T=kind, monotonic=monotonic),
        measure or dp.max_divergence(),
        scale,
    )


class TestOrder:
    @pytest.mark.parametrize(
        ("given", "theirs", "ours"),
        [
            (dp.symmetric_distance, "InsertDeleteDistance()", SYMMETRIC),
            (dp.change_one_distance, "HammingDistance()", CHANGE_ONE),
        ],
    )
    def test_ordered_rows_may_come_out(self, given, theirs, ours):
        """Rows in order are at least as far apart as without: what is near stays near."""
        made = dp.t.make_ordered_random(unit(4), given())
        assert repr(made.output_metric) == theirs
        back = m.from_opendp(made)
        assert back.target == Space(domain=Column(cell=Cell(low=0, high=1), size=4), metric=ours)
        assert back.map(2).value == 2
        chain = back >> t.sum_of() >> m.laplace(1.0)
        rows = [0.0, 0.25, 0.5, 1.0]
        assert sorted(back(rows).tolist()) == rows
        again = m.to_opendp(chain)
        assert again.map(2) == pytest.approx(chain.map(2), rel=1e-6)

    def test_ordered_rows_must_not_go_in(self):
        """A table in another order is the same one here, and far away there."""
        made = dp.t.make_unordered(unit(2), dp.insert_delete_distance())
        assert made.map(0) == 0
        for metric in (dp.insert_delete_distance(), dp.hamming_distance()):
            with pytest.raises(ParameterError, match="make_ordered_random"):
                m.from_opendp(dp.t.make_unordered(unit(2), metric))
        mixed = dp.t.make_ordered_random(unit(2), dp.symmetric_distance()) >> made
        assert m.from_opendp(mixed).source.metric == SYMMETRIC


class TestOneDirection:
    @pytest.mark.slow_cases("f64")
    @pytest.mark.parametrize("kind", ["i64", "f64", "u64"])
    def test_pure(self, kind):
        """Whole scores lose d / scale, and real ones one part in 1024 more."""
        theirs = noisy_max(kind)
        release = m.from_opendp(theirs)
        assert release.source.metric == ONE_SIDED
        for distance in (1, 2, 7):
            exact = float(distance) if kind == "f64" else distance
            assert theirs.map(exact) == distance / 2
            assert release.map(distance) >= distance / 2
            slack = 1 / 1024 if kind == "f64" else 0
            assert release.map(distance) <= distance / 2 * (1 + slack) * (1 + 1e-12)
        assert release.map(0) == 0
        assert release.map(math.inf) == math.inf
        assert release([0, 3000, 0]) == 1

    @pytest.mark.slow_cases("f64")
    @pytest.mark.parametrize("kind", ["i64", "f64"])
    def test_rho(self, kind):
        """The roots of rho add up: a distance of d costs d squared over 8 scale squared."""
        release = m.from_opendp(noisy_max(kind, dp.zero_concentrated_divergence()))
        assert release.measure == ZCDP
        slack = 1 + (3 / 1024 if kind == "f64" else 1e-12)
        for distance in (1, 2, 5):
            rho = (distance / 2) ** 2 / 8
            assert rho <= release.map(distance) <= rho * slack

    def test_large_whole_distances(self):
        """Beyond 1024 whole steps only some splits are asked, on the safe side."""
        release = m.from_opendp(noisy_max())
        assert 2500.0 <= release.map(5000) <= 2500.0 * (1 + 2 / 1024)

    @pytest.mark.parametrize(
        ("measure", "twice"), [(dp.max_divergence, 1.5), (dp.zero_concentrated_divergence, 3.0)]
    )
    def test_two_steps_cost_two_steps(self, measure, twice):
        """A map that stays below its first step twice does not hold for moves both ways.

        Epsilons add up, and roots of rho, so that rho of two steps is four times as large.
        """
        theirs = dp.m.make_user_measurement(
            dp.vector_domain(dp.atom_domain(T="i64"), size=2),
            dp.linf_distance(T="i64", monotonic=True),
            measure(),
            lambda scores: scores[0] > scores[1],
            lambda d_in: min(d_in, 1) * 0.75,
        )
        assert theirs.map(2) == 0.75
        assert m.from_opendp(theirs).map(1) == 0.75
        assert m.from_opendp(theirs).map(2) == pytest.approx(twice, rel=1e-12)
        assert m.from_opendp(theirs).map(2) >= twice

    def test_scores_that_move_both_ways(self):
        """Permute-and-flip of counts with one row added and one removed loses at most the map."""
        release = m.from_opendp(noisy_max(scale=1.0))
        counts = [c for c in itertools.product(range(4), repeat=3) if sum(c) <= 3]
        worst = 0.0
        for one, other in itertools.permutations(counts, 2):
            rise = max(0, *(b - a for a, b in zip(one, other, strict=True)))
            fall = max(0, *(a - b for a, b in zip(one, other, strict=True)))
            pairs = zip(flipped(one), flipped(other), strict=True)
            lost = max(abs(math.log(p / q)) for p, q in pairs)
            assert lost <= release.map(rise + fall) + 1e-12
            worst = max(worst, lost / release.map(rise + fall))
        assert worst > 0.9

    def test_counts_of_ours_go_in(self):
        """Counts in the one-sided distance, not in the sup norm, end in OpenDP's choice."""
        texts = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
        chain = texts >> t.histogram(["a", "b", "c"], norm="one-sided")
        chosen = chain >> m.from_opendp(noisy_max(scale=0.01))
        assert chosen.map(2) == pytest.approx(200.0)
        assert chosen(["b"] * 9) == 1
        with pytest.raises(SpaceMismatch):
            _ = texts >> t.histogram(["a", "b", "c"], norm="sup") >> m.from_opendp(noisy_max())
        plain = m.from_opendp(noisy_max(monotonic=False))
        assert plain.source.metric == SUP
        assert plain.map(1) == 1.0

    def test_no_other_measure(self):
        """A loss with a delta does not add up over two steps in any way known here."""
        with pytest.raises(ParameterError, match="one direction"):
            m.from_opendp(dp.c.make_approximate(noisy_max()))


def flipped(scores):
    """Permute-and-flip with scale 1."""
    keep = [math.exp(score - max(scores)) for score in scores]
    law = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        left = 1 / math.factorial(len(scores))
        for place in order:
            law[place] += left * keep[place]
            left *= 1 - keep[place]
    return law


class TestMeasures:
    def test_renyi(self):
        """A curve of orders is read as it is, and turned into epsilon and delta."""
        theirs = dp.m.make_user_measurement(
            unit(),
            dp.symmetric_distance(),
            dp.renyi_divergence(),
            lambda rows: len(rows) > 3,
            lambda d_in: lambda order: 0.5 * d_in * d_in * order,
        )
        release = m.from_opendp(theirs)
        assert release.measure == RENYI
        assert release.map(2)(3.0) == 6.0
        gaussian = Space(domain=Numbers(dims=1), metric=L2) >> m.gaussian(1.0)
        promised = release.guarantee(1, delta=1e-6).epsilon
        assert gaussian.map(1, PRIVACY_PROFILE).epsilon(1e-6) < promised < 6.0
        both = m.compose([release, release])
        assert both.map(1, RENYI)(4.0) == pytest.approx(4.0)

    @pytest.mark.slow
    def test_profiles(self):
        """Delta of a profile lies between the exact one and OpenDP's; it composes, too.

        OpenDP's bound is not convex near 0, where a real curve is, so ours may lie below it.
        """
        theirs = dp.c.make_zCDP_to_approxDP(
            dp.t.make_sum(unit(), dp.symmetric_distance()) >> dp.m.then_gaussian(2.0)
        )
        release = m.from_opendp(theirs)
        assert release.measure == PRIVACY_PROFILE
        profile, loss = theirs.map(1), release.map(1)
        for level in (0.0, 0.003, 0.1, 1.0, 2.5, 4.0):
            assert privacy_loss.gaussian(0.5).delta(level) < loss.delta(level)
            assert loss.delta(level) <= 1.001 * profile.delta(level)
            if level > 0.2:
                assert profile.delta(level) <= loss.delta(level)
        once = release.guarantee(1, delta=1e-6).epsilon
        assert profile.epsilon(1e-6) <= once < 1.0001 * profile.epsilon(1e-6)
        two = m.compose([release, release]).guarantee(1, delta=1e-6).epsilon
        assert once < privacy_loss.gaussian(0.5 * math.sqrt(2)).epsilon(1e-6) < two < 2 * once

    @pytest.mark.parametrize(
        "make",
        [
            lambda: dp.c.make_approximate(
                dp.t.make_sum(unit(), dp.symmetric_distance()) >> dp.m.then_gaussian(2.0)
            ),
            lambda: dp.m.make_user_measurement(
                unit(), dp.symmetric_distance(), dp.user_divergence("mine"), len, lambda d: d
            ),
        ],
    )
    def test_others_are_refused(self, make):
        """An approximate rho, and a measure that somebody made up."""
        with pytest.raises(ParameterError, match="no equivalent of OpenDP's"):
            m.from_opendp(make())


class TestDomains:
    def test_answers_out_of_bounds_are_moved_into_them(self):
        """OpenDP may reckon with the bounds of an answer, which our answers do not have."""
        seen = []
        theirs = dp.m.make_user_measurement(
            dp.atom_domain(bounds=(0.0, 1.0), nan=False),
            dp.absolute_distance(T="f64"),
            dp.max_divergence(),
            seen.append,
            lambda d_in: min(d_in, 1.0),
        )
        release = m.from_opendp(theirs)
        for answer in (-3.0, 0.25, 70.0):
            release(answer)
        assert seen == [0.0, 0.25, 1.0]
        whole = dp.m.make_laplace(
            dp.atom_domain(T="i64", bounds=(0, 9)), dp.absolute_distance(T="i64"), scale=0.001
        )
        # A scale of 0.001 makes noise other than 0 with a chance of exp(-1000).
        assert [m.from_opendp(whole)(x) for x in (-5, 4, 2**40)] == [0, 4, 9]

    def test_discrete_answers(self):
        """Randomised response to a whole number, which is another one or not."""
        theirs = dp.m.make_randomized_response([1, 2, 3], 0.75)
        release = m.from_opendp(theirs)
        assert release.source == Space(domain=Numbers(type="int"), metric=DISCRETE)
        exact = math.log(Fraction(3, 4) / Fraction(1, 8))
        assert release.map(1) == release.map(5) == pytest.approx(exact, rel=1e-12)
        assert release(2) in (1, 2, 3)

    def test_indices(self):
        """Places of bins are whole numbers, which our histogram counts."""
        made = dp.t.make_find_bin(
            dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            dp.symmetric_distance(),
            [0.0, 1.0],
        )
        chain = m.from_opendp(made) >> t.histogram([0, 1, 2])
        assert chain([-1.0, 0.5, 0.5, 3.0]).tolist() == [1, 2, 1]
        assert chain.map(3).value == 3

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: dp.m.make_randomized_response_bool(0.75), "bool"),
            (lambda: dp.m.make_randomized_response(["a", "b"], 0.75), "String"),
            (
                lambda: dp.t.make_cast(
                    dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance(), "i64"
                ),
                "make_impute_constant or make_drop_null",
            ),
            (
                lambda: dp.t.make_count_by(
                    dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
                ),
                "no equivalent",
            ),
            (
                lambda: dp.m.make_randomized_response_bitvec(
                    dp.bitvector_domain(max_weight=4), dp.discrete_distance(), f=0.95
                ),
                "no equivalent",
            ),
        ],
    )
    def test_others_are_refused_by_name(self, make, message):
        """Truth values, single texts, maps and bits have no place in our spaces."""
        with pytest.raises(ParameterError, match=message):
            m.from_opendp(make())


def test_there_and_back_again():
    """What came from OpenDP goes back as it was, in the middle and at the end of a chain."""
    theirs = dp.t.make_clamp(unit(), dp.symmetric_distance(), (0.25, 0.75))
    noise = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1e-6
    )
    space = Space(domain=Column(cell=Cell(low=0, high=1)), metric=SYMMETRIC)
    chain = (
        space
        >> t.clip(0, 1)
        >> m.from_opendp(theirs)
        >> t.sum_of()
        >> m.from_opendp(noise)
        >> (lambda x: [round(x, 3)])
    )
    again = m.to_opendp(chain)
    assert again([0.0, 0.5, 1.0]) == chain([0.0, 0.5, 1.0]) == [1.5]
    assert again.map(1) == pytest.approx(chain.map(1), rel=1e-6)


def test_truth_values_come_in_and_go_out():
    """Rows of truth values are given to OpenDP's function and taken from it."""
    flags = dp.vector_domain(dp.atom_domain(T=bool)), dp.symmetric_distance()
    total = m.from_opendp(dp.t.make_cast_default(*flags, TOA="i64")) >> t.clip(0, 1) >> t.sum_of()
    assert total.source.domain.cell.type == "bool"
    assert int(total([True, True, False])) == 2
    assert total.map(2).value == 2
    texts = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    same = m.from_opendp(dp.t.make_is_equal(*texts, "a")) >> t.histogram([True])
    assert same(["a", "b", "a"]).tolist() == [2]
    with pytest.raises(BadRows, match="does not hold bool"):
        total([1, 0])


def test_a_chain_on_tables_does_not_come_back():
    """The refusal says so, and does not tell our own words for a table as a domain of OpenDP."""
    table = Space(domain=Table.of({"x": Cell(low=0, high=1)}), metric=SYMMETRIC)
    gone = m.to_opendp(table >> t.select("x") >> t.count() >> m.laplace(1.0))
    with pytest.raises(ParameterError, match="a chain on tables that to_opendp exported does not"):
        m.from_opendp(gone)
