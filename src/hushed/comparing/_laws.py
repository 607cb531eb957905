"""Errors of a release, as a mixture of exactly known laws: one for each simulated table.

The tables are drawn with a seed; the noise on each is not drawn at all, for its law is known. So
equal seeds give equal errors, and what is left to chance is the choice of the tables alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.special import ndtr

from hushed._ground.types import Floats, Integers

_GROUPS = 10
_HALVINGS = 200
_FARTHEST = 40.0  # standard deviations, which no double of a tail tells from infinity


class ErrorLaw(Protocol):
    """Law of the absolute error of one release of a fresh table."""

    def quantile(self, beta: float) -> float:
        """Error that is exceeded with probability at most beta."""

    @property
    def tables(self) -> int:
        """How many simulated tables it is a mixture over; 0 if it does not depend on the table."""

    def take(self, kept: Integers) -> Self:
        """Mixture over some of the tables alone."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Noise that is the same on every table: its error is known in closed form."""

    accuracy: Callable[[float], float]
    tables: int = 0

    def quantile(self, beta: float) -> float:
        """Error that is exceeded with probability at most beta."""
        return self.accuracy(beta)

    def take(self, kept: Integers) -> Fixed:  # noqa: ARG002
        """Give itself: no table matters."""
        return self


@dataclass(frozen=True, slots=True)
class Chosen:
    """A choice among values: the error of each, and its chance, on each table."""

    errors: Floats  # ascending, those of all tables
    chances: Floats  # of each error
    owners: Integers  # table of each error
    tables: int

    @classmethod
    def of_rows(cls, rows: Floats) -> Chosen:
        """Read the rows of a simulation: errors, followed by as many chances."""
        half = rows.shape[1] // 2
        order = np.argsort(rows[:, :half], axis=None, kind="stable")
        errors, chances = rows[:, :half].ravel()[order], rows[:, half:].ravel()[order]
        owners = order // half
        # Equal errors of one table, such as those of rare categories, are one.
        new = np.append(True, (np.diff(errors) != 0) | (np.diff(owners) != 0)).nonzero()[0]
        return cls(errors[new], np.add.reduceat(chances, new), owners[new], len(rows))

    def quantile(self, beta: float) -> float:
        """Error that is exceeded with probability at most beta; one of the errors."""
        beyond = np.cumsum(self.chances[::-1])[::-1] / self.tables
        # The first error such that all larger ones together have at most this chance.
        last = np.append(beyond[1:], 0.0)
        larger = np.append(self.errors[1:] > self.errors[:-1], True)
        return float(self.errors[np.flatnonzero(larger & (last <= beta))[0]])

    def take(self, kept: Integers) -> Chosen:
        """Mixture over some of the tables alone; they need not be sorted again."""
        wanted = np.zeros(int(self.owners.max()) + 1, dtype=bool)
        wanted[kept] = True
        stay = wanted[self.owners]
        return Chosen(self.errors[stay], self.chances[stay], self.owners[stay], len(kept))


@dataclass(frozen=True, slots=True)
class Wrong:
    """A label that is another one than it should be, or a refusal: how often, on each table."""

    shares: Floats

    @property
    def tables(self) -> int:
        """How many tables."""
        return len(self.shares)

    def quantile(self, beta: float) -> float:  # noqa: ARG002
        """Share of releases that are wrong: it has no quantiles."""
        return float(self.shares.mean())

    def take(self, kept: Integers) -> Wrong:
        """Mixture over some of the tables alone."""
        return Wrong(self.shares[kept])


@dataclass(frozen=True, slots=True)
class Shifted:
    """Gaussian noise on each of several numbers that are off by themselves; the largest error."""

    offsets: Floats  # of each number, without noise: a row for each table
    scale: float
    rounding: float  # what is added to every error, as the noise is rounded

    @property
    def tables(self) -> int:
        """How many tables."""
        return len(self.offsets)

    def quantile(self, beta: float) -> float:
        """Error that is exceeded with probability at most beta; above the exact one by rounding."""
        low, high = 0.0, float(np.abs(self.offsets).max()) + _FARTHEST * self.scale
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (low, middle) if self._beyond(middle) <= beta else (middle, high)
        return high + self.rounding

    def _beyond(self, error: float) -> float:
        up, down = (error - self.offsets) / self.scale, (-error - self.offsets) / self.scale
        return float(1 - np.mean((ndtr(up) - ndtr(down)).prod(axis=1)))

    def take(self, kept: Integers) -> Shifted:
        """Mixture over some of the tables alone."""
        return Shifted(self.offsets[kept], self.scale, self.rounding)


@dataclass(frozen=True, slots=True)
class Scaled:
    """Symmetric noise with a scale of its own on each table, moved into the range of the answer.

    A refusal to answer is an infinite error.
    """

    scales: Floats  # scale on each table
    rooms: Floats  # how far the answer can go down and up before it meets an end of its range
    # Probability that the noise exceeds so many scales, in absolute value.
    exceeds: Callable[[Floats], Floats]
    rounding: float  # what is added to every error, as the answer is rounded
    refused: Floats  # probability of a refusal, on each table

    @property
    def tables(self) -> int:
        """How many tables."""
        return len(self.scales)

    def quantile(self, beta: float) -> float:
        """Error that is exceeded with probability at most beta; above the exact one by rounding."""
        if self.refused.mean() > beta:
            return math.inf
        farthest = float(self.rooms.max())
        low, high = 0.0, farthest
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (low, middle) if self._beyond(middle) <= beta else (middle, high)
        return min(high + self.rounding, farthest)

    def _beyond(self, error: float) -> float:
        sides = (self.rooms > error).sum(axis=1) / 2
        wrong = sides * self.exceeds(error / self.scales)
        return float(np.mean(self.refused + (1 - self.refused) * wrong))

    def take(self, kept: Integers) -> Scaled:
        """Mixture over some of the tables alone."""
        parts = (self.scales[kept], self.rooms[kept], self.refused[kept])
        return replace(self, scales=parts[0], rooms=parts[1], refused=parts[2])


def estimate_spread(law: ErrorLaw, beta: float, share: float = 0.0) -> float:
    """Estimate the standard error of a quantile that the choice of tables leaves.

    Notes
    -----
    The jackknife over ten groups of tables. 0 where no table matters.

    Tables that each hold a share ``r`` of one public table have some rows in common. What is
    measured on two of them has a correlation of at most ``r``: that of their means, and of what
    depends on rows together less (Hoeffding 1948, section 5). T such tables leave a variance of
    ``s ((1 - r) / T + r)``, of which the jackknife sees the first term alone.
    """
    if law.tables < 2:
        return 0.0
    if share >= 1:  # each table is the whole one, which says nothing of others
        return math.inf
    shared = math.sqrt(1 + law.tables * share / (1 - share))
    groups = min(_GROUPS, law.tables)
    places = np.arange(law.tables)
    found = np.array([law.take(places[places % groups != g]).quantile(beta) for g in range(groups)])
    largest = float(found.max())  # whose square may exceed every double
    if not 0 < largest < math.inf:
        return largest
    return largest * shared * math.sqrt((groups - 1) * float(np.var(found / largest)))
