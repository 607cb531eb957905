"""Each step of ours in OpenDP: maps at several distances, answers on the same rows, refusals."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from tests.frequencies import pvalue_of_counts

import hushed as hs
from hushed import measurements as m
from hushed import transformations as t
from hushed.errors import ParameterError
from hushed.spaces import (
    ABSOLUTE,
    CHANGE_ONE,
    L1,
    L2,
    ONE_SIDED,
    PRIVACY_PROFILE,
    PURE,
    RENYI,
    SUP,
    SYMMETRIC,
    USERS,
    ZCDP,
    Cell,
    Column,
    Numbers,
    Opaque,
    Space,
    Table,
)

dp = pytest.importorskip("opendp.prelude")

FALSE_ALARM = 1e-6


@pytest.fixture(autouse=True)
def trusting():
    """Let OpenDP take functions on our word."""
    dp.enable_features("contrib", "honest-but-curious")


def rows(cell, *, size=None, least=None, metric=SYMMETRIC):
    return Space(domain=Column(cell=cell, size=size, least=least), metric=metric)


FLOATS = rows(Cell())
HOLES = rows(Cell(missing=True))
HOLED = rows(Cell(low=0, high=1, missing=True))
UNIT = rows(Cell(low=0, high=1), size=10)
REPLACED = rows(Cell(low=0, high=1), size=10, metric=CHANGE_ONE)
COUNTED = rows(Cell(type="int", low=0, high=5))
INTEGERS = rows(Cell(type="int", low=-3, high=5))
TEXTS = rows(Cell(type="string"))
FLAGS = rows(Cell(type="bool"))
TABLE = Space(
    domain=Table.of({"age": Cell(missing=True), "ward": Cell(type="string")}), metric=SYMMETRIC
)
PEOPLE = {"age": [31.0, None, 64.0, 250.0], "ward": ["a", "b", "a", "c"]}
TEN = [0.0, 0.125, 0.25, 0.25, 0.5, 0.5, 0.75, 0.875, 1.0, 1.0]


def doubled(value):
    return 2 * value


def positive(value):
    return value > 0


SAME = {
    "floats in bins": (FLOATS >> t.histogram([0.0, 0.5, 2.0]), [-1.0, 0.0, 0.4, 0.5, 1.9, 2.0]),
    "missing in no bin": (HOLES >> t.histogram([0.0, 1.0]), [0.5, math.nan, 1.5]),
    "bins l2": (FLOATS >> t.histogram([0.0, 1.0, 2.0], norm="l2"), [0.5, 1.5, 1.5]),
    "numpy bins": (INTEGERS >> t.histogram(np.array([1, 2])), [1, 2, 2, 5]),
    "texts to floats": (
        TEXTS >> t.cast("float") >> t.impute(0.5) >> t.clip(0, 1) >> t.sum_of(),
        ["0.25", "x", "", "1e3", "nan", "-2"],
    ),
    "integers to floats": (COUNTED >> t.cast("float") >> t.sum_of(), [1, 0, 5]),
    "integers to texts": (INTEGERS >> t.cast("string") >> t.histogram(["-3", "1"]), [1, -3, 5, 1]),
    "truth values in bins": (FLAGS >> t.histogram([True, False]), [True, True, False]),
    "truth values counted": (FLAGS >> t.count(), [True, False]),
    "truth values to integers": (FLAGS >> t.cast("int") >> t.sum_of(), [True, True, False]),
    "truth values to floats": (
        FLAGS >> t.resize(8, True) >> t.cast("float") >> t.mean(),
        [True, False],
    ),
    "truth values to texts": (
        FLAGS >> t.cast("string") >> t.histogram(["true", "false"]),
        [True, True, False],
    ),
    "a least number of rows": (rows(Cell(low=0, high=1), least=2) >> t.sum_of(), [0.5, 1.0]),
    "to the same kind": (INTEGERS >> t.cast("int") >> t.sum_of(), [1, -3, 5]),
    "without holes": (HOLED >> t.drop_missing() >> t.sum_of(), [0.25, math.nan, 1.0]),
    "nothing to drop": (TEXTS >> t.drop_missing() >> t.count(), ["a", "b"]),
    "nothing to impute": (INTEGERS >> t.impute(1) >> t.sum_of(), [1, 2]),
    "imputed in bounds": (HOLED >> t.impute(1) >> t.sum_of(), [0.25, math.nan]),
    "replaced and clipped": (REPLACED >> t.clip(0.25, 0.75) >> t.mean(), TEN),
    "resized to an integer fill": (FLOATS >> t.clip(0, 1) >> t.resize(8, 1) >> t.sum_of(), [1.0]),
    "resized texts": (TEXTS >> t.resize(8, "a") >> t.histogram(["a", "b"]), ["a"]),
    "a column of a table": (
        TABLE >> t.select("age") >> t.impute(40) >> t.clip(0, 100) >> t.sum_of(),
        PEOPLE,
    ),
    "texts of a table": (TABLE >> t.select("ward") >> t.histogram(["a", "b"]), PEOPLE),
    "rows of one's own": (
        INTEGERS
        >> t.filter_rows(positive)
        >> t.map_rows(doubled, Cell(type="int", low=0, high=9))
        >> t.sum_of(),
        [-1, 1, 2, 5],
    ),
    "rows of a table": (
        TABLE
        >> t.map_rows(lambda row: row["ward"] + "!", Cell(type="string"))
        >> t.histogram(["a!"]),
        PEOPLE,
    ),
    "a declared function": (
        t.declared(
            lambda values: np.clip(values, 0.25, 0.75).max(),
            source=UNIT,
            target=Space(domain=Numbers(), metric=ABSOLUTE),
            stability=0.25,
            argument="two of added and removed rows are one replaced, which moves it by a half",
        ),
        TEN,
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_maps_and_answers_agree(name):
    """OpenDP's map is ours up to what the arithmetic adds, and so are the answers."""
    chain, data = SAME[name]
    theirs = m.to_opendp(chain)
    replaced = chain.source.metric == CHANGE_ONE
    for d_in in (1, 2, 3) if replaced else (2, 4, 6):
        assert float(theirs.map(d_in)) == pytest.approx(chain.map(d_in).value, rel=1e-6)
    assert theirs(data) == pytest.approx(chain(data).tolist(), rel=1e-12)


