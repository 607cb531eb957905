"""Every stability map: neighbours never end up farther apart than it says, in real arithmetic."""

import math
from collections import Counter
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hushed import transformations as t
from hushed.spaces import (
    CHANGE_ONE,
    L1,
    SUP,
    SYMMETRIC,
    Cell,
    Column,
    Metric,
    Space,
    Table,
    Vectors,
)
from hushed.transformations import _aggregates, _arithmetic
from hushed.transformations import _resizing as resizing

LOW, HIGH = -1e6, 3e6
NASTY = [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1 / 3, 0.1, 2.0**-30, 1e-8, 1e5, 1e5 + 2.0**-36]
bounded = st.one_of(
    st.sampled_from([*NASTY, LOW, HIGH, math.nextafter(HIGH, 0)]),
    st.floats(LOW, HIGH),
    st.integers(-3, 3).map(float),
)
anything = st.one_of(bounded, st.floats(allow_nan=True, allow_infinity=True))
texts = st.one_of(st.none(), st.sampled_from(["a", "b", "1.5", "-2", "nan", "inf", "", "1e999"]))
integers = st.one_of(st.integers(-5, 5), st.sampled_from([-(2**53), 2**53, 2**52 + 1]))
keys = st.sampled_from(["a", "b", "c", "other"])

FLOATS = Column(cell=Cell(missing=True))
BOUNDED = Column(cell=Cell(low=LOW, high=HIGH))
# A large offset: the width is far below the magnitude.
FAR = Column(cell=Cell(low=1e9, high=1e9 + 1))
far = st.one_of(st.sampled_from([1e9, 1e9 + 1, 1e9 + 2.0**-23]), st.floats(1e9, 1e9 + 1))
TINY = Column(cell=Cell(low=0.0, high=2.0**-1060))
tiny = st.integers(0, 2**14).map(lambda k: k * 5e-324)
TEXTS = Column(cell=Cell(type="string", missing=True))
INTEGERS = Column(cell=Cell(type="int"))
SMALL_INTEGERS = Column(cell=Cell(type="int", low=-(2**53), high=2**53))
TABLE = Table.of({"key": Cell(type="string"), "x": Cell(low=LOW, high=HIGH)})
pairs = st.tuples(keys, bounded)


def doubled(value):
    return 2 * value if math.isfinite(value) else 0.0


def positive(value):
    return not value < 0


