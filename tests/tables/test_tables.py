"""Queries from the question to the answer: refusals, prices, charges, error bars."""

import math
import sys
import traceback

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import make_url
from tests.nasty_tables import nasty, to_postgres

import hushed as hs
from hushed._ground.calls import explained
from hushed.errors import (
    BadRows,
    EngineUnavailable,
    MissingExtra,
    NotFound,
    Overspent,
    ParameterError,
    QueryFailed,
)


@pytest.fixture(scope="module")
def visits():
    """Three hundred users with one to five rows."""
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(300), 1 + np.arange(300) % 5)
    return pa.table(
        {
            "patient_id": who,
            "cost": rng.uniform(0, 1000, who.size),
            "city": rng.choice(["Rome", "Oslo"], who.size),
            "age": rng.integers(18, 90, who.size),
        }
    )


@pytest.fixture
def table(visits):
    return hs.table(visits, user="patient_id")


@pytest.fixture
def quiet(monkeypatch):
    """Noise off: a seam that only a test can reach, by replacing the sampler itself."""
    from hushed import noise

    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.zeros(size, np.int64))
    monkeypatch.setattr(noise, "discrete_gaussian", lambda scale, size: np.zeros(size, np.int64))


class TestRefusals:
    @pytest.mark.parametrize(
        ("ask", "words"),
        [
            (lambda t: t.group_by("city"), ["private", "keys=[...]", "select_partitions=True"]),
            (lambda t: t.group_by("city", keys=["a"], select_partitions=True), ["both asked for"]),
            (lambda t: t.group_by("cost", keys=[1]), ["'cost'", "floor"]),
            (lambda t: t.group_by("city", keys=["Rome", "Rome"]), ["no key twice"]),
            (lambda t: t.group_by("city", keys=[1]), ["type string"]),
            (lambda t: t.group_by("citty", keys=["Rome"]), ["did you mean 'city'"]),
            (lambda t: t.sum("cots", low=0, high=1), ["did you mean 'cost'"]),
            (lambda t: t.sum("city", low=0, high=1), ["needs int, float or bool"]),
            (lambda t: t.sum("cost", low=1, high=0), ["swapped"]),
            (lambda t: t.mean("cost", low=1, high=1), ["low must be below high"]),
            (lambda t: t.mean("cost", low=0, high=math.nan), ["finite"]),
            (lambda t: t.variance("cost", low=-math.inf, high=0), ["finite"]),
            (lambda t: t.quantiles("cost", [], low=0, high=1), ["probability"]),
            (lambda t: t.quantiles("cost", [1.0], low=0, high=1), ["probabilities"]),
            (lambda t: t.histogram("cost", low=0, high=1, bins=0), ["bins"]),
            (lambda t: t.filter("cost + 1"), ["not a condition"]),
            (lambda t: t.filter("cost > (select 1)"), ["cannot read"]),
            (lambda t: t.filter("__import__('os')"), ["__import__"]),
            (lambda t: t.filter("city < 'S'"), ["== and !="]),
            (lambda t: t.filter("city > 3"), ["cannot be compared"]),
            (lambda t: t.derive("age", "1"), ["already"]),
            (lambda t: t.count().count(), ["already"]),
            (lambda t: t.group_by("city", ["Rome"]), ["keys=['Rome', 'Oslo']"]),
            (lambda t: t.group_by("city", keys=3), ["keys={"]),
            (lambda t: t.bound_contributions(max_rows_per_user=0), ["1 or more"]),
            (lambda t: t.bound_contributions(), ["bound_contributions(max_rows_per_user=...)"]),
            (lambda t: t.count().quote(epsilon=1.0), ["(max_rows_per_user=...)"]),
            (lambda t: t.quote(epsilon=1.0), ["no aggregate"]),
            (lambda t: t.count_users().quote(epsilon=0.0), ["epsilon"]),
            (lambda t: t.count_users().quote(epsilon=1.0, delta=1e-6), ["spend no delta"]),
            (lambda t: t.count_users().quote(epsilon=1.0, noise="gaussian"), ["delta"]),
            (lambda t: t.count_users().quote(epsilon=1.0, noise="cauchy"), ["noise"]),
            (lambda t: t.count_users().release(epsilon=1.0, budget="b"), ["no ledger"]),
        ],
    )  # fmt: skip
    def test_bad_questions_are_refused_with_advice(self, table, ask, words):
        """Each is a ParameterError that says what to do."""
        with pytest.raises(ParameterError) as caught:
            ask(table)
        assert all(word in str(caught.value) for word in words), str(caught.value)

    @pytest.mark.slow
    def test_bad_sources_are_refused(self, visits, tmp_path):
        """What cannot be opened is told apart from what is not there."""
        (tmp_path / "a.txt").write_text("x")
        (tmp_path / "a.parquet").write_text("no parquet")
        (tmp_path / "a.db").write_text("no database")
        with pytest.raises(NotFound):
            hs.table("nowhere.csv")
        with pytest.raises(BadRows, match="damaged"):
            hs.table(tmp_path / "a.parquet")
        with pytest.raises(EngineUnavailable):
            hs.table(f"duckdb:///{tmp_path / 'a.db'}", "t")
        with duckdb.connect(str(tmp_path / "b.db")) as made:
            made.execute("CREATE TABLE sales (x INTEGER); CREATE VIEW few AS SELECT * FROM sales")
        with pytest.raises(NotFound, match=r"no table 'rows'; .*: few, sales; name one"):
            hs.table(f"duckdb:///{tmp_path / 'b.db'}")
        with pytest.raises(ParameterError):
            hs.table(tmp_path / "a.txt")
        with pytest.raises(ParameterError):
            hs.table("mysql://host/db", "t")
        with pytest.raises(ParameterError):
            hs.table([1, 2, 3])
        with pytest.raises(ParameterError, match="did you mean 'patient_id'"):
            hs.table(visits, user="patient")
        with pytest.raises(ParameterError):
            hs.table(visits).count_users()
        with pytest.raises(ParameterError):
            hs.table(visits).bound_contributions(max_rows_per_user=1)

    def test_an_unreachable_database_does_not_show_its_password(self):
        """The error of a failed connection holds no part of the address."""
        with pytest.raises(EngineUnavailable) as caught:
            hs.table("postgresql://me:s3cr3t@127.0.0.1:9/db", "t")
        text = "".join(traceback.format_exception(caught.value))
        assert "s3cr3t" not in text.replace('"postgresql://me:s3cr3t@127.0.0.1:9/db"', "")


