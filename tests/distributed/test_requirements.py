"""A worker is asked what it has before it loads anything."""

import json
import re
import struct
import sys

import cloudpickle
import numpy as np
import pytest

from hushed.engines import Lacks, run_span
from hushed.engines._requirements import find_lacks, read_requirements
from hushed.engines._worker import pack, read_header
from hushed.errors import BadFunction


class Adds:
    """Work that needs NumPy."""

    note, private = "", False

    def prepare(self):
        return ""

    def __call__(self, seed, start, stop):
        return np.arange(start, stop, dtype=float)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"python": "3.99"}, r"runs Python 3\.\d+, and the work comes from Python 3\.99"),
        ({"hushed": "0" * 16}, "has other source code"),
        ({"numpy": "0.1"}, r"numpy .* where 0\.1 is wanted; there: pip install numpy==0\.1"),
        ({"no_such_module": "1.0"}, "no module no_such_module; there: pip install no_such_module"),
    ],
)
def test_what_differs_is_said_with_what_mends_it(wanted, words):
    """Another Python, another hushed, another version, a missing package."""
    task = pack(Adds(), 1)
    header = json.dumps(read_header(task.payload) | wanted).encode()
    poison = b"this would not load"
    outcome = run_span(struct.pack("<Q", len(header)) + header + poison, str(wanted), 1, 0, 3)
    assert isinstance(outcome, Lacks)
    assert outcome.words == find_lacks(read_header(task.payload) | wanted)
    assert re.search(words, outcome.words)


def test_a_worker_like_this_process_lacks_nothing():
    """All that the work names is here; the numbers come back."""
    task = pack(Adds(), 1)
    wanted = read_header(task.payload)
    assert {"python", "hushed", "numpy"} <= set(wanted)
    assert wanted == wanted | read_requirements(b"N.")
    assert find_lacks(wanted) == ""
    assert run_span(task.payload, task.digest, 1, 2, 5).values.tolist() == [2, 3, 4]


def test_only_what_is_imported_there_is_needed(monkeypatch):
    """A function that travels by its code needs what it uses, and not the module of its own."""
    import types

    home = types.ModuleType("a_home_of_functions")
    monkeypatch.setitem(sys.modules, "a_home_of_functions", home)
    words = "def make():\n    import scipy.stats, joblib\n    d = dict\n    def f(gs):\n"
    words += "        return scipy.stats.norm.cdf(0) + len('pytest')\n    return f, joblib.hash\n"
    exec(words, home.__dict__)
    content = cloudpickle.dumps(home.make())
    assert b"a_home_of_functions" in content
    found = read_requirements(content)
    assert {"scipy", "joblib"} <= found.keys()
    assert not {"a_home_of_functions", "pytest"} & found.keys()


@pytest.mark.slow
def test_pip_is_told_the_name_that_it_knows():
    """A module may go by another name there: scikit-learn gives sklearn."""
    import sklearn

    wanted = read_requirements(cloudpickle.dumps(sklearn))
    said = find_lacks(wanted | {"sklearn": "0.1"})
    assert "it has sklearn" in said
    assert "scikit-learn==0.1" in said.partition("pip install")[2]


def test_words_of_code_that_travelled_are_not_told():
    """What fails while it is loaded or tried may quote rows; words of imports name modules."""
    for failed, told in ((ValueError("31337.125"), "ValueError)"), (ImportError("no x"), "no x")):
        task = pack(Travelling(_Failing(failed)), 0, far=False)
        outcome = run_span(task.payload, task.digest, 0, 0, 1)
        assert told in outcome.words
        assert "31337" not in outcome.words


def test_a_private_function_that_cannot_be_sent_tells_its_kind_alone():
    """Its own words may quote a row of a population that was made from the private ones."""
    for private in (True, False):
        work = Travelling(_Unsendable())
        work.private = private
        with pytest.raises(BadFunction) as caught:
            pack(work, 0)
        assert ("31337" in str(caught.value)) is not private
        assert (caught.value.__cause__ is None) is private


def _fail(error):
    raise error


class _Failing:
    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        return _fail, (self.error,)


class _Unsendable:
    def __reduce__(self):
        raise ValueError("31337.125")


class Travelling:
    """Work that holds something, and runs nowhere."""

    note, private = "", False

    def __init__(self, held):
        self.held = held

    def prepare(self):
        return ""