ROWWISE = [
    ("clip", FLOATS, anything, t.clip(-2.5, 1e5)),
    ("impute", FLOATS, anything, t.impute(0.25)),
    ("impute texts", TEXTS, texts, t.impute("none")),
    ("drop_missing", FLOATS, anything, t.drop_missing()),
    ("text to float", TEXTS, texts, t.cast("float")),
    ("float to int", BOUNDED, bounded, t.cast("int")),
    ("int to float", SMALL_INTEGERS, integers, t.cast("float")),
    ("float to text", FLOATS, anything, t.cast("string")),
    ("map_rows", FLOATS, anything, t.map_rows(doubled, Cell(missing=True))),
    ("filter_rows", FLOATS, anything, t.filter_rows(positive)),
    ("filter a table", TABLE, pairs, t.filter_rows(lambda row: row["x"] > 0.1)),
    ("select", TABLE, pairs, t.select("x")),
    ("group_by", TABLE, pairs, t.group_by("key", ["a", "b", "c"])),
    ("resize", FLOATS, anything, t.resize(4, 0.0)),
    ("a chain", TABLE, pairs, t.select("x") >> t.resize(3, 7.0) >> t.clip(0, 2)),
]
SUMMED = t.select("x") >> t.sum_of()
ANSWERS = [
    ("count", FLOATS, anything, t.count()),
    ("sum", BOUNDED, bounded, t.sum_of()),
    ("sum, far", FAR, far, t.sum_of()),
    ("sum, tiny", TINY, tiny, t.sum_of()),
    ("sum of integers", SMALL_INTEGERS, integers, t.sum_of()),
    ("mean", BOUNDED, bounded, t.mean()),
    ("mean, far", FAR, far, t.mean()),
    ("mean, tiny", TINY, tiny, t.mean()),
    ("mean of integers", SMALL_INTEGERS, integers, t.mean()),
    ("variance", BOUNDED, bounded, t.variance()),
    ("variance, far", FAR, far, t.variance()),
    ("variance, tiny", TINY, tiny, t.variance()),
    ("histogram l1", FLOATS, anything, t.histogram([-1.0, 0.0, 0.1, 2e6], norm="l1")),
    ("histogram l2", TEXTS, texts, t.histogram(["a", "b"], norm="l2")),
    ("histogram sup", SMALL_INTEGERS, integers, t.histogram([0, 1, 2], norm="sup")),
    (
        "histogram one-sided",
        SMALL_INTEGERS,
        integers,
        t.histogram([0, 1, 2], norm="one-sided"),
    ),
    ("quantile scores", FLOATS, anything, t.quantile_scores([-1.0, 0.0, 0.1, 3.0], 0.3)),
    ("each l1", TABLE, pairs, t.group_by("key", ["a", "b", "c"]) >> t.each(SUMMED)),
    ("each l2", TABLE, pairs, t.group_by("key", ["a", "b"]) >> t.each(SUMMED, norm="l2")),
    ("each sup", TABLE, pairs, t.group_by("key", ["a", "b"]) >> t.each(SUMMED, norm="sup")),
    (
        "each one-sided",
        TABLE,
        pairs,
        t.group_by("key", ["a", "b", "c"]) >> t.each(SUMMED, norm="one-sided"),
    ),
    (
        "each mean",
        TABLE,
        pairs,
        t.group_by("key", ["a", "b", "c"]) >> t.each(t.select("x") >> t.mean()),
    ),
    (
        "a chain",
        FLOATS,
        anything,
        t.impute(1.0) >> t.clip(LOW, HIGH) >> t.resize(3, 1.0) >> t.mean(),
    ),
]


def named(cases):
    return pytest.mark.parametrize(
        ("domain", "row", "step"), [c[1:] for c in cases], ids=[c[0] for c in cases]
    )


def held(domain, rows):
    """Rows in the container that the domain reads."""
    if isinstance(domain, Table):
        return {"key": [r[0] for r in rows], "x": [r[1] for r in rows]}
    return rows


@st.composite
def neighbours(draw, row, *, equal_size):
    """Two lists of rows in unlike order, and how many rows were added, removed or replaced."""
    kept = draw(st.lists(row, max_size=8))
    removed = draw(st.lists(row, max_size=3))
    size = {"min_size": len(removed), "max_size": len(removed)} if equal_size else {"max_size": 3}
    added = draw(st.lists(row, **size))
    one, other = draw(st.permutations(kept + removed)), draw(st.permutations(kept + added))
    return one, other, len(removed) if equal_size else len(removed) + len(added)


def multiset(data):
    """Rows of any member of a domain of rows, counted."""
    if isinstance(data, dict) and data and isinstance(next(iter(data.values())), dict):
        return Counter({(k, r): n for k, part in data.items() for r, n in multiset(part).items()})
    if isinstance(data, dict):
        return Counter(zip(*(map(repr, v.tolist()) for v in data.values()), strict=True))
    return Counter(map(repr, np.asarray(data).tolist()))


def apart(one, other, metric):
    """Distance of two outputs as an exact number; for l2 its square."""
    if metric.of_rows:
        a, b = multiset(one), multiset(other)
        changed = (a - b).total() + (b - a).total()
        if metric.name == "symmetric":
            return changed
        assert a.total() == b.total()
        return changed // 2
    moves = [
        Fraction(a) - Fraction(b)
        for a, b in zip(np.ravel(one).tolist(), np.ravel(other).tolist(), strict=True)
    ]
    if metric.name == "one-sided":
        return max(0, *moves) + max(0, *(-move for move in moves))
    steps = [abs(move) for move in moves]
    if metric.name == "l2":
        return sum(x * x for x in steps)
    return sum(steps) if metric.name in ("l1", "absolute") else max(steps)


