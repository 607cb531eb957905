"""Work that is sent to workers, with what it takes to do it there as here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np

from hushed._functions._environment import compute_alone, differences, facts
from hushed._functions._streams import Streams, streams
from hushed._ground.types import Floats
from hushed.engines._worker import name_process

_UNLIKE = "it differs from the process that sent the work"
_TEXT = "any text"  # Python hashes texts by a seed of each process
_UNORDERED = (
    "sets of texts are in another order there, and the function gives other answers: let it sort "
    "them, or set PYTHONHASHSEED=0 in all processes"
)
_WHERE = "at the sender", "at the worker"

Evaluate = Callable[[Streams], Floats]
"""Consumes one generator for each trial, gives one row of results for each, stacked.

It may be asked for the same trials again, and must then give the same."""


class Alike(Protocol):
    """Asked in a worker: whether what was loaded there does the same as here."""

    @property
    def packages(self) -> Collection[str]:
        """Installed packages that it uses."""

    @property
    def texts(self) -> bool:
        """Whether rows hold what each process hashes in its own way, as texts."""

    def __call__(self, evaluate: Any, /, *, exact: bool) -> bool:
        """Tell it; answers may differ by rounding unless they must be exact."""


class Sent:
    """The work of a run.

    Parameters
    ----------
    evaluate : callable
        What is run.
    alike : Alike or None
        Asked in a worker whether it is the same there.
    """

    def __init__(self, evaluate: Evaluate, alike: Alike | None) -> None:
        self.evaluate, self.alike = evaluate, alike
        self.filters = pack_filters()
        self.loaded: list[Any] | None = None
        self.sender = name_process()
        self.facts: dict[str, str] = {}
        self.first: list[tuple[int, Floats]] = []
        self.seed = 0
        self.allowed = False
        self.note = ""
        self.order = hash(_TEXT) if alike is not None and alike.texts else None
        self.private = bool(getattr(evaluate, "private", False))
        self._used = () if alike is None else alike.packages

    def compare(self, first: list[tuple[int, Floats]], seed: int, *, allowed: bool) -> None:
        """Let workers of another kind repeat the first trials; other bits may be allowed."""
        self.facts, self.first, self.seed, self.allowed = facts(self._used), first, seed, allowed

    def repeat(self, first: list[tuple[int, Floats]], seed: int) -> None:
        """Let workers that order sets of texts in another way repeat the first trials."""
        self.first, self.seed = first, seed

    def prepare(self) -> str:
        """Tell what is wrong here: another function, or another rounding, than where it was sent.

        Where versions, processor and linear algebra are the same, no trial is repeated.
        """
        if self.sender != name_process():
            self.loaded = load_filters(self.filters)
        with filtered_as(self.loaded):
            used = self._used
            other = differences(self.facts, facts(used), _WHERE) if self.facts else ()
            if self.alike is not None and not self.alike(self.evaluate, exact=not other):
                return "the function is another one there, or answers otherwise"
            if not other and self.order in (None, hash(_TEXT)):
                return ""
            if not other:
                return "" if self._repeats_first() else _UNORDERED
            if self._repeats_first():
                self.note = f"{_UNLIKE} ({'; '.join(other)}), and gave the first bits alike"
                return ""
        words = f"it rounds otherwise than the process that sent the work ({'; '.join(other)})"
        if not self.allowed:
            return (
                f"{words}: use workers with the same processor and packages, or "
                'an engine with on_other_bits="note", as hs.engines.Dask(..., on_other_bits="note")'
            )
        self.note = words
        return ""

    def _repeats_first(self) -> bool:
        """Whether the first trials have the same bits; of other shapes they have not."""
        return all(
            np.array_equal(run_streams(self.evaluate, self.seed, at, at + 1), values)
            for at, values in self.first
        )

    def __call__(self, seed: int, start: int, stop: int) -> Floats:
        """Run a span."""
        with filtered_as(self.loaded):
            return run_streams(self.evaluate, seed, start, stop)


def pack_filters() -> list[bytes]:
    """Pickle the filters of warnings here, one by one.

    One that cannot be sent is left out, as one for a class of a module whose import failed
    half-way: as a rule no worker has that class, so that none warns with it.
    """
    import cloudpickle  # noqa: PLC0415

    found = []
    for each in warnings.filters:
        with suppress(Exception):
            found.append(cloudpickle.dumps(each))
    return found


def load_filters(packed: list[bytes]) -> list[Any]:
    """Load filters of warnings in a worker, but for those of classes that are not there."""
    import cloudpickle  # noqa: PLC0415

    found = []
    for each in packed:
        with suppress(Exception, SystemExit):
            found.append(cloudpickle.loads(each))
    return found


@contextmanager
def filtered_as(filters: list[Any] | None) -> Iterator[None]:
    """Filter warnings in a worker process, which does one thing at a time, as where it was sent."""
    if filters is None:  # by a thread of this process
        yield
        return
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filters[:] = filters  # type: ignore[index]
        yield


def run_streams(evaluate: Evaluate, seed: int, start: int, stop: int) -> Floats:
    """Results with one thread of BLAS: a worker has one, this process all of them."""
    return compute_alone(lambda: evaluate(streams(seed, start, stop)))
