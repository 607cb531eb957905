"""What a command line names, read: functions and populations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hushed._functions._loading import read_function
from hushed._ground.numerals import is_whole_number, read_number
from hushed._ground.printing import plain_path, suggest_path
from hushed.cli._public_cells import Missing, name_rows
from hushed.cli._tables import Frame, read_table
from hushed.cli._written import shares_files
from hushed.errors import NotFound, ParameterError, PrivateRowsAsPopulation
from hushed.populations import (
    Exponential,
    Normal,
    Population,
    Promise,
    PublicTable,
    Simulator,
    Uniform,
)
from hushed.populations._users import column_of_users
from hushed.sensitivity import Blockwise


def in_blocks(function: Any, rows: int | None, user: str | int | None = None) -> Any:
    """Average a function over blocks, if so many rows, or users, were asked for."""
    return function if rows is None else Blockwise(function, rows=rows, user=user)


def check_named(user: str | None, population: Population) -> None:
    """Refuse a law of people where nobody said whose the rows are."""
    if user is None and column_of_users(population) is not None:
        raise ParameterError("the population gives people: name their column by --user")


def find_user(
    user: str | None, frame: Frame, columns: Sequence[str] | None, population: Population
) -> str | int | None:
    """Find the column of users: its name in a frame, its place from 0 in an array."""
    check_named(user, population)
    if user is None:
        return None
    if frame != "numpy":
        return user
    place = None
    if columns and user in columns:
        place = list(columns).index(user)
    elif is_whole_number(user) and int(user) > 0:
        place = int(user) - 1
    if place is not None:
        _check_place(user, place, population)
        return place
    if columns:
        raise ParameterError(
            f"--user {user!r} is no column; there is {', '.join(map(repr, columns))}"
        )
    raise ParameterError(
        f"people are told apart by {user!r}, and the population has no names of columns: with "
        f"arrays --user is a place from 1 onwards; with frames that have such a column, give "
        "--frame pandas or --frame polars"
    )


def _check_place(user: str, place: int, population: Population) -> None:
    """Refuse another column than the one a law of people writes, in places from 1."""
    named = column_of_users(population)
    wanted = place if named is None else named
    if isinstance(wanted, int) and wanted != place:
        raise ParameterError(
            f"--user {user!r} is column {place + 1}, and the population gives people in column "
            f"{wanted + 1}"
        )


def read_population(
    spec: str,
    frame: Frame = "numpy",
    *,
    header: bool | None = None,
    missing: Missing | None = None,
    promise: Promise | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    user: str | None = None,
    private: Path | str | None = None,
    admission: str = "",
) -> tuple[Population, tuple[str, ...] | None]:
    """Read a population from the command line, unless it is a file of the private rows.

    The admission says how to go on with that file all the same, where a command can.
    """
    kind, colon, rest = spec.partition(":")
    distribution = kind in ("uniform", "normal", "exponential") and colon
    for name, value in (("promise", promise), ("missing", missing)):
        if value is not None and (distribution or ".py:" in spec):
            raise ParameterError(f"--{name} goes with a file of public rows as --population")
    if distribution:
        return _without(bounds, spec, _distribution(kind, rest, spec)), None
    if ".py:" in spec:
        found = read_function(spec)
        if isinstance(found, Population):
            return _without(bounds, spec, found), None
        ranges = _by_place(bounds, ()) if frame == "numpy" else bounds
        return Simulator(found, name=spec.rpartition(":")[2], bounds=ranges or None), None
    path = Path(spec)
    if not path.is_file():
        raise NotFound(
            f"cannot read population {plain_path(spec)}: not uniform:LOW,HIGH, normal:MEAN,STD, "
            f"exponential:RATE or FILE.py:NAME, and no such file{suggest_path(spec)}"
        )
    if private is not None and shares_files(path, str(private)):
        raise PrivateRowsAsPopulation(
            f"the public population {plain_path(spec)} holds the private rows, and whatever "
            f"follows from it leaks about them; give public rows, a range or a simulator{admission}"
        )
    table = read_table(path, frame, header=header, user=user, missing=missing)
    ranges = _by_place(bounds, table.columns) if frame == "numpy" else bounds
    public = PublicTable(
        table.rows,
        name=name_rows(path, missing),
        promise=promise or "population",
        bounds=ranges or None,
    )
    return public, table.columns


def read_values(given: Sequence[str] | None) -> list[list[float | str]] | None:
    """Read rows from the command line: a cell that is no number is a text."""
    return [[_cell(text) for text in row.split(",")] for row in given] if given else None


def _cell(text: str) -> float | str:
    try:
        return read_number(text.strip())
    except ValueError:
        return text


def read_bounds(given: Sequence[str] | None) -> dict[str, tuple[float, float]]:
    """Read ranges of columns from the command line."""
    found: dict[str, tuple[float, float]] = {}
    for text in given or ():
        column, _, ends = text.rpartition(":")
        try:
            low, high = (read_number(end.strip()) for end in ends.split(","))
        except ValueError:
            column = ""
        if not column or column in found:
            raise ParameterError(f"expected COLUMN:LOW,HIGH, once for a column, got {text!r}")
        found[column] = (low, high)
    return found


def _by_place(
    bounds: Mapping[str, tuple[float, float]] | None, columns: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Ranges for an array, whose columns have places only, counted from 0."""
    found = {}
    for name, ends in (bounds or {}).items():
        if name in columns:
            found[str(columns.index(name))] = ends
        elif is_whole_number(name) and int(name) > 0:
            found[str(int(name) - 1)] = ends
        else:
            raise ParameterError(
                f"bounds were given for {name!r}, which is not a column; there is "
                f"{', '.join(map(repr, columns)) or 'a place from 1 onwards'}"
            )
    return found


def _without(
    bounds: Mapping[str, tuple[float, float]] | None, spec: str, population: Population
) -> Population:
    if bounds:
        raise ParameterError(
            f"bounds are for a file or a function that simulates, the population {spec!r} states "
            "its range itself, or has none"
        )
    return population


_EXAMPLES = {
    "uniform": "uniform:LOW,HIGH",
    "normal": "normal:MEAN,STD",
    "exponential": "exponential:RATE",
}


def _distribution(kind: str, rest: str, spec: str) -> Population:
    width = 1 if kind == "exponential" else 2
    try:
        columns = [[read_number(x.strip()) for x in part.split(",")] for part in rest.split(":")]
    except ValueError:
        raise ParameterError(
            f"population {plain_path(spec)} holds something that is not a number"
        ) from None
    if any(len(column) != width for column in columns):
        numbers = "one number" if width == 1 else f"{width} numbers with a comma between them"
        raise ParameterError(
            f"{kind} takes {numbers} for each column, as in {_EXAMPLES[kind]}; got "
            f"{plain_path(spec)}"
        )
    parts = [list(part) for part in zip(*columns, strict=True)]
    if kind == "uniform":
        return Uniform(low=parts[0], high=parts[1])
    if kind == "normal":
        return Normal(mean=parts[0], std=parts[1])
    return Exponential(rate=parts[0])
