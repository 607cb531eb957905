"""The noise cases by NumPy, which protects nothing: what drawing could cost at best."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import cases


def jobs() -> cases.Jobs:
    rng = np.random.default_rng()
    return {
        "laplace one": lambda: rng.laplace(5.0),
        "gaussian one": lambda: rng.normal(5.0, 5.0),
        "laplace vector": lambda: rng.laplace(size=cases.VECTOR),
        "gaussian vector": lambda: rng.normal(0.0, 5.0, size=cases.VECTOR),
    }


if __name__ == "__main__":
    cases.answer("numpy (no protection)", np.__version__, jobs())
