"""Whatever else an output holds beside its noisy number is read, and what no double holds of it."""

import collections
import copy
import datetime
import enum
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv6Address
from pathlib import PurePosixPath
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushed as hs
from hushed.auditing._reading import read_object, require_open
from hushed.errors import BadFunction
from hushed.testing import assert_private

PAIRS = [([0], [1])]


def slotted(base):
    """A subclass of a plain type with a place that its text does not show."""
    return type("Slotted", (base,), {"__slots__": ("exact",)})


def mark(value, exact):
    value.exact = exact
    return value


class Zone(datetime.tzinfo):
    def __init__(self, exact):
        self.exact = exact

    def utcoffset(self, moment):
        return datetime.timedelta(0)

    def __repr__(self):
        return "a zone"


class Closed:
    """Slots, of which pickle is told some only."""

    __slots__ = ("exact", "noisy")

    def __init__(self, noisy, exact):
        self.noisy, self.exact = noisy, exact

    def __getstate__(self):
        return (None, {"noisy": self.noisy})


class Own(np.ndarray):
    pass


def defaults(x, s):
    return collections.defaultdict(int if s else float, a=x)


def raised_from(x, s):
    error = ValueError(x)
    error.__cause__ = KeyError(s)
    return error


def with_metadata(x, s):
    return pa.table({"a": [x]}).replace_schema_metadata({"k": "a" * 200 + str(s)})


def field_with_metadata(x, s):
    field = pa.field("a", pa.float64(), metadata={"k": "a" * 200 + str(s)})
    return pa.table([pa.array([x])], schema=pa.schema([field]))


def entries(x, s):
    return pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([x, float(s)]))


def unused_level(x, s):
    levels = pd.MultiIndex(levels=[["a", f"b{s}"], ["c"]], codes=[[0], [0]])
    return pd.DataFrame([[x]], columns=levels)


def of_frequency(x, s):
    days = pd.DatetimeIndex(["2020-01-01", "2020-01-02"], freq="D" if s else None)
    return pd.Series([x, x], index=days)


def moment(x, zone):
    return datetime.datetime(2020, 1, 1, tzinfo=zone) + datetime.timedelta(seconds=x)


BESIDE = {
    "slot of a number": lambda x, s: mark(slotted(float)(x), s),
    "slot of a text": lambda x, s: mark(slotted(str)(f"{x:.6f}"), s),
    "slot of a list": lambda x, s: mark(slotted(list)([x]), s),
    "slot of a dict": lambda x, s: mark(slotted(dict)(a=x), s),
    "slot of a set": lambda x, s: mark(slotted(set)([x]), s),
    "slots and pickle": Closed,
    "array without dimensions": lambda x, s: mark(np.array(x).view(Own), s),
    "attribute of a masked array": lambda x, s: mark(np.ma.array([x]), s),
    "what fills a masked array": lambda x, s: np.ma.array([x], fill_value=s),
    "mask without dimensions": lambda x, s: [x, np.ma.array(1.0, mask=bool(s))],
    "values of missing keys": defaults,
    "zone": lambda x, s: [x, datetime.datetime(2020, 1, 1, tzinfo=Zone(s))],
    "zone of noise": lambda x, s: moment(x, (datetime.UTC, None)[s]),
    "name of a zone": lambda x, s: moment(x, ZoneInfo(("Europe/Rome", "Europe/Oslo")[s])),
    "end of an interval": lambda x, s: pd.Interval(x, x + 1, closed=("left", "right")[s]),
    "hour again": lambda x, s: [x, datetime.datetime(2020, 1, 1, fold=s)],
    "unit of a moment": lambda x, s: [x, np.datetime64("NaT", "s" if s else "ns")],
    "sign of zero": lambda x, s: [x, -0.0 if s else 0.0],
    "empty part": lambda x, s: [[x], []] if s else [[], [x]],
    "kind of an empty part": lambda x, s: [x, [] if s else ()],
    "class": lambda x, s: [x, int if s else float],
    "error before": raised_from,
    "order in memory": lambda x, s: np.array([[x, 1], [2, 3]], order="F" if s else "C"),
    "metadata of a type": lambda x, s: np.array([x], np.dtype("f8", metadata={"s": s})),
    "entries of Arrow": entries,
    "entries in a table": lambda x, s: pa.table({"a": entries(x, s)}),
    "metadata of Arrow": with_metadata,
    "metadata of a field": field_with_metadata,
    "chunks of Arrow": lambda x, s: pa.chunked_array([[x], [1.0]] if s else [[x, 1.0]]),
    "flags of polars": lambda x, s: pl.Series([[x, 1.0]]).explode().set_sorted(descending=bool(s)),
    "level of pandas": unused_level,
    "frequency of pandas": of_frequency,
    "flags of pandas": lambda x, s: pd.Series([x]).set_flags(allows_duplicate_labels=bool(s)),
}


