"""Connections that ask nothing, do not read, or speak unclearly: each keeps a place, and ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

HEAD_SECONDS = 10.0
UNREAD_SECONDS = 30.0  # in which something of an answer has to be taken
MOST_WAITING = 500  # connections whose other end is awaited; half of all places
MOST_UNREAD = 512_000_000  # bytes of answers that nobody has taken yet: they are in the memory
LONGEST_HEAD = 16_384  # bytes
MOST_AHEAD = 16  # requests that are sent before the first of them is answered
_INVALID = "Invalid HTTP request received."


class Unclear(Exception):
    """What was sent may be understood in two ways, or has no end."""


class Joined:
    """Holds back the head of one answer until its body is there: they are sent together."""

    __slots__ = ("_begun", "_cycle", "_head", "_transport")

    def __init__(self, cycle: RequestResponseCycle, transport: asyncio.Transport) -> None:
        self._cycle, self._transport = cycle, transport
        self._begun, self._head = False, b""

    def write(self, data: bytes) -> None:
        """Send, or hold back if that is the head."""
        if self._cycle.response_started and not self._begun:
            self._begun, self._head = True, data
            return
        head, self._head = self._head, b""
        self._transport.write(head + data if head else data)

    def flush(self) -> None:
        """Send a head that no body follows."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Send what was held back, and close."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._transport.is_closing()


class Impatient(HttpToolsProtocol):
    """Speaks HTTP/1.1, and waits for the head of a request only so long; Uvicorn waits for ever.

    The body of a request is waited for by the guard, and what comes after an answer by Uvicorn.
    An answer that nobody takes would be kept for ever, even after the connection was closed; many
    long ones that are taken slowly would fill the memory.
    Somebody who opens a new connection for each one that is ended would still keep all places. So
    when many are waited for, the one that has been slow for longest is ended: whoever asks at once
    is never among them. Whoever was answered and asks nothing more keeps a place as well.

    The parser bounds nothing, takes what follows the body for headers, and knows protocols that are
    not spoken here. What a proxy may understand in another way than this is refused.
    """

    _patience: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _slow: ClassVar[dict[Impatient, None]] = {}  # in the order in which they began to be slow
    _joined: Joined | None = None  # of the answer that is under way
    # What is asked by somebody who has not taken the answer before it.
    _put_off: tuple[RequestResponseCycle, ASGI3Application] | None = None
    _deaf = False  # nothing of what comes is read any more
    _in_head = True  # else what comes as a header follows the body
    _size = 0  # of the head so far, and of what follows the body
    _heard = 0  # parts of a request
    _rest_size = 0  # of what has come since the last of them

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so that whatever is not taken pauses the writing
        self._be_slow()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read, and go on waiting unless that was the rest of a head."""
        self._unset_keepalive_if_required()
        if self._deaf:
            return
        heard = self._heard
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # to another protocol; what follows is not read
            self._deaf = True
        except httptools.HttpParserError:
            self._refuse()
        self._rest_size = len(data) + (self._rest_size if heard == self._heard else 0)
        if self._rest_size > 2 * LONGEST_HEAD and heard == self._heard and not self._deaf:
            self._refuse()  # a name, a value or the like that does not end
        self._wait()

    def _refuse(self) -> None:
        """Read no more. Who has asked before is answered before the connection is closed."""
        self._deaf = True
        self.logger.warning(_INVALID)
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            self.send_400_response(_INVALID)
        elif not cycle.more_body:
            cycle.keep_alive = False
        elif self.pipeline or cycle.response_started:
            self.transport.close()
        else:
            cycle.disconnected = True
            cycle.message_event.set()
            self.send_400_response(_INVALID)

    def on_message_begin(self) -> None:
        """Begin to read a request."""
        super().on_message_begin()
        self._in_head, self._size = True, 0
        self._heard += 1
        if len(self.pipeline) >= MOST_AHEAD:
            raise Unclear

    def on_url(self, url: bytes) -> None:
        """Read a part of an address."""
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read a header; one that follows the body is none."""
        self._count(name, value)
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        self._in_head = False
        self._heard += 1
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        version = self.parser.get_http_version()
        plain = version == "1.1" or (version == "1.0" and not codings)
        coded = [each.lower() for each in codings] not in ([], [b"chunked"])
        if not plain or coded or not self.url.startswith(b"/") or b"#" in self.url:
            raise Unclear
        upgrade = self.parser.should_upgrade()
        if upgrade and (codings or any(name == b"content-length" for name, _ in self.headers)):
            raise Unclear  # the parser leaves the body out
        super().on_headers_complete()
        if upgrade:
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if self.flow.write_paused:  # its answer would wait in the memory, and nobody counts it
            self._put_off = cycle, app
            return
        self._joined = Joined(cycle, self.transport)
        cycle.transport = self._joined  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Go on with what was sent ahead."""
        if self._joined is not None:
            self._joined.flush()
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._be_slow()

    def on_body(self, body: bytes) -> None:
        """Read a part of a body."""
        self._heard += 1
        super().on_body(body)

    def _count(self, *parts: bytes) -> None:
        self._heard += 1
        self._size += sum(map(len, parts)) + len(parts)
        if self._size > LONGEST_HEAD:
            raise Unclear

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._rest()
        self._stop_looking()
        self._slow.pop(self, None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the other end, which has not taken all that was written."""
        super().pause_writing()
        self._be_slow()
        self._look_again()
        self._bound_unread()

    def _bound_unread(self) -> None:
        """End those whose answers have been untaken for longest, where all are too much together.

        One alone is never too much: whoever asks for it could else not have it at all.
        """
        left = {each: each.transport.get_write_buffer_size() for each in self._slow}
        unread = sum(left.values())
        for each, size in left.items():
            if unread <= MOST_UNREAD or each is self:
                return
            if size:
                del self._slow[each]
                each.transport.abort()
                unread -= size

    def resume_writing(self) -> None:
        """Go on: everything was taken."""
        super().resume_writing()
        self._stop_looking()
        if self._put_off is not None and not self.transport.is_closing():
            self._start_asgi_task(*self._put_off)
            self._put_off = None
        if self.cycle is not None and not self.cycle.response_complete:  # else it may ask more
            self._slow.pop(self, None)

    def _look_again(self) -> None:
        # Nothing is added while the writing is paused: what is left gets less, or nobody reads.
        left = self.transport.get_write_buffer_size()

        def look() -> None:
            if self.transport.get_write_buffer_size() >= left:
                self.transport.abort()
            else:
                self._look_again()

        self._unread = self.loop.call_later(UNREAD_SECONDS, look)

    def _stop_looking(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _be_slow(self) -> None:
        """Be waited for from now on, or go on to be; one place is free again if all are taken."""
        self._slow.setdefault(self)
        if len(self._slow) > MOST_WAITING:
            oldest = next(iter(self._slow))
            del self._slow[oldest]
            oldest.transport.abort()  # to close it would wait for who reads

    def _wait(self) -> None:
        # A request that is whole is answered.
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering and not self.cycle.more_body:
            if self._unread is None:
                self._slow.pop(self, None)
        else:
            self._be_slow()
        if answering:
            self._rest()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _rest(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
