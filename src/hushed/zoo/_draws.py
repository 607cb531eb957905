"""General mechanisms of the zoo: a statistic of the rows plus noise, and what is done with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed.zoo._record import Rows

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Values]
Statistic = Callable[[Rows], float | Rows]


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent draws of a law that NumPy has, centred (the exponential one starts at 0)."""

    law: Literal["laplace", "normal", "exponential"]
    scale: float

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...], /) -> Values:
        """Draw an array of that shape."""
        return np.asarray(getattr(rng, self.law)(scale=self.scale, size=shape))


@dataclass(frozen=True, slots=True)
class Noisy:
    """A statistic plus independent noise, then a step that sees the noisy values only.

    A number with no ``columns`` gives outputs of shape (size,), a vector of k numbers (size, k).
    With ``columns`` there are so many draws of noise for each output.
    """

    statistic: Statistic
    noise: Draw
    columns: int | None = None
    after: Callable[[Values], Any] | None = None

    def __call__(self, rows: Rows, rng: np.random.Generator, size: int, /) -> NDArray[Any]:
        """Draw ``size`` outputs."""
        centre = np.asarray(self.statistic(rows), dtype=np.float64)
        shape = (size, *centre.shape) if self.columns is None else (size, self.columns)
        noisy = np.asarray(centre + self.noise(rng, shape))
        return noisy if self.after is None else np.asarray(self.after(noisy))


def first(rows: Rows, /) -> float:
    """Take the first row."""
    return float(rows[0])


def every_row(rows: Rows, /) -> Rows:
    """Take all rows, as bins or answers."""
    return rows


def count(rows: Rows, /) -> float:
    """Count the rows."""
    return float(rows.size)


def clipped_sum(rows: Rows, /, *, low: float, high: float) -> float:
    """Add up the rows, each moved into its bounds."""
    return float(np.clip(rows, low, high).sum())


def draw_geometric(
    rng: np.random.Generator, shape: tuple[int, ...], /, *, decay: float, unit: float = 1.0
) -> Values:
    """Draw multiples z of a unit, with probability proportional to ``exp(-decay |z|)``.

    Each is the difference of two geometric variables, each the floor of an exponential one.
    """
    pair = np.floor(rng.standard_exponential(size=(2, *shape)) / decay)
    return np.asarray((pair[0] - pair[1]) * unit)


def draw_sampled_count(
    rows: Rows, rng: np.random.Generator, size: int, /, *, rate: float, noise: Draw
) -> Values:
    """Draw the noisy number of rows in a Poisson sample."""
    kept = rng.binomial(rows.size, rate, size=size)
    return np.asarray(kept + noise(rng, (size,)))


def release_above(
    rows: Rows, rng: np.random.Generator, size: int, /, *, noise: Draw, least: float
) -> Values:
    """Draw the noisy number of rows; withhold it (NaN) if it is below ``least`` or no row is there.

    A key without rows does not occur in the table, so nothing is drawn for it.
    """
    if rows.size == 0:
        return np.full(size, np.nan)
    noisy = rows.size + noise(rng, (size,))
    return np.where(noisy >= least, noisy, np.nan)
