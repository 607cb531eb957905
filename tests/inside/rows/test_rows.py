"""Tables of every kind are described, taken from and varied alike."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hushed._rows._containers import container, is_same, layout, signature, take
from hushed._rows._variations import variations
from hushed.errors import BadRows

NUMBERS = np.arange(12.0).reshape(6, 2)


def tables():
    frame = {"x": NUMBERS[:, 0], "y": NUMBERS[:, 1]}
    return {
        "array": NUMBERS.copy(),
        "list": NUMBERS.tolist(),
        "pandas": pd.DataFrame(frame),
        "polars": pl.DataFrame(frame),
    }


def plain(table):
    if isinstance(table, pd.DataFrame):
        return table.to_numpy().tolist()
    if isinstance(table, pl.DataFrame):
        return [list(row) for row in table.iter_rows()]
    return np.asarray(table).tolist()


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars"])
@pytest.mark.parametrize("fresh", [False, True])
def test_variations_replace_one_row_each(kind, fresh):
    """Each variation differs from the base in the one row asked for, and the table survives."""
    table = tables()[kind]
    swaps = [(0, 4), (3, 5), (1, 4)]
    found = [plain(t) for t in variations(table, 4, swaps, fresh=fresh)]
    expected = [NUMBERS[:4].tolist()]
    for position, source in swaps:
        rows = NUMBERS[:4].tolist()
        rows[position] = NUMBERS[source].tolist()
        expected.append(rows)
    assert found == expected
    assert plain(table) == NUMBERS.tolist()


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "polars"])
def test_take_repeats_rows_in_the_same_container(kind):
    """Rows are taken by position, with repeats, in the container they came in."""
    table = tables()[kind]
    taken = take(table, np.array([5, 0, 5]))
    assert container(taken) == kind
    assert plain(taken) == NUMBERS[[5, 0, 5]].tolist()
    if kind == "pandas":
        assert list(taken.index) == [0, 1, 2]


def test_pandas_index_is_no_part_of_a_variation():
    """The replaced table has the index of a fresh table, so that f cannot see the swap by it."""
    frame = tables()["pandas"]
    base, moved = variations(frame, 4, [(1, 5)])
    assert list(base.index) == list(moved.index) == [0, 1, 2, 3]


def test_array_views_are_read_only_unless_fresh():
    """A shared view cannot be written; a fresh copy can, without touching the table."""
    table = NUMBERS.copy()
    for view in variations(table, 4, [(0, 5)]):
        assert not view.flags.writeable
    for copy in variations(table, 4, [(0, 5)], fresh=True):
        copy[:] = -1
    assert np.array_equal(table, NUMBERS)


@pytest.mark.parametrize("bad", [None, 3, "rows", {"a": 1}, (1, 2), np.float64(3), iter([1])])
def test_other_containers_are_refused(bad):
    """What is no table is refused by its type."""
    with pytest.raises(BadRows, match="must be"):
        container(bad)


def test_arrays_without_rows_axis_and_masked_arrays_are_refused():
    """A scalar array has no rows, and a masked one hides some."""
    with pytest.raises(BadRows, match="without dimensions"):
        container(np.array(3.0))
    with pytest.raises(BadRows, match="masked"):
        container(np.ma.array([1.0, 2.0], mask=[True, False]))


def test_layouts_name_columns_and_kinds_but_no_values():
    """A layout tells container, columns and whether they are numbers."""
    mixed = {"age": [41, 42], "name": ["Ann", "Bob"]}
    for frame in (pd.DataFrame(mixed), pl.DataFrame(mixed)):
        found = layout(frame)
        assert found.columns == ("age", "name")
        assert found.kinds == ("number", "other")
        assert "Ann" not in repr(found) + str(found)
    assert layout(np.zeros(3)).columns == ()
    assert layout(np.zeros((3, 2))).columns == ("0", "1")
    records = np.zeros(3, dtype=[("x", "f8"), ("who", "U5")])
    assert layout(records).columns == ("x", "who")
    assert layout(records).kinds == ("number", "other")
    assert str(layout([1])) == "a list of rows"
    assert "columns age, name" in str(layout(pd.DataFrame(mixed)))


def test_signatures_tell_columns_apart():
    """Tables with other columns or containers differ, tables with other values do not."""
    kinds = tables()
    assert len({signature(t) for t in kinds.values()}) == 4
    assert signature(kinds["array"]) == signature(kinds["array"][2:] + 1)
    assert signature(kinds["array"]) != signature(kinds["array"][:, :1])
    assert signature(kinds["pandas"]) != signature(kinds["pandas"].rename(columns={"x": "z"}))
    assert signature(kinds["polars"]) != signature(kinds["polars"].rename({"x": "z"}))


NAN = float("nan")


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array([1.0, NAN]),
        lambda: np.array([1.0, NAN, "x"], dtype=object),
        lambda: np.array([(NAN, 1)], dtype=[("x", "f8"), ("k", "i8")]),
        lambda: [1.0, NAN],
        lambda: [(1.0, NAN), {"a": NAN}, "x", None],
        lambda: [np.array([1.0, NAN])],
        lambda: pd.DataFrame({"x": [1.0, NAN]}),
        lambda: pl.DataFrame({"x": [1.0, NAN, None]}),
    ],
)
def test_equal_tables_with_nan_are_the_same(make):
    """NaN equals NaN in the same place, whatever holds it."""
    import copy

    assert is_same(make(), copy.deepcopy(make()))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array([1.0, 2.0]), np.array([1.0, 3.0])),
        (np.array([1.0, 2.0]), np.array([1.0])),
        (np.array([1.0]), np.array([1], dtype=np.int64)),
        (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
        ([1.0, NAN], [1.0, 2.0]),
        ([1, 2], [2, 1]),
        ([1], [1, 2]),
        ([[1]], [(1,)]),
        ([{"a": 1}], [{"a": 2}]),
        ([{"a": 1}], [{"b": 1}]),
        (pd.DataFrame({"x": [1]}), pd.DataFrame({"x": [2]})),
        (pl.DataFrame({"x": [1]}), pl.DataFrame({"x": [2]})),
    ],
)
def test_different_tables_are_not_the_same(first, second):
    """One other value, type, order or key is a difference."""
    assert not is_same(first, second)


@pytest.mark.parametrize("make", [list, lambda pair: {"x": pair[0]}, np.array])
def test_rows_of_a_list_are_not_shared_between_variations(make):
    """A function that changes a row in place, now and then, changes no other table."""
    table = [make([float(i), 0.0]) for i in range(5)]
    key = "x" if isinstance(table[0], dict) else 0
    seen = []
    for rows in variations(table, 4, [(0, 4), (1, 4)]):
        seen.append([float(row[key]) for row in rows])
        rows[3][key] = -1.0
    assert seen == [[0, 1, 2, 3], [4, 1, 2, 3], [0, 4, 2, 3]]
    assert [float(row[key]) for row in table] == [0, 1, 2, 3, 4]
