"""Isolated calls share nothing: what one part does moves the answer of no other, and shows nowhere.

The functions are local, so that they reach the fresh processes by value.
"""

import contextlib
import importlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from hushed._functions._isolation import Isolation, Limits, call_isolated
from hushed.errors import BadFunction

SMALL = Limits(cpu_seconds=0.4, idle_seconds=0.4, memory=200 * 2**20, disk=2**20)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Give the folder in which temporary files are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def alive(process):
    """Whether a process runs; one that only waits to be collected does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def soon(condition, seconds=20):
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def leave_traces():
    """Give a function that leaves a trace wherever it can, and counts those that it finds."""
    memory, kept = [], {}

    def traces(rows):
        import decimal
        import json
        import tempfile

        found = [
            bool(memory),
            bool(kept),
            hasattr(json, "trace"),
            hasattr(decimal.Decimal, "__trace__") or decimal.getcontext().prec == 7,
            "HUSHED_TRACE" in os.environ,
            os.path.exists("trace"),
            os.path.exists(os.path.join(tempfile.gettempdir(), "trace")),
            os.path.exists(os.path.expanduser("~/.trace-of-hushed")),
            np.geterr()["divide"] == "raise",
            np.random.random() != np.random.RandomState(5).random_sample(),
            random.random() != random.Random(5).random(),
            signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN,
            os.umask(0o077) == 0o070,
            len(os.listdir("/proc/self/fd")) > 20,
        ]
        memory.append(rows)
        kept[0] = json.trace = rows
        decimal.getcontext().prec = 7
        os.environ["HUSHED_TRACE"] = "1"
        places = "trace", os.path.join(tempfile.gettempdir(), "trace")
        for place in (*places, os.path.expanduser("~/.trace-of-hushed")):
            with open(place, "w") as file:
                file.write("1")
        np.seterr(divide="raise")
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        os.umask(0o070)
        kept["files"] = [open(os.devnull) for _ in range(20)]  # noqa: SIM115
        return found

    return traces


@pytest.mark.slow
def test_nothing_is_kept_from_one_call_to_the_next(folder):
    """A function finds none of the traces that it left in an earlier call, in whatever place."""
    found = call_isolated(
        leave_traces(), [np.zeros(2), np.zeros(2)], shape=(14,), seeds=[5, 5], workers=1
    )
    assert found.tolist() == [[0.0] * 14] * 2
    assert os.listdir(folder) == []


def test_no_call_starts_calls_of_its_own():
    """A file that released blocks as it was imported started processes without end."""

    def nested(rows):
        from hushed._functions._isolation import call_isolated

        return call_isolated(lambda part: part.sum(), [rows])[0]

    assert np.isnan(call_isolated(nested, [np.ones(2)])).all()


@pytest.mark.slow
def test_a_file_that_releases_blocks_as_it_is_imported_is_refused(folder, monkeypatch):
    """Its function is loaded by importing it again, and the refusal says what to do."""
    (folder / "releases_at_once.py").write_text(
        "import numpy as np\nimport hushed as hs\n\n\ndef f(rows):\n    return rows.mean()\n\n\n"
        "hs.release(f, np.zeros(80), hs.Blocks(low=0, high=1, epsilon=2, aggregate='mean'))\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(BadFunction, match="__main__"):
        importlib.import_module("releases_at_once")


@pytest.mark.slow
def test_the_traces_would_be_found_in_one_process():
    """In a process of its own, called twice, the same function finds all of them."""
    text = f"""
        import os, random, signal, sys
        import numpy as np
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        os.environ["HOME"] = os.getcwd()
        from test_isolated_calls import leave_traces
        np.random.seed(5), random.seed(5)
        traces = leave_traces()
        print(sum(traces(0)), sum(traces(0)))
    """
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text)],
            cwd=place,
            env={**os.environ, "TMPDIR": place},
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.split() == ["0", "14"]


def fail(rows):
    """Fail in the way that the first row says; 10 and above do not."""
    way = int(rows[0])
    if way == 1:
        raise ValueError(rows)
    if way == 2:
        sys.exit(0)
    if way == 3:
        os._exit(0)
    if way == 4:
        os.kill(os.getpid(), signal.SIGSEGV)
    if way == 5:
        os.kill(os.getpid(), signal.SIGSTOP)
    if way == 6:
        print("heard", rows, flush=True)
        print("heard", rows, file=sys.stderr, flush=True)
    answers = {6: [1.0, 2.0], 7: float("nan"), 8: float("inf"), 9: "1"}
    return answers.get(way, 2.0 * way)


def use_up(rows):
    """Use up what the first row says; 5 and above do not."""
    way = int(rows[0])
    if way == 1:
        while True:
            pass
    if way == 2:
        time.sleep(60)
    if way == 3:
        return float(len(bytearray(300 * 2**20)))
    if way == 4:
        for _ in range(8):
            with open("file", "wb") as file:
                file.write(bytes(2**18))
    return 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "ways", [(1, 3, 4, 6), pytest.param((2, 5, 7, 8, 9), marks=pytest.mark.slow)]
)
def test_every_failure_is_nan_for_its_part_alone(by_value, folder, capfd, ways):
    """Whatever way a call fails, its answer is NaN, the others have theirs, nothing is heard."""
    parts = [[way] for way in (11, *ways, 12)]
    answers = call_isolated(fail, parts, limits=SMALL)
    assert answers[[0, -1]].tolist() == [22.0, 24.0]
    assert np.isnan(answers[1:-1]).all()
    assert capfd.readouterr() == ("", "")
    assert os.listdir(folder) == []


@pytest.mark.slow
def test_a_call_that_uses_up_its_limit_fails_alone(by_value):
    """Processor time, sleep, memory, files: each has an end, beside calls that have answers."""
    answers = call_isolated(use_up, [[way] for way in (5, 1, 2, 3, 4, 6)], limits=SMALL)
    assert np.isnan(answers).tolist() == [False, True, True, True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("way", [1, 2, 3, 4])
def test_what_one_limit_allows_another_does_not_stop(by_value, way):
    """With one limit above what is used, the call that used it up before has an answer."""
    name, enough = {
        2: ("idle_seconds", 70.0),
        3: ("memory", 2**30),
        4: ("disk", 2**23),
    }.get(way, ("disk", 2**20))
    wide = {**{each: getattr(SMALL, each) for each in SMALL.__slots__}, name: enough}
    if way == 3:  # on a busy machine, 300 MB are not filled in a fraction of a second
        wide |= {"cpu_seconds": 30.0, "idle_seconds": 30.0}
        narrow = Limits(**wide | {"memory": SMALL.memory})
        assert np.isnan(call_isolated(use_up, [[way]], limits=narrow)[0])
    if way == 2:
        answer = call_isolated(lambda rows: time.sleep(1) or 1.0, [[0]], limits=Limits(**wide))
        assert np.isnan(call_isolated(lambda rows: time.sleep(1) or 1.0, [[0]], limits=SMALL)[0])
    else:
        answer = call_isolated(use_up, [[way]], limits=Limits(**wide))
    assert np.isnan(answer[0]) == (way == 1)


@pytest.mark.slow
def test_the_load_of_other_calls_uses_up_no_time(by_value):
    """A call that computes 0.3 s of 0.5 s has its answer beside hogs for which it waits longer."""

    def compute(rows):
        end = time.process_time() + (0.3 if rows[0] else 100.0)
        begun = time.monotonic()
        while time.process_time() < end:
            pass
        return time.monotonic() - begun

    limits = Limits(cpu_seconds=0.5, idle_seconds=0.25)
    hogs = 3 * len(os.sched_getaffinity(0))
    answers = call_isolated(compute, [[1]] + [[0]] * hogs, limits=limits, workers=hogs + 1)
    assert answers[0] > 0.6  # seconds on the wall: waiting was longer than both limits allow
    assert np.isnan(answers[1:]).all()


@pytest.mark.slow
def test_answers_do_not_depend_on_the_number_of_workers():
    """Random numbers, hashes and sums give the same bits one by one and at once."""

    def draws(rows):
        return [random.random(), np.random.random(), hash("a word") % 2**40, rows @ rows]

    parts = [np.random.default_rng(at).random(500) for at in (3, 4)]
    one, two = (call_isolated(draws, parts, shape=(4,), workers=n) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
    assert one[0, 0] != one[1, 0]
    assert np.isfinite(one).all()


def test_rows_stand_in_no_list_of_processes_and_no_file(folder):
    """They are neither in the command line nor in the environment nor in a file of the call."""

    def look(rows):
        secret = str(rows[0])
        shown = [
            Path(f"/proc/{who}/{what}") for who in ("self",) for what in ("cmdline", "environ")
        ]
        texts = [path.read_bytes() for path in (*shown, *Path().rglob("*"))]
        return [len(texts), sum(secret.encode() in text for text in texts)]

    assert call_isolated(look, [["Wilhelmina-Quux"]], shape=(2,)).tolist() == [[2.0, 0.0]]


def test_nothing_of_the_parent_is_inherited(tmp_path):
    """Neither its memory nor its open files, also those that it lets others inherit."""

    def look(rows):
        links = []
        for each in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # that of the listing
                links.append(os.readlink(f"/proc/self/fd/{each}"))
        own = "/dev/null", "pipe:", "socket:", f"/proc/{os.getpid()}/io"
        others = [link for link in links if not link.startswith(own)]
        return ["pytest" in sys.modules, len(others), len(links)]

    with open(tmp_path / "inherited", "w") as file:
        os.set_inheritable(file.fileno(), True)
        found = call_isolated(look, [[1]], shape=(3,))[0]
    assert found[:2].tolist() == [0.0, 0.0]
    assert found[2] <= 7  # nothing to read and write, a socket, two pipes, and what was written


@pytest.mark.slow
def test_no_call_finds_a_graphics_processor(monkeypatch):
    """All calls would share its memory, also where the caller's environment names one."""
    names = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    for name in (*names, "JAX_PLATFORMS"):
        monkeypatch.setenv(name, "0")

    def shown(_):
        seen = [os.environ[name] for name in names]
        return [float(seen == ["", "", ""]), float(os.environ["JAX_PLATFORMS"] == "cpu")]

    assert call_isolated(shown, [np.zeros(1)], shape=(2,), workers=1).tolist() == [[1.0, 1.0]]


