"""Questions that many ask at the same moment: one thread takes them, in one transaction.

Python runs one thread at a time. Of two hundred that each take one question, all let go with every
statement and wait to go on, and whoever speaks with everybody waits among them. Only what goes well
is done here: a token that counts, a question that was judged before, a charge that fits. Whatever
else is asked, or refused, is left to a thread of its own, as if nobody had looked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hushed.errors import HushedError, LedgerUnavailable, Overspent
from hushed.ledger._running import DoesNotFit
from hushed.ledger._together import Wish, charge_many, reading_in_turn
from hushed.server._callers import Callers, find_share_within
from hushed.server._datasets import Dataset
from hushed.server._desk import Desk
from hushed.server._judging import Ask, find_judged, require_table
from hushed.server._life import begin, wish_for
from hushed.server._people import Caller, Grant
from hushed.server._problems import Problem
from hushed.server._requests import KeyTaken, Request

if TYPE_CHECKING:
    from starlette.responses import Response

    from hushed.ledger._rows import Transaction

# That are taken in one turn. A longer one keeps the file from those who store answers: with 50 a
# fifth fewer were answered.
_MOST = 10


@dataclass(frozen=True, slots=True)
class Shown:
    """A request that was taken, and what to tell: nothing if an answer is awaited."""

    made: Request
    asker: str
    told: Response | None


Show = Callable[[Request, str], Shown]
# What is shown; or who asks, and was counted, where all else has to be done; or nothing of it.
Taken = Shown | Caller | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """One question that waits for its turn."""

    token: str
    address: str
    dataset: str
    key: str
    asked: Ask
    show: Show
    end: asyncio.Future[Taken]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    """One that is going to be charged."""

    place: Place
    caller: Caller
    wish: Wish
    made: list[Request]  # as it was charged


class Taking:
    """Takes what waits, in turns; whoever comes meanwhile waits for the next one."""

    def __init__(self, desk: Desk, callers: Callers) -> None:
        self._desk = desk
        self._callers = callers
        self._waiting: list[Place] = []
        self._busy = False
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "hushed-taken")
        desk.at_end(self._thread.shutdown)

    async def take(
        self, token: str, address: str, dataset: str, key: str, asked: Ask, show: Show
    ) -> Taken:
        """Take a question together with others, if it may be charged as it is."""
        end: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        place = Place(
            token=token,
            address=address,
            dataset=dataset,
            key=key,
            asked=asked,
            show=show,
            end=end,
        )
        with self._lock:
            self._waiting.append(place)
            begins, self._busy = not self._busy, True
        if begins:
            self._thread.submit(self._work, end.get_loop())
        return await end

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            with self._lock:
                turn, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                self._busy = bool(turn)
            if not turn:
                return
            taken: dict[Place, Taken | Exception] = {}
            try:
                with suppress(Exception):  # each hears what is wrong in a thread of its own
                    self._take_turn(turn, taken)
            finally:
                turn += self._list_others(taken)
                with suppress(RuntimeError):  # the loop has ended, and nobody waits
                    loop.call_soon_threadsafe(_tell, turn, taken)

    def _list_others(self, taken: Mapping[Place, Taken | Exception]) -> list[Place]:
        """List all who wait, if the ledger was locked: else one turn after the other waits for it.

        They wait at once, in threads of their own.
        """
        if not any(isinstance(each, LedgerUnavailable) for each in taken.values()):
            return []
        with self._lock:
            others, self._waiting = self._waiting, []
        return others

    def _take_turn(self, turn: Sequence[Place], taken: dict[Place, Taken | Exception]) -> None:
        found = {}
        with reading_in_turn(self._desk.ledger) as connection:
            for place in turn:
                with suppress(HushedError):
                    found[place] = self._look(connection, place)
        unchanged = self._find_unchanged({each.dataset for each, seen in found.items() if seen})
        dues: list[_Due] = []
        for place, seen in found.items():
            with suppress(HushedError, Problem):
                if seen and (dataset := unchanged.get(place.dataset)):
                    due = self._judge(place, *seen, dataset, ahead=len(dues))
                    dues += [due] if due else []
        taken |= {each.place: each.caller for each in dues}  # they are counted
        try:
            errors = charge_many(self._desk.ledger, [each.wish for each in dues]) if dues else ()
        except HushedError as error:
            errors = (error,) * len(dues)
        for due, problem in zip(dues, errors, strict=True):
            taken[due.place] = self._end(due, problem)

    def _look(self, connection: Transaction, place: Place) -> tuple[Caller, Grant] | None:
        """Find who asks, with a share, and nothing under the key; None if that is not so."""
        found = find_share_within(connection, place.token, place.dataset, place.address, place.key)
        return None if found is None or found[0].scope.quote_only else found

    def _find_unchanged(self, names: set[str]) -> dict[str, Dataset]:
        """Find the data sets that may be asked; their files are looked at once in a turn."""
        found = {name: self._desk.datasets[name] for name in names & self._desk.datasets.keys()}
        for name, dataset in [*found.items()]:
            try:
                require_table(dataset)
            except (HushedError, Problem):
                del found[name]
        return found

    def _judge(
        self, place: Place, caller: Caller, grant: Grant, dataset: Dataset, *, ahead: int
    ) -> _Due | None:
        """Say what is charged for what was judged before; None if anything else is to be done."""
        desk, asked = self._desk, place.asked
        if desk.count_waiting() + ahead >= desk.settings.limits.queue:
            return None
        judged = find_judged(desk, dataset, asked)
        if judged is None or dataset.needs_approval(asked.epsilon):
            return None
        wish, made = wish_for(desk, caller, grant, place.key, asked, judged)
        if not self._callers.count(caller):
            return None
        return _Due(place=place, caller=caller, wish=wish, made=made)

    def _end(self, due: _Due, error: Exception | None) -> Taken | Exception:
        """Show what was charged; why something does not fit takes a thread of its own to say."""
        if isinstance(error, (KeyTaken, Overspent, DoesNotFit)):
            return due.caller
        try:
            return error or due.place.show(begin(self._desk, due.made[-1]), due.caller.name)
        except Exception as unforeseen:
            return unforeseen


def _tell(turn: Sequence[Place], taken: dict[Place, Taken | Exception]) -> None:
    for place in turn:
        found = taken.get(place)
        if place.end.done():  # whoever asked is gone
            continue
        if isinstance(found, Exception):
            place.end.set_exception(found)
        else:
            place.end.set_result(found)
