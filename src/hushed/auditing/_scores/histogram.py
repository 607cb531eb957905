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
from hushed.auditing._scores.bins import Quantiles, assign_bins, choose_edges, read_quantiles
from hushed.auditing._scores.smoothing import HALF, fit_p_spline, partition_bins

Floats = NDArray[np.float64]

_POOLED = 2**20  # numbers on each table from which pooled edges are chosen
_GLANCED = 64


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
        columns = iterate_columns(self.encoder, encoded, self.maps, self.kept)
        total = np.zeros(len(encoded))
        for column, edges, ratios in zip(columns, self.edges, self.ratios, strict=True):
            total += ratios.take(assign_bins(column, edges))
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


def fit_column(
    one: Floats, other: Floats, binning: Binning, order: Quantiles | None = None
) -> tuple[Floats, Floats]:
    """Histogram of one column on the two tables: edges, and log ratio of each bin, NaN's last.

    `order` is that of both together, if it is known.
    """
    order = order or read_quantiles(np.concatenate([one, other]))
    edges = choose_edges(order, binning.bins, even=binning.smooth)
    return _weigh_bins(
        edges, np.stack([_count_bins(each, edges) for each in (one, other)]), binning
    )


def _count_bins(column: Floats, edges: Floats) -> NDArray[np.int64]:
    return np.bincount(assign_bins(column, edges), minlength=len(edges) + 2)


def _weigh_bins(
    edges: Floats, counts: NDArray[np.int64], binning: Binning
) -> tuple[Floats, Floats]:
    """Log ratios of bins, smoothed or with neighbours put together, and the edges that are left."""
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
    """Fit a histogram to every column of some feature maps that tells anything."""
    return fit_family(encoder, first, second, maps, (binning,))[0]


def fit_family(
    encoder: Encoder,
    first: Floats,
    second: Floats,
    maps: tuple[FeatureMap, ...],
    binnings: tuple[Binning, ...],
) -> list[Histograms]:
    """Fit histograms of several binnings, for which every column is put in order once.

    Codes of texts and types have no order, so their bins always stand apart.
    """
    coded = len(STRUCTURE[:-1]) * encoder.objects * ("structure" in maps)
    pools = [
        _fit_pool(encoder, (first, second), maps, coded, b) if b.pooled else None for b in binnings
    ]
    found: list[list[tuple[int, Floats, Floats]]] = [[] for _ in binnings]
    columns = (iterate_columns(encoder, each, maps) for each in (first, second))
    for number, (one, other) in enumerate(zip(*columns, strict=True)):
        if _is_constant(one) and _is_constant(other):
            continue
        order = read_quantiles(np.concatenate([one, other]))
        gaps = len(order.known) < len(one) + len(other)
        for binning, pool, kept in zip(binnings, pools, found, strict=True):
            apart = Binning(bins=binning.bins, penalty=None) if number < coded else binning
            edges, ratios = (
                pool if pool and number >= coded else fit_column(one, other, apart, order)
            )
            if len(edges) or gaps:
                kept.append((number, edges, ratios))
    return [_gather_columns(encoder, maps, kept) for kept in found]


def _gather_columns(
    encoder: Encoder, maps: tuple[FeatureMap, ...], kept: list[tuple[int, Floats, Floats]]
) -> Histograms:
    return Histograms(
        encoder=encoder,
        maps=maps,
        edges=tuple(edges for _, edges, _ in kept),
        ratios=tuple(ratios for _, _, ratios in kept),
        kept=tuple(number for number, _, _ in kept),
    )


def _fit_pool(
    encoder: Encoder,
    sides: tuple[Floats, Floats],
    maps: tuple[FeatureMap, ...],
    coded: int,
    binning: Binning,
) -> tuple[Floats, Floats]:
    """One histogram of all columns after the coded ones; its edges are those of some outputs."""
    some = np.concatenate([each[:: 1 + each.size // _POOLED] for each in sides])
    known = np.concatenate(list(iterate_columns(encoder, some, maps))[coded:])
    edges = choose_edges(read_quantiles(known), binning.bins, even=binning.smooth)
    every = [list(iterate_columns(encoder, each, maps))[coded:] for each in sides]
    counts = [np.sum([_count_bins(one, edges) for one in each], axis=0) for each in every]
    return _weigh_bins(edges, np.stack(counts), binning)


def _is_constant(column: Floats) -> bool:
    same = np.isnan(column[:_GLANCED]) if np.isnan(column[0]) else column[:_GLANCED] == column[0]
    if not same.all():
        return False
    return bool((np.isnan(column) if np.isnan(column[0]) else column == column[0]).all())
