"""Counts of two samples: reading, checking, aligning, and grouping symbols that look alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed.errors import ParameterError

__all__ = ["Counts", "Model", "Tuples", "align", "count_outcomes", "read_sizes", "whole"]

Model = Literal["fixed", "poisson"]
Counts = ArrayLike | Mapping[Hashable, int]
Columns = tuple[NDArray[np.int64], ...]
_LARGEST = 2**53
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tuples:
    """Distinct tuples of counts: a symbol's score depends on nothing else.

    Parameters
    ----------
    columns : tuple of ndarray of int, shape (n,) each
        Counts; one column per sample.
    multiplicity : ndarray of int, shape (n,)
        Symbols that share the tuple.
    """

    columns: Columns
    multiplicity: NDArray[np.int64]

    @classmethod
    def group(cls, columns: Columns) -> Tuples:
        """Group symbols by their counts; memory grows linearly with their number.

        Parameters
        ----------
        columns : tuple of ndarray of int, shape (symbols,) each
            Counts of every symbol.

        Returns
        -------
        Tuples
            Distinct tuples without the one that is zero throughout, which every estimator
            scores 0.
        """
        seen = np.zeros(len(columns[0]), dtype=bool)
        for column in columns:
            seen |= column != 0
        kept = tuple(column[seen] for column in columns)
        if not len(kept[0]):
            return cls(columns=kept, multiplicity=np.zeros(0, dtype=np.int64))
        keys = np.zeros(len(kept[0]), dtype=np.int64)
        for column in kept:  # ranks, not counts, so that the key cannot overflow
            levels, rank = np.unique(column, return_inverse=True)
            keys = np.unique(keys * len(levels) + rank, return_inverse=True)[1]
        _, first, multiplicity = np.unique(keys, return_index=True, return_counts=True)
        return cls(columns=tuple(column[first] for column in kept), multiplicity=multiplicity)


def count_outcomes(outcomes: Iterable[_Key]) -> dict[_Key, int]:
    """Count raw outcomes, ready for `estimate_delta`.

    Parameters
    ----------
    outcomes : iterable of hashable
        One outcome per run of the mechanism. Values that compare equal are one symbol; all
        NaN are one symbol.

    Returns
    -------
    dict
        Times each outcome was seen.

    Raises
    ------
    ParameterError
        If an outcome cannot be hashed, such as a list: turn it into a tuple first.

    Examples
    --------
    >>> count_outcomes(["a", "b", "a"])
    {'a': 2, 'b': 1}
    """
    if isinstance(outcomes, np.ndarray):
        outcomes = outcomes.tolist()
    counted: Counter[Hashable] = Counter()
    try:
        counted.update(math.nan if value != value else value for value in outcomes)  # noqa: PLR0124
    except (TypeError, ValueError) as failure:
        raise ParameterError(
            "outcomes must be hashable, such as numbers, strings or tuples; turn lists and "
            "arrays into tuples first"
        ) from failure
    return dict(counted)  # type: ignore[arg-type]


def align(p: Counts, q: Counts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two columns of counts over one alphabet.

    Parameters
    ----------
    p, q : array-like of int, shape (symbols,), or mapping from outcome to int
        Counts; arrays are matched by position, mappings by key (a missing key counts 0).

    Returns
    -------
    tuple of ndarray of int, shape (symbols,)
        The counts.

    Raises
    ------
    ParameterError
        If the kinds or lengths differ, if there is no symbol, or if a count is not a whole
        number of at least 0.
    """
    if isinstance(p, Mapping) != isinstance(q, Mapping):
        raise ParameterError("give both sides as arrays or both as mappings, not one of each")
    if isinstance(p, Mapping) and isinstance(q, Mapping):
        keys = dict.fromkeys((*p, *q))
        p, q = [p.get(key, 0) for key in keys], [q.get(key, 0) for key in keys]
    first, second = whole(p, "counts_p"), whole(q, "counts_q")
    if len(first) != len(second):
        raise ParameterError(
            f"counts_p has {len(first)} symbols and counts_q has {len(second)}: give both over "
            "one alphabet, or as mappings from outcome to count"
        )
    return first, second


def whole(counts: ArrayLike, name: str) -> NDArray[np.int64]:
    """Counts as integers.

    Parameters
    ----------
    counts : array-like, shape (symbols,)
        Whole numbers in [0, 2**53], in any numeric type.
    name : str
        What to call them in an error.

    Returns
    -------
    ndarray of int, shape (symbols,)
        The counts.

    Raises
    ------
    ParameterError
        If the shape is wrong or a count is no whole number in range.
    """
    array = np.asarray(counts)
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(
            f"{name} must be one-dimensional with at least one symbol, got shape {array.shape}"
        )
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"{name} must be numbers, got dtype {array.dtype}")
    if not bool(np.all((array >= 0) & (array <= _LARGEST))):
        raise ParameterError(f"{name} must lie in [0, 2**53] and not be NaN")
    if array.dtype.kind == "f" and not bool(np.all(array == np.floor(array))):
        raise ParameterError(f"{name} must be whole numbers: give counts, not shares")
    return array.astype(np.int64)


def read_sizes(
    samples: float | tuple[float, float] | None, totals: tuple[int, int], model: Model
) -> tuple[float, float]:
    """Sample sizes of the two sides.

    Parameters
    ----------
    samples : float, (float, float) or None
        Size of both, or of each side; None takes the totals of the counts.
    totals : (int, int)
        Sums of the counts.
    model : {"fixed", "poisson"}
        Under ``"poisson"`` the sizes are the expected ones and have to be given.

    Returns
    -------
    (float, float)
        Sizes, 1 or more.

    Raises
    ------
    ParameterError
        If a size is missing, not a number of at least 1, or smaller than the counts allow.
    """
    if model not in get_args(Model):
        raise ParameterError(f"model must be one of {get_args(Model)}, got {model!r}")
    if samples is None:
        if model == "poisson":
            raise ParameterError(
                "Poisson counts do not tell the expected sample size: give samples="
            )
        samples = (float(totals[0]), float(totals[1]))
    sizes = samples if isinstance(samples, tuple | list) else (samples, samples)
    if len(sizes) != 2:
        raise ParameterError(f"samples must be one number or a pair, got {len(sizes)} numbers")
    for size, total, side in zip(sizes, totals, "pq", strict=True):
        if not 1 <= size <= _LARGEST:
            raise ParameterError(f"samples of {side} must lie in [1, 2**53], got {size}")
        if model == "fixed" and size != math.floor(size):
            raise ParameterError(f"samples of {side} must be a whole number, got {size}")
        if model == "fixed" and total > size:
            raise ParameterError(
                f"counts_{side} add up to more than the {size:.0f} samples of {side}: give the "
                "true sample size, or model='poisson' if it was random"
            )
    return float(sizes[0]), float(sizes[1])
