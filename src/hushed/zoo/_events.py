"""Events over batches of outputs: comparisons with a bound, withheld answers, lists of flags."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed.zoo._record import Event

_SIGNS = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}
Reading = Callable[[NDArray[Any]], NDArray[Any]]


def compare(
    sign: Literal[">=", ">", "<=", "<", "=="], bound: float, *, of: Reading | None = None
) -> Event:
    """Make the event that outputs, or what ``of`` reads off them, compare so with a bound."""
    return partial(_compared, sign=sign, bound=bound, of=of)


def _compared(
    outputs: NDArray[Any], /, *, sign: str, bound: float, of: Reading | None
) -> NDArray[np.bool_]:
    return np.asarray(_SIGNS[sign](outputs if of is None else of(outputs), bound))


def withheld(outputs: NDArray[Any], /) -> NDArray[np.bool_]:
    """Flag outputs that were withheld or are no number: NaN."""
    return np.asarray(np.isnan(outputs))


def released(outputs: NDArray[Any], /) -> NDArray[np.bool_]:
    """Flag outputs that were not withheld."""
    return np.asarray(~np.isnan(outputs))


def flags_among(outputs: NDArray[Any], /, *, members: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Flag outputs whose first k columns are one of some sequences of k flags 1, 0 or -1."""
    k = members.shape[1]
    digits = 3 ** np.arange(k)
    table = np.zeros(3**k, dtype=np.bool_)
    table[(members.astype(np.int64) + 1) @ digits] = True
    return np.asarray(table[(outputs[:, :k].astype(np.int64) + 1) @ digits])
