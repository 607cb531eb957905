"""Pairs of tables per second of one function in NumPy, PyTorch and JAX, on each device there is.

The function is ``tanh(rows @ weights).mean()`` on tables of 1,000 rows and 4 columns, with
``batch=True``, in blocks of 2^16 rows and of 2^22 (``batch_rows``), in doubles and in float32. Its
first call, which compiles or wakes a device, is not timed. What is not installed is left out and
named: `make engines` sets up an environment with PyTorch and JAX. It has been run on processors
alone: no GPU was at hand.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import hushed as hs

ROWS, COLUMNS = 1000, 4
BOX = hs.populations.Uniform(low=[0.0] * COLUMNS, high=[1.0] * COLUMNS)
WEIGHTS = np.random.default_rng(0).normal(size=(COLUMNS, 8))
USUAL, LARGE = 2**16, 2**22  # 8,380 pairs are two whole blocks of the latter


def in_numpy(tables: Any) -> Any:
    return np.tanh(tables @ WEIGHTS).mean(axis=(1, 2))


def list_torch() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Give the function for each type and device of PyTorch."""
    torch = importlib.import_module("torch")
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        for kind in (torch.float64, torch.float32):
            weights = torch.as_tensor(WEIGHTS, dtype=kind, device=device)

            def compute(x: Any, kind: Any = kind, device: str = device, w: Any = weights) -> Any:
                moved = torch.as_tensor(x, device=device).to(kind)
                return torch.tanh(moved @ w).mean(dim=(1, 2))

            yield f"torch {device} {str(kind).removeprefix('torch.')}", compute


def list_jax() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Give the function for each type on the first device of JAX."""
    jax = importlib.import_module("jax")
    jnp = importlib.import_module("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    for kind in (jnp.float64, jnp.float32):
        weights = jnp.asarray(WEIGHTS, dtype=kind)
        compiled = jax.jit(lambda moved, w=weights: jnp.tanh(moved @ w).mean(axis=(1, 2)))

        def compute(tables: Any, kind: Any = kind, compiled: Any = compiled) -> Any:
            return compiled(jnp.asarray(tables, dtype=kind))

        yield f"jax {jax.devices()[0].platform} {kind.__name__}", compute


def time_pairs(function: Callable[[Any], Any], pairs: int, batch_rows: int) -> tuple[float, Any]:
    """Pairs per second of the second of two samplings, and what it found."""
    for _ in range(2):
        begun = time.perf_counter()
        s = hs.sample_sensitivity(
            function, BOX, rows=ROWS, pairs=pairs, batch=True, batch_rows=batch_rows, workers=1
        )
    return pairs / (time.perf_counter() - begun), s


def main(*, quick: bool) -> None:
    """Print one line for each function and size of blocks."""
    functions = [("numpy cpu float64", in_numpy)]
    for library, listed in (("torch", list_torch), ("jax", list_jax)):
        try:
            functions += list(listed())
        except ModuleNotFoundError:
            print(f"{library} is not installed here: left out")
    print(f"{os.cpu_count()} cores")
    print(f"{'function':24}{'rows at once':>14}{'pairs/s':>12}{'kept':>24}")
    for name, function in functions:
        for batch_rows in (USUAL,) if quick else (USUAL, LARGE):
            rate, s = time_pairs(function, 200 if quick else 8380, batch_rows)
            print(f"{name:24}{batch_rows:>14,}{rate:>12,.0f}{s.value:>24.16g}", flush=True)
