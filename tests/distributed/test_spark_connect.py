"""A session of Spark Connect gives the bits of one process."""

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest
from tests.clusters import SOURCE
from tests.engines import QUICK

pytestmark = pytest.mark.spark

PROGRAM = """
    import os, signal, threading, time, warnings
    warnings.simplefilter("ignore")
    import numpy as np
    from pyspark.sql import SparkSession
    import hushed as hs
    from hushed._functions._trials import run_trials

    def say(*words):
        print("said", *words, flush=True)

    def spread(rows):
        return rows.max() - rows.mean()

    def draws(generators):
        return np.array([g.random(2) for g in generators])

    settings = {settings!r}
    builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    say(type(session).__module__)
    try:
        run_trials(draws, 20, seed=3, workers=session)
    except hs.errors.ParameterError as error:
        say(error)
    asked = dict(rows=20, calibration="marginal", pairs=60)
    unit = hs.populations.Uniform(low=0, high=1)
    engine = hs.engines.Spark(session, slots=2)
    here = hs.sample_sensitivity(spread, unit, workers=1, **asked)
    there = hs.sample_sensitivity(spread, unit, workers=engine, **asked)
    say(np.array_equal(there.draws, here.draws), there.value == here.value)

    begun, went_on, parent = {begun!r}, {went_on!r}, os.getpid()
    def stuck(generators):
        if os.getpid() != parent:
            open(begun, "w").close()
            time.sleep(300)
            open(went_on, "w").close()
        return draws(generators)
    def strike():
        while not os.path.exists(begun):
            time.sleep(0.05)
        os.kill(parent, signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=strike, daemon=True).start()
    try:
        run_trials(stuck, 60, seed=3, workers=engine)
    except KeyboardInterrupt:
        again = run_trials(draws, 20, seed=3, workers=engine)  # both slots are free again
        say(np.array_equal(again, run_trials(draws, 20, seed=3, workers=1)))
    session.stop()
"""


def test_a_session_of_connect_gives_the_bits_of_one_process(tmp_path):
    """Value and all draws; it must be told how many tasks run at once; a stop takes jobs back."""
    if importlib.util.find_spec("grpc_status") is None:
        pytest.skip("needs pyspark[connect]: make spark")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path),
    }
    marks = {name: str(tmp_path / name) for name in ("begun", "went_on")}
    environment = {"PYTHONPATH": SOURCE, "PYSPARK_PYTHON": sys.executable}
    environment["SPARK_TESTING"] = "1"  # a free port for the server, and not 15002
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).format(settings=settings, **marks)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=900,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = [each[5:] for each in done.stdout.split("\n") if each.startswith("said ")]
    assert said[0] == "pyspark.sql.connect.session"
    assert "does not say how many tasks run at once" in said[1]
    assert said[2:] == ["True True", "True"]
    assert not (tmp_path / "went_on").exists()
