"""Bins of numbers: where their edges are, and which bin each of many numbers is in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_Search = Callable[[Floats], NDArray[Any]]

_ATOMS_OF = 20_000
_DEEPEST = 24
_LOG_ODDS = 0.25  # of rank, between edges of bins that are smoothed
_IN_THE_TAIL = 20
_SORTED = 2**16  # numbers that are sorted; of more, a sample and the two tails
_TAIL = 1 / 64  # share of each tail of which every number is known
_CELLS = 2**12
_WORTH_CELLS = 2**11  # numbers from which on cells are worth their tables
_TABLES = 256  # that are kept, of 100 kB each
_COMPARED = 12  # edges up to which comparing with each is the quickest
_SPLITS = 3  # of edges that lie in groups
_BLOCK = 2**14  # numbers that are looked at together, for they stay near the processor
_TOLD_APART = 4  # edges in one cell that are compared one by one
_TRIMS = (0, 2, 8, 24)  # edges at either end that are left out of the range of the cells


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantiles:
    """What is known of the order of a column: enough to choose edges, without sorting all of it.

    `known` are its numbers without NaN, in any order, `some` a sorted sample (all of them, if they
    are few), `low` and `high` the two tails, sorted and complete. `values` are the distinct numbers
    of a smaller sample, `counts` how often they are in it.
    """

    known: Floats
    some: Floats
    low: Floats
    high: Floats
    values: Floats
    counts: NDArray[np.int64]

    def choose(self, shares: Floats) -> Floats:
        """Numbers below which these shares lie: exact in the tails, from the sample between."""
        size = len(self.known)
        ranks = (shares * (size - 1)).astype(np.int64)
        found = self.some[(shares * (len(self.some) - 1)).astype(np.int64)]
        below, above = ranks < len(self.low), ranks >= size - len(self.high)
        found[below] = self.low[ranks[below]]
        found[above] = self.high[ranks[above] - size]
        return found


def read_quantiles(column: Floats) -> Quantiles:
    """Order a column as far as edges need it; numbers are drawn in no order, so every k-th serves.

    Notes
    -----
    The tails are complete because edges there stand for a few numbers each; between them an
    edge may lie a little off without harm.
    """
    missing = np.isnan(column)
    known = column[~missing] if missing.any() else column
    if len(known) <= _SORTED:
        some = low = high = known = np.sort(known)
    else:
        some = np.sort(known[:: len(known) // (_SORTED // 2)])
        low, high = _find_tails(known, some, int(_TAIL * len(known)))
    values, counts = _count_sorted(some[:: max(1, len(some) // _ATOMS_OF)])
    return Quantiles(known=known, some=some, low=low, high=high, values=values, counts=counts)


def _find_tails(numbers: Floats, some: Floats, count: int) -> tuple[Floats, Floats]:
    """Find the smallest and largest of many numbers, sorted, with the help of a sorted sample."""
    # Twice as far in the sample as they reach: that these are too few is all but impossible.
    far = min(len(some) - 1, 2 * count * len(some) // len(numbers))
    below, above = numbers[numbers <= some[far]], numbers[numbers >= some[-1 - far]]
    low, high = (each if len(each) >= count else numbers for each in (below, above))
    # Values that repeat may be most of the numbers, which are set apart before they are sorted.
    low, high = np.partition(low, count - 1)[:count], np.partition(high, -count)[-count:]
    return np.sort(low), np.sort(high)


def _count_sorted(numbers: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Distinct numbers among sorted ones, and how often each is there."""
    starts = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]])[: len(numbers)])
    return numbers[starts], np.diff(starts, append=len(numbers))


def choose_edges(column: Quantiles, bins: int, *, even: bool = False) -> Floats:
    """Edges at equal shares, halving towards the ends, and around values that repeat.

    Even ones lie at equal steps of the log odds of rank: for tails that fall exponentially these
    are equal steps of the number itself.
    """
    size = len(column.known)
    if not size:
        return np.zeros(1)
    values, counts = column.values, column.counts
    if len(values) <= max(64, bins):  # so few values that each may have a bin
        return find_values(column.known, values)
    if even:
        end = np.log(max(2.0, size / _IN_THE_TAIL))
        shares = 1 / (1 + np.exp(-np.arange(-end, end, _LOG_ODDS)))
    else:
        halving = 0.5 ** np.arange(np.log2(bins), min(_DEEPEST, np.log2(size / 8)))
        shares = np.concatenate([np.arange(1, bins) / bins, halving, 1 - halving])
    atoms = values[(counts > counts.sum() / (2 * bins)) & (counts >= 5)]
    # An edge at an atom and one at the next double: the bin between them holds the atom alone.
    return np.unique(np.concatenate([column.choose(shares), atoms, np.nextafter(atoms, np.inf)]))


def find_values(known: Floats, often: Floats) -> Floats:
    """All distinct numbers of a column without NaN, of which `often` (sorted) are most."""
    return np.union1d(often, known[find_places(known, often) == len(often)])


def find_places(column: Floats, known: Floats) -> NDArray[np.int64]:
    """Place of each number among sorted ones; of those that are not there, and NaN, their count."""
    if not len(known):
        return np.zeros(len(column), dtype=np.int64)
    at = np.clip(assign_bins(column, known), 1, len(known)) - 1
    at[known.take(at) != column] = len(known)
    return at


