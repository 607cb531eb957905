"""What is asked of a ledger: its texts and keys, checked, and the entry that they make."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import Any

from hushed._ground.printing import format_exactly
from hushed.accounting._filters import Cost
from hushed.errors import (
    KeyInUse,
    ParameterError,
)
from hushed.guarantee import Guarantee
from hushed.ledger._balance import terms_of
from hushed.ledger._entries import Budget, Entry, digest, read_question, write_promise
from hushed.ledger._laws import write_law
from hushed.ledger._migrations import now
from hushed.ledger._postgres import LONGEST_ENTRY
from hushed.ledger._running import RunningBalance
from hushed.privacy_loss import PrivacyProfile

_LONGEST_NAME, _LONGEST_NOTE = 200, 10_000
_UNSEEN = re.compile(  # characters that count as printable, and of which nothing is seen
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)


def check_text(name: str, note: str) -> None:
    """Refuse a budget's name, or a note, that cannot be written down."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ParameterError(f"a budget's name is 1 to {_LONGEST_NAME} printable characters")
    if not isinstance(note, str) or len(note) > _LONGEST_NOTE or "\x00" in note:
        raise ParameterError(f"a note is a text of at most {_LONGEST_NOTE} characters")
    if not is_text(note):
        raise ParameterError("a note is a text without lone surrogates")


def check_new(what: str, name: str) -> None:
    """Refuse a new name that another one may look like; names that are in a ledger stay in use."""
    plain = re.sub(" +", " ", _UNSEEN.sub("", unicodedata.normalize("NFC", name))).strip(" ")
    if name != plain:
        raise ParameterError(
            f"a new {what} is in the normal form NFC of Unicode, without characters that are not "
            "seen, and without spaces at its ends or two in a row: else two that look alike would "
            "be two" + (f". Write {plain!r}" if plain else "")
        )


def is_text(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_key(key: str | None, question: str) -> None:
    """Refuse a key or a question that cannot be written down, or would be taken for a number."""
    short = isinstance(question, str) and len(question) <= _LONGEST_NOTE
    if not short or "\x00" in question or not is_text(question):
        raise ParameterError(f"a question is a text of at most {_LONGEST_NOTE} characters")
    if read_question(question)[1]:
        raise ParameterError(
            "a question does not end in a line of 'salt' and 32 digits, as a ledger on a server "
            "writes behind it: it would be read without that line, and be another one"
        )
    if key is None:
        return
    plain = isinstance(key, str) and 0 < len(key) <= _LONGEST_NAME and key.isprintable()
    if not plain or key.isdecimal():  # a number is that of an entry
        raise ParameterError(
            f"a key is 1 to {_LONGEST_NAME} printable characters, and not only digits"
        )


def require_same_question(
    entry: Entry,
    budget: Budget,
    guarantee: Guarantee,
    law: list[dict[str, Any]] | None,
    costs: tuple[Cost, ...],
    question: str,
) -> Entry:
    """Entry that has a key, if it is of this question and price, and was charged all of it.

    A server checks the form of an entry and not what it states to have cost: whoever wrote one by
    hand would be given an answer that nobody has paid for.
    """
    same = (entry.question, entry.law) == (question, law)
    if not same or _price(entry.guarantee) != _price(guarantee):
        raise KeyInUse(
            f"the key {entry.key!r} of budget {budget.name!r} belongs to another question (entry "
            f"{entry.number}: {entry.note!r}): {_say_difference(entry.guarantee, guarantee)}. "
            "Nothing was charged",
            parameter="key",
            hint="read its answer again with ledger.answer, or ask this one under another key",
        )
    pairs = zip(entry.costs, costs, strict=True)
    if any(paid.amount < due.amount or paid.delta < due.delta for paid, due in pairs):
        raise KeyInUse(
            f"the key {entry.key!r} of budget {budget.name!r} was charged less than this costs "
            f"(entry {entry.number}), by other means than this library: ask under another key. "
            "Nothing was charged"
        )
    return replace(entry, terms=terms_of(budget, entry.number))


def _say_difference(paid: Guarantee, due: Guarantee) -> str:
    """Say what differs, as far as the ledger knows it: it keeps a digest of a question."""
    pairs = [
        f"{name} was {format_exactly(a)} and is {format_exactly(b)}"
        for name in ("epsilon", "delta", "gamma")
        if (a := getattr(paid, name)) != (b := getattr(due, name))
    ]
    if pairs:
        return ", ".join(pairs)
    return (
        "the price is the same, and something else is not, of which the ledger keeps a digest "
        "alone. To the question of a query belong its file or table, the types of its columns, "
        "what is asked with which bounds, keys and names, the kind of noise, the level of the "
        "error bars, the guess of the rows of each user (rows_per_user) and the time limit. To "
        "that of a function belong its code with what it uses, the mechanism with its parameters, "
        "the sensitivity with its movements, number of rows, seed and population, outside= and "
        "whom the promise is for. A note does not"
    )


def _price(guarantee: Guarantee) -> dict[str, Any]:
    """Promise without what names the code of a sampled function, which differs between runs."""
    named = tuple((name.partition(".")[0], gamma) for name, gamma in guarantee.estimates)
    return write_promise(replace(guarantee, estimates=named))


def law_of(loss: PrivacyProfile | None) -> list[dict[str, Any]] | None:
    """Law of a loss as an entry holds it; None if there is none, or it is too long."""
    if loss is not None and not isinstance(loss, PrivacyProfile):
        raise ParameterError(
            f"loss must be a PrivacyProfile such as mechanism.loss, got {type(loss).__name__}",
            parameter="loss",
        )
    return None if loss is None else write_law(loss)


def next_entry(
    running: RunningBalance,
    guarantee: Guarantee,
    note: str,
    law: list[dict[str, Any]] | None,
    costs: tuple[Cost, ...],
    key: str | None = None,
    question: str = "",
) -> Entry:
    """Entry that follows a running balance, not linked yet."""
    if key is not None:
        check_new("key", key)
    return Entry(
        budget=running.budget.name,
        number=running.number + 1,
        guarantee=guarantee,
        law=law,
        costs=costs,
        note=note,
        at=now(),
        key=key,
        question=question,
    )


def link_entry(entry: Entry, running: RunningBalance, body: str) -> Entry:
    """Entry with its place in the chain, and its terms; one that is too long is refused."""
    if len(body) > LONGEST_ENTRY:
        raise ParameterError(
            f"an entry of a ledger takes at most {LONGEST_ENTRY:,} characters, and this one has "
            f"{len(body):,}: promise less at once, or by fewer sampled sensitivities. Nothing was "
            "charged"
        )
    terms = terms_of(running.budget, entry.number)
    return replace(entry, digest=digest(running.link, body), terms=terms)