def check(chain, one, other, d_in):
    """Outputs are at most as far apart as the map says."""
    with mock.patch.object(resizing.os, "urandom", lambda count: b"s" * count):
        outputs = chain(one), chain(other)
    claimed = chain.map(d_in)
    assert claimed.gamma == 0
    limit = Fraction(claimed.value)
    limit = limit * limit if chain.target.metric.name == "l2" else limit
    assert apart(*outputs, chain.target.metric) <= limit


@named(ROWWISE + ANSWERS)
@given(data=st.data())
def test_rows_added_and_removed(domain, row, step, data):
    """Under rows added and removed, in any order of the rows."""
    one, other, d_in = data.draw(neighbours(row, equal_size=False))
    check(
        Space(domain=domain, metric=SYMMETRIC) >> step, held(domain, one), held(domain, other), d_in
    )


@named(ROWWISE + ANSWERS)
@given(data=st.data())
def test_rows_replaced(domain, row, step, data):
    """Under rows replaced, in any order of the rows."""
    one, other, d_in = data.draw(neighbours(row, equal_size=True))
    check(
        Space(domain=domain, metric=CHANGE_ONE) >> step,
        held(domain, one),
        held(domain, other),
        d_in,
    )


@named([case for case in ROWWISE + ANSWERS if not isinstance(case[1], Table)])
@given(data=st.data())
def test_public_size(domain, row, step, data):
    """With a public number of rows, under either metric."""
    one, other, d_in = data.draw(neighbours(row, equal_size=True))
    assume(one)
    sized = Column(cell=domain.cell, size=len(one))
    check(Space(domain=sized, metric=CHANGE_ONE) >> step, one, other, d_in)
    check(Space(domain=sized, metric=SYMMETRIC) >> step, one, other, 2 * d_in)
    through = t.to_change_one() >> step
    check(Space(domain=sized, metric=SYMMETRIC) >> through, one, other, 2 * d_in)


@pytest.mark.slow_cases("1e+200-l2")
@pytest.mark.parametrize("norm", ["l1", "l2", "sup"])
@pytest.mark.parametrize("bound", [1.0, 1e-200, 1e200, 1 / 3])
@given(data=st.data())
def test_vector_sums(norm, bound, data):
    """Vectors are clipped to the norm and added up; rows may lie on the bound or be huge."""
    numbers = st.one_of(
        st.sampled_from([0.0, bound, -bound, bound / 3, 5e-324, 1e308]), st.floats(-1e308, 1e308)
    )
    row = st.tuples(numbers, numbers, numbers)
    one, other, d_in = data.draw(neighbours(row, equal_size=False))
    space = Space(domain=Vectors(dims=3), metric=SYMMETRIC)
    arrays = [np.array(rows, dtype=float).reshape(-1, 3) for rows in (one, other)]
    clipped = space >> t.clip_norm(bound, norm)
    check(clipped, *arrays, d_in)
    longest = Fraction(bound) * (
        1 + _arithmetic.norm_margin(3)
    )  # what the map of the sum reckons with
    for rows in arrays:
        for short in clipped(rows):
            exact = [abs(Fraction(x)) for x in short.tolist()]
            square = sum(x * x for x in exact)
            size = {"l1": sum(exact) ** 2, "l2": square, "sup": max(exact) ** 2}[norm]
            assert size <= longest**2
    check(clipped >> t.vector_sum(), *arrays, d_in)


@given(st.data())
def test_rows_of_a_user(data):
    """A user added or removed changes at most so many rows, whatever the order."""
    users = data.draw(st.lists(st.tuples(st.sampled_from("abcdef"), bounded), max_size=14))
    gone = data.draw(st.sets(st.sampled_from("abcdef"), max_size=2))
    most = data.draw(st.integers(1, 3))
    table = Table.of({"key": Cell(type="string"), "x": Cell(low=LOW, high=HIGH)}, key="key")
    for name in ("symmetric", "change-one"):
        space = Space(domain=table, metric=Metric(name=name, unit="user"))
        chain = space >> t.limit_rows(most)
        rest = data.draw(st.permutations([u for u in users if u[0] not in gone]))
        check(chain, held(table, users), held(table, rest), len(gone))
        check(chain >> t.count(), held(table, users), held(table, rest), len(gone))
        kept = Counter(chain(held(table, users))["key"].tolist())
        present = Counter(user for user, _ in users)
        assert kept == Counter({user: min(n, most) for user, n in present.items()})