LOOSER = {
    "OpenDP adds the width of the bounds to a sum of floats of both signs": (
        INTEGERS >> t.cast("float") >> t.sum_of(),
        [1, -3, 5],
    ),
    "OpenDP's resize doubles a distance between tables of one size, too": (
        REPLACED >> t.resize(10, 0.5) >> t.mean(),
        TEN,
    ),
    "OpenDP counts more replaced rows than there are": (
        FLOATS >> t.clip(0, 1) >> t.resize(2, 1) >> t.sum_of(),
        [1.0],
    ),
    "OpenDP's count does not know that the number of rows is public": (UNIT >> t.count(), TEN),
}


@pytest.mark.parametrize("why", LOOSER)
def test_maps_that_are_tighter_here(why):
    """Where the maps differ for a reason, ours is the smaller one; the answers agree."""
    chain, data = LOOSER[why]
    theirs = m.to_opendp(chain)
    assert all(chain.map(d_in).value <= theirs.map(d_in) * (1 + 1e-6) for d_in in (2, 4, 6))
    assert chain.map(6).value < 0.9 * theirs.map(6)
    assert theirs(data) == pytest.approx(chain(data).tolist(), rel=1e-12)


def test_frames_are_tables():
    """A table may come as a frame."""
    chain = TABLE >> t.select("ward") >> t.histogram(["a", "b"])
    assert m.to_opendp(chain)(pd.DataFrame(PEOPLE)) == [2, 1]


