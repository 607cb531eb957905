"""A team server as its analysts see it: tables, prices, answers."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from hushed._printing import flat, format_up
from hushed.client._pending import (
    Pending,
    forget_pending,
    list_pending,
    pending_folder,
    write_pending,
)
from hushed.client._sending import Line, NotTaken, Send, check_url, open_line
from hushed.errors import (
    AwaitingApproval,
    EngineUnavailable,
    HushedError,
    LedgerUnavailable,
    MissingExtra,
    NotFound,
    Overspent,
    ParameterError,
    QueryFailed,
    Refusal,
)
from hushed.statements import open_signed
from hushed.tables import Answer
from hushed.tables._asking import describe
from hushed.tables._builder import QueryBuilder
from hushed.tables._query import Query as TypedQuery

Noise = Literal["laplace", "gaussian"]
_NEEDED = ("cryptography", "duckdb", "ibis", "urllib3")
_UNPAID = ("declined", "cancelled", "expired")
_WAIT = 20  # seconds that the server keeps one request waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAnswer(Answer):
    """An answer of a team server, with its signed certificate.

    Parameters
    ----------
    request : str
        Id of the request; ``client.answer(request)`` reads the answer again, at no cost.
    certificate : str
        DSSE envelope, signed by the server; `hushed.verify` reads it.
    """

    request: str = ""
    certificate: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedQuote:
    """The price of a question, as the server tells it.

    Parameters
    ----------
    epsilon, delta : float
        What it costs.
    errors : mapping of str to float or None
        Error of each output, as in `hushed.Quote`.
    words : str
        The price in a few lines.
    fits : bool
        Whether your share has room for it. That of the data set may have none.
    left : mapping of str to float
        What is left of your share: ``epsilon`` and ``delta``.
    left_after : mapping of str to float, or None
        What would be left of it.
    needs_approval : bool
        Whether a steward has to approve it first.
    """

    epsilon: float
    delta: float
    errors: Mapping[str, float | None]
    words: str = field(repr=False)
    fits: bool
    left: Mapping[str, float]
    left_after: Mapping[str, float] | None
    needs_approval: bool = False

    def __str__(self) -> str:
        room = "fits into your share" if self.fits else "does not fit into your share"
        waits = "\na steward has to approve it first" if self.needs_approval else ""
        return f"{self.words}\n{room}: epsilon {format_up(self.left['epsilon'])} is left{waits}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTable(QueryBuilder):
    """A question to a data set of a server; every method returns a new one.

    Parameters
    ----------
    query : Query
        What is asked.
    dataset : str
        The data set.
    client : Client
        The server.
    """

    dataset: str
    client: Client = field(repr=False)

    def quote(
        self,
        *,
        epsilon: float | None = None,
        errors: Mapping[str, float] | None = None,
        delta: float = 0.0,
        noise: Noise = "laplace",
        rows: int | None = None,
    ) -> ServedQuote:
        """Price the question; no row is read, and nothing is charged.

        Parameters
        ----------
        epsilon : float, optional
            Privacy loss, in nats; this one or `errors`.
        errors : mapping of str to float, optional
            Largest error of some outputs; the smallest epsilon that keeps them is found.
        delta : float, default 0
            Slack, as for `hushed.Table.release`.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        rows : int, optional
            Public guess of the number of rows in a group.

        Returns
        -------
        ServedQuote
            Price, errors, and what your share would have left.

        Raises
        ------
        ParameterError
            If it cannot be asked.
        """
        body: dict[str, Any] = {"query": _plain(self.query), "delta": delta, "noise": noise}
        given = {"epsilon": epsilon, "errors": errors and dict(errors), "rows": rows}
        body |= {name: each for name, each in given.items() if each is not None}
        _, found = self.client.line.ask("POST", f"/v1/datasets/{self.dataset}/quote", body)
        told = json.loads(found)
        return ServedQuote(
            epsilon=told["epsilon"],
            delta=told["delta"],
            errors={each["name"]: each["error"] for each in told["outputs"]},
            words=told["words"],
            fits=told["fits"],
            left=told["left"],
            left_after=told["left_after"],
            needs_approval=told["needs_approval"],
        )

    def release(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: Noise = "laplace",
        note: str = "",
        key: str | None = None,
        timeout: float = 120.0,
    ) -> ServedAnswer:
        """Ask, pay, and read the answer.

        The request is written to a file of yours before it is sent. If anything stops this
        program, ``client.recover()`` reads the answer, at no cost.

        Parameters
        ----------
        epsilon : float
            Privacy loss, in nats.
        delta : float, default 0
            Slack, as for `hushed.Table.release`.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        note : str, default ""
            What it is for; the steward reads it.
        key : str, optional
            A name of your own: the same question under it is paid once.
        timeout : float, default 120
            Seconds to wait for the answer. The charge stays if they are over.

        Returns
        -------
        ServedAnswer
            The answer, whose certificate was checked.

        Raises
        ------
        AwaitingApproval
            If a steward has to approve it first; nothing is charged yet, and `Client.recover`
            reads the answer when it is there.
        Overspent
            If your share, or the data set's budget, has no room; nothing is charged.
        KeyInUse
            If the key belongs to another question of yours.
        ParameterError
            If it cannot be asked; nothing is charged.
        QueryFailed
            If it failed on the rows; the charge stays.
        LedgerUnavailable
            If the server was not reached, or took too long: `Client.recover` goes on.
        """
        body = {"query": _plain(self.query), "epsilon": epsilon, "delta": delta, "noise": noise}
        pending = Pending(
            key=key or str(uuid.uuid4()), dataset=self.dataset, body=body | {"note": note}
        )
        write_pending(self.client.pending, pending)
        return self.client.send(pending, timeout)


def _plain(query: TypedQuery) -> Any:
    return json.loads(describe(query).to_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
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
    """

    url: str
    line: Line = field(repr=False)
    key: bytes = field(repr=False)
    pending: Path = field(repr=False)

    def datasets(self) -> list[dict[str, Any]]:
        """List the data sets that you may ask.

        Returns
        -------
        list of dict
            With their columns, public bounds and keys, and what your share has left.
        """
        return list(self.line.read("/v1/datasets")["items"])

    def table(self, name: str) -> ServedTable:
        """Begin a question to a data set.

        Parameters
        ----------
        name : str
            The data set.

        Returns
        -------
        ServedTable
            With the methods of `hushed.Table`.

        Raises
        ------
        NotFound
            If there is none of this name for you.
        """
        if not isinstance(name, str) or not name or "/" in name or not name.isprintable():
            raise NotFound("there is no such data set")
        told = self.line.read(f"/v1/datasets/{name}")
        schema = tuple((each["name"], each["kind"]) for each in told["columns"])
        query = TypedQuery(schema=schema, user=told["user"])
        return ServedTable(query=query, dataset=name, client=self)

    def requests(self) -> list[dict[str, Any]]:
        """List your requests, the newest first, at most 100.

        Returns
        -------
        list of dict
            As the server tells them.
        """
        return list(self.line.read("/v1/requests?most=100")["items"])

    def answer(self, request: str) -> ServedAnswer:
        """Read an answer again, at no cost.

        Parameters
        ----------
        request : str
            Id of the request.

        Returns
        -------
        ServedAnswer
            The answer, whose certificate was checked.

        Raises
        ------
        NotFound
            If there is no such request of yours.
        QueryFailed
            If it failed on the rows.
        ParameterError
            If certificate and answer do not belong together, or the signature is another's.
        """
        identity = str(uuid.UUID(request))
        text = self.line.ask("GET", f"/v1/requests/{identity}/answer")[1].decode()
        envelope = self.line.ask("GET", f"/v1/requests/{identity}/certificate")[1].decode()
        statement = open_signed(envelope, self.key)
        if json.loads(statement.record) != json.loads(text):
            raise ParameterError("the certificate is of another answer: tell the steward")
        found = Answer.from_json(text)
        parts = {each.name: getattr(found, each.name) for each in fields(Answer)}
        entry = None if statement.entry is None else statement.entry.number
        return ServedAnswer(**parts | {"entry": entry}, request=identity, certificate=envelope)

    def cancel(self, request: str) -> None:
        """Take back a request of yours that waits for approval; nothing was charged.

        Parameters
        ----------
        request : str
            Id of the request.

        Raises
        ------
        NotFound
            If there is no such request of yours.
        Refusal
            If it waits no more: what is charged stays.
        """
        identity = str(uuid.UUID(request))
        self.line.ask("DELETE", f"/v1/requests/{identity}")
        forget_pending(self.pending, self.line.read(f"/v1/requests/{identity}")["key"])

    def waiting(self) -> list[dict[str, Any]]:
        """List what waits for approval, the newest first, at most 100: a steward sees all of it.

        Returns
        -------
        list of dict
            As the server tells them: who asks, the question, its price, the note.
        """
        return list(self.line.read("/v1/requests?state=pending&most=100")["items"])

    def approve(self, request: str) -> dict[str, Any]:
        """Approve, as a steward, what somebody else has asked: it is charged now, and answered.

        Parameters
        ----------
        request : str
            Id of the request.

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
        path = f"/v1/requests/{uuid.UUID(request)}/approve"
        return dict(json.loads(self.line.ask("POST", path)[1]))

    def decline(self, request: str, reason: str) -> dict[str, Any]:
        """Decline, as a steward, what somebody has asked; nothing was charged.

        Parameters
        ----------
        request : str
            Id of the request.
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
        path = f"/v1/requests/{uuid.UUID(request)}/decline"
        return dict(json.loads(self.line.ask("POST", path, {"reason": reason})[1]))

    def recover(self, timeout: float = 120.0) -> list[ServedAnswer]:
        """Read what was asked from this computer and not read yet; it costs nothing more.

        What was never charged, for it did not arrive, is asked now, under its own key.

        Parameters
        ----------
        timeout : float, default 120
            Seconds to wait for each.

        Returns
        -------
        list of ServedAnswer
            In no order. What waits for approval is left for later. Requests that the server
            refuses are forgotten: nothing is charged for them, or their failure is known.
        """
        found = []
        for each in list_pending(self.pending):
            try:
                found.append(self.send(each, timeout))
            except LedgerUnavailable:
                raise
            except HushedError:
                continue
        return found

    def send(self, pending: Pending, timeout: float) -> ServedAnswer:
        """Send what was written down, and wait for its answer; `ServedTable.release` calls it.

        Parameters
        ----------
        pending : Pending
            The request.
        timeout : float
            Seconds to wait.

        Returns
        -------
        ServedAnswer
            The answer.

        Raises
        ------
        HushedError
            As for `ServedTable.release`.
        Refusal
            If it was declined or taken back, or waited too long for approval.
        """
        ends = time.monotonic() + timeout
        headers = {"idempotency-key": pending.key, "prefer": f"wait={_WAIT}"}
        path = f"/v1/datasets/{pending.dataset}/requests"
        try:
            while True:
                _, body = self.line.ask("POST", path, pending.body, headers)
                told = json.loads(body)
                if told["state"] == "pending":
                    raise AwaitingApproval(
                        f"the request {told['id']} waits for a steward's approval, and nothing is "
                        "charged yet: client.recover() reads the answer when it is there",
                        hint=f"client.cancel({told['id']!r}) takes it back",
                    )
                if told["state"] != "charged":
                    break
                if time.monotonic() > ends:
                    raise LedgerUnavailable(
                        "there is no answer yet; it is charged: client.recover() reads it later"
                    )
                self.line.pause(0.2)
            if told["state"] in _UNPAID:
                forget_pending(self.pending, pending.key)
                raise Refusal(_say_unpaid(told))
            answer = self.answer(told["id"])
        except (ParameterError, NotFound, Overspent, QueryFailed, EngineUnavailable, NotTaken):
            # Nothing was charged, or the failure is known. After any other end it may be charged.
            forget_pending(self.pending, pending.key)
            raise
        forget_pending(self.pending, pending.key)
        return answer


