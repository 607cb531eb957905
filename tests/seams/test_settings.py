"""Settings that belong to no function, and change what functions answer."""

import decimal
import locale
import sys
import time
import warnings
from contextlib import contextmanager

import joblib
import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
import sklearn

import hushed as hs

_ROWS = 30
_UNIFORM = hs.populations.Uniform(low=0, high=1)


@contextmanager
def _numpy():
    with np.errstate(over="raise"):
        yield


@contextmanager
def _decimals():
    with decimal.localcontext() as context:
        context.prec = 5
        yield


@contextmanager
def _decimals_of_threads():
    """Each thread that begins takes a copy of this context, as `decimal.Context()` does."""
    before = decimal.DefaultContext.prec
    decimal.DefaultContext.prec = 5
    yield
    decimal.DefaultContext.prec = before


@contextmanager
def _traps():
    with decimal.localcontext() as context:
        context.traps[decimal.Inexact] = True
        yield


@contextmanager
def _recursion():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 100)
    yield
    sys.setrecursionlimit(before)


@contextmanager
def _errors():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=DeprecationWarning, module="nowhere")
        yield


@contextmanager
def _locale():
    before = locale.setlocale(locale.LC_ALL)
    other = "C.UTF-8" if before == "C" else "C"
    locale.setlocale(locale.LC_ALL, other)
    yield
    locale.setlocale(locale.LC_ALL, before)


@contextmanager
def _pandas():
    with pd.option_context("compute.use_bottleneck", not pd.get_option("compute.use_bottleneck")):
        yield


@contextmanager
def _pandas_texts():
    with pd.option_context("mode.string_storage", "python"):
        yield


@contextmanager
def _sklearn():
    with sklearn.config_context(transform_output="pandas"):
        yield


@contextmanager
def _buffer():
    before = np.setbufsize(16_384)
    yield
    np.setbufsize(before)


@contextmanager
def _zone():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        yield
    time.tzset()


@contextmanager
def _long_integers():
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(before + 100)
    yield
    sys.set_int_max_str_digits(before)


@contextmanager
def _polars():
    with pl.Config(engine_affinity="streaming"):
        yield


@contextmanager
def _mpmath():
    with mpmath.workprec(80):
        yield


@contextmanager
def _roots_of_mpmath():
    mpmath.mp.trap_complex = True
    try:
        yield
    finally:
        mpmath.mp.trap_complex = False


_CHANGES = [
    _numpy,
    _decimals,
    _decimals_of_threads,
    _traps,
    _recursion,
    _errors,
    _locale,
    _pandas,
    _pandas_texts,
    _sklearn,
    _buffer,
    _zone,
    _long_integers,
    _polars,
    _mpmath,
    _roots_of_mpmath,
]


def _mean(rows):
    return rows.mean()


@pytest.mark.parametrize("changed", _CHANGES)
def test_a_change_since_is_refused_before_the_charge(changed, ledger):
    """The same function, the same answer on the sampled table: refused, and nothing is charged."""
    sampled = hs.sample_sensitivity(_mean, _UNIFORM, rows=_ROWS)
    mechanism, rows = hs.Laplace(sampled, epsilon=1.0), np.linspace(0, 1, _ROWS)
    with changed(), pytest.raises(hs.errors.BadFunction, match="since the sensitivity"):
        hs.release(_mean, rows, mechanism, ledger, budget="all")
    assert not ledger.log
    hs.release(_mean, rows, mechanism, ledger, budget="all")
    assert len(ledger.log) == 1


def _rarely_overflowing(rows):
    time.sleep(0.003)  # so that most of the work is left to workers
    try:
        return float(np.exp(720 * rows.max()) > 0) + rows.mean()
    except FloatingPointError:
        return 1000.0


@pytest.mark.slow
def test_workers_answer_under_the_same_settings():
    """What was set here, and is not set in workers, moves the same tables by as much."""
    with np.errstate(over="raise"):
        here, there = (
            hs.sample_sensitivity(_rarely_overflowing, _UNIFORM, rows=2, workers=workers)
            for workers in (1, 2)
        )
    assert here.value > 900
    assert here.draws.tolist() == there.draws.tolist()


def _rarely_warning(rows):
    time.sleep(0.003)
    try:
        if rows.max() > 0.98:
            warnings.warn("rare", UserWarning, stacklevel=1)
    except UserWarning:
        return 1000.0
    return rows.mean()