def test_rows_only():
    """Chains that end at rows are exported, too, and so is one that does nothing."""
    theirs = m.to_opendp(REPLACED >> t.clip(0.25, 0.75))
    assert repr(theirs.output_metric) == "ChangeOneDistance()"
    assert [theirs.map(d) for d in (1, 2)] == [1, 2]
    assert theirs(TEN)[:3] == [0.25, 0.25, 0.25]
    same = m.to_opendp(TEXTS >> t.drop_missing())
    assert same.map(3) == 3
    assert same(["a"]) == ["a"]


class TestNoise:
    @pytest.mark.parametrize(
        ("space", "step", "answer", "measure"),
        [
            (Space(domain=Numbers(), metric=ABSOLUTE), m.laplace(2), 3.5, PURE),
            (Space(domain=Numbers(type="int"), metric=ABSOLUTE), m.laplace(2.0), 3, PURE),
            (Space(domain=Numbers(dims=2), metric=L1), m.laplace(2.0), [1.0, 2.0], PURE),
            (Space(domain=Numbers(dims=2), metric=L2), m.gaussian(2), [1.0, 2.0], ZCDP),
            (Space(domain=Numbers(dims=3), metric=SUP), m.exponential(2), [1.0, 2.0, 3.0], PURE),
            (Space(domain=Numbers(dims=3), metric=SUP), m.top_k(1, 2), [1.0, 2.0, 3.0], PURE),
        ],
    )
    def test_noise_on_answers(self, space, step, answer, measure):
        """A measurement of answers alone loses the same at every distance."""
        chain = space >> step
        theirs = m.to_opendp(chain)
        for distance in (1, 2, 5):
            exact = float(distance) if "f64" in repr(theirs.input_metric) else distance
            assert chain.map(distance, measure) == pytest.approx(theirs.map(exact), rel=1e-9)
        assert theirs(answer) is not None

    @pytest.mark.slow_cases("measure0-space3-points3-0.3", "measure1-space3-points3-0.3")
    @pytest.mark.parametrize(
        ("space", "points", "alpha"),
        [
            (FLOATS, [0.25, 0.5, 0.75], 0.5),
            (FLOATS, [0.25, 0.5, 0.75], 0.3),
            (HOLES, [0.25, 0.5, 0.75], 0.25),
            (UNIT, [0.25, 0.5, 0.75], 0.3),
            (UNIT, [0.25, 0.5, 0.75], 1 / 3),
            (REPLACED, [0.25, 0.5, 0.75], 0.9),
            (INTEGERS, [0, 1, 2], 0.5),
        ],
    )
    @pytest.mark.parametrize("measure", [PURE, ZCDP])
    def test_quantiles(self, space, points, alpha, measure):
        """Loss and law: exponential noise is permute-and-flip, Gumbel noise the law of ours."""
        chain = (space >> t.quantile_scores(points, alpha) >> m.exponential(0.75)).to(measure)
        theirs = m.to_opendp(chain)
        replaced = space.metric == CHANGE_ONE
        for d_in in (1, 2) if replaced else (2, 4):
            # OpenDP's rho is epsilon squared over 8 also where that of any pure promise is less.
            bound = min(theirs.map(d_in), math.inf if measure == PURE else chain.map(d_in, PURE))
            assert 0.999 * bound <= chain.map(d_in) <= bound * (1 + 1e-5)
        data = [0, 1, 1, 2, 5] if space is INTEGERS else TEN
        scores = (space >> t.quantile_scores(points, alpha))(data)
        law = flipped(scores, 0.75) if measure == PURE else softmax(scores, 0.75)
        draws = 4000 if alpha == 0.3 and space is UNIT else 400
        drawn = Counter(theirs(data) for _ in range(draws))
        expected = [draws * chance for chance in law]
        observed = [drawn[i] for i in range(len(law))]
        assert pvalue_of_counts(observed, expected) > FALSE_ALARM

    def test_the_top_one_is_chosen_by_the_same_law(self):
        """An array of one index, there as here, at the same loss."""
        scores = UNIT >> t.quantile_scores([0.25, 0.5, 0.75], 0.3)
        chain = (scores >> m.top_k(1, 0.75) >> (lambda best: best.tolist())).to(ZCDP)
        theirs = m.to_opendp(chain)
        assert chain.map(2, PURE) ** 2 / 8 == pytest.approx(theirs.map(2), rel=1e-5)
        drawn = Counter(place for _ in range(400) for place in theirs(TEN))
        expected = [400 * chance for chance in softmax(scores(TEN), 0.75)]
        assert pvalue_of_counts([drawn[i] for i in range(3)], expected) > FALSE_ALARM

    def test_missing_rows_count_on_neither_side(self):
        """Scores of a column with holes are those without, in OpenDP as here."""
        chain = HOLES >> t.quantile_scores([1.0, 2.0], 0.5) >> m.exponential(1e-3)
        theirs = m.to_opendp(chain)
        data = [0.5, 0.6, 1.5, math.nan, math.nan, math.nan]  # counted above, they would make it 1
        assert {theirs(data) for _ in range(20)} == {chain(data)} == {0}

    def test_the_level_is_not_another_one(self):
        """OpenDP would round a level down to 1/10000 where the number of rows is private."""
        step = t.quantile_scores([0.25, 0.5], 0.12345) >> m.exponential(1.0)
        with pytest.raises(ParameterError, match=r"level 0\.1234 in place of 0\.12345"):
            m.to_opendp(FLOATS >> step)
        assert m.to_opendp(UNIT >> step).map(2) == pytest.approx((UNIT >> step).map(2), rel=1e-5)

    @pytest.mark.parametrize(
        ("space", "points", "message"),
        [(FLOATS, [2.0, 1.0], "ascending"), (INTEGERS, [0.5, 1.0], "whole candidates")],
    )
    def test_candidates(self, space, points, message):
        """Candidates that OpenDP does not take as they are."""
        with pytest.raises(ParameterError, match=message):
            m.to_opendp(space >> t.quantile_scores(points, 0.5) >> m.exponential(1.0))

    def test_scores_that_move_one_way_in_opendp(self):
        """What OpenDP knows to move one way is chosen from at half the loss, there as here."""
        scores = m.from_opendp(moving_one_way())
        assert scores.target.metric == ONE_SIDED
        chain = scores >> m.exponential(2.0)
        assert chain.map(3) == pytest.approx(1.5, rel=1e-9)
        assert m.to_opendp(chain).map(3) == pytest.approx(1.5, rel=1e-9)


