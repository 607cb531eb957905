"""Errors and speed of the estimators of delta.

Run with ``python -m benchmarks divergences [PART ...]``. Parts: ``table`` (errors at equal budget
against the plug-in, and what the published estimator got), ``listed`` (the default against the
better of the two pure estimators on the listed grid), ``fresh`` (the same families in sizes, levels
and draws that were never looked at before a method was fixed), ``tuning`` (the grid on which the
default's constants were chosen), ``speed``.
"""

from __future__ import annotations

import argparse
import math
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushed.divergences import estimate_delta

METHODS = ("plug-in", "minimax", "empirical-bayes")
FLOOR = 1e-3
ALLOWED = 1.3


@dataclass(frozen=True, kw_only=True)
class Instance:
    name: str
    p: np.ndarray
    q: np.ndarray
    epsilon: float
    n: int

    @property
    def truth(self) -> float:
        return float(np.maximum(self.q - math.exp(self.epsilon) * self.p, 0.0).sum())


def normed(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum()


def families(
    symbols: int, rng: np.random.Generator, eps: tuple[float, ...], listed: bool
) -> Iterator[tuple[str, np.ndarray, np.ndarray, float]]:
    """Pairs of distributions; some of the listed families are not in the tuning grid."""
    rank, even = np.arange(1.0, symbols + 1), np.arange(symbols) % 2 == 0
    uniform = normed(np.ones(symbols))
    first_half = normed((np.arange(symbols) < (symbols + 1) // 2).astype(float))
    yield "uniform-uniform", uniform, uniform, 0.0
    yield "uniform-power", uniform, normed(rank**0.6), eps[0]
    yield "uniform-half", uniform, first_half, eps[1]
    yield "zipf-zipf", normed(1 / rank), normed(1 / rank), eps[2]
    yield "zipf-reversed", normed(rank**-0.7), normed(rank**-0.7)[::-1], 0.5
    atom, zeros = np.full(symbols, 0.5 / symbols), np.zeros(symbols)
    atom[0] += 0.5
    zeros[0], zeros[symbols // 2 :] = 0.5, 0.5 / (symbols - symbols // 2)
    yield "atoms-at-zero", atom, zeros, 0.3
    ratio = 1 - 2 / symbols if symbols > 2 else 0.5
    geometric = normed(ratio ** np.arange(symbols))
    yield "geometric", geometric, np.roll(geometric, 1), 0.05
    tilt = np.where(even, math.exp(0.3), 1.0)
    yield "at-the-kink", normed(tilt), normed(tilt[::-1] if symbols % 2 == 0 else 1 / tilt), 0.3
    halves = np.full(symbols, 0.5)
    yield "dirichlet", rng.dirichlet(halves), rng.dirichlet(halves), 1.0
    tenth = max(1, symbols // 10)
    left, right = np.zeros(symbols), np.zeros(symbols)
    left[:tenth] = right[tenth // 2 : tenth // 2 + tenth] = 1 / tenth
    yield "sparse-overlap", left, right, 0.2
    if not listed:
        return
    grid = np.linspace(-8, 8, symbols)
    yield "laplace-bins", normed(np.exp(-abs(grid))), normed(np.exp(-abs(grid - 1))), 0.5
    yield "lognormal-ratio", uniform, normed(np.exp(0.5 * rng.standard_normal(symbols))), 0.1
    yield (
        "zipf-tilted",
        normed(1 / rank),
        normed(np.exp(0.4 * rng.standard_normal(symbols)) / rank),
        0.2,
    )
    yield "disjoint", normed(even.astype(float)), normed((~even).astype(float)), 0.7
    yield "large-epsilon", normed(rank**-0.5), normed(rank**-0.5)[::-1], 2.5


# Grid: sizes of alphabets, samples a side, levels of the first families, seed of random ones.
GRIDS = {
    "listed": ((2, 10, 100, 1000, 10_000, 100_000), (100, 1000, 10_000, 100_000, 1_000_000),
               (0.2, 0.3, 0.1), 8),
    "tuning": ((3, 30, 300, 3000, 30_000), (300, 3000, 30_000, 300_000), (0.4, 0.4, 0.0), 7),
    "fresh": ((5, 50, 500, 5000, 50_000), (200, 2000, 20_000, 200_000), (0.3, 0.2, 0.15), 9),
}  # fmt: skip


def grid(name: str, only: list[int]) -> Iterator[Instance]:
    sizes, samples, eps, seed = GRIDS[name]
    for symbols in only or sizes:
        rng = np.random.default_rng([seed, symbols])
        for family, p, q, epsilon in families(symbols, rng, eps, name != "tuning"):
            for n in samples:
                yield Instance(name=f"{family} S={symbols}", p=p, q=q, epsilon=epsilon, n=n)


def errors(case: Instance, repeats: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Errors of each method over samples shared by all of them."""
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for _ in range(repeats):
        p_counts, q_counts = rng.multinomial(case.n, case.p), rng.multinomial(case.n, case.q)
        for method in METHODS:
            estimate = estimate_delta(p_counts, q_counts, case.epsilon, method=method)
            found[method].append(float(estimate))
    return {method: np.array(values) - case.truth for method, values in found.items()}


def regret(name: str, repeats: int, only: list[int], samples: list[int]) -> None:
    ratios, gains, worst = [], [], []
    print("| instance | n | delta | plug-in | minimax | empirical-bayes | ratio |")
    print("|---" * 7 + "|")
    for case in grid(name, only):
        if samples and case.n not in samples:
            continue
        rng = np.random.default_rng([11, len(case.p), case.n])
        rms = {m: float(np.sqrt(np.mean(e**2))) for m, e in errors(case, repeats, rng).items()}
        best = max(min(rms["plug-in"], rms["minimax"]), FLOOR)
        ratio = max(rms["empirical-bayes"], FLOOR) / best
        ratios.append(ratio)
        gains.append(math.log(ratio))
        worst.append((ratio, f"{case.name} n={case.n}"))
        row = " | ".join(f"{rms[m]:.5f}" for m in METHODS)
        print(f"| {case.name} | {case.n} | {case.truth:.4f} | {row} | {ratio:.2f} |", flush=True)
    inside = sum(r <= ALLOWED for r in ratios)
    print(
        f"\n{inside} of {len(ratios)} within {ALLOWED} ({inside / len(ratios):.1%}); "
        f"geometric mean {math.exp(np.mean(gains)):.3f}; worst:"
    )
    for ratio, where in sorted(worst, reverse=True)[:10]:
        print(f"  {ratio:.2f}  {where}")


# The published setting: 100 symbols. Last two columns as reported for 2n a side: plug-in, minimax.
PUBLISHED = {
    ("A", 100): (0.0925, 0.0496), ("A", 1000): (2.8e-3, 1.2e-3),
    ("A", 10_000): (7.1e-5, 3.7e-5), ("A", 100_000): (2.2e-6, 2.6e-6),
    ("D", 1000): (0.016, 6.2e-3), ("D", 10_000): (1.6e-3, 8.6e-4),
    ("D", 100_000): (1.6e-4, 6.1e-5), ("E", 1000): (4.1e-4, 1.6e-3),
    ("E", 10_000): (2.7e-5, 1.6e-4), ("E", 100_000): (2.9e-6, 1.3e-5),
}  # fmt: skip


def published_case(name: str, n: int) -> Instance:
    symbols = 100
    uniform = normed(np.ones(symbols))
    q = {
        "A": normed(np.arange(1.0, symbols + 1) ** 0.6),
        "D": uniform,
        "E": normed((np.arange(symbols) < symbols // 2).astype(float)),
    }[name]
    return Instance(name=name, p=uniform, q=q, epsilon=0.0 if name == "D" else 0.4, n=n)


def table(repeats: int) -> None:
    """Mean squared errors with 2n samples a side, next to the reported ones."""
    options = {
        "plug-in": {"method": "plug-in"},
        "minimax": {"method": "minimax"},
        "separate": {"method": "minimax", "product": "separate"},
        "split": {"method": "minimax", "roles": "split"},
        "averaged": {"method": "minimax", "roles": "averaged"},
        "empirical-bayes": {},
    }
    rng = np.random.default_rng(5)
    print("| case | n | reported plug-in, minimax | " + " | ".join(options) + " |")
    print("|---" * (3 + len(options)) + "|")
    for (name, n), reported in PUBLISHED.items():
        case = published_case(name, 2 * n)
        square: dict[str, list[float]] = {label: [] for label in options}
        for _ in range(repeats):
            p_counts, q_counts = rng.multinomial(case.n, case.p), rng.multinomial(case.n, case.q)
            for label, option in options.items():
                estimate = estimate_delta(p_counts, q_counts, case.epsilon, rng=rng, **option)
                square[label].append((float(estimate) - case.truth) ** 2)
        row = " | ".join(f"{np.mean(v):.2e}" for v in square.values())
        print(f"| {name} | {n} | {reported[0]:.1e}, {reported[1]:.1e} | {row} |", flush=True)


def speed(largest: int) -> None:
    rng = np.random.default_rng(2)
    for method in METHODS:
        for symbols, n in (
            (100, 1000),
            (100, 1_000_000),
            (1_000_000, 1_000_000),
            (1_000_000, 10**9),
        ):
            if symbols > largest:
                continue
            p = normed(1.0 / np.arange(1, symbols + 1))
            p_counts, q_counts = rng.multinomial(n, p), rng.multinomial(n, p)
            times = []
            for _ in range(3 if symbols > 1000 else 30):
                start = time.perf_counter()
                estimate_delta(p_counts, q_counts, 0.1, method=method)
                times.append(time.perf_counter() - start)
            print(
                f"{method:8s} S={symbols:8d} n={n:.0e} first {times[0] * 1e3:8.1f} ms, "
                f"then {np.median(times[1:]) * 1e3:8.1f} ms"
            )
        for symbols in (size for size in (10**3, 10**5, 10**6) if size <= largest):
            p_counts = rng.multinomial(10 * symbols, normed(np.ones(symbols)))
            tracemalloc.start()
            estimate_delta(p_counts, p_counts[::-1], 0.1, method=method)
            peak = tracemalloc.get_traced_memory()[1] / symbols
            print(f"{method:8s} S={symbols:8d} peak {peak:.0f} bytes a symbol")
            tracemalloc.stop()


def add_options(parser: argparse.ArgumentParser) -> None:
    parts = ["table", *GRIDS, "speed"]
    parser.add_argument(
        "parts",
        nargs="*",
        choices=[[], *parts],
        metavar="PART",
        help=f"{', '.join(parts)}; the first, second and last by default",
    )
    parser.add_argument("--symbols", type=int, nargs="+", default=[], help="alphabets of a grid")
    parser.add_argument("--samples", type=int, nargs="+", default=[], help="sizes out of a grid")


def main(*, quick: bool, parts: list[str], symbols: list[int], samples: list[int]) -> None:
    """Print a table for each part."""
    repeats = 2 if quick else 200
    if quick:
        symbols, samples = symbols or [10], samples or [1000, 2000, 3000]
    for part in parts or ["table", "listed", "speed"]:
        print(f"\n## {part}\n")
        if part == "table":
            table(repeats)
        elif part == "speed":
            speed(1000 if quick else 10**6)
        else:
            regret(part, repeats, symbols, samples)
