"""A function of one row in a chain looks at that row alone, and keeps nothing of it."""

import functools

import pytest

import hushed as hs
from hushed.errors import BadFunction
from hushed.spaces import SYMMETRIC, Cell, Column, Space, Table

t = hs.transformations
NUMBERS = Space(domain=Column(cell=Cell(low=0, high=10)), metric=SYMMETRIC)
AGES = {"age": Cell(type="int", low=0, high=120), "ward": Cell(type="string")}
PEOPLE = Space(domain=Table.of(AGES), metric=SYMMETRIC)


def first_of_its_kind():
    """One for a row that was not seen before."""
    seen = set()

    def function(row):
        new = str(row) not in seen
        seen.add(str(row))
        return new

    return function


def last_row():
    """The row before this one."""
    kept = [0]

    def function(row):
        before, kept[0] = kept[0], str(row)
        return before != str(row)

    return function


def after_many():
    """Something else after a thousand rows."""
    asked = [0]

    def function(row):
        asked[0] += 1
        return asked[0] > 1000

    return function


class Average:
    """How a row compares with all before."""

    def __init__(self):
        self.total = 0

    def __call__(self, row):
        self.total += len(str(row))
        return self.total % 2


def filled():
    """A cache of one's own: full after every row was asked once."""
    cache = {}

    def function(row):
        return cache.setdefault(str(row), len(str(row)) % 2)

    return function


@functools.lru_cache
def cached(row):
    """A cache of Python's."""
    return str(row) > "3"


def fails(row):
    """Fail on some rows."""
    return 1 / (len(str(row)) % 2)


@pytest.mark.parametrize("space", [NUMBERS, PEOPLE], ids=["column", "table"])
@pytest.mark.parametrize("make", [first_of_its_kind, last_row, after_many, Average])
def test_a_function_with_a_memory_is_refused(make, space):
    """When the chain is made, and before it sees a row of anybody."""
    with pytest.raises(BadFunction, match="map_rows needs a function"):
        _ = space >> t.map_rows(make(), Cell(low=0, high=1))
    with pytest.raises(BadFunction, match="filter_rows needs a function"):
        _ = space >> t.filter_rows(make())


@pytest.mark.parametrize("make", [filled, lambda: cached, lambda: fails, lambda: lambda row: 0.5])
def test_what_always_answers_the_same_is_taken(make):
    """A cache, a constant and a function that fails on some rows."""
    chain = NUMBERS >> t.map_rows(make(), Cell(low=0, high=1)) >> t.sum_of()
    assert chain([1.0, 2.0, 3.0]) == chain([3.0, 1.0, 2.0])
    _ = NUMBERS >> t.filter_rows(make())
