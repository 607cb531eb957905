"""Whether the rows of a user's population look independent, by rank tests on drawn tables.

Rows that come in order, or group after group, are replaced by rows unlike the average one. Rows
that have something in common are nearer to each other than independent ones. Either way the pairs
move less than a person's row does.
"""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from hushed._ground.types import Floats
from hushed.errors import BadRows

_FARTHEST = 7.5  # standard deviations: with chance 1e-13 in independent rows
_LEAST = 1e-13
_FIRST, _MOST_COLUMNS = 1000, 1000
_WHOLE, _FEWER = 30, 100  # of columns after the first ones, fewer rows
_FEW = 12  # rows
_PEAKED = 17  # tables that are compared where values are rare: of more, they would look alike
_NUMBERS = (bool, int, float, Decimal, np.number)
_PLAIN = (str, bytes, *_NUMBERS, type(None), np.generic, date, time, timedelta)


def check_independence(tables: list[list[Any]]) -> None:
    """Refuse tables, each a list of columns, whose rows come in order or have a part in common."""
    for at, held in enumerate(_choose_columns(list(zip(*tables, strict=True)))):
        if at >= _WHOLE:
            held = tuple(each[:: -(-len(each) // _FEWER)] for each in held)  # noqa: PLW2901
        ranks = _rank(list(held))
        if ranks is not None and _is_peaked(ranks):
            ranks = _rank(list(held[:_PEAKED]))
        if ranks is None:
            continue
        spread = np.abs(ranks - ranks.mean())
        if max(_measure_trend(ranks), _measure_trend(spread)) > _FARTHEST:
            raise BadRows(
                "the population gives its rows in an order (sorted, or group after group), so that "
                "the rows which are exchanged are unlike the others: let draw(rng, count) shuffle "
                "them, as rng.permutation does"
            )
        found = _compare_tables(ranks), _compare_tables(spread)
        if min(even for _, even in found) < _LEAST:
            raise BadRows(
                "rows of one draw of the population are spread more evenly than independent rows, "
                "as strata and quasi-random numbers are: draw(rng, count) must give independent "
                "rows, drawn from rng"
            )
        if min(alike for alike, _ in found) < _LEAST:
            raise BadRows(
                "rows of one draw of the population are more alike than rows of two, as if they "
                "had a part in common: draw(rng, count) must give independent rows"
            )


def _choose_columns(columns: list[Any]) -> list[Any]:
    """Choose the first columns, and of very many others some that are evenly spread."""
    if len(columns) <= _MOST_COLUMNS:
        return columns
    places = np.linspace(_WHOLE, len(columns) - 1, _MOST_COLUMNS - _WHOLE).astype(int)
    return columns[:_WHOLE] + [columns[place] for place in places]


def _rank(columns: list[Any]) -> Floats | None:
    """Ranks of a column of all tables together, shape (tables, rows); None if it tells nothing."""
    arrays = [_read(each) for each in columns]
    held = [each for each in arrays if each is not None]
    if len(held) < len(arrays) or len({_kind(each) for each in held}) > 1:
        return None
    shape = len(held), len(held[0])
    values, places, counts = np.unique(
        np.concatenate(held), return_inverse=True, return_counts=True
    )
    table = places.reshape(shape)
    if len(values) < 2 or (table == table[0]).all():  # constant, or a counter
        return None
    middles = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(middles[table], dtype=np.float64)


def _kind(found: Any) -> Any:
    """Shape, and kind: numbers are of one, for tables with and without missing cells."""
    return found.shape, "f" if found.dtype.kind in "biuf" else found.dtype.kind


def _read(column: Any) -> Any:
    """Values that have an order, of rows evenly spread; None if there are others."""
    step = -(-len(column) // _FIRST)
    part = column[::step]
    found = part if isinstance(part, np.ndarray) else None
    if found is None or found.dtype.kind == "O":
        listed = [None if type(each).__name__ == "NAType" else each for each in part]
        if not all(isinstance(each, _PLAIN) for each in listed):
            return None
        real = all(each is None or isinstance(each, _NUMBERS) for each in listed)
        found = np.array(listed, dtype=np.float64) if real else np.array(list(map(str, listed)))
    return found if found.ndim == 1 and found.dtype.kind in "biufmMUS" else None


def _measure_trend(ranks: Floats) -> float:
    """Tell by how many standard deviations ranks go up or down with the place of a row.

    Notes
    -----
    In exchangeable rows the correlation of ranks with places has the variance 1 / (rows - 1),
    with ties as without.
    """
    places = np.arange(ranks.shape[1]) - (ranks.shape[1] - 1) / 2
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    sizes = np.sqrt((centred**2).sum(axis=1) * (places**2).sum())
    used = sizes > 0
    if not used.any() or ranks.shape[1] < 2:
        return 0.0
    correlations = centred[used] @ places / sizes[used]
    return float(abs(correlations.sum()) * np.sqrt((ranks.shape[1] - 1) / used.sum()))


def _compare_tables(ranks: Floats) -> tuple[float, float]:
    """Chances of tables that differ so much, and so little, of independent rows (Kruskal, Wallis).

    Few rows, and rows of few values, tell nothing of differing too little.

    Notes
    -----
    ``H = (N - 1) sum_k n (mean_k - mean)^2 / sum (rank - mean)^2`` is nearly chi-square with as
    many degrees of freedom as there are tables, less one.
    """
    from scipy.special import gammainc, gammaincc  # noqa: PLC0415

    tables, rows = ranks.shape
    total = ((ranks - ranks.mean()) ** 2).sum()
    if not total:
        return 1.0, 1.0
    between = rows * ((ranks.mean(axis=1) - ranks.mean()) ** 2).sum()
    height = (ranks.size - 1) * between / total
    many = rows >= _FEW and len(np.unique(ranks)) * 2 > ranks.size  # halves come of a spread
    even = float(gammainc((tables - 1) / 2, height / 2)) if many else 1.0
    return float(gammaincc((tables - 1) / 2, height / 2)), even


def _is_peaked(ranks: Floats) -> bool:
    """Whether some ranks are so rare that those of independent rows are not spread as normal ones.

    Notes
    -----
    The fourth moment of normal numbers is 3 times their squared variance.
    """
    squares = (ranks - ranks.mean()) ** 2
    return bool((squares**2).mean() > 3 * squares.mean() ** 2)