class TestLackingArguments:
    """What a newcomer leaves out: told what to give and how, never as a bare TypeError."""

    @pytest.mark.parametrize("name", ["sum", "mean", "variance"])
    def test_a_range_may_be_searched_for(self, table, name):
        """Without bounds the message shows both ways, and what it shows is a call that works."""
        with pytest.raises(ParameterError, match="lacks low, high: ") as caught:
            getattr(table, name)("cost")
        shown = f"{name}('cost', low=0, high=100)"
        assert shown in str(caught.value)
        assert "high='search'" in str(caught.value)
        asked = eval(f"table.{shown}", {"table": table})
        assert asked.query.aggregates[0].high == 100

    @pytest.mark.parametrize("shown", [
        "quantiles('cost', [0.25, 0.75], low=0, high=100)", "median('cost', low=0, high=100)",
        "histogram('cost', low=0, high=100)",
    ])  # fmt: skip
    def test_others_need_a_range(self, table, shown):
        """There is no search for these, so none is offered."""
        name, *given = shown.split(", low=")[0].split("(", 1)
        with pytest.raises(ParameterError) as caught:
            eval(f"table.{name}({given[0]})", {"table": table})
        assert f"{name} lacks low, high: " in str(caught.value)
        assert shown in str(caught.value)
        assert "search" not in str(caught.value)
        assert eval(f"table.{shown}", {"table": table}).query.aggregates

    def test_top_k_needs_keys(self, table):
        """And their number."""
        with pytest.raises(ParameterError, match=r"top_k lacks k, keys: .*public keys"):
            table.top_k("city")

    def test_values_in_the_wrong_place_are_not_shown(self, table):
        """Positions instead of names: the names are told, and no value."""
        said = r"takes 1 argument without a name, got 3.*low=0, high=100"
        with pytest.raises(ParameterError, match=said) as caught:
            table.sum("cost", 0, 77712)
        assert "77712" not in "".join(traceback.format_exception_only(caught.value))
        with pytest.raises(ParameterError, match="has no argument hihg"):
            table.sum("cost", low=0, hihg=77712)

    def test_an_error_from_further_in_is_not_explained_away(self):
        """A call that fits its signature keeps its own TypeError."""

        @explained("give it")
        def broken(value):
            return len(value)

        with pytest.raises(TypeError, match="no len"):
            broken(3)


