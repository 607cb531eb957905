"""Scores for outputs that repeat, wholly (categories) or in parts (mixtures)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._outputs import STRUCTURE, Encoder, FeatureMap, apply_feature_map
from hushed.auditing._scores.histogram import (
    Binning,
    assign_bins,
    compute_log_ratios,
    fit_column,
    fit_histograms,
)
from hushed.auditing._scores.smoothing import fit_slope

Floats = NDArray[np.float64]

_MOST_CATEGORIES = 20_000
_SAMPLE = 20_000  # runs from which repeated values are told
_RADIX_LIMIT = 2**52  # codes below it are whole in a double
_PRIOR = Binning(bins=64, penalty=1.5)
_WEIGHTS = np.geomspace(1, 1e7, 29)  # of the prior, in runs
_ATOM_SHARE = 0.01
_MOST_ATOMS = 8  # of a column
_LEAST = 400  # runs with a pattern, on both tables together
_MOST_PATTERNS = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Categories:
    """Log ratio of whole outputs, by their counts.

    `keys` are the sorted codes of the outputs seen, `names` words for them, `ratios` their scores,
    that of what was never seen last. `levels` are the values of each column that make up the code
    of an array; empty for objects.
    """

    keys: Floats
    ratios: Floats
    levels: tuple[Floats, ...]
    names: tuple[str, ...]

    def evaluate(self, encoded: Floats) -> Floats:
        """Score each output."""
        codes = _encode_levels(encoded, self.levels)
        at = np.minimum(np.searchsorted(self.keys, codes), len(self.keys) - 1)
        return np.where(self.keys[at] == codes, self.ratios[at], self.ratios[-1])

    def describe(self, threshold: float, *, first: bool) -> str:
        """Name the outputs of an event."""
        ratios = self.ratios[:-1]
        inside = np.flatnonzero(ratios >= threshold if first else ratios <= threshold)
        order = inside[np.argsort(-np.abs(ratios[inside]), kind="stable")]
        shown = [self.names[i] for i in order[:6]]
        more = f" or {len(order) - 6} more" if len(order) > 6 else ""
        return f"the output is {' or '.join(shown)}{more}" if shown else "an output not seen before"


def fit_categories(encoder: Encoder, first: Floats, second: Floats) -> Categories | None:
    """Count whole outputs; None if they hardly repeat.

    Notes
    -----
    The share of an output that belongs to the first table has a beta prior, centred at what the
    numbers in the output say one by one (`Histograms`, put on scale by logistic regression); its
    weight maximises the likelihood of the counts (empirical Bayes; beta-binomial).
    """
    levels = () if encoder.objects else _find_levels(first, second)
    if levels is None:
        return None
    both = [_encode_levels(each, levels) for each in (first, second)]
    keys, where, at = np.unique(np.concatenate(both), return_index=True, return_inverse=True)
    if len(keys) > min(_MOST_CATEGORIES, len(first) / 4):
        return None
    counts = [np.bincount(part, minlength=len(keys)) for part in np.split(at, [len(first)])]
    sample = np.concatenate([first, second])[where]
    maps: tuple[FeatureMap, ...] = ("structure", "values") if encoder.objects else ("values",)
    parts = fit_histograms(encoder, first, second, maps, _PRIOR)
    ratios = np.append(_shrink_log_ratios(counts[0], counts[1], parts.evaluate(sample)), 0.0)
    return Categories(keys=keys, ratios=ratios, levels=levels, names=_name_outputs(encoder, sample))


def _shrink_log_ratios(
    first: NDArray[np.int64], second: NDArray[np.int64], guess: Floats
) -> Floats:
    """Log ratios of counts, shrunk towards a guess where counts are few."""
    from scipy import special  # noqa: PLC0415

    slope = fit_slope(first, second, guess)
    offset = math.log(first.sum() / second.sum())
    share = special.expit(slope * guess + offset)
    share = np.clip(share, 1e-9, 1 - 1e-9)
    best, weight = -math.inf, 1.0
    for trial in _WEIGHTS:
        a, b = trial * share, trial * (1 - share)
        fit = float((special.betaln(first + a, second + b) - special.betaln(a, b)).sum())
        if fit > best:
            best, weight = fit, float(trial)
    ratios = np.log((first + weight * share) / (second + weight * (1 - share))) - offset
    return np.asarray(ratios)


def _encode_levels(encoded: Floats, levels: tuple[Floats, ...]) -> Floats:
    """Code whole outputs: a number whose digits are the values of the columns."""
    if not levels:
        return encoded[:, len(STRUCTURE) - 1]
    codes = np.zeros(len(encoded))
    for column, known in zip(encoded.T, levels, strict=True):
        at = np.minimum(np.searchsorted(known, column), len(known) - 1)
        digit = np.where(known[at] == column, at, len(known))
        digit = np.where(np.isnan(column), len(known) + 1, digit)
        codes = codes * (len(known) + 2) + digit
    return codes


def _name_outputs(encoder: Encoder, sample: Floats) -> tuple[str, ...]:
    if encoder.objects:
        codes = sample[:, len(STRUCTURE) - 1]
        return tuple(encoder.names.get(float(code), "a rare output") for code in codes)
    return tuple(", ".join(f"{value:g}" for value in row) for row in sample)


def _find_levels(first: Floats, second: Floats) -> tuple[Floats, ...] | None:
    """Distinct values of each column, if an output can be numbered by them."""
    found, size = [], 1.0
    for one, other in zip(first.T, second.T, strict=True):
        if len(np.unique(one[:_SAMPLE])) > _SAMPLE // 20:
            return None
        values = np.unique(np.concatenate([one, other]))
        values = values[~np.isnan(values)]
        size *= len(values) + 2
        if size > _RADIX_LIMIT:
            return None
        found.append(values if len(values) else np.zeros(1))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """Log ratio of the pattern of an output, plus those of its free numbers given the pattern.

    `atoms` are the sorted values of each column that repeat. A pattern says which columns hold
    which atom: `patterns` are the codes of those seen often, `ratios` their log ratios, that of all
    others last, and `free` the free columns of each, with edges and log ratios of their bins.

    Notes
    -----
    The exact log-likelihood ratio for a mechanism that says yes or no and shows numbers that are
    independent given these answers.
    """

    encoder: Encoder
    atoms: tuple[Floats, ...]
    patterns: Floats
    ratios: Floats
    free: tuple[tuple[tuple[int, Floats, Floats], ...], ...]

    def evaluate(self, encoded: Floats) -> Floats:
        """Score each output."""
        parts = _join_parts(self.encoder, encoded)
        codes = _encode_patterns(parts, self.atoms)
        at = np.minimum(np.searchsorted(self.patterns, codes), len(self.patterns) - 1)
        at = np.where(self.patterns[at] == codes, at, len(self.patterns))
        total = self.ratios[at]
        for number, columns in enumerate(self.free):
            here = np.flatnonzero(at == number) if columns else ()
            for column, edges, ratios in columns:
                total[here] += ratios[assign_bins(parts[here, column], edges)]
        return total

    def describe(self, threshold: float, *, first: bool) -> str:
        """Name the sum."""
        way = "at least" if first else "at most"
        return (
            "the log ratios of which values repeat, and of the other numbers given that, add up "
            f"to {way} {threshold:.4g}"
        )


def fit_mixture(
    encoder: Encoder, first: Floats, second: Floats, binning: Binning
) -> Mixture | None:
    """Fit patterns and the numbers given them.

    None if no value repeats, all do, or there are too many patterns to number.
    """
    sides = [_join_parts(encoder, each) for each in (first, second)]
    both = np.concatenate(sides)
    atoms = tuple(_find_atoms(column) for column in both.T)
    if not any(map(len, atoms)) or np.prod([len(a) + 2.0 for a in atoms]) > _RADIX_LIMIT:
        return None
    codes = [_encode_patterns(each, atoms) for each in sides]
    patterns, counts = np.unique(np.concatenate(codes), return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_MOST_PATTERNS]
    patterns = np.sort(patterns[often[counts[often] >= _LEAST]])
    if len(patterns) < 2:
        return None
    seen = np.stack([[float((side == each).sum()) for each in patterns] for side in codes])
    rest = np.array([[len(side)] for side in codes]) - seen.sum(axis=1, keepdims=True)
    every = np.concatenate([seen, rest], axis=1)
    free = tuple(
        _fit_free_columns(
            each,
            [side[code == each] for side, code in zip(sides, codes, strict=True)],
            binning,
            atoms,
        )
        for each in patterns
    )
    if not any(free):
        return None
    return Mixture(
        encoder=encoder,
        atoms=atoms,
        patterns=patterns,
        ratios=compute_log_ratios(every[0], every[1]),
        free=free,
    )


def _join_parts(encoder: Encoder, encoded: Floats) -> Floats:
    names: tuple[FeatureMap, ...] = ("structure", "values") if encoder.objects else ("values",)
    return np.concatenate([apply_feature_map(encoder, encoded, name) for name in names], axis=1)


def _encode_patterns(parts: Floats, atoms: tuple[Floats, ...]) -> Floats:
    """Code patterns: for each column 0 for a free number, else the atom or NaN."""
    codes = np.zeros(len(parts))
    for column, known in zip(parts.T, atoms, strict=True):
        digit = np.where(np.isnan(column), 1.0, 0.0)
        for number, value in enumerate(known):
            digit[column == value] = number + 2
        codes = codes * (len(known) + 2) + digit
    return codes


def _find_atoms(column: Floats) -> Floats:
    some = column[:: max(1, len(column) // _SAMPLE)]
    values, counts = np.unique(some[~np.isnan(some)], return_counts=True)
    often = counts >= max(2.0, _ATOM_SHARE * len(some))
    order = np.argsort(-counts[often], kind="stable")[:_MOST_ATOMS]
    return np.sort(values[often][order])


def _fit_free_columns(
    pattern: float, sides: list[Floats], binning: Binning, atoms: tuple[Floats, ...]
) -> tuple[tuple[int, Floats, Floats], ...]:
    """Histograms of the free columns of a pattern."""
    found = []
    for column in reversed(range(len(atoms))):  # the last column is the lowest digit
        pattern, digit = divmod(pattern, len(atoms[column]) + 2)
        one, other = (side[:, column] for side in sides)
        if digit == 0 and len(one) and len(other):
            edges, ratios = fit_column(one, other, binning)
            if len(edges):
                found.append((column, edges, ratios))
    return tuple(found)
