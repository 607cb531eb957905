"""The routes that test first, and refuse to answer where the test fails."""

from __future__ import annotations

from functools import partial

import numpy as np

from hushed._ground.printing import format_exactly
from hushed._ground.types import Floats
from hushed.comparing._laws import Scaled
from hushed.comparing._offers import MOST_TABLES, Offer, Plan, Priced, say_promise
from hushed.comparing._question import Question
from hushed.comparing._simulated import Table, find_rooms
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

    def plan(epsilon: float) -> Plan:
        if isinstance(statistic, Mode):
            stable = StableMode(statistic, epsilon=epsilon, delta=question.delta)
            return Plan(
                measure=partial(_measure_chance, stable),
                price=partial(_price_stable_mode, stable),
            )
        made = _propose_bounds(statistic, question.delta, epsilon)
        return Plan(
            measure=partial(_measure_bounds, made),
            price=partial(_price_propose_test, made),
            most=MOST_TABLES,
        )

    return Offer(promise=say_promise(question, slack=True), at=plan)


def _price_stable_mode(made: StableMode, chances: Floats) -> Priced:
    refused = 1 - chances[:, 0]
    never = np.zeros((len(chances), 2))  # an answer is the exact one
    if refused.mean() > _REFUSED:
        raise ParameterError(f"it would refuse to answer {refused.mean():.0%} of such tables")
    return Priced(
        guarantee=made.guarantee,
        errors=Scaled(np.ones(len(chances)), never, _exceeds, 0.0, refused),
        how=f"hs.StableMode(s, {_say_levels(made)})",
    )


def _propose_bounds(statistic: Numeric, delta: float, epsilon: float) -> tuple[ProposeTest, ...]:
    """Propose bounds that are public as the range is."""
    widest = statistic.global_sensitivity
    return tuple(
        ProposeTest(statistic, bound=bound, epsilon=epsilon, delta=delta)
        for bound in (float(f"{widest / 2**k:.3g}") for k in range(1, _BOUNDS))
    )


def _price_propose_test(made: tuple[ProposeTest, ...], found: Floats) -> Priced:
    """Take the bound that suits the population best."""
    rooms, refused = found[:, :2], 1 - found[:, 2:]
    offers = [
        (_errors_of(each, rooms, refused[:, place]), each)
        for place, each in enumerate(made)
        if refused[:, place].mean() <= _REFUSED
    ]
    if not offers:
        raise ParameterError("it would refuse to answer such tables, whatever bound is proposed")
    errors, best = min(offers, key=lambda offer: offer[0].quantile(0.05))
    return Priced(
        guarantee=best.guarantee,
        errors=errors,
        how=f"hs.ProposeTest(s, bound={format_exactly(best.bound)}, {_say_levels(best)})",
    )


def _say_levels(made: ProposeTest | StableMode) -> str:
    """Write both levels in Python, as they are."""
    return f"epsilon={format_exactly(made.epsilon)}, delta={format_exactly(made.delta)}"


def _errors_of(made: ProposeTest, rooms: Floats, refused: Floats) -> Scaled:
    """Laplace noise of one scale on all tables, as `ProposeTest.accuracy` bounds it."""
    scales = np.full(len(refused), made.scale)
    return Scaled(scales, rooms, _exceeds, 2.0 ** (made.grid + 1), refused)


def _exceeds(sizes: Floats) -> Floats:
    """Probability that Laplace noise of scale 1 exceeds a size, in absolute value."""
    return np.exp(-sizes)


def _measure_chance(made: StableMode, table: Table) -> Floats:
    """Probability that a table is answered."""
    return np.array([made.chance_on(table.rows)])


def _measure_bounds(made: tuple[ProposeTest, ...], table: Table) -> Floats:
    """Room for the answer below and above, then the probability of an answer for each bound."""
    rows = table.read(made[0].statistic)
    return np.append(find_rooms(made[0].statistic, rows), [each.chance_on(rows) for each in made])
