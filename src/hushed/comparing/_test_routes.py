"""The routes that test first, and refuse to answer where the test fails."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hushed._ground.printing import format_exactly
from hushed._ground.types import Floats
from hushed.comparing._laws import Refusing
from hushed.comparing._offers import MOST_TABLES, Offer, Priced, say_promise
from hushed.comparing._question import Question
from hushed.errors import ParameterError
from hushed.mechanisms import ProposeTest, StableMode
from hushed.statistics import Mode, Numeric

_BOUNDS = 30  # proposed: each half of the one before
_REFUSED = 0.025  # share of tables that may be refused, so that 95 % can be answered


def offer_propose_test(question: Question) -> Offer | str:
    statistic = question.statistic
    if statistic is None:
        return "known for the statistics of hs.statistics alone"
    if not question.delta:
        return "needs a delta above 0"

    def price(epsilon: float) -> Priced:
        if isinstance(statistic, Mode):
            return _price_stable_mode(statistic, question, epsilon)
        return _price_propose_test(statistic, question, epsilon)

    return Offer(promise=say_promise(question, slack=True), at=price)


def _price_stable_mode(statistic: Mode, question: Question, epsilon: float) -> Priced:
    made = StableMode(statistic, epsilon=epsilon, delta=question.delta)
    refused = 1 - question.simulate(partial(_measure_chances, (made,)))[:, 0]
    if refused.mean() > _REFUSED:
        raise ParameterError(f"it would refuse to answer {refused.mean():.0%} of such tables")
    return Priced(
        guarantee=made.guarantee,
        errors=Refusing(lambda _: 0.0, refused),
        how=f"hs.StableMode(s, {_say_levels(question, epsilon)})",
    )


def _price_propose_test(statistic: Numeric, question: Question, epsilon: float) -> Priced:
    """Propose the bound that suits the population best, among some that are public as it is."""
    widest = statistic.global_sensitivity
    made = [
        ProposeTest(statistic, bound=bound, epsilon=epsilon, delta=question.delta)
        for bound in (float(f"{widest / 2**k:.3g}") for k in range(1, _BOUNDS))
    ]
    refused = 1 - question.simulate(partial(_measure_chances, tuple(made)), MOST_TABLES)
    offers = [
        (Refusing(each.accuracy, refused[:, place]), each)
        for place, each in enumerate(made)
        if refused[:, place].mean() <= _REFUSED
    ]
    if not offers:
        raise ParameterError("it would refuse to answer such tables, whatever bound is proposed")
    errors, best = min(offers, key=lambda offer: offer[0].quantile(0.05))
    return Priced(
        guarantee=best.guarantee,
        errors=errors,
        how=f"hs.ProposeTest(s, bound={format_exactly(best.bound)}, "
        f"{_say_levels(question, epsilon)})",
    )


def _say_levels(question: Question, epsilon: float) -> str:
    """Write both levels in Python, as they are."""
    return f"epsilon={format_exactly(epsilon)}, delta={format_exactly(question.delta)}"


def _measure_chances(made: tuple[Any, ...], rows: Any, _: np.random.Generator) -> Floats:
    """Probability that a table is answered, for each mechanism."""
    return np.array([each.chance_on(rows) for each in made])
