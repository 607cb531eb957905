"""An answer of a query is never paid twice, nor paid and lost."""

import json
from datetime import date
from decimal import Decimal
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.nasty_tables import to_postgres
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import (
    DamagedLedger,
    EngineUnavailable,
    HushedWarning,
    KeyInUse,
    LedgerUnavailable,
    NotFound,
    ParameterError,
    QueryFailed,
)
from hushed.tables import _engine as engines
from hushed.tables import _scan as scan
from hushed.tables._engine import csv_files
from hushed.tables._engine.duckdb import run_sql
from hushed.tables._storage import read_answer, write_answer

PROMISE = {"neighbours": "add-remove", "unit": "row"}


@pytest.fixture
def book(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as opened:
        opened.open_budget("b", hs.Guarantee(epsilon=9.0, delta=1e-3, **PROMISE))
        yield opened


@pytest.fixture
def table():
    days = pa.array([date(2024, 2, 29)] * 60, pa.date32())
    return hs.table(pa.table({"x": [1.5] * 60, "k": ["a\x1b\n"] * 60, "d": days, "t": [True] * 60}))


def everything(table):
    """A query with every output."""
    query = table.count().sum("x", low=0, high=2).mean("x", low=0, high=2)
    query = query.variance("x", low=0, high=2).histogram("x", low=0, high=2, bins=3)
    return query.quantiles("x", [0.5, 0.25], low=0, high=2).quantiles(
        "x", [0.5], low=0, high=2, name="median"
    )


class TestText:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("noise", "by"),
        [("laplace", ()), ("gaussian", ("k", "t")), ("gaussian", ("d",)), ("laplace", ("d", "t"))],
    )
    def test_an_answer_comes_back_bit_for_bit(self, noise, by, table):
        """With keys of every kind, private ones and none at all."""
        delta = 1e-6 if noise == "gaussian" or by else 0.0
        query = everything(table)
        query = query.group_by(*by, select_partitions=True) if by else query
        for epsilon in (1e-3, 50.0):
            answer = query.release(epsilon=epsilon, delta=delta, noise=noise)
            assert read_answer(write_answer(answer)) == answer

    @pytest.mark.parametrize("wrong", [None, "x", 10**400, {}, {"x": 1}, [[]]], ids=repr)
    def test_an_answer_that_somebody_else_made_up_is_read_as_a_whole_or_refused(self, wrong, table):
        """Whatever stands in one of its fields: an answer, or one refusal, and no other error."""
        stored = json.loads(
            write_answer(table.group_by("t", keys=[True]).count().release(epsilon=1))
        )
        read = 0
        for field in stored:
            try:
                str(read_answer(json.dumps(stored | {field: wrong})))
                read += 1
            except DamagedLedger:
                continue
        assert read < len(stored) / 2

    @pytest.mark.parametrize("text", ["", "{}", "[]", "1", '{"schema": "hushed answer"}', "null"])
    def test_other_texts_are_refused(self, text):
        with pytest.raises(DamagedLedger):
            read_answer(text)


