"""Defects in searches: what is compared with a noisy threshold, and with how much noise."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.zoo._curves import discrete_truth
from hushed.zoo._events import compare
from hushed.zoo._record import Rows
from hushed.zoo.defects._defect import Defect, Version, Versions


def _first_above(
    rows: Rows, rng: np.random.Generator, size: int, /, *, bar: float, scale: float
) -> NDArray[np.float64]:
    """Draw the index of the first noisy answer that reaches the noisy threshold 0; 2 if none."""
    threshold = rng.exponential(bar, (size, 1))
    above = rows + rng.exponential(scale, (size, rows.size)) >= threshold
    first = np.where(above.any(axis=1), above.argmax(axis=1), rows.size)
    return np.asarray(first, dtype=np.float64)


def _law_of_first(rows: Rows, *, bar: float, scale: float) -> NDArray[np.float64]:
    """Probabilities of 0, 1 and none, for answers a >= 0 and b <= a, by hand.

    The first one is missed from the threshold a on only, so with r the rest of the threshold:
    the integral of exp(-r / bar) / bar (1 - exp(-r / scale)) exp(-(r + a - b) / scale).
    """
    a, b = rows.tolist()
    reached = math.exp(-a / bar)
    missed = 1 - scale / (scale + bar)
    both = scale / (scale + bar) - scale / (scale + 2 * bar)
    second = reached * math.exp(-(a - b) / scale) * both
    return np.array([1 - reached * missed, second, reached * missed - second])


def _search(bar: float, scale: float, pair: tuple[Rows, Rows]) -> Version:
    laws = [_law_of_first(rows, bar=bar, scale=scale) for rows in pair]
    return partial(_first_above, bar=bar, scale=scale), discrete_truth(*laws)


_PAIR = (np.array([0.0, -1.0]), np.array([1.0, -2.0]))

SEARCHES = (
    Defect(
        name="sparse vector: noise of monotone answers",
        pair=_PAIR,
        at=lambda e: Versions(
            faulty=_search(2 / e, 2 / e, _PAIR),
            fixed=_search(2 / e, 4 / e, _PAIR),
            event=compare("==", 1.0),
        ),
        output="index of the first answer above, 2 if none, shape (size,)",
        relation="every-answer",
        source="Lyu, Su, Li, PVLDB 10(6), 2017: half the noise is enough for monotone queries only",
        why="one answer rises while another falls, so threshold and answer both have to move",
    ),
)
