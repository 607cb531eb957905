"""Who cannot pay is told what is short, in words for whoever reads them."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace

import pytest

pytest.importorskip("fastapi")

from tests.server.conftest import CANARY, QUERY, make_folder, open_team
from tests.server.functions import copy_place, open_functions_team
from tests.server.test_functions import ask, client_of
from tests.server.test_pages import enter, price_of

from hushed import Guarantee
from hushed.ledger import Ledger, _together
from hushed.server import _people
from hushed.server._adding import confirm_dataset
from hushed.server._judging import Judged
from hushed.server._opening import open_own
from hushed.server._problems import CODES, Problem
from hushed.server._refusing import NO_GAMMA, say_short
from hushed.server._setup import check_server

pytestmark = pytest.mark.slow
POOR = Guarantee(epsilon=3.0, delta=0.01, neighbours="add-remove", unit="user")


@pytest.fixture
def team(tmp_path):
    yield from open_team(tmp_path / "stats", make_folder(tmp_path))


def take_gamma_away(place):
    """Let the data set have a budget without gamma."""
    with open_own(place / "stats")[1] as ledger:
        ledger.open_budget("poor", POOR)
    file = place / "stats" / "hushed.toml"
    file.write_text(file.read_text().replace('budget = "stays"', 'budget = "poor"'))
    confirm_dataset(place / "stats", "stays")


def test_a_function_whose_gamma_the_budget_lacks_is_told_as_closed(tmp_path, monkeypatch):
    """To everybody, before somebody tries; its share had a gamma of the budget before."""
    tokens = copy_place(tmp_path)
    take_gamma_away(tmp_path)
    said = "the budget of the data set allows less gamma than it costs"
    assert any(said in each for each in check_server(tmp_path / "stats").problems)
    for team in open_team(tmp_path / "stats", tokens):
        for token in (team.ana, team.sam):
            told = team.send("GET", "/v1/functions/mean_cost", token).json()
            assert (told["open"], said in told["closed"]) == (False, True)
        found = client_of(team, team.ana, monkeypatch, tmp_path).function("mean_cost")
        assert said in found.closed
        assert said in str(found._card())
        refused = ask(team, team.ana, "one").json()
        assert refused["code"] == "no_gamma"
        assert said in refused["detail"]
        assert (
            f"Cannot be asked: {said}"
            in enter(team, "sam", "steward").get("functions/mean_cost").text
        )


def test_a_function_whose_gamma_a_share_has_not_left_is_told_as_closed(tmp_path):
    """What is paid for goes on being released, and brings no more gamma."""
    for team in open_functions_team(tmp_path):
        assert ask(team, team.ana, "one", epsilon=0.01).status_code == 201
        (grant,) = [each for each in team.desk.ledger.budgets() if each.name == "stays/ana"]
        with_gamma = Guarantee(epsilon=0.01, gamma=0.5, neighbours="add-remove", unit="user")
        team.desk.ledger.charge(grant.name, with_gamma)
        told = {
            each["id"]: each for each in team.send("GET", "/v1/functions", team.ana).json()["items"]
        }
        assert told["mean_cost"]["open"]
        assert "costs gamma 0.1, and your share has 0.05 left" in told["talking"]["closed"]
        assert ask(team, team.ana, "two", name="talking").json()["code"] == "no_gamma"
        assert ask(team, team.ana, "three", epsilon=0.01).status_code == 201
        for each in team.send("GET", "/v1/functions", team.bo).json()["items"]:
            assert each["open"]  # what others have spent is not told


def test_an_estimate_that_was_paid_at_a_smaller_gamma_costs_the_rest(tmp_path):
    """Of a function that was sampled again under another gamma, for example."""
    for team in open_functions_team(tmp_path):
        ((name, gamma),) = team.desk.functions["mean_cost"].record.estimates
        paid = Guarantee(epsilon=0.01, gamma=0.02, neighbours="add-remove", unit="user")
        ledger, path = team.desk.ledger, "/v1/functions/mean_cost"
        ledger.charge("stays/ana", replace(paid, estimates=((name, 0.02),)))
        ledger.charge("stays/ana", replace(paid, gamma=0.55))
        assert team.send("GET", path, team.ana).json()["open"]  # 0.08 is left, which it costs
        ledger.charge("stays/ana", replace(paid, gamma=0.03))
        assert gamma == 0.1
        said = "it costs gamma 0.08, and your share has 0.05 left"
        assert team.send("GET", path, team.ana).json()["closed"] == said
        refused = ask(team, team.ana, "one").json()
        assert (refused["code"], said in refused["detail"]) == ("no_gamma", True)


def test_a_set_aside_share_without_gamma_is_told_as_closed(tmp_path):
    """Before somebody tries, and in the words of a refusal."""
    for team in open_functions_team(tmp_path):
        path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
        given = {"epsilon": 0.7, "reserve": True}
        assert team.send("PUT", path, team.sam, json=given).status_code == 200
        told = team.send("GET", "/v1/functions/mean_cost", team.ana).json()
        assert (told["open"], told["closed"]) == (False, NO_GAMMA)
        refused = ask(team, team.ana, "one").json()
        assert (refused["code"], NO_GAMMA in refused["detail"]) == ("no_gamma", True)
        assert team.send("GET", "/v1/functions/mean_cost", team.bo).json()["open"]


def test_a_price_names_the_part_that_is_short(team):
    """A share without delta lacks delta, and not the epsilon that it has."""
    body = {"query": QUERY, "epsilon": 0.1, "delta": 1e-6, "noise": "gaussian"}
    told = team.send("POST", "/v1/datasets/stays/quote", team.ana, json=body).json()
    assert not told["fits"]
    assert told["short"] == "delta 1e-06 is asked, and 0 is left"
    body |= {"epsilon": 0.9, "delta": 0.0, "noise": "laplace"}
    told = team.send("POST", "/v1/datasets/stays/quote", team.ana, json=body).json()
    assert told["short"] == "epsilon 0.9 is asked, and 0.6 is left"


def test_parts_that_are_short_are_told_apart(tmp_path):
    """Each of them has an "and" of its own."""
    asked = Guarantee(epsilon=4.0, delta=0.02, neighbours="add-remove", unit="user")
    with Ledger(f"sqlite:///{tmp_path}/budget.db") as ledger:
        ledger.open_budget("poor", POOR)
        said = say_short(ledger, "poor", Judged(guarantee=asked, loss=None))
    epsilon, delta = said.split("; ")
    assert epsilon == "epsilon 4 is asked, and 3 is left"
    assert delta.startswith("delta 0.02 is asked, and ")


def test_the_page_of_a_price_names_the_part_that_is_short(team):
    ana = enter(team, "ana")
    page = ana.price(0.1, noise="gaussian", delta="0.000001").text
    assert "This does not fit your share: delta 1e-06 is asked, and 0 is left." in page


def test_the_largest_epsilon_is_within_the_day_and_the_most_of_a_request(team):
    path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
    ana, sam = enter(team, "ana"), enter(team, "sam", "steward")
    words = "the largest epsilon that one request can have now is "
    assert f"{words}0.6." in ana.get("datasets").text
    given = {"epsilon": 0.6, "per_day": 0.25}
    assert team.send("PUT", path, team.sam, json=given).status_code == 200
    assert f"{words}0.25." in ana.get("datasets").text
    assert team.ask(team.ana, "one").status_code == 201
    assert f"{words}0.15." in ana.get("datasets/stays").text
    assert f"{words}0.9." in sam.get("datasets/stays").text
    team.desk.datasets["stays"].settings.__dict__["max_epsilon"] = 0.05
    assert f"{words}0.05." in ana.get("datasets/stays").text
    assert f"{words}0.05." in sam.get("datasets/stays").text


def test_whoever_approves_hears_of_the_share_of_who_asked(tmp_path):
    """A steward has no share: the words say whose it is, on pages and over the API."""
    tokens = make_folder(tmp_path, stays="approve_above = 0.2")
    for served in open_team(tmp_path / "stats", tokens):
        first, second = (
            served.ask(served.ana, key, epsilon=0.5).json()["id"] for key in ("one", "two")
        )
        sam = enter(served, "sam", "steward")
        seen = {"price": price_of(sam.get("approvals").text, second)}
        agree = "/v1/requests/{}/approve".format
        assert served.send("POST", agree(first), served.sam).status_code == 200
        refused = served.send("POST", agree(second), served.sam).json()
        said = "The share of who asked has no room for this. Nothing was charged."
        assert refused["title"] == said
        page = sam.post(f"requests/{second}/approve", seen).text
        assert said in page
        assert "our share" not in page


def test_no_refusal_speaks_to_a_steward_of_a_share_or_a_steward_of_theirs():
    about_steward = {"not_authenticated"}  # of a token that counts no more: who it was is not known
    for code in CODES:
        said = Problem(code, "your share has none").tell("steward").said.lower()
        assert "your share" not in said
        assert code in about_steward or "your steward" not in said
    assert "Your share" in Problem("quota_exceeded").tell("analyst").said


def test_the_log_names_what_kept_a_ledger_from_being_used(team, monkeypatch):
    """It may have passed before anybody looks: the class, the place and the code of the driver."""

    def fail(*_, **__):
        error = sqlite3.OperationalError(f"database is locked {CANARY}")
        error.sqlite_errorname = "SQLITE_BUSY_RECOVERY"
        raise error

    monkeypatch.setattr(_people, "fetch_one", fail)
    refused = team.send("GET", "/v1/me", team.ana)
    assert (refused.status_code, refused.json()["code"]) == (503, "ledger_unavailable")
    lines = [json.loads(line) for line in team.logged.getvalue().splitlines()]
    (told,) = [each for each in lines if each["event"] == "ledger unavailable"]
    assert told["called"] == "SQLITE_BUSY_RECOVERY"
    assert (told["error"], told["cause"]) == ("LedgerUnavailable", "OperationalError")
    assert re.fullmatch(r"\w+\.py:\d+", told["place"])
    assert CANARY not in team.logged.getvalue()


def test_a_full_disk_is_named_in_the_log_though_another_thread_wrote(team, monkeypatch):
    """A charge is written by one thread for many: each heard that the ledger cannot be used."""

    def fail(*_):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error

    team.ask(team.ana, "judged")
    monkeypatch.setattr(_together, "_append", fail)
    assert team.ask(team.ana, "one", wait=0).status_code == 503
    lines = [json.loads(each) for each in team.logged.getvalue().splitlines()]
    told = next(each for each in lines if each["event"] == "ledger unavailable")
    assert told["called"] == "SQLITE_FULL"
