"""Calls of one function on several parts of the rows that share nothing with each other."""

from __future__ import annotations

import math
import os
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

import numpy as np

from hushed._functions._isolated_messages import pack_part, pack_work
from hushed._functions._isolated_process import Process, require_no_call
from hushed._functions._limits import Limits, count_workers, require_linux
from hushed._ground.checks import is_whole, require_count
from hushed._ground.types import Floats
from hushed.errors import BadFunction, ParameterError, WorkerLost

_LOOK = 0.1  # seconds between two looks at what calls use up
_STARTS = 3
_MOST_ENDED = 50  # each has open files and a number: both are scarce, and others need them
_SEEDS = 2**32
_ONCE = 0x40000001  # what an answer is waited for with: EPOLLIN and EPOLLONESHOT


def call_isolated(
    function: Callable[[Any], Any],
    parts: Sequence[Any],
    *,
    shape: tuple[int, ...] = (),
    labels: Sequence[Any] | None = None,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
    seeds: Sequence[int] | None = None,
    workers: int | None = None,
) -> Floats:
    """Call a function once for each part, in processes of their own."""
    kinds = {type(part).__module__.partition(".")[0] for part in parts[:1]} - {"__main__"}
    with Isolation(
        function,
        calls=0,
        shape=shape,
        labels=labels,
        limits=limits,
        workers=workers,
        modules=sorted(kinds),
    ) as isolation:
        return isolation.call(parts, seeds=seeds)


