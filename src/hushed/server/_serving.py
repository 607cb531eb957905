"""Serve a team from one process on this computer."""

from __future__ import annotations

import socket
from pathlib import Path

import uvicorn

from hushed.errors import ParameterError
from hushed.server._app import make_app, open_desk
from hushed.server._config import ServerSettings
from hushed.server._log import Log
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
        with listen(desk.settings.server) as listening:
            host, port = listening.getsockname()[:2]
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


def listen(settings: ServerSettings) -> socket.socket:
    """Listen where the file says."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise ParameterError(
            f"{settings.listen} cannot be listened on ({error.strerror}): change listen in the file"
        ) from None
    listening.listen(512)
    return listening
