"""Scores for numbers: log ratios of histograms, added up over columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._outputs import STRUCTURE, Encoder
from hushed.auditing._segments import segments
from hushed.auditing._smoothing import smoothed
from hushed.auditing._views import View, column_names, columns

__all__ = ["Grain", "Histograms", "bin_numbers", "fit_column", "fit_histograms", "log_ratios"]

Floats = NDArray[np.float64]

_SMOOTHING = 0.5
_ATOMS_OF = 20_000
_DEEPEST = 24
_LOG_ODDS = 0.25  # of rank, between edges of bins that are smoothed
_IN_THE_TAIL = 20


def log_ratios(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Smoothed log ratios of shares.

    Parameters
    ----------
    first, second : ndarray of int, shape (bins,)
        Counts.

    Returns
    -------
    ndarray of float, shape (bins,)
        Half a count is added to each.
    """
    totals = first.sum() / second.sum()
    return np.asarray(np.log((first + _SMOOTHING) / (second + _SMOOTHING) / totals))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histograms:
    """Sum over columns of the log ratio of their histograms.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    views : tuple of str
        Ways of looking at an output.
    edges : tuple of ndarray, shape (bins - 1,) each
        Edges of the bins of each column, sorted; a bin holds its lower edge.
    ratios : tuple of ndarray, shape (bins + 1,) each
        Score of each bin; the last one is for NaN.
    kept : tuple of int
        Columns of the views that are used: those that vary.

    Notes
    -----
    For independent columns this is the log-likelihood ratio, which orders outputs best (Neyman
    and Pearson, Phil. Trans. A 231, 1933). Bins hold equal shares, halving towards both ends;
    values that repeat have a bin of their own. Neighbouring bins whose ratios do not differ
    clearly are one (`segments`).
    """

    encoder: Encoder
    views: tuple[View, ...]
    edges: tuple[Floats, ...]
    ratios: tuple[Floats, ...]
    kept: tuple[int, ...]

    def of(self, encoded: Floats) -> Floats:
        """Score each output."""
        every = list(columns(self.encoder, encoded, self.views))
        total = np.zeros(len(encoded))
        for at, edges, ratios in zip(self.kept, self.edges, self.ratios, strict=True):
            total += ratios[bin_numbers(every[at], edges)]
        return total

    def words(self, threshold: float, *, first: bool) -> str:
        """Name the intervals of a single column; the sum of many."""
        if not self.edges:
            return "any output"
        names = [name for each in self.views for name in column_names(self.encoder, each)]
        used = [names[i] for i in self.kept]
        if len(used) > 1:
            way = "at least" if first else "at most"
            more = f" and {len(used) - 3} more" if len(used) > 3 else ""
            return f"the log ratios of {', '.join(used[:3])}{more} add up to {way} {threshold:.4g}"
        ratios = self.ratios[0]
        inside = ratios >= threshold if first else ratios <= threshold
        if self.kept[0] in (0, 2) and self.views[0] == "structure":  # codes of texts
            known = self.edges[0][inside[1:-1]]
            texts = [self.encoder.names.get(float(code), "another one") for code in known]
            return f"{used[0]} is {' or '.join(texts) or 'another one'}"
        return f"{used[0]} lies in {_intervals(self.edges[0], inside)}"


def _intervals(edges: Floats, inside: NDArray[np.bool_]) -> str:
    limits = np.concatenate([[-np.inf], edges, [np.inf]])
    parts = []
    start = None
    for i, flag in enumerate([*inside[:-1], False]):
        if flag and start is None:
            start = limits[i]
        if not flag and start is not None:
            parts.append(f"[{start:.6g}, {limits[i]:.6g})")
            start = None
    if inside[-1]:
        parts.append("NaN")
    more = f" or {len(parts) - 4} intervals more" if len(parts) > 4 else ""
    return " or ".join(parts[:4]) + more if parts else "nothing"


def bin_numbers(column: Floats, edges: Floats) -> NDArray[np.int64]:
    """Tell which bin each number falls into.

    Parameters
    ----------
    column : ndarray, shape (runs,)
        Numbers, NaN included.
    edges : ndarray, shape (bins - 1,)
        Sorted; a bin holds its lower edge.

    Returns
    -------
    ndarray of int, shape (runs,)
        From 0 to ``len(edges)``; NaN gets ``len(edges) + 1``.
    """
    at = np.searchsorted(edges, column, side="right")
    return np.where(np.isnan(column), len(edges) + 1, at)


