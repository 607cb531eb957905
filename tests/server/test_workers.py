"""Questions are judged in processes that can be ended; whatever ends one, nobody else waits."""

from __future__ import annotations

import errno
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from tests.server.conftest import QUERY, shared_runners, shared_workers

from hushed.ledger._laws import write_law
from hushed.server import _judging, _processes, _worker, _workers
from hushed.server._judging import Ask, AskQuote, judge, price
from hushed.server._life import recover
from hushed.server._problems import Problem
from hushed.server._processes import Worker
from hushed.server._requests import find_request
from hushed.server._runners import Runners
from hushed.server._sources import Source, fingerprint
from hushed.server._verdicts import Verdicts
from hushed.server._workers import Unforeseen, Workers

QUANTILES = {"kind": "quantiles", "column": "cost", "low": 0, "high": 50}


def told_of(team, **limits):
    """What the server tells a process, by whoever stands in for it."""
    seen = {}

    class Listener(Workers):
        def judge(self, told):
            seen.update(told)
            raise Problem("busy")

    desk = replace(team.desk, workers=Listener(), verdicts=Verdicts())
    with pytest.raises(Problem):
        judge(desk, "ana", desk.datasets["stays"], Ask(query=QUERY, epsilon=0.1))
    return seen | limits


@pytest.mark.slow_cases("count", "gaussian", "quantiles")
@pytest.mark.parametrize(
    ("query", "terms"),
    [
        (QUERY, {}),
        (QUERY | {"aggregates": [QUANTILES | {"probabilities": [0.1, 0.5]}]}, {}),
        (QUERY, {"noise": "gaussian", "delta": 0.001}),
        (QUERY | {"groups": {"columns": ["ward"]}}, {"delta": 0.001}),
    ],
    ids=["count", "quantiles", "gaussian", "selected"],
)
def test_a_process_judges_as_the_library_does(quiet, query, terms):
    """What is charged is bit for bit what the answer costs, and its digest is the same."""
    asked = Ask(query=query, epsilon=0.1, **terms)
    dataset = quiet.desk.datasets["stays"]
    found = judge(quiet.desk, "ana", dataset, asked)
    here = dataset.table.ask(asked.query).prepare(
        epsilon=0.1, delta=asked.delta, noise=asked.noise, timeout=30
    )
    assert (found.guarantee, found.digest) == (here.guarantee, here.digest)
    assert (found.loss is None) == (here.loss is None)
    assert found.loss is None or write_law(found.loss) == write_law(here.loss)
    priced = price(quiet.desk, "ana", dataset, AskQuote(query=query, epsilon=0.1, **terms), None)
    there = dataset.table.ask(asked.query).quote(epsilon=0.1, delta=asked.delta, noise=asked.noise)
    assert priced["words"] == there.explain(without_a_guess)


def without_a_guess(name, value):
    """A server takes no guess of the rows of each user, and so it advises none."""
    return "" if name == "rows_per_user" else f"{name}={value!r}"


FIRST = """
import sys
from hushed.server import _worker

class Line:
    def send_bytes(self, told):
        print(told, "scipy.special" in sys.modules)

_worker._find_table = lambda *told: type("Table", (), {"connection": type("C", (), {"changed": 0})})
_worker._work = lambda table, told: {}
for noise in ("laplace", "gaussian"):
    _worker._serve(Line(), {"source": {}, "asked": {"noise": noise}}, {})
"""


def test_what_noise_needs_is_loaded_before_a_question_is_timed():
    """The first Gaussian question of a process was refused as one that takes too much, at times."""
    found = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, check=True, text=True
    ).stdout
    assert found.splitlines() == ["b'begun' False", "b'begun' True"]


def test_what_nobody_foresaw_is_not_told_as_too_much(quiet):
    """The process goes on, and the question is not blamed for it."""
    told = told_of(quiet) | {"asked": {}}
    with pytest.raises(Unforeseen, match="KeyError"):
        shared_workers().ask("ana", told)
    ended = shared_workers().ended
    assert shared_workers().ask("ana", told_of(quiet))["digest"]
    assert shared_workers().ended == ended


