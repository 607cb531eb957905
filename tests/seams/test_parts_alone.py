"""A part holds nothing of other rows: a changed row changes the bytes of one part alone."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import pickle
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushed as hs
from hushed._functions._gate import admit_rows
from hushed._functions._isolation import call_isolated
from hushed._rows._apart import dump_apart
from hushed.blocks._parts import split_rows
from hushed.errors import BadRows

TEXTS = [f"text {place}" for place in range(24)]
LONG = [*TEXTS[:3], "Z" * 500, *TEXTS[4:]]
NONE = [*TEXTS[:3], None, *TEXTS[4:]]
WHOLE, LARGE = [*range(24)], [0, 1, 2, 2**62, *range(4, 24)]
GONE = [0, 1, 2, None, *range(4, 24)]
WORDS, OTHER = ["b", "a"] * 12, ["b", "a", "0", *(["a", "b"] * 11)[:-1]]
DAYS = pd.date_range("2020-01-01", periods=3)


class Row(NamedTuple):
    """A row that is a named tuple."""

    name: np.ndarray


@dataclasses.dataclass
class Visit:
    """A row that is an object."""

    name: np.ndarray


def pieces(whole):
    """Cut a table into rows that are views of it."""
    get = getattr(whole, "iloc", whole)
    return [get[place : place + 1] for place in range(len(whole))]


def cut(cells):
    """Cut an array of texts into objects."""
    made = np.empty(len(cells), dtype=object)
    made[:] = pieces(np.array(cells))
    return made


def fields(cells):
    """Make an array of fields, as wide as its longest text."""
    width = max(map(len, cells))
    return np.array([(each, 1) for each in cells], dtype=[("t", f"U{width}"), ("n", "i4")])


def in_two(cells):
    """Make an Arrow column of two pieces."""
    held = pa.chunked_array([cells[:5], cells[5:]], type=pa.string())
    return pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(held)})


def of(make, **options):
    """Make a frame of one column."""
    return lambda cells: make({"a": cells}, **options)


def arrow(kind, wrap):
    """Make a pandas frame of an Arrow type."""
    return lambda cells: pd.DataFrame(
        {"a": pd.array([wrap(each) for each in cells], dtype=pd.ArrowDtype(kind))}
    )


MADE = {
    "array of texts": (np.array, TEXTS, LONG),
    "array of bytes": (lambda c: np.array([x.encode() for x in c]), TEXTS, LONG),
    "matrix of texts": (lambda c: np.array([[x, "k"] for x in c]), TEXTS, LONG),
    "fields": (fields, TEXTS, LONG),
    "objects": (lambda c: np.array(c, dtype=object), TEXTS, NONE),
    "list": (list, TEXTS, NONE),
    "dicts": (lambda c: [{"a": x} for x in c], TEXTS, LONG),
    "list of arrays": (lambda c: list(np.array([[x, "k"] for x in c])), TEXTS, LONG),
    "list of fields": (lambda c: list(fields(c)), TEXTS, LONG),
    "tuples of arrays": (
        lambda c: [(1, x) for x in np.array([[x, "k"] for x in c])],
        TEXTS,
        LONG,
    ),
    "named tuples of arrays": (lambda c: [Row(x) for x in np.array([[x] for x in c])], TEXTS, LONG),
    "objects with arrays": (lambda c: [Visit(x) for x in np.array([[x] for x in c])], TEXTS, LONG),
    "fields with arrays": (lambda c: np.array(list(zip(cut(c))), dtype=[("a", "O")]), TEXTS, LONG),
    "pandas, arrays": (lambda c: pd.DataFrame({"a": cut(c)}), TEXTS, LONG),
    "list of series": (lambda c: pieces(pd.Series(c, dtype="category")), WORDS, OTHER),
    "list of frames": (lambda c: pieces(pd.DataFrame({"a": pd.Categorical(c)})), WORDS, OTHER),
    "frames with levels": (
        lambda c: pieces(pd.DataFrame({"n": 1}, index=pd.MultiIndex.from_arrays([c, c]))),
        WORDS,
        OTHER,
    ),
    "list of Arrow arrays": (lambda c: pieces(pa.array(c)), TEXTS, LONG),
    "words of Arrow": (lambda c: list(pa.array(c).dictionary_encode()), WORDS, OTHER),
    "arrays of words of Arrow": (lambda c: pieces(pa.array(c).dictionary_encode()), WORDS, OTHER),
    "arrays of words in pieces": (
        lambda c: pieces(pa.chunked_array([pa.array(c).dictionary_encode()])),
        WORDS,
        OTHER,
    ),
    "tables of words of Arrow": (
        lambda c: pieces(pa.table({"w": pa.array(c).dictionary_encode()})),
        WORDS,
        OTHER,
    ),
    "words in lists of Arrow": (
        lambda c: list(pa.ListArray.from_arrays(range(25), pa.array(c).dictionary_encode())),
        WORDS,
        OTHER,
    ),
    "list of texts of Arrow": (
        lambda c: [x.array for x in pieces(pd.Series(c, dtype="string[pyarrow]"))],
        TEXTS,
        NONE,
    ),
    "list of polars frames": (lambda c: pieces(pl.DataFrame({"a": c})), WHOLE, GONE),
    "list of polars series": (lambda c: pieces(pl.Series(c)), WHOLE, GONE),
    "pandas": (of(pd.DataFrame), TEXTS, LONG),
    "pandas, missing": (of(pd.DataFrame), TEXTS, NONE),
    "pandas, python": (of(pd.DataFrame, dtype="string[python]"), TEXTS, NONE),
    "pandas, Arrow": (of(pd.DataFrame, dtype="string[pyarrow]"), TEXTS, NONE),
    "pandas, pieces": (in_two, TEXTS, NONE),
    "pandas, lists": (arrow(pa.list_(pa.string()), lambda x: [x]), TEXTS, LONG),
    "pandas, Int64": (of(pd.DataFrame, dtype="Int64"), WHOLE, GONE),
    "pandas, Arrow numbers": (of(pd.DataFrame, dtype="int64[pyarrow]"), WHOLE, GONE),
    "categories": (lambda c: pd.DataFrame({"a": pd.Categorical(c)}), WORDS, OTHER),
    "categories as they came": (
        lambda c: pd.DataFrame({"a": pd.Categorical(c, [*dict.fromkeys(c)])}),
        WORDS,
        ["a", *WORDS[1:]],
    ),
    "categories of two kinds": (
        lambda c: pd.DataFrame({"a": pd.Categorical(c, [*dict.fromkeys(c)])}),
        [1, "a"] * 12,
        [1, "a", b"c", *([1, "a"] * 12)[3:]],
    ),
    "days": (
        lambda c: pd.DataFrame({"a": pd.Categorical(c)}),
        [DAYS[0], DAYS[2]] * 12,
        [DAYS[0], DAYS[1], *([DAYS[0], DAYS[2]] * 11)],
    ),
    "polars": (of(pl.DataFrame), TEXTS, LONG),
    "polars, missing": (of(pl.DataFrame), TEXTS, NONE),
    "polars, numbers": (of(pl.DataFrame), WHOLE, LARGE),
    "polars, missing numbers": (of(pl.DataFrame), WHOLE, GONE),
    "polars, lists": (lambda c: pl.DataFrame({"a": [[x] for x in c]}), TEXTS, LONG),
    "polars, structs": (lambda c: pl.DataFrame({"a": [{"x": x} for x in c]}), TEXTS, NONE),
    "polars, pieces": (
        lambda c: pl.concat([pl.DataFrame({"a": c[:5]}), pl.DataFrame({"a": c[5:]})]),
        TEXTS,
        NONE,
    ),
    "polars, days": (
        lambda c: pl.DataFrame({"a": c}).select(pl.from_epoch("a")),
        WHOLE,
        GONE,
    ),
}


def split(rows, *, even):
    """Deal admitted rows with the same random numbers, and pickle the parts."""
    numbers = np.random.default_rng(1)
    parts = split_rows(
        admit_rows(rows, None),
        4,
        even=even,
        draw=lambda bound, count: numbers.integers(bound, size=count),
    )
    return [dump_apart(part) for part in parts]


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("which", MADE)
def test_one_row_changes_one_part(which, even):
    """Not even the bytes that another process is sent differ in the other parts."""
    make, held, other = MADE[which]
    assert sum(a != b for a, b in zip(held, other, strict=True)) == 1
    found = zip(split(make(held), even=even), split(make(other), even=even), strict=True)
    assert sum(one != another for one, another in found) == 1


@pytest.mark.slow
def test_a_call_is_sent_what_is_its_own():
    """A text as wide as the longest of all rows, and all categories, do not reach a call."""
    texts, kinds = np.array(["a", "b" * 50]), pd.Series(["a", "b"], dtype="category")
    rows = [(texts[:1], kinds[:1]), (texts[1:], kinds[1:])]
    found = call_isolated(
        lambda part: [part[0][0].itemsize, len(part[0][1].cat.categories)],
        [rows[:1], rows[1:]],
        shape=(2,),
    )
    assert found.tolist() == [[4, 1], [200, 1]]


def test_what_a_row_was_cut_from_stays_behind_and_the_row_as_it_was():
    """Records have their fields as attributes, masked texts their masks, cycles themselves."""
    fields = np.rec.array([("a", 1), ("b" * 50, 2)], dtype=[("t", "U50"), ("n", int)])
    masked = np.ma.array(["a", "b" * 50], mask=[True, False])
    rows = [fields[0], fields[:1], masked[:1], np.array(["a", "b" * 50])[:1].reshape(1, 1)]
    rows.append(rows)
    one, few, hidden, flat, again = found = pickle.loads(dump_apart(rows))
    assert (one.t, one.n, few.t.tolist(), few.t.dtype) == ("a", 1, ["a"], np.dtype("U1"))
    assert (hidden.mask.tolist(), hidden.dtype, flat.shape) == ([True], np.dtype("U1"), (1, 1))
    assert again is found


def test_a_polars_part_holds_the_same_values():
    """Columns are made anew of their values, of every type."""
    zone = pl.Series([1, 2, 3, 4, 5, None]).cast(pl.Datetime("ns", "UTC"))
    frame = pl.DataFrame(
        {
            "whole": [1, None, 3, 4, 5, 6],
            "float": [1.0, float("nan"), None, -0.0, float("inf"), 2],
            "short": pl.Series([1.5] * 6, dtype=pl.Float32),
            "text": ["a", None, "b", "c", "", "é"],
            "bytes": [b"1", None] * 3,
            "truth": [True, None] * 3,
            "day": [datetime.date(2020, 1, 1)] * 6,
            "instant": zone,
            "span": pl.Series(range(6)).cast(pl.Duration("ns")),
            "list": [[1, None], None, [], [2], [3], [4]],
            "struct": [{"x": 1, "y": "a"}, None, {"x": None, "y": None}, *[{"x": 2, "y": "b"}] * 3],
            "enum": pl.Series(["u", "v"] * 3, dtype=pl.Enum(["v", "u"])),
            "decimal": pl.Series([decimal.Decimal("1.25")] * 6, dtype=pl.Decimal(20, 3)),
            "null": [None] * 6,
            "array": pl.Series([[1, 2]] * 6, dtype=pl.Array(pl.Int16, 2)),
        }
    )
    (part,) = split_rows(frame, 1, even=True, draw=lambda _, count: np.arange(count))
    assert part.schema == frame.schema
    assert part.equals(frame)


EVEN = hs.Blocks(low=0, high=1, epsilon=30.0, blocks=2)
NANO = pl.Datetime("ns")
TIMES = {
    "list": pl.Series([[123456789], None] * 20).cast(pl.List(NANO)),
    "array": pl.Series([[123456789, 1]] * 40).cast(pl.Array(pl.Duration("ns"), 2)),
    "record": pl.DataFrame(
        {
            "a": pl.Series([123456789, None] * 20).cast(NANO),
            "b": pl.Series(["x", None] * 20, dtype=pl.Enum(["x"])),
        }
    ).to_struct(),
    "wide": pl.Series([1, 2] * 20).cast(pl.Int128),
}


@pytest.mark.parametrize("which", TIMES)
def test_times_in_lists_and_wide_numbers_reach_a_part_as_they_were(which):
    """Python's own times know no nanoseconds, and NumPy knows no numbers of 128 bits."""
    frame = TIMES[which].alias("x").to_frame()
    parts = EVEN.split(frame)
    assert {str(part.schema) for part in parts} == {str(frame.schema)}
    held, given = (
        [repr(cell) for cell in each["x"].to_physical()] for each in (pl.concat(parts), frame)
    )
    assert sorted(held) == sorted(given)


UNTAKEN = {
    "objects of Polars": pl.DataFrame([pl.Series("x", [(1,)] * 40, dtype=pl.Object)]),
    "views of texts": pd.DataFrame(
        {"x": pd.array(["a"] * 40, dtype=pd.ArrowDtype(pa.string_view()))}
    ),
}


@pytest.mark.parametrize("which", UNTAKEN)
def test_types_of_which_no_part_can_be_sent_are_refused_unpaid(which, ledger):
    """Each call would fail, after the charge; the types alone tell it before."""
    with pytest.raises(BadRows, match=r"Python objects|no part can be taken"):
        hs.release(len, UNTAKEN[which], EVEN, ledger, budget="b")
    assert ledger.log == []


def test_a_block_without_any_category_is_answered_as_others_are():
    """None is left of its categories, and an Arrow array of none could not be taken apart."""
    for kind in ("str", "object"):
        names = pd.Index(["a", "b"], dtype=kind)
        wards = pd.Categorical([None] * 9, categories=names, ordered=True)
        frame = pd.DataFrame({"ward": wards})
        (part, *_) = split(admit_rows(frame, None), even=True)
        assert pickle.loads(part)["ward"].isna().all()
