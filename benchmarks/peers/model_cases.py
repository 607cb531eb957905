"""Data sets of scikit-learn with public ranges, cut in the same way for every library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn import datasets

EPSILONS = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Case:
    """Rows, labels, and ranges that are public: those of the description, or of the scale."""

    name: str
    X: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    span: tuple[float, float] | None = None  # of the label of a regression

    def settings(self) -> list[tuple[float, float]]:
        """Penalties, and lengths of rows as a share; fewer where a fit takes long."""
        if len(self.X) > 1000:
            return [(penalty, share) for penalty in (1.0, 100.0) for share in (0.3, 1.0)]
        return [(penalty, share) for penalty in (0.1, 1.0, 10.0, 100.0) for share in (0.1, 0.5, 1)]

    def scaled(self) -> np.ndarray:
        """Scale features from their ranges to [-1, 1]."""
        return np.clip(2 * (self.X - self.low) / (self.high - self.low) - 1, -1, 1)


def load() -> list[Case]:
    """Load three; the description of the first tells the range of each column."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    cancer = Case("breast cancer", X, y, X.min(axis=0), X.max(axis=0))
    X, y = datasets.load_digits(return_X_y=True)
    digits = Case("digits", X, y, np.zeros(64), np.full(64, 16.0))
    X, y = datasets.load_diabetes(return_X_y=True)
    ends = np.full(10, 0.2)
    return [cancer, digits, Case("diabetes", X, y, -ends, ends, (25.0, 346.0))]


def cut(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut rows by chance: two fifths, two fifths, and one fifth to test on."""
    order = np.random.default_rng(seed).permutation(len(case.y))
    ends = (2 * len(order) // 5, 4 * len(order) // 5)
    return order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] :]
