"""What a test of a declared bound refuses because it could not fail: few pairs, a false order."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from hushed._functions._calls import answer
from hushed._functions._environment import rounding_limit
from hushed._ground.printing import format_down
from hushed._ground.tensors import note_types
from hushed._rows import _containers as containers
from hushed._rows._owned import copy_rows
from hushed._rows._people import bundle_rows, show_rows
from hushed.auditing._bounds import clopper_pearson_low
from hushed.auditing._pairs import Pair
from hushed.auditing._population import DrawnPairs
from hushed.auditing._sensitivity import measure_movement, round_movement
from hushed.errors import BadFunction, ParameterError
from hushed.spaces import Norm

_TABLES, _ORDERS = 3, 3
_SMALL = 1e-6  # share of what a pair may move that rounding in another order may
_ROUNDING = 1e-12  # share of an answer that it may
_ORDERING = 2015  # seed of the orders that are tried


def require_refutable(share: Fraction, pairs: int, alpha: float) -> None:
    """Refuse so few pairs that the bound is not refuted even if every pair moves farther.

    Raises
    ------
    ParameterError
        With the smallest number of pairs that could refute it.
    """
    if not share or clopper_pearson_low(pairs, pairs, alpha) > share:
        return
    needed = max(pairs + 1, math.floor(math.log(alpha) / math.log(float(share))))
    while clopper_pearson_low(needed, needed, alpha) <= share:
        needed += 1 + needed // 1000
    raise ParameterError(
        f"{pairs} pairs cannot refute a bound that a share of {format_down(float(share))} of pairs "
        f"may exceed, even if all of them do: draw at least {needed}",
        parameter="pairs",
    )


def require_orderless(
    function: Callable[[Any], Any],
    pairs: DrawnPairs,
    count: int,
    user: str | int | None,
    norm: Norm,
) -> None:
    """Refuse ``symmetric`` of a function that another order of the rows, or users, moves.

    Such a function was asked about its last place only, which may be none that it looks at.

    Raises
    ------
    BadFunction
        If it moves by more than a millionth of what the first pairs move it, or than it rounds.
    """
    rng = np.random.default_rng(_ORDERING)
    drawn = [pairs.draw(number) for number in range(min(_TABLES, count))]
    moved = max(_measure(function, pair.rows, pair.neighbour, norm) for pair in drawn)
    for pair in drawn:
        table = pair.rows if user is None else bundle_rows(pair.rows, user)
        rounding = _find_rounding(function, pair.rows)
        for _ in range(_ORDERS):
            order = rng.permutation(len(table))
            again = show_rows(containers.take(table, order))
            found = _measure(function, pair.rows, again, norm)
            if found > max(_SMALL * moved, rounding):
                raise BadFunction(
                    "the function was declared symmetric, but reordering the rows changes its "
                    f"answer by {found:.3g}, where a pair moves it by {moved:.3g}; leave "
                    "symmetric out"
                )


def _find_rounding(function: Callable[[Any], Any], table: Any) -> float:
    """Bound what another order may round an answer by, in numbers of its own kind."""
    try:
        with note_types() as coarsest:
            size = float(np.abs(answer(function, copy_rows(table), private=False)).sum())
            kind = coarsest()
    except BadFunction:
        return 0.0
    return _ROUNDING * size if kind == "float64" else rounding_limit(size, (), dtype=kind)


def _measure(function: Callable[[Any], Any], one: Any, other: Any, norm: Norm) -> float:
    pair = Pair(rows=one, neighbour=other, name="another order")
    return round_movement(measure_movement(function, pair, norm).size, norm)
