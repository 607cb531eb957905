"""What is drawn from the answers of the blocks: their clipped mean with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushed._ground.numeric import finite_above, root_above
from hushed._ground.types import Floats
from hushed.guarantee import Guarantee, Neighbours
from hushed.mechanisms import Gaussian, Laplace
from hushed.privacy_loss import PrivacyProfile
from hushed.spaces import Norm

_SHARE = 0.1  # of the range, for the error with the usual number of blocks
_WIDEST = 0.5  # of the range: an error beyond it says nothing
_SHORTENED = 1 - 2.0**-40  # so that the length of a clipped vector is not above the radius


@dataclass(frozen=True, slots=True)
class _Movement:
    """How far the mean over blocks moves, for `hushed.mechanisms`."""

    value: float
    norm: Norm
    neighbours: Neighbours = "replace-one"

    def guarantee(self, epsilon: float, delta: float = 0.0) -> Guarantee:
        """Promise for rows; whom it protects is said elsewhere."""
        return Guarantee(epsilon=epsilon, delta=delta)


def _count_blocks(aggregate: Mean | VectorMean, beta: float, largest: float) -> int:
    """Blocks that bring the error, which falls as 1 / B, to a bound; up to what rounding adds."""
    return max(1, math.ceil(replace(aggregate, blocks=1).accuracy(beta) / largest * (1 - 1e-9)))


@dataclass(frozen=True)
class Mean:
    """The mean of answers that are moved into a range, with Laplace noise."""

    norm: ClassVar[Norm] = "l1"
    delta: ClassVar[float] = 0.0
    shape: ClassVar[tuple[int, ...]] = ()

    low: float
    high: float
    epsilon: float
    blocks: int = 1

    @cached_property
    def movement(self) -> float:
        """How far one block's answer moves the mean, rounded up, what is lost to rounding included.

        Notes
        -----
        ``(high - low) / B``. The sum of B doubles in [0, high - low] is rounded once, and divided
        by B it is rounded again: below 2**-52 of the range on each of the two tables.
        """
        span = Fraction(self.high - self.low)
        return finite_above(span / self.blocks + span / (1 << 51))

    @cached_property
    def _noise(self) -> Laplace:
        return Laplace(_Movement(self.movement, self.norm), epsilon=self.epsilon)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level."""
        return self._noise.loss

    def least_blocks(self, beta: float) -> int:
        """Blocks from which on the error is half of the range, but with probability beta."""
        return _count_blocks(self, beta, _WIDEST * (self.high - self.low))

    def usual_blocks(self, beta: float) -> int:
        """Blocks from which on the error is a tenth of the range, but with probability beta."""
        return _count_blocks(self, beta, _SHARE * (self.high - self.low))

    def accuracy(self, beta: float) -> float:
        """Error of the noise, exceeded with probability beta."""
        return self._noise.accuracy(beta)

    def describe_draw(self) -> tuple[float, int, int, float]:
        """Scale, grid, number of values and accuracy, as a certificate states them."""
        scale, grid = self._noise.noise.drawn(1)
        return scale, grid, 1, self.accuracy(0.05)

    def middle(self, answers: Floats) -> float:
        """Mean without noise: for public answers only."""
        return self.low + self._offset(answers)

    def draw(self, answers: Floats) -> float:
        """Draw the noisy mean, in the range."""
        noisy = self._noise.draw(self._offset(answers))
        return float(np.clip(self.low + noisy, self.low, self.high))

    def imitate(self, answers: Floats, rng: np.random.Generator, size: int) -> list[float]:
        """Draw often, seeded and in doubles: for public answers only."""
        noise = rng.laplace(scale=self._noise.scale, size=size)
        noisy = np.clip(self.low + self._offset(answers) + noise, self.low, self.high)
        return list(map(float, noisy))

    def _offset(self, answers: Floats) -> float:
        """Mean above the low end; what is not a number counts as that end."""
        with np.errstate(over="ignore"):
            above = np.where(np.isnan(answers), 0.0, answers - self.low)
        return math.fsum(np.clip(above, 0.0, self.high - self.low).tolist()) / self.blocks


@dataclass(frozen=True)
class VectorMean:
    """The mean of vectors that are moved into a ball, with Gaussian noise."""

    norm: ClassVar[Norm] = "l2"

    centre: tuple[float, ...]
    radius: float
    epsilon: float
    delta: float
    blocks: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the function's answer."""
        return (len(self.centre),)

    @cached_property
    def movement(self) -> float:
        """How far one block's answer moves the mean, rounded up, what is lost to rounding included.

        Notes
        -----
        ``2 C / B``. Each coordinate of the mean is rounded twice, by less than 2**-52 of the radius
        C on each of the two tables.
        """
        radius = Fraction(self.radius)
        rounded = radius * root_above(len(self.centre)) / (1 << 51)
        return finite_above(2 * radius / self.blocks + rounded)

    @cached_property
    def _noise(self) -> Gaussian:
        return Gaussian(_Movement(self.movement, self.norm), epsilon=self.epsilon, delta=self.delta)

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level."""
        return self._noise.loss

    def least_blocks(self, beta: float) -> int:
        """Blocks from which on each error is within the radius, but with probability beta."""
        return _count_blocks(self, beta, self.radius)

    def usual_blocks(self, beta: float) -> int:
        """Blocks from which on each error is a fifth of the radius, but with probability beta."""
        return _count_blocks(self, beta, 2 * _SHARE * self.radius)

    def accuracy(self, beta: float) -> float:
        """Error of the noise that no coordinate exceeds but with probability beta."""
        return self._noise.accuracy(beta, len(self.centre))

    def describe_draw(self) -> tuple[float, int, int, float]:
        """Scale, grid, number of values and accuracy, as a certificate states them."""
        scale, grid = self._noise.noise.drawn(len(self.centre))
        return scale, grid, len(self.centre), self.accuracy(0.05)

    def middle(self, answers: Floats) -> Floats:
        """Mean without noise: for public answers only."""
        return np.asarray(np.array(self.centre) + self._offset(answers))

    def draw(self, answers: Floats) -> Floats:
        """Draw the noisy mean."""
        noisy = self._noise.draw(self._offset(answers))
        return np.asarray(np.array(self.centre) + noisy)

    def imitate(self, answers: Floats, rng: np.random.Generator, size: int) -> list[Any]:
        """Draw often, seeded and in doubles: for public answers only."""
        noise = rng.normal(scale=self._noise.scale, size=(size, len(self.centre)))
        return list(np.array(self.centre) + self._offset(answers) + noise)

    def _offset(self, answers: Floats) -> Floats:
        """Mean of the clipped differences to the centre; a failed call counts as the centre."""
        with np.errstate(over="ignore", invalid="ignore"):
            apart = answers - np.array(self.centre)
        apart[~np.isfinite(apart).all(axis=1)] = 0.0
        clipped = [self._clip(each) for each in apart]
        return np.array([math.fsum(column) / self.blocks for column in zip(*clipped, strict=True)])

    def _clip(self, apart: Floats) -> list[float]:
        """Shorten a vector to the radius; its exact length is then not above it."""
        largest = float(np.abs(apart).max())
        if not largest:
            return [0.0] * apart.size
        unit = (apart / largest).tolist()
        length = math.sqrt(math.fsum(x * x for x in unit))  # 1 or more
        if length * largest <= self.radius * _SHORTENED:
            return list(map(float, apart))
        factor = self.radius * _SHORTENED / length
        return [x * factor for x in unit]
