"""Registered functions: priced and released as queries are, and nothing of them gets out."""

from __future__ import annotations

import json
import re
import time
import warnings
from base64 import b64decode
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi")

from tests.commands import ended
from tests.server.conftest import CANARY, open_team
from tests.server.functions import (
    TERMS,
    copy_place,
    open_functions_team,
    public_rows,
    register,
    sample,
)
from tests.server.test_pages import enter

import hushed as hs
from hushed._functions._loading import read_function
from hushed.client import ServedRelease, connect
from hushed.client._pending import Pending, list_pending, write_pending
from hushed.errors import (
    AwaitingApproval,
    EngineUnavailable,
    KeyInUse,
    Overspent,
    ParameterError,
    QueryFailed,
)
from hushed.populations import PublicTable
from hushed.server import _judging, _registering
from hushed.server._app import open_desk
from hushed.server._audit import telling
from hushed.server._config import DatasetSettings
from hushed.server._functions import Record, open_functions, register_function
from hushed.server._life import recover
from hushed.server._log import Log
from hushed.server._opening import open_own
from hushed.server._people import MACHINE
from hushed.server._processes import Processes
from hushed.server._registering import _check_order, check_wanted, remove_function
from hushed.server._requests import find_request
from hushed.server._runners import Runners
from hushed.server._sampled import judge_function, make_rows, release_function
from hushed.server._setup import check_server
from hushed.server._told import Told
from hushed.server._workers import Workers
from hushed.statements import open_signed

pytestmark = pytest.mark.slow


@pytest.fixture
def team(tmp_path):
    yield from open_functions_team(tmp_path)


def ask(team, token, key, name="mean_cost", wait=30, **terms):
    headers = {"Idempotency-Key": key} | ({"Prefer": f"wait={wait}"} if wait else {})
    body = {"epsilon": 0.1} | terms
    path = f"/v1/functions/{name}/requests"
    return team.send_until_answered(path, token, json=body, headers=headers)


def finish(team, request):
    """Wait for the end of a run, if there is one; the request."""
    end = team.desk.queue.find(request)
    if end is not None:
        end.result(120)
    return find_request(team.desk.ledger, request)


def client_of(team, token, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def send(method, path, headers, body):
        found = team.client.request(method, path, headers=headers, content=body)
        return found.status_code, found.headers, found.content

    return connect("http://127.0.0.1:8642", token, send=send)


def test_an_analyst_sees_prices_and_releases_a_function(team, tmp_path, monkeypatch):
    """From the list to a value whose certificate verifies; its words are there from the start."""
    client = client_of(team, team.ana, monkeypatch, tmp_path)
    listed = {each["id"]: each for each in client.functions()}
    told = listed["mean_cost"]
    assert len(listed) == 6
    assert (told["dataset"], told["gamma"], told["unit"]) == ("stays", 0.1, "user")
    assert "'public-fees.csv' of 3000 people" in told["population"]
    assert "guesses right" in told["outsider"]
    assert told["outsider"].startswith("At epsilon 0.5: ")
    assert (told["min_epsilon"], told["max_epsilon"]) == (0.01, 0.5)
    everything, kept = json.dumps(listed), ("fees.py", str(tmp_path), "sha256", '"sampled"')
    assert not [each for each in kept if each in everything]
    mean = client.function("mean_cost")
    quote = mean.quote(epsilon=0.25)
    # A mean of 61 costs in [0, 50] moves by 50/61 at most; ln(20) is 3.0: Laplace noise at 95 %.
    assert 40 / 61 * 3 / 0.25 < quote.errors["value"] < 50 / 61 * 3.1 / 0.25
    assert (quote.gamma, quote.fits, quote.epsilon) == (0.1, True, 0.25)
    back = mean.quote(error=quote.errors["value"])
    assert 0.2499 < back.epsilon <= 0.25
    assert back.errors["value"] <= quote.errors["value"]
    with pytest.raises(ParameterError, match="or the error that is wanted: one of them"):
        mean.quote(epsilon=0.25, error=1.0)
    with pytest.raises(ParameterError, match=r"epsilon 0\.5 at most"):
        mean.quote(error=1e-3)
    assert "gamma = 0.1" in quote.words
    assert "guesses right" in quote.outsider
    assert team.charges() == 0
    released = mean.release(epsilon=0.25, note="for the report")
    assert isinstance(released, ServedRelease)
    assert repr(released).startswith(f"<Release of {released.value!r}; laplace, epsilon 0.25")
    assert abs(released.value - 20.5) < 40  # 60 costs of 0 to 49, and one clipped to 50
    assert released.certificate.guarantee.gamma == 0.1
    assert "charge 1 of" in released.certificate.charged
    with warnings.catch_warnings():
        warnings.resetwarnings()  # as it was sampled
        f = read_function(f"{tmp_path / 'fees.py'}:mean_cost")
        public = PublicTable(public_rows(), name="public-fees.csv")
        verified = hs.verify(released.envelope, f, population=public, key=client.key, workers=1)
    assert verified.reproduced, verified.explain()
    (charge,) = team.desk.ledger.entries("stays")
    assert (charge.guarantee.epsilon, charge.guarantee.gamma) == (0.25, 0.1)
    assert charge.question == find_request(team.desk.ledger, released.request).question
    assert "for the report" in charge.note
    again = client.answer(released.request)
    assert (again.value, again.envelope) == (released.value, released.envelope)
    assert client.requests()[0]["function"] == "mean_cost"
    found = team.answer(team.ana, released.request, headers={"accept": "text/csv"})
    assert found.text == f'"value"\n{released.value!r}\n'


@pytest.mark.slow
def test_a_signed_release_of_another_function_is_none_of_this_one(team, tmp_path, monkeypatch):
    """Whoever is between both may send what was signed before; it is named in what is signed."""
    old = []

    def replay(method, path, headers, body):
        found = team.client.request(method, path, headers=headers, content=body)
        if method == "POST" and old:
            return 200, found.headers, old[0]
        return found.status_code, found.headers, found.content

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = connect("http://127.0.0.1:8642", team.ana, send=replay)
    mean = client.function("mean_cost").release(epsilon=0.1, key="mean")
    digest = team.desk.functions["mean_cost"].record.digest()
    assert f"registered function mean_cost: with digest {digest}" in str(
        open_signed(mean.envelope, client.key)
    )
    old.append(json.dumps({"id": mean.request, "state": "answered"}).encode())
    assert client.function("mean_cost").release(epsilon=0.1, key="mean").value == mean.value
    with pytest.raises(ParameterError, match="another question, another price"):
        client.function("talking").release(epsilon=0.1)
    old.clear()
    (again,) = client.recover()
    assert (again.entry, again.request == mean.request) == (2, False)
    old.append(json.dumps({"id": mean.request, "state": "answered"}).encode())
    later = replace(client.function("mean_cost"), record="0" * 64)  # registered since, by its name
    with pytest.raises(ParameterError, match="another question, another price"):
        later.release(epsilon=0.1)


def test_what_was_sampled_costs_its_gamma_once(team):
    """Epsilon adds up with queries in one budget; the gamma of one estimate is paid once."""
    for key in ("one", "two"):
        assert ask(team, team.ana, key).status_code == 201
    assert team.ask(team.ana, "query", epsilon=0.1).status_code == 201
    balance = team.desk.ledger.balance("stays")
    assert balance.entries == 3
    assert balance.gamma_used == pytest.approx(0.1 / 0.65)  # the share that is used
    assert sum(
        each.guarantee.epsilon for each in team.desk.ledger.entries("stays")
    ) == pytest.approx(0.3)
    assert ask(team, team.ana, "other", name="talking").status_code == 201
    assert team.desk.ledger.balance("stays").gamma_used == pytest.approx(0.2 / 0.65)
    share = team.send("GET", "/v1/me", team.ana).json()["shares"][0]
    assert share["gamma"] - share["gamma_left"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("failing", "rows"), ("eating", "rows"), ("leaving", "crash")],
)
def test_a_function_that_fails_on_private_rows_is_paid_and_tells_nothing(team, name, reason):
    """The charge stays, the words are those of every failure, and others go on."""
    made = ask(team, team.ana, "one", name=name, wait=0).json()
    assert finish(team, made["id"]).state == "failed"
    found = team.answer(team.ana, made["id"])
    assert found.json()["code"] == "failed"
    assert found.json()["title"] == "This failed after the charge, which stays."
    assert team.charges() == 1
    stored = team.desk.ledger.answer("stays", 1)
    seen = "\n".join([found.text, stored, team.logged.getvalue()])
    assert CANARY not in seen
    assert f'"reason": "{reason}"' in team.logged.getvalue()
    assert ask(team, team.bo, "two").status_code == 201


