"""The clock of the machine is set on or back by an hour while a server runs.

Nothing is charged, shown or let in by it that would not be otherwise, but for the hour itself: what
ends at a time ends an hour earlier or later. The clock is injected into each module that reads it.
"""

from __future__ import annotations

import datetime as times
import importlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Team, _made, make_folder, open_team

from hushed.ledger._together import reading
from hushed.server._approving import expire
from hushed.server._audit import verify_trail
from hushed.server._desk import Desk
from hushed.server._life import recover
from hushed.server._people import add_token, list_people
from hushed.server._requests import find_request
from hushed.server._sessions import open_session
from hushed.server._tokens import Scope

pytestmark = pytest.mark.slow

HOUR = 3600.0
SOURCES = Path(importlib.import_module("hushed.server").__file__).parent
both_ways = pytest.mark.parametrize("shift", [HOUR, -HOUR], ids=["on", "back"])


@dataclass
class Clock:
    """The time of day, shifted by some seconds."""

    shift: float = 0.0
    base: float = 0.0
    modules: set[str] = field(default_factory=set)

    def now(self, zone: Any = None) -> times.datetime:
        return times.datetime.now(zone) + times.timedelta(seconds=self.base + self.shift)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """Shift every module of the server that asks for the time of day, and that of ledgers."""
    made = Clock()

    class Shifted(times.datetime):
        @classmethod
        def now(cls, zone=None):
            return made.now(zone)

    names = ["hushed.ledger._migrations"]
    for path in SOURCES.rglob("*.py"):
        if "datetime.now(" in path.read_text():
            parts = path.relative_to(SOURCES.parents[1]).with_suffix("").parts
            names.append(".".join(parts))
    assert len(names) > 4  # the search found something
    for each in names:
        monkeypatch.setattr(f"{each}.datetime", Shifted)
    return made


@cache
def until_noon() -> float:
    """Seconds to noon of tomorrow, once for a process: its time goes on from test to test."""
    now = times.datetime.now(times.UTC)
    noon = now.replace(hour=12, minute=0, second=0) + times.timedelta(days=1)
    return (noon - now).total_seconds()


def begin_at_noon(clock: Clock) -> Clock:
    """Let a clock begin at noon of tomorrow: no midnight comes while a test counts days.

    The folder that all tests copy is made first, at the time of the others.
    """
    _made()
    clock.base = until_noon()
    return clock


@pytest.fixture
def team(tmp_path, clock):
    tokens = make_folder(tmp_path, settings="answer_grid = 1.0", stays="approve_above = 0.2")
    yield from open_team(tmp_path / "stats", tokens)


def check(team: Team, charges: int) -> None:
    """As many charges as were paid, and whole chains."""
    assert team.charges() == charges
    team.desk.ledger.verify("stays")
    with reading(team.desk.ledger) as connection:
        verify_trail(connection)


@both_ways
def test_what_was_readable_stays_and_what_is_asked_is_answered(team, clock, shift):
    """The grid goes on from the charge, and nobody waits an hour; keys cost nothing again."""
    first = team.ask(team.ana, "first").json()
    assert first["state"] == "answered"
    clock.shift = shift
    before = team.answer(team.ana, first["id"])
    assert before.status_code == 200
    assert team.ask(team.ana, "first").json()["id"] == first["id"]
    second = team.ask(team.ana, "second")
    assert second.status_code == 201
    check(team, 2)
    clock.shift = 0.0  # somebody has noticed
    for each in (first, second.json()):
        assert team.answer(team.ana, each["id"]).status_code == 200
    assert team.answer(team.ana, first["id"]).content == before.content
    check(team, 2)


@both_ways
def test_a_run_during_which_the_clock_is_set_ends_on_the_grid(team, clock, shift, monkeypatch):
    """Charged before and answered after: readable at the next step, by the clock as it is now."""
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        made = team.ask(team.ana, "one", wait=0).json()["id"]
    clock.shift = shift
    recover(team.desk)
    team.desk.queue.find(made).result(60)
    found = find_request(team.desk.ledger, made)
    charged, done, readable = (
        times.datetime.fromisoformat(each)
        for each in (found.charged_at, found.done_at, found.readable_at)
    )
    step = times.timedelta(seconds=1)
    assert times.timedelta(0) <= readable - done <= 2 * step
    assert (readable - charged) % step == times.timedelta(0)
    assert team.ask(team.ana, "one").status_code == 201
    check(team, 1)


