"""Composition against dp-accounting, and the limits this library set itself.

Run with ``python -m benchmarks accounting``. Times are medians of five, with every cache cleared;
ratios are taken against the peer in the same run. Predicted before the first run: 0.3 s or less
for the 400 different mechanisms with a bracket of at most 0.1 %, and 1 s or less for the others.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as peer

from hushed import privacy_loss
from hushed.accounting import epsilon_for_advantage
from hushed.privacy_loss import Bracket
from hushed.privacy_loss import _composed as composed
from hushed.privacy_loss import _composition as composition

SCALES = np.linspace(10.0, 50.0, 200)
SIGMAS = np.linspace(20.0, 100.0, 200)


def clear() -> None:
    composition.window.cache_clear()
    composed._ladder.cache_clear()
    gc.collect()


def timed(job: Callable[[], object], repeats: int) -> tuple[float, object]:
    seconds, found = [], None
    for _ in range(repeats):
        clear()
        start = time.perf_counter()
        found = job()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), found


def mixed(count: int) -> Bracket:
    curves = [privacy_loss.laplace(1 / b) for b in SCALES[:count]]
    curves += [privacy_loss.gaussian(1 / s) for s in SIGMAS[:count]]
    return privacy_loss.compose(curves).epsilon_bracket(1e-5)


def mixed_by_peer(count: int) -> float:
    step = 1e-3
    laplace, gaussian = peer.from_laplace_mechanism, peer.from_gaussian_mechanism
    parts = [laplace(b, value_discretization_interval=step) for b in SCALES[:count]]
    parts += [gaussian(s, value_discretization_interval=step) for s in SIGMAS[:count]]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [one.compose(other) for one, other in pairs] + rest
    return float(parts[0].get_epsilon_for_delta(1e-5))


def folded(curve: privacy_loss.PrivacyProfile, count: int, delta: float) -> Callable[[], Bracket]:
    return lambda: curve.compose(count).epsilon_bracket(delta)


def main(*, quick: bool) -> None:
    """Print one JSON object."""
    repeats, count = (1, 20) if quick else (5, len(SCALES))
    mix = f"{count} Laplace and {count} Gaussian, delta 1e-5"
    laplace, gaussian = privacy_loss.laplace, privacy_loss.gaussian
    cases: dict[str, Callable[[], object]] = {
        mix: lambda: mixed(count),
        "500 Laplace of scale 10, delta 1e-5 (11.191)": folded(laplace(0.1), 500, 1e-5),
        "1000 Gaussian of sigma 20, delta 1e-5 (7.51127590)": folded(gaussian(0.05), 1000, 1e-5),
        "100000 Laplace of scale 100, delta 1e-6": folded(laplace(0.01), 100_000, 1e-6),
        "100000 Laplace of scale 10, delta 1e-6": folded(laplace(0.1), 100_000, 1e-6),
        "level for advantage 0.1 over 1 Laplace release": lambda: epsilon_for_advantage(0.1),
        "level for advantage 0.1 over 100 Laplace": lambda: epsilon_for_advantage(
            0.1, releases=100
        ),
        "level for advantage 0.1 over 10000 Laplace": lambda: epsilon_for_advantage(
            0.1, releases=10_000
        ),
    }
    mixed(count)  # imports and the first transform are not part of the comparison
    results = {}
    for name, job in cases.items():
        seconds, found = timed(job, repeats)
        results[name] = {"seconds": round(seconds, 4)}
        if isinstance(found, Bracket):
            results[name] |= {"low": found.low, "high": found.high, "width": found.relative_gap}
        else:
            results[name]["level"] = found
    seconds, found = timed(lambda: mixed_by_peer(count), min(repeats, 3))
    ours = results[mix]["seconds"]
    results[f"dp-accounting, the same {2 * count}, upper bound, step 1e-3"] = {
        "seconds": round(seconds, 4),
        "epsilon": found,
        "times ours": round(seconds / ours, 2),
    }
    seconds, found = timed(
        lambda: (
            peer.from_laplace_mechanism(10.0, value_discretization_interval=1e-4)
            .self_compose(500)
            .get_epsilon_for_delta(1e-5)
        ),
        repeats,
    )
    results["dp-accounting, 500 Laplace, upper bound, step 1e-4"] = {
        "seconds": round(seconds, 4),
        "epsilon": found,
    }
    json.dump(results, sys.stdout, indent=2)
    sys.stdout.write("\n")
