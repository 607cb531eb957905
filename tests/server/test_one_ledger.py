"""A ledger has one server, which notices when the ledger was set back."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import threading
from contextlib import closing

import pytest
from tests.server.conftest import make_folder, open_team
from tests.server.test_workers import wait_for

from hushed import Ledger
from hushed.errors import DamagedLedger, HushedError, LedgerUnavailable, NotFound, ParameterError
from hushed.ledger._together import reading, writing
from hushed.server import _desk, _life, _metrics, create_app
from hushed.server._alone import locked_file
from hushed.server._app import open_desk
from hushed.server._audit import add_event, trail_head
from hushed.server._log import Log
from hushed.server._opening import open_own
from hushed.server._requests import find_request
from hushed.server._setup import check_server, make_server


@pytest.fixture
def folder(tmp_path):
    make_folder(tmp_path)
    return tmp_path / "stats"


@pytest.mark.slow
def test_a_ledger_that_was_set_back_is_refused(tmp_path):
    """What was answered since is not charged in the copy: nobody is let in, nothing is changed."""
    tokens = make_folder(tmp_path)
    folder, copy, newest = tmp_path / "stats", tmp_path / "copy.db", tmp_path / "newest.db"
    for team in open_team(folder, tokens):
        assert team.ask(team.ana, "one").status_code == 201
        team.desk.ledger.backup(copy)
        assert team.ask(team.ana, "two").status_code == 201
        team.desk.move_mark()
        team.desk.ledger.backup(newest)
        team.desk.ledger.close()
    for each in folder.glob("hushed.db*"):
        each.unlink()
    shutil.copy(copy, folder / "hushed.db")
    for opened in (lambda: open_desk(folder, Log()), lambda: check_server(folder)):
        with pytest.raises(DamagedLedger, match="set back to an older copy"):
            opened()
    assert (folder / "hushed.db").read_bytes() == copy.read_bytes()
    for each in folder.glob("hushed.db*"):
        each.unlink()
    shutil.copy(newest, folder / "hushed.db")
    assert check_server(folder).problems == ()


@pytest.mark.slow
def test_a_ledger_that_is_set_back_under_a_server_is_not_answered_from(team, tmp_path):
    """The file stays the same one, and its content is of yesterday: no row is read."""
    copy = tmp_path / "copy.db"
    team.desk.ledger.backup(copy)
    assert team.ask(team.ana, "one").status_code == 201
    with (
        closing(sqlite3.connect(copy)) as old,
        closing(sqlite3.connect(team.folder / "hushed.db")) as now,
    ):
        old.backup(now)
    with pytest.raises(HushedError):
        team.desk.move_mark()
    for key in ("two", "three", "four"):  # the balance notices once, and then goes on from there
        found = team.ask(team.ana, key, wait=5)
        assert (found.status_code, found.json()["code"]) == (503, "ledger_unavailable")
    assert team.charges() == 0


@pytest.mark.slow
def test_another_trail_of_the_same_length_is_refused(folder):
    """The mark names the event, and not only its number."""
    desk = open_desk(folder, Log())
    desk.move_mark()
    desk.close()
    with sqlite3.connect(folder / "hushed.db") as database:
        database.execute(
            "UPDATE hushed_s_audit SET digest = "
            "iif(digest LIKE 'f%', 'e', 'f') || substr(digest, 2)"
        )
    with pytest.raises(DamagedLedger, match="rewritten, or is another one"):
        open_desk(folder, Log())


@pytest.mark.slow
def test_the_mark_is_older_after_a_crash_and_never_missing(folder):
    """Events after the mark are no reason to refuse; a mark that is gone is one."""
    desk = open_desk(folder, Log())
    with writing(desk.ledger) as connection:
        add_event(connection, actor="x", action="y", about="z")
    desk.ledger.close()  # and the mark did not move
    open_desk(folder, Log()).close()
    number = int((folder / "server.mark").read_text().partition(":")[0])
    with sqlite3.connect(folder / "hushed.db") as database:
        assert database.execute("SELECT COUNT(*) FROM hushed_s_audit").fetchone() == (number,)
    (folder / "server.mark").unlink()
    with pytest.raises(NotFound, match="cannot be read"):
        open_desk(folder, Log())


@pytest.mark.slow
def test_no_row_is_read_before_the_mark_is_written(team, monkeypatch):
    """A full disk: the request waits, charged, and is answered when there is room again."""
    with monkeypatch.context() as full:

        def fail(*_):
            raise LedgerUnavailable("no room")

        full.setattr("hushed.server._desk.write_mark", fail)
        made = team.ask(team.ana, "one", wait=1).json()
        assert made["state"] == "charged"
        assert team.desk.ledger.answer("stays", 1) is None
    from hushed.server._life import recover

    recover(team.desk)
    found = team.ask(team.ana, "one")
    assert (found.status_code, found.json()["id"]) == (201, made["id"])


@pytest.mark.slow
def test_who_looks_learns_nothing_of_when_a_run_ended(tmp_path, monkeypatch):
    """Until the answer can be read, a look does the same work: the mark is that of the run."""
    tokens = make_folder(tmp_path, settings="answer_grid = 3600.0")
    for team in open_team(tmp_path / "stats", tokens):
        _look_before_the_answer_can_be_read(team, monkeypatch)


def _look_before_the_answer_can_be_read(team, monkeypatch):
    made, looked = team.ask(team.ana, "one", wait=0).json()["id"], []
    wait_for(lambda: find_request(team.desk.ledger, made).has_ended())
    wait_for(lambda: not team.desk.queue.count())
    with reading(team.desk.ledger) as connection:
        assert team.desk.check_mark(connection) == trail_head(connection)[0]
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(_desk.Desk, "_read_mark", looked.append)
        for path in (f"/v1/requests/{made}", "/v1/requests"):
            assert '"charged"' in team.send("GET", path, team.ana).text
        assert team.answer(team.ana, made).status_code == 409
    assert not looked


@pytest.mark.slow
def test_one_move_of_the_mark_is_for_all_that_came_before_it(team, monkeypatch):
    """Three are charged, and the first run marks all of them; each marks what has ended by then."""
    wrote, moved, go = _desk.write_mark, [], threading.Event()

    def write_mark(path, head, spent):
        moved.append(head[0])
        wrote(path, head, spent)

    read = _life.read_asked  # the first thing that a run does
    monkeypatch.setattr(_desk, "write_mark", write_mark)
    monkeypatch.setattr(_life, "read_asked", lambda body: (go.wait(30), read(body))[1])
    made = [team.ask(team.ana, f"key {i}", wait=0, epsilon=0.01).json()["id"] for i in range(3)]
    with reading(team.desk.ledger) as connection:
        charged = trail_head(connection)[0]
    moved.clear()  # the first sweep may have moved it
    go.set()
    wait_for(lambda: not team.desk.queue.count())
    for each in made:
        assert team.answer(team.ana, each).status_code == 200
    assert (moved[0], moved[-1]) == (charged, charged + 3)
    assert len(moved) <= 4  # and not twice for each of them


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/v1/audit", "/v1/requests"])
def test_nobody_hears_of_an_end_that_the_mark_does_not_cover(team, monkeypatch, path):
    """The disk is full when the run has ended: neither the trail nor a list tells of it."""
    wrote, full, end = _desk.write_mark, [], _life._end

    def write_mark(*told):
        if full:
            raise LedgerUnavailable("no room")
        wrote(*told)

    def end_and_fill(*told):
        end(*told)
        full.append("now")

    monkeypatch.setattr(_desk, "write_mark", write_mark)
    monkeypatch.setattr(_life, "_end", end_and_fill)
    made = team.ask(team.ana, "one", wait=0).json()["id"]
    wait_for(lambda: find_request(team.desk.ledger, made).has_ended())
    assert _metrics._count_states(team.desk) is None
    assert team.send("GET", path, team.sam).json()["code"] == "ledger_unavailable"
    full.clear()
    assert made in team.send("GET", path, team.sam).text
    assert _metrics._count_states(team.desk) == {"answered": 1}


@pytest.mark.slow
def test_one_process_serves_a_ledger_from_whatever_folder(folder, tmp_path):
    """A copy of the folder that names the same ledger is kept out, and let in after the end."""
    other = tmp_path / "other"
    shutil.copytree(folder, other, ignore=shutil.ignore_patterns("hushed.db*"))
    file = other / "hushed.toml"
    file.write_text(file.read_text().replace("hushed.db", "../stats/hushed.db"))
    first = open_desk(folder, Log())
    first.serve_alone()
    with pytest.raises(LedgerUnavailable, match=r"SIGTERM.*`fuser .*hushed\.db\.serving`"):
        create_app(other)
    first.close()
    second = open_desk(other, Log())
    second.serve_alone()
    second.close()


def test_a_second_server_cannot_be_made_on_a_ledger(folder, tmp_path):
    """Its key would sign for people and shares that are not its own; nothing is left of the try."""
    url = f"sqlite:///{folder / 'hushed.db'}"
    with pytest.raises(ParameterError, match="belongs to a server already"):
        make_server(tmp_path / "second", url)
    assert list((tmp_path / "second").iterdir()) == []
    make_server(tmp_path / "third")
    file = tmp_path / "third" / "hushed.toml"
    file.write_text(file.read_text().replace("sqlite:///hushed.db", url))
    with pytest.raises(HushedError, match="server with another key"):
        open_desk(tmp_path / "third", Log())
    with Ledger(url, create=False) as ledger:
        assert ledger.entries("stays") == ()


def test_a_system_without_file_locks_is_refused(folder, monkeypatch):
    """As Windows: two processes would answer the same charge."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(LedgerUnavailable, match="needs the file locks of Linux or macOS"):
        create_app(folder)


