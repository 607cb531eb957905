"""A function asked about each block: in processes of its own, or here for public rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hushed._functions._calls import answer
from hushed._functions._isolation import Isolation
from hushed._functions._turns import Turn
from hushed._ground.types import Floats
from hushed.errors import BadFunction
from hushed.statistics._mode import Category, place_of

if TYPE_CHECKING:
    from hushed.blocks._mechanism import Blocks


def open_calls(
    mechanism: Blocks,
    function: Callable[[Any], Any],
    started: int,
    held: str = "array",
    at_once: int | None = None,
) -> Isolation:
    """Start processes that know the function, and no row yet; refuses a function they cannot load.

    They import what holds the rows. Seeds of the calls are the numbers of the blocks.
    """
    return Isolation(
        function,
        calls=started,
        shape=mechanism.aggregation.shape,
        labels=mechanism.values if mechanism.labelled else None,
        limits=mechanism.limits,
        modules=[held] if held in ("pandas", "polars") else [],
        workers=at_once,
    )


def ask_here(mechanism: Blocks, function: Callable[[Any], Any], parts: Sequence[Any]) -> Floats:
    """Call a function on public parts in this process; NaN where that fails."""
    shape = mechanism.aggregation.shape
    answers = np.full((len(parts), *shape), np.nan)
    for place, part in enumerate(parts):
        try:
            found = ask_once(mechanism, function, part)
        except BadFunction:
            continue
        if found.shape == shape:
            answers[place] = found
    return answers


def ask_once(mechanism: Blocks, function: Callable[[Any], Any], rows: Any) -> Floats:
    """Answer on public rows, as numbers; of a label its place, NaN if it is none of them."""
    if not mechanism.labelled:
        numbers = answer(function, rows, private=False)
        alone = numbers.shape == (1,) and not mechanism.aggregation.shape  # as in an isolated call
        return numbers.reshape(()) if alone else numbers
    places: dict[Category, int] = {each: place for place, each in enumerate(mechanism.values)}
    try:
        with Turn(function):
            found = place_of(function(rows), places)
    except Exception as cause:
        raise BadFunction(
            f"the function raised {type(cause).__name__} on public rows: {cause}"
        ) from cause
    return np.array(float(found) if found < len(places) else np.nan)


def answered_with_none(labels: Sequence[Category]) -> BadFunction:
    """Say that a function answers with no label; texts of digits are taken for numbers easily."""
    text = any(isinstance(each, str) for each in labels)
    return BadFunction(
        "the function answers with none of the candidates on a whole table"
        + ("" if text else "; no text, also none of digits, is one of them")
    )
