"""Plug-in and minimax scores of tuples of counts: polynomials where the kink hurts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hushed.divergences._approximation import (
    best_absolute_value,
    root_difference,
    root_sum,
    tensor_product,
)
from hushed.divergences._counts import Column, Model
from hushed.divergences._unbiased import chebyshev_table, difference_moments
from hushed.errors import ParameterError

Product = Literal["joint", "separate"]
Score = Callable[[Column, Column, Column, Column], NDArray[np.float64]]

_LARGEST_DEGREE = 45
_PART = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """Sizes and constants of the minimax estimator.

    Notes
    -----
    Liu and Oh, *Minimax Rates of Estimating Approximate Differential Privacy*, NeurIPS 2019,
    Algorithm 2. They state it for equal sizes; here n in thresholds is the smaller size.
    """

    samples: tuple[float, float]  # sample sizes of p and q
    weight: float  # exp(epsilon), the factor of p
    model: Model  # how the sample sizes came about
    # The constant c1: where small counts end, and how wide the polynomials reach.
    small: float = 4.0
    slack: float = 0.1  # the constant c2: widens the window around the kink
    growth: float = 1.5  # the constant c3: the degree is floor(c3 log n)
    # For small counts: an unbiased estimate of the product polynomial, or the product of unbiased
    # estimates of its factors, as in the code of the authors.
    product: Product = "joint"

    @property
    def rate(self) -> float:
        """Log n over n: the probability below which counts say little."""
        n = min(self.samples)
        return math.log(n) / n

    @property
    def degree(self) -> int:
        """Degree of the polynomials."""
        return math.floor(self.growth * math.log(min(self.samples)))


def plug_in_score(scheme: Scheme) -> Score:
    """Score that puts the observed shares in."""

    def score(_p1: Column, _q1: Column, p2: Column, q2: Column) -> NDArray[np.float64]:
        return np.maximum(q2 / scheme.samples[1] - scheme.weight * (p2 / scheme.samples[0]), 0.0)

    return score


def regimes(
    scheme: Scheme, p1: Column, q1: Column
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Where symbols lie: surely above the kink, near it with small counts, near it with large.

    Above, small, large; in none of them: surely below, score 0.
    """
    p, q = scheme.weight * (p1 / scheme.samples[0]), q1 / scheme.samples[1]
    distance = np.sqrt(q) - np.sqrt(p)
    window = math.sqrt((scheme.small + scheme.slack) * scheme.rate)
    near = np.abs(distance) <= window
    few = p + q < scheme.small * scheme.rate
    return distance > window, near & few, near & ~few


def minimax_score(scheme: Scheme) -> Score:
    """Score by Liu and Oh's three regimes."""
    if scheme.degree > _LARGEST_DEGREE or 2 * scheme.degree > min(scheme.samples):
        raise ParameterError(
            f"samples of {min(scheme.samples):.0f} with growth={scheme.growth} ask for degree "
            f"{scheme.degree}; allowed is at most {_LARGEST_DEGREE}, and half the sample size: "
            "lower growth"
        )
    plug_in = plug_in_score(scheme)

    def score(p1: Column, q1: Column, p2: Column, q2: Column) -> NDArray[np.float64]:
        above, small, large = regimes(scheme, p1, q1)
        scores = np.zeros(len(p1))
        scores[above] = q2[above] / scheme.samples[1] - scheme.weight * (
            p2[above] / scheme.samples[0]
        )
        if scheme.degree < 1:
            near = small | large
            scores[near] = plug_in(p1[near], q1[near], p2[near], q2[near])
            return scores
        if small.any():
            scores[small] = small_scores(scheme, p2[small], q2[small])
        if large.any():
            unit = p1[large] / scheme.samples[0] * scheme.weight + q1[large] / scheme.samples[1]
            width = math.sqrt(8 * scheme.small * scheme.rate) * np.sqrt(unit)
            scores[large] = _in_parts(scheme, p2[large], q2[large], width)
        return scores

    return score


def _in_parts(
    scheme: Scheme, p: Column, q: Column, width: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Score a part at a time, so that the tables of moments stay in the processor's cache."""
    parts = [slice(start, start + _PART) for start in range(0, len(p), _PART)]
    return np.concatenate([large_scores(scheme, p[i], q[i], width[i]) for i in parts])


def small_scores(scheme: Scheme, p: Column, q: Column) -> NDArray[np.float64]:
    """Scores near the kink by tensor Chebyshev approximation, for small counts."""
    reach = 2 * scheme.small * scheme.rate
    degree = scheme.degree * (2 if scheme.product == "joint" else 1)
    columns, rows = (
        chebyshev_table(int(count.max()), degree, size, factor / reach, scheme.model)
        for count, size, factor in zip((p, q), scheme.samples, (scheme.weight, 1.0), strict=True)
    )
    if scheme.product == "joint":
        table = rows @ _product(scheme.degree) @ columns.T
    else:
        first, second = root_difference(scheme.degree), root_sum(scheme.degree)
        table = (rows @ first @ columns.T) * (rows @ second @ columns.T)
    # T_k(-1) = (-1)**k, so the first entry of the table is the polynomial at the corner.
    return np.asarray(reach * (table[q, p] - table[0, 0]))


@lru_cache(maxsize=64)
def _product(degree: int) -> NDArray[np.float64]:
    return tensor_product(root_difference(degree), root_sum(degree))


def large_scores(
    scheme: Scheme, p: Column, q: Column, width: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores near the kink by the best approximation of |z|, for large counts.

    Notes
    -----
    The polynomial is expanded around the observed point: the sum over its monomials cancels
    (at n = 1e6, p = 0.3 it gives -4e17 for 3e-4), this one does not.
    """
    here = scheme.weight * (p / scheme.samples[0]) - q / scheme.samples[1]
    taylor = best_absolute_value(scheme.degree).taylor(here / width)
    moments = difference_moments(
        (p, q),
        scheme.samples,
        scheme.weight,
        unit=width,
        degree=scheme.degree,
        model=scheme.model,
    )
    return np.asarray(0.5 * (width * np.einsum("ij,ij->j", taylor, moments) - here))
