"""A user's function is called with care: manners are learned, answers read, seeds fixed."""

import random

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushed as hs
from hushed._functions._calls import answer, probe
from hushed._functions._fingerprints import identity
from hushed.errors import BadFunction, RandomFunction

ROWS = np.array([3.0, 1.0, 2.0])
CANARY = 987654.321


class Unreadable:
    """An answer that NumPy cannot read, and that says why with a value."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(f"cannot convert {CANARY} of Wilhelmina-Quux")


BAD_ANSWERS = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "NumPy NaN": np.array([1.0, np.nan]),
    "text": "3.5",
    "bytes": b"3.5",
    "None": None,
    "dict of a list": {"mean": [1.0, 2.0]},
    "dict of places": {0: 1.0},
    "dict of an integer that would be rounded": {"n": 2**53 + 1, "x": 0.5},
    "set": {1.0},
    "masked": np.ma.array([1.0, 2.0], mask=[True, False]),
    "masked constant": np.ma.masked,
    "ragged": [[1.0], [1.0, 2.0]],
    "texts": ["a", "b"],
    "complex": 1 + 2j,
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "nothing": [],
    "object": object(),
    "mixed": [1.0, None],
    "function": np.poly1d([1.0, 2.0]),
    "unreadable": Unreadable(),
    "generator": (x for x in [1.0]),
    "integers beyond 64 bits": 10**30,
}


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_bad_answers_are_refused_by_kind(name, private, assert_silent):
    """Anything but finite real numbers is a BadFunction that shows no value."""
    with pytest.raises(BadFunction) as caught:
        answer(lambda rows: BAD_ANSWERS[name], ROWS, private=private)
    assert_silent(caught.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (3, 3.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.int8(-4), -4.0),
        ([1, 2.5], [1.0, 2.5]),
        ((1, 2), [1.0, 2.0]),
        (np.array([[1], [2]]), [[1.0], [2.0]]),
        (np.ma.array([1.0, 2.0]), [1.0, 2.0]),
        (pd.Series([1.0, 2.0]), [1.0, 2.0]),
        (pl.Series([1.0, 2.0]), [1.0, 2.0]),
        (pd.DataFrame({"a": [1.0], "b": [2]}), [[1.0, 2.0]]),
        (pl.DataFrame({"a": [1.0], "b": [2]}), [[1.0, 2.0]]),
        (pd.DataFrame({"a": [1.0, 3.0]}), [[1.0], [3.0]]),
        ({"a": 1.0, "b": 2}, [1.0, 2.0]),
    ],
)
def test_numbers_of_every_kind_are_read_as_doubles(raw, expected):
    """Scalars, sequences, arrays and series keep shape and value."""
    read = answer(lambda rows: raw, ROWS, private=True)
    assert read.dtype == np.float64
    assert read.tolist() == expected


def test_answers_share_no_memory_with_the_rows():
    """A function may return a view of its input; what is kept is a copy."""
    rows = ROWS.copy()
    for view in (lambda r: r, lambda r: r[0:1], lambda r: r[..., None]):
        kept = answer(view, rows, private=False)
        assert not np.shares_memory(kept, rows)


@pytest.mark.parametrize("error", [ValueError, KeyError, MemoryError, SystemExit, AssertionError])
def test_public_failures_are_told_and_private_ones_withheld(error, assert_silent):
    """On public rows the message helps; on private rows only the type is named."""

    def failing(rows):
        raise error(f"value {CANARY} of Wilhelmina-Quux")

    with pytest.raises(BadFunction, match=f"{error.__name__}.*987654.321"):
        answer(failing, ROWS, private=False)
    with pytest.raises(BadFunction, match=f"{error.__name__} on the private rows") as caught:
        answer(failing, ROWS, private=True)
    assert_silent(caught.value)


def test_an_interrupt_is_not_swallowed(press_ctrl_c):
    """Ctrl-C during the function stops the run."""

    def interrupted(rows):
        press_ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        answer(interrupted, ROWS, private=True)


def clear(rows):
    rows[0] = -1
    return 1.0


def sort_list(rows):
    rows.sort()
    return rows[0]


def change_inside(rows):
    rows[0]["x"] = -1
    return 1.0


def add_column(rows):
    rows["new"] = 1.0
    return rows["x"].mean()


def write_cell(rows):
    rows.loc[0, "x"] = -1.0
    return rows["x"].mean()


def polars_in_place(rows):
    rows.insert_column(0, pl.Series("new", [1.0] * len(rows)))
    return rows["x"].mean()


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (clear, np.array([3.0, 1.0])),
        (clear, [3.0, 1.0]),
        (sort_list, [3.0, 1.0]),
        (change_inside, [{"x": 3.0}, {"x": 1.0}]),
        (add_column, pd.DataFrame({"x": [3.0, 1.0]})),
        (write_cell, pd.DataFrame({"x": [3.0, 1.0]})),
        (polars_in_place, pl.DataFrame({"x": [3.0, 1.0]})),
    ],
)
def test_a_function_that_changes_its_rows_is_refused(function, rows):
    """Mutation is noticed whatever holds the rows, and the caller's table is left alone."""
    import copy

    before = copy.deepcopy(rows)
    with pytest.raises(BadFunction, match="changes the rows"):
        probe(function, rows)
    assert repr(rows) == repr(before)


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: random.random(),
        lambda rows: np.random.rand(),
        lambda rows: np.random.default_rng().random(),
        lambda rows: [random.random()] * random.randint(1, 5),
    ],
)
def test_a_random_function_is_found_out(function):
    """Two answers on the same rows: the error offers to fix the seed."""
    with pytest.raises(RandomFunction, match="fixed_seed"):
        probe(function, ROWS)


