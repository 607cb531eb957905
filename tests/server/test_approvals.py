"""A costly request waits, uncharged, until a steward approves it who had no part in asking it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tests.server.conftest import QUERY, make_folder, open_team
from typer.testing import CliRunner

from hushed.cli import app
from hushed.client import connect
from hushed.errors import AwaitingApproval, Refusal
from hushed.ledger import Ledger
from hushed.ledger._rows import run
from hushed.server import _approving
from hushed.server._audit import telling
from hushed.server._desk import Desk
from hushed.server._judging import AskFunction
from hushed.server._people import MACHINE, take_share
from hushed.server._problems import Problem
from hushed.server._requests import NO_SHARE, find_request
from hushed.server._setup import invite, stop_tokens
from hushed.server._tokens import Scope, split_token
from hushed.server._verdicts import Verdicts


@pytest.fixture
def team(tmp_path):
    """Above epsilon 0.2 a steward is asked; ``sam`` and ``sue`` are stewards."""
    tokens = make_folder(tmp_path, stays="approve_above = 0.2")
    yield from open_team(tmp_path / "stats", tokens)


@pytest.fixture
def sue(team):
    return invite(team.folder, "sue", "steward", [], days=30, scope=Scope())


def decide(team, token, request, verb="approve", **rest):
    return team.send("POST", f"/v1/requests/{request}/{verb}", token, **rest)


def look_ahead(team, token, request):
    return team.send("GET", f"/v1/requests/{request}/outlook", token).json()["why_not"]


def state(team, request):
    return team.send("GET", f"/v1/requests/{request}", team.ana).json()["state"]


def actions(team):
    items = team.send("GET", "/v1/audit?most=1000", team.sam).json()["items"]
    return [(each["actor"], each["action"]) for each in items]


@pytest.mark.slow
def test_a_dear_request_is_charged_when_it_is_approved(team, sue):
    """Nothing before that; then one charge, in the asker's name, and an answer for the asker."""
    assert team.ask(team.ana, "cheap", epsilon=0.2).status_code == 201
    price = {"query": QUERY, "epsilon": 0.3}
    quoted = team.send("POST", "/v1/datasets/stays/quote", team.ana, json=price).json()
    assert quoted["needs_approval"] is True
    found = team.ask(team.ana, "dear", epsilon=0.3, note="for the report")
    made = found.json()
    assert (found.status_code, made["state"], made["entry"]) == (202, "pending", None)
    assert team.ask(team.ana, "dear", epsilon=0.3, note="for the report").json() == made
    refused = team.answer(team.ana, made["id"]).json()
    assert (refused["code"], "approval" in refused["detail"]) == ("not_ready", True)
    assert team.charges() == 1
    waiting = team.send("GET", "/v1/requests?state=pending", team.sam).json()["items"]
    assert [(each["asker"], each["note"]) for each in waiting] == [("ana", "for the report")]
    assert team.send("GET", "/v1/requests?state=pending", team.bo).json()["items"] == []
    approved = decide(team, team.sam, made["id"])
    assert (approved.status_code, approved.json()["decided_by"]) == (200, "sam")
    assert team.ask(team.ana, "dear", epsilon=0.3, note="for the report").status_code == 201
    assert team.answer(team.ana, made["id"]).status_code == 200
    assert team.answer(team.sam, made["id"]).status_code == 403
    entries = team.desk.ledger.entries("stays")
    assert [each.guarantee.epsilon for each in entries] == [0.2, 0.3]
    assert entries[1].key == made["id"]
    assert "ana" in entries[1].note
    assert len(team.desk.ledger.entries("stays/ana")) == 2
    assert decide(team, team.sam, made["id"]).json()["entry"] == 2  # sent again: the same
    assert decide(team, sue, made["id"]).json()["code"] == "not_pending"
    assert team.charges() == 2
    told = [each for each in actions(team) if each[1] in ("asked for approval", "approved")]
    assert told == [("ana", "asked for approval"), ("sam", "approved")]


