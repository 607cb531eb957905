"""Few requests of one token are worked on at once: Python runs one thread at a time.

Whoever has a hundred long questions listed, sixty times at once, would keep everybody else waiting
for seconds, and `/livez` too. So what one token asks waits for what it has asked, and
takes no thread meanwhile. Whoever waits for an answer (`Prefer`) and whoever is judged is counted
elsewhere.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hushed.server._guard import refuse_early
from hushed.server._pages._visitors import SESSION, is_page
from hushed.server._problems import Problem
from hushed.server._short import read_bearer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_AT_ONCE = 3  # requests of one token that are worked on
MOST_WAITING = 50  # and that wait meanwhile; each of them keeps a connection


@dataclass(slots=True)
class _Gate:
    """What one token has asked."""

    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_AT_ONCE))
    inside: int = 0  # and waiting


@dataclass(slots=True)
class Gates:
    """A gate for each token and session that asks now; nobody knows yet whether it counts."""

    _gates: dict[str, _Gate] = field(default_factory=dict, repr=False)

    async def lead(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Have one request answered when its turn comes."""
        name = _name_gate(scope)
        if not name:
            await app(scope, receive, send)
            return
        gate = self._gates.setdefault(name, _Gate())
        if gate.inside >= MOST_AT_ONCE + MOST_WAITING:
            problem = Problem("too_many", "as many of yours wait to be answered", wait=1)
            await refuse_early(scope, problem)(scope, receive, send)
            return
        gate.inside += 1
        try:
            await _pass(gate.turns, app, scope, receive, send)
        finally:
            gate.inside -= 1
            if not gate.inside:
                del self._gates[name]


async def _pass(
    turns: asyncio.Semaphore, app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer; the work is done when the answer begins, however slowly it is taken."""
    await turns.acquire()
    done = False

    def end() -> None:
        nonlocal done
        if not done:
            done = True
            turns.release()

    async def send_on(message: Message) -> None:
        end()
        await send(message)

    try:
        await app(scope, receive, send_on)
    finally:
        end()


def _name_gate(scope: Scope) -> str:
    """Name what was shown, where there is a gate: for pages, and whatever is read."""
    if is_page(scope["path"]):
        session = scope[SESSION]
        return f"session {session}" if session else ""
    if scope["method"] != "GET":
        return ""
    token = read_bearer(dict(reversed(scope["headers"])))
    return f"token {token}" if token else ""