def moving_one_way():
    """Count texts "a" and all texts: no count falls when a row is added."""
    return dp.t.make_user_transformation(
        dp.vector_domain(dp.atom_domain(T=str)),
        dp.symmetric_distance(),
        dp.vector_domain(dp.atom_domain(T="i64"), size=2),
        dp.linf_distance(T="i64", monotonic=True),
        lambda data: [data.count("a"), len(data)],
        lambda d_in: d_in,
    )


def softmax(scores, scale):
    weights = np.exp((scores - scores.max()) / scale)
    return (weights / weights.sum()).tolist()


def flipped(scores, scale):
    """Permute-and-flip: candidates in random order, each kept with its own chance."""
    keep = np.exp((scores - scores.max()) / scale)
    law = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1 / len(orders)
        for place in order:
            law[place] += left * keep[place]
            left *= 1 - keep[place]
    return law


class TestSeveral:
    def test_composition(self):
        """Parts on one column lose what they lose together, and give their answers in order."""
        column = TABLE >> t.select("age") >> t.impute(40.0) >> t.clip(0, 100)
        parts = m.compose(
            [
                column.target >> t.sum_of() >> m.laplace(1e-6),
                column.target >> t.count() >> m.laplace(1e-6),
            ]
        )
        chain = column >> parts
        theirs = m.to_opendp(chain)
        for d_in in (1, 3):
            assert theirs.map(d_in) == pytest.approx(chain.map(d_in), rel=1e-5)
        assert theirs(PEOPLE) == pytest.approx([31 + 40 + 64 + 100, 4], abs=1e-3)
        assert chain(PEOPLE) == pytest.approx(tuple(theirs(PEOPLE)), abs=1e-3)

    def test_parts_in_one_measure(self):
        """Pure parts are converted where the first one speaks of rho; ours is the smaller one."""
        chain = m.compose([UNIT >> t.mean() >> m.gaussian(0.3), UNIT >> t.mean() >> m.laplace(0.1)])
        theirs = m.to_opendp(chain)
        rho = 0.1**2 / (2 * 0.3**2)
        assert theirs.map(2) == pytest.approx(rho + 1 / 2, rel=1e-6)
        assert rho < chain.map(2) <= theirs.map(2)

    def test_a_composition_within_another(self):
        """Nested, and with a function of one of the answers."""
        inner = m.compose([UNIT >> t.mean() >> m.laplace(1e-4)] * 2)
        chain = m.compose([inner, UNIT >> t.sum_of() >> m.laplace(1e-4) >> round]) >> repr
        theirs = m.to_opendp(chain)
        assert theirs.map(2) == pytest.approx(chain.map(2), rel=1e-6)
        assert theirs(TEN).endswith(", 5)")
        assert theirs(TEN).startswith("((0.52")


