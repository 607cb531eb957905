"""What is computed from public rows alone: test functions, their shares, and tables of the null."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hushed._functions._streams import streams
from hushed._ground.decimals import decimal_of
from hushed._ground.types import Integers
from hushed._rows import _containers as containers
from hushed._rows._ranges import Range
from hushed.errors import BadRows
from hushed.fitting._tests import TestFunctions, Tests, choose_tests
from hushed.populations import OWN, Population, PublicTable, Simulator, support
from hushed.sensitivity._designs import Design
from hushed.sensitivity._pairs import draw_table

Null = Literal["simulated", "disjoint", "resampled"]

_CHOSEN_FROM = 2_000  # rows that thresholds are taken from
_FEW, _MANY = 100_000, 5_000_000  # rows that the shares are taken from
_REFERENCE = 100  # times the rows of the private table, within these
_EXACT = 2**53  # largest whole number of a double without gaps
_DEALING = 29  # key of the stream that shuffles a public table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicSide:
    """What the private table is compared with.

    Parameters
    ----------
    layout, support : Layout and tuple of Range
        Of the public rows; a private table becomes one of that kind.
    tests : TestFunctions
        What is counted.
    counts : ndarray of int
        Public rows for which each function holds.
    rows : int
        How many public rows were counted.
    deviations : ndarray of int
        The statistic of each table of the null, without noise.
    null : {"simulated", "disjoint", "resampled"}
        Where these tables come from.
    """

    layout: containers.Layout
    support: tuple[Range, ...]
    tests: TestFunctions
    counts: Integers = field(repr=False)
    rows: int
    deviations: Integers = field(repr=False)
    null: Null


def largest_deviation(counts: Integers, rows: int, public: Integers, public_rows: int) -> int:
    """Largest difference of two shares, times both numbers of rows: a whole number, exact."""
    return int(np.abs(public_rows * counts - rows * public).max())


def prepare_public(
    population: Population, rows: int, *, tests: Tests, tables: int, level: float, seed: int
) -> PublicSide:
    """Draw everything that is public, for a private table of so many rows."""
    if isinstance(population, PublicTable) and population.promise != "table":
        return _prepare_table(population, rows, tests=tests, tables=tables, level=level, seed=seed)
    return _prepare_simulated(population, rows, tests=tests, tables=tables, seed=seed)


def _prepare_simulated(
    population: Population, rows: int, *, tests: Tests, tables: int, seed: int
) -> PublicSide:
    wanted = max(rows, min(max(_REFERENCE * rows, _FEW), _MANY))
    wanted = max(1, min(wanted, _EXACT // rows))
    chunk = min(max(rows, _CHOSEN_FROM), wanted)
    parts = -(-wanted // chunk)
    drawn = _draw(population, chunk, seed, 0, parts + 1)
    first = next(drawn)
    layout = containers.layout(first)
    functions = choose_tests(first, tests)
    counts = sum((functions.count(each) for each in drawn), np.zeros(functions.size, np.int64))
    public_rows = parts * chunk
    deviations = [
        largest_deviation(functions.count(each), rows, counts, public_rows)
        for each in _draw(population, rows, seed, parts + 1, parts + 1 + tables)
    ]
    return PublicSide(
        layout=layout,
        support=support(population, layout),
        tests=functions,
        counts=counts,
        rows=public_rows,
        deviations=np.array(deviations),
        null="simulated",
    )


def _draw(population: Population, rows: int, seed: int, start: int, stop: int) -> Iterator[Any]:
    """Draw independent tables, each from a stream of its own."""
    design = Design(population=population, route="independent", rows=rows, count=rows)
    like = None
    for place, generator in enumerate(streams(seed, start, stop)):
        table = draw_table(design, generator, place, like, private=False)
        if like is None:
            like = containers.signature(table)
            if type(population) not in (Simulator, *OWN):
                ranges = support(population, containers.layout(table))
                design = Design(
                    population=population,
                    route="independent",
                    rows=rows,
                    count=rows,
                    ranges=ranges,
                )
        yield table


def _prepare_table(
    population: PublicTable, rows: int, *, tests: Tests, tables: int, level: float, seed: int
) -> PublicSide:
    """Deal out the rows of a public table: to thresholds, to shares, and to tables of the null."""
    frame, known = population.frame, len(population.frame)
    chosen = min(_CHOSEN_FROM, known // 10)
    if chosen < 1:
        raise BadRows(
            f"a public table of {known} rows says nothing of its population: give 10 rows at least,"
            " and many times those of the private table for an exact test"
        )
    key = np.random.SeedSequence(seed, spawn_key=(_DEALING,))
    rng = np.random.Generator(np.random.PCG64DXSM(key))
    dealt = rng.permutation(known)
    functions = choose_tests(containers.take(frame, dealt[:chosen]), tests)
    rest = dealt[chosen:]
    count = count_disjoint(rest.size, rows, tables=tables, level=level)
    reference = rest[count * rows :][: max(1, _EXACT // rows)]
    counts = functions.count(containers.take(frame, reference))
    deviations = []
    for place in range(count or tables):
        if count:
            table, public = rest[place * rows : (place + 1) * rows], counts
        else:  # both samples are drawn again
            table = rng.choice(rest, size=rows)
            again = rng.choice(rest, size=reference.size)
            public = functions.count(containers.take(frame, again))
        found = functions.count(containers.take(frame, table))
        deviations.append(largest_deviation(found, rows, public, reference.size))
    layout = containers.layout(frame)
    return PublicSide(
        layout=layout,
        support=support(population, layout),
        tests=functions,
        counts=counts,
        rows=reference.size,
        deviations=np.array(deviations),
        null="disjoint" if count else "resampled",
    )


def count_disjoint(known: int, rows: int, *, tables: int, level: float) -> int:
    """Count the disjoint tables of the null that public rows are enough for; 0 if for too few."""
    least = math.ceil(1 / decimal_of(level)) - 1
    half, most = known // (2 * rows), known // rows - 1
    count = min(half if half >= least else most, tables)
    return count if count >= least else 0