@pytest.mark.slow
def test_nobody_approves_what_is_their_own(team, sue):
    """Neither who asked, nor the steward who made the token: that could be one person."""
    made = team.ask(team.ana, "dear", epsilon=0.3).json()["id"]
    assert decide(team, team.ana, made).json()["code"] == "forbidden"
    path = f"/v1/people/{team.person('ana')}/tokens"
    token = team.send("POST", path, team.sam, json={"days": 1}).json()["token"]
    posed = team.ask(token, "posed", epsilon=0.3).json()["id"]
    found = decide(team, team.sam, posed)
    assert (found.status_code, found.json()["code"]) == (403, "four_eyes")
    assert look_ahead(team, team.sam, posed) == found.json()["title"]
    assert state(team, posed) == "pending"
    narrow = f"/v1/people/{team.person('sue')}/tokens"
    other = team.send("POST", narrow, team.sam, json={"datasets": ["other"]}).json()["token"]
    assert decide(team, other, posed).status_code == 404
    assert team.charges() == 0
    assert decide(team, sue, posed).status_code == 200
    assert team.charges() == 1


@pytest.mark.slow
def test_a_steward_who_lets_a_second_one_in_is_not_two(team, sue):
    """Neither as the one who approves nor as the one who makes the token that asks."""

    def make_token(maker, name):
        path = f"/v1/people/{team.person(name)}/tokens"
        return team.send("POST", path, maker, json={}).json()["token"]

    posed = team.ask(make_token(team.sam, "ana"), "posed", epsilon=0.3).json()["id"]
    team.send("POST", "/v1/people", team.sam, json={"name": "sam2", "role": "steward"})
    second = make_token(team.sam, "sam2")
    assert decide(team, second, posed).json()["code"] == "four_eyes"
    team.send("POST", "/v1/people", second, json={"name": "sam3", "role": "steward"})
    third = make_token(second, "sam3")
    assert decide(team, third, posed).json()["code"] == "four_eyes"
    other = team.ask(make_token(third, "ana"), "other", epsilon=0.3).json()["id"]
    assert decide(team, team.sam, other).json()["code"] == "four_eyes"
    assert team.charges() == 0
    assert decide(team, sue, other).status_code == 200


@pytest.mark.slow
def test_what_was_taken_out_of_the_server_is_told_as_such(team, monkeypatch):
    """It is not the share of who asked that is gone; it waits on, and may be declined."""
    made = team.ask(team.ana, "dear", epsilon=0.3).json()["id"]
    away = team.desk.datasets.pop("stays")
    found = [decide(team, team.sam, made).json()]
    team.desk.datasets["stays"] = away
    gone = AskFunction(function="gone", epsilon=0.3)
    with monkeypatch.context() as patch:
        patch.setattr(_approving, "read_asked", lambda _: gone)
        found.append(decide(team, team.sam, made).json())
    for each in found:
        assert each["code"] == "conflict"
        assert "taken out of this server" in each["detail"]
    assert team.charges() == 0
    assert decide(team, team.sam, made).status_code == 200


@pytest.mark.slow
def test_of_many_who_decide_at_once_one_wins(team, sue):
    """Two stewards, and the asker who takes it back: one end, and at most one charge."""

    def act(number):
        if number % 4 == 3:
            return team.send("DELETE", f"/v1/requests/{made}", team.ana).status_code
        verb, body = ("approve", None) if number % 4 else ("decline", {"reason": "no"})
        token = sue if number % 2 else team.sam
        return decide(team, token, made, verb, json=body).status_code

    for round_ in range(2):  # both fit the share, if both are approved
        before = team.charges()
        made = team.ask(team.ana, f"dear {round_}", epsilon=0.21).json()["id"]
        with ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(act, range(round_, round_ + 8)))
        assert set(codes) <= {200, 204, 409}
        ended = state(team, made)
        assert ended in ("declined", "cancelled", "charged", "answered")
        charged = ended in ("charged", "answered")
        assert team.charges() - before == charged


