"""What is drawn from the answers of the blocks: the label with most votes, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushed._ground.decimals import decimal_of
from hushed._ground.types import Floats, Integers
from hushed.blocks._choosing import count_votes
from hushed.mechanisms._stability import DistanceTest
from hushed.privacy_loss import PrivacyProfile, approximate
from hushed.spaces import Norm
from hushed.statistics._lengths import mode_distance


@dataclass(frozen=True, slots=True)
class Stable:
    """The label with most votes as it is, where few other votes cannot make it another one."""

    norm: ClassVar[Norm] = "sup"
    movement: ClassVar[float] = 1.0
    shape: ClassVar[tuple[int, ...]] = ()

    values: tuple[Any, ...]
    epsilon: float
    delta: float

    @property
    def test(self) -> DistanceTest:
        """How the number of blocks that may answer otherwise is tested."""
        return DistanceTest(level=decimal_of(self.epsilon), delta=decimal_of(self.delta))

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level, as far as epsilon and delta tell it."""
        return approximate(self.epsilon, self.delta)

    def least_blocks(self, beta: float) -> int:
        """Blocks from which on a label that all of them answer is told, but with probability beta.

        With B votes for the last label and none for another ``ceil(B / 2) - 1`` may change.
        """
        return 2 * self.test.distance_for(beta) + 1

    def usual_blocks(self, beta: float) -> int:
        """Blocks from which on three quarters of the votes are enough, as the rest has one label.

        With a lead of half of the votes ``ceil(B / 4) - 1`` may change.
        """
        return 4 * self.test.distance_for(beta) + 1

    def accuracy(self, beta: float) -> float:
        """Blocks that must be free to answer otherwise: a refusal is then unlikely."""
        return float(self.test.distance_for(beta))

    def describe_draw(self) -> tuple[float, int, int, float]:
        """Scale, grid, number of values and accuracy, as a certificate states them."""
        return float(1 / self.test.level), 0, len(self.values), self.accuracy(0.05)

    def middle(self, answers: Floats) -> Any:
        """Choose without noise: for public answers only."""
        return self.values[int(np.argmax(count_votes(answers, len(self.values))))]

    def draw(self, answers: Floats) -> Any:
        """Tell the label with most votes, the first one of equals, or None."""
        return self.middle(answers) if self.test.passes(self._distance(answers)) else None

    @property
    def kept(self) -> Integers:
        """Places of the labels that can be told: all."""
        return np.arange(len(self.values))

    def chances(self, answers: Floats) -> Floats:
        """Chance that each label is told, in doubles: for public answers only."""
        counts = count_votes(answers, len(self.values))
        found = np.zeros(len(self.values))
        found[int(np.argmax(counts))] = self.test.chance(self._distance(answers))
        return found

    def imitate(self, answers: Floats, rng: np.random.Generator, size: int) -> list[Any]:
        """Draw often, seeded and in doubles: for public answers only."""
        told = rng.random(size) < self.test.chance(self._distance(answers))
        label = self.middle(answers)
        return [label if each else None for each in told.tolist()]

    def _distance(self, answers: Floats) -> int:
        """Count the blocks that can answer otherwise, whichever they are, and the label stays."""
        counts = count_votes(answers, len(self.values))
        return mode_distance(counts, replace=True)
