"""Scores for numbers: log ratios of histograms, added up over columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._naming import name_type, say_types, write_number
from hushed.auditing._outputs import (
    LOWEST_BIT,
    NO_BIT,
    STRUCTURE,
    Encoder,
    FeatureMap,
    iterate_columns,
    name_columns,
)
from hushed.auditing._scores.bins import assign_bins, choose_edges, read_quantiles
from hushed.auditing._scores.smoothing import HALF, fit_p_spline, partition_bins

Floats = NDArray[np.float64]

_POOLED = 2**20  # numbers on each table from which pooled edges are chosen
_GLANCED = 64
_BLOCK = 2**14  # outputs that are scored together, for they stay near the processor


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
        return np.asarray(score_together([self], encoded)[0])

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
            texts = [name_type(self.encoder, float(code)) for code in known]
            if texts and not self.kept[0]:
                return say_types(texts)
            return f"{used[0]} is {' or '.join(texts) or 'another one'}"
        if used[0].startswith(LOWEST_BIT):
            return _describe_bits(used[0], self.edges[0], inside)
        return f"{used[0]} {_describe_intervals(self.edges[0], inside)}"


def score_together(family: list[Histograms], encoded: Floats) -> Floats:
    """Score each output by several histograms of the same maps, whose columns are made once."""
    used = sorted({number for each in family for number in each.kept})
    joined = {number: _join_bins(family, number) for number in used}
    totals = np.zeros((len(family), len(encoded)))
    for start in range(0, len(encoded), _BLOCK):
        part = encoded[start : start + _BLOCK]
        columns = iterate_columns(family[0].encoder, part, family[0].maps, tuple(used))
        for number, column in zip(used, columns, strict=True):
            edges, tables = joined[number]
            at = assign_bins(column, edges)
            for which, ratios in tables:
                totals[which, start : start + _BLOCK] += ratios.take(at, mode="clip")
    return totals


def _join_bins(family: list[Histograms], number: int) -> tuple[Floats, list[tuple[int, Floats]]]:
    """Edges of all histograms of a column put together, and the score that each has of their bins.

    So a number is put into a bin once, however many histograms look at its column.
    """
    known = [
        (which, each.edges[at], each.ratios[at])
        for which, each in enumerate(family)
        for at in range(len(each.kept))
        if each.kept[at] == number
    ]
    every = np.unique(np.concatenate([edges for _, edges, _ in known]))
    tables = [
        (which, ratios[np.concatenate([[0], edges.searchsorted(every, side="right"), [-1]])])
        for which, edges, ratios in known
    ]
    return every, tables


def _describe_intervals(edges: Floats, inside: NDArray[np.bool_]) -> str:
    """Say where a number lies, or what it is where an interval holds one double alone."""
    found = _list_intervals(edges, inside)
    alone = [
        low == high or (math.nextafter(low, math.inf) == high and not whole)
        for low, high, whole in found
    ]
    values = [low for (low, _, _), one in zip(found, alone, strict=True) if one]
    wide = [each for each, one in zip(found, alone, strict=True) if not one]
    parts = [_write_interval(*each) for each in wide[:4]]
    parts += [f"{len(wide) - 4} intervals more"] * (len(wide) > 4)
    told = [f"lies in {' or '.join(parts)}"] * bool(parts)
    said = [write_number(each) for each in values[:4]] + ["NaN"] * bool(inside[-1])
    said += [f"one of {len(values) - 4} values more"] * (len(values) > 4)
    told += [f"is {' or '.join(said)}"] * bool(said)
    return " or ".join(told) or "lies in nothing"


def _write_interval(low: float, high: float, whole: bool) -> str:
    """Write an interval, without its upper end unless it is all above; its ends differ."""
    ends = f"{low:.6g}", f"{high:.6g}"
    start, end = ends if ends[0] != ends[1] else (repr(low), repr(high))
    return f"[{start}, {end}{']' if whole else ')'}"


def _list_intervals(edges: Floats, inside: NDArray[np.bool_]) -> list[tuple[float, float, bool]]:
    """Intervals of the bins inside, neighbours joined; NaN's left out.

    The last bin holds infinity, too: said of each is whether it ends with that.
    """
    limits = np.concatenate([[-np.inf], edges, [np.inf]])
    found = []
    start = None
    for i, flag in enumerate([*inside[:-1], False]):
        if flag and start is None:
            start = limits[i]
        if not flag and start is not None:
            found.append((float(start), float(limits[i]), i == len(limits) - 1))
            start = None
    return found


def _describe_bits(name: str, edges: Floats, inside: NDArray[np.bool_]) -> str:
    """Say which lowest bits; zero has none, and is told by itself."""
    split = np.union1d(edges, [NO_BIT])
    at = edges.searchsorted(split, side="right")
    flags = inside[np.concatenate([[0], at, [len(edges) + 1]])]
    first = int(split.searchsorted(NO_BIT)) + 1
    number = name.removeprefix(LOWEST_BIT)
    parts = []
    if flags[:first].any():
        low = np.append(flags[:first], [False, False])
        parts.append(f"{name} {_describe_intervals(split[:first], low)}")
    if flags[-1]:
        parts.append(f"{number} is infinite or no number")
    if flags[first]:
        parts.append(f"{number} is 0")
    return " or ".join(parts) or f"{name} lies in nothing"


def compute_log_ratios(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Log ratios of the shares of two rows of counts, half a count added to each."""
    totals = first.sum() / second.sum()
    return np.asarray(np.log((first + HALF) / (second + HALF) / totals))