@both_ways
def test_tokens_and_sessions_count_an_hour_more_or_less(team, clock, shift):
    """What is revoked stays revoked; what was used once stays used."""
    ledger, ana = team.desk.ledger, team.person("ana")
    soon = add_token(ledger, ana, days=0.5 / 24, scope=Scope(), actor="sam")[1]
    late = add_token(ledger, ana, days=1.5 / 24, scope=Scope(), actor="sam")[1]
    gone, stopped = add_token(ledger, ana, days=30, scope=Scope(), actor="sam")
    assert team.send("DELETE", f"/v1/tokens/{gone}", team.sam).status_code == 204
    door = add_token(ledger, ana, days=1, scope=Scope(use="door"), actor="sam")[1]
    session = open_session(ledger, door, "127.0.0.1")
    clock.shift = shift
    codes = [team.send("GET", "/v1/me", each).status_code for each in (soon, late, stopped)]
    assert codes == ([401, 200, 401] if shift > 0 else [200, 200, 401])
    assert open_session(ledger, door, "127.0.0.1") is None
    cookie = {"cookie": f"hushed-8642={session.cookie}"}
    page = team.client.get("/pages/datasets", headers=cookie)
    assert page.status_code == 200
    clock.shift = shift + 7.5 * HOUR  # of eight
    page = team.client.get("/pages/datasets", headers=cookie)
    assert page.status_code == (401 if shift > 0 else 200)
    assert all(each["last_used"] <= clock.now().date().isoformat() for each in tokens_of(ledger))


def tokens_of(ledger) -> list[dict[str, Any]]:
    found = [token for person in list_people(ledger) for token in person["tokens"]]
    return [each for each in found if each["last_used"]]


@both_ways
def test_shares_and_limits_do_not_look_at_the_clock(team, clock, shift):
    """A share fills with no day; who waits keeps waiting. `test_daily.py` has limits by the day."""
    made = team.ask(team.ana, "dear", epsilon=0.3)
    assert made.json()["state"] == "pending"
    for i in range(3):
        assert team.ask(team.bo, f"k{i}", epsilon=0.2).status_code == 201
    clock.shift = shift
    assert team.ask(team.bo, "more", epsilon=0.1).json()["code"] == "quota_exceeded"
    clock.shift = 24 * shift
    assert team.ask(team.bo, "more", epsilon=0.1).json()["code"] == "quota_exceeded"
    expire(team.desk)
    found = team.send("GET", f"/v1/requests/{made.json()['id']}", team.ana).json()
    assert found["state"] == "pending"  # for 14 days
    check(team, 3)


def test_a_trail_hides_what_lies_ahead_until_its_time_comes(team, clock):
    """An hour back: events of that hour are shown later. None is lost, and the chain is whole."""
    assert team.ask(team.ana, "one").status_code == 201
    whole = team.send("GET", "/v1/audit", team.sam).json()["items"]
    clock.shift = -HOUR
    assert team.ask(team.ana, "two").status_code == 201
    fewer = team.send("GET", "/v1/audit", team.sam).json()["items"]
    assert fewer == whole[: len(fewer)]
    clock.shift = 0.0
    again = team.send("GET", "/v1/audit", team.sam).json()["items"]
    assert again[: len(whole)] == whole
    assert len(again) == len(whole) + 2
    check(team, 2)


@both_ways
def test_nobody_is_kept_out_by_answers_that_lie_ahead(team, clock, shift):
    """What was answered before the clock was set counts as open no more."""
    limits = team.desk.settings.limits.model_copy(update={"open_per_person": 1})
    team.desk.settings = team.desk.settings.model_copy(update={"limits": limits})
    for number in range(2):
        assert team.ask(team.ana, f"k{number}").status_code == 201
        clock.shift += shift
    assert team.ask(team.ana, "last").status_code == 201
    check(team, 3)
