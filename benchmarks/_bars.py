"""Bars: how good a figure has to be. Each figure is printed beside its bar, as passed or MISSED."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import inf, nan


@dataclass(frozen=True)
class Bar:
    """A figure that has to be at most so large, or at least."""

    name: str
    most: float = inf
    least: float = -inf
    unit: str = ""

    def holds(self, found):
        """Whether a figure is within the bar; one that is no number is not."""
        return self.least <= found <= self.most

    def tell(self, found):
        wanted = f"at most {self.most:g}" if self.least == -inf else f"at least {self.least:g}"
        told = "passed" if self.holds(found) else "MISSED"
        return f"{told}  {self.name:34} {found:10.3f} {self.unit}, wanted: {wanted}"


def compare(bars, figures):
    """Print every figure beside its bar; how many are missed, what was not measured among them."""
    missed = 0
    for bar in bars:
        found = figures.get(bar.name, nan)
        missed += not bar.holds(found)
        print(bar.tell(found))
    return missed


def require(bars, figures):
    """End the program with an error if a bar is missed."""
    missed = compare(bars, figures)
    if missed:
        sys.exit(f"{missed} of {len(bars)} bars are missed")
