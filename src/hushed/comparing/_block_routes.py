"""The routes that ask a function about blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from hushed._functions._calls import answer
from hushed._ground.printing import format_exactly
from hushed._ground.types import Floats
from hushed.blocks import Blocks, public_prior
from hushed.blocks._calls import ask_here
from hushed.blocks._parts import split_rows
from hushed.comparing._laws import Chosen
from hushed.comparing._offers import MOST_TABLES, Offer, Plan, Priced, say_promise
from hushed.comparing._question import Question
from hushed.comparing._simulated import Table
from hushed.errors import ParameterError
from hushed.sensitivity import Blockwise
from hushed.statistics import Mode
from hushed.statistics._candidates import choose_spacing

GUESSES = 200  # public blocks asked for a guess
BY_ITSELF = "hs.Blockwise deals rows to blocks by itself: compare its function alone, too"


def offer_blocks(guess: bool, question: Question) -> Offer | str:
    if isinstance(question.statistic, Mode):
        return "a mode has better ways; hs.Blocks(aggregate='votes') is for functions"
    if isinstance(question.asked, Blockwise):
        return BY_ITSELF
    if question.numbers > 1:
        return "chooses one number; for several numbers there is the way by vectors"
    if guess and question.user is not None:
        return "a public guess is made for rows, and here users are protected"
    values = _candidates_of(question)
    if values is None:
        return "needs a public range of the answer, low= and high=, or candidates="

    # A search asks at many epsilons; a guess depends on the size of a block alone.
    prior = cache(partial(guess_answer, question, values)) if guess else None

    def plan(epsilon: float) -> Plan:
        made = _make_blocks(question, values, epsilon, prior)
        blocks = check_blocks(made, question)
        how = _write(question, epsilon, guess)

        def price(drawn: Floats) -> Priced:
            return Priced(
                guarantee=made.guarantee,
                errors=Chosen.of_rows(drawn),
                how=how,
                calls=blocks + guess * GUESSES,
            )

        measure = partial(_measure_blocks, made, question.function, question.part_function)
        return Plan(measure=measure, price=price, most=MOST_TABLES)

    return Offer(promise=say_promise(question), at=plan)


def _write(question: Question, epsilon: float, guess: bool) -> str:
    """Write the mechanism in Python."""
    of = "" if question.numeric is None else " of a function that computes it"
    known = say_known(question, guess)
    return f"hs.Blocks(candidates, epsilon={format_exactly(epsilon)}{known}){of}"


def say_known(question: Question, guess: bool) -> str:
    """Write what blocks are told of the question."""
    more = "" if question.blocks is None else f", blocks={question.blocks}"
    more += ", prior=..." if guess else ""
    if question.neighbours != "replace-one":
        more += f", neighbours={question.neighbours!r}"
    if question.user is not None:
        more += f", user={question.user!r}"
    if question.unit != "row":
        more += f", unit={question.unit!r}"
    return more


def _candidates_of(question: Question) -> tuple[float, ...] | None:
    """Public values for the blocks: as given, or 101 of the range, spaced as the answer's are."""
    if question.candidates is not None:
        return tuple(sorted(question.candidates))
    span = question.span if question.numeric is None else question.numeric.span
    if span is None:
        return None
    own = None if question.numeric is None else choose_spacing(span[0])
    return Blocks(low=span[0], high=span[1], spacing=own).values


def _make_blocks(
    question: Question,
    values: tuple[float, ...],
    epsilon: float,
    prior: Callable[[int], tuple[float, ...]] | None,
) -> Any:
    """Blocks, with what the population answers as a public guess if so wanted."""
    known: Any = {"epsilon": epsilon, "neighbours": question.neighbours, "unit": question.unit}
    known["user"] = question.user
    if prior is None:
        return Blocks(values, blocks=question.blocks, **known)
    # As many as are enough without a guess, with which fewer may be.
    blocks = question.blocks or Blocks(values, **known).blocks or 1
    size = question.rows // min(blocks, question.rows)
    return Blocks(values, blocks=question.blocks, prior=prior(size), **known)


def check_blocks(made: Blocks, question: Question) -> int:
    """Give the number of blocks; refuses more of them than rows."""
    blocks = int(made.blocks or 1)
    if blocks > question.rows:
        raise ParameterError(f"it takes {blocks} blocks, and there are fewer rows")
    return blocks


def guess_answer(question: Question, values: tuple[Any, ...], size: int) -> tuple[float, ...]:
    """Guess what blocks of a size will answer."""
    return public_prior(
        question.part_function,
        question.population,
        rows=size,
        blocks=1,
        candidates=values,
        draws=GUESSES,
        seed=question.seed,
        progress=question.shown,  # type: ignore[arg-type]
    )


def _measure_blocks(
    made: Any,
    whole: Callable[[Any], Any],
    part: Callable[[Any], Any],
    table: Table,
) -> Floats:
    """Error of each candidate against the answer on the whole table, then its chance."""
    chosen = made.aggregation
    values = np.array(made.values)[chosen.kept]
    exact = table.once("whole", lambda: float(answer(whole, table.rows, private=False)))
    chances = chosen.chances(ask_parts(made, part, table))
    return np.concatenate([np.abs(values - exact), chances])


def ask_parts(made: Any, part: Callable[[Any], Any], table: Table) -> Floats:
    """Ask a function about the parts of a table, once for all mechanisms with as many of them."""

    def ask() -> Floats:
        generator = table.generator()
        parts = split_rows(
            table.rows,
            made.blocks,
            made.user,
            even=made.even,
            draw=lambda bound, count: generator.integers(bound, size=count),
        )
        return ask_here(made, part, parts)

    found: Floats = table.once(("parts", made.blocks), ask)
    return found
