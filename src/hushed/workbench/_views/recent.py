"""What was released last, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from hushed._ground.printing import format_up
from hushed.errors import NotFound
from hushed.ledger import Entry, Ledger
from hushed.ledger._notes import read_note
from hushed.workbench._drafts import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """An entry of the ledger, as a line."""

    budget: str
    number: int
    at: str
    actor: str
    note: str
    cost: str
    answered: bool
    draft: str  # id of the draft that asked; empty if none of this workspace did
    mark: str  # start of the digest


def describe_entry(
    entry: Entry, *, answered: bool, askers: Mapping[tuple[str, int], str]
) -> Charge:
    """Say what an entry is; its cost is rounded up."""
    actor, note = read_note(entry.note)
    told = entry.guarantee
    cost = f"epsilon {format_up(told.epsilon)}"
    cost += f", delta {format_up(told.delta)}" if told.delta else ""
    cost += f", gamma {format_up(told.gamma)}" if told.gamma else ""
    return Charge(
        budget=entry.budget,
        number=entry.number,
        at=entry.at,
        actor=actor,
        note=note,
        cost=cost,
        answered=answered,
        draft=askers.get((entry.budget, entry.number), ""),
        mark=entry.digest[:16],
    )


def list_charges(ledger: Ledger, budget: str, drafts: tuple[Draft, ...]) -> tuple[Charge, ...]:
    """List the entries of a budget, the last first."""
    askers = find_askers(drafts)
    return tuple(
        describe_entry(each, answered=_is_answered(ledger, each), askers=askers)
        for each in reversed(ledger.entries(budget))
    )


def _is_answered(ledger: Ledger, entry: Entry) -> bool:
    """Whether there is an answer to be looked at; a server may have deleted it."""
    with suppress(NotFound):
        return ledger.answer(entry.budget, entry.number) is not None
    return False


def find_askers(drafts: tuple[Draft, ...]) -> dict[tuple[str, int], str]:
    """Find which draft each released answer belongs to."""
    return {
        (result.budget, result.number): draft.id for draft in drafts for result in draft.results
    }


def list_last(ledger: Ledger, drafts: tuple[Draft, ...], most: int = 5) -> tuple[Charge, ...]:
    """List the last charges of all budgets."""
    found = [
        each for budget in ledger.budgets() for each in list_charges(ledger, budget.name, drafts)
    ]
    return tuple(sorted(found, key=lambda each: each.at, reverse=True)[:most])
