"""Serve a team from one process on this computer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from hushed.errors import LedgerUnavailable, NotFound, ParameterError
from hushed.server._app import make_app, open_desk
from hushed.server._config import ServerSettings
from hushed.server._log import Log

_LOCK = ".hushed-serving"
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
        If the ledger cannot be used, or another process serves this folder.
    """
    place = Path(folder)
    with only_one(place):
        desk = open_desk(place, Log())
        with listen(desk.settings.server) as listening:
            host, port = listening.getsockname()[:2]
            desk.log("serving", host=str(host), port=int(port), datasets=len(desk.datasets))
            config = uvicorn.Config(
                make_app(desk),
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,  # the guard reads them, from proxies that it knows
                timeout_graceful_shutdown=_STOP_SECONDS,
                limit_concurrency=1000,
                ws="none",
            )
            uvicorn.Server(config).run([listening])


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Keep a second process off: both would answer what was charged before a crash."""
    try:
        file = (folder / _LOCK).open("a")
    except OSError:
        raise NotFound(f"nothing can be written in {folder}") from None
    with file:
        try:
            import fcntl  # noqa: PLC0415  (not on all systems)
        except ImportError:
            raise LedgerUnavailable(
                "a server needs the file locks of Linux or macOS, which this system has not"
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LedgerUnavailable("another process serves this folder") from None
        yield


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
