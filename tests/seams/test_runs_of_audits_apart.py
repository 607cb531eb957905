"""Runs of an audit share neither their rows nor what they return: else all of them look alike."""

import numpy as np
import pandas as pd
import pytest

from hushed.errors import BadFunction
from hushed.testing import assert_private


class Row:
    def __init__(self, value):
        self.value = value


def take(value, rng):
    return float(value) + rng.laplace(scale=0.1)


def pops(rows, rng):
    return take(rows.pop(), rng) if rows else take(0, rng)


def overwrites(rows, rng):
    value, rows[0] = rows[0], 0.0
    return take(value, rng)


def overwrites_within(rows, rng):
    value, rows[0][0] = rows[0][0], 0.0
    return take(value, rng)


def overwrites_a_key(rows, rng):
    value, rows[0]["a"] = rows[0]["a"], 0.0
    return take(value, rng)


def overwrites_an_attribute(rows, rng):
    value, rows[0].value = rows[0].value, 0.0
    return take(value, rng)


def overwrites_a_column(rows, rng):
    value, rows["a"] = rows["a"].iloc[0], 0.0
    return take(value, rng)


def overwrites_a_cell(rows, rng):
    value, rows["a"].iloc[0][0] = rows["a"].iloc[0][0], 0.0
    return take(value, rng)


def cells(value):
    """An array of objects, each of which may be changed."""
    found = np.empty(1, dtype=object)
    found[0] = [value]
    return found


CHANGED = {
    "popped": (pops, lambda x: [x]),
    "overwritten": (overwrites, lambda x: [x]),
    "within": (overwrites_within, lambda x: [[x]]),
    "within an array": (overwrites_within, cells),
    "by key": (overwrites_a_key, lambda x: [{"a": x}]),
    "by attribute": (overwrites_an_attribute, lambda x: [Row(x)]),
    "in a frame": (overwrites_a_column, lambda x: pd.DataFrame({"a": [x]})),
    "in a cell of a frame": (overwrites_a_cell, lambda x: pd.DataFrame({"a": [[x]]})),
}


@pytest.mark.slow_cases("in a frame", "in a cell of a frame")
@pytest.mark.parametrize("name", CHANGED)
def test_a_mechanism_that_changes_its_rows_is_judged_by_rows_of_each_run(name):
    """All runs after the first one saw what it left, on either table the same."""
    mechanism, table = CHANGED[name]
    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(mechanism, [(table(1.0), table(0.0))], claim=1.0, samples=600, bits=False)


def unlocks(rows, rng):
    while rows.base is not None and isinstance(rows.base, np.ndarray):
        rows = rows.base
    rows.flags.writeable = True
    return overwrites(rows, rng)


@pytest.mark.parametrize("batch", [False, True])
def test_an_array_is_not_unlocked(batch):
    """Each call that tries it fails, and so does the audit."""

    def mechanism(rows, rng, *size):
        return np.full(size, unlocks(rows, rng)) if batch else unlocks(rows, rng)

    pairs = [(np.array([1.0]), np.array([0.0]))]
    with pytest.raises(BadFunction):
        assert_private(mechanism, pairs, claim=1.0, samples=600, batch=batch, workers=1)


@pytest.mark.parametrize("own", [lambda: np.zeros(1), lambda: [0.0], lambda: {0: 0.0}, dict])
def test_an_output_that_is_used_again_is_read_before(own):
    """Each run overwrites what the last one returned."""
    buffer = own()

    def tells(rows, rng):
        buffer[0] = rows[0] + rng.laplace(scale=0.01)
        return buffer

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(tells, [([1.0], [0.0])], claim=1.0, samples=600, bits=False, workers=1)


def test_a_batch_that_is_used_again_is_read_before():
    """The neighbour's runs overwrote those of the other table, which were not copied."""
    buffers = {}

    def tells(rows, rng, size):
        held = buffers.setdefault(size, np.zeros(size))
        held[:] = rows[0] + rng.laplace(scale=0.01, size=size)
        return held

    with pytest.raises(AssertionError, match="VIOLATED"):
        assert_private(
            tells,
            [([1.0], [0.0])],
            claim=1.0,
            samples=600,
            batch=True,
            bits=False,
            workers=1,
        )


def repeats(rows, rng, size):
    return [take(rows[0], rng)] * size


def flips_at_once(rows, rng, size):
    return np.full(size, rows[0] if rng.random() < 0.7 else 1 - rows[0])


def has_one_threshold(rows, rng, size):
    return rows[0] + rng.laplace(scale=4, size=(size, 3)) >= rng.laplace(scale=8)


def counts_its_calls():
    made = []

    def answer(rows, rng, size):
        made.append(size)
        return [{"call": len(made), "value": take(rows[0], rng)} for _ in range(size)]

    return answer


@pytest.mark.parametrize(
    "mechanism", [repeats, flips_at_once, has_one_threshold, counts_its_calls()]
)
def test_runs_of_one_call_that_share_a_draw_are_refused(mechanism):
    """They are few draws, and not many: the first was passed, the second accused."""
    with pytest.raises(BadFunction, match="not independent"):
        assert_private(mechanism, [([0.0], [1.0])], claim=1.0, batch=True, bits=False)


@pytest.mark.parametrize("scale", [1e-9, 1.0])
def test_runs_that_are_drawn_anew_are_not_refused(scale):
    """Whether they are all alike, as a rare failure leaves them, or all different."""

    def answer(rows, rng, size):
        return np.where(rng.random(size) < 1e-3, np.nan, np.round(rng.laplace(0, scale, size), 3))

    assert_private(answer, [([0.0], [1.0])], claim=1.0, batch=True, bits=False, samples=5_000)
