"""Errors of blocks on public tables, by number of blocks, guess and candidates.

Run with ``python -m benchmarks blocks``; it prints the tables of docs/blocks.md. Errors are those
of `hs.Blocks.simulate` with its seed, so that they are the same again, but for what the last digits
of libraries decide. Nothing was predicted: the command came after tables like these, which nobody
could print again.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import hushed as hs
from hushed.blocks._choosing import chance_of_nothing

TABLES, RANGES, QUICK = 100, 60, 3
EPSILONS, SIZES = (0.5, 1.0, 2.0), (50, 100, 200)
GUESSED, SIMULATED = (7, 9, 10, 12, 17, 22), (9, 12, 17, 22)
OFF = 20  # candidates by which a wrong guess is off
PART = 20  # blocks of the size for which a population is asked for its guess

Work = Callable[[np.ndarray], float]


def correlation(rows: np.ndarray) -> float:
    """Correlation of two columns."""
    return float(np.corrcoef(rows.T)[0, 1])


def variation(rows: np.ndarray) -> float:
    """Coefficient of variation."""
    return float(rows.std() / rows.mean())


def pairs(part: float) -> hs.populations.Simulator:
    """Make people with two numbers each, of which one is a part of the other."""

    def people(rng: np.random.Generator, count: int) -> np.ndarray:
        first = rng.normal(size=count)
        rest = rng.normal(size=count)
        return np.column_stack([first, part * first + math.sqrt(1 - part**2) * rest])

    return hs.populations.Simulator(people)


def incomes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Skewed incomes."""
    return rng.lognormal(10, 0.8, size=count)


def costs(mean: float) -> hs.populations.Simulator:
    """Make skewed costs with a mean."""
    return hs.populations.Simulator(
        lambda rng, count: mean * rng.lognormal(-1 / 2, 1.0, size=count)
    )


def needed() -> list[str]:
    """How many blocks the rule asks for."""
    lines = ["| epsilon | K = 50 | K = 100 | K = 200 |", "|---|---|---|---|"]
    for epsilon in EPSILONS:
        counts = [hs.Blocks(np.linspace(0, 1, k), epsilon=epsilon).blocks for k in SIZES]
        lines.append(f"| {epsilon:g} | {' | '.join(map(str, counts))} |")
    return lines


def mean(rows: np.ndarray) -> float:
    """Mean of the rows."""
    return float(rows.mean())


def guess(work: Work, population: object, rows: int, values: np.ndarray) -> tuple[float, ...]:
    """What a population says of the answer of a block."""
    return hs.public_prior(work, population, rows=rows, blocks=PART, candidates=values, floor=0.1)


def outside(blocks: int, tables: int) -> float:
    """How often a draw is outside of all answers, for correlations and a guess of their law."""
    values, population, rng = np.linspace(-1, 1, 101), pairs(0.5), np.random.default_rng(1)
    prior = hs.public_prior(
        correlation, population, rows=1000, blocks=blocks, candidates=values, floor=0.1
    )
    drawn = hs.Blocks(values, epsilon=1.0, prior=prior, blocks=blocks, beta=0.5).aggregation
    found = []
    for _ in range(tables):
        parts = np.array_split(population.draw(rng, 1000), blocks)
        answers = np.array([correlation(part) for part in parts])
        nearest = values[drawn.round(answers)]
        chances = drawn.chances(answers)
        found.append(chances[(values < nearest.min()) | (values > nearest.max())].sum())
    return float(np.mean(found))


def guessed(tables: int) -> list[str]:
    """How often a draw says nothing where the guess is right: the bound, and as it happens."""
    bounds = [f"{100 * chance_of_nothing(blocks, 1.0):.1f} %" for blocks in GUESSED]
    seen = [
        f"{100 * outside(blocks, tables):.1f} %" if blocks in SIMULATED else "-"
        for blocks in GUESSED
    ]
    return [
        f"| epsilon = 1, blocks | {' | '.join(map(str, GUESSED))} |",
        "|---" * (len(GUESSED) + 1) + "|",
        f"| at most, for a right guess | {' | '.join(bounds)} |",
        f"| correlation, n = 1000, guess with `floor=0.1` | {' | '.join(seen)} |",
    ]


