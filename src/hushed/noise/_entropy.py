"""Random words from the operating system: never seeded, never used twice."""

from __future__ import annotations

import io
import os
import sys
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_FIRST, _BLOCK = 1 << 8, 1 << 16  # bytes read ahead within one draw, at first and at most


class Words(Protocol):
    """A source of independent, uniformly distributed 64-bit words."""

    def take(self, count: int) -> NDArray[np.uint64]:
        """Return words that nobody has seen and nobody will see again."""

    def word(self) -> int:
        """Return one such word as an integer."""


class OperatingSystemWords:
    """Words from `os.urandom`, read in blocks; one object for each draw.

    Notes
    -----
    Nothing is read ahead for another draw: a copy of the whole machine, made between two releases
    and resumed twice, finds no words to use twice. Within a draw blocks grow by doubling.
    The block is consumed by one call into C (`io.BytesIO.read`), which moves the position and
    hands out the bytes in one step: a signal handler that draws too cannot see the same bytes.
    Before each use the process identity is compared, and a block read by a parent process is
    dropped, so a forked child never repeats its parent's words, however the fork was made.
    """

    __slots__ = ("_ahead", "_block", "_process")

    def __init__(self) -> None:
        self._ahead = _FIRST
        self._block = io.BytesIO()
        self._process = os.getpid()

    def take(self, count: int) -> NDArray[np.uint64]:
        """Return fresh words."""
        wanted = 8 * count
        if wanted >= _BLOCK:
            return np.frombuffer(os.urandom(wanted), dtype=np.uint64)
        return np.frombuffer(self._read(wanted), dtype=np.uint64)

    def word(self) -> int:
        """Return one fresh word as an integer."""
        return int.from_bytes(self._read(8), sys.byteorder)

    def _read(self, wanted: int) -> bytes:
        process = os.getpid()
        if process != self._process:
            self._block, self._process = io.BytesIO(), process
        taken = self._block.read(wanted)
        while len(taken) < wanted:  # the rest of a used-up block is thrown away
            fresh = io.BytesIO(os.urandom(max(wanted, self._ahead)))
            taken = fresh.read(wanted)
            self._block, self._ahead = fresh, min(2 * self._ahead, _BLOCK)
        return taken


def operating_system_words() -> OperatingSystemWords:
    """Give a draw its own source of operating-system words."""
    return OperatingSystemWords()
