"""Floats as whole steps, so that every engine adds them up exactly.

Sums of doubles depend on the order in which an engine adds them. A value is therefore clipped to
its bounds and rounded to a whole number of steps inside the engine, and whole numbers are added:
every engine finds the same sum, bit for bit, and the sensitivity of the sum is that of whole
numbers, with nothing to enlarge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hushed._ground.checks import is_real
from hushed._ground.printing import as_given
from hushed.errors import ParameterError

FARTHEST = 1e100  # bounds lie within; products of two such numbers stay far from overflow
NEAREST = 1e-100  # what is closer to zero counts as zero, so that no engine reports underflow
_VALUE_BITS = 30  # a value is at most 2**30 steps: 2**33 of them fit into 64 bits
_USER_BITS = 32  # all values of one user together, which is what the noise is scaled to
_EXACT_USER_BITS = 44
MOST_STEPS = 2**_EXACT_USER_BITS  # that one unit moves a sum by, whatever its bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """How a bounded float becomes a whole number of steps."""

    # Bounds that the value is clipped to.
    low: float
    high: float
    centre: float  # what is subtracted first; in the units of the value
    exponent: int  # A step is ``2**exponent`` of those units

    @property
    def step(self) -> float:
        """Size of a step in the units of the value."""
        return math.ldexp(1.0, self.exponent)

    @property
    def least(self) -> int:
        """Steps of the lower bound."""
        return self.steps(self.low)

    @property
    def largest(self) -> int:
        """Steps of the upper bound."""
        return self.steps(self.high)

    @property
    def most(self) -> int:
        """Largest absolute number of steps of one value."""
        return max(abs(self.least), abs(self.largest))

    def steps(self, value: float) -> int:
        """Round one value, exactly as the engines do."""
        if math.isnan(value):
            return 0
        offset = min(max(value, self.low), self.high) - self.centre
        if abs(offset) <= NEAREST:
            return 0
        return math.floor(offset * math.ldexp(1.0, -self.exponent) + 0.5)


def choose_grid(*, low: float, high: float, rows: int, centred: bool, integers: bool) -> Grid:
    """Choose the step for values within bounds, from public numbers only.

    A step is 1 where that keeps integers exact. Otherwise no value exceeds ``2**30`` steps, and the
    values of one unit do not exceed ``2**32`` steps together.
    """
    low, high = check_bounds(low, high)
    centre = low / 2 + high / 2 if centred else 0.0
    reach = max(abs(low - centre), abs(high - centre))
    exact = integers and float(low).is_integer() and float(high).is_integer()
    if (
        exact
        and centre.is_integer()
        and reach <= 2**_VALUE_BITS
        and reach * rows <= 2**_EXACT_USER_BITS
    ):
        return Grid(low=low, high=high, centre=centre, exponent=0)
    bits = min(_VALUE_BITS, _USER_BITS - (rows - 1).bit_length())
    if bits < 1:
        raise ParameterError(
            f"a user may contribute at most 2**{_USER_BITS - 1} rows to a sum, got {rows}"
        )
    exponent = math.frexp(reach)[1] - bits
    return Grid(low=low, high=high, centre=centre, exponent=exponent)


def check_bounds(low: float, high: float) -> tuple[float, float]:
    """Refuse bounds that are swapped, equal, not finite or too large."""
    for name, bound in (("low", low), ("high", high)):
        if not is_real(bound) or not abs(bound) <= FARTHEST:
            raise ParameterError(
                f"{name} must be a finite number within {FARTHEST:g}, got {as_given(bound)}"
            )
    found = float(low), float(high)
    if found[0] > found[1]:
        raise ParameterError(f"the bounds are swapped: low={low} is above high={high}")
    if found[1] - found[0] < 2 * NEAREST:
        raise ParameterError(
            f"low must be below high, got low={low} and high={high}", parameter="low"
        )
    return found
