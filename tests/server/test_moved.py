"""A server that was moved to PostgreSQL is kept by the same commands as before, in any order."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from tests.server import test_clocks
from tests.server.conftest import make_folder, open_team
from tests.server.test_daily import DAY
from tests.server.test_retention import keep_for, look_again
from typer.testing import CliRunner

from hushed import Guarantee, Ledger, statements
from hushed.cli import app
from hushed.errors import LedgerUnavailable, ParameterError
from hushed.server import _moving
from hushed.server._restoring import restore_server

pytestmark = pytest.mark.slow
of_the_server = test_clocks.clock


@pytest.fixture
def clock(of_the_server):
    """The clock of the server, from noon on."""
    return test_clocks.begin_at_noon(of_the_server)


def test_keys_change_and_answers_end_after_a_move_as_before(
    tmp_path, clock, postgres_url, monkeypatch
):
    """Each certificate is checked by the key that signed it, and answers end after their days."""
    monkeypatch.setattr("hushed.server._app.SWEEP_SECONDS", 3600.0)
    tokens, folder, made = make_folder(tmp_path), tmp_path / "stats", []
    keep_for(folder, 10)
    for words in (["rotate-key"], ["move", "--to", postgres_url], ["rotate-key"]):
        for team in open_team(folder, tokens):
            made.append(team.ask(team.ana, str(len(made))).json()["id"])
        done = CliRunner().invoke(app, ["serve", *words, "--folder", str(folder)])
        assert done.exit_code == 0, done.stderr
    for team in open_team(folder, tokens):
        known = [each.pem.encode() for each in team.desk.keys]
        for request, key in zip(made, [known[2], known[1], known[1]], strict=True):
            found = team.send("GET", f"/v1/requests/{request}/certificate", team.ana)
            statements.open_signed(found.text, key)
        clock.shift = 11 * DAY
        assert look_again(team) == len(made)
        assert [team.answer(team.ana, each).status_code for each in made] == [410] * len(made)
        assert team.charges() == len(made)
        assert team.ask(team.bo, "more").status_code == 201
    assert CliRunner().invoke(app, ["serve", "check", "--folder", str(folder)]).exit_code == 0


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["leave_trail", "close_for_good", "end_move", "write_mark"])
def test_a_move_that_is_cut_off_was_none_or_is_ended(tmp_path, postgres_url, monkeypatch, step):
    """Never is there a file that takes a charge by hand while another ledger counts."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    address, done = f"sqlite:///{folder / 'hushed.db'}", step in ("end_move", "write_mark")
    before, mark = (folder / "hushed.toml").read_text(), (folder / "server.mark").read_text()
    cut_off(folder, postgres_url, monkeypatch, step)
    with open(folder / "hushed.toml", "a", encoding="utf-8") as file:
        file.write("\n# written meanwhile\n")
    words = ["ledger", "charge", address, "stays", "--epsilon", "0.01"]
    charged = CliRunner().invoke(app, words)
    assert (charged.exit_code != 0) == done, charged.stderr
    assert CliRunner().invoke(app, ["serve", "check", "--folder", str(folder)]).exit_code == 0
    text = (folder / "hushed.toml").read_text()
    assert ("postgresql://" in text) == done
    assert text == (text if done else before + "\n# written meanwhile\n")
    assert "# written meanwhile" in text
    assert (folder / "hushed.toml.next").exists() != done
    (folder / "server.mark").write_text(mark)  # whichever of both marks there is
    for team in open_team(folder, tokens):
        assert team.desk.ledger._store.sqlite != done
        assert team.ask(team.ana, "more").status_code == 201
        assert team.charges() == (1 if done else 2)
    if not done:
        with pytest.raises(ParameterError, match="there is a ledger already"):
            _moving.move_server(folder, postgres_url)