def test_a_function_that_hangs_is_ended(tmp_path):
    """After the time of a run and as much again its process is gone, and the charge stays."""
    for team in open_functions_team(tmp_path):
        team.desk.runners = Runners()
        try:
            asked = ask(team, team.ana, "one", name="hanging", wait=0)
            assert asked.status_code == 202, asked.text
            made = asked.json()["id"]
            assert finish(team, made).state == "failed"
            assert '"reason": "time"' in team.logged.getvalue()
            assert team.charges() == 1
        finally:
            team.desk.runners.processes.close()


def test_what_a_function_prints_reaches_nobody(team, capfd):
    """Not the answer, the log, the server's own output: CANARY is in the rows alone."""
    made = ask(team, team.ana, "one", name="talking").json()
    assert made["state"] == "answered"
    answer = team.answer(team.ana, made["id"]).text
    out, err = capfd.readouterr()
    assert CANARY not in "".join([answer, team.logged.getvalue(), out, err])


def test_a_function_whose_code_changed_is_refused_unpaid(team, tmp_path):
    """By its digest, while it is served and after a start; registering it again mends that."""
    code = tmp_path / "fees.py"
    code.write_text(code.read_text().replace("def mean_cost", "CHANGED = True\n\ndef mean_cost"))
    quote = team.send("POST", "/v1/functions/mean_cost/quote", team.ana, json={"epsilon": 0.1})
    for found in (quote, ask(team, team.ana, "one")):
        assert (found.status_code, found.json()["code"]) == (409, "function_changed")
    assert team.charges() == 0
    functions = open_functions(team.folder, team.desk.settings, team.desk.ledger)
    assert "was changed" in functions["mean_cost"].stale


def test_a_helper_that_changed_is_found_by_the_canary(tmp_path):
    """The file of the function is as it was, and what it imports is not: refused, unpaid."""
    tokens = copy_place(tmp_path)
    (tmp_path / "ways.py").write_text("HIGH = 50.0\n")
    code = tmp_path / "fees.py"
    code.write_text(
        code.read_text()
        + "\nimport ways\n\ndef helped(rows):\n"
        + '    return float(np.clip(rows["cost"], 0, ways.HIGH).sum()) / 61\n'
    )
    register(tmp_path, "helped")
    for team in open_team(tmp_path / "stats", tokens):
        assert ask(team, team.ana, "one", name="helped").status_code == 201
        (tmp_path / "ways.py").write_text("HIGH = 5000.0\n")
        found = ask(team, team.ana, "two", name="helped")
        assert (found.status_code, found.json()["code"]) == (409, "function_changed")
        assert team.charges() == 1


