"""Defects in sample-and-aggregate: what the calls on the blocks know of each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.zoo._curves import discrete_truth
from hushed.zoo._events import compare
from hushed.zoo._record import Rows
from hushed.zoo.defects._defect import Defect, Version, Versions

_BLOCKS = 21
Answers = Callable[[Rows], NDArray[np.float64]]


def _own(rows: Rows) -> NDArray[np.float64]:
    """Answer for each block, of one row, with its largest value."""
    return np.array([block.max() for block in rows[:, None]])


def _with_all_before(rows: Rows) -> NDArray[np.float64]:
    """Answer with the largest value that the function, which keeps it, has seen so far."""
    return np.asarray(np.maximum.accumulate(rows))


def _law(rows: Rows, answers: Answers, epsilon: float) -> NDArray[np.float64]:
    """Probabilities of 0 and 1: each block that must answer otherwise costs half of epsilon."""
    ones = float((answers(rows) == 1).sum())
    short = np.maximum(rows.size / 2 - np.array([rows.size - ones, ones]), 0.0)
    weights = np.exp(-epsilon * short / 2)
    return np.asarray(weights / weights.sum())


def _draw(
    rows: Rows, rng: np.random.Generator, size: int, /, *, answers: Answers, epsilon: float
) -> NDArray[np.float64]:
    ones = rng.random(size) < _law(rows, answers, epsilon)[1]
    return np.asarray(ones, dtype=np.float64)


_PAIR = (np.r_[1.0, np.zeros(_BLOCKS - 1)], np.zeros(_BLOCKS))


def _version(answers: Answers, epsilon: float) -> Version:
    laws = [_law(rows, answers, epsilon) for rows in _PAIR]
    return partial(_draw, answers=answers, epsilon=epsilon), discrete_truth(*laws)


BLOCKS = (
    Defect(
        name="blocks: a function that keeps what it has seen",
        pair=_PAIR,
        at=lambda e: Versions(
            faulty=_version(_with_all_before, e),
            fixed=_version(_own, e),
            event=compare("==", 1.0),
        ),
        output="middle answer of 21 blocks, 0 or 1, shape (size,)",
        source=(
            "defect class: Nissim, Raskhodnikova, Smith, STOC 2007, need calls that share nothing; "
            "a cache, a global or a file does"
        ),
        why="one row moves the answer of every block that is asked after its own, not one answer",
    ),
)
