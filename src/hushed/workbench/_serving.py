"""Serve a workbench on this computer."""

from __future__ import annotations

import os
import socket
import webbrowser
from contextlib import suppress
from html import escape
from pathlib import Path

import uvicorn

from hushed._ground.calls import called_as
from hushed.errors import ParameterError
from hushed.workbench._app import create_app
from hushed.workbench._jobs import stop_public_jobs
from hushed.workbench._security import Guard
from hushed.workbench._workspace import open_workspace, practice_of

LOOPBACK = "127.0.0.1"


@called_as('hs.workbench.serve_workbench("study")')
def serve_workbench(
    folder: str | Path = ".",
    *,
    ledger: str | None = None,
    host: str = LOOPBACK,
    port: int = 0,
    browser: bool = True,
) -> None:
    """Serve until stopped; print the address, and open it in a browser.

    Parameters
    ----------
    folder : str or Path, default "."
        Folder of the tables. Drafts are kept in ``.hushed`` in it.
    ledger : str, optional
        Address of the ledger; by default ``ledger.db`` in the folder.
    host : str, default "127.0.0.1"
        Nothing else is taken: the workbench is for one person on this computer.
    port : int, default 0
        Port; 0 takes any free one.
    browser : bool, default True
        Whether to open a browser.

    Raises
    ------
    NotFound
        If there is no such folder.
    ParameterError
        If the host is another one, or the port is not free.
    """
    if host not in (LOOPBACK, "localhost"):
        raise ParameterError(
            f"the workbench listens on {LOOPBACK} only, for one person on this computer; "
            "another one would let everybody on the network in. For a team there is hushed serve",
            parameter="host",
        )
    workspace = open_workspace(Path(folder), ledger)
    with open_port(port) as listening:
        app = create_app(folder, port=listening.getsockname()[1], ledger=ledger)
        print(f"hushed workbench: {app.address}", flush=True)  # noqa: T201
        opener = workspace.hidden / f"open-{app.port}.html"
        if browser:
            open_browser(opener, app.address)
        try:
            uvicorn.Server(configure_server(app)).run([listening])
        finally:
            with suppress(OSError):
                opener.unlink(missing_ok=True)
            for each in (workspace, practice_of(workspace)):
                stop_public_jobs(each.hidden / "jobs")


def configure_server(app: Guard) -> uvicorn.Config:
    """Choose how the server speaks; it believes no header that says who asks."""
    return uvicorn.Config(
        app,
        http="h11",  # the faster one, where it is installed, needs more care
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=3,
        ws="none",
    )


def open_browser(opener: Path, address: str) -> None:
    """Open the address by a file that this user alone can read: every user sees arguments."""
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>hushed workbench</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(address)}">'
        f'<p><a href="{escape(address)}">Open the workbench</a></p></html>\n'
    )
    try:
        opener.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        opener.unlink(missing_ok=True)
        with os.fdopen(os.open(opener, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)
    except OSError:
        print("Open this address in your browser.", flush=True)  # noqa: T201
        return
    webbrowser.open(opener.as_uri())


def open_port(port: int) -> socket.socket:
    """Listen on this computer alone."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ParameterError("port is a whole number from 0 to 65535", parameter="port")
    # Asyncio sends at once where a socket names TCP, and else waits 40 ms before the body.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
    except OSError as error:
        listening.close()
        raise ParameterError(
            f"port {port} cannot be used ({error.strerror}); --port 0 takes any free one",
            parameter="port",
        ) from None
    listening.listen(128)
    return listening
