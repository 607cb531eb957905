"""A table of everything that engines disagree on, and a plain evaluation that shares no code."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction

import pyarrow as pa

NUMBERS = [
    1.5, -0.0, 0.1 + 0.2, 99.99999, 100.0, 100.1, -3.0, 5e-324, -5e-324, 1e-200, 1e-310, 1e308,
    -1e308, math.inf, -math.inf, math.nan, None, 2.0**-31, 33.333333333333336, 50.0,
]  # fmt: skip
TEXTS = ["Rome", "Oslo", "rome", "", "Zürich", None, "O'Hara", 'say "hi"', "Oslo ", "%_"]
DAYS = [datetime.date(2024, 2, 29), datetime.date(1969, 7, 20), None]
MOMENTS = [
    datetime.datetime(2024, 2, 29, 23, 59, 59, 999999), datetime.datetime(1, 1, 1), None,
    datetime.datetime(1969, 7, 20, 20, 17), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(1582, 10, 10), datetime.datetime(2021, 3, 28, 2, 30),
]  # fmt: skip


def nasty(rows: int = 600) -> pa.Table:
    """Every number beside every text, with users of very different sizes."""
    numbers = [NUMBERS[(7 * i) % len(NUMBERS)] for i in range(rows)]
    return pa.table(
        {
            "who": pa.array(
                [None if i % 53 == 0 else int(i**0.5) for i in range(rows)], pa.int64()
            ),
            "x": pa.array(numbers, pa.float64(), from_pandas=False),
            "n": pa.array([None if i % 17 == 0 else (i * i) % 211 - 50 for i in range(rows)]),
            "city": pa.array([TEXTS[(3 * i + i // 10) % len(TEXTS)] for i in range(rows)]),
            "day": pa.array([DAYS[i % 3] for i in range(rows)], pa.date32()),
            "at": pa.array([MOMENTS[i % 7] for i in range(rows)], pa.timestamp("us")),
            "well": pa.array([None if i % 11 == 0 else i % 2 == 0 for i in range(rows)]),
        }
    )


def clipped(value: float | None, low: float, high: float) -> Fraction | None:
    """Value between bounds as a rational number; None if it is missing."""
    if value is None or math.isnan(value):
        return None
    return Fraction(min(max(value, low), high))


def to_postgres(table: pa.Table, url: str, name: str = "visits") -> None:
    """Write a frame into a new table of a database, by COPY."""
    import psycopg

    kinds = {"int64": "bigint", "double": "double precision", "string": "text",
             "date32[day]": "date", "bool": "boolean", "timestamp[us]": "timestamp"}  # fmt: skip
    columns = ", ".join(f'"{f.name}" {kinds[str(f.type)]}' for f in table.schema)
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f'CREATE TABLE "{name}" ({columns})')
        with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in table.to_pylist():
                copy.write_row(list(row.values()))
