"""What several processes of one server have in common: how often somebody has knocked.

It lies in a file without a name, which is handed on by its number and is gone with the last of
them. The lock of a process that is killed ends with it; what it was writing here is one knock.
"""

from __future__ import annotations

import hashlib
import mmap
import secrets
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from hushed.server._rates import Rates

Table = Literal["failures", "requests"]
_TABLES: tuple[Table, ...] = ("failures", "requests")  # who guesses crowds out nobody who asks
_SECONDS, _PARTS = 60, 12  # whoever knocked in one of the last thirteen parts is remembered
_SLOT = struct.Struct(f"<16sQ{_PARTS + 1}I")  # whose it is, its newest part, knocks by part
_SETS, _WAYS = 1024, 8  # a name has one of eight places; the one that knocked longest ago is left
_SECRET = 16  # bytes that mix names up: nobody can choose whom to crowd out
_SIZE = _SECRET + len(_TABLES) * _SETS * _WAYS * _SLOT.size


class Taking(Protocol):
    """Counts how often somebody knocks."""

    def take(self, name: str) -> bool:
        """Count one; False if there were as many as are allowed."""


class Shared:
    """Memory, by the number of a file that this process has open."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._memory = mmap.mmap(number, _SIZE)
        self._guard = threading.Lock()  # a lock of a file is that of a process, not of a thread

    def count(self, table: Table, name: str, most: int) -> bool:
        """Count a knock in all processes together; False if there were as many as are allowed."""
        key = hashlib.blake2b(name.encode(), digest_size=16, key=self._memory[:_SECRET]).digest()
        chosen = int.from_bytes(key[:2], "little") % _SETS
        first = _SECRET + (_TABLES.index(table) * _SETS + chosen) * _WAYS * _SLOT.size
        places = [first + i * _SLOT.size for i in range(_WAYS)]
        with self._guard, self._locked():
            # All processes of a computer read the same clock, which nobody sets.
            part = int(time.monotonic() * _PARTS / _SECONDS)
            found = [(each, _SLOT.unpack_from(self._memory, each)) for each in places]
            own = next((each for each in found if each[1][0] == key), None)
            place, kept = own or min(found, key=lambda each: each[1][1])
            knocks = _age(kept[2:], part - kept[1]) if own else [0] * (_PARTS + 1)
            if sum(knocks) >= most:
                return False
            knocks[0] += 1
            _SLOT.pack_into(self._memory, place, key, part, *knocks)
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes out. It is the only lock of this kind: two would seem to block."""
        import fcntl  # noqa: PLC0415  (not on all systems)

        fcntl.lockf(self.number, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self.number, fcntl.LOCK_UN)


def _age(knocks: tuple[int, ...], parts: int) -> list[int]:
    """Move knocks on by so many parts of a minute; the newest come first."""
    return [0] * min(parts, _PARTS + 1) + list(knocks[: max(0, _PARTS + 1 - parts)])


@contextmanager
def make_shared() -> Iterator[Shared]:
    """Make what the processes of a server share, for as long as this process needs it."""
    with tempfile.TemporaryFile(prefix="hushed-") as file:
        file.write(secrets.token_bytes(_SECRET))
        file.truncate(_SIZE)
        file.flush()
        yield Shared(file.fileno())


@dataclass(frozen=True, slots=True)
class SharedRates:
    """Counts knocks in all processes of a server."""

    shared: Shared
    table: Table
    most: int

    def take(self, name: str) -> bool:
        """Count one; False if there were as many as are allowed."""
        return self.shared.count(self.table, name, self.most)


def rates_of(shared: Shared | None, table: Table, most: int) -> Taking:
    """Count in this process, or in all that share something."""
    return Rates(most) if shared is None else SharedRates(shared, table, most)
