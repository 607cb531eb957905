"""Declared sensitivities: counterexamples are found, right declarations stand."""

import math

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.auditing import check_sensitivity
from hushed.errors import BadFunction, ParameterError


def check(function, declared, **options):
    options = {"low": 0.0, "high": 1.0, "rows": 9, "tolerance": 1e-9, "tries": 400} | options
    return check_sensitivity(function, declared, **options)


@pytest.mark.parametrize(
    ("function", "declared", "norm"),
    [
        (np.mean, 1 / 9, "l1"),
        (np.sum, 1.0, "sup"),
        (np.median, 1.0, "l1"),
        (lambda r: np.array([r.sum(), r.max()]), math.sqrt(2), "l2"),
    ],
)
def test_tight_declarations_stand_and_smaller_ones_fall(function, declared, norm):
    """The search reaches the known sensitivity, and no more than it."""
    found = check(function, declared, norm=norm)
    assert not found.exceeded
    assert found.largest == pytest.approx(declared, rel=1e-9)
    assert "proves nothing" in str(found)
    less = check(function, 0.99 * declared, norm=norm)
    assert less.exceeded
    assert less.cause == "function"
    moved = np.abs(np.subtract(function(less.pair.rows), function(less.pair.neighbour)))
    assert np.linalg.norm(np.atleast_1d(moved), {"l1": 1, "l2": 2, "sup": np.inf}[norm]) == (
        pytest.approx(less.largest)
    )


def test_the_same_bound_twice():
    """A clamped sum that uses the lower bound twice moves farther than said for -1..5."""
    found = check(lambda r: np.clip(r, -1, 5).sum(), 2.0, low=-1.0, high=5.0)
    assert found.exceeded
    assert found.largest == pytest.approx(6)


def test_rounding_counts():
    """Removing one row of 2**30 moves a float sum by a few bits more: exact fractions see it."""
    found = check(
        np.sum, 2.0**30, low=-(2.0**30), high=2.0**30, neighbours="add-remove", tolerance=0.0
    )
    assert found.exceeded
    assert found.cause == "rounding"
    assert not check(
        np.sum, 2.0**30, low=-(2.0**30), high=2.0**30, neighbours="add-remove"
    ).exceeded


def test_length_and_failure_are_counterexamples():
    """An answer whose length follows the rows, or that fails on some, is caught."""
    longer = check(lambda r: r * 0, 1.0, neighbours="add-remove")
    assert (longer.exceeded, longer.cause, longer.largest) == (True, "shape", math.inf)
    fails = check(lambda r: 1 / (r.sum() - 9) if r.sum() < 9 else math.nan, 1e9)
    assert (fails.exceeded, fails.cause) == (True, "failure")


def test_a_sensitivity_brings_its_norm():
    """A declared sensitivity object is read for value, norm and neighbours."""
    declared = hs.proven_sensitivity(1.0, "l2", argument="a person has one row")
    assert check(np.sum, declared).norm == "l2"


@pytest.mark.parametrize(
    "options", [{"rows": 1}, {"tries": -1}, {"norm": "range"}, {"low": 2.0}, {"tolerance": -1.0}]
)
def test_options_out_of_range(options):
    """Bad options are refused."""
    with pytest.raises(ParameterError):
        check(np.sum, 1.0, **options)
    with pytest.raises(ParameterError, match="finite"):
        check(np.sum, math.nan)


@pytest.mark.parametrize("broken", [3, lambda _: None, lambda rows: rows[99], lambda _: math.nan])
def test_a_function_that_never_answers_does_not_pass(broken):
    """Nothing was searched, so that "no counterexample" would say what was never looked at."""
    for options in ({}, {"tries": 0}, {"neighbours": "add-remove"}):
        with pytest.raises(BadFunction):
            check(broken, 1.0, **options)


def test_a_function_that_answers_now_and_then_is_searched():
    """Both sides fail together on most tables: no movement there, and no failure of the search."""

    def picky(rows):
        if rows[1] < 0.5:
            raise ValueError
        return rows[0]

    found = check(picky, 2.0, rows=2)
    assert found.cause == "failure"
    assert found.exceeded


@pytest.mark.parametrize("norm", ["l1", "l2", "sup"])
@pytest.mark.parametrize("size", [1e-200, 1e200, 1e308])
def test_movements_of_any_size_are_told(norm, size):
    """Squares beyond all doubles, or below them, are no failure and no zero."""
    found = check(lambda rows: (rows - 0.5) * size, 0.9 * size, norm=norm, tries=40)
    assert found.exceeded
    assert found.largest == pytest.approx(size)
    assert not check(lambda rows: rows[0] * size, size, norm=norm, tries=40).exceeded


@pytest.mark.parametrize(
    ("declared", "options"),
    [
        ("1", {}),
        (None, {}),
        (True, {}),
        (1.0, {"tolerance": math.inf}),
        (1.0, {"tolerance": "none"}),
        (1.0, {"rows": 2.5}),
        (1.0, {"tries": 2.5}),
        (1.0, {"seed": -1}),
        (1.0, {"low": -math.inf}),
        (1.0, {"low": -1e308, "high": 1e308}),
        (1.0, {"low": [0.0, 0.0], "high": [1.0, 1.0, 1.0]}),
        (1.0, {"low": "here"}),
    ],
)
def test_bad_declarations_and_domains_are_refused_in_words(declared, options):
    """A domain that holds no numbers would accuse any function; nothing ends in a traceback."""
    with pytest.raises(ParameterError):
        check(np.max, declared, **options)


@pytest.mark.slow
def test_rounding_is_not_called_a_counterexample():
    """A mean of three moves by a third: that doubles move it a little farther is told as such."""
    found = hs.check_sensitivity(np.mean, 1 / 3, low=0, high=1, rows=3)
    assert (found.exceeded, found.cause) == (True, "rounding")
    assert str(found).startswith("no counterexample but for rounding")
    assert "tolerance=1e-9" in str(found)
    wrong = hs.check_sensitivity(np.mean, 1 / 3 - 1e-6, low=0, high=1, rows=3)
    assert str(wrong).startswith("counterexample: the function moves farther")
    eased = hs.check_sensitivity(np.mean, 1 / 3, low=0, high=1, rows=3, tolerance=1e-9)
    assert not eased.exceeded


@pytest.mark.parametrize(
    "answer",
    [
        lambda rows: {"a" if rows[0] else "b": 0.0},
        lambda rows: pd.Series([0.0, 0.0], ["a", "b"] if rows[0] else ["b", "a"]),
    ],
)
def test_names_that_change_are_a_counterexample(answer):
    """No number moved, so that nothing was found; the names tell the tables apart."""
    found = check_sensitivity(answer, 1.0, low=0, high=1, rows=3)
    assert found.exceeded
    assert found.cause == "shape"
    assert found.largest == math.inf
    assert "names of its numbers" in str(found)
