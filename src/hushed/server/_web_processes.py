"""Several web processes of one server, as their keeper sees them: started, replaced, ended.

The keeper holds the lock of the ledger, the socket, the queue and the processes that read rows. A
web process that dies takes nothing with it but its connections.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hushed.server._desk import Desk
from hushed.server._life import run_charged
from hushed.server._problems import name_cause
from hushed.server._processes import environment
from hushed.server._shared import Shared
from hushed.server._told import Told

PROGRAM = "hushed.server._web_process"
_STOP_SECONDS = 10.0  # that one has to end what it is answering, when the server is stopped
_START_SECONDS = 600.0  # to load the library and to open the tables, where many others run
_SILENT_SECONDS = 60.0  # after which one that tells nothing is frozen, and may hold locks
_PAUSE_SECONDS = 1.0  # before the next try, if one has ended before it was ready
Counts = Counter[tuple[str, ...]]


@dataclass(slots=True, kw_only=True)
class WebProcess:
    """One web process."""

    process: subprocess.Popen[bytes]
    line: Connection = field(repr=False)
    ready: bool = False
    counts: Counts = field(default_factory=Counter, repr=False)  # events of its log, as told last
    checks: int = 0  # processes that a question has ended


@dataclass(slots=True, kw_only=True)
class WebProcesses:
    """So many web processes, each of which is replaced when it ends."""

    desk: Desk
    folder: Path
    listening: socket.socket
    shared: Shared
    number: int
    _running: list[WebProcess] = field(default_factory=list, repr=False)
    _gone: Counts = field(default_factory=Counter, repr=False)  # counts of those that have ended
    _gone_checks: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _stopping: threading.Event = field(default_factory=threading.Event, repr=False)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Keep them running; at the end all have answered what they could, and are gone."""
        threads = [threading.Thread(target=self._keep_one) for _ in range(self.number)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self._stop()
            for each in threads:
                each.join()

    def count_ready(self) -> int:
        """Count those that answer."""
        with self._lock:
            return sum(each.ready for each in self._running)

    def read_counts(self) -> Counts:
        """Tell how often each event was written to their logs; a moment ago."""
        with self._lock:
            return sum((each.counts for each in self._running), self._gone.copy())

    def count_checks(self) -> int:
        """Count the processes that a question has ended."""
        with self._lock:
            return self._gone_checks + sum(each.checks for each in self._running)

    def _keep_one(self) -> None:
        """Run one after the other; where none can be started, for want of memory, one is later."""
        while not self._stopping.is_set():
            try:
                web = self._start()
            except OSError as error:
                self.desk.log("web process cannot start", error=type(error).__name__)
                self._stopping.wait(_PAUSE_SECONDS)
                continue
            if web is None:
                return
            code = self._hear(web)
            with self._lock:
                self._running.remove(web)
                self._gone += web.counts
                self._gone_checks += web.checks
            if self._stopping.is_set():
                return
            self.desk.log("web process ended", code=code)
            if not web.ready:
                self._stopping.wait(_PAUSE_SECONDS)

    def _start(self) -> WebProcess | None:
        """Start one, as a fresh program: nothing of this process is in it but what is handed on."""
        ours, theirs = socket.socketpair()
        numbers = self.listening.fileno(), theirs.fileno(), self.shared.number
        with ours, theirs, self._lock:
            if self._stopping.is_set():
                return None
            web = WebProcess(
                process=subprocess.Popen(  # noqa: S603  (a program of ours)
                    [sys.executable, "-P", "-m", PROGRAM, str(self.folder), *map(str, numbers)],
                    stdin=subprocess.DEVNULL,
                    pass_fds=numbers,
                    env=environment(),
                    start_new_session=True,  # Ctrl-C stops the keeper, and the keeper stops this
                ),
                line=Connection(ours.detach()),
            )
            self._running.append(web)
        return web

    def _hear(self, web: WebProcess) -> int:
        """Do what one asks for until it ends; its exit status."""
        with web.line as line, suppress(EOFError, OSError):
            line.send_bytes(Told.of(self.desk).write())
            while line.poll(_SILENT_SECONDS if web.ready else _START_SECONDS):
                self._heed(web, json.loads(line.recv_bytes()))
            web.process.kill()
        try:
            return web.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:  # it does not speak, and does not end
            web.process.kill()
            return web.process.wait()

    def _heed(self, web: WebProcess, told: list[Any]) -> None:
        match told:
            case ["ready"]:
                web.ready = True
                self.desk.log("web process started")
            case ["run", str(request)]:
                try:
                    run_charged(self.desk, request)
                except Exception as error:  # whatever it was, the next sweep finds it
                    self.desk.log("sweep failed", **name_cause(error))
            case ["counts", list(counts), int(checks)]:
                found = Counter({tuple(kind): number for kind, number in counts})
                with self._lock:
                    web.counts, web.checks = found, checks

    def _stop(self) -> None:
        """Let them end what they answer, each as long as it may take."""
        with self._lock:
            self._stopping.set()
            left = list(self._running)
        for each in left:
            each.process.terminate()
        ends = time.monotonic() + _STOP_SECONDS
        for each in left:
            with suppress(subprocess.TimeoutExpired):
                each.process.wait(max(0.0, ends - time.monotonic()))
            each.process.kill()
