"""Trials give the same answer however they are run, and survive what workers do."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest

import hushed as hs
from hushed._functions import _trials
from hushed._functions._streams import streams
from hushed._functions._trials import run_trials, seed_from
from hushed.errors import BadFunction, ParameterError, WorkerLost

SOURCE = Path(hs.__file__).parents[1]
UNIT = hs.populations.Uniform(low=0, high=1)


def draws(generators):
    return np.array([g.random(3) for g in generators])


def slow_draws(generators):
    """Slow enough that the trials leave this process."""
    found = []
    for g in generators:
        time.sleep(0.02)
        found.append([g.random(), os.getpid()])
    return np.array(found)


def test_each_trial_depends_on_seed_and_number_alone():
    """A run in pieces, from any start, is the run in one go."""
    whole = run_trials(draws, 100, seed=5, workers=1)
    pieces = [
        run_trials(draws, n, seed=5, first=a, workers=1) for a, n in ((0, 1), (1, 40), (41, 59))
    ]
    assert np.array_equal(whole, np.concatenate(pieces))
    assert not np.array_equal(whole, run_trials(draws, 100, seed=6, workers=1))
    each = [g.random(3) for g in streams(5, 41, 44)]
    assert np.array_equal(whole[41:44], each)


def test_what_a_trial_spawns_follows_from_its_number_alone():
    """NumPy counts what was spawned beside the state: a run in pieces would repeat the first."""

    def spawned(generators):
        return np.array(
            [[c.random() for c in g.spawn(1 + i % 3)][:1] for i, g in enumerate(generators)]
        )

    whole = run_trials(spawned, 40, seed=5, workers=1)
    pieces = [run_trials(spawned, 1, seed=5, first=n, workers=1) for n in range(40)]
    assert np.array_equal(whole, np.concatenate(pieces))
    assert len(np.unique(whole)) == 40
    two = next(streams(5, 3, 4))
    first, second, third = [*two.spawn(2), *two.spawn(1)]
    assert len({first.random(), second.random(), third.random(), two.random()}) == 4


def test_a_half_used_generator_leaves_no_trace():
    """What one trial draws, 32-bit halves included, does not move the next."""

    def greedy(generators):
        return np.array(
            [
                (g.integers(2**32, dtype=np.uint32, size=1 + i % 3)[0])
                for i, g in enumerate(generators)
            ]
        )

    def modest(generators):
        return np.array([g.integers(2**32, dtype=np.uint32, size=1)[0] for g in generators])

    assert np.array_equal(
        run_trials(greedy, 9, seed=1, workers=1), run_trials(modest, 9, seed=1, workers=1)
    )


def test_streams_are_uncorrelated():
    """Numbers at the same place in neighbouring streams behave as independent (5 sigma)."""
    table = run_trials(draws, 4000, seed=0, workers=1) - 0.5
    for lag in (1, 2, 64):
        product = 12 * (table[lag:] * table[:-lag]).mean()
        assert abs(product) < 5 / np.sqrt(table[lag:].size)


@pytest.mark.slow
def test_workers_do_not_change_results():
    """Three processes, really used, give what one gives; two do in the tests below."""
    alone = run_trials(slow_draws, 24, seed=5, workers=1)
    spread = run_trials(slow_draws, 24, seed=5, workers=3)
    assert np.array_equal(alone[:, 0], spread[:, 0])
    assert len(set(alone[:, 1])) == 1
    assert len(set(spread[:, 1]) - {os.getpid()}) >= 1


@pytest.mark.slow
def test_by_default_all_cores_do_what_takes_long(monkeypatch):
    """What is worth no worker stays in this process; the rest goes to one for each core."""
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    for worth, elsewhere in ((1e9, False), (0.0, True)):
        monkeypatch.setattr("hushed._functions._trials._WORTH_WORKERS_SECONDS", worth)
        found = run_trials(slow_draws, 24, seed=5)
        assert bool(set(found[:, 1]) - {os.getpid()}) is elsewhere
        assert np.array_equal(found[:, 0], run_trials(draws, 24, seed=5, workers=1)[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [0.001, 0.06, 1.0])
def test_chunks_do_not_change_results(chunk, monkeypatch):
    """Chunks of one trial, of a few, or of all, give the same."""
    monkeypatch.setattr("hushed._functions._trials._CHUNK_SECONDS", chunk)
    spread = run_trials(slow_draws, 24, seed=5, workers=2)
    assert np.array_equal(spread[:, 0], run_trials(draws, 24, seed=5, workers=1)[:, 0])


@pytest.mark.slow
def test_the_callers_backend_is_used():
    """Within joblib.parallel_config threads do the work, and the results stay."""
    import threading

    seen = set()

    def noting(generators):
        seen.add(threading.get_ident())
        return slow_draws(generators)

    expected = run_trials(draws, 24, seed=5, workers=1)[:, 0]
    with joblib.parallel_config("sequential"):
        assert np.array_equal(run_trials(slow_draws, 8, seed=5)[:, 0], expected[:8])
    with joblib.parallel_config("threading", n_jobs=2):
        found = run_trials(slow_draws, 24, seed=5)
        assert set(found[:, 1]) == {os.getpid()}
        assert np.array_equal(found[:, 0], expected)
        s = hs.sample_sensitivity(slow_mean, UNIT, rows=10, pairs=30, calibration="marginal")
    assert (
        s.value
        == hs.sample_sensitivity(np.mean, UNIT, rows=10, pairs=30, calibration="marginal").value
    )


@pytest.mark.slow
def test_seeded_functions_do_not_disturb_each_other_in_threads():
    """hs.fixed_seed gives the same in threads, although the generators are global."""

    def random_weight(rows):
        first = np.random.rand()
        time.sleep(0.005)
        return rows.mean() * (first + np.random.rand())

    steady = hs.fixed_seed(random_weight)
    settings = {"rows": 10, "pairs": 40, "calibration": "marginal"}
    expected = hs.sample_sensitivity(steady, UNIT, workers=1, **settings)
    with joblib.parallel_config("threading", n_jobs=2):
        found = hs.sample_sensitivity(steady, UNIT, **settings)
    assert np.array_equal(found.draws, expected.draws)


def slow_mean(rows):
    time.sleep(0.01)
    return np.mean(rows)


def test_what_is_slow_to_keep_is_kept_in_few_pieces(monkeypatch):
    """The time that keeping takes does not make the next piece of work a small one."""
    told, clock = [], [0.0]

    def keep(count):
        told.append(count)
        clock[0] += 1.0

    monkeypatch.setattr(_trials, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    run_trials(draws, 63, seed=1, workers=1, report=keep)
    assert told == [1, 2, 4, 8, 16, 32]


def test_progress_is_told_once_for_each_trial():
    """The numbers told add up, here and with workers."""
    for evaluate, workers in ((draws, 1), (slow_draws, 2)):
        told = []
        run_trials(evaluate, 20, seed=1, workers=workers, report=told.append)
        assert sum(told) == 20
        assert min(told) > 0


def test_seeds():
    """Integers stay, a generator gives 128 bits of its own, None something fresh, text nothing."""
    assert seed_from(7) == seed_from(np.int64(7)) == 7
    assert seed_from(2**200) == 2**200
    rng = np.random.default_rng(1)
    one, two = seed_from(rng), seed_from(rng)
    assert one != two
    assert one == seed_from(np.random.default_rng(1))
    assert seed_from(None) != seed_from(None)
    for bad in (-1, 1.5, "1", True, np.random.RandomState(1), float("nan")):
        with pytest.raises(ParameterError, match="seed"):
            seed_from(bad)


def test_a_generator_seeds_like_its_recorded_integer():
    """The seed in the record repeats a run that was seeded by a generator."""
    s = hs.sample_sensitivity(np.mean, UNIT, rows=10, seed=np.random.default_rng(3))
    again = hs.sample_sensitivity(np.mean, UNIT, rows=10, seed=s.sampling.seed)
    assert np.array_equal(s.draws, again.draws)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2"])
def test_workers_out_of_range_are_refused(workers):
    """No workers, minus one or one and a half is a parameter error."""
    with pytest.raises(ParameterError, match="workers"):
        run_trials(draws, 3, seed=1, workers=workers)


def test_no_trials_give_nothing():
    """Zero trials are no error."""
    assert run_trials(draws, 0, seed=1, workers=1).size == 0


@pytest.mark.slow
def test_a_worker_that_dies_once_is_replaced(tmp_path):
    """The trials it took with it are run again, and the answer is the same."""
    marker, parent = tmp_path / "died", os.getpid()

    def fragile(generators):
        if os.getpid() != parent and not marker.exists():
            marker.touch()
            os._exit(1)
        return slow_draws(generators)

    found = run_trials(fragile, 24, seed=5, workers=2)
    assert marker.exists()
    assert np.array_equal(found[:, 0], run_trials(draws, 24, seed=5, workers=1)[:, 0])


@pytest.mark.slow
def test_workers_that_always_die_are_given_up():
    """After three attempts the error names the trials and what to try."""
    parent = os.getpid()

    def deadly(generators):
        if os.getpid() != parent:
            os._exit(1)
        return slow_draws(generators)

    with pytest.raises(WorkerLost, match=r"3 times at trials .*workers=1"):
        run_trials(deadly, 24, seed=5, workers=2)
    assert run_trials(slow_draws, 12, seed=5, workers=2).shape == (12, 2)


@pytest.mark.slow
def test_a_failure_in_a_worker_comes_back_as_it_would_here():
    """An exception raised in another process is the same clear BadFunction."""
    parent = os.getpid()

    def fails_elsewhere(rows):
        time.sleep(0.01)
        if os.getpid() != parent and rows[0] < 0.5:  # not on the first table
            raise OddError(1, b=2)
        return rows.mean()

    with pytest.raises(BadFunction, match=r"raised OddError on public rows: odd 1 and 2"):
        hs.sample_sensitivity(fails_elsewhere, UNIT, rows=10, pairs=60, workers=2)


class OddError(Exception):
    """An exception that the standard pickle cannot rebuild."""

    def __init__(self, a, *, b):
        super().__init__(f"odd {a} and {b}")


@pytest.mark.slow
def test_what_cannot_be_sent_is_refused(tmp_path):
    """A lock or an open file in a closure is a clear error, and no matter in one process."""
    import threading

    lock = threading.Lock()
    with (tmp_path / "log").open("w") as stream:
        for held in (lock, stream):

            def holding(rows, held=held):
                time.sleep(0.01)
                return rows.mean() + 0 * bool(held)

            with pytest.raises(BadFunction, match="cannot be sent to worker processes"):
                hs.sample_sensitivity(holding, UNIT, rows=10, pairs=60, workers=2)
            assert (
                hs.sample_sensitivity(
                    holding, UNIT, rows=10, pairs=4, calibration="marginal", workers=1
                ).value
                > 0
            )


@pytest.mark.slow
def test_lambdas_closures_and_notebook_functions_go_to_workers():
    """What the standard pickle cannot send is sent all the same."""
    factor = 2.0
    notebook = {"__name__": "__main__"}
    exec(  # what a notebook cell does
        "import numpy as np, time\nFACTOR = 2.0\n"
        "def f(rows):\n    time.sleep(0.01)\n    return FACTOR * np.mean(rows)\n",
        notebook,
    )

    def closure(rows):
        time.sleep(0.01)
        return factor * np.mean(rows)

    settings = {"rows": 10, "pairs": 30, "calibration": "marginal"}
    expected = hs.sample_sensitivity(lambda rows: 2.0 * np.mean(rows), UNIT, workers=1, **settings)
    for function in (closure, notebook["f"], lambda rows: closure(rows) + 0.0):
        found = hs.sample_sensitivity(function, UNIT, workers=2, **settings)
        assert np.array_equal(found.draws, expected.draws)


SCRIPT = """
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    import os, time
    import numpy as np
    import hushed as hs
    FACTOR = 3.0
    def f(rows):
        time.sleep({pause})
        {extra}
        return FACTOR * rows.mean()
    s = hs.sample_sensitivity(
        f, hs.populations.Uniform(low=0, high=1), rows=10, pairs={pairs},
        calibration="marginal", workers={workers},
    )
    print(repr(s.value))