@pytest.mark.slow
@pytest.mark.parametrize("same", [False, True], ids=["two stewards", "one steward twice"])
def test_of_two_clicks_at_the_same_moment_one_charges(team, sue, monkeypatch, same):
    """Both found it waiting. Somebody else is told that it waits no more; oneself, how it is."""
    made = team.ask(team.ana, "dear", epsilon=0.3).json()["id"]
    both, judge = Barrier(2, timeout=20), _approving.judge

    def judge_together(*args):
        found = judge(*args)
        both.wait()
        return found

    monkeypatch.setattr(_approving, "judge", judge_together)
    with ThreadPoolExecutor(2) as pool:
        tokens = [team.sam, team.sam if same else sue]
        found = list(pool.map(lambda token: decide(team, token, made), tokens))
    codes = sorted(each.status_code for each in found)
    assert codes == ([200, 200] if same else [200, 409])
    assert {each.json().get("code", "not_pending") for each in found} == {"not_pending"}
    assert team.charges() == 1


@pytest.mark.slow
def test_a_request_that_waits_is_taken_back_and_a_charge_is_not(team):
    made = team.ask(team.ana, "dear", epsilon=0.3).json()["id"]
    path = f"/v1/requests/{made}"
    assert team.send("DELETE", path, team.bo).status_code == 404
    assert team.send("DELETE", path, team.sam).status_code == 403
    for _ in range(2):
        assert team.send("DELETE", path, team.ana).status_code == 204
    assert team.ask(team.ana, "dear", epsilon=0.3).json()["state"] == "cancelled"
    assert decide(team, team.sam, made).json()["code"] == "not_pending"
    paid = team.ask(team.ana, "cheap").json()["id"]
    late = team.send("DELETE", f"/v1/requests/{paid}", team.ana)
    assert (late.status_code, late.json()["code"]) == (409, "not_pending")
    assert team.answer(team.ana, paid).status_code == 200
    assert team.charges() == 1


@pytest.mark.slow
def test_what_does_not_fit_any_more_goes_on_waiting(team):
    """The budget is checked when it is charged, and so is whether the asker still counts."""
    over = team.ask(team.ana, "over", epsilon=0.7)
    assert (over.status_code, over.json()["code"]) == (409, "quota_exceeded")
    first, second = (team.ask(team.ana, key, epsilon=0.5).json()["id"] for key in "ab")
    assert decide(team, team.sam, first).status_code == 200
    found = decide(team, team.sam, second)
    assert (found.status_code, found.json()["code"]) == (409, "quota_exceeded")
    other = team.ask(team.bo, "c", epsilon=0.55).json()["id"]
    told = decide(team, team.sam, other).json()
    assert told["code"] == "budget_exceeded"
    for each, why in ((second, "The share"), (other, told["title"]), (first, "for no approval")):
        assert why in look_ahead(team, team.sam, each)
    assert told["detail"] == "Asked was epsilon 0.55; left is epsilon 0.5."  # to a steward alone
    assert state(team, second) == "pending"
    cheaper = team.ask(team.bo, "d", epsilon=0.3).json()["id"]
    assert look_ahead(team, team.sam, cheaper) == ""
    assert team.send("GET", f"/v1/requests/{cheaper}/outlook", team.bo).status_code == 403
    away = f"/v1/people/{team.person('bo')}"
    team.send("PATCH", away, team.sam, json={"active": False})
    assert decide(team, team.sam, cheaper).json()["code"] == "not_pending"
    gone = team.send("GET", f"/v1/requests/{cheaper}", team.sam).json()
    assert (gone["state"], gone["decided_by"]) == ("declined", None)
    assert "was let out" in gone["reason"]
    assert ("server", "declined") in actions(team)
    assert team.charges() == 1


