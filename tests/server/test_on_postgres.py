"""The same server on a real PostgreSQL: its ledger, and a data set by a role that only reads."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from tests.server import (
    test_approvals,
    test_crashes,
    test_pages,
    test_reservations,
    test_threats,
)
from tests.server.conftest import Team, make_folder, open_team
from typer.testing import CliRunner

from hushed import Guarantee
from hushed.cli import app
from hushed.errors import DamagedLedger, LedgerUnavailable, ParameterError
from hushed.ledger._together import reading
from hushed.server import _moving, create_app
from hushed.server._adding import add_dataset
from hushed.server._alone import _LOCK
from hushed.server._app import open_desk
from hushed.server._audit import verify_trail
from hushed.server._desk import Desk
from hushed.server._life import recover
from hushed.server._log import Log
from hushed.server._moving import move_server
from hushed.server._setup import check_server, invite, make_server
from hushed.server._tokens import Scope

pytestmark = pytest.mark.slow

SAME = [
    test_threats.test_3_a_failure_keeps_its_charge,
    test_threats.test_4_people_together_stay_within_the_budget_of_the_data_set,
    test_threats.test_5_one_share_does_not_use_up_that_of_others,
    test_threats.test_7_what_is_anothers_does_not_exist,
    test_threats.test_8_and_9_a_key_is_paid_once_and_means_one_question,
    test_threats.test_14_keys_from_data_subjects_are_harmless,
    test_threats.test_19_one_person_has_few_requests_open,
    test_crashes.test_what_is_ended_stays,
    test_pages.test_an_address_opens_one_session_and_no_api,
    test_reservations.test_5_what_is_set_aside_is_there_when_all_else_is_spent,
    test_reservations.test_5_many_at_once_take_no_more_than_there_is,
]


def make(folder: Path, url: str, source: str, stays: str = "") -> dict[str, str]:
    """A server whose ledger is there; the same people and limits as elsewhere."""
    make_server(folder, url)
    column = {"cost": {"kind": "float", "low": 0, "high": 50}, "ward": {"keys": ["A", "B"]}}
    column["cost"].pop("kind")  # the database has types of its own
    told = {"source": source, "table": "stays", "user": "patient", "column": column}
    limit = Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
    more = {"approve_above": 0.2} if stays else {}
    add_dataset(folder, "stays", told | {"max_delta": 0.01} | more, limit)
    file = folder / "hushed.toml"
    file.write_text(file.read_text().replace("answer_grid = 1.0", "answer_grid = 0.0"))
    share = [("stays", Guarantee(epsilon=0.6))]
    tokens = {
        name: invite(folder, name, "analyst", share, days=30, scope=Scope())
        for name in ("ana", "bo")
    }
    return tokens | {"sam": invite(folder, "sam", "steward", [], days=30, scope=Scope())}


@pytest.fixture
def team(tmp_path: Path, postgres_url: str, source: str) -> Iterator[Team]:
    yield from open_team(tmp_path / "stats", make(tmp_path / "stats", postgres_url, source))


@pytest.mark.parametrize("test", SAME, ids=lambda test: test.__name__)
def test_it_is_the_same_as_on_sqlite(team, monkeypatch, test):
    """Prices, races of keys and shares, refusals: the very tests of a ledger in a file."""
    given = {"team": team, "monkeypatch": monkeypatch}
    test(**{name: given[name] for name in inspect.signature(test).parameters})
    with reading(team.desk.ledger) as connection:
        verify_trail(connection)
    team.desk.ledger.verify("stays")


def test_what_is_paid_waits_for_a_table_that_is_made_anew(team, postgres_url, monkeypatch):
    """As each night, by another program: not there, without rights, of another type of numbers."""
    with monkeypatch.context() as held:
        held.setattr(Desk, "start", lambda *_: None)
        made = team.ask(team.ana, "one", wait=0).json()
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("ALTER TABLE stays RENAME TO old")
        for _ in range(4):  # more often than a run that has begun is tried
            recover(team.desk)
            team.desk.queue.drop_waiting(60.0)
        found = team.ask(team.bo, "two")
        assert found.json()["code"] == "dataset_unavailable"
        owner.execute("CREATE TABLE stays AS SELECT patient, ward, cost::numeric FROM old")
        owner.execute("INSERT INTO stays VALUES ('P3', 'A', '1e-400')")
        owner.execute("GRANT SELECT ON stays TO stays_reader")
    recover(team.desk)
    found = team.ask(team.ana, "one").json()
    assert (found["id"], found["state"]) == (made["id"], "answered")
    assert team.charges() == 1


def test_approvals_are_the_same(tmp_path, postgres_url, source):
    """Two stewards and the asker at once: one end, and at most one charge."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source, stays="dear")
    for team in open_team(folder, tokens):
        sue = invite(folder, "sue", "steward", [], days=30, scope=Scope())
        test_approvals.test_of_many_who_decide_at_once_one_wins(team, sue)


