"""Quantiles of tables: which candidate a value counts as, the exact loss, the error."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from tests.engines import ENGINES

import hushed as hs
from hushed.errors import ParameterError
from hushed.tables._ladders import describe_candidates
from hushed.tables._release import plan_query
from hushed.tables._scan import prepare, run_scan


def near(query):
    """Exact rows nearest to each candidate, of each group."""
    found = run_scan(prepare(query.connection, query.query, 7))
    return [list(rows) for rows in found.values[0]]


def offered(low, high, count):
    """Candidates with equal ratios, and 0 if the range begins there; in plain doubles."""
    if low == 0:
        return np.append(0.0, np.geomspace(high / 1e6, high, count - 1))
    return np.geomspace(low, high, count)


def test_the_median_is_a_quantile_with_a_name_of_its_own():
    """Under the same options."""
    table = hs.table(pa.table({"x": [1.0, 2.0, 9.0]}))
    asked = {"low": 0, "high": 20, "candidates": 7, "spacing": "even", "weight": 3.0}
    named = table.quantiles("x", [0.5], name="median_x", **asked)
    assert table.median("x", **asked).query == named.query
    assert table.median("x", name="middle", **asked).query != named.query
    (row,) = table.median("x", low=0, high=20).release(epsilon=500.0).rows()
    assert row == {"median_x": pytest.approx(2.0, rel=0.01)}


class TestCandidates:
    @pytest.mark.slow_cases("3-4-7-duckdb")
    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize(
        ("low", "high", "count"),
        [(1, 1e6, 2000), (0, 5000, 101), (0, 1, 2), (3, 4, 7), (1e-200, 1e100, 50), (0, 1e100, 9)],
    )
    def test_a_value_counts_as_the_nearest_candidate(self, engine, placed, low, high, count):
        """Values all over the range, beyond it, missing and infinite; on every engine."""
        rng = np.random.default_rng(5)
        start = max(low, high * 1e-7, 1e-99)
        values = np.concatenate([
            start * (high / start) ** rng.random(500), rng.uniform(low, high, 200),
            [low, high, -7.0, math.inf, -math.inf, min(3 * high, 1e300), 0.0, 5e-324],
        ])  # fmt: skip
        frame = pa.table({"x": pa.array([*values.tolist(), None, math.nan], pa.float64())})
        table = hs.table(*placed(engine, frame))
        query = table.quantiles(
            "x", [0.5], low=low, high=high, candidates=count, spacing="geometric"
        )
        candidates = offered(max(low, 1e-100) if low else 0.0, high, count)
        kept = np.clip(np.where(np.abs(values) <= 1e-100, 0.0, values), candidates[0], high)
        wanted = np.zeros(count, dtype=int)
        loose = 0  # of a range from 0, what lies between 0 and the first candidate
        for each in kept:
            if 0 < each < candidates[1] and low == 0:
                loose += 1
            else:
                wanted[np.argmin(np.abs(candidates - each))] += 1
        (found,) = near(query)
        assert sum(found) == values.size  # missing ones are left out
        assert np.abs(np.array(found) - wanted)[:2].sum() <= 2 * loose
        assert found[2:] == wanted[2:].tolist()

    @pytest.mark.parametrize(("low", "high", "number"), [(1, 5, 5), (1, 60, 60), (0.1, 0.7, 7)])
    def test_even_candidates_are_told_as_far_apart_as_they_are_meant(self, low, high, number):
        """Differences of doubles are a little above it: ``1.01 apart`` was printed of 1 to 5."""
        table = hs.table(pa.table({"x": [1.0]}))
        query = table.quantiles("x", [0.5], low=low, high=high, candidates=number)
        told = query.quote(epsilon=1.0).outputs[0].candidates
        exact = (Fraction(high) - Fraction(low)) / (number - 1)
        assert math.nextafter(told.apart, 0) < exact <= told.apart
        shown = str(told).split(", ")[1]
        assert shown == ("0.1 apart" if high < 1 else "1 apart")

    @pytest.mark.parametrize(("low", "high"), [(1e15, 1e15 + 1), (1.7e18, 1.7e18 + 1e5)])
    def test_candidates_among_few_doubles_are_as_far_apart_as_these(self, low, high):
        """Some are equal, and the others farther apart than they are meant."""
        told = describe_candidates(low, high, 1000, "even")
        assert told.apart >= np.diff(np.linspace(low, high, 1000)).max() > (high - low) / 999

    @pytest.mark.slow
    def test_the_default_follows_the_range(self):
        """As hushed.statistics; a number alone means even ones, as does a range below 0."""
        table = hs.table(pa.table({"x": [1.0]}))
        for given, spacing, number, apart in (
            ({"low": 1, "high": 1e6}, "geometric", 2000, 1e6 ** (1 / 1999) - 1),
            ({"low": 0, "high": 50}, "geometric", 2000, 1e6 ** (1 / 1998) - 1),
            ({"low": -1, "high": 50}, "even", 2000, 51 / 1999),
            ({"low": 0, "high": 50, "candidates": 11}, "even", 11, 5),
            ({"low": 1, "high": 16, "candidates": 5, "spacing": "geometric"}, "geometric", 5, 1),
            ({"low": 0, "high": 1999, "spacing": "even"}, "even", 2000, 1),
        ):
            query = table.quantiles("x", [0.5], **given)
            told = query.quote(epsilon=1.0).outputs[0].candidates
            assert (told.number, told.spacing) == (number, spacing)
            assert told.apart == pytest.approx(apart)
            answer = query.release(epsilon=1.0)
            assert answer.candidates["quantiles_x"] == told
            if "candidates" not in given and "spacing" not in given:
                own = hs.statistics.median(low=given["low"], high=given["high"])
                values, _ = own.candidates()
                assert answer.value("quantiles_x") in values

    @pytest.mark.parametrize(
        "given", [{"spacing": "log"}, {"spacing": "geometric", "low": -1}, {"spacing": 2}]
    )
    def test_a_spacing_that_cannot_be_is_refused(self, given):
        """Unknown words, and geometric candidates from below 0."""
        with pytest.raises(ParameterError, match=r"spacing|geometric"):
            hs.table(pa.table({"x": [1.0]})).quantiles("x", [0.5], **{"low": 0, "high": 1} | given)

    def test_gaussian_noise_for_nothing_is_refused(self):
        """Its delta would be paid, and no answer be the more exact for it."""
        table = hs.table(pa.table({"x": [1.0, 2.0], "g": ["a", "b"]}))
        paid = {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}
        for query in (table, table.group_by("g", select_partitions=True)):
            with pytest.raises(ParameterError, match="no answer of this query gets Gaussian noise"):
                query.quantiles("x", [0.5], low=0, high=5).release(**paid)
        query = table.quantiles("x", [0.5], low=0, high=5).count()
        assert query.release(**paid).value("count") is not None

    @pytest.mark.slow
    def test_values_that_repeat_are_found(self):
        """All rows are 34: whatever the spacing, the answer is the nearest candidate."""
        table = hs.table(pa.table({"age": [34] * 100}))
        for more, wanted in (({}, 34), ({"candidates": 101}, 34), ({"spacing": "even"}, 34)):
            found = table.quantiles("age", [0.5], low=0, high=100, **more).release(epsilon=5.0)
            assert found.value("quantiles_age") == pytest.approx(wanted, rel=0.004)
        ends = table.quantiles("age", [0.5], low=0, high=30).release(epsilon=5.0)
        assert ends.value("quantiles_age") == 30.0  # rows beyond the range are at its end


VALUES = (0.0, 1.0, 2.0, 5.0)
TABLES = [held for n in range(5) for held in itertools.combinations_with_replacement(VALUES, n)]


def pinball_miss(rows, candidates, q):
    """Ranks from each candidate to the nearest quantile: by the slopes of the pinball loss."""
    gap = Fraction(1, 100)
    rounded = [min(candidates, key=lambda c, row=row: abs(c - row)) for row in rows]

    def loss(at):
        return sum(q * (r - at) if r >= at else (1 - q) * (at - r) for r in rounded)

    found = []
    for c in map(Fraction, candidates):
        left, right = (loss(c) - loss(c - gap)) / gap, (loss(c + gap) - loss(c)) / gap
        found.append(max(0, left, -right))
    return found


@pytest.mark.parametrize("q", [0.5, 0.9, 0.25])
@pytest.mark.parametrize("kept", [1, 2])
def test_every_small_table_keeps_epsilon(q, kept):
    """All tables of up to four rows over four values, and users of up to two rows more."""
    places = {held: i for i, held in enumerate(TABLES)}
    rows = [(i, value) for held, i in places.items() for value in held]
    frame = pa.table({"g": [r[0] for r in rows], "x": [r[1] for r in rows]})
    table = hs.table(frame).group_by("g", keys=list(range(len(TABLES))))
    query = table.quantiles("x", [q], low=0, high=5, candidates=6)
    told = near(query)
    level = Fraction(q).limit_denominator(1000)
    users = hs.table(pa.table({"u": [1], "x": [1.0]}), user="u")
    users = users.bound_contributions(max_rows_per_user=kept)
    asked = users.quantiles("x", [q], low=0, high=5, candidates=6)
    choice = plan_query(asked.query, epsilon=0.7, delta=0.0, noise_name="laplace").parts[0].noise
    logs = {}
    for held, i in places.items():
        missed = pinball_miss(held, range(6), level)
        scores = choice.scores(told[i])
        assert scores.tolist() == [-float(each * level.denominator) for each in missed]
        weights = 0.7 * scores / choice.width
        logs[held] = weights - np.log(np.exp(weights).sum())
    worst = 0.0
    for held in TABLES:
        for more in range(1, kept + 1):
            if len(held) + more <= 4:
                for added in itertools.combinations_with_replacement(VALUES, more):
                    other = tuple(sorted((*held, *added)))
                    worst = max(worst, np.abs(logs[held] - logs[other]).max())
    assert 0.2 < worst <= 0.7


@pytest.mark.parametrize(("q", "below", "above"), [(0.5, 2, 2), (0.9, 9, 1), (0.25, 1, 3)])
@pytest.mark.parametrize("kept", [1, 3])
def test_epsilon_is_reached_among_many_equal_candidates(q, below, above, kept):
    """All candidates between the middle rows get worse, one at the end better; nothing is left."""
    users = hs.table(pa.table({"u": [1], "x": [1.0]}), user="u")
    users = users.bound_contributions(max_rows_per_user=kept)
    asked = users.quantiles("x", [q], low=0, high=5)
    choice = plan_query(asked.query, epsilon=0.7, delta=0.0, noise_name="laplace").parts[0].noise
    end = -1 if q >= 0.5 else 0
    rows = np.zeros(10_000, dtype=int)
    rows[2], rows[-3] = 3 * below, 3 * above
    with_user = rows.copy()
    with_user[end] += kept

    def logs(held):
        weights = 0.7 * choice.scores(held) / choice.width
        return weights - np.log(np.exp(weights).sum())

    worst = np.abs(logs(rows) - logs(with_user)).max()
    assert 0.699 < worst <= 0.7


@pytest.mark.slow
class TestErrors:
    def test_incomes_are_found_as_exactly_as_by_the_statistics(self):
        """Skewed incomes up to a million: a tenth of the error of 101 even candidates."""
        rng = np.random.default_rng(3)
        rows = rng.lognormal(math.log(45_000), 0.8, size=1000)
        table, exact = hs.table(pa.table({"x": rows})), float(np.median(rows))

        def error(**more):
            query = table.quantiles("x", [0.5], low=1, high=1e6, **more)
            drawn = [query.release(epsilon=1.0).value("quantiles_x") for _ in range(60)]
            return float(np.median(np.abs(np.array(drawn) - exact)))

        s = hs.statistics.median(low=1, high=1e6)
        plain = hs.InverseSensitivity(s, epsilon=1.0)
        inverse = np.median([abs(plain.draw(rows) - exact) for _ in range(60)])
        default, even = error(), error(candidates=101)
        assert default < even / 10
        assert default < 3 * inverse


def test_quantiles_of_whole_numbers_are_whole(tmp_path):
    """They are no worse for it: with hardly any noise each is a value of the table."""
    nights = pa.table({"nights": pa.array([0, 1, 1, 2, 3, 3, 3, 9, 9, 30] * 50)})
    ledger = hs.Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    ledger.open_budget("g", hs.Guarantee(epsilon=1e6, neighbours="add-remove"))
    asked = hs.table(nights).quantiles("nights", [0.1, 0.45, 0.75], low=0, high=30)
    found = asked.release(epsilon=1e4, ledger=ledger, budget="g")
    assert found.values["quantiles_nights"][0][1:] == [3, 9]
    assert all(type(each) is int for each in found.values["quantiles_nights"][0])
    assert found.to_arrow().schema.field("quantiles_nights_0.45").type == pa.int64()
    certified = hs.certify(found, ledger=ledger, budget="g")
    assert hs.verify(certified).reproduced


@pytest.mark.parametrize(("low", "kind"), [(0.5, pa.int64()), (0, pa.float64())])
def test_other_quantiles_are_candidates_as_they_are(low, kind):
    """Rounded to a whole number, one could lie outside of the bounds, or tell less."""
    rows = pa.table({"x": pa.array([1, 2, 3], kind)})
    found = hs.table(rows).median("x", low=low, high=3.5).release(epsilon=1.0)
    assert type(found.values["median_x"][0]) is float


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_twice_the_candidates_add_few_ranks(fraction):
    """1.4 max(q, 1 - q) / epsilon, which is 0.7 / epsilon for a median; shared by several."""
    table = hs.table(pa.table({"x": [1.0, 2.0]}))

    def error(count, fractions, epsilon):
        asked = table.quantiles("x", fractions, low=0, high=1000, candidates=count)
        return asked.quote(epsilon=epsilon).outputs[0].accuracy

    step = 2 * math.log(2) * max(fraction, 1 - fraction)
    for epsilon in (0.5, 1.0):
        more = error(4000, [fraction], epsilon) - error(2000, [fraction], epsilon)
        assert more == pytest.approx(step / epsilon, rel=0.01)
    three = [fraction, 0.45, 0.55]
    more = error(4000, three, 1.0) - error(2000, three, 1.0)
    widest = 2 * math.log(2) * max(max(each, 1 - each) for each in three)
    assert more == pytest.approx(3 * widest, rel=0.01)
