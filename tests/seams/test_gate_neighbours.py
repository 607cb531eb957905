"""The gate treats each row by itself: neighbours come out as neighbours, or both are refused."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hushed as hs
from hushed._functions._gate import admit_rows
from hushed._rows._containers import is_same, layout, take
from hushed._rows._ranges import Range
from hushed.errors import BadRows

NUMBERS = st.one_of(st.floats(), st.integers(), st.booleans(), st.floats(width=32).map(np.float32))
RANGES = st.sampled_from([(), ("", 0.0, 1.0), ("", -5.0, np.inf)])


def gate(rows, sample, ranges=()):
    """What a function sees of rows, where this sample was drawn."""
    support = tuple([Range(column=ranges[0], low=ranges[1], high=ranges[2])] if ranges else [])
    known = SimpleNamespace(
        layout=layout(sample),
        rows=len(rows),
        neighbours="replace-one",
        user=None,
        given=None,
        shape=(),
        batch=False,
        data_dependent=False,
        source=hs.populations.Normal(),
        support=support,
        state=None,
        unwatched=(),
    )
    return admit_rows(rows, known)


def rows_that_differ(first, second):
    return [
        i
        for i in range(len(first))
        if not is_same(take(first, np.array([i])), take(second, np.array([i])))
    ]


@given(st.lists(NUMBERS, min_size=2, max_size=6), NUMBERS, st.integers(0, 1), RANGES)
def test_lists_of_any_numbers(rows, other, place, ranges):
    """Each number becomes a double by itself, whatever stands beside it."""
    neighbour = [*rows[:place], other, *rows[place + 1 :]]
    seen, seen_too = (gate(table, [0.5, 0.25], ranges) for table in (rows, neighbour))
    assert {type(x) for x in seen} == {float}
    assert set(rows_that_differ(seen, seen_too)) <= {place}
    if ranges:
        assert all(ranges[1] <= x <= ranges[2] for x in seen)


ARRAYS = {
    "array": np.asarray,
    "pandas": lambda x: pd.DataFrame({"x": x}),
    "polars": lambda x: pl.DataFrame({"x": x}),
}
KINDS = ["u1", "i4", "i8", "u8", "f4", "f8", "?"]


@pytest.mark.parametrize("container", ARRAYS)
@given(st.data(), st.sampled_from(KINDS), st.sampled_from(KINDS[:-1]), st.booleans())
def test_typed_columns(container, data, kind, wanted, bounded):
    """Whether a table is let in is a matter of its type; neighbours have the same one."""
    make = ARRAYS[container]
    limits = {"min_value": 0, "max_value": 1 if kind == "?" else 120}
    value = st.floats(width=32 if kind == "f4" else 64) if kind[0] == "f" else st.integers(**limits)
    rows = data.draw(st.lists(value, min_size=3, max_size=6))
    tables = [make(np.array(rows, dtype=kind)), make(np.array([*rows[:-1], rows[0]], dtype=kind))]
    sample = make(np.ones(4, dtype=wanted))
    ranges = ("" if container == "array" else "x", 0.0, 5.0) if bounded else ()
    outcomes = []
    for table in tables:
        try:
            outcomes.append(gate(table, sample, ranges))
        except BadRows:
            outcomes.append(None)
    assert (outcomes[0] is None) == (outcomes[1] is None)
    assert (outcomes[0] is None) == (not np.can_cast(kind, wanted, "safe"))
    if outcomes[0] is not None:
        assert layout(outcomes[0]).types == layout(sample).types
        assert set(rows_that_differ(*outcomes)) <= {len(rows) - 1}
