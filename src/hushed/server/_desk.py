"""What the requests of a server share: ledger, data sets, queue, and the mark of the trail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hushed.errors import HushedError, LedgerUnavailable, NotFound
from hushed.ledger import Ledger
from hushed.ledger._together import reading
from hushed.server._alone import find_owner, serving_alone
from hushed.server._audit import told_after, trail_head
from hushed.server._config import Settings
from hushed.server._datasets import Dataset
from hushed.server._disk import one_by_one
from hushed.server._functions import Function
from hushed.server._keys import PublicKey, name_key
from hushed.server._log import Log
from hushed.server._mark import (
    Tally,
    check_charges,
    check_mark,
    read_mark,
    read_spent,
    write_mark,
)
from hushed.server._problems import name_cause
from hushed.server._queue import FairQueue, Job
from hushed.server._requests import Request, count_charged, return_attempt
from hushed.server._retention import Retention
from hushed.server._runners import Runners
from hushed.server._shared import Shared
from hushed.server._verdicts import Verdicts
from hushed.server._workers import Workers

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

_MOST_COVERED = 10_000  # ends that are known to be told of by the mark, which never goes back
STOP_SECONDS = 20.0  # that a run which is under way has to end, when the server is stopped


@dataclass(slots=True, kw_only=True)
class Desk:
    """What the requests of a server share. All that has to last is in the ledger's database.

    One of several web processes runs nothing: by its errand, another process runs what it charges.
    """

    ledger: Ledger
    settings: Settings
    datasets: dict[str, Dataset]
    key: bytes = field(repr=False)  # signs certificates
    keys: tuple[PublicKey, ...] = field(repr=False)  # that one first, then those before it
    log: Log
    mark: Path  # the file that tells how far the trail had come
    workers: Workers = field(repr=False)  # judge questions
    runners: Runners = field(repr=False)  # read rows
    functions: dict[str, Function] = field(default_factory=dict)
    hold: Callable[[Dataset], Dataset] = field(default=lambda found: found, repr=False)  # as told
    stopping: bool = False
    alone: bool = True  # no other process serves this ledger
    queue: FairQueue = field(init=False, repr=False)
    errand: Callable[[str], None] | None = field(default=None, repr=False)
    shared: Shared | None = field(default=None, repr=False)  # with other processes of this server
    verdicts: Verdicts = field(default_factory=Verdicts, repr=False)
    prices: Verdicts = field(default_factory=Verdicts, repr=False)
    retention: Retention = field(default_factory=Retention, repr=False)
    covered: set[str] = field(default_factory=set, repr=False)  # ends of which the mark tells
    unwritten: set[str] = field(default_factory=set, repr=False)  # runs the ledger had no room for
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
        with reading(self.ledger) as connection:
            if find_owner(connection) != name_key(self.key):
                raise LedgerUnavailable(
                    "the key of the server was changed while it started: start it again"
                )
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

    def move_mark(self, *about: str) -> None:
        """Write down outside of the ledger how far its trail has come.

        If something is named, only where the mark does not tell of the last event about it yet: one
        move is for all that were charged, or have ended, before it. If nothing is, also where a
        charge was made by hand, which is no event.
        """
        with self._marking():  # an older mark never replaces a newer one
            told = {} if about else read_spent(self.mark)
            with reading(self.ledger) as connection:
                number = self.check_mark(connection)  # somebody may set it back while it is served
                check_charges(connection, told)
                head = trail_head(connection)
                due = head[0] > number and (
                    not about or not told_after(connection, number).isdisjoint(about)
                )
                spent = self._tally.count(connection) if due or not about else {}
                due = due or (not about and spent != told)
            if due:
                write_mark(self.mark, head, spent)

    def begin_charges(self, connection: Transaction) -> None:
        """Take the trail, and look that the ledger was not set back: a charge gets no answer there.

        From here on nobody else changes people or requests.
        """
        trail_head(connection, lock=True)
        self.check_mark(connection)

    def check_mark(self, connection: Transaction) -> int:
        """Refuse a ledger that was set back; number of the event of the mark. Before all else."""
        return check_mark(connection, self._read_mark())

    def _read_mark(self) -> tuple[int, str]:
        try:
            return read_mark(self.mark)
        except NotFound as error:  # nobody asked for that file
            raise LedgerUnavailable(error.message) from None

    def require_told(self, number: int) -> None:
        """Show no event that the mark does not tell of yet."""
        if self._read_mark()[0] < number:
            self.move_mark()

    def require_marked(self, *found: Request) -> None:
        """Show nothing of an end that an older copy of the ledger may lack unnoticed.

        Whichever process has written it. The events after the mark are few; the ends that were read
        are among them, or the mark tells of them.
        """
        ended = {each.id for each in found if each.has_ended()}
        if not ended:
            return
        number = self._read_mark()[0]
        with reading(self.ledger) as connection:
            uncovered = ended & told_after(connection, number)
        if uncovered:
            self.move_mark(*uncovered)
        if len(self.covered) > _MOST_COVERED:
            self.covered.clear()
        self.covered.update(ended)

    @contextmanager
    def _marking(self) -> Iterator[None]:
        with self._lock, ExitStack() as held:
            if self.shared is not None:
                try:
                    held.enter_context(one_by_one(self.mark))
                except OSError as error:
                    raise LedgerUnavailable(
                        f"the lock beside the mark of the server cannot be had ({error.strerror})"
                    ) from None
            yield

    def count_waiting(self) -> int:
        """Count what waits for a run or is under way, of everybody."""
        if self.errand is None:
            return self.queue.count()
        found = count_charged(self.ledger)  # what waits for a steward keeps nobody else waiting
        return sum(found.get(each.id, 0) for each in self.datasets.values() if not each.stale)

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
        if self.errand is not None:
            self.errand(request.id)
            return
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
            self.log("run stopped", request=request.id, **name_cause(error))

    def give_up(self) -> None:
        """Let no run that is under way count as an attempt: the process ends before it does."""
        for each in self.queue.list_running():
            with suppress(HushedError):
                return_attempt(self.ledger, each)

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
        self.ledger.close()
