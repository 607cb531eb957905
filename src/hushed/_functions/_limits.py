"""What an isolated call may use, and how many may run at the same time."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count, require_positive
from hushed.errors import Refusal

_RESERVED = 4  # one part in so many of the memory is no call's


@called_as("hs.blocks.Limits(cpu_seconds=10.0)")
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What each call may use; the same for all, and no call can take another's.

    Parameters
    ----------
    cpu_seconds : float, default 60
        Processor time of all threads of the call, and of programs that it has waited for. Time in
        which it waits for its turn on a processor is not counted.
    idle_seconds : float, default 60
        Time in which it neither computes nor waits for its turn: it sleeps, or waits for a disk.
    memory : int, default 2 GiB
        Bytes of address space that it may take beyond those in use before it is given its part.
    disk : int, default 256 MiB
        Bytes that it may write in all, to whatever; no file can be longer.
    """

    cpu_seconds: float = 60.0
    idle_seconds: float = 60.0
    memory: int = 2 * 1024**3
    disk: int = 256 * 1024**2

    def __post_init__(self) -> None:
        for name in ("cpu_seconds", "idle_seconds"):
            object.__setattr__(self, name, require_positive(name, getattr(self, name)))
        for name in ("memory", "disk"):
            object.__setattr__(self, name, require_count(name, getattr(self, name)))


def count_workers(limits: Limits, workers: int | None = None) -> int:
    """Count the calls that may run at the same time, from public numbers alone.

    If calls and this process took up more memory than there is, the system would end a call for
    what others use. So a quarter stays for this process, and the memory of one call for those that
    have answered and are not taken apart yet. What this process takes up just now is not looked at:
    it follows from the rows.
    """
    if workers is None:
        import joblib  # noqa: PLC0415

        workers = int(joblib.cpu_count())
    memory = _read_memory()
    together = (memory - memory // _RESERVED) // limits.memory
    return max(1, min(require_count("workers", workers), together - 1))


def count_waiting(held: int, wanted: int) -> int:
    """Count the processes that may wait for calls, each holding so many bytes of memory.

    They have half of what is reserved for this process.
    """
    return max(1, min(wanted, _read_memory() // (2 * _RESERVED) // max(1, held)))


def _read_memory() -> int:
    """Read how much memory this machine has, or this container may take."""
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        allowed = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return installed
    return min(installed, int(allowed)) if allowed.isdigit() else installed


def require_linux() -> None:
    """Refuse where the limits do not exist, or cannot be watched."""
    watched = all(Path(f"/proc/self/{name}").exists() for name in ("schedstat", "io", "statm"))
    if not sys.platform.startswith("linux") or not watched:
        raise Refusal(
            "isolated calls need Linux with /proc: elsewhere memory cannot be limited, or the time "
            "for which a call waits for others cannot be told from its own"
        )
    if not sys.executable:
        raise Refusal("isolated calls need an interpreter to start, and sys.executable names none")
