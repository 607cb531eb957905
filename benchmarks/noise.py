"""Speed of release noise against OpenDP, numpy and the entropy source.

Run with ``python -m benchmarks noise``. All numbers come from one run on one thread, in
processor time, so that other work on the machine counts less. Predicted,
before the first run on 2 cores: 10 million integer Laplace draws a second and 5 million integer
Gaussian ones (two words a proposal at 24 ns each, as much again for arithmetic), 8 and 4 million
doubles, 0.1 s for a selection, 10 microseconds for a single draw.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

from hushed import noise
from hushed.noise import _entropy as entropy


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Best processor time (own and the kernel's) of a few runs on one thread."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def entropy_used(work: Callable[[], object]) -> int:
    """Bytes that a piece of work asks of the operating system."""
    read = 0
    original = os.urandom

    def counted(count: int) -> bytes:
        nonlocal read
        read += count
        return original(count)

    entropy.os.urandom = counted
    try:
        work()
    finally:
        entropy.os.urandom = original
    return read


def opendp_rates(draws: int) -> dict[str, float]:
    """Draws a second of OpenDP's vector mechanisms; empty where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}
    dp.enable_features("contrib")
    rates = {}
    for kind, cell in (("integers", "i64"), ("doubles", "f64")):
        atom = dp.atom_domain(T=cell, nan=False) if cell == "f64" else dp.atom_domain(T=cell)
        domain = dp.vector_domain(atom, size=draws)
        zeros = np.zeros(draws, dtype=np.int64 if cell == "i64" else np.float64)
        laplace = dp.m.make_laplace(domain, dp.l1_distance(T=cell), scale=1000.0)
        gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=1000.0)
        for law, measurement in (("laplace", laplace), ("gaussian", gaussian)):
            work = lambda m=measurement, z=zeros: m(z)  # noqa: E731
            rates[f"{law} {kind}"] = draws / seconds(work, 2)
    return rates


def vector_work(draws: int) -> dict[str, Callable[[], object]]:
    """Give the vector draws that are measured."""
    zeros = np.zeros(draws)
    scales = np.exp(np.linspace(np.log(1e-3), np.log(1e12), draws))
    work: dict[str, Callable[[], object]] = {}
    for scale in (1e-3, 1.0, 1e3, 1e12):
        work[f"laplace integers, scale {scale:g}"] = lambda s=scale: noise.discrete_laplace(
            s, draws
        )
        work[f"gaussian integers, sigma {scale:g}"] = lambda s=scale: noise.discrete_gaussian(
            s, draws
        )
    work["laplace integers, a scale each"] = lambda: noise.discrete_laplace(scales, draws)
    work["gaussian integers, a sigma each"] = lambda: noise.discrete_gaussian(scales, draws)
    work["laplace doubles"] = lambda: noise.add_laplace(zeros, sensitivity=1.0, epsilon=1.0)
    work["gaussian doubles"] = lambda: noise.add_gaussian(zeros, sensitivity=1.0, sigma=1.0)
    return work


def main(*, quick: bool) -> None:
    """Print the table."""
    draws, repeats = (10_000, 1) if quick else (1_000_000, 5)
    peers = opendp_rates(1000 if quick else 20_000)
    rng = np.random.default_rng(0)
    peers_numpy = {
        "laplace": draws / seconds(lambda: rng.laplace(size=draws), repeats),
        "gaussian": draws / seconds(lambda: rng.standard_normal(draws), repeats),
    }
    byte = seconds(lambda: os.urandom(1 << 18), 5) / (1 << 18)
    print(
        f"os.urandom: {1e9 * byte:.2f} ns a byte; numpy Laplace {peers_numpy['laplace'] / 1e6:.0f}"
    )
    print(f"and Gaussian {peers_numpy['gaussian'] / 1e6:.0f} million doubles a second")
    for name, rate in peers.items():
        print(f"OpenDP {name}: {rate:,.0f} a second")
    print(f"{'draw':36}{'million/s':>10}{'/OpenDP':>9}{'/numpy':>8}{'bytes':>7}{'urandom':>9}")
    for name, work in vector_work(draws).items():
        taken = max(seconds(work, repeats), 1e-9)
        rate = draws / taken
        read = entropy_used(work)
        law, kind = name.split(",")[0].split()
        ratio = f"{rate / peers[f'{law} {kind}']:9.0f}" if peers else " " * 9
        print(
            f"{name:36}{rate / 1e6:10.1f}{ratio}{rate / peers_numpy[law]:8.2f}"
            f"{read / draws:7.1f}{read * byte / taken:9.0%}"
        )
    scores = rng.random(draws)
    chosen = seconds(lambda: noise.select(scores, width=1.0, epsilon=1.0), repeats)
    print(f"select over {draws:,} scores: {chosen:.3f} s")
    singles = {
        "discrete_laplace(1e12)": lambda: noise.discrete_laplace(1e12),
        "discrete_gaussian(1e12)": lambda: noise.discrete_gaussian(1e12),
        "discrete_laplace(1e12) as a vector": lambda: noise.discrete_laplace(np.array(1e12)),
        "discrete_gaussian(1e12) as a vector": lambda: noise.discrete_gaussian(np.array(1e12)),
        "add_laplace(5.0)": lambda: noise.add_laplace(5.0, sensitivity=1.0, epsilon=1.0),
        "add_gaussian(5.0)": lambda: noise.add_gaussian(5.0, sensitivity=1.0, sigma=1.0),
    }
    for name, work in singles.items():
        count = 20 if quick else 2000
        taken = seconds(lambda w=work, n=count: [w() for _ in range(n)], repeats) / count
        print(f"one {name}: {1e6 * taken:.1f} microseconds")