def cut_off(folder, url, monkeypatch, step):
    """Move, and be killed on the way."""

    def kill(*_):
        raise Killed

    with monkeypatch.context() as killed:
        killed.setattr(_moving, step, kill)
        with pytest.raises(Killed):
            _moving.move_server(folder, url)


@pytest.mark.parametrize("copied", [True, False])
def test_no_copy_takes_the_place_of_a_file_that_was_moved(
    tmp_path, postgres_url, monkeypatch, copied
):
    """Both would take charges: the move that was cut off is ended, and the copy is refused."""
    tokens, folder, copy = make_folder(tmp_path), tmp_path / "stats", tmp_path / "copy.db"
    with Ledger(f"sqlite:///{folder / 'hushed.db'}", create=False) as ledger:
        ledger.backup(copy)
    cut_off(folder, postgres_url, monkeypatch, "end_move")
    words = ["restore", *([str(copy)] if copied else []), "--folder", str(folder)]
    refused = CliRunner().invoke(app, ["serve", *words])
    assert refused.exit_code != 0
    assert "was moved to PostgreSQL" in " ".join(refused.stderr.split())
    assert "postgresql://" in (folder / "hushed.toml").read_text()
    for team in open_team(folder, tokens):
        assert not team.desk.ledger._store.sqlite


def test_nor_of_one_that_is_lost_and_may_have_been_moved(tmp_path, postgres_url, monkeypatch):
    """Who keeps it looks which ledger counts, and says so by removing a file."""
    tokens, folder, copy = make_folder(tmp_path), tmp_path / "stats", tmp_path / "copy.db"
    file, text = folder / "hushed.db", (folder / "hushed.toml").read_text()
    with Ledger(f"sqlite:///{file}", create=False) as ledger:
        ledger.backup(copy)
    cut_off(folder, postgres_url, monkeypatch, "leave_trail")
    file.unlink()
    with pytest.raises(ParameterError, match=r"hushed\.toml\.next names the new ledger"):
        restore_server(folder, copy, accept_loss=False)
    assert not file.exists()
    (folder / "hushed.toml.next").unlink()
    restore_server(folder, copy, accept_loss=False)
    assert (folder / "hushed.toml").read_text() == text
    for team in open_team(folder, tokens):
        assert team.ask(team.ana, "more").status_code == 201


def test_a_charge_by_hand_is_never_made_in_the_file_that_counts_no_more(
    tmp_path, postgres_url, monkeypatch
):
    """One that waits for the file until the move is committed is refused, as all later ones."""
    make_folder(tmp_path)
    folder, part = tmp_path / "stats", Guarantee(epsilon=0.01, neighbours="add-remove", unit="user")
    address, writing, refused = f"sqlite:///{folder / 'hushed.db'}", _moving.writing, []
    waits = Ledger(address, create=False)
    entry = waits.charge("stays", part, key="before")

    def charge_by_hand():
        for use in (
            lambda: waits.charge("stays", part),
            lambda: waits.keep_answer("stays", entry, "{}"),
            lambda: waits.open_budget("another", part),
        ):
            with pytest.raises(LedgerUnavailable, match="was moved and takes nothing more"):
                use()
            refused.append(use)
        words = ["charge", address, "stays", "--epsilon", "0.01"]
        assert CliRunner().invoke(app, ["ledger", *words]).exit_code != 0

    @contextmanager
    def write_and_look(ledger):
        with writing(ledger) as connection:
            yield connection
        if ledger._store.sqlite:  # committed, and nothing else is done yet
            charge_by_hand()

    with waits, monkeypatch.context() as raced:
        raced.setattr(_moving, "writing", write_and_look)
        kept = _moving.move_server(folder, postgres_url)
        charge_by_hand()
        assert waits.entries("stays")[-1].key == "before"  # it can still be read
    assert len(refused) == 6
    assert kept == str(folder / "hushed.db")
    with Ledger(address) as old, Ledger(postgres_url) as new:
        assert old.verify("stays") == new.verify("stays")
        assert new.charge("stays", part).number == entry.number + 1
