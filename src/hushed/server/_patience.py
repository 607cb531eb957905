"""Connections that ask nothing, or do not read: ended after a while, for each takes a place."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
UNREAD_SECONDS = 30.0  # in which something of an answer has to be taken
MOST_WAITING = 500  # connections whose other end is awaited; half of all places


class Impatient(H11Protocol):
    """Speaks HTTP/1.1, and waits for the head of a request only so long; Uvicorn waits for ever.

    The body of a request is waited for by the guard, and what comes after an answer by Uvicorn.
    An answer that nobody takes would be kept for ever, even after the connection was closed.
    Somebody who opens a new connection for each one that is ended would still keep all places. So
    when many are waited for, the one that has been slow for longest is ended: whoever asks at once
    is never among them.
    """

    _patience: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _slow: ClassVar[dict[Impatient, None]] = {}  # in the order in which they began to be slow

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so that whatever is not taken pauses the writing
        self._slow[self] = None
        self._wait()
        if len(self._slow) > MOST_WAITING:
            oldest = next(iter(self._slow))
            del self._slow[oldest]
            oldest.transport.abort()  # to close it would wait for who reads

    def data_received(self, data: bytes) -> None:
        """Read, and go on waiting unless that was the rest of a head."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._rest()
        self._stop_looking()
        self._slow.pop(self, None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the other end, which has not taken all that was written."""
        super().pause_writing()
        self._slow.setdefault(self)
        self._look_again()

    def resume_writing(self) -> None:
        """Go on: everything was taken."""
        super().resume_writing()
        self._stop_looking()
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

    def _wait(self) -> None:
        # A request that is whole is answered; between two of them nobody is slow yet.
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            if self._unread is None:
                self._slow.pop(self, None)
        elif self not in self._slow:
            self._slow[self] = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._rest()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _rest(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