@given(st.lists(anything, max_size=12), st.integers(1, 6), st.randoms(use_true_random=False))
def test_resizing_does_not_see_the_order(rows, size, random):
    """Under one salt the kept rows depend on the multiset of rows alone."""
    column = FLOATS.check(rows)
    shuffled = list(column)
    random.shuffle(shuffled)
    salt = b"salt"
    one = resizing.resized(column, size, 0.0, salt)
    other = resizing.resized(FLOATS.check(shuffled), size, 0.0, salt)
    assert list(map(repr, one.tolist())) == list(map(repr, other.tolist()))


REACHED = [
    (BOUNDED, t.sum_of(), [0.0], [0.0, HIGH], HIGH),
    (BOUNDED, t.mean(), [LOW], [LOW, HIGH], (HIGH - LOW) / 2),
    (BOUNDED, t.variance(), [LOW], [LOW, HIGH], (HIGH - LOW) ** 2 / 4),
    (FLOATS, t.count(), [], [1.0], 1),
    (FLOATS, t.quantile_scores([0.0], 0.25), [], [-1.0], 0.75),
    (FLOATS, t.histogram([0.0, 1.0]), [], [0.5], 1),
    (FLOATS, t.resize(2, 0.0), [5.0, 5.0], [5.0], 1),
    (FLOATS, t.clip(0, 1), [0.5], [0.25, 0.5], 1),
]


class TestTight:
    """Where a bound is claimed tight, an instance comes within its rounding."""

    @pytest.mark.parametrize(("domain", "step", "one", "other", "moved"), REACHED)
    def test_reached(self, domain, step, one, other, moved):
        """One row more moves the output by the bound, but for what the arithmetic sets aside."""
        chain = Space(domain=domain, metric=SYMMETRIC) >> step
        assert apart(chain(one), chain(other), chain.target.metric) == pytest.approx(moved)
        assert moved <= chain.map(1).value <= moved * (1 + 2.0**-19)

    def test_variance_of_a_public_size(self):
        """Three of ten rows from one bound to the other move the variance by 0.21 w^2."""
        space = Space(domain=Column(cell=Cell(low=-1, high=1), size=10), metric=CHANGE_ONE)
        chain = space >> t.variance()
        moved = abs(float(chain([-1.0] * 10) - chain([-1.0] * 7 + [1.0] * 3)))
        assert moved == pytest.approx(0.84, rel=1e-12)
        assert moved <= chain.map(3).value <= 0.84 * (1 + 1e-12)

    @pytest.mark.parametrize(("norm", "moved"), [("l1", 3), ("l2", math.sqrt(3)), ("sup", 1)])
    def test_rows_spread_over_groups(self, norm, moved):
        """One row added to each of three groups moves three variances over their whole range."""
        table = Table.of({"key": Cell(type="string"), "x": Cell(low=0, high=2)})
        step = t.each(t.select("x") >> t.variance(), norm=norm)
        keys = ["a", "b", "c"]
        chain = Space(domain=table, metric=SYMMETRIC) >> t.group_by("key", keys) >> step
        one = chain({"key": keys, "x": [0.0] * 3})
        other = chain({"key": keys * 2, "x": [0.0] * 3 + [2.0] * 3})
        assert one.tolist() == [0, 0, 0]
        assert other.tolist() == [1, 1, 1]
        assert moved <= chain.map(3).value <= moved * (1 + 1e-12)


