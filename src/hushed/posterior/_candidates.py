"""Public candidates of a parameter, and what a public prior adds to their scores."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import Any

import numpy as np

from hushed._ground.checks import read_array
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.noise._grid import floor_log2

_MOST = 1_000_000
_FAR = 2.0**23  # ranges that a prior may add, so that sums of whole steps stay exact


def read_points(candidates: Any) -> Floats:
    """Read candidates as an array that nobody can write to."""
    points = np.array(read_array("candidates", candidates), dtype=np.float64)
    if points.ndim not in (1, 2) or not 2 <= len(points) <= _MOST or not points.size:
        raise ParameterError(
            f"candidates must be 2 to {_MOST} numbers, or as many rows of coordinates; got shape "
            f"{points.shape}",
            parameter="candidates",
        )
    if not np.isfinite(points).all():
        raise ParameterError("candidates must be finite", parameter="candidates")
    if len(np.unique(points, axis=0)) < len(points):
        raise ParameterError("candidates must differ from each other", parameter="candidates")
    points.flags.writeable = False
    return points


def read_weights(prior: Any, count: int) -> Floats:
    """Read public weights above 0, one for each candidate, the largest of them 1."""
    weights = read_array("prior", prior).astype(np.float64)
    if weights.shape != (count,) or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ParameterError(
            f"prior must be {count} finite weights above 0, one for each candidate: leave a "
            "candidate without weight out",
            parameter="prior",
        )
    return np.asarray(weights / weights.max())


def choose_step(width: float, bits: int) -> float:
    """Choose the power of two that log likelihoods are rounded to."""
    return math.ldexp(1.0, floor_log2(Fraction(width)) - bits)


def compute_offsets(weights: Floats, width: float, epsilon: float, step: float) -> Floats:
    """Score that a weight is worth, in whole steps: a rounded prior is another public prior."""
    worth = width / epsilon * np.log(weights)
    if not -worth.min() <= _FAR * width:
        raise ParameterError(
            "the prior is too uneven for so small an epsilon: leave its smallest weights out",
            parameter="prior",
        )
    return np.asarray(np.rint(worth / step) * step)


def digest_points(points: Floats, weights: Floats | None) -> str:
    """Fingerprint of candidates and prior."""
    facts = (points.tolist(), None if weights is None else weights.tolist())
    return hashlib.sha256(repr(facts).encode()).hexdigest()
