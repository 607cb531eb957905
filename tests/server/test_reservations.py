"""Shares that are set aside: charged to the data set when they are given, and to nobody after."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.server.conftest import make_folder, open_team

from hushed import Guarantee
from hushed.errors import Overspent
from hushed.ledger._together import reading
from hushed.server import _giving
from hushed.server._adding import confirm_dataset
from hushed.server._audit import verify_trail
from hushed.server._config import FILE
from hushed.server._desk import Desk
from hushed.server._giving import set_quota
from hushed.server._life import recover
from hushed.server._people import list_shares
from hushed.server._schema import fetch_all
from hushed.server._setup import invite
from hushed.server._tokens import Scope
from hushed.statements import open_signed, public_key

pytestmark = pytest.mark.slow


def give(team, name, epsilon, reserve=True):
    path = f"/v1/datasets/stays/quotas/{team.person(name)}"
    body = {"epsilon": epsilon, "reserve": reserve}
    return team.send("PUT", path, team.sam, json=body)


def used(team):
    return team.desk.ledger.balance("stays").used


def test_5_what_is_set_aside_is_there_when_all_else_is_spent(team):
    """One spends everything that is left; the other one's share still answers, to its end."""
    aside = give(team, "bo", 0.4)
    assert (aside.status_code, aside.json()["reserved"]) == (200, True)
    assert give(team, "ana", 1.0, reserve=False).json()["reserved"] is False
    codes = [team.ask(team.ana, f"k{i}").status_code for i in range(8)]
    assert codes == [201] * 6 + [409] * 2
    assert team.ask(team.ana, "k7").json()["code"] == "budget_exceeded"
    charges = team.charges()
    found = [team.ask(team.bo, f"k{i}") for i in range(5)]
    assert [each.status_code for each in found] == [201] * 4 + [409]
    assert found[-1].json()["code"] == "quota_exceeded"
    assert team.charges() == charges == 7  # six answers, and what was set aside
    assert len(team.desk.ledger.entries("stays/bo/2")) == 4
    entries = team.send("GET", "/v1/datasets/stays/entries", team.sam).json()["items"]
    requests = [each["request"] for each in entries]
    assert requests[0] is None  # to set aside is no request
    assert all(requests[1:])
    assert team.desk.ledger.balance("stays").epsilon_left == 0.0
    made = found[0].json()["id"]
    assert team.answer(team.bo, made).status_code == 200
    signed = team.send("GET", f"/v1/requests/{made}/certificate", team.bo).text
    told = open_signed(signed, public_key(team.desk.key))
    assert (told.entry.budget, told.entry.number) == ("stays/bo/2", 1)
    again = team.ask(team.bo, "k0")
    assert (again.status_code, again.json()["id"]) == (201, made)


def test_5_no_more_is_set_aside_than_there_is(team):
    """Refused as a whole: the share before still counts, and nothing is charged."""
    assert give(team, "bo", 0.7).status_code == 200
    before = list_shares(team.desk.ledger, "stays"), used(team)
    over = give(team, "ana", 0.4)
    assert (over.status_code, over.json()["code"]) == (409, "budget_exceeded")
    assert (list_shares(team.desk.ledger, "stays"), used(team)) == before
    assert team.ask(team.ana, "one").status_code == 201  # of the cap that she has
    assert give(team, "ana", 0.2).status_code == 200
    assert used(team) == pytest.approx(1.0)
    with reading(team.desk.ledger) as connection:
        verify_trail(connection)


def test_5_many_at_once_take_no_more_than_there_is(team):
    """Shares of some 0.3 set aside and questions of 0.1, on 1.0; each share given is one charge."""

    def spend(i):
        if i % 2:
            size = 0.3 + i / 1000  # the same one again would be the same share
            return size if give(team, "bo", size).status_code == 200 else 0.0
        return 0.1 if team.ask(team.ana, f"k{i}").status_code == 201 else 0.0

    with ThreadPoolExecutor(6) as pool:
        taken = sum(pool.map(spend, range(12)))
    assert used(team) == pytest.approx(taken)
    assert 0.7 < taken < 1.0 + 1e-9
    keys = [each.key for each in team.desk.ledger.entries("stays")]
    with reading(team.desk.ledger) as connection:
        given = fetch_all(connection, "SELECT budget FROM @.hushed_s_grants WHERE reserved = 1")
        verify_trail(connection)
    aside = sorted(each for each in keys if each.startswith("share"))
    assert aside == sorted(f"share {each['budget']}" for each in given)


