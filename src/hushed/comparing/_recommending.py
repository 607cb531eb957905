"""Which route to take: the strongest promise, unless a weaker one is much more exact."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hushed._ground.printing import format_down, format_exactly, format_up, percent_up
from hushed.comparing._record import ComparedRoute, shown_number
from hushed.populations._fitted import count_table_rows

if TYPE_CHECKING:
    from hushed.comparing._record import Comparison

_RARE = 0.05  # share of other labels


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
    price is more than ``worth`` times as high; of labels, only if other ones are more than rare.
    """
    best: dict[int, ComparedRoute] = {}
    for route in sorted(comparison.routes, key=comparison.price):
        best.setdefault(rank_promise(route, comparison), route)
    if not best:
        return "", "No route applies; the reasons are below."
    chosen = best[min(best)]
    for rank in sorted(best):
        if _is_rare(chosen, comparison):
            break
        if comparison.price(best[rank]) * comparison.worth < comparison.price(chosen):
            chosen = best[rank]
    others = [best[rank] for rank in sorted(best) if best[rank] is not chosen]
    parts = [
        _say_choice(chosen, comparison),
        *(_say_other(each, chosen, comparison) for each in others),
        _say_spread(comparison),
    ]
    return chosen.name, " ".join(filter(None, parts))


def _is_rare(route: ComparedRoute, comparison: Comparison) -> bool:
    """Whether another label is so rare that a weaker promise could not gain what it costs."""
    return comparison.labels and comparison.error is None and route.error_95 <= _RARE


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
    other = rank_promise(chosen, comparison) == 1
    return (
        f"{start} Its promise holds for every table{slack}; no population is assumed. "
        f"{'It is about one row more or less: replacing one costs twice the epsilon. ' * other}"
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
    if promise is None and (again := count_table_rows(comparison.population)):
        return (
            f" Of the law behind the {again} public rows that it draws from with replacement "
            "nothing is promised."
        )
    return ""


def _say_price(route: ComparedRoute, comparison: Comparison) -> str:
    if comparison.error is not None:
        return f"It keeps to the error with epsilon = {format_up(route.guarantee.epsilon)}"
    if comparison.labels:
        share = percent_up(route.error_95)
        return f"In {share} % of releases the label is another one than that of the whole table"
    off = shown_number(route.error_95)
    if not comparison.categories:
        return f"In 95 % of releases it is off by at most {off}"
    if not route.error_95:
        return "In 95 % of releases it is the most frequent category"
    rows = "1 row" if off == "1" else f"{off} rows"
    return f"In 95 % of releases it would be the most frequent category if {rows} changed"


def _say_other(other: ComparedRoute, chosen: ComparedRoute, comparison: Comparison) -> str:
    """Name the best route of another promise, and what it would gain or cost."""
    mine, its = comparison.price(chosen), comparison.price(other)
    what, article = "error", "an"
    if comparison.error is not None:
        what = "epsilon"
    elif comparison.labels:
        what, article = "share of other labels", "a"
    weaker = rank_promise(other, comparison) > rank_promise(chosen, comparison)
    kind = "weaker" if weaker else "stronger"
    start = f'The route "{other.name}" has a {kind} promise ({other.promise}) and'
    if mine == its:
        return f"{start} the same {what}."
    ratio = max(mine, its) / min(mine, its) if min(mine, its) else math.inf
    if its > mine:
        return f"{start} {'many' if math.isinf(ratio) else shown_number(ratio)} times the {what}."
    less = "many" if math.isinf(ratio) else format_down(ratio, 3)
    if less == "1":
        return f"{start} about the same {what}."
    needed = f"the {what} is more than {format_exactly(comparison.worth)} times smaller"
    if _is_rare(chosen, comparison):
        rare = f"{percent_up(_RARE)} % of releases"
        needed = f"the recommended one gave another label in more than {rare}"
    return (
        f"{start} {article} {what} {less} times smaller. It would be recommended only if {needed}."
    )


def _say_spread(comparison: Comparison) -> str:
    """Set the noise beside what differs between tables anyway."""
    if comparison.labels:
        return (
            f"Without any noise, {percent_up(comparison.spread_95)} % of such tables have another "
            "label than most."
        )
    if comparison.categories or not comparison.spread_95:
        return ""
    return (
        "Without any noise, the answers of such tables are up to "
        f"{shown_number(comparison.spread_95)} from their median in 95 % of cases."
    )
