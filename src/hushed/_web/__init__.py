"""What the workbench and the server do alike: headers, bodies of a bounded size, parts of pages.

The modules beside this one make what pages show, without the web; `rendering` alone needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # no-referrer would hide the Origin of our own forms, too
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


def is_own_page(headers: Headers, own: str) -> bool:
    """Whether a request that changes something was sent by a page of an origin of ours."""
    sites = headers.getlist("sec-fetch-site")
    return headers.getlist("origin") == [own] and sites == ["same-origin"]


def take_cookie(scope: Scope, name: str) -> str | None:
    """Take all cookies out of a request, and give one of ours; of several, the last.

    Whoever undoes the escapes in a cookie takes the square of their number on older Pythons, and
    FastAPI reads those of every request.
    """
    sent = [value.decode("latin-1") for each, value in scope["headers"] if each == b"cookie"]
    scope["headers"] = [each for each in scope["headers"] if each[0] != b"cookie"]
    told = (each.strip().partition("=") for line in sent for each in line.split(";"))
    return {each: value for each, _, value in told}.get(name)


def with_headers(send: Send) -> Send:
    """Send the same, with our headers on every answer that does not set them itself."""

    async def send_safely(message: Message) -> None:
        add_headers(message)
        await send(message)

    return send_safely


def add_headers(message: Message) -> None:
    """Add our headers to the beginning of an answer that does not set them itself."""
    if message["type"] == "http.response.start":
        headers = list(message.get("headers", ()))
        given = {name.lower() for name, _ in headers}
        message["headers"] = [*headers, *(each for each in _HEADERS if each[0] not in given)]


class Gone(Exception):
    """Who asks went away before the body of the request was whole."""


async def read_body(headers: Headers, receive: Receive, most: int) -> bytes | None:
    """Read a body while counting it; None if it has more bytes than allowed."""
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 12 or int(length) > most:
        return None
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone  # what has come so far may look whole
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            return None
    return bytes(body)


def replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read to whoever reads it next."""
    sent = False

    async def receive_again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
