"""Who may talk to the workbench: one browser on this computer, from our own pages."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hushed._web import Gone, is_own_page, read_body, replay, take_cookie, with_headers
from hushed.workbench._peers import Peers

MOST_BODY = 1_000_000  # bytes
_SAFE_METHODS = ("GET", "HEAD")
_NO_KEY = (
    "This page belongs to the workbench that runs on this computer. Open it with the address that "
    "the terminal shows. That address works once; start `hushed workbench` again for a new one.\n"
)
_OTHER_USER = (
    "This workbench was started by another user of this computer, and answers that user alone. "
    "Start one of your own: hushed workbench FOLDER\n"
)
_GO_ON = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>hushed workbench</title>'
    '<link rel="icon" href="/static/favicon.svg" type="image/svg+xml">'
    '<meta http-equiv="refresh" content="0; url=/"><p><a href="/">Open the workbench</a></p></html>'
)


@dataclass(slots=True, kw_only=True)
class Door:
    """What opens the workbench: a key, good once, and the cookie that it is exchanged for."""

    port: int
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _used: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def address(self) -> str:
        """Where the workbench is opened."""
        return f"http://127.0.0.1:{self.port}/?key={self.key}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a browser on this computer may call us."""
        end = "" if self.port == 80 else f":{self.port}"
        return tuple(f"{name}{end}" for name in ("127.0.0.1", "localhost", "[::1]"))

    @property
    def cookie_name(self) -> str:
        """Name with the port in it, for browsers keep cookies apart by host alone."""
        return f"hushed-{self.port}"

    def knows(self, scope: Scope) -> bool:
        """Whether the request carries the cookie, which nobody after this reads."""
        found = take_cookie(scope, self.cookie_name)
        return found is not None and _same(found, self._cookie)

    def exchange(self, key: str) -> str | None:
        """Take the key, once; the header that sets the cookie."""
        with self._lock:
            if self._used or not _same(key, self.key):
                return None
            self._used = True
        return f"{self.cookie_name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"


class Guard:
    """Middleware around everything, static files too: checks first, headers on every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self._peers = Peers()

    @property
    def port(self) -> int:
        """Where the workbench listens."""
        return self._door.port

    @property
    def address(self) -> str:
        """Where the workbench is opened, once: the key is in it."""
        return self._door.address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no sockets here
        send_safely = with_headers(send)

        refused = check_peer(self._peers, scope) or check_request(self._door, scope)
        if refused is not None:
            await refused(scope, receive, send_safely)
            return
        try:
            body = await read_body(Headers(scope=scope), receive, MOST_BODY)
        except Gone:
            return  # nobody hears the answer
        if body is None:
            await _refuse(413, "A request may have at most 1 MB.")(scope, receive, send_safely)
            return
        await self._app(scope, replay(body, receive), send_safely)


def check_peer(peers: Peers, scope: Scope) -> Response | None:
    """Refuse another user of this computer, as far as Linux tells who asks; a cookie may leak."""
    client, server = scope.get("client"), scope.get("server")
    if client is None or server is None or peers.welcomes(client, server):
        return None
    return _refuse(403, _OTHER_USER)


def check_request(door: Door, scope: Scope) -> Response | None:
    """Find out who asks; an answer for those who may not, and for those who bring the key."""
    headers = Headers(scope=scope)
    hosts = headers.getlist("host")
    if len(hosts) != 1 or hosts[0].lower() not in door.hosts:
        return _refuse(421, "The workbench answers only to its own address on this computer.")
    if scope["method"] not in _SAFE_METHODS and not is_own_page(
        headers, f"http://{headers['host'].lower()}"
    ):
        return _refuse(403, "This request does not come from a page of the workbench.")
    if door.knows(scope):
        return _forget_key(scope)
    key = _read_key(scope)
    cookie = None if key is None or _is_prefetch(headers) else door.exchange(key)
    if cookie is None:
        return _refuse(403, _NO_KEY)
    if headers.get("sec-fetch-site") == "cross-site":  # the file that opens us
        # A strict cookie is not sent along a redirect that began elsewhere: our page goes on.
        return HTMLResponse(_GO_ON, headers={"set-cookie": cookie})
    return RedirectResponse("/", status_code=303, headers={"set-cookie": cookie})


def _read_key(scope: Scope) -> str | None:
    if scope["path"] != "/" or scope["method"] != "GET":
        return None
    found = parse_qs(scope["query_string"].decode("latin-1")).get("key", [])
    return found[0] if len(found) == 1 else None


def _forget_key(scope: Scope) -> Response | None:
    """For a browser that is known already: the address without the key."""
    return None if _read_key(scope) is None else RedirectResponse("/", status_code=303)


def _is_prefetch(headers: Headers) -> bool:
    return "prefetch" in headers.get("sec-purpose", headers.get("purpose", ""))


def _refuse(status: int, text: str) -> Response:
    return PlainTextResponse(text, status_code=status)


def _same(one: Any, other: str) -> bool:
    return secrets.compare_digest(str(one).encode(), other.encode())
