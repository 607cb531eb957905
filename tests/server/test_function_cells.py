"""What was sampled takes every cell that a column may hold: one would make each release fail."""

from __future__ import annotations

import datetime
import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

pytest.importorskip("fastapi")

import hushed as hs
from hushed._functions._gate import admit_rows
from hushed.populations import PublicTable
from hushed.server import _sampled
from hushed.server._sampled import (
    Changed,
    Loaded,
    judge_function,
    list_failing,
    make_rows,
    require_every_cell,
)
from hushed.tables._whole import read_columns

COLUMNS = ("patient", "cost")
PRIVATE = {"patient": ["P1", "P2"], "cost": pa.array([1, None], pa.int64())}


def sample(kind, dtype, function=len):
    """Sample a count of people, whose costs are of this type."""
    cells = {"patient": np.arange(100), "cost": (np.arange(100) % 7).astype(np.int8)}
    if kind == "array":
        public = np.column_stack([*cells.values()]).astype(dtype)
    elif kind == "pandas":
        public = pd.DataFrame(cells).astype({"cost": dtype})
    else:
        public = pl.DataFrame(cells).cast({"cost": getattr(pl, dtype)})
    return hs.sample_sensitivity(
        function,
        PublicTable(public),
        rows=20,
        user=0 if kind == "array" else "patient",
        gamma=0.5,
        neighbours="add-remove",
        symmetric=True,
        workers=1,
    )


@pytest.mark.parametrize(
    ("kind", "dtype", "taken"),
    [
        ("array", "float64", True),
        ("array", "int64", False),
        ("pandas", "int64", False),
        ("pandas", "Int64", True),
        ("polars", "Int32", False),
        ("polars", "Int64", True),
    ],
)
def test_types_that_do_not_take_every_cell_are_refused(kind, dtype, taken):
    """As whole numbers in pandas, among which no cell may be missing, and narrow ones."""
    sensitivity = sample(kind, dtype)
    found = hs.table(pa.table(PRIVATE), user="patient")
    if taken:
        require_every_cell(sensitivity, COLUMNS, found)
    else:
        with pytest.raises(Changed, match="such as a missing one among whole numbers"):
            require_every_cell(sensitivity, COLUMNS, found)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
@pytest.mark.parametrize(
    "people",
    [
        pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
        pa.array([2**64 - 1, 2**64 - 2], pa.uint64()),
        pa.array([-(2**63), 2**63 - 1]),
        pa.array([True, False]),
        pa.array(["1", "01"]),
    ],
    ids=["dates", "uint64", "int64", "truths", "texts"],
)
def test_people_are_named_by_any_type_that_keys_have(kind, people):
    """The function is given numbers of them, whatever it was sampled with; no two become one."""
    sensitivity = sample(kind, "float64" if kind != "polars" else "Float64")
    found = hs.table(pa.table({"patient": people, "cost": [1.0, 2.0]}), user="patient")
    require_every_cell(sensitivity, COLUMNS, found)
    rows = make_rows(read_columns(found, list(COLUMNS), 10), sensitivity)
    names = rows[:, 0] if kind == "array" else rows["patient"]
    assert sorted(names) == [0, 1]
    admit_rows(rows, sensitivity.sampling)


def total(rows):
    """Not a number where one cost is missing."""
    return (rows[:, 1] if isinstance(rows, np.ndarray) else rows["cost"].to_numpy()).sum()


def left_out(rows):
    return np.nansum(rows[:, 1] if isinstance(rows, np.ndarray) else rows["cost"].to_numpy())


def groups(rows):
    """One number less where a cost is missing in the first row."""
    return np.zeros(1 + int(np.isnan(np.asarray(rows)[0, 1])))


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
@pytest.mark.parametrize(
    ("function", "failing"), [(total, ["cost"]), (left_out, []), (groups, ["cost"])]
)
def test_a_missing_cell_is_tried_on_public_rows(kind, function, failing):
    """A release that fails is paid, and was never foreseen: a sum of costs, one of them missing."""
    found = sample(kind, "Float64" if kind == "polars" else "float64", function)
    loaded = Loaded(function=function, sensitivity=found)
    assert list_failing(loaded, COLUMNS, "patient", math.inf) == failing
    assert list_failing(loaded, COLUMNS, "patient", 0.0) == []  # it took too long


@pytest.mark.slow
def test_it_is_refused_unpaid_also_where_it_was_registered_before(monkeypatch):
    """And so is a function whose column is gone."""
    asked = {"epsilon": 0.1, "delta": 0.0}
    wanted = {"columns": COLUMNS, "noise": "laplace"}
    told = {"function": wanted, "source": {"user": "patient"}, "asked": asked, "do": "price"}
    found = hs.table(pa.table(PRIVATE), user="patient")
    less = hs.table(pa.table({"patient": ["P1"]}), user="patient")
    with pytest.raises(Changed, match="the table has no column 'cost'"):
        require_every_cell(sample("pandas", "Int64"), COLUMNS, less)
    for dtype, table, taken in (
        ("Int64", found, True),
        ("int64", found, False),
        ("Int64", less, False),
    ):
        loaded = Loaded(function=len, sensitivity=sample("pandas", dtype))
        monkeypatch.setattr(_sampled, "load", lambda _, loaded=loaded: loaded)
        assert ("quote" in judge_function(table, told)) is taken
        assert (judge_function(table, told) == {"problem": "function_changed"}) is not taken


def test_rows_of_people_in_a_view_are_sorted(tmp_path):
    """A view has no order: how its joins are done depends on how many rows others have."""
    with duckdb.connect(tmp_path / "x.db") as made:
        made.execute("CREATE TABLE held AS SELECT 1 - range % 2 AS who, range AS x FROM range(6)")
        made.execute("CREATE VIEW shown AS SELECT * FROM held ORDER BY -x")
    with pytest.warns(hs.errors.HushedWarning, match="is a view"):
        found = hs.table(f"duckdb:///{tmp_path}/x.db", "shown", user="who")
    assert read_columns(found, ["x", "who"], 10)["x"] == [1, 3, 5, 0, 2, 4]
