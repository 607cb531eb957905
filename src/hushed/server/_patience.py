"""Connections on which nothing is asked: ended after a while, for each of them takes a place."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0


class Impatient(H11Protocol):
    """Speaks HTTP/1.1, and waits for the head of a request only so long; Uvicorn waits for ever.

    The body of a request is waited for by the guard, and what comes after an answer by Uvicorn.
    """

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Read, and go on waiting unless that was the rest of a head."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._rest()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._rest()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self.timeout_keep_alive_handler)

    def _rest(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
