"""The smallest epsilon at which a route keeps to an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from hushed._ground.printing import format_down
from hushed.comparing._offers import Offer, Priced, plan_at, price_together
from hushed.comparing._question import Question

_LEAST, _DECADES, _STEPS = -3, 5, 900  # epsilons of three digits, from 0.001 to 99.9
_LAST = _DECADES * _STEPS
_ONE = 1 - _LEAST * _STEPS
_GUESSES = 6
_FAR = 50.0  # stands for an infinite logarithm


def find_price(
    offer: Offer, question: Question, most: float, beta: float, what: str = "trying it on"
) -> Priced | str:
    """Smallest epsilon of three digits that keeps to an error; it was seen to keep to it.

    Progress says what is done.
    """
    kept: dict[int, Priced] = {}
    step = first_level(partial(_excess, offer, question, most, beta, kept, what))
    if step is None:
        last = _level(_LAST)
        return f"an error of {format_down(most, 3)} is not reached at any epsilon up to {last:g}"
    return kept[step]


def _excess(
    offer: Offer,
    question: Question,
    most: float,
    beta: float,
    kept: dict[int, Priced],
    what: str,
    step: int,
) -> float:
    """Logarithm of the error at a level over the one allowed; above 0 where it is more."""
    level = _level(step)
    at = f"{what.removesuffix(' on')} with epsilon = {level:g} on"
    (found,) = price_together([plan_at(offer, level)], question, at)
    if isinstance(found, str):  # so small an epsilon, or so many blocks
        return _FAR
    error = found.errors.quantile(beta)
    if error <= most:
        kept[step] = found
    ratio = error / most
    over = min(max(math.log(ratio), -_FAR), _FAR) if ratio > 0 else -_FAR
    return max(over, math.ulp(0.0)) if error > most else min(over, 0.0)


def first_level(excess: Callable[[int], float]) -> int | None:
    """Level from which on an excess is at most 0, and is more one level below; None if nowhere.

    Notes
    -----
    A level takes as long as its tables, so few are asked: an excess is nearly a straight line over
    the logarithm of epsilon, and the level where it meets 0 is read off, until that was asked
    already. What is left between is halved, beginning near there.
    """
    asked: dict[int, float] = {}
    step, near = _ONE, _ONE
    for _ in range(_GUESSES):
        asked[step], near = excess(step), step
        step = _guess(asked, near)
        if step in asked:
            break
    if all(over > 0 for over in asked.values()) and _LAST not in asked:
        asked[_LAST] = excess(_LAST)
    high = min((each for each, over in asked.items() if over <= 0), default=None)
    if high is None:
        return None
    low, reach = max((each for each in asked if each < high), default=0), 1
    while high - low > 1:
        middle = (low + high) // 2
        at = min(low + reach, middle) if near == low else max(high - reach, middle)
        low, high = (low, at) if excess(at) <= 0 else (at, high)
        near, reach = at, 2 * reach
    return high


def _guess(asked: dict[int, float], near: int) -> int:
    """Guess the level from what was asked; where all lie on one side, errors fall as 1/epsilon."""
    above = [each for each, over in asked.items() if over > 0]
    below = [each for each, over in asked.items() if over <= 0]
    start, over, slope = math.log(_level(near)), asked[near], 1.0
    if above and below:
        low, high = max(above), min(below)
        slope = (asked[low] - asked[high]) / (math.log(_level(high)) - math.log(_level(low)))
        start, over = math.log(_level(high)), asked[high]
    if slope <= 0:  # it does not fall everywhere
        return near
    return _step_of(math.exp(min(start + over / slope, _FAR)))


def _level(step: int) -> float:
    """Epsilon of a place on the ladder, from 1: three digits each."""
    decade, place = divmod(step - 1, _STEPS)
    return float(f"{100 + place}e{_LEAST + decade - 2}")


def _step_of(epsilon: float) -> int:
    """Place of the first level that is at least an epsilon, nearly; the ends beyond them."""
    decade = min(max(math.floor(math.log10(epsilon)), _LEAST), _LEAST + _DECADES - 1)
    place = math.ceil(epsilon / 10.0 ** (decade - 2) - 1e-9) - 100
    return min(max((decade - _LEAST) * _STEPS + place + 1, 1), _LAST)
