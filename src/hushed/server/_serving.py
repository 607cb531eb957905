"""Serve a team from this computer: by one process, or by a keeper of several web processes."""

from __future__ import annotations

import gc
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvicorn

from hushed._ground.calls import called_as
from hushed.errors import ParameterError
from hushed.server._app import SWEEP_SECONDS, make_app, open_desk, sweep
from hushed.server._desk import Desk
from hushed.server._guard import Guard
from hushed.server._log import Log, hearing_libraries
from hushed.server._metrics import telling_metrics
from hushed.server._patience import Impatient
from hushed.server._shared import make_shared
from hushed.server._web_processes import WebProcesses

MOST_WEB = 64
_STOP_SECONDS = 5


@called_as('hs.server.serve("server")')
def serve(folder: str | Path = ".", *, web: int = 1) -> None:
    """Serve until stopped. Experimental; TLS is the work of a proxy before it.

    Parameters
    ----------
    folder : str or Path, default "."
        The folder that ``hushed serve init`` has made.
    web : int, default 1
        How many processes answer over HTTP. More than one need a ledger on PostgreSQL.

    Raises
    ------
    NotFound
        If there is no such folder, or it belongs to no server.
    ParameterError
        If its settings cannot be used, the port is taken, or the ledger has one process only.
    LedgerUnavailable
        If the ledger cannot be used, or another process serves it, from whatever folder.
    DamagedLedger
        If the ledger was set back to an older copy.
    Refusal
        If it belongs to another server.
    """
    if not 1 <= web <= MOST_WEB:
        raise ParameterError(f"a server has 1 to {MOST_WEB} web processes, got {web}")
    place = Path(folder)
    desk = open_desk(place, Log())
    try:
        if web > 1 and desk.ledger._store.sqlite:
            raise ParameterError(
                f"{web} web processes need a ledger on PostgreSQL, and this one is a file, which "
                "has one: leave --web out, or run hushed serve move first"
            )
        desk.serve_alone()
        with hearing_libraries(desk.log):
            if web == 1:
                _serve_here(desk)
            else:
                _keep(desk, place, web)
    finally:
        desk.close()


def _serve_here(desk: Desk) -> None:
    """Answer in this process."""
    with ExitStack() as held:
        listening = held.enter_context(listen(desk.settings.server.listen))
        if desk.settings.server.metrics is not None:
            watched = held.enter_context(listen(desk.settings.server.metrics))
            held.enter_context(telling_metrics(desk, watched))
        for each in (desk.workers.processes, desk.runners.processes):
            threading.Thread(target=each.warm, daemon=True).start()
        _say(desk, listening, 1)
        app = make_app(desk)
        with settled():
            uvicorn.Server(configure(app)).run([listening])


def _keep(desk: Desk, folder: Path, number: int) -> None:
    """Have web processes answer, and run here what they charge."""
    with stopping() as stop, ExitStack() as held:
        listening = held.enter_context(listen(desk.settings.server.listen))
        desk.shared = held.enter_context(make_shared())
        web = WebProcesses(
            desk=desk, folder=folder, listening=listening, shared=desk.shared, number=number
        )
        if desk.settings.server.metrics is not None:
            watched = held.enter_context(listen(desk.settings.server.metrics))
            held.enter_context(telling_metrics(desk, watched, web))
        threading.Thread(target=desk.runners.processes.warm, daemon=True).start()
        with web.serving():
            _say(desk, listening, number)
            while not stop.is_set():
                sweep(desk)
                stop.wait(SWEEP_SECONDS)
        desk.close()


def _say(desk: Desk, listening: socket.socket, web: int) -> None:
    host, port = listening.getsockname()[:2]
    desk.log("serving", host=str(host), port=int(port), datasets=len(desk.datasets), web=web)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Hear the signals that stop a server, and let them have their effect when it has stopped."""
    stop, heard = threading.Event(), list[int]()

    def hear(number: int, frame: object) -> None:  # noqa: ARG001
        heard.append(number)
        stop.set()

    before = {each: signal.signal(each, hear) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    for number in heard[:1]:
        signal.raise_signal(number)


@contextmanager
def settled() -> Iterator[None]:
    """Leave what is loaded by now out of collections of garbage, until the end.

    It is 200,000 objects, and to go through them keeps all threads for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()  # libraries complain of what is left at the end of a process


def configure(app: Guard) -> uvicorn.Config:
    """Configure who speaks HTTP."""
    return uvicorn.Config(
        app,
        http=Impatient,
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # the guard reads them, from proxies that it knows
        timeout_graceful_shutdown=_STOP_SECONDS,
        limit_concurrency=1000,
        ws="none",
    )


def listen(address: str) -> socket.socket:
    """Listen where the file says."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Asyncio sends at once where a socket names TCP, and else lets the body of an answer wait until
    # its head was acknowledged, which the other end puts off for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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
