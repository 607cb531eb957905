"""What is drawn from the answers of the blocks: one of some public candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushed import noise
from hushed._ground.checks import read_array
from hushed._ground.numeric import first_whole
from hushed._ground.types import Floats, Integers
from hushed.errors import ParameterError
from hushed.mechanisms._inverse import WIDTH, compute_offsets, rows_astray
from hushed.privacy_loss import PrivacyProfile, bounded_range
from hushed.spaces import Norm
from hushed.statistics._priors import remember

_MOST = 1e15  # far more than anybody asks for, and a number where doubles are infinite
_EXACTLY = 2000  # blocks up to which the chance that a draw says nothing is integrated
_EXCESS = 4  # the blocks that are needed, in units of log(candidates / beta) / epsilon


@dataclass(frozen=True, slots=True)
class Choice:
    """The exponential mechanism on a score that one block's answer moves by at most 1.

    Candidates of weight 0 are left out, and known to nothing here.
    """

    norm: ClassVar[Norm] = "sup"
    delta: ClassVar[float] = 0.0
    movement: ClassVar[float] = 1.0
    shape: ClassVar[tuple[int, ...]] = ()

    values: tuple[Any, ...]
    epsilon: float
    prior: tuple[float, ...] | None = None

    @property
    def kept(self) -> Integers:
        """Places of the candidates that can win."""
        if self.prior is None:
            return np.arange(len(self.values))
        return np.flatnonzero(np.array(self.prior)).astype(np.int64)

    @property
    def weights(self) -> Floats:
        """Share of each candidate that can win in all weights."""
        given = np.ones(len(self.values)) if self.prior is None else np.array(self.prior)
        left = given[given > 0]
        return np.asarray(left / left.sum())

    @property
    def least(self) -> float:
        """Smallest weight of a candidate that can win."""
        return float(self.weights.min())

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level, averaged over the splits and a function's own coins."""
        return bounded_range(self.epsilon)

    def least_blocks(self, beta: float) -> int:
        """Blocks that keep far answers from winning, but with probability beta, for a right guess.

        Notes
        -----
        ``(4 / epsilon) log(1 / (beta pi))`` with the largest weight pi, which is that of every
        candidate without a prior: half of the blocks are worth half as much.
        """
        return self._count_blocks(-float(np.log(self.weights.max())), beta)

    def usual_blocks(self, beta: float) -> int:
        """Blocks for a candidate of usual weight: with the entropy in place of ``log(1 / pi)``."""
        return self._count_blocks(-float((self.weights * np.log(self.weights)).sum()), beta)

    def _count_blocks(self, surprise: float, beta: float) -> int:
        needed = _EXCESS / self.epsilon * (surprise - math.log(beta))
        return max(1, math.ceil(min(needed, _MOST) * (1 - 1e-9)))  # up to rounding

    def accuracy(self, beta: float) -> float:
        """Blocks by which the drawn candidate may miss the best score, but with probability beta.

        Whatever the candidates are worth, and so by the smallest weight among them.
        """
        return rows_astray(self.epsilon, self.least, beta)

    def describe_draw(self) -> tuple[float, int, int, float]:
        """Scale, grid, number of values and accuracy, as a certificate states them."""
        scale, grid = noise.selection_scale(width=WIDTH, epsilon=self.epsilon)
        return scale, grid, len(self.values), self.accuracy(0.05)

    def scores(self, answers: Floats) -> Floats:
        """Scores of the candidates that can win: 0 for the best, or the votes."""
        raise NotImplementedError

    def middle(self, answers: Floats) -> Any:
        """Choose without noise: for public answers only."""
        return self.values[int(self.kept[int(np.argmax(self.scores(answers)))])]

    def draw(self, answers: Floats) -> Any:
        """Draw one of the candidates.

        Scores are multiples of 1/2 and offsets of 2**-20, so that their sum is exact.
        """
        found = noise.select(self._offered(answers), width=WIDTH, epsilon=self.epsilon)
        return self.values[int(self.kept[found])]

    def chances(self, answers: Floats) -> Floats:
        """Chance of each candidate that can win, in doubles: for public answers only."""
        odds = self._offered(answers) * self.epsilon / WIDTH
        weights = np.exp(odds - odds.max())
        return np.asarray(weights / weights.sum())

    def imitate(self, answers: Floats, rng: np.random.Generator, size: int) -> list[Any]:
        """Draw often, seeded and in doubles: for public answers only."""
        found = rng.choice(self.kept, size=size, p=self.chances(answers))
        return [self.values[place] for place in found.tolist()]

    def _offered(self, answers: Floats) -> Floats:
        scores = self.scores(answers)
        if self.prior is None:
            return scores
        return scores + compute_offsets(self.weights, self.epsilon)


