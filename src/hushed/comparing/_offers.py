"""What a route says: an offer, and its price at an epsilon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._ground.types import Floats
from hushed.comparing._laws import ErrorLaw
from hushed.comparing._question import Question
from hushed.comparing._simulated import Measure
from hushed.errors import BadFunction, ParameterError
from hushed.guarantee import Guarantee

_REFUSED = (ParameterError, BadFunction)  # the function answered on whole tables before

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
class Plan:
    """A route at one epsilon: what it measures on the simulated tables, if it needs any."""

    price: Callable[[Floats], Priced]  # of what was measured: a row for each table
    measure: Measure | None = None
    most: int | None = None  # tables at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A route that applies."""

    promise: str  # whom the promise covers, in words
    at: Callable[[float], Plan]


def plan_at(offer: Offer | str, epsilon: float) -> Plan | str:
    """Plan a route at an epsilon; else the reason why it has none."""
    if isinstance(offer, str):
        return offer
    try:
        return offer.at(epsilon)
    except _REFUSED as refusal:
        return str(refusal)


def price_together(
    plans: Sequence[Plan | str], question: Question, what: str = "trying the ways on"
) -> list[Priced | str]:
    """Price plans on tables that are drawn once for all of them; else the reason is told.

    Progress says what is done.
    """
    asked = {place: each for place, each in enumerate(plans) if isinstance(each, Plan)}
    priced: list[Any] = list(plans)
    try:
        found = _measure(list(asked.values()), question, what)
    except _REFUSED as refusal:  # of one of them, which is found by asking each alone
        if len(asked) == 1:
            return [str(refusal) if isinstance(each, Plan) else each for each in plans]
        for place, each in asked.items():
            (priced[place],) = price_together([each], question, what)
        return priced
    for (place, each), rows in zip(asked.items(), found, strict=True):
        try:
            priced[place] = each.price(rows)
        except _REFUSED as refusal:
            priced[place] = str(refusal)
    return priced


def _measure(plans: Sequence[Plan], question: Question, what: str) -> list[Floats]:
    """Measure what plans ask for; those that want as many tables share them."""
    found = [np.empty((0, 0))] * len(plans)
    for most in dict.fromkeys(each.most for each in plans if each.measure):
        asked = {k: p.measure for k, p in enumerate(plans) if p.measure and p.most == most}
        measured = question.simulate(tuple(asked.values()), most, what)
        for place, rows in zip(asked, measured, strict=True):
            found[place] = rows
    return found


def say_promise(question: Question, *, slack: bool = False) -> str:
    """Say whom a promise for every table covers."""
    change = "replaced" if question.neighbours == "replace-one" else "more or less"
    return f"every table{' (delta)' * slack}, one {say_unit(question)} {change}"


def say_unit(question: Question) -> str:
    """Name what one row is, or who has several."""
    if question.user is not None:
        return "user, with all rows,"
    return "person" if question.unit == "person" else "row"
