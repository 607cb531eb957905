"""Errors that are stated, beside those that are met when it is drawn on public tables.

Run with ``python -m benchmarks stated_errors``. For each mechanism and epsilon it prints the
error that is stated for 95 % of draws, the one that 95 % of draws kept to (the smallest and the
largest of a few tables), and their ratio. Near 1 the stated error is what is met; above, it is a
bound for the worst table, and says so. A ratio below 1 would be a stated error that is not kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import hushed as hs
from hushed.mechanisms._bound_search import BoundSearch
from hushed.mechanisms._objective_draw import ObjectiveDraw

LEVELS = (0.1, 1.0, 10.0)
DRAWS, QUICK, SEEDS = 1000, 100, 3
ROWS = 2000
Draw = Callable[[], float]


@dataclass(frozen=True)
class Case:
    """What is stated, and how an error is drawn."""

    name: str
    epsilon: float
    stated: float
    draw: Draw


def bound(norm: str = "l1", value: float = 1.0) -> hs.Sensitivity:
    """Give a sensitivity."""
    return hs.proven_sensitivity(value, norm, argument="for a benchmark")


def of_numbers(epsilon: float) -> Iterator[Case]:
    """Noise on numbers does not depend on the table."""
    for dims in (1, 8):
        exact = np.zeros(dims)
        for made in (
            hs.Laplace(bound(), epsilon=epsilon),
            hs.Gaussian(bound("l2"), epsilon=epsilon, delta=1e-6),
        ):
            yield Case(
                f"{made.name}, {dims} numbers",
                epsilon,
                made.accuracy(0.05, dims),
                lambda made=made, exact=exact: float(np.abs(made.draw(exact)).max()),
            )


def of_choices(epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Choose among 100 candidates: all but one alike, a little or far worse; and spread ones."""
    moved = bound("sup")
    best, noisy = hs.Exponential(moved, epsilon=epsilon), hs.NoisyMax(moved, epsilon=epsilon)
    three = hs.TopK(3, moved, epsilon=epsilon)
    near = best.accuracy(0.05, 100)
    one = np.arange(100) == 7
    tables = {
        "spread": rng.normal(size=100) * 10 / epsilon,
        "all but one near the stated error": np.where(one, 0.0, -near * 0.98),
    }
    for name, scores in tables.items():
        top = float(scores.max())
        yield Case(
            f"exponential, {name}",
            epsilon,
            near,
            lambda scores=scores, top=top: top - float(scores[int(best.draw(scores))]),
        )
        lead = noisy.accuracy(0.05, 100)
        its = scores if name == "spread" else np.where(one, 0.0, -lead * 0.9)
        yield Case(
            f"noisy-max, {name}",
            epsilon,
            lead,
            lambda its=its, top=top: top - float(its[noisy.draw(its).index]),
        )
        order = np.sort(scores)[::-1]
        yield Case(
            f"top-k, {name}",
            epsilon,
            three.accuracy(0.05, 100),
            lambda scores=scores, order=order: float(
                (order[:3] - scores[three.draw(scores)]).max()
            ),
        )