def fit_columns(
    sides: tuple[Floats, Floats], binnings: Sequence[Binning]
) -> list[tuple[Floats, Floats]]:
    """Histograms of one column, one for each binning: edges, and log ratio of each bin, NaN's last.

    The column is ordered and counted once.
    """
    order = read_quantiles(np.concatenate(sides))
    edges = [choose_edges(order, each.bins, even=each.smooth) for each in binnings]
    return list(map(_weigh_bins, edges, _count_together(sides, edges), binnings))


def _count_together(
    sides: tuple[Floats, Floats], edges: Sequence[Floats]
) -> list[NDArray[np.int64]]:
    """Count a column on the two tables in the bins of several rows of edges."""
    every = np.unique(np.concatenate(edges))
    counts = np.stack([_count_bins(each, every) for each in sides])
    # The bins of a row of edges are bins of all edges put together; the last one is that of NaN.
    starts = [
        np.concatenate([[0], every.searchsorted(each) + 1, [len(every) + 1]]) for each in edges
    ]
    return [np.add.reduceat(counts, each, axis=1) for each in starts]


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
    sides = [list(iterate_columns(encoder, each, maps)) for each in (first, second)]
    pools = {
        at: _choose_pooled_edges([each[coded:] for each in sides], binning)
        for at, binning in enumerate(binnings)
        if binning.pooled
    }
    counted = {at: np.zeros((2, len(edges) + 2), dtype=np.int64) for at, edges in pools.items()}
    found: list[list[tuple[int, Floats, Floats]]] = [[] for _ in binnings]
    pooled: list[tuple[int, bool]] = []  # columns, and whether they have gaps
    for number, column in enumerate(zip(*sides, strict=True)):
        constant, free = _is_constant(*column), number >= coded
        if constant and not (free and pools):
            continue
        order = read_quantiles(np.concatenate(column))
        gaps = len(order.known) < sum(map(len, column))
        apart = [each if free else Binning(bins=each.bins, penalty=None) for each in binnings]
        edges = [
            pools[at] if free and at in pools else choose_edges(order, b.bins, even=b.smooth)
            for at, b in enumerate(apart)
        ]
        for at, counts in enumerate(_count_together(column, edges)):
            if free and at in pools:
                counted[at] += counts
            elif not constant:
                known, ratios = _weigh_bins(edges[at], counts, apart[at])
                if maps == ("bits",):
                    ratios[-1] = 0.0  # what has no bits is no event of bits, whatever it tells
                if len(known) or gaps:
                    found[at].append((number, known, ratios))
        pooled += [(number, gaps)] * (free and not constant)
    for at, edges_of_all in pools.items():
        known, ratios = _weigh_bins(edges_of_all, counted[at], binnings[at])
        found[at] += [(number, known, ratios) for number, gaps in pooled if len(known) or gaps]
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


def _choose_pooled_edges(sides: list[list[Floats]], binning: Binning) -> Floats:
    """Edges of one histogram of all columns; those of some outputs."""
    step = 1 + max(sum(map(len, each)) for each in sides) // _POOLED
    known = np.concatenate([column[::step] for each in sides for column in each])
    return choose_edges(read_quantiles(known), binning.bins, even=binning.smooth)


def _is_constant(one: Floats, other: Floats) -> bool:
    """Whether all numbers of both tables are one; two that differ tell the tables apart."""
    return all(_is_filled(each, one[0]) for each in (one, other))


def _is_filled(column: Floats, value: float) -> bool:
    """Whether a column holds one number alone; few are looked at where the first ones tell."""
    same = np.isnan if np.isnan(value) else partial(np.equal, value)
    return bool(same(column[:_GLANCED]).all() and same(column).all())
