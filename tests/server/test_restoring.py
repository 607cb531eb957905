"""A copy of the ledger is put back: whole, or with its gap booked as spent."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.server.conftest import make_folder, open_team
from tests.server.test_on_postgres import make
from typer.testing import CliRunner

from hushed import Guarantee, Ledger
from hushed.cli import app
from hushed.errors import (
    DamagedLedger,
    LedgerUnavailable,
    NotFound,
    Overspent,
    ParameterError,
)
from hushed.ledger._together import reading
from hushed.server import _desk, _life, _restoring
from hushed.server._app import open_desk
from hushed.server._audit import trail_head, verify_trail
from hushed.server._desk import Desk
from hushed.server._life import recover
from hushed.server._log import Log
from hushed.server._mark import Spent, read_mark, read_spent, write_mark
from hushed.server._requests import find_request, list_requests
from hushed.server._restoring import restore_server
from hushed.server._runners import Failed, Runners
from hushed.server._setup import check_server, invite, stop_tokens
from hushed.server._tokens import Scope

pytestmark = pytest.mark.slow


def lose(folder: Path, tokens, copy: Path, more=lambda team: None) -> str:
    """Ask, copy, ask again, and lose the ledger; the request that had no answer in the copy."""
    for team in open_team(folder, tokens):
        assert team.ask(team.ana, "before").status_code == 201
        with pytest.MonkeyPatch.context() as dead:
            dead.setattr(Desk, "start", lambda *_: None)
            open_one = team.ask(team.bo, "open", wait=0).json()["id"]
        team.desk.move_mark()
        team.desk.ledger.backup(copy)
        recover(team.desk)
        team.desk.queue.find(open_one).result(60)
        assert team.ask(team.bo, "after", epsilon=0.2).status_code == 201
        more(team)
    return open_one


def damage(folder: Path) -> None:
    (folder / "hushed.db").write_bytes(b"nothing of use")


def test_22_an_older_copy_is_refused_and_changes_nothing(tmp_path):
    """Without a word on the loss, the copy is not even put in place."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    lose(folder, tokens, copy)
    damage(folder)
    mark = (folder / "server.mark").read_text()
    names = {each.name for each in folder.iterdir()} | {"hushed.db.serving"}
    with pytest.raises(DamagedLedger, match="--accept-loss"):
        restore_server(folder, copy, accept_loss=False)
    assert (folder / "hushed.db").read_bytes() == b"nothing of use"
    assert (folder / "server.mark").read_text() == mark
    assert {each.name for each in folder.iterdir()} <= names


def test_22_a_gap_is_booked_and_nothing_is_answered_twice(tmp_path):
    """What the copy lacks is spent, what waited in it has failed, old tokens open nothing."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    open_one = lose(folder, tokens, copy)
    damage(folder)
    done = restore_server(folder, copy, accept_loss=True)
    assert (done.booked, done.failed, done.revoked) == (("stays", "stays/bo"), 1, 3)
    assert done.lost > 0
    assert Path(done.kept).read_bytes() == b"nothing of use"
    assert check_server(folder).problems == ()
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        spent = [each.guarantee.epsilon for each in ledger.entries("stays")]
        assert spent == [0.1, 0.1, 0.2]
        assert [each.guarantee.epsilon for each in ledger.entries("stays/bo")] == [0.1, 0.2]
        assert find_request(ledger, open_one).state == "failed"
    for team in open_team(folder, tokens):
        assert team.ask(team.ana, "before").status_code == 401
        fresh = invite(folder, "ana", "analyst", [], days=1, scope=Scope())
        assert team.ask(fresh, "before").json()["state"] == "answered"
        assert team.charges() == 3
        assert recover(team.desk) == 0
        codes = [team.ask(fresh, f"k{i}").status_code for i in range(6)]
        assert codes == [201] * 5 + [409]  # of her share
        with reading(team.desk.ledger) as connection:
            verify_trail(connection)


def test_22_a_copy_that_lacks_nothing_is_put_back(tmp_path):
    """Nobody loses anything: tokens count, answers are the same."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    for team in open_team(folder, tokens):
        made = team.ask(team.ana, "one").json()["id"]
        first = team.answer(team.ana, made).content
        team.desk.close()
        with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
            ledger.backup(copy)
    damage(folder)
    done = restore_server(folder, copy, accept_loss=True)
    assert (done.lost, done.booked, done.failed, done.revoked) == (0, (), 0, 0)
    for team in open_team(folder, tokens):
        assert team.answer(team.ana, made).content == first
    with pytest.raises(DamagedLedger, match="--accept-loss"):
        restore_server(folder, copy, accept_loss=False)


