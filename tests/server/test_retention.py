"""Answers whose time is over are deleted: their texts, and nothing else; by default none is."""

from __future__ import annotations

import datetime as times
import hashlib
from dataclasses import replace

import psycopg
import pytest
from tests.server import test_clocks
from tests.server.conftest import make_folder, open_team
from tests.server.test_daily import DAY
from tests.server.test_on_postgres import make
from tests.server.test_pages import enter
from tests.server.test_web_kills import wait_for
from typer.testing import CliRunner

from hushed import Ledger, certify_budget, connect, statements, verify
from hushed.cli import app
from hushed.errors import NotFound, QueryFailed
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing
from hushed.server._app import sweep
from hushed.server._audit import verify_trail
from hushed.server._requests import find_request
from hushed.server._restoring import restore_server
from hushed.server._retention import Retention, delete_answers
from hushed.server._schema import fetch_all
from hushed.server._setup import check_server
from hushed.workbench._views.recent import list_charges

pytestmark = pytest.mark.slow
of_the_server = test_clocks.clock


@pytest.fixture
def clock(of_the_server):
    """The clock of the server, from noon on."""
    return test_clocks.begin_at_noon(of_the_server)


def keep_for(folder, days):
    file = folder / "hushed.toml"
    told = file.read_text().replace("[server]\n", f"[server]\nretention_days = {days}\n", 1)
    file.write_text(told)


@pytest.fixture
def team(tmp_path, clock, monkeypatch):
    """A team whose answers are kept for ten days; after its start it sweeps when a test does."""
    monkeypatch.setattr("hushed.server._app.SWEEP_SECONDS", 3600.0)
    tokens = make_folder(tmp_path)
    keep_for(tmp_path / "stats", 10)
    yield from open_team(tmp_path / "stats", tokens)


def look_again(team):
    """Delete as a server does that was started when the clock was as it is now."""
    team.desk.retention = Retention()
    return delete_answers(team.desk)


def count(team, table):
    with reading(team.desk.ledger) as connection:
        return int(run(connection, f"SELECT COUNT(*) FROM @.{table}", {}).fetchone()[0])


def check_deleted(team, clock):
    """Ask, wait, and look at what is gone and what stays; used on PostgreSQL, too."""
    old = team.ask(team.ana, "old").json()
    body = team.answer(team.ana, old["id"]).content
    assert old["kept_until"][:10] == shift_day(clock, 10)
    clock.shift = 6 * DAY
    new = team.ask(team.ana, "new").json()
    entries = [each.digest for each in team.desk.ledger.entries("stays")]
    assert look_again(team) == 0
    clock.shift = 11 * DAY
    assert look_again(team) == 1
    assert look_again(team) == 0
    for what in ("answer", "certificate"):
        gone = team.send("GET", f"/v1/requests/{old['id']}/{what}", team.ana)
        assert (gone.status_code, gone.json()["code"]) == (410, "answer_deleted")
        assert hashlib.sha256(body).hexdigest() in gone.json()["detail"]
        there = team.send("GET", f"/v1/requests/{new['id']}/{what}", team.ana)
        assert there.status_code == 200
    told = team.send("GET", f"/v1/requests/{old['id']}", team.ana).json()
    assert (told["state"], told["entry"]) == ("answered", 1)
    assert told["answer_sha256"] == hashlib.sha256(body).hexdigest()
    assert (told["deleted_at"][:10], told["kept_until"]) == (shift_day(clock, 0), None)
    again = team.ask(team.ana, "old")  # the key is that of the same request, and costs nothing
    assert (again.status_code, again.json()["id"]) == (201, old["id"])
    assert [each.digest for each in team.desk.ledger.entries("stays")] == entries
    assert (count(team, "hushed_s_requests"), count(team, "hushed_answers")) == (2, 2)
    assert count(team, "hushed_s_certificates") == 1
    team.desk.ledger.verify("stays")
    with reading(team.desk.ledger) as connection:
        verify_trail(connection)
        events = fetch_all(connection, "SELECT body FROM @.hushed_s_audit")
    assert sum("deleted an answer" in each["body"] for each in events) == 1
    return old["id"]


def shift_day(clock, days):
    return (clock.now(times.UTC) + times.timedelta(days=days)).date().isoformat()


