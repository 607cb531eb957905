"""Which route to take: the strongest promise, unless a weaker one is much more exact."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hushed._ground.printing import format_down, format_exactly, format_up
from hushed.comparing._record import ComparedRoute, shown_number

if TYPE_CHECKING:
    from hushed.comparing._record import Comparison

_KINDS = (
    "for every table",
    "for every table and another change of it",
    "for every table, with a slack",
    "for most of one population",
)


def rank_promise(route: ComparedRoute, comparison: Comparison) -> int:
    """Order promises, the strongest first.

    For every table and the change that was asked about; for every table and another change; with a
    slack; for all but some rows of a population.
    """
    promise = route.guarantee
    if promise.gamma:
        return 3
    if promise.delta:
        return 2
    return int(promise.neighbours != comparison.neighbours)


def recommend(comparison: Comparison) -> tuple[str, str]:
    """Choose a route and say why.

    The best one of the strongest promise is left for the best one of a weaker promise only if its
    price is more than ``worth`` times as high.
    """
    best: dict[int, ComparedRoute] = {}
    for route in sorted(comparison.routes, key=comparison.price):
        best.setdefault(rank_promise(route, comparison), route)
    if not best:
        return "", "No route applies; the reasons are below."
    chosen = best[min(best)]
    for rank in sorted(best):
        if comparison.price(best[rank]) * comparison.worth < comparison.price(chosen):
            chosen = best[rank]
    others = [best[rank] for rank in sorted(best) if best[rank] is not chosen]
    parts = [
        _say_choice(chosen, comparison),
        *(_say_other(each, chosen, comparison) for each in others),
        _say_spread(comparison),
    ]
    return chosen.name, " ".join(filter(None, parts))


def _say_choice(chosen: ComparedRoute, comparison: Comparison) -> str:
    start = f"Recommended: {chosen.name}, {chosen.how}."
    if chosen.guarantee.gamma:
        return (
            f"{start} Take it only if its promise is enough: it may fail for a share "
            f"{format_up(chosen.guarantee.gamma)} of the population, and nothing is said of rows "
            f"that are unlike the population's.{_say_weaker(comparison)} "
            f"{_say_price(chosen, comparison)}."
        )
    slack = (
        f", with a slack of {format_up(chosen.guarantee.delta)}" if chosen.guarantee.delta else ""
    )
    return (
        f"{start} Its promise holds for every table{slack}; no population is assumed. "
        f"{_say_price(chosen, comparison)}, and no route that promises as much does better."
    )


def _say_weaker(comparison: Comparison) -> str:
    """Say what else a promise is about that was sampled on a public table by name."""
    promise = comparison.population.get("promise")
    if promise == "table":
        return (
            " Here that population is the public rows alone: of the law that they come from "
            "nothing is promised (promise='table')."
        )
    if promise == "given-the-rest":
        return (
            " It is for tables whose other rows look like the public ones, and for no other "
            "(promise='given-the-rest')."
        )
    return ""


def _say_price(route: ComparedRoute, comparison: Comparison) -> str:
    if comparison.error is not None:
        return f"It keeps to the error with epsilon = {format_up(route.guarantee.epsilon)}"
    unit = " rows" if comparison.categories else ""
    return f"In 95 % of releases it is off by at most {shown_number(route.error_95)}{unit}"


def _say_other(other: ComparedRoute, chosen: ComparedRoute, comparison: Comparison) -> str:
    """Name the best route of another promise, and what it would gain or cost."""
    mine, its = comparison.price(chosen), comparison.price(other)
    what = "epsilon" if comparison.error is not None else "error"
    kind = _KINDS[rank_promise(other, comparison)]
    best = f"Of promises {kind}, the best one ({other.name}) has"
    if mine == its:
        return f"{best} the same {what}."
    ratio = max(mine, its) / min(mine, its) if min(mine, its) else math.inf
    if its > mine:
        return f"{best} {'many' if math.isinf(ratio) else shown_number(ratio)} times the {what}."
    less = "many" if math.isinf(ratio) else format_down(ratio, 3)
    if less == "1":
        return f"{best} about the same {what}."
    return (
        f"{best} an {what} {less} times smaller; a weaker promise is recommended from "
        f"{format_exactly(comparison.worth)} times on."
    )


def _say_spread(comparison: Comparison) -> str:
    """Set the noise beside what differs between tables anyway."""
    if comparison.categories or not comparison.spread_95:
        return ""
    return (
        "Without any noise, the answers of such tables are up to "
        f"{shown_number(comparison.spread_95)} from their median in 95 % of cases."
    )
