"""Questions that are asked at the same moment are taken by one thread, in one transaction."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from hushed.errors import LedgerUnavailable
from hushed.server import _taking

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


@pytest.mark.parametrize("error", [LedgerUnavailable("locked"), KeyError("private")])
def test_a_turn_that_fails_charges_nobody_unknown(team, turns, monkeypatch, error):
    """What the ledger refuses is told; after what nobody has foreseen each is taken alone."""

    def fail(*_):
        raise error

    monkeypatch.setattr(_taking, "charge_many", fail)
    before = team.charges()
    asked = [(team.ana, f"key {number}", {"epsilon": 0.01}) for number in range(3)]
    told = Counter(each.status_code for each in ask_at_once(team, monkeypatch, asked))
    unavailable = isinstance(error, LedgerUnavailable)
    assert told == ({503: 3} if unavailable else {202: 3})
    assert team.charges() == before + (0 if unavailable else 3)


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
