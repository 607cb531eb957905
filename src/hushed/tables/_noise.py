"""Add noise to exact whole numbers; nothing is rounded between the sum and the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hushed.tables._plan import Choice, Part, PartitionSelection


def select_partitions(
    selection: PartitionSelection, keys: Sequence[str], users: Sequence[int]
) -> list[str]:
    """Select the keys whose noisy number of users reaches tau."""
    noisy = selection.noise.add_to(users)
    selected = [key for key, count in zip(keys, noisy, strict=True) if count >= selection.threshold]
    return sorted(selected)


def add_noise(part: Part, exact: Sequence[Any]) -> list[Any]:
    """Add noise to one measurement of all groups."""
    if isinstance(part.noise, Choice):
        return [_choose_candidate(part.noise, bins) for bins in exact]
    if part.measurement.role != "bins":
        return part.noise.add_to(exact)
    flat = part.noise.add_to([number for bins in exact for number in bins])
    width = part.measurement.feature.bins if part.measurement.feature else 1
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def _choose_candidate(choice: Choice, bins: Sequence[int]) -> int:
    """Choose a candidate by the exponential mechanism: an edge of the bins."""
    below = [0, *np.cumsum(np.asarray(bins, dtype=np.int64)).tolist()]
    scores = np.array([choice.score(each, below[-1]) for each in below], dtype=np.float64)
    return choice.law.draw(scores)