class Isolation:
    """Processes that wait for one call each.

    Parameters
    ----------
    function : callable
        Takes one part of the rows.
    calls : int
        Processes to be started before the first call; if more are needed, they are started then.
    shape : tuple of int, default ()
        Shape of one answer.
    labels : sequence, optional
        Public answers that are no numbers: the index of the first that equals the answer counts.
    limits : Limits
        What each call may use.
    workers : int, optional
        Calls at the same time at most; as many as there are cores unless told. Fewer run if their
        memory would not fit into the machine.
    modules : sequence of str, default ()
        What is imported beforehand, beside what the function needs.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        calls: int,
        shape: tuple[int, ...] = (),
        labels: Sequence[Any] | None = None,
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        workers: int | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        require_linux()
        require_no_call()
        if labels is not None and shape != ():
            raise ParameterError("labels are single answers: leave out the shape")
        self._calls = require_count("calls", calls, least=0)
        self._shape, self._limits = shape, asdict(limits)
        self._size = 8 * math.prod(shape)
        self._workers = count_workers(limits, workers)
        self._told = pack_work(function, labels, shape, modules, self._limits)
        self._idle: deque[Process] = deque()
        self._open: set[Process] = set()
        self._ended: list[Process] = []
        self._heard: dict[int, Process] = {}  # by the numbers of their files
        self.asked = False  # since processes were started for later calls
        self._started = 0
        self._holding = 0  # bytes, by those that have ended
        self._failures = 0
        self._looked = 0.0
        self._to_start = 0.0  # seconds for as many as start at once, before the first call

    def __enter__(self) -> Self:
        self._poll = select.epoll()
        self._life, self._held = os.pipe()
        try:
            self.warm(self._calls)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes, and remove what they have left."""
        self._ended += self._open
        self._open.clear()
        self._idle.clear()
        self._clear()
        os.close(self._held)
        os.close(self._life)
        self._poll.close()

    def call(self, parts: Sequence[Any], *, seeds: Sequence[int] | None = None) -> Floats:
        """Call the function once for each part; a row of NaN for each call that failed."""
        seeds = _check_seeds(seeds, len(parts))
        self.asked = True
        found = [b""] * len(parts)
        waiting = deque(range(len(parts)))
        running: set[Process] = set()
        while waiting or running:
            unused = sum(process.task is None for process in running)
            for _ in range(min(self._workers - len(running), len(waiting) - unused)):
                process = self._take(others=bool(running))
                if process is None:
                    break
                running.add(process)
            for process in running:
                if process.ready and process.task is None:
                    at = waiting.popleft()
                    self._send(process, pack_part(seeds[at], parts[at]), at)
            for process in self._advance():
                running.discard(process)
                if process.task is not None:
                    found[process.task] = bytes(process.got)
        return self._read(found)

    def _read(self, found: Sequence[bytes]) -> Floats:
        """Make numbers of what calls have said; NaN for one that did not say all of its own."""
        nothing = np.full(self._shape, np.nan).tobytes()
        whole = bytearray().join(each if len(each) == self._size else nothing for each in found)
        answers = np.frombuffer(whole).reshape(len(found), *self._shape)
        infinite = ~np.isfinite(answers)
        answers[infinite.any(axis=tuple(range(1, answers.ndim)))] = np.nan
        return answers

    def warm(self, wanted: int) -> None:
        """Start processes before the first call, and wait until so many are ready."""
        starting: set[Process] = set()
        begun, rounds = time.perf_counter(), math.ceil((wanted - len(self._idle)) / self._workers)
        while len(self._idle) < wanted:
            missing = wanted - len(self._idle) - len(starting)
            for _ in range(min(self._workers - len(starting), missing)):
                starting.add(self._start())
            starting -= set(self._advance())
            ready = {process for process in starting if process.ready}
            starting -= ready
            self._idle += ready
        if rounds > 0:
            self._to_start = (time.perf_counter() - begun) / rounds

    def refill(self, wanted: int) -> None:
        """Start processes for later calls until so many wait, without waiting for any of them.

        What a call has left is removed first. Where none can be started, the next call tries again.
        """
        self._clear()
        self._started = len(self._idle)  # the next parts have the first seeds again
        with suppress(OSError):
            while len(self._idle) < wanted:
                self._idle.append(self._start())
        self.asked = False

    def wait(self) -> None:
        """Wait until one of the processes for later calls has loaded the function."""
        while not any(process.ready and process.is_alive() for process in self._idle):
            if not self._idle:
                self._idle.append(self._start())
            self._advance()

    def foresee(self, calls: int) -> tuple[float, int]:
        """Foresee the seconds that starting takes for so many calls, and how many do at once.

        It follows from those that were ready before the first call, and so from no row.
        """
        missing = max(0, calls - len(self._idle))
        return self._to_start * math.ceil(missing / self._workers), self._workers

    @property
    def held(self) -> int:
        """Bytes of memory that a process holds while it waits; 0 if none does."""
        return max((process.measure() for process in self._idle), default=0)

    def _take(self, *, others: bool) -> Process | None:
        """Take a process that waits, or start one; None if that has to wait for others to end.

        A call may have taken up processes, or places on a disk, that the next one needs.
        """
        while self._idle:
            process = self._idle.popleft()
            if process.is_alive():
                return process
            self._end(process)
        try:
            return self._start()
        except OSError:
            self._clear()
            return None if others else self._start()

    def _start(self) -> Process:
        process = Process(self._life, self._started % _SEEDS)
        self._started += 1
        self._open.add(process)
        self._heard[process.source] = self._heard[process.target.fileno()] = process
        self._poll.register(process.source, _ONCE)
        self._send(process, [self._told], None)
        return process

    def _send(
        self, process: Process, message: Sequence[bytes | memoryview], at: int | None
    ) -> None:
        process.say(message, at)
        if process.busy:
            self._poll.register(process.target, select.EPOLLOUT)

    def _advance(self) -> list[Process]:
        """Wait for something to happen; give the processes that have ended thereby."""
        done = []
        for file, _ in self._poll.poll(_LOOK):
            process = self._heard[file]
            if process not in self._open:
                continue
            if file != process.source:
                process.push()
                if not process.busy:
                    self._poll.unregister(file)
            elif self._hear(process):
                done.append(process)
            else:
                self._poll.modify(file, _ONCE)
        if time.monotonic() - self._looked > _LOOK:
            running = [each for each in self._open if each.task is not None and each not in done]
            done += [process for process in running if process.is_over(self._limits)]
            self._looked = time.monotonic()
        for process in done:
            self._end(process)
        return done

    def _hear(self, process: Process) -> bool:
        """Hear what a process says; True if it has nothing more to say."""
        if process.task is not None:
            return not process.pull(self._size) or len(process.got) >= self._size
        more = process.pull(process.longest_word)
        reason = process.listen()
        if reason:
            raise BadFunction(
                f"the function cannot be loaded in a fresh process: that raised {reason}; what it "
                "needs must be importable there, by absolute paths, and without what was set up "
                "in this process; a file that it is imported from releases nothing while it is "
                'imported: below `if __name__ == "__main__":`'
            )
        if process.ready:
            self._failures = 0
        elif not more:
            self._failures += 1
        if self._failures >= _STARTS:
            raise WorkerLost(
                f"{_STARTS} fresh processes ended while the function was loaded; no rows had been "
                "given to them"
            )
        return not more

    def _end(self, process: Process) -> None:
        """Halt a process; to take its memory apart takes longer than a short call, and can wait."""
        if process.busy:
            self._poll.unregister(process.target)
        if process.task is None and process in self._idle:
            self._idle.remove(process)
        self._open.remove(process)
        self._ended.append(process)
        self._holding += process.stop()
        if self._holding > self._limits["memory"] or len(self._ended) >= _MOST_ENDED:
            self._clear()

    def _clear(self) -> None:
        """Kill the processes that are not needed any more, and remove what they have left."""
        for process in self._ended:
            process.kill()
        while self._ended:
            self._ended.pop().clear()
        self._holding = 0


def _check_seeds(seeds: Sequence[int] | None, calls: int) -> list[int]:
    """Give a seed for each call: its number, unless told."""
    found = list(range(calls)) if seeds is None else list(seeds)
    if len(found) != calls:
        raise ParameterError(f"there must be one seed for each of {calls} parts, got {len(found)}")
    if not all(is_whole(each) and 0 <= each < _SEEDS for each in found):
        raise ParameterError("seeds must be integers from 0 to 2**32 - 1")
    return [int(each) for each in found]
