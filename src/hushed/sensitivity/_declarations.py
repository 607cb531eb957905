"""What callers declare of functions and populations, tried on the very things it is used for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._functions._calls import answer
from hushed._functions._environment import compute_alone, rounding_limit
from hushed._functions._fingerprints import content
from hushed._functions._streams import streams
from hushed._ground.tensors import Precision
from hushed._ground.types import Floats
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles
from hushed._rows._owned import copy_rows
from hushed._rows._people import drop_users, show_rows
from hushed.errors import BadFunction, BadRows
from hushed.populations import OWN, Population, description
from hushed.sensitivity._cells import open_cells
from hushed.sensitivity._designs import Design
from hushed.sensitivity._independence import check_independence
from hushed.sensitivity._pairs import BlockTrial, PairTrial, draw_block, draw_table
from hushed.sensitivity._values import Row, choose_values, write_values
from hushed.spaces import Norm, size

_SMALL = 1e-6  # share of the sampled sensitivity that order, or company, may move an answer by
_TABLES, _MOST_TABLES, _ROWS = 16, 64, 2000  # drawn to compare; more of small ones
_PAIRS = 256  # tables of one row, of which each has but one more to compare it with
_ORDERED_TABLES, _ORDERS = 3, 2
_BENT_TABLES = 48  # with one cell of one row at three values
_ALONE = 64  # tables of a block that are asked on their own
_FEW_ROWS = 12
_MOST_COLUMNS = 10_000
_FIRST = 1000  # rows that are looked at for whether they vary


def check_population(design: Design, first: Any, *, seed: int, private: bool) -> None:
    """Refuse a population whose rows do not follow from the generator that it is given."""
    if type(design.population) in OWN:
        return
    if not _columns(first):
        raise BadRows("the population draws rows without a column, which are all alike")
    like = containers.signature(first)
    source = (
        draw_table(design, generator, trial, like, private=private)
        for trial, generator in enumerate(streams(seed, 0, _count_tables(design.rows)))
    )
    again = next(source)
    if content([first]) != content([again]) and not containers.is_same(first, again):
        raise BadRows(
            "the population gave unequal rows from equal generators: draw(rng, count) must use no "
            "other randomness than rng, and keep no state"
        )
    drawn = open_cells([_columns(first), *map(_columns, source)])
    if _stands_still(drawn):  # an honest law of few values may repeat itself, but not that often
        raise BadRows(
            "the population gave equal rows, or an equal column, from unequal generators, as "
            "if it did not use rng: take all randomness of draw(rng, count) from rng, give a new "
            "table at each call, and leave out a column that does not vary from table to table"
        )
    check_independence(drawn)
    if design.rows >= _FEW_ROWS and any(map(_all_differ, drawn[0])):
        marks = [content(columns) for columns in drawn]
        if any(a == b for a, b in combinations(marks, 2)):
            raise BadRows(
                "the population gave one table from two generators, though its rows are all "
                "different: take all randomness of draw(rng, count) from rng"
            )


def _count_tables(rows: int) -> int:
    """Count the tables that are compared: few rows tell little of what they have in common."""
    return min(max(_TABLES, _ROWS // rows), _MOST_TABLES) if rows > 1 else _PAIRS


def check_source(population: Population, rows: int, *, seed: int) -> None:
    """Refuse a population, of which no sensitivity is sampled, for the same reasons."""
    description(population)
    if type(population) not in OWN:
        design = Design(population=population, route="independent", rows=rows, count=rows + 1)
        first = draw_table(design, next(streams(seed, 0, 1)), 0, None, private=False)
        check_population(design, first, seed=seed, private=False)


def _columns(table: Any) -> list[Any]:
    """Columns of a table as arrays or lists; the whole of one that has none, or very many.

    Of users: how many rows they have, and the columns of the first and the last row of each.
    """
    if isinstance(table, Bundles):
        found = [np.diff(table.starts)]
        for places in (table.starts[:-1], table.starts[1:] - 1):
            rows = containers.take(table.rows, places)
            others = drop_users(Bundles(rows, np.arange(len(table) + 1), table.user))
            found += [] if others is None else _columns(others)
        return found
    held = containers.container(table)
    if held == "list":
        return [table]
    if held == "array" and table.dtype.names:
        return [table[name] for name in table.dtype.names]
    if held == "array":
        flat = table.reshape(len(table), -1)
        return list(flat.T) if 1 <= flat.shape[1] <= _MOST_COLUMNS else [table]
    if held == "pandas":
        return [table.iloc[:, i].to_numpy() for i in range(table.shape[1])]
    return [table[name].to_list() for name in table.columns]


def _stands_still(drawn: list[list[Any]]) -> bool:
    """Whether a column that varies within a table is the same in all of them, or all columns are.

    One that counts may be: it numbers the rows. But it says nothing of a table that has no other.
    """
    same = len({content(columns) for columns in drawn}) == 1
    if same and any(_distinct(column[:_FIRST]) > 1 for column in drawn[0]):
        return True
    return any(
        _varies(column[0]) and len({content([each]) for each in column}) == 1
        for column in zip(*drawn, strict=True)
    )


def _varies(column: Any) -> bool:
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        steps = np.nan_to_num(np.diff(column.astype(np.float64), axis=0))
        return bool(np.any(steps != steps[:1]))  # neither constant nor counting
    return _distinct(column[:_FIRST]) > 1


def _all_differ(column: Any) -> bool:
    return _distinct(column[:_FIRST]) == len(column[:_FIRST])


def _distinct(column: Any) -> int:
    """Count different cells, among the first ones."""
    if isinstance(column, np.ndarray) and not column.dtype.hasobject:
        return len(np.unique(column, axis=0))
    return len({content([each]) for each in column})


def order_dependence(trial: PairTrial | BlockTrial, *, seed: int, batch: bool) -> float:
    """Measure how far the order of the rows moves an answer."""
    rows, private = trial.design.rows, trial.private
    rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=(1,))))
    plain = np.arange(rows)
    found = 0.0
    for number, generator in enumerate(streams(seed, 0, _ORDERED_TABLES)):
        drawn = draw_table(trial.design, generator, number, trial.like, private=private)

        def asked(order: NDArray[np.int64], drawn: Any = drawn) -> Floats:
            table = show_rows(copy_rows(containers.take(drawn, order)))
            given = table[None] if batch else table
            return compute_alone(lambda: _answer(trial, given))

        base = asked(plain)
        orders = [plain[::-1], *(rng.permutation(rows) for _ in range(_ORDERS))]
        for place in rng.integers(max(1, rows - 1), size=_ORDERS):  # blocks may be of one row
            swapped = plain.copy()
            swapped[[place, -1]] = swapped[[-1, place]]
            orders.append(swapped)
        for order in orders:
            found = max(found, _measure_gap(base, asked(order), trial.norm))
    return found


def bent_movement(
    trial: PairTrial | BlockTrial, corners: Sequence[Row], *, seed: int, batch: bool
) -> float:
    """Measure how far an answer leaves the span between those at the ends of one cell."""
    rows, private = trial.design.rows, trial.private
    rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=(3,))))
    ends = [(min(cells), max(cells)) for cells in zip(*corners, strict=True)]
    found = 0.0
    for number, generator in enumerate(streams(seed, 0, _BENT_TABLES)):
        drawn = draw_table(trial.design, generator, number, trial.like, private=private)
        at, cell = int(rng.integers(rows)), int(rng.integers(len(ends)))
        row = write_values(containers.take(drawn, rng.integers(rows, size=1)))[0]
        tried = [(*row[:cell], end, *row[cell + 1 :]) for end in (*ends[cell], row[cell])]
        table = containers.join(drawn, choose_values(tuple(tried), drawn, (), monotone=False))
        answers = []
        for source in range(len(drawn), len(drawn) + 3):
            order = np.arange(rows)
            order[at] = source
            given = copy_rows(containers.take(table, order))
            answers.append(_ask(trial, given[None] if batch else given))
        low, high = np.minimum(*answers[:2]), np.maximum(*answers[:2])
        beyond = np.maximum(np.maximum(low - answers[2], answers[2] - high), 0.0)
        found = max(found, _measure_gap(beyond, np.zeros_like(beyond), trial.norm))
    return found


def _ask(trial: PairTrial | BlockTrial, given: Any) -> Floats:
    return compute_alone(lambda: _answer(trial, given))


def _answer(trial: PairTrial | BlockTrial, given: Any) -> Floats:
    return answer(trial.function, given, private=trial.private, names=trial.names)


def block_dependence(trial: BlockTrial, *, seed: int) -> float:
    """Measure how far the other tables of a block move the answer for one of them."""
    n, count = trial.design.rows, trial.at_once
    generator = next(streams(seed, 0, 1))
    drawn = draw_block(trial.design, generator, 0, count, trial.like, private=trial.private)
    rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=(2,))))
    chosen = rng.permutation(np.arange(2, count - 1))[: _ALONE - 3]
    places = {0, min(1, count - 1), count - 1, *chosen.tolist()}

    def asked(stack: Floats) -> Floats:
        return compute_alone(lambda: answer(trial.function, stack.copy(), private=trial.private))

    block = drawn[:, :n].copy() if trial.fresh else drawn[:, :n]  # as it is sampled
    block.flags.writeable = trial.fresh
    together = compute_alone(lambda: answer(trial.function, block, private=trial.private))
    if together.shape != (count, *trial.shape):
        return 0.0  # the trial itself says what is wrong
    return max(
        _measure_gap(together[i : i + 1], asked(drawn[i : i + 1, :n]), trial.norm) for i in places
    )


def _measure_gap(first: Floats, second: Floats, norm: Norm) -> float:
    if first.shape != second.shape:
        return float("inf")
    return float(size((first - second).ravel(), norm))


def declared_rounding(
    dtype: Precision, largest: float, shape: tuple[int, ...], norm: Norm
) -> float:
    """Bound what a declaration that holds but for rounding may move an answer by.

    Notes
    -----
    In coarse numbers, a sum in another order, or beside other tables, has other last digits. Let
    each of k declarations move an answer by at most L. Then both answers of a sampled pair are
    within k L of those that they are declared to be, so that these are apart by at most 2 k L
    more: that is added to every movement. In doubles it is 0, for there a declaration is held to a
    millionth of the sensitivity.
    """
    return 0.0 if dtype == "float64" else rounding_limit(largest, shape, norm, dtype)


def check_small(moved: float, value: float, what: str, rounding: float = 0.0) -> None:
    """Refuse a declaration that is not true, seen against the sensitivity that was sampled.

    Let pass is a millionth of that, or what rounding may do, where that was added to it.
    """
    if moved <= max(_SMALL * value, rounding):
        return
    against = (
        f"it moves by {moved:.3g}, and the sensitivity is {value:.3g}; up to "
        f"{'a millionth of that' if rounding <= _SMALL * value else f'{rounding:.3g}'} "
        "is let pass. If this is rounding, take a large common part off the answer, and answer "
        "in the type of numbers that you compute in"
    )
    if what == "symmetric":
        raise BadFunction(
            "the function was declared symmetric, but reordering the rows changes its answer: "
            f"{against}; or leave symmetric out"
        )
    if what == "monotone":
        raise BadFunction(
            "the function was declared monotone, but an answer with a cell inside of its range "
            f"lies outside of those with the cell at its ends: {against}; or give values instead "
            "of monotone"
        )
    if what == "update":
        raise BadFunction(
            "the update gives another answer than the function does on the table with that row "
            f"replaced: {against}; or leave update out"
        )
    raise BadFunction(
        "with batch=True the answer for one table depends on the tables beside it, or on their "
        f"number: {against}; or leave batch out"
    )
