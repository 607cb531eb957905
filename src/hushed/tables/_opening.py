"""From an address, a file or a frame to a table that can be asked."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from hushed._printing import brief
from hushed.errors import ParameterError
from hushed.tables import _engine as engine
from hushed.tables._expressions import Kind, find_column
from hushed.tables._requests import GROUPABLE, KEY_KINDS
from hushed.tables._table import Table


def table(
    source: Any,
    name: str = "rows",
    *,
    user: str | None = None,
    types: Mapping[str, Kind] | None = None,
    header: str | None = None,
) -> Table:
    """Open a private table.

    Parameters
    ----------
    source : str, path, pandas.DataFrame, polars.DataFrame or pyarrow.Table
        ``duckdb:///file.db``, ``postgresql://user@host/database``, ``spark://...``; the path of a
        CSV, Parquet or Arrow file; or a frame.
    name : str, default "rows"
        Name of the table in a database.
    user : str, optional
        Column that says whose row it is. Then one user with all rows is the unit of privacy, and
        rows without a user are left out. Without it, the unit is one row.
    types : mapping of str to {"whole", "real", "text", "truth", "day", "moment"}, optional
        What to read columns of a file, a frame or a DuckDB table as; a cell that cannot be read so
        is missing. The columns of a CSV file are text unless this says otherwise: a type that was
        guessed from the rows would tell of them.
    header : str, optional
        For a CSV file without a first line of names: that line, such as
        ``"patient;city;cost"``, with what stands between the cells of the file. Every line of the
        file is a row then.

    Returns
    -------
    Table
        Nothing is read yet but names and types of the columns, which count as public. A view is
        warned of: what its rows have to be like cannot be checked.

    Raises
    ------
    NotFound
        If the file or table is not there.
    BadRows
        If a file is damaged or empty, or the first line of a CSV file does not look like names:
        a cell is empty, twice there, a number or a date. Nothing of that line is shown. A first
        record of different texts looks like names.
    EngineUnavailable
        If the database does not answer or its driver is missing.
    ParameterError
        If the source or the user column cannot be used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> visits = pa.table({"patient": [1, 1, 2], "cost": [10.0, 30.0, 20.0]})
    >>> query = table(visits, user="patient").per_user(rows=2).count()
    >>> query.quote(epsilon=1.0).accuracy("count")
    6.0
    """
    engine.check_installed()
    if not isinstance(name, str) or not name or "\x00" in name:
        raise ParameterError(f"name must be the name of a table, got {brief(str(name))}")
    if header is not None and not isinstance(header, str):
        raise ParameterError("header is a line of names such as 'patient;city;cost'")
    if isinstance(source, str) or hasattr(source, "__fspath__"):
        connection = engine.connect(str(source), name, types or {}, header)
    elif header is not None:
        raise ParameterError(
            "header is for CSV files; a frame names its columns", parameter="header"
        )
    else:
        connection = engine.over_frame(source, name, types or {})
    if user is not None:
        kind = connection.columns[find_column(user, connection.columns)]
        if kind not in GROUPABLE:
            raise ParameterError(f"user column {brief(user)} is of kind {kind}; {KEY_KINDS}")
    for remark in connection.remarks:
        warnings.warn(remark, stacklevel=2)
    return Table(connection=connection, user=user, columns=connection.columns)
