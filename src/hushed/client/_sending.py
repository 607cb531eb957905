"""How the client speaks to a server: over TLS, again under the same key, and no token in a text."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import SystemRandom
from typing import Any, Never
from urllib.parse import urlsplit

from hushed._ground.printing import flat
from hushed._ground.warned import warn_or_print
from hushed.errors import (
    EngineUnavailable,
    HushedWarning,
    KeyInUse,
    LedgerUnavailable,
    NotFound,
    Overspent,
    ParameterError,
    QueryFailed,
    Refusal,
)

# From method, path, headers and body to status, headers and body.
Send = Callable[[str, str, Mapping[str, str], bytes], tuple[int, Mapping[str, str], bytes]]

_AGAIN = (429, 502, 503, 504)
_ATTEMPTS = 6  # of what has no end
_LONGEST_PAUSE = 60.0  # what a server that counts by the minute asks for
_GROWN = 15.0  # what is added to that at most, after many attempts
_CHANCE = SystemRandom()  # no state of a program that draws numbers of its own
_SILENT = 2.0  # seconds for which nobody needs to be told that something is waited for
_RARER = 10  # times as long as when it was told last, before it is told again
_KINDS: dict[str, type[Exception]] = {
    "budget_exceeded": Overspent,
    "quota_exceeded": Overspent,
    "day_exceeded": Overspent,
    "no_gamma": Overspent,
    "key_reused": KeyInUse,
    "not_found": NotFound,
    "failed": QueryFailed,
    "answer_deleted": QueryFailed,
    "ledger_unavailable": LedgerUnavailable,
    "dataset_changed": EngineUnavailable,
    "function_changed": EngineUnavailable,
    "dataset_unavailable": EngineUnavailable,
}
_NOT_REACHED = "the server was not reached: look at its address and port, and whether it runs"
_NO_TLS = (
    "no TLS could be agreed with what answers at this address: look at its port, and whether it is "
    "meant to be reached by http, on this computer"
)
_NOT_TRUSTED = (
    "this computer does not trust the certificate with which the server speaks TLS: ask whoever "
    "runs it; if it has an authority of its own, SSL_CERT_FILE names the file of that"
)
_WHY = {
    "busy": "the server is busy",
    "too_many": "the server takes no more requests of yours for now",
    "too_many_open": "too many of your requests wait for answers",
    "ledger_unavailable": "the server cannot use its ledger now",
    "dataset_unavailable": "the data set cannot be asked now",
}
# The server knows nothing of the request.
_NOT_TAKEN = ("busy", "conflict", "room_exceeded", "too_many_open")


class NotTaken(Refusal):
    """The server did not take the request: nothing was charged, and nothing is pending."""


class Forbidden(Refusal):
    """The token may not do that."""


class NotReached(OSError):
    """The server was not reached, or the connection broke: what the user may look at."""

    def __init__(self, words: str = _NOT_REACHED) -> None:
        super().__init__(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line to one server."""

    send: Send = field(repr=False)
    token: str = field(repr=False)
    pause: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __reduce_ex__(self, protocol: Any) -> Never:
        raise TypeError(
            "a connection to a server, and what is asked by it, is not pickled, for it holds your "
            "token: connect where it is needed, with hs.connect(...). Answers can be pickled"
        )

    def __copy__(self) -> Line:
        return self

    def __deepcopy__(self, memo: Any) -> Line:
        return self

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        ends: float = math.inf,
        waits: Waits | None = None,
    ) -> tuple[int, bytes]:
        """Ask, again where the server was busy or was not reached; a refusal is raised.

        What is sent again has the same key, so that it is paid once. It is asked until the end, a
        moment of `time.monotonic`, and no longer; without one, six times. A wait that is longer
        than a moment is told by `waits`, once and then rarely.
        """
        told = {"authorization": f"Bearer {self.token}", "accept": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        told |= {"content-type": "application/json"} if content else {}
        told |= dict(headers or {})
        waits = waits or Waits()
        for attempt in count():
            try:
                status, answered, found = self.send(method, path, told, content)
            except NotReached as error:
                why, after = str(error), 0.0
                refused: Exception = LedgerUnavailable(f"{error}{waits.later}")
            else:
                if status < 400:
                    return status, _take(status, found)
                why, after = _say_why(status, found), _read_after(answered)
                refused = read_problem(status, found)
                if status not in _AGAIN:
                    raise refused
            if not self._wait(waits, attempt, after, ends, why):
                raise refused
        raise AssertionError

    def _wait(self, waits: Waits, attempt: int, after: float, ends: float, why: str) -> bool:
        """Wait until it is asked again, not before the server says so; whether that is to be.

        Pauses grow, and differ, so that those who were refused together do not come back together.
        """
        left, more = ends - time.monotonic(), _ATTEMPTS - 1 - attempt
        if left <= after or (left == math.inf and not more):
            return False
        grown = min(2.0 ** min(attempt, 9) / 4, _GROWN)
        seconds = min(after + grown * _CHANCE.uniform(0.5, 1), left)
        often = "once more, then given up" if more == 1 else f"{more} times more at most"
        often = often if left == math.inf else f"for {left:.0f} s at most"
        waits.tell(seconds, f"{why}. It is asked again by itself, next in {seconds:.0f} s, {often}")
        self.pause(seconds)
        return True

    def read(self, path: str, *names: str) -> dict[str, Any]:
        """Read a JSON object that has these names."""
        return read_object(self.ask("GET", path)[1], *names)


@dataclass(slots=True)
class Waits:
    """What is waited for in one call: a long wait is told, once and then rarely."""

    later: str = ""  # what goes on after Ctrl-C, or an error
    waited: float = 0.0
    silent: float = _SILENT  # until so long was waited

    def tell(self, seconds: float, why: str) -> None:
        """Count so many seconds more, and say why they are waited if all are more than a moment."""
        self.waited += seconds
        if self.waited > self.silent:
            self.silent = _RARER * self.waited
            warn_or_print(HushedWarning(f"{why}. Ctrl-C ends the wait{self.later}"))


def say_again(key: str) -> str:
    """Say how what was sent is asked again, and paid once."""
    return (
        "; client.recover() goes on, and so does asking the same again with "
        f"key={flat(key)!r}: you pay once"
    )


def _take(status: int, found: bytes) -> bytes:
    """Give what was answered; the token does not go to another address."""
    if not 200 <= status < 300:
        raise LedgerUnavailable(
            f"the server sends on to another address ({status}), where the token does not go: "
            "connect to that one"
        )
    return found


def _read_after(headers: Mapping[str, str]) -> float:
    """Read in how many seconds a server wants to be asked again."""
    after = headers.get("retry-after", "1")
    return min(float(after) if after.isdecimal() else 1.0, _LONGEST_PAUSE)


def _say_why(status: int, body: bytes) -> str:
    """Say why a server is asked again later."""
    try:
        code = json.loads(body).get("code")
    except (ValueError, AttributeError, RecursionError):
        code = None
    known = _WHY.get(code) if isinstance(code, str) else None
    return known or f"the server, or what stands before it, answered {status}"


def read_object(body: bytes, *names: str, later: str = "") -> dict[str, Any]:
    """Read a JSON object; refuse what somebody on the way has put in place of it."""
    try:
        told = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise _no_server(later) from None
    if not isinstance(told, dict) or not told.keys() >= set(names):
        raise _no_server(later)
    return told


def _no_server(later: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        "what answered is no server of hushed, but another program at this address, or a page of "
        f"your network{later}"
    )


def read_problem(status: int, body: bytes) -> Exception:
    """Make the error that a refusal stands for."""
    try:
        told = json.loads(body)
        code, title, detail = (str(told.get(each, "")) for each in ("code", "title", "detail"))
    except (ValueError, AttributeError, RecursionError):
        code, title, detail = "", f"the server answered {status}", ""
    words = flat(f"{title} {detail}".strip()) or f"the server answered {status}"
    if code == "bad_query" and "needs a contribution bound: max_rows_per_user" in detail:
        return ParameterError(words, hint="call .bound_contributions(max_rows_per_user=N)")
    kind = _KINDS.get(code)
    words += f" ({code})" * (code in _KINDS)  # by which the documentation names it
    if kind is None:
        # Without a code it is the refusal of a proxy, which does not know what was charged.
        kind = ParameterError if code and status in (400, 413, 422) else Refusal
        kind = NotTaken if code in _NOT_TAKEN else Forbidden if code == "forbidden" else kind
    return kind(words)


def check_url(url: str) -> str:
    """Refuse an address at which a token would travel for everybody to read."""
    parts = urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ParameterError(
            "url is the address of a server and begins with https://, or on this computer http://",
            parameter="url",
        )
    if parts.scheme == "http" and not local:
        raise ParameterError(
            "over http everybody on the way reads token and answers: use https", parameter="url"
        )
    if parts.fragment or parts.path.rstrip("/").endswith(("/pages", "/pages/enter")):
        raise ParameterError(
            "this is an address of the pages, for a browser: give that of the server, without "
            "/pages and what follows it",
            parameter="url",
        )
    if parts.username or parts.password or parts.query:
        raise ParameterError("url holds no password and no question", parameter="url")
    return url.rstrip("/")


def open_line(url: str) -> Send:
    """Open connections to a server, which many threads may use."""
    import urllib3  # noqa: PLC0415

    pool = urllib3.PoolManager(
        maxsize=10, retries=False, timeout=urllib3.Timeout(connect=10, read=60)
    )

    def send(
        method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            found = pool.request(
                method,
                url + path,
                headers=dict(headers),
                body=body,
                redirect=False,
                decode_content=False,  # none was asked for: few bytes may stand for gigabytes
            )
        except urllib3.exceptions.SSLError as error:
            untrusted = "CERTIFICATE_VERIFY_FAILED" in str(error)
            raise NotReached(_NOT_TRUSTED if untrusted else _NO_TLS) from None
        except urllib3.exceptions.HTTPError:
            raise NotReached from None
        return found.status, found.headers, found.data

    return send
