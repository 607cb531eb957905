"""Scores for outputs that repeat, wholly (categories) or in parts (mixtures)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._naming import RARE, name_outputs, name_type, say_outputs
from hushed.auditing._outputs import STRUCTURE, Encoder, FeatureMap, apply_feature_map
from hushed.auditing._scores.bins import assign_bins, find_places, find_values
from hushed.auditing._scores.histogram import (
    Binning,
    compute_log_ratios,
    fit_columns,
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
_BLOCK = 2**14  # outputs that are coded together, for they stay near the processor


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
        return self.ratios.take(find_places(codes, self.keys))  # the last one is for all others

    def describe(self, threshold: float, *, first: bool) -> str:
        """Name the outputs of an event."""
        ratios = self.ratios[:-1]
        inside = np.flatnonzero(ratios >= threshold if first else ratios <= threshold)
        order = inside[np.argsort(-np.abs(ratios[inside]), kind="stable")]
        known = [self.names[i] for i in order if self.names[i] != RARE]
        rare = len(order) - len(known)
        shown = known[:6]
        shown += [f"{len(known) - 6} more"] * (len(known) > 6)
        shown += [RARE if rare == 1 else f"one of {rare} rare outputs"] * (rare > 0)
        if not shown:
            return "an output not seen before"
        outside = np.setdiff1d(np.arange(len(ratios)), inside)
        others = [self.names[i] for i in outside]
        return f"{say_outputs(shown)}{_tell_apart(known[:6], others)}"


def _tell_apart(shown: Sequence[str], others: Sequence[str]) -> str:
    """Say where an equal number is another output, because it is written in another way."""
    equal = {_number_of(each): each for each in others}
    for each in shown:
        number = _number_of(each)
        if number is not None and number in equal:
            return (
                f" (and not {equal[number]}, an equal number of another type, which whoever reads "
                "it tells apart: answer with one type)"
            )
    return ""


def _number_of(text: str) -> float | None:
    """Read an output as a number, truth values too; None if it is none, or a zero with a minus."""
    if text in ("True", "False"):
        return float(text == "True")
    try:
        found = float(text)
    except ValueError:
        return None
    return None if math.isnan(found) or text.startswith("-0") else found


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
    return Categories(keys=keys, ratios=ratios, levels=levels, names=name_outputs(encoder, sample))


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
        digit = find_places(column, known)
        digit[np.isnan(column)] = len(known) + 1
        codes = codes * (len(known) + 2) + digit
    return codes


def _find_levels(first: Floats, second: Floats) -> tuple[Floats, ...] | None:
    """Distinct values of each column, if an output can be numbered by them."""
    found, size = [], 1.0
    for one, other in zip(first.T, second.T, strict=True):
        often = np.unique(one[:_SAMPLE])
        if len(often) > _SAMPLE // 20:
            return None
        both = np.concatenate([one, other])
        values = find_values(both[~np.isnan(both)], often[~np.isnan(often)])
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
        return np.asarray(score_mixtures([self], encoded)[0])

    def describe(self, threshold: float, *, first: bool) -> str:
        """Name the types of outputs that are inside, if that says something, and the sum."""
        way = "at least" if first else "at most"
        told = (
            "the log ratios of which values repeat, and of the other numbers given that, add up "
            f"to {way} {threshold:.4g}"
        )
        always, never, partly = self._divide_types(threshold, first=first)
        if not (always | never and never | partly and always | partly):  # they do not tell
            return told
        parts = [f"of the type {' or '.join(sorted(always))}"] * bool(always)
        parts += [f"of the type {' or '.join(sorted(partly))}, and {told}"] * bool(partly)
        return f"the output is {'; or '.join(parts)} (rare outputs aside)"

    def _divide_types(
        self, threshold: float, *, first: bool
    ) -> tuple[set[str], set[str], set[str]]:
        """Types of which all outputs that were seen often are inside, none is, and some are."""
        sides: dict[str, set[bool]] = {}
        for pattern, ratio, free in zip(self.patterns, self.ratios, self.free, strict=False):
            ends = [ratio + sum(end(each[2][:-1]) for each in free) for end in (np.min, np.max)]
            inside = {bool(end >= threshold if first else end <= threshold) for end in ends}
            sides.setdefault(self._name_type(float(pattern)), set()).update(inside)
        found = ({True}, {False}, {True, False})
        always, never, partly = ({k for k, v in sides.items() if v == each} for each in found)
        return always, never, partly

    def _name_type(self, pattern: float) -> str:
        """Name the type of the outputs with a pattern: its first column, the highest digit."""
        if not self.encoder.objects:
            return ""
        for known in reversed(self.atoms[1:]):
            pattern //= len(known) + 2
        atom = int(pattern) - 2
        code = float(self.atoms[0][atom]) if atom >= 0 else 0.0
        return name_type(self.encoder, code)


def score_mixtures(family: list[Mixture], encoded: Floats) -> Floats:
    """Score each output by several mixtures of the same patterns."""
    one = family[0]
    parts = _join_parts(one.encoder, encoded)
    at = find_places(_encode_patterns(parts, one.atoms), one.patterns)
    totals = np.stack([each.ratios[at] for each in family])
    for number in range(len(one.patterns)):
        here = np.flatnonzero(at == number) if any(each.free[number] for each in family) else ()
        for total, each in zip(totals, family, strict=True):
            for column, edges, ratios in each.free[number]:
                total[here] += ratios[assign_bins(parts[here, column], edges)]
    return totals


def fit_mixtures(
    encoder: Encoder, first: Floats, second: Floats, binnings: tuple[Binning, ...]
) -> list[Mixture]:
    """Fit patterns and the numbers given them, for several binnings.

    None at all if no value repeats, all do, or there are too many patterns to number.
    """
    sides = [_join_parts(encoder, each) for each in (first, second)]
    atoms = tuple(
        _find_atoms(np.concatenate(both)) for both in zip(*(s.T for s in sides), strict=True)
    )
    if not any(map(len, atoms)) or np.prod([len(a) + 2.0 for a in atoms]) > _RADIX_LIMIT:
        return []
    codes = [_encode_patterns(each, atoms) for each in sides]
    patterns, counts = np.unique(np.concatenate(codes), return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_MOST_PATTERNS]
    patterns = np.sort(patterns[often[counts[often] >= _LEAST]])
    if len(patterns) < 2:
        return []
    at = [find_places(code, patterns) for code in codes]
    every = np.array([np.bincount(each, minlength=len(patterns) + 1) for each in at])
    free = [
        _fit_free_columns(
            pattern,
            [side[here == number] for side, here in zip(sides, at, strict=True)],
            binnings,
            atoms,
        )
        for number, pattern in enumerate(patterns)
    ]
    ratios = compute_log_ratios(every[0], every[1])
    mixed = (tuple(each[which] for each in free) for which in range(len(binnings)))
    return [
        Mixture(encoder=encoder, atoms=atoms, patterns=patterns, ratios=ratios, free=each)
        for each in mixed
        if any(each)
    ]


def _join_parts(encoder: Encoder, encoded: Floats) -> Floats:
    if not encoder.objects:
        return encoder.values(encoded)
    names: tuple[FeatureMap, ...] = ("structure", "values")
    return np.concatenate([apply_feature_map(encoder, encoded, name) for name in names], axis=1)


def _encode_patterns(parts: Floats, atoms: tuple[Floats, ...]) -> Floats:
    """Code patterns: for each column 0 for a free number, else the atom or NaN."""
    codes = np.zeros(len(parts))
    for start in range(0, len(parts), _BLOCK):
        some = parts[start : start + _BLOCK]
        for column, known in zip(some.T, atoms, strict=True):
            digit = np.isnan(column).view(np.uint8)
            for number, value in enumerate(known, start=2):
                digit += np.uint8(number) * (column == value)
            codes[start : start + _BLOCK] *= len(known) + 2
            codes[start : start + _BLOCK] += digit
    return codes


def _find_atoms(column: Floats) -> Floats:
    some = column[:: max(1, len(column) // _SAMPLE)]
    values, counts = np.unique(some[~np.isnan(some)], return_counts=True)
    often = counts >= max(2.0, _ATOM_SHARE * len(some))
    order = np.argsort(-counts[often], kind="stable")[:_MOST_ATOMS]
    return np.sort(values[often][order])


def _fit_free_columns(
    pattern: float, sides: list[Floats], binnings: tuple[Binning, ...], atoms: tuple[Floats, ...]
) -> list[tuple[tuple[int, Floats, Floats], ...]]:
    """Histograms of the free columns of a pattern, for each binning."""
    found: list[list[tuple[int, Floats, Floats]]] = [[] for _ in binnings]
    for column in reversed(range(len(atoms))):  # the last column is the lowest digit
        pattern, digit = divmod(pattern, len(atoms[column]) + 2)
        one, other = (side[:, column] for side in sides)
        if digit == 0 and len(one) and len(other):
            fitted = fit_columns((one, other), binnings)
            for kept, (edges, ratios) in zip(found, fitted, strict=True):
                if len(edges):
                    kept.append((column, edges, ratios))
    return [tuple(each) for each in found]
