"""What a balance says: records and words; nothing here adds up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from hushed._ground.decimals import decimal_of
from hushed._ground.notebook import Card, Shown, draw_gauge
from hushed._ground.printing import (
    flat,
    format_down,
    format_up,
    name_changed,
    percent_up,
    show_time,
)
from hushed.guarantee import CHOSEN_FIRST, SAME_EVENT, Guarantee
from hushed.ledger._entries import Budget

_ENDED = "The budget is retired: nothing was charged to it, and nothing will be."
_BEYOND = "The limit is not kept: entries beyond it were written by other means than this library."
_PARTS = ("epsilon", "delta", "gamma")
_FULL = 0.999  # printed as 100.0 %
_ASSUMPTIONS = {
    "adaptive": "Every release, and how much it may lose, may be chosen after seeing the answers "
    "before it.",
    "pld": "Assumed: which releases are made, and how much each may lose, does not "
    "depend on the answers before. No theorem covers this rule for an analyst who steers by them.",
}
_NOMINAL = (
    "The limit is nominal, not a privacy guarantee: charges whose population was made from private "
    "rows are taken. "
)

_ONE_TABLE = (
    " A sampled sensitivity spends its gamma once; this is right if all charges are for "
    f"{SAME_EVENT['row']}."
)
_ONE_GIVEN = (
    " The charges together are about those new rows only that every sampled one of them was given."
)
SAMPLER_TOO = (
    " Gamma is an average over the sampler for a charge that was sampled with "
    "calibration='marginal': under the sensitivity that was drawn more pairs may fail."
)
_ONE_ORDER = (
    " A sensitivity that was sampled for people spends its gamma for each release, as each has "
    "another random order of people; one of a symmetric function, no average over blocks, spends "
    f"it once, which is right if all charges are for {SAME_EVENT['user']}."
)


def assumption(budget: Budget) -> str:
    """Say what the limit of a budget rests on."""
    nominal = _NOMINAL if budget.limit.data_dependent else ""
    once = _ONE_ORDER if budget.limit.unit == "user" else _ONE_TABLE
    sampled = f" {CHOSEN_FIRST}{once}"
    return (
        nominal
        + _ASSUMPTIONS.get(budget.method, _ASSUMPTIONS["adaptive"])
        + sampled * (budget.limit.gamma > 0)
        + _ONE_GIVEN * (budget.limit.protect == "table")
    )


def terms_of(budget: Budget, number: int) -> str:
    """Say what a charge counts towards."""
    return f"charge {number} of {_name_keepers(budget)}"


def _whom(limit: Guarantee) -> str:
    return name_changed(limit.unit, limit.distance)


def name_units(limit: Guarantee) -> str:
    return limit.unit if limit.distance == 1 else _whom(limit)


@lru_cache(maxsize=256)
def _name_keepers(budget: Budget) -> str:
    limit = budget.limit
    return (
        f"the budget {budget.name!r}, which keeps epsilon = {format_up(limit.epsilon)}, delta = "
        f"{format_up(limit.delta)}, gamma = {format_up(limit.gamma)} for everything charged "
        f"to it, for {_whom(limit)} (method {budget.method}). {assumption(budget)}"
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Moment(Shown):
    """How much of a budget was used at some time.

    Parameters
    ----------
    at : str
        Time, ISO 8601 in UTC.
    number : int
        Charges so far.
    used : float
        Share used, in [0, 1]; rounded up.
    note : str
        Remark of the last charge; before any ``"opened"``, or ``"retired"`` and why.
    """

    at: str
    number: int
    used: float
    note: str

    def __str__(self) -> str:
        note = flat(self.note)
        after = f"after charge {self.number}" if self.number else f"when it was {note}"
        noted = f" ({note})" if note and self.number else ""
        return f"{show_time(self.at)}, {after}{noted}: {percent_up(self.used)} % of the budget used"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Balance(Shown):
    """Where a budget stands.

    Parameters
    ----------
    budget : Budget
        The budget, its limit and its rule.
    entries : int
        Number of charges.
    spent : Guarantee
        What the charges so far keep together, by the rule that finds the least; rounded up. The
        promise of the budget is its limit: a running number is a promise only for an analyst who
        stops by a plan.
    used : float
        Share of the budget that is used, in [0, 1]; rounded up: the largest of the next three.
    epsilon_used, delta_used, gamma_used : float
        Shares of each part, in [0, 1]; rounded up. Of epsilon and delta by the rule with most room;
        ``pld`` counts both as epsilon.
    epsilon_left : float
        Largest epsilon that can still be charged at delta = 0 with no law known, in nats; rounded
        down.
    delta_left : float
        Largest delta that charges of known epsilon may still bring; rounded down.
    gamma_left : float
        Largest gamma of a new estimate; rounded down.
    retired : bool, default False
        Whether the budget was retired by `hushed.Ledger.retire_budget`, and takes no charge.
    """

    budget: Budget
    entries: int
    spent: Guarantee
    used: float
    epsilon_used: float
    delta_used: float
    gamma_used: float
    epsilon_left: float
    delta_left: float
    gamma_left: float
    retired: bool = False

    def _card(self) -> Card:
        used = f"{percent_up(self.used)} %"
        label = f"{used} of the budget is used"
        return Card(
            title=f"Budget {self.budget.name}",
            text=self.explain(),
            facts=(
                (
                    "charges",
                    "none, and it takes none: retired" if self.retired else str(self.entries),
                ),
                ("used", used + name_part(self)),
                *list_left(self),
            ),
            pictures=(draw_gauge(self.used, label),),
        )

    def explain(self) -> str:
        """Say what is spent, what is left, and what that rests on.

        Returns
        -------
        str
            Plain text, a few lines.
        """
        limit, spent = self.budget.limit, self.spent
        kinds = ", ".join(each.name for each in self.budget.filters)
        charges = "1 charge" if self.entries == 1 else f"{self.entries} charges"
        lines = [
            f"Budget {self.budget.name!r}: epsilon {format_up(limit.epsilon)}, delta "
            f"{format_up(limit.delta)}, gamma {format_up(limit.gamma)}, neighbours "
            f"{limit.neighbours}, unit {name_units(limit)}; method {self.budget.method} ({kinds}).",
            f"{charges} so far: epsilon {format_up(spent.epsilon)} at delta "
            f"{format_up(spent.delta)}, gamma {format_up(spent.gamma)}; {self._used()}.",
            f"Left: {bought(self.epsilon_left, limit)}; delta {format_down(self.delta_left)} and "
            f"gamma {format_down(self.gamma_left)} for new charges.{self._full()}",
            assumption(self.budget) + SAMPLER_TOO * self.spent.marginal,
        ]
        if self.retired:
            return f"{lines[0]}\n{_ENDED}"
        if any(getattr(spent, each) > getattr(limit, each) for each in _PARTS):
            lines.insert(2, _BEYOND)
        if limit.delta > 0:
            lines.insert(-1, set_aside(self.budget).strip())
        return "\n".join(filter(None, lines))

    def _used(self) -> str:
        """Share that is used, and of what, if not of epsilon."""
        return f"{_percent(self.used)} % used{name_part(self)}"

    def _full(self) -> str:
        """Say what may go on although a part other than epsilon is used up."""
        if self.epsilon_left <= 0:
            return ""
        found = ""
        if self.gamma_used >= _FULL:
            found += " A new estimate hardly fits; one that is paid for brings no more gamma."
        if self.delta_used >= _FULL:
            found += " A charge with a delta of its own hardly fits; one without may go on."
        return found


def list_left(balance: Balance) -> tuple[tuple[str, str], ...]:
    """List what is left of each part that the budget has; rounded down."""
    limit = balance.budget.limit
    return (
        ("epsilon left", format_down(balance.epsilon_left)),
        *((("delta left", format_down(balance.delta_left)),) if limit.delta else ()),
        *((("gamma left", format_down(balance.gamma_left)),) if limit.gamma else ()),
    )


def name_part(balance: Balance) -> str:
    """Say which part of a budget is used most, if it is not epsilon; otherwise empty."""
    if balance.used <= balance.epsilon_used:
        return ""
    part = "gamma" if balance.used <= balance.gamma_used else "delta"
    return f", by {part} (of epsilon {_percent(balance.epsilon_used)} %)"


def _percent(share: float) -> str:
    return f"{math.ceil(1000 * decimal_of(share)) / 10:.1f}"


def which_part(*, epsilon: bool, delta: bool) -> str:
    """Say which part of a refused charge does not fit."""
    if epsilon and delta:
        return "epsilon and delta would fit one by one, but not together"
    if epsilon:
        return "its delta is too large, its epsilon would fit"
    return "its epsilon is too large" if delta else "its epsilon and its delta are too large"


def set_aside(budget: Budget) -> str:
    """Say how much of a limit's delta charges may bring, and how to choose that."""
    if budget.limit.delta == 0:
        return "The limit on delta is 0: open a budget with delta above 0. "
    if budget.method == "adaptive":
        return (
            "Half of the limit's delta is set aside for the charges' own deltas, the other half "
            "buys tighter sums: a budget opened with method='basic' (--method basic) leaves all of "
            "it to the charges. "
        )
    if budget.method in ("basic", "pld"):
        return ""
    return (
        "A share of the limit's delta is set aside for the charges' own deltas: slack= (--slack), "
        "chosen when a budget is opened. "
    )


def bought(epsilon: float, limit: Guarantee) -> str:
    """Say what an epsilon buys, of a promise for so many rows or users as the limit is about."""
    if epsilon <= 0:
        return "no epsilon"
    return (
        f"epsilon {format_down(epsilon)} in one charge (a count of {limit.unit}s with Laplace "
        f"noise of scale {format_up(limit.distance / epsilon, 3)})"
    )
