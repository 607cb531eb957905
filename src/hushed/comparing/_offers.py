"""What a route says: an offer, and its price at an epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hushed.comparing._laws import ErrorLaw
from hushed.comparing._question import Question
from hushed.guarantee import Guarantee

MOST_TABLES = 50
"""Tables that a route is tried on at most if each of them takes long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A route at one epsilon: what it promises, how far it is off, and how it is written."""

    guarantee: Guarantee  # what it promises
    errors: ErrorLaw  # law of its error
    how: str  # the mechanism in Python
    calls: int = 1  # how often the function is called, for one release and all that it needs before


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A route that applies."""

    promise: str  # whom the promise covers, in words
    at: Callable[[float], Priced]  # price at an epsilon


def say_promise(question: Question, *, slack: bool = False) -> str:
    """Say whom a promise for every table covers."""
    change = "replaced" if question.neighbours == "replace-one" else "more or less"
    return f"every table{' (delta)' * slack}, one {say_unit(question)} {change}"


def say_unit(question: Question) -> str:
    """Name what one row is, or who has several."""
    if question.user is not None:
        return "user, with all rows,"
    return "person" if question.unit == "person" else "row"
