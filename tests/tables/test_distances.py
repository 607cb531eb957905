"""How far a quote says that one user moves every number, against all neighbours of tiny tables."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pyarrow as pa
import pytest

import hushed as hs
from hushed import transformations as tr
from hushed.spaces import USERS, Cell, Space
from hushed.spaces import Table as Rows
from hushed.tables._release import plan_query
from hushed.tables._scan import prepare, run_scan

LOW, HIGH = -2.0, 7.0
ROWS = list(product("ab", (LOW, HIGH)))
OTHERS = [(1, "a", 3.0), (1, "b", HIGH), (2, "b", LOW)]
# what one user may hold: every multiset of one or two rows, and more rows than are kept
HOLDINGS = [list(one) for size in (1, 2) for one in combinations_with_replacement(ROWS, size)]
HOLDINGS += [[("a", HIGH)] * 4, [("a", None), ("b", HIGH), ("b", LOW)]]
LEVELS = (0.25, 0.5)
CANDIDATES = 10  # LOW, LOW + 1, ..., HIGH


def asked(rows, **bounds):
    """A query with every kind of measurement on rows of (user, key, value)."""
    users, keys, values = zip(*rows, strict=True)
    frame = pa.table({"u": users, "k": keys, "x": pa.array(values, pa.float64())})
    query = hs.table(frame, user="u").bound_contributions(**bounds)
    query = query.group_by("k", keys=["a", "b"]).count().count_users()
    query = query.sum("x", low=LOW, high=HIGH).variance("x", low=LOW, high=HIGH)
    query = query.histogram("x", low=LOW, high=HIGH, bins=3)
    return query.quantiles("x", LEVELS, low=LOW, high=HIGH, candidates=CANDIDATES)


def exact(query):
    """Exact answers of each measurement, in the units of the answer; all groups in one list."""
    plan = plan_query(query.query, epsilon=1.0, delta=0.0, noise_name="laplace")
    found = run_scan(prepare(query.connection, query.query, 7))
    answers = []
    for part, column in zip(plan.parts, found.values, strict=True):
        if part.measurement.role == "rank":
            level = Fraction(part.measurement.probability)
            answers.append([score for bins in column for score in scores(bins, level)])
        else:
            flat = [n for cell in column for n in (cell if isinstance(cell, list) else [cell])]
            answers.append([Fraction(part.measurement.step) * n for n in flat])
    return answers


def scores(bins, level):
    """Ranks by which every candidate misses the quantile of rows that are nearest to it."""
    wanted = level * sum(bins)
    return [max(0, sum(bins[:i]) - wanted, wanted - sum(bins[: i + 1])) for i in range(len(bins))]


@pytest.fixture(scope="module")
def movements():
    """For each measurement, the movement of its answers when user 0 comes or goes, in each way."""
    before = exact(asked(OTHERS, max_rows_per_user=2))
    moved = []
    for held in HOLDINGS:
        after = exact(asked([*OTHERS, *((0, *row) for row in held)], max_rows_per_user=2))
        pairs = zip(before, after, strict=True)
        moved.append([[abs(a - b) for a, b in zip(*pair, strict=True)] for pair in pairs])
    return list(zip(*moved, strict=True))


def norm(moved, noise):
    """Length of a movement in the norm that a noise is scaled to."""
    if noise == "exponential":
        return max(moved)
    return sum(moved) if noise == "Laplace" else math.hypot(*moved)


@pytest.mark.slow
class TestNeighbours:
    @pytest.mark.parametrize("noise", ["laplace", "gaussian"])
    def test_the_last_distance_is_the_largest_movement(self, noise, movements):
        """Over every table that one user makes of three others: reached, and never exceeded."""
        query = asked(OTHERS, max_rows_per_user=2)
        delta = 1e-6 if noise == "gaussian" else 0.0
        found = query.quote(epsilon=1.0, delta=delta, noise=noise).distances
        assert len(found) == len(movements) == 9
        for each, ways in zip(found, movements, strict=True):
            largest = max(norm(moved, each.noise) for moved in ways)
            assert largest <= each.steps[-1].distance, each
            assert each.steps[-1].distance == pytest.approx(float(largest), rel=1e-6), each

    def test_steps_lead_from_one_user_to_the_answers(self):
        """One user, the rows that are kept, the groups that they are in, the answers."""
        query = asked(OTHERS, max_rows_per_user=5, max_groups_per_user=1)
        found = {(e.output, e.measured): e for e in query.quote(epsilon=1.0).distances}
        total = found["sum_x", "sum"]
        assert [step.of for step in total.steps] == ["users", "rows", "groups", "answers"]
        assert [step.distance for step in total.steps] == [1, 5, 1, 5 * HIGH]
        assert [step.distance for step in found["users", ""].steps] == [1, 1, 1]
        row = hs.table(pa.table({"x": [1.0]})).sum("x", low=LOW, high=HIGH).quote(epsilon=1.0)
        assert [step.distance for step in row.distances[0].steps] == [1, HIGH]

    def test_distance_over_scale_is_epsilon(self):
        """For each part; all parts, partition selection included, add up to the whole."""
        table = hs.table(pa.table({"u": [1], "k": ["a"], "x": [1.0]}), user="u")
        query = table.bound_contributions(max_rows_per_user=3, max_groups_per_user=2)
        query = query.group_by("k", select_partitions=True).count(weight=0.3)
        query = query.mean("x", low=0, high=1).quantiles("x", [0.1], low=0, high=1)
        found = query.quote(epsilon=0.7, delta=1e-6).distances
        assert [each.output for each in found][:2] == ["", "count"]
        for each in found:
            spread = 2 if each.noise == "exponential" else 1  # one score rises, another one falls
            assert each.epsilon == pytest.approx(spread * each.steps[-1].distance / each.scale)
        assert sum(each.epsilon for each in found) == pytest.approx(0.7)

    def test_a_chain_of_transformations_says_the_same(self):
        """The same question as a chain of steps in Python: equal distances of its answers."""
        cells = {"u": Cell(type="int"), "x": Cell(type="int", low=-3, high=8)}
        space = Space(domain=Rows.of(cells, key="u"), metric=USERS)
        values = space >> tr.limit_rows(4) >> tr.select("x")
        chains = {
            "count": values >> tr.count(),
            "sum_x": values >> tr.sum_of(),
            "histogram_x": values >> tr.histogram(range(-3, 9)),
            "quantiles_x": values >> tr.quantile_scores(range(-3, 9), 0.25),
        }
        table = hs.table(pa.table({"u": [1], "x": [1]}), user="u")
        query = table.bound_contributions(max_rows_per_user=4).count().sum("x", low=-3, high=8)
        query = query.histogram("x", low=-3, high=8).quantiles("x", [0.25], low=-3, high=8)
        for each in query.quote(epsilon=1.0).distances:
            assert each.steps[1].distance == chains[each.output].steps[0].map(1).value
            assert each.steps[-1].distance == chains[each.output].map(1).value


class TestWords:
    def test_a_quote_shows_the_way_in_one_line(self):
        """One line for each measurement, from the user to epsilon; only if it is wanted."""
        table = hs.table(pa.table({"u": [1], "k": ["a"], "x": [1.0]}), user="u")
        query = table.bound_contributions(max_rows_per_user=5).group_by("k", keys=["a", "b", "c"])
        quote = query.count().sum("x", low=0, high=64).quote(epsilon=1.0)
        assert (
            "  count: one user -> 5 rows kept -> in 3 groups -> the number of rows moves by 5 -> "
            "Laplace noise of scale 10 -> epsilon 0.5" in quote.explain().splitlines()
        )
        assert "moves by 320 -> Laplace noise of scale 640 -> epsilon 0.5" in quote.explain()
        assert "all parts together: epsilon 1" in quote.explain()
        assert "->" not in quote.explain(distances=False)

    @pytest.mark.parametrize("high", [50, "search"])
    def test_squares_are_said_to_be_counted_from_the_middle_of_what_they_can_be(self, high):
        """A row at an end moves their sum by 25 ** 2, and what is measured by half of that."""
        quote = hs.table(pa.table({"x": [1.0]})).variance("x", low=0, high=high).quote(epsilon=1.0)
        (squares,) = (each for each in quote.distances if each.measured == "sum of squares")
        half = 25**2 / 2 if high == 50 else 0.5
        assert squares.steps[-1].distance == pytest.approx(half)
        assert "less half of the largest" in squares.steps[-1].why
        (total,) = (each for each in quote.distances if each.measured == "sum")
        assert "of distances from" in total.steps[-1].why
