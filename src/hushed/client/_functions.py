"""Registered functions of a team server: what is promised of them, their price, their release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hushed._ground.calls import called_as
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import flat, format_down, format_up
from hushed.client._named import Named
from hushed.client._pending import Pending
from hushed.client._questions import ServedQuote, read_quote
from hushed.client._terms import read_key, read_price, read_terms
from hushed.errors import KeyInUse
from hushed.releasing import Release

if TYPE_CHECKING:
    from hushed.client._client import Client

PROMISED = ("says", "gamma", "population", "words", "outsider", "min_epsilon", "max_epsilon")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServedRelease(Release):
    """The release of a registered function, with its signed certificate.

    Parameters
    ----------
    request : str
        Id of the request; ``client.answer(request)`` reads the release again, at no cost.
    envelope : str
        Its signed certificate, a DSSE envelope; `hushed.plots.certificate_page` reads it, and
        `hushed.verify`, which samples again where it is given the function and the public
        population.
    """

    request: str = ""
    envelope: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ServedFunction(Named, Shown):
    """A registered function of a server. What enters it is fixed there; the price is yours.

    Parameters
    ----------
    name : str
        The function.
    dataset : str
        The data set that it sees, whose budget and your share are charged.
    says : str
        What it answers.
    gamma : float
        Probability, over people like those of the population, that epsilon and delta fail.
    population : str
        The public rows that its sensitivity was measured on.
    words : str
        How far it moves, and how that is known.
    outsider : str
        What an outsider could learn.
    min_epsilon, max_epsilon : float
        What one release may cost.
    client : Client
        The server.
    closed : str, default ""
        Why it cannot be asked; empty if it can.
    rows : tuple of int, default ()
        Rows, or people, of the tables that the promise is for; empty if an older server tells none.
    record : str, default ""
        Digest of what was registered, without which a server takes no release: whoever registers
        another function under this name changes it. Empty if an older server tells none.
    """

    name: str
    dataset: str
    says: str
    gamma: float
    population: str
    words: str = field(repr=False)
    outsider: str = field(repr=False)
    min_epsilon: float
    max_epsilon: float
    client: Client = field(repr=False)
    closed: str = ""
    rows: tuple[int, ...] = ()
    record: str = field(default="", repr=False)

    def _card(self) -> Card:
        ends = f"{format_up(self.min_epsilon)} to {format_down(self.max_epsilon)}"
        facts = (
            *((("answers", flat(self.says)),) if self.says else ()),
            ("data set", flat(self.dataset)),
            ("gamma", format_up(self.gamma)),
            ("measured on", flat(self.population)),
            *((("promised for tables of", " or ".join(map(str, self.rows))),) if self.rows else ()),
            ("movement", flat(self.words)),
            ("an outsider", flat(self.outsider)),
            ("epsilon of a release", ends),
            *((("cannot be asked", flat(self.closed)),) if self.closed else ()),
        )
        return card_of_facts(f"Function {flat(self.name)}", facts)

    @called_as("function.quote(epsilon=0.5)")
    def quote(
        self, *, epsilon: float | None = None, error: float | None = None, delta: float = 0.0
    ) -> ServedQuote:
        """Price a release; no row is read, and nothing is charged.

        Parameters
        ----------
        epsilon : float, optional
            Privacy loss, in nats. Give it, or an error.
        error : float, optional
            The largest error that you can use, in units of the answer; 95 of 100 releases keep it,
            in all their numbers. The quote has the smallest epsilon for it, and is refused where
            that is less than the function is released for.
        delta : float, default 0
            Slack, where its noise is Gaussian.

        Returns
        -------
        ServedQuote
            Price, error, and what your share would have left.

        Raises
        ------
        ParameterError
            If it is not released for that.
        EngineUnavailable
            If it is not as it was when it was sampled.
        """
        body = read_price(epsilon=epsilon, error=error, delta=delta)
        _, found = self.client.line.ask("POST", f"/v1/functions/{self.name}/quote", body)
        return read_quote(found)

    @called_as("function.release(epsilon=0.5)")
    def release(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        note: str = "",
        key: str | None = None,
        timeout: float = 120.0,
    ) -> ServedRelease:
        """Ask, pay, and read the release, as `ServedTable.release` does.

        Parameters
        ----------
        epsilon : float
            Privacy loss, in nats.
        delta : float, default 0
            Slack, where its noise is Gaussian.
        note : str, default ""
            What it is for; the steward reads it.
        key : str, optional
            A name of your own: the same release under it is paid once, whatever its note.
        timeout : float, default 120
            Seconds to wait for the answer. The charge stays if they are over.

        Returns
        -------
        ServedRelease
            The value, whose certificate was checked.

        Raises
        ------
        AwaitingApproval
            If a steward has to approve it first; nothing is charged yet.
        Overspent
            If your share, or the data set's budget, has no room, for gamma, too; nothing is
            charged.
        KeyInUse
            If the key belongs to another request of yours.
        ParameterError
            If it is not released for that; nothing is charged.
        EngineUnavailable
            If it is not as it was when it was sampled, or was registered again since you have
            looked: then ``client.function(NAME)`` tells what it is now. Nothing is charged.
        QueryFailed
            If it failed after the charge, which stays.
        LedgerUnavailable
            If the server was not reached, or took too long: `Client.recover` goes on.
        Refusal
            If it was not let in; the message names the key to ask it again with.
        """
        body = read_terms(epsilon, delta, note)
        body |= {"record": self.record} if self.record else {}
        pending = Pending(key=read_key(key), dataset=self.dataset, body=body, function=self.name)
        found = self.client.begin(pending, timeout)
        if not isinstance(found, ServedRelease):  # the key names another request, a question
            raise KeyInUse("this key belongs to a question: take another one")
        return found
