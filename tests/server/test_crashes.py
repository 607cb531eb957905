"""A server that dies between its steps loses nothing, and pays nothing twice."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import replace
from unittest.mock import Mock

import pytest
from tests.server.conftest import QUERY, make_folder, open_team

from hushed import Guarantee
from hushed.client import connect
from hushed.client._pending import list_pending
from hushed.client._sending import Line, NotReached
from hushed.errors import (
    HushedError,
    KeyInUse,
    LedgerUnavailable,
    NotFound,
    Overspent,
    ParameterError,
    Refusal,
)
from hushed.server._adding import add_dataset, confirm_dataset
from hushed.server._callers import Callers
from hushed.server._desk import Desk
from hushed.server._life import fail_request, recover
from hushed.server._queue import FairQueue
from hushed.server._requests import find_request
from hushed.server._setup import make_server


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_is_ended_stays(team):
    """A second answer, of whoever is late, changes nothing."""
    from hushed.errors import DamagedLedger

    made = team.ask(team.ana, "one").json()["id"]
    first = team.answer(team.ana, made).content
    with pytest.raises(DamagedLedger):
        fail_request(team.desk, find_request(team.desk.ledger, made), "rows")
    assert team.answer(team.ana, made).content == first


def sender(team, fail=lambda method: False):
    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=dict(headers), content=body)
        if fail(method):
            raise NotReached
        return found.status_code, found.headers, found.content

    return send


@pytest.mark.slow
def test_the_client_asks_with_the_same_builder(team, tmp_path, monkeypatch):
    """Same methods, an answer with a certificate; refusals are errors of the library."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = connect("http://127.0.0.1:8642", team.ana, send=sender(team))
    asked = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    assert asked.quote(epsilon=0.1).fits
    answer = asked.release(epsilon=0.1)
    assert answer.entry == 1
    assert answer.envelope
    assert client.answer(answer.request) == answer
    for odd in ("", "1/../2", None):
        with pytest.raises(NotFound, match="no such request"):
            client.answer(odd)
    shown = repr(asked) + str(asked) + asked._repr_html_() + repr(answer)
    assert team.ana not in repr(client) + shown
    assert repr(asked).startswith("<Question to the data set stays: asked count, protected is one")
    assert str(asked.quote(epsilon=0.1)) in asked.quote(epsilon=0.1)._card().text
    with pytest.raises(Overspent, match=r"Asked was epsilon 0\.9; left is epsilon 0\.5"):
        asked.release(epsilon=0.9)
    with pytest.raises(NotFound, match="there is no data set 'stay' for you; yours: stays"):
        client.table("stay")
    with pytest.raises(NotFound, match="there is no function 'mean' for you; yours: none"):
        client.function("mean")
    with pytest.raises(HushedError, match=r"at most epsilon 1\.0, and this one costs epsilon 100"):
        asked.quote(epsilon=100.0)
    with pytest.raises(Refusal, match=r"expired, stopped, .* Ask your steward.* no whole token"):
        connect("http://127.0.0.1:8642", f"{team.ana[:-1]}x", send=sender(team))
    assert client.recover() == []
    assert asked.query.aggregates[0].kind == QUERY["aggregates"][0]["kind"]


@pytest.mark.slow
def test_a_release_waits_as_long_as_it_says(team, tmp_path, monkeypatch):
    """A timeout is a limit on what the server keeps it waiting, too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked_for = []

    def send(method, path, headers, body):
        if "prefer" in headers:
            asked_for.append(headers["prefer"])
        return sender(team)(method, path, headers, body)

    client = connect("http://127.0.0.1:8642", team.ana, send=send)
    asked = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        begun = time.monotonic()
        with pytest.raises(LedgerUnavailable, match="there is no answer yet"):
            asked.release(epsilon=0.1, timeout=1)
        assert time.monotonic() - begun < 5  # it was 20 s
    assert asked_for[0] == "wait=1"
    recover(team.desk)
    assert len(client.recover(timeout=60)) == 1
    assert asked_for[-1] == "wait=5"  # and then 20


def test_a_server_that_is_not_there_is_not_called_paid():
    """A wrong port, or another program there: nothing was asked under any key."""

    def refuse(method, path, headers, body):
        raise NotReached

    with pytest.raises(LedgerUnavailable) as gone:
        Line(send=refuse, token="t", pause=lambda _: None).read("/v1/me", "id")
    with pytest.raises(LedgerUnavailable) as other:
        connect("http://127.0.0.1:8642", "t", send=lambda *_: (200, {}, b"<html>"))
    for found in (gone.value.message, other.value.message):
        assert "pay" not in found
        assert "address" in found


@pytest.mark.slow
def test_a_client_that_is_cut_off_recovers_at_no_cost(team, tmp_path, monkeypatch):
    """The charge arrived and its answer did not: recover reads it, and pays nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = connect("http://127.0.0.1:8642", team.ana, send=sender(team))
    cut = connect(
        "http://127.0.0.1:8642", team.ana, send=sender(team, lambda method: method == "POST")
    )
    asked = cut.table("stays").bound_contributions(max_rows_per_user=1).count()
    with pytest.raises(LedgerUnavailable):
        asked.release(epsilon=0.1, timeout=1)
    assert team.charges() == 1
    assert len(client.recover()) == 1
    assert team.charges() == 1
    assert client.recover() == []


