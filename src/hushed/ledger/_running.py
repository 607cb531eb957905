"""Balances: entries folded into sums, and what is left of a budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from hushed._ground.decimals import decimal_of, stated_above, stated_below
from hushed._ground.numeric import last_true, last_true_near
from hushed._ground.printing import format_down, format_up
from hushed.accounting._filters import Cost, PrivacyFilter, filter_cost
from hushed.errors import DamagedLedger, HushedError, Overspent, ParameterError
from hushed.guarantee import Guarantee, stated_gamma
from hushed.ledger._balance import Balance, bought, set_aside, which_part
from hushed.ledger._doubles import from_units, to_units
from hushed.ledger._entries import Budget, Entry
from hushed.ledger._exact import LossSum
from hushed.privacy_loss import PrivacyProfile

_ROOM = (Fraction(1), Fraction(99, 100), Fraction(9, 10), Fraction(1, 2))  # shares tried of a delta
RETIRED = "hushed: nothing is charged to this budget"  # what a first entry that ends it says
_NEARLY = 1 - 1e-9  # last bits of another version, or of another mathematical library


def costs_of(budget: Budget, promise: Guarantee, loss: PrivacyProfile | None) -> tuple[Cost, ...]:
    """Price a charge in the units of each filter of a budget."""
    return tuple(filter_cost(each, promise, loss) for each in budget.filters)


def price_entry(budget: Budget, entry: Entry) -> tuple[Cost, ...]:
    """Price an entry: what it states, or what its promise costs if that is more beyond rounding.

    Whoever writes an entry by hand may state any cost; nobody gets more out of a budget for it. A
    law that cannot be priced counts as unknown.
    """
    if len(entry.costs) != len(budget.filters):
        raise DamagedLedger(
            f"entry {entry.number} of budget {budget.name!r} states {len(entry.costs)} costs where "
            f"its rule adds up {len(budget.filters)}: it was written by hand"
        )
    try:
        due = costs_of(budget, entry.guarantee, entry.loss)
    except (HushedError, ArithmeticError):
        due = costs_of(budget, entry.guarantee, None)
    return tuple(
        Cost(amount=_larger(told.amount, own.amount), delta=_larger(told.delta, own.delta))
        for told, own in zip(entry.costs, due, strict=True)
    )


def ends_budget(entry: Entry) -> bool:
    """Whether a first entry, which promises nothing, says that its budget takes no charge.

    It says so in words, which a server shows to its author alone, and by costs without end, which
    it shows to everybody. Whoever writes one by hand closes a budget, and opens none.
    """
    endless = all(math.isinf(cost.amount) for cost in entry.costs)
    promise = entry.guarantee
    nothing = promise.epsilon == promise.delta == 0.0
    return entry.number == 1 and nothing and (endless or entry.question == RETIRED)


def _larger(told: float, due: float) -> float:
    return told if told >= due * _NEARLY else due


class DoesNotFit(Exception):
    """A charge was refused in a transaction; why, is found when that has ended."""

    def __init__(self, explain: Callable[[], Overspent]) -> None:
        super().__init__()
        self.explain = explain


@dataclass(slots=True)
class _Sum:
    """The two sums of one filter, exact, in units (`to_units`); None is infinity."""

    amounts: int | None = 0
    deltas: int = 0

    @property
    def amount(self) -> Fraction | None:
        return None if self.amounts is None else from_units(self.amounts)

    @property
    def delta(self) -> Fraction:
        return from_units(self.deltas)

    def plus(self, cost: Cost) -> _Sum:
        deltas = self.deltas + to_units(cost.delta)
        if self.amounts is None or math.isinf(cost.amount):
            return _Sum(None, deltas)
        return _Sum(self.amounts + to_units(cost.amount), deltas)

    def within(self, found: PrivacyFilter) -> bool:
        return (
            self.amounts is not None
            and self.amounts <= to_units(found.capacity)
            and self.deltas <= to_units(found.slack)
        )


@dataclass(slots=True)
class RunningBalance:
    """Running sums of one budget, folded from its entries; can be thrown away at any time."""

    budget: Budget
    number: int = 0
    link: str = ""
    sums: list[_Sum] = field(default_factory=list)
    by_hand: Fraction = Fraction(0)
    events: dict[str, Fraction] = field(default_factory=dict)
    data_dependent: bool = False
    marginal: bool = False
    exact: LossSum | None = None
    keys: dict[str, int] = field(default_factory=dict)  # the callers' keys, and their entries
    retired: bool = False  # whether its only entry says that it takes no charge

    def add(self, entry: Entry) -> None:
        """Fold one entry in."""
        promise = entry.guarantee
        costs = price_entry(self.budget, entry)
        if ends_budget(entry):
            self.retired = True
            costs = costs_of(self.budget, promise, None)  # it spends nothing
        self.sums = [total.plus(cost) for total, cost in zip(self.sums, costs, strict=True)]
        if promise.gamma > 0:
            self.by_hand += stated_gamma(promise)
        for name, gamma in promise.estimates:
            self.events[name] = max(decimal_of(gamma), self.events.get(name, Fraction(0)))
        self.data_dependent |= promise.data_dependent
        self.marginal |= promise.marginal
        if self.exact is not None:
            self.exact.add(promise, entry.loss, costs[0])
        if entry.key is not None:
            self.keys[entry.key] = entry.number
        self.number, self.link = entry.number, entry.digest

    def copy(self) -> RunningBalance:
        """Copy what is added up, to see what one more charge would leave; it knows no keys."""
        exact = self.exact
        return replace(
            self,
            sums=list(self.sums),
            events=dict(self.events),
            exact=None if exact is None else exact.copy(),
            keys={},
        )

    def gamma(self, promise: Guarantee | None = None) -> Fraction:
        """Gamma spent, exact, with one more promise if given; each estimate counts once.

        Union bound.
        """
        total = self.by_hand + sum(self.events.values(), Fraction(0))
        if promise is None:
            return total
        fresh: dict[str, Fraction] = {}
        for name, gamma in promise.estimates:
            known = self.events.get(name, Fraction(0))
            fresh[name] = max(fresh.get(name, Fraction(0)), decimal_of(gamma) - known)
        return total + stated_gamma(promise) + sum(fresh.values(), Fraction(0))

    def fits(
        self, promise: Guarantee, loss: PrivacyProfile | None, costs: tuple[Cost, ...]
    ) -> bool:
        """Whether a charge keeps the limit on epsilon and delta."""
        if self.exact is not None:
            return self.exact.fits(promise, loss, costs[0])
        triples = zip(self.sums, costs, self.budget.filters, strict=True)
        return any(total.plus(cost).within(found) for total, cost, found in triples)

    def keeps_limit(self) -> bool:
        """Whether all that was charged is within the limit."""
        if self.gamma() > decimal_of(self.budget.limit.gamma):
            return False
        if self.exact is not None:
            return self.exact.keeps_limit()
        pairs = zip(self.sums, self.budget.filters, strict=True)
        return any(total.within(found) for total, found in pairs)

    def takes(
        self, promise: Guarantee, loss: PrivacyProfile | None, costs: tuple[Cost, ...]
    ) -> bool:
        """Whether a charge fits in all that is counted."""
        return (
            not self.retired and not self._lacks_gamma(promise) and self.fits(promise, loss, costs)
        )

    def _lacks_gamma(self, promise: Guarantee) -> bool:
        sampled = promise.gamma > 0 or bool(promise.estimates)
        return sampled and self.gamma(promise) > decimal_of(self.budget.limit.gamma)

    def check(
        self, promise: Guarantee, loss: PrivacyProfile | None, costs: tuple[Cost, ...]
    ) -> None:
        """Refuse a charge that does not fit."""
        if not self.takes(promise, loss, costs):
            raise self._refuse(promise, loss, costs)

    def require_fit(
        self, promise: Guarantee, loss: PrivacyProfile | None, costs: tuple[Cost, ...]
    ) -> None:
        """Refuse as `check` does, in words that are found later: nobody waits for them."""
        if not self.takes(promise, loss, costs):
            raise DoesNotFit(partial(self.copy()._refuse, promise, loss, costs))

    def _refuse(
        self, promise: Guarantee, loss: PrivacyProfile | None, costs: tuple[Cost, ...]
    ) -> Overspent:
        """Say why a charge does not fit, and what would: exact sums compose that many times."""
        limit = self.budget.limit
        name = self.budget.name
        if self.retired:
            return Overspent(
                f"budget {name!r} is retired: nothing was charged to it, and nothing will be. "
                "Charge the one that was opened in its place. Nothing was charged",
                name,
                0.0,
            )
        left = self.epsilon_left()
        if self._lacks_gamma(promise):
            return Overspent(
                f"budget {name!r}: this charge brings gamma {format_up(promise.gamma)}, of "
                f"which {format_up(stated_above(self.gamma(promise) - self.gamma()))} is new; "
                f"{format_down(self.gamma_left())} of {format_down(limit.gamma)} is left. "
                f"{_advise_gamma(limit.gamma)}. Nothing was charged",
                name,
                left,
            )
        epsilon, delta = self._parts_that_fit(promise, loss, costs)
        number = "1 charge" if self.number == 1 else f"{self.number} charges"
        return Overspent(
            f"budget {name!r}: this charge of epsilon {format_up(promise.epsilon)}, "
            f"delta {format_up(promise.delta)} does not fit into epsilon "
            f"{format_down(limit.epsilon)}, delta {format_down(limit.delta)} "
            f"({number} so far, method {self.budget.method}): "
            f"{which_part(epsilon=epsilon, delta=delta)}. Left: "
            f"{bought(left, limit)}, and delta {format_down(self.delta_left())} for new charges. "
            f"{_advise_epsilon(promise, left) if delta else set_aside(self.budget)}"
            "Nothing was charged",
            name,
            left,
        )

    def _parts_that_fit(
        self, promise: Guarantee, loss: PrivacyProfile | None, costs: tuple[Cost, ...]
    ) -> tuple[bool, bool]:
        """Whether the epsilon of a refused charge would fit without its delta, and the reverse."""
        if self.exact is not None:
            if promise.delta == 0.0 or loss is not None:  # a law has no delta apart from it
                return False, True
            alone = replace(promise, delta=0.0), replace(promise, epsilon=0.0)
            one, other = (self.fits(p, None, costs_of(self.budget, p, None)) for p in alone)
            return one, other
        return (
            self.fits(promise, loss, tuple(replace(cost, delta=0.0) for cost in costs)),
            self.fits(promise, loss, tuple(replace(cost, amount=0.0) for cost in costs)),
        )

    def gamma_left(self) -> float:
        """Largest gamma of a new estimate, rounded down."""
        if self.retired:
            return 0.0
        left = decimal_of(self.budget.limit.gamma) - self.gamma()
        return max(0.0, stated_below(left))

    def delta_left(self) -> float:
        """Largest own delta that any filter still takes, rounded down."""
        if self.retired:
            return 0.0
        if self.exact is not None:
            return self._exact_delta_left(self.exact)
        pairs = zip(self.sums, self.budget.filters, strict=True)
        # A filter whose first sum is full takes nothing more, whatever its slack.
        left = (decimal_of(f.slack) - total.delta for total, f in pairs if total.within(f))
        return max((max(0.0, stated_below(each)) for each in left), default=0.0)

    def epsilon_left(self) -> float:
        """Largest epsilon that could still be charged at delta = 0, rounded down."""
        if self.retired:
            return 0.0
        if self.exact is not None:
            return self._exact_left()
        pairs = zip(self.sums, self.budget.filters, strict=True)
        return max(_level_left(total, each) for total, each in pairs)

    def _exact_left(self) -> float:
        exact = self.exact
        if exact is None:
            return 0.0

        def accepted(level: float) -> bool:
            promise = self._plain(level)
            return self.fits(promise, None, costs_of(self.budget, promise, None))

        limit = self.budget.limit.epsilon
        basic = stated_below(exact.epsilon_left())
        if exact.delta == 0.0:
            return max(0.0, basic) if exact.slacks == 0 else 0.0
        low = basic if basic > 0 and accepted(basic) else 0.0
        if accepted(limit):
            return limit
        least = 1e-9 * limit
        if low == 0.0 and not accepted(least):
            return 0.0
        return last_true(accepted, low, limit, tolerance=1e-3, absolute=least)

    def _exact_delta_left(self, exact: LossSum) -> float:
        """Find a delta that is taken: what adding up leaves, or else the composition."""

        def accepted(delta: float) -> bool:
            promise = replace(self._plain(0.0), delta=delta)
            return self.fits(promise, None, costs_of(self.budget, promise, None))

        shares = (exact.room() * share for share in _ROOM)
        tried = (stated_below(each) for each in (exact.delta_left(), *shares))
        return next((each for each in tried if each > 0 and accepted(each)), 0.0)

    def _plain(self, level: float) -> Guarantee:
        limit = self.budget.limit
        return Guarantee(
            epsilon=level, neighbours=limit.neighbours, unit=limit.unit, distance=limit.distance
        )

    def balance(self) -> Balance:
        """Where the budget stands."""
        limit = self.budget.limit
        epsilon, delta = self._spent()
        gamma = min(stated_above(self.gamma()), 1.0 - 2.0**-53)
        spent = replace(
            limit,
            epsilon=epsilon,
            delta=delta,
            gamma=gamma,
            data_dependent=self.data_dependent,
            estimates=tuple(sorted((name, stated_above(g)) for name, g in self.events.items())),
            marginal=self.marginal,
        )
        shares = self.shares()
        return Balance(
            budget=self.budget,
            entries=self.number,
            spent=spent,
            used=max(shares),
            epsilon_used=shares[0],
            delta_used=shares[1],
            gamma_used=shares[2],
            epsilon_left=self.epsilon_left(),
            delta_left=self.delta_left(),
            gamma_left=self.gamma_left(),
            retired=self.retired,
        )

    def used(self) -> float:
        """Share of the budget that is used, in [0, 1], rounded up; the filter with most room."""
        return max(self.shares())

    def shares(self) -> tuple[float, float, float]:
        """Shares of epsilon, delta and gamma that are used, each in [0, 1], rounded up."""
        limit = self.budget.limit
        gamma = _share(self.gamma(), limit.gamma)
        if self.number == 0:
            return 0.0, 0.0, gamma
        if self.exact is not None:
            spent = self.exact.spent()
            share = 1.0 if math.isinf(spent) else _share(decimal_of(spent), limit.epsilon)
            return share, 0.0, gamma
        shares = [
            (1.0, 1.0)
            if total.amount is None or not total.within(each)
            else (_share(total.amount, each.capacity), _share(total.delta, each.slack))
            for total, each in zip(self.sums, self.budget.filters, strict=True)
        ]
        return *min(shares, key=max), gamma

    def _spent(self) -> tuple[float, float]:
        """Smallest epsilon, and its delta, over the filters that hold, or over all if none does."""
        limit = self.budget.limit
        if self.number == 0:
            return 0.0, 0.0
        if self.exact is not None:
            spent = self.exact.spent()
            kept = spent > limit.epsilon and self.exact.keeps_limit()  # but for its rounding
            return limit.epsilon if kept else spent, limit.delta
        found = []
        for total, each in zip(self.sums, self.budget.filters, strict=True):
            if total.amount is not None:
                epsilon = each.epsilon(stated_above(total.amount))
                delta = min(1.0, stated_above(total.delta + decimal_of(each.conversion)))
                kept = total.within(each)  # it keeps the limit then, also where this is rounded up
                most = (limit.epsilon, limit.delta) if kept else (math.inf, 1.0)
                found.append((not kept, min(epsilon, most[0]), min(delta, most[1])))
        return min(found)[1:] if found else (math.inf, limit.delta)


def start_balance(budget: Budget) -> RunningBalance:
    """Balance of a budget to which nothing was charged yet."""
    if not budget.filters:
        raise ParameterError("a budget needs a rule that stops the spending")
    exact = None
    if budget.method == "pld":
        (found,) = budget.filters
        exact = LossSum(budget.limit.epsilon, budget.limit.delta, found)
    return RunningBalance(
        budget=budget, link=budget.digest, sums=[_Sum() for _ in budget.filters], exact=exact
    )


def _level_left(total: _Sum, found: PrivacyFilter) -> float:
    """Largest epsilon that one filter still takes."""
    if not total.within(found) or total.amount is None:
        return 0.0
    left = decimal_of(found.capacity) - total.amount
    if left <= 0:
        return 0.0
    if found.name == "basic":
        return stated_below(left)

    def takes(level: float) -> bool:
        cost = filter_cost(found, Guarantee(epsilon=level), None)
        return not math.isinf(cost.amount) and decimal_of(cost.amount) <= left

    return last_true_near(takes, max(math.sqrt(float(left)), 1e-150), tolerance=1e-12)


def _share(part: Fraction, limit: float) -> float:
    if part == 0:
        return 0.0
    return min(1.0, stated_above(part / decimal_of(limit))) if limit > 0 else 1.0


def _advise_epsilon(promise: Guarantee, left: float) -> str:
    """Say which epsilon would fit, of a charge without delta, for which that is known."""
    small = format_down(left)
    fits = promise.delta == 0 and float(small) > 0
    return f"Ask for epsilon {small} at most (--epsilon {small}). " if fits else ""


def _advise_gamma(limit: float) -> str:
    """Say what to do where a sampled estimate does not fit."""
    if limit:
        return "Release with an estimate that is paid for, or sample with a smaller gamma"
    return "This budget takes no sampled estimate: open another one whose limit has a gamma"
