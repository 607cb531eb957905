"""Unbiased estimates of polynomials in probabilities, from counts, free of cancellation."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushed.divergences._counts import Column, Model


@lru_cache(maxsize=256)
def chebyshev_table(
    largest: int, degree: int, samples: float, scale: float, model: Model
) -> NDArray[np.float64]:
    """Unbiased estimates of shifted Chebyshev polynomials from small counts.

    Row N, column k: the estimate of the k-th polynomial from the count N; read-only. Summed in
    whole numbers with 128 bits to spare, then rounded once, since the monomials cancel by a factor
    of about 5.8**degree.

    Notes
    -----
    ``N (N-1) ... (N-i+1)`` has mean ``(n p)**i`` for Poisson counts and
    ``n (n-1) ... (n-i+1) p**i`` for binomial ones.
    """
    bits = 128 + 6 * degree
    ratio, size = Fraction(scale), Fraction(samples)
    polynomials = _shifted_chebyshev(degree)
    table = np.empty((largest + 1, degree + 1))
    steps = [ratio / (size - i if model == "fixed" else size) for i in range(degree)]
    for count in range(largest + 1):
        powers = [1 << bits]
        for i in range(min(degree, count)):
            step = steps[i]
            powers.append(powers[-1] * (count - i) * step.numerator // step.denominator)
        for k, polynomial in enumerate(polynomials):
            total = sum(map(int.__mul__, polynomial, powers))
            table[count, k] = float(Fraction(total, 1 << bits))
    table.flags.writeable = False
    return table


@lru_cache(maxsize=8)
def _shifted_chebyshev(degree: int) -> Sequence[list[int]]:
    """Integer coefficients of ``T_k(2x - 1)``, lowest first, for k up to the degree."""
    rows = [[1], [-1, 2]]
    while len(rows) <= degree:
        before, last = rows[-2], rows[-1]
        row = [-2 * c for c in last] + [0]
        for i, c in enumerate(last):
            row[i + 1] += 4 * c
        rows.append([c - (before[i] if i < len(before) else 0) for i, c in enumerate(row)])
    return tuple(rows[: degree + 1])


def central_moments(
    counts: Column, samples: float, degree: int, model: Model
) -> NDArray[np.float64]:
    """Unbiased estimates of ``(p - c)**k``, taken at c = count / samples.

    Notes
    -----
    For a fixed c the estimate of ``(p - c)**k`` sums falling factorials, and the sum cancels. Its
    exponential generating function is ``exp(-c t) (1 + t/n)**N`` for Poisson counts and
    ``exp(-c t) 1F1(-N; -n; t)`` for a fixed size. At c = N/n both differential equations give
    recurrences of three terms: ``h[k+1] = -(k/n) (h[k] + c h[k-1])``, and
    ``h[k+1] = -(k/(n-k)) ((1 - 2c) h[k] + c (1-c) h[k-1])``.
    """
    c = counts / samples
    near, far = (1.0, c) if model == "poisson" else (1 - 2 * c, c * (1 - c))
    moments = np.zeros((degree + 1, len(counts)))
    moments[0] = 1.0
    for k in range(1, degree):
        step = moments[k + 1]
        np.multiply(far, moments[k - 1], out=step)
        step += near * moments[k]
        step *= -(k / (samples if model == "poisson" else samples - k))
    return moments


def difference_moments(
    counts: tuple[Column, Column],
    samples: tuple[float, float],
    weight: float,
    *,
    unit: NDArray[np.float64],
    degree: int,
    model: Model,
) -> NDArray[np.float64]:
    """Unbiased estimates of ``((weight (p - P) - (q - Q)) / unit)**m`` at the observed P, Q."""
    p, q = (
        central_moments(count, size, degree, model)
        for count, size in zip(counts, samples, strict=True)
    )
    scale_p, scale_q = weight / unit, -1.0 / unit
    factor_p, factor_q = np.ones_like(scale_p), np.ones_like(scale_q)
    for m in range(1, degree + 1):  # over m!: the binomial sum becomes a plain convolution
        factor_p, factor_q = factor_p * (scale_p / m), factor_q * (scale_q / m)
        p[m] *= factor_p
        q[m] *= factor_q
    moments = np.zeros_like(p)
    order = 1.0
    for m in range(degree + 1):
        order = order * m if m else 1.0
        moments[m] = order * np.einsum("ij,ij->j", p[: m + 1], q[m::-1])
    return moments
