"""Processes that judge questions, as their server sees them: started, asked and ended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hushed.server._problems import Problem
from hushed.server._worker import BEGUN, READY

_START_SECONDS = 60.0  # to load the library, and to open a table
_TURN_SECONDS = 30.0  # to wait for others, and for a process that still starts
_WAITS = 5.0  # how long judging may take in all, in multiples of its limit: it may wait for others
_MOST_OF_PERSON = 8  # questions that wait to be judged; each of them keeps a thread
_MOST_JUDGED = 1000  # by one process
_LONGEST = 64 * 1024 * 1024  # bytes of what a process tells
_FOLDER = str(Path(__file__).parents[2])  # where the package lies


class Lost(Exception):
    """A process ended, or took too long."""


class Unforeseen(Exception):
    """Judging failed by an error that nobody foresaw; its type."""


class Worker:
    """One process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                # Not with the folder in which the server was started on the path of imports.
                [sys.executable, "-P", "-m", "hushed.server._worker"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,  # Ctrl-C ends the server, and the server ends this
            )
        self._line = Connection(ours.detach())
        self._ready = False
        self.judged = 0

    def wait(self) -> None:
        """Wait until it has loaded what it needs."""
        if not self._ready:
            self._expect(READY, _START_SECONDS)
            self._ready = True

    def begin(self, told: dict[str, Any]) -> None:
        """Ask it, and wait until the table is open; nothing of the question was looked at yet."""
        self.wait()
        self.judged += 1
        try:
            self._line.send_bytes(json.dumps(told).encode())
        except OSError:
            raise Lost from None
        self._expect(BEGUN, _START_SECONDS)

    def hear(self, seconds: float) -> dict[str, Any]:
        """Let it judge."""
        found: dict[str, Any] = json.loads(self._hear(seconds))
        return found

    def _expect(self, word: bytes, seconds: float) -> None:
        if self._hear(seconds) != word:
            raise Lost

    def _hear(self, seconds: float) -> bytes:
        try:
            if self._line.poll(seconds):
                return self._line.recv_bytes(_LONGEST)
        except (EOFError, OSError):
            pass
        raise Lost

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._line.close()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "HUSHED_TOKEN"}
    path = os.pathsep.join(filter(None, (_FOLDER, kept.get("PYTHONPATH"))))
    return kept | {"PYTHONPATH": path, "MALLOC_ARENA_MAX": "2"}


@dataclass(slots=True)
class Workers:
    """So many processes, started when they are needed. No one person keeps all of them busy."""

    number: int = 2
    ended: int = 0  # processes that a question has ended
    _idle: list[Worker] = field(default_factory=list, repr=False)
    _line: deque[tuple[object, str]] = field(default_factory=deque, repr=False)  # who waits
    _asking: Counter[str] = field(default_factory=Counter, repr=False)  # by person
    _running: Counter[str] = field(default_factory=Counter, repr=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, repr=False)
    _closed: bool = False

    def ask(self, person: str, told: dict[str, Any]) -> dict[str, Any]:
        """Have a question judged; raises `Problem` where that takes more than it may."""
        with self._turn(person):
            worker = self._begin(told)
            try:
                found = worker.hear(told["check_seconds"] * _WAITS)
            except Lost:
                with self._changed:
                    self.ended += 1
                self._drop(worker)
                raise _too_much(told) from None
            except BaseException:  # stopped, or what it told is no JSON: its next words are unclear
                self._drop(worker)
                raise
            self._give_back(worker)
        if found.get("problem") == "too_much":
            raise _too_much(told)
        if "error" in found:
            raise Unforeseen(found["error"])
        if "problem" in found:
            raise Problem(found["problem"], found.get("detail", ""))
        return found

    def _begin(self, told: dict[str, Any]) -> Worker:
        """Ask an idle process; one that had ended meanwhile, by whatever, is replaced once."""
        for _ in range(2):
            worker = self._take()
            try:
                worker.begin(told)
            except Lost:
                worker.end()
            else:
                return worker
        raise Problem("dataset_unavailable", wait=5)

    def warm(self) -> None:
        """Have one process ready for the first question."""
        with suppress(Lost, OSError):
            worker = self._take()
            worker.wait()
            self._give_back(worker)

    def close(self) -> None:
        """End all that are idle, and the others when they are given back."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
        for each in idle:
            each.end()

    @contextmanager
    def _turn(self, person: str) -> Iterator[None]:
        """Wait for one of the processes, as long as that takes at most."""
        mine = (object(), person)
        with self._changed:
            if self._asking[person] >= _MOST_OF_PERSON:
                raise Problem("too_many", "too many of your questions are judged now", wait=1)
            self._asking[person] += 1
            self._line.append(mine)
            try:
                if not self._changed.wait_for(lambda: self._first() is mine, _TURN_SECONDS):
                    raise Problem("busy", wait=2)
                self._running[person] += 1
            finally:
                self._line.remove(mine)
                self._leave(self._asking, person)
        try:
            yield
        finally:
            with self._changed:
                self._leave(self._running, person)

    def _first(self) -> tuple[object, str] | None:
        """Find who is next: the one who waited longest of those who may have another process."""
        if self._running.total() >= self.number:
            return None
        most = max(1, self.number - 1)
        return next((each for each in self._line if self._running[each[1]] < most), None)

    def _leave(self, counted: Counter[str], person: str) -> None:
        counted[person] -= 1
        if not counted[person]:
            del counted[person]
        self._changed.notify_all()

    def _take(self) -> Worker:
        while True:
            with self._changed:
                if not self._idle:
                    break
                worker = self._idle.pop()
            if worker.is_alive():
                return worker
            worker.end()
        return Worker()

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            if not self._closed and worker.judged < _MOST_JUDGED:
                self._idle.append(worker)
                return
        worker.end()

    def _drop(self, worker: Worker) -> None:
        """End a process, and have another one ready before the next question comes."""
        worker.end()
        if not self._closed:
            threading.Thread(target=self.warm, daemon=True).start()


def _too_much(told: dict[str, Any]) -> Problem:
    seconds, memory = told["check_seconds"], told["check_memory"] // 1_000_000
    return Problem(
        "bad_query",
        f"to judge it takes more than {seconds:g} s of a processor or {memory} MB: ask for less",
    )
