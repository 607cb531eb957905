"""Functions are the same if their code and what they use are the same."""

import functools

import numpy as np
import pytest

import hushed as hs
from hushed.fingerprints import same_function
from hushed.mechanisms.bernstein import on_lattice


def make(power, offset=0.0):
    def f(rows):
        return (rows**power).mean() + offset

    return f


def countdown(n):
    return 0 if n == 0 else countdown(n - 1)


def test_code_and_closure_decide():
    """Equal closures make equal functions; another value, code or default does not."""
    assert same_function(make(2), make(2))
    assert not same_function(make(2), make(3))
    assert not same_function(make(2), make(2, offset=1.0))
    assert same_function(lambda r: r.mean(), lambda r: r.mean())
    assert not same_function(lambda r: r.mean(), lambda r: r.max())
    assert not same_function(lambda r, k=1: r * k, lambda r, k=2: r * k)


def test_globals_decide():
    """The same source over another global value is another function."""
    first, second = {"SCALE": 1.0}, {"SCALE": 2.0}
    source = "def f(rows):\n    return rows.mean() * SCALE\n"
    exec(source, first)
    exec(source, second)
    assert not same_function(first["f"], second["f"])
    second["SCALE"] = 1.0
    assert same_function(first["f"], second["f"])


def test_recursion_ends():
    """A function that calls itself, found in two places, is compared in finite time."""
    first, second = {}, {}
    source = "def f(n):\n    return 0 if n == 0 else f(n - 1)\n"
    exec(source, first)
    exec(source, second)
    assert same_function(first["f"], second["f"])
    assert same_function(countdown, countdown)


def test_other_callables():
    """Partials and wrappers are compared by content."""
    assert same_function(functools.partial(np.mean, axis=0), functools.partial(np.mean, axis=0))
    assert not same_function(functools.partial(np.mean, axis=0), functools.partial(np.mean, axis=1))
    assert not same_function(on_lattice(make(1), lattice=3), on_lattice(make(1), lattice=4))
    assert not same_function(np.mean, np.median)


def test_release_refuses_another_function():
    """A certificate must not speak of a function that was not released; nothing is charged."""
    charged = []

    class Ledger:
        def charge(self, budget, guarantee, note="", *, loss=None):
            charged.append(budget)

    box = hs.populations.Uniform(low=0, high=1)
    s = hs.sample_sensitivity(make(1), box, rows=30)
    rows = np.random.default_rng(0).random(30)
    with pytest.raises(hs.errors.BadFunction, match="another function"):
        hs.release(make(2), rows, hs.Laplace(s, epsilon=1.0), Ledger(), budget="b")
    assert charged == []
    hs.release(make(1), rows, hs.Laplace(s, epsilon=1.0), Ledger(), budget="b")
    assert charged == ["b"]
