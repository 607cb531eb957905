"""A score for outputs of mixed parts: which values repeat, then the log ratios of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._histograms import Grain, bin_numbers, fit_column, log_ratios
from hushed.auditing._outputs import Encoder
from hushed.auditing._views import View, view

__all__ = ["Mixture", "fit_mixture"]

Floats = NDArray[np.float64]

_ROWS_FOR_ATOMS = 20_000
_ATOM_SHARE = 0.01
_MOST_ATOMS = 8  # of a column
_RADIX_LIMIT = 2**52
_LEAST = 400  # runs with a pattern, on both tables together
_MOST_PATTERNS = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """Log ratio of the pattern of an output, plus those of its free numbers given the pattern.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    atoms : tuple of ndarray
        Values of each column that repeat, sorted.
    patterns : ndarray, shape (patterns,)
        Codes of the patterns seen often: which columns hold which atom, sorted.
    ratios : ndarray, shape (patterns + 1,)
        Log ratio of each pattern; the last is for all others.
    free : tuple of tuple of (int, ndarray, ndarray)
        For each pattern its free columns, with edges and log ratios of their bins.

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

    def of(self, encoded: Floats) -> Floats:
        """Score each output."""
        parts = _parts(self.encoder, encoded)
        codes = _codes(parts, self.atoms)
        at = np.minimum(np.searchsorted(self.patterns, codes), len(self.patterns) - 1)
        at = np.where(self.patterns[at] == codes, at, len(self.patterns))
        total = self.ratios[at]
        for number, columns in enumerate(self.free):
            here = np.flatnonzero(at == number) if columns else ()
            for column, edges, ratios in columns:
                total[here] += ratios[bin_numbers(parts[here, column], edges)]
        return total

    def words(self, threshold: float, *, first: bool) -> str:
        """Name the sum."""
        way = "at least" if first else "at most"
        return (
            "the log ratios of which values repeat, and of the other numbers given that, add up "
            f"to {way} {threshold:.4g}"
        )


def _parts(encoder: Encoder, encoded: Floats) -> Floats:
    names: tuple[View, ...] = ("structure", "values") if encoder.objects else ("values",)
    return np.concatenate([view(encoder, encoded, name) for name in names], axis=1)


def _codes(parts: Floats, atoms: tuple[Floats, ...]) -> Floats:
    """Code patterns: for each column 0 for a free number, else the atom or NaN."""
    codes = np.zeros(len(parts))
    for column, known in zip(parts.T, atoms, strict=True):
        digit = np.where(np.isnan(column), 1.0, 0.0)
        for number, value in enumerate(known):
            digit[column == value] = number + 2
        codes = codes * (len(known) + 2) + digit
    return codes


def _atoms(column: Floats) -> Floats:
    some = column[:: max(1, len(column) // _ROWS_FOR_ATOMS)]
    values, counts = np.unique(some[~np.isnan(some)], return_counts=True)
    often = counts >= max(2.0, _ATOM_SHARE * len(some))
    order = np.argsort(-counts[often], kind="stable")[:_MOST_ATOMS]
    return np.sort(values[often][order])


def fit_mixture(encoder: Encoder, first: Floats, second: Floats, grain: Grain) -> Mixture | None:
    """Fit patterns and the numbers given them.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    first, second : ndarray, shape (runs, columns)
        Training outputs on the two tables.
    grain : Grain
        How finely free numbers are looked at.

    Returns
    -------
    Mixture or None
        None if no value repeats, all do, or there are too many patterns to number.
    """
    sides = [_parts(encoder, each) for each in (first, second)]
    both = np.concatenate(sides)
    atoms = tuple(_atoms(column) for column in both.T)
    if not any(map(len, atoms)) or np.prod([len(a) + 2.0 for a in atoms]) > _RADIX_LIMIT:
        return None
    codes = [_codes(each, atoms) for each in sides]
    patterns, counts = np.unique(np.concatenate(codes), return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_MOST_PATTERNS]
    patterns = np.sort(patterns[often[counts[often] >= _LEAST]])
    if len(patterns) < 2:
        return None
    seen = np.stack([[float((side == each).sum()) for each in patterns] for side in codes])
    rest = np.array([[len(side)] for side in codes]) - seen.sum(axis=1, keepdims=True)
    every = np.concatenate([seen, rest], axis=1)
    free = tuple(
        _free(
            each,
            [side[code == each] for side, code in zip(sides, codes, strict=True)],
            grain,
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
        ratios=log_ratios(every[0], every[1]),
        free=free,
    )


def _free(
    pattern: float, sides: list[Floats], grain: Grain, atoms: tuple[Floats, ...]
) -> tuple[tuple[int, Floats, Floats], ...]:
    """Histograms of the free columns of a pattern."""
    found = []
    for column in reversed(range(len(atoms))):
        pattern, digit = divmod(pattern, len(atoms[column]) + 2)
        one, other = (side[:, column] for side in sides)
        if digit == 0 and len(one) and len(other):
            edges, ratios = fit_column(one, other, grain)
            if len(edges):
                found.append((column, edges, ratios))
    return tuple(found)