def test_a_charged_function_that_changed_waits_and_is_answered_when_it_is_back(
    team, tmp_path, monkeypatch
):
    """Between the charge and the rows: no row is read, no attempt lost, nothing more is paid."""
    code = tmp_path / "fees.py"
    before = code.read_text()
    taken = _judging._tell

    def spoil(desk, dataset, asked, do):
        if do == "run":
            code.write_text(before + "\n# changed\n")
        return taken(desk, dataset, asked, do)

    with monkeypatch.context() as patch:
        patch.setattr(_judging, "_tell", spoil)
        made = ask(team, team.ana, "one", wait=0).json()["id"]
        waits = finish(team, made)
    assert (waits.state, waits.attempts) == ("charged", 0)
    code.write_text(before)
    recover(team.desk)
    assert finish(team, made).state == "answered"
    assert team.charges() == 1


def test_the_same_key_is_paid_once(team, tmp_path, monkeypatch):
    """Sent again it is the same request; with another price or for a query it is refused."""
    first = ask(team, team.ana, "one").json()
    assert ask(team, team.ana, "one").json() == first
    assert ask(team, team.ana, "one", note="other").json() == first
    assert team.charges() == 1
    for found in (
        ask(team, team.ana, "one", epsilon=0.2),
        ask(team, team.ana, "one", name="failing"),
        team.ask(team.ana, "one"),
    ):
        assert (found.status_code, found.json()["code"]) == (422, "key_reused")
    client = client_of(team, team.ana, monkeypatch, tmp_path)
    with pytest.raises(KeyInUse):
        client.table("stays").bound_contributions(max_rows_per_user=1).count().release(
            epsilon=0.1, key="one"
        )
    assert team.charges() == 1


def test_over_the_budget_nothing_is_charged(team, tmp_path, monkeypatch):
    """Epsilon of a share, the least and the most of a release, and gamma of the data set."""
    client = client_of(team, team.ana, monkeypatch, tmp_path)
    mean = client.function("mean_cost")
    for epsilon in (0.5, 0.4):
        mean.release(epsilon=epsilon)
    with pytest.raises(Overspent, match="Your share"):
        mean.release(epsilon=0.2)
    for wrong, said in ((0.005, "0.01 or more"), (0.6, "0.5 at most")):
        with pytest.raises(ParameterError, match=said):
            mean.release(epsilon=wrong)
    with pytest.raises(ParameterError, match="delta"):
        mean.release(epsilon=0.1, delta=1e-6)
    assert team.charges() == 2
    assert client.recover() == []


def test_who_has_no_share_finds_no_function(team):
    """Other roles and other people: refused as for queries, and nothing is charged."""
    cy = team.send("POST", "/v1/people", team.sam, json={"name": "cy"}).json()["id"]
    path = f"/v1/people/{cy}/tokens"
    other = team.send("POST", path, team.sam, json={}).json()["token"]
    path = f"/v1/people/{team.person('ana')}/tokens"
    prices = team.send("POST", path, team.sam, json={"quote_only": True}).json()["token"]
    assert team.send("GET", "/v1/functions", other).json()["items"] == []
    for address in ("/v1/functions/mean_cost", "/v1/functions/none"):
        assert team.send("GET", address, other).json()["code"] == "not_found"
    quote = team.send("POST", "/v1/functions/mean_cost/quote", other, json={"epsilon": 0.1})
    assert quote.json()["code"] == "not_found"
    assert ask(team, other, "one").json()["code"] == "not_found"
    assert ask(team, team.sam, "one").json()["code"] == "forbidden"
    assert ask(team, prices, "one").json()["code"] == "forbidden"
    assert ask(team, None, "one").status_code == 401
    assert len(team.send("GET", "/v1/functions", prices).json()["items"]) == 6
    assert len(team.send("GET", "/v1/functions", team.sam).json()["items"]) == 6
    assert team.charges() == 0


@pytest.mark.parametrize(
    "more",
    [
        {"rows": [1, 2]},
        {"data": "x"},
        {"source": "/etc/passwd:x"},
        {"noise": "gaussian"},
        {"function": "failing"},
        {"columns": ["ward"]},
        {"epsilon": "0.1"},
        {"epsilon": float(10**6)},
        {"seed": 1},
    ],
)
def test_16_nothing_that_enters_a_function_is_chosen_by_an_analyst(team, more):
    """A body has a price and a note; whatever else it names is refused."""
    found = ask(team, team.ana, "one", **more)
    assert found.status_code == 422
    quote = {"epsilon": 0.1} | more
    found = team.send("POST", "/v1/functions/mean_cost/quote", team.ana, json=quote)
    assert found.status_code == 422
    assert team.charges() == 0


@pytest.mark.parametrize("name", ["..%2Fserver", "mean_cost.json", "fees.py", "%2e%2e", "MEAN"])
def test_16_a_name_reaches_no_file(team, name):
    found = team.send("GET", f"/v1/functions/{name}", team.ana)
    assert found.status_code == 404


def test_a_dear_release_waits_for_a_steward(tmp_path):
    """Four eyes as for a query: approved, it is charged to the asker and answered."""
    for team in open_functions_team(tmp_path, stays="approve_above = 0.2"):
        found = ask(team, team.ana, "one", epsilon=0.3)
        made = found.json()
        assert (found.status_code, made["state"], team.charges()) == (202, "pending", 0)
        waiting = team.send("GET", "/v1/requests?state=pending", team.sam).json()["items"]
        assert [(each["function"], each["query"]) for each in waiting] == [("mean_cost", None)]
        agreed = team.send("POST", f"/v1/requests/{made['id']}/approve", team.sam)
        assert agreed.json()["state"] == "charged"
        assert finish(team, made["id"]).state == "answered"
        assert team.answer(team.ana, made["id"]).json()["schema"] == "hushed release"
        assert team.charges() == 1


