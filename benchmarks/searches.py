"""Time of many questions, and errors of sums whose bound was searched for.

Run with ``python -m benchmarks searches``. Nothing that can be installed beside us has a sparse
vector, so the peers are what one is made of by hand: an exact Laplace draw of OpenDP for each
question, and numpy's Laplace (whose bits are not private). Predicted: 20 ms for 1,000 questions,
10 times less than OpenDP's draws, 10 times more than numpy's.
Got: 13 ms; OpenDP takes 8 times, numpy 0.08 times as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import hushed as hs
from hushed.mechanisms._bound_search import BoundSearch

QUESTIONS = 1000
SEARCHES, QUICK = 2000, 20


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Best processor time of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def ask_hushed() -> None:
    """Open one object and ask a thousand questions."""
    search = hs.AboveThreshold(threshold=1000, epsilon=1.0)
    for _ in range(QUESTIONS):
        search.ask(3)


def ask_numpy() -> None:
    """Do the same with numpy's Laplace noise, as textbooks do."""
    rng = np.random.default_rng()
    bar = 1000 + rng.laplace(scale=2)
    for _ in range(QUESTIONS):
        assert 3 + rng.laplace(scale=4) < bar


def ask_opendp() -> float | None:
    """Time a draw of OpenDP's exact Laplace noise for each question; None without it."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    noisy = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=4.0)
    return seconds(lambda: [noisy(3) for _ in range(QUESTIONS)], 2)


def errors(rows: np.ndarray, epsilon: float, searches: int) -> np.ndarray:
    """Relative errors of sums, half of epsilon for the bound, half for the sum."""
    proven = hs.proven_sensitivity(1.0, argument="a count of rows")
    plan = BoundSearch(proven, epsilon=epsilon / 2)
    ladder, total = plan.candidates, rows.sum()
    counts = np.array([(rows > bound).sum() for bound in ladder])
    noise = np.random.default_rng().laplace(size=searches)
    found = ladder[[plan.search(counts) for _ in range(searches)]]
    clipped = {bound: np.minimum(rows, bound).sum() for bound in set(found.tolist())}
    sums = np.array([clipped[bound] for bound in found.tolist()])
    return np.abs((sums + noise * found * 2 / epsilon) / total - 1)


def choose_top() -> dict[str, float]:
    """Time ten of 1,000 counts: chosen together, one by one, and by OpenDP's noisy top k."""
    counts = np.floor(1e4 / np.arange(1, 1001))
    proven = hs.proven_sensitivity(1.0, "sup", neighbours="add-remove", argument="counts of rows")
    together = hs.TopK(10, proven, epsilon=1.0, monotone=True)
    single = hs.Exponential(proven, epsilon=0.1, monotone=True)
    taken = {
        "together": seconds(lambda: together.draw(counts)),
        "one by one": seconds(lambda: [single.draw(counts) for _ in range(10)]),
    }
    try:
        import opendp.prelude as dp
    except ImportError:
        return taken
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    noisy = dp.m.make_noisy_top_k(*space, dp.max_divergence(), k=10, scale=10.0)
    return taken | {"OpenDP, one by one": seconds(lambda: noisy(counts), 2)}


def main(*, quick: bool) -> None:
    """Print times and errors; a quick run has few searches for the errors."""
    for name, each in choose_top().items():
        print(f"10 of 1,000 candidates, {name}: {1e3 * each:.2f} ms")
    ours, bare, peer = seconds(ask_hushed), seconds(ask_numpy), ask_opendp()
    print(f"{QUESTIONS} questions: hushed {1e3 * ours:.1f} ms, numpy {1e3 * bare:.1f} ms")
    if peer is not None:
        print(f"OpenDP, one exact Laplace draw a question: {1e3 * peer:.1f} ms")
        print(f"ratios to hushed: OpenDP {peer / ours:.1f}, numpy {bare / ours:.2f}")
    searches, rng = QUICK if quick else SEARCHES, np.random.default_rng(1)
    tables = {
        "lognormal(4, 1.5), n = 2,000": rng.lognormal(4, 1.5, 2000),
        "incomes, n = 1,000": 45_000 * rng.lognormal(0, 0.8, 1000),
    }
    for name, rows in tables.items():
        for epsilon in (1.0, 0.2):
            middle, high, highest = np.quantile(errors(rows, epsilon, searches), [0.5, 0.95, 0.99])
            print(f"{name}, epsilon {epsilon}: {middle:.1%}, 95 %: {high:.1%}, 99 %: {highest:.1%}")
