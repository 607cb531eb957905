"""Add noise to exact whole numbers; nothing is rounded between the sum and the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushed.tables._plan import Choice, Part, PartitionSelection
from hushed.tables._top import TopChoice


def select_partitions(
    selection: PartitionSelection, keys: Sequence[str], users: Sequence[int]
) -> list[str]:
    """Select the keys whose noisy number of users reaches tau."""
    noisy = selection.noise.add_to(users)
    selected = [key for key, count in zip(keys, noisy, strict=True) if count >= selection.threshold]
    return sorted(selected)


def add_noise(part: Part, exact: Sequence[Any]) -> list[Any]:
    """Add noise to one measurement of all groups; of a top, choose the places of its groups."""
    if isinstance(part.noise, Choice):
        return [part.noise.law.draw(part.noise.scores(rows)) for rows in exact]
    if isinstance(part.noise, TopChoice):
        return part.noise.choose(exact)
    if part.measurement.role != "bins":
        return part.noise.add_to(exact)
    flat = part.noise.add_to([number for bins in exact for number in bins])
    width = part.measurement.feature.bins if part.measurement.feature else 1
    return [flat[start : start + width] for start in range(0, len(flat), width)]
