"""The type of a column of a frame is found without its cells, however the frame was made."""

from __future__ import annotations

import copy
import pickle
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import hushed as hs
from hushed.errors import ParameterError

CELLS = [
    *([1, 2, 3], [1, 2, 3.5], [1, 2, "x"], [None] * 3, [], [date(2024, 1, 1), None], [True, None]),
    *([b"x", 1], [Decimal("1.5")], [2**70], [[1], 2], [pd.Timestamp("2024-01-01", tz="UTC"), 1]),
]


def objects(cells: list) -> pd.DataFrame:
    held = np.empty(len(cells), dtype=object)
    held[:] = cells
    return pd.DataFrame({"a": held, "n": np.arange(len(cells))})


def pickled(frame: object) -> pd.DataFrame:
    return pickle.loads(pickle.dumps(frame))


def indexed(frame: pd.DataFrame) -> pd.DataFrame:
    categories = pd.Index(["no", *map(str, range(3))], dtype=object)
    return pickled(frame.assign(a=pd.Categorical(["no"] * len(frame), categories)))


WAYS = {
    "fresh": lambda frame: frame,
    "pickled": pickled,
    "copied after a pickle": lambda frame: pickled(frame).copy(),
    "deeply copied": copy.deepcopy,
    "rows of a pickled frame": lambda frame: pickled(frame).iloc[::1],
    "two frames": lambda frame: pd.concat([pickled(frame), pickled(frame)]),
    "pickled column": lambda frame: pd.DataFrame({"a": pickled(frame["a"])}),
    "cast": lambda frame: pickled(pickled(frame).astype({"a": object})),
    "type with a note": lambda frame: frame.assign(
        a=frame["a"].to_numpy().astype(np.dtype("O", metadata={"vlen": str}))
    ),
    "categories": indexed,
    "texts": lambda frame: pickled(frame.assign(a=frame["a"].map(str).astype("string"))),
    "texts of Python": lambda frame: pickled(
        frame.assign(a=frame["a"].map(str).astype(pd.StringDtype("python")))
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_python_objects_are_strings_however_the_frame_came(way: str) -> None:
    for cells in CELLS:
        table = hs.table(WAYS[way](objects(cells)))
        assert dict(table.query.schema)["a"] == "string", cells


def test_declared_objects_of_a_pickled_frame_are_read_as_declared() -> None:
    frame = pickled(objects([1, "2", None, "x", 4.0]))
    table = hs.table(frame, types={"a": "int"}).filter("a >= 1")
    assert 2 < table.count().release(epsilon=1e4).value("count") < 4


@pytest.mark.parametrize("cells", [[1, 2], [1.5, 2.5], ["a"], [True], [1, "a"], []])
def test_pandas_categories_are_strings_whatever_pandas_made_of_the_cells(cells: list) -> None:
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object).astype("category")})
    assert hs.table(frame).query.schema == (("a", "string"),)


def test_categories_of_numbers_are_read_as_declared() -> None:
    frame = pd.DataFrame({"a": pd.Categorical([1, 2, None])})
    table = hs.table(frame, types={"a": "int"}).filter("a == 1")
    assert 0.5 < table.count().release(epsilon=1e4).value("count") < 1.5


def test_categories_of_days_are_read_as_days() -> None:
    days = pd.Categorical(pd.to_datetime(["2024-03-01", "2024-03-02", None]))
    table = hs.table(pd.DataFrame({"d": days}), types={"d": "date"})
    answer = table.filter("d == '2024-03-02'").count().release(epsilon=1e4)
    assert 0.5 < answer.value("count") < 1.5


