"""What a mechanism returns is read whole, or refused: an assertion passes no leak it cannot see."""

import dataclasses
import datetime
import decimal
import enum
import json
import types
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushed as hs
from hushed.auditing._reading import read_object
from hushed.errors import BadFunction
from hushed.testing import assert_private

PAIRS = [([0, 0], [1, 0])]


class Plain:
    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Silent(Plain):
    def __repr__(self):
        return "an answer"


class Number(float):
    def __repr__(self):
        return "a number"


class Marked(list):
    def __init__(self, value):
        super().__init__([0])
        self.value = value


@dataclasses.dataclass(repr=False)
class Record:
    value: float


class Answer(NamedTuple):
    value: float


class Colour(enum.Enum):
    RED = 0
    BLUE = 1


def amid(value):
    """A column that prints its ends only, and differs in its middle."""
    return np.r_[np.zeros(520), value, np.zeros(520)]


HOLDERS = {
    "object": Plain,
    "slots": Slotted,
    "own text": Silent,
    "number with own text": Number,
    "attribute of a list": Marked,
    "record without a text": Record,
    "objects in a list": lambda value: [Plain(value)],
    "objects in a dict": lambda value: {"answer": Plain(value)},
    "array of objects": lambda value: np.array([Plain(value)], dtype=object),
    "namespace": lambda value: types.SimpleNamespace(value=value),
    "named tuple": Answer,
    "enum": Colour,
    "exception": ValueError,
    "pandas": lambda value: pd.DataFrame({"a": amid(value)}),
    "pandas series": lambda value: pd.Series(amid(value)),
    "pandas index": lambda value: pd.DataFrame({"a": 0}, index=[value]),
    "pandas names": lambda value: pd.DataFrame({f"a{value}": [0]}),
    "polars": lambda value: pl.DataFrame({"a": amid(value)}),
    "polars series": lambda value: pl.Series("a", amid(value)),
    "arrow": lambda value: pa.table({"a": amid(value)}),
    "long array in a list": lambda value: [amid(value)],
    "long array in a record": lambda value: Record(amid(value)),
    "type of an array": lambda value: np.zeros(2, dtype="f4" if value else "f8"),
    "structured": lambda value: np.array([(value,)], dtype=[("a", "f8")])[0],
    "text like an address": lambda value: f"seen at 0x{value}",
    "memory": lambda value: memoryview(bytes([value])),
    "order of keys": lambda value: dict([("a", 0), ("b", 1)][:: 1 if value else -1]),
    "categories that rank": lambda value: pd.Series(pd.Categorical(["a"], ordered=bool(value))),
}


@pytest.mark.slow_cases("pandas", "pandas series", "pandas names", "categories that rank", "polars")
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_leak_in_any_holder_is_caught(holder):
    """Holders that print nothing of what they hold, or a part, were all taken for one output."""
    hold = HOLDERS[holder]
    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(lambda rows, rng: hold(rows[0]), PAIRS, claim=1.0, samples=300, bits=False)


@pytest.mark.parametrize("holder", HOLDERS)
def test_equal_answers_in_any_holder_are_one_output(holder):
    """Wherever they lie in memory; else a private mechanism might be accused."""
    hold = HOLDERS[holder]
    assert read_object(hold(1)) == read_object(hold(1))
    assert read_object(hold(1)) != read_object(hold(0))


DAY = datetime.datetime(2020, 1, 1)
NUMBERS = {
    "decimal": decimal.Decimal,
    "complex": lambda x: complex(0, x),
    "complex array": lambda x: np.array([1, 1j * x]),
    "duration": lambda x: datetime.timedelta(seconds=x),
    "moment": lambda x: DAY + datetime.timedelta(seconds=x),
    "numpy moment": lambda x: (
        np.datetime64("2020-01-01", "us") + np.timedelta64(int(x * 1e6), "us")
    ),
    "frame": lambda x: pd.DataFrame({"a": [0.0], "b": [x]}),
    "object": Plain,
    "arrow": pa.scalar,
    # As long as each other, whatever the noise.
    "text": lambda x: f"{x + 5:.6f} days",
    "bytes": lambda x: f"{x + 5:.6f}".encode(),
    "JSON": lambda x: json.dumps({"unit": "days", "count": round(x + 5, 6)}),
    "text in a list": lambda x: ["days", f"{x + 5:.6f}"],
    "array of texts": lambda x: np.array([f"{x + 5:.6f}"]),
}


@pytest.mark.slow_cases("frame")
@pytest.mark.parametrize("kind", NUMBERS)
def test_noise_that_is_too_small_is_caught_in_numbers_of_any_kind(kind):
    """Each output differs from all others: only their order of size tells the tables apart."""

    def noisy(rows, rng):
        return NUMBERS[kind](float(rows[0] + rng.laplace(scale=0.1)))

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(noisy, PAIRS, claim=1.0, samples=600, bits=False)


def test_keys_that_are_sorted_by_exact_counts_are_caught():
    """Noise on the counts hides nothing of it; the dict was read without its order."""

    def count(rows, rng):
        return {each: n + rng.laplace() for each, n in Counter(rows).most_common()}

    pairs = [(["a", "b", "b"], ["a", "b", "a"])]
    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(count, pairs, claim=2.0, samples=600, bits=False)


