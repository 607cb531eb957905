"""Functions are the same if their code and what they use are the same."""

import functools

import numpy as np
import pytest

import hushed as hs
from hushed._functions._fingerprints import list_changes, look, same_function
from hushed.errors import BadFunction
from hushed.mechanisms._bernstein import on_lattice

SCALE = 1.0


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


def test_globals_of_nested_functions_decide():
    """A global that only a function, lambda or comprehension within looks up counts as well."""
    source = (
        "def f(rows):\n"
        "    def inner(x):\n        return (lambda y: y * SCALE)(x)\n"
        "    return inner(rows.mean())\n"
    )
    first, second = {"SCALE": 1.0}, {"SCALE": 1e6}
    exec(source, first)
    exec(source, second)
    assert not same_function(first["f"], second["f"])


class TestStateThatChanges:
    """What was measured is what is released, also in a notebook where names are set again."""

    UNIT = hs.populations.Uniform(low=0, high=1)

    def sampled(self, function):
        return hs.Laplace(hs.sample_sensitivity(function, self.UNIT, rows=20, pairs=10), epsilon=1)

    @pytest.mark.parametrize(
        "source",
        [
            "def f(rows):\n    return rows.mean() * SCALE\n",
            "def f(rows):\n    return sum(x * SCALE for x in rows)\n",
            "def g(rows):\n    return rows.mean() * SCALE\ndef f(rows):\n    return g(rows)\n",
            "import functools\ndef g(rows, k=1):\n    return rows.mean() * SCALE\n"
            "f = functools.partial(g, k=2)\n",
        ],
    )
    def test_a_global_that_changed_is_refused(self, source):
        """The same object with another global is another function: named, nothing released."""
        room = {"SCALE": 1.0, "__name__": "notebook"}
        exec(source, room)
        mechanism = self.sampled(room["f"])
        hs.release(room["f"], np.full(20, 0.5), mechanism)
        room["SCALE"] = 1e9
        with pytest.raises(BadFunction, match=r"SCALE, which changed since"):
            hs.release(room["f"], np.full(20, 0.5), mechanism)
        room["SCALE"] = 1.0
        hs.release(room["f"], np.full(20, 0.5), mechanism)

    def test_attributes_of_a_bound_object_count(self):
        """A method of an object whose attributes changed is refused."""

        class Scaled:
            scale = 1.0

            def answer(self, rows):
                return rows.mean() * self.scale

        held = Scaled()
        held.scale = 2.0
        mechanism = self.sampled(held.answer)
        hs.release(held.answer, np.full(20, 0.5), mechanism)
        held.scale = 3.0
        with pytest.raises(BadFunction, match="scale"):
            hs.release(held.answer, np.full(20, 0.5), mechanism)

    @pytest.mark.slow
    def test_a_function_may_count_its_calls(self):
        """What the function itself changes while it is measured is not held against it."""
        calls, cache = [], {}

        def f(rows):
            calls.append(1)
            cache[len(calls)] = 0
            return rows.mean()

        mechanism = self.sampled(f)
        assert set(mechanism.sensitivity.sampling.unwatched) == {"calls", "cache"}
        counted = len(calls)
        for _ in range(2):
            hs.release(f, np.full(20, 0.5), mechanism)
        assert len(calls) == counted + 4  # each asks the first sampled table again


def test_two_things_of_one_name_are_both_seen():
    """An attribute beside a global, keys that read alike, bases of one name: each decides."""

    class Left:
        class Base:
            def shift(self):
                return 1.0

    class Right:
        class Base:
            def shift(self):
                return 2.0

    class Both(Left.Base, Right.Base):
        pass

    def marked(rows):
        return float(np.sum(rows) * marked.SCALE * SCALE)

    marked.SCALE = 1.0
    table = {0: lambda rows: 1.0, "0": lambda rows: 2.0}
    both = Both()
    functions = (marked, lambda rows: table[0](rows) + table["0"](rows), lambda rows: both.shift())
    before = [look(each).marks for each in functions]
    assert before == [look(each).marks for each in functions]

    marked.SCALE = 2.0
    table[0] = lambda rows: 3.0
    Left.Base.shift = lambda self: 3.0
    for function, known in zip(functions, before, strict=True):
        assert list_changes(known, look(function).marks)
