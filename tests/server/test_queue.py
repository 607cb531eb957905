"""Who waits for a run: people take turns, and nobody loses what waits."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import pytest
from tests.server.conftest import Here
from tests.server.test_workers import wait_for

from hushed.server import _queue
from hushed.server._desk import Desk
from hushed.server._life import recover
from hushed.server._queue import FairQueue, Job
from hushed.server._requests import find_request


def run_all(asked: list[tuple[str, str]], *, per_person: int = 2) -> list[int]:
    """Run jobs of (person, data set), the first one held back until all wait; their order."""
    queue, order, begin, names = FairQueue(per_person=per_person), [], threading.Event(), count()

    def work(number: int) -> None:
        assert begin.wait(20)
        order.append(number)

    for number, (person, dataset) in zip(names, asked, strict=False):
        queue.add(
            Job(
                id=str(number),
                person=person,
                dataset=dataset,
                work=lambda number=number: work(number),
            )
        )
    ends = [queue.find(str(number)) for number in range(len(asked))]
    begin.set()
    for end in ends:
        if end is not None:
            end.result(20)
    queue.close()
    return order


def test_19_one_person_with_many_questions_keeps_nobody_waiting():
    """Of a thousand questions of one person and two of others, those of the others are next."""
    many = 1000
    asked = [("ana", "stays")] * many + [("bo", "stays"), ("cy", "stays")]
    order = run_all(asked)
    assert sorted(order) == list(range(many + 2))
    assert order[:4] in ([0, 1, many, many + 1], [0, many, many + 1, 1])
    assert [each for each in order if each < many] == list(range(many))


def test_a_busy_data_set_keeps_no_other_waiting():
    """One run at a time of a data set; a thread is never spent on waiting for it."""
    queue, held, ran = FairQueue(per_person=9), threading.Event(), threading.Event()
    for number in range(8):
        queue.add(
            Job(id=f"a{number}", person=f"p{number}", dataset="slow", work=lambda: held.wait(20))
        )
    queue.add(Job(id="b", person="bo", dataset="quick", work=ran.set))
    try:
        assert ran.wait(20)
        assert queue.count() >= 8
    finally:
        held.set()
        queue.close()


def test_a_person_has_few_runs_at_once():
    """Four data sets, one person, at most two runs; the third begins when one has ended."""
    queue, held = FairQueue(per_person=2), threading.Event()
    begun, other = [], threading.Event()
    for number in range(4):

        def work(number: int = number) -> None:
            begun.append(number)
            held.wait(20)

        queue.add(Job(id=str(number), person="ana", dataset=str(number), work=work))
    queue.add(Job(id="b", person="bo", dataset="b", work=other.set))
    ends = [queue.find(str(number)) for number in range(4)]
    try:
        assert other.wait(20)  # the threads have looked at everything
        assert len(begun) <= 2
    finally:
        held.set()
    for end in ends:
        if end is not None:
            end.result(20)
    queue.close()
    assert sorted(begun) == [0, 1, 2, 3]


def test_a_failing_run_and_a_closed_queue_leave_nothing_hanging():
    """Whoever waits for a dropped job hears of it."""
    queue, held = FairQueue(per_person=1), threading.Event()
    queue.add(Job(id="1", person="ana", dataset="a", work=lambda: held.wait(20)))
    queue.add(Job(id="2", person="ana", dataset="a", work=lambda: None))
    dropped = queue.find("2")
    assert dropped is not None
    closing = threading.Thread(target=queue.close)
    closing.start()
    with pytest.raises(CancelledError):
        dropped.result(20)
    held.set()
    closing.join(20)
    assert not closing.is_alive()


@dataclass
class Held(Here):
    """Reads rows when it is told to."""

    go: threading.Event = field(default_factory=threading.Event)

    def answer(self, told):
        assert self.go.wait(60)
        return super().answer(told)


@pytest.mark.slow
def test_what_waits_for_its_turn_loses_no_attempt(team, monkeypatch):
    """Only a run that has begun may have been what killed a server."""
    held = team.desk.runners = Held()
    with monkeypatch.context() as dead:
        dead.setattr(Desk, "start", lambda *_: None)
        made = [team.ask(team.ana, key, wait=0).json()["id"] for key in ("one", "two")]
    for _ in range(5):
        recover(team.desk)
    ends = [team.desk.queue.find(each) for each in made]
    wait_for(lambda: find_request(team.desk.ledger, made[0]).attempts == 2)
    assert find_request(team.desk.ledger, made[1]).attempts == 1
    held.go.set()
    for end in ends:
        end.result(60)
    assert [find_request(team.desk.ledger, each).state for each in made] == ["answered"] * 2


@pytest.mark.slow
def test_a_full_queue_takes_nothing_more(team):
    """What does not fit is refused before it is charged."""
    limits = team.desk.settings.limits.model_copy(update={"queue": 1})
    object.__setattr__(team.desk.settings, "limits", limits)
    held = team.desk.runners = Held()
    assert team.ask(team.ana, "one", wait=0).status_code == 202
    full = team.ask(team.bo, "two", wait=0)
    held.go.set()
    assert (full.status_code, full.json()["code"]) == (503, "busy")
    assert full.headers["retry-after"]
    assert team.charges() == 1


def add_one(queue: FairQueue, name: str) -> threading.Event:
    """Add a job; an event that tells when it has begun."""
    began = threading.Event()
    queue.add(Job(id=name, person="ana", dataset="stays", work=began.set))
    return began


def test_nobody_who_asks_waits_for_a_run_to_end(monkeypatch):
    """What was charged meanwhile is read when the last one who asks has been told."""
    monkeypatch.setattr(_queue, "_HELD_SECONDS", 30.0)
    queue = FairQueue(per_person=2)
    with queue.asking():
        with queue.asking():
            began = add_one(queue, "one")
            assert not began.wait(0.1)
        assert not began.wait(0.1)
    assert began.wait(20)
    assert add_one(queue, "two").wait(20)
    queue.close()


def test_who_asks_holds_no_run_for_long(monkeypatch):
    """There may always be somebody who asks; what has waited that long waits for nobody more."""
    monkeypatch.setattr(_queue, "_HELD_SECONDS", 0.2)
    queue = FairQueue(per_person=2)
    with queue.asking():
        begun = time.monotonic()
        assert add_one(queue, "one").wait(20)
        assert time.monotonic() - begun >= 0.2
        monkeypatch.setattr(_queue, "_HELD_SECONDS", 30.0)
        old = Job(id="two", person="ana", dataset="stays", work=lambda: None, at=begun - 60.0)
        queue.add(old)
        old.done.result(20)
    queue.close()


def test_who_asks_holds_runs_until_told(team, monkeypatch):
    """From the moment at which the question is read; who is refused holds nothing any more."""
    asked, asking = [], FairQueue.asking

    @contextmanager
    def counted(self):
        with asking(self):
            assert not self._told.is_set()
            asked.append(1)
            yield

    monkeypatch.setattr(FairQueue, "asking", counted)
    assert team.ask(team.ana, "one", wait=0).status_code == 202  # a wait may be sent again
    assert team.ask(team.ana, "dear", epsilon=0.9).json()["code"] == "quota_exceeded"
    assert len(asked) == 2
    assert team.desk.queue._told.is_set()
