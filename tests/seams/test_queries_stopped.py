"""A query that another thread stops: nothing is shown, what was charged stays, and once."""

import time
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from types import SimpleNamespace

import duckdb
import psycopg
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.tables import _release
from hushed.tables._engine.duckdb import DUCKDB
from hushed.tables._engine.spark import SPARK

LIMIT = hs.Guarantee(epsilon=9.0, neighbours="add-remove")
LONGEST = 90  # seconds: a stop that is not heard fails a test here, and does not hold up the others


@pytest.fixture
def book(tmp_path):
    with hs.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as found:
        found.open_budget("b", LIMIT)
        yield found


@pytest.fixture(params=["duckdb", "postgres"])
def source(request, tmp_path):
    """A database in which `t` is read at once, and `endless`, while it is one, for hours."""
    made = "CREATE VIEW endless AS SELECT a.n AS x FROM {0} a(n), {0} b(n)"
    kept = "CREATE TABLE t AS SELECT 1 AS x"
    if request.param == "duckdb":
        address = f"duckdb:///{tmp_path / 'x.db'}"
        with duckdb.connect(tmp_path / "x.db") as con:
            con.execute(made.format("range(1000000)"))
            con.execute(kept)
        return address
    address = request.getfixturevalue("postgres_url")
    with psycopg.connect(address) as con:
        con.execute(made.format("generate_series(1, 1000000)"))
        con.execute(kept)
    return address


@pytest.mark.parametrize("at", ["current_setting", "SELECT 1", "true"])
def test_a_stop_is_one_in_whichever_statement_it_comes(at):
    """Between the settings and the query it was a failure of the rows, and stored as one."""

    class Engine:
        def execute(self, sql):
            if at in sql:
                raise RuntimeError("Query interrupted")  # what DuckDB makes of Ctrl-C
            return self

        def fetchall(self):
            return [(True,)]

    with pytest.raises(KeyboardInterrupt):
        DUCKDB.fetch(SimpleNamespace(con=Engine()), SimpleNamespace(sql="SELECT 1"))


def begin(query, stop, **paid):
    """Release in a thread, within a limit of time; what it ends with is noted."""
    told = []

    def release():
        try:
            told.append(query.release(epsilon=1.0, stop=stop, timeout=LONGEST, **paid))
        except BaseException as error:
            told.append(error)

    thread = Thread(target=release, daemon=True)
    thread.start()
    return thread, told


def ended(thread, told):
    """What a release in a thread ended with, long before its own limit."""
    thread.join(LONGEST / 2)
    assert not thread.is_alive()
    return told[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:endless is a view")
def test_a_query_is_stopped_while_it_runs(source, book, monkeypatch):
    """The charge stays, and its key asks again at no cost; the connection answers others."""
    charge, charged = book.charge, Event()

    def note(*words, **more):
        entry = charge(*words, **more)
        charged.set()
        return entry

    monkeypatch.setattr(book, "charge", note)
    query, stop = hs.table(source, "endless").count(), Event()
    thread, told = begin(query, stop, ledger=book, budget="b", key="k")
    assert charged.wait(60)
    time.sleep(0.5)  # the database has begun
    stop.set()
    end = ended(thread, told)
    assert isinstance(end, KeyboardInterrupt)
    assert "nothing was released; the charge stays: ask again under the key 'k'" in str(end)
    assert (book.balance("b").entries, book.answer("b", "k")) == (1, None)
    hs.table(source, "t").count().release(epsilon=1.0, stop=Event())
    assert book.balance("b").entries == 1


@pytest.mark.slow_cases("postgres")
def test_what_is_stopped_before_the_charge_is_free(source, book):
    """Before it begins, and while it waits for another query on the same table."""
    query, stop = hs.table(source, "t").count(), Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt, match="stopped; nothing was charged"):
        query.release(epsilon=1.0, ledger=book, budget="b", key="k", stop=stop)
    waits = Event()
    with query.connection.lock:
        thread, told = begin(query, waits, ledger=book, budget="b", key="k")
        waits.set()
        end = ended(thread, told)
    assert "stopped; nothing was charged" in str(end)
    assert book.balance("b").entries == 0
    assert query.release(epsilon=1.0, ledger=book, budget="b", key="k", stop=Event()).entry == 1


def test_a_stop_is_an_event():
    """A word, or a function, is refused before anything is charged."""
    query = hs.table(pa.table({"x": [1.0]})).count()
    with pytest.raises(ParameterError, match=r"stop must be a threading\.Event, got str"):
        query.release(epsilon=1.0, stop="now")


@pytest.mark.parametrize("step", ["plan", "fetch", "noise"])
@pytest.mark.slow_cases("postgres-plan", "postgres-fetch", "postgres-noise")
def test_ctrl_c_that_a_driver_turns_into_an_error_of_its_own_is_a_stop(
    source, book, step, monkeypatch, press_ctrl_c
):
    """As psycopg does where the server goes away meanwhile: stored it would be a paid failure."""
    query = hs.table(source, "t").count()
    asked = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "k"}

    def disguised(*_):
        with suppress(KeyboardInterrupt):
            press_ctrl_c()
        raise MemoryError

    broken = query
    if step == "noise":
        monkeypatch.setattr(_release, "run_scan", disguised)
    else:
        engine = replace(query.connection.engine, **{step: disguised})
        broken = replace(query, connection=replace(query.connection, engine=engine, plans={}))
    with pytest.raises(KeyboardInterrupt) as stopped:
        broken.release(**asked)
    monkeypatch.undo()
    charged = step != "plan"
    assert (book.balance("b").entries, book.answer("b", "k")) == (charged, None)
    assert ("at no cost" in str(stopped.value)) == charged
    assert query.release(**asked).entry == 1
    assert book.balance("b").entries == 1


def test_ctrl_c_while_a_table_is_opened_is_a_stop(tmp_path, monkeypatch, press_ctrl_c):
    """DuckDB says that a query was interrupted, which it was not by the file."""

    def disguised(*_):
        with suppress(KeyboardInterrupt):
            press_ctrl_c()
        raise duckdb.InterruptException

    duckdb.connect(tmp_path / "x.db").close()
    monkeypatch.setattr("hushed.tables._engine.duckdb._check_functions", disguised)
    with pytest.raises(KeyboardInterrupt):
        hs.table(f"duckdb:///{tmp_path / 'x.db'}", "t")


class Py4JError(Exception):
    """What py4j raises where Java answers nothing any more; those of Java itself are below it."""


class Py4JJavaError(Py4JError):
    """A failure in Java, which may be that of a row."""


def test_a_spark_that_is_killed_while_it_answers_is_lost_and_its_failure_is_not_stored():
    """Killed within a scan of hours, it was a ConnectionRefusedError, stored as a paid answer."""
    gone = ConnectionRefusedError(), ConnectionResetError(), Py4JError()
    assert [SPARK.is_gone(each) for each in gone] == [True] * 3
    assert not SPARK.is_gone(Py4JJavaError())
    assert not SPARK.is_gone(MemoryError())