class TestFunctionsOfAnswers:
    def test_numbers(self):
        """A function gets what it gets here: a float of a count, an array of a vector."""
        chain = TEXTS >> t.count() >> m.laplace(1e-4) >> (lambda x: [type(x).__name__, round(x)])
        assert m.to_opendp(chain)(["a", "b"]) == chain(["a", "b"]) == ["float", 2]
        assert m.to_opendp(chain).map(1) == pytest.approx(chain.map(1), rel=1e-6)
        counts = TEXTS >> t.histogram(["a", "b"]) >> m.laplace(1e-4) >> (lambda x: x.argmax())
        assert m.to_opendp(counts)(["a", "b", "b"]) == 1

    def test_several_functions(self):
        """Functions are applied in their order."""
        chain = TEXTS >> t.count() >> m.laplace(1e-4) >> round >> (lambda x: [x, "rows"])
        assert m.to_opendp(chain)(["a", "b"]) == [2, "rows"]

    def test_candidates_behind_an_index(self):
        """The index of a quantile is looked up."""
        points = [0.0, 0.5, 1.0]
        chain = UNIT >> t.quantile_scores(points, 0.5) >> m.exponential(1e-4) >> points.__getitem__
        assert m.to_opendp(chain)(TEN) == chain(TEN) == 0.5


class TestMeasures:
    def test_pure_in_rho(self):
        """Epsilon squared over 2 in OpenDP; ours is never larger."""
        chain = (UNIT >> t.mean() >> m.laplace(0.1)).to(ZCDP)
        theirs = m.to_opendp(chain)
        assert theirs.map(2) == pytest.approx(0.5, rel=1e-6)
        assert chain.map(2) < theirs.map(2)

    def test_curves(self):
        """Curves: (epsilon, 0) of Laplace, and delta of the Gaussian through rho; ours is lower."""
        pure = (UNIT >> t.mean() >> m.laplace(0.1)).to(PRIVACY_PROFILE)
        assert m.to_opendp(pure).map(2) == pytest.approx((1.0, 0.0), rel=1e-6)
        gaussian = (UNIT >> t.mean() >> m.gaussian(0.1)).to(PRIVACY_PROFILE)
        profile = m.to_opendp(gaussian).map(2)
        for level in (0.5, 1.0, 3.0):
            assert gaussian.map(2).delta(level) < profile.delta(level) < 1

    @pytest.mark.parametrize(
        ("step", "measure"), [(m.gaussian(1.0), PURE), (m.laplace(1.0), RENYI)]
    )
    def test_what_says_nothing(self, step, measure):
        """No measure is stated that OpenDP does not have for this noise."""
        with pytest.raises(ParameterError, match="says nothing in terms of"):
            m.to_opendp((UNIT >> t.mean() >> step).to(measure))

    def test_curves_of_several(self):
        """OpenDP composes no curves; the refusal is its own."""
        part = UNIT >> t.mean() >> m.gaussian(0.1)
        with pytest.raises(ParameterError, match="SmoothedMaxDivergence"):
            m.to_opendp(m.compose([part, part]).to(PRIVACY_PROFILE))


