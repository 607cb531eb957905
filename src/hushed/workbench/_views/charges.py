"""What a charge would leave of each budget, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass

from hushed._ground.printing import format_down, format_up, shown
from hushed._web.svg import Picture, draw_gauge
from hushed.errors import HushedError
from hushed.guarantee import Guarantee
from hushed.ledger import Balance, Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a charge would do to one budget.

    Parameters
    ----------
    budget : str
        Its name.
    fits : bool
        Whether the charge fits.
    sentence : str
        What is used before and after it, or why it does not fit.
    gauge : Picture
        The budget, with the part that the charge would take.
    """

    budget: str
    fits: bool
    sentence: str
    gauge: Picture


def offer_budget(ledger: Ledger, budget: str, promise: Guarantee) -> Offer:
    """Ask the ledger what would be left; nothing is charged."""
    before = ledger.balance(budget)
    try:
        after = ledger.quote(budget, promise)
    except HushedError as refused:
        said = f"Budget {shown(budget)}: {_say_why(before.budget.limit, promise, refused)}"
        return Offer(budget=budget, fits=False, sentence=said, gauge=_draw(before, None, said))
    said = (
        f"Budget {shown(budget)}: {format_up(before.spent.epsilon, 4)} to "
        f"{format_up(after.spent.epsilon, 4)} of {format_down(before.budget.limit.epsilon)} used, "
        f"gamma {format_up(before.spent.gamma, 4)} to {format_up(after.spent.gamma, 4)} of "
        f"{format_down(before.budget.limit.gamma)}; then {format_down(after.epsilon_left, 4)} is "
        "left."
    )
    return Offer(budget=budget, fits=True, sentence=said, gauge=_draw(before, after, said))


_UNITS = {"user": "person with all rows", "person": "row, which is a person"}
_CHANGES = {"replace-one": "is replaced", "add-remove": "is added or removed"}


def _say_why(limit: Guarantee, promise: Guarantee, refused: HushedError) -> str:
    """Say why a budget does not take a charge: that it is of another kind, in a few words."""
    kinds = [
        f"one {_UNITS.get(each.unit, each.unit)} {_CHANGES[each.neighbours]}"
        for each in (limit, promise)
    ]
    if kinds[0] == kinds[1]:
        return refused.message
    return f"it does not take this, for it is about tables where {kinds[0]}, and not {kinds[1]}."


def _draw(before: Balance, after: Balance | None, said: str) -> Picture:
    return draw_gauge(before.used, None if after is None else after.used, sentence=said)


def list_offers(ledger: Ledger, promise: Guarantee) -> tuple[Offer, ...]:
    """Ask what would be left of every budget, those that take the charge first."""
    found = [offer_budget(ledger, each.name, promise) for each in ledger.budgets()]
    return tuple(sorted(found, key=lambda each: not each.fits))