class Guessed(pd.api.extensions.ExtensionArray):
    """Cells of a type of somebody's own, which Arrow would read as what they look like."""

    def __init__(self, cells: list) -> None:
        self.cells = list(cells)

    dtype = property(lambda _: GuessedType())
    nbytes = 0

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, place: object) -> object:
        found = np.asarray(self.cells, dtype=object)[place]
        return Guessed(found) if isinstance(found, np.ndarray) else found

    def __arrow_array__(self, type: object = None) -> pa.Array:  # noqa: A002
        return pa.array(self.cells)

    def copy(self) -> Guessed:
        return Guessed(self.cells)

    def isna(self) -> np.ndarray:
        return np.zeros(len(self), dtype=bool)

    @classmethod
    def _from_sequence(cls, cells: list, **_: object) -> Guessed:
        return cls(cells)


class GuessedType(pd.api.extensions.ExtensionDtype):
    name = "guessed"
    type = object

    @classmethod
    def construct_array_type(cls) -> type[Guessed]:
        return Guessed


def test_types_of_others_are_not_guessed() -> None:
    for cells in ([1, 2], [1.5], ["x"], [1, "x"]):
        table = hs.table(pd.DataFrame({"a": Guessed(cells), "n": 0}))
        assert table.query.schema == (("a", "other"), ("n", "int"))


@pytest.mark.parametrize(
    "made",
    [
        lambda empty: pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0][empty:])}),
        lambda empty: pd.DataFrame({"a": pd.period_range("2024", periods=2 - empty, freq="D")}),
        lambda empty: pl.DataFrame({"a": pl.Series(["x", 1][empty:], dtype=pl.Object)}),
        lambda empty: pa.table({"a": pa.array([[1], []][empty:], pa.list_(pa.int64()))}),
    ],
)
def test_types_that_cannot_be_queried_are_told_by_the_type_alone(made: object) -> None:
    for empty in (0, 1):
        assert hs.table(made(empty)).query.schema == (("a", "other"),)


def nothing(rows: int) -> dict[str, object]:
    held = pa.table({"a": pa.nulls(rows), "n": pa.array(range(rows))})
    coded = pa.DictionaryArray.from_arrays(pa.array([None] * rows, pa.int32()), pa.nulls(0))
    return {
        "arrow": held,
        "dictionary": held.set_column(0, "a", coded),
        "polars": pl.DataFrame({"a": [None] * rows, "n": range(rows)}),
        "pandas": pd.DataFrame(
            {"a": pd.array([None] * rows, dtype=pd.ArrowDtype(pa.null())), "n": range(rows)}
        ),
    }


@pytest.mark.parametrize("kind", nothing(0))
def test_a_column_of_missing_cells_alone_is_read_as_declared(kind: str) -> None:
    frame = nothing(3)[kind]
    assert hs.table(frame).query.schema == (("a", "string"), ("n", "int"))
    table = hs.table(frame, types={"a": "float"}).filter("is_null(a) or a > 1")
    assert 2 < table.count().release(epsilon=1e4).value("count") < 4


@pytest.mark.parametrize("end", [".parquet", ".arrow"])
@pytest.mark.parametrize("coded", [False, True])
def test_a_file_with_a_column_of_missing_cells_alone(end: str, coded: bool, tmp_path: Path) -> None:
    held = nothing(3)["arrow"]
    if coded:
        held = held.append_column("c", pa.array(["x", "y", "x"]).dictionary_encode())
    path = tmp_path / f"stays{end}"
    if end == ".parquet":
        parquet.write_table(held, path)
    else:
        feather.write_feather(held, path)
    assert dict(hs.table(path).query.schema)["a"] == "string"
    table = hs.table(path, types={"a": "float"}).filter("is_null(a) or a > 1")
    assert 2 < table.count().release(epsilon=1e4).value("count") < 4


@pytest.mark.parametrize("frame", [{"a": np.array([1j])}, {"a": np.array([], dtype=complex)}])
def test_a_type_that_cannot_be_read_is_to_be_cast(frame: dict) -> None:
    with pytest.raises(ParameterError, match="cast it to numbers, strings, dates or timestamps"):
        hs.table(pd.DataFrame(frame))
