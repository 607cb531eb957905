"""Program of one of several web processes, which answer over HTTP on one socket.

It judges, charges and shows; its keeper, which has started it, has the rows read and the mark
moved. It has nothing that others need: whatever it has charged and told nobody of is found in the
ledger. It ends when its keeper is gone, for nobody would answer what it charges.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvicorn

from hushed.server._app import make_app, open_desk
from hushed.server._log import Log, end_in_silence, hearing_libraries
from hushed.server._problems import name_cause
from hushed.server._serving import configure, settled
from hushed.server._shared import Shared
from hushed.server._told import Told

READY, RUN, COUNTS = "ready", "run", "counts"
COUNT_SECONDS = 1.0


class Line:
    """The line to the keeper; what cannot be told any more is found in the ledger."""

    def __init__(self, number: int) -> None:
        self._line = Connection(number)
        self._lock = threading.Lock()

    def hear(self) -> bytes:
        """Wait for what the keeper tells."""
        return self._line.recv_bytes()

    def tell(self, *told: Any) -> None:
        """Tell the keeper."""
        with self._lock, suppress(OSError):
            self._line.send_bytes(json.dumps(told).encode())


class _Server(uvicorn.Server):
    """Tells when it answers."""

    def __init__(self, config: uvicorn.Config, line: Line) -> None:
        super().__init__(config)
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        self._line.tell(READY)


def main(folder: str, listening: int, line_number: int, shared: int) -> None:
    """Answer until stopped."""
    end_in_silence()
    signal.signal(signal.SIGTERM, _stop)
    line = Line(line_number)
    told = Told.read(line.hear())
    threading.Thread(target=_end_with_keeper, args=(line,), daemon=True).start()
    log = Log()
    try:
        desk = open_desk(Path(folder), log, told=told)
    except Exception as error:  # such as a database that is away; its keeper tries again
        log("web process cannot start", **name_cause(error))
        sys.exit(1)
    desk.shared = Shared(shared)
    desk.errand = lambda request: line.tell(RUN, request)
    counting = threading.Thread(target=_count, args=(line, log, desk.workers), daemon=True)
    counting.start()
    try:
        threading.Thread(target=desk.workers.processes.warm, daemon=True).start()
        with hearing_libraries(log), socket.socket(fileno=listening) as here:
            app = make_app(desk)
            with settled():
                _Server(configure(app), line).run([here])
    finally:
        desk.close()
        _tell_counts(line, log, desk.workers)


def _stop(number: int, frame: object) -> None:  # noqa: ARG001
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once
    sys.exit(0)


def _end_with_keeper(line: Line) -> None:
    with suppress(EOFError, OSError):
        line.hear()
    os._exit(1)


def _count(line: Line, log: Log, workers: Any) -> None:
    """Tell what was counted, and that this lives; what a killed one did not tell is lost."""
    while True:
        _tell_counts(line, log, workers)
        time.sleep(COUNT_SECONDS)


def _tell_counts(line: Line, log: Log, workers: Any) -> None:
    line.tell(COUNTS, [[list(kind), n] for kind, n in log.read_counts().items()], workers.ended)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
