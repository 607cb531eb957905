"""What was judged is not judged again, and everything else of a question is looked at each time."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.server.conftest import QUERY
from tests.server.test_workers import wait_for

from hushed import Guarantee
from hushed.server import _judging, _verdicts
from hushed.server._judging import Ask, AskFunction, Judged, judge
from hushed.server._people import find_caller
from hushed.server._problems import Problem
from hushed.server._workers import Workers

ASKED = {"query": QUERY, "epsilon": 0.1}


@pytest.fixture
def judged(team, monkeypatch):
    """Lists what processes are asked."""
    asked, ask = [], Workers.judge

    def listed(self, told):
        asked.append(told["asked"])
        return ask(self, told)

    monkeypatch.setattr(Workers, "judge", listed)
    return asked


def test_the_same_question_is_judged_once(team, judged):
    """For whoever asks, and whatever the note; another epsilon or another step is another one."""
    first = team.ask(team.ana, "one", wait=0)
    same = team.ask(team.bo, "two", wait=0, note="for the report")
    assert (first.status_code, same.status_code) == (202, 202)
    assert len(judged) == 1
    questions = [entry.question for entry in team.desk.ledger.entries("stays")]
    assert len(questions) == 2
    assert len(set(questions)) == 1
    assert team.ask(team.ana, "three", wait=0, epsilon=0.05).status_code == 202
    steps = {"query": QUERY | {"steps": [{"filter": "cost > 11"}]}}
    assert team.ask(team.ana, "four", wait=0, **steps).status_code == 202
    assert len(judged) == 3
    assert len({entry.question for entry in team.desk.ledger.entries("stays")}) == 3


def test_of_those_who_ask_the_same_at_once_one_has_it_judged(team, judged):
    """The others wait for that verdict, and a failure is for whoever it came to alone."""
    dataset, asked = team.desk.datasets["stays"], Ask.model_validate(ASKED)
    ask, waits = Workers.judge, threading.Barrier(2)

    def slowly(self, told):
        if not judged:  # the first one fails when the others wait for it
            judged.append(told)
            waits.wait(30)
            wait_for(lambda: self._asking.total() == 19)
            raise Problem("busy", wait=1)
        return ask(self, told)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(20) as pool:
        patch.setattr(Workers, "judge", slowly)
        first = pool.submit(judge, team.desk, "first", dataset, asked)
        waits.wait(30)
        rest = [pool.submit(judge, team.desk, f"p{i}", dataset, asked) for i in range(19)]
        with pytest.raises(Problem, match="busy"):
            first.result(30)
        assert len({id(each.result(30)) for each in rest}) == 1
    assert len(judged) == 2


def test_another_question_does_not_wait_for_it(team):
    """Nor does the same one of a table in a database, of which nothing is kept."""
    workers = team.desk.workers
    with workers.turn("ana", "one"), workers.turn("bo", "two"):
        assert workers._running.total() == 2
    with workers.turn("ana"), workers.turn("bo"):
        assert workers._running.total() == 2


def test_what_is_judged_before_is_charged_and_refused_as_ever(team, judged):
    """The share is spent by the same question again and again, and not beyond its end."""
    for number in range(6):
        assert team.ask(team.ana, str(number), wait=0).status_code == 202
    assert team.ask(team.ana, "too many", wait=0).json()["code"] == "quota_exceeded"
    assert len(judged) == 1
    assert team.charges() == 6


def test_a_file_that_was_changed_is_noticed_by_who_asks_the_same(team, judged):
    """What is kept is of the file as it was opened."""
    assert team.ask(team.ana, "one", wait=0).status_code == 202
    os.utime(team.folder.parent / "stays.csv", (1, 1))
    found = team.ask(team.ana, "two", wait=0)
    assert (found.status_code, found.json()["code"]) == (409, "dataset_changed")
    assert team.charges() == 1


@pytest.mark.parametrize("known", ["", "of a file"])
def test_only_questions_to_files_are_kept(team, known):
    """Nothing here tells whether a database is there, and is as it was."""
    dataset = replace(team.desk.datasets["stays"], known=known)
    read = Ask.model_validate(ASKED)
    found = Judged(guarantee=Guarantee(epsilon=0.1), loss=None)
    team.desk.verdicts.keep(dataset, read, found)
    assert team.desk.verdicts.find(dataset, read) is (found if known else None)


def test_a_function_is_tried_each_time(team, monkeypatch):
    """Nothing here tells whether it is there, and is as it was."""
    asked, found = [], Judged(guarantee=Guarantee(epsilon=0.1), loss=None)
    dataset = team.desk.datasets["stays"]
    there = SimpleNamespace(dataset=dataset.id)
    monkeypatch.setattr(_judging, "require_function", lambda *_: there)
    monkeypatch.setattr(_judging, "check_function", lambda *_: None)
    monkeypatch.setattr(_judging, "_ask", lambda *told: asked.append(told) or found)
    for _ in range(2):
        read = AskFunction(function="mean", epsilon=0.1)
        assert judge(team.desk, "ana", dataset, read) is found
    assert len(asked) == 2


def test_a_refusal_is_found_again(team, judged):
    """Only what may be charged is kept."""
    wrong = {"query": QUERY | {"steps": [{"filter": "nothing > 1"}]}}
    for number in range(2):
        assert team.ask(team.ana, str(number), wait=0, **wrong).json()["code"] == "bad_query"
    assert len(judged) == 2


def test_so_many_are_kept_and_no_long_one(team, judged, monkeypatch):
    """The one that was asked longest ago is forgotten."""
    monkeypatch.setattr(_verdicts, "_MOST", 2)
    ana = find_caller(team.desk.ledger, team.ana, "127.0.0.1").id
    dataset = team.desk.datasets["stays"]

    def ask(bound):
        steps = [{"filter": f"cost > {bound}"}]
        asked = Ask.model_validate({"query": QUERY | {"steps": steps}, "epsilon": 0.1})
        judge(team.desk, ana, dataset, asked)

    for bound in ("1", "2", "1", "3", "1", "2"):
        ask(bound)
    assert len(judged) == 4  # 1, 2, 3, and 2 again
    monkeypatch.setattr(_verdicts, "_LONGEST", 10)
    ask("1")
    assert len(judged) == 5