@pytest.mark.slow
@pytest.mark.parametrize("reserve", [True, False])
def test_a_share_that_changed_its_kind_is_charged_where_the_answer_stands(team, sue, reserve):
    """Asked of a cap and approved of a share that is set aside, and the other way round."""
    path = f"/v1/datasets/stays/quotas/{team.person('ana')}"

    def give(aside):
        size = 0.3 if aside else 0.4  # of the same size, what is set aside would stay so
        share = {"epsilon": size, "reserve": aside}
        assert team.send("PUT", path, team.sam, json=share).status_code == 200

    give(not reserve)
    made = team.ask(team.ana, "dear", epsilon=0.25).json()["id"]
    give(reserve)
    assert decide(team, sue, made).status_code == 200
    end = team.desk.queue.find(made)
    if end is not None:
        end.result(60)
    assert state(team, made) == "answered"
    found = find_request(team.desk.ledger, made)
    assert found.budget == (found.quota if reserve else "stays")
    assert team.answer(team.ana, made).status_code == 200
    assert team.desk.ledger.answer(found.budget, found.entry) is not None


@pytest.mark.slow
def test_few_may_wait_and_none_for_ever(team, monkeypatch):
    """Five of a person; after two weeks they end by themselves."""
    codes = [team.ask(team.ana, f"k{i}", epsilon=0.3).status_code for i in range(6)]
    assert codes == [202] * 5 + [429]
    assert team.ask(team.ana, "cheap").status_code == 201  # what waits keeps nothing else out
    made = team.ask(team.ana, "k0", epsilon=0.3).json()["id"]
    _approving.expire(team.desk)
    assert state(team, made) == "pending"
    monkeypatch.setattr(_approving, "DAYS", 0)
    _approving.expire(team.desk)
    assert state(team, made) == "expired"
    assert decide(team, team.sam, made).json()["code"] == "not_pending"
    assert actions(team).count(("server", "expired")) == 5
    assert team.charges() == 1


@pytest.mark.slow
def test_an_approved_request_survives_a_death(tmp_path, monkeypatch):
    """Dead right after the click: the next start answers, and one charge stays one."""
    tokens = make_folder(tmp_path, stays="approve_above = 0.2")
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        for team in open_team(tmp_path / "stats", tokens):
            made = team.ask(team.ana, "dear", epsilon=0.3).json()["id"]
            assert decide(team, team.sam, made).json()["state"] == "charged"
    for team in open_team(tmp_path / "stats", tokens):
        assert team.ask(team.ana, "dear", epsilon=0.3).status_code == 201
        assert team.charges() == 1


def client_of(team, token):
    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=dict(headers), content=body)
        return found.status_code, found.headers, found.content

    return connect("http://127.0.0.1:8642", token, send=send)


