"""Numbers for Prometheus, on a port of their own: no name of a person, no key, no query, no time.

How long a run took, and when it ended, tells of rows; so a request counts as charged until its
answer may be seen.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from hushed.errors import HushedError
from hushed.ledger._migrations import now
from hushed.ledger._together import reading
from hushed.server._desk import Desk
from hushed.server._guard import Guard
from hushed.server._log import Log
from hushed.server._schema import fetch_all

if TYPE_CHECKING:
    import socket

    from hushed.server._web_processes import WebProcesses

PATH = "/metrics"
_MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_STARTED = time.time()
# What is wrong, by the name that the log has for it. Ends of runs are not among them.
_FAULTS = (
    *("run stopped", "run interrupted", "sweep failed", "unforeseen", "data set unavailable"),
    "web process ended",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metric:
    """One family of numbers; labels are names from the source, so that none needs quoting."""

    name: str
    kind: str
    help: str
    values: Iterable[tuple[Mapping[str, str], float]]

    def lines(self) -> Iterator[str]:
        """Write it in the text format."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.values:
            told = ",".join(f'{name}="{label}"' for name, label in labels.items())
            number = int(value)  # all of them are whole; six digits of one would be another one
            yield f"{self.name}{{{told}}} {number}" if told else f"{self.name} {number}"


def write_metrics(desk: Desk, web: WebProcesses | None = None) -> str:
    """Write down how the server does, in the text format of Prometheus: all of its processes."""
    counts = Counter(desk.log.read_counts())
    counts.update({} if web is None else web.read_counts())
    http = [
        ({"method": told[0], "route": told[1], "status": told[2]}, number)
        for (event, *told), number in sorted(counts.items())
        if event == "http"
    ]
    faults = [({"fault": each.replace(" ", "_")}, counts.get((each,), 0)) for each in _FAULTS]
    states = _count_states(desk)
    asked = [({"state": state}, number) for state, number in sorted((states or {}).items())]
    several = [
        _Metric(
            name="hushed_http_responses_total",
            kind="counter",
            help="Answers to requests over HTTP, by their route in the OpenAPI document.",
            values=http,
        ),
        _Metric(name="hushed_faults_total", kind="counter", help="What went wrong.", values=faults),
        _Metric(
            name="hushed_ledger_up",
            kind="gauge",
            help="1 if the ledger answers, and was not set back.",
            values=[({}, 0 if states is None else 1)],
        ),
        _Metric(
            name="hushed_requests",
            kind="gauge",
            help="Requests by state; one is charged until its answer may be seen.",
            values=asked,
        ),
        _Metric(
            name="hushed_checks_ended_total",
            kind="counter",
            help="Processes that were ended because a question took too much.",
            values=[({}, desk.workers.ended if web is None else web.count_checks())],
        ),
        _Metric(
            name="hushed_web_processes",
            kind="gauge",
            help="Processes that answer over HTTP.",
            values=[({}, 1 if web is None else web.count_ready())],
        ),
        _Metric(
            name="process_start_time_seconds",
            kind="gauge",
            help="When the server was started, since 1970-01-01.",
            values=[({}, round(_STARTED))],
        ),
    ]
    return "".join(f"{line}\n" for each in several for line in each.lines())


def _count_states(desk: Desk) -> dict[str, int] | None:
    """Count requests as those who asked see them; None if the ledger cannot be used."""
    statement = (
        "SELECT CASE WHEN readable_at > :now THEN 'charged' ELSE state END AS shown, "
        "COUNT(*) AS number FROM @.hushed_s_requests GROUP BY shown"
    )
    try:
        with reading(desk.ledger) as connection:
            found = fetch_all(connection, statement, now=now())
        desk.move_mark()  # ends of runs are counted; and a ledger that was set back is refused
    except HushedError:
        return None
    return {str(each["shown"]): int(each["number"]) for each in found}


def make_metrics_app(desk: Desk, port: int, web: WebProcesses | None) -> Guard:
    """Make the app that tells them; a page of another name, in a browser, is refused."""

    def tell(request: Request) -> PlainTextResponse:  # noqa: ARG001
        return PlainTextResponse(write_metrics(desk, web), media_type=_MEDIA)

    settings = desk.settings.server.model_copy(
        update={"listen": f"127.0.0.1:{port}", "public_url": None}
    )
    return Guard(Starlette(routes=[Route(PATH, tell)]), settings, body=1024, log=_Silent())


class _Silent(Log):
    """Writes and counts nothing: who reads metrics is no request."""

    def __call__(self, event: str, **told: str | int) -> None:
        """Write nothing."""


@contextmanager
def telling_metrics(
    desk: Desk, listening: socket.socket, web: WebProcesses | None = None
) -> Iterator[None]:
    """Tell them on a port of their own, while the server runs."""
    config = uvicorn.Config(
        make_metrics_app(desk, int(listening.getsockname()[1]), web),
        http="h11",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=20,
        lifespan="off",
        ws="none",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(5)
