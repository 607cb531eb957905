"""Who has a question judged: people take turns, and one that takes too much is given up."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hushed.server._problems import Problem
from hushed.server._processes import Lost, Processes

_TURN_SECONDS = 30.0  # to wait for others, and for a process that still starts
_WAITS = 5.0  # how long judging may take in all, in multiples of its limit: it may wait for others
_MOST_OF_PERSON = 8  # questions that wait to be judged; each of them keeps a thread


class Unforeseen(Exception):
    """Judging failed by an error that nobody foresaw; its type."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """One question that waits for its turn."""

    person: str
    question: Hashable | None
    called: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class Workers:
    """So many processes, started when they are needed. No one person keeps all of them busy."""

    number: int = 2
    ended: int = 0  # processes that a question has ended
    processes: Processes = field(default_factory=Processes, repr=False)
    _line: list[_Waiting] = field(default_factory=list, repr=False)  # the first one first
    _asking: Counter[str] = field(default_factory=Counter, repr=False)  # by person
    _running: Counter[str] = field(default_factory=Counter, repr=False)
    _judged: set[Hashable] = field(default_factory=set, repr=False)  # questions, just now
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def ask(self, person: str, told: dict[str, Any]) -> dict[str, Any]:
        """Have a question judged when its turn comes."""
        with self.turn(person):
            return self.judge(told)

    def judge(self, told: dict[str, Any]) -> dict[str, Any]:
        """Have a question judged now; raises `Problem` where that takes more than it may."""
        try:
            worker = self.processes.begin(told)
        except Lost:
            raise Problem("dataset_unavailable", wait=5) from None
        try:
            found = worker.hear(told["check_seconds"] * _WAITS)
        except Lost as lost:
            outside = not lost.late and worker.was_stopped()
            self.processes.drop(worker)
            if outside:  # whoever did that: the question is not blamed
                raise Problem("busy", wait=1) from None
            raise self._end(told) from None
        except BaseException:  # stopped, or what it told is no JSON: its next words are unclear
            self.processes.drop(worker)
            raise
        too_much = found.get("problem") == "too_much"  # what it was loading is half there
        if too_much or "function" in told:  # a function may have left something behind
            self.processes.drop(worker)
        else:
            self.processes.give_back(worker)
        if too_much:
            raise self._end(told)
        if "error" in found:
            raise Unforeseen(found["error"])
        if "problem" in found:
            why = str(found.get("why", ""))
            raise Problem(found["problem"], found.get("detail", ""), why=why)
        return found

    def _end(self, told: dict[str, Any]) -> Problem:
        """Count a process that a question has ended; the refusal of that question."""
        with self._lock:
            self.ended += 1
        return _too_much(told)

    @contextmanager
    def turn(self, person: str, question: Hashable | None = None) -> Iterator[None]:
        """Wait for one of the processes, as long as that takes at most.

        Who names a question waits, too, until it is no longer judged for anybody else.
        """
        mine = _Waiting(person, question)
        with self._lock:
            if self._asking[person] >= _MOST_OF_PERSON:
                raise Problem("too_many", "too many of your questions are judged now", wait=1)
            self._asking[person] += 1
            self._line.append(mine)
            self._call()
        mine.called.wait(_TURN_SECONDS)
        with self._lock:
            _count_off(self._asking, person)
            if not mine.called.is_set():
                self._line.remove(mine)
                raise Problem("busy", wait=2)
        try:
            yield
        finally:
            with self._lock:
                _count_off(self._running, person)
                self._judged.discard(question)
                self._call()

    def _call(self) -> None:
        """Call whoever is next, and nobody else: all who wait would look, each time, one by one."""
        most = max(1, self.number - 1)
        while self._running.total() < self.number:
            found = next(
                (
                    each
                    for each in self._line
                    if self._running[each.person] < most and each.question not in self._judged
                ),
                None,
            )
            if found is None:
                return
            self._line.remove(found)
            self._running[found.person] += 1
            if found.question is not None:
                self._judged.add(found.question)
            found.called.set()


def _count_off(counted: Counter[str], person: str) -> None:
    counted[person] -= 1
    if not counted[person]:
        del counted[person]


def _too_much(told: dict[str, Any]) -> Problem:
    seconds, memory = told["check_seconds"], told["check_memory"] // 1_000_000
    most = f"it takes more than {seconds:g} s of a processor or {memory} MB"
    if "function" in told:  # whoever asks cannot change it
        return Problem("bad_query", f"to try the function {most}: tell the steward")
    return Problem("bad_query", f"to judge {most}: ask for less")
