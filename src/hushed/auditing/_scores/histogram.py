"""Scores for numbers: log ratios of histograms, added up over columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._outputs import (
    STRUCTURE,
    Encoder,
    FeatureMap,
    iterate_columns,
    name_columns,
)
from hushed.auditing._scores.smoothing import HALF, fit_p_spline, partition_bins

Floats = NDArray[np.float64]

_ATOMS_OF = 20_000
_DEEPEST = 24
_LOG_ODDS = 0.25  # of rank, between edges of bins that are smoothed
_IN_THE_TAIL = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Binning:
    """How finely numbers are looked at.

    `bins` is the number of bins of equal share, before neighbours are put together. `penalty` is
    the log-likelihood, in nats, that a bin must bring to stand apart; None leaves all apart. With
    `pooled` all columns share one histogram, as independent repetitions would. With `smooth` log
    ratios follow a P-spline instead.
    """

    bins: int
    penalty: float | None
    pooled: bool = False
    smooth: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histograms:
    """Sum over columns of the log ratio of their histograms.

    For each column used, `kept` has its place among those of the feature maps, `edges` the sorted
    edges of its bins (a bin holds its lower edge) and `ratios` the score of each bin, that of NaN
    last.

    Notes
    -----
    For independent columns this is the log-likelihood ratio, which orders outputs best (Neyman
    and Pearson, Phil. Trans. A 231, 1933). Bins hold equal shares, halving towards both ends;
    values that repeat have a bin of their own. Neighbouring bins whose ratios do not differ
    clearly are one (`partition_bins`).
    """

    encoder: Encoder
    maps: tuple[FeatureMap, ...]
    edges: tuple[Floats, ...]
    ratios: tuple[Floats, ...]
    kept: tuple[int, ...]

    def evaluate(self, encoded: Floats) -> Floats:
        """Score each output."""
        every = list(iterate_columns(self.encoder, encoded, self.maps))
        total = np.zeros(len(encoded))
        for at, edges, ratios in zip(self.kept, self.edges, self.ratios, strict=True):
            total += ratios[assign_bins(every[at], edges)]
        return total

    def describe(self, threshold: float, *, first: bool) -> str:
        """Name the intervals of a single column; the sum of many."""
        if not self.edges:
            return "any output"
        names = [name for each in self.maps for name in name_columns(self.encoder, each)]
        used = [names[i] for i in self.kept]
        if len(used) > 1:
            way = "at least" if first else "at most"
            more = f" and {len(used) - 3} more" if len(used) > 3 else ""
            return f"the log ratios of {', '.join(used[:3])}{more} add up to {way} {threshold:.4g}"
        ratios = self.ratios[0]
        inside = ratios >= threshold if first else ratios <= threshold
        if self.kept[0] in (0, 2) and self.maps[0] == "structure":  # codes of texts
            known = self.edges[0][inside[1:-1]]
            texts = [self.encoder.names.get(float(code), "another one") for code in known]
            return f"{used[0]} is {' or '.join(texts) or 'another one'}"
        return f"{used[0]} lies in {_describe_intervals(self.edges[0], inside)}"


def _describe_intervals(edges: Floats, inside: NDArray[np.bool_]) -> str:
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


def compute_log_ratios(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Log ratios of the shares of two rows of counts, half a count added to each."""
    totals = first.sum() / second.sum()
    return np.asarray(np.log((first + HALF) / (second + HALF) / totals))


def assign_bins(column: Floats, edges: Floats) -> NDArray[np.int64]:
    """Bin of each number, from 0 to ``len(edges)``; NaN gets ``len(edges) + 1``."""
    at = np.searchsorted(edges, column, side="right")
    return np.where(np.isnan(column), len(edges) + 1, at)