def test_a_release_that_waits_is_refused_to_the_steward_as_to_who_asks(tmp_path):
    """Its file was changed, or the share pays no gamma any more: in words, and as described."""
    for team in open_functions_team(tmp_path, stays="approve_above = 0.2"):
        made = ask(team, team.ana, "one", epsilon=0.3).json()["id"]
        code = (tmp_path / "fees.py").read_text()
        (tmp_path / "fees.py").write_text(code + "#")
        refused = team.send("POST", f"/v1/requests/{made}/approve", team.sam)
        assert (refused.status_code, refused.json()["code"]) == (409, "function_changed")
        (tmp_path / "fees.py").write_text(code)
        path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
        aside = {"epsilon": 0.5, "reserve": True}
        assert team.send("PUT", path, team.sam, json=aside).status_code == 200
        refused = team.send("POST", f"/v1/requests/{made}/approve", team.sam)
        assert (refused.status_code, refused.json()["code"]) == (409, "no_gamma")
        page = enter(team, "sam", "steward").get("approvals").text
        said = "the share of who asked has no gamma, as none that is set aside has: give a new cap "
        assert f"{said}of another size" in page
        for size, code in ((0.5, 409), (0.4, 200)):  # the same one changes nothing
            team.send("PUT", path, team.sam, json={"epsilon": size})
            approved = team.send("POST", f"/v1/requests/{made}/approve", team.sam)
            assert approved.status_code == code


def test_a_share_that_is_set_aside_pays_no_gamma(team, tmp_path, monkeypatch):
    """Gamma belongs to the data set: a share set aside has none, and asks no function."""
    path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
    given = team.send("PUT", path, team.sam, json={"epsilon": 0.5, "reserve": True})
    assert given.status_code == 200
    assert team.desk.ledger.balance("stays").gamma_used == 0
    refused = ask(team, team.ana, "one")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_gamma")
    assert "has no gamma" in refused.json()["detail"]
    price = "/v1/functions/mean_cost/quote"
    told = team.send("POST", price, team.ana, json={"epsilon": 0.1}).json()
    assert told["code"] == "no_gamma"
    for token, is_open in ((team.ana, False), (team.bo, True)):
        for each in team.send("GET", "/v1/functions", token).json()["items"]:
            assert (each["open"], "has no gamma" in each["closed"]) == (is_open, not is_open)
    with pytest.raises(Overspent, match="has no gamma"):
        client_of(team, team.ana, monkeypatch, tmp_path).function("mean_cost").release(epsilon=0.1)
    ana = enter(team, "ana")
    assert "your share has no gamma" in ana.get("functions/mean_cost").text
    assert "cannot be asked: your share has no gamma" in ana.get("datasets/stays").text
    assert team.ask(team.ana, "two").status_code == 201
    assert ask(team, team.bo, "three").status_code == 201


def test_a_release_is_readable_on_its_own_grid(tmp_path):
    """How long a function takes may depend on rows: its moments are farther apart."""
    tokens = copy_place(tmp_path)
    register(tmp_path, "mean_cost", terms={"answer_grid": 60.0}, replace=True)
    for team in open_team(tmp_path / "stats", tokens):
        made = ask(team, team.ana, "one", wait=0).json()["id"]
        done = finish(team, made)
        assert (done.state, done.shown_state()) == ("answered", "charged")
        charged, readable = map(datetime.fromisoformat, (done.charged_at, done.readable_at))
        assert (readable - charged) % timedelta(seconds=60) == timedelta(0)
        assert team.answer(team.ana, made).json()["code"] == "not_ready"