"""


def start(tmp_path, **parts):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT.format(**({"extra": "pass"} | parts))))
    return subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )


@pytest.mark.slow
def test_functions_of_a_script_go_to_workers(tmp_path):
    """A function defined in __main__, with a global, gives the same in two workers as here."""
    out, err = start(tmp_path, pause=0.01, pairs=40, workers=2).communicate(timeout=240)
    f = lambda rows: 3.0 * rows.mean()  # noqa: E731
    s = hs.sample_sensitivity(f, UNIT, rows=10, pairs=40, calibration="marginal", workers=1)
    assert out.strip() == repr(s.value), err


def living(group):
    """Processes of a session that are not zombies."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == group and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_stops_cleanly(tmp_path):
    """An interrupt ends the run, which has minutes to go, and leaves no process behind."""
    extra = "open(f'seen-{os.getpid()}', 'a').close()"
    process = start(tmp_path, pause=0.4, pairs=1000, workers=2, extra=extra)
    deadline = time.monotonic() + 240
    while len(list(tmp_path.glob("seen-*"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(list(tmp_path.glob("seen-*"))) >= 3, "the workers never started"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    deadline = time.monotonic() + 240
    while living(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert living(process.pid) == []


class Drawer:
    """Keeps results in memory, as a journal does in a file."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def spans(self, first, stop):
        return ((first, values, "") for first, values in self.pieces)

    def add(self, first, values, note=""):
        self.pieces.append((first, values.copy()))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_kept_is_not_run_again(workers):
    """Kept pieces that overlap, or reach beyond the run, leave gaps; only these run."""
    expected = run_trials(draws, 60, seed=5, workers=1)
    whole = run_trials(slow_draws, 60, seed=5, first=0, workers=1)[:, :1]
    drawer = Drawer(*((a, whole[a:b]) for a, b in ((0, 12), (10, 15), (30, 45), (58, 60))))

    def first_column(generators):
        return slow_draws(generators)[:, :1]

    told = []
    kept = len(drawer.pieces)
    found = run_trials(
        first_column, 40, first=10, seed=5, workers=workers, report=told.append, kept=drawer
    )
    assert np.array_equal(found[:, 0], expected[10:50, 0])
    new = sorted(n for a, values in drawer.pieces[kept:] for n in range(a, a + len(values)))
    assert new == [*range(15, 30), *range(45, 50)]
    assert told[0] == 20
    assert sum(told) == 40


def test_a_run_that_was_kept_whole_runs_nothing():
    """The results come from what is kept, and the function is not called."""

    def never(generators):
        raise AssertionError

    whole = run_trials(draws, 30, seed=5, workers=1)
    drawer = Drawer((0, whole[:20]), (20, whole[20:]))
    assert np.array_equal(run_trials(never, 30, seed=5, kept=drawer), whole)


class Remembering:
    """An object that keeps the rows it works on, as a model does while it is fitted."""

    def __call__(self, rows):
        """Look at them twice, with time for another thread in between."""
        self.rows = rows
        time.sleep(0.002)
        return float(self.rows.max() + rows.mean())


@pytest.mark.slow
def test_threads_do_not_work_on_the_rows_of_each_other():
    """One object is the function of all threads of a process, where loky has one for each."""
    expected = hs.sample_sensitivity(Remembering(), UNIT, rows=10, pairs=60, workers=1)
    with joblib.parallel_config("threading", n_jobs=4):
        found = hs.sample_sensitivity(Remembering(), UNIT, rows=10, pairs=60)
    assert np.array_equal(found.draws, expected.draws)


@pytest.mark.slow
def test_a_function_that_samples_in_threads_waits_for_nobody():
    """Its own threads would wait for the one that runs it, and that one for them."""

    def nested(rows):
        def shifted(others):
            return others.max() + rows[0]

        return hs.sample_sensitivity(shifted, UNIT, rows=5, pairs=3, workers=2).value + rows.max()

    settings = {"rows": 10, "pairs": 12, "calibration": "marginal"}
    with joblib.parallel_config("threading", n_jobs=2):
        found = hs.sample_sensitivity(nested, UNIT, workers=2, **settings)
    expected = hs.sample_sensitivity(nested, UNIT, workers=1, **settings)
    assert np.array_equal(found.draws, expected.draws)
