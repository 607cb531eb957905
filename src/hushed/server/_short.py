"""What a route does, without the way to it: for what many ask at the same moment.

To find a route, and to read its values by models and dependencies, takes a fifth of what it takes
to charge a question. What is done is what the route does, for the same visitor. So whoever may not
ask is refused alike; and a value that cannot be used is left to the route, which says so.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter

from hushed.errors import HushedError
from hushed.server._guard import show_problem
from hushed.server._judging import Ask
from hushed.server._life import take
from hushed.server._problems import Problem, problem_of
from hushed.server._routes.asking import KeyHeader, PreferHeader, answer_taken
from hushed.server._routes.health import tell_ready
from hushed.server._seen import show_caller
from hushed.server._shown import tell
from hushed.server._taking import Taking

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Scope

    from hushed.server._callers import Callers
    from hushed.server._desk import Desk
    from hushed.server._log import Log

_DATASETS, _REQUESTS = "/v1/datasets/", "/requests"
_ASKED, _ME, _READY = f"{_DATASETS}{{dataset}}{_REQUESTS}", "/v1/me", "/readyz"
_LONGEST = 10_000  # of a question: a longer one is read by the route
_LONGEST_NAME = 64  # of a data set, as in the address of the route
_key, _prefer = TypeAdapter(KeyHeader), TypeAdapter(PreferHeader)
Work = Callable[[], Awaitable["Response"]]


class Short:
    """Finds what can be done without a route."""

    def __init__(self, desk: Desk, callers: Callers) -> None:
        self._desk = desk
        self._callers = callers
        # On PostgreSQL each charge has a transaction of its own, and waits in its own thread.
        self._taking = Taking(desk, callers) if desk.ledger._store.sqlite else None

    def find(self, scope: Scope, body: bytes) -> tuple[str, Work] | None:
        """Find what a request asks to be done, and the route that describes it."""
        method, path = scope["method"], scope["path"]
        if method == "POST" and path.startswith(_DATASETS) and path.endswith(_REQUESTS):
            return self._find_asked(scope, path[len(_DATASETS) : -len(_REQUESTS)], body)
        if method != "GET":
            return None
        if path == _ME:
            return _ME, lambda: self._show_caller(scope)
        return (_READY, self._show_ready) if path == _READY else None

    def _find_asked(self, scope: Scope, dataset: str, body: bytes) -> tuple[str, Work] | None:
        # A name takes this way whether there is such a data set or not: else the time tells.
        if not 0 < len(dataset) <= _LONGEST_NAME or "/" in dataset or len(body) > _LONGEST:
            return None
        headers = dict(reversed(scope["headers"]))  # the first one of a name counts
        try:
            key = _key.validate_python(headers[b"idempotency-key"].decode("latin-1"))
            prefer = _prefer.validate_python(headers.get(b"prefer", b"").decode("latin-1"))
            asked = _read_asked(body)
        except (KeyError, ValueError):
            return None
        desk, token = self._desk, read_bearer(headers)
        visitor = self._callers.visit(scope, token, "analyst")
        together = None
        if self._taking is not None and key is not None:
            address = scope.get("hushed_address", "")
            together = partial(self._taking.take, token, address, dataset, key, asked)
        return _ASKED, lambda: answer_taken(
            desk, visitor, prefer, lambda caller: take(desk, caller, dataset, key, asked), together
        )

    async def _show_caller(self, scope: Scope) -> Response:
        token = read_bearer(dict(reversed(scope["headers"])))
        visitor = self._callers.visit(scope, token, "analyst", "steward", quote_only=True)
        return await visitor.have(lambda caller: tell(show_caller(self._desk, caller)))

    async def _show_ready(self) -> Response:
        return await run_in_threadpool(tell_ready, self._desk)


async def respond(work: Work, log: Log) -> Response:
    """Do it, and refuse as the app does."""
    try:
        return await work()
    except Problem as problem:
        return show_problem(problem)
    except HushedError as error:
        return show_problem(problem_of(error, log))


@lru_cache(maxsize=256)
def _read_asked(body: bytes) -> Ask:
    """Read a question; the same one once."""
    return Ask.model_validate(json.loads(body))


def read_bearer(headers: dict[bytes, bytes]) -> str:
    """Read the token of a request; empty where none is shown in the usual way."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