def ways(work: Work, population: object, rows: int, values: np.ndarray) -> dict[str, hs.Blocks]:
    """Give what is compared for one function."""
    right = guess(work, population, rows, values)
    wrong = np.roll(right, OFF).tolist()
    ends = {"low": values[0], "high": values[-1]}
    return {
        "the default: 31 blocks, 32 for 121 candidates": hs.Blocks(values),
        "65 blocks": hs.Blocks(values, blocks=65),
        "17 blocks and a right guess": hs.Blocks(values, blocks=17, prior=right),
        "31 blocks and a right guess": hs.Blocks(values, blocks=31, prior=right),
        f"31 blocks and a wrong guess ({OFF} candidates off)": hs.Blocks(
            values, blocks=31, prior=wrong
        ),
        "31 blocks, mean": hs.Blocks(aggregate="mean", blocks=31, **ends),
    }


def shown(tried: object) -> str:
    return " / ".join(shown_number(each) for each in (tried.error_50, tried.error_95))


def shown_number(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.3f}"


def errors(tables: int) -> list[str]:
    """Errors at epsilon = 1 of all ways, for three functions and sizes."""
    skewed = hs.populations.Simulator(incomes)
    asked = {
        "correlation, n = 1000": (correlation, pairs(0.5), 1000, np.linspace(-1, 1, 101)),
        "correlation, n = 5000": (correlation, pairs(0.5), 5000, np.linspace(-1, 1, 101)),
        "coefficient of variation, n = 5000": (variation, skewed, 5000, np.linspace(0, 3, 121)),
    }
    found: dict[str, list[str]] = {}
    for work, population, rows, values in asked.values():
        for name, blocks in ways(work, population, rows, values).items():
            tried = blocks.simulate(work, population, rows, trials=tables, isolated=False)
            found.setdefault(name, []).append(shown(tried))
            if name.startswith("the default"):
                alone = f"{tried.error_of_blocks:.3f}"
                found.setdefault("the default, without noise", []).append(alone)
    lines = [f"| | {' | '.join(asked)} |", "|---" * 4 + "|"]
    return lines + [f"| {name} | {' | '.join(cells)} |" for name, cells in found.items()]


def spacings(tables: int) -> list[str]:
    """Errors with even and with geometric candidates of a range."""
    asked = {
        "correlation of .5": (correlation, pairs(0.5), 0, 1),
        "correlation of .9": (correlation, pairs(0.9), 0, 1),
        "coefficient of variation": (variation, hs.populations.Simulator(incomes), 0, 3),
        "mean cost of 10,000 ": (mean, costs(10_000), 0, 100_000),
        "mean cost of 13,000": (mean, costs(13_000), 0, 1_000_000),
        "mean cost of 10,000": (mean, costs(10_000), 1000, 1_000_000),
    }
    lines = ["| answer | range | even | geometric |", "|---|---|---|---|"]
    for name, (work, population, low, high) in asked.items():
        cells = [
            shown(
                hs.Blocks(low=low, high=high, spacing=spacing).simulate(
                    work, population, 5000, trials=tables, isolated=False
                )
            )
            for spacing in ("even", "geometric")
        ]
        lines.append(f"| {name.strip()} | [{low:,}, {high:,}] | {' | '.join(cells)} |")
    return lines


def main(*, quick: bool) -> None:
    """Print all tables; a quick run has few tables of rows."""
    tables, ranges = (QUICK, QUICK) if quick else (TABLES, RANGES)
    for title, lines in {
        "Blocks that the default takes": needed(),
        "How often a draw says nothing, with a guess": guessed(tables),
        f"Errors at epsilon = 1, {tables} tables": errors(tables),
        f"Errors by candidates, n = 5000, {ranges} tables": spacings(ranges),
    }.items():
        print(f"\n{title}\n\n" + "\n".join(lines))