def _choose_edges(column: Floats, bins: int, *, even: bool = False) -> Floats:
    """Edges at equal shares, halving towards the ends, and around values that repeat.

    Even ones lie at equal steps of the log odds of rank: for tails that fall exponentially these
    are equal steps of the number itself.
    """
    known = np.sort(column[~np.isnan(column)])
    if not len(known):
        return np.zeros(1)
    some = known[:: max(1, len(known) // _ATOMS_OF)]
    values, counts = np.unique(some, return_counts=True)
    if len(values) <= max(64, bins):  # so few values that each may have a bin
        return np.unique(known) if len(values) < len(some) else values
    if even:
        end = np.log(max(2.0, len(known) / _IN_THE_TAIL))
        shares = 1 / (1 + np.exp(-np.arange(-end, end, _LOG_ODDS)))
    else:
        halving = 0.5 ** np.arange(np.log2(bins), min(_DEEPEST, np.log2(len(known) / 8)))
        shares = np.concatenate([np.arange(1, bins) / bins, halving, 1 - halving])
    edges = known[(shares * (len(known) - 1)).astype(np.int64)]
    atoms = values[(counts > len(some) / (2 * bins)) & (counts >= 5)]
    # An edge at an atom and one at the next double: the bin between them holds the atom alone.
    return np.unique(np.concatenate([edges, atoms, np.nextafter(atoms, np.inf)]))


def fit_column(one: Floats, other: Floats, binning: Binning) -> tuple[Floats, Floats]:
    """Histogram of one column on the two tables: edges, and log ratio of each bin, NaN's last."""
    edges = _choose_edges(np.concatenate([one, other]), binning.bins, even=binning.smooth)
    counts = np.stack(
        [np.bincount(assign_bins(each, edges), minlength=len(edges) + 2) for each in (one, other)]
    )
    if binning.smooth:
        return edges, _smooth_log_ratios(edges, counts)
    if binning.penalty is not None:
        labels = partition_bins(counts[0, :-1], counts[1, :-1], binning.penalty)
        starts = np.flatnonzero(np.diff(labels, prepend=-1))
        merged = np.add.reduceat(counts[:, :-1], starts, axis=1)
        counts = np.concatenate([merged, counts[:, -1:]], axis=1)
        edges = edges[starts[1:] - 1]
    return edges, compute_log_ratios(counts[0], counts[1])


def _smooth_log_ratios(edges: Floats, counts: NDArray[np.int64]) -> Floats:
    """Log ratios of all bins, those of repeated values and of NaN apart from the others."""
    ratios = compute_log_ratios(counts[0], counts[1])
    offset = float(np.log((counts[0].sum() + HALF) / (counts[1].sum() + HALF)))
    free = np.ones(len(ratios), dtype=bool)
    free[-1] = False  # NaN
    free[1:-2] = np.nextafter(edges[:-1], np.inf) < edges[1:]  # not one double wide: no atom
    ratios[free] = fit_p_spline(counts[0, free], counts[1, free], offset)
    return ratios


def fit_histograms(
    encoder: Encoder,
    first: Floats,
    second: Floats,
    maps: tuple[FeatureMap, ...],
    binning: Binning,
) -> Histograms:
    """Fit a histogram to every column of some feature maps that tells anything.

    Codes of texts and types have no order, so their bins always stand apart.
    """
    ones, others = (list(iterate_columns(encoder, each, maps)) for each in (first, second))
    coded = len(STRUCTURE[:-1]) * encoder.objects * ("structure" in maps)
    shared = None
    if binning.pooled:
        shared = fit_column(np.concatenate(ones[coded:]), np.concatenate(others[coded:]), binning)
    found: list[tuple[int, Floats, Floats]] = []
    for number, (one, other) in enumerate(zip(ones, others, strict=True)):
        if _is_constant(one, other):
            continue
        apart = Binning(bins=binning.bins, penalty=None) if number < coded else binning
        edges, ratios = shared if shared and number >= coded else fit_column(one, other, apart)
        if len(edges) or np.isnan(one).any() or np.isnan(other).any():
            found.append((number, edges, ratios))
    return Histograms(
        encoder=encoder,
        maps=maps,
        edges=tuple(edges for _, edges, _ in found),
        ratios=tuple(ratios for _, _, ratios in found),
        kept=tuple(number for number, _, _ in found),
    )


def _is_constant(one: Floats, other: Floats) -> bool:
    return all(
        np.array_equal(each, np.full_like(each, one[0]), equal_nan=True) for each in (one, other)
    )