def test_a_release_does_not_tell_when_its_run_ended(team, monkeypatch):
    """Its certificate, and the one around it, tell the time of the charge, whatever rows took."""
    ask_process = type(team.desk.runners).answer

    def late(runners, told):
        time.sleep(1.1)  # so that the run begins and ends in another second
        return ask_process(runners, told)

    monkeypatch.setattr(type(team.desk.runners), "answer", late)
    made = ask(team, team.ana, "one").json()
    assert made["state"] == "answered"
    charged = made["charged_at"][: len("2026-01-01T00:00:00")]
    signed = team.send("GET", f"/v1/requests/{made['id']}/certificate", team.ana).json()
    texts = [team.answer(team.ana, made["id"]).text, b64decode(signed["payload"]).decode()]
    for text in texts:
        assert {*re.findall(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d", text)} == {charged}


def test_gaussian_noise_takes_a_delta(tmp_path, monkeypatch):
    """Its release costs epsilon and delta, of both budgets; without a delta it is refused."""
    monkeypatch.setattr(_registering, "_rehearse", lambda *_, **__: ("", []))
    tokens = copy_place(tmp_path)
    s = sample(tmp_path, "mean_cost", norm="l2")
    terms = {"noise": "gaussian"}
    register(tmp_path, "mean_cost", sensitivity=s, terms=terms, replace=True)
    for team in open_team(tmp_path / "stats", tokens):
        assert ask(team, team.ana, "none").json()["code"] == "bad_value"
        assert ask(team, team.ana, "much", delta=0.02).json()["code"] == "bad_value"
        found = ask(team, team.bo, "one", delta=0.001)
        assert (found.status_code, found.json()["code"]) == (409, "quota_exceeded")  # of delta 0
        given = {"epsilon": 0.5, "delta": 0.005}
        path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
        assert team.send("PUT", path, team.sam, json=given).status_code == 200
        made = ask(team, team.ana, "one", delta=0.001)
        assert (made.status_code, made.json()["noise"]) == (201, "gaussian")
        (charge,) = team.desk.ledger.entries("stays")
        assert (charge.guarantee.epsilon, charge.guarantee.delta) == (0.1, 0.001)


class TestRegistering:
    """What the person at the machine is refused, before anything is there."""

    @pytest.fixture
    def place(self, tmp_path):
        copy_place(tmp_path)
        return tmp_path

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ({}, "already"),
            ({"replace": True, "columns": ("patient", "fee")}, "no column"),
            ({"replace": True, "columns": ("patient", "ward")}, "of type string"),
            ({"replace": True, "columns": ("patient",)}, "2 columns"),
            ({"replace": True, "columns": ("cost",)}, "column of the people"),
            ({"replace": True, "columns": ("cost", "cost")}, "column of the people"),
            ({"replace": True, "columns": ("cost", "patient")}, "were sampled: 'patient', 'cost'"),
            ({"replace": True, "terms": {"noise": "gaussian"}}, "norm 'l2'"),
            ({"replace": True, "terms": {"min_epsilon": -1.0}}, "min_epsilon"),
        ],
    )
    def test_what_does_not_fit(self, place, more, said):
        before = (place / "stats/functions/mean_cost.json").read_bytes()
        with pytest.raises(ParameterError, match=said):
            register(place, "mean_cost", **more)
        assert (place / "stats/functions/mean_cost.json").read_bytes() == before
        assert not list((place / "stats/functions").glob("*.tried"))

    def test_more_gamma_than_the_budget_has(self, place):
        with pytest.raises(ParameterError, match=r"allows gamma 0\.65"):
            register(place, "mean_cost", sensitivity=sample(place, "mean_cost", 0.7), replace=True)

    def test_one_of_an_older_version_is_named(self, place, monkeypatch):
        """It says not which estimates its gamma is of: that a share has none left is not told."""
        monkeypatch.setattr(_registering, "_rehearse", lambda *_, **__: ("", []))
        assert not any("older version" in each for each in check_server(place / "stats").facts)
        file = place / "stats/functions/mean_cost.json"
        told = json.loads(file.read_text())
        del told["estimates"]
        file.write_text(json.dumps(told))
        with open_own(place / "stats")[1] as ledger, telling(ledger) as connection:
            register_function(connection, "mean_cost", Record.model_validate(told), MACHINE)
        (said,) = [each for each in check_server(place / "stats").facts if "older" in each]
        assert said.startswith("function mean_cost: can be asked")

    def test_a_record_that_was_written_by_hand_is_not_served(self, place):
        """The database knows what was registered: an edited price counts no more."""
        file = place / "stats/functions/mean_cost.json"
        file.write_text(file.read_text().replace('"max_epsilon": 0.5', '"max_epsilon": 9.0'))
        for team in open_team(place / "stats", copy_tokens(place)):
            found = ask(team, team.ana, "one")
            assert found.json()["code"] == "function_changed"
            assert team.send("GET", "/v1/functions", team.ana).json()["items"]
            assert team.charges() == 0


def copy_tokens(place: Path) -> dict[str, str]:
    from tests.server.functions import _made

    return dict(_made()[1])


def test_another_function_under_the_name_is_no_answer_to_what_was_charged(tmp_path, monkeypatch):
    """Charged, and replaced before the rows were read: it fails, and the charge stays."""
    tokens = copy_place(tmp_path)
    with monkeypatch.context() as dead:
        dead.setattr("hushed.server._desk.Desk.start", lambda *_: None)
        for team in open_team(tmp_path / "stats", tokens):
            made = ask(team, team.ana, "one", wait=0).json()["id"]
    code = tmp_path / "fees.py"
    code.write_text(code.read_text().replace("0, 50).sum()", "0, 40).sum()"))
    register(tmp_path, "mean_cost", replace=True)
    for team in open_team(tmp_path / "stats", tokens):
        recover(team.desk)
        assert finish(team, made).state == "failed"
        assert team.answer(team.ana, made).json()["code"] == "failed"
        assert team.charges() == 1
        assert ask(team, team.ana, "two").status_code == 201


def test_what_was_charged_is_for_the_function_that_was_looked_at(tmp_path, monkeypatch):
    """With other columns, or words, it was released for the charge, and the client refused it."""
    tokens = copy_place(tmp_path)
    with monkeypatch.context() as dead:
        dead.setattr("hushed.server._desk.Desk.start", lambda *_: None)
        for team in open_team(tmp_path / "stats", tokens):
            record = team.send("GET", "/v1/functions", team.ana).json()["items"]
            (record,) = [each["record"] for each in record if each["id"] == "mean_cost"]
            made = ask(team, team.ana, "one", wait=0, record=record).json()["id"]
    register(tmp_path, "mean_cost", terms={"says": "Something else."}, replace=True)
    for team in open_team(tmp_path / "stats", tokens):
        recover(team.desk)
        assert finish(team, made).state == "failed"
        client = client_of(team, team.ana, monkeypatch, tmp_path)
        body = {"epsilon": 0.1, "delta": 0.0, "note": "", "record": record}
        kept = Pending(key="one", dataset="stays", body=body, function="mean_cost")
        write_pending(client.pending, kept)
        with pytest.raises(QueryFailed):
            client.send(kept, 20)
        assert list_pending(client.pending) == []
        assert team.charges() == 1