@pytest.mark.slow
def test_18_what_needs_too_much_is_ended_and_others_go_on(quiet):
    """Memory that is not granted; the next question is judged, by whichever process."""
    told = told_of(quiet, check_memory=1)
    told["asked"]["query"] |= {"steps": [{"filter": "cost > 0.123"}]}  # no plan of it is kept
    with pytest.raises(Problem) as refused:
        shared_workers().ask("ana", told)
    assert (refused.value.code, "takes more than" in refused.value.detail) == ("bad_query", True)
    assert quiet.send(
        "POST", "/v1/datasets/stays/quote", quiet.ana, json={"query": QUERY, "epsilon": 0.1}
    ).json()["fits"]


@pytest.mark.slow
def test_18_whatever_fails_for_want_of_memory_is_a_refusal(quiet):
    """Not a failure of the server: what gets none, as a thread, is the question's doing."""
    workers = Workers()  # in a new process, where nothing is loaded and no stack is kept
    try:
        for turn, terms in enumerate(({}, {"noise": "gaussian", "delta": 0.001})):
            told = told_of(quiet, check_memory=4_000_000)
            told["asked"] |= terms
            with pytest.raises(Problem) as refused:
                workers.ask("ana", told)
            assert (refused.value.code, "MB" in refused.value.detail) == ("bad_query", True)
            assert workers.ended == turn + 1  # what was half loaded serves nobody else
            told["check_memory"] = 512_000_000
            assert workers.ask("ana", told)["digest"]
            while workers.processes._idle:
                workers.processes._idle.pop().end()
    finally:
        workers.processes.close()


@pytest.mark.parametrize(
    ("error", "lacked"),
    [
        (MemoryError(), True),
        (SystemError("NULL without an exception"), True),
        (ImportError("failed to map segment"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (RuntimeError("generator didn't yield"), False),
        (KeyError("query"), False),
    ],
    ids=repr,
)
def test_18_errors_of_a_process_without_memory(error, lacked):
    """Also where a library has made another error of it."""
    assert _worker._lacked_memory(error) is lacked
    outer = ValueError("of a library")
    outer.__context__ = error
    assert _worker._lacked_memory(outer) is lacked


@pytest.mark.slow
def test_18_a_question_of_death_is_ended_by_the_kernel(quiet, monkeypatch):
    """A plan of many seconds, a hundredth of one is granted: it is given up, and costs nothing."""
    monkeypatch.setattr(_judging, "MOST_QUANTILES", 10**6)
    monkeypatch.setattr(_workers, "_WAITS", 10_000.0)  # the server's clock would end it, too
    ends, end = [], _processes.Worker.end

    def see(worker):
        ends.append(worker._process.wait(60))  # by itself
        end(worker)

    monkeypatch.setattr(_processes.Worker, "end", see)
    probabilities = [i / 1e4 for i in range(1, 9999)]
    dead = QUERY | {"aggregates": [QUANTILES | {"probabilities": probabilities}]}
    limits = quiet.desk.settings.limits.model_copy(update={"check_seconds": 0.01})
    settings = quiet.desk.settings.model_copy(update={"limits": limits})
    desk = replace(quiet.desk, settings=settings)
    ended = shared_workers().ended
    with pytest.raises(Problem, match="bad_query"):
        judge(desk, "ana", desk.datasets["stays"], Ask(query=dead, epsilon=0.1))
    assert ends == [-signal.SIGPROF]
    assert shared_workers().ended == ended + 1
    assert quiet.charges() == 0


@pytest.mark.slow
def test_a_process_that_died_while_idle_refuses_nobody(quiet):
    """Somebody else ended it; the question is not blamed for it."""
    told, workers = told_of(quiet), shared_workers()
    workers.ask("ana", told)
    for each in workers.processes._idle:
        os.kill(each._process.pid, signal.SIGKILL)
        each._process.wait()
    assert workers.ask("ana", told)["digest"]


@pytest.mark.parametrize("missing", ["place", "process"])
def test_where_no_process_is_to_be_had_nobody_pays_for_it(team, monkeypatch, tmp_path, missing):
    """A full disk, or too many processes: prices are refused for now, and what is paid waits."""
    assert team.ask(team.ana, "one").json()["state"] == "answered"
    if missing == "place":
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "places"))
        (tmp_path / "places").mkdir()
        monkeypatch.setattr(_processes, "sys", SimpleNamespace(executable=str(tmp_path / "gone")))
    team.desk.workers, team.desk.runners = Workers(), Runners()
    body = {"query": QUERY, "epsilon": 0.3}
    refused = team.send("POST", "/v1/datasets/stays/quote", team.ana, json=body)
    assert (refused.status_code, refused.json()["code"]) == (503, "dataset_unavailable")
    assert refused.headers["retry-after"] == "5"
    paid = team.ask(team.ana, "two", wait=0).json()["id"]  # judged before, and not read
    for _ in range(4):
        wait_for(lambda: team.desk.queue.find(paid) is None)
        assert find_request(team.desk.ledger, paid).state == "charged"
        recover(team.desk)
    wait_for(lambda: team.desk.queue.find(paid) is None)
    assert not [*tmp_path.glob("places/*")]  # nothing is left of those that did not start
    monkeypatch.undo()
    team.desk.runners = shared_runners()
    recover(team.desk)
    wait_for(lambda: team.desk.queue.find(paid) is None)
    assert find_request(team.desk.ledger, paid).state == "answered"
    assert team.charges() == 2


