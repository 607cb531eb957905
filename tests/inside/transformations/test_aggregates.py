"""Sensitivities of aggregates against every pair of small tables, and errors of real sums."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushed import errors
from hushed.transformations import _aggregates as aggregates
from hushed.transformations import _arithmetic as arithmetic

LOW, HIGH = -3, 2
LEVELS = (Fraction(LOW), Fraction(0), Fraction(HIGH))


def distance_of(one, other):
    """Rows added plus rows removed between two multisets."""
    both = set(one) | set(other)
    return sum(abs(one.count(x) - other.count(x)) for x in both)


def tables(levels, sizes):
    return [table for n in sizes for table in itertools.combinations_with_replacement(levels, n)]


def largest_movement(answer, distance, levels=LEVELS, sizes=range(5)):
    """Largest movement over every pair of small tables at most this far apart."""
    found = tables(levels, sizes)
    moves = [answer(a, b) for a in found for b in found if distance_of(a, b) <= distance]
    return max(moves)


def mean(rows):
    return sum(rows) / Fraction(len(rows)) if rows else Fraction(LOW + HIGH, 2)


def variance(rows):
    return sum((x - mean(rows)) ** 2 for x in rows) / Fraction(len(rows)) if rows else Fraction(0)


def moved(answer):
    return lambda a, b: abs(answer(a) - answer(b))


@pytest.mark.parametrize("distance", [0, 1, 2, 3, 4])
class TestUnknownSize:
    def test_count(self, distance):
        """The count moves by one for each row added or removed."""
        assert largest_movement(moved(len), distance) == aggregates.count_sensitivity(distance)

    def test_sum(self, distance):
        """The bound of the sum is reached by some pair and exceeded by none."""
        bound = aggregates.sum_sensitivity(distance, low=LOW, high=HIGH)
        assert largest_movement(moved(sum), distance) == bound

    def test_mean(self, distance):
        """The bound of the mean, one row or more, is reached and not exceeded."""
        bound = aggregates.mean_sensitivity(distance, low=LOW, high=HIGH)
        assert largest_movement(moved(mean), distance) == bound

    def test_variance(self, distance):
        """The variance can move over its whole range as soon as one row comes or goes."""
        bound = aggregates.variance_sensitivity(distance, low=LOW, high=HIGH)
        assert largest_movement(moved(variance), distance) == bound


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("replaced", [0, 1, 2, 3, 6])
class TestKnownSize:
    @pytest.mark.parametrize(
        ("answer", "bound"),
        [
            (sum, aggregates.sum_sensitivity),
            (mean, aggregates.mean_sensitivity),
            (variance, aggregates.variance_sensitivity),
        ],
    )
    def test_every_replacement(self, size, replaced, answer, bound):
        """Bounds for a public size are reached and not exceeded, counted in either metric."""
        exact = largest_movement(moved(answer), 2 * replaced, sizes=[size])
        for distance, metric in ((replaced, "change-one"), (2 * replaced, "symmetric")):
            claimed = bound(distance, low=LOW, high=HIGH, metric=metric, size=size)
            assert claimed >= exact
            assert claimed <= math.nextafter(float(exact), math.inf)

    def test_count(self, size, replaced):
        """A public number of rows does not move."""
        assert aggregates.count_sensitivity(2 * replaced, size=size) == 0
        assert aggregates.count_sensitivity(replaced, metric="change-one") == 0


class TestHistogram:
    @staticmethod
    def step(norm):
        def size(a, b):
            steps = [abs(a.count(x) - b.count(x)) for x in LEVELS]
            if norm == "l1":
                return float(sum(steps))
            return float(max(steps)) if norm == "sup" else math.hypot(*steps)

        return size

    @pytest.mark.parametrize("norm", ["l1", "l2", "sup"])
    @pytest.mark.parametrize("distance", [0, 1, 2, 3])
    def test_every_pair(self, norm, distance):
        """The bound is reached and not exceeded, with and without a public size."""
        exact = largest_movement(self.step(norm), distance)
        assert aggregates.histogram_sensitivity(distance, norm=norm) == exact
        exact = largest_movement(self.step(norm), 2 * distance, sizes=[4])
        bound = aggregates.histogram_sensitivity(2 * distance, norm=norm, size=4)
        assert exact <= bound <= math.nextafter(exact, math.inf)
        assert aggregates.histogram_sensitivity(distance, norm=norm, metric="change-one") == bound

    @pytest.mark.parametrize("rows", [1, 2, 3, 5, 7])
    @pytest.mark.parametrize("per_bin", [1, 2, 3])
    def test_rows_of_one_person_per_bin(self, rows, per_bin):
        """With at most c changed rows a bin, no way to spread them moves further, and one does."""
        spreads = [
            spread
            for spread in itertools.product(range(per_bin + 1), repeat=rows)
            if sum(spread) == rows
        ]
        squares = max(sum(x * x for x in spread) for spread in spreads)
        found = aggregates.histogram_sensitivity(rows, norm="l2", per_bin=per_bin)
        assert Fraction(found) ** 2 >= squares
        assert found <= math.sqrt(squares) * (1 + 2.0**-51)
        assert aggregates.histogram_sensitivity(rows, norm="sup", per_bin=per_bin) == min(
            rows, per_bin
        )
        assert aggregates.histogram_sensitivity(rows, norm="l1", per_bin=per_bin) == rows

    def test_the_square_root_is_for_one_row_a_bin_only(self):
        """Four rows of one person in one bin move it by 4 in l2, and in four bins by 2."""
        assert aggregates.histogram_sensitivity(4, norm="l2") == 4
        assert aggregates.histogram_sensitivity(4, norm="l2", per_bin=1) == 2


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("distance", [0, 1, 2, 3])
def test_quantile_scores(alpha, distance):
    """The bound of the quantile scores is reached and not exceeded."""
    level = Fraction(alpha)

    def score(rows, c=Fraction(0)):
        below, above = sum(x < c for x in rows), sum(x > c for x in rows)
        return -abs((1 - level) * below - level * above)

    exact = largest_movement(moved(score), distance)
    assert aggregates.quantile_scores_sensitivity(distance, alpha=alpha) == exact
    exact = largest_movement(moved(score), 2 * distance, sizes=[4])
    bound = aggregates.quantile_scores_sensitivity(2 * distance, alpha=alpha, size=4)
    assert exact <= bound
    if alpha == 0.5 and distance <= 2:
        assert exact == bound  # from half below and half above to all on one side


def test_vector_sums():
    """A row added moves the sum by its norm, a row turned round by twice that."""
    assert aggregates.vector_sum_sensitivity(3, bound=0.5) == 1.5
    assert aggregates.vector_sum_sensitivity(3, bound=0.5, metric="change-one") == 3.0
    rows = np.tile([0.3, 0.4], (10, 1))
    turned = rows * np.r_[[-1.0] * 3, [1.0] * 7][:, None]
    assert math.hypot(*(rows - turned).sum(axis=0)) == pytest.approx(3.0, abs=1e-12)


class TestRounding:
    @given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.integers(0, 50), st.integers(1, 50))
    def test_never_below_the_exact_value(self, low, high, distance, size):
        """Every bound lies on or above the rational number it stands for, by one step at most."""
        low, high = min(low, high), max(low, high)
        width, replaced = Fraction(high) - Fraction(low), min(distance // 2, size)
        exact = width * replaced / size
        found = aggregates.mean_sensitivity(distance, low=low, high=high, size=size)
        assert Fraction(found) >= exact
        assert found == 0 or Fraction(math.nextafter(found, 0)) < exact
        k = min(replaced, size // 2)
        exact = width**2 * k * (size - k) / Fraction(size**2)
        found = aggregates.variance_sensitivity(distance, low=low, high=high, size=size)
        assert Fraction(found) >= exact
        assert found == 0 or Fraction(math.nextafter(found, 0)) < exact

    def test_subnormal_bounds(self):
        """The smallest double as a bound does not become a sensitivity of 0."""
        tiny = 5e-324
        assert aggregates.mean_sensitivity(2, low=0.0, high=tiny, size=1000) == tiny
        assert aggregates.variance_sensitivity(1, low=0.0, high=tiny) == tiny


class TestErrors:
    @given(st.lists(st.floats(-1e6, 1e6), max_size=60), st.randoms(use_true_random=False))
    def test_a_sum_in_any_order(self, rows, random):
        """Sums one by one, in pairs and shuffled stay within the bound of the exact sum."""
        exact = sum(map(Fraction, rows), Fraction(0))
        bound = Fraction(arithmetic.summation_error(len(rows), largest=1e6))
        for _ in range(3):
            random.shuffle(rows)
            for found in (sum_one_by_one(rows), float(np.sum(rows)), sum_in_pairs(rows)):
                assert abs(Fraction(found) - exact) <= bound

    def test_a_loop_exceeds_the_sensitivity_that_ignores_it(self):
        """One row more can move a plain loop by twice its bound, within the enlarged one."""
        n, large = 2**12, 2.0**53
        rows = [large] + [1.0] * n  # every addition of 1 is lost
        neighbour = rows[1:]  # without the large row, all are counted
        step = abs(Fraction(sum_one_by_one(rows)) - Fraction(sum_one_by_one(neighbour)))
        exact = aggregates.sum_sensitivity(1, low=0, high=large)
        assert abs(step - Fraction(exact)) == n
        assert step <= arithmetic.enlarged(exact, arithmetic.summation_error(n + 1, largest=large))
        same = sorted(rows)  # the same rows in another order move the answer, too
        apart = sum_one_by_one(same) - sum_one_by_one(rows)
        assert 0 < apart <= 2 * arithmetic.summation_error(n + 1, largest=large)

    @given(st.lists(st.floats(1e9, 1e9 + 1), min_size=1, max_size=40))
    def test_mean_and_variance(self, rows):
        """The computations named stay within their bounds, at a large offset, too."""
        exact = sum(map(Fraction, rows)) / len(rows)
        m = math.fsum(rows) / len(rows)
        assert abs(Fraction(m) - exact) <= arithmetic.mean_error(1e9 + 1)
        spread = sum((Fraction(x) - exact) ** 2 for x in rows) / len(rows)
        found = math.fsum((x - m) * (x - m) for x in rows) / len(rows)
        assert abs(Fraction(found) - spread) <= arithmetic.variance_error(low=1e9, high=1e9 + 1)

    @pytest.mark.slow
    @settings(max_examples=300)
    @given(
        st.lists(
            st.one_of(
                st.floats(-(2.0**970), 2.0**970),
                st.floats(-1, 1),
                st.sampled_from([5e-324, 2.0**-1022, 2.0**53, -1.0, 1.0, 2.0**-53, 2.0**-54]),
            ),
            max_size=40,
        )
    )
    def test_exact_sums(self, rows):
        """The sum in slices is the correctly rounded one, whatever the magnitudes."""
        found = arithmetic.exact_sum(np.array(rows, dtype=float))
        assert found == math.fsum(rows) == float(sum(map(Fraction, rows), Fraction(0)))

    def test_exact_sums_of_many(self):
        """Several blocks of numbers of all sizes agree with math.fsum."""
        rng = np.random.default_rng(0)
        rows = rng.standard_normal(100_000) * 2.0 ** rng.integers(-300, 300, 100_000)
        assert arithmetic.exact_sum(rows) == math.fsum(rows)
        assert arithmetic.exact_sum(np.full(2**17 + 3, -1.0)) == -(2**17) - 3

    def test_one_rounding(self):
        """A sum rounded once is off by half a unit in the last place, and the bound is reached."""
        rows = [1.0, 2.0**-53]
        exact = sum(map(Fraction, rows))
        off = abs(Fraction(math.fsum(rows)) - exact)
        assert off == Fraction(2) ** -53
        assert off <= arithmetic.rounded_sum_error(float(1 + 2.0**-52))


def sum_one_by_one(rows):
    total = 0.0
    for x in np.asarray(rows, dtype=float):
        total = total + float(x)
    return total


def sum_in_pairs(rows):
    if len(rows) <= 1:
        return float(rows[0]) if rows else 0.0
    half = len(rows) // 2
    return sum_in_pairs(rows[:half]) + sum_in_pairs(rows[half:])


@pytest.mark.parametrize(
    "call",
    [
        lambda: aggregates.sum_sensitivity(1, low=2, high=1),
        lambda: aggregates.sum_sensitivity(1, low=math.nan, high=1),
        lambda: aggregates.sum_sensitivity(1, low=0, high=math.inf),
        lambda: aggregates.sum_sensitivity(1, low=0, high=1, metric="hamming"),
        lambda: aggregates.count_sensitivity(-1),
        lambda: aggregates.count_sensitivity(True),
        lambda: aggregates.count_sensitivity(1.5),
        lambda: aggregates.count_sensitivity(1, size=-1),
        lambda: aggregates.mean_sensitivity(1, low=0, high=1, size=0),
        lambda: aggregates.histogram_sensitivity(1, norm="range"),
        lambda: aggregates.histogram_sensitivity(1, norm="l2", per_bin=0),
        lambda: aggregates.quantile_scores_sensitivity(1, alpha=math.nan),
        lambda: aggregates.sum_sensitivity(10**6, low=0, high=1e308),
        lambda: arithmetic.summation_error(2**50, largest=1.0),
        lambda: arithmetic.summation_error(5, largest=math.inf),
        lambda: arithmetic.enlarged(math.nan, 0.0),
        lambda: arithmetic.exact_sum(np.array([1.0, math.nan])),
        lambda: arithmetic.exact_sum(np.array([math.inf])),
        lambda: arithmetic.variance_error(low=1, high=0),
    ],
)
def test_what_is_refused(call):
    """Swapped or infinite bounds, NaN, unknown metrics and impossible counts are refused."""
    with pytest.raises(errors.ParameterError):
        call()