@pytest.mark.slow
def test_who_looked_at_another_function_of_the_name_pays_for_none(tmp_path, monkeypatch):
    """Its words and its gamma may be others: it was released and paid without a word."""
    tokens = copy_place(tmp_path, settings="answer_grid = 0.0", stays="approve_above = 0.2")
    for team in open_team(tmp_path / "stats", tokens):
        looked = client_of(team, team.ana, monkeypatch, tmp_path).function("mean_cost")
        paid = looked.release(epsilon=0.1, key="paid")
        with pytest.raises(AwaitingApproval):
            looked.release(epsilon=0.3, key="waits")
        waits = next(each["id"] for each in looked.client.requests() if each["state"] == "pending")
    register(tmp_path, "mean_cost", terms={"says": "Something else."}, replace=True)
    for team in open_team(tmp_path / "stats", tokens):
        client = client_of(team, team.ana, monkeypatch, tmp_path)
        old = replace(looked, client=client)
        with pytest.raises(EngineUnavailable, match="registered again"):
            old.release(epsilon=0.1, key="new")
        approved = team.send("POST", f"/v1/requests/{waits}/approve", team.sam)
        assert approved.json()["code"] == "function_changed"
        assert team.charges() == 1
        assert old.release(epsilon=0.1, key="paid").value == paid.value  # it was paid before
        now = client.function("mean_cost")
        with pytest.raises(KeyInUse):  # another function
            now.release(epsilon=0.1, key="paid")
        assert ask(team, team.ana, "paid").json()["state"] == "answered"  # of an older client
        assert ask(team, team.ana, "two").status_code == 201
        assert now.release(epsilon=0.1, key="two").entry == 2
        assert team.charges() == 2


def test_a_process_that_has_loaded_a_function_does_nothing_else(team):
    """Neither the one that judges nor the one that reads: each is ended with its answer."""
    judging, reading = Workers(1), Runners()
    team.desk.workers, team.desk.runners = judging, reading
    try:
        seen = []
        taken = Processes._take

        def see(self, **new):
            seen.append(taken(self, **new))
            return seen[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Processes, "_take", see)
            patch.setattr(Processes, "warm", lambda _: None)
            assert ask(team, team.ana, "one").status_code == 201
            price = {"epsilon": 0.1}
            team.send("POST", "/v1/functions/mean_cost/quote", team.ana, json=price)
        assert [each.asked for each in seen] == [1, 1, 1]
        assert not [each for each in seen if each.is_alive()]
    finally:
        judging.processes.close()
        reading.processes.close()


def test_functions_on_the_pages(team):
    """Listed on the data set's page, priced, paid once, and read; a steward sees what was asked."""
    ana, sam = enter(team, "ana"), enter(team, "sam", "steward")
    assert "/pages/functions/mean_cost" in ana.get("datasets/stays").text
    page = ana.get("functions/mean_cost").text
    assert "Mean cost of a stay." in page
    assert "guesses right" in page
    assert ana.post("functions/mean_cost/price", {"epsilon": "a lot"}).status_code == 422
    assert "0.5 at most" in ana.post("functions/mean_cost/price", {"epsilon": "0.7"}).text
    both = ana.post("functions/mean_cost/price", {"epsilon": "0.25", "error": "8"})
    assert (both.status_code, "or the error: one of them" in both.text) == (422, True)
    assert "0.5 at most" in ana.post("functions/mean_cost/price", {"error": "0.001"}).text
    by_error = ana.post("functions/mean_cost/price", {"error": "20"}).text
    assert 0.05 < float(re.search(r'name="epsilon" value="([^"]+)"', by_error)[1]) < 0.2
    priced = ana.post("functions/mean_cost/price", {"epsilon": "0.25"}).text
    told = dict(re.findall(r'name="(key|epsilon|delta)" value="([^"]*)"', priced))
    assert team.charges() == 0
    for _ in range(2):
        paid = ana.post("functions/mean_cost/requests", told | {"note": "for the report"})
        assert paid.status_code == 200
    request = str(paid.url).rpartition("/")[2]
    assert finish(team, request).state == "answered"
    assert team.charges() == 1
    shown = ana.get(f"requests/{request}").text
    assert "Release of mean_cost" in shown
    assert "What is promised" in shown
    value = json.loads(team.answer(team.ana, request).text)["value"]
    assert f"{value:.6g}" in shown
    for kind, begins in (("csv", '"value"'), ("json", "{"), ("certificate", "{"), ("page", "<!")):
        assert ana.get(f"requests/{request}/files/{kind}").text.startswith(begins)
    assert "Release of mean_cost" in sam.get("requests").text
    assert sam.post("functions/mean_cost/requests", told).status_code == 403
    assert team.charges() == 1


def test_a_dear_release_on_the_page_of_approvals(tmp_path):
    """A steward sees which function, its error and what it does to the budgets, and approves."""
    for team in open_functions_team(tmp_path, stays="approve_above = 0.2"):
        made = ask(team, team.ana, "one", epsilon=0.3).json()["id"]
        sam = enter(team, "sam", "steward")
        page = sam.get("approvals").text
        assert "ana: Release of mean_cost" in page
        assert "in 95 % of draws" in page
        price = re.search(r'name="price" value="([^"]+)"', page)[1]
        assert sam.post(f"requests/{made}/approve", {"price": price}).status_code == 200
        assert finish(team, made).state == "answered"
        assert team.charges() == 1


def test_the_command_offers_what_can_be_used_there(tmp_path):
    """Rows are added or removed: neighbours are not asked for, and blocks are of no use."""
    done = ended("serve", "add-function", "--help", cwd=tmp_path)
    assert "--promise" in done.stdout
    assert "--block-rows" not in done.stdout
    assert "--neighbours" not in done.stdout
    assert "--block-rows" in ended("sensitivity", "--help", cwd=tmp_path).stdout


