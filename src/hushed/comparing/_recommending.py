"""Which route to take: the strongest promise, unless a weaker one is much more exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushed.comparing._record import ComparedRoute, shown_number

if TYPE_CHECKING:
    from hushed.comparing._record import Comparison


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
    classes: dict[int, ComparedRoute] = {}
    for route in sorted(comparison.routes, key=lambda each: comparison.price(each)):
        classes.setdefault(rank_promise(route, comparison), route)
    if not classes:
        return "", "No route applies: see the reasons."
    ranks = sorted(classes)
    chosen = classes[ranks[0]]
    for rank in ranks[1:]:
        if comparison.price(classes[rank]) * comparison.worth < comparison.price(chosen):
            chosen = classes[rank]
    others = [classes[rank] for rank in ranks if classes[rank] is not chosen]
    parts = [
        _say_choice(chosen, comparison),
        *(_say_other(each, chosen, comparison) for each in others),
    ]
    parts.append(_say_scale(chosen, comparison))
    return chosen.name, " ".join(filter(None, parts))


def _say_choice(chosen: ComparedRoute, comparison: Comparison) -> str:
    sure = not chosen.guarantee.gamma
    holds = (
        "Its promise holds for every table; no population is assumed"
        if sure
        else "Its promise fails for a share "
        f"{chosen.guarantee.gamma:g} of the population, and for rows that are unlike it: take it "
        "only if that is enough"
    )
    return f"Recommended: {chosen.name}, {chosen.how}. {holds}. {_say_price(chosen, comparison)}."


def _say_price(route: ComparedRoute, comparison: Comparison) -> str:
    unit = " rows that would have to change" if comparison.categories else ""
    if comparison.error is not None:
        return f"It keeps to the error with epsilon = {route.guarantee.epsilon:g}"
    return f"Its error is at most {shown_number(route.error_95)}{unit} in 95 % of releases"


def _say_other(other: ComparedRoute, chosen: ComparedRoute, comparison: Comparison) -> str:
    """Name the best route of another promise, and what it would gain or cost."""
    mine, its = comparison.price(chosen), comparison.price(other)
    what = "epsilon" if comparison.error is not None else "error"
    stronger = rank_promise(other, comparison) < rank_promise(chosen, comparison)
    kind = "stronger" if stronger else "weaker"
    if other.guarantee.neighbours != chosen.guarantee.neighbours and not other.guarantee.gamma:
        kind = "other"
    if its >= mine:
        ratio = f"{shown_number(its / mine)} times the {what}" if mine else f"a larger {what}"
        note = f": its {kind} promise has {ratio}"
    else:
        ratio = f"{shown_number(mine / its)} times less {what}" if its else f"no {what}"
        note = f": {ratio}, for a {kind} promise"
    return f"The best of another kind is {other.name}{note}."


def _say_scale(chosen: ComparedRoute, comparison: Comparison) -> str:
    """Set the noise beside what differs between tables anyway."""
    if comparison.categories or not comparison.spread_95:
        return ""
    return (
        "Without any noise, the answers of such tables differ from their median by up to "
        f"{shown_number(comparison.spread_95)} in 95 % of cases."
    )