def test_sessions_and_what_they_leave_are_the_same(tmp_path, postgres_url, source, monkeypatch):
    """Pages: sessions end in each way, and what waits ends with its person."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source, stays="dear")
    for team in open_team(folder, tokens):
        test_pages.test_a_session_ends(team, monkeypatch)


def test_a_death_a_second_server_and_a_step_back(tmp_path, postgres_url, source, monkeypatch):
    """Charged and dead: answered by the next start. One process at a time, and no older trail."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        for team in open_team(folder, tokens):
            made = team.ask(team.ana, "one", wait=0).json()
    for team in open_team(folder, tokens):
        assert team.ask(team.ana, "one").json()["id"] == made["id"]
        assert team.answer(team.ana, made["id"]).status_code == 200
        assert team.charges() == 1
    first = open_desk(folder, Log())
    first.serve_alone()
    with psycopg.connect(postgres_url) as owner:
        found = owner.execute(f"SELECT pid FROM pg_locks WHERE classid = {_LOCK}").fetchone()
    with pytest.raises(LedgerUnavailable, match=rf"another process serves .* {found[0]}, from "):
        create_app(folder)
    first.close()
    second = open_desk(folder, Log())
    second.serve_alone()
    second.close()
    with pytest.raises(ParameterError, match="belongs to a server already"):
        make_server(tmp_path / "other", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        last = "(SELECT MAX(number) FROM hushed_s_audit)"
        owner.execute(f"DELETE FROM hushed_s_audit WHERE number = {last}")
        owner.execute(
            "UPDATE hushed_s_state SET value = (SELECT number || ':' || digest FROM hushed_s_audit "
            f"WHERE number = {last}) WHERE name = 'audit'"
        )
    with pytest.raises(DamagedLedger, match="set back to an older copy"):
        open_desk(folder, Log())


def test_a_lock_that_was_lost_is_taken_again_or_no_row_is_read(tmp_path, postgres_url, source):
    """The connection of the lock breaks: taken anew; by somebody else: what is charged waits."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    held = f"FROM pg_locks WHERE locktype = 'advisory' AND classid = {0x68757376}"
    breaking = f"SELECT pg_terminate_backend(pid, 60000) {held}"  # and wait until it is gone
    for team in open_team(folder, tokens):
        team.desk.serve_alone()
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            assert len(owner.execute(breaking).fetchall()) == 1
            other = open_desk(folder, Log())
            other.serve_alone()  # nothing kept it out
            with pytest.raises(LedgerUnavailable, match="another process serves"):
                team.desk.keep_alone()
            made = team.ask(team.ana, "one", wait=1).json()
            assert made["state"] == "charged"
            assert team.desk.ledger.answer("stays", 1) is None
            other.close()
            while owner.execute(f"SELECT 1 {held}").fetchall():  # the database hears of it later
                time.sleep(0.01)
            team.desk.keep_alone()
            recover(team.desk)
            assert team.ask(team.ana, "one").json()["state"] == "answered"
            assert len(owner.execute(breaking).fetchall()) == 1
            team.desk.keep_alone()
            with pytest.raises(LedgerUnavailable, match="another process serves"):
                create_app(folder)


def test_another_login_that_holds_the_lock_is_named(tmp_path, postgres_url, source):
    """Every login of the database can take it: who keeps the server looks whose session that is."""
    folder = tmp_path / "stats"
    make(folder, postgres_url, source)
    desk = open_desk(folder, Log())
    try:
        with desk.ledger._store.engine().connect() as own:
            schema = own.info["hushed_schema"]
        with psycopg.connect(source, autocommit=True) as other:  # by the login that reads rows
            other.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [_LOCK, schema])
            with pytest.raises(LedgerUnavailable, match="login of the database, 'stays_reader'"):
                desk.serve_alone()
        held = f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = {_LOCK}"
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            while owner.execute(held).fetchall():  # the database hears of the end later
                time.sleep(0.01)
        desk.serve_alone()
    finally:
        desk.close()


def test_a_server_that_has_ended_leaves_no_connection_of_its_ledger(
    tmp_path, postgres_url, source, monkeypatch
):
    """Whether it served, was kept off by another one, or a sweep was at work as it ended."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    begun, late = threading.Event(), []

    def sweep_late(desk):
        begun.set()
        time.sleep(0.3)
        late.append(recover(desk))

    monkeypatch.setattr("hushed.server._app.recover", sweep_late)
    for _ in open_team(folder, tokens):
        assert begun.wait(60)
        with pytest.raises(ParameterError, match="already"):
            add_dataset(folder, "stays", {"source": source}, Guarantee(epsilon=1.0))
    assert late == [0]
    open_desk(folder, Log()).close()
    mine = "datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        left = f"SELECT count(*) FROM pg_stat_activity WHERE {mine}"
        for _ in range(100):  # the server needs a moment to end them
            if owner.execute(left).fetchone() == (0,):
                return
            time.sleep(0.1)
        assert owner.execute(left).fetchone() == (0,)


def test_a_login_that_may_change_the_table_is_told(tmp_path, postgres_url, source):
    """The server needs to read one table, and nothing else."""
    make(tmp_path / "stats", postgres_url, source)
    assert check_server(tmp_path / "stats").problems == ()
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("GRANT DELETE ON stays TO stays_reader")
    problems = check_server(tmp_path / "stats").problems
    assert [each for each in problems if "may change the table" in each] == list(problems)
    assert len(problems) == 1


def test_a_login_that_may_not_read_the_table_is_told(tmp_path, postgres_url, source):
    """When it is added, when it is looked at, at the start, and in the log while it is served."""
    told = "InsufficientPrivilege: its user may not read the table or a column: GRANT SELECT"
    tokens, folder = make(tmp_path / "stats", postgres_url, source), tmp_path / "stats"
    for team in open_team(folder, tokens):
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute("REVOKE SELECT ON stays FROM stays_reader")
        found = team.ask(team.ana, "one")
        assert (found.status_code, found.json()["code"]) == (503, "dataset_unavailable")
        assert told not in found.text
        assert f"EngineUnavailable: postgres does not accept the query ({told})" in (
            team.logged.getvalue()
        )
        assert "secret" not in team.logged.getvalue()
        assert team.charges() == 0
    problems = check_server(folder).problems
    assert [each for each in problems if told in each] == list(problems)
    assert len(problems) == 1
    for team in open_team(folder, tokens):
        assert told in team.logged.getvalue()
        assert team.send("GET", "/v1/datasets", team.ana).json()["items"][0]["open"] is False
    words = ["serve", "add", "other", source, "--table", "stays", "--epsilon", "1"]
    words += ["--second-budget"]
    words += ["--folder", str(folder)]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0
    assert told in " ".join(refused.stderr.split())
    assert "dataset.other" not in (folder / "hushed.toml").read_text()
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("GRANT SELECT, DELETE ON stays TO stays_reader")
    added = CliRunner().invoke(app, words)
    assert added.exit_code == 0
    assert "its login may change the table" in " ".join(added.stderr.split())
    assert "other can be asked after the next start" in added.stdout


def test_a_table_by_another_address_is_the_same_table(tmp_path, postgres_url, source):
    """Another name of the computer, or another login: two budgets would count its people twice."""
    folder = tmp_path / "stats"
    make(folder, postgres_url, source)
    other = f"{source}{'&' if '?' in source else '?'}application_name=another"
    words = ["serve", "add", "again", other, "--table", "stays", "--user", "patient"]
    words += ["--epsilon", "1", "--folder", str(folder)]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0
    said = " ".join(refused.stderr.split())
    assert "this table is data set 'stays', too" in said
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("CREATE TABLE others AS SELECT * FROM stays")
        owner.execute("GRANT SELECT ON others TO stays_reader")
    words[2], words[5] = "others", "others"
    added = CliRunner().invoke(app, words)
    assert added.exit_code == 0, added.stderr
    assert "too" not in " ".join(added.stderr.split()).partition("problem")[2]


def test_a_login_that_may_read_what_is_described_is_taken(tmp_path, postgres_url, source):
    """Rights may be given by the column."""
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("REVOKE SELECT ON stays FROM stays_reader")
        owner.execute("GRANT SELECT (patient, cost, ward) ON stays TO stays_reader")
        owner.execute("ALTER TABLE stays ADD COLUMN name text")
    make(tmp_path / "stats", postgres_url, source)
    assert check_server(tmp_path / "stats").problems == ()


def test_a_server_moves_with_all_that_it_has(tmp_path, postgres_url, monkeypatch):
    """Tokens, answers byte for byte, charges and trail; the file is not served any more."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    for team in open_team(folder, tokens):
        made = [team.ask(team.ana, str(i)).json()["id"] for i in range(2)]
        first = [team.answer(team.ana, each).content for each in made]
        signed = team.send("GET", f"/v1/requests/{made[0]}/certificate", team.ana).content
        with monkeypatch.context() as dead:
            dead.setattr(Desk, "start", lambda *_: None)
            waits = team.ask(team.bo, "waits", wait=0).json()["id"]
        entries = team.desk.ledger.entries("stays")
        left = team.desk.ledger.balance("stays").epsilon_left
        team.desk.serve_alone()
        with pytest.raises(LedgerUnavailable, match="another process serves this ledger"):
            move_server(folder, postgres_url)
    text = (folder / "hushed.toml").read_text()
    with monkeypatch.context() as broken:
        broken.setattr("hushed.server._moving.verify_trail", fail)
        with pytest.raises(DamagedLedger):
            move_server(folder, postgres_url)
    assert (folder / "hushed.toml").read_text() == text
    with pytest.raises(ParameterError, match="there is a ledger already"):
        move_server(folder, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("DROP SCHEMA public CASCADE")
        owner.execute("CREATE SCHEMA public")
    kept = move_while_somebody_is_invited(folder, postgres_url, monkeypatch)
    assert (folder / "hushed.toml").read_text().count("postgresql://") == 1
    assert check_server(folder).problems == ()
    for team in open_team(folder, tokens):
        assert not team.desk.ledger._store.sqlite
        assert [team.answer(team.ana, each).content for each in made] == first
        again = team.send("GET", f"/v1/requests/{made[0]}/certificate", team.ana).content
        assert again == signed
        assert team.ask(team.bo, "waits").json()["id"] == waits
        assert team.answer(team.bo, waits).status_code == 200
        assert team.desk.ledger.entries("stays") == entries
        assert team.desk.ledger.balance("stays").epsilon_left == left
        assert team.ask(team.bo, "new").status_code == 201
    kept.rename(folder / "hushed.db")
    (folder / "hushed.toml").write_text(text)
    with pytest.raises(DamagedLedger, match="was moved"):
        open_desk(folder, Log())


def move_while_somebody_is_invited(folder, url, monkeypatch):
    """Whoever writes to the file that is moved waits for the end, and is told of it."""
    late = []
    with monkeypatch.context() as raced, ThreadPoolExecutor(1) as pool:
        keep_next = _moving.keep_next

        def keep_slowly(folder, text):
            late.append(pool.submit(invite, folder, "late", "analyst", [], days=1, scope=Scope()))
            with pytest.raises(TimeoutError):
                late[0].result(1.0)
            keep_next(folder, text)

        raced.setattr(_moving, "keep_next", keep_slowly)
        kept = Path(move_server(folder, url))
        with pytest.raises((DamagedLedger, LedgerUnavailable)):
            late[0].result(60)
    return kept


def fail(connection):
    raise DamagedLedger("the trail is another one")