class TestPrices:
    def test_a_quote_touches_neither_data_nor_ledger(self, table, monkeypatch, ledger):
        """With a database that fails on every query, the quote stands; nothing is charged."""
        from hushed.tables import _engine as engine

        monkeypatch.setattr(engine, "fetch", lambda *_: pytest.fail("the data was touched"))
        query = (
            table.bound_contributions(max_rows_per_user=5).count().mean("cost", low=0, high=1000)
        )
        quote = query.quote(epsilon=1.0, rows=500, ledger=ledger, budget="b")
        assert quote.guarantee == hs.Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
        # 5 rows over half of epsilon 1: a discrete Laplace law of scale 10, told by its tail
        q = math.exp(-1 / 10)
        error = quote.accuracy("count")
        assert 2 * q ** (error + 1) / (1 + q) <= 0.05 < 2 * q**error / (1 + q)
        assert ledger.log == []
        assert "count: within" in quote.explain()

    def test_levels_are_printed_on_the_safe_side(self, table):
        """A quote and an answer do not print a smaller epsilon or a larger confidence."""
        query = table.count_users()
        for said in (
            query.quote(epsilon=1.0000004, beta=0.004).explain(),
            query.release(epsilon=1.0000004, beta=0.004).explain(),
        ):
            assert "epsilon 1.00001 for" in said
            assert "with probability 99.6 %" in said  # and not 100 %
        said = query.quote(epsilon=1.0, delta=1.0000004e-6, noise="gaussian").explain()
        assert "delta 1.00001e-06 for" in said
        assert "with probability 95 %" in said

    def test_the_ledger_says_what_would_be_left(self, table, tmp_path):
        """A quote with a ledger carries the balance after the query, and charges nothing."""
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
            ledger.open_budget(
                "study", hs.Guarantee(epsilon=2.0, neighbours="add-remove", unit="user")
            )
            quote = table.count_users().quote(epsilon=0.5, ledger=ledger, budget="study")
            assert quote.left.epsilon_left == pytest.approx(1.5, rel=1e-6)
            assert len(ledger.entries("study")) == len(ledger.entries("study"))
            assert ledger.balance("study").epsilon_left == pytest.approx(2.0, rel=1e-6)