@pytest.mark.parametrize("made", [False, True])
def test_a_lock_that_is_removed_is_taken_anew_or_missed(tmp_path, made):
    """Whoever removes the file of the lock lets a second server in: one of both stops."""
    ledger, lock = tmp_path / "l.db", tmp_path / "l.db.serving"
    with locked_file(ledger) as keep:
        keep()
        lock.unlink()
        if made:
            lock.write_text("")
        keep()  # nobody was faster
        with pytest.raises(LedgerUnavailable, match="another process serves"), locked_file(ledger):
            pass
        lock.unlink()
        with locked_file(ledger) as other:
            other()
            with pytest.raises(LedgerUnavailable, match="another process serves"):
                keep()
        keep()  # the other one has ended
    with locked_file(ledger):
        pass


def test_a_server_whose_lock_was_taken_reads_no_more_rows(folder):
    """It is asked again and again whether it has its lock."""
    desk = open_desk(folder, Log())
    desk.serve_alone()
    try:
        (folder / "hushed.db.serving").unlink()
        with locked_file(folder / "hushed.db"), pytest.raises(LedgerUnavailable):
            desk.keep_alone()
        assert not desk.alone
        desk.keep_alone()
        assert desk.alone
    finally:
        desk.close()


def test_a_ledger_of_no_server_is_named_as_such(folder):
    """Whether it was moved is asked of tables that it has not."""
    (folder / "hushed.db").unlink()
    Ledger(f"sqlite:///{folder}/hushed.db").close()
    with pytest.raises(NotFound, match="belongs to no server"):
        open_own(folder)