@pytest.mark.slow
def test_an_answer_is_never_more_than_numbers():
    """What a call writes to its parent by itself is at most read as the doubles of its answer."""

    def write(rows):
        import pickle

        for each in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                os.write(int(each), pickle.dumps(rows) * 100)
        return 1.0

    answers = call_isolated(write, [[1.0], [2.0]])
    assert np.isnan(answers).all()


def test_programs_that_a_call_starts_end_with_it(folder):
    """Also those that the call does not wait for."""

    def start(rows):
        return float(subprocess.Popen(["sleep", "100"]).pid)

    process = int(call_isolated(start, [[1]])[0])
    assert soon(lambda: not alive(process))
    assert os.listdir(folder) == []


@pytest.mark.slow
def test_an_interrupted_release_leaves_nothing(folder):
    """After Ctrl-C no process runs, none waits to be collected, and no folder is left."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    marked = Limits(idle_seconds=50.0)
    try:
        with Isolation(
            lambda rows: time.sleep(40) or 1.0, calls=2, workers=2, limits=marked
        ) as pool:
            started = [process._child.pid for process in pool._open]

            def stop_soon():
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                pool.call([[1], [2]])

            with pytest.raises(KeyboardInterrupt):
                stop_soon()
            assert all(map(alive, started))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(started) == 2
    assert not any(os.path.exists(f"/proc/{each}") for each in started)
    assert os.listdir(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("state", ["waiting", "running"])
def test_the_processes_of_a_killed_parent_end(tmp_path, state):
    """Killed without a chance to clean up, it takes with it what waits, runs, and was started."""
    text = f"""
        import os, subprocess, time
        from hushed._functions._isolation import Isolation

        def call(rows):
            other = subprocess.Popen(["sleep", "100"])
            with open(rows, "w") as file:
                file.write(str(other.pid))
            os.rename(rows, rows + ".done")
            while True:
                pass

        with Isolation(call, calls=2, workers=2) as pool:
            print(*[process._child.pid for process in pool._open], flush=True)
            if {state!r} == "running":
                pool.call([{str(tmp_path / "a")!r}, {str(tmp_path / "b")!r}])
            time.sleep(100)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        env={**os.environ, "TMPDIR": str(tmp_path)},  # where a killed parent leaves folders
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        started = [int(each) for each in parent.stdout.readline().split()]
        if state == "running":
            notes = [tmp_path / "a.done", tmp_path / "b.done"]
            assert soon(lambda: all(note.exists() for note in notes))
            started += [int(note.read_text()) for note in notes]
        assert all(map(alive, started))
        assert len(started) == (4 if state == "running" else 2)
        parent.kill()
    assert soon(lambda: not any(map(alive, started)))


@pytest.mark.slow
def test_a_call_that_does_not_take_its_part_ends_no_parent():
    """Where programs let a broken pipe end them, a call that ended early is NaN as any other."""
    text = """
        import signal
        import numpy as np
        from hushed._functions._isolation import Limits, call_isolated

        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        limits = Limits(memory=16 * 2**20)
        print(call_isolated(len, [np.zeros(2**23), np.zeros(8)], limits=limits))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[nan  8.]")


@pytest.mark.slow
def test_what_is_not_isolated_is_what_the_pages_say(tmp_path):
    """By an absolute path one call can leave something for the next: there it is trusted."""
    place = str(tmp_path / "shared")

    def count(rows):
        with open(place, "a") as file:
            file.write("1")
        return os.path.getsize(place)

    assert call_isolated(count, [[1], [2], [3]], workers=1).tolist() == [1.0, 2.0, 3.0]
