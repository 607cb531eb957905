"""What waits for a run: people take turns, and a busy data set keeps nobody else waiting."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

_HELD_SECONDS = 0.5  # that a run waits at most until all who ask are told


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run: of a request, for a person, on a data set."""

    id: str
    person: str
    dataset: str
    work: Callable[[], None]
    at: float = field(default_factory=time.monotonic)
    done: Future[None] = field(default_factory=Future, repr=False)


@dataclass(slots=True, kw_only=True)
class FairQueue:
    """Runs jobs, one of each person after the other, however many somebody has waiting.

    So many runs are under way, and at most so many of them of one person, or of one data set.
    """

    runs: int = 4
    per_person: int
    per_dataset: int = 1
    _jobs: dict[str, Job] = field(default_factory=dict, repr=False)  # waiting and under way
    _waiting: dict[str, deque[Job]] = field(default_factory=dict, repr=False)  # next person first
    _running: Counter[str] = field(default_factory=Counter, repr=False)  # by person
    _busy: Counter[str] = field(default_factory=Counter, repr=False)  # by data set
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _pool: ThreadPoolExecutor = field(init=False, repr=False)
    _asking: int = 0  # who is about to be told that it is charged
    _told: threading.Event = field(default_factory=threading.Event, repr=False)  # nobody is

    def __post_init__(self) -> None:
        self._told.set()
        self._pool = ThreadPoolExecutor(self.runs, thread_name_prefix="hushed-run")

    def add(self, job: Job) -> None:
        """Let a job wait for its turn, unless it waits or runs already."""
        with self._lock:
            if job.id in self._jobs:
                return
            self._jobs[job.id] = job
            self._waiting.setdefault(job.person, deque()).append(job)
        self._pool.submit(self._take_turns)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Let no run begin meanwhile, for half a second at most: all who ask are told first.

        A run takes the processor that they wait for, and its answer is due at a later moment.
        """
        with self._lock:
            self._asking += 1
            self._told.clear()
        try:
            yield
        finally:
            with self._lock:
                self._asking -= 1
                if not self._asking:
                    self._told.set()

    def find(self, job: str) -> Future[None] | None:
        """Give the end of a job that waits or runs."""
        with self._lock:
            found = self._jobs.get(job)
        return None if found is None else found.done

    def count(self) -> int:
        """Count the jobs that wait or run."""
        with self._lock:
            return len(self._jobs)

    def list_running(self) -> list[str]:
        """List the jobs that are under way."""
        with self._lock:
            return [each.id for each in self._jobs.values() if each.done.running()]

    def drop_waiting(self, seconds: float) -> bool:
        """Drop what waits, and let what is under way go on for so long; whether all has ended."""
        with self._lock:
            left = [each for jobs in self._waiting.values() for each in jobs]
            self._waiting.clear()
            for each in left:
                self._jobs.pop(each.id)
            running = [each.done for each in self._jobs.values()]
        for each in left:
            each.done.cancel()
        return not wait(running, seconds).not_done

    def close(self) -> None:
        """Finish what is under way; what waits is dropped."""
        self.drop_waiting(0.0)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _take_turns(self) -> None:
        """Run what may run now, until nothing may: whoever ends a run looks again."""
        while (job := self._next()) is not None:
            job.done.set_running_or_notify_cancel()  # from now on nobody can cancel it
            self._told.wait(max(0.0, job.at + _HELD_SECONDS - time.monotonic()))
            try:
                job.work()
            finally:
                self._end(job)

    def _next(self) -> Job | None:
        with self._lock:
            for person, jobs in self._waiting.items():
                if self._running[person] >= self.per_person:
                    continue
                job = next(filter(self._may_run, jobs), None)
                if job is None:
                    continue
                jobs.remove(job)
                del self._waiting[person]
                if jobs:
                    self._waiting[person] = jobs  # at the end: everybody else is before
                self._running[person] += 1
                self._busy[job.dataset] += 1
                return job
        return None

    def _may_run(self, job: Job) -> bool:
        return self._busy[job.dataset] < self.per_dataset

    def _end(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job.id)
            for counted, name in ((self._busy, job.dataset), (self._running, job.person)):
                counted[name] -= 1
                if not counted[name]:
                    del counted[name]
        if not job.done.cancelled():
            job.done.set_result(None)
        try:
            self._pool.submit(self._take_turns)  # this end may let two others begin
        except RuntimeError:  # the queue was closed
            return
