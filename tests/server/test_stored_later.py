"""An answer that cannot be stored yet is stored later, however often that was tried."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from tests.server.conftest import make_folder, open_team
from tests.server.test_workers import wait_for

from hushed.errors import LedgerUnavailable
from hushed.server import _app, _life
from hushed.server._app import sweep
from hushed.server._requests import find_request


def test_an_answer_for_which_there_is_no_room_is_not_lost(team, monkeypatch):
    whole, tried = _life.insert_certificate, []

    def full(connection, request, body):
        tried.append(request)
        raise LedgerUnavailable("database or disk is full")

    monkeypatch.setattr(_life, "insert_certificate", full)
    made = team.ask(team.ana, "one", wait=0).json()
    ends = time.monotonic() + 120.0
    while len(tried) < 6 and time.monotonic() < ends:
        sweep(team.desk)
        time.sleep(0.1)
        if find_request(team.desk.ledger, made["id"]).state != "charged":
            break
    monkeypatch.setattr(_life, "insert_certificate", whole)
    sweep(team.desk)
    found = team.ask(team.ana, "one")
    assert (found.status_code, found.json()["state"]) == (201, "answered")
    assert len(tried) >= 6
    assert team.charges() == 1


def test_nor_is_it_where_the_server_is_started_again_and_again_meanwhile(tmp_path, monkeypatch):
    """As by somebody who looks for what is wrong; there is room for little, and not for this."""
    tokens, tried = make_folder(tmp_path), []

    def full(connection, request, body):
        tried.append(request)
        raise LedgerUnavailable("database or disk is full")

    with monkeypatch.context() as small:
        small.setattr(_life, "insert_certificate", full)
        for start in range(1, 6):
            for team in open_team(tmp_path / "stats", tokens):
                if start == 1:
                    team.ask(team.ana, "one", wait=0)
                wait_for(lambda start=start: len(tried) >= start)
    for team in open_team(tmp_path / "stats", tokens):
        found = team.ask(team.ana, "one")
        assert (found.status_code, found.json()["state"]) == (201, "answered")
        assert team.charges() == 1


def test_a_data_set_that_cannot_be_opened_keeps_no_other_one_from_it(team, monkeypatch):
    """Whatever it fails on; the log says where, and nothing of the error's text."""
    whole, known = _app.open_as_registered, team.desk.datasets["stays"]

    def fail(dataset, ledger):
        if dataset.id == "broken":
            raise KeyError("private")
        return whole(dataset, ledger)

    monkeypatch.setattr(_app, "open_as_registered", fail)
    monkeypatch.setattr(_app, "was_confirmed", lambda *_: False)
    away = replace(known, table=None, away=True, stale="away")
    team.desk.datasets = {"broken": replace(away, id="broken"), "stays": away}
    sweep(team.desk)
    assert not team.desk.datasets["stays"].stale
    lines = [json.loads(each) for each in team.logged.getvalue().splitlines()]
    failed = [each for each in lines if each["event"] == "sweep failed"][-1]
    assert (failed["dataset"], failed["error"]) == ("broken", "KeyError")
    assert failed["place"].startswith("test_stored_later.py:")
    assert "private" not in team.logged.getvalue()
