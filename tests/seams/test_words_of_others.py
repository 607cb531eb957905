"""An error of ours is shown as it is; one that an answer, a cell or a step raises is withheld."""

import operator
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import hushed as hs
from hushed import transformations as t
from hushed.errors import BadFunction, BadRows
from hushed.spaces import ABSOLUTE, SYMMETRIC, Numbers, Opaque, Space

SECRET = 31337.25
COUNT = hs.proven_sensitivity(1.0, neighbours="add-remove", argument="a count")
PROVEN = hs.Laplace(COUNT, epsilon=1.0)
UNIT = hs.populations.Uniform(low=0, high=1)
ROWS = Space(domain=Opaque(), metric=SYMMETRIC)
NUMBER = Space(domain=Numbers(), metric=ABSOLUTE)


def fail(rows):
    raise ValueError(f"{SECRET}")


class Claiming:
    """An answer that raises an error of ours when it is asked for its class."""

    @property
    def __class__(self):
        raise BadFunction(f"{SECRET}")


class Calling:
    """An answer that has the library raise it, in words that are for public rows."""

    def __getattr__(self, name):
        hs.sample_sensitivity(fail, UNIT, rows=2)


class Composed:
    """The same without a line of Python between them."""

    run = staticmethod(partial(hs.sample_sensitivity, fail, UNIT, rows=2))
    __class__ = property(operator.methodcaller("run"))


class Cell:
    """A cell that raises one when it is asked for its shape."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None

    @property
    def shape(self):
        if self.value > 1:
            raise BadRows(f"{self.value}")
        return ()


class Loud:
    """An answer of a step that says its value when it is copied."""

    def __deepcopy__(self, memo):
        print(SECRET)
        return self


class Bent:
    """One that raises it when it is asked for columns, as a frame is."""

    @property
    def columns(self):
        raise ValueError(f"{SECRET}")


def draw_cells(rng, count):
    return [Cell(float(value)) for value in rng.random(count)]


def mean_of_cells(rows):
    return float(np.mean([cell.value for cell in rows]))


def assert_withheld(action, kind, capsys):
    with pytest.raises(kind) as caught:
        action()
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    heard = capsys.readouterr()
    assert str(SECRET) not in heard.out + heard.err


@pytest.mark.parametrize("answer", [Claiming, Calling, Composed])
def test_what_an_answer_raises_as_ours_is_withheld(answer, capsys):
    """It passed for a refusal of the library, whose words are shown."""
    assert_withheld(lambda: hs.release(lambda rows: answer(), [1.0], PROVEN), BadFunction, capsys)


def test_what_a_cell_raises_as_ours_is_withheld(capsys):
    """As it is looked at by the gate."""
    population = hs.populations.Simulator(draw_cells)
    s = hs.sample_sensitivity(mean_of_cells, population, rows=20, pairs=40, symmetric=True)
    rows = [Cell(0.5)] * 19 + [Cell(SECRET)]
    assert_withheld(
        lambda: hs.release(mean_of_cells, rows, hs.Laplace(s, epsilon=1.0)), BadRows, capsys
    )


def test_what_an_answer_of_a_step_does_as_the_next_one_copies_it(capsys):
    """It is between two private calls, and was in neither."""
    first = t.declared(lambda rows: Bent(), source=ROWS, target=ROWS, stability=1, argument="none")
    then = t.declared(lambda given: 1.0, source=ROWS, target=NUMBER, stability=1.0, argument="none")
    assert_withheld(lambda: (first >> then)([1.0]), BadFunction, capsys)
    last = t.from_sensitivity(len, COUNT, source=ROWS)
    assert_withheld(lambda: (first >> last)([1.0]), BadFunction, capsys)


@pytest.mark.parametrize("made", ["declared", "proven"])
def test_what_an_answer_of_a_step_says_as_the_next_one_copies_it(made, capsys):
    """So was this, and it was heard."""
    first = t.declared(lambda rows: Loud(), source=ROWS, target=ROWS, stability=1, argument="none")
    then = (
        t.declared(lambda given: 1.0, source=ROWS, target=NUMBER, stability=1.0, argument="none")
        if made == "declared"
        else t.from_sensitivity(lambda given: 1.0, COUNT, source=ROWS)
    )
    assert (first >> then)([1.0]) == 1.0
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow_cases("{0}/../{1}", "{0}//", "./{1}")
@pytest.mark.parametrize("way", ["{0}", "{0}/../{1}", "./{1}", "{0}//"])
def test_advice_is_shown_by_whatever_way_the_library_was_found(way):
    """Its own code is known by the path that it was loaded from, however that is written."""
    source = Path(hs.__file__).parents[1]
    program = f"""
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in repr(each).lower()]
sys.path[:] = [{way.format(source, source.name)!r}] + sys.path
import hushed as hs
count = hs.proven_sensitivity(1.0, neighbours="add-remove", argument="a count")
hs.release(lambda rows: None, [1.0], hs.Laplace(count, epsilon=1.0))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        cwd=source.parent,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the function returned NoneType" in done.stderr