class TestCharges:
    def test_the_charge_comes_before_the_rows(self, table, ledger, monkeypatch):
        """A query that fails in the database stays charged, and says so."""
        from hushed.tables import _scan as scan

        def lost(*_):
            ledger.log.append("read")
            raise QueryFailed("connection lost")

        monkeypatch.setattr(scan.engine, "fetch", lost)
        with pytest.raises(QueryFailed, match="the charge stays"):
            table.count_users().release(epsilon=1.0, ledger=ledger, budget="b", note="n")
        charge = (
            "charge",
            "b",
            hs.Guarantee(epsilon=1.0, neighbours="add-remove", unit="user"),
            "n",
        )
        assert ledger.log == [charge, "read"]

    def test_a_refused_charge_reads_nothing(self, table, refusing_ledger, monkeypatch):
        """When the ledger refuses, no row is read."""
        from hushed.tables import _scan as scan

        monkeypatch.setattr(scan.engine, "fetch", lambda *_: pytest.fail("read"))
        with pytest.raises(PermissionError):
            table.count_users().release(epsilon=1.0, ledger=refusing_ledger, budget="b")

    def test_overspending_is_refused_by_a_real_ledger(self, table, tmp_path):
        """Two queries fit into the budget, the third does not and is told what is left."""
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
            ledger.open_budget(
                "study", hs.Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
            )
            for _ in range(2):
                table.count_users().release(epsilon=0.4, ledger=ledger, budget="study")
            with pytest.raises(Overspent) as caught:
                table.count_users().release(epsilon=0.4, ledger=ledger, budget="study")
            assert caught.value.epsilon_left == pytest.approx(0.2, rel=1e-6)

    def test_a_lost_connection_is_refused_or_charged_never_both(self, postgres, ledger):
        """Lost before the query: refused, unpaid. Lost during it: paid, and told so."""
        database = postgres.create_database()
        to_postgres(nasty(50), postgres.url(database))
        cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{database}'"
        query = hs.table(postgres.url(database), "visits", user="who").count_users()
        postgres.run(cut)
        for _ in range(2):  # it stays lost, which the message says how to mend
            with pytest.raises(EngineUnavailable, match=r"nothing was charged.*open the table"):
                query.release(epsilon=1.0, ledger=ledger, budget="b")
        assert ledger.log == []

        class Cutting:
            """Charges, and then the connection breaks."""

            def charge(self, budget, guarantee, note="", *, loss=None):
                ledger.charge(budget, guarantee, note)
                postgres.run(cut)

        query = hs.table(postgres.url(database), "visits", user="who").count_users()
        with pytest.raises(QueryFailed, match="open the table again; the charge stays"):
            query.release(epsilon=1.0, ledger=Cutting(), budget="b")
        assert len(ledger.log) == 1

    def test_a_query_too_long_to_be_written_down_is_told_so(self, table, ledger, monkeypatch):
        """Ibis runs out of stack over many derived columns: refused with advice, and unpaid."""
        from hushed.tables import _scan as scan

        long = table.bound_contributions(max_rows_per_user=1).derive("d0", "cost + 1")
        for i in range(60):
            long = long.derive(f"d{i + 1}", f"d{i} + 1")
        with pytest.raises(ParameterError, match="derive fewer columns"):
            long.sum("d60", low=0, high=9).release(epsilon=1.0, ledger=ledger, budget="b")
        assert ledger.log == []
        answer = long.sum("d3", low=0, high=9).release(epsilon=1.0)  # the others are not computed
        assert len(answer) == 1

        def deeper(*arguments):
            return deeper(*arguments)

        monkeypatch.setattr(scan.engine, "fetch", deeper)
        with pytest.raises(QueryFailed, match="the charge stays"):
            table.count_users().release(epsilon=1.0, ledger=ledger, budget="b")

    @pytest.mark.slow
    def test_a_table_that_is_not_there_is_told_so(self, postgres_url, tmp_path):
        """Under its name, on every database, with no exception of another library."""
        duckdb.connect(str(tmp_path / "t.db")).close()
        for source in (postgres_url, f"duckdb:///{tmp_path / 't.db'}"):
            for name in ("nosuch", "nosuch.nosuch"):
                with pytest.raises(NotFound, match="nosuch"):
                    hs.table(source, name)

    @pytest.mark.parametrize("name", ["v", "s.v", "{}.s.v"])
    def test_a_view_is_told_by_whatever_name_it_is_opened(self, name, postgres_url):
        """With its schema and its database, too; a table by such a name has no warning."""
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE SCHEMA s")
            made.execute("CREATE TABLE s.t AS SELECT 1 AS who")
            made.execute("CREATE VIEW v AS SELECT * FROM s.t")
            made.execute("CREATE VIEW s.v AS SELECT * FROM s.t LIMIT 1")
        name = name.format(make_url(postgres_url).database)
        with pytest.warns(UserWarning, match="v is a view"):
            hs.table(postgres_url, name)
        if "." in name:
            assert not hs.table(postgres_url, name[:-1] + "t").connection.warnings

    def test_an_engine_that_fails_on_a_value_shows_none(self, postgres_url, ledger, assert_silent):
        """A cast fails with a private value in its message; ours holds none."""
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE TABLE t (who bigint, x text)")
            made.execute("INSERT INTO t VALUES (1, 'Wilhelmina-Quux')")
            made.execute("CREATE VIEW v AS SELECT who, x::double precision AS x FROM t")
        with pytest.warns(UserWarning, match="v is a view"):
            opened = hs.table(postgres_url, "v", user="who")
        query = opened.bound_contributions(max_rows_per_user=1).sum("x", low=0, high=1)
        with pytest.raises(QueryFailed) as caught:
            query.release(epsilon=1.0, ledger=ledger, budget="b")
        assert_silent(caught.value)
        assert len(ledger.log) == 1