def test_22_a_copy_is_not_read_with_the_log_of_the_ledger_that_was_lost(tmp_path):
    """The file was removed and its log was not: the copy would be damaged by it, or set back."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    log = tmp_path / "log"
    for team in open_team(folder, tokens):
        assert team.ask(team.ana, "one").status_code == 201
        team.desk.move_mark()
        shutil.copy(folder / "hushed.db-wal", log)
        team.desk.close()
        with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
            ledger.backup(copy)
    (folder / "hushed.db").unlink()
    shutil.copy(log, folder / "hushed.db-wal")
    done = restore_server(folder, copy, accept_loss=False)
    assert (done.lost, done.kept) == (0, "")
    assert (folder / "hushed.db.replaced-wal").read_bytes() == log.read_bytes()
    open_desk(folder, Log()).close()


def test_22_what_the_mark_does_not_tell_of_is_said(tmp_path):
    """A token that was stopped last, while no server ran, may count again: that is not hidden."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        ledger.backup(copy)
    stop_tokens(folder, "ana")
    words = ["serve", "restore", str(copy), "--folder", str(folder)]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0
    assert "look at hushed serve people" in " ".join(found.stderr.split())
    for team in open_team(folder, tokens):
        assert team.send("GET", "/v1/me", team.ana).status_code == 200


def find_all(team):
    return list_requests(team.desk.ledger, person=None, cursor="", most=100)


def test_22_no_answer_is_seen_before_the_mark_tells_of_it(team, tmp_path, monkeypatch):
    """A copy of between the charge and the answer would draw another answer for one charge."""
    copy, wrote = tmp_path / "copy.db", _desk.write_mark

    def write(path, head, spent):
        if full and any(each.has_ended() for each in find_all(team)):
            raise LedgerUnavailable("no room")
        wrote(path, head, spent)

    full = ["now"]
    monkeypatch.setattr(_desk, "write_mark", write)
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        made = team.ask(team.ana, "one", wait=0).json()["id"]
    team.desk.ledger.backup(copy)
    recover(team.desk)
    team.desk.queue.find(made).result(60)
    assert find_request(team.desk.ledger, made).state == "answered"
    for path in (f"/{made}/answer", f"/{made}/certificate", f"/{made}", ""):
        found = team.send("GET", f"/v1/requests{path}", team.ana)
        assert found.json()["code"] == "ledger_unavailable"
    full.clear()
    assert team.answer(team.ana, made).status_code == 200
    number = read_mark(team.folder / "server.mark")[0]
    with Ledger(f"sqlite:///{copy}") as old, reading(old) as connection:
        assert int(verify_trail(connection).partition(":")[0]) < number


@pytest.mark.parametrize("end", ["insert_certificate", "write_failure"])
def test_22_who_looks_while_an_end_is_written_does_not_take_its_mark_away(team, monkeypatch, end):
    """The mark is moved once more after the end is stored; until then nobody sees the end."""
    kept, wrote, looked, full = getattr(_life, end), _desk.write_mark, [], []

    def write(*told):
        looked.append(team.answer(team.ana, made).json()["code"])
        full.append("now")
        return kept(*told)

    def write_mark(*told):
        if full:
            raise LedgerUnavailable("no room")
        wrote(*told)

    monkeypatch.setattr(_life, end, write)
    monkeypatch.setattr(_desk, "write_mark", write_mark)
    if end == "write_failure":
        monkeypatch.setattr(Runners, "answer", Mock(side_effect=Failed("rows")))
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        made = team.ask(team.ana, "one", wait=0).json()["id"]
    recover(team.desk)
    team.desk.queue.find(made).result(60)
    assert looked == ["not_ready"]
    assert team.answer(team.ana, made).json().get("code") == "ledger_unavailable"
    full.clear()
    team.answer(team.ana, made)
    with reading(team.desk.ledger) as connection:
        assert read_mark(team.folder / "server.mark") == trail_head(connection)


