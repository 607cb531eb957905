"""An answer that cannot be stored yet is stored later, however often that was tried."""

from __future__ import annotations

import time

from hushed.errors import LedgerUnavailable
from hushed.server import _life
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
