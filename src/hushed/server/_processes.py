"""Processes that judge questions and read rows, as their server sees them: started and ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hushed.server._worker import BEGUN, PLACE, READY

_START_SECONDS = 60.0  # to load the library, and to open a table
_SENDING_SECONDS = 10.0  # for what it tells to arrive, once it has begun to
_ENDING_SECONDS = 5.0  # for a process whose line broke to be gone
_MOST_ASKED = 1000  # of one process
_LONGEST = 500_000_000  # bytes of what a process tells: databases store twice as much in a row
_PEEKED = 16 * 1024  # bytes that are looked at before they are taken
_FOLDER = str(Path(__file__).parents[2])  # where the package lies
_TEMPORARY = ("TMPDIR", "JOBLIB_TEMP_FOLDER")  # of what a function starts: it is removed, too
_FROM_OUTSIDE = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}


class Lost(Exception):
    """A process could not be started, ended, or took too long."""

    def __init__(self, *, late: bool = False) -> None:
        super().__init__()
        self.late = late  # it took too long


class Worker:
    """One process."""

    def __init__(self) -> None:
        with ExitStack() as begun:
            try:
                self._place = tempfile.mkdtemp(prefix="hushed-")  # where it may write
                begun.callback(shutil.rmtree, self._place, ignore_errors=True)
                ours, theirs = socket.socketpair()
                begun.enter_context(ours)
                with theirs:
                    self._process = subprocess.Popen(
                        # Not with the folder in which the server was started on the path.
                        [sys.executable, "-P", "-m", "hushed.server._worker"],
                        stdin=theirs.fileno(),
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=environment() | dict.fromkeys((PLACE, *_TEMPORARY), self._place),
                        start_new_session=True,  # Ctrl-C ends the server, and the server ends this
                    )
            except OSError:  # no place on the disk, no process or no file to be had
                raise Lost from None
            begun.pop_all()
        self._line = Connection(ours.detach())
        self._ready = False
        self._stopped = self._late = self._gone = False
        self.asked = 0

    def wait(self) -> None:
        """Wait until it has loaded what it needs."""
        if not self._ready:
            self._expect(READY, _START_SECONDS)
            self._ready = True

    def begin(self, told: dict[str, Any]) -> None:
        """Ask it, and wait until the table is open; nothing of the question was looked at yet."""
        self.wait()
        self.asked += 1
        try:
            self._line.send_bytes(json.dumps(told).encode())
        except OSError:
            raise Lost from None
        self._expect(BEGUN, _START_SECONDS)

    def hear(self, seconds: float) -> dict[str, Any]:
        """Let it work."""
        found: dict[str, Any] = json.loads(self._hear(seconds))
        return found

    def _expect(self, word: bytes, seconds: float) -> None:
        if self._hear(seconds) != word:
            raise Lost

    def _hear(self, seconds: float) -> bytes:
        try:
            if not self._line.poll(seconds):
                raise Lost(late=True)
            if self._is_whole():
                return self._line.recv_bytes(_LONGEST)
            # One that stops in the middle of a word would never be heard to its end.
            over = threading.Timer(_SENDING_SECONDS, self._end_late)
            over.start()
            try:
                return self._line.recv_bytes(_LONGEST)
            finally:
                over.cancel()
        except (EOFError, OSError):
            raise Lost(late=self._late) from None

    def _is_whole(self) -> bool:
        """Whether all of a word has arrived, or the line has ended: it takes no clock to hear it.

        A clock is a thread, which is started for each word. A word is told after its length.
        """
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=self._line.fileno())
        try:
            seen = line.recv(_PEEKED, socket.MSG_PEEK)
        finally:
            line.detach()
        size = int.from_bytes(seen[:4], "big", signed=True)
        return not seen or (len(seen) >= 4 and 0 <= size <= len(seen) - 4)

    def _end_late(self) -> None:
        self._late = True
        self._kill()

    def _kill(self) -> None:
        """End it, and what a function has started in it, which would keep rows when it is gone.

        Once, where it is gone: its number may be that of another group later.
        """
        if not self._gone:
            self._gone = self._process.poll() is not None
            with suppress(OSError):  # nobody is left
                os.killpg(self._process.pid, signal.SIGKILL)

    def is_alive(self) -> bool:
        """Whether it still runs."""
        if self._process.poll() is None:
            return True
        self._kill()
        return False

    def stop(self) -> None:
        """End it from outside, while another thread waits for it."""
        self._stopped = True
        self._kill()

    def was_stopped(self) -> bool:
        """Whether somebody else has ended it, and not what it did; waits until it is gone."""
        with suppress(subprocess.TimeoutExpired):
            ended = self._process.wait(_ENDING_SECONDS)
            self._kill()
            return ended in _FROM_OUTSIDE or self._stopped
        return False

    def end(self) -> None:
        """End it at once."""
        self._kill()
        self._process.wait()
        self._gone = True
        self._line.close()
        shutil.rmtree(self._place, ignore_errors=True)  # what was killed left its rows there


def environment() -> dict[str, str]:
    """Give what a process of the server may know of its surroundings."""
    kept = {name: value for name, value in os.environ.items() if name != "HUSHED_TOKEN"}
    path = os.pathsep.join(filter(None, (_FOLDER, kept.get("PYTHONPATH"))))
    return kept | {"PYTHONPATH": path, "MALLOC_ARENA_MAX": "2"}


@dataclass(slots=True)
class Processes:
    """Processes, started when they are needed and kept for the next one who needs one."""

    _idle: list[Worker] = field(default_factory=list, repr=False)
    _busy: set[Worker] = field(default_factory=set, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closed: bool = False

    def begin(self, told: dict[str, Any]) -> Worker:
        """Ask an idle process; one that had ended meanwhile, by whatever, is replaced once.

        A function is given a new one. In another one the table is open already, and its rows come
        in any order: a row that takes long would decide where all others stand.
        """
        for _ in range(2):
            worker = self._take(new="function" in told)  # where none can be started, none is soon
            try:
                worker.begin(told)
            except Lost:
                self._end(worker)
            except BaseException:
                self._end(worker)
                raise
            else:
                return worker
        raise Lost

    def warm(self) -> None:
        """Have one process ready for the first one who needs it."""
        with suppress(Lost):
            worker = self._take()
            try:
                worker.wait()
            except Lost:
                self._end(worker)
            else:
                self.give_back(worker)

    def give_back(self, worker: Worker) -> None:
        """Keep a process for the next one."""
        with self._lock:
            self._busy.discard(worker)
            if not self._closed and worker.asked < _MOST_ASKED:
                self._idle.append(worker)
                return
        worker.end()

    def drop(self, worker: Worker) -> None:
        """End a process, and have another one ready before it is needed."""
        self._end(worker)
        if not self._closed:
            with suppress(RuntimeError):  # no thread to be had: whoever needs a process starts it
                threading.Thread(target=self.warm, daemon=True).start()

    def stop(self) -> None:
        """End those that are at work; whoever waits for one hears that it was stopped."""
        with self._lock:
            for each in self._busy:
                each.stop()

    def close(self) -> None:
        """End all that are idle, and the others when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for each in idle:
            each.end()

    def _take(self, *, new: bool = False) -> Worker:
        """Take an idle process, or start one; a new one has been asked nothing."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                unused = [each for each in self._idle if not each.asked] if new else []
                worker = (unused or self._idle)[-1]
                self._idle.remove(worker)
                self._busy.add(worker)
            if worker.is_alive() and not (new and worker.asked):
                return worker
            self._end(worker)
            if new:  # in its place
                break
        worker = Worker()
        with self._lock:
            self._busy.add(worker)
        return worker

    def _end(self, worker: Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
        worker.end()
