"""Questions to a team server: the builder of tables, with prices and answers from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from hushed._ground.calls import called_as
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import as_given, flat, format_down, format_up
from hushed.client._declared import DeclaredBuilder
from hushed.client._named import Named
from hushed.client._pending import Pending
from hushed.client._sending import read_object
from hushed.client._terms import read_key, read_price, read_terms
from hushed.errors import KeyInUse, NotFound, ParameterError
from hushed.tables import Answer
from hushed.tables._asking import describe
from hushed.tables._query import Query as TypedQuery
from hushed.tables._wanted import read_errors, read_wanted

if TYPE_CHECKING:
    from hushed.client._client import Client

Noise = Literal["laplace", "gaussian"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServedAnswer(Answer):
    """An answer of a team server, with its signed certificate.

    Parameters
    ----------
    request : str
        Id of the request; ``client.answer(request)`` reads the answer again, at no cost.
    envelope : str
        Its signed certificate, a DSSE envelope; `hushed.verify` reads it, and
        `hushed.plots.certificate_page`.
    """

    request: str = ""
    envelope: str = ""
    takes_guess: ClassVar[bool] = False


_PRICE = ("epsilon", "delta", "outputs", "words", "fits", "left", "left_after", "needs_approval")


def say_later(left: float) -> str:
    """Say that what waits for approval cannot be paid today, even if it is approved at once."""
    return (
        f"of today your share has epsilon {format_down(left)} left, which cannot pay for it: "
        "approved today it is refused, so it can be approved on a later day (UTC) alone"
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServedQuote(Named, Shown):
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
    gamma : float, default 0
        Of a function: the probability that epsilon and delta fail.
    outsider : str, default ""
        Of a function: what an outsider could learn, in words.
    left_today : float, optional
        Epsilon that is left of today (UTC), of a share with a limit for each day.
    short : str, default ""
        What does not fit, and what is left of it: epsilon, delta and gamma of your share, or
        epsilon of today. Empty if it fits, or if an older server tells nothing of today.
    """

    epsilon: float
    delta: float
    errors: Mapping[str, float | None]
    words: str
    fits: bool
    left: Mapping[str, float]
    left_after: Mapping[str, float] | None
    needs_approval: bool = False
    gamma: float = 0.0
    outsider: str = ""
    left_today: float | None = None
    short: str = ""

    def _brief(self) -> str:
        return f"Quote of a server: epsilon {format_up(self.epsilon)}, {self._room()}"

    def _room(self) -> str:
        if self.fits:
            return "fits into your share"
        # Else the share is used up, whatever the day.
        today = self.left_today is not None and self.left_after is not None
        return f"does not fit into {'what is left of today' if today else 'your share'}"

    def __str__(self) -> str:
        left = f"epsilon {format_down(self.left['epsilon'])} is left"
        if self.left_today is not None:
            left += f", of today {format_down(self.left_today)}"
        room = f"{self._room()}: {flat(self.short) or left}"
        if not self.fits:  # no steward is asked
            return f"{room}\n{self.words}"
        waits = "\na steward has to approve it first" if self.needs_approval else ""
        if waits and self.left_today is not None and self.epsilon > self.left_today:
            waits += f"; {say_later(self.left_today)}"
        return f"{self.words}\n{room}; the budget of the data set is asked when you pay{waits}"

    def explain(self) -> str:
        """Explain the price in a few lines.

        Returns
        -------
        str
            The price, the errors, and whether your share has room for it.
        """
        return str(self)

    def accuracy(self, name: str) -> float | None:
        """Error of an output.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        float or None
            As in ``errors``.

        Raises
        ------
        NotFound
            If there is no such output.
        """
        if name not in self.errors:
            raise NotFound(f"the outputs are {', '.join(map(flat, self.errors))}")
        return self.errors[name]


