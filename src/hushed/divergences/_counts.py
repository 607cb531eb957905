"""Counts of two samples: reading, checking, aligning, and grouping symbols that look alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of
from hushed._ground.printing import as_given
from hushed.errors import ParameterError

Model = Literal["fixed", "poisson"]
Counts = ArrayLike | Mapping[Any, float]
Column = NDArray[np.int64] | NDArray[np.float64]
Columns = tuple[Column, ...]
_LARGEST = 2**53
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tuples:
    """Distinct tuples of counts: a symbol's score depends on nothing else."""

    columns: Columns  # counts, one column per sample, or known probabilities
    multiplicity: NDArray[np.int64]  # symbols that share the tuple

    @classmethod
    def group(cls, columns: Columns) -> Tuples:
        """Group symbols by their counts; memory grows linearly with their number."""
        seen = np.zeros(len(columns[0]), dtype=bool)
        for column in columns:
            seen |= column != 0
        kept = tuple(column[seen] for column in columns)
        if not len(kept[0]):
            return cls(columns=kept, multiplicity=np.zeros(0, dtype=np.int64))
        keys = kept[0]
        for column in kept[1:]:
            keys = _paired(keys, column)
        _, first, multiplicity = np.unique(keys, return_index=True, return_counts=True)
        return cls(columns=tuple(column[first] for column in kept), multiplicity=multiplicity)


def _paired(first: Column, second: Column) -> NDArray[np.int64]:
    """One whole number for each distinct pair; ranks where the numbers themselves do not fit."""
    whole_numbers = first.dtype.kind == second.dtype.kind == "i"
    if whole_numbers and (int(first.max()) + 1) * (int(second.max()) + 1) < 2**62:
        return np.asarray(first * (int(second.max()) + 1) + second)
    ranks = [np.unique(column, return_inverse=True)[1] for column in (first, second)]
    return np.asarray(ranks[0] * (int(ranks[1].max()) + 1) + ranks[1])


@called_as('hs.count_outcomes(["yes", "no", "yes"])')
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
            "arrays into tuples first",
            parameter="outcomes",
        ) from failure
    return dict(counted)  # type: ignore[arg-type]


def align(p: Counts, q: Counts) -> tuple[ArrayLike, ArrayLike]:
    """Two columns over one alphabet, not yet checked."""
    if isinstance(p, Mapping) and isinstance(q, Mapping):
        keys = dict.fromkeys((*p, *q))
        return [p.get(key, 0) for key in keys], [q.get(key, 0) for key in keys]
    if isinstance(p, Mapping) or isinstance(q, Mapping):
        raise ParameterError("give both sides as arrays or both as mappings, not one of each")
    return p, q


def whole(counts: ArrayLike, name: str) -> NDArray[np.int64]:
    """Read counts as integers."""
    array = _numbers(counts, name)
    if not bool(np.all((array >= 0) & (array <= _LARGEST))):
        raise ParameterError(f"{name} must lie in [0, 2**53] and not be NaN", parameter=name)
    if array.dtype.kind == "f" and not bool(np.all(array == np.floor(array))):
        raise ParameterError(
            f"{name} must be whole numbers: give counts, not shares", parameter=name
        )
    return array.astype(np.int64)


def _numbers(values: ArrayLike, name: str) -> NDArray[Any]:
    """One-dimensional real numbers, at least one."""
    try:
        array = np.asarray(values)
    except ValueError as failure:
        raise ParameterError(
            f"{name} must be one-dimensional, not ragged", parameter=name
        ) from failure
    if array.ndim != 1 or array.size == 0:
        raise ParameterError(
            f"{name} must be one-dimensional with at least one symbol, got shape {array.shape}",
            parameter=name,
        )
    if array.dtype.kind not in "iuf":
        raise ParameterError(
            f"{name} must be real numbers, got dtype {array.dtype}", parameter=name
        )
    return array


def shares(probabilities: ArrayLike, name: str) -> NDArray[np.float64]:
    """Read known probabilities as floats."""
    array = _numbers(probabilities, name).astype(np.float64)
    if not bool(np.all((array >= 0) & (array <= 1))) or array.sum() > 1 + 1e-9:
        raise ParameterError(
            f"{name} must be probabilities: in [0, 1], with a sum of at most 1", parameter=name
        )
    return array


def read_sizes(
    samples: float | tuple[float, float] | None,
    totals: tuple[int, int],
    known: tuple[bool, bool],
    model: Model,
) -> tuple[float, float]:
    """Sample sizes of the two sides."""
    require_one_of("model", model, get_args(Model))
    if samples is None and model == "poisson":
        raise ParameterError("Poisson counts do not tell the expected sample size: give samples=")
    given = totals if samples is None else samples
    sizes = tuple(given) if isinstance(given, tuple | list) else (given, given)
    if len(sizes) != 2:
        raise ParameterError(
            f"samples must be one number or a pair, got {len(sizes)} numbers", parameter="samples"
        )
    checked = [
        1.0 if exact else _size(size, total, side, model)
        for size, total, exact, side in zip(sizes, totals, known, "pq", strict=True)
    ]
    return checked[0], checked[1]


def _size(size: float, total: int, side: str, model: Model) -> float:
    if np.asarray(size).dtype.kind not in "iuf" or not 1 <= size <= _LARGEST:
        raise ParameterError(
            f"samples of {side} must be a number in [1, 2**53], "
            f"got {as_given(size)}: an empty sample "
            "says nothing"
        )
    if model == "fixed" and size != math.floor(size):
        raise ParameterError(f"samples of {side} must be a whole number, got {size}")
    if model == "fixed" and total > size:
        raise ParameterError(
            f"counts_{side} add up to more than the {size:.0f} samples of {side}: give the true "
            "sample size, or model='poisson' if it was random"
        )
    return float(size)