@pytest.mark.slow
def test_workers_take_the_same_warnings_for_errors():
    """They do the work under the filters of the process that asks."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        here, there = (
            hs.sample_sensitivity(_rarely_warning, _UNIFORM, rows=2, workers=workers)
            for workers in (1, 2)
        )
    assert here.value > 900
    assert here.draws.tolist() == there.draws.tolist()


@pytest.mark.slow
def test_threads_of_this_process_keep_its_filters(monkeypatch):
    """Where joblib runs threads, nothing that belongs to all of them is touched."""
    touched = []
    monkeypatch.setattr(warnings, "resetwarnings", lambda: touched.append(1))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        there = hs.sample_sensitivity(_rarely_warning, _UNIFORM, rows=2, workers=2)
    assert there.pairs == 112
    assert not touched


@pytest.mark.slow
def test_a_function_that_sets_something_is_told():
    """What the function itself changes while it is sampled stands on the certificate."""

    def careless(rows):
        decimal.getcontext().prec += 1
        return rows.mean()

    with decimal.localcontext():
        sampled = hs.sample_sensitivity(careless, _UNIFORM, rows=_ROWS, workers=1)
        released = hs.release(careless, np.linspace(0, 1, _ROWS), hs.Laplace(sampled, epsilon=1.0))
    assert "the decimal context" in released.certificate.to_json()


class _Torch:
    """Stands in for torch, as far as its settings are read; it is not installed here."""

    def __init__(self):
        self.default = "float32"
        self.backends = self.cuda = self.matmul = self.cudnn = self
        self.allow_tf32 = self.deterministic = self.benchmark = self.enabled = False

    def get_default_dtype(self):
        return self.default

    def are_deterministic_algorithms_enabled(self):
        return self.deterministic

    def get_float32_matmul_precision(self):
        return "highest"

    def is_grad_enabled(self):
        return True


@pytest.mark.parametrize(("name", "value"), [("default", "float64"), ("deterministic", True)])
def test_what_torch_makes_tensors_of_is_watched(name, value, monkeypatch):
    """Its settings are read wherever it is loaded."""
    torch = _Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    sampled = hs.sample_sensitivity(_mean, _UNIFORM, rows=_ROWS, workers=1)
    setattr(torch, name, value)
    with pytest.raises(hs.errors.BadFunction, match="the settings of torch changed"):
        hs.release(_mean, np.linspace(0, 1, _ROWS), hs.Laplace(sampled, epsilon=1.0))


def test_libraries_whose_settings_are_not_watched_are_named():
    """On the certificate, if the function names them; those that are watched are not."""

    def trimmed(rows):
        return float(scipy.stats.trim_mean(rows, 0.1)) + float(pd.Series(rows).max())

    sampled = hs.sample_sensitivity(trimmed, _UNIFORM, rows=_ROWS, workers=1)
    released = hs.release(trimmed, np.linspace(0, 1, _ROWS), hs.Laplace(sampled, epsilon=1.0))
    assert "Not watched are settings of scipy:" in released.certificate.explain()


def test_what_numpy_calls_in_place_of_a_warning_counts_where_it_is_called(ledger):
    """Another function there is another answer, or an error; `numpy.geterr` stays as it was."""
    with np.errstate(over="call"):
        s = hs.sample_sensitivity(np.mean, _UNIFORM, rows=_ROWS, gamma=0.2, symmetric=True, seed=1)
        before = np.seterrcall(lambda *told: 1 / 0)
        try:
            with pytest.raises(hs.errors.BadFunction, match="geterrcall"):
                hs.release(
                    np.mean, np.full(_ROWS, 0.5), hs.Laplace(s, epsilon=1), ledger, budget="b"
                )
        finally:
            np.seterrcall(before)
    assert not ledger.log


@contextmanager
def _quiet():
    with pd.option_context("mode.performance_warnings", False):
        yield


@contextmanager
def _unused():
    before = np.seterrcall(lambda *told: None)
    yield
    np.seterrcall(before)


@pytest.mark.parametrize("change", [_quiet, _unused])
def test_what_changes_no_answer_is_no_change(change):
    """How pandas warns, and what NumPy would call if it were told to call anything."""
    with warnings.catch_warnings():
        warnings.resetwarnings()  # where some are errors, how pandas warns counts
        s = hs.sample_sensitivity(np.mean, _UNIFORM, rows=_ROWS, gamma=0.2, symmetric=True, seed=1)
        with change():
            told = hs.release(np.mean, np.full(_ROWS, 0.5), hs.Laplace(s, epsilon=1))
    assert told.value is not None
