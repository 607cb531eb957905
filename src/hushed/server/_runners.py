"""Who has rows read: in a process that is ended when it hangs, eats memory or crashes.

What comes back is an answer with its noise, as a text to store. A process that ends by itself has
failed, because that may depend on the rows; one that was ended from outside, with the server or by
a system without memory, has told nothing, and its question is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hushed.server._processes import Lost, Processes, Worker

_WAITS = 2.0  # how long a run may take in all, in multiples of its limit: noise comes after rows
_MORE_SECONDS = 5.0
_LONGEST_WHY = 300


class Unread(Exception):
    """No row was read: it is tried again, as often as it takes; the reason is for the log."""


class Interrupted(Exception):
    """Nothing was told of rows that may have been read: it is tried again, a few times."""


class Failed(Exception):
    """The run failed, for a reason that may depend on the rows; the reason is for the log."""


@dataclass(slots=True)
class Runners:
    """Processes that read rows. The queue decides how many are at work."""

    processes: Processes = field(default_factory=Processes, repr=False)

    def answer(self, told: dict[str, Any]) -> str:
        """Have a question answered; the text of the answer, which nobody may see yet."""
        try:
            worker = self.processes.begin(told)
        except Lost:
            raise Unread("no process") from None
        try:
            found = worker.hear(told["run_seconds"] * _WAITS + _MORE_SECONDS)
        except Lost as lost:
            problem = _explain(worker, late=lost.late)
            self.processes.drop(worker)
            raise problem from None
        except BaseException:
            self.processes.drop(worker)
            raise
        kept = "answer" in found or found.get("problem") == "dataset_unavailable"
        if kept and "function" not in told:
            self.processes.give_back(worker)
        else:  # a function, and whatever a run failed on, may have left something behind
            self.processes.drop(worker)
        return take_answer(found)

    def stop(self) -> None:
        """End what is at work; it has told nothing."""
        self.processes.stop()


def _explain(worker: Worker, *, late: bool) -> Failed | Interrupted:
    if late:
        return Failed("time")
    return Interrupted("ended") if worker.was_stopped() else Failed("crash")


def take_answer(found: dict[str, Any]) -> str:
    """Take the text of an answer out of what a process told, or raise what it told instead."""
    if isinstance(found.get("answer"), str):
        return str(found["answer"])
    problem = found.get("problem")
    if problem in ("dataset_unavailable", "function_changed"):
        raise Unread(str(found.get("why", problem))[:_LONGEST_WHY])
    if problem is None or problem == "interrupted":
        raise Interrupted(str(found.get("error", "connection"))[:60])
    raise Failed(str(problem)[:60])
