"""Random words from the operating system: never seeded, never used twice."""

from __future__ import annotations

import io
import os
import sys
import threading
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["OperatingSystemWords", "Words", "operating_system_words"]

_BLOCK = 1 << 16  # bytes read ahead for small requests


class Words(Protocol):
    """A source of independent, uniformly distributed 64-bit words."""

    def take(self, count: int) -> NDArray[np.uint64]:
        """Return words that nobody has seen and nobody will see again.

        Parameters
        ----------
        count : int
            Number of words; 0 or more.

        Returns
        -------
        ndarray of uint64, shape (count,)
            Independent words, uniform over all 64-bit values.
        """

    def word(self) -> int:
        """Return one such word as an integer.

        Returns
        -------
        int
            Uniform over 0 to ``2**64 - 1``.
        """


class OperatingSystemWords:
    """Words from `os.urandom`, read in blocks; one object for each thread.

    Notes
    -----
    The block is consumed by one call into C (`io.BytesIO.read`), which moves the position and
    hands out the bytes in one step: a signal handler that draws too cannot see the same bytes.
    Before each use the process identity is compared, and a block read by a parent process is
    dropped, so a forked child never repeats its parent's words, however the fork was made.
    """

    __slots__ = ("_block", "_process")

    def __init__(self) -> None:
        self._block = io.BytesIO()
        self._process = os.getpid()

    def take(self, count: int) -> NDArray[np.uint64]:
        """Return fresh words.

        Parameters
        ----------
        count : int
            Number of words; 0 or more.

        Returns
        -------
        ndarray of uint64, shape (count,)
            Read-only array of words that are handed out once.
        """
        wanted = 8 * count
        if wanted >= _BLOCK:
            return np.frombuffer(os.urandom(wanted), dtype=np.uint64)
        return np.frombuffer(self._read(wanted), dtype=np.uint64)

    def word(self) -> int:
        """Return one fresh word as an integer.

        Returns
        -------
        int
            Uniform over 0 to ``2**64 - 1``; handed out once.
        """
        return int.from_bytes(self._read(8), sys.byteorder)

    def _read(self, wanted: int) -> bytes:
        process = os.getpid()
        if process != self._process:
            self._block, self._process = io.BytesIO(), process
        taken = self._block.read(wanted)
        while len(taken) < wanted:  # the rest of a used-up block is thrown away
            fresh = io.BytesIO(os.urandom(_BLOCK))
            taken = fresh.read(wanted)
            self._block = fresh
        return taken


_SOURCES = threading.local()


def operating_system_words() -> OperatingSystemWords:
    """Give the calling thread its own source of operating-system words.

    Returns
    -------
    OperatingSystemWords
        The same object for every call in one thread of one process.
    """
    source: OperatingSystemWords | None = getattr(_SOURCES, "words", None)
    if source is None:
        source = OperatingSystemWords()
        _SOURCES.words = source
    return source


def _forget() -> None:
    _SOURCES.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
