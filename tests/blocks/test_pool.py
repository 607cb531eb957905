"""Pools that are kept: quick from one release to the next, and nothing else is kept with them."""

import functools
import importlib
import os
import signal
import time

import numpy as np
import pandas as pd
import pytest

import hushed as hs
from hushed.errors import BadFunction, ParameterError

pytestmark = pytest.mark.usefixtures("by_value")

ROWS = np.linspace(0, 1, 40)
FOUND = {"rows": 0}
EXACT = hs.Blocks(low=0, high=100, epsilon=200.0, blocks=2)  # draws what the blocks say


def count_rows(rows):
    """Count all rows that were ever seen by this process."""
    FOUND["rows"] += len(rows)
    return float(FOUND["rows"])


def tell_process(rows):
    return float(os.getpid())


@pytest.fixture
def pool():
    """Processes for two blocks of a function that keeps what it has seen."""
    with hs.blocks.Pool(count_rows, EXACT) as opened:
        yield opened


def ask(pool, parts=(ROWS, ROWS)):
    with pool.lend() as calls:
        return calls.call(parts).tolist()


def test_no_call_sees_what_an_earlier_release_left(pool):
    """20 rows in each block, at each release; a process that is kept would count 40, 60, ..."""
    assert [hs.release(pool, ROWS, EXACT).value for _ in range(3)] == [20.0] * 3
    assert FOUND["rows"] == 0


def test_a_release_that_asks_nothing_takes_no_process(pool, refusing_ledger):
    """As where the budget does not suffice: those that wait go on waiting."""
    waiting = set(pool._kept._idle)
    with pytest.raises(PermissionError):
        hs.release(pool, ROWS, EXACT, refusing_ledger, budget="b")
    assert set(pool._kept._idle) == waiting
    assert len(waiting) == 2


@pytest.mark.slow
def test_each_call_has_a_process_that_was_started_for_it():
    """Numbers of processes of all calls differ, and none is ours."""
    with hs.blocks.Pool(tell_process, EXACT) as pool:
        waiting = {float(each._child.pid) for each in pool._kept._idle}
        first, second = ask(pool), ask(pool)
    assert set(first) == waiting
    assert len({*first, *second, float(os.getpid())}) == 5


@pytest.mark.slow
def test_a_certificate_says_the_same_with_a_pool_and_without(pool):
    """The promise is that of blocks."""
    without = hs.release(count_rows, ROWS, EXACT).certificate
    kept = hs.release(pool, ROWS, EXACT).certificate
    assert kept.guarantee == without.guarantee
    assert kept.mechanism == without.mechanism
    assert hs.verify(kept.to_json()).reproduced


@pytest.mark.slow
def test_other_privacy_parameters_may_use_it(pool):
    """Processes know nothing of epsilon."""
    less = hs.Blocks(low=0, high=100, epsilon=300.0, blocks=2)
    assert hs.release(pool, ROWS, less).value == 20.0


@pytest.mark.parametrize(
    ("mechanism", "rows", "said"),
    [
        (hs.Blocks(["a", "b"], aggregate="votes", epsilon=30.0, blocks=2), ROWS, "other limits"),
        (
            hs.Blocks(
                low=0, high=100, epsilon=200.0, blocks=2, limits=hs.blocks.Limits(cpu_seconds=5)
            ),
            ROWS,
            "other limits",
        ),
        (EXACT, pd.DataFrame({"x": ROWS}), "frames='pandas'"),
    ],
    ids=["labels", "limits", "frame"],
)
def test_what_it_was_not_opened_for_is_refused_before_the_charge(
    pool, mechanism, rows, said, ledger
):
    with pytest.raises(ParameterError, match=said):
        hs.release(pool, rows, mechanism, ledger, budget="b")
    assert ledger.log == []


@pytest.mark.slow
def test_a_function_that_has_changed_is_refused():
    """Its processes know the old one, and a certificate would name the new one."""
    held = [1.0]

    def add(rows):
        return float(len(rows)) + held[0]

    with hs.blocks.Pool(add, EXACT) as pool:
        assert hs.release(pool, ROWS, EXACT).value == 21.0
        held[0] = 5.0
        with pytest.raises(BadFunction, match="has changed"):
            hs.release(pool, ROWS, EXACT)


@pytest.mark.slow
def test_a_function_that_was_only_looked_at_has_not_changed():
    """A partial function has its attributes made when they are first asked for."""
    middle = functools.partial(np.quantile, q=0.5)
    with hs.blocks.Pool(middle, EXACT) as pool:
        values = [hs.release(pool, np.full(40, 30.0), EXACT).value for _ in range(2)]
    assert values == [30.0, 30.0]


@pytest.mark.slow
def test_a_function_that_can_no_longer_be_loaded_costs_nothing(tmp_path, monkeypatch, ledger):
    """As without a pool: its module is gone after the first release, and then there again."""
    module = tmp_path / "counts_of_a_pool.py"
    module.write_text("def count(rows):\n    return float(len(rows))\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    count = importlib.import_module(module.stem).count
    with hs.blocks.Pool(count, EXACT) as pool:
        hidden = module.rename(tmp_path / "hidden")
        assert hs.release(pool, ROWS, EXACT).value == 20.0
        for _ in range(3):
            with pytest.raises(BadFunction, match="cannot be loaded"):
                hs.release(pool, ROWS, EXACT, ledger, budget="b")
        assert ledger.log == []
        hidden.rename(module)
        assert hs.release(pool, ROWS, EXACT).value == 20.0


@pytest.mark.slow
def test_a_closed_pool_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    """No process, and no folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with hs.blocks.Pool(count_rows, EXACT) as pool:
        ask(pool)
        started = [each._child.pid for each in pool._kept._open]
    assert len(started) == 2
    assert not any(os.path.exists(f"/proc/{each}") for each in started)
    assert os.listdir(tmp_path) == []
    with pytest.raises(ParameterError, match="closed"):
        hs.release(pool, ROWS, EXACT)


@pytest.mark.slow
def test_after_an_interrupt_no_process_of_that_release_is_asked_again():
    """Else its late answers would be taken for those of the next release."""

    def wait(rows):
        time.sleep(0.5 if len(rows) == 1 else 0)
        return float(len(rows))

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with hs.blocks.Pool(wait, EXACT) as pool:
            started = {each._child.pid for each in pool._kept._open}
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(KeyboardInterrupt):
                ask(pool, [ROWS[:1], ROWS[:1]])
            assert not any(os.path.exists(f"/proc/{each}") for each in started)
            assert ask(pool, [ROWS[:7], ROWS[:9]]) == [7.0, 9.0]
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("f", "mechanism", "error"),
    [(3, EXACT, BadFunction), (np.median, "blocks", ParameterError)],
    ids=["no function", "no blocks"],
)
def test_what_is_no_pool_is_refused(f, mechanism, error):
    with pytest.raises(error, match="a pool is for"):
        hs.blocks.Pool(f, mechanism)
