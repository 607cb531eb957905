"""From an address, a file or a frame to a table that can be queried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hushed._ground.calls import explained
from hushed._ground.printing import as_given, brief
from hushed._ground.stops import raise_stops
from hushed._ground.types import ColumnType
from hushed._ground.warned import warn_outside
from hushed.errors import HushedWarning, ParameterError
from hushed.tables import _engine as engine
from hushed.tables._expressions import find_column, is_sendable
from hushed.tables._query import Query
from hushed.tables._requests import GROUPABLE, KEY_TYPES
from hushed.tables._table import Table


@explained(
    "what separates the cells of a CSV file is read from its first line, or from header=; decimal "
    'commas are converted first, as docs/tables.md shows; call it as in hs.table("stays.csv")'
)
def table(
    source: Any,
    name: str = "rows",
    *,
    user: str | None = None,
    types: Mapping[str, ColumnType] | None = None,
    header: str | None = None,
    newlines_in_values: bool = False,
) -> Table:
    """Open a private table.

    Parameters
    ----------
    source : str, path, pandas.DataFrame, polars.DataFrame or pyarrow.Table
        ``duckdb:///file.db``, ``postgresql://user@host/database``, ``spark://...``; the path of a
        CSV, Parquet or Arrow file; a folder of Parquet files, or a pattern that names some, such as
        ``"visits/2024-*.parquet"``; or a frame.
    name : str, default "rows"
        Name of the table in a database.
    user : str, optional
        Column that identifies the user of a row. Then the unit of privacy is one user with all
        rows, and rows without a user are left out. Without it, the unit is one row.
    types : mapping of str to {"int", "float", "string", "bool", "date", "timestamp"}, optional
        Column types for a file, a frame or a DuckDB table; a cell that cannot be read as its type
        is missing. The columns of a CSV file are strings unless declared here: a type that is
        guessed from the rows would say something about them.
    header : str, optional
        For a CSV file without a line of column names: that line, such as ``"patient;city;cost"``,
        with the delimiter of the file. Then every line of the file is a row.
    newlines_in_values : bool, default False
        For a CSV file whose cells hold ends of lines: you declare that such a cell stands in
        quotation marks and that a quotation mark in a cell is doubled, as in RFC 4180. Then a row
        ends with the first end of line that has an even number of quotation marks before it. In a
        file that is not written so, one row may change how the rows after it are read, and no
        promise holds. Without it every line is a row, whatever it contains.

    Returns
    -------
    Table
        Only the names and types of the columns are read, which count as public; of a CSV file,
        its first line, or nothing if `header` is given. Queries read a file anew, and refuse one
        that changed since it was opened. A view causes a warning, because its rows cannot be
        checked.

    Raises
    ------
    NotFound
        If the file or table does not exist.
    BadRows
        If a file is damaged or empty, or the first line of a CSV file does not look like column
        names: a cell is empty, repeated, a number or a date. Nothing of that line is shown. A first
        record of different strings does look like names.
    EngineUnavailable
        If the database does not answer or its driver is missing.
    ParameterError
        If the source or the user column cannot be used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> visits = pa.table({"patient": [1, 1, 2], "cost": [10.0, 30.0, 20.0]})
    >>> query = table(visits, user="patient").bound_contributions(max_rows_per_user=2).count()
    >>> query.quote(epsilon=1.0).accuracy("count")
    6.0
    """
    made = open_table(
        source,
        name,
        user=user,
        types=types,
        header=header,
        newlines_in_values=newlines_in_values,
    )
    for message in made.connection.told:
        warn_outside(HushedWarning(message))
    return made


@raise_stops()
def open_table(
    source: Any,
    name: str = "rows",
    *,
    user: str | None = None,
    types: Mapping[str, ColumnType] | None = None,
    header: str | None = None,
    newlines_in_values: bool = False,
) -> Table:
    """Open a private table, and leave it to the caller to tell the warnings of its connection."""
    engine.check_installed()
    if not isinstance(name, str) or not name or not is_sendable(name):
        raise ParameterError(
            f"name must be the name of a table, got {as_given(name)}", parameter="name"
        )
    if header is not None and not isinstance(header, str):
        raise ParameterError(
            "header must be a line of names such as 'patient;city;cost'", parameter="header"
        )
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        connection = engine.connect(
            str(source), name, types or {}, header, newlines_in_values=newlines_in_values
        )
    elif header is not None or newlines_in_values:
        given = "newlines_in_values" if header is None else "header"
        raise ParameterError(
            f"{given} is for CSV files; a frame names its columns and separates its rows",
            parameter=given,
        )
    else:
        connection = engine.open_frame(source, name, types or {})
    if user is not None:
        user_type = connection.columns[find_column(user, connection.columns)]
        if user_type not in GROUPABLE:
            raise ParameterError(f"user column {brief(user)} is of type {user_type}; {KEY_TYPES}")
    query = Query(schema=tuple(connection.columns.items()), user=user)
    return Table(connection=connection, query=query)
