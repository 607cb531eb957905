"""Questions that are asked at the same moment are taken by one thread, in one transaction."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from hushed.errors import LedgerUnavailable
from hushed.ledger._running import RunningBalance
from hushed.server import _taking
from hushed.server._life import recover
from hushed.server._people import set_active

FEW = 8


@pytest.fixture
def turns(team, monkeypatch):
    """How many were charged in each turn, in which thread; of a question that was judged before."""
    seen = []
    real = _taking.charge_many

    def charge(ledger, wishes):
        seen.append((len(wishes), threading.current_thread().name))
        return real(ledger, wishes)

    monkeypatch.setattr(_taking, "charge_many", charge)
    assert team.ask(team.ana, "first", epsilon=0.01).status_code == 201
    assert team.ask(team.bo, "first", epsilon=0.01).status_code == 201
    seen.clear()
    return seen


@contextmanager
def held(monkeypatch):
    """Let one turn begin, and hold it until all others wait for the next one."""
    begun, go_on, real = threading.Event(), threading.Event(), _taking.Taking._take_turn

    def take(self, turn, taken):
        begun.set()
        go_on.wait(20)
        real(self, turn, taken)

    monkeypatch.setattr(_taking.Taking, "_take_turn", take)
    try:
        yield begun, go_on
    finally:
        go_on.set()


def ask_at_once(team, monkeypatch, asked):
    """Ask the first one, and the others while that one is taken; what each is told."""
    with held(monkeypatch) as (begun, go_on), ThreadPoolExecutor(len(asked)) as pool:
        told = [pool.submit(lambda one: team.ask(*one[:2], wait=0, **one[2]), asked[0])]
        assert begun.wait(20)
        told += [
            pool.submit(lambda one=one: team.ask(*one[:2], wait=0, **one[2])) for one in asked[1:]
        ]
        time.sleep(1.0)
        go_on.set()
        return [each.result() for each in told]


def test_many_are_charged_in_one_turn_each_of_them_once(team, turns, monkeypatch):
    before = team.charges()
    asked = [(team.ana, f"key {number}", {"epsilon": 0.01}) for number in range(FEW)]
    told = ask_at_once(team, monkeypatch, [*asked, (team.bo, "key 0", {"epsilon": 0.01})])
    assert {each.status_code for each in told} == {202}
    assert len({each.json()["id"] for each in told}) == FEW + 1
    assert team.charges() == before + FEW + 1
    assert sum(number for number, _ in turns) == FEW + 1
    assert max(number for number, _ in turns) > 1
    assert {name.rpartition("_")[0] for _, name in turns} == {"hushed-taken"}


def test_one_that_is_refused_takes_nothing_of_the_others(team, turns, monkeypatch):
    """Neither a wrong token, nor a key that is in use, nor a share that is full."""
    before = team.charges()
    for epsilon in (0.3, 0.9):  # judged once; the second one fits no share
        team.ask(team.ana, f"judged {epsilon}", epsilon=epsilon)
    asked = [
        (team.bo, "good", {"epsilon": 0.01}),
        (team.ana, "same", {"epsilon": 0.01}),
        (team.ana, "same", {"epsilon": 0.01}),
        (team.ana, "full", {"epsilon": 0.9}),
        (team.ana, "first", {"epsilon": 0.02}),
        ("wrong", "x", {"epsilon": 0.01}),
        (team.ana, "new", {"epsilon": 0.015}),
    ]
    told = ask_at_once(team, monkeypatch, asked)
    assert [each.status_code for each in told] == [202, 202, 202, 409, 422, 401, 202]
    assert told[1].json()["id"] == told[2].json()["id"]
    assert told[3].json()["code"] == "quota_exceeded"
    assert told[4].json()["code"] == "key_reused"
    assert team.charges() == before + 1 + 3


def test_the_words_of_a_refusal_are_found_by_the_thread_of_who_is_refused(team, monkeypatch):
    """With exact sums it takes ten seconds to find what would fit, and nobody else waits for it."""
    team.ask(team.ana, "judged", epsilon=0.9)
    found, real = [], RunningBalance._refuse

    def refuse(*asked):
        found.append(threading.current_thread().name)
        return real(*asked)

    monkeypatch.setattr(RunningBalance, "_refuse", refuse)
    assert team.ask(team.ana, "full", epsilon=0.9).json()["code"] == "quota_exceeded"
    assert found
    assert not [name for name in found if name.startswith("hushed-taken")]


@pytest.mark.parametrize("error", [LedgerUnavailable("locked"), KeyError("private")])
def test_a_turn_that_fails_charges_nobody_unknown(team, turns, monkeypatch, error):
    """What the ledger refuses is told; after what nobody has foreseen each is taken alone.

    So are those who came later, where it was locked.
    """

    def fail(*_):
        raise error

    monkeypatch.setattr(_taking, "charge_many", fail)
    before = team.charges()
    asked = [(team.ana, f"key {number}", {"epsilon": 0.01}) for number in range(3)]
    told = Counter(each.status_code for each in ask_at_once(team, monkeypatch, asked))
    unavailable = isinstance(error, LedgerUnavailable)
    assert told == ({503: 1, 202: 2} if unavailable else {202: 3})
    assert team.charges() == before + told[202]


def test_each_that_is_taken_is_counted_once(team, turns, monkeypatch):
    counted = []
    real = _taking.Callers.count
    monkeypatch.setattr(
        _taking.Callers, "count", lambda self, one: counted.append(one.id) or real(self, one)
    )
    asked = [(team.ana, f"key {number}", {"epsilon": 0.01}) for number in range(3)]
    asked += [(team.ana, "key 0", {"epsilon": 0.01}), (team.ana, "new", {"epsilon": 0.017})]
    told = ask_at_once(team, monkeypatch, asked)
    assert {each.status_code for each in told} == {202}
    assert len(counted) == len(asked)


@contextmanager
def between(monkeypatch, change):
    """Change something after a turn was looked at, and before it is charged."""
    real, done = _taking.charge_many, []

    def charge(ledger, wishes):
        if not done:
            done.append(change())
        return real(ledger, wishes)

    with monkeypatch.context() as slow:
        slow.setattr(_taking, "charge_many", charge)
        yield
    assert done


def test_who_is_let_out_in_the_middle_of_a_turn_is_charged_nothing(team, turns, monkeypatch):
    before = team.charges()
    ana = team.person("ana")
    asked = [(team.ana, f"key {number}", {"epsilon": 0.01}) for number in range(2)]
    with between(monkeypatch, lambda: set_active(team.desk.ledger, ana, False, actor="sam")):
        told = ask_at_once(team, monkeypatch, [*asked, (team.bo, "key", {"epsilon": 0.01})])
    assert [each.status_code for each in told][:2] == [401, 401]
    assert told[2].status_code == 202
    assert team.charges() == before + 1


@pytest.mark.slow
def test_of_what_one_day_has_room_for_each_is_judged_after_those_before_it(
    team, turns, monkeypatch
):
    """Two of four fit the limit of the day, whichever come first."""
    path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
    given = team.send("PUT", path, team.sam, json={"epsilon": 0.6, "per_day": 0.035})
    assert given.status_code == 200, given.text
    before = team.charges()
    asked = [(team.ana, f"key {number}", {"epsilon": 0.01}) for number in range(4)]
    told = Counter(each.status_code for each in ask_at_once(team, monkeypatch, asked))
    assert told == {202: 2, 409: 2}
    assert team.charges() == before + 2


def test_what_was_charged_when_the_turn_ended_badly_is_answered_once(team, turns, monkeypatch):
    """It is charged, and nobody was told; the same key finds it, and it is not charged again."""

    def fail(*_):
        raise KeyError("private")

    before = team.charges()
    with monkeypatch.context() as broken:
        broken.setattr(_taking, "begin", fail)
        told = ask_at_once(team, monkeypatch, [(team.ana, "lost", {"epsilon": 0.01})])
    assert told[0].status_code == 500
    assert team.charges() == before + 1
    found = team.ask(team.ana, "lost", wait=0, epsilon=0.01)
    assert team.charges() == before + 1
    ends = time.monotonic() + 30
    while found.json()["state"] != "answered" and time.monotonic() < ends:
        recover(team.desk)
        time.sleep(0.6)
        found = team.send("GET", f"/v1/requests/{found.json()['id']}", team.ana)
    assert found.json()["state"] == "answered"
    assert team.charges() == before + 1


def test_a_locked_ledger_is_waited_for_once_and_not_by_one_turn_after_the_other(
    team, turns, monkeypatch
):
    called = []

    def charge(ledger, wishes):
        called.append(len(wishes))
        return (LedgerUnavailable("locked"),) * len(wishes)

    monkeypatch.setattr(_taking, "charge_many", charge)
    monkeypatch.setattr(_taking, "_MOST", 2)
    asked = [(team.ana, f"key {number}", {"epsilon": 0.01}) for number in range(FEW)]
    told = Counter(each.status_code for each in ask_at_once(team, monkeypatch, asked))
    assert len(called) == 1
    assert told == {503: called[0], 202: FEW - called[0]}