@pytest.mark.parametrize("step", ["_swap", "_mark", "_end_open"])
def test_22_a_restoration_that_is_cut_off_is_done_again(tmp_path, monkeypatch, step):
    """Whenever it stops, no server starts on half of it, and the next try ends the same."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    lose(folder, tokens, copy)
    damage(folder)
    with monkeypatch.context() as cut:
        cut.setattr(_restoring, step, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restore_server(folder, copy, accept_loss=True)
    with pytest.raises(Exception, match=r"."):
        open_desk(folder, Log())
    restore_server(folder, copy, accept_loss=True)
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        assert [each.guarantee.epsilon for each in ledger.entries("stays")] == [0.1, 0.1, 0.2]
    open_desk(folder, Log()).close()


def test_22_shares_set_aside_in_the_gap_stay_spent(tmp_path):
    """Given after the copy, and answered from: the data set is charged with all of it."""

    def more(team):
        body = {"epsilon": 0.3, "reserve": True}
        path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
        assert team.send("PUT", path, team.sam, json=body).status_code == 200
        assert team.ask(team.ana, "aside").status_code == 201

    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    lose(folder, tokens, copy, more)
    again = tmp_path / "again.db"
    shutil.copy(copy, again)
    restore_server(folder, copy, accept_loss=True)
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        assert ledger.balance("stays").used == pytest.approx(0.1 + 0.1 + 0.2 + 0.3)
    done = restore_server(folder, again, accept_loss=True)  # once more: no less is booked
    assert done.lost > 0
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        assert ledger.balance("stays").used == pytest.approx(0.1 + 0.1 + 0.2 + 0.3)


def test_22_what_cannot_be_booked_is_refused(tmp_path):
    """A mark without sums, a gap that does not fit, a server that runs, no copy of it."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    lose(folder, tokens, copy)
    mark = folder / "server.mark"
    head = read_mark(mark)
    with pytest.raises(NotFound, match="there is no file"):
        restore_server(folder, tmp_path / "none.db", accept_loss=True)
    with pytest.raises(ParameterError, match="the ledger itself"):
        restore_server(folder, folder / "hushed.db", accept_loss=True)
    desk = open_desk(folder, Log())
    desk.serve_alone()
    with pytest.raises(LedgerUnavailable, match="stop it first"):
        restore_server(folder, copy, accept_loss=True)
    desk.close()
    for spent in ({}, {"stays": Spent(entries=9, epsilon=Fraction(2), delta=Fraction(0))}):
        write_mark(mark, head, spent)
        with pytest.raises(DamagedLedger, match="make a new server"):
            restore_server(folder, copy, accept_loss=True)
    mark.write_text(f"{head[0]}:{head[1]}\nno sums\n")
    with pytest.raises(DamagedLedger, match="does not tell what was charged"):
        restore_server(folder, copy, accept_loss=True)
    write_mark(mark, head, {})
    other = tmp_path / "other.db"
    with Ledger(f"sqlite:///{other}") as made:
        made.open_budget("stays", Guarantee(epsilon=1.0))
    with pytest.raises(NotFound, match="belongs to no server"):
        restore_server(folder, other, accept_loss=True)


