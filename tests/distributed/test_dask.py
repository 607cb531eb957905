"""A Dask cluster of real processes gives the same bits, survives faults, or says why."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from tests.clusters import SOURCE, Cluster, kill, needs_dask

import hushed as hs
from hushed._functions._trials import run_trials
from hushed.errors import BadFunction, EngineUnavailable, WorkerLost

pytestmark = [needs_dask, pytest.mark.slow]
UNIT = hs.populations.Uniform(low=0, high=1)


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    found = Cluster(tmp_path_factory.mktemp("dask"))
    yield found
    found.close()


def timed(seconds):
    """Make a function of trials that each take so long."""

    def draw(generators):
        found = []
        for g in generators:
            time.sleep(seconds)
            found.append(g.random(2))
        return np.array(found)

    return draw


def draws(generators):
    return np.array([g.random(2) for g in generators])


@pytest.mark.parametrize(("seconds", "trials"), [(0.001, 500), (0.02, 60), (0.2, 8)])
def test_a_cluster_gives_the_bits_of_one_process(shared, seconds, trials):
    """Fast and slow trials, all of them, are the same there as here."""
    there = run_trials(timed(seconds), trials, seed=3, workers=shared.address)
    assert np.array_equal(there, run_trials(draws, trials, seed=3, workers=1))


@pytest.mark.parametrize(
    "settings",
    [{}, {"protect": "simultaneous", "pairs": 30}, {"batch": True, "pairs": 40_000}],
)
def test_every_kind_of_sampling_runs_on_a_cluster(shared, settings):
    """Records, whole tables and batches: value and all draws are those of one process."""

    def spread(rows):
        return rows.max(axis=-1) - rows.mean(axis=-1)

    wanted = {"rows": 20, "calibration": "marginal", "pairs": 200} | settings
    population = UNIT if not settings.get("batch") else hs.populations.Uniform(low=0, high=1)

    def f(rows):
        flat = rows.reshape(rows.shape[0], -1) if settings.get("batch") else rows
        return spread(flat)

    here = hs.sample_sensitivity(f, population, workers=1, **wanted)
    there = hs.sample_sensitivity(f, population, workers=shared.address, **wanted)
    assert np.array_equal(there.draws, here.draws)
    assert there.value == here.value


def test_products_have_the_bits_of_one_process(shared):
    """A product that BLAS could split among threads is the same on a cluster."""

    def product(rows):
        return rows @ rows

    here = hs.sample_sensitivity(product, UNIT, rows=30_000, pairs=60, workers=1)
    there = hs.sample_sensitivity(product, UNIT, rows=30_000, pairs=60, workers=shared.address)
    assert np.array_equal(there.draws, here.draws)


def test_an_audit_on_a_cluster_reports_the_same(shared):
    """All of a report but its seconds."""

    def noisy(rows, rng, size):
        return rows.sum() + rng.laplace(size=size)

    pairs = [(np.zeros(3), np.ones(3) / 3)]
    claim = hs.Guarantee(epsilon=0.5)
    found = [
        hs.audit(noisy, pairs, claim=claim, samples=8000, batch=True, workers=w, relation="answers")
        for w in (1, shared.address)
    ]
    first, second = ({k: v for k, v in each.to_dict().items() if k != "seconds"} for each in found)
    assert first == second


def test_an_error_of_the_function_comes_back_as_itself(shared):
    """Its type, message and cause are those of one process, with no class of Dask in it."""

    def picky(rows):
        if rows[0] < 0.2:
            raise ValueError("too small")
        return rows.mean()

    found = []
    for workers in (1, shared.address):
        with pytest.raises(BadFunction) as raised:
            hs.sample_sensitivity(picky, UNIT, rows=5, pairs=99, workers=workers, seed=8)
        found.append((str(raised.value), type(raised.value.__cause__), str(raised.value.__cause__)))
    assert found[0] == found[1]


def test_what_a_private_population_raises_is_withheld_on_the_worker(shared):
    """Neither the error nor any log of the cluster has the private value."""

    def leaky(rows):
        if rows[0] < 0.2:
            raise ValueError("secret-4711")
        return rows.mean()

    with pytest.raises(BadFunction, match="withheld") as raised:
        hs.sample_sensitivity(
            leaky, UNIT, rows=5, pairs=99, workers=shared.address, seed=8, data_dependent=True
        )
    assert "secret-4711" not in str(raised.value) + repr(raised.value.__cause__) + shared.logs()


def test_a_client_of_the_caller_stays_open(shared):
    """It is used, nothing is left on the scheduler, and the caller goes on with it."""
    from distributed import Client

    with Client(shared.address.replace("dask", "tcp"), set_as_default=False) as client:
        found = run_trials(timed(0.01), 40, seed=3, workers=client)
        assert np.array_equal(found, run_trials(draws, 40, seed=3, workers=1))
        assert client.submit(abs, -3).result() == 3


def test_an_error_takes_back_what_was_on_its_way(shared):
    """The scheduler of a caller's client holds no task of a run that ended with an error."""
    from distributed import Client

    def late(generators):
        time.sleep(0.05)
        raise ValueError("no")

    parent = os.getpid()

    def failing(generators):
        return draws(generators) if os.getpid() == parent else late(generators)

    with Client(shared.address.replace("dask", "tcp"), set_as_default=False) as client:
        with pytest.raises(ValueError, match="no") as raised:
            run_trials(failing, 500, seed=3, workers=client)
        end = time.monotonic() + 3
        while client.run_on_scheduler(count_tasks) and time.monotonic() < end:
            time.sleep(0.1)
        assert client.run_on_scheduler(count_tasks) == 0
        assert raised.tb is not None  # kept until here, and with it what was on its way


