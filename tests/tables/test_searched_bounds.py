"""Sums and means whose bounds are found in the rows: exact loss, every engine, words, charge."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from tests.conftest import NotingLedger
from tests.engines import ENGINES
from tests.sparse_vector_laws import log_law, one_sided, one_sided_tail

import hushed as hs
from hushed.errors import ParameterError, QueryFailed
from hushed.mechanisms import _bound_search
from hushed.mechanisms import _sparse_vector as sparse
from hushed.tables._release import plan_query
from hushed.tables._scan import prepare, run_searches


def planned(query, epsilon=1.0, **more):
    """Plan of a query."""
    terms = {"delta": 0.0, "noise_name": "laplace"} | more
    return plan_query(query.query, epsilon=epsilon, **terms)


def beyond(query):
    """Exact rows on each rung, for each searched bound, and the bounds."""
    counts = run_searches(prepare(query.connection, query.query, 7))
    return list(zip(planned(query).searches, counts, strict=True))


class TestCounts:
    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ENGINES)
    def test_rows_beyond_every_bound_are_counted(self, engine, placed):
        """Values at bounds, missing, infinite and tiny; floats and integers, both sides, groups."""
        rng = np.random.default_rng(8)
        x = [*np.exp(rng.normal(0, 30, 300)), *-np.exp(rng.normal(0, 30, 300)), 4.0, 4.0, -4.0]
        x += [math.inf, -math.inf, 1.7e308, 5e-324, -5e-324, 0.0, -0.0, 2.0**-20, 2.0**332]
        n = [int(each) for each in rng.integers(-(2**40), 2**40, len(x) - 5)]
        n += [2**63 - 1, -(2**63), 0, 1, 8]
        frame = pa.table({
            "x": pa.array([*x, None, math.nan], pa.float64()),
            "n": pa.array([*n, None, 5], pa.int64()),
            "g": ["a", "b", "other"] * ((len(x) + 2) // 3) + ["a"] * ((len(x) + 2) % 3),
        })  # fmt: skip
        table = hs.table(*placed(engine, frame)).group_by("g", keys=["a", "b", "absent"])
        query = table.sum("x", low=0, high="search").mean("x", low="search", high="search")
        query = query.variance("n", low="search", high=3)
        known = [g != "other" for g in frame["g"].to_pylist()]
        columns = {
            name: [v for v, kept in zip(frame[name].to_pylist(), known, strict=True) if kept]
            for name in ("x", "n")
        }
        found = beyond(query)
        assert [(p.search.output, p.search.side) for p, _ in found] == [
            ("sum_x", "high"), ("mean_x", "low"), ("mean_x", "high"), ("variance_n", "low"),
        ]  # fmt: skip
        for part, counts in found:
            values = columns["n" if part.search.output == "variance_n" else "x"]
            there = [v for v in values if v is not None and not math.isnan(v)]
            assert sum(counts) == len(there)
            sign = 1 if part.search.side == "high" else -1
            for i, bound in enumerate(part.search.bounds):
                assert sum(counts[i + 1 :]) == sum(sign * v > sign * bound for v in there)

    def test_bounds_follow_what_is_known(self):
        """Powers of two above the known bound; integers begin at 1 and end at 64 bits."""
        table = hs.table(pa.table({"x": [1.0], "n": [1]}))

        def bounds(query):
            return [part.search.bounds for part in planned(query).searches]

        (real,) = bounds(table.sum("x", low=-3, high="search"))
        assert (real[0], real[-1]) == (2.0**-20, 2.0**332)
        assert np.all(np.diff(np.log2(real)) == 1)
        (real,) = bounds(table.sum("x", low=4, high="search"))
        assert real[0] == 8.0
        (whole,) = bounds(table.sum("n", low=0, high="search"))
        assert (whole[0], whole[-1]) == (1.0, 2.0**64)
        low, high = bounds(table.mean("n", low="search", high="search"))
        assert (low[0], high[0]) == (-1.0, 1.0)
        (low,) = bounds(table.mean("x", low="search", high=-5.0))
        assert (low[0], low[-1]) == (-8.0, -(2.0**332))

    def test_a_user_is_counted_with_the_rows_that_are_kept(self):
        """Ten rows of each of three users, of which two count."""
        frame = pa.table({"u": [1, 2, 3] * 10, "x": [9.0] * 30})
        table = hs.table(frame, user="u").bound_contributions(max_rows_per_user=2)
        ((part, counts),) = beyond(table.sum("x", low=0, high="search"))
        assert sum(counts) == 6
        assert part.search.rows == 2
        assert part.law.above == 3 * 2 / 0.5  # 3 / epsilon for each row that a user moves


VALUES = (1, 4, 8)
TABLES = [held for n in range(4) for held in itertools.combinations_with_replacement(VALUES, n)]


class TestLoss:
    @pytest.mark.parametrize("kept", [1, 2])
    @pytest.mark.parametrize("low", [0, -5])
    def test_every_small_table_keeps_epsilon_and_some_reach_it(self, monkeypatch, low, kept):
        """Bound and sum together, all tables of up to three rows and users of up to two more."""
        monkeypatch.setattr(sparse, "_GRID_BITS", 0)
        epsilon, last = 1.0, 4  # bounds 1, 2, 4, 8
        users = hs.table(pa.table({"u": [1], "x": [1]}), user="u")
        users = users.bound_contributions(max_rows_per_user=kept)
        query = users.sum("x", low=low, high="search")
        (part,) = planned(query, epsilon).searches
        inner = part.law.plan
        moved = {}
        for bound in part.search.bounds[:last]:
            filled = query.query.with_bounds({("sum_x", "high"): bound})
            plan = plan_query(filled, epsilon=epsilon, delta=0.0, noise_name="laplace")
            moved[bound] = plan.parts[0].noise.scale * Fraction(plan.parts[0].measurement.step)
        laws = {held: law_of_bound(held, inner, part.search.bounds[:last]) for held in TABLES}
        worst = 0.0
        for held in TABLES:
            for added in itertools.chain.from_iterable(
                itertools.combinations_with_replacement(VALUES, n) for n in range(1, kept + 1)
            ):
                other = tuple(sorted((*held, *added)))
                if other not in laws:
                    continue
                for i, bound in enumerate(moved):
                    change = sum(min(max(v, low), bound) for v in added)
                    sums = abs(float(change / moved[bound]))
                    search = laws[held][i] - laws[other][i]
                    worst = max(worst, abs(search) + sums)
        assert worst <= epsilon * (1 + 1e-12)
        assert worst > 0.9 * epsilon


def law_of_bound(rows, inner, bounds):
    """Log probability of each bound, by the oracle for sparse vectors."""
    step = 2.0**inner.grid
    found = log_law(
        tuple(math.floor(-sum(row > each for row in rows) / step) for each in bounds),
        positives=1,
        bar=one_sided(float(inner.scales.threshold)),
        query_tail=one_sided_tail(float(inner.scales.query)),
        threshold=math.floor(inner.threshold / step),
    )
    return [found[(*(0,) * i, 1)] for i in range(len(bounds))]


@pytest.fixture
def no_noise_of_searches(monkeypatch):
    """A search passes a candidate too many in one of forty runs, whatever epsilon is."""
    monkeypatch.setattr(_bound_search, "discrete_exponential", lambda _: 0)


@pytest.mark.usefixtures("no_noise_of_searches")
class TestAnswers:
    @pytest.mark.slow
    def test_the_answer_tells_its_bounds_and_is_near(self):
        """At a huge epsilon the bound is the next power of two, and nothing is clipped away."""
        frame = pa.table({"g": ["a", "b"] * 500, "x": [float(i % 100) for i in range(1000)],
                          "n": [i % 50 - 20 for i in range(1000)]})  # fmt: skip
        table = hs.table(frame).group_by("g", keys=["a", "b"])
        query = table.sum("x", low=0, high="search").mean("n", low="search", high="search")
        query = query.variance("x", low=0, high="search")
        answer = query.release(epsilon=6000.0)
        assert answer.bounds == {
            "sum_x": (0.0, 128.0), "mean_n": (-32.0, 32.0), "variance_x": (0.0, 128.0)
        }  # fmt: skip
        own = frame.to_pandas().groupby("g")
        assert answer.values["sum_x"] == pytest.approx(own.x.sum().tolist(), abs=5)
        assert answer.values["mean_n"] == pytest.approx(own.n.mean().tolist(), abs=0.1)
        assert answer.values["variance_x"] == pytest.approx(own.x.var(ddof=0).tolist(), rel=0.01)
        assert "sum_x: values were clipped to [0, 128]" in answer.explain()

    def test_a_large_bound_is_told_in_all_its_digits(self):
        """It is a power of two, and not the number that begins with the same six digits."""
        table = hs.table(pa.table({"x": [2.0**29 + i for i in range(1000)]}))
        told = table.sum("x", low=0, high="search").release(epsilon=6000.0).explain()
        assert f"clipped to [0, {2**30}]" in told

    @pytest.mark.slow_cases("gaussian")
    @pytest.mark.parametrize("noise", ["laplace", "gaussian"])
    def test_it_goes_with_partition_selection_and_either_noise(self, noise):
        """Keys that are private, users with several rows."""
        frame = pa.table({"u": [i % 300 for i in range(900)], "g": ["a"] * 900,
                          "x": [7.0] * 900})  # fmt: skip
        table = hs.table(frame, user="u").bound_contributions(max_rows_per_user=3)
        query = table.group_by("g", select_partitions=True).sum("x", low=0, high="search").count()
        answer = query.release(epsilon=200.0, delta=1e-6, noise=noise)
        assert answer.bounds == {"sum_x": (0.0, 8.0)}
        assert answer.keys == {"g": ("a",)}
        assert answer.values["sum_x"][0] == pytest.approx(6300, rel=0.05)

    @pytest.mark.slow
    def test_stored_answers_come_back_with_their_bounds(self, tmp_path):
        """The same key tells the same answer, at no cost; another bound is another question."""
        table = hs.table(pa.table({"x": [3.0] * 50}))
        with hs.Ledger(f"sqlite:///{tmp_path}/b.db") as book:
            book.open_budget("b", hs.Guarantee(epsilon=2.0, neighbours="add-remove"))
            ask = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "k"}
            query = table.sum("x", low=0, high="search").quantiles("x", [0.5], low=0, high=9)
            first = query.release(**ask)
            assert query.release(**ask) == first
            assert len(book.entries("b")) == 1
            assert first.bounds["sum_x"][0] == 0.0
            with pytest.raises(hs.errors.KeyInUse):
                table.sum("x", low=0, high=4).quantiles("x", [0.5], low=0, high=9).release(**ask)

    def test_the_whole_is_charged_before_a_row_is_read(self, monkeypatch):
        """One charge of all of epsilon; a failure of the search leaves it and shows nothing."""
        ledger = NotingLedger()
        table = hs.table(pa.table({"x": [3.0] * 50}))
        query = table.sum("x", low=0, high="search")
        from hushed.tables import _release

        def fail(*_):
            assert len(ledger.log) == 1
            raise ValueError("3.0")

        monkeypatch.setattr(_release, "run_searches", fail)
        with pytest.raises(QueryFailed, match="the charge stays") as told:
            query.release(epsilon=0.5, ledger=ledger, budget="b")
        assert "3.0" not in str(told.value)
        assert [entry[2].epsilon for entry in ledger.log] == [0.5]


class TestQuotes:
    def test_a_quote_says_shares_rows_beyond_and_noise_in_bounds(self):
        """Half for the search, half for the sum; a mean has thirds."""
        table = hs.table(pa.table({"x": [3.0]}))
        quote = (
            table.sum("x", low=0, high="search")
            .mean("x", low=0, high="search")
            .quote(epsilon=2.0, rows=100)
        )
        total, mean = quote.outputs
        assert (total.share, mean.share) == pytest.approx((0.5, 0.5))
        assert total.accuracy is None
        measured = dict(total.measured)
        assert measured["sum / the bound farther from 0"] == pytest.approx(
            2 * math.log(20), rel=1e-3
        )
        assert measured["rows beyond the high bound"] > 6.0
        assert "sum / half the range of the bounds" in dict(mean.measured)
        epsilons = [each.epsilon for each in quote.distances]
        assert epsilons == pytest.approx([1 / 2, 1 / 3, 1 / 2, 1 / 3, 1 / 3])
        said = quote.explain()
        assert "one-sided exponential noise of scale 8 -> epsilon 0.5" in said
        assert "the sum moves by 1 times the bound farther from 0" in said
        assert "at most " in said.splitlines()[1]
        assert " times the bound farther from 0; " in said.splitlines()[1]
        assert "so that the errors of sums are told as multiples of them" in said

    def test_the_rows_beyond_are_as_few_as_quoted(self):
        """Of 300 searches 5 % may leave more; false alarm below 1e-6."""
        x = np.exp(np.random.default_rng(2).normal(0, 3, 3000))
        query = hs.table(pa.table({"x": x})).sum("x", low=0, high="search")
        ((part, counts),) = beyond(query)
        most = part.error(0.05)
        left = [(x > part.draw(counts)).sum() for _ in range(300)]
        assert sum(each > most for each in left) <= 40

    @pytest.mark.slow_cases("<lambda>1")
    @pytest.mark.parametrize(
        "ask",
        [
            lambda t: t.sum("x", low="find", high=1),
            lambda t: t.sum("x", low=0, high="Search"),
            lambda t: t.sum("x", low=1e100, high="search"),
            lambda t: t.sum("n", low=1e20, high="search"),
            lambda t: t.quantiles("x", [0.5], low=0, high="search"),
            lambda t: t.histogram("x", low=0, high="search"),
            lambda t: t.sum("x", low=0, high="search").quote(epsilon=1e-6),
            lambda t: t.sum("x", low=0, high="search").quote(
                epsilon=1e-300, delta=1e-9, noise="gaussian"
            ),
        ],
    )
    def test_what_cannot_be_searched_is_refused_at_once(self, ask):
        """Other words, other aggregates, nothing beyond the other bound, noise without end."""
        with pytest.raises(ParameterError):
            ask(hs.table(pa.table({"x": [1.0], "n": [1]})))
