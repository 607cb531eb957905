"""Events over batches of outputs, as plain functions to be bound with `functools.partial`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "above",
    "at_least",
    "at_most",
    "below",
    "equal",
    "flags_among",
    "released",
    "total_above",
    "withheld",
]


def at_least(outputs: NDArray[Any], /, *, bound: float) -> NDArray[np.bool_]:
    """Flag outputs of at least a bound.

    Parameters
    ----------
    outputs : ndarray, shape (size,)
        Outputs of a batch.
    bound : float
        Smallest output in the event.

    Returns
    -------
    ndarray of bool, shape (size,)
        Membership.
    """
    return np.asarray(outputs >= bound)


def above(outputs: NDArray[Any], /, *, bound: float) -> NDArray[np.bool_]:
    """Flag outputs above a bound.

    Parameters
    ----------
    outputs : ndarray, shape (size,)
        Outputs of a batch.
    bound : float
        Largest output outside the event.

    Returns
    -------
    ndarray of bool, shape (size,)
        Membership.
    """
    return np.asarray(outputs > bound)


def at_most(outputs: NDArray[Any], /, *, bound: float) -> NDArray[np.bool_]:
    """Flag outputs of at most a bound.

    Parameters
    ----------
    outputs : ndarray, shape (size,)
        Outputs of a batch.
    bound : float
        Largest output in the event.

    Returns
    -------
    ndarray of bool, shape (size,)
        Membership.
    """
    return np.asarray(outputs <= bound)


def below(outputs: NDArray[Any], /, *, bound: float) -> NDArray[np.bool_]:
    """Flag outputs below a bound.

    Parameters
    ----------
    outputs : ndarray, shape (size,)
        Outputs of a batch.
    bound : float
        Smallest output outside the event.

    Returns
    -------
    ndarray of bool, shape (size,)
        Membership.
    """
    return np.asarray(outputs < bound)


def equal(outputs: NDArray[Any], /, *, to: float) -> NDArray[np.bool_]:
    """Flag outputs equal to a number.

    Parameters
    ----------
    outputs : ndarray, shape (size,)
        Outputs of a batch.
    to : float
        The number.

    Returns
    -------
    ndarray of bool, shape (size,)
        Membership.
    """
    return np.asarray(outputs == to)


def withheld(outputs: NDArray[Any], /) -> NDArray[np.bool_]:
    """Flag outputs that were withheld or are no number.

    Parameters
    ----------
    outputs : ndarray of float, shape (size,)
        Outputs of a batch.

    Returns
    -------
    ndarray of bool, shape (size,)
        True for NaN.
    """
    return np.asarray(np.isnan(outputs))


def released(outputs: NDArray[Any], /) -> NDArray[np.bool_]:
    """Flag outputs that were not withheld.

    Parameters
    ----------
    outputs : ndarray of float, shape (size,)
        Outputs of a batch.

    Returns
    -------
    ndarray of bool, shape (size,)
        False for NaN.
    """
    return np.asarray(~np.isnan(outputs))


def total_above(outputs: NDArray[Any], /, *, bound: float) -> NDArray[np.bool_]:
    """Flag outputs whose coordinates add up to more than a bound.

    Parameters
    ----------
    outputs : ndarray, shape (size, k)
        Outputs of a batch.
    bound : float
        Largest sum outside the event.

    Returns
    -------
    ndarray of bool, shape (size,)
        Membership.
    """
    return np.asarray(outputs.sum(axis=1) > bound)


def flags_among(outputs: NDArray[Any], /, *, members: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Flag outputs that are one of some sequences of flags.

    Parameters
    ----------
    outputs : ndarray, shape (size, k) or more columns
        Outputs whose first k columns are flags 1, 0 or -1.
    members : ndarray of int8, shape (sequences, k)
        The sequences of the event; k of at most 16.

    Returns
    -------
    ndarray of bool, shape (size,)
        Membership.
    """
    k = members.shape[1]
    digits = 3 ** np.arange(k)
    table = np.zeros(3**k, dtype=np.bool_)
    table[(members.astype(np.int64) + 1) @ digits] = True
    return np.asarray(table[(outputs[:, :k].astype(np.int64) + 1) @ digits])