@pytest.mark.slow_cases(
    "chunks of Arrow",
    "entries of Arrow",
    "metadata of Arrow",
    "flags of polars",
    "metadata of a field",
    "mask without dimensions",
    "flags of pandas",
    "slot of a list",
    "entries in a table",
    "what fills a masked array",
    "slot of a set",
    "attribute of a masked array",
    "slot of a number",
    "frequency of pandas",
    "level of pandas",
)
@pytest.mark.parametrize("name", BESIDE)
def test_what_is_beside_a_noisy_number_is_caught(name):
    """The number is as noisy as is claimed; what is beside it has no noise, and was not read."""

    def tells(rows, rng):
        return BESIDE[name](float(rng.laplace()), rows[0])

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(tells, PAIRS, claim=1.0, samples=300)


@pytest.mark.parametrize("name", BESIDE)
def test_equal_outputs_are_one(name):
    """Wherever they lie in memory; else a private mechanism might be accused."""
    assert read_object(BESIDE[name](1.25, 1)) == read_object(BESIDE[name](1.25, 1))


WIDE = {
    "integer": lambda s, noise: s + int(1e18 * noise),
    "integer of NumPy": lambda s, noise: np.int64(s) + np.int64(1e17 * noise),
    "array of integers": lambda s, noise: np.array([s, 2]) + np.int64(1e17 * noise),
    "text of digits": lambda s, noise: f"{s + int(1e18 * noise)} cents",
    "fraction": lambda s, noise: Fraction(s, 3) + Fraction(noise),
    "wide float": lambda s, noise: s * np.longdouble(2) ** -60 + noise,
    "wide complex": lambda s, noise: s * np.clongdouble(2) ** -60 + noise,
    "decimal": lambda s, noise: Decimal(s) / 1000 + Decimal(f"{noise:.2f}"),
    "long decimal": lambda s, noise: Decimal(f"{noise:.15f}000000000{s}"),
}


@pytest.mark.parametrize("name", WIDE)
def test_what_no_double_holds_of_a_number_is_caught(name):
    """Noise of the right size, in doubles, leaves the last bits of a wide number as they are."""

    def noisy(rows, rng):
        return WIDE[name](rows[0], float(rng.laplace()))

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(noisy, PAIRS, claim=1.0, samples=600)


TOLD_BY_TEXT = {
    "interval": lambda value: pd.Interval(value, 100),
    "path": lambda value: PurePosixPath(f"a/{value}"),
    "address": lambda value: IPv6Address(int(1e9 * (value + 9))),
    "number of a thing": lambda value: UUID(int=int(1e9 * (value + 9))),
    "last digits of one": lambda value: UUID(
        int=(int(1e9 * abs(value)) % 997 << 64) + round(value)
    ),
}


@pytest.mark.parametrize("name", TOLD_BY_TEXT)
def test_numbers_of_what_a_library_tells_by_its_text_are_read_through_noise(name):
    """Noise a hundred times too small passed: no two runs were alike, and no number was seen."""

    def noisy(rows, rng):
        return TOLD_BY_TEXT[name](rows[0] + float(rng.laplace(scale=0.01)))

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(noisy, PAIRS, claim=1.0, samples=600)