@pytest.mark.slow_cases("<lambda>1", "list")
@pytest.mark.parametrize("hold", [list, lambda numbers: numbers, lambda numbers: {"a": numbers}])
def test_a_number_far_back_is_seen_through_its_noise(hold):
    """From the 65th on each was a part of a hash alone, which noise makes another one each time."""

    def count(rows, rng):
        return hold(np.append(np.zeros(80), rows[0]) + rng.laplace(scale=0.01, size=81))

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(count, PAIRS, claim=1.0, samples=300, bits=False)


def name_attributes(names, numbers):
    """An object whose attributes were set in an order."""
    answer = types.SimpleNamespace()
    for name, each in zip(names, numbers, strict=True):
        setattr(answer, name, each)
    return answer


def record(names, numbers):
    return np.array([tuple(numbers)], dtype=[(name, "f8") for name in names])


NAMED = {
    "structured": record,
    "one row of it": lambda names, numbers: record(names, numbers)[0],
    "without dimensions": lambda names, numbers: record(names, numbers).reshape(()),
    "masked": lambda names, numbers: np.ma.array(record(names, numbers)),
    "records": lambda names, numbers: record(names, numbers).view(np.recarray),
    "named tuple": lambda names, numbers: NamedTuple("Row", [(each, float) for each in names])(
        *numbers
    ),
    "record": lambda names, numbers: dataclasses.make_dataclass("Row", names)(*numbers),
    "attributes": name_attributes,
    "lines": lambda names, numbers: "".join(
        f"{name}: {each}\n" for name, each in zip(names, numbers, strict=True)
    ),
}


@pytest.mark.slow_cases("records", "masked", "named tuple", "record")
@pytest.mark.parametrize("holder", NAMED)
def test_names_of_noisy_numbers_are_read_wherever_they_stand(holder):
    """Fields in the order of exact counts tell of them, as keys of a dict do."""

    def count(rows, rng):
        order = ["a", "b", "c"] if rows[0] else ["b", "a", "c"]
        return NAMED[holder](order, rng.laplace(size=3).tolist())

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(count, PAIRS, claim=1.0, samples=400, bits=False)


def test_large_integers_in_batches_are_told_apart():
    """Beyond 2^53 neighbours are one double."""

    def noisy(rows, rng, size):
        return 2**60 + rows[0] + rng.integers(0, 2, size=size) * 2

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(noisy, PAIRS, claim=1.0, batch=True, samples=1000, bits=False)


CLOSED = {
    "generator": (lambda value: (each for each in [value]), "holds a generator"),
    "function": (lambda value: lambda: value, "holds a function"),
    "in a list": (lambda value: [lambda: value], "holds a function"),
    "method": (lambda value: [value].pop, "holds a builtin_function_or_method"),
    "lock": (lambda value: (value, __import__("threading").Lock()), "holds a _thread.lock"),
}


@pytest.mark.parametrize("audit", [assert_private, hs.audit])
@pytest.mark.parametrize("kind", CLOSED)
def test_what_cannot_be_looked_into_is_refused(kind, audit):
    """Not refuted would say nothing."""
    hold, said = CLOSED[kind]
    with pytest.raises(BadFunction, match=f"{said}: an audit cannot look into it"):
        audit(lambda rows, rng: hold(rows[0]), PAIRS, claim=hs.Guarantee(epsilon=1.0), samples=300)


@pytest.mark.parametrize("batch", [False, True])
def test_a_mechanism_that_returns_nothing_is_refused(batch):
    """A forgotten return made each test pass."""

    def forgets(rows, rng, *size):
        return [None] * size[0] if size else None

    with pytest.raises(BadFunction, match=r"returned None: .* does it lack a return"):
        assert_private(forgets, PAIRS, claim=1.0, samples=300, batch=batch)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("columns", [0, 2])
def test_a_mechanism_that_returns_nan_alone_is_refused(batch, columns):
    """As of None, all such outputs are one: not refuted would say nothing."""

    def spoils(rows, rng, *size):
        shape = (*size, columns) if columns else size
        return np.full(shape, np.nan) + rng.normal(size=shape or None)

    with pytest.raises(BadFunction, match=r"returned NaN: there is no answer to judge"):
        assert_private(spoils, PAIRS, claim=1.0, samples=300, batch=batch)


@pytest.mark.parametrize("nothing", [None, np.nan])
def test_a_mechanism_that_answers_seldom_is_judged(nothing):
    """Propose-test-release answers once in a hundred runs where its test mostly fails.

    All of the first 64 runs are silent with probability .99^64 = .53, all of 2048 with 1e-9.
    """

    def seldom(rows, rng):
        return float(rng.integers(2)) if rng.random() < 0.01 else nothing

    for seed in range(8):
        assert_private(seldom, PAIRS, claim=1.0, samples=300, seed=seed)


def test_nan_that_depends_on_the_rows_is_caught():
    def spoils(rows, rng):
        return np.nan if rows[0] else rng.normal()

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(spoils, PAIRS, claim=1.0, samples=300)


def test_silence_that_depends_on_the_rows_is_caught():
    """None on one table alone is an outcome, and so is an error."""

    def fails(rows, rng):
        return None if rows[0] else 1 / rows[0]

    for mechanism in (fails, lambda rows, rng: rows[0] or None):
        with pytest.raises(AssertionError, match="VIOLATED"):
            assert_private(mechanism, PAIRS, claim=1.0, samples=300)


def test_parts_within_parts_take_time_in_proportion():
    """Each level of dicts and sets was written twice, which doubled the work."""
    deep = {"a": 1.0}
    for _ in range(45):
        deep = {"a": deep}
    texts, _, leaves = read_object(deep)
    assert texts[2].count("dict") == 46
    assert 1.0 in leaves
