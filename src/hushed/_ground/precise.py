"""Numbers of many digits, in one thread at a time.

mpmath has one precision for the whole program: a thread that leaves `mpmath.workprec` sets it for
all others, in the middle of what they compute, and two that overlap leave it changed for good. So
nothing here computes in the context of the user, `mpmath.mp`, but in one of our own, which a thread
has to itself as long as it has set a precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mpmath
from mpmath.ctx_mp import MPContext

from hushed._ground.forks import ForkSafeLock

Mpf = Any  # a number of that context
_KEPT = 4096  # bits of constants: mpmath keeps the longest that it met, and sets it in two steps
_TURN = ForkSafeLock()


class _Context(MPContext):  # type: ignore[misc]
    """What `mpmath` is, with a precision that other threads leave alone."""

    @contextmanager
    def workprec(self, n: int) -> Iterator[None]:
        """Compute with so many bits within the block."""
        with _TURN, super().workprec(n):
            yield

    @contextmanager
    def workdps(self, n: int) -> Iterator[None]:
        """Compute with so many digits within the block."""
        with _TURN, super().workdps(n):
            yield


mp: Any = _Context()
with mp.workprec(_KEPT):  # so that they are there, and no other thread is met as it sets them
    _CONSTANTS = [+each for each in (mp.ln2, mp.ln10, mp.pi, mp.e)]


def hand_out(number: Mpf) -> Any:
    """Give a number, with all of its digits, as one of the context of the user."""
    return mpmath.mp.make_mpf(number._mpf_)
