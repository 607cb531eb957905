"""Why a share does not pay for something, for its person: what was asked, and what is left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hushed._ground.printing import format_down, format_up, name_count
from hushed.errors import Overspent
from hushed.guarantee import Guarantee
from hushed.ledger import Ledger
from hushed.ledger._together import find_budget, new_gamma
from hushed.server._people import Grant
from hushed.server._problems import Problem

if TYPE_CHECKING:
    from hushed.server._config import Settings
    from hushed.server._functions import Record
    from hushed.server._judging import Judged

NO_GAMMA = "your share has no gamma, as none that is set aside has: ask a steward for a new cap"
_NONE_ABOVE = (
    "the budget of the data set allows less gamma than it costs: a steward can add the data set "
    "with a budget that allows it, or sample the function with a smaller gamma"
)


def refuse_kept(settings: Settings, kept: int) -> Problem:
    """Say how much is kept of what somebody asked, and how there may be room again."""
    days = settings.server.retention_days
    later = (
        "" if days is None else f", or wait: answers are deleted after {name_count(days, 'day')}"
    )
    return Problem(
        "room_exceeded",
        f"With this question it is {kept:,} bytes, questions and answers, of at most "
        f"{settings.limits.kept_per_person:,}: ask your steward for more room "
        f"(kept_per_person){later}.",
    )


def require_gamma(ledger: Ledger, above: str, grant: Grant, record: Record) -> None:
    """Refuse a function whose gamma a share cannot pay."""
    if why := why_no_gamma(ledger, above, grant.budget, record):
        raise Problem("no_gamma", why)


def why_no_gamma(ledger: Ledger, above: str, share: str | None, record: Record) -> str:
    """Say why the gamma of a function cannot be paid; empty if it can, as far as one may know.

    Of the budget of the data set its limit is told, and not what others have left of it.
    """
    if record.gamma == 0.0:
        return ""
    if record.gamma > find_budget(ledger, above).limit.gamma:
        return _NONE_ABOVE
    return "" if share is None else _why_share_lacks(ledger, share, record)


def _why_share_lacks(ledger: Ledger, share: str, record: Record) -> str:
    balance = ledger.balance(share)
    if balance.budget.limit.gamma == 0.0:
        return NO_GAMMA
    if record.estimates is None and balance.spent.estimates:  # of an older version: paid, perhaps
        return ""
    nothing = replace(balance.budget.limit, epsilon=0.0, delta=0.0)
    asked = replace(nothing, gamma=record.gamma, estimates=record.estimates or ())
    if _fits(ledger, share, asked):
        return ""
    new, left = format_up(new_gamma(ledger, share, asked)), format_down(balance.gamma_left)
    return f"it costs gamma {new}, and your share has {left} left"


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
    parts = _parts_of(ledger, budget, judged)
    wanted = ", ".join(f"{name} {format_up(size)}" for name, size, _ in parts)
    left = ", ".join(f"{name} {format_down(size)}" for name, _, size in parts)
    return f"Asked was {wanted}; left is {left}."


def say_short(ledger: Ledger, budget: str, judged: Judged) -> str:
    """Say which parts of a charge that was refused do not fit, and what is left of them."""
    parts = _parts_of(ledger, budget, judged)
    alone = {name: _alone(judged.guarantee, name) for name, _, _ in parts}
    short = [each for each in parts if not _fits(ledger, budget, alone[each[0]])]
    return "; ".join(
        f"{name} {format_up(size)} is asked, and {format_down(left)} is left"
        for name, size, left in short or parts  # each may fit alone, and not all together
    )


def _parts_of(ledger: Ledger, budget: str, judged: Judged) -> list[tuple[str, float, float]]:
    """List what a charge has of epsilon, delta and gamma, and what is left of each."""
    asked, now = judged.guarantee, ledger.balance(budget)
    told = [("epsilon", asked.epsilon, now.epsilon_left)]
    told += [("delta", asked.delta, now.delta_left)] if asked.delta else []
    told += [("gamma", asked.gamma, now.gamma_left)] if asked.gamma else []
    return told


def _alone(asked: Guarantee, part: str) -> Guarantee:
    """Leave one part of a promise, and nothing of the others."""
    nothing = replace(asked, epsilon=0.0, delta=0.0, gamma=0.0, estimates=())
    if part == "gamma":
        return replace(nothing, gamma=asked.gamma, estimates=asked.estimates)
    return replace(nothing, **{part: getattr(asked, part)})


def _fits(ledger: Ledger, budget: str, promise: Guarantee) -> bool:
    try:
        ledger.quote(budget, promise)
    except Overspent:
        return False
    return True
