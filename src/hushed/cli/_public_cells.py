"""Cells of public files as numbers or texts, and what becomes of those that are missing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np

from hushed._ground.numerals import read_cell
from hushed.cli._outcome import print_note
from hushed.errors import BadRows

Missing = Literal["drop", "keep"]

_NAMED = frozenset(["NA", "N/A", "NULL"])  # as other programs write a number that is missing
_CURE = "fill it, or say --missing drop to leave such rows out, or --missing keep to keep NaN there"

MISSING_ALONE = (
    "--missing is about public rows and goes with {}; a missing cell of private rows always "
    "reaches the function as NaN, or None for a text"
)


def read_public_cells(
    path: Path, shown: str, cells: list[Any], cure: str, *, text: bool, missing: Missing | None
) -> tuple[list[Any], bool]:
    """Numbers of a column; its texts, if none is a number and texts are allowed; and which it is.

    A missing number is NaN and a missing text is None, as they are in private rows.
    """
    read = [None if _is_missing(cell) else read_number(cell) for cell in cells]
    texts = text and all(number is None for number in read) and not all(map(_is_missing, cells))
    found: list[Any] = []
    is_lost = _is_missing if texts else lacks_number
    for row, (cell, number) in enumerate(zip(cells, read, strict=True), start=1):
        if is_lost(cell):
            if missing is None:
                raise BadRows(f"{path.name}: {shown} has a missing cell in row {row}; {_CURE}")
            found.append(None if texts else np.nan)
        elif texts:
            found.append(cell)
        elif number is None:
            hint = "" if text else f"; {cure}"
            raise BadRows(
                f"{path.name}: {shown} holds text in row {row} where a number is expected{hint}"
            )
        elif math.isinf(number):
            raise BadRows(
                f"{path.name}: {shown} holds infinity in row {row}; write a number, or leave the "
                "row out"
            )
        else:
            found.append(number)
    return found, texts


def drop_rows(path: Path, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Leave rows out that miss a cell, and say how many: what is promised is about the others."""
    gone = [any(map(_is_missing, row)) for row in zip(*columns.values(), strict=True)]
    if all(gone):
        raise BadRows(f"each row of {path.name} has a missing cell: --missing drop leaves none")
    if any(gone):
        print_note(
            f"{sum(gone)} of {len(gone)} rows of {path.name} have missing cells and are left out: "
            "what is promised is about tables without missing cells"
        )
    return {
        name: [cell for cell, lost in zip(cells, gone, strict=True) if not lost]
        for name, cells in columns.items()
    }


def name_rows(path: Path, missing: Missing | None) -> str:
    """Name a public table by its file, and by what was left out of it."""
    return f"{path.name} without rows that miss a cell" if missing == "drop" else path.name


def read_number(cell: Any) -> float | None:
    """Read a cell as a number, None where it is none."""
    if isinstance(cell, str):
        return read_cell(cell)
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _is_missing(cell: Any) -> bool:
    """Whether a cell is empty or, in a Parquet file, null or NaN."""
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def lacks_number(cell: Any) -> bool:
    """Whether a cell of numbers is missing, or one of the words that stand for that."""
    if _is_missing(cell) or (isinstance(cell, str) and cell.strip().upper() in _NAMED):
        return True
    number = read_number(cell)
    return number is not None and math.isnan(number)
