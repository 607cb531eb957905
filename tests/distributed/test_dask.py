"""A Dask cluster of real processes gives the same bits, survives faults, or says why."""

import contextlib
import functools
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest
from tests.clusters import (
    LATE,
    SOURCE,
    Cluster,
    failed_elsewhere,
    kill,
    make_picky,
    needs_dask,
    resume_command,
    stop_command,
)

import hushed as hs
from hushed._functions._trials import run_trials
from hushed.engines import _dask
from hushed.engines._protocol import Task
from hushed.errors import BadFunction, EngineUnavailable, WorkerLost
from hushed.releasing import certify

pytestmark = [needs_dask, pytest.mark.slow]
UNIT = hs.populations.Uniform(low=0, high=1)


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
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


def seeded(generators):
    """Draw twice from the generator of all, a moment apart."""
    found = []
    for _ in generators:
        random.seed(3)
        first = random.random()
        time.sleep(1e-4)
        found.append((first, random.random()))
    return np.array(found)


def test_threads_of_dask_do_not_draw_from_the_generator_of_a_function(shared):
    """Three trials in 300 used to meet one that did."""
    found = run_trials(seeded, 1000, seed=1, workers=shared.address)
    assert len(np.unique(found, axis=0)) == 1


def test_a_cluster_in_this_process_runs_one_span_at_a_time():
    """A function with a table of its own, which two threads at once would mix up."""
    import distributed

    scratch = np.zeros(20)

    def total(rows):
        scratch[:] = 0
        for place, row in enumerate(rows):
            scratch[place] = row
            if place % 5 == 0:
                time.sleep(1e-4)
        return float(scratch.sum())

    settings = {"rows": 20, "pairs": 60}
    expected = hs.sample_sensitivity(total, UNIT, workers=1, **settings)
    with (
        distributed.LocalCluster(
            n_workers=1, processes=False, threads_per_worker=4, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = hs.sample_sensitivity(total, UNIT, workers=client, **settings)
    assert np.array_equal(found.sampling.draws, expected.sampling.draws)


def test_an_error_of_the_function_comes_back_as_itself(shared, tmp_path):
    """Its type, message and cause are those of one process, with no class of Dask in it."""
    found, picky = [], make_picky(tmp_path)
    for workers in (1, shared.address):
        with pytest.raises(BadFunction) as raised:
            hs.sample_sensitivity(picky, UNIT, workers=workers, **LATE)
        found.append((str(raised.value), type(raised.value.__cause__), str(raised.value.__cause__)))
        assert failed_elsewhere(tmp_path) is (workers != 1)
    assert found[0] == found[1]


def test_what_a_private_population_raises_is_withheld_on_the_worker(shared, tmp_path):
    """Neither the error nor any log of the cluster has the private value."""
    leaky = make_picky(tmp_path, "secret-4711")
    with pytest.raises(BadFunction, match="withheld") as raised:
        hs.sample_sensitivity(leaky, UNIT, workers=shared.address, data_dependent=True, **LATE)
    assert failed_elsewhere(tmp_path)
    assert "secret-4711" not in str(raised.value) + repr(raised.value.__cause__) + shared.logs()


def test_a_client_of_the_caller_stays_open(shared):
    """It is used, nothing is left on the scheduler, and the caller goes on with it."""
    from distributed import Client

    with Client(shared.address.replace("dask", "tcp"), set_as_default=False) as client:
        found = run_trials(timed(0.01), 40, seed=3, workers=client)
        assert np.array_equal(found, run_trials(draws, 40, seed=3, workers=1))
        assert client.submit(abs, -3).result() == 3


def test_an_interrupt_takes_back_what_was_on_its_way(shared):
    """A notebook holds the error, and all in its frames; the scheduler holds no task of the run."""
    from distributed import Client

    here, before = os.getpid(), signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt = threading.Timer(0.5, os.kill, (here, signal.SIGINT))
    report = strike_at(20, interrupt.start)
    try:
        with Client(shared.address.replace("dask", "tcp"), set_as_default=False) as client:
            with pytest.raises(KeyboardInterrupt) as raised:
                run_trials(timed(0.05), 5000, seed=3, workers=client, report=report)
            await_no_tasks(client)
            assert raised.tb is not None  # kept until here, and with it what was on its way
    finally:
        signal.signal(signal.SIGINT, before)


def run_script(text, folder, **given):
    """Run a program that works on a cluster; what it printed."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(text).format(**given))
    done = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


LARGE = """
    import os, resource, time, numpy as np
    from hushed._functions._trials import run_trials

    class Large:
        def __init__(self, content, path):
            self.content, self.path = content, path
        def __reduce__(self):
            return load, (self.content, self.path)

    def load(content, path):
        with open(path, "a") as file:
            file.write(str(os.getpid()) + " ")
        return Large(content, path)

    def draws(generators):
        time.sleep(0.02)
        return np.array([g.random(2) for g in generators])

    def used():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    run_trials(draws, 10, seed=1, workers={address!r})
    table = Large(np.ones(6_250_000), {path!r})
    before = used()
    found = run_trials(lambda g: draws(g) * table.content[0], 60, seed=1, workers={address!r})
    print(used() - before, found.sum())
"""


def test_a_large_closure_is_loaded_once_by_each_worker(shared, tmp_path):
    """Fifty megabytes travel as one task, not with every span: below 150 MB are used here."""
    loads = tmp_path / "loads"
    said = run_script(LARGE, tmp_path, address=shared.address, path=str(loads))
    grown, total = map(float, said.split())
    assert grown < 150
    assert total == pytest.approx(run_trials(draws, 60, seed=1, workers=1).sum(), abs=1e-9)
    loaded = loads.read_text().split()
    assert 1 <= len(loaded) <= 3
    assert len(set(loaded)) == len(loaded)


def strike_at(count, *acts):
    """Make a report of progress that acts once so many trials are done."""
    told, left = [0], list(acts)

    def report(number):
        told[0] += number
        if told[0] >= count:
            while left:
                left.pop(0)()

    return report


def patient(cluster):
    """Give an engine that waits for what starts anew, on a busy machine too."""
    return hs.engines.Dask(cluster.address, patience=120)


def test_a_killed_worker_is_made_up_for(shared):
    """The others run what it had, with the same bits."""
    report = strike_at(10, lambda: kill(shared.workers.pop()), shared.replace)
    found = run_trials(timed(0.05), 90, seed=3, workers=shared.address, report=report)
    assert np.array_equal(found, run_trials(draws, 90, seed=3, workers=1))


def test_killed_workers_are_made_up_for_by_new_ones(cluster):
    """All that hold the work are gone, and one comes that has never seen it."""
    acts = [lambda each=each: kill(each) for each in cluster.workers]
    report, engine = strike_at(10, *acts, cluster.add), patient(cluster)
    found = run_trials(timed(0.05), 60, seed=3, workers=engine, report=report)
    engine.close()
    assert np.array_equal(found, run_trials(draws, 60, seed=3, workers=1))


def test_a_worker_that_stands_still_does_not_make_others_wait(cluster, tmp_path):
    """The run ends while it still holds its trials: the other one has run them."""
    stuck, went_on, parent = tmp_path / "stuck", tmp_path / "went_on", os.getpid()

    def stop_one(generators):
        with contextlib.suppress(FileExistsError):
            if os.getpid() != parent:
                stuck.touch(exist_ok=False)
                time.sleep(100)
                went_on.touch()
        time.sleep(0.02)
        return draws(generators)

    found = run_trials(stop_one, 100, seed=3, workers=cluster.address)
    assert stuck.exists()
    assert not went_on.exists()
    assert np.array_equal(found, run_trials(draws, 100, seed=3, workers=1))


class Wire:
    """Forwards connections to a port until it is cut; then it takes bytes, and gives none."""

    def __init__(self, find_port):
        self.find_port, self.cut = find_port, threading.Event()
        self.open = [socket.create_server(("127.0.0.1", 0))]
        self.address = f"tcp://127.0.0.1:{self.open[0].getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.open[0].accept()[0]
                far = socket.create_connection(("127.0.0.1", self.find_port()))
                self.open += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self.forward, args=pair, daemon=True).start()

    def forward(self, source, target):
        with contextlib.suppress(OSError):
            while content := source.recv(65536):
                if not self.cut.is_set():
                    target.sendall(content)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        for each in self.open:
            with contextlib.suppress(OSError):  # of one that the other side has closed
                each.shutdown(socket.SHUT_RDWR)  # else a thread that reads keeps it open
            each.close()


@pytest.fixture
def half_cut(tmp_path):
    """Give a cluster with one more worker, and what cuts that one off the network."""
    cluster = Cluster(tmp_path, workers=1)
    cluster.await_workers(1)
    number = len(cluster.parts)

    def find_worker():
        import psutil

        said = (cluster.folder / f"worker-{number}.log").read_text()
        told = re.findall(r"dashboard at: *127.0.0.1:(\d+)", said)
        found = psutil.Process(cluster.parts[number].pid).net_connections("tcp")
        ports = {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}
        (port,) = ports - set(map(int, told))
        return port

    wires = [Wire(lambda: int(cluster.address.rpartition(":")[2])), Wire(find_worker)]
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.close)
        listens = ("--listen-address", "tcp://127.0.0.1:0")
        reached = ("--contact-address", wires[1].address)
        named = {"nanny": False, "at": wires[0].address, "host": False}
        stack.enter_context(cluster.joined(*listens, *reached, **named))
        for each in wires:
            stack.callback(each.close)
        cluster.joined_address = wires[1].address
        yield cluster, lambda: [each.cut.set() for each in wires]


def call_within(seconds, function, *given, **named):
    """Call something that must not wait for ever, in a thread that may be left behind."""
    told = queue.SimpleQueue()

    def call():
        try:
            told.put((function(*given, **named), None))
        except BaseException as error:
            told.put((None, error))

    threading.Thread(target=call, daemon=True).start()
    try:
        found, error = told.get(timeout=seconds)
    except queue.Empty:
        pytest.fail(f"it still waits after {seconds} seconds")
    if error is not None:
        raise error
    return found


def test_a_worker_that_is_cut_off_the_network_is_made_up_for(half_cut):
    """Alive, but no byte comes through: what it had runs elsewhere, with the same bits."""
    cluster, cut = half_cut
    asked = {"seed": 3, "workers": cluster.address, "report": strike_at(20, cut)}
    found = call_within(180, run_trials, timed(0.05), 120, **asked)
    assert cluster.parts[-1].poll() is None
    assert np.array_equal(found, run_trials(draws, 120, seed=3, workers=1))


def test_what_is_sent_again_goes_to_workers_that_were_heard_of(half_cut):
    """The one that is cut off looks idle to the scheduler, and would get half of it."""
    from distributed import Client

    cluster, cut = half_cut
    with Client(cluster.address.replace("dask", "tcp"), set_as_default=False) as client:
        run = _dask._Run(client, Task(b"", "no work: an error is an answer, too", 3))
        cut()
        await_silence(client)
        for start in range(6):
            run.submit((start, start + 1), again=True)
        done = {run.ready.get(timeout=90).key for _ in range(6)}
        assert done == set(run.sent)
        run.cancel()


def test_what_all_wait_for_is_sent_again_if_a_silent_worker_alone_has_it(half_cut):
    """The others wait for it for minutes; nothing is done, so that nothing would be overdue."""
    from distributed import Client

    cluster, cut = half_cut
    with Client(cluster.address.replace("dask", "tcp"), set_as_default=False) as client:
        (behind,) = [each for each in client.nthreads() if each == cluster.joined_address]
        run = _dask._Run(client, Task(b"", "no work: an error is an answer, too", 3))
        run._send_common([behind])
        for each in run.common:
            each.result(timeout=60)
        run.free()
        assert not run.sent  # nobody is silent
        cut()
        await_silence(client)
        spans = [(start, start + 1) for start in range(4)]
        for each in spans:
            run.submit(each)
        time.sleep(2)
        assert run.ready.empty()
        run.free()
        asked = set(run.sent)
        run.free()
        assert set(run.sent) == asked  # once
        done = {run.sent[run.ready.get(timeout=90).key][1] for _ in spans}
        assert done == set(spans)
        run.cancel()


def await_silence(client):
    """Wait until the others were heard of for six seconds in which one was not."""

    def find_silence():
        told = client.sync(client.scheduler.identity, n_workers=-1)["workers"].values()
        seen = [each["last_seen"] for each in told]
        return max(seen) - min(seen)

    end = time.monotonic() + 120
    while find_silence() < 6 and time.monotonic() < end:
        time.sleep(0.2)
    assert find_silence() >= 6


def test_a_worker_that_does_not_answer_is_named(half_cut, monkeypatch):
    """Cut off before the run, it would be waited for without end."""
    from distributed import Client

    cluster, cut = half_cut
    monkeypatch.setattr(_dask, "_LOOK_SECONDS", 5.0)  # the other one answers, on a busy machine too
    silent = r"did not answer for 2 seconds: tcp://[^,]*\. "
    with Client(cluster.address.replace("dask", "tcp"), set_as_default=False) as client:
        cut()
        engine = hs.engines.Dask(client, patience=2)
        with pytest.raises(EngineUnavailable, match=silent):
            call_within(90, run_trials, draws, 20, seed=3, workers=engine)


def test_a_span_that_takes_longer_than_the_patience_is_waited_for(shared):
    """Patience is for a cluster without workers; one that works is not given up."""
    shared.await_workers(3)
    here, engine = os.getpid(), hs.engines.Dask(shared.address)

    def long(generators, seconds=4):
        time.sleep(seconds if os.getpid() != here else 0)
        return draws(generators)

    run_trials(functools.partial(long, seconds=0), 6, seed=3, workers=engine)
    known, engine._patience = set(engine._known), 2.0  # nobody is asked who he is, and has to hurry
    found = run_trials(long, 6, seed=3, workers=engine)
    assert engine._known == known
    engine.close()
    assert np.array_equal(found, run_trials(draws, 6, seed=3, workers=1))


def test_a_result_that_cannot_be_fetched_is_made_again(shared, monkeypatch):
    """Its worker was cut off after it had told that it is done."""
    from distributed import Future

    fetch, failed = Future.result, []

    def fail_once(future, timeout=None):
        if not failed:
            failed.append(timeout)
            raise TimeoutError
        return fetch(future, timeout)

    monkeypatch.setattr(Future, "result", fail_once)
    found = run_trials(draws, 60, seed=3, workers=shared.address)
    assert failed == [30.0]
    assert np.array_equal(found, run_trials(draws, 60, seed=3, workers=1))


def test_a_function_that_ends_its_workers_is_given_up(shared):
    """The error names the trials, and the cluster serves the next run."""
    parent = os.getpid()

    def deadly(generators):
        if os.getpid() != parent:
            os._exit(1)
        return draws(generators)

    engine = patient(shared)
    with pytest.raises(WorkerLost, match=r"at trials \d+ to \d+"):
        run_trials(deadly, 100, seed=3, workers=engine)
    again = run_trials(draws, 20, seed=3, workers=engine)
    engine.close()
    assert np.array_equal(again, run_trials(draws, 20, seed=3, workers=1))


def test_what_was_kept_before_the_scheduler_was_lost_is_not_run_again(cluster, shared, tmp_path):
    """The error says what is kept; on a new cluster the rest runs alone."""
    calls, folder, go_on = tmp_path / "calls", tmp_path / "kept", tmp_path / "go_on"
    asked = {"rows": 5, "pairs": 150, "calibration": "marginal"}

    def slow_mean(rows):
        with calls.open("a") as file:
            file.write(f"{rows.tobytes().hex()}\n")
        time.sleep(0.02 if go_on.exists() else 0.2)
        return rows.mean()

    def strike():
        while sum(run.kept for run in hs.runs.list_runs(folder)) < 10:
            time.sleep(0.05)
        kill(cluster.scheduler)

    watching = threading.Thread(target=strike, daemon=True)
    watching.start()
    lost = r"lost the Dask scheduler.*of 150 trials were done; the same call does not run again"
    with pytest.raises(EngineUnavailable, match=lost):
        hs.sample_sensitivity(slow_mean, UNIT, workers=cluster.address, keep=folder, **asked)
    watching.join()
    kept = hs.runs.list_runs(folder)[0].kept
    assert 10 <= kept < 150
    cluster.close()  # workers that still work, for nobody
    calls.write_text("")
    go_on.touch()
    found = hs.sample_sensitivity(slow_mean, UNIT, workers=shared.address, keep=folder, **asked)
    tables = set(calls.read_text().split())  # each once, by whatever number of workers
    checks = 20  # tables of the declarations, of what is kept, and of the first trials
    assert 2 * (150 - kept) <= len(tables) <= 2 * (150 - kept) + checks
    plain = hs.sample_sensitivity(lambda rows: rows.mean(), UNIT, workers=1, **asked)
    assert np.array_equal(found.draws, plain.draws)


def test_a_worker_without_the_package_is_refused(shared, tmp_path):
    """Before any of the work is sent, with the line that mends it; the worker lives on."""
    (tmp_path / "hushed").mkdir()
    (tmp_path / "hushed" / "__init__.py").write_text("raise ImportError('not here')\n")
    with shared.joined(nanny=False, PYTHONPATH=str(tmp_path)) as worker:
        with pytest.raises(EngineUnavailable, match=r"worker tcp://.*not here"):
            run_trials(draws, 20, seed=3, workers=shared.address)
        assert worker.poll() is None


def test_other_versions_of_what_the_work_does_not_need_are_no_error(shared, tmp_path):
    """Dask warns of them, and here a warning is an error; hushed compares what matters."""
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib import metadata\n"
        "told = metadata.version\n"
        "metadata.version = lambda name: '1.0' if name == 'tornado' else told(name)\n"
    )
    with (
        shared.joined(nanny=False, PYTHONPATH=os.pathsep.join((str(tmp_path), SOURCE))),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        found = run_trials(draws, 20, seed=3, workers=shared.address)
    assert np.array_equal(found, run_trials(draws, 20, seed=3, workers=1))


def test_a_cluster_without_workers_is_not_waited_for(tmp_path):
    """After the time that was granted the error says how to start some."""
    from distributed import Client

    cluster = Cluster(tmp_path, workers=0)
    try:
        with Client(cluster.address.replace("dask", "tcp"), set_as_default=False) as client:
            engine = hs.engines.Dask(client, patience=1)
            with pytest.raises(EngineUnavailable, match="no worker for 1 seconds"):
                call_within(60, run_trials, draws, 20, seed=3, workers=engine)
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

        def squared(rows):
            return rows @ rows

        asked = {"rows": 30_001, "pairs": 40}
        with pytest.warns(UserWarning, match="trials ran where it rounds otherwise"):
            s = hs.sample_sensitivity(squared, UNIT, workers=engine, **asked)
        engine.close()
        known = certify(hs.Laplace(s, epsilon=1.0), values=1)
        assert 35 <= sum(known.sampling.elsewhere.values()) < 40  # the first few ran here
        judged = hs.verify(known, squared, workers=1)
        assert judged.agreement == "rounding"
        assert "blas of numpy" in judged.explain()
        here = run_trials(product, 40, seed=3, workers=1)
        assert np.allclose(found, here, rtol=1e-12)
        assert not np.array_equal(found, here)
    finally:
        cluster.close()


SCRIPT = """
    import contextlib, time, hushed as hs
    from hushed.sensitivity import _sampler
    def slow(rows):
        time.sleep(0.05)
        return float(rows.mean())
    @contextlib.contextmanager
    def tell(*given, **named):
        yield lambda count: print(count, flush=True)
    _sampler.show_progress = tell
    people = hs.populations.Uniform(low=0, high=1)
    hs.sample_sensitivity(slow, people, rows=5, pairs=5000, workers={address!r}, keep={kept!r})
"""


def test_ctrl_c_leaves_nothing_on_the_scheduler_and_keeps_what_was_told(shared, tmp_path):
    """An interrupt ends the run; the cluster has no task of it, the journal all of its progress."""
    from distributed import Client

    script, kept = tmp_path / "script.py", tmp_path / "kept"
    script.write_text(textwrap.dedent(SCRIPT.format(address=shared.address, kept=str(kept))))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            told = [int(process.stdout.readline()) for _ in range(12)]
            process.send_signal(signal.SIGINT)
            rest, err = process.communicate(timeout=120)  # the trials that are left take minutes
        finally:
            process.kill()  # else its tasks stay in the way of other tests
    assert "KeyboardInterrupt" in err
    (run,) = hs.runs.list_runs(kept)
    assert sum(told) + sum(map(int, rest.split())) <= run.kept < 5000
    assert f"{run.kept:,} of 5,000 trials are kept in {kept}" in err
    with Client(shared.address.replace("dask", "tcp"), set_as_default=False) as client:
        await_no_tasks(client)


def test_a_command_that_is_ended_by_the_system_says_what_is_kept(shared, tmp_path):
    """SIGTERM, as of a queue: nothing is left on the scheduler, and the same call goes on."""
    from distributed import Client

    code, said, kept = stop_command(tmp_path, shared.address, signal.SIGTERM)
    assert code == 130, said[-2000:]
    assert f"{kept[0]} of 400 trials are kept in" in said
    assert 10 < kept[0] < 400
    with Client(shared.address.replace("dask", "tcp"), set_as_default=False) as client:
        await_no_tasks(client)
    assert resume_command(tmp_path) > kept[0]  # each trial that is kept saves two calls


def await_no_tasks(client):
    """Wait until the scheduler holds nothing of ours: what takes a minute is left behind."""

    def count_tasks(dask_scheduler):
        return sum(str(key).startswith("hushed") for key in dask_scheduler.tasks)

    end = time.monotonic() + 60
    while client.run_on_scheduler(count_tasks) and time.monotonic() < end:
        time.sleep(0.1)
    assert client.run_on_scheduler(count_tasks) == 0