class TestKeys:
    @pytest.mark.slow
    def test_the_same_question_is_read_again_at_no_cost(self, book, table, monkeypatch):
        """Without a look at the rows; another release without a key is a new one."""
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b"}
        query = everything(table).group_by("d", keys=["2024-02-29", "2024-03-01"])
        first = query.release(**ask, key="may")
        left = book.balance("b").epsilon_left
        monkeypatch.setattr(scan.engine, "fetch", lambda *_: pytest.fail("read"))
        monkeypatch.setattr(scan.engine, "plan", lambda *_: pytest.fail("planned"))
        assert query.release(**ask, key="may") == first
        assert read_answer(book.answer("b", first.entry)).values == first.values
        assert book.balance("b").epsilon_left == left
        monkeypatch.undo()
        assert query.release(**ask).values != first.values
        assert book.balance("b").epsilon_left < left

    @pytest.mark.slow
    def test_another_question_under_a_key_is_refused(self, book, table):
        """Other constants, keys, aggregates, noise, epsilon, columns, users or limits."""
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "may"}
        query = table.filter("x > 1").group_by("k", keys=["a"]).sum("x", low=0, high=2)
        query.release(**ask)
        left = book.balance("b").epsilon_left
        others = [
            table.filter("x > 2").group_by("k", keys=["a"]).sum("x", low=0, high=2),
            table.filter("x > 1").group_by("k", keys=["b"]).sum("x", low=0, high=2),
            table.filter("x > 1").group_by("k", keys=["a"]).sum("x", low=0, high=3),
            table.filter("x > 1").group_by("t", keys=[True]).sum("x", low=0, high=2),
            table.filter("x > 1").group_by("k", keys=["a"]).sum("x", low=0, high=2, name="y"),
            table.filter("x > 1").group_by("k", keys=["a"]).mean("x", low=0, high=2),
            query.derive("z", "x"),
            query.count(),
            hs.table(pa.table({"x": [1.0], "k": ["a"]}), "other").filter("x > 1")
            .group_by("k", keys=["a"]).sum("x", low=0, high=2),
        ]  # fmt: skip
        for other in others:
            with pytest.raises(KeyInUse):
                other.release(**ask)
        for terms in ({"epsilon": 0.5}, {"beta": 0.1}, {"noise": "gaussian", "delta": 1e-6}):
            with pytest.raises(KeyInUse):
                query.release(**{**ask, **terms})
        assert book.balance("b").epsilon_left == left

    def test_a_failure_is_an_answer(self, book, table, monkeypatch):
        """Stored, too: the same key tells it again, and does not ask again."""
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "may"}

        def failing(*_):
            raise QueryFailed("duckdb did not finish the query (ConversionException)")

        monkeypatch.setattr(scan.engine, "fetch", failing)
        for _ in range(2):
            with pytest.raises(QueryFailed, match="the charge stays"):
                table.count().release(**ask)
            monkeypatch.setattr(scan.engine, "fetch", lambda *_: pytest.fail("read"))
        assert len(book.entries("b")) == 1

    @pytest.mark.slow_cases("idle")
    @pytest.mark.parametrize("how", ["cut", "idle"])
    def test_a_lost_connection_is_paid_once(self, how, postgres, book):
        """Under its key the query is asked again, at no cost, until there is an answer."""
        database = postgres.create_database()
        to_postgres(pa.table({"x": [1.5] * 60}), postgres.url(database), "t")
        cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{database}'"
        if how == "idle":  # the server hangs up on who waits for a ledger
            postgres.run(f"ALTER DATABASE {database} SET idle_session_timeout = 3000")
            cut = "SELECT pg_sleep(3.5)"

        class Cutting:
            """Charges, and then the connection breaks."""

            def __getattr__(self, name):
                return getattr(book, name)

            def charge(self, *arguments, **named):
                entry = book.charge(*arguments, **named)
                postgres.run(cut)
                return entry

        ask = {"epsilon": 1.0, "budget": "b", "key": "may"}
        with pytest.raises(QueryFailed, match="again under the key 'may', at no cost"):
            hs.table(postgres.url(database), "t").count().release(**ask, ledger=Cutting())
        answer = hs.table(postgres.url(database), "t").count().release(**ask, ledger=book)
        assert answer.entry == 1
        assert len(book.entries("b")) == 1

    def test_a_query_that_a_replica_takes_back_is_paid_once(self, postgres, book):
        """A replica ends what is in its way: no row decides that, and it is asked again."""
        database = postgres.create_database()
        postgres.run(
            "CREATE TABLE t AS SELECT 1.5::float8 AS x FROM generate_series(1, 60)",
            "CREATE TABLE conflict AS SELECT true AS here",
            "CREATE FUNCTION apply() RETURNS float8 LANGUAGE plpgsql STABLE AS $$ BEGIN "
            "IF (SELECT here FROM public.conflict) THEN "
            "RAISE 'canceling statement due to conflict with recovery' USING ERRCODE = '40001'; "
            "END IF; RETURN 0; END $$",
            "CREATE VIEW v AS SELECT x + public.apply() AS x FROM t",
            database=database,
        )
        with pytest.warns(HushedWarning, match="v is a view"):
            table = hs.table(postgres.url(database), "v").sum("x", low=0, high=2)
        ask = {"epsilon": 1.0, "budget": "b", "key": "may", "ledger": book}
        for _ in range(2):
            with pytest.raises(QueryFailed, match="again under the key 'may', at no cost"):
                table.release(**ask)
        postgres.run("UPDATE conflict SET here = false", database=database)
        assert table.release(**ask).entry == 1
        assert len(book.entries("b")) == 1

    def test_a_file_replaced_during_a_query_is_paid_once(self, tmp_path, book):
        """Under its key the query is asked again of the new file, at no cost."""
        path = tmp_path / "rows.csv"
        path.write_text("x\n" + "1.5\n" * 60)

        class Replacing:
            """Charges, and then the file is replaced."""

            def __getattr__(self, name):
                return getattr(book, name)

            def charge(self, *arguments, **named):
                entry = book.charge(*arguments, **named)
                path.write_text("x\n" + "1.5\n" * 90)
                return entry

        ask = {"epsilon": 5.0, "budget": "b", "key": "may"}
        with pytest.raises(QueryFailed, match="again under the key 'may', at no cost"):
            hs.table(path).count().release(**ask, ledger=Replacing())
        answer = hs.table(path).count().release(**ask, ledger=book)
        assert (answer.entry, len(book.entries("b"))) == (1, 1)
        assert answer == hs.table(path).count().release(**ask, ledger=book)

    def test_a_connection_lost_while_a_table_is_looked_for(self, postgres, monkeypatch):
        """It is told as that, and not as a table that is not there."""
        database = postgres.create_database()
        to_postgres(pa.table({"x": [1.5] * 60}), postgres.url(database), "t")
        cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{database}'"
        found = engines.postgres.find_schemas
        with monkeypatch.context() as patch:
            patch.setattr(
                engines.postgres, "find_schemas", lambda *asked: postgres.run(cut) and found(*asked)
            )
            with pytest.raises(EngineUnavailable, match="does not answer"):
                hs.table(postgres.url(database), "t")
        with pytest.raises(NotFound, match="there is no table"):
            hs.table(postgres.url(database), "other")

    def test_an_answer_that_cannot_be_stored_is_not_shown(self, book, table, monkeypatch):
        """The same key gives an answer later, for the charge that was made."""
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "may"}

        def full(*_):
            raise LedgerUnavailable("the disk is full")

        monkeypatch.setattr(type(book), "keep_answer", full)
        with pytest.raises(LedgerUnavailable, match="Ask again under the key"):
            table.count().release(**ask)
        monkeypatch.undo()
        assert table.count().release(**ask).entry == 1
        assert len(book.entries("b")) == 1

    @pytest.mark.slow_cases("1")
    @pytest.mark.parametrize(
        "one", [1, 1.0, Decimal(1), Decimal("1.00"), Fraction(1), np.float64(1), np.float32(1)]
    )
    def test_equal_numbers_ask_the_same(self, book, table, one):
        """However they are written: of Python, NumPy or decimal, whole or not."""
        ask = {"ledger": book, "budget": "b", "key": "may", "timeout": 60}
        first = table.sum("x", low=0, high=2).mean("x", low=1, high=2).release(epsilon=1, **ask)
        again = table.sum("x", low=0.0, high=2, weight=float(one)).mean("x", low=1.0, high=2.0)
        assert again.release(epsilon=one, **ask) == first
        exact = table.sum("x", low=one - one, high=2 * one, weight=one)
        assert exact.mean("x", low=one, high=2 * one).release(epsilon=1, **ask) == first
        with pytest.raises(KeyInUse):
            table.sum("x", low=0, high=2).mean("x", low=1.5, high=2).release(epsilon=1, **ask)
        assert len(book.entries("b")) == 1

    @pytest.mark.parametrize("bad", ["1", None, True, 1j, Decimal("sNaN"), 10**400, [1.0]])
    def test_no_number_is_refused_at_once(self, table, bad):
        """As a bound, and as a weight."""
        for given in ({"low": bad}, {"high": bad}, {"weight": bad}):
            with pytest.raises(ParameterError, match="must be a finite number"):
                table.sum("x", **{"low": 0.0, "high": 1.0} | given)

    @pytest.mark.parametrize("missing", [pd.NaT, np.datetime64("NaT"), None])
    def test_no_day_is_no_key(self, missing):
        """A missing time of pandas is a datetime, and yet none."""
        days = hs.table(pa.table({"day": [date(2020, 1, 1)]}))
        with pytest.raises(ParameterError, match="a key of 'day' is missing"):
            days.group_by("day", keys=[missing])

    @pytest.mark.slow
    @pytest.mark.parametrize("noise", ["laplace", "gaussian"])
    def test_the_smallest_chance_has_an_error_bar(self, table, noise):
        """Wide, and finite where the chance can be halved."""
        delta = 0.0 if noise == "laplace" else 1e-9
        query = table.count().quantiles("x", [0.5], low=0, high=1)
        for beta in (5e-324, 1e-308):
            told = query.release(epsilon=1.0, delta=delta, noise=noise, beta=beta)
            (low,), (high,) = told.low["count"], told.high["count"]
            assert high - low > 20
            assert high - low < 1e5 or (noise == "gaussian" and beta / 2 == 0)

    def test_keys_of_a_set_ask_the_same_in_every_process(self, book, table):
        """Python orders the strings of a set anew in each process; their order is no question.

        Eight letters are in order by accident in one process of 40,320.
        """
        told = [
            table.group_by("k", keys=keys)
            .count()
            .release(epsilon=1.0, ledger=book, budget="b", key="k")
            for keys in (set("abcdefgh"), list("abcdefgh"), frozenset("hgfedcba"))
        ]
        assert told[0] == told[1] == told[2]
        assert len(book.entries("b")) == 1

    @pytest.mark.parametrize("keys", ["ab", 5, None])
    def test_keys_that_are_not_listed_are_refused(self, table, keys):
        """The letters of a word are no keys, nor is a number."""
        with pytest.raises(ParameterError, match="must be listed"):
            table.group_by("k", keys={"k": keys})

    def test_a_stop_by_the_user_is_no_answer(self, book, table, monkeypatch):
        """It says what was paid, and the same key asks again at no cost."""
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b"}

        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(scan.engine, "fetch", stop)
        with pytest.raises(KeyboardInterrupt, match="charge stays: ask again under the key 'may'"):
            table.count().release(**ask, key="may")
        with pytest.raises(KeyboardInterrupt, match=r"the charge stays$"):
            table.count().release(**ask)
        with pytest.raises(KeyboardInterrupt, match="count the budget as spent"):
            table.count().release(epsilon=1.0)
        monkeypatch.undo()
        assert table.count().release(**ask, key="may").entry == 1
        assert [book.answer("b", each) is None for each in (1, 2)] == [False, True]
        assert len(book.entries("b")) == 2

    def test_duckdb_does_not_swallow_a_stop(self):
        """DuckDB makes an error of its own of a signal; other errors stay what they are."""
        for text, kind in (("Query interrupted", KeyboardInterrupt), ("other", RuntimeError)):
            engine = Mock()
            engine.execute.side_effect = RuntimeError(text)
            with pytest.raises(kind):
                run_sql(engine, "SELECT 1")

    @pytest.mark.parametrize("place", ["its rows", "its schema"])
    def test_a_stop_while_a_file_is_read_is_no_answer(self, book, place, tmp_path, monkeypatch):
        """DuckDB reads files through Python, and takes what is raised there for an error."""
        (tmp_path / "t.csv").write_text("x\n" + "1\n" * 60)
        query = hs.table(tmp_path / "t.csv", types={"x": "int"}).count()

        def stop(*_, **__):
            raise KeyboardInterrupt

        name = {"its rows": "_read_batches", "its schema": "__arrow_c_stream__"}[place]
        monkeypatch.setattr(csv_files.CsvFile, name, stop)
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "may"}
        with pytest.raises(KeyboardInterrupt, match="ask again under the key 'may'"):
            query.release(**ask)
        assert book.answer("b", "may") is None
        monkeypatch.undo()
        assert query.release(**ask).entry == 1

    def test_a_key_needs_a_ledger_that_keeps_answers(self, table, ledger):
        for given in ({}, {"ledger": ledger, "budget": "b"}):
            with pytest.raises(ParameterError, match="key"):
                table.count().release(epsilon=1.0, key="may", **given)
        assert ledger.log == []

    @pytest.mark.slow
    def test_on_the_command_line(self, book, tmp_path):
        """Twice the same, one charge; the answer is told again by the ledger, too."""
        (tmp_path / "t.csv").write_text("d,x\n" + "2024-02-29,1\n" * 60)
        words = ["query", str(tmp_path / "t.csv"), "--type", "d=date", "--by", "d", "--keys"]
        words += ["2024-02-29", "--count", "--epsilon", "1", "--budget", "b", "--key", "may"]
        url = f"sqlite:///{tmp_path / 'b.db'}"
        told = [CliRunner().invoke(app, [*words, "--ledger", url]) for _ in range(2)]
        assert told[0].exit_code == 0, told[0].output
        assert told[0].stdout == told[1].stdout
        found = json.loads(CliRunner().invoke(app, [*words, "--ledger", url, "--json"]).stdout)
        assert found["entry"] == 1
        assert len(book.entries("b")) == 1
        again = CliRunner().invoke(app, ["ledger", "answer", url, "b", "may"])
        assert again.stdout == told[0].stdout
        words[words.index("--epsilon") + 1] = "2"
        refused = CliRunner().invoke(app, [*words, "--ledger", url])
        assert (refused.exit_code, "KeyInUse" in refused.stderr) == (2, True)
        assert len(book.entries("b")) == 1
