"""Pairs of tables per second of two functions in NumPy, PyTorch and JAX, on each device there is.

``product`` is ``tanh(rows @ weights).mean()`` of 1,000 rows and 4 columns: little to compute, so
that drawing rows decides. ``kernel`` is what kernel ridge regression on 128 rows predicts at 16
points: equations in 128 unknowns for each table. Both are asked with ``batch=True``, in blocks of
two sizes (``batch_rows``), in doubles and in float32. A first sampling, which compiles or wakes a
device, is not timed. ``alone`` is the function on one block of rows that are drawn already, with
their way to the device and back: what could be had if nothing else took time. What is not installed
is left out and named: `make engines` sets up an environment with PyTorch and JAX.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import hushed as hs

RNG = np.random.default_rng(0)
RIDGE, WIDTH = 1e-2, 0.3
USUAL = 2**16

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Job:
    """A function of a stack of tables, in the words that all three libraries have."""

    name: str
    compute: Callable[..., Any]  # of a library, tables, and public constants
    constants: tuple[np.ndarray, ...]
    rows: int
    columns: int
    large: int  # rows at once of the larger blocks

    def count_pairs(self) -> int:
        """Pairs of one whole block of the larger size."""
        return self.large // (self.rows + 1)


def multiply(xp: Any, tables: Any, weights: Any) -> Any:
    """Mean of the hyperbolic tangent of a product."""
    return xp.tanh(tables @ weights).mean((1, 2))


def regress(xp: Any, tables: Any, points: Any, unit: Any) -> Any:
    """Kernel ridge regression of the third column on the others, at the points."""

    def kernel(one: Any, other: Any) -> Any:
        sizes = (one**2).sum(-1)[..., :, None] + (other**2).sum(-1)[..., None, :]
        return xp.exp((one @ other.swapaxes(-1, -2) - sizes / 2) / WIDTH**2)

    x, y = tables[..., :2], tables[..., 2:]
    weights = xp.linalg.solve(kernel(x, x) + RIDGE * len(unit) * unit, y)
    return (kernel(points, x) @ weights)[..., 0]


JOBS = [
    Job("product", multiply, (RNG.normal(size=(4, 8)),), rows=1000, columns=4, large=2**22),
    Job("kernel", regress, (RNG.random((16, 2)), np.eye(128)), rows=128, columns=3, large=2**20),
]


def list_numpy(job: Job) -> Iterator[tuple[str, Function]]:
    """Give the function in NumPy."""
    yield "numpy cpu float64", lambda tables: job.compute(np, tables, *job.constants)


def list_torch(job: Job) -> Iterator[tuple[str, Function]]:
    """Give the function for each type and device of PyTorch."""
    torch = importlib.import_module("torch")
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        for kind in (torch.float64, torch.float32):
            constants = [torch.as_tensor(c, dtype=kind, device=device) for c in job.constants]

            def compute(x: Any, kind: Any = kind, device: str = device, c: Any = constants) -> Any:
                return job.compute(torch, torch.as_tensor(x, device=device).to(kind), *c)

            yield f"torch {device} {str(kind).removeprefix('torch.')}", compute


def list_jax(job: Job) -> Iterator[tuple[str, Function]]:
    """Give the function for each type on the first device of JAX."""
    jax = importlib.import_module("jax")
    jnp = importlib.import_module("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    for kind in (jnp.float64, jnp.float32):
        constants = [jnp.asarray(c, dtype=kind) for c in job.constants]
        compiled = jax.jit(lambda moved, c=constants: job.compute(jnp, moved, *c))

        def compute(tables: Any, kind: Any = kind, compiled: Any = compiled) -> Any:
            return compiled(jnp.asarray(tables, dtype=kind))

        yield f"jax {jax.devices()[0].platform} {kind.__name__}", compute


def list_functions(job: Job) -> Iterator[tuple[str, Function]]:
    """Give the function in each library that is installed."""
    yield from list_numpy(job)
    for library, listed in (("torch", list_torch), ("jax", list_jax)):
        try:
            yield from listed(job)
        except ModuleNotFoundError:
            print(f"{library} is not installed here: left out")


def time_pairs(job: Job, function: Function, pairs: int, batch_rows: int) -> tuple[float, Any]:
    """Pairs per second of the second of two samplings, and what it found."""
    box = hs.populations.Uniform(low=[0.0] * job.columns, high=[1.0] * job.columns)
    for _ in range(2):
        begun = time.perf_counter()
        s = hs.sample_sensitivity(
            function, box, rows=job.rows, pairs=pairs, batch=True, batch_rows=batch_rows, workers=1
        )
    return pairs / (time.perf_counter() - begun), s


def time_alone(job: Job, function: Function, batch_rows: int, calls: int) -> float:
    """Pairs per second of the function alone: the median of so many calls on one block."""
    tables = np.random.default_rng(1).random((batch_rows // (job.rows + 1), job.rows, job.columns))
    seconds = []
    for _ in range(calls + 1):  # the first one is not counted
        begun = time.perf_counter()
        _to_host(function(tables.copy()))
        seconds.append(time.perf_counter() - begun)
    return len(tables) / 2 / float(np.median(seconds[1:]))


def _to_host(answer: Any) -> np.ndarray:
    return np.asarray(answer.cpu() if hasattr(answer, "cpu") else answer)


def main(*, quick: bool) -> None:
    """Print one line for each function, library, type, device and size of blocks."""
    print(f"{os.cpu_count()} cores")
    print(f"{'':26}{'rows at once':>14}{'pairs/s':>10}{'alone':>10}{'kept':>24}")
    for job in JOBS:
        pairs = 20 if quick else job.count_pairs()
        for name, function in list_functions(job):
            for batch_rows in (USUAL,) if quick else (USUAL, job.large):
                rate, s = time_pairs(job, function, pairs, batch_rows)
                alone = time_alone(job, function, batch_rows, 1 if quick else 5)
                told = f"{job.name} {name}"
                print(
                    f"{told:26}{batch_rows:>14,}{rate:>10,.0f}{alone:>10,.0f}{s.value:>24.16g}",
                    flush=True,
                )
