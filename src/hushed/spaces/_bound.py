"""A bound on how far an answer moves between neighbouring tables, and its norm."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours

Norm = Literal["l1", "l2", "sup", "range"]
NORMS: tuple[Norm, ...] = ("l1", "l2", "sup", "range")


class SensitivityBound(Protocol):
    """A bound on how far an answer moves, as a mechanism needs it: proven or sampled."""

    @property
    def value(self) -> float:
        """Largest movement of the answer."""

    @property
    def norm(self) -> Norm:
        """Norm in which it is measured."""

    @property
    def neighbours(self) -> Neighbours:
        """Relation between the two tables."""

    def guarantee(self, epsilon: float, delta: float = 0.0) -> Guarantee:
        """Promise of a mechanism that loses at most this much when the answer moves that far.

        Parameters
        ----------
        epsilon : float
            Its epsilon, in nats.
        delta : float, optional
            Its delta.

        Returns
        -------
        Guarantee
            With the gamma, the neighbours and the unit of the sensitivity.
        """


@called_as('hs.spaces.size([1.0, -2.0], "l1")')
def size(difference: NDArray[np.float64], norm: Norm, axis: int = -1) -> NDArray[np.float64]:
    """Size of a difference of two answers.

    Parameters
    ----------
    difference : ndarray of float, shape (..., d)
        Answers subtracted; infinite where that left the doubles.
    norm : {"l1", "l2", "sup", "range"}
        Sum of absolute values; Euclidean length; largest absolute value; largest minus
        smallest value (a seminorm: a shift of all coordinates has size 0).
    axis : int, default -1
        Axis that holds the coordinates.

    Returns
    -------
    ndarray of float, shape (...)
        Sizes, 0 or more, to double precision; infinite if a coordinate is.
    """
    if norm == "range":
        most, least = difference.max(axis=axis), difference.min(axis=axis)
        bounded = np.isfinite(most) & np.isfinite(least)
        return np.asarray(np.subtract(most, least, where=bounded, out=np.full_like(most, np.inf)))
    magnitude = np.abs(difference)
    if norm == "l1":
        return np.asarray(magnitude.sum(axis=axis))
    largest = magnitude.max(axis=axis)
    if norm == "sup":
        return np.asarray(largest)
    # Scaled, so that tiny and huge coordinates neither underflow to zero nor overflow.
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    scaled = magnitude / np.expand_dims(scale, axis)
    return np.asarray(scale * np.sqrt((scaled * scaled).sum(axis=axis)))


def require_own_statistic(function: Any, sensitivity: Any) -> None:
    """Refuse a function other than the statistic whose global sensitivity is given.

    Raises
    ------
    ParameterError
        If it is another one, or another range of the same one.
    """
    statistic = getattr(sensitivity, "statistic", None)
    if statistic is not None and function != statistic:
        raise ParameterError(
            "the sensitivity is that of a statistic, and bounds no other function: release that "
            "statistic, or state what you can prove of this one with hs.proven_sensitivity"
        )