def test_22_a_gap_of_a_budget_that_no_data_set_has_now_is_booked_or_refused(tmp_path):
    """The data set may come back; of a cap, the budget above it has been charged, too."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        limit = Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
        ledger.open_budget("last year", limit)
    lose(folder, tokens, copy)
    mark = folder / "server.mark"
    head, told = read_mark(mark), read_spent(mark)
    more = Spent(entries=9, epsilon=Fraction(2), delta=Fraction(0))
    write_mark(mark, head, told | {"last year": more})
    with pytest.raises(DamagedLedger, match=r"'last year' lacks, .* make a new server"):
        restore_server(folder, copy, accept_loss=True)
    write_mark(
        mark, head, told | {"last year": replace(more, epsilon=Fraction(1)), "stays/bo": more}
    )
    done = restore_server(folder, copy, accept_loss=True)
    assert sorted(done.booked) == ["last year", "stays"]


def test_22_a_gap_is_the_sum_of_the_decimals_that_were_charged(tmp_path):
    """As doubles three times 0.1 is more than is left of 1, and ten times 0.69 less than 6.9."""

    def more(team):
        for name, times, each in (("full", 3, 0.1), ("room", 10, 0.69)):
            for _ in range(times):
                team.desk.ledger.charge(name, replace(limit, epsilon=each))
        assert team.ask(team.ana, "last").status_code == 201  # the mark tells of it

    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    limit = Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        ledger.open_budget("full", limit, method="basic")
        ledger.open_budget("room", replace(limit, epsilon=6.9), method="basic")
        for _ in range(7):
            ledger.charge("full", replace(limit, epsilon=0.1))
    lose(folder, tokens, copy, more)
    assert {"full", "room"} < set(restore_server(folder, copy, accept_loss=True).booked)
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        assert ledger.balance("full").spent.epsilon == 1.0
        assert ledger.balance("room").spent.epsilon == 6.9
        with pytest.raises(Overspent):
            ledger.charge("room", replace(limit, epsilon=1e-16))


def test_22_a_budget_that_the_copy_does_not_have_is_no_empty_one(tmp_path):
    """The settings may name it again: it would be opened anew. A share is in its data set's."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    lose(folder, tokens, copy)
    mark = folder / "server.mark"
    head, told = read_mark(mark), read_spent(mark)
    charged = Spent(entries=1, epsilon=Fraction(1, 8), delta=Fraction(0))
    for name in ("next year", "team/next year"):
        write_mark(mark, head, told | {name: charged})
        with pytest.raises(DamagedLedger, match=f"older than the budget '{name}'"):
            restore_server(folder, copy, accept_loss=True)
    unused = replace(charged, entries=0, epsilon=Fraction(0))
    write_mark(mark, head, told | {"next year": unused, "stays/eve": charged})
    assert restore_server(folder, copy, accept_loss=True).booked == ("stays", "stays/bo")


def test_22_a_gap_beside_a_gamma_is_booked(tmp_path):
    """The mark tells of no gamma: what was left of it is spent, and what was spent is not again."""
    limit = Guarantee(epsilon=1.0, gamma=0.1, neighbours="add-remove", unit="user")
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        ledger.open_budget("functions", limit)
        once = replace(limit, epsilon=0.2, gamma=0.04, estimates=(("abc", 0.04),))
        ledger.charge("functions", once)
    lose(folder, tokens, copy)
    mark = folder / "server.mark"
    head, told = read_mark(mark), read_spent(mark)
    more = Spent(entries=2, epsilon=Fraction(1, 2), delta=Fraction(0))
    write_mark(mark, head, told | {"functions": more})
    assert "functions" in restore_server(folder, copy, accept_loss=True).booked
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        balance = ledger.balance("functions")
        assert balance.spent.epsilon == pytest.approx(0.5)
        assert (balance.spent.gamma, balance.gamma_left) == (0.1, 0.0)


