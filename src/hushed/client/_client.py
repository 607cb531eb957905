"""A team server as its analysts and stewards see it: requests, answers, approvals."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from hushed._ground.calls import called_as
from hushed._ground.decimals import read
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import flat
from hushed.client._datasets import Datasets
from hushed.client._declared import read_declared
from hushed.client._functions import PROMISED as _PROMISED
from hushed.client._functions import ServedFunction, ServedRelease
from hushed.client._keys import find_signer, read_keys
from hushed.client._listed import Functions, Requests
from hushed.client._named import Named
from hushed.client._pending import Pending, forget_pending, list_pending, write_pending
from hushed.client._questions import ServedAnswer, ServedTable, say_later
from hushed.client._sending import Forbidden, Line, NotTaken, Waits, read_object, say_again
from hushed.errors import (
    AwaitingApproval,
    EngineUnavailable,
    HushedError,
    LedgerUnavailable,
    NotFound,
    Overspent,
    ParameterError,
    QueryFailed,
    Refusal,
)
from hushed.releasing._stored import read_release
from hushed.statements import Statement, key_id, open_signed
from hushed.statements._readings import canonical
from hushed.statements._statement import ASKED, REGISTERED, digest_asked, list_registered
from hushed.tables import Answer, Query
from hushed.tables._query import Query as TypedQuery

_NO_REQUEST = (
    "there is no such request of yours: client.requests() lists the newest 100; of an older one "
    "give the whole id"
)
_UNPAID = ("declined", "cancelled", "expired")
_WAIT = 20  # seconds that the server keeps one request waiting
_FIRST = 5  # the first time: then it is said that it is charged


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Client(Named, Shown):
    """A team server, to whoever has a token. Made by `connect`; threads may share it.

    Parameters
    ----------
    url : str
        Address of the server.
    line : Line
        How it is asked.
    key : bytes
        Public key that signs its certificates, in PEM.
    pending : Path
        Folder of what was asked and not read yet.
    former : tuple of bytes, default ()
        Public keys that signed before, in PEM.
    pinned : bool, default False
        Whether the keys came another way: then what the server names is not taken.
    """

    url: str
    line: Line = field(repr=False)
    key: bytes = field(repr=False)
    pending: Path = field(repr=False)
    former: tuple[bytes, ...] = field(default=(), repr=False)
    pinned: bool = field(default=False, repr=False)

    def _card(self) -> Card:
        ways = ".datasets(), .table(NAME), .functions(), .function(NAME), .requests(), .recover()"
        return card_of_facts("Team server", (("address", flat(self.url)), ("ask it by", ways)))

    if not TYPE_CHECKING:  # a type checker knows which names there are

        def __getattr__(self, name: str) -> Never:
            """Say where the methods of a table are."""
            if not name.startswith("_") and callable(getattr(ServedTable, name, None)):
                raise AttributeError(
                    f"a server has several data sets: ask one, as client.table(NAME).{name}(...); "
                    "client.datasets() lists them"
                )
            Named.__getattr__(self, name)

    def datasets(self) -> Datasets:
        """List the data sets that you may ask.

        Returns
        -------
        list of dict
            With their columns, public bounds and keys, and what your share has left. Printed, it
            is a few lines for each.
        """
        return Datasets(self.line.read("/v1/datasets", "items")["items"])

    @called_as('client.table("stays")')
    def table(self, name: str) -> ServedTable:
        """Begin a question to a data set.

        Parameters
        ----------
        name : str
            The data set.

        Returns
        -------
        ServedTable
            With the methods of `hushed.Table` that build a question; bounds and keys that the
            steward has declared need not be given, but for a histogram and `top_k`. Nor need
            the rows of each person that count, if they are declared: they are the same for all.

        Raises
        ------
        NotFound
            If there is none of this name for you.
        """
        if not isinstance(name, str) or not name or "/" in name or not name.isprintable():
            raise NotFound("there is no such data set")
        try:
            told = self.line.read(f"/v1/datasets/{name}", "columns", "user")
        except NotFound:
            raise _say_missing("data set", name, self.datasets()) from None
        schema = tuple((each["name"], each["kind"]) for each in told["columns"])
        query = TypedQuery(schema=schema, user=told["user"])
        # Servers of before declare no rows.
        declared = read_declared(told["columns"], told.get("max_rows_per_user"))
        made = ServedTable(query=query, dataset=name, client=self, declared=declared)
        return made if declared.rows is None else made.bound_contributions()

    def functions(self) -> Functions:
        """List the registered functions that you may ask.

        Returns
        -------
        list of dict
            With what is promised of their releases, in words: gamma, population, and what an
            outsider could learn. Printed, it is a few lines for each; ``client.function(NAME)``
            tells all of one.
        """
        return Functions(self.line.read("/v1/functions", "items")["items"])

    @called_as('client.function("median_stay")')
    def function(self, name: str) -> ServedFunction:
        """Find a registered function.

        Parameters
        ----------
        name : str
            The function.

        Returns
        -------
        ServedFunction
            Its releases have a price, as questions have.

        Raises
        ------
        NotFound
            If there is none of this name for you.
        """
        if not isinstance(name, str) or not name or "/" in name or not name.isprintable():
            raise NotFound("there is no such function")
        try:
            told = self.line.read(f"/v1/functions/{name}", "id", "dataset", *_PROMISED)
        except NotFound:
            raise _say_missing("function", name, self.functions()) from None
        promised = {each: told[each] for each in _PROMISED}
        return ServedFunction(
            name=told["id"],
            dataset=told["dataset"],
            client=self,
            closed=told.get("closed", ""),
            rows=tuple(told.get("rows") or ()),
            record=told.get("record", ""),
            **promised,
        )

    def requests(self) -> Requests:
        """List your requests, the newest first, at most 100.

        Returns
        -------
        list of dict
            As the server tells them. Printed, it is two lines for each.
        """
        return Requests(self.line.read("/v1/requests?most=100", "items")["items"])

    def answer(self, request: str) -> ServedAnswer | ServedRelease:
        """Read an answer again, at no cost.

        Parameters
        ----------
        request : str
            Id of the request, or its first 8 characters.

        Returns
        -------
        ServedAnswer or ServedRelease
            The answer to a query, or the release of a function, whose certificate was checked.

        Raises
        ------
        NotFound
            If there is no such request of yours.
        QueryFailed
            If it failed after the charge, which stays; or was deleted since, for the server keeps
            answers for a time.
        ParameterError
            If certificate, answer and request do not belong together, or the signature is
            another's: also that of a new key of the server, where the key was given to `connect`.
        """
        identity = _find_id(_complete(request, self.requests))
        try:
            found = self._read(identity)
            key = self.line.read(f"/v1/requests/{identity}", "key")["key"]
        except NotFound:
            raise NotFound(_NO_REQUEST) from None
        if not _is_of(self._open(found.envelope), identity, key):
            raise ParameterError("what was sent is the answer to another request: tell the steward")
        return found

    def _read(
        self, identity: str, ends: float = math.inf, waits: Waits | None = None
    ) -> ServedAnswer | ServedRelease:
        """Read an answer and its certificate, which have to belong together."""
        path = f"/v1/requests/{identity}"
        text = self.line.ask("GET", f"{path}/answer", ends=ends, waits=waits)[1]
        told = read_object(text)
        envelope = self.line.ask("GET", f"{path}/certificate", ends=ends, waits=waits)[1]
        read_object(envelope)
        statement = self._open(envelope.decode())
        if statement.record != canonical(told):  # to Python, 1 and true are equal
            raise ParameterError("the certificate is of another answer: tell the steward")
        entry = None if statement.entry is None else statement.entry.number
        if told.get("schema") == "hushed release":
            value, certificate = read_release(text.decode())
            return ServedRelease(
                value=value,
                certificate=certificate,
                entry=entry,
                request=identity,
                envelope=envelope.decode(),
            )
        found = Answer.from_json(text.decode())
        parts = {each.name: getattr(found, each.name) for each in fields(Answer)}
        return ServedAnswer(
            **parts | {"entry": entry}, request=identity, envelope=envelope.decode()
        )

    def _open(self, envelope: str) -> Statement:
        """Read a certificate that a key of the server has signed, be it a new one."""
        known = (self.key, *self.former)
        named = find_signer(envelope, known)
        if named is None and not self.pinned:
            known = read_keys(self.line)
            named = find_signer(envelope, known)
        return open_signed(envelope, named or self.key)

    def cancel(self, request: str) -> None:
        """Take back a request of yours that waits for approval; nothing was charged.

        Parameters
        ----------
        request : str
            Id of the request, or its first 8 characters.

        Raises
        ------
        NotFound
            If there is no such request of yours.
        Refusal
            If it waits no more: what is charged stays.
        """
        identity = _find_id(_complete(request, self.requests))
        try:
            self.line.ask("DELETE", f"/v1/requests/{identity}")
        except NotFound:
            raise NotFound(_NO_REQUEST) from None
        told = self.line.read(f"/v1/requests/{identity}", "key")
        forget_pending(self.pending, told["key"])

    def waiting(self) -> Requests:
        """List what waits for approval, the newest first, at most 100: a steward sees all of it.

        Returns
        -------
        list of dict
            As the server tells them: who asks, the question, its price, the note. Printed, it is
            two lines for each.
        """
        return Requests(self.line.read("/v1/requests?state=pending&most=100", "items")["items"])

    def why_not(self, request: str) -> str:
        """Say, to a steward, what would keep a request that waits from being approved now.

        Parameters
        ----------
        request : str
            Id of the request, or its first 8 characters.

        Returns
        -------
        str
            Such as that its asker's share has no room for it any more; empty if nothing would.

        Raises
        ------
        NotFound
            If there is no such request, or the server is of a version that does not say.
        """
        path = f"/v1/requests/{_find_id(_complete(request, self.waiting))}/outlook"
        return str(self.line.read(path, "why_not")["why_not"])

    def approve(self, request: str) -> dict[str, Any]:
        """Approve, as a steward, what somebody else has asked: it is charged now, and answered.

        Parameters
        ----------
        request : str
            Id of the request, or its first characters, at least 8.

        Returns
        -------
        dict
            The request, as the server tells it; its answer is for who asked.

        Raises
        ------
        Refusal
            If it waits no more, or you had a part in asking it.
        Overspent
            If a budget has no room for it any more; it goes on waiting.
        NotFound
            If there is no such request.
        """
        return self._decide(request, "approve")

    def decline(self, request: str, reason: str) -> dict[str, Any]:
        """Decline, as a steward, what somebody has asked; nothing was charged.

        Parameters
        ----------
        request : str
            Id of the request, or its first characters, at least 8.
        reason : str
            Why, for who asked.

        Returns
        -------
        dict
            The request, as the server tells it.

        Raises
        ------
        Refusal
            If it waits no more.
        NotFound
            If there is no such request.
        """
        return self._decide(request, "decline", {"reason": reason})

    def _decide(self, request: str, what: str, body: Any = None) -> dict[str, Any]:
        try:
            path = f"/v1/requests/{_find_id(_complete(request, self.waiting))}/{what}"
            return read_object(self.line.ask("POST", path, body)[1], "id", "state")
        except NotFound:
            raise NotFound(
                "no such request waits for you; one that was approved, declined or taken back does "
                "not wait any more: client.waiting() lists what waits, as does hushed serve waiting"
            ) from None

    def recover(self, timeout: float = 120.0) -> list[ServedAnswer | ServedRelease]:
        """Read what was asked from this computer and not read yet.

        What is charged costs nothing more. What was cut off, and never arrived, is asked now, under
        its own key. What the server or a proxy refused is read if it arrived before, and is not
        asked anew.

        Parameters
        ----------
        timeout : float, default 120
            Seconds to wait for each.

        Returns
        -------
        list of ServedAnswer or ServedRelease
            In no order. What waits for approval, what this token may not see or ask, and what
            came too often is left for later, and is not asked anew: of those, what is among your
            newest 100 requests is read when a token may see it. Requests that can never be asked
            are forgotten: nothing is charged for them, or their failure is known.
        """
        timeout = read("timeout", timeout, up=True)
        found, waiting = [], list_pending(self.pending)
        arrived = self._list_keys() if any(each.unseen for each in waiting) else set()
        for each in waiting:
            if each.unseen and each.key not in arrived:
                continue  # it would be a new question, which nobody asks now
            try:
                found.append(self.send(each, timeout))
            except LedgerUnavailable:
                raise
            except HushedError:
                continue
        return found

    def _list_keys(self) -> set[Any]:
        """List the keys of requests that arrived; none for a token that may not see them."""
        try:
            return {each.get("key") for each in self.requests()}
        except LedgerUnavailable:
            raise
        except HushedError:
            return set()

    def begin(self, pending: Pending, timeout: float) -> ServedAnswer | ServedRelease:
        """Write down what is asked now, and send it; both kinds of ``release`` call it.

        Parameters
        ----------
        pending : Pending
            The request.
        timeout : float
            Seconds to wait.

        Returns
        -------
        ServedAnswer or ServedRelease
            The answer.

        Raises
        ------
        HushedError
            As for `send`.
        ParameterError
            If the server signs with another key than those that were given: the answer would be
            paid, and refused. Nothing is asked.
        """
        timeout = read("timeout", timeout, up=True)
        if self.pinned:
            signs = key_id(read_keys(self.line)[0])
            if signs not in map(key_id, (self.key, *self.former)):
                raise ParameterError(
                    "the server signs with another key than the one that was given, and nothing "
                    "was asked: ask whoever runs it; where it was changed, give key=[new, old]"
                )
        write_pending(self.pending, pending)
        return self.send(pending, timeout)

    def send(self, pending: Pending, timeout: float) -> ServedAnswer | ServedRelease:
        """Send what was written down, and wait for its answer.

        Parameters
        ----------
        pending : Pending
            The request.
        timeout : float
            Seconds to wait.

        Returns
        -------
        ServedAnswer or ServedRelease
            The answer.

        Raises
        ------
        HushedError
            As for `ServedTable.release`.
        Refusal
            If it was declined or taken back, or waited too long for approval; or if it was not
            let in: then `recover` reads it if it arrived before, and asks nothing anew.
        """
        ends = time.monotonic() + timeout
        try:
            told = self._wait(pending, ends)
        except (ParameterError, Overspent, EngineUnavailable, NotTaken):
            forget_pending(self.pending, pending.key)  # nothing was charged
            raise
        except NotFound:  # not now; but another token may see it, and it may have been charged
            self._leave_unseen(pending)
            raise
        except (AwaitingApproval, LedgerUnavailable):
            raise
        except Refusal as refused:  # by a limit, for the token, by a proxy: it may have come before
            self._leave_unseen(pending)
            if isinstance(refused, Forbidden) and self._is_steward():  # who was never charged
                raise
            raise Refusal(refused.message.rstrip("."), hint=_say_left(pending.key)) from None
        if told["state"] in _UNPAID:
            forget_pending(self.pending, pending.key)
            raise Refusal(_say_unpaid(told))
        answer = self._read_paid(pending, told["id"], ends)
        if not self._answers(pending, answer):  # signed, and sent again for this one
            raise ParameterError(
                "what was sent is the answer to another question, another price, or another "
                "request: tell the steward; client.recover() asks for this one again, at no cost"
            )
        forget_pending(self.pending, pending.key)
        return answer

    def _read_paid(
        self, pending: Pending, request: str, ends: float
    ) -> ServedAnswer | ServedRelease:
        """Read what is charged, or say how it is read later."""
        again = say_again(pending.key)
        try:
            return self._read(_find_id(request), ends, Waits(again))
        except QueryFailed:  # after any other end it can be read
            forget_pending(self.pending, pending.key)
            raise
        except LedgerUnavailable:
            raise
        except Refusal as refused:
            raise Refusal(f"it is charged. {refused.message.rstrip('.')}{again}") from None

    def _answers(self, pending: Pending, answer: ServedAnswer | ServedRelease) -> bool:
        """Whether an answer is to what was asked, by the record that the server has signed."""
        statement, body = self._open(answer.envelope), pending.body
        paid = answer if isinstance(answer, ServedAnswer) else answer.certificate
        promise = paid.guarantee
        priced = math.isclose(promise.epsilon, body["epsilon"]) and promise.delta <= body["delta"]
        if statement.data != pending.dataset or not priced:
            return False
        if not _is_of(statement, answer.request, pending.key):
            return False
        if not isinstance(answer, ServedAnswer):
            wanted = f"{REGISTERED}{pending.function}"
            alike = (  # servers of before name no function, and tell no digest of one
                name == wanted and body.get("record", digest) == digest
                for name, digest in list_registered(statement)
            )
            return bool(pending.function) and all(alike)
        if pending.function or answer.asked is None:
            return False
        wanted = Query.model_validate(body["query"]).digest()
        return bool(answer.asked.query.digest() == wanted and answer.asked.noise == body["noise"])

    def _wait(self, pending: Pending, ends: float) -> dict[str, Any]:
        """Send it until the server tells of its end."""
        headers = {"idempotency-key": pending.key}
        waits, longest, begun = Waits(say_again(pending.key)), _FIRST, time.monotonic()
        while True:
            wait = math.ceil(min(longest, max(0.0, ends - time.monotonic())))
            headers["prefer"] = f"wait={wait}"
            _, body = self.line.ask("POST", pending.path, pending.body, headers, ends, waits)
            told = read_object(body, "id", "state", later=waits.later)
            if told["state"] == "pending":
                raise AwaitingApproval(
                    f"the request {told['id']} waits for a steward's approval, and nothing is "
                    "charged yet: client.recover() reads the answer when it is there"
                    + self._say_today(told),
                    hint=f"client.cancel({told['id']!r}) takes it back",
                )
            if told["state"] != "charged":
                return told
            now = time.monotonic()
            if now >= ends:
                raise LedgerUnavailable(f"it is charged, and there is no answer yet{waits.later}")
            if longest == _FIRST:  # what was told until now was told of what is not charged
                waits, longest = Waits(waits.later), _WAIT
            took = now - begun
            waits.tell(took - waits.waited, f"what was asked is charged; no answer in {took:.0f} s")
            self.line.pause(0.2)

    def _is_steward(self) -> bool:
        with suppress(HushedError):
            return bool(self.line.read("/v1/me").get("role") == "steward")
        return False

    def _say_today(self, told: Mapping[str, Any]) -> str:
        """Say where what waits could not be paid today, even if it were approved at once."""
        with suppress(HushedError, LookupError, TypeError):
            shares = self.line.read("/v1/me", "shares")["shares"]
            left = next(each for each in shares if each["dataset"] == told["dataset"])
            if left.get("left_today") is not None and told["epsilon"] > left["left_today"]:
                return "; " + say_later(left["left_today"])
        return ""

    def _leave_unseen(self, pending: Pending) -> None:
        """Keep a request that was refused: it is read if it arrived before, and not asked anew."""
        with suppress(OSError):
            write_pending(self.pending, replace(pending, unseen=True))


def _is_of(statement: Statement, request: str, key: str) -> bool:
    """Whether a certificate is that of this request; servers of before do not tell."""
    return statement.versions.get(ASKED) in (None, digest_asked(request, key))


def _say_left(key: str) -> str:
    """Say what becomes of a request of which nobody knows whether it arrived before."""
    return (
        "client.recover() reads its answer if it was charged before this, and asks nothing anew; "
        f"with key={flat(key)!r} the same question is asked again, and paid once"
    )


def _say_missing(what: str, name: str, known: Sequence[Mapping[str, Any]]) -> NotFound:
    """Say that there is none of this name, and which there are for whoever asks."""
    yours = ", ".join(flat(str(each.get("id", ""))) for each in known) or "none"
    return NotFound(f"there is no {what} {name[:64]!r} for you; yours: {yours}")


def _say_unpaid(told: Mapping[str, Any]) -> str:
    """Say why there is no answer, and no charge."""
    words = {"declined": "was declined", "cancelled": "was taken back"}
    why = f": {flat(told['reason'])}" if told.get("reason") else ""
    said = words.get(told["state"], "waited too long for approval")
    return f"the request {told['id']} {said}{why}; nothing was charged"


def _find_id(request: str) -> str:
    """Read the id of a request."""
    try:
        return str(uuid.UUID(request))
    except (ValueError, TypeError, AttributeError):
        raise NotFound(_NO_REQUEST) from None


def _complete(request: str, listed: Callable[[], Sequence[Mapping[str, Any]]]) -> str:
    """Complete the first 8 characters or more of an id, if one request that is listed has them."""
    if not isinstance(request, str) or not 8 <= len(request) < 32:
        return request
    found = [each["id"] for each in listed() if each["id"].startswith(request)]
    return found[0] if len(found) == 1 else request