def test_a_large_closure_is_loaded_once_by_each_worker(shared, tmp_path):
    """Fifty megabytes travel as one task, not with every span."""
    table = Large(np.ones(6_250_000), str(tmp_path / "loads"))

    def holding(generators):
        return draws(generators) + 0 * table.content[0]

    slow = timed(0.02)
    begun = time.monotonic()
    found = run_trials(lambda g: slow(g) + 0 * table.content[0], 60, seed=1, workers=shared.address)
    assert time.monotonic() - begun < 20
    assert np.array_equal(found, run_trials(holding, 60, seed=1, workers=1))
    assert 1 <= len((tmp_path / "loads").read_text().split()) <= 2


class Large:
    """Notes in a file where it was loaded."""

    def __init__(self, content, path):
        self.content, self.path = content, path

    def __reduce__(self):
        return _load_large, (self.content, self.path)


def _load_large(content, path):
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    return Large(content, path)


@pytest.mark.parametrize("victims", [1, 2])
def test_workers_that_are_killed_are_made_up_for(cluster, victims):
    """One worker, or all that hold the work: others run it, with the same bits."""

    def strike():
        time.sleep(1.0)
        for each in cluster.workers[:victims]:
            kill(each)
        if victims == 2:
            cluster.add()

    other = threading.Thread(target=strike)
    other.start()
    found = run_trials(timed(0.05), 120, seed=3, workers=cluster.address)
    other.join()
    assert np.array_equal(found, run_trials(draws, 120, seed=3, workers=1))


def test_a_function_that_ends_its_workers_is_given_up(cluster):
    """The error names the trials, comes soon, and the cluster serves the next run."""
    parent = os.getpid()

    def deadly(generators):
        if os.getpid() != parent:
            os._exit(1)
        return draws(generators)

    begun = time.monotonic()
    with pytest.raises(WorkerLost, match=r"at trials \d+ to \d+"):
        run_trials(deadly, 100, seed=3, workers=cluster.address)
    assert time.monotonic() - begun < 30
    again = run_trials(draws, 20, seed=3, workers=cluster.address)
    assert np.array_equal(again, run_trials(draws, 20, seed=3, workers=1))


def test_a_lost_scheduler_ends_the_run_soon(cluster):
    """EngineUnavailable says so within seconds, with what was done."""
    told = []

    def strike(count):
        told.append(count)
        if len(told) == 10:
            kill(cluster.scheduler)

    begun = time.monotonic()
    with pytest.raises(EngineUnavailable, match=r"lost the Dask scheduler.*of 400 trials"):
        run_trials(timed(0.05), 400, seed=3, workers=cluster.address, report=strike)
    assert time.monotonic() - begun < 20


