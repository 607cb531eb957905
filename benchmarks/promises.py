"""Which promise, at what price: `hs.compare` on incomes and on real rows, beside other libraries.

Run with ``python -m benchmarks promises``; it prints the tables of docs/which-promise.md. Our
errors are those of `hs.compare`. OpenDP and diffprivlib, where they are installed, release the same
statistic of fresh tables of the same population; what is not installed is named. Predicted before
the first run: the inverse sensitivity first for the median, at 150 of median error and 650 at 95 %;
the sampled sensitivity first for trimmed means, ahead of the smooth one by a factor of 1.2 to 1.6;
OpenDP with the candidates of the inverse sensitivity equal to it, and worse by a factor of 8 at
95 % with 101 even ones; a comparison in 2 seconds of processor
time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

import hushed as hs

RELEASES, QUICK = 1000, 20
TRIALS, QUICK_TRIALS = 200, 10
INCOMES = (1.0, 1e6)

Draw = Callable[[np.ndarray], float]


def incomes(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Skewed incomes with a median of 45,000, in [1, 10^6]."""
    return np.clip(rng.lognormal(math.log(45_000), 0.8, size=rows), *INCOMES)


def experiment() -> dict[str, np.ndarray]:
    """Columns of the RAND Health Insurance Experiment, which ships with statsmodels."""
    from statsmodels.datasets import randhie

    table = randhie.load_pandas().data
    return {name: table[name].to_numpy(dtype=float) for name in ("mdvis", "disea")}


def correlation(rows: np.ndarray) -> float:
    """Correlation of two columns; 0 where one is constant."""
    left, right = rows[:, 0] - rows[:, 0].mean(), rows[:, 1] - rows[:, 1].mean()
    size = math.sqrt(float(left @ left) * float(right @ right))
    return float(left @ right) / size if size > 0 else 0.0


def questions() -> dict[str, tuple[object, object, int, list[float] | None]]:
    """Give what is compared: statistic or function, population, rows, candidates."""
    low, high = INCOMES
    s, made = hs.statistics, hs.populations.Simulator(incomes)
    real = experiment()
    visits, disease = (
        hs.populations.PublicTable(column, name=name, promise="table")
        for name, column in real.items()
    )
    both = hs.populations.PublicTable(
        np.column_stack(list(real.values())), name="both", promise="table"
    )
    whole = [float(k) for k in range(101)]
    return {
        "median of 1,000 incomes": (s.median(rows=1000, low=low, high=high), made, 1000, None),
        "median of 100 incomes": (s.median(rows=100, low=low, high=high), made, 100, None),
        "mean of 1,000 incomes without 10 % at each end": (
            s.trimmed_mean(0.1, rows=1000, low=low, high=high),
            made,
            1000,
            None,
        ),
        "mean of 200 incomes without 10 % at each end": (
            s.trimmed_mean(0.1, rows=200, low=low, high=high),
            made,
            200,
            None,
        ),
        "median of the index of chronic disease, 1,000 person-years, [0, 100]": (
            s.median(rows=1000, low=0, high=100),
            disease,
            1000,
            None,
        ),
        "90 % quantile of doctor visits, 1,000 person-years, [0, 100]": (
            s.quantile(0.9, rows=1000, low=0, high=100),
            visits,
            1000,
            whole,
        ),
        "mean of doctor visits, 1,000 person-years, [0, 100]": (
            s.trimmed_mean(0, rows=1000, low=0, high=100),
            visits,
            1000,
            None,
        ),
        "correlation of visits and disease, 1,000 person-years (any function)": (
            correlation,
            both,
            1000,
            None,
        ),
    }


def opendp_quantile(alpha: float, rows: int, points: list[float], epsilon: float) -> Draw:
    """Quantile by OpenDP: the noisy maximum of the scores of public candidates."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=rows), dp.symmetric_distance()
    chosen = dp.binary_search_chain(
        lambda scale: (
            space
            >> dp.t.then_quantile_score_candidates(points, alpha=alpha)
            >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale, negate=True)
        ),
        d_in=2,  # a replaced row is one less and one more
        d_out=epsilon,
        bounds=(1e-6, 1e20),  # its scores are in units of its own
    )
    return lambda table: points[chosen(table.tolist())]


def opendp_mean(rows: int, low: float, high: float, epsilon: float) -> Draw:
    """Mean by OpenDP: Laplace noise for the range."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(bounds=(low, high), nan=False), size=rows)
    released = dp.binary_search_chain(
        lambda scale: (
            (domain, dp.symmetric_distance()) >> dp.t.then_mean() >> dp.m.then_laplace(scale=scale)
        ),
        d_in=2,
        d_out=epsilon,
        bounds=(1e-6, 1e9),
    )
    return lambda table: released(np.clip(table, low, high).tolist())


