"""A score for outputs that repeat: how often each whole output was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._histograms import Grain, fit_histograms
from hushed.auditing._leaning import fitted_slope
from hushed.auditing._outputs import STRUCTURE, Encoder
from hushed.auditing._views import View

__all__ = ["Symbols", "fit_symbols"]

Floats = NDArray[np.float64]

_MOST_SYMBOLS = 20_000
_ATOMS_OF = 20_000
_RADIX_LIMIT = 2**52
_PRIOR = Grain(bins=64, penalty=1.5)
_WEIGHTS = np.geomspace(1, 1e7, 29)  # of the prior, in runs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Symbols:
    """Log ratio of whole outputs, by their counts.

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


def fit_symbols(encoder: Encoder, first: Floats, second: Floats) -> Symbols | None:
    """Count whole outputs, if they are few.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    first, second : ndarray, shape (runs, columns)
        Training outputs on the two tables.

    Returns
    -------
    Symbols or None
        None if outputs hardly repeat.

    Notes
    -----
    The share of an output that belongs to the first table has a beta prior, centred at what the
    numbers in the output say one by one (`Histograms`, put on scale by logistic regression); its
    weight maximises the likelihood of the counts (empirical Bayes; beta-binomial).
    """
    levels = () if encoder.objects else _levels(first, second)
    if levels is None:
        return None
    both = [_codes(each, levels) for each in (first, second)]
    keys, where, at = np.unique(np.concatenate(both), return_index=True, return_inverse=True)
    if len(keys) > min(_MOST_SYMBOLS, len(first) / 4):
        return None
    counts = [np.bincount(part, minlength=len(keys)) for part in np.split(at, [len(first)])]
    sample = np.concatenate([first, second])[where]
    views: tuple[View, ...] = ("structure", "values") if encoder.objects else ("values",)
    parts = fit_histograms(encoder, first, second, views, _PRIOR)
    ratios = np.append(_shrunk(counts[0], counts[1], parts.of(sample)), 0.0)
    return Symbols(keys=keys, ratios=ratios, levels=levels, names=_names(encoder, sample))


def _shrunk(first: NDArray[np.int64], second: NDArray[np.int64], guess: Floats) -> Floats:
    """Log ratios of counts, drawn towards a guess as far as the counts bear it out."""
    from scipy import special  # noqa: PLC0415

    slope = fitted_slope(first, second, guess)
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