@pytest.mark.slow
def test_a_token_that_sees_no_such_data_set_forgets_nothing_that_is_paid(
    team, tmp_path, monkeypatch
):
    """The server cannot say what it may not show: another token of the same person reads it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    cut = connect(
        "http://127.0.0.1:8642", team.ana, send=sender(team, lambda method: method == "POST")
    )
    with pytest.raises(LedgerUnavailable):
        cut.table("stays").bound_contributions(max_rows_per_user=1).count().release(
            epsilon=0.1, timeout=1
        )
    made = team.send(
        "POST", f"/v1/people/{team.person('ana')}/tokens", team.sam, json={"datasets": ["others"]}
    )
    narrow = connect("http://127.0.0.1:8642", made.json()["token"], send=sender(team))
    assert narrow.recover() == []
    client = connect("http://127.0.0.1:8642", team.ana, send=sender(team))
    assert len(client.recover()) == 1
    assert team.charges() == 1


@pytest.mark.slow
def test_what_was_refused_as_unknown_is_not_asked_anew_by_recovering(team, tmp_path, monkeypatch):
    """Nobody asks for it now: it would be charged. Asked again under its key it is sent."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = connect("http://127.0.0.1:8642", team.ana, send=sender(team))
    asked = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    path = f"/v1/people/{team.person('ana')}/tokens"
    made = team.send("POST", path, team.sam, json={"datasets": ["others"]}).json()
    narrow = connect("http://127.0.0.1:8642", made["token"], send=sender(team))
    with monkeypatch.context() as stopped:
        stopped.setattr(type(client), "send", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            asked.release(epsilon=0.1, key="mine")
    (pending,) = list_pending(client.pending)
    with pytest.raises(NotFound):
        narrow.send(pending, 1.0)
    assert client.recover() == []
    assert team.charges() == 0
    assert len(list_pending(client.pending)) == 1
    asked.release(epsilon=0.1, key=pending.key)
    assert team.charges() == 1
    assert list_pending(client.pending) == []


@pytest.mark.slow
@pytest.mark.parametrize("narrowed", ["quote_only", "revoked", "busy"])
def test_what_the_server_has_refused_is_not_charged_by_recovering(
    team, tmp_path, monkeypatch, narrowed
):
    """Whoever was refused asks again by another token; the first question would be a second one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = f"/v1/people/{team.person('ana')}/tokens"
    made = team.send("POST", path, team.sam, json={"quote_only": narrowed == "quote_only"}).json()
    weak = connect("http://127.0.0.1:8642", made["token"], send=sender(team))
    asked = weak.table("stays").bound_contributions(max_rows_per_user=1).count()
    with monkeypatch.context() as full:
        if narrowed == "revoked":
            team.send("DELETE", f"/v1/tokens/{made['id']}", team.sam)
        if narrowed == "busy":
            full.setattr(Callers, "count", lambda *_: False)
        with pytest.raises(Refusal):
            asked.release(epsilon=0.1, timeout=1)
    client = connect("http://127.0.0.1:8642", team.ana, send=sender(team))
    assert client.recover() == []
    assert team.charges() == 0


@pytest.mark.slow
def test_an_attempt_that_reads_no_row_is_no_attempt(tmp_path, monkeypatch):
    """A data set that is away for long, as a disk, costs nobody an answer that is paid."""
    tokens = make_folder(tmp_path)
    source, away = tmp_path / "disk", tmp_path / "away"
    source.mkdir()
    (tmp_path / "stays.csv").rename(source / "stays.csv")
    file = tmp_path / "stats" / "hushed.toml"
    file.write_text(file.read_text().replace("../stays.csv", "../disk/stays.csv"))
    confirm_dataset(tmp_path / "stats", "stays")
    for team in open_team(tmp_path / "stats", tokens):
        with monkeypatch.context() as dead:
            dead.setattr(Desk, "start", lambda *_: None)
            made = team.ask(team.ana, "one", wait=0).json()["id"]
        source.rename(away)
        for _ in range(5):
            recover(team.desk)
            future = team.desk.queue.find(made)
            if future is not None:
                future.result(20)
        assert find_request(team.desk.ledger, made).state == "charged"
        away.rename(source)
        assert team.ask(team.ana, "one", wait=0).json()["id"] == made
        recover(team.desk)
        future = team.desk.queue.find(made)
        if future is not None:
            future.result(20)
        assert find_request(team.desk.ledger, made).state == "answered"


@pytest.mark.slow
def test_a_paid_request_is_found_without_a_share(team):
    """The share ended meanwhile; the same key gives the same request, and another one nothing."""
    made = team.ask(team.ana, "one").json()
    with sqlite3.connect(team.folder / "hushed.db") as database:
        database.execute("UPDATE hushed_s_grants SET ended = made")
    again = team.ask(team.ana, "one")
    assert (again.status_code, again.json()["id"]) == (201, made["id"])
    assert team.ask(team.ana, "two").status_code == 404
    assert team.charges() == 1


@pytest.mark.slow
def test_what_is_pending_is_not_overwritten_or_asked_later(team, tmp_path, monkeypatch):
    """A key of an unread answer is not lost to another question; a refusal leaves nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    address = "http://127.0.0.1:8642"
    client = connect(address, team.ana, send=sender(team))
    cut = connect(address, team.ana, send=sender(team, lambda method: method == "POST"))
    asked = cut.table("stays").bound_contributions(max_rows_per_user=1).count()
    with pytest.raises(LedgerUnavailable):
        asked.release(epsilon=0.1, key="mine", timeout=1)
    with pytest.raises(KeyInUse):
        asked.release(epsilon=0.2, key="mine")
    assert [each.entry for each in client.recover()] == [1]
    monkeypatch.setattr(FairQueue, "count", lambda *_: 10**6)
    whole = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    with pytest.raises(Refusal, match="Nothing was charged"):  # it is to be asked again after 5 s
        whole.release(epsilon=0.1, timeout=2)
    monkeypatch.undo()
    assert list_pending(client.pending) == []


@pytest.mark.slow
def test_a_signed_answer_to_another_question_is_none_to_this_one(team, tmp_path, monkeypatch):
    """Whoever is between both has no key, and may send what the server has signed before."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    honest, old = sender(team), []

    def replay(method, path, headers, body):
        found = honest(method, path, headers, body)
        return (*found[:2], old[0]) if method == "POST" and old else found

    client = connect("http://127.0.0.1:8642", team.ana, send=replay)
    asked = client.table("stays").bound_contributions(max_rows_per_user=1)
    first = asked.count().release(epsilon=0.1, key="first")
    old.append(json.dumps({"id": first.request, "state": "answered"}).encode())
    assert asked.count().release(epsilon=0.1, key="first").values == first.values
    for question, epsilon in ((asked.filter("cost > 3").count(), 0.1), (asked.count(), 0.2)):
        with pytest.raises(ParameterError, match="another question, another price"):
            question.release(epsilon=epsilon)
    with pytest.raises(ParameterError, match="another request"):  # the same one, asked again
        asked.count().release(epsilon=0.1, key="second")
    old.clear()
    assert sorted(each.entry for each in client.recover()) == [2, 3, 4]
    assert team.charges() == 4


@pytest.mark.slow
def test_a_signed_answer_that_is_sent_for_another_request_is_none(team, tmp_path, monkeypatch):
    """Also where it is read again by its id, and where only a type was changed on the way."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    honest, changed = sender(team), []

    def swap(method, path, headers, body):
        if changed and path.endswith(("/answer", "/certificate")):
            path = path.replace(two.request, one.request)
        status, told, found = honest(method, path, headers, body)
        if path.endswith("/answer") and len(changed) > 1:
            found = found.replace(b'"version": 1', b'"version": true')
        return status, told, found

    client = connect("http://127.0.0.1:8642", team.ana, send=swap)
    asked = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    one, two = (asked.release(epsilon=0.1, key=key) for key in ("one", "two"))
    assert client.answer(two.request).values == two.values
    changed.append("request")
    with pytest.raises(ParameterError, match="another request"):
        client.answer(two.request)
    changed.append("type")
    with pytest.raises(ParameterError, match="certificate is of another answer"):
        client.answer(one.request)


def test_making_a_server_leaves_nothing_behind_and_nothing_open(tmp_path):
    """A ledger that cannot be used leaves no half a server; the file of one is for its owner."""
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    with pytest.raises(ParameterError):
        make_server(folder, "bogus")
    assert list(folder.iterdir()) == []
    make_server(folder)
    assert {each.name for each in folder.iterdir() if each.stat().st_mode & 0o077} == {
        "server.key.pub"
    }


@pytest.mark.slow
def test_a_budget_that_is_there_is_not_called_another_one(tmp_path):
    """A limit is never changed, and so none is told that does not hold."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    file = folder / "hushed.toml"
    file.write_text(file.read_text().partition("[dataset")[0])
    told = {"source": str(tmp_path / "stays.csv"), "user": "patient"}
    limit = Guarantee(epsilon=0.5, neighbours="add-remove", unit="user")
    with pytest.raises(ParameterError, match=r"of epsilon 1\.0"):
        add_dataset(folder, "stays", told, limit)
    add_dataset(folder, "stays", told, replace(limit, epsilon=1.0))


@pytest.mark.slow
def test_a_limit_that_was_lowered_takes_no_paid_answer_away(tmp_path, monkeypatch):
    """It was paid under the limits of its time, and is answered after the next start."""
    tokens = make_folder(tmp_path)
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        for team in open_team(tmp_path / "stats", tokens):
            made = team.ask(team.ana, "one", wait=0).json()["id"]
    file = tmp_path / "stats" / "hushed.toml"
    lower = "max_epsilon_per_request = 0.05"
    file.write_text(file.read_text().replace("max_epsilon_per_request = 1.0", lower))
    for team in open_team(tmp_path / "stats", tokens):
        assert team.ask(team.ana, "two").json()["code"] == "bad_value"
        assert team.ask(team.ana, "one").json()["state"] == "answered"
        assert team.answer(team.ana, made).status_code == 200


@pytest.mark.slow
def test_a_page_of_the_network_is_no_answer(team, tmp_path, monkeypatch):
    """Whoever is asked to log in first gets an error of the library, and loses nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    send, pages = sender(team), []

    def login(method, *rest):
        return (200, {}, b"<html>") if pages and method == "POST" else send(method, *rest)

    client = connect("http://127.0.0.1:8642", team.ana, send=login)
    asked = client.table("stays").bound_contributions(max_rows_per_user=1).count()
    pages.append("log in")
    with pytest.raises(LedgerUnavailable, match="no server"):
        asked.release(epsilon=0.1)
    pages.clear()
    assert [each.entry for each in client.recover()] == [1]
    assert team.charges() == 1


@pytest.mark.parametrize(
    "found",
    [(302, b""), (200, b""), (204, b""), (200, b"[]"), (200, b'{"ok": true}'), (200, b"[" * 10**5)],
)
def test_what_is_no_server_is_told_as_none(found):
    """A wrong address: no KeyError, and the token is not sent on."""

    def send(method, path, headers, body):
        return found[0], {"location": "http://elsewhere.example"}, found[1]

    with pytest.raises(LedgerUnavailable):
        connect("http://127.0.0.1:8642", "token", send=send)


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_a_refusal_of_a_proxy_forgets_nothing(team, tmp_path, monkeypatch, status):
    """It was charged, the line broke, and what is between refuses the second sending."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sent = []

    def send(method, path, headers, body):
        if method == "POST" and sent:
            return status, {}, b"<html>"
        found = sender(team)(method, path, headers, body)
        if method == "POST":
            sent.append(path)
            raise NotReached
        return found

    client = connect("http://127.0.0.1:8642", team.ana, send=send)
    with pytest.raises(Refusal):
        client.table("stays").bound_contributions(max_rows_per_user=1).count().release(
            epsilon=0.1, timeout=1
        )
    sane = connect("http://127.0.0.1:8642", team.ana, send=sender(team))
    assert [each.entry for each in sane.recover()] == [1]
    assert team.charges() == 1
