"""Program of a process that serves one isolated call and ends; run by its path, alone.

It imports nothing of this package, so that it starts quickly. It is told what to do through its
standard input: first everything public, then, once it has said that it is ready, one part of the
private rows. It answers with doubles of a fixed number, or with nothing.
"""

from __future__ import annotations

import math
import os
import pickle
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

HEAD = struct.Struct("<Q")  # the length of a message stands before it
READY, BROKEN = b"R", b"X"
LONGEST_NAME = 100  # of the exception that loading the function raised
_SHORT = 4096


def read_waiting(pid: int | str) -> dict[str, int]:
    """Read how long each thread of a process has waited for a processor, in nanoseconds."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            found[thread] = int(read_small(f"/proc/{pid}/task/{thread}/schedstat").split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended in between
    return found


def read_written(pid: int | str) -> int:
    """Read how many bytes a process has written, to whatever."""
    return int(read_small(f"/proc/{pid}/io").partition(b"wchar:")[2].split(None, 1)[0])


def read_small(path: str) -> bytes:
    """Read a short file of the kernel: a third of the time that a file object takes."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, _SHORT)
    finally:
        os.close(file)


def main(answers: int, life: int) -> None:
    """Serve one call."""
    _end_with_parent(life)
    source = os.fdopen(os.dup(0), "rb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    told = pickle.loads(_read_message(source))  # noqa: S301  (from the parent)
    try:
        call = _prepare(told)
    except BaseException as cause:
        name = type(cause).__name__.encode()[:LONGEST_NAME]
        os.write(answers, BROKEN + HEAD.pack(len(name)) + name)
        return
    _limit(told)
    meter = _Meter()
    os.set_inheritable(answers, False)
    os.write(answers, READY)
    message = _read_message(source)
    source.close()
    meter.start()
    numbers = _answer(call, told, message)
    if not meter.is_over(told):
        _write(answers, numbers)
        while True:  # the parent ends it; taking its memory apart here would slow down the next
            signal.pause()


def _end_with_parent(life: int) -> None:
    """Have the kernel kill this process group once nobody can write to a pipe any more."""
    import fcntl  # noqa: PLC0415  (not on all systems)

    # Opened anew, for whom a pipe signals belongs to what was opened, which all calls were given.
    own = os.open(f"/proc/self/fd/{life}", os.O_RDONLY | os.O_NONBLOCK)
    os.close(life)
    fcntl.fcntl(own, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def _read_message(source: IO[bytes]) -> bytearray:
    """Read a message of known length; one that ends early means that the parent is gone."""
    head = source.read(HEAD.size)
    if len(head) < HEAD.size:
        os._exit(1)
    message = bytearray(HEAD.unpack(head)[0])
    if source.readinto(message) < len(message):  # type: ignore[attr-defined]
        os._exit(1)
    return message


def _prepare(told: dict[str, Any]) -> Callable[[Any], Any]:
    """Load what is the same for every part."""
    sys.argv[:] = [""]
    sys.path[:] = told["path"]
    os.environ["HOME"] = os.getcwd()
    for name in ("numpy.ma", "numpy.random", *told["modules"]):
        import_module(name)
    told["labels"] = None if told["labels"] is None else pickle.loads(told["labels"])  # noqa: S301
    function: Callable[[Any], Any] = pickle.loads(told["function"])  # noqa: S301
    _rehearse()
    return function


def _rehearse() -> None:
    """Do once, without the function, what each call does: what is done first takes longer."""
    import numpy as np  # noqa: PLC0415

    nothing = bytearray(pickle.dumps((0, np.zeros(1)), protocol=5))
    _answer(lambda rows: rows, {"labels": None, "shape": (1,)}, nothing[:])
    _answer(lambda rows: float(rows[0]), {"labels": None, "shape": ()}, nothing)


def _limit(told: dict[str, Any]) -> None:
    """Set the limits that the kernel watches; the memory counts from what is taken up now.

    Processor time is none of them: with a limit, the kernel counts it in ticks of milliseconds.
    """
    import resource  # noqa: PLC0415  (not on all systems)

    taken = int(read_small("/proc/self/statm").split()[0]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_AS, taken + told["memory"]),
        (resource.RLIMIT_FSIZE, told["disk"]),
        (resource.RLIMIT_CORE, 1),  # 0 would still hand the memory to a program that collects dumps
    ):
        old = resource.getrlimit(kind)[1]
        new = most if old == resource.RLIM_INFINITY else min(most, old)
        resource.setrlimit(kind, (new, new))
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if memory runs out, this one goes before its parent


class _Meter:
    """What one call has used up of its own; what others made it wait for is left out."""

    def __init__(self) -> None:
        self.waited = sum(read_waiting("self").values())
        self.written = read_written("self")
        self.start()

    def start(self) -> None:
        """Count time from now on."""
        self.begun = time.monotonic()
        self.seconds = self._seconds()

    def is_over(self, told: dict[str, Any]) -> bool:
        """Whether the call has used more than it may."""
        seconds = self._seconds() - self.seconds
        asleep = time.monotonic() - self.begun - seconds
        if asleep > told["idle_seconds"]:
            asleep -= (sum(read_waiting("self").values()) - self.waited) / 1e9
        written = read_written("self") - self.written
        used = (seconds, "cpu_seconds"), (asleep, "idle_seconds"), (written, "disk")
        return any(amount > told[name] for amount, name in used)

    def _seconds(self) -> float:
        """Processor time of all threads, and of the programs that they have waited for."""
        import resource  # noqa: PLC0415  (not on all systems)

        others = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + others.ru_utime + others.ru_stime


def _answer(call: Callable[[Any], Any], told: dict[str, Any], message: bytearray) -> bytes:
    """Call the function on its part, and make doubles of what it gives; raises if that fails."""
    import numpy as np  # noqa: PLC0415

    seed, part = pickle.loads(message)  # noqa: S301  (from the parent)
    message.clear()
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    raw = call(part)
    if told["labels"] is not None:
        equal = (at for at, label in enumerate(told["labels"]) if bool(raw == label))
        return struct.pack("=d", next(equal))
    if type(raw) in (float, np.float64) and told["shape"] == ():  # quick: what most functions give
        if not math.isfinite(raw):
            raise ValueError
        return struct.pack("=d", raw)
    if np.ma.is_masked(raw):
        raise ValueError
    numbers = np.asarray(_fetch(raw))
    if numbers.dtype.name == "bfloat16":  # of JAX
        numbers = numbers.astype(np.float32)
    if numbers.dtype.kind not in "biuf" or numbers.shape != told["shape"]:
        raise ValueError
    numbers = numbers.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError
    return numbers.tobytes()


def _fetch(raw: Any) -> Any:
    """Bring tensors of torch to the host, without gradients, as `hushed._ground.tensors` does."""
    torch = sys.modules.get("torch")
    if torch is None:
        return raw
    if type(raw) in (list, tuple):
        return [_fetch(each) for each in raw]
    if not isinstance(raw, torch.Tensor):
        return raw
    here = raw.detach().cpu()
    return (here.float() if here.dtype is torch.bfloat16 else here).numpy()


def _write(target: int, message: bytes) -> None:
    left = memoryview(message)
    while left:
        left = left[os.write(target, left) :]


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]))
    finally:
        os._exit(0)