def test_what_is_old_is_deleted_and_all_else_stays(team, clock, monkeypatch, tmp_path):
    """Request, charge, chain and digest; the client and the page say what has become of it."""
    old = check_deleted(team, clock)
    with pytest.raises(NotFound, match="was deleted"):
        team.desk.ledger.answer("stays", 1)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=dict(headers), content=body)
        return found.status_code, found.headers, found.content

    client = connect("https://stats.example.org", team.ana, send=send)
    with pytest.raises(QueryFailed, match="keeps answers for a time"):
        client.answer(old)
    ana = enter(team, "ana")
    page = ana.get(f"requests/{old}")
    assert (page.status_code, "The answer was deleted" in page.text) == (200, True)
    assert "answered, and deleted since" in ana.get("requests").text
    assert ana.get(f"requests/{old}/files/json").status_code == 410


def test_the_digest_is_for_those_who_may_read_the_answer(team, clock):
    """Of one number it tells the number to whoever tries: a steward who reads none has none."""
    old = check_deleted(team, clock)
    for path in ("v1/requests", f"v1/requests/{old}"):
        own, kept = (team.send("GET", f"/{path}", each) for each in (team.ana, team.sam))
        assert ('answer_sha256":null' in kept.text, 'deleted_at":"20' in kept.text) == (True, True)
        found = own.json() if path.endswith(old) else own.json()["items"][-1]
        assert len(found["answer_sha256"]) == 64
        assert found["answer_sha256"] not in kept.text
    assert found["answer_sha256"] in enter(team, "ana").get(f"requests/{old}").text
    page = enter(team, "sam", "steward").get(f"requests/{old}").text
    assert ("The answer was deleted" in page, "SHA-256" in page) == (True, False)


def test_by_default_nothing_is_deleted(tmp_path, clock):
    """Without the setting the oldest answer is read after a hundred years."""
    for team in open_team(tmp_path / "stats", make_folder(tmp_path)):
        made = team.ask(team.ana, "one").json()
        assert made["kept_until"] is None
        clock.shift = 100 * 365 * DAY
        assert look_again(team) == 0
        sweep(team.desk)
        clock.shift = 0.0
        assert team.answer(team.ana, made["id"]).status_code == 200


def test_a_clock_that_leaps_deletes_nothing(team, clock):
    """Set by a year while the server runs: nothing is lost, and the log says why."""
    made = team.ask(team.ana, "one").json()
    team.desk.retention = Retention()
    clock.shift = 365 * DAY
    sweep(team.desk)
    clock.shift = 0.0
    assert team.answer(team.ana, made["id"]).status_code == 200
    assert "answers are not deleted" in team.logged.getvalue()


def test_the_sweeper_deletes_with_the_first_look_and_then_by_the_hour(team, clock, monkeypatch):
    """A look takes a walk over what was answered: not every ten seconds."""
    made = team.ask(team.ana, "one").json()
    clock.shift = 11 * DAY
    team.desk.retention = Retention()
    sweep(team.desk)
    assert team.answer(team.ana, made["id"]).status_code == 410
    looks = []
    monkeypatch.setattr("hushed.server._retention._list_old", lambda *_: looks.append(1) or [])
    for _ in range(3):
        sweep(team.desk)
    assert looks == []


def test_a_sweep_deletes_some_and_the_next_one_goes_on(team, clock, monkeypatch):
    """Where there are many, what was charged before a crash does not wait for all of them."""
    made = [team.ask(team.ana, each).json()["id"] for each in "abc"]
    clock.shift = 11 * DAY
    team.desk.retention = Retention()
    monkeypatch.setattr("hushed.server._retention._AT_ONCE", 2)
    gone = []
    for _ in range(3):
        sweep(team.desk)
        found = [find_request(team.desk.ledger, each).deleted_at is not None for each in made]
        gone.append(found)
    assert gone == [[True, True, False], [True] * 3, [True] * 3]


