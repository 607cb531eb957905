"""Processes that wait for the calls of blocks, kept from one release to the next."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, Self, get_args

from hushed._functions._carried import list_unsearched
from hushed._functions._isolated_messages import pack_function
from hushed._functions._isolation import Isolation
from hushed._functions._limits import count_waiting
from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of
from hushed.blocks._calls import open_calls
from hushed.blocks._mechanism import Blocks
from hushed.errors import BadFunction, ParameterError

Frames = Literal["pandas", "polars"]


@called_as("hs.blocks.Pool(f, hs.Blocks(low=0, high=100, epsilon=1.0))")
class Pool:
    """Fresh processes that wait for the blocks of a release, kept from one release to the next.

    Without a pool `hushed.release` starts a process for each block when it needs one. A pool has
    started them before, and starts new ones after each release, in the background. Give it to
    `hushed.release` in place of the function.

    Each process still serves one call and ends, so that no call finds what another has left: the
    promise is the same, and so is the certificate. What is kept is processes that have loaded
    the function, and have seen no row.

    Parameters
    ----------
    f : callable
        The function. It is sent to the processes now, and must not be changed afterwards.
    mechanism : Blocks
        What it is released by. Later ones may have another promise, with the same limits and the
        same kind of answer.
    frames : {"pandas", "polars"}, optional
        What the rows will be held in, unless in an array or a list: the processes import it.

    Raises
    ------
    BadFunction
        If the function cannot be loaded in a fresh process.
    ParameterError
        If `f` is no function, or `mechanism` not `hushed.Blocks`.
    Refusal
        Where calls cannot be isolated: they need Linux.

    See Also
    --------
    hushed.Blocks : What a pool serves.

    Notes
    -----
    A process that waits holds some 35 MB, with pandas 100 MB; all of them together hold an eighth
    of the memory of the machine at most. For blocks beyond that processes are started when they are
    needed, as without a pool. Leave the ``with``, or `close` it, and they end; they do so when this
    program ends, too. Threads may share a pool: their releases ask one after another.

    Modules that the function imports, files and environment variables are those of the moment when
    a process started, which is when the pool was opened or after the release before: where they
    change, open another.

    Examples
    --------
    >>> import numpy as np
    >>> import hushed as hs
    >>> mechanism = hs.Blocks(low=0, high=1, epsilon=4.0, blocks=8)
    >>> rows = np.linspace(0, 1, 200)  # private
    >>> with hs.blocks.Pool(np.median, mechanism) as ready:
    ...     first = hs.release(ready, rows, mechanism)
    ...     second = hs.release(ready, rows, mechanism)
    >>> first.certificate.guarantee.epsilon
    4.0
    """

    def __init__(
        self, f: Callable[[Any], Any], mechanism: Blocks, *, frames: Frames | None = None
    ) -> None:
        if not callable(f):
            raise BadFunction(f"a pool is for a function of the rows, got {type(f).__name__}")
        if type(mechanism) is not Blocks:
            raise ParameterError(
                f"a pool is for hs.Blocks, got {type(mechanism).__name__}", parameter="mechanism"
            )
        if frames is not None:
            require_one_of("frames", frames, get_args(Frames))
        self.function = f
        list_unsearched(f)  # as a release does: some objects are packed otherwise once looked at
        self._told = pack_function(f)
        self._answers = _tell_answers(mechanism)
        self._mechanism, self._frames = mechanism, frames
        self._lock, self._owner = threading.Lock(), os.getpid()
        self._closed = False
        self._kept: Isolation | None = self._open()

    def _open(self) -> Isolation:
        """Start as many processes as there are blocks, or as may wait, and wait for them."""
        opened = open_calls(self._mechanism, self.function, 1, self._frames or "array")
        opened.__enter__()
        try:
            self._count = count_waiting(opened.held, self._mechanism.blocks or 1)
            opened.warm(self._count)
        except BaseException:
            opened.close()
            raise
        self._end = weakref.finalize(self, _end, opened, self._owner)
        return opened

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes. A release that asks just now has its answer first."""
        with self._lock:
            self._closed = True
            self._end()

    def check(self, mechanism: Blocks, held: str) -> None:
        """Refuse a release that these processes were not started for; nothing is charged.

        Parameters
        ----------
        mechanism : Blocks
            What is released by.
        held : str
            What the rows are held in, such as ``"pandas"``.

        Raises
        ------
        ParameterError
            If the pool is closed, or was opened for other answers, limits or frames.
        BadFunction
            If the function has changed since.
        """
        if self._closed or os.getpid() != self._owner:
            where = "is closed" if self._closed else "belongs to another process"
            raise ParameterError(f"the pool {where}: open another with hs.blocks.Pool")
        if _tell_answers(mechanism) != self._answers:
            raise ParameterError(
                "the pool was opened for other limits, or answers of another kind: open another "
                "with hs.blocks.Pool(f, mechanism)"
            )
        if held in get_args(Frames) and held != self._frames:
            raise ParameterError(
                f"the rows are a frame of {held}, which the processes of the pool have not "
                f"imported: open it with frames={held!r}",
                parameter="frames",
            )
        if pack_function(self.function) != self._told:
            raise BadFunction(
                "the function, or something that it holds, has changed since the pool was opened: "
                "open another"
            )

    @contextmanager
    def lend(self) -> Iterator[Isolation]:
        """Lend the processes to one release, and start new ones after it.

        One of them has loaded the function by then: where that fails, nothing is charged. If the
        release is stopped while it asks, none of them is used again: one may hold an answer that
        nobody has read.

        Yields
        ------
        Isolation
            The processes, to be asked once.

        Raises
        ------
        ParameterError
            If the pool is closed.
        BadFunction
            If the function can no longer be loaded in a fresh process.
        """
        with self._lock:
            if self._closed:
                raise ParameterError("the pool is closed: open another with hs.blocks.Pool")
            calls, self._kept = self._kept or self._open(), None
            try:
                calls.wait()
            except BaseException:
                self._end()
                raise
            try:
                yield calls
                calls.refill(self._count)
            finally:
                if calls.asked:
                    self._end()
                else:
                    self._kept = calls


def _tell_answers(mechanism: Blocks) -> tuple[object, ...]:
    """Tell what processes are told of a mechanism; labels as text, for 1 equals True."""
    labels = repr(mechanism.values) if mechanism.labelled else None
    return mechanism.aggregation.shape, labels, mechanism.limits


def _end(calls: Isolation, owner: int) -> None:
    """End the processes, but not from a copy of the process that has started them."""
    if os.getpid() == owner:
        calls.close()
