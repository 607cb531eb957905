"""Choosing an event on one pair: runs to train on, runs to select on, more of both if wanted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._claims import Claim
from hushed.auditing._events import Pick
from hushed.auditing._pairs import Pair
from hushed.auditing._picking import best_pick
from hushed.auditing._runs import Runs
from hushed.auditing._scores import Effort, fitted_scores

__all__ = ["Search"]

Floats = NDArray[np.float64]
Sides = tuple[Floats, Floats]

_CELLS_KEPT = 2**25  # of one split on one table, for all pairs together
_LEAST = 10


@dataclass(slots=True, kw_only=True)
class Search:
    """Runs on one pair that serve the choice of an event; never those of the final split.

    Parameters
    ----------
    pair : Pair
        Where to run.
    train, select : (ndarray, ndarray) or None, default None
        Encoded outputs on the two tables, shape (runs, columns) each. Scores are fitted on the
        first and thresholds chosen on the second, in every round.
    """

    pair: Pair
    train: Sides | None = None
    select: Sides | None = None

    def grow(self, runs: Runs, size: int, stage: str, *, alive: int) -> int:
        """Draw more, half to train and half to select.

        Parameters
        ----------
        runs : Runs
            The mechanism.
        size : int
            Runs on each table.
        stage : str
            Name of the stage, which chooses the streams.
        alive : int
            Pairs that share the memory.

        Returns
        -------
        int
            Runs drawn on each table; fewer than wanted where memory is full.
        """
        most = _CELLS_KEPT // (runs.encoder.columns * alive)
        have = len(self.train[0]) if self.train else 0
        half = min(max(_LEAST, size // 2), most - have)
        if half < 1:
            return 0
        self.train = _joined(self.train, runs.sample(self.pair, half, f"{stage}/train"))
        self.select = _joined(self.select, runs.sample(self.pair, half, f"{stage}/select"))
        return 2 * half

    def choose(
        self, runs: Runs, goal: tuple[Claim, int, float], *, effort: Effort = "quick"
    ) -> tuple[Pick, Floats]:
        """Fit scores on one half, choose the event on the other.

        Parameters
        ----------
        runs : Runs
            The mechanism.
        goal : (Claim, int, float)
            Claim, samples of the final split, error of its bound.
        effort : {"quick", "bins", "trees"}, default "quick"
            How many kinds of scores to try.

        Returns
        -------
        pick : Pick
            The best event.
        scores : ndarray
            Signed scores of the selection split on both tables, from which to make bins.

        Raises
        ------
        ValueError
            If nothing was drawn yet.
        """
        if self.train is None or self.select is None:
            raise ValueError("there are no runs to choose from yet")
        scores = fitted_scores(runs.encoder, *self.train, effort=effort, bits=runs.bits)
        claim, final, alpha = goal
        last = effort != "quick"  # in the rounds, runs are too few for more
        pick = best_pick(scores, *self.select, claim=claim, final=final, alpha=alpha, last=last)
        sign = 1.0 if pick.event.first else -1.0
        return pick, sign * np.concatenate([pick.event.score.of(side) for side in self.select])


def _joined(before: Sides | None, fresh: Sides) -> Sides:
    if before is None:
        return fresh
    return np.concatenate([before[0], fresh[0]]), np.concatenate([before[1], fresh[1]])