class TestBrokenMaps:
    """The check above sees a map that claims too little."""

    @pytest.mark.parametrize("factor", [0.5, 1 - 2.0**-20])
    def test_too_small(self, factor):
        """A sum whose map is scaled down is caught on its extreme pair."""
        chain = Space(domain=BOUNDED, metric=SYMMETRIC) >> t.sum_of()
        broken = t.declared(
            chain.function,
            source=chain.source,
            target=chain.target,
            stability=HIGH * factor,
            argument="wrong",
        )
        check(chain, [1.0], [1.0, HIGH], 1)
        with pytest.raises(AssertionError):
            check(broken, [1.0], [1.0, HIGH], 1)

    def test_a_sum_that_ignores_rounding(self):
        """A plain loop over doubles moves farther than the bound for real numbers."""
        column = Column(cell=Cell(low=0, high=1.0), size=2**12)
        space = Space(domain=column, metric=CHANGE_ONE)
        exact = space >> t.sum_of()

        def loop(values):
            total = 0.0
            for value in values.tolist():
                total += value
            return total

        naive = t.declared(
            loop, source=space, target=exact.target, stability=1.0, argument="real numbers"
        )
        one = [1.0] + [2.0**-54] * 2**6 + [0.0] * (2**12 - 2**6 - 1)
        other = [0.0] + [2.0**-54] * 2**6 + [0.0] * (2**12 - 2**6 - 1)
        turned = other[::-1]
        check(exact, one, turned, 1)
        check(exact, one[::-1], one, 0)
        with pytest.raises(AssertionError):
            check(naive, one[::-1], one, 0)

    def test_keeping_the_first_rows_is_not_stable(self):
        """Cutting a table at its first rows would see their order; the keys do not."""
        space = Space(domain=FLOATS, metric=SYMMETRIC)
        first = t.declared(
            lambda values: values[:2],
            source=space,
            target=Space(domain=Column(cell=FLOATS.cell, size=2), metric=CHANGE_ONE),
            stability=1,
            argument="wrong",
        )
        check(space >> t.resize(2, 0.0), [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], 0)
        with pytest.raises(AssertionError):
            check(first, [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], 0)


class TestArithmeticCounts:
    """The textbook's bound for real numbers is exceeded in doubles; the map's is not."""

    @pytest.mark.parametrize(
        ("step", "textbook"),
        [
            (t.sum_of(), _aggregates.sum_sensitivity),
            (t.mean(), _aggregates.mean_sensitivity),
            (t.variance(), _aggregates.variance_sensitivity),
        ],
    )
    def test_a_large_offset(self, step, textbook):
        """One of seven rows goes from one bound to the other at an offset of a billion."""
        low, high, rows = 1e9, 1e9 + 1 + 2.0**-23, 7
        space = Space(domain=Column(cell=Cell(low=low, high=high), size=rows), metric=CHANGE_ONE)
        chain = space >> step
        exact = Fraction(textbook(1, low=low, high=high, metric="change-one", size=rows))
        rng = np.random.default_rng(5)
        worst = Fraction(0)
        for trial in range(300):
            # Near one bound, where the variance moves most; a few last places differ.
            table = low + rng.integers(0, 3, rows) * 2.0**-23 * (trial % 4 > 0)
            other = table.copy()
            table[0], other[0] = low, high
            moved = apart(chain(table), chain(other), chain.target.metric)
            worst = max(worst, moved)
        assert exact < worst <= Fraction(chain.map(1).value)

    def test_a_row_added_to_a_sum(self):
        """A row of the largest size moves a rounded sum by more than its size."""
        chain = Space(domain=FAR, metric=SYMMETRIC) >> t.sum_of()
        worst = max(
            apart(chain([1e9 + k * 2.0**-23]), chain([1e9 + k * 2.0**-23, 1e9 + 1]), L1)
            for k in range(8)
        )
        assert Fraction(1e9 + 1) < worst <= Fraction(chain.map(1).value)

    def test_a_row_added_to_a_vector_sum(self):
        """The same in each coordinate of a sum of vectors."""
        bound = 1e9 + 1 + 3 * 2.0**-15  # no multiple of the last place of the sums
        domain = Vectors(dims=2, norm="sup", bound=bound)
        chain = Space(domain=domain, metric=SYMMETRIC) >> t.vector_sum()
        worst = max(
            apart(chain([[x, 0.0]] * 999), chain([[x, 0.0]] * 999 + [[bound, 0.0]]), SUP)
            for x in (1e9 + k * 2.0**-23 for k in range(8))
        )
        assert (
            Fraction(bound) * (1 + _arithmetic.norm_margin(2))
            < worst
            <= Fraction(chain.map(1).value)
        )