def test_22_the_command_names_what_is_booked_and_that_a_gamma_is_gone(tmp_path):
    """A registered function cannot be asked any more then, so nobody has to find that out."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    lose(folder, tokens, copy)
    damage(folder)
    words = ["serve", "restore", str(copy), "--accept-loss", "--folder", str(folder)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "booked as spent, with all that was left of a gamma, in stays, stays/bo;" in said


def test_22_a_charge_by_hand_is_not_forgotten(tmp_path):
    """It is no event of the trail: a copy from before it has all events, and lacks the charge."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    address = f"sqlite:///{folder}/hushed.db"
    yearbook = Guarantee(epsilon=0.5, neighbours="add-remove", unit="user")
    for team in open_team(folder, tokens):
        team.desk.move_mark()
        team.desk.ledger.backup(copy)
        with Ledger(address) as ledger:
            ledger.charge("stays", yearbook, note="the yearbook")
        team.desk.move_mark()  # as every ten seconds
    shutil.copy(copy, folder / "hushed.db")
    for part in ("-wal", "-shm"):
        (folder / f"hushed.db{part}").unlink(missing_ok=True)
    with pytest.raises(DamagedLedger, match="1 charge that the ledger does not have"):
        open_desk(folder, Log())
    damage(folder)
    with pytest.raises(DamagedLedger, match="--accept-loss"):
        restore_server(folder, copy, accept_loss=False)
    assert restore_server(folder, copy, accept_loss=True).booked == ("stays",)
    with Ledger(address) as ledger:
        assert ledger.balance("stays").spent.epsilon == 0.5
    open_desk(folder, Log()).close()


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_22_a_retired_budget_is_not_usable_again(tmp_path, gamma):
    """Its entry charges nothing: a copy from before it lacks no epsilon, and would take charges."""
    tokens, copy, folder = make_folder(tmp_path), tmp_path / "copy.db", tmp_path / "stats"
    address = f"sqlite:///{folder}/hushed.db"
    limit = Guarantee(epsilon=100.0, gamma=gamma)
    with Ledger(address) as ledger:
        ledger.open_budget("wrong", limit)
        ledger.backup(copy)
        ledger.retire_budget("wrong")
    for team in open_team(folder, tokens):
        team.desk.move_mark()  # as every ten seconds
    damage(folder)
    with pytest.raises(DamagedLedger, match="--accept-loss"):
        restore_server(folder, copy, accept_loss=False)
    assert restore_server(folder, copy, accept_loss=True).booked == ("wrong",)
    with Ledger(address) as ledger:
        assert ledger.balance("wrong").retired
        with pytest.raises(Overspent, match="retired"):
            ledger.charge("wrong", replace(limit, epsilon=1.0, gamma=0.0))
    open_desk(folder, Log()).close()


def test_22_on_postgresql_the_gap_is_booked_in_place(tmp_path, postgres_url, source):
    """Its own tools have restored it; the command looks at it, and books what is missing."""
    import psycopg

    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    for team in open_team(folder, tokens):
        assert team.ask(team.ana, "one").status_code == 201
        assert team.ask(team.ana, "two", epsilon=0.2).status_code == 201
    head = read_mark(folder / "server.mark")
    spent = _restoring.read_spent(folder / "server.mark")
    assert spent["stays"].epsilon == Fraction(3, 10)
    more = Spent(entries=4, epsilon=spent["stays"].epsilon + Fraction(1, 4), delta=Fraction(0))
    write_mark(folder / "server.mark", (head[0] + 5, head[1]), spent | {"stays": more})
    with pytest.raises(DamagedLedger, match="--accept-loss"):
        restore_server(folder, None, accept_loss=False)
    with pytest.raises(ParameterError, match="by its own tools"):
        restore_server(folder, tmp_path / "copy.db", accept_loss=True)
    done = restore_server(folder, None, accept_loss=True)
    assert (done.lost, done.booked, done.kept) == (5, ("stays",), "")
    with psycopg.connect(postgres_url) as owner:
        kept = owner.execute("SELECT COUNT(*) FROM hushed_s_tokens WHERE revoked IS NULL")
        assert kept.fetchone() == (0,)
    with Ledger(postgres_url) as ledger:
        assert [each.guarantee.epsilon for each in ledger.entries("stays")] == [0.1, 0.2, 0.25]
    open_desk(folder, Log()).close()
