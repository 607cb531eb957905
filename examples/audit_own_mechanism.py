"""Audit a mechanism of your own: one that forgets something, and the same one put right.

Both count how many of the rows are positive and promise epsilon = 1. The first divides its noise by
the number of rows, as if it released a mean.
"""

from __future__ import annotations

import sys

import numpy as np

import hushed as hs


def forgetful_count(rows, rng, size):
    """Noisy counts; the noise is that of a mean. ``size`` runs at once."""
    return np.sum(rows) + rng.laplace(scale=1 / len(rows), size=size)


def careful_count(rows, rng, size):
    """The same with the noise that a count needs."""
    return np.sum(rows) + rng.laplace(scale=1, size=size)


# Neighbours that differ in one row: the worst case of a count.
PAIRS = [(np.array([1, 1, 0, 0]), np.array([1, 1, 1, 0]))]


def main(samples: int) -> None:
    for mechanism in (forgetful_count, careful_count):
        report = hs.audit(
            mechanism,
            PAIRS,
            claim=hs.Guarantee(epsilon=1.0),
            samples=samples,
            batch=True,
            bits=False,  # judge the law of the values, not the low bits of textbook noise
            seed=0,
            workers=1,
        )
        print(f"{mechanism.__name__}: {report.verdict}")
        print(report.explain(), end="\n\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
