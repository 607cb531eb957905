"""Add noise to exact whole numbers; nothing is rounded between the sum and the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hushed import noise
from hushed.tables._plan import Choice, GaussianNoise, LaplaceNoise, Part, PartitionSelection


def select_partitions(
    selection: PartitionSelection, keys: Sequence[str], users: Sequence[int]
) -> list[str]:
    """Select the keys whose noisy number of users reaches tau."""
    extra = noise.discrete_laplace(selection.noise.scale, len(keys)).tolist()
    selected = [
        key
        for key, count, more in zip(keys, users, extra, strict=True)
        if count + more >= selection.threshold
    ]
    return sorted(selected)


def add_noise(part: Part, exact: Sequence[Any]) -> list[Any]:
    """Add noise to one measurement of all groups."""
    if isinstance(part.noise, Choice):
        return [_choose_candidate(part.noise, bins) for bins in exact]
    if part.measurement.role != "bins":
        return _add_to_numbers(part.noise, list(exact))
    flat = _add_to_numbers(part.noise, [number for bins in exact for number in bins])
    width = part.measurement.feature.bins if part.measurement.feature else 1
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def _add_to_numbers(law: LaplaceNoise | GaussianNoise, exact: list[int]) -> list[Any]:
    if not exact:
        return []
    if isinstance(law, LaplaceNoise):
        draws = noise.discrete_laplace(law.scale, len(exact)).tolist()
        return [number + more for number, more in zip(exact, draws, strict=True)]
    grid = law.grid(len(exact))
    draws = noise.discrete_gaussian(grid.scale, len(exact)).tolist()
    return [
        _add_on_grid(number, more, grid.exponent) for number, more in zip(exact, draws, strict=True)
    ]


def _add_on_grid(number: int, more: int, exponent: int) -> float:
    """Add noise in steps of ``2**exponent`` to a whole number; the nearest double."""
    if exponent <= 0:
        return ((number << -exponent) + more) / (1 << -exponent)
    return math.ldexp(float(_round_to_multiple(number, exponent) + more), exponent)


def _round_to_multiple(number: int, exponent: int) -> int:
    """Round to a multiple of ``2**exponent``, and give the factor; ties upwards."""
    return (number + (1 << (exponent - 1))) >> exponent


def _choose_candidate(choice: Choice, bins: Sequence[int]) -> int:
    """Choose a candidate by the exponential mechanism: an edge of the bins."""
    below = [0, *np.cumsum(np.asarray(bins, dtype=np.int64)).tolist()]
    scores = np.array([choice.score(each, below[-1]) for each in below], dtype=np.float64)
    return noise.select(scores, width=float(choice.width), epsilon=choice.epsilon)
