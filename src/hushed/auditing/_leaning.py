"""What a score says of an event, where counts alone are too few to say it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["fitted_slope", "leaned"]

Floats = NDArray[np.float64]

_TRUST = 0.3  # relative error expected of a score that is on scale
_LUCK = 4.0  # standard errors from which on counts overrule the score
_ENOUGH = 200_000
_STEEPEST = 3.0
_NEWTON_STEPS = 20


def fitted_slope(first: NDArray[np.int64], second: NDArray[np.int64], guess: Floats) -> float:
    """Put guessed log ratios on scale: slope of a logistic regression, by Newton's method.

    Parameters
    ----------
    first, second : ndarray of int, shape (outcomes,)
        How often each outcome was seen on the two tables.
    guess : ndarray, shape (outcomes,)
        Its log ratio, up to a factor.

    Returns
    -------
    float
        The factor; from 0 to 3.
    """
    from scipy import special  # noqa: PLC0415

    total, offset, slope = first + second, math.log(first.sum() / second.sum()), 0.0
    for _ in range(_NEWTON_STEPS):
        share = special.expit(slope * guess + offset)
        curvature = float((total * share * (1 - share)) @ guess**2) + 1e-9
        step = float((first - total * share) @ guess) / curvature
        slope += min(1.0, max(-1.0, step))
    return min(_STEEPEST, max(0.0, slope))


def leaned(ahead: Floats, behind: Floats, cuts: Floats, shares: tuple[Floats, Floats]) -> Floats:
    """Shares above cuts on the rarer table, leaned on what the score says of the log ratio.

    Parameters
    ----------
    ahead, behind : ndarray, shape (runs,)
        Scores on the likelier table and the other one, each sorted: log ratios, up to a factor.
    cuts : ndarray, shape (cuts,)
        Thresholds.
    shares : (ndarray, ndarray), shape (cuts,) each
        Shares of both that reach them.

    Returns
    -------
    ndarray, shape (cuts,)
        What the share of ``behind`` is believed to be. The log ratio of the counts is weighed
        against that of the score as independent measurements are; its own scatter decides,
        and it wins where the two are further apart than luck explains.

    Notes
    -----
    Without this, the best of some thousand events of a weak mechanism is one whose counts were
    lucky. Guides the choice only: the final split bounds what was chosen.
    """
    from scipy import special  # noqa: PLC0415

    count = len(ahead)
    one, other = (np.maximum(each, 0.5 / count) for each in shares)
    seen, said = np.log(one / other), _said(ahead, behind, cuts)
    scatter = ((1 - one) / one + (1 - other) / other) / count
    # Counts against the score, as a binomial split: z squared, above what luck explains.
    split, both = special.expit(said), count * (one + other)
    luck = _LUCK**2 * both * split * (1 - split) / np.maximum((count * one - both * split) ** 2, 1)
    beyond = (seen - said) ** 2 * np.maximum(0.0, 1 - luck)
    apart = np.maximum((_TRUST * said) ** 2, beyond) + 1e-300
    weight = apart / (apart + scatter)
    return np.asarray(one * np.exp(-(weight * seen + (1 - weight) * said)))


def _said(ahead: Floats, behind: Floats, cuts: Floats) -> Floats:
    """Log ratio of the shares above cuts: the mean of exp(-score) over those of ``ahead``."""
    some = [each[:: max(1, len(each) // _ENOUGH)] for each in (ahead, behind)]
    label = np.repeat([1, 0], [len(each) for each in some])
    slope = fitted_slope(label, 1 - label, np.concatenate(some))
    at = np.minimum(np.searchsorted(ahead, cuts), len(ahead) - 1)
    likelier = np.cumsum(np.exp(-slope * ahead)[::-1])[::-1]
    return np.asarray(np.log((len(ahead) - at) / likelier[at]))
