"""Serve a team from one process on this computer."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import uvicorn

from hushed.errors import ParameterError
from hushed.server._app import make_app, open_desk
from hushed.server._log import Log, hearing_libraries
from hushed.server._metrics import telling_metrics
from hushed.server._patience import Impatient

_STOP_SECONDS = 5


def serve(folder: str | Path = ".") -> None:
    """Serve until stopped. Experimental; TLS is the work of a proxy before it.

    Parameters
    ----------
    folder : str or Path, default "."
        The folder that ``hushed serve init`` has made.

    Raises
    ------
    NotFound
        If there is no such folder, or it belongs to no server.
    ParameterError
        If its settings cannot be used, or the port is taken.
    LedgerUnavailable
        If the ledger cannot be used, or another process serves it, from whatever folder.
    DamagedLedger
        If the ledger was set back to an older copy.
    Refusal
        If it belongs to another server.
    """
    place = Path(folder)
    desk = open_desk(place, Log())
    try:
        desk.serve_alone()
        with ExitStack() as held:
            held.enter_context(hearing_libraries(desk.log))
            listening = held.enter_context(listen(desk.settings.server.listen))
            if desk.settings.server.metrics is not None:
                watched = held.enter_context(listen(desk.settings.server.metrics))
                held.enter_context(telling_metrics(desk, watched))
            host, port = listening.getsockname()[:2]
            for each in (desk.workers.processes, desk.runners.processes):
                threading.Thread(target=each.warm, daemon=True).start()
            desk.log("serving", host=str(host), port=int(port), datasets=len(desk.datasets))
            config = uvicorn.Config(
                make_app(desk),
                http=Impatient,
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,  # the guard reads them, from proxies that it knows
                timeout_graceful_shutdown=_STOP_SECONDS,
                limit_concurrency=1000,
                ws="none",
            )
            uvicorn.Server(config).run([listening])
    finally:
        desk.close()


def listen(address: str) -> socket.socket:
    """Listen where the file says."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, int(port)))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or "there is no such port"
        raise ParameterError(
            f"{address} cannot be listened on ({reason}): change it in the file"
        ) from None
    listening.listen(512)
    return listening
