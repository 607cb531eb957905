"""Speed and error of the statistics that hold for every table.

Run with ``python -m benchmarks worst_case``. Times are processor time of the best of a few runs
on one thread. Predicted before the first run: 0.1 s for the median of a million rows by inverse
sensitivity (half of it the sort), 0.01 s for a smooth sensitivity of 10,000 rows, a millisecond for
a release of 1,000 rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

import hushed as hs

RELEASES, QUICK = 2000, 40
MOST = {"median of a million, inverse": 0.2, "smooth sensitivity, median of 10,000": 1.0}


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Best processor time of a few runs."""
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def incomes(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Skewed incomes with a median of 45,000."""
    return rng.lognormal(math.log(45_000), 0.8, size=rows)


def times(rng: np.random.Generator) -> dict[str, float]:
    """Measure what has a limit, and single releases."""
    million, many, few = incomes(rng, 10**6), incomes(rng, 10**4), incomes(rng, 1000)
    big, middle, small = (
        hs.statistics.median(rows=each.size, low=1, high=1e6) for each in (million, many, few)
    )
    inverse = hs.InverseSensitivity(big, epsilon=1.0)
    work: dict[str, Callable[[], object]] = {
        "median of a million, inverse": lambda: inverse.draw(million),
        "median of a million, inverse, with hs.release": lambda: hs.release(big, million, inverse),
        "smooth sensitivity, median of 10,000": lambda: middle.smooth_sensitivity(
            many, Fraction(3, 10)
        ),
        "the same at smoothing 0.001": lambda: middle.smooth_sensitivity(many, Fraction(1, 1000)),
        "the same of a million at 0.0001": lambda: big.smooth_sensitivity(
            million, Fraction(1, 10_000)
        ),
    }
    for name, mechanism in mechanisms(small, 1.0).items():
        work[f"1,000 rows, {name}"] = lambda m=mechanism: m.draw(few)
    return {name: seconds(each) for name, each in work.items()}


def mechanisms(s: hs.statistics.Quantile, epsilon: float) -> dict[str, object]:
    """Give what is compared."""
    return {
        "inverse": hs.InverseSensitivity(s, epsilon=epsilon),
        "smooth, t2": hs.Smooth(s, epsilon=epsilon, noise="t2"),
        "smooth, lomax": hs.Smooth(s, epsilon=epsilon),
    }


def errors(
    rng: np.random.Generator, rows: int, epsilon: float, releases: int
) -> dict[str, tuple[float, float]]:
    """Median and 95 % error of each on fresh tables; the global Laplace mechanism as well."""
    s = hs.statistics.median(rows=rows, low=1, high=1e6)
    tables = [incomes(rng, rows) for _ in range(releases)]
    exact = np.array([float(s.value(each)) for each in tables])
    found = {}
    for name, mechanism in mechanisms(s, epsilon).items():
        drawn = np.array([mechanism.draw(each) for each in tables])
        off = np.abs(drawn - exact)
        found[name] = (float(np.median(off)), float(np.quantile(off, 0.95)))
    scale = s.global_sensitivity / epsilon
    found["Laplace, global sensitivity"] = (scale * math.log(2), scale * math.log(20))
    return found


def spiky(rng: np.random.Generator) -> dict[str, tuple[hs.statistics.Quantile, np.ndarray]]:
    """Tables of 1,000 rows: continuous, in whole years, and mostly equal."""
    ratings = np.where(rng.random(1000) < 0.9, 3.0, rng.integers(1, 6, 1000))
    return {
        "incomes": (hs.statistics.median(rows=1000, low=1, high=1e6), incomes(rng, 1000)),
        "ages in whole years": (
            hs.statistics.median(rows=1000, low=0, high=110),
            np.clip(np.round(rng.normal(40, 12, 1000)), 0, 110),
        ),
        "ratings, 90 % equal": (hs.statistics.median(rows=1000, low=1, high=5), ratings),
    }


def computed_errors(
    rng: np.random.Generator, tables: int, *, nearest: bool
) -> dict[str, tuple[float, float]]:
    """Median and 95 % error at epsilon = 1, by the laws themselves: nothing is drawn."""
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for _ in range(tables):
        for name, (s, rows) in spiky(rng).items():
            values = s.candidates()[0]
            lengths = s.lengths(rows, values, nearest=nearest)
            weights = np.exp(-(lengths - lengths.min()) / 2)
            off = np.abs(values - float(s.value(rows)))
            found.setdefault(name, []).append((off, weights / weights.sum() / tables))
    quantiles = {}
    for name, laws in found.items():
        off, weights = (np.concatenate(each) for each in zip(*laws, strict=True))
        order = np.argsort(off)
        reached = np.cumsum(weights[order])
        middle, far = (off[order][np.searchsorted(reached, q)] for q in (0.5, 0.95))
        quantiles[name] = (float(middle), float(far))
    return quantiles


def main(*, quick: bool) -> None:
    """Print both tables; a quick run has few releases for the errors."""
    rng = np.random.default_rng(7)
    for name, taken in times(rng).items():
        limit = f"  (at most {MOST[name]})" if name in MOST else ""
        print(f"{name:50}{taken:9.4f} s{limit}")
    print(
        "\n| mechanism | n = 1000, epsilon = 1 | n = 1000, epsilon = 0.1 | n = 100, epsilon = 1 |"
    )
    print("|---|---|---|---|")
    releases = QUICK if quick else RELEASES
    cases = [errors(rng, *case, releases) for case in ((1000, 1.0), (1000, 0.1), (100, 1.0))]
    for name in cases[0]:
        shown = (f"{case[name][0]:,.0f} / {case[name][1]:,.0f}" for case in cases)
        print(f"| {name} | {' | '.join(shown)} |")
    print("\n| n = 1000, epsilon = 1 | without rounding | with rounding |")
    print("|---|---|---|")
    before, after = (
        computed_errors(np.random.default_rng(8), releases // 8, nearest=each)
        for each in (False, True)
    )
    for name, (middle, far) in before.items():
        print(
            f"| {name} | {middle:.3g} / {far:.3g} | {after[name][0]:.3g} / {after[name][1]:.3g} |"
        )