def test_what_no_double_holds_of_a_batch_is_caught():
    def noisy(rows, rng, size):
        return np.int64(rows[0]) + np.rint(rng.laplace(scale=1e17, size=size)).astype(np.int64)

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(noisy, PAIRS, claim=1.0, batch=True, samples=1000)


def test_whole_noise_of_any_size_is_not_accused():
    """Drawn in integers, as it should be: the last bits tell no table apart."""

    def noisy(rows, rng):
        return 10**30 + rows[0] + int(rng.geometric(0.5)) - int(rng.geometric(0.5))

    claim = hs.Guarantee(epsilon=0.7)  # log 2 in truth
    found = hs.audit(noisy, PAIRS, claim=claim, samples=2000, workers=1)
    assert found.verdict == "not refuted"


class Callable:
    """Has a name as functions have, and does not lie in a module under it."""

    __name__ = "callable"

    def __call__(self):
        return 0


@pytest.mark.parametrize("value", [np.add, Callable()], ids=["ufunc", "instance"])
def test_what_can_be_called_and_hides_what_it_holds_is_named(value):
    """As such, and not by an error of the reader."""
    with pytest.raises(BadFunction) as refused:
        hs.audit(lambda rows, rng: value, PAIRS, claim=hs.Guarantee(epsilon=1.0), samples=300)
    assert f"holds a {type(value).__name__}: an audit cannot look into it" in str(refused.value)


@pytest.mark.slow
def test_labels_of_pandas_are_read_with_those_that_no_row_has():
    """They were refused: an array stands where pickle has attributes elsewhere."""

    def tells(rows, rng):
        return pd.Categorical(["a", "a"], categories=["a", "b"][: 1 + rows[0]])

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(tells, PAIRS, claim=1.0, samples=600, workers=1)
    read = [read_object(pd.Categorical(each)) for each in (["a", "b"], ["b", "a"], ["a", "b"])]
    assert read[0] == read[2] != read[1]


def test_one_label_of_arrow_and_a_member_of_a_local_enumeration_are_read():
    """Both were refused: an entry has a place and no places, and a member knows its class."""
    told = pa.array(["a", "b"]).dictionary_encode()
    level = enum.IntEnum("level", "LOW HIGH")
    for one, other in ((told[0], told[1]), (level.LOW, level.HIGH)):
        require_open([one, other])
        assert read_object(one) != read_object(other)
        assert read_object(one) == read_object(copy.copy(one))


def test_a_class_that_lies_in_no_module_is_refused():
    """Its name does not tell what it holds."""
    with pytest.raises(BadFunction, match="an audit cannot look into it"):
        hs.audit(
            lambda rows, rng: type("Answer", (), {"exact": rows[0]}),
            PAIRS,
            claim=hs.Guarantee(epsilon=1.0),
            samples=300,
        )


def with_type(kinds):
    return lambda x, s: np.rint(x).astype(kinds[s])


BATCHES = {
    "mask": lambda x, s: np.ma.array(x, mask=np.full(len(x), bool(s))),
    "mask of a column": lambda x, s: np.ma.array(
        np.column_stack([x, x]), mask=np.column_stack([x < -99, np.full(len(x), bool(s))])
    ),
    "whole numbers of two types": with_type(["i4", "f8"]),
    "truth values or numbers": lambda x, s: (x > 0).astype([bool, float][s]),
    "one axis more": lambda x, s: x[:, None] if s else x,
    "zeros with a minus": lambda x, s: np.full(len(x), -0.0 if s else 0.0),
    "zeros with a minus beside": lambda x, s: np.column_stack([x, np.full(len(x), [0.0, -0.0][s])]),
}


@pytest.mark.slow_cases("mask", "mask of a column")
@pytest.mark.parametrize("name", BATCHES)
def test_what_is_beside_the_numbers_of_a_batch_is_caught(name):
    """Masks, types, axes and signs of zero were dropped where many runs are one array."""

    def tells(rows, rng, size):
        return BATCHES[name](rng.laplace(size=size), rows[0])

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(tells, PAIRS, claim=1.0, batch=True, samples=600)