def test_people_in_an_array_are_found_by_the_columns_that_are_named(tmp_path):
    """No name of a data set's column of people was one of an array: it could not be registered."""
    copy_place(tmp_path)
    (tmp_path / "arrays.py").write_text(
        "import numpy as np\n\n\ndef people(rng, count):\n"
        "    who = np.repeat(np.arange(count), 2)\n"
        "    return np.column_stack([who, rng.uniform(0, 50, 2 * count)])\n\n\n"
        "def fees(rows):\n    return np.clip(rows[:, 1], 0, 50).sum() / 100\n"
    )
    words = ["serve", "add-function", "fees", "stays", "arrays.py:fees", "--symmetric", "--json"]
    words += ["--population", "arrays.py:people", "--rows", "61", "--gamma", "0.1"]
    words += ["--folder", "stats"]
    refused = ended(*words, cwd=tmp_path)
    assert refused.returncode == 2
    for said in ("by the column 'patient'", "by --column", "--frame pandas"):
        assert said in refused.stderr
    with warnings.catch_warnings():
        warnings.resetwarnings()  # tests alone make them errors
        found = ended(*words, "--column", "patient", "--column", "cost", cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        told = json.loads(found.stdout)
        assert 0 < told["sensitivity"] <= 1
        assert told["fails_on_missing"] == ["cost"]
        checked = ended("serve", "check", "--folder", "stats", cwd=tmp_path)
        assert "a cell of 'cost' that is missing makes it fail" in checked.stdout


@pytest.mark.slow
def test_a_function_that_never_ends_on_a_missing_cell_is_registered_and_told(tmp_path):
    """The trial ended its process, and the function was called too slow, with no word of a cell."""
    copy_place(tmp_path)
    with open(tmp_path / "fees.py", "a", encoding="utf-8") as file:
        file.write(
            "\ndef endless(rows):\n    total = rows['cost'].to_numpy().clip(0, 50).sum() / 61\n"
            "    while not abs(total) < 1e9:\n        pass\n    return total\n"
        )
    source, s = f"{tmp_path / 'fees.py'}:endless", sample(tmp_path, "endless")
    columns = ("patient", "cost")
    _, failing = _registering.add_function(
        tmp_path / "stats", "endless", "stays", source, s, columns, TERMS
    )
    assert failing == ["cost"]


def test_the_command_samples_tries_and_registers(tmp_path):
    """From the command to a function that `check` finds, and that is found to have changed."""
    copy_place(tmp_path)
    public_rows().to_csv(tmp_path / "public.csv", index=False)
    words = ["serve", "add-function", "trimmed", "stays", "fees.py:mean_cost"]
    words += ["--population", "public.csv", "--frame", "pandas", "--rows", "61", "--gamma", "0.1"]
    words += ["--symmetric", "--says", "A mean.", "--folder", "stats", "--json"]
    with warnings.catch_warnings():
        warnings.resetwarnings()  # tests alone make them errors
        found = ended(*words, cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        told = json.loads(found.stdout)
        assert (told["function"], told["gamma"]) == ("trimmed", 0.1)
        assert 0 < told["sensitivity"] <= 50 / 61
        assert told["rows"] == [61]
        again = ended(*words, cwd=tmp_path)
        assert (again.returncode, "--replace" in again.stderr) == (2, True)
        private = ended(*words[:6], "stays.csv", *words[7:], "--replace", cwd=tmp_path)
        assert (private.returncode, "private rows" in private.stderr) == (1, True)
    checked = ended("serve", "check", "--folder", "stats", cwd=tmp_path)
    said = "its promise is for a table of 61 people, or of one more or less"
    assert f"function trimmed: can be asked, of stays; {said}" in checked.stdout
    code = tmp_path / "fees.py"
    code.write_text(code.read_text() + "\n")
    checked = ended("serve", "check", "--folder", "stats", cwd=tmp_path)
    assert checked.returncode == 1
    assert "function trimmed: its file, or what was sampled, was changed" in checked.stderr
    removing = ("serve", "remove-function", "trimmed", "--folder", "stats")
    assert ended(*removing, cwd=tmp_path).returncode == 0
    assert not list((tmp_path / "stats" / "functions").glob("trimmed*"))
    checked = ended("serve", "check", "--folder", "stats", cwd=tmp_path)
    assert "trimmed" not in checked.stdout + checked.stderr
    again = ended(*removing, cwd=tmp_path)
    assert (again.returncode, "there is no function 'trimmed'" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"columns": ()}, "by --column, in their order, 'patient' of the people among them"),
        ({"columns": ("patient", "fee")}, "the table has no column 'fee'"),
        ({"columns": ("cost",)}, "needs the column of the people, 'patient'"),
        ({"gamma": 0.7}, r"allows gamma 0\.65"),
        ({"noise": "gaussian"}, "max_delta of the data set is 0"),
        ({"name": "mean_cost"}, "already: --replace"),
        ({"name": "mean cost"}, "a name of letters"),
    ],
)
def test_what_needs_no_sample_is_refused_before_one_is_drawn(place_without_delta, more, said):
    wanted = {"name": "new", "columns": ("patient", "cost"), "gamma": 0.1, "noise": "laplace"}

    def check(*, name, columns, gamma, noise):
        terms, place = {"noise": noise}, place_without_delta / "stats"
        more = {"gamma": gamma, "symmetric": True, "replace": False}
        check_wanted(place, name, "stays", columns, terms, **more)

    check(**wanted)
    with pytest.raises(ParameterError, match=said):
        check(**wanted | more)