class TestAnswers:
    def test_without_noise_the_answer_is_the_statistics_of_the_rows(self, visits, table, quiet):
        """Bounds that do not bind, no noise: counts, sums, moments, histogram of numpy."""
        query = table.bound_contributions(max_rows_per_user=5).group_by(
            "city", keys=["Oslo", "Rome", "Bonn"]
        )
        answer = (
            query.count()
            .count_users()
            .sum("age", low=0, high=100)
            .mean("cost", low=0, high=1000)
            .variance("cost", low=0, high=1000)
            .histogram("age", low=18, high=90, bins=6)
            .release(epsilon=1.0)
        )
        frame = visits.to_pandas()
        for row in answer.rows():
            own = frame[frame.city == row["city"]]
            assert row["count"] == len(own)
            assert row["users"] == own.patient_id.nunique()
            assert row["sum_age"] == own.age.sum()
            if len(own) == 0:
                assert row["count_low"] < 0 < row["count_high"]
                continue
            assert row["mean_cost"] == pytest.approx(own.cost.mean(), abs=1e-4)
            assert row["variance_cost"] == pytest.approx(own.cost.var(ddof=0), rel=1e-5)
            assert row["histogram_age"] == np.histogram(own.age, 6, (18, 90))[0].tolist()
            assert row["mean_cost_low"] < row["mean_cost"] < row["mean_cost_high"]
            assert row["variance_cost_low"] <= row["variance_cost"] <= row["variance_cost_high"]

    def test_quantiles_are_near_those_of_the_rows(self, visits, table):
        """At a large epsilon each quantile is within the rank error that is stated."""
        asked = [0.1, 0.5, 0.9]
        query = table.bound_contributions(max_rows_per_user=5).quantiles(
            "cost", asked, low=0, high=1000, candidates=1001
        )
        answer = query.release(epsilon=300.0)
        costs = np.sort(visits["cost"].to_numpy())
        slack = answer.rank_error["quantiles_cost"]
        for p, found in zip(asked, answer.value("quantiles_cost"), strict=True):
            below, upto = np.searchsorted(np.rint(costs), [found, found + 0.5])
            assert below - slack <= p * costs.size <= upto + slack

    def test_an_empty_table_gives_noise(self, visits):
        """No rows: counts around zero, a mean within its bounds, no private key."""
        table = hs.table(visits.slice(0, 0), user="patient_id").bound_contributions(
            max_rows_per_user=2
        )
        answer = table.count().mean("cost", low=0, high=10).release(epsilon=5.0)
        assert abs(answer.value("count")) < 40
        assert 0 <= answer.value("mean_cost") <= 10
        keyed = table.group_by("city", select_partitions=True).count()
        assert len(keyed.release(epsilon=1.0, delta=1e-6)) == 0

    def test_gaussian_answers_and_frames(self, table):
        """Gaussian noise with private keys; the answer turns into a pandas frame."""
        query = table.bound_contributions(max_rows_per_user=5, max_groups_per_user=2).group_by(
            "city", select_partitions=True
        )
        answer = (
            query.count()
            .sum("cost", low=0, high=1000)
            .release(epsilon=5.0, delta=1e-6, noise="gaussian")
        )
        frame = answer.to_pandas()
        assert list(frame.city) == ["Oslo", "Rome"]
        assert answer.guarantee.delta == 1e-6
        assert (frame.count_low < frame["count"]).all()
        assert "adding or removing one user" in answer.explain()
        with pytest.raises(ParameterError):
            answer.value("count")
        with pytest.raises(NotFound):
            answer.value("cuont")

    def test_private_keys_of_few_users_stay_hidden(self, visits):
        """A key of one user does not come out at delta = 1e-9; one of all users does."""
        rare = ["rare" if i == 0 else "usual" for i in range(visits.num_rows)]
        frame = visits.append_column("kind", pa.array(rare))
        query = hs.table(frame, user="patient_id").bound_contributions(max_groups_per_user=1)
        query = query.group_by("kind", select_partitions=True).count_users()
        answer = query.release(epsilon=2.0, delta=1e-9)
        assert answer.keys["kind"] == ("usual",)


@pytest.mark.parametrize("lacking", ["duckdb", "ibis", "pyarrow"])
def test_what_is_not_installed_is_named(lacking, monkeypatch):
    """Without the extra, a table is refused with the words that install it."""
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(MissingExtra, match=r"pip install 'hushed\[tables\]'"):
        hs.table("rows.csv")


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", 3])
def test_a_name_that_no_database_takes_is_refused(name):
    with pytest.raises(ParameterError, match="name must be the name of a table"):
        hs.table(pa.table({"x": [1.0]}), name)


def test_two_columns_may_have_the_same_keys():
    """Each is met on its own; at this epsilon noise of a half has a probability below 1e-20."""
    rows = pa.table({"home": ["A", "A", "B", "C"], "work": ["A", "B", "A", "A"]})
    keys = {"home": ["A", "B"], "work": ["A", "B"]}
    found = hs.table(rows).group_by("home", "work", keys=keys).count().release(epsilon=100.0)
    told = dict(zip(zip(*found.keys.values(), strict=True), found.values["count"], strict=True))
    assert told == {("A", "A"): 1, ("A", "B"): 1, ("B", "A"): 1, ("B", "B"): 0}
