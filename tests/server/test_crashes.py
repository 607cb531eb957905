"""A server that dies between its steps loses nothing, and pays nothing twice."""

from __future__ import annotations

import pytest
from tests.server.conftest import QUERY, make_folder, open_team

from hushed.client import connect
from hushed.client._sending import NotReached
from hushed.errors import LedgerUnavailable, Overspent
from hushed.server._desk import Desk
from hushed.server._life import fail_request, recover
from hushed.server._requests import find_request


def test_a_charge_without_an_answer_is_answered_after_a_start(tmp_path, monkeypatch):
    """Dead after the charge: the next start answers, at no cost, and the same key reads it."""
    tokens = make_folder(tmp_path)
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        for team in open_team(tmp_path / "stats", tokens):
            made = team.ask(team.ana, "one", wait=0).json()
            assert made["state"] == "charged"
    for team in open_team(tmp_path / "stats", tokens):
        found = team.ask(team.ana, "one")
        assert (found.status_code, found.json()["id"]) == (201, made["id"])
        first = team.answer(team.ana, made["id"]).content
        assert team.charges() == 1
    for team in open_team(tmp_path / "stats", tokens):
        assert team.answer(team.ana, made["id"]).content == first
        assert recover(team.desk) == 0


def test_a_request_that_kills_the_server_is_given_up(tmp_path, monkeypatch):
    """Three attempts: then it has failed, and the charge stays."""
    tokens = make_folder(tmp_path)
    with monkeypatch.context() as dead:
        dead.setattr("hushed.server._life._run", lambda *_: None)
        for team in open_team(tmp_path / "stats", tokens):
            made = team.ask(team.ana, "one", wait=0).json()["id"]
            for _ in range(4):
                recover(team.desk)
                future = team.desk.queue.find(made)
                if future is not None:
                    future.result(20)
            assert find_request(team.desk.ledger, made).state == "failed"
            assert team.charges() == 1


def test_what_is_ended_stays(team):
    """A second answer, of whoever is late, changes nothing."""
    from hushed.errors import DamagedLedger

    made = team.ask(team.ana, "one").json()["id"]
    first = team.answer(team.ana, made).content
    with pytest.raises(DamagedLedger):
        fail_request(team.desk, find_request(team.desk.ledger, made))
    assert team.answer(team.ana, made).content == first


def sender(team, fail=lambda method: False):
    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=dict(headers), content=body)
        if fail(method):
            raise NotReached
        return found.status_code, found.headers, found.content

    return send


def test_the_client_asks_with_the_same_builder(team, tmp_path, monkeypatch):
    """Same methods, an answer with a certificate; refusals are errors of the library."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = connect("http://127.0.0.1:8642", team.ana, send=sender(team))
    asked = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    assert asked.quote(epsilon=0.1).fits
    answer = asked.release(epsilon=0.1)
    assert answer.entry == 1
    assert answer.certificate
    assert client.answer(answer.request) == answer
    assert team.ana not in repr(client)
    with pytest.raises(Overspent):
        asked.release(epsilon=0.9)
    assert client.recover() == []
    assert asked.query.aggregates[0].kind == QUERY["aggregates"][0]["kind"]


def test_a_client_that_is_cut_off_recovers_at_no_cost(team, tmp_path, monkeypatch):
    """The charge arrived and its answer did not: recover reads it, and pays nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = connect("http://127.0.0.1:8642", team.ana, send=sender(team))
    cut = connect(
        "http://127.0.0.1:8642", team.ana, send=sender(team, lambda method: method == "POST")
    )
    object.__setattr__(cut.line, "pause", lambda seconds: None)
    asked = cut.table("stays").bound_contributions(max_rows_per_user=1).count()
    with pytest.raises(LedgerUnavailable):
        asked.release(epsilon=0.1)
    assert team.charges() == 1
    assert len(client.recover()) == 1
    assert team.charges() == 1
    assert client.recover() == []