@pytest.fixture
def place_without_delta(tmp_path):
    copy_place(tmp_path)
    file = tmp_path / "stats" / "hushed.toml"
    file.write_text(file.read_text().replace("max_delta = 0.01", "max_delta = 0.0"))
    return tmp_path


def test_the_command_samples_nothing_that_cannot_be_registered(tmp_path):
    """To sample may take hours: the function is not called."""
    copy_place(tmp_path)
    public_rows().to_csv(tmp_path / "public.csv", index=False)
    code = "from pathlib import Path\ndef f(rows):\n    Path('called').touch()\n    return 0.0\n"
    (tmp_path / "slow.py").write_text(code)
    words = ["serve", "add-function", "slow", "stays", "slow.py:f", "--population", "public.csv"]
    words += ["--rows", "61", "--gamma", "0.1", "--symmetric", "--folder", "stats"]
    found = ended(*words, "--column", "patient", "--column", "fee", cwd=tmp_path)
    assert (found.returncode, "the table has no column 'fee'" in found.stderr) == (2, True)
    assert not (tmp_path / "called").exists()


def test_a_steward_and_who_asks_are_told_for_how_many_people_it_is_promised(tmp_path, monkeypatch):
    """No release is refused for its number of people: the words alone say what it is for."""
    monkeypatch.setattr(_registering, "_rehearse", lambda *_, **__: ("", []))
    for team in open_functions_team(tmp_path):
        said = "its promise is for a table of 61 people, or of one more or less"
        assert (
            f"function talking: can be asked, of stays; {said}" in check_server(team.folder).facts
        )
        found = client_of(team, team.ana, monkeypatch, tmp_path).function("talking")
        assert (found.rows, "promised for tables of" in str(found._card())) == ((61,), True)
        assert (
            "a table of 61 people, or of one more or less"
            in enter(team, "ana").get("functions/talking").text
        )


def test_what_was_paid_is_read_after_the_function_was_taken_away(tmp_path, monkeypatch):
    """The key of a release is that of this release, whatever its name stands for by now."""
    tokens = copy_place(tmp_path)
    for team in open_team(tmp_path / "stats", tokens):
        made = ask(team, team.ana, "one").json()["id"]
        client = client_of(team, team.ana, monkeypatch, tmp_path)
        body = {"epsilon": 0.1, "delta": 0.0, "note": ""}
        pending = Pending(key="one", dataset="stays", body=body, function="mean_cost")
        write_pending(client.pending, pending)  # as if its answer had not arrived
    remove_function(tmp_path / "stats", "mean_cost")
    for team in open_team(tmp_path / "stats", tokens):
        again = ask(team, team.ana, "one")
        assert (again.status_code, again.json()["id"]) == (201, made)
        assert ask(team, team.ana, "one", epsilon=0.2).json()["code"] == "key_reused"
        assert ask(team, team.ana, "two").json()["code"] == "not_found"
        client = client_of(team, team.ana, monkeypatch, tmp_path)
        assert [each.request for each in client.recover()] == [made]
        assert team.charges() == 1


def test_a_web_process_has_the_functions_of_its_keeper(team, tmp_path, monkeypatch):
    """One that was registered again meanwhile is refused there, for the keeper has another one."""
    told = Told.read(Told.of(team.desk).write())
    monkeypatch.setattr(_registering, "_rehearse", lambda *_, **__: ("", []))
    register(tmp_path, "failing", terms={"max_epsilon": 0.4}, replace=True)
    desk = open_desk(team.folder, Log(team.logged), team.desk.workers, team.desk.runners, told)
    try:
        assert "start it again" in desk.functions["failing"].stale
        assert desk.functions["mean_cost"].stale == ""
    finally:
        desk.ledger.close()


def sample_people(population):
    """Sample a sum of the second column, of people whom the first one names."""
    return hs.sample_sensitivity(
        lambda rows: rows[:, 1].sum(),
        population,
        rows=20,
        user=0,
        gamma=0.5,
        neighbours="add-remove",
        symmetric=True,
        workers=1,
    )


def test_people_are_found_in_the_column_that_was_sampled():
    """In another one, values of the rows would be people, and one person many of them."""
    sensitivity = sample_people(PublicTable(public_rows().to_numpy()))
    found = DatasetSettings(source="rows.csv", budget="rows", user="patient")
    layout = sensitivity.sampling.layout
    _check_order(sensitivity, layout, ("patient", "cost"), found)
    with pytest.raises(ParameterError, match="people were sampled by another column"):
        _check_order(sensitivity, layout, ("cost", "patient"), found)


def test_a_function_knows_no_other_column_of_people(team, tmp_path):
    """The data set names people by another column since it was registered; nothing is charged."""
    told = {
        "function": team.desk.functions["mean_cost"].told(),
        "source": {"user": "family"},
        "asked": {"epsilon": 0.1, "delta": 0.0},
        "do": "check",
        "aloud": True,
    }
    refused = judge_function(team.desk.datasets["stays"].table, told)
    assert refused["problem"] == "function_changed"
    assert "another column" in refused["detail"]
    assert release_function(None, told) == {"problem": "function_changed"}


def test_no_two_people_round_to_one():
    """Their numbers may be above 2**53, where doubles have gaps."""

    def draw(rng, count):
        return np.column_stack([np.repeat(np.arange(count), 2), rng.uniform(size=2 * count)])

    sensitivity = sample_people(hs.populations.Simulator(draw))
    rows = make_rows({"who": [2**60, 2**60 + 1, 2**60], "cost": [1.0, None, 3]}, sensitivity)
    assert np.array_equal(rows, [[0, 1], [1, np.nan], [0, 3]], equal_nan=True)
