"""Program of a process that serves one isolated call and ends; run by its path, alone.

It imports nothing of this package, so that it starts quickly. It is told what to do through its
standard input: first everything public, then, once it has said that it is ready, one part of the
private rows. It answers with doubles of a fixed number, or with nothing.

What it does between its part and its answer is as little as can be: its memory is not in the caches
of the processor by then, and each step takes many times as long as it takes when repeated.
"""

from __future__ import annotations

import marshal
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
from typing import Any

HEAD = struct.Struct("<Q")  # the length of a message stands before it
PART = struct.Struct("<II")  # before a part: its seed, and the length of what describes an array
ALIGNED = 64  # bytes: where the numbers of an array begin
READY, BROKEN = b"R", b"X"
LONGEST_NAME = 100  # of the exception that loading the function raised
_SHORT = 4096
_AT_ONCE = 1 << 16


def read_waiting(pid: int | str) -> dict[str, int]:
    """Read how long each thread of a process has waited for a processor, in nanoseconds."""
    found = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            found[thread] = int(read_small(f"/proc/{pid}/task/{thread}/schedstat").split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended in between
    return found


def read_written(pid: int) -> int:
    """Read how many bytes a process has written, to whatever."""
    return _find_written(read_small(f"/proc/{pid}/io"))


def _find_written(text: bytes) -> int:
    return int(text.partition(b"wchar:")[2].split(None, 1)[0])


def read_small(path: str) -> bytes:
    """Read a short file of the kernel: a third of the time that a file object takes."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, _SHORT)
    finally:
        os.close(file)


def main(answers: int, life: int, seed: int) -> None:
    """Serve one call; the seed is the one that its part will probably have."""
    _end_with_parent(life)
    source = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    buffer = bytearray(_AT_ONCE)
    told = pickle.loads(memoryview(_read_message(source, buffer))[HEAD.size :])  # noqa: S301  (from the parent)
    try:
        call = _prepare(told)
    except BaseException as cause:
        name = type(cause).__name__.encode()[:LONGEST_NAME]
        os.write(answers, BROKEN + HEAD.pack(len(name)) + name)
        return
    _limit(told)
    meter = _Meter()
    os.set_inheritable(answers, False)
    _seed(seed)
    os.write(answers, READY)
    message = _read_message(source, buffer)
    meter.start()
    numbers = _answer(call, told, message, seed)
    if not meter.is_over(told):
        _write(answers, numbers)
        while True:  # the parent ends it; taking its memory apart here would slow down the next
            os.kill(os.getpid(), signal.SIGSTOP)


def _end_with_parent(life: int) -> None:
    """Have the kernel kill this process group once nobody can write to a pipe any more."""
    import fcntl  # noqa: PLC0415  (not on all systems)

    # Opened anew, for whom a pipe signals belongs to what was opened, which all calls were given.
    own = os.open(f"/proc/self/fd/{life}", os.O_RDONLY | os.O_NONBLOCK)
    os.close(life)
    fcntl.fcntl(own, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)


def _read_message(source: int, buffer: bytearray) -> bytearray:
    """Read a message of known length, its head included, into a buffer or a larger one."""
    found = os.readv(source, [buffer])
    while found < HEAD.size:
        found += _read_more(source, memoryview(buffer)[found:])
    wanted = HEAD.size + HEAD.unpack_from(buffer)[0]
    if wanted > len(buffer):
        short, buffer = buffer, bytearray(wanted)
        buffer[:found] = memoryview(short)[:found]
    while found < wanted:
        found += _read_more(source, memoryview(buffer)[found:])
    return buffer


def _read_more(source: int, place: memoryview) -> int:
    """Read what is there; a message that ends early means that the parent is gone."""
    return os.readv(source, [place]) or os._exit(1)


def _read_part(message: bytearray) -> tuple[int, Any]:
    """Read the seed and the part from a message."""
    seed, described = PART.unpack_from(message, HEAD.size)
    begin = HEAD.size + PART.size
    if not described:
        end = HEAD.size + HEAD.unpack_from(message)[0]
        part = pickle.loads(memoryview(message)[begin:end])  # noqa: S301  (from the parent)
        message.clear()
        return seed, part
    import numpy as np  # noqa: PLC0415

    kind, shape = marshal.loads(memoryview(message)[begin : begin + described])  # noqa: S302
    begin += described + -(begin + described) % ALIGNED
    return seed, np.ndarray(shape, kind, message, begin)


def _seed(seed: int) -> None:
    """Set the global generators to a public seed."""
    import numpy as np  # noqa: PLC0415

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


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
    held, described = pickle.dumps([1.0]), marshal.dumps(("<f8", (1,)))
    one = bytearray(HEAD.pack(PART.size + len(held)) + PART.pack(0, 0) + held)
    _answer(lambda rows: rows, {"labels": None, "shape": (1,)}, one, 1)
    one = bytearray(HEAD.pack(2 * ALIGNED - HEAD.size) + PART.pack(0, len(described)) + described)
    one = one.ljust(2 * ALIGNED, b"\0")
    _answer(lambda rows: float(rows[0]), {"labels": None, "shape": ()}, one, 0)


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
        self.counters = os.open("/proc/self/io", os.O_RDONLY | os.O_CLOEXEC)
        self.written = self._read_written()
        self.programs = _time_programs()
        self.start()
        self.is_over(dict.fromkeys(("cpu_seconds", "idle_seconds", "disk"), math.inf))

    def start(self) -> None:
        """Count time from now on."""
        self.begun = time.monotonic()
        self.seconds = time.process_time()

    def is_over(self, told: dict[str, Any]) -> bool:
        """Whether the call has used more than it may; programs that it has waited for count."""
        seconds = time.process_time() - self.seconds + _time_programs() - self.programs
        asleep = time.monotonic() - self.begun - seconds
        if asleep > told["idle_seconds"]:
            asleep -= (sum(read_waiting("self").values()) - self.waited) / 1e9
        written = self._read_written() - self.written
        used = (seconds, "cpu_seconds"), (asleep, "idle_seconds"), (written, "disk")
        return any(amount > told[name] for amount, name in used)

    def _read_written(self) -> int:
        """Read what was written so far, from a file that is open: to open it takes longer."""
        return _find_written(os.pread(self.counters, _SHORT, 0))


def _time_programs() -> float:
    """Read the processor time of the programs that this process has waited for."""
    import resource  # noqa: PLC0415  (not on all systems)

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _answer(
    call: Callable[[Any], Any], told: dict[str, Any], message: bytearray, seeded: int
) -> bytes:
    """Call the function on its part, and make doubles of what it gives; raises if that fails."""
    import numpy as np  # noqa: PLC0415

    seed, part = _read_part(message)
    if seed != seeded:
        _seed(seed)
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
    numbers = np.asarray(_fetch([*raw.values()] if type(raw) is dict else raw))
    if numbers.dtype.name == "bfloat16":  # of JAX
        numbers = numbers.astype(np.float32)
    alone = numbers.shape == (1,) and told["shape"] == ()
    if numbers.dtype.kind not in "biuf" or not (alone or numbers.shape == told["shape"]):
        raise ValueError
    numbers = numbers.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError
    return numbers.tobytes()


def _fetch(raw: Any) -> Any:
    """Bring tensors of torch to the host, without gradients, as `hushed._ground.tensors` does."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "Tensor"):  # it may be half imported
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
        main(*map(int, sys.argv[1:]))
    finally:
        os._exit(0)
