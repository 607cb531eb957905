"""Whether the runs of one call of a batch mechanism are independent, as every bound takes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hushed.auditing._mechanisms import Source
from hushed.auditing._outputs import Encoder
from hushed.errors import BadFunction

_CALLS, _SIZE = 16, 256
_CHANCE = 1e-9  # that independent runs are refused


def require_independent(
    source: Source, encoder: Encoder, rows: Any, rng: np.random.Generator
) -> None:
    """Refuse a batch mechanism whose calls on one table are apart beyond all chance.

    It draws something once for all runs of a call, or changes from call to call: then many runs are
    few draws, which may accuse a mechanism that keeps its claim, or pass one that does not.

    Notes
    -----
    By the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant the empirical
    distribution of n independent numbers is farther than t from their law with probability
    ``2 exp(-2 n t^2)`` at most; two calls are then ``2 t`` apart at most.
    """
    if source.kind != "batch":
        return
    calls = [encoder.encode(source.draw(rows, rng, _SIZE)) for _ in range(_CALLS)]
    chance = _CHANCE / (_CALLS * encoder.columns)
    allowed = 2 * math.sqrt(math.log(2 / chance) / (2 * _SIZE))
    for column in range(encoder.columns):
        parts = [np.sort(np.nan_to_num(call[:, column], nan=np.inf)) for call in calls]
        levels = np.unique(parts)
        below = np.array([np.searchsorted(part, levels, side="right") for part in parts])
        if np.ptp(below, axis=0).max() > allowed * _SIZE:
            raise BadFunction(
                "the runs of one call are not independent of each other: several calls on the same "
                "table are farther apart than chance allows. Draw all noise anew for each run, in "
                "a function as with rng.laplace(size=size), keep nothing from call to call, and "
                "return nothing that tells the call, as the time does"
            )
