"""What a function hears of itself on private rows, it hears as where it was sampled."""

import functools
import logging
import sys
import threading
import warnings

import numpy as np
import pytest

import hushed as hs

_ROWS = 40
_EPSILON = 1e6
_PRIVATE = np.random.default_rng(5).random(_ROWS)


def _share_of_warnings(rows):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for row in rows:
            if row > 0.5:
                warnings.warn("above a half", stacklevel=1)
    return len(caught) / len(rows)


def _share_of_warnings_in_threads(rows):
    def judge(part):
        for row in part:
            if row > 0.5:
                warnings.warn("above a half", stacklevel=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=judge, args=(part,)) for part in np.split(rows, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return len(caught) / len(rows)


class _Counting(logging.Handler):
    def __init__(self):
        super().__init__()
        self.count = 0

    def emit(self, record):
        self.count += 1


def _share_of_records(rows):
    log, counting = logging.getLogger("hushed.tests.hears"), _Counting()
    log.addHandler(counting)
    try:
        for row in rows:
            if row > 0.5:
                log.warning("above a half")
    finally:
        log.removeHandler(counting)
    return counting.count / len(rows)


@pytest.mark.slow_cases("_share_of_warnings_in_threads")
@pytest.mark.parametrize(
    "function", [_share_of_warnings, _share_of_warnings_in_threads, _share_of_records]
)
def test_what_a_function_counts_of_its_own_words_is_released(function):
    """Warnings and records that it collects are there as in the sample, and nobody else's."""
    sampled = hs.sample_sensitivity(function, hs.populations.Uniform(low=0, high=1), rows=_ROWS)
    with warnings.catch_warnings(record=True) as outside:
        warnings.simplefilter("always")
        released = hs.release(function, _PRIVATE, hs.Laplace(sampled, epsilon=_EPSILON))
    assert released.value == pytest.approx(np.mean(_PRIVATE > 0.5), abs=1e-3)
    assert not outside


def test_handlers_of_others_hear_nothing(caplog, capsys):
    """A handler that was there before, on the same logger or above, is told no private record."""
    log, mine = logging.getLogger("hushed.tests.hears"), _Counting()
    known = hs.proven_sensitivity(1 / _ROWS, argument="a share")
    log.addHandler(mine)
    try:
        released = hs.release(_share_of_records, _PRIVATE, hs.Laplace(known, epsilon=_EPSILON))
    finally:
        log.removeHandler(mine)
    assert released.value > 0.1
    assert mine.count == 0
    assert not caplog.records
    assert capsys.readouterr() == ("", "")


def test_a_list_left_open_collects_nothing_of_the_next_call():
    """A function that never ends its collecting hears no warning of another release."""
    kept = []

    def careless(rows):
        catching = warnings.catch_warnings(record=True)
        kept.append(catching.__enter__())
        return rows.mean()

    def warning(rows):
        warnings.warn("private", stacklevel=1)
        return rows.mean()

    mechanism = hs.Laplace(hs.proven_sensitivity(1 / _ROWS, argument="a mean"), epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        hs.release(careless, _PRIVATE, mechanism)
        hs.release(warning, _PRIVATE, mechanism)
    assert kept == [[]]


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_was_kept_before_hears_nothing(name, capsys):
    """As loguru keeps the stream that there was when it was imported; others still write to it."""
    stream = getattr(sys, name)
    say = functools.partial(print, "private", file=stream, flush=True)
    go, gone = threading.Event(), threading.Event()

    def telling(rows):
        say()
        stream.write(f"private {rows.max()}\n")
        stream.writelines(["private\n"])
        go.set()
        gone.wait(10)
        return rows.mean()

    def other():
        go.wait(10)
        print("public", file=stream)
        gone.set()

    thread = threading.Thread(target=other)
    thread.start()
    known = hs.proven_sensitivity(1 / _ROWS, argument="a mean")
    hs.release(telling, _PRIVATE, hs.Laplace(known, epsilon=1.0))
    thread.join()
    print("after", file=stream)
    assert getattr(sys, name) is stream
    assert getattr(capsys.readouterr(), name.removeprefix("std")) == "public\nafter\n"
    assert "write" not in vars(stream)