def _say_unpaid(told: Mapping[str, Any]) -> str:
    """Say why there is no answer, and no charge."""
    words = {"declined": "was declined", "cancelled": "was taken back"}
    why = f": {flat(told['reason'])}" if told.get("reason") else ""
    said = words.get(told["state"], "waited too long for approval")
    return f"the request {told['id']} {said}{why}; nothing was charged"


def connect(
    url: str, token: str | None = None, *, key: bytes | None = None, send: Send | None = None
) -> Client:
    """Connect to a team server. Experimental.

    Parameters
    ----------
    url : str
        Its address; ``http`` on this computer only.
    token : str, optional
        The token that the steward gave you; by default the environment variable ``HUSHED_TOKEN``.
    key : bytes, optional
        Public key of the server, in PEM, which came another way. Without it, the one that the
        server names is taken: then a certificate shows that the server signed it, and no more.
    send : callable, optional
        How to send, for tests and for networks of your own.

    Returns
    -------
    Client
        The server.

    Raises
    ------
    ParameterError
        If the address is not safe, or there is no token.
    MissingExtra
        If the extra ``hushed[client]`` is not installed.
    Refusal
        If the token does not count.
    """
    if any(find_spec(each) is None for each in _NEEDED):
        raise MissingExtra("the client of a server", "client")
    place = check_url(url)
    shown = token or os.environ.get("HUSHED_TOKEN", "")
    if not shown or not shown.isascii() or not shown.isprintable():
        raise ParameterError("a token is needed: give it, or set HUSHED_TOKEN", parameter="token")
    line = Line(send=send or open_line(place), token=shown)
    who = line.read("/v1/me")["id"]
    named = key or line.read("/v1/keys")["keys"][0]["pem"].encode()
    return Client(url=place, line=line, key=named, pending=pending_folder(place, who))
