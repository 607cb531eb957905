"""One frame on every engine, and one Spark session for the whole run."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.nasty_tables import to_postgres

__all__ = ["ENGINES", "MASTER", "QUICK", "SERVERS", "SPARK", "begun", "on_spark", "placed", "spark"]

# pyspark and pandas are not of one age, and their warnings are theirs
SPARK = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
SERVERS = ["postgres", pytest.param("spark", marks=SPARK)]
ENGINES = ["duckdb", *SERVERS]

MASTER = "local[2]"
QUICK = "-XX:TieredStopAtLevel=1"  # of Java: short queries take half the time
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_NUMBERS = count()


def begun(folder: Path) -> Any:
    """Start a session that keeps its tables in a folder."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else whatever python3 is
    builder = SparkSession.builder.master(MASTER)
    for name, value in {**_SETTINGS, "spark.sql.warehouse.dir": str(folder)}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The session of this test process, started when the first test asks for it."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: make spark")
    with tempfile.TemporaryDirectory(prefix="hushed-spark-") as folder:
        session = begun(Path(folder))
        yield session
        session.stop()


def on_spark(session: Any, frame: pa.Table, folder: Path) -> tuple[str, str]:
    """Write a frame as two Parquet files, so that two tasks read it; address and name of a view."""
    name = f"t{next(_NUMBERS)}"
    half = len(frame) // 2
    (folder / name).mkdir()
    for part, rows in (("a", frame[:half]), ("b", frame[half:])):
        parquet.write_table(rows, folder / name / f"{part}.parquet")
    session.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return f"spark://{MASTER}", name


@pytest.fixture
def placed(request: pytest.FixtureRequest) -> Callable[[str, pa.Table], tuple[Any, str]]:
    """Bring a frame to an engine: what `hs.table` takes as source and name."""

    def place(engine: str, frame: pa.Table) -> tuple[Any, str]:
        if engine == "duckdb":
            return frame, "rows"
        if engine == "polars":
            import polars as pl

            return pl.from_arrow(frame), "rows"
        if engine == "postgres":
            url, name = request.getfixturevalue("postgres_url"), f"t{next(_NUMBERS)}"
            to_postgres(frame, url, name)
            return url, name
        if engine != "spark":
            raise ValueError(f"no test brings a frame to {engine!r}: add it here")
        folder = request.getfixturevalue("tmp_path")
        return on_spark(request.getfixturevalue("spark"), frame, folder)

    return place
