"""A fresh process for one call, as its parent sees it: started, told, watched and ended."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hushed._functions._isolated_call import (
    BROKEN,
    HEAD,
    LONGEST_NAME,
    READY,
    read_small,
    read_waiting,
    read_written,
)

_PROGRAM = str(Path(__file__).with_name("_isolated_call.py"))
_MARGIN = 1.0  # seconds: the process judges itself; the parent ends what does not end
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_AT_ONCE = 1 << 16

# One thread for each call, whatever computes: what is split rounds differently, and threads of one
# call would wait for each other while those of others compute.
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
# Graphics processors have one memory for all calls: one that takes it up would make others fail.
_NO_DEVICES = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ROCR_VISIBLE_DEVICES": "",
    "JAX_PLATFORMS": "cpu",
}


class NestedCalls(RuntimeError):
    """Calls that were to be started within a call."""


class Process:
    """A process that serves one call.

    Parameters
    ----------
    life : int
        A pipe that ends with this process.
    seed : int
        What its global generators are set to beforehand: the seed that its part will probably have.
    """

    def __init__(self, life: int, seed: int) -> None:
        self.ready = False
        self.task: int | None = None
        self.got = bytearray()
        self._outbox: list[bytes | memoryview] = []
        self._meter: _Meter | None = None
        self.folder = ""
        self.target, requests = socket.socketpair()
        self.source, answers = os.pipe()
        try:
            self.folder = tempfile.mkdtemp(prefix="hushed-call-")
            self._made = os.stat(self.folder).st_mtime_ns
            self._child = subprocess.Popen(  # noqa: S603
                [sys.executable, _PROGRAM, str(answers), str(life), str(seed)],
                stdin=requests.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(answers, life),
                cwd=self.folder,
                env=_choose_environment(os.environ, self.folder),
                start_new_session=True,
            )
        except BaseException:
            self._forget()
            raise
        finally:
            os.close(answers)
            requests.close()
        self.target.setblocking(False)
        os.set_blocking(self.source, False)

    @property
    def busy(self) -> bool:
        """Whether there is something left to be sent."""
        return bool(self._outbox)

    def say(self, message: Sequence[bytes | memoryview], task: int | None) -> None:
        """Send a message: what pipes take now, and the rest by ``push``."""
        self.task = task
        self._outbox = [HEAD.pack(sum(map(len, message))), *message]
        self.push()

    def push(self) -> None:
        """Send as much as the pipe takes."""
        try:
            while self._outbox:
                # Without a signal if it has ended: programs may let that one end them. All at once,
                # for it wakes up at the first byte.
                sent = self.target.sendmsg(self._outbox, [], socket.MSG_NOSIGNAL)
                while self._outbox and sent >= len(self._outbox[0]):
                    sent -= len(self._outbox.pop(0))
                if sent:
                    self._outbox[0] = memoryview(self._outbox[0])[sent:]
        except BlockingIOError:
            return
        except OSError:  # it has ended; what it may have said is read elsewhere
            self._outbox = []

    def pull(self, most: int) -> bool:
        """Read what it says, but no more than so many bytes; False once it says no more."""
        try:
            found = os.read(self.source, min(_AT_ONCE, most + 1 - len(self.got)))
        except BlockingIOError:
            return True
        if found and not self.got and self.task is not None:
            self._meter = None  # a long answer waits for its reader: count anew
        self.got += found
        return bool(found)

    def listen(self) -> str:
        """Hear whether it is ready; the reason if it cannot be."""
        if self.got[:1] == READY:
            self.ready = True
            self.got.clear()
        elif self.got[:1] == BROKEN and len(self.got) > HEAD.size:
            return self.got[1 + HEAD.size :].decode(errors="replace") or "an exception"
        return ""

    @property
    def longest_word(self) -> int:
        """Most bytes that it says before its call."""
        return 1 + HEAD.size + LONGEST_NAME

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._child.poll() is None

    def is_over(self, limits: Mapping[str, float]) -> bool:
        """Whether its call has used far more than it may."""
        if self._meter is None and not self._outbox:
            self._meter = _Meter(self._child.pid)
        return self._meter is not None and self._meter.is_over(limits)

    def stop(self) -> int:
        """Halt it and what it has started; how many bytes of memory it goes on holding."""
        self._signal(signal.SIGSTOP)
        with suppress(OSError):
            if os.stat(self.folder).st_mtime_ns != self._made:
                _remove(self.folder)
        return self.measure()

    def measure(self) -> int:
        """Measure the memory that it holds, in bytes; 0 once it is gone."""
        try:
            return int(read_small(f"/proc/{self._child.pid}/statm").split(None, 2)[1]) * _PAGE
        except OSError:
            return 0

    def kill(self) -> None:
        """End it and what it has started, at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        """Send a signal to it and to what it has started, unless it was waited for already."""
        if self._child.returncode is None:
            try:
                os.killpg(self._child.pid, number)
            except (ProcessLookupError, PermissionError):
                self._child.send_signal(number)

    def clear(self) -> None:
        """Wait for its end, and remove what it has left."""
        self._child.wait()
        self._forget()

    def _forget(self) -> None:
        self.target.close()
        os.close(self.source)
        if self.folder:
            _remove(self.folder)