@dataclass(frozen=True, slots=True)
class Ranks(Choice):
    """A candidate near the middle of the blocks' answers; candidates ascend."""

    def least_blocks(self, beta: float) -> int:
        """Blocks of which the draw says something, but with probability beta, for a right guess.

        Notes
        -----
        With a prior the guess is right if blocks answer by its weights. Thousands of blocks are
        counted as without one, by the largest weight, which asks for more.
        """
        simple = Choice.least_blocks(self, beta)
        if self.prior is None or simple > _EXACTLY:
            return simple
        enough = first_whole(lambda count: chance_of_nothing(count, self.epsilon) <= beta)
        return min(simple, enough)

    def scores(self, answers: Floats) -> Floats:
        """Minus the blocks that must answer otherwise before a candidate is in the middle.

        Notes
        -----
        With B answers, each moved to the nearest candidate, ``c(v)`` of them above v and ``C(v)``
        at or above: minus the distance of ``B / 2`` to ``[c(v), C(v)]``.
        """
        places = self.round(answers)
        counts = np.bincount(places, minlength=self.kept.size)
        reached = np.cumsum(counts[::-1])[::-1]
        middle = len(answers) / 2
        apart = np.maximum(reached - counts - middle, middle - reached)
        return np.asarray(0.0 - np.maximum(apart, 0.0))

    def round(self, answers: Floats) -> Integers:
        """Place of the candidate nearest to each answer; what is no number goes to the lowest.

        Without it all answers may lie between two candidates, and no candidate is better than
        another one.
        """
        values = np.array([self.values[place] for place in self.kept], dtype=np.float64)
        given = np.where(np.isnan(answers), values[0], answers)
        above = np.clip(np.searchsorted(values, given), 1, max(values.size - 1, 1))
        if values.size == 1:
            return np.zeros(given.size, dtype=np.int64)
        with np.errstate(over="ignore"):
            nearer = values[above] - given < given - values[above - 1]
        return np.asarray(np.where(nearer, above, above - 1))


@dataclass(frozen=True, slots=True)
class Votes(Choice):
    """The label that most blocks answered; answers are places, NaN is no vote."""

    def scores(self, answers: Floats) -> Floats:
        """Count the votes: one block's answer takes one from a label and gives one to another.

        What is the place of no label is no vote: a call could say any number.
        """
        counts = count_votes(answers, len(self.values))
        return np.asarray(counts[self.kept], dtype=np.float64)


def chance_of_nothing(blocks: int, epsilon: float) -> float:
    """Chance that the draw is outside of all answers, where these are drawn from the prior.

    Notes
    -----
    An upper bound for all weights, which is reached where no candidate has much: B answers cut them
    into B + 1 parts whose sizes have the law of B + 1 exponential numbers divided by their sum.
    Proof: docs/blocks.md.
    """
    weights = np.exp(-epsilon / 2 * np.abs(np.arange(blocks + 1) - blocks / 2))
    steps = np.linspace(-50.0, 50.0, 1001)  # of the logarithm of what is integrated over
    at = np.exp(steps)
    ends = steps - np.log1p(at * weights[0]) - np.log1p(np.outer(at, weights)).sum(axis=1)
    return float(2 * weights[0] * np.exp(ends).sum() * (steps[1] - steps[0]))


def count_votes(answers: Floats, labels: int) -> Integers:
    """Count the answers that are the place of each label; all others are no votes."""
    known = (answers >= 0) & (answers < labels)
    return np.bincount(answers[known].astype(np.int64), minlength=labels)


def read_numbers(candidates: Any) -> tuple[float, ...]:
    """Read public candidates that are numbers."""
    try:
        values = read_array("candidates", candidates)
    except ParameterError:
        values = np.empty(0)
    if values.ndim != 1 or values.size < 2 or not np.isfinite(values).all():
        raise ParameterError(
            "candidates must be a list of 2 finite numbers or more; of labels, say "
            "aggregate='votes'",
            parameter="candidates",
        )
    if not (np.diff(values) > 0).all():
        raise ParameterError("candidates must ascend, each above the last", parameter="candidates")
    return remember((values + 0.0).tolist(), candidates)
