"""Learned scores: how much likelier an output is on one table than on the other.

A score is fitted on training samples. Whatever it is, an event "the score is at least t" is an
event, so a bad score makes a bound small and never wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushed.audit.outputs import STRUCTURE, Encoder, lowest_bit

__all__ = ["Boosted", "Effort", "Histograms", "Score", "Symbols", "View", "fitted_scores", "view"]

Floats = NDArray[np.float64]
View = Literal["values", "increments", "summaries", "bits", "structure"]
Effort = Literal["quick", "bins", "trees"]

_SMOOTHING = 0.5
_MOST_SYMBOLS = 20_000
_FEW_SYMBOLS = 50
_ATOMS_OF = 20_000
_BOOSTED_ROWS = 50_000
_DEEPEST = 24
_RADIX_LIMIT = 2**52


class Score(Protocol):
    """A function from encoded outputs to numbers."""

    def of(self, encoded: Floats) -> Floats:
        """Score each output; large where the first table is likelier."""

    def words(self, threshold: float, *, first: bool) -> str:
        """Say which outputs have a score of at least (or, for the second table, at most) this."""


def view(encoder: Encoder, encoded: Floats, name: View) -> Floats:
    """One way of looking at outputs.

    Parameters
    ----------
    encoder : Encoder
        How they were encoded.
    encoded : ndarray, shape (runs, columns)
        Encoded outputs.
    name : {"values", "increments", "summaries", "bits", "structure"}
        The numbers themselves; differences of neighbouring numbers, the first one kept; sum,
        least, largest and position of the largest; exponents of lowest set bits; types and
        lengths.

    Returns
    -------
    ndarray, shape (runs, ...)
        Columns of the view.
    """
    if name == "structure":
        return encoded[:, : (len(STRUCTURE) - 1) * encoder.objects]
    values = encoder.values(encoded)
    if name == "increments":
        with np.errstate(invalid="ignore"):
            return np.asarray(np.diff(values, axis=1, prepend=0.0))
    if name == "bits":
        return lowest_bit(values)
    if name == "summaries":
        filled = np.where(np.isnan(values), 0.0, values)
        parts = (filled.sum(axis=1), filled.min(axis=1), filled.max(axis=1), filled.argmax(axis=1))
        every = (*parts, np.isnan(values).sum(axis=1))
        return np.stack(every, axis=1).astype(np.float64)
    return values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Symbols:
    """Log ratio of counts of whole outputs.

    Parameters
    ----------
    keys : ndarray, shape (symbols,)
        Codes of the outputs seen, sorted.
    ratios : ndarray, shape (symbols + 1,)
        Score of each; the last is for what was never seen.
    levels : tuple of ndarray
        Values of each column that make up the code of an array; empty for objects.
    names : tuple of str
        Words for the outputs.
    """

    keys: Floats
    ratios: Floats
    levels: tuple[Floats, ...]
    names: tuple[str, ...]

    def of(self, encoded: Floats) -> Floats:
        """Score each output."""
        codes = _codes(encoded, self.levels)
        at = np.minimum(np.searchsorted(self.keys, codes), len(self.keys) - 1)
        return np.where(self.keys[at] == codes, self.ratios[at], self.ratios[-1])

    def words(self, threshold: float, *, first: bool) -> str:
        """Name the outputs of an event."""
        ratios = self.ratios[:-1]
        inside = np.flatnonzero(ratios >= threshold if first else ratios <= threshold)
        order = inside[np.argsort(-np.abs(ratios[inside]), kind="stable")]
        shown = [self.names[i] for i in order[:6]]
        more = f" or {len(order) - 6} more" if len(order) > 6 else ""
        return f"the output is {' or '.join(shown)}{more}" if shown else "an output not seen before"


def _codes(encoded: Floats, levels: tuple[Floats, ...]) -> Floats:
    if not levels:
        return encoded[:, len(STRUCTURE) - 1]
    codes = np.zeros(len(encoded))
    for column, known in zip(encoded.T, levels, strict=True):
        at = np.minimum(np.searchsorted(known, column), len(known) - 1)
        digit = np.where(known[at] == column, at, len(known))
        digit = np.where(np.isnan(column), len(known) + 1, digit)
        codes = codes * (len(known) + 2) + digit
    return codes


def _fit_symbols(encoder: Encoder, first: Floats, second: Floats) -> Symbols | None:
    """Count whole outputs, if they are few."""
    levels = () if encoder.objects else _levels(first, second)
    if levels is None:
        return None
    both = [_codes(each, levels) for each in (first, second)]
    keys, where, at = np.unique(np.concatenate(both), return_index=True, return_inverse=True)
    if len(keys) > min(_MOST_SYMBOLS, len(first) / 4):
        return None
    counts = [np.bincount(part, minlength=len(keys)) for part in np.split(at, [len(first)])]
    ratios = np.append(_ratios(counts[0], counts[1]), 0.0)
    sample = np.concatenate([first, second])[where]
    return Symbols(keys=keys, ratios=ratios, levels=levels, names=_names(encoder, sample))


def _names(encoder: Encoder, sample: Floats) -> tuple[str, ...]:
    if encoder.objects:
        codes = sample[:, len(STRUCTURE) - 1]
        return tuple(encoder.names.get(float(code), "a rare output") for code in codes)
    return tuple(", ".join(f"{value:g}" for value in row) for row in sample)


def _levels(first: Floats, second: Floats) -> tuple[Floats, ...] | None:
    """Distinct values of each column, if an output can be numbered by them."""
    found, size = [], 1.0
    for one, other in zip(first.T, second.T, strict=True):
        if len(np.unique(one[:_ATOMS_OF])) > _ATOMS_OF // 20:
            return None
        values = np.unique(np.concatenate([one, other]))
        values = values[~np.isnan(values)]
        size *= len(values) + 2
        if size > _RADIX_LIMIT:
            return None
        found.append(values if len(values) else np.zeros(1))
    return tuple(found)


def _ratios(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """Smoothed log ratios of shares."""
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
    values that repeat have a bin of their own.
    """

    encoder: Encoder
    views: tuple[View, ...]
    edges: tuple[Floats, ...]
    ratios: tuple[Floats, ...]
    kept: tuple[int, ...]

    def of(self, encoded: Floats) -> Floats:
        """Score each output."""
        every = list(_columns(self.encoder, encoded, self.views))
        columns = [every[i] for i in self.kept]
        total = np.zeros(len(encoded))
        for column, edges, ratios in zip(columns, self.edges, self.ratios, strict=True):
            total += ratios[_bins(column, edges)]
        return total

    def words(self, threshold: float, *, first: bool) -> str:
        """Name the intervals of a single column; the sum of many."""
        if not self.edges:
            return "any output"
        names = [name for each in self.views for name in _column_names(self.encoder, each)]
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