class _Meter:
    """What a process uses up, seen from outside; what others made it wait for is left out."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.begun = time.monotonic()
        self.waited: dict[str, int] = {}  # by thread, also of those that have ended
        self.start = self._read()

    def _read(self) -> tuple[float, float, int]:
        """Read processor seconds, waited seconds and written bytes so far; zeros once it ended."""
        try:
            fields = read_small(f"/proc/{self.pid}/stat").rpartition(b")")[2].split()
            self.waited |= read_waiting(self.pid)
            written = read_written(self.pid)
        except (OSError, IndexError):
            return 0.0, 0.0, 0
        return sum(map(int, fields[11:15])) / _TICKS, sum(self.waited.values()) / 1e9, written

    def is_over(self, limits: Mapping[str, float]) -> bool:
        """Whether any limit is passed by far."""
        seconds, waited, written = (a - b for a, b in zip(self._read(), self.start, strict=True))
        asleep = time.monotonic() - self.begun - seconds - waited
        return (
            seconds > limits["cpu_seconds"] + _MARGIN
            or asleep > limits["idle_seconds"] + _MARGIN
            or written > limits["disk"]
        )


def require_no_call() -> None:
    """Refuse to start calls within one: a file that asks when it is imported would never end."""
    if getattr(sys.modules.get("__main__"), "__file__", "") == _PROGRAM:
        raise NestedCalls("an isolated call cannot start others")


def _choose_environment(ours: Mapping[str, str], folder: str) -> dict[str, str]:
    """Give the environment of a call: that of this process, with a place and threads of its own."""
    kept = {name: ours[name] for name in ours if not name.startswith("XDG_")}
    return {
        **kept,
        **dict.fromkeys(_ONE_THREAD, "1"),
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP", "PWD"), folder),
        **_NO_DEVICES,
        "PYTHONHASHSEED": "0",
    }


def _remove(folder: str) -> None:
    """Remove a folder, also where something in it was locked or is too deep; never raises.

    What cannot be removed stays: an error would tell what one call did.
    """
    with suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    with suppress(OSError, subprocess.SubprocessError):
        _run("rm", "-rf", "--", folder)
        if os.path.lexists(folder):  # folders alone: a file may have another name elsewhere
            _run("find", folder, "-xdev", "-type", "d", "-exec", "chmod", "u+rwx", "{}", ";")
            _run("rm", "-rf", "--", folder)


def _run(*words: str) -> None:
    """Run a program in silence: those of the system go down any depth."""
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: S603