def test_what_is_no_function_is_refused():
    """A number is not a function of the rows."""
    with pytest.raises(BadFunction, match="float"):
        probe(3.0, ROWS)


def in_place_but_back(rows):
    """Needs writable memory, although it leaves the rows as they were."""
    rows *= 2
    total = rows.sum()
    rows /= 2
    return total


def test_functions_that_need_writable_rows_are_given_copies():
    """The probe learns it, and the answer is right through the whole sampling."""
    assert probe(in_place_but_back, np.array([1.0, 2.0])).fresh
    assert not probe(np.sum, np.array([1.0, 2.0])).fresh
    unit = hs.populations.Uniform(low=0, high=1)
    plain = hs.sample_sensitivity(lambda r: (r * 2).sum(), unit, rows=10, seed=4)
    fresh = hs.sample_sensitivity(in_place_but_back, unit, rows=10, seed=4)
    assert fresh.value == plain.value


def test_fixed_seed_repeats_and_puts_the_state_back():
    """Calls agree, other code's random numbers are those it would have had, also on failure."""

    def both(rows):
        return [random.random(), np.random.rand()]

    steady = hs.fixed_seed(both, seed=7)
    random.seed(1)
    np.random.seed(1)
    expected = random.random(), np.random.rand()
    random.seed(1)
    np.random.seed(1)
    assert steady(ROWS) == steady(ROWS)
    with pytest.raises(ZeroDivisionError):
        hs.fixed_seed(lambda rows: 1 / 0)(ROWS)
    assert (random.random(), np.random.rand()) == expected
    assert hs.fixed_seed(both, seed=8)(ROWS) != steady(ROWS)
    assert probe(steady, ROWS).shape == (2,)


def test_identity_errs_towards_telling_apart():
    """Equal functions share a name, others do not, and what cannot be pickled is always new."""
    import threading

    assert identity(clear) == identity(clear) != identity(sort_list)
    assert identity(hs.fixed_seed(clear)) != identity(hs.fixed_seed(clear, seed=1))
    lock = threading.Lock()
    held = lambda rows: bool(lock)  # noqa: E731
    assert identity(held) != identity(held)