def test_a_crash_before_the_charge_leaves_nothing_given(team, monkeypatch):
    """Budget, charge and share are one transaction; given again, it is the same share."""
    person = team.person("bo")

    def give_share():
        cap = Guarantee(epsilon=0.5)
        return set_quota(
            team.desk.ledger, person, "stays", cap, above="stays", actor="sam", reserve=True
        )

    budgets = team.desk.ledger.budgets()
    with monkeypatch.context() as dead:
        dead.setattr(_giving, "add_event", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            give_share()
    assert (used(team), team.desk.ledger.budgets()) == (0.0, budgets)
    assert give_share().grant.budget == "stays/bo/2"
    assert used(team) == 0.5
    for turn in range(2):
        assert team.ask(team.bo, f"k{turn}").status_code == 201
        assert give_share().grant.budget == "stays/bo/2"
    assert used(team) == 0.5


def test_5_a_share_that_is_given_again_is_paid_once(team):
    """A second click, or a steward whose connection broke: what was set aside never comes back."""
    with ThreadPoolExecutor(4) as pool:
        given = list(pool.map(lambda _: give(team, "bo", 0.25), range(4)))
    given.append(give(team, "bo", 0.25))
    assert [each.status_code for each in given] == [200] * 5
    assert (used(team), team.charges()) == (0.25, 1)
    assert list_shares(team.desk.ledger, "stays")["bo"].budget == "stays/bo/2"
    assert team.ask(team.bo, "one").status_code == 201
    again = give(team, "bo", 0.25).json()
    assert (again["left"]["epsilon"], again["spent_before"]) == (0.15, 0.0)
    assert (used(team), team.charges()) == (0.25, 1)
    other = give(team, "bo", 0.2).json()  # one of another size is another share
    assert (other["left"]["epsilon"], other["spent_before"]) == (0.2, 0.1)
    assert used(team) == pytest.approx(0.45)


def test_5_a_share_that_is_given_between_a_look_and_the_writing_is_paid_once(team, monkeypatch):
    """The second one looks before the first is there, and writes after it."""
    look, first = _giving._find_same, []

    def set_aside():
        cap, bo = Guarantee(epsilon=0.25), team.person("bo")
        own = {"above": "stays", "actor": "sam", "reserve": True}
        return _giving.set_quota(team.desk.ledger, bo, "stays", cap, **own)

    def find_same(*told):
        found = look(*told)
        if not first:
            first.append(None)
            first.append(set_aside())
        return found

    monkeypatch.setattr(_giving, "_find_same", find_same)
    second = set_aside()
    assert (first[1].new, second.new) == (True, False)
    assert second.grant == first[1].grant
    assert (used(team), team.charges()) == (0.25, 1)


def test_5_a_key_that_was_charged_by_hand_is_passed_over(team):
    """It gives no share: the next number is taken, and the invitation comes to an end."""
    told = Guarantee(epsilon=0.1, neighbours="add-remove", unit="user")
    team.desk.ledger.charge("stays", told, key="share stays/bo/2")
    given = give(team, "bo", 0.25)
    assert given.status_code == 200
    assert list_shares(team.desk.ledger, "stays")["bo"].budget == "stays/bo/3"


@pytest.mark.parametrize("reserve", [False, True])
def test_5_the_same_share_given_again_gives_no_second_budget(team, reserve):
    """Whatever was spent of it; another kind or size of share counts from now on."""
    size = 0.5 if reserve else 0.6  # ana has a cap of 0.6
    given = give(team, "ana", size, reserve=reserve)
    for i in range(4):
        assert team.ask(team.ana, f"k{i}").status_code == 201
    entries = team.charges()
    again = give(team, "ana", size, reserve=reserve)
    assert (again.status_code, again.json()["spent_before"]) == (200, 0.0)
    assert again.json()["left"]["epsilon"] == pytest.approx(given.json()["epsilon"] - 0.4)
    assert team.charges() == entries
    assert team.ask(team.ana, "large", epsilon=0.3).json()["code"] == "quota_exceeded"
    raised = give(team, "ana", size + 0.2, reserve=False).json()
    assert (raised["left"]["epsilon"], raised["spent_before"]) == (size + 0.2, 0.4)
    shares = team.send("GET", "/v1/datasets/stays/quotas", team.sam).json()
    assert shares["ana"] == raised


def test_the_command_sets_aside_and_refuses(tmp_path):
    """At the machine; a person who is in already keeps the share before."""
    tokens = make_folder(tmp_path)
    folder = tmp_path / "stats"
    share = [("stays", Guarantee(epsilon=0.8))]
    cy = invite(folder, "cy", "analyst", share, days=1, scope=Scope(), reserve=True)
    with pytest.raises(Overspent):
        invite(folder, "bo", "analyst", share, days=1, scope=Scope(), reserve=True)
    for team in open_team(folder, tokens):
        told = team.send("GET", "/v1/me", cy).json()["shares"]
        assert told == [
            {
                "dataset": "stays",
                "epsilon": 0.8,
                "delta": 0.0,
                "gamma": 0.0,
                "gamma_left": 0.0,
                "reserved": True,
                "left": {"epsilon": 0.8, "delta": 0.0},
                "per_day": None,
                "left_today": None,
                "today": None,
            }
        ]
        assert team.send("GET", "/v1/me", team.bo).json()["shares"][0]["reserved"] is False
        assert team.ask(team.bo, "one", epsilon=0.3).json()["code"] == "budget_exceeded"
        assert team.ask(cy, "one", epsilon=0.3).status_code == 201


def _give_another_budget(team):
    """Name another budget of 0.1 in the file, for rows of other people, and confirm it."""
    limit = Guarantee(epsilon=0.1, neighbours="add-remove", unit="user")
    team.desk.ledger.open_budget("next year", limit)
    file = team.folder / FILE
    file.write_text(file.read_text().replace('budget = "stays"', 'budget = "next year"'))
    assert confirm_dataset(team.folder, "stays", other_people=True).budget == "next year"


def test_5_what_one_budget_has_set_aside_pays_nothing_of_another_one(tmp_path):
    """The share is a cap below the new budget, of which nothing was set aside."""
    tokens = make_folder(tmp_path)
    for team in open_team(tmp_path / "stats", tokens):
        assert give(team, "bo", 0.4).status_code == 200
        assert team.ask(team.bo, "before").status_code == 201
        _give_another_budget(team)
    for team in open_team(tmp_path / "stats", tokens):
        assert team.send("GET", "/v1/me", team.bo).json()["shares"][0]["reserved"] is False
        codes = [team.ask(team.bo, f"k{i}").status_code for i in range(2)]
        assert codes == [201, 409]
        assert team.desk.ledger.balance("next year").epsilon_left == 0.0
        cap = give(team, "bo", 0.4, reserve=False).json()
        assert (cap["left"]["epsilon"], cap["spent_before"]) == (0.4, 0.2)
        again = give(team, "bo", 0.4)
        assert (again.status_code, again.json()["code"]) == (409, "budget_exceeded")


def test_5_what_another_budget_has_paid_is_not_answered(tmp_path, monkeypatch):
    """It was charged before the data set got its new budget, and its rows may be others now."""
    tokens = make_folder(tmp_path)
    for team in open_team(tmp_path / "stats", tokens):
        with monkeypatch.context() as dead:
            dead.setattr(Desk, "start", lambda *_: None)
            made = team.ask(team.ana, "one", wait=0).json()["id"]
        _give_another_budget(team)
    for team in open_team(tmp_path / "stats", tokens):
        recover(team.desk)
        assert team.ask(team.ana, "one").json()["state"] == "failed"
        assert team.answer(team.ana, made).status_code == 409
        assert not team.desk.ledger.entries("next year")


def test_the_key_of_a_charge_is_the_id_of_a_request_where_there_is_one(team):
    """What was spent of another budget, and charges by hand, have keys of their own."""
    promise = Guarantee(epsilon=0.1, neighbours="add-remove", unit="user")
    for key in ("carried 0123456789abcdef 2", None, "mine"):
        team.desk.ledger.charge("stays", promise, key=key)
    made = team.ask(team.ana, "one", wait=0).json()
    entries = team.send("GET", "/v1/datasets/stays/entries", team.sam).json()["items"]
    assert [each["request"] for each in entries] == [None, None, None, made["id"]]
