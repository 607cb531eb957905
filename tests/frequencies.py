"""Tests of frequencies whose false-alarm rates are exact, however rare a cell is.

Release noise cannot be seeded, so a false alarm must be as rare as a test says. Chi-square is not:
one draw in a cell of 0.004 expected has "p = 3e-54", and one run in 250 has such a draw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


def pvalue_of_counts(counts: ArrayLike, expected: ArrayLike) -> float:
    """Probability value of counts of cells, given as many expected ones, of any total.

    Each cell, and each run of cells from the first on, has a two-sided binomial test; the least
    value counts as often as there are tests (Bonferroni).
    """
    seen, law = _with_runs(counts), _with_runs(expected)
    total, law = int(np.sum(counts)), (law / np.sum(expected)).clip(0, 1)
    below = stats.binom.cdf(seen, total, law)
    return _least(below, stats.binom.sf(seen - 1, total, law))


def pvalue_of_two_samples(first: ArrayLike, second: ArrayLike) -> float:
    """Probability value of two lists of counts of the same cells, if one law drew both.

    As `pvalue_of_counts`, with the hypergeometric law of the first list, given the sums.
    """
    seen, both = _with_runs(first), _with_runs(np.add(first, second))
    law = stats.hypergeom(int(np.sum(first) + np.sum(second)), both, int(np.sum(first)))
    return _least(law.cdf(seen), law.sf(seen - 1))


def _with_runs(cells: ArrayLike) -> NDArray:
    """Cells, and the sums of the first two, three, ... of them."""
    cells = np.asarray(cells)
    assert cells.size > 1
    return np.append(cells, np.cumsum(cells)[1:-1])


def _least(below: NDArray, above: NDArray) -> float:
    return float(min(1.0, 2 * below.size * np.minimum(below, above).min()))
