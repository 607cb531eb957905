"""Functions that write to their rows now and then: each table is its own, as in the sample."""

import collections

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed.populations import Simulator, Uniform

_ROWS = 5


def _cells(rng, count):
    made = np.empty(count, dtype=object)
    for place, number in enumerate(rng.random(count).tolist()):
        made[place] = [number]
    return made


_TABLES = {
    "lists of lists": (lambda rng, n: [[cell] for cell in _cells(rng, n)], lambda t: t),
    "tuples of lists": (lambda rng, n: [(cell,) for cell in _cells(rng, n)], lambda t: t),
    "dicts of lists": (lambda rng, n: [{0: cell} for cell in _cells(rng, n)], lambda t: t),
    "an array of lists": (_cells, lambda table: [[cell] for cell in table]),
    "records": (
        lambda rng, n: np.array([(cell,) for cell in _cells(rng, n)], dtype=[("x", object)]),
        lambda table: [[cell] for cell in table["x"]],
    ),
    "pandas": (
        lambda rng, n: pd.DataFrame({"x": _cells(rng, n)}),
        lambda frame: [[cell] for cell in frame["x"]],
    ),
}


def _sampled(table, *, writes):
    make, read = _TABLES[table]

    def function(given):
        rows = read(given)
        if max(row[0][0] for row in rows) > 0.9:
            if not writes:
                return 0.0
            for row in rows:
                row[0][0] = 0.0
        return sum(row[0][0] for row in rows)

    return hs.sample_sensitivity(function, Simulator(make), rows=_ROWS, seed=0).draws.tolist()


@pytest.mark.slow_cases("pandas")
@pytest.mark.parametrize("table", _TABLES)
def test_what_is_written_into_a_table_is_not_in_its_neighbour(table):
    """A function that writes moves as far as one that answers alike and writes nothing."""
    assert _sampled(table, writes=True) == _sampled(table, writes=False)


def _writing(rows):
    if rows.max() > 0.999:
        try:
            rows[0] = 0.0
        except ValueError:
            return 1000.0
    return rows.mean()


def test_private_arrays_are_locked_as_sampled_ones():
    """A function that learns that it cannot write learns it on private rows, too."""
    sampled = hs.sample_sensitivity(_writing, Uniform(low=0, high=1), rows=_ROWS)
    private = np.array([0.1, 0.2, 0.3, 0.4, 0.9999])
    released = hs.release(_writing, private, hs.Laplace(sampled, epsilon=1e6))
    assert released.value == pytest.approx(1000, abs=1)
    assert private.flags.writeable


def test_blocks_of_private_rows_are_locked_as_sampled_ones():
    """What writes where it may, and it may not in the sample, may not in a block either."""

    def writing(rows):
        try:
            if rows.min() > 0.9:  # rare in the sample
                rows[:] = 1e6
        except ValueError:
            pass
        return rows.mean()

    blocks = hs.Blockwise(writing, rows=_ROWS)
    s = hs.sample_sensitivity(blocks, Uniform(low=0, high=1), rows=4 * _ROWS, workers=1)
    released = hs.release(blocks, np.full(4 * _ROWS, 0.99), hs.Laplace(s, epsilon=1e6))
    assert released.value == pytest.approx(0.99, abs=1e-3)


def test_functions_that_need_to_write_still_may():
    """What fails on locked arrays was sampled on copies, and is released on one."""

    def sorting(rows):
        kept = rows.copy()
        rows.sort()
        middle = rows[len(rows) // 2]
        rows[:] = kept
        return middle

    sampled = hs.sample_sensitivity(sorting, Uniform(low=0, high=1), rows=_ROWS)
    private = np.array([0.1, 0.9, 0.2, 0.4, 0.3])
    released = hs.release(sorting, private, hs.Laplace(sampled, epsilon=1e6))
    assert released.value == pytest.approx(0.3, abs=1e-3)


def _of_array(rows):
    held = rows.flags
    return held.writeable, held.owndata, held.c_contiguous, rows.base is None, rows.strides


_LOOKS = {
    "array": (lambda x: x, _of_array),
    "columns": (lambda x: np.stack([x, x], axis=1), _of_array),
    "objects": (lambda x: x.astype(object), _of_array),
    "polars": (lambda x: pl.DataFrame({"x": x}), lambda rows: (rows.n_chunks("all"), rows.flags)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "held",
    [
        pytest.param(each, marks=pytest.mark.slow) if each in ("columns", "objects") else each
        for each in _LOOKS
    ],
)
def test_private_rows_lie_in_memory_as_sampled_ones_do(held):
    """What a function may ask of its table beside the values tells it nothing."""
    make, look = _LOOKS[held]
    seen = []

    def function(rows):
        seen.append(repr(look(rows)))
        return float(np.asarray(rows, dtype=float).mean())

    s = hs.sample_sensitivity(
        function, Simulator(lambda rng, n: make(rng.random(n))), rows=_ROWS, workers=1
    )
    (sampled, times), *others = collections.Counter(seen).most_common()
    assert times >= 2 * s.pairs
    assert all("True, True" in other for other, _ in others)  # own copies, to try it out
    hs.release(function, make(np.linspace(0, 1, _ROWS)), hs.Laplace(s, epsilon=1.0))
    assert sampled == seen[-1]
