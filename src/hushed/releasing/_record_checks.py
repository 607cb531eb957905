"""What a certificate states of its mechanism, compared with what follows from its parameters."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate

Drawn = tuple[float, int, int, float]  # scale, grid, values and accuracy of a mechanism's record

FINGERPRINT = re.compile("[0-9a-f]{64}")
CLOSE = 1e-9  # mathematical libraries differ in the last digits


def is_near(one: float | None, other: float | None) -> bool:
    """Whether a stated number is the one that follows; whole numbers are compared exactly."""
    if one is None or other is None:
        return one is other
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return abs(one) <= sys.float_info.max and math.isclose(one, other, rel_tol=CLOSE)


def list_wrong_draw(certificate: Certificate, wanted: Drawn, source: str) -> list[str]:
    """Compare scale, grid, number of values and accuracy with those that follow from a source."""
    record = certificate.mechanism
    stated = (record.scale, record.grid, record.values, record.accuracy)
    return [
        f"mechanism.{name} {one!r} does not follow from {source} ({other!r} does)"
        for name, one, other in zip(
            ("scale", "grid", "values", "accuracy"), stated, wanted, strict=True
        )
        if not is_near(one, other)
    ]


def list_wrong_types(stated: Mapping[str, Any], fresh: Mapping[str, Any]) -> list[str]:
    """Compare names and types of parameters with those of the mechanism that they make."""
    if set(stated) != set(fresh):
        return [f"mechanism.parameters must be {', '.join(fresh)}"]
    return [
        f"mechanism.parameters.{name} is of another type"
        for name, value in fresh.items()
        if not _is_alike(stated[name], value)
    ]


def _is_alike(one: object, other: object) -> bool:
    """Whether both are numbers, texts or truth values; a whole number must stay one."""
    if type(other) is float:
        return type(one) in (int, float)
    return type(one) is type(other)
