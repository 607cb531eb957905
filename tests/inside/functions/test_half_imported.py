"""After the import of a package that failed half-way, all else goes on as before.

Python forgets the package and keeps those of its modules that were loaded: their classes can be
used here, and found by no other process.
"""

import sys
import time
import warnings
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

import hushed as hs
from hushed._functions import _isolated_call
from hushed._functions._anew import call_anew
from hushed._functions._sent import Sent, load_filters, pack_filters
from hushed._functions._trials import run_trials
from hushed._ground.progress import show_progress
from hushed.engines._worker import pack
from hushed.errors import BadFunction

PARTS = {
    "__init__": "from halfway.words import Leak\nfrom halfway.words import does_not_exist\n",
    "words": "import warnings\n\nclass Leak(UserWarning):\n    pass\n\n"
    "warnings.simplefilter('always', Leak)\n",
}


@pytest.fixture
def halfway(tmp_path, monkeypatch):
    """A package whose import has failed: its module with a filter of warnings stays."""
    (tmp_path / "halfway").mkdir()
    for name, text in PARTS.items():
        (tmp_path / "halfway" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with warnings.catch_warnings():
        with pytest.raises(ImportError):
            import_module("halfway")
        assert "halfway.words" in sys.modules
        yield sys.modules.pop("halfway.words")


@pytest.fixture
def words(halfway, monkeypatch):
    monkeypatch.setitem(sys.modules, "halfway.words", halfway)
    return halfway


def slow_draws(generators):
    found = []
    for each in generators:
        time.sleep(0.01)
        found.append([each.random()])
    return np.array(found)


def test_work_can_be_sent(words):
    """Its filter of warnings is left out, for no other process can warn with its class."""
    assert any(each[2] is words.Leak for each in warnings.filters)
    pack(Sent(slow_draws, None), 0)
    sent = load_filters(pack_filters())
    assert sent == [each for each in warnings.filters if each[2] is not words.Leak]


def test_a_filter_of_a_module_that_a_worker_lacks_is_left_out(words, monkeypatch):
    monkeypatch.setitem(sys.modules, "halfway", words)  # as if all had been imported
    packed, known = pack_filters(), list(warnings.filters)
    assert load_filters(packed) == known
    monkeypatch.delitem(sys.modules, "halfway")
    monkeypatch.delitem(sys.modules, "halfway.words")
    assert load_filters(packed) == [each for each in known if each[2] is not words.Leak]


def test_what_a_function_holds_of_it_is_refused_in_words(words):
    kind = words.Leak

    def holding(generators):
        return np.array([[float(kind is None)] for _ in generators])

    with pytest.raises(BadFunction, match=r"cannot be sent to worker processes .*halfway"):
        pack(Sent(holding, None), 0)


@pytest.mark.parametrize("library", ["IPython", "torch", "pandas", "sklearn", "jax"])
def test_a_library_of_which_only_the_name_is_there(library, monkeypatch):
    """Where another thread is importing it, or a file of the user's has its name."""
    monkeypatch.setitem(sys.modules, library, ModuleType(library))
    with show_progress("drawing pairs", 3, shown=True) as advance:
        assert advance is None
    uniform = hs.populations.Uniform(low=0, high=1)
    found = hs.sample_sensitivity(np.mean, uniform, rows=20, pairs=20, symmetric=True)
    assert found.draws.size == 20
    assert _isolated_call._fetch([1.0]) == [1.0]


@pytest.mark.slow
def test_processes_do_the_work(words):
    assert call_anew(len, "abc", seconds=60) == 3
    alone = run_trials(slow_draws, 16, seed=5, workers=1)
    assert np.array_equal(run_trials(slow_draws, 16, seed=5, workers=2), alone)


@pytest.mark.slow
def test_an_audit_goes_on(words):
    def noisy(rows, rng):
        return rows[0] + rng.laplace(scale=1.0)

    claim = hs.Guarantee(epsilon=1.0)
    pairs = [(np.ones(1), np.zeros(1))]
    report = hs.audit(noisy, pairs, claim=claim, samples=4000, bits=False, workers=2)
    assert report.verdict == "not refuted"
