"""Outcomes of an audit in groups, those that speak most for one input last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._bounds import Counts
from hushed.auditing._goal import AuditedClaim
from hushed.divergences import DeltaEstimate, estimate_delta

MOST_GROUPS = 49
_CURVE = 41

Outcomes = tuple[tuple[int, ...], tuple[int, ...]]


def find_event(groups: Sequence[tuple[int, ...]], hits: int, other_hits: int) -> int:
    """Find the first group of an event, which is made up of the last ones; there is one, or not."""
    likelier = other = 0
    found = len(groups)
    for i in range(len(groups) - 1, -1, -1):
        likelier, other = likelier + groups[i][0], other + groups[i][1]
        if (likelier, other) == (hits, other_hits):
            found = i
    return found


def are_of(outcomes: Outcomes, counts: Counts) -> bool:
    """Whether groups are all the runs that were counted, with the event's in the last groups."""
    likelier, other = outcomes
    if len(likelier) != len(other) or not 0 < len(likelier) <= MOST_GROUPS:
        return False
    if not all(type(each) is int and each >= 0 for each in (*likelier, *other)):
        return False
    if (sum(likelier), sum(other)) != (counts.samples, counts.other_samples):
        return False
    start = find_event(tuple(zip(likelier, other, strict=True)), *_hits(counts))
    return (sum(likelier[start:]), sum(other[start:])) == _hits(counts)


def _hits(counts: Counts) -> tuple[int, int]:
    return int(counts.hits), int(counts.other_hits)


def estimate_curve(bins: NDArray[np.int64], claim: AuditedClaim, shown: float) -> DeltaEstimate:
    """Plug-in estimates of the delta curve in the direction of the event.

    `bins` are of shape (2, groups), the likelier table first. The curve goes a little further than
    the epsilon that is `shown`, and contains the claimed one.
    """
    at = claim.curve_epsilon
    end = min(100.0, max(2 * at, 1.5 * shown, 0.1))
    grid = np.unique(np.append(np.linspace(0.0, end, _CURVE), at))
    ahead, behind = bins
    return estimate_delta(behind, ahead, grid, method="plug-in")


def read_outcomes(told: Any) -> Outcomes | None:
    """Read groups of outcomes from a record, if it has some."""
    if told is None:
        return None
    if {*told} != {"likelier", "other"}:
        raise KeyError("outcomes")
    return tuple(told["likelier"]), tuple(told["other"])