def diffprivlib_draw(s: hs.statistics.Statistic, epsilon: float) -> Draw:
    """Quantile or mean by diffprivlib, over the public range."""
    from diffprivlib import tools

    bounds = (s.low, s.high)
    if isinstance(s, hs.statistics.TrimmedMean):
        return lambda table: float(tools.mean(table, epsilon=epsilon, bounds=bounds))
    return lambda table: float(tools.quantile(table, s.q, epsilon=epsilon, bounds=bounds))


def peers(s: object, points: list[float] | None, epsilon: float) -> dict[str, Callable[[], Draw]]:
    """Give what other libraries offer for a statistic."""
    if isinstance(s, hs.statistics.Quantile) and s.rows is not None:
        rows, q = s.rows, s.q
        even = np.linspace(s.low, s.high, 101).tolist()
        ours = points or list(hs.InverseSensitivity(s, epsilon=epsilon).values)
        return {
            "OpenDP, 101 even candidates": lambda: opendp_quantile(q, rows, even, epsilon),
            "OpenDP, our candidates": lambda: opendp_quantile(q, rows, ours, epsilon),
            "diffprivlib": lambda: diffprivlib_draw(s, epsilon),
        }
    if isinstance(s, hs.statistics.TrimmedMean) and s.trim == 0:
        return {
            "OpenDP": lambda: opendp_mean(s.rows or 0, s.low, s.high, epsilon),
            "diffprivlib": lambda: diffprivlib_draw(s, epsilon),
        }
    return {}


def measured(
    draw: Draw, s: hs.statistics.Numeric, population: object, releases: int
) -> list[float]:
    """Median and 95 % error of releases of fresh tables, against the statistic of each."""
    rng = np.random.default_rng(11)
    tables = [population.draw(rng, s.rows) for _ in range(releases)]
    off = [abs(draw(each) - float(s.value(each))) for each in tables]
    return [float(np.quantile(off, level)) for level in (0.5, 0.95)]


def few(asked: dict[str, tuple], *, quick: bool) -> dict[str, tuple]:
    """Leave the first and the last of many questions, a statistic and a function, if in a hurry."""
    return {title: asked[title] for title in (list(asked)[:: len(asked) - 1] if quick else asked)}


def shown(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def compared(title: str, question: tuple, epsilon: float, *, trials: int, releases: int) -> None:
    """Print one table: our routes, then those of others."""
    asked, population, rows, points = question
    begun = time.process_time()
    found = hs.compare(
        asked,
        population,
        rows=rows,
        epsilon=epsilon,
        candidates=points,
        low=-1 if not isinstance(asked, hs.statistics.Numeric) else None,
        high=1 if not isinstance(asked, hs.statistics.Numeric) else None,
        trials=trials,
    )
    taken = time.process_time() - begun
    print(f"\n{title}, epsilon = {epsilon:g} (recommended: {found.recommended}; {taken:.1f} s)\n")
    print("| route | promise holds for | error, 50 % | 95 % | calls |\n|---|---|---|---|---|")
    for each in found.routes:
        errors = f"{shown(each.error_50)} | {shown(each.error_95)}"
        print(f"| {each.name} | {each.promise} | {errors} | {each.calls} |")
    for name, make in peers(asked, points, epsilon).items():
        try:
            half, most = measured(make(), asked, population, releases)
        except ImportError as missing:
            print(f"| {name} | not installed here: {missing.name} | - | - | - |")
            continue
        print(f"| {name} | every table, one row replaced | {shown(half)} | {shown(most)} | 1 |")
    print(
        f"\nThe answers of such tables differ by {shown(found.spread_95)} at 95 %, without noise."
    )


def print_versions() -> None:
    """Name the libraries that are there."""
    found = []
    for name in ("hushed", "opendp", "diffprivlib"):
        try:
            found.append(f"{name} {version(name)}")
        except ImportError:
            found.append(f"no {name}")
    print(", ".join(found))


def main(*, quick: bool) -> None:
    """Print all tables; a quick run has two questions, few tables and releases."""
    print_versions()
    sizes = {
        "trials": QUICK_TRIALS if quick else TRIALS,
        "releases": QUICK if quick else RELEASES,
    }
    for title, question in few(questions(), quick=quick).items():
        for epsilon in (1.0, 0.1) if "1,000 incomes" in title and not quick else (1.0,):
            compared(title, question, epsilon, **sizes)