def _edges(column: Floats, bins: int, *, even: bool = False) -> Floats:
    """Edges at equal shares, halving towards the ends, and around values that repeat.

    Even ones lie at equal steps of the log odds of rank: for tails that fall exponentially these
    are equal steps of the number itself.
    """
    known = np.sort(column[~np.isnan(column)])
    if not len(known):
        return np.zeros(1)
    some = known[:: max(1, len(known) // _ATOMS_OF)]
    values, counts = np.unique(some, return_counts=True)
    if len(values) <= max(64, bins):
        return np.unique(known) if len(values) < len(some) else values
    if even:
        end = np.log(max(2.0, len(known) / _IN_THE_TAIL))
        shares = 1 / (1 + np.exp(-np.arange(-end, end, _LOG_ODDS)))
    else:
        halving = 0.5 ** np.arange(np.log2(bins), min(_DEEPEST, np.log2(len(known) / 8)))
        shares = np.concatenate([np.arange(1, bins) / bins, halving, 1 - halving])
    edges = known[(shares * (len(known) - 1)).astype(np.int64)]
    atoms = values[(counts > len(some) / (2 * bins)) & (counts >= 5)]
    return np.unique(np.concatenate([edges, atoms, np.nextafter(atoms, np.inf)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grain:
    """How finely numbers are looked at.

    Parameters
    ----------
    bins : int
        Bins of equal share, before neighbours are put together.
    penalty : float or None
        Log-likelihood, in nats, that a bin must bring to stand apart; None leaves all apart.
    pooled : bool, default False
        Whether all columns share one histogram, as independent repetitions would.
    smooth : bool, default False
        Whether log ratios are to change smoothly between bins; see `hushed.auditing._smoothing`.
    """

    bins: int
    penalty: float | None
    pooled: bool = False
    smooth: bool = False


def fit_column(one: Floats, other: Floats, grain: Grain) -> tuple[Floats, Floats]:
    """Histogram of one column.

    Parameters
    ----------
    one, other : ndarray, shape (runs,)
        Numbers of the two tables, NaN included.
    grain : Grain
        How fine.

    Returns
    -------
    edges : ndarray, shape (bins - 1,)
        Edges that were kept.
    ratios : ndarray, shape (bins + 1,)
        Log ratio of each bin, that of NaN last.
    """
    edges = _edges(np.concatenate([one, other]), grain.bins, even=grain.smooth)
    counts = np.stack(
        [np.bincount(bin_numbers(each, edges), minlength=len(edges) + 2) for each in (one, other)]
    )
    if grain.smooth:
        return edges, _smooth_ratios(edges, counts)
    if grain.penalty is not None:
        labels = segments(counts[0, :-1], counts[1, :-1], grain.penalty)
        starts = np.flatnonzero(np.diff(labels, prepend=-1))
        merged = np.add.reduceat(counts[:, :-1], starts, axis=1)
        counts = np.concatenate([merged, counts[:, -1:]], axis=1)
        edges = edges[starts[1:] - 1]
    return edges, log_ratios(counts[0], counts[1])


def _smooth_ratios(edges: Floats, counts: NDArray[np.int64]) -> Floats:
    """Log ratios of all bins, those of repeated values and of NaN apart from the others."""
    ratios = log_ratios(counts[0], counts[1])
    offset = float(np.log((counts[0].sum() + _SMOOTHING) / (counts[1].sum() + _SMOOTHING)))
    free = np.ones(len(ratios), dtype=bool)
    free[-1] = False
    free[1:-2] = np.nextafter(edges[:-1], np.inf) < edges[1:]
    ratios[free] = smoothed(counts[0, free], counts[1, free], offset)
    return ratios


def fit_histograms(
    encoder: Encoder, first: Floats, second: Floats, views: tuple[View, ...], grain: Grain
) -> Histograms:
    """Fit a histogram to every column of some views.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    first, second : ndarray, shape (runs, columns)
        Training outputs on the two tables.
    views : tuple of str
        Ways of looking at an output.
    grain : Grain
        How fine; codes of texts and types, which have no order, always stand apart.

    Returns
    -------
    Histograms
        Without the columns that tell nothing.
    """
    ones, others = (list(columns(encoder, each, views)) for each in (first, second))
    coded = len(STRUCTURE[:-1]) * encoder.objects * ("structure" in views)
    shared = None
    if grain.pooled:
        shared = fit_column(np.concatenate(ones[coded:]), np.concatenate(others[coded:]), grain)
    found: list[tuple[int, Floats, Floats]] = []
    for number, (one, other) in enumerate(zip(ones, others, strict=True)):
        if _constant(one, other):
            continue
        apart = Grain(bins=grain.bins, penalty=None) if number < coded else grain
        edges, ratios = shared if shared and number >= coded else fit_column(one, other, apart)
        if len(edges) or np.isnan(one).any() or np.isnan(other).any():
            found.append((number, edges, ratios))
    return Histograms(
        encoder=encoder,
        views=views,
        edges=tuple(edges for _, edges, _ in found),
        ratios=tuple(ratios for _, _, ratios in found),
        kept=tuple(number for number, _, _ in found),
    )


def _constant(one: Floats, other: Floats) -> bool:
    return all(
        np.array_equal(each, np.full_like(each, one[0]), equal_nan=True) for each in (one, other)
    )
