"""Why a share does not pay for something, for its person: what was asked, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushed._ground.printing import format_down, format_up
from hushed.errors import Overspent
from hushed.ledger import Ledger
from hushed.ledger._together import find_budget
from hushed.server._people import Grant
from hushed.server._problems import Problem

if TYPE_CHECKING:
    from hushed.server._judging import Judged

NO_GAMMA = "your share has no gamma, as none that is set aside has: ask a steward for a new cap"


def require_gamma(ledger: Ledger, grant: Grant, gamma: float) -> None:
    """Refuse a function whose gamma a share cannot pay."""
    if gamma > 0.0 == find_budget(ledger, grant.budget).limit.gamma:
        raise Problem("no_gamma", NO_GAMMA)


def refuse_full(
    ledger: Ledger, grant: Grant, error: Overspent, judged: Judged, *, above: str | None = None
) -> Problem:
    """Say that the share is used up, if it is; what a budget above has left, if it is named.

    That is told to stewards alone.
    """
    if error.budget != grant.budget:
        try:
            ledger.quote(grant.budget, judged.guarantee, loss=judged.loss)
        except Overspent:
            return refuse_share(ledger, grant, judged)
        return Problem("budget_exceeded", "" if above is None else _say_left(ledger, above, judged))
    return refuse_share(ledger, grant, judged)


def refuse_share(ledger: Ledger, grant: Grant, judged: Judged) -> Problem:
    """Say what was asked of a share, and what is left of it, as a price does."""
    return Problem("quota_exceeded", _say_left(ledger, grant.budget, judged))


def _say_left(ledger: Ledger, budget: str, judged: Judged) -> str:
    asked, now = judged.guarantee, ledger.balance(budget)
    told = [("epsilon", asked.epsilon, now.epsilon_left)]
    told += [("delta", asked.delta, now.delta_left)] if asked.delta else []
    told += [("gamma", asked.gamma, now.gamma_left)] if asked.gamma else []
    wanted = ", ".join(f"{name} {format_up(size)}" for name, size, _ in told)
    left = ", ".join(f"{name} {format_down(size)}" for name, _, size in told)
    return f"Asked was {wanted}; left is {left}."
