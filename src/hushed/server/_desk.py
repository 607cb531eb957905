"""What the requests of a server share: ledger, data sets, queue, and the mark of the trail."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hushed.errors import HushedError
from hushed.ledger import Ledger
from hushed.ledger._together import reading
from hushed.server._alone import serving_alone
from hushed.server._audit import trail_head
from hushed.server._config import Settings
from hushed.server._datasets import Dataset
from hushed.server._functions import Function
from hushed.server._log import Log
from hushed.server._mark import Tally, check_mark, write_mark
from hushed.server._queue import FairQueue, Job
from hushed.server._requests import Request
from hushed.server._runners import Runners
from hushed.server._workers import Workers

STOP_SECONDS = 20.0  # that a run which is under way has to end, when the server is stopped


@dataclass(slots=True, kw_only=True)
class Desk:
    """What the requests of a server share. All that has to last is in the ledger's database."""

    ledger: Ledger
    settings: Settings
    datasets: dict[str, Dataset]
    key: bytes = field(repr=False)  # signs certificates
    log: Log
    mark: Path  # the file that tells how far the trail had come
    workers: Workers = field(repr=False)  # judge questions
    runners: Runners = field(repr=False)  # read rows
    functions: dict[str, Function] = field(default_factory=dict)
    stopping: bool = False
    alone: bool = True  # no other process serves this ledger
    queue: FairQueue = field(init=False, repr=False)
    unmarked: set[str] = field(default_factory=set, repr=False)  # ended; the mark did not move yet
    _marked: int = 0
    _keep: Callable[[], None] = field(default=lambda: None, repr=False)
    _tally: Tally = field(default_factory=Tally, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _held: ExitStack = field(default_factory=ExitStack, repr=False)

    def __post_init__(self) -> None:
        limits = self.settings.limits
        # One slow data set never has all of the processes that others wait for, too.
        most = limits.runners - 1 if len(self.datasets) > 1 else limits.runners
        self.queue = FairQueue(
            runs=limits.runners,
            per_person=min(limits.running_per_person, max(1, limits.runners - 1)),
            per_dataset=max(1, most),
        )

    def serve_alone(self) -> None:
        """Keep every other process from serving this ledger, until `close`."""
        self._keep = self._held.enter_context(serving_alone(self.ledger))
        self.move_mark()  # before anything that was stored may be seen

    def keep_alone(self) -> None:
        """Take the lock of the ledger again, if it was lost; while another one has it, read no row.

        A second server could be at work: what is charged waits, and is answered by whoever is left.
        """
        try:
            self._keep()
        except BaseException:
            self.alone = False
            raise
        self.alone = True

    def at_end(self, work: Callable[[], None]) -> None:
        """Do something at `close`, after the last run."""
        self._held.callback(work)

    def move_mark(self) -> None:
        """Write down outside of the ledger how far its trail has come."""
        with self._lock:  # an older mark never replaces a newer one
            with reading(self.ledger) as connection:
                check_mark(connection, self.mark)  # somebody may set it back while it is served
                head = trail_head(connection)
                spent = self._tally.count(connection) if head[0] > self._marked else {}
            if head[0] > self._marked:
                write_mark(self.mark, head, spent)
                self._marked = head[0]

    def mark_end(self, request: str) -> None:
        """Move the mark over the end of a request, which is in the ledger by now."""
        self.move_mark()
        self.unmarked.discard(request)

    def require_marked(self, found: Request) -> None:
        """Show nothing of an end that an older copy of the ledger may lack unnoticed.

        What was read before its end is not marked yet: its end may be written a moment later.
        """
        if found.has_ended() and found.id in self.unmarked:
            self.mark_end(found.id)

    def grid(self, dataset: str, function: str | None = None) -> float:
        """Seconds between the moments at which answers become readable."""
        found = self.datasets.get(dataset)
        own = None if found is None else found.settings.answer_grid
        grid = self.settings.limits.answer_grid if own is None else own
        asked = self.functions.get(function or "")
        record = None if asked is None else asked.record
        return grid if record is None else max(grid, record.answer_grid)

    def start(self, request: Request, work: Callable[[], None]) -> None:
        """Run a request in the background when its turn has come, unless it waits or runs."""
        self.queue.add(
            Job(
                id=request.id,
                person=request.person,
                dataset=request.dataset,
                work=partial(self._work, request, work),
            )
        )

    def _work(self, request: Request, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # the request stays charged, and is answered later
            self.log("run stopped", request=request.id, error=type(error).__name__)

    def close(self) -> None:
        """Finish or end what is running; what has no answer yet gets it at the next start."""
        self.stopping = True
        ended = self.queue.drop_waiting(STOP_SECONDS)
        while not ended:  # a run may just have begun
            self.runners.stop()
            ended = self.queue.drop_waiting(1.0)
        self.queue.close()
        with suppress(HushedError):
            self.move_mark()
        self._held.close()