class TestWord:
    @pytest.mark.parametrize(
        "chain",
        [
            TABLE >> t.select("ward"),
            INTEGERS >> t.filter_rows(positive),
            TEXTS >> t.count() >> m.laplace(1.0) >> round,
        ],
    )
    def test_functions_are_taken_on_somebody_elses_word(self, chain):
        """What OpenDP cannot check needs a feature that only the user switches on."""
        dp.disable_features("honest-but-curious")
        with pytest.raises(ParameterError, match="honest-but-curious"):
            m.to_opendp(chain)
        m.to_opendp(INTEGERS >> t.sum_of() >> m.laplace(1.0))

    @pytest.mark.parametrize(
        ("chain", "said"),
        [
            (
                TEXTS
                >> t.filter_rows(positive)
                >> m.stable_mode(hs.statistics.mode(["a", "b"]), epsilon=1.0, delta=1e-6),
                "no equivalent of stable_mode",
            ),
            (TABLE >> t.filter_rows(positive) >> t.count(), "no count of a table"),
            (INTEGERS >> t.filter_rows(positive) >> t.quantile_scores([1.0], 0.5), "put exponent"),
        ],
    )
    def test_what_is_refused_anyway_asks_for_no_trust(self, chain, said):
        """It asked for the feature, and then refused for another reason."""
        dp.disable_features("honest-but-curious")
        with pytest.raises(ParameterError, match=said):
            m.to_opendp(chain)

    def test_a_function_called_like_a_step(self):
        """A function named mean is the user's, and not OpenDP's mean."""

        def mean(values):
            return 1 - np.mean(values)

        proven = hs.proven_sensitivity(0.1, "l1", neighbours="replace-one", argument="1 / 10")
        chain = t.from_sensitivity(mean, proven, source=REPLACED)
        assert chain.name == "mean"
        assert m.to_opendp(chain)([0.25] * 10) == 0.75
        dp.disable_features("honest-but-curious")
        with pytest.raises(ParameterError, match="cannot check mean"):
            m.to_opendp(chain)


