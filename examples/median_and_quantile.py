"""Release a median and a ninth decile in two ways: noise on them, or a choice among candidates.

A quantile can jump when one row changes, so its worst-case sensitivity is the whole range and noise
made for it drowns the answer. Two ways out:

* sample how far it moves on tables like yours, and accept gamma;
* choose among fixed candidates with the exponential mechanism: the score of a candidate moves by a
  proven amount, so gamma is 0 and nothing about the rows is assumed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import hushed as hs

ROWS, TOP = 2000, 10_000
CANDIDATES = np.arange(0, TOP + 1, 50)  # fixed without looking at the rows

Rows = NDArray[np.float64]


def salaries(rng: np.random.Generator, count: int) -> Rows:
    """Salaries as the statistical office publishes them: lognormal, cut at the top."""
    return np.minimum(rng.lognormal(mean=8.0, sigma=0.4, size=count), TOP)


def quantiles(rows: Rows) -> Rows:
    return np.quantile(rows, [0.5, 0.9])


def scores(level: float) -> Callable[[Rows], Rows]:
    """Score of a candidate: minus how far the rows below it are from the wanted share."""

    def score(rows: Rows) -> Rows:
        below = np.searchsorted(np.sort(rows), CANDIDATES, side="left")
        above = len(rows) - np.searchsorted(np.sort(rows), CANDIDATES, side="right")
        return -np.abs((1 - level) * below - level * above)

    return score


def main() -> None:
    private = salaries(np.random.default_rng(), ROWS)  # yours

    source = hs.populations.Simulator(salaries, name="salaries, lognormal 8.0, 0.4")
    s = hs.sample_sensitivity(quantiles, source, rows=ROWS, gamma=0.05, symmetric=True)
    noisy = hs.Laplace(s, epsilon=1.0)
    print(f"sampled: l1 sensitivity {s.value:.1f}, gamma {s.gamma:g}")
    print(f"  error at 95 %: {noisy.accuracy(beta=0.05, dims=2):.0f}")
    print("  released:", np.round(hs.release(quantiles, private, noisy).value))

    # One replaced row takes 1 from one count and may add 1 to the other.
    proof = hs.proven_sensitivity(
        1.0, "sup", argument="a replaced row moves (1-a) below - a above by at most 1"
    )
    chosen = []
    for level in (0.5, 0.9):
        choice = hs.release(scores(level), private, hs.Exponential(proof, epsilon=0.5))
        chosen.append(int(CANDIDATES[choice.value]))
    print(f"chosen: gamma 0, epsilon 0.5 each, among {len(CANDIDATES)} candidates")
    print("  released:", chosen)

    # Only because these rows are made up: private answers stay unseen.
    print("exact:", np.round(quantiles(private)))


if __name__ == "__main__":
    main()