@pytest.mark.slow
def test_a_question_is_not_blamed_for_a_kill_from_outside(quiet, monkeypatch):
    """Killed in the middle of it: busy, and not a question that takes too much."""
    told, ended, hear = told_of(quiet), shared_workers().ended, _processes.Worker.hear

    def kill(worker, seconds):
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.wait()
        with suppress(EOFError):  # what it had told already
            while worker._line.poll():
                worker._line.recv_bytes()
        return hear(worker, seconds)

    with monkeypatch.context() as killing:
        killing.setattr(_processes.Worker, "hear", kill)
        with pytest.raises(Problem) as refused:
            shared_workers().ask("ana", told)
    assert (refused.value.code, refused.value.status) == ("busy", 503)
    assert shared_workers().ended == ended
    assert shared_workers().ask("ana", told)["digest"]


@pytest.mark.slow
def test_a_process_ends_with_its_server(monkeypatch):
    """Its line is closed when the server dies, however it dies; and it holds no token."""
    monkeypatch.setenv("HUSHED_TOKEN", "secret")
    worker = _processes.Worker()
    worker.wait()
    told = Path(f"/proc/{worker._process.pid}/environ")
    if told.exists():
        assert b"HUSHED_TOKEN" not in told.read_bytes()
        assert f"JOBLIB_TEMP_FOLDER={worker._place}".encode() in told.read_bytes()
    worker._line.close()
    assert worker._process.wait(60) == -signal.SIGKILL


class Stub:
    """A process that judges when it is told to."""

    asked = 0
    is_alive = staticmethod(lambda: True)

    def __init__(self):
        self.go = threading.Event()
        STUBS.append(self)

    def begin(self, told):
        pass

    def hear(self, seconds):
        assert self.go.wait(30)
        return {}

    def end(self):
        pass


STUBS: list[Stub] = []


def wait_for(condition):
    stop = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < stop
        time.sleep(0.001)


def test_19_no_one_person_keeps_all_processes_busy(monkeypatch):
    """The second process is for others; more questions than a few are refused at once."""
    monkeypatch.setattr(_processes, "Worker", Stub)
    STUBS.clear()
    workers, done = Workers(2), []

    def ask(person):
        workers.ask(person, {"check_seconds": 10.0})
        done.append(person)

    asking = [threading.Thread(target=ask, args=("ana",)) for _ in range(9)]
    for each in asking:
        each.start()
    wait_for(lambda: len(STUBS) == 1 and workers._asking["ana"] == 8)
    with pytest.raises(Problem, match="too_many"):
        ask("ana")
    bo = threading.Thread(target=ask, args=("bo",))
    bo.start()
    wait_for(lambda: len(STUBS) == 2)  # though eight have waited for longer
    STUBS[1].go.set()
    bo.join(30)
    assert done == ["bo"]
    STUBS[0].go.set()
    for each in asking:
        each.join(30)
    assert done == ["bo"] + ["ana"] * 9
    assert not workers._asking
    assert not workers._running


def test_tables_of_one_duckdb_file_are_asked_in_turn(tmp_path):
    """A process confines what it opens, for good: a second table of the file was never there."""
    file, tables, names = tmp_path / "x.db", {}, ("one", "other")
    with duckdb.connect(file) as made:
        for name in names:
            made.execute(f"CREATE TABLE {name} AS SELECT range AS place FROM range(100)")
    told = {"do": "check", "check_memory": 10**8}
    for name in (*names, *names):
        source = Source(address=f"duckdb:///{file}", table=name)
        if "fingerprint" not in told:
            opened = source.open()
            told["fingerprint"] = fingerprint(opened)
            opened.connection.rows.get_backend().disconnect()
        found = _worker._find_table(tables, name, told | {"source": asdict(source)})
        assert found.count().release(epsilon=60.0).value("count") == 100


