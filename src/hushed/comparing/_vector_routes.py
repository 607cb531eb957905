"""The route of several numbers by blocks: the mean of vectors in a ball, with Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hushed._functions._calls import answer
from hushed._ground.printing import format_exactly, name_count
from hushed._ground.types import Floats
from hushed.blocks import Blocks
from hushed.comparing._block_routes import BY_ITSELF, ask_parts, check_blocks, say_known
from hushed.comparing._laws import Shifted
from hushed.comparing._offers import MOST_TABLES, Offer, Plan, Priced, say_promise
from hushed.comparing._question import Question
from hushed.comparing._simulated import Table
from hushed.errors import BadFunction
from hushed.sensitivity import Blockwise


def offer_vector(question: Question) -> Offer | str:
    """Offer the mean of the blocks' vectors, each moved into a public ball."""
    if isinstance(question.asked, Blockwise):
        return BY_ITSELF
    if question.ball is None:
        return "needs a public ball that holds the answer, centre= and radius="
    if not question.delta:
        return "needs a delta above 0"
    centre, radius = question.ball

    def plan(epsilon: float) -> Plan:
        made = Blocks(
            aggregate="vector",
            centre=centre,
            radius=radius,
            epsilon=epsilon,
            delta=question.delta,
            blocks=question.blocks,
            user=question.user,
        )
        blocks = check_blocks(made, question)
        scale, grid, _, _ = made.aggregation.describe_draw()
        slack = f"epsilon={format_exactly(epsilon)}, delta={format_exactly(question.delta)}"
        ball = f"centre=..., radius={format_exactly(radius)}"
        known = say_known(question, guess=False)
        how = f"hs.Blocks(aggregate='vector', {ball}, {slack}{known})"

        def price(offsets: Floats) -> Priced:
            errors = Shifted(offsets, scale, rounding=math.ldexp(1.0, grid))
            return Priced(guarantee=made.guarantee, errors=errors, how=how, calls=blocks)

        measure = partial(_measure_vector, made, question.asked)
        return Plan(measure=measure, price=price, most=MOST_TABLES)

    return Offer(promise=say_promise(question, slack=True), at=plan)


def _measure_vector(made: Blocks, function: Callable[[Any], Any], table: Table) -> Floats:
    """How far the mean of the blocks is from the answer on the whole table, without noise."""
    whole = table.once("whole", lambda: answer(function, table.rows, private=False))
    drawn: Any = made.aggregation
    if whole.shape != drawn.shape:
        raise BadFunction(
            f"blocks take one list of {name_count(drawn.shape[0], 'number')}, and the answer "
            f"has the shape {whole.shape}"
        )
    return np.asarray(drawn.middle(ask_parts(made, function, table)) - whole)
