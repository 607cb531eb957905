"""An answer as columns of cells, for frames and files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushed._ground.numerals import read_cell
from hushed._ground.printing import plain_path, tame_cell
from hushed.errors import NotFound, ParameterError
from hushed.tables._left_out import remark_of
from hushed.tables._requests import name_quantiles

if TYPE_CHECKING:
    from hushed.tables._answers import Answer

SUFFIXES = (".csv", ".parquet", ".arrow", ".feather", ".json")


def list_columns(answer: Answer) -> dict[str, list[Any]]:
    """List the columns: each quantile has one; a histogram has lists, and its edges beside them."""
    found: dict[str, list[Any]] = {}
    for name, column in answer.to_dict().items():
        asked = answer.probabilities.get(name, ())
        if len(set(asked)) == len(asked) > 1:  # columns with one name would be one
            several = zip(*column, strict=True) if column else [()] * len(asked)
            found |= dict(zip(name_quantiles(name, asked), map(list, several), strict=True))
        else:
            found[name] = column
        if name in answer.edges:
            found[f"{name}_edges"] = [list(answer.edges[name])] * len(column)
    return found


def make_arrow(answer: Answer) -> Any:
    """Make an Arrow table; what is promised stands in its metadata, under ``hushed``."""
    import pyarrow as pa  # noqa: PLC0415

    promise = answer.guarantee
    said = {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "neighbours": promise.neighbours,
        "unit": answer.unit,
        "level": answer.level,
        "rank_error": dict(answer.rank_error),
        "shortfall": dict(answer.shortfall),
        "not_included": {name: remark_of(answer, name) for name in answer.values},
    }
    columns = {name: _make_column(pa, cells) for name, cells in list_columns(answer).items()}
    return pa.table(columns, metadata={"hushed": json.dumps(said)})


def _make_column(pa: Any, cells: Sequence[Any]) -> Any:
    """Make a column; whole numbers beyond 64 bits are decimals, and stay whole."""
    try:
        return pa.array(cells)
    except (OverflowError, pa.ArrowInvalid):
        wide = pa.decimal256(76, 0)
        if any(isinstance(cell, list) for cell in cells):
            return pa.array([list(map(Decimal, cell)) for cell in cells], pa.list_(wide))
        return pa.array(list(map(Decimal, cells)), wide)


def render(answer: Answer, suffix: str) -> bytes:
    """Write an answer as the content of a file."""
    if suffix == ".json":
        return (answer.to_json() + "\n").encode()
    if suffix == ".parquet":
        from pyarrow import parquet  # noqa: PLC0415

        sink = io.BytesIO()
        parquet.write_table(make_arrow(answer), sink)
        return sink.getvalue()
    if suffix in (".arrow", ".feather"):  # two names of one format
        import pyarrow as pa  # noqa: PLC0415

        sink, table = io.BytesIO(), make_arrow(answer)
        with pa.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
        return sink.getvalue()
    columns = list_columns(answer)
    text = io.StringIO(newline="")
    # Texts stand in quotes: a semicolon begins a cell of its own where commas are points.
    lines = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    lines.writerow(map(_write_cell, columns))
    lines.writerows([_write_cell(cell) for cell in row] for row in zip(*columns.values()))  # noqa: B905
    return text.getvalue().encode()


def _write_cell(cell: Any) -> Any:
    """Write a cell of a CSV file as `hushed.table` reads it; a list as JSON.

    Keys may come from the rows: a text that a spreadsheet would run has an apostrophe before it.
    """
    if isinstance(cell, str):
        return cell if read_cell(cell) is not None else tame_cell(cell)
    if isinstance(cell, bool | list):
        return json.dumps(cell)
    return cell.isoformat() if hasattr(cell, "isoformat") else cell


def write_new(path: str | Path, content: bytes) -> None:
    """Write a file that does not exist yet, whole or not at all.

    An answer that was paid for is never written over, and part of one looks like all of it.
    """
    place = Path(path)
    try:
        file = place.open("xb")
    except FileExistsError:
        problem = f"{plain_path(place)} exists, and may be an answer that was paid for"
        raise ParameterError(f"{problem}: name another file", parameter="path") from None
    except (OSError, ValueError) as error:  # a name with a zero byte is no name
        raise _refuse(place, error) from None
    try:
        with file:
            file.write(content)
    except BaseException as error:
        with suppress(OSError):
            place.unlink()
        if isinstance(error, OSError):
            raise _refuse(place, error) from None
        raise


def _refuse(place: Path, error: OSError | ValueError) -> NotFound:
    reason = getattr(error, "strerror", None) or "this is no name of a file"
    return NotFound(f"{plain_path(place)} cannot be written: {reason}")
