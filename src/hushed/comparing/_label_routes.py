"""The routes of a function that answers with labels: votes of blocks, and how often they err."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from hushed._ground.printing import format_exactly
from hushed._ground.types import Floats
from hushed.blocks import Blocks
from hushed.blocks._calls import ask_once
from hushed.comparing._block_routes import (
    GUESSES,
    ask_parts,
    check_blocks,
    guess_answer,
    say_known,
)
from hushed.comparing._laws import Wrong
from hushed.comparing._offers import MOST_TABLES, Offer, Plan, Priced, say_promise
from hushed.comparing._question import Question
from hushed.comparing._simulated import Table


def offer_votes(guess: bool, question: Question) -> Offer | str:
    """Draw the label by the exponential mechanism on the votes."""
    if guess and question.user is not None:
        return "a public guess is made for rows, and here users are protected"
    labels = question.labels or ()
    prior = cache(partial(guess_answer, question, labels)) if guess else None

    def plan(epsilon: float) -> Plan:
        known: Any = {"aggregate": "votes"}
        if prior is not None:
            blocks = question.blocks or _make(question, epsilon, **known).blocks or 1
            known["prior"] = prior(question.rows // min(blocks, question.rows))
        return _plan(question, _make(question, epsilon, blocks=question.blocks, **known), guess)

    return Offer(promise=say_promise(question), at=plan)


def offer_stable(question: Question) -> Offer | str:
    """Tell the label with most votes as it is, or refuse."""
    if not question.delta:
        return "needs a delta above 0"

    def plan(epsilon: float) -> Plan:
        more: Any = {"delta": question.delta, "blocks": question.blocks}
        return _plan(question, _make(question, epsilon, aggregate="stable", **more))

    return Offer(promise=say_promise(question, slack=True), at=plan)


def _make(question: Question, epsilon: float, **more: Any) -> Blocks:
    return Blocks(question.labels, epsilon=epsilon, user=question.user, **more)


def _plan(question: Question, made: Blocks, guess: bool = False) -> Plan:
    blocks = check_blocks(made, question)
    slack = "" if made.delta is None else f", delta={format_exactly(made.delta)}"
    known = f"{slack}, aggregate={made.aggregate!r}{say_known(question, guess)}"
    how = f"hs.Blocks(labels, epsilon={format_exactly(made.epsilon)}{known})"

    def price(found: Floats) -> Priced:
        calls = blocks + guess * GUESSES
        return Priced(guarantee=made.guarantee, errors=Wrong(found[:, 0]), how=how, calls=calls)

    measure = partial(_measure_wrong, made, question.asked)
    return Plan(measure=measure, price=price, most=MOST_TABLES)


def _measure_wrong(made: Blocks, function: Callable[[Any], Any], table: Table) -> float:
    """Chance that another label is released than that of the whole table, or none."""
    whole = int(table.once("whole", lambda: ask_once(made, function, table.rows)))
    chosen: Any = made.aggregation
    chances = chosen.chances(ask_parts(made, function, table))
    return float(1 - np.minimum(chances[chosen.kept == whole].sum(), 1.0))
