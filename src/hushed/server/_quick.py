"""What is asked most, answered by the shortest way; the routes of the same addresses describe it.

Only what goes well is answered here: a token that counts, a request that is there and may be seen,
a price that is known, or why it can be paid no more. Nothing is counted before all of that is
known. So whatever else is asked, or refused, is left to the route as if nobody had looked.
"""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from hushed._web import replay
from hushed.errors import HushedError
from hushed.ledger._answers import answer_at
from hushed.ledger._glances import Glances
from hushed.server._callers import admit_row, find_share_within
from hushed.server._gates import Gates
from hushed.server._guard import show_problem
from hushed.server._judging import AskQuote
from hushed.server._people import CALLER, Caller, Grant
from hushed.server._problems import Problem, problem_of
from hushed.server._requests import COLUMNS, Request, State, certificate_within
from hushed.server._schema import fetch_one
from hushed.server._seen import show_found, show_quote_of
from hushed.server._short import Short, read_bearer, respond
from hushed.server._shown import RETRY_AFTER
from hushed.server._tokens import split_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from hushed.ledger._rows import Transaction
    from hushed.server._callers import Callers
    from hushed.server._desk import Desk

_REQUESTS = "/v1/requests/"
_LONGEST_ID, _LONGEST_HEADER = 36, 200
_DATASETS, _QUOTE = "/v1/datasets/", "/quote"
_LONGEST_PRICED = 10_000
_THREADS = 8
_LONGEST_ANSWER, _MOST_LONG = 100_000, 10_000
_JSON = (b"content-type", b"application/json")
_OWN = ", ".join(f"r.{name} AS r_{name}" for name in COLUMNS.split(", "))
_LOOK = (
    f"SELECT {CALLER}, {_OWN} FROM @.hushed_s_tokens t "  # noqa: S608  (constants)
    "JOIN @.hushed_s_people p ON p.id = t.person "
    "JOIN @.hushed_s_requests r ON r.id = :request AND r.person = p.id "
    "WHERE t.id = :token AND p.role = 'analyst'"
)


@dataclass(frozen=True, slots=True)
class Address:
    """An address as the log names it."""

    path: str


