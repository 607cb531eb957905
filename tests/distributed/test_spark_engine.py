"""Spark gives the bits of one process, survives a killed worker, or says why not."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from tests.clusters import LATE, failed_elsewhere, make_picky, resume_command, stop_command
from tests.engines import QUICK

import hushed as hs
from hushed._functions._trials import run_trials
from hushed.errors import BadFunction, EngineUnavailable, HushedError, WorkerLost

# pyspark and pandas are not of one age, and their warnings are theirs
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
UNIT = hs.populations.Uniform(low=0, high=1)
FEW = 12  # trials: five run here, and the others are one wave


def draws(generators):
    return np.array([g.random(2) for g in generators])


def test_a_session_gives_the_bits_of_one_process(spark):
    """Values and all draws of a sampled sensitivity, for a session and for the word."""

    def spread(rows):
        return rows.max() - rows.mean()

    for workers, pairs in ((spark, 120), ("spark", 12)):
        asked = {"rows": 20, "calibration": "marginal", "pairs": pairs}
        here = hs.sample_sensitivity(spread, UNIT, workers=1, **asked)
        there = hs.sample_sensitivity(spread, UNIT, workers=workers, **asked)
        assert np.array_equal(there.draws, here.draws)
        assert there.value == here.value
    assert spark.range(3).count() == 3  # the session stays open


def test_trials_run_in_workers(spark, tmp_path):
    """Spark's Python processes run all but the first trials."""
    folder, parent = str(tmp_path), os.getpid()

    def noting(generators):
        if os.getpid() != parent:
            open(f"{folder}/{os.getpid()}", "w").close()
        return draws(generators)

    found = run_trials(noting, FEW, seed=3, workers=spark)
    assert np.array_equal(found, run_trials(draws, FEW, seed=3, workers=1))
    assert os.listdir(folder)


def test_jobs_are_of_the_group_of_the_caller(spark):
    """They run in threads, with what the caller set for them: a group, a pool, a description."""
    context = spark.sparkContext
    context.setJobGroup("mine", "jobs of the caller")
    try:
        run_trials(draws, FEW, seed=3, workers=spark)
    finally:
        for name in ("Group.id", ".description", ".interruptOnCancel"):
            context.setLocalProperty(f"spark.job{name}", None)
    assert context.statusTracker().getJobIdsForGroup("mine")


def test_an_error_of_the_function_comes_back_as_itself(spark, tmp_path):
    """Its type, message and cause are those of one process, with nothing of Java in it."""
    found, picky = [], make_picky(tmp_path)
    for workers in (1, spark):
        with pytest.raises(BadFunction) as raised:
            hs.sample_sensitivity(picky, UNIT, workers=workers, **LATE)
        found.append((str(raised.value), type(raised.value.__cause__), str(raised.value.__cause__)))
        assert failed_elsewhere(tmp_path) is (workers != 1)
    assert found[0] == found[1]


def test_a_worker_that_is_killed_is_made_up_for(spark, tmp_path):
    """Where Spark itself does not run a task again, the wave runs again, with the same bits."""
    struck, parent = tmp_path / "struck", os.getpid()

    def dying_once(generators):
        if os.getpid() != parent and not struck.exists():
            struck.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return draws(generators)

    found = run_trials(dying_once, 30, seed=3, workers=spark)
    assert struck.exists()
    assert np.array_equal(found, run_trials(draws, 30, seed=3, workers=1))


def test_a_function_that_ends_its_workers_is_given_up(spark):
    """The error is ours and names the trials, and the session serves the next run."""
    parent = os.getpid()

    def deadly(generators):
        if os.getpid() != parent:
            os._exit(1)
        return draws(generators)

    with pytest.raises(WorkerLost, match=r"between trials \d+ and \d+.*of 100 trials"):
        run_trials(deadly, 100, seed=3, workers=spark)
    again = run_trials(draws, FEW, seed=3, workers=spark)
    assert np.array_equal(again, run_trials(draws, FEW, seed=3, workers=1))


def test_a_worker_without_the_package_is_refused(spark, monkeypatch):
    """What it answers becomes an error that says so."""
    from hushed.engines import _stub

    monkeypatch.setattr(_stub, "run_span", _Absent())
    with pytest.raises(EngineUnavailable, match=r"hushed cannot be loaded there.*no_such_module"):
        run_trials(draws, 20, seed=3, workers=spark)


class _Absent:
    """Pickled, it is the name of something in a module that is nowhere."""

    def __reduce__(self):
        return __import__, ("no_such_module",)


def test_a_worker_with_another_python_is_refused(spark, tmp_path, monkeypatch):
    """What Spark finds before the work is loaded becomes an error that says what to set."""
    other = tmp_path / "python"
    other.write_text(
        f'#!/bin/sh\nexport PYTHONPATH={tmp_path}:$PYTHONPATH\nexec {sys.executable} "$@"\n'
    )
    other.chmod(0o755)
    (tmp_path / "pyarrow.py").write_text("raise ImportError('not here')\n")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
    with pytest.raises(EngineUnavailable, match=r"cannot run hushed \(.*not here.*PYSPARK_PYTHON"):
        run_trials(draws, 20, seed=3, workers=spark)


def test_a_session_that_is_stopped_is_named(spark):
    """The error is ours, and no error of Java."""

    class Stopped:
        """What a stopped session does, without stopping the one of all tests."""

        sparkContext = property(lambda self: spark._no_such_thing)
        conf = property(lambda self: spark._no_such_thing)

    engine = hs.engines.Spark(Stopped())
    with pytest.raises(HushedError, match="is stopped, or its driver is gone"):
        run_trials(draws, 20, seed=3, workers=engine)


def test_a_stop_takes_back_what_runs_in_a_session_of_the_caller(spark, tmp_path):
    """Spark would go on with it; its own handler of Ctrl-C, which ends all jobs, is set aside."""
    begun, parent = tmp_path / "begun", os.getpid()

    def stuck(generators):
        if os.getpid() != parent:
            begun.touch()
            time.sleep(100)
        return draws(generators)

    def strike():
        while not begun.exists():
            time.sleep(0.05)
        os.kill(parent, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=strike, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            run_trials(stuck, 60, seed=3, workers=spark)
    finally:
        signal.signal(signal.SIGINT, before)
    tracker, end = spark.sparkContext.statusTracker(), time.monotonic() + 120
    while tracker.getActiveJobsIds() and time.monotonic() < end:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_on_spark_that_is_stopped_says_what_is_kept(number, tmp_path, monkeypatch):
    """A signal amid an answer of Spark is no error of the session, and the same call goes on."""
    pytest.importorskip("pyspark")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)  # Spark would take python3, without hushed
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.master local[2]\nspark.driver.bindAddress 127.0.0.1\n"
        "spark.driver.host 127.0.0.1\nspark.ui.enabled false\n"
        f"spark.driver.extraJavaOptions {QUICK}\n"
    )
    code, said, kept = stop_command(tmp_path, "spark", number)
    assert code == 130, said[-2000:]
    assert f"{kept[0]} of 400 trials are kept in" in said
    assert 10 < kept[0] < 400
    assert resume_command(tmp_path) > kept[0]  # each trial that is kept saves two calls
