"""Try a log likelihood before it is paid for: where it fails on every row, nobody would hear it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

import numpy as np

from hushed._functions._silence import silence
from hushed._ground.stops import watch_stops
from hushed._ground.types import Floats
from hushed._rows import _containers as containers
from hushed._rows._owned import copy_rows
from hushed._rows._parts import take_part
from hushed.errors import BadFunction, ParameterError
from hushed.posterior._scores import LogLikelihood, RowLikelihood
from hushed.transformations._memory import refuse_memory

_NUMBERS = (1.0, 0.0, 2.0, 0.5, 10.0, 100.0, 1000.0, -1.0)
_TEXTS = ("a", "1", "2020-01-01")
_MIXED_COLUMNS = 6  # up to which every choice of numbers and texts is tried
_MOST_TRIED = 1000  # public rows
_ORDERED = 16  # rows that are asked in two orders


def check_public_answers(function: LogLikelihood, points: Floats, rows: Any) -> None:
    """Refuse a function that fails on one of the public rows; a thousand of them are tried."""
    containers.container(rows)
    if not len(rows):
        raise ParameterError("public_rows has no rows to try log_likelihood on")
    asked = RowLikelihood(function, points)
    tried = min(len(rows), _MOST_TRIED)
    reasons = [_ask_row(asked, take_part(rows, np.array([at])))[1] for at in range(tried)]
    failed = [reason for reason in reasons if reason]
    if failed:
        raise BadFunction(
            f"log_likelihood fails on {len(failed)} of {tried} public rows, and such rows would "
            f"say nothing: {failed[0]}"
        )
    _refuse_memory(asked, [take_part(rows, np.array([at])) for at in range(min(tried, _ORDERED))])


def check_made_answers(function: LogLikelihood, points: Floats, rows: Any) -> None:
    """Refuse a function that fails on every row that is made up; nothing is, for a list.

    What is made up follows from the container and the names of its columns alone: the type of a
    column may follow from one private cell.
    """
    asked = RowLikelihood(function, points)
    first = ""
    for row in _make_rows(rows):
        _, reason = _ask_row(asked, row)
        if not reason:
            _refuse_memory(asked, list(islice(_make_rows(rows), _ORDERED)))
            return
        first = first or reason
    if first:
        raise BadFunction(
            "log_likelihood fails on every row of numbers and texts that was made up for a trial, "
            f"so that it would say nothing of the private ones, either: {first}. If only rows like "
            "the private ones make sense to it, give public ones, public_rows="
        )


def _refuse_memory(asked: RowLikelihood, rows: Sequence[Any]) -> None:
    """Refuse a function that joins rows: one of them would move what is said of all others."""
    refuse_memory(
        "hs.Posterior",
        asked.function,
        lambda at: _ask_row(asked, copy_rows(rows[at]))[0],
        len(rows),
    )


def _ask_row(asked: RowLikelihood, row: Any) -> tuple[object, str]:
    """Ask for one public row; say why that fails, if it does."""
    with watch_stops() as is_stop:
        try:
            with silence():  # warnings, too: most rows that are made up make no sense
                return asked(row).tolist(), ""
        except BaseException as cause:  # SystemExit, or a panic of a library, is no Exception
            if is_stop(cause):
                raise
            return None, f"{type(cause).__name__}: {cause}"


def _make_rows(rows: Any) -> Iterator[Any]:
    """Make up tables of one row; none for a list, whose rows are whatever they are."""
    held = containers.container(rows)
    if held == "list":
        return
    if held == "array":
        yield from _make_arrays(rows)
        return
    for cells in _make_cells(rows.shape[1]):
        named = dict(zip(rows.columns, cells, strict=True))
        yield type(rows)({name: [cell] for name, cell in named.items()})


def _make_arrays(rows: Any) -> Iterator[Any]:
    names = rows.dtype.names
    inner = rows.shape[1:]
    for cells in _make_cells(len(names) if names else int(np.prod(inner, dtype=int))):
        if names:
            kinds = [("U10" if isinstance(cell, str) else "f8") for cell in cells]
            yield np.array([cells], dtype=list(zip(names, kinds, strict=True)))
            continue
        mixed = any(isinstance(cell, str) for cell in cells)
        yield np.array(cells, dtype=object if mixed else np.float64).reshape(1, *inner)


def _make_cells(columns: int) -> Iterator[Sequence[Any]]:
    """Make up the cells of rows: numbers, level, rising and falling, then texts among them."""
    places = range(1, columns + 1)
    for number in _NUMBERS:
        yield (number,) * columns
        yield tuple(number * place for place in places)
        yield tuple(number / place for place in places)
    for number, text in product(_NUMBERS[:2], _TEXTS):
        yield (text,) * columns
        if columns <= _MIXED_COLUMNS:
            yield from product((number, text), repeat=columns)
