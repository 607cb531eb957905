"""The jobs that are compared, and how one is measured; only NumPy is needed to import this.

A *case* is a job that every library is asked to do. A library that cannot do it leaves it out.
Times are processor time of one thread (best of a few repeats), so that other work on the machine
counts less; errors are means over repeated releases.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EPSILON = 1.0
SIGMA = 20.0
LEVEL = 0.1
RELEASES = 1000
DELTA = 1e-6
VECTOR = 20_000


@dataclass(frozen=True)
class Case:
    """A job: its heading, what its second number is, and that number's true value if known."""

    title: str
    group: str
    second: str = ""
    truth: float | None = None


CASES: dict[str, Case] = {
    "laplace one": Case("Laplace, one double", "noise"),
    "gaussian one": Case("Gaussian, one double", "noise"),
    "laplace integer one": Case("Laplace, one integer", "noise"),
    "gaussian integer one": Case("Gaussian, one integer", "noise"),
    "laplace vector": Case(f"Laplace, {VECTOR:,} doubles", "noise"),
    "gaussian vector": Case(f"Gaussian, {VECTOR:,} doubles", "noise"),
    "laplace integer vector": Case(f"Laplace, {VECTOR:,} integers", "noise"),
    "gaussian integer vector": Case(f"Gaussian, {VECTOR:,} integers", "noise"),
    "compose gaussian": Case(
        f"{RELEASES} Gaussian of sigma {SIGMA:g}", "accounting", "epsilon", 8.30622505
    ),
    "compose laplace": Case(f"{RELEASES} Laplace of level {LEVEL:g}", "accounting", "epsilon"),
    "compose mixed": Case("100 Laplace and 100 Gaussian, all different", "accounting", "epsilon"),
    "mean": Case("mean of 10,000 numbers in [0, 1]", "release", "error"),
    "histogram": Case("histogram, 10,000 rows in 100 bins", "release", "error"),
    "median": Case("median of 10,000 numbers in [0, 100]", "release", "error"),
}
SCALES = np.linspace(10.0, 50.0, 100)
SIGMAS = np.linspace(20.0, 100.0, 100)


def numbers() -> Floats:
    """Draw 10,000 numbers in [0, 1], skewed, the same in every process."""
    return np.random.default_rng(0).beta(2, 5, size=10_000)


def middling() -> Floats:
    """Draw 10,000 numbers in [0, 100], the same in every process."""
    return np.clip(np.random.default_rng(1).lognormal(3.0, 0.5, size=10_000), 0, 100)


def binned(rows: Floats) -> NDArray[np.int64]:
    """Count the rows of each of 100 bins of [0, 1]."""
    return np.histogram(rows, bins=100, range=(0, 1))[0]


def seconds(job: Callable[[], object], *, repeats: int = 5, least: float = 0.02) -> float:
    """Processor seconds of one call: the best of a few batches of at least ``least`` seconds."""
    job()
    calls, taken = 1, 0.0
    while True:
        start = time.process_time()
        for _ in range(calls):
            job()
        taken = time.process_time() - start
        if taken >= least:
            break
        calls *= 2
    for _ in range(repeats - 1):
        start = time.process_time()
        for _ in range(calls):
            job()
        taken = min(taken, time.process_time() - start)
    return taken / calls


def mean_error(release: Callable[[], object], truth: object, times: int) -> float:
    """Mean absolute error of repeated releases."""
    found = [np.abs(np.asarray(release(), dtype=float) - np.asarray(truth)) for _ in range(times)]
    return float(np.mean(found))


Jobs = Mapping[str, Callable[[], object]]


def measure(jobs: Jobs, names: list[str], *, quick: bool) -> dict[str, dict[str, object]]:
    """Measure some cases; one that fails is reported and the others go on."""
    found: dict[str, dict[str, object]] = {}
    repeats, least = (1, 0.0) if quick else (5, 0.02)
    for name in [n for n in names if n in jobs]:
        job, case = jobs[name], CASES[name]
        try:
            result: dict[str, object] = {"seconds": seconds(job, repeats=repeats, least=least)}
            if case.second == "epsilon":
                result["epsilon"] = float(job())  # type: ignore[arg-type]
            elif case.second == "error":
                truths = {"mean": numbers().mean, "median": lambda: np.median(middling())}
                truth = truths[name]() if name in truths else binned(numbers())
                result["error"] = mean_error(job, truth, 5 if quick else 200)
        except Exception as problem:
            result = {"failed": f"{type(problem).__name__}: {str(problem)[:120]}"}
        found[name] = result
    return found


def answer(name: str, version: str, jobs: Jobs) -> None:
    """Measure the cases named on the command line and write one JSON object."""
    quick, names = "--quick" in sys.argv, [a for a in sys.argv[1:] if not a.startswith("--")]
    found = measure(jobs, names or list(CASES), quick=quick)
    json.dump({"name": name, "version": version, "cases": found}, sys.stdout)
