"""A public guess of the rows of each user, as the command line gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hushed._ground.numerals import is_whole_number
from hushed._ground.printing import plain_path
from hushed.cli._tables import name_user, read_column
from hushed.cli._written import shares_files
from hushed.errors import ParameterError, PrivateRowsAsPopulation


def read_rows_per_user(text: str | None, data: str, user: str | None) -> Any:
    """Read ROWS:USERS pairs, or the users of a public file."""
    if text is None:
        return None
    path = Path(text)
    if path.suffix not in (".csv", ".parquet"):
        return _read_pairs(text)
    if shares_files(path, data):
        raise PrivateRowsAsPopulation(
            f"--rows-per-user {plain_path(text)} holds the private rows, and error bars would "
            "tell of them: give a public file, or numbers"
        )
    if user is None:
        raise ParameterError("--rows-per-user needs --user COLUMN: it is about their rows")
    cells = read_column(path, user, header=None, text=True)
    return {user: [name_user(cell) for cell in cells]}


def _read_pairs(text: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for pair in text.split(","):
        rows, _, users = pair.strip().partition(":")
        known = all(is_whole_number(each) for each in (rows, users))
        if not known or int(rows) in found:
            raise ParameterError(
                "--rows-per-user takes ROWS:USERS, each number of rows once, such as 1:300,7:20, "
                f"or a public file whose name ends in .csv or .parquet; got {text!r}"
            )
        found[int(rows)] = int(users)
    return found
