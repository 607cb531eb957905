"""Around everything: who may be talked to, how much is read, and headers on every answer."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hushed._web import Gone, add_headers, read_body, replay, take_cookie
from hushed.server._config import ServerSettings
from hushed.server._log import Log
from hushed.server._pages._visitors import (
    SESSION,
    check_form,
    check_page,
    is_page,
    name_cookie,
)
from hushed.server._problems import MEDIA, Problem, name_cause

DEEPEST, MOST_HEADERS = 32, 64
BODY_SECONDS = 10.0
_FRAMING = (b"content-length", b"transfer-encoding")
_LISTS = (b"accept", b"prefer")  # several lines of one name are one list (RFC 9110, 5.3)
_SINGLE = (b"authorization", b"content-type", b"idempotency-key")
_TEXTS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # or the rest, if it has no end
_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes({*range(256)} - {*b"[]{}"})
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Guard:
    """Middleware: checks before, headers and one line of the log after."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, *, body: int, log: Log) -> None:
        self._app = app
        self._settings = settings
        self._hosts = allowed_hosts(settings)
        self._proxies = settings.trusted_proxies
        self._body = body
        self._cookie = name_cookie(settings)
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no sockets here
        status = 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                add_headers(message)
            await send(message)

        problem = await self._pass_on(scope, receive, send_safely)
        if problem is not None and not status:
            await show_problem(problem)(scope, receive, send_safely)
        route = getattr(scope.get("route"), "path", "-")  # the path itself is anybody's text
        method = scope["method"] if scope["method"] in METHODS else "-"
        self._log("http", method=method, route=route, status=status)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> Problem | None:
        """Have a request answered; what to tell if that was not to be."""
        try:
            await self._serve(scope, receive, send)
        except asyncio.CancelledError:  # the server stops, and has waited for this long enough
            self._log("ended unanswered")
            return Problem("ledger_unavailable", wait=1)
        except Exception as error:  # whoever serves would log its text, and the lines around it
            self._log("unforeseen", **name_cause(error))
            return Problem("unforeseen")
        return None

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._check(scope, receive)
        except Problem as problem:
            refusal = refuse_early(scope, problem)
            refusal.headers["connection"] = "close"  # what is left of the body is not read
            await refusal(scope, receive, send)
        else:
            await self._app(scope, replay(body, receive), send)

    def _check_head(self, scope: Scope) -> None:
        """Refuse what no route is asked with; nearly every request has a few short headers."""
        sent = scope["headers"]
        hosts = [value for name, value in sent if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Problem("wrong_host")
        query = scope["query_string"]
        if "\0" in scope["path"] or (query and b"\0" in unquote_to_bytes(query)):
            raise Problem("bad_request", "an address holds no NUL")
        if len(sent) > MOST_HEADERS:
            raise Problem("too_large", "too many headers")
        if any(name == b"content-encoding" and value != b"identity" for name, value in sent):
            raise Problem("bad_request", "a compressed body is not read")
        names = [name for name, _ in sent]
        if doubled := [name for name in _SINGLE if names.count(name) > 1]:
            raise Problem("bad_request", f"the header {doubled[0].decode()} is sent once")
        scope["headers"] = _join_lists(sent)
        scope[SESSION] = take_cookie(scope, self._cookie)

    async def _check(self, scope: Scope, receive: Receive) -> bytes:
        self._check_head(scope)
        headers = Headers(scope=scope)
        page = is_page(scope["path"])
        if page:
            check_page(self._settings, scope, headers)
        scope["hushed_address"] = find_address(scope, headers, self._proxies)
        if _has_no_body(scope):
            return b""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await read_body(headers, receive, self._body)
        except TimeoutError:
            raise Problem("too_slow") from None
        except Gone:
            raise Problem("bad_request", "the body is not whole") from None
        if body is None:
            raise Problem("too_large", f"a body has at most {self._body} bytes")
        if body:
            (check_form if page else _check_body)(headers, body)
        return body


def _join_lists(sent: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Write in one line what is a list, and came in several."""
    for name in _LISTS:
        values = [value for each, value in sent if each == name]
        if len(values) > 1:
            sent = [each for each in sent if each[0] != name] + [(name, b", ".join(values))]
    return sent


def _has_no_body(scope: Scope) -> bool:
    """Whether a request has no body as HTTP/1 has it; another protocol tells by its end alone."""
    if not scope.get("http_version", "").startswith("1."):
        return False
    return not any(name in _FRAMING for name, _ in scope["headers"])


def _check_body(headers: Headers, body: bytes) -> None:
    """Refuse a body of the API that is no JSON as it should be."""
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Problem("bad_request", "a body is of the type application/json")
    check_json(body)


def refuse_early(scope: Scope, problem: Problem) -> Response:
    """Answer before anybody looks who asks."""
    if not is_page(scope["path"]):
        return show_problem(problem)
    return PlainTextResponse(f"{problem.title} {problem.detail}\n", problem.status)


def allowed_hosts(settings: ServerSettings) -> frozenset[bytes]:
    """List what a client may call the server."""
    port = settings.port
    names = {"127.0.0.1", "localhost", "[::1]", settings.listen.rpartition(":")[0].lower()}
    found = {f"{name}:{port}" for name in names} | (names if port == 80 else set())
    if settings.public_url is not None:
        found.add(urlsplit(settings.public_url).netloc.lower())
    return frozenset(each.encode() for each in found)


def find_address(scope: Scope, headers: Headers, proxies: Sequence[str]) -> str:
    """Find who asks: what a proxy says counts only if the proxy is one of ours."""
    peer = (scope.get("client") or ("", 0))[0]
    if not proxies:
        return str(peer)[:64]
    said = [each.strip() for each in ",".join(headers.getlist("x-forwarded-for")).split(",")]
    while said and _is_in(peer, proxies):
        peer = said.pop() or peer
    return str(peer)[:64]


def _is_in(address: str, networks: Sequence[str]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in ipaddress.ip_network(each) for each in networks)


def check_json(body: bytes) -> None:
    """Refuse what two readers of JSON may understand in two ways, and what is nested deep.

    Whoever shows no token is read, too, and nobody else is meanwhile: no character has a step here.
    """
    try:
        text = body.decode("utf-8")
        _check_depth(body)
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
        if "\\u" in text:  # else each character stands as itself, and is one
            _check_texts(found)
    except (ValueError, RecursionError):
        raise Problem(
            "bad_request",
            "the body is no JSON of at most 32 levels, with each name once, finite numbers, and "
            "text of Unicode without NUL",
        ) from None


def _check_depth(body: bytes) -> None:
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return
    left = _TEXTS.sub(b"", body).translate(_ALIKE, _NO_BRACKETS)
    for _ in range(DEEPEST):  # the innermost level each time
        left = left.replace(b"[]", b"")
    if left:
        raise ValueError


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _check_texts(found: Any) -> None:
    """Refuse what no database stores: it would be told as a failure of the ledger."""
    told = json.dumps(found, ensure_ascii=False)
    told.encode()  # half of a character
    if "\\u0000" in told.replace("\\\\", ""):
        raise ValueError


def _refuse(name: str) -> Any:
    raise ValueError(name)


def show_problem(problem: Problem, request: str = "") -> JSONResponse:
    """Answer with a problem."""
    told = problem.to_dict(request)
    return JSONResponse(told, problem.status, headers=problem.headers, media_type=MEDIA)