def of_statistics(epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Statistics of public incomes."""
    rows = rng.lognormal(10.7, 0.8, ROWS)
    median = hs.statistics.median(rows=ROWS, low=1, high=1e6)
    mean = hs.statistics.mean(rows=ROWS, low=0, high=1e6)
    made = (
        hs.InverseSensitivity(median, epsilon=epsilon),
        hs.Smooth(median, epsilon=epsilon),
        hs.Smooth(median, epsilon=epsilon, noise="t2"),
    )
    exact = float(median.value(rows))
    for each in made:
        yield Case(
            f"{each.name}{' t2' if getattr(each, 'noise', '') == 't2' else ''}, median",
            epsilon,
            each.error_on(rows),
            lambda each=each: abs(float(each.draw(rows)) - exact),
        )
    noisy = hs.Laplace(hs.global_sensitivity(mean), epsilon=epsilon)
    whole = float(mean.value(np.clip(rows, 0, 1e6)))
    yield Case(
        "laplace, mean",
        epsilon,
        noisy.accuracy(0.05),
        lambda: abs(float(noisy.draw(whole)) - whole),
    )
    middles = np.linspace(0, 200_000, 201).tolist()
    blocks = hs.Blocks(middles, epsilon=epsilon, blocks=max(40, math.ceil(40 / epsilon)))
    drawn = blocks.aggregation
    answers = rng.normal(45_000, 4_000, blocks.blocks)
    scores = drawn.scores(answers)
    yield Case(
        "blocks, rank of the median",
        epsilon,
        drawn.accuracy(0.05),
        lambda: float(scores.max() - scores[list(drawn.values).index(drawn.draw(answers))]),
    )


def of_searches(epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Rows beyond a clipping bound, and a comparison with a threshold."""
    search = BoundSearch(bound(), epsilon=epsilon)
    tails = {
        "lognormal": rng.lognormal(4, 1, ROWS),
        "Pareto 1": 1 + rng.pareto(1, ROWS),
        "Pareto 1/2": 1 + rng.pareto(0.5, ROWS),
        "uniform": rng.uniform(0, 1000, ROWS),
    }
    for name, values in tails.items():
        counts = ROWS - np.searchsorted(np.sort(values), search.candidates, side="right")
        for word, stated in (
            ("any table", search.accuracy(0.05)),
            ("falling tail", search.usual_accuracy(0.05)),
        ):
            yield Case(
                f"find-bound, {name}, {word}",
                epsilon,
                stated,
                lambda counts=counts: float(counts[search.search(counts)]),
            )


def of_fits(epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Coefficients with noise in the objective, and the same without rows, the worst table."""
    for family in ("logistic", "huber"):
        for rows in (0, ROWS):
            facts = {"family": family, "features": 4, "penalty": 1.0, "clip": 2.0}
            facts |= {"rows": 1 << 20, "epsilon": epsilon}
            loose = hs.proven_sensitivity(1e300, neighbours="add-remove", argument="any")
            value = ObjectiveDraw(loose, **facts).gradient_bound("add-remove")
            made = ObjectiveDraw(
                hs.proven_sensitivity(value, neighbours="add-remove", argument="gradients"), **facts
            )
            x = rng.uniform(-1, 1, (rows, 4))
            y = np.sign(x @ [1.0, -1.0, 0.5, 0.0] + rng.normal(0, 0.5, rows))
            table = np.hstack([x, np.ones((rows, 1)), y[:, None]])
            table = table if rows else np.zeros((1, 6))  # whose gradient is 0
            exact = made.fit(table)
            yield Case(
                f"objective, {family}, {rows} rows",
                epsilon,
                made.accuracy(0.05),
                lambda made=made, table=table, exact=exact: float(
                    np.linalg.norm(made.draw(table) - exact)
                ),
            )


def of_queries(epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    """Outputs of a query by public keys, one at a time; the error of a group counts."""
    import pyarrow as pa

    table = pa.table(
        {
            "who": np.arange(ROWS),
            "city": rng.choice(["Rome", "Oslo"], ROWS),
            "cost": np.minimum(rng.lognormal(3, 1, ROWS), 200.0),
        }
    )
    base = hs.table(table, user="who").bound_contributions(max_rows_per_user=1)
    by_city = base.group_by("city", keys=["Rome", "Oslo"])
    city, cost = (np.asarray(table[each].to_pylist()) for each in ("city", "cost"))
    own = cost[city == "Oslo"]
    edges = [0.0, 50.0, 100.0, 150.0, 200.0]
    asked = {
        "count": (by_city.count(), lambda v: abs(v - own.size)),
        "sum": (by_city.sum("cost", low=0, high=200), lambda v: abs(v - own.sum())),
        "mean": (by_city.mean("cost", low=0, high=200), lambda v: abs(v - own.mean())),
        "variance": (by_city.variance("cost", low=0, high=200), lambda v: abs(v - own.var())),
        "histogram": (
            by_city.histogram("cost", low=0, high=200, bins=4),
            lambda v: float(abs(v[1] - np.histogram(own, edges)[0][1])),
        ),
        "quantile": (
            by_city.quantiles("cost", [0.5], low=0, high=200),
            lambda v: max(0.0, (own < v).sum() - own.size / 2, own.size / 2 - (own <= v).sum()),
        ),
    }
    for name, (query, off) in asked.items():
        quote = query.quote(epsilon=epsilon, rows=own.size)

        def draw(query: hs.Query = query, off: Callable[[float], float] = off) -> float:
            answer = query.release(epsilon=epsilon)
            row = next(each for each in answer.rows() if each["city"] == "Oslo")
            values = [v for key, v in row.items() if key != "city"]
            return float(off(values[0]))

        yield Case(f"table, {name} by key", epsilon, quote.outputs[0].accuracy, draw)


def list_cases(epsilon: float, seed: int) -> Iterator[Case]:
    """List all cases on the tables of a seed."""
    yield from of_numbers(epsilon)
    for each in (of_choices, of_statistics, of_searches, of_fits, of_queries):
        yield from each(epsilon, np.random.default_rng(seed))


def met(case: Case, draws: int) -> float:
    """Error that 95 % of draws kept to."""
    few = draws // 10 if case.name.startswith(("table", "objective")) else draws
    return float(np.quantile([case.draw() for _ in range(max(few, 40))], 0.95))


def main(*, quick: bool) -> None:
    """Print a line for each case and epsilon."""
    print("| what | epsilon | stated, 95 % | met, 95 % | stated / met |\n|---|---|---|---|---|")
    for epsilon in LEVELS[1:2] if quick else LEVELS:
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(1 if quick else SEEDS):
            for case in list_cases(epsilon, seed):
                pair = (case.stated, met(case, QUICK if quick else DRAWS))
                found.setdefault(case.name, []).append(pair)
        for name, pairs in found.items():
            stated = max(s for s, _ in pairs)
            low, high = min(m for _, m in pairs), max(m for _, m in pairs)
            ratios = [s / m if m else math.inf for s, m in pairs]
            print(
                f"| {name} | {epsilon:g} | {stated:.3g} | {low:.3g} to {high:.3g} | "
                f"{min(ratios):.2f} to {max(ratios):.2f} |"
            )
