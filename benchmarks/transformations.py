"""Chains against plain NumPy and OpenDP on one million rows, as ratios within one run.

Run with ``python -m benchmarks transformations``; processor time, best of a few. Predicted before
the first run: an exact sum (then math.fsum) costs 50 to 100 times NumPy's pairwise sum; OpenDP,
which copies a list, takes longer than the chain; resizing by keyed hashes takes 8 microseconds a
row. Got: clip and sum 47 times NumPy's, and OpenDP four times faster, wrongly predicted: it reads
arrays without a copy. With sums in integer slices: 13 times NumPy's and on a par with OpenDP (0.9);
variance 5, histogram 4.5 times NumPy's; resizing 6.6 microseconds a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hushed import transformations as t
from hushed.spaces import SYMMETRIC, Cell, Column, Space


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Best processor time of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def opendp_sum(rows: np.ndarray, repeats: int) -> float | None:
    """Seconds of OpenDP's clamp and sum; None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    clamp = dp.t.make_clamp(*space, (0.0, 1.0))
    chain = clamp >> dp.t.make_sum(clamp.output_domain, clamp.output_metric)
    return seconds(lambda: chain(rows), repeats)


def main(*, quick: bool) -> None:
    """Print the table."""
    count, repeats = (10_000, 1) if quick else (1_000_000, 3)
    rows = np.random.default_rng(0).random(count)
    free = Space(domain=Column(cell=Cell()), metric=SYMMETRIC)
    clipped = free >> t.clip(0, 1)
    cases = {
        "clip": (clipped, lambda: np.clip(rows, 0, 1)),
        "clip, sum": (clipped >> t.sum_of(), lambda: np.clip(rows, 0, 1).sum()),
        "clip, mean": (clipped >> t.mean(), lambda: np.clip(rows, 0, 1).mean()),
        "clip, variance": (clipped >> t.variance(), lambda: np.clip(rows, 0, 1).var()),
        "histogram of 100 bins": (
            free >> t.histogram(np.linspace(0, 1, 101).tolist()),
            lambda: np.histogram(rows, np.linspace(0, 1, 101)),
        ),
    }
    print(f"{'chain':24}{'seconds':>10}{'/numpy':>9}")
    for name, (chain, plain) in cases.items():
        taken, numpy = seconds(lambda c=chain: c(rows), repeats), seconds(plain, repeats)
        print(f"{name:24}{taken:10.3f}{taken / numpy:9.1f}")
    theirs = opendp_sum(rows, repeats)
    if theirs is not None:
        ours = seconds(lambda: (clipped >> t.sum_of())(rows), repeats)
        print(f"clip, sum in OpenDP: {theirs:.3f} s, {theirs / ours:.1f} times ours")
    few = rows[: count // 10]
    resized = seconds(lambda: (free >> t.resize(count // 20, 0.0))(few), 1)
    print(f"resize: {1e6 * resized / len(few):.1f} microseconds a row")