def test_what_was_kept_before_the_scheduler_was_lost_is_not_run_again(cluster, tmp_path):
    """The error says that it is kept; the same call on a new cluster runs the rest."""
    asked = {"rows": 5, "pairs": 400, "calibration": "marginal", "keep": tmp_path / "kept"}

    def mean(rows):
        time.sleep(0.03)
        return rows.mean()

    killed = threading.Timer(4.0, kill, (cluster.scheduler,))
    killed.start()
    with pytest.raises(EngineUnavailable, match="are kept: the same call runs the rest"):
        hs.sample_sensitivity(mean, UNIT, workers=cluster.address, **asked)
    kept = hs.runs.list_runs(tmp_path / "kept")[0].kept
    assert 0 < kept < 400
    found = hs.sample_sensitivity(mean, UNIT, workers=1, **asked)
    del asked["keep"]
    plain = hs.sample_sensitivity(lambda rows: rows.mean(), UNIT, workers=1, **asked)
    assert np.array_equal(found.draws, plain.draws)


def test_a_worker_without_the_package_is_refused(tmp_path):
    """Before any of the work is sent, with the line that mends it; the worker lives on."""
    cluster = Cluster(tmp_path, workers=0)
    try:
        (tmp_path / "hushed").mkdir()
        (tmp_path / "hushed" / "__init__.py").write_text("raise ImportError('not here')\n")
        worker = cluster.add(nanny=False, PYTHONPATH=str(tmp_path))
        with pytest.raises(EngineUnavailable, match=r"worker tcp://.*not here"):
            run_trials(draws, 20, seed=3, workers=cluster.address)
        assert worker.poll() is None
    finally:
        cluster.close()


def test_a_cluster_without_workers_is_not_waited_for(tmp_path):
    """After the time that was granted the error says how to start some."""
    cluster = Cluster(tmp_path, workers=0)
    try:
        engine = hs.engines.Dask(cluster.address, patience=1)
        with pytest.raises(EngineUnavailable, match="no worker for 1 seconds"):
            run_trials(draws, 20, seed=3, workers=engine)
        engine.close()
    finally:
        cluster.close()


def test_other_bits_are_refused_or_noted(tmp_path):
    """A worker whose BLAS is told to be of another processor, in a product."""
    core = {"OPENBLAS_CORETYPE": "Prescott"}

    def product(generators):
        return np.array([(lambda x: x @ x)(g.random(30_001)) for g in generators])

    cluster = Cluster(tmp_path, workers=0)
    try:
        cluster.add(**core)
        with pytest.raises(EngineUnavailable, match="rounds otherwise"):
            run_trials(product, 40, seed=3, workers=cluster.address)
        engine = hs.engines.Dask(cluster.address, on_other_bits="note")
        with pytest.warns(UserWarning, match=r"of 40 trials ran where it rounds otherwise"):
            found = run_trials(product, 40, seed=3, workers=engine)
        engine.close()
        here = run_trials(product, 40, seed=3, workers=1)
        assert np.allclose(found, here, rtol=1e-12)
        assert not np.array_equal(found, here)
    finally:
        cluster.close()


SCRIPT = """
    import time, numpy as np
    from hushed._functions._trials import run_trials
    def slow(generators):
        found = []
        for g in generators:
            time.sleep(0.05)
            found.append(g.random())
        return np.array(found)
    run_trials(slow, 10_000, seed=1, workers={address!r}, report=lambda n: print(n, flush=True))
"""


def test_ctrl_c_leaves_nothing_on_the_scheduler(shared, tmp_path):
    """An interrupt ends the run within seconds, and the cluster has no task of it."""
    from distributed import Client

    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT.format(address=shared.address)))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(12):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    begun = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in err
    assert time.monotonic() - begun < 6
    with Client(shared.address.replace("dask", "tcp"), set_as_default=False) as client:
        end = time.monotonic() + 3
        while client.run_on_scheduler(count_tasks) and time.monotonic() < end:
            time.sleep(0.1)
        assert client.run_on_scheduler(count_tasks) == 0


def count_tasks(dask_scheduler):
    return sum(str(key).startswith("hushed") for key in dask_scheduler.tasks)