REFUSED = {
    "limit_rows": (
        Space(domain=Table.of({"id": Cell(type="string")}, key="id"), metric=USERS)
        >> t.limit_rows(2),
        "users in frames only",
    ),
    "count_users": (
        Space(domain=Table.of({"id": Cell(type="string")}, key="id"), metric=USERS)
        >> t.count_users("id", ["a"]),
        "users in frames only",
    ),
    "mean of a least number of rows": (
        rows(Cell(low=0, high=1), least=3) >> t.mean(),
        r"mean\(\) of at least 3 rows: .*resize",
    ),
    "mean of filled tables": (
        rows(Cell(low=0, high=1)) >> t.mean(least=3),
        r"mean\(least=3\) of at least 3 rows",
    ),
    "variance of a least number of rows": (
        rows(Cell(low=0, high=1), least=3) >> t.variance(),
        "at least 3 rows",
    ),
    "several columns": (
        TABLE >> t.group_by(["ward"], [("a",)]) >> t.each(t.count()),
        "group_by.*disjoint",
    ),
    "group_by": (TABLE >> t.group_by("ward", ["a"]) >> t.each(t.count()), "group_by.*disjoint"),
    "parallel": (
        TABLE >> t.group_by("ward", ["a"]) >> m.parallel(t.count() >> m.laplace(1.0)),
        "group_by.*disjoint parts in frames only",
    ),
    "stack": (
        Space(domain=Table.of({"x": Cell(low=0, high=1)}), metric=SYMMETRIC)
        >> t.stack("x")
        >> t.clip_norm(1.0)
        >> t.vector_sum(),
        "stack.*vectors",
    ),
    "floats to integers": (HOLES >> t.impute(0.0) >> t.cast("int"), "instead of rounding"),
    "floats to texts": (FLOATS >> t.cast("string"), "writes floats in another way"),
    "scores alone": (FLOATS >> t.quantile_scores([1.0], 0.5), "put exponential"),
    "sup counts": (TEXTS >> t.histogram(["a"], norm="sup"), "l1 or l2 norm"),
    "one-sided counts": (
        TEXTS >> t.histogram(["a"], norm="one-sided") >> m.exponential(1.0),
        "l1 or l2 norm",
    ),
    "several places": (
        Space(domain=Numbers(dims=3), metric=SUP) >> m.top_k(2, 1.0),
        r"top_k\(2, 1\): its .* loses k times .* this one twice .*top_k\(1, scale\) goes out",
    ),
    "a lead": (
        Space(domain=Numbers(dims=3), metric=SUP) >> m.noisy_max(1.0),
        r"noisy_max\(1\): its noisy max does not tell the lead; put exponential",
    ),
    "a stable mode": (
        TEXTS >> m.stable_mode(hs.statistics.mode(["a", "b"]), epsilon=1.0, delta=1e-6),
        "stable_mode.*it has no test of a distance",
    ),
    "choice in l1": (TEXTS >> t.histogram(["a"]) >> m.exponential(1.0), "exponential"),
    "one-sided answers": (
        Space(domain=Numbers(dims=2), metric=ONE_SIDED) >> m.exponential(1.0),
        "infinite for two rows",
    ),
    "clipped holes": (HOLES >> t.clip(0, 1), "refuses clip"),
    "texts with holes": (rows(Cell(type="string", missing=True)) >> t.count(), "cannot be given"),
    "a table counted": (TABLE >> t.count(), "select a column"),
    "any container": (
        t.declared(
            len,
            source=Space(domain=Opaque(), metric=SYMMETRIC),
            target=Space(domain=Numbers(type="int"), metric=ABSOLUTE),
            stability=1,
            argument="one row is one",
        ),
        "rows in any container",
    ),
    "mean without a size": (rows(Cell(low=0, high=1)) >> t.mean(), "refuses mean"),
    "replaced without a size": (
        rows(Cell(low=0, high=1), metric=CHANGE_ONE) >> t.sum_of(),
        "unknown size",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_step(name):
    """What has no equivalent in OpenDP is refused, and the message says why."""
    chain, message = REFUSED[name]
    with pytest.raises(ParameterError, match=message):
        m.to_opendp(chain)


def test_sensitivities():
    """A proven one goes over with its function; a sampled one has a gamma, which OpenDP has not."""
    proven = hs.proven_sensitivity(0.1, "l1", neighbours="replace-one", argument="(1 - 0) / 10")
    chain = t.from_sensitivity(np.mean, proven, source=REPLACED) >> m.laplace(1.0)
    assert m.to_opendp(chain).map(2) == pytest.approx(chain.map(2), rel=1e-9)
    population = hs.populations.Uniform(low=0, high=1)
    sampled = hs.sample_sensitivity(np.mean, population, rows=10, gamma=0.2, workers=1)
    with pytest.raises(ParameterError, match="no place for gamma"):
        m.to_opendp(t.from_sensitivity(np.mean, sampled, source=REPLACED))
