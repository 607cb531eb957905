"""What a proxy may understand in another way than the server does is refused, byte by byte."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
import uvicorn
from uvicorn.server import ServerState

from hushed.server import _patience
from hushed.server._serving import configure

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n"
WHOLE = GET + b"\r\n"


class Heard:
    """An app that answers with what it was sent, and keeps it; a slow one when it is told so."""

    def __init__(self, seconds=0.0):
        self.seconds, self.asked = seconds, []

    async def __call__(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        await asyncio.sleep(self.seconds)
        self.asked.append((scope["path"], body, message["type"] == "http.request"))
        self.headers = dict(scope["headers"])
        told = b"[%s]" % body
        headers = [(b"content-length", b"%d" % len(told))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": told})


def say(app, *parts, patient=0.3):
    """Send parts on one connection; what is answered until it is closed, or for so long."""

    async def talk():
        config, state = configure(app), ServerState()
        config.load()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: config.http_protocol_class(config, state, {}, loop), "127.0.0.1", 0
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            found, closed = b"", False
            with suppress(ConnectionError):
                for part in parts:
                    writer.write(part)
                    await asyncio.sleep(0.01)
            with suppress(TimeoutError):
                async with asyncio.timeout(patient):
                    with suppress(ConnectionError):  # where something is left that is not read
                        while more := await reader.read(65536):
                            found += more
                    closed = True
            writer.close()
            for task in state.tasks:
                task.cancel()
            return found, closed

    _patience.Impatient._slow.clear()
    return asyncio.run(talk())


@pytest.mark.parametrize(
    "sent",
    [
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        POST + b"Content-Length: 5, 6\r\n\r\nhello!",
        POST + b"Content-Length: +5\r\n\r\nhello",
        POST + b"Content-Length: 0x5\r\n\r\nhello",
        POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        GET + b"X: a\r\n b\r\n\r\n",
        GET + b"X:\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        GET + b"X: a\nY: b\r\n\r\n",
        GET + b"X: a\rY: b\r\n\r\n",
        GET + b"\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        GET + b"Ho(st: x\r\n\r\n",
        GET + b": x\r\n\r\n",
        GET + b"X: a\0b\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: x\r\n\r\n",
        b"GET / HTTP/0.9\r\nHost: x\r\n\r\n",
        b"GET /\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        POST + b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 36\r\n\r\n" + WHOLE,
        GET + b"X: " + b"a" * 20_000 + b"\r\n\r\n",
        GET + b"".join(b"X%d: a\r\n" % i for i in range(4000)) + b"\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_unclear_reaches_nobody(sent):
    """One answer, 400, and the connection is closed: what follows is no request."""
    app = Heard()
    found, closed = say(app, sent + WHOLE)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in found
    assert closed
    assert not app.asked


@pytest.mark.parametrize(
    "sent",
    [
        b"1 \r\na\r\n0\r\n\r\n",
        b"0x1\r\na\r\n0\r\n\r\n",
        b"1\na\n0\n\n",
        b"1\r\nab\r\n0\r\n\r\n",
        b"10000000000000000f\r\na",
        b"1;" + b"a" * 100_000,
        b"1\r\na\r\n0\r\nX: " + b"a" * 100_000,
        b"1\r\na\r\n0\r\n" + b"".join(b"X%d: a\r\n" % i for i in range(4000)),
    ],
)
def test_a_body_of_unclear_parts_is_no_body(sent):
    """Who is answered 400 was not heard as if the body had ended there."""
    app = Heard()
    found, closed = say(app, CHUNKED + b"\r\n", sent + WHOLE)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert closed
    assert not any(whole for _, _, whole in app.asked)


def test_what_follows_a_body_is_no_header():
    """A proxy that checks headers looks at no trailer."""
    app = Heard()
    sent = CHUNKED + b"\r\n1\r\na\r\n0\r\nAuthorization: Bearer x\r\nHost: y\r\n\r\n"
    assert say(app, sent)[0].endswith(b"[a]")
    assert app.headers == {b"host": b"x", b"transfer-encoding": b"chunked"}


def test_an_offer_of_another_protocol_is_not_taken_and_nothing_follows():
    app = Heard()
    sent = GET + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    found, closed = say(app, sent + b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", WHOLE)
    assert found.count(b"HTTP/1.1 200 ") == found.count(b"HTTP/1.1 ") == 1
    assert closed
    assert [path for path, _, _ in app.asked] == ["/"]


def test_who_asked_before_something_unclear_is_answered():
    """No refusal is written into an answer that is under way."""
    app = Heard(0.3)
    found, closed = say(app, WHOLE, b"\0\0\0\0" + WHOLE, patient=9.0)
    assert found.startswith(b"HTTP/1.1 200 ")
    assert found.count(b"HTTP/1.1 ") == 1
    assert closed


def test_few_requests_are_taken_before_the_first_is_answered():
    """Each takes memory, and ten thousand of them are sent at once."""
    app = Heard(0.01)
    found, closed = say(app, WHOLE * 5000, patient=5.0)
    assert found.count(b"HTTP/1.1 200 ") == len(app.asked) == _patience.MOST_AHEAD + 1
    assert closed


class Long(Heard):
    """Answers with twenty million bytes."""

    async def __call__(self, scope, receive, send):
        await receive()
        self.asked.append(scope["path"])
        headers = [(b"content-length", b"20000000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(20_000_000)})


@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_nothing_more_is_answered_to_who_has_not_taken_an_answer(monkeypatch, pause):
    """Asked ahead, or one after the other: each answer would wait in the memory, uncounted."""
    app, before = Long(), []

    async def talk():
        config, state = configure(app), ServerState()
        config.load()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: config.http_protocol_class(config, state, {}, loop), "127.0.0.1", 0
        )
        async with server, asyncio.timeout(20):
            address, lines = server.sockets[0].getsockname(), []
            for _ in range(2):
                reader, writer = await asyncio.open_connection(*address, limit=1000)
                writer.transport.pause_reading()
                for _ in range(3):
                    writer.write(WHOLE)
                    await asyncio.sleep(pause)
                lines.append((reader, writer))
            await asyncio.sleep(0.3)
            before.append(len(app.asked))
            for reader, writer in lines:
                writer.transport.resume_reading()
                for _ in range(3):
                    await reader.readuntil(b"\r\n\r\n")
                    await reader.readexactly(20_000_000)
                writer.close()

    _patience.Impatient._slow.clear()
    asyncio.run(talk())
    assert (before[0], len(app.asked)) == (2, 6)


def test_requests_one_after_the_other_are_answered_on_one_connection():
    app = Heard()
    body = POST + b"Content-Length: 2\r\n\r\nab"
    found, closed = say(app, WHOLE, body, body[:-1], b"b", WHOLE + body)
    assert found.count(b"HTTP/1.1 200 ") == 5
    assert [said for _, said, _ in app.asked] == [b"", b"ab", b"ab", b"", b"ab"]
    assert not closed


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET / HTTP/1.1\r\nX: ", b"a"),
        (b"GET / HTTP/1.1\r\nX", b"a"),
        (b"GET /", b"a"),
        (b"", b"\r\n"),
        (CHUNKED + b"\r\n1;", b"a"),
    ],
)
def test_what_never_ends_is_refused_as_it_comes(begin, more):
    app = Heard()
    assert say(app, begin, *[more * 5000] * 10)[1]
    assert not any(whole for _, _, whole in app.asked)


@pytest.mark.parametrize(
    ("method", "status", "bodies"),
    [
        (b"HEAD", 200, [b"body"]),
        (b"GET", 204, [b""]),
        (b"GET", 200, [b"a", b"b", b""]),
        (b"GET", 200, []),
    ],
)
def test_an_answer_is_sent_whole_whatever_its_body(method, status, bodies):
    """The head waits for the body, and where there is none it comes alone; so does the next one."""

    async def app(scope, receive, send):
        headers = [] if len(bodies) > 1 or status == 204 else [(b"content-length", b"4")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for each in bodies[:-1]:
            await send({"type": "http.response.body", "body": each, "more_body": True})
        for each in bodies[-1:]:
            await send({"type": "http.response.body", "body": each})

    asked = method + WHOLE.removeprefix(b"GET")
    found, closed = say(app, asked, asked, patient=0.3 if bodies else 9.0)
    assert found.count(b"HTTP/1.1 %d " % status) == (2 if bodies else 1)
    assert found.count(b"1\r\nb\r\n0\r\n\r\n") == (2 if len(bodies) > 1 else 0)
    assert closed == (not bodies)  # an answer that was not ended


def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one(tmp_path):
    """What had come may be JSON that says less than was meant."""
    from hushed.server._config import ServerSettings
    from hushed.server._guard import Guard
    from hushed.server._log import Log

    asked = []

    async def app(scope, receive, send):
        asked.append(await receive())

    messages = iter(
        [
            {"type": "http.request", "body": b"{}", "more_body": True},
            {"type": "http.disconnect"},
        ]
    )

    async def receive():
        return next(messages)

    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8642"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/x", "query_string": b""}
    scope |= {"headers": headers, "client": ("127.0.0.1", 1)}
    with (tmp_path / "log").open("w") as log:
        guard = Guard(app, ServerSettings(), body=1000, log=Log(log))
        asyncio.run(guard(scope, receive, send))
    assert not asked
    assert sent[0]["status"] == 400


def test_the_workbench_speaks_as_before():
    """The other parser is careful only with what `Impatient` adds."""
    from hushed.workbench._serving import configure_server

    config = configure_server(None)
    config.load()
    assert config.http_protocol_class is uvicorn.protocols.http.h11_impl.H11Protocol