@dataclass(frozen=True, slots=True)
class Plain:
    """An answer."""

    route: Address
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = (_JSON,)
    status: int = 200

    async def send(self, scope: Scope, send: Send) -> None:
        """Send it."""
        scope["route"] = self.route
        headers = [*self.headers, (b"content-length", b"%d" % len(self.body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


_ALIVE = Plain(Address("/livez"), b'{"status":"alive"}')
_LOOKS = {
    what: Address(f"{_REQUESTS}{{request}}{what}") for what in ("", "/answer", "/certificate")
}
_PRICE = Address(f"{_DATASETS}{{dataset}}{_QUOTE}")


class Quick:
    """Middleware: answers what it can at once, in the thread that speaks with all."""

    def __init__(self, app: ASGIApp, desk: Desk, callers: Callers) -> None:
        self._app = app
        self._desk = desk
        self._callers = callers
        self._short = Short(desk, callers)
        self._gates = Gates()
        self._long: set[str] = set()  # requests whose answers are read by threads
        self._glances = Glances(desk.ledger) if desk.ledger._store.sqlite else None
        if self._glances is not None:
            desk.at_end(self._glances.close)
        # A burst of prices would start a thread for each of them. Where all of these threads wait,
        # as for the budget of one data set, the routes have others.
        self._threads = ThreadPoolExecutor(_THREADS, "hushed-prices")
        self._pricing = 0
        self._lock = threading.Lock()
        desk.at_end(self._threads.shutdown)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        found, body = None, b""
        if scope["method"] == "GET":
            found = self._find(scope)
        elif scope["method"] == "POST" and scope["path"].startswith(_DATASETS):
            body = (await receive()).get("body", b"")  # the guard has read all of it
            receive = replay(body, receive)
            if scope["path"].endswith(_QUOTE):
                found = await self._find_price(scope, body)
        if found is not None:
            await found.send(scope, send)
        elif (known := self._short.find(scope, body)) is not None:
            scope["route"] = Address(known[0])
            await (await respond(known[1], self._desk.log))(scope, receive, send)
        else:
            await self._gates.lead(self._app, scope, receive, send)

    def _find(self, scope: Scope) -> Plain | None:
        path = scope["path"]
        if path.startswith(_REQUESTS) and self._glances is not None:
            return self._find_request(scope, self._glances)
        return _ALIVE if path == "/livez" else None

    def _find_request(self, scope: Scope, glances: Glances) -> Plain | None:
        request, slash, rest = scope["path"][len(_REQUESTS) :].partition("/")
        route = _LOOKS.get(slash + rest)
        if route is None or not 0 < len(request) <= _LONGEST_ID:
            return None
        headers = dict(reversed(scope["headers"]))  # the first one of a name counts
        accept = headers.get(b"accept", b"")
        if len(accept) > _LONGEST_HEADER or b"text/csv" in accept or b"text/html" in accept:
            return None
        try:
            with glances.looking() as connection:
                return self._look(connection, scope, headers, request, route)
        except HushedError:
            return None

    def _look(
        self,
        connection: Transaction,
        scope: Scope,
        headers: dict[bytes, bytes],
        identity: str,
        route: Address,
    ) -> Plain | None:
        """Look at a request, its answer or its certificate."""
        told = split_token(read_bearer(headers))
        row = told and fetch_one(connection, _LOOK, token=told[0], request=identity)
        caller = admit_row(row, told, scope.get("hushed_address", ""))
        if not row or caller is None:
            return None
        if len(row["r_body"]) > _LONGEST_PRICED:
            return None  # reading a long question keeps everybody waiting
        found = Request(**{name: row[f"r_{name}"] for name in _NAMES})
        state = found.shown_state()
        if not self._may_see(caller, found, state):
            return None
        more: tuple[tuple[bytes, bytes], ...] = ()
        if route is _LOOKS[""]:
            text: str | None = show_found(self._desk, found, state, caller.name).model_dump_json()
            if state in RETRY_AFTER:
                more = ((b"retry-after", RETRY_AFTER[state].encode()),)
        elif state != "answered":
            return None
        else:
            text = self._read(connection, found, certificate=route is _LOOKS["/certificate"])
        if text is None or not self._callers.count(caller):
            return None
        return Plain(route, text.encode(), (_JSON, *more))

    async def _find_price(self, scope: Scope, body: bytes) -> Plain | None:
        """Tell a price that is known, and what it leaves of a share, which a thread looks up."""
        name = scope["path"][len(_DATASETS) : -len(_QUOTE)]
        found = self._find_share(scope, name)  # as of a name that no data set has
        dataset = self._desk.datasets.get(name)
        if dataset is None or found is None:
            return None
        asked = read_price(body)  # of nobody who showed no token
        if asked is None or self._desk.prices.find(dataset, asked) is None:
            return None
        caller, grant = found
        if self._pricing >= _THREADS or not self._callers.count(caller):
            return None
        work = partial(show_quote_of, self._desk, caller, name, asked, grant)
        with self._lock:
            self._pricing += 1
        job = self._threads.submit(work)
        job.add_done_callback(self._end_price)  # who asked may be gone, and its thread is not
        try:
            shown = await asyncio.wrap_future(job)
        except Problem as problem:
            return _refuse(problem)
        except HushedError as error:
            return _refuse(problem_of(error, self._desk.log))
        return Plain(_PRICE, shown.model_dump_json().encode())

    def _end_price(self, _: Future[Any]) -> None:
        with self._lock:
            self._pricing -= 1

    def _find_share(self, scope: Scope, dataset: str) -> tuple[Caller, Grant] | None:
        if self._glances is None:
            return None
        shown = read_bearer(dict(reversed(scope["headers"])))
        address = scope.get("hushed_address", "")
        try:
            with self._glances.looking() as connection:
                return find_share_within(connection, shown, dataset, address)
        except HushedError:
            return None

    def _read(self, connection: Transaction, found: Request, *, certificate: bool) -> str | None:
        """Read an answer, or its certificate; a long one keeps everybody waiting once."""
        if found.id in self._long:
            return None
        if certificate:
            text = certificate_within(connection, found.id)
        else:
            text = answer_at(connection, found.budget, found.charge()[0])
        if text is not None and len(text) > _LONGEST_ANSWER:
            if len(self._long) >= _MOST_LONG:
                self._long.clear()
            self._long.add(found.id)
        return text

    def _may_see(self, caller: Caller, found: Request, state: State) -> bool:
        """Whether this may be seen; whether the mark tells of an end is found out by the route."""
        if caller.scope.quote_only or not caller.scope.allows_dataset(found.dataset):
            return False
        return not found.has_ended() or state != found.state or found.id in self._desk.covered


_NAMES = COLUMNS.split(", ")


def _refuse(problem: Problem) -> Plain:
    shown = show_problem(problem)
    headers = tuple(each for each in shown.raw_headers if each[0] != b"content-length")
    return Plain(_PRICE, bytes(shown.body), headers, problem.status)


@lru_cache(maxsize=256)
def _read_price(body: bytes) -> AskQuote | None:
    try:
        return AskQuote.model_validate(json.loads(body))
    except ValueError:
        return None  # the route says what is wrong with it


def read_price(body: bytes) -> AskQuote | None:
    """Read a question whose price is asked, if it is short and can be read; the same one once."""
    return _read_price(body) if len(body) <= _LONGEST_PRICED else None
