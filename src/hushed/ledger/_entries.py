"""What a ledger holds: budgets and entries, as records, as text and as links of a chain.

Text is canonical JSON with every double in hexadecimal. A record's digest covers its text and the
digest before it, so that a changed, lost, added or swapped record is noticed. It guards against
damage and mistakes, not against someone who rewrites the whole chain.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import flat, format_up, name_changed, show_time
from hushed._ground.weak_promises import NOMINAL
from hushed.accounting._filters import Cost, FilterMethod, PrivacyFilter
from hushed.errors import DamagedLedger, HushedError
from hushed.guarantee import Guarantee
from hushed.ledger._laws import read_law
from hushed.privacy_loss import PrivacyProfile

_BEFORE_SALT = "\nsalt "
_SALT = re.compile("[0-9a-f]{32}")
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Budget(Shown):
    """What may be spent on one data set, by all of its analysts together.

    Parameters
    ----------
    name : str
        Name of the budget.
    limit : Guarantee
        What everything charged keeps together.
    method : str
        Which rule stops the spending; see `hushed.accounting._filters.privacy_filters`.
    filters : tuple of PrivacyFilter
        The rule's sums and what they may reach, as computed at the opening.
    note : str
        Remark of whoever opened it.
    opened : str
        Time, ISO 8601 in UTC.
    digest : str
        Start of the chain of its entries.
    """

    name: str
    limit: Guarantee
    method: FilterMethod
    filters: tuple[PrivacyFilter, ...] = field(repr=False)
    note: str
    opened: str
    digest: str = field(default="", repr=False)

    def __str__(self) -> str:
        limit = self.limit
        return (
            f"Budget {flat(self.name)}: epsilon {format_up(limit.epsilon)}, delta "
            f"{format_up(limit.delta)}, gamma {format_up(limit.gamma)} at most, for "
            f"{name_changed(limit.unit, limit.distance)}; {self.method}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Entry(Shown):
    """One charge.

    Parameters
    ----------
    budget : str
        Name of the budget.
    number : int
        Place among its entries, from 1.
    guarantee : Guarantee
        What was charged.
    law : list of dict, optional
        The law of the loss behind it, as `hushed.ledger._laws.write_law` describes it.
    costs : tuple of Cost
        What was added to the sums of each of the budget's filters.
    note : str
        Remark of whoever charged.
    at : str
        Time, ISO 8601 in UTC.
    key : str, optional
        What the caller calls this charge, to ask again without paying again.
    question : str
        Digest of what was asked; empty if it was not told.
    digest : str
        Link of the chain.
    terms : str
        What the budget promises and rests on, in words; filled for a fresh charge, not stored.
    salt : str
        Random digits behind the question, where others see the digest and not the words.
    """

    budget: str
    number: int
    guarantee: Guarantee
    law: list[dict[str, Any]] | None = field(default=None, repr=False)
    costs: tuple[Cost, ...] = field(repr=False)
    note: str
    at: str
    key: str | None = None
    question: str = field(default="", repr=False)
    digest: str = field(default="", repr=False)
    terms: str = field(default="", repr=False, compare=False)
    salt: str = field(default="", repr=False)

    def _card(self) -> Card:
        charged = self.guarantee
        known = [
            ("charged", f"epsilon {format_up(charged.epsilon)}, delta {format_up(charged.delta)}"),
            ("gamma", format_up(charged.gamma)),
            ("for", f"{name_changed(charged.unit, charged.distance)}, {charged.neighbours}"),
            ("at", show_time(self.at)),
            ("note", flat(self.note)),
        ]
        if charged.data_dependent:
            known.append(("remark", NOMINAL))
        if self.key is not None:
            known.append(("key", flat(self.key)))
        return card_of_facts(f"Entry {self.number} of budget {flat(self.budget)}", known)

    @property
    def loss(self) -> PrivacyProfile | None:
        """Loss behind the guarantee, if it was known.

        A law that cannot be read, or has too many parts, counts as unknown: then the guarantee is
        charged, which is never less. On a server somebody may have written it by hand, and must
        neither stop nor delay the others.
        """
        if self.law is None:
            return None
        try:
            return read_law(self.law)
        except DamagedLedger:
            return None


def digest(before: str, body: str) -> str:
    """Link of the chain."""
    return hashlib.sha256(f"{before}\n{body}".encode()).hexdigest()


def write_budget(budget: Budget) -> str:
    """Text of a budget."""
    return _text(
        {
            "kind": "budget",
            "name": budget.name,
            "limit": write_promise(budget.limit),
            "method": budget.method,
            "filters": [
                {
                    "name": each.name,
                    "capacity": each.capacity.hex(),
                    "slack": each.slack.hex(),
                    "order": each.order.hex(),
                    "conversion": each.conversion.hex(),
                }
                for each in budget.filters
            ],
            "note": budget.note,
            "opened": budget.opened,
        }
    )


def write_entry(entry: Entry) -> str:
    """Text of an entry."""
    record: dict[str, Any] = {
        "kind": "charge",
        "budget": entry.budget,
        "number": entry.number,
        "guarantee": write_promise(entry.guarantee),
        "costs": [[cost.amount.hex(), cost.delta.hex()] for cost in entry.costs],
        "note": entry.note,
        "at": entry.at,
    }
    if entry.law is not None:
        record["law"] = entry.law
    if entry.key is not None:
        record["key"] = entry.key
    if entry.question or entry.salt:
        record["question"] = entry.question + (entry.salt and _BEFORE_SALT + entry.salt)
    return _text(record)


def read_budget(body: str, link: str) -> Budget:
    """Budget from its text."""
    if digest("", body) != link:
        raise DamagedLedger("a budget is not what was opened: its digest does not fit its text")
    record = _parse(body, "budget")
    try:
        budget = Budget(
            name=record["name"],
            limit=read_promise(record["limit"]),
            method=record["method"],
            filters=tuple(
                PrivacyFilter(
                    name=each["name"],
                    capacity=float.fromhex(each["capacity"]),
                    slack=float.fromhex(each["slack"]),
                    order=float.fromhex(each["order"]),
                    conversion=float.fromhex(each["conversion"]),
                )
                for each in record["filters"]
            ),
            note=record["note"],
            opened=record["opened"],
            digest=link,
        )
    except (KeyError, TypeError, ValueError):
        raise DamagedLedger("a budget lacks a field, or holds one of another kind") from None
    numbers = [
        number
        for each in budget.filters
        for number in (each.capacity, each.slack, each.order, each.conversion)
    ]
    if not numbers or not all(0 <= number < math.inf for number in numbers):  # nor not a number
        raise DamagedLedger("a budget has a rule that stops no spending: it was written by hand")
    return budget


def read_entry(body: str, link: str, before: str | None, number: int, budget: str) -> Entry:
    """Entry from its text, checked against the chain."""
    if before is not None and digest(before, body) != link:
        raise DamagedLedger(
            f"entry {number} of budget {budget!r} is not what was written, or an entry before it "
            "is missing: the digest does not fit"
        )
    record = _parse(body, "charge")
    try:
        question, salt = read_question(record.get("question", ""))
        entry = Entry(
            budget=record["budget"],
            number=record["number"],
            guarantee=read_promise(record["guarantee"]),
            law=record.get("law"),
            costs=tuple(
                Cost(amount=float.fromhex(amount), delta=float.fromhex(own))
                for amount, own in record["costs"]
            ),
            note=record["note"],
            at=record["at"],
            key=record.get("key"),
            question=question,
            salt=salt,
            digest=link,
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        raise DamagedLedger(f"entry {number} of budget {budget!r} lacks a field") from None
    if not all(cost.amount >= 0 and 0 <= cost.delta < math.inf for cost in entry.costs):  # no NaN
        raise DamagedLedger(f"entry {number} of budget {budget!r} states a cost that is none")
    if not isinstance(entry.key, str | None):
        raise DamagedLedger(f"entry {number} of budget {budget!r} has a key that is not a text")
    if type(entry.number) is not int or (entry.budget, entry.number) != (budget, number):
        raise DamagedLedger(f"entry {number} of budget {budget!r} was written for another place")
    return entry


def read_question(text: str) -> tuple[str, str]:
    """Question and salt of an entry; one of an older version, or in a file, has none."""
    question, mark, salt = text.rpartition(_BEFORE_SALT)
    return (question, salt) if mark and _SALT.fullmatch(salt) else (text, "")


def _text(record: dict[str, Any]) -> str:
    return _CANONICAL.encode(record)


def _parse(body: str, kind: str) -> dict[str, Any]:
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        raise DamagedLedger("a record is not valid JSON any more") from None
    if not isinstance(record, dict) or record.get("kind") != kind:
        raise DamagedLedger(f"a record is not of the kind {kind!r} that belongs there")
    return record


def write_promise(guarantee: Guarantee) -> dict[str, Any]:
    """Describe a guarantee as it is written down."""
    return {
        "unit": guarantee.unit,
        "epsilon": float(guarantee.epsilon).hex(),
        "delta": float(guarantee.delta).hex(),
        "gamma": float(guarantee.gamma).hex(),
        "neighbours": guarantee.neighbours,
        "protect": guarantee.protect,
        "data_dependent": guarantee.data_dependent,
        "estimates": [[name, float(gamma).hex()] for name, gamma in guarantee.estimates],
        "marginal": guarantee.marginal,
    } | ({"distance": int(guarantee.distance)} if guarantee.distance > 1 else {})


def read_promise(record: dict[str, Any]) -> Guarantee:
    """Read a guarantee that was written down."""
    try:
        return Guarantee(
            epsilon=float.fromhex(record["epsilon"]),
            delta=float.fromhex(record["delta"]),
            gamma=float.fromhex(record["gamma"]),
            neighbours=record["neighbours"],
            unit=record["unit"],
            protect=record["protect"],
            data_dependent=record["data_dependent"],
            estimates=tuple((name, float.fromhex(g)) for name, g in record["estimates"]),
            marginal=record["marginal"],
            distance=record.get("distance", 1),
        )
    except HushedError:
        raise DamagedLedger("a record holds a guarantee out of range") from None