def read_quote(body: bytes) -> ServedQuote:
    """Read a price as a server tells it."""
    told = read_object(body, *_PRICE)
    return ServedQuote(
        epsilon=told["epsilon"],
        delta=told["delta"],
        errors={each["name"]: each["error"] for each in told["outputs"]},
        words=told["words"],
        fits=told["fits"],
        left=told["left"],
        left_after=told["left_after"],
        needs_approval=told["needs_approval"],
        gamma=told.get("gamma", 0.0),
        outsider=told.get("outsider", ""),
        left_today=told.get("left_today"),
        short=told.get("short", ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTable(DeclaredBuilder, Named, Shown):
    """A question to a data set of a server; every method returns a new one.

    Parameters
    ----------
    query : Query
        What is asked.
    declared : Declared
        Bounds and keys that the steward has declared: they are taken where none are given.
    taken : tuple of str
        Which of them were taken so far, in words.
    dataset : str
        The data set.
    client : Client
        The server.
    """

    dataset: str
    client: Client = field(repr=False)

    __repr__ = Shown.__repr__

    def _card(self) -> Card:
        card = self._describe(f"Question to the data set {flat(self.dataset)}")
        if not self.taken:
            return card
        taken = ("taken from what the steward declared", "; ".join(dict.fromkeys(self.taken)))
        return card_of_facts(card.title, (*card.facts, taken))

    @called_as("table.count().quote(epsilon=0.5)")
    def quote(
        self,
        *,
        epsilon: float | None = None,
        errors: Mapping[str, float] | None = None,
        error: float | None = None,
        delta: float = 0.0,
        noise: Noise = "laplace",
        rows: int | None = None,
    ) -> ServedQuote:
        """Price the question; no row is read, and nothing is charged.

        Parameters
        ----------
        epsilon : float, optional
            Privacy loss, in nats; this one, `errors` or `error`.
        errors : mapping of str to float, optional
            Largest error of some outputs; the smallest epsilon that keeps them is found.
        error : float, optional
            Largest error of the only output.
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
        errors = read_errors(epsilon, errors, error, [each.name for each in self.aggregates])
        body: dict[str, Any] = {"query": _plain(self.query), "noise": _read_noise(noise)}
        body |= read_price(epsilon=epsilon, delta=delta, errors=errors, rows=rows)
        _, found = self.client.line.ask("POST", f"/v1/datasets/{self.dataset}/quote", body)
        return read_quote(found)

    @called_as('table.count().quote_for(errors={"count": 50})')
    def quote_for(
        self,
        *,
        errors: Mapping[str, float] | None = None,
        error: float | None = None,
        delta: float = 0.0,
        noise: Noise = "laplace",
        rows: int | None = None,
    ) -> ServedQuote:
        """Find the smallest epsilon that keeps the errors that are wanted.

        No row is read, and nothing is charged.

        Parameters
        ----------
        errors : mapping of str to float, optional
            Largest error of some outputs; these, or `error`.
        error : float, optional
            Largest error of the only output.
        delta : float, default 0
            Slack, as for `hushed.Table.release`.
        noise : {"laplace", "gaussian"}, default "laplace"
            The noise of counts and sums.
        rows : int, optional
            Public guess of the number of rows in a group; means and variances need it.

        Returns
        -------
        ServedQuote
            As `quote` with these errors: its epsilon is what to release the question for.

        Raises
        ------
        ParameterError
            If it cannot be asked, or no epsilon keeps the errors.
        """
        wanted = read_wanted(errors, error, [each.name for each in self.aggregates])
        return self.quote(errors=wanted, delta=delta, noise=noise, rows=rows)

    @called_as("table.count().release(epsilon=0.5)")
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
            A name of your own: the same question under it is paid once, whatever its note.
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
            If it failed after the charge, which stays.
        LedgerUnavailable
            If the server was not reached, or took too long: `Client.recover` goes on.
        Refusal
            If it was not let in; the message names the key to ask it again with.
        """
        body = {"query": _plain(self.query), "noise": _read_noise(noise)}
        body |= read_terms(epsilon, delta, note)
        pending = Pending(key=read_key(key), dataset=self.dataset, body=body)
        found = self.client.begin(pending, timeout)
        if not isinstance(found, ServedAnswer):  # the key names another request, a release
            raise KeyInUse("this key belongs to the release of a function: take another one")
        return found


def _read_noise(noise: str) -> str:
    if noise not in get_args(Noise):
        raise ParameterError(
            f"noise must be 'laplace' or 'gaussian', got {as_given(noise)}", parameter="noise"
        )
    return noise


def _plain(query: TypedQuery) -> Any:
    return json.loads(describe(query).to_json())
