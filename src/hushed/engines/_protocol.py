"""What an engine is: a place with slots, to which spans of trials are sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from hushed._ground.types import Floats

Span = tuple[int, int]
"""The first trial, and one past the last."""

OtherBits = Literal["refuse", "note"]
"""What is done with workers that round otherwise than the process that sent the work."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is run for each span, made by `pack`.

    Parameters
    ----------
    payload : bytes
        What a worker needs to know, and the work itself.
    digest : str
        SHA-256 of the payload, so that a worker loads it once.
    seed : int
        Seed of the run.
    """

    payload: bytes
    digest: str
    seed: int


@dataclass(frozen=True, slots=True)
class Done:
    """The results of a span.

    Parameters
    ----------
    values : ndarray of float
        One row for each trial.
    seconds : float
        Time that the work took, without loading it and without waiting.
    place : str
        The process that ran it.
    note : str
        What differs there, though the work may run there; empty if nothing does.
    """

    values: Floats
    seconds: float
    place: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Raised:
    """An error that the work raised: a value, so that no engine wraps it into an error of its own.

    Parameters
    ----------
    error : bytes
        The error and its causes, pickled; `hushed.engines.rebuild` makes it again.
    place : str
        The process that ran it.
    """

    error: bytes
    place: str = ""


@dataclass(frozen=True, slots=True)
class Lacks:
    """A worker does not have what the work needs, or is not like this process; nothing was run.

    Parameters
    ----------
    words : str
        What it lacks, and what to do.
    place : str
        The process.
    """

    words: str
    place: str = ""


Outcome = Done | Raised | Lacks
"""What came of a span."""


@runtime_checkable
class Engine(Protocol):
    """A place where spans of trials run.

    An engine starts no servers, and leaves what its caller opened as it was. Trouble of its own it
    raises as `hushed.errors.WorkerLost` or `hushed.errors.EngineUnavailable`.

    Examples
    --------
    One place, in this process:

    >>> import hushed as hs
    >>> class Here:
    ...     name = "this process"
    ...     def slots(self):
    ...         return 1
    ...     def map_spans(self, task, spans):
    ...         for span in spans:
    ...             yield span, hs.engines.run_span(task.payload, task.digest, task.seed, *span)
    >>> ages = hs.populations.Uniform(low=0, high=100)
    >>> mean = lambda rows: rows.mean()
    >>> there = hs.sample_sensitivity(mean, ages, rows=50, pairs=60, workers=Here())
    >>> there.value == hs.sample_sensitivity(mean, ages, rows=50, pairs=60).value
    True
    """

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def slots(self) -> int:
        """Count the places for spans; it may change during a run.

        Returns
        -------
        int
            Their number.
        """

    def map_spans(self, task: Task, spans: Iterator[Span]) -> Iterator[tuple[Span, Outcome]]:
        """Run spans, and give what came of each, once, as it comes and in any order.

        Spans are taken from the iterator when a place becomes free, for their length follows from
        how fast those before them were. Closing the result cancels what is on its way. A worker
        calls `hushed.engines.run_span`.

        Parameters
        ----------
        task : Task
            What is run.
        spans : iterator of (int, int)
            What it is run for.

        Returns
        -------
        iterator of (Span, Outcome)
            Spans, and what came of them.
        """