def test_16_a_function_is_given_a_process_that_was_asked_nothing(monkeypatch):
    """One that has read the table for a query gives its rows in any order, and cannot be told."""
    monkeypatch.setattr(_processes, "Worker", Stub)
    STUBS.clear()
    processes = _processes.Processes()
    used, unused = processes.begin({}), processes.begin({})
    used.asked = 1
    for each in (unused, used):
        processes.give_back(each)
    assert processes.begin({"function": {}}) is unused
    assert processes.begin({"function": {}}) is STUBS[2]
    assert processes._idle == []  # the used one has made room
    processes.give_back(STUBS[2])
    assert processes.begin({}) is STUBS[2]


def test_whoever_waits_to_be_judged_is_woken_for_the_own_turn_alone(monkeypatch):
    """Sixty who wait: if each turn woke all of them, each would go to sleep thirty times."""
    monkeypatch.setattr(_processes, "Worker", Stub)
    monkeypatch.setattr(Stub, "hear", lambda stub, seconds: {})
    workers, slept = Workers(1), []

    def ask(number):
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        workers.ask(f"person{number}", {"check_seconds": 10.0})
        slept.append(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before)

    with workers.turn("the first"):
        asking = [threading.Thread(target=ask, args=(i,)) for i in range(60)]
        for each in asking:
            each.start()
        wait_for(lambda: len(workers._asking) == 60)
    for each in asking:
        each.join(30)
    assert len(slept) == 60
    assert statistics.median(slept) < 8


def test_an_answer_of_a_hundred_million_bytes_is_heard(monkeypatch):
    """How many groups are told is known when it is paid: above 64 MiB it was lost as a crash."""
    monkeypatch.setattr(_processes, "_SENDING_SECONDS", 300.0)  # on a machine that is busy
    worker, (ours, theirs) = object.__new__(Worker), Pipe()
    worker._line, worker._late = ours, False
    worker._process = SimpleNamespace(kill=theirs.close)
    sending = threading.Thread(target=theirs.send_bytes, args=(bytes(100_000_000),), daemon=True)
    sending.start()
    assert len(worker._hear(60.0)) == 100_000_000
    sending.join()


def test_a_word_that_has_arrived_starts_no_clock(monkeypatch):
    """A clock is a thread: four for each answer. Half of a word is waited for with one."""
    started, waited_for, worker = [], threading.Event(), object.__new__(Worker)
    ours, theirs = Pipe()
    worker._line, worker._late = ours, False

    def start(timer):
        started.append(timer.interval)
        waited_for.set()

    monkeypatch.setattr(_processes.threading.Timer, "start", start)
    monkeypatch.setattr(_processes.threading.Timer, "cancel", lambda timer: None)
    for text in (b"", b"whole", bytes(8000)):
        theirs.send_bytes(text)
        assert worker._hear(5.0) == text
    assert not started
    os.write(theirs.fileno(), (5).to_bytes(4, "big") + b"ha")
    ending = threading.Thread(
        target=lambda: waited_for.wait(30) and os.write(theirs.fileno(), b"lf.")
    )
    ending.start()
    assert worker._hear(5.0) == b"half."
    ending.join(30)
    long = threading.Thread(target=theirs.send_bytes, args=(bytes(300_000),))
    long.start()
    assert len(worker._hear(5.0)) == 300_000
    long.join(30)
    assert started == [_processes._SENDING_SECONDS] * 2
    theirs.close()
    with pytest.raises(_processes.Lost):
        worker._hear(5.0)
    ours.close()


@pytest.mark.slow
@pytest.mark.parametrize("ready", [False, True], ids=["starting", "idle"])
def test_a_process_whose_server_is_gone_leaves_no_folder(ready):
    """While it starts, and while nothing is asked of it."""
    for _ in range(3):  # it is a race between two threads of the process
        worker = Worker()
        try:
            assert Path(worker._place).is_dir()
            if ready:
                worker.wait()
            worker._line.close()
            worker._process.wait(60)
            assert not Path(worker._place).exists()
        finally:
            worker.end()
