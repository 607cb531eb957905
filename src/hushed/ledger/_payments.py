"""Charges whose answers are stored, and ledgers that store none."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from hushed._ground.printing import as_given
from hushed._ground.warned import warn_or_print
from hushed.errors import (
    DamagedLedger,
    HushedWarning,
    LedgerUnavailable,
    ParameterError,
    QueryFailed,
)
from hushed.guarantee import Guarantee
from hushed.ledger._failures import write_failure
from hushed.ledger._files import NOTHING_CHARGED, FileChanged
from hushed.ledger._postgres import LONGEST_ANSWER
from hushed.privacy_loss import PrivacyProfile

STORED_BEFORE = "this is the answer that was stored before under the key"


class Charges(Protocol):
    """A ledger, as a release needs it."""

    def charge(
        self,
        budget: str,
        guarantee: Guarantee,
        note: str = "",
        *,
        loss: PrivacyProfile | None = None,
    ) -> object:
        """Commit a charge, or raise and leave the budget as it was.

        What is returned may have a text ``terms``: under which terms it was charged. It goes into
        the certificate. A ledger with a method ``keep_answer`` is asked to store answers, as
        `hushed.Ledger` does, and then takes ``key`` and ``question``, too; keys need a method
        ``answer``.

        Parameters
        ----------
        budget : str
            Name of the budget.
        guarantee : Guarantee
            What is about to be promised.
        note : str, optional
            What the charge is for; public.
        loss : PrivacyProfile, optional
            The curve behind the guarantee, where it is known.

        Returns
        -------
        object
            The entry.
        """


def check_ledger(ledger: object, budget: str | None, key: str | None = None) -> None:
    """Refuse a ledger without a budget, a budget without a ledger, and what is no ledger."""
    if ledger is None:
        for name, given in (("budget", budget), ("key", key)):
            if given is not None:
                raise ParameterError(
                    f"the {name} {as_given(given)} was named, but there is no ledger to charge",
                    parameter="ledger",
                    hint="give ledger=hs.Ledger('sqlite:///FILE')",
                )
        return
    if not hasattr(ledger, "charge"):
        advice = "give a hs.Ledger, or an object with such a method charge as hs.Ledger has"
        if isinstance(ledger, str):
            advice = "open it first: ledger=hs.Ledger(...)"
        raise ParameterError(f"a {type(ledger).__name__} cannot be charged; {advice}")
    if hasattr(ledger, "keep_answer") and not _takes(ledger.charge, "key", "question"):
        raise ParameterError(
            f"a {type(ledger).__name__} has a method keep_answer, so that its charge has to take "
            "key= and question=, too, as that of hs.Ledger does"
        )
    if not isinstance(budget, str) or not budget:
        raise ParameterError(
            "there is a ledger, but no budget was named in it",
            parameter="budget",
            hint="give budget='NAME'",
        )
    if key is not None and not (hasattr(ledger, "keep_answer") and hasattr(ledger, "answer")):
        raise ParameterError(
            f"a {type(ledger).__name__} keeps no answers, so that key= has no meaning; leave it out"
        )


def _takes(method: Any, *names: str) -> bool:
    """Whether a method can be called with arguments of these names; unknown is taken for yes."""
    try:
        known = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return True
    if any(each.kind is each.VAR_KEYWORD for each in known):
        return True
    return set(names) <= {each.name for each in known if each.kind is not each.POSITIONAL_ONLY}


@contextmanager
def explain_stops(ledger: object, budget: str | None, key: str | None = None) -> Iterator[None]:
    """Say what a stop by the user leaves behind, where nothing else has said it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if str(stop) or ledger is None:
            raise
    else:
        return
    if key is not None:
        advice = f"ask again under the key {key!r}: what was charged is not charged again"
    else:
        advice = f"look at the last entry of budget {budget!r}; a charge stays"
        if hasattr(ledger, "answer"):
            advice += ", and ledger.answer(budget, NUMBER) returns its answer if it was stored"
    raise KeyboardInterrupt(f"stopped; nothing was shown, but it may have been charged: {advice}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A charge, and where its answer goes."""

    ledger: Any = None  # what was charged; None if nothing was
    budget: str = ""  # name of the budget
    entry: Any = None  # what the ledger returned
    key: str | None = None  # the caller's key
    # The answer that was stored under this key before: show it and nothing else.
    kept: str | None = None

    @property
    def terms(self) -> str:
        """Under which terms it was charged; empty if that is not told."""
        return str(getattr(self.entry, "terms", ""))

    @property
    def number(self) -> int | None:
        """Number of the entry under which the answer is stored; None if it is not."""
        kept = hasattr(self.ledger, "keep_answer")
        return getattr(self.entry, "number", None) if kept else None

    def keep(self, text: str) -> str:
        """Store the answer before it is shown."""
        if self.number is None:
            return text
        if len(text) > LONGEST_ANSWER:  # what can be known of it before is refused unpaid
            too_long = f"the answer takes more than the {LONGEST_ANSWER:,} characters of a ledger"
            if self.key is None:
                warn_or_print(HushedWarning(f"{too_long}: it is shown, but not stored"))
                return text
            text = write_failure(QueryFailed(f"{too_long}, and is not shown; the charge stays"))
        try:
            return str(self.ledger.keep_answer(self.budget, self.entry, text))
        except FileChanged as error:
            paid = error.charge == NOTHING_CHARGED  # now, that is: the charge came before
            raise FileChanged(
                f"the answer is not shown, for its charge may be lost: {error.what}",
                error.advice,
                charge="The answer was paid for" if paid else error.charge,
            ) from None
        except ParameterError as error:
            raise DamagedLedger(
                f"the answer is not shown, for its charge is not in the ledger any more ({error}): "
                "another copy was put in its place"
            ) from None
        except LedgerUnavailable as error:
            reason = f"entry {self.number} of budget {self.budget!r}: {error}"
            if self.key is not None:
                raise LedgerUnavailable(
                    f"the answer was paid for and could not be stored, so that it is not shown "
                    f"({reason}). Ask again under the key {self.key!r}: nothing more is charged"
                ) from None
            warn_or_print(HushedWarning(f"the answer is shown, but could not be stored: {reason}"))
            return text


def pay(
    ledger: Any,
    budget: str | None,
    guarantee: Guarantee,
    note: str,
    *,
    loss: PrivacyProfile | None,
    key: str | None = None,
    question: str = "",
    named: bool = False,
) -> Payment:
    """Charge a ledger, and look for the answer that was stored under the key.

    `named` says that the question names the place of the rows. Without it the answer may be one of
    other rows, which is said: a digest of the rows would tell of them, to whoever reads the ledger.
    """
    if ledger is None or not budget:
        return Payment()
    if not hasattr(ledger, "keep_answer"):
        entry = ledger.charge(budget, guarantee, note=note, loss=loss)
        return Payment(ledger=ledger, budget=budget, entry=entry)
    entry = ledger.charge(budget, guarantee, note=note, loss=loss, key=key, question=question)
    kept = None if key is None else ledger.answer(budget, getattr(entry, "number", key))
    if kept is not None and not named:
        warn_or_print(
            HushedWarning(
                f"{STORED_BEFORE} {key!r}: nothing was read or charged now. A key stands for a "
                "question, and not for rows that are given in Python, which may have been others "
                "then: for these rows give another key"
            )
        )
    return Payment(ledger=ledger, budget=budget, entry=entry, key=key, kept=kept)