def _column_names(encoder: Encoder, name: View) -> list[str]:
    if name == "structure":
        return [f"the {part} of the output" for part in STRUCTURE[:-1]] * encoder.objects
    if name == "summaries":
        return ["the sum", "the smallest", "the largest", "the place of the largest", "the gaps"]
    prefix = {"bits": "the exponent of the lowest set bit of ", "increments": "the increment to "}
    parts = [f"number {i + 1}" for i in range(encoder.width)]
    return [
        prefix.get(name, "") + part for part in (parts if encoder.width > 1 else ["the output"])
    ]


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


def _columns(encoder: Encoder, encoded: Floats, views: tuple[View, ...]) -> Iterator[Floats]:
    for name in views:
        yield from view(encoder, encoded, name).T


def _bins(column: Floats, edges: Floats) -> NDArray[np.int64]:
    at = np.searchsorted(edges, column, side="right")
    return np.where(np.isnan(column), len(edges) + 1, at)


def _edges(column: Floats, bins: int) -> Floats:
    """Edges at equal shares, halving towards the ends, and around values that repeat."""
    known = np.sort(column[~np.isnan(column)])
    if not len(known):
        return np.zeros(1)
    some = known[:: max(1, len(known) // _ATOMS_OF)]
    values, counts = np.unique(some, return_counts=True)
    if len(values) <= max(64, bins):
        return np.unique(known) if len(values) < len(some) else values
    halving = 0.5 ** np.arange(np.log2(bins), min(_DEEPEST, np.log2(len(known) / 8)))
    shares = np.concatenate([np.arange(1, bins) / bins, halving, 1 - halving])
    edges = known[(shares * (len(known) - 1)).astype(np.int64)]
    atoms = values[(counts > len(some) / (2 * bins)) & (counts >= 5)]
    return np.unique(np.concatenate([edges, atoms, np.nextafter(atoms, np.inf)]))


def _fit_histograms(
    encoder: Encoder, first: Floats, second: Floats, views: tuple[View, ...], bins: int
) -> Histograms:
    edges, ratios, kept = [], [], []
    pairs = zip(_columns(encoder, first, views), _columns(encoder, second, views), strict=True)
    for number, (one, other) in enumerate(pairs):
        if np.array_equal(one, np.full_like(one, one[0]), equal_nan=True) and np.array_equal(
            other, np.full_like(other, one[0]), equal_nan=True
        ):
            continue
        kept.append(number)
        cut = _edges(np.concatenate([one, other]), bins)
        counts = [np.bincount(_bins(each, cut), minlength=len(cut) + 2) for each in (one, other)]
        edges.append(cut)
        ratios.append(_ratios(counts[0], counts[1]))
    return Histograms(
        encoder=encoder, views=views, edges=tuple(edges), ratios=tuple(ratios), kept=tuple(kept)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boosted:
    """Log odds of gradient boosted trees.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    views : tuple of str
        Ways of looking at an output that the trees see.
    trees : object
        A fitted classifier of scikit-learn.
    """

    encoder: Encoder
    views: tuple[View, ...]
    trees: Any

    def of(self, encoded: Floats) -> Floats:
        """Score each output."""
        return np.asarray(
            self.trees.decision_function(_seen_by_trees(self.encoder, encoded, self.views))
        )

    def words(self, threshold: float, *, first: bool) -> str:
        """Name the classifier and its level."""
        way = "at least" if first else "at most"
        return (
            f"gradient boosted trees on the {', '.join(self.views)} of the output give log odds "
            f"of {way} {threshold:.4g}"
        )


def _seen_by_trees(encoder: Encoder, encoded: Floats, views: tuple[View, ...]) -> Floats:
    joined = np.concatenate([view(encoder, encoded, name) for name in views], axis=1)
    # What is no number gets one of its own: trees refuse a column without any number.
    return np.where(np.isnan(joined), -2e300, np.clip(joined, -1e300, 1e300))


def _fit_boosted(
    encoder: Encoder, first: Floats, second: Floats, views: tuple[View, ...]
) -> Boosted | None:
    """Trees, if scikit-learn is installed."""
    try:
        ensemble, pools = map(import_module, ("sklearn.ensemble", "threadpoolctl"))
    except ImportError:
        return None
    parts = [each[:_BOOSTED_ROWS] for each in (first, second)]
    features = np.concatenate([_seen_by_trees(encoder, each, views) for each in parts])
    labels = np.repeat([1, 0], [len(each) for each in parts])
    trees = ensemble.HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=15, min_samples_leaf=50, early_stopping=False, random_state=0
    )
    with pools.threadpool_limits(
        limits=1
    ):  # idle threads of a busy machine cost more than they give
        trees.fit(features, labels)
    return Boosted(encoder=encoder, views=views, trees=trees)


def fitted_scores(
    encoder: Encoder, first: Floats, second: Floats, *, effort: Effort, bits: bool = True
) -> Iterator[Score]:
    """Scores worth trying, fitted on training samples.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    first, second : ndarray, shape (runs, columns)
        Training outputs on the two tables.
    effort : {"quick", "bins", "trees"}
        One kind of bins; finer and coarser bins, too; boosted trees as well.
    bits : bool, default True
        Whether to look at the bit patterns of doubles.

    Yields
    ------
    Score
        Whole outputs if they are few; otherwise histograms of the views; trees at last.
    """
    symbols = _fit_symbols(encoder, first, second)
    if symbols is not None:
        yield symbols
        if encoder.columns == 1 or len(symbols.keys) < _FEW_SYMBOLS:
            return
        bits = bits and encoder.objects
    own: tuple[View, ...] = ("structure",) if encoder.objects else ()
    groups: list[tuple[View, ...]] = [(*own, "values")]
    if bits:
        groups.append(("bits",))
    if encoder.width > 1:
        groups += [(*own, "increments"), ("summaries",)]
    for views in groups:
        for bins in (4, 16, 64, 256) if effort != "quick" and views[0] != "bits" else (32,):
            yield _fit_histograms(encoder, first, second, views, bins)
    if effort == "trees" and encoder.width > 1:
        seen: tuple[View, ...] = (*own, "values", "increments", "summaries")
        trees = _fit_boosted(encoder, first, second, seen)
        if trees is not None:
            yield trees
