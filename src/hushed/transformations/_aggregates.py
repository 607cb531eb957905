"""How far an aggregate moves when rows change: real arithmetic, every result rounded up.

All functions take the distance of two tables and the metric it is counted in:

* ``"symmetric"``: rows added plus rows removed; sizes may differ (unbounded neighbours).
* ``"change-one"``: rows replaced; both tables have the same number of rows (bounded neighbours).

With a known ``size`` both tables have that many rows; a symmetric distance is then even, and
``distance // 2`` rows are replaced. What floating point adds is in
`hushed.transformations._arithmetic`. The bounds are folklore, collected by Dwork and Roth, *The
Algorithmic Foundations of Differential Privacy*, 2014, Section 3; proofs stand in the notes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, get_args

from hushed._ground.checks import require_count, require_one_of, require_within
from hushed._ground.numeric import finite_above, root_above
from hushed.errors import ParameterError

RowMetric = Literal["symmetric", "change-one"]
CountNorm = Literal["l1", "l2", "sup", "one-sided"]


def count_sensitivity(
    distance: int, *, metric: RowMetric = "symmetric", size: int | None = None
) -> float:
    """Bound the movement of the number of rows.

    ``distance``; 0 if both tables have the same number of rows.
    """
    if _replaced(distance, metric, size) is not None:
        return 0.0
    return finite_above(Fraction(distance))


def sum_sensitivity(
    distance: int,
    *,
    low: float,
    high: float,
    metric: RowMetric = "symmetric",
    size: int | None = None,
) -> float:
    """Bound the movement of a sum of numbers in [low, high].

    ``distance max(|low|, |high|)``, or ``(high - low)`` for each replaced row; rounded up. Tight.
    """
    width, largest = _bounds(low, high)
    replaced = _replaced(distance, metric, size)
    return finite_above(distance * largest if replaced is None else replaced * width)


def mean_sensitivity(
    distance: int,
    *,
    low: float,
    high: float,
    metric: RowMetric = "symmetric",
    size: int | None = None,
    least: int | None = None,
) -> float:
    """Bound the movement of a mean of numbers in [low, high].

    ``(high - low) / size`` for each replaced row. Without a public size the bound does not shrink
    with the table: ``(high - low) / 2`` for one row added or removed, ``high - low`` for more. With
    ``least`` rows in both tables, or made up by middles of the bounds, it is
    ``(high - low) d / (least + min(d, least))`` for d rows added or removed, ``1 / least`` of the
    width for each one replaced, and the width at most. Rounded up. Tight; with ``least`` rows in
    the tables themselves, for an odd d above ``least`` the next even one is what is reached.

    Notes
    -----
    Without a size, the mean of no rows must be answered by the middle of the bounds. One row
    added to n rows of mean m moves the mean by ``|x - m| / (n + 1)``, at most half the width
    for n of 1 or more; and half the width away from the middle for n = 0. Proof of the bound with
    ``least``: docs/transformations.md.
    """
    width, _ = _bounds(low, high)
    replaced = _replaced(distance, metric, size)
    if replaced is not None and size is not None:
        return finite_above(width * replaced / _not_empty(size))
    if least is not None:
        known = _count("least", least)
        total = known if replaced is not None else known + min(distance, known)
        return finite_above(width * min(Fraction(distance, total), Fraction(1)))
    half = distance == 1 and replaced is None
    return finite_above(width * min(distance, 1) / (2 if half else 1))


def variance_sensitivity(
    distance: int,
    *,
    low: float,
    high: float,
    metric: RowMetric = "symmetric",
    size: int | None = None,
    least: int | None = None,
) -> float:
    """Bound the movement of the variance (divisor n) of numbers in [low, high].

    ``k (size - k) / size**2 (high - low)**2`` with k the number of replaced rows, at most ``size //
    2``; without a public size ``(high - low)**2 / 4``, the range of a variance. With ``least`` rows
    in both tables ``least d / (least + d)**2`` of the width squared for d rows added or removed, at
    most ``least`` of them, and ``d (least - d) / least**2`` for d replaced, at most half of
    ``least``; for more the whole range. Rounded up. Tight.

    Notes
    -----
    Let j of N rows change, and let the others have variance v and mean m. The variance is at
    least ``(N - j) v / N``, and with changed rows x it is ``(N - j) v / N + (j / N) var(x) +
    (j (N - j) / N**2) (mean(x) - m)**2``, so the movement is at most the sum of the last two
    terms. That is convex in m and in every x, so largest at the ends: with a share p of the
    changed rows at one end and everything else at the other it is ``q (1 - q)`` for q = p j / N,
    times the width squared: k (N - k) / N**2 for k = p j. Proof of the bound with ``least``:
    docs/transformations.md.
    """
    width, _ = _bounds(low, high)
    replaced = _replaced(distance, metric, size)
    if replaced is not None and size is not None:
        k = min(replaced, _not_empty(size) // 2)
        return finite_above(width * width * k * (size - k) / (size * size))
    if least is not None:
        share = Fraction(distance, _count("least", least) + (distance if replaced is None else 0))
        return finite_above(width * width * _spread(min(share, Fraction(1, 2))))
    return finite_above(width * width * min(distance, 1) / 4)


def histogram_sensitivity(
    distance: int,
    *,
    norm: CountNorm,
    metric: RowMetric = "symmetric",
    size: int | None = None,
    per_bin: int | None = None,
) -> float:
    """Bound the movement of the counts in disjoint bins.

    The norm "one-sided" is the largest rise of a count plus the largest fall of one. At most
    ``per_bin`` rows of one bin are added, and at most as many removed. Rounded up. For added or
    removed rows: ``distance`` in every norm; with ``per_bin=1`` it is ``sqrt(distance)`` in l2, 1
    in sup and at most 2 one-sided. For j replaced rows: ``2 j`` in l1 and one-sided, ``sqrt(2) j``
    in l2, ``j`` in sup. Tight where bins do not run out.
    """
    require_one_of("norm", norm, get_args(CountNorm))
    replaced = _replaced(distance, metric, size)
    rows, sides = (distance, 1) if replaced is None else (replaced, 2)
    most = rows if per_bin is None else min(rows, _count("per_bin", per_bin))
    if norm == "l1" or rows == 0:
        return finite_above(Fraction(sides * rows))
    if norm == "sup":
        return finite_above(Fraction(most))
    if norm == "one-sided":  # no bin gains more than was added to it, none loses more than removed
        return finite_above(Fraction(min(sides * rows, 2 * most)))
    return finite_above(root_above(sides * squared_counts(rows, per_bin=most)))


def squared_counts(rows: int, *, per_bin: int) -> int:
    """Square of the l2 movement of counts: rows fill as few bins as they can; exact."""
    full, rest = divmod(rows, per_bin)
    return full * per_bin * per_bin + rest * rest


def quantile_scores_sensitivity(
    distance: int,
    *,
    alpha: float,
    metric: RowMetric = "symmetric",
    size: int | None = None,
) -> float:
    """Bound the movement of the quantile scores of public candidates, in the sup norm.

    The score of candidate c is ``-|(1 - alpha) #(x < c) - alpha #(x > c)|``.

    ``max(alpha, 1 - alpha)`` for each row added or removed; 1 for each row replaced (from below c
    to above it). Rounded up. Tight.

    Notes
    -----
    The scores do not all move in one direction: a row added above two candidates, one below the
    quantile and one above it, lowers the score of the first and raises that of the second. The
    largest rise plus the largest fall reaches twice the bound, so nothing is gained by a one-sided
    distance.
    """
    require_within("alpha", alpha, 0, 1)
    replaced = _replaced(distance, metric, size)
    if replaced is not None:
        return finite_above(Fraction(replaced))
    return finite_above(exact_scores_movement(distance, Fraction(alpha)))


def exact_scores_movement(rows: int, level: Fraction) -> Fraction:
    """Movement of a quantile score when rows are added or removed; exact."""
    return rows * max(level, 1 - level)


def vector_sum_sensitivity(
    distance: int,
    *,
    bound: float,
    metric: RowMetric = "symmetric",
    size: int | None = None,
) -> float:
    """Bound the movement of a sum of vectors, in the norm that bounds every row.

    ``bound`` for each row added or removed, ``2 bound`` for each row replaced; rounded up. Tight.
    """
    return sum_sensitivity(distance, low=-bound, high=bound, metric=metric, size=size)


def _spread(share: Fraction) -> Fraction:
    """Variance of rows of which a share is at one bound, and the rest at the other."""
    return share * (1 - share)


def _replaced(distance: int, metric: RowMetric, size: int | None) -> int | None:
    """Rows replaced, if both tables have equally many rows; None if sizes may differ."""
    _count("distance", distance, 0)
    require_one_of("metric", metric, get_args(RowMetric))
    if size is not None:
        _count("size", size, 0)
    if metric == "symmetric" and size is None:
        return None
    replaced = distance if metric == "change-one" else distance // 2
    return replaced if size is None else min(replaced, size)


def _bounds(low: float, high: float) -> tuple[Fraction, Fraction]:
    """Width and largest magnitude of an interval."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ParameterError(f"bounds must be finite with low <= high, got [{low}, {high}]")
    return Fraction(high) - Fraction(low), max(abs(Fraction(low)), abs(Fraction(high)))


def _count(name: str, value: int, least: int = 1) -> int:
    """Refuse what is no count, and NumPy's integers: their products overflow without a word."""
    return require_count(name, value, least=least, plain=True)


def _not_empty(size: int) -> int:
    return _count("size", size)
