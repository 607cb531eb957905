"""Serve a team from this computer: by one process, or by a keeper of several web processes."""

from __future__ import annotations

import gc
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn

from hushed._ground.calls import called_as
from hushed.errors import ParameterError
from hushed.server._app import SWEEP_SECONDS, make_app, open_desk, sweep
from hushed.server._desk import Desk
from hushed.server._guard import Guard
from hushed.server._log import Log, end_in_silence, hearing_libraries
from hushed.server._metrics import telling_metrics
from hushed.server._patience import Impatient
from hushed.server._shared import make_shared
from hushed.server._web_processes import WebProcesses

MOST_WEB = 64
LEAVE_SECONDS = 30.0  # that a stop takes at most; what starts services often kills after 35
_STOP_SECONDS = 5
_GIVING_SECONDS = 3.0  # to write down which runs were cut off
_LEFT_SECONDS = 1.0  # for a thread that is left to end
_STOPPED = 130  # exit status of a stop


@dataclass(slots=True)
class Leaving:
    """The time that a process has to end, once it is stopped: an answer may take minutes to store.

    Nothing is lost by that: what was charged is answered by the next start, as after a kill.
    """

    desk: Desk
    _begun: threading.Event = field(default_factory=threading.Event, repr=False)
    _over: threading.Event = field(default_factory=threading.Event, repr=False)
    _watching: threading.Thread = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Where a signal is heard, no thread can be started: the one that is cut off may be at it.
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def begin(self) -> None:
        """Begin to count, once."""
        self._begun.set()

    def end(self, *, goes_on: bool) -> None:
        """Let the process go on, or end by itself, which it does unless something is under way."""
        others = {threading.current_thread(), threading.main_thread()}
        left = [] if goes_on else [t for t in threading.enumerate() if not t.daemon]
        for each in set(left) - others:
            each.join(_LEFT_SECONDS)
            if each.is_alive():
                return  # such as one who shows a large answer: Python waits for it
        self._over.set()
        self._begun.set()
        self._watching.join()  # libraries complain of what is left at the end of a process

    def _watch(self) -> None:
        self._begun.wait()
        if self._over.wait(LEAVE_SECONDS):
            return
        from posix import _exit  # noqa: PLC0415  (that of os ends no command of ours)

        giving = threading.Thread(target=self._give_up, daemon=True)  # it may wait for the ledger
        giving.start()
        giving.join(_GIVING_SECONDS)
        _exit(_STOPPED)

    def _give_up(self) -> None:
        self.desk.log("stop cut off", runs=len(self.desk.queue.list_running()))
        self.desk.give_up()


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
    serve_program(folder, web, goes_on=True)


def serve_program(folder: str | Path, web: int, *, goes_on: bool = False) -> None:
    """Serve until stopped; the process then ends in time, unless its program goes on."""
    if not 1 <= web <= MOST_WEB:
        raise ParameterError(f"a server has 1 to {MOST_WEB} web processes, got {web}")
    place = Path(folder)
    if not goes_on:
        end_in_silence()
    desk = open_desk(place, Log())
    leaving = Leaving(desk)
    try:
        if web > 1 and desk.ledger._store.sqlite:
            raise ParameterError(
                f"{web} web processes need a ledger on PostgreSQL, and this one is a file, which "
                "has one: leave --web out, or run hushed serve move first"
            )
        desk.serve_alone()
        with hearing_libraries(desk.log):
            if web == 1:
                _serve_here(desk, leaving)
            else:
                _keep(desk, place, web, leaving)
    finally:
        try:
            desk.close()  # which somebody may cut short, too
        finally:
            leaving.end(goes_on=goes_on)


def _serve_here(desk: Desk, leaving: Leaving) -> None:
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
            _Server(configure(app), leaving).run([listening])


def _keep(desk: Desk, folder: Path, number: int, leaving: Leaving) -> None:
    """Have web processes answer, and run here what they charge."""
    with stopping(leaving) as stop, ExitStack() as held:
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


class _Server(uvicorn.Server):
    """Ends in time when it is stopped."""

    def __init__(self, config: uvicorn.Config, leaving: Leaving) -> None:
        super().__init__(config)
        self._leaving = leaving

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self._leaving.begin()
        super().handle_exit(sig, frame)


def _say(desk: Desk, listening: socket.socket, web: int) -> None:
    host, port = listening.getsockname()[:2]
    desk.log("serving", host=str(host), port=int(port), datasets=len(desk.datasets), web=web)


@contextmanager
def stopping(leaving: Leaving) -> Iterator[threading.Event]:
    """Hear the signals that stop a server, and let them have their effect when it has stopped."""
    stop, heard = threading.Event(), list[int]()

    def hear(number: int, frame: object) -> None:  # noqa: ARG001
        heard.append(number)
        leaving.begin()  # first: whatever keeps the stop from being told, the process ends
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
