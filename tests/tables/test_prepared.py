"""A query that is prepared: planned without a row, charged by somebody, answered once."""

import dataclasses
import os
import threading

import psycopg
import pyarrow as pa
import pytest
from tests.nasty_tables import to_postgres

import hushed as hs
from hushed.errors import EngineUnavailable, ParameterError, QueryFailed
from hushed.tables import _release
from hushed.tables import _scan as scan

ROWS = {"who": [i // 2 for i in range(400)], "x": [1.0] * 400, "g": ["a", "b"] * 200}


@pytest.fixture
def table():
    return hs.table(pa.table(ROWS))


@pytest.fixture
def unread(monkeypatch):
    """Fail if rows are asked for."""
    monkeypatch.setattr(scan.engine, "fetch", lambda *_: pytest.fail("a row was read"))
    return monkeypatch


class TestPreparing:
    def test_it_reads_no_row_and_states_what_is_to_be_charged(self, table, unread):
        """The guarantee and the loss are those that a release charges, the quote that of Table."""
        query = table.group_by("g", keys=["a", "b"]).count().mean("x", low=0, high=2)
        terms = {"epsilon": 0.7, "delta": 1e-6, "noise": "gaussian"}
        prepared = query.prepare(**terms, beta=0.1)
        promise = hs.Guarantee(epsilon=0.7, delta=1e-6, neighbours="add-remove", unit="row")
        assert prepared.guarantee == promise
        assert prepared.loss is not None
        assert prepared.loss.delta(0.7) <= 1e-6
        assert prepared.quote(rows=200) == query.quote(**terms, beta=0.1, rows=200)
        assert prepared.quote(rows=200) != query.quote(**terms, rows=200)

    def test_an_answer_that_may_be_too_long_for_a_ledger_is_refused(self, table, unread):
        """The bound holds for what is written, and counts every key of every group."""
        keys = [f"{i}{'k' * 500}" for i in range(30)]
        query = table.group_by("g", keys=keys).count().mean("x", low=0, high=2)
        unread.setattr(_release, "LONGEST_ANSWER", 30 * 1000)
        with pytest.raises(ParameterError, match="30,000 characters, and this one may take"):
            query.prepare(epsilon=1.0)
        unread.undo()
        prepared, kept = query.prepare(epsilon=1e-4), []
        prepared.answer(charged=prepared.digest, keep=lambda text: kept.append(text) or text)
        unread.setattr(_release, "LONGEST_ANSWER", len(kept[0]) - 1)
        with pytest.raises(ParameterError, match="fewer or shorter keys"):
            query.prepare(epsilon=1e-4)

    @pytest.mark.parametrize(
        ("limit", "most", "said"),
        [
            ("LONGEST_ANSWER", 15_000, "15,000 characters, and this one may take"),
            ("_MOST_NUMBERS", 59, "reads at most 59 numbers .* and this one would read 60"),
        ],
    )
    def test_private_keys_of_a_list_are_refused_where_all_of_them_are_too_many(
        self, table, unread, limit, most, said
    ):
        """Before the charge: what is refused after it is paid and lost. Others are not listed."""
        keys = tuple(f"{i}{'k' * 500}" for i in range(30))
        declared = dataclasses.replace(
            table, connection=dataclasses.replace(table.connection, listed={"g": keys})
        )
        query, other = (
            each.group_by("g", select_partitions=True).count().sum("x", low=0, high=2)
            for each in (declared, table)
        )
        query.prepare(epsilon=1.0, delta=1e-6)
        unread.setattr(_release, limit, most)
        with pytest.raises(ParameterError, match=said):
            query.prepare(epsilon=1.0, delta=1e-6)
        other.prepare(epsilon=1.0, delta=1e-6)

    def test_its_digest_is_of_the_question_the_table_and_the_terms(self, table):
        """Equal for the same; another for any other constant, table or term."""
        query = table.filter("x > 0").count()
        one = query.prepare(epsilon=1.0)
        assert one == query.prepare(epsilon=1)
        others = [
            table.filter("x > 1").count().prepare(epsilon=1.0),
            query.prepare(epsilon=2.0),
            query.prepare(epsilon=1.0, beta=0.1),
            query.prepare(epsilon=1.0, timeout=60),
            query.prepare(epsilon=1.0, delta=1e-6, noise="gaussian"),
            hs.table(pa.table(ROWS), "other").filter("x > 0").count().prepare(epsilon=1.0),
        ]
        assert len({one.digest, *(each.digest for each in others)}) == 1 + len(others)

    def test_it_is_the_question_that_a_release_stores(self, table, tmp_path):
        """So a program that charges by itself and one that calls release find the same answer."""
        prepared = table.count().prepare(epsilon=1.0)
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as book:
            book.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove"))
            entry = book.charge(
                "b", prepared.guarantee, loss=prepared.loss, key="k", question=prepared.digest
            )
            answer = prepared.answer(charged=entry.question, keep=str)
            book.keep_answer("b", entry, answer.to_json())
            again = table.count().release(epsilon=1.0, ledger=book, budget="b", key="k")
            assert again == dataclasses.replace(answer, entry=entry.number)
            assert len(book.entries("b")) == 1

    def test_what_a_release_refuses_unpaid_is_refused_here(self, postgres_url):
        """A column that went, and a noise that cannot be laid out."""
        with psycopg.connect(postgres_url) as made:
            made.execute("CREATE TABLE t (u int)")
        query = hs.table(postgres_url, "t").filter("u > 0").count()
        with psycopg.connect(postgres_url) as made:
            made.execute("ALTER TABLE t RENAME u TO v")
        with pytest.raises(EngineUnavailable, match="nothing was charged"):
            query.prepare(epsilon=1.0)
        with pytest.raises(ParameterError, match="too small"):
            hs.table(pa.table(ROWS)).sum("x", low=0, high=1e9).prepare(epsilon=1e-14)

    def test_a_type_that_is_another_one_by_now_is_noticed_before_rows_are_read(self, postgres_url):
        """One row of 1e-400 is too small for a double: read as one, it would fail the answer."""
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute(
                "CREATE TABLE t AS SELECT 'p' || i AS who, 1::float8 AS x FROM "
                "generate_series(1, 20) i"
            )
            query = hs.table(postgres_url, "t").sum("x", low=0, high=2)
            before = query.prepare(epsilon=1e3)
            owner.execute("ALTER TABLE t ADD more int")  # is none that was opened
            query.prepare(epsilon=1e3)
            owner.execute("ALTER TABLE t ALTER x TYPE numeric")
            owner.execute("UPDATE t SET x = '1e-400' WHERE who = 'p1'")
            with pytest.raises(EngineUnavailable, match=r"open it again\. Nothing was charged"):
                query.prepare(epsilon=1e3)
            with pytest.raises(QueryFailed, match="prepare it again"):
                before.answer(charged=before.digest, keep=pytest.fail)
            again, kept = hs.table(postgres_url, "t").sum("x", low=0, high=2), []
            fresh = again.prepare(epsilon=1e3)
            fresh.answer(charged=fresh.digest, keep=lambda text: kept.append(text) or text)
            assert len(kept) == 1
            owner.execute("ALTER TABLE t RENAME TO held")
            with pytest.raises(EngineUnavailable, match="does not exist any more"):
                again.prepare(epsilon=1e3)
            owner.execute("CREATE VIEW t AS SELECT who, max(x) OVER () AS x FROM held")
            with pytest.raises(EngineUnavailable, match="open it again"):
                again.prepare(epsilon=1e3)


class TestAnswering:
    def test_an_answer_is_about_the_rows(self, table):
        prepared = table.group_by("g", keys=["a", "b", "c"]).count().prepare(epsilon=50.0)
        assert prepared.answer(charged=prepared.digest, keep=str).values["count"] == (200, 200, 0)

    def test_it_answers_once(self, table, unread):
        """Each answer draws noise of its own, and so has a price of its own."""
        query = table.count()
        prepared = query.prepare(epsilon=1.0)
        unread.undo()
        prepared.answer(charged=prepared.digest, keep=str)
        unread.setattr(scan.engine, "fetch", lambda *_: pytest.fail("a row was read"))
        for each in (prepared, dataclasses.replace(prepared)):
            with pytest.raises(ParameterError, match=r"answers once.*no row was read"):
                each.answer(charged=prepared.digest, keep=str)
        unread.undo()
        again = query.prepare(epsilon=1.0)
        assert len(again.answer(charged=prepared.digest, keep=str)) == 1

    def test_one_charge_pays_one_answer(self, table, tmp_path):
        """Whoever prepares again for the same charge is told the answer that was stored."""
        query = table.count()
        with hs.Ledger(f"sqlite:///{tmp_path / 'b.db'}") as book:
            book.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove"))
            told = query.prepare(epsilon=0.01)
            entry = book.charge("b", told.guarantee, loss=told.loss, question=told.digest)
            each = [
                query.prepare(epsilon=0.01).answer(
                    charged=entry.question, keep=lambda text: book.keep_answer("b", entry, text)
                )
                for _ in range(5)
            ]
            assert each == each[:1] * 5
            assert book.answer("b", entry.number) == each[0].to_json()
            assert len(book.entries("b")) == 1

    def test_an_answer_that_cannot_be_stored_is_not_shown(self, table):
        """Nor is a failure told that nobody keeps; the answer is not asked for again."""

        def full(_):
            raise OSError("no space")

        prepared = table.count().prepare(epsilon=1.0)
        with pytest.raises(OSError, match="no space"):
            prepared.answer(charged=prepared.digest, keep=full)
        with pytest.raises(ParameterError, match="answers once"):
            prepared.answer(charged=prepared.digest, keep=str)

    def test_a_failure_is_stored_in_place_of_the_answer(self, table, monkeypatch):
        """It may depend on the rows; once stored it is what the charge has paid for."""
        stored = []

        def keep(text):
            stored.append(text)
            return stored[0]

        query = table.count()
        monkeypatch.setattr(_release, "run_scan", lambda *_: 1 // 0)
        first = query.prepare(epsilon=1.0)
        with pytest.raises(QueryFailed, match="count the budget as spent"):
            first.answer(charged=first.digest, keep=keep)
        monkeypatch.undo()
        second = query.prepare(epsilon=1.0)
        with pytest.raises(QueryFailed, match=r"\(ZeroDivisionError\)"):
            second.answer(charged=second.digest, keep=keep)

    def test_threads_get_one_answer_together(self, table):
        """Of eight that ask at the same time, seven are refused."""
        prepared, told = table.count().prepare(epsilon=1.0), []

        def ask():
            try:
                told.append(prepared.answer(charged=prepared.digest, keep=str))
            except ParameterError as error:
                told.append(str(error))

        running = [threading.Thread(target=ask) for _ in range(8)]
        for each in running:
            each.start()
        for each in running:
            each.join()
        assert sum(isinstance(each, hs.Answer) for each in told) == 1
        assert sum("answers once" in str(each) for each in told) == 7

    @pytest.mark.parametrize("charged", ["", "0" * 64, None])
    def test_a_charge_for_something_else_pays_for_nothing(self, charged, table, unread):
        """Nor does no charge; what is right after that is answered."""
        prepared = table.count().prepare(epsilon=1.0)
        with pytest.raises(ParameterError, match=r"another question.*no row was read"):
            prepared.answer(charged=charged, keep=str)
        with pytest.raises(ParameterError, match=r"answer lacks charged, keep: .*Table\.release"):
            prepared.answer()
        unread.undo()
        assert len(prepared.answer(charged=prepared.digest, keep=str)) == 1

    def test_a_failure_tells_no_text_of_the_engine(self, table, monkeypatch):
        """It may quote a private value; the charge stays."""
        prepared = table.count().prepare(epsilon=1.0)

        def fail(*_):
            raise ValueError("SECRET of Ada")

        monkeypatch.setattr(_release, "run_scan", fail)
        with pytest.raises(QueryFailed, match=r"\(ValueError\); count the budget as spent") as told:
            prepared.answer(charged=prepared.digest, keep=str)
        assert told.value.__cause__ is None
        assert told.value.__context__ is None
        with pytest.raises(ParameterError, match="answers once"):
            prepared.answer(charged=prepared.digest, keep=str)

    def test_a_lost_connection_may_be_answered_for_the_same_charge(self, postgres):
        """Nothing was told of the rows."""
        database = postgres.create_database()
        to_postgres(pa.table(ROWS), postgres.url(database), "t")
        prepared = hs.table(postgres.url(database), "t").count().prepare(epsilon=1.0)
        postgres.run(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{database}'"
        )
        with pytest.raises(QueryFailed, match="prepare it again, and answer it for the same"):
            prepared.answer(charged=prepared.digest, keep=str)

    def test_a_stop_by_the_user_says_what_may_follow(self, table, monkeypatch):
        prepared = table.count().prepare(epsilon=1.0)

        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(_release, "run_scan", stop)
        with pytest.raises(KeyboardInterrupt, match="nothing was released; prepare it again"):
            prepared.answer(charged=prepared.digest, keep=str)

    def test_a_file_that_changed_meanwhile_is_not_read(self, tmp_path):
        """The plan was made for another one; the charge is not lost."""
        path = tmp_path / "rows.parquet"
        pa.parquet.write_table(pa.table(ROWS), path)
        prepared = hs.table(path).count().prepare(epsilon=1.0)
        kept = path.read_bytes()
        path.write_bytes(kept + b" ")
        with pytest.raises(EngineUnavailable, match=r"rows.parquet.*No row was read$"):
            prepared.answer(charged=prepared.digest, keep=str)


class TestTime:
    def test_the_time_between_preparation_and_answer_does_not_count(self, table):
        """A limit that ended meanwhile, had the clock gone on, ends nothing."""
        prepared = table.count().prepare(epsilon=50.0, timeout=30)
        early = dataclasses.replace(prepared, paused=prepared.paused - 60)
        assert early.resume().left > 60
        assert 0 < prepared.resume().left <= 30
        assert prepared.answer(charged=prepared.digest, keep=str).value("count") == 400

    def test_what_the_preparation_took_is_gone(self, table, monkeypatch):
        """Preparation and answer have one limit together; a query that is out of it is stopped."""
        prepared = table.count().prepare(epsilon=50.0, timeout=30)
        used = dataclasses.replace(prepared.proposal.clock, ends=prepared.paused)
        late = dataclasses.replace(
            prepared, proposal=dataclasses.replace(prepared.proposal, clock=used)
        )
        monkeypatch.setattr(scan.engine, "fetch", lambda *_: pytest.fail("a row was read"))
        with pytest.raises(EngineUnavailable, match=r"took all of the 30 s; no row was read"):
            late.answer(charged=late.digest, keep=str)
        assert not late.ticket.locked()


def test_another_process_cannot_answer(table):
    """It would share the connection; the words say that no row was read, not what was charged."""
    prepared = table.count().prepare(epsilon=1.0)
    connection = dataclasses.replace(prepared.proposal.connection, process=os.getpid() + 1)
    elsewhere = dataclasses.replace(
        prepared, proposal=dataclasses.replace(prepared.proposal, connection=connection)
    )
    with pytest.raises(EngineUnavailable, match=r"forked.*No row was read$"):
        elsewhere.answer(charged=prepared.digest, keep=str)
    assert len(prepared.answer(charged=prepared.digest, keep=str)) == 1
