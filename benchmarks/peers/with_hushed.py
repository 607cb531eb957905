"""The cases by this library."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

import hushed as hs
from benchmarks.peers import cases
from hushed import noise, privacy_loss
from hushed.accounting import compose
from hushed.privacy_loss import _composed as composed
from hushed.privacy_loss import _composition as composition

CANDIDATES = np.linspace(0, 100, 1001)


def median_scores(rows: cases.Floats) -> cases.Floats:
    ordered = np.sort(rows)
    below = np.searchsorted(ordered, CANDIDATES, side="left")
    above = len(rows) - np.searchsorted(ordered, CANDIDATES, side="right")
    return -0.5 * np.abs(below - above).astype(float)


def epsilon_of(curves: list[privacy_loss.PrivacyProfile]) -> float:
    """Compose from nothing: what an earlier call left in a cache does not count."""
    composition.window.cache_clear()
    composed._ladder.cache_clear()
    return compose(curves, delta=cases.DELTA).epsilon


def jobs() -> cases.Jobs:
    zeros = np.zeros(cases.VECTOR)
    gaussian, laplace = privacy_loss.gaussian, privacy_loss.laplace
    mixed = [laplace(1 / b) for b in cases.SCALES] + [gaussian(1 / s) for s in cases.SIGMAS]
    rows, middling = cases.numbers(), cases.middling()
    mean = hs.Laplace(
        hs.proven_sensitivity(1e-4, "l1", argument="10,000 numbers in [0, 1]"), epsilon=1.0
    )
    histogram = hs.Laplace(
        hs.proven_sensitivity(1, "l1", neighbours="add-remove", argument="one bin by one"),
        epsilon=1.0,
    )
    median = hs.Exponential(
        hs.proven_sensitivity(1, "sup", argument="half of a difference that moves by 2"),
        epsilon=1.0,
    )
    return {
        "laplace one": lambda: noise.add_laplace(5.0, sensitivity=1.0, epsilon=1.0),
        "gaussian one": lambda: noise.add_gaussian(5.0, sensitivity=1.0, sigma=5.0),
        "laplace integer one": lambda: noise.discrete_laplace(1.0),
        "gaussian integer one": lambda: noise.discrete_gaussian(5.0),
        "laplace vector": lambda: noise.add_laplace(zeros, sensitivity=1.0, epsilon=1.0),
        "gaussian vector": lambda: noise.add_gaussian(zeros, sensitivity=1.0, sigma=5.0),
        "laplace integer vector": lambda: noise.discrete_laplace(1.0, cases.VECTOR),
        "gaussian integer vector": lambda: noise.discrete_gaussian(5.0, cases.VECTOR),
        "compose gaussian": lambda: epsilon_of([gaussian(1 / cases.SIGMA)] * cases.RELEASES),
        "compose laplace": lambda: epsilon_of([laplace(cases.LEVEL)] * cases.RELEASES),
        "compose mixed": lambda: epsilon_of(mixed),
        "mean": lambda: hs.release(np.mean, rows, mean).value,
        "histogram": lambda: hs.release(cases.binned, rows, histogram).value,
        "median": lambda: CANDIDATES[hs.release(median_scores, middling, median).value],
    }


if __name__ == "__main__":
    cases.answer("hushed", version("hushed"), jobs())