def assign_bins(column: Floats, edges: Floats) -> NDArray[np.int64]:
    """Bin of each number, from 0 to ``len(edges)``; NaN gets ``len(edges) + 1``."""
    at = np.empty(len(column), dtype=np.int64)
    find = _choose_search(edges, len(column))
    for start in range(0, len(column), _BLOCK):
        at[start : start + _BLOCK] = find(np.ascontiguousarray(column[start : start + _BLOCK]))
    missing = np.isnan(column)
    if missing.any():
        at[missing] = len(edges) + 1
    return at


def _choose_search(edges: Floats, size: int, splits: int = _SPLITS) -> _Search:
    """Quickest way to find the bins of so many numbers: one that tells the same as all others."""
    if 0 < len(edges) <= _COMPARED:
        return partial(_count_passed, edges)

    def plain(column: Floats) -> NDArray[np.int64]:
        return edges.searchsorted(column, side="right")

    if size < _WORTH_CELLS or not len(edges):
        return plain
    table = _build_cells(edges.tobytes())
    if table is not None:
        return table.assign
    if not splits:
        return plain
    # Edges in groups far apart: no cells of one width suit them all, so each group has its own:
    # a number's bin is the count of edges in all groups that are not above it.
    middle = 1 + int(np.argmax(np.diff(edges)))
    low, high = (
        _choose_search(part, size, splits - 1) for part in (edges[:middle], edges[middle:])
    )
    return lambda column: np.add(low(column), high(column), dtype=np.int64)


def _count_passed(edges: Floats, column: Floats) -> NDArray[np.uint8]:
    """Count the edges that are not above each number."""
    at: NDArray[np.uint8] = (column >= edges[0]).view(np.uint8)
    for edge in edges[1:]:
        at += (column >= edge).view(np.uint8)
    return at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Cells of equal width over the edges: a number's cell tells its bin, or nearly.

    For each cell `before` has the number of edges in lower cells, `inside` the first edge in it,
    the second, and so on (NaN where there is none), as many as some cell has, up to four; `crowded`
    says where there are more, and is None if there are nowhere.

    Notes
    -----
    The cell of a number is a nondecreasing function of it, rounding included, so an edge in a
    lower cell is below the number and one in a higher cell above it. The bins are those of a
    binary search, exactly.
    """

    edges: Floats
    start: float
    scale: float
    before: NDArray[np.uint16]
    inside: tuple[Floats, ...]
    crowded: NDArray[np.bool_] | None

    def assign(self, column: Floats) -> NDArray[np.uint16]:
        """Bin of each number; anything for NaN."""
        # Indices that a processor counts in, narrow tables and no checks: all numbers pass here.
        cells = _find_cells(column, self.start, self.scale)
        passed = (column >= self.inside[0].take(cells, mode="clip")).view(np.uint8)
        for edge in self.inside[1:]:
            passed += (column >= edge.take(cells, mode="clip")).view(np.uint8)
        at = self.before.take(cells, mode="clip")
        at += passed
        if self.crowded is not None:
            unsure = np.flatnonzero(self.crowded.take(cells, mode="clip"))
            at[unsure] = np.searchsorted(self.edges, column[unsure], side="right")
        return at


def _find_cells(column: Floats, start: float, scale: float) -> NDArray[np.intp]:
    with np.errstate(over="ignore", invalid="ignore"):
        places = column - start
        places *= scale
    # fmin and fmax pass over NaN.
    np.fmax(np.fmin(places, _CELLS - 1.0, out=places), 0.0, out=places)
    return places.astype(np.intp)


@lru_cache(maxsize=_TABLES)
def _build_cells(content: bytes) -> _Cells | None:
    """Cells whose range leaves the fewest edges crowded; None if there is no such range.

    The edges come as the bytes of their doubles: those of one histogram are asked for many times.
    """
    edges = np.frombuffer(content)
    if len(edges) >= 2**16:  # beyond what the tables can count
        return None
    best: _Cells | None = None
    fewest = len(edges) / 2
    finite = edges[np.isfinite(edges)]
    for trim in _TRIMS:
        inner = finite[trim : len(finite) - trim]
        if len(inner) < 2:
            break
        with np.errstate(over="ignore", divide="ignore"):
            scale = float(_CELLS / (inner[-1] - inner[0]))
        if not 0 < scale < np.inf:
            continue
        cells = _find_cells(edges, float(inner[0]), scale)
        inside = np.bincount(cells, minlength=_CELLS)
        crowded = inside > _TOLD_APART
        unsure = int(inside[crowded].sum())
        if unsure > fewest or (best is not None and unsure == fewest):
            continue
        fewest, before = unsure, np.cumsum(inside) - inside
        known = np.full((min(_TOLD_APART, int(inside.max())), _CELLS), np.nan)
        for number, edge in enumerate(known):
            here = inside > number
            edge[here] = edges[before[here] + number]
        best = _Cells(
            edges=edges,
            start=float(inner[0]),
            scale=scale,
            before=before.astype(np.uint16),
            inside=tuple(known),
            crowded=crowded if unsure else None,
        )
        if not unsure:
            break
    return best