def test_a_damaged_answer_keeps_no_other_one(team, clock):
    """Somebody has written into the file: the log names the request, and the rest is deleted."""
    made = [team.ask(team.ana, each).json()["id"] for each in "abc"]
    with writing(team.desk.ledger) as connection:
        run(connection, "DROP TRIGGER hushed_answers_update", {})
        run(connection, "UPDATE @.hushed_answers SET body = 'x' WHERE number = 1", {})
    clock.shift = 11 * DAY
    assert look_again(team) == 2
    team.desk.retention.go_on()
    assert delete_answers(team.desk) == 0
    found = [find_request(team.desk.ledger, each).deleted_at is not None for each in made]
    assert found == [False, True, True]
    assert team.logged.getvalue().count("an answer is damaged, and not deleted") == 1


def test_tables_let_nothing_else_be_changed(team, clock):
    """An answer may be emptied; no other text is put in its place, and no row goes."""
    check_deleted(team, clock)
    wrong = (
        "UPDATE @.hushed_answers SET body = 'x' WHERE number = 2",
        "UPDATE @.hushed_answers SET body = '', digest = 'x' WHERE number = 2",
        "UPDATE @.hushed_answers SET body = '', number = 9 WHERE number = 2",
        "UPDATE @.hushed_answers SET body = 'x' WHERE number = 1",
        "DELETE FROM @.hushed_answers WHERE number = 1",
        "DELETE FROM @.hushed_entries WHERE number = 1",
    )
    for each in wrong:
        with (
            pytest.raises(Exception, match="append-only"),
            writing(team.desk.ledger) as connection,
        ):
            run(connection, each, {})
    assert count(team, "hushed_answers") == 2


def test_a_copy_that_is_put_back_is_cleaned_again(tmp_path, clock):
    """What was deleted since is in the copy; the command says so, and the next start deletes it."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    keep_for(folder, 10)
    for team in open_team(folder, tokens):
        made = team.ask(team.ana, "one").json()
        team.desk.move_mark()
        team.desk.ledger.backup(copy)
        clock.shift = 11 * DAY
        assert look_again(team) == 1
    assert restore_server(folder, copy, accept_loss=True).returned == 1
    facts = check_server(folder).facts
    assert "answers: deleted 10 days after they can be read" in facts
    for team in open_team(folder, tokens):  # its own first sweep may be under way
        sweep(team.desk)
        book = team.desk.ledger
        wait_for(lambda book=book: find_request(book, made["id"]).deleted_at is not None)
        with pytest.raises(NotFound):
            team.desk.ledger.answer("stays", 1)


def test_a_budget_with_deleted_answers_is_verified_and_exported(team, clock):
    """By the commands for ledgers, with the server stopped or not."""
    check_deleted(team, clock)
    url = f"sqlite:///{team.folder}/hushed.db"
    for verb in ("verify", "export"):
        done = CliRunner().invoke(app, ["ledger", verb, url, "stays"])
        assert done.exit_code == 0, done.output
    with Ledger(url) as ledger:
        assert ledger.answer("stays", 2) is not None


def test_what_was_saved_is_still_compared_with_the_ledger(team, clock, tmp_path):
    """By the digest that stays; a budget with deleted answers is reported, and the bench opens."""
    key = statements.public_key(team.desk.key)
    made = [team.ask(team.ana, each).json()["id"] for each in ("saved", "other")]
    paths = [f"/v1/requests/{each}/certificate" for each in made]
    saved, other = (
        statements.open_signed(team.send("GET", each, team.ana).text, key) for each in paths
    )
    report = certify_budget(team.desk.ledger, "stays")
    clock.shift = 11 * DAY
    assert look_again(team) == 2
    for each in (saved, report, certify_budget(team.desk.ledger, "stays")):
        found = verify(each, ledger=team.desk.ledger)
        assert "holds: the ledger has what was charged, and what it paid for" in str(found), found
    found = verify(replace(saved, record=other.record), ledger=team.desk.ledger)
    assert "whose digest is of another text" in str(found)
    assert [each.answered for each in list_charges(team.desk.ledger, "stays", ())] == [False] * 2


def test_it_is_the_same_on_postgres(tmp_path, postgres_url, source, clock):
    """Deleted, and guarded, where the tables are those of a login."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    keep_for(folder, 10)
    for team in open_team(folder, tokens):
        test_tables_let_nothing_else_be_changed(team, clock)
    with psycopg.connect(postgres_url) as connection:
        bodies = connection.execute("SELECT body FROM hushed_answers ORDER BY number").fetchall()
    assert [bool(each[0]) for each in bodies] == [False, True]