@pytest.mark.slow
def test_client_and_command_line_ask_wait_and_decide(team, tmp_path, monkeypatch):
    """The asker is told at once, and recovers the answer later; the steward needs no page."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ana, sam = client_of(team, team.ana), client_of(team, team.sam)
    monkeypatch.setattr("hushed.client.connect", lambda url: sam)
    asked = ana.table("stays").bound_contributions(max_rows_per_user=1).count()
    assert asked.quote(epsilon=0.3).needs_approval
    for key in ("yes", "no", "back"):
        with pytest.raises(AwaitingApproval, match="nothing is charged yet"):
            asked.release(epsilon=0.25, key=key, note="why")
    assert ana.recover() == []  # they wait, and are not forgotten
    back, no, yes = (each["id"] for each in sam.waiting())
    ana.cancel(back)

    def run(*words):
        return CliRunner().invoke(app, ["serve", *words, "--url", "http://127.0.0.1:8642"])

    listed = run("waiting")
    assert listed.exit_code == 0
    assert f"{yes}  ana asks stays for epsilon 0.25, delta 0: why" in listed.output
    assert back not in listed.output
    assert "hushed serve approve or decline" in " ".join(listed.output.split())
    assert run("approve", yes).exit_code == 0
    assert run("decline", no, "--reason", "ask for less").exit_code == 0
    assert run("decline", yes, "--reason", "too late").exit_code == 1
    for unknown in ("nothing", "00000000-0000-4000-8000-000000000000"):
        for words in (("approve", unknown), ("decline", unknown, "--reason", "none")):
            assert "hushed serve waiting" in " ".join(run(*words).stderr.split())
    with pytest.raises(Refusal, match="was declined: ask for less; nothing was charged"):
        asked.release(epsilon=0.25, key="no", note="why")
    answers = ana.recover()
    assert [each.request for each in answers] == [yes]
    assert ana.recover() == []
    assert team.charges() == 1


@pytest.mark.slow
def test_an_approval_that_finds_no_process_is_told_as_documented(team, monkeypatch):
    """The request goes on waiting, and nothing is charged."""
    made = team.ask(team.ana, "dear", epsilon=0.3).json()["id"]

    def refuse(*_):
        raise Problem("busy", wait=2)

    with monkeypatch.context() as busy:
        busy.setattr(type(team.desk.workers), "judge", refuse)
        team.desk.verdicts = Verdicts()  # that of who asked is forgotten by now
        found = decide(team, team.sam, made)  # `send` compares it with the document
        assert (found.status_code, found.json()["code"]) == (503, "busy")
    assert (state(team, made), team.charges()) == ("pending", 0)
    assert decide(team, team.sam, made).status_code == 200


def test_what_waited_in_an_older_copy_is_declined_with_its_token(team, tmp_path):
    made = team.ask(team.ana, "dear", epsilon=0.3).json()["id"]
    with Ledger(f"sqlite:///{team.folder}/hushed.db") as ledger:
        ledger.backup(tmp_path / "copy.db")
    stop_tokens(team.folder, "ana")
    team.desk.move_mark()
    team.desk.close()
    words = ["serve", "restore", str(tmp_path / "copy.db"), "--accept-loss"]
    done = CliRunner().invoke(app, [*words, "--folder", str(team.folder)])
    assert "declined: 1 that waited for approval" in " ".join(done.stderr.split())
    with Ledger(f"sqlite:///{team.folder}/hushed.db") as ledger:
        assert find_request(ledger, made).state == "declined"


def test_a_token_that_counts_no_more_is_named_before_budgets(team):
    """As one that was stopped by hand in the database is: nothing declined what waits."""
    made = team.ask(team.ana, "dear", epsilon=0.6).json()["id"]
    assert team.ask(team.ana, "one", epsilon=0.1).status_code == 201
    with telling(team.desk.ledger) as connection:
        run(connection, "UPDATE @.hushed_s_tokens SET revoked = made", {})
        statement = "UPDATE @.hushed_s_tokens SET revoked = NULL WHERE id = :id"
        run(connection, statement, {"id": split_token(team.sam)[0]})
    assert "token that it was asked with" in decide(team, team.sam, made).json()["detail"]


def test_what_waits_of_a_share_that_is_taken_away_is_declined(team):
    """In the transaction that takes it, with its reason; that of others waits on."""
    made, other = (team.ask(each, "dear", epsilon=0.3).json()["id"] for each in (team.ana, team.bo))
    take_share(team.desk.ledger, team.person("ana"), "stays", actor=MACHINE)
    found = team.send("GET", f"/v1/requests/{made}", team.ana).json()
    assert (found["state"], found["reason"]) == ("declined", NO_SHARE)
    assert actions(team)[-2:] == [(MACHINE, "took a share away"), ("server", "declined")]
    assert find_request(team.desk.ledger, other).state == "pending"
    assert decide(team, team.sam, made).json()["code"] == "not_pending"
    assert team.ask(team.ana, "cheap", epsilon=0.1).json()["code"] == "not_found"
    assert team.charges() == 0


def test_what_a_stopped_token_declines_is_counted(team):
    """At the machine: of a token, of a share, and of a person."""
    for place, more in enumerate((["--token", split_token(team.ana)[0]], ["--share", "stays"], [])):
        person = ("ana", "bo", "bo")[place]
        if place < 2:
            made = team.ask((team.ana, team.bo)[place], "dear", epsilon=0.3).json()
            assert made["state"] == "pending"
        words = ["serve", "revoke", person, *more, "--folder", str(team.folder)]
        done = CliRunner().invoke(app, words)
        assert ("declined, uncharged: 1 that waited for approval" in done.stderr) is (place < 2)
