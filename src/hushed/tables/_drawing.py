"""Noise on exact whole numbers; nothing is rounded between the sum and the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hushed import noise
from hushed.tables._plan import Choice, LaplaceNoise, NormalNoise, Part, Selection


def named(selection: Selection, keys: Sequence[str], users: Sequence[int]) -> list[str]:
    """Draw which private keys may be named."""
    extra = noise.discrete_laplace(selection.noise.scale, len(keys)).tolist()
    reached = [
        key
        for key, count, more in zip(keys, users, extra, strict=True)
        if count + more >= selection.threshold
    ]
    return sorted(reached)


def drawn(part: Part, exact: Sequence[Any]) -> list[Any]:
    """Release one measurement of all groups."""
    if isinstance(part.noise, Choice):
        return [_chosen(part.noise, bins) for bins in exact]
    if part.measurement.role != "bins":
        return _noisy(part.noise, list(exact))
    flat = _noisy(part.noise, [number for bins in exact for number in bins])
    width = part.measurement.feature.bins if part.measurement.feature else 1
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def _noisy(law: LaplaceNoise | NormalNoise, exact: list[int]) -> list[Any]:
    if not exact:
        return []
    if isinstance(law, LaplaceNoise):
        draws = noise.discrete_laplace(law.scale, len(exact)).tolist()
        return [number + more for number, more in zip(exact, draws, strict=True)]
    grid = law.grid(len(exact))
    draws = noise.discrete_gaussian(grid.scale, len(exact)).tolist()
    return [
        _on_grid(number, more, grid.exponent) for number, more in zip(exact, draws, strict=True)
    ]


def _on_grid(number: int, more: int, exponent: int) -> float:
    """Whole number plus noise in steps of ``2**exponent``, as the nearest double."""
    if exponent <= 0:
        return ((number << -exponent) + more) / (1 << -exponent)
    return math.ldexp(float(_rounded(number, exponent) + more), exponent)


def _rounded(number: int, exponent: int) -> int:
    """Nearest multiple of ``2**exponent``, in multiples; ties upwards."""
    return (number + (1 << (exponent - 1))) >> exponent


def _chosen(choice: Choice, bins: Sequence[int]) -> int:
    """Index of the candidate drawn: between bins, or at one of the ends."""
    below = [0, *np.cumsum(np.asarray(bins, dtype=np.int64)).tolist()]
    scores = np.array([choice.score(each, below[-1]) for each in below], dtype=np.float64)
    return noise.select(scores, width=float(choice.width), epsilon=choice.epsilon)
