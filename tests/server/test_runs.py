"""Rows are read in processes that can be ended; what ends one costs others nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet
from tests.server.conftest import CANARY, QUERY, make_folder, open_team
from tests.server.test_workers import told_of, wait_for

from hushed.errors import EngineUnavailable
from hushed.server import _desk, _processes, _runners, _worker
from hushed.server._judging import Ask, judge, tell_run
from hushed.server._life import recover
from hushed.server._requests import find_request
from hushed.server._runners import Failed, Interrupted, Runners, take_answer
from hushed.tables import table
from hushed.tables._engine.duckdb import MEMORY
from hushed.tables._whole import read_columns

ASKED = Ask(query=QUERY, epsilon=0.1)

pytestmark = pytest.mark.slow

# What a process does in place of reading rows: it is written in a file.
EVIL = f"""
import ctypes, json, os, signal, subprocess, sys, time

def spoil(run):
    def spoiled(ready, plan, beta, clock, left_out=None):
        import hushed.server._worker as worker
        doing = open(os.environ["HUSHED_TEST_EVIL"]).read()
        open(os.environ["HUSHED_TEST_EVIL"] + ".begun", "w").close()
        if doing == "hang":
            import tempfile
            with open(tempfile.mkdtemp(prefix="hushed-") + "/spilt", "w") as file:
                file.write("{CANARY}")
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            with open(os.environ["HUSHED_TEST_EVIL"] + ".child", "w") as file:
                file.write(f"{{child.pid}}\\n")
            time.sleep(600)
        if doing == "eat":
            import numpy as np
            eaten = [np.empty(10**8, "u1") for _ in range(1000)]  # asked for, not filled
        if doing == "segfault":
            ctypes.string_at(0)
        if doing == "exit":
            os._exit(0)
        if doing == "close":
            os.closerange(3, 1024)
            return
        if doing == "raise":
            raise RuntimeError("{CANARY}")
        if doing == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if doing == "half":
            import socket
            line = socket.socket(fileno=os.dup(worker_line[0]))
            line.sendall((10**6).to_bytes(4, "big") + b"{{")
            time.sleep(600)
        if doing == "noise":
            print("{CANARY}", flush=True)
            print("{CANARY}", file=sys.stderr, flush=True)
        return run(ready, plan, beta, clock, left_out)
    return spoiled

worker_line = []
import multiprocessing.connection as c
made = c.Connection.__init__
def see(self, handle, *rest, **more):
    made(self, handle, *rest, **more)
    worker_line.append(handle)
c.Connection.__init__ = see
import hushed.tables._prepared as prepared
prepared.run_plan = spoil(prepared.run_plan)
"""


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A team whose processes do what a file says; a new one may take a second."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "sitecustomize.py").write_text(EVIL)
    doing = tmp_path / "doing"
    doing.write_text("")
    monkeypatch.setenv("PYTHONPATH", str(code))
    monkeypatch.setenv("HUSHED_TEST_EVIL", str(doing))
    tokens = make_folder(tmp_path, settings="answer_grid = 0.0\nrunners = 2")
    for team in open_team(tmp_path / "stats", tokens):
        team.desk.runners = Runners()
        team.begun = tmp_path / "doing.begun"
        yield team, doing.write_text
        team.desk.runners.processes.close()


def is_gone(tmp_path):
    """Whether what a run has started was ended with it; nobody may have asked for its end."""
    pid = (tmp_path / "doing.child").read_text().strip()
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize(
    ("doing", "reason"),
    [
        ("hang", "time"),
        ("eat", "rows"),
        ("segfault", "crash"),
        pytest.param("exit", "crash", marks=pytest.mark.soak),
        ("close", "crash"),
        ("raise", "rows"),
        pytest.param("half", "time", marks=pytest.mark.soak),
    ],
)
def test_a_run_that_goes_wrong_has_failed_and_others_go_on(
    evil, tmp_path, monkeypatch, doing, reason
):
    """Hanging, eating memory, crashing: it is ended, the charge stays, the next one is answered."""
    team, do = evil
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(_runners, "_MORE_SECONDS", 3.0)
    monkeypatch.setattr(_runners, "_WAITS", 0.0)
    monkeypatch.setattr("hushed.server._processes._SENDING_SECONDS", 1.0)
    do(doing)
    made = team.ask(team.ana, "one").json()
    assert made["state"] == "failed"
    assert team.answer(team.ana, made["id"]).json()["code"] == "failed"
    assert f'"reason": "{reason}"' in team.logged.getvalue()
    assert CANARY not in team.logged.getvalue()
    do("")
    assert team.ask(team.bo, "one").json()["state"] == "answered"
    assert team.ask(team.ana, "one").json()["id"] == made["id"]
    assert team.charges() == 2
    wait_for(lambda: not team.desk.runners.processes._busy)
    assert not list(tmp_path.rglob("spilt"))  # what is killed leaves no rows on the disk
    if doing == "hang":  # nor in a process that it has started, as for several processors
        wait_for(lambda: is_gone(tmp_path))


def finish(team, request):
    """Wait for the end of a run, if there is one; the request."""
    end = team.desk.queue.find(request)
    if end is not None:
        end.result(60)
    return find_request(team.desk.ledger, request)


def test_others_are_answered_while_a_run_hangs(evil):
    """One process hangs with the question of one person; the others have another process."""
    team, do = evil
    do("hang")
    hung = team.ask(team.ana, "one", wait=0).json()["id"]
    wait_for(team.begun.exists)
    do("")
    assert team.ask(team.bo, "one", wait=30).json()["state"] == "answered"
    assert find_request(team.desk.ledger, hung).state == "charged"
    team.desk.runners.stop()
    finish(team, hung)
    recover(team.desk)
    assert finish(team, hung).state == "answered"
    assert team.charges() == 2


def test_a_process_ended_from_outside_takes_no_paid_answer_away(evil):
    """Whoever killed it: its question is read again, twice at most, and nothing more is charged."""
    team, do = evil
    do("killed")
    lost = team.ask(team.ana, "one", wait=0).json()["id"]
    saved = team.ask(team.bo, "one", wait=0).json()["id"]
    for attempts in (1, 2):
        for each in (lost, saved):
            found = finish(team, each)
            assert (found.state, found.attempts) == ("charged", attempts)
        recover(team.desk)
    assert finish(team, saved).attempts == 3
    assert finish(team, lost).state == "charged"
    recover(team.desk)
    assert finish(team, lost).state == "failed"
    do("killed")
    third = team.ask(team.ana, "two", wait=0).json()["id"]
    assert finish(team, third).state == "charged"
    do("")
    recover(team.desk)
    assert finish(team, third).state == "answered"
    assert team.charges() == 3


def test_a_stop_ends_a_run_and_takes_no_attempt(evil, monkeypatch):
    """What hangs does not keep a server from stopping; the next one answers, at no cost."""
    team, do = evil
    monkeypatch.setattr(_desk, "STOP_SECONDS", 0.1)
    do("hang")
    made = team.ask(team.ana, "one", wait=0).json()["id"]
    wait_for(team.begun.exists)
    begun = time.monotonic()
    monkeypatch.setattr(team.desk._held, "close", lambda: None)  # the ledger is looked at
    team.desk.close()
    assert time.monotonic() - begun < 60  # it would hang for ten minutes
    found = find_request(team.desk.ledger, made)
    assert (found.state, found.attempts) == ("charged", 0)


def test_an_answer_that_was_not_stored_is_shown_to_nobody(evil, monkeypatch):
    """Computed, and lost before it was stored: another one is stored, and only that is read."""
    team, _ = evil
    seen, take = [], _runners.take_answer

    def see(found):
        seen.append(take(found))
        if len(seen) == 1:
            raise OSError("the ledger is gone")
        return seen[-1]

    monkeypatch.setattr(_runners, "take_answer", see)
    made = team.ask(team.ana, "one", wait=0, epsilon=1e-6).json()["id"]
    assert finish(team, made).state == "charged"
    assert team.answer(team.ana, made).json()["code"] == "not_ready"
    recover(team.desk)
    assert finish(team, made).state == "answered"
    assert team.answer(team.ana, made).text == seen[1] != seen[0]
    assert team.desk.ledger.answer("stays", 1) == seen[1]
    assert recover(team.desk) == 0


SERVER = """
import json, sys
from hushed.server._runners import Runners

Runners().answer(json.load(sys.stdin))
"""


def test_a_process_in_the_middle_of_a_scan_ends_with_its_server(evil, tmp_path):
    """Nobody reads rows for a server that was killed, and none are left on the disk."""
    team, do = evil
    do("hang")
    dataset = team.desk.datasets["stays"]
    judged = judge(team.desk, "ana", dataset, ASKED)
    told = tell_run(team.desk, dataset, ASKED, judged.digest)
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        text=True,
        env=os.environ
        | {
            "PYTHONPATH": _processes.environment()["PYTHONPATH"],
            "TMPDIR": str(tmp_path),
        },
    )
    server.stdin.write(json.dumps(told))
    server.stdin.close()
    wait_for((tmp_path / "doing.child").exists)
    children = f"/proc/{server.pid}/task/{server.pid}/children"
    (worker,) = map(int, Path(children).read_text().split())
    server.kill()
    server.wait(10)
    wait_for(lambda: not Path(f"/proc/{worker}/stat").exists())
    wait_for(lambda: not list(tmp_path.rglob("spilt")))
    wait_for(lambda: is_gone(tmp_path))


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ({}, Interrupted),
        ({"error": "KeyError"}, Interrupted),
        ({"answer": None}, Interrupted),
        ({"answer": 7, "problem": "rows"}, Failed),
        ({"problem": "whatever"}, Failed),
    ],
)
def test_only_a_text_is_an_answer(found, error):
    """What a process tells is data that is looked at."""
    with pytest.raises(error):
        take_answer(found)


SOURCES = ["stays.csv", "stays.parquet", "stays.arrow", "parts", "duckdb:///stays.db"]
REACHING = [
    "SELECT * FROM read_csv('stays.csv')",
    "SELECT * FROM read_text('stays.csv')",
    "SELECT * FROM 'stays.parquet'",
    "SELECT * FROM read_parquet('http://127.0.0.1:1/x.parquet')",
    "COPY (SELECT 1) TO 'out.csv'",
    "ATTACH 'other.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET temp_directory = '.'",
    "RESET memory_limit",
    "SELECT * FROM frame",
]


@pytest.mark.parametrize("source", SOURCES)
def test_15_duckdb_opens_nothing_more(tmp_path, monkeypatch, source):
    """Files, addresses, extensions and settings are closed; the table itself is answered."""
    monkeypatch.chdir(tmp_path)
    frame = pa.table({"patient": [f"P{i}" for i in range(200)], "cost": [1.0] * 200})
    csv.write_csv(frame, "stays.csv")
    parquet.write_table(frame, "stays.parquet")
    feather.write_feather(frame, "stays.arrow")
    Path("parts").mkdir()
    parquet.write_table(frame, "parts/1.parquet")
    with duckdb.connect("stays.db") as made:
        made.execute("CREATE TABLE rows AS SELECT * FROM frame")
    found = table(source, user="patient", types={"cost": "float"})
    backend = found.connection.rows.get_backend()
    found.connection.engine.confine(backend, 100_000_000)
    for each in REACHING:
        with pytest.raises(duckdb.Error):
            backend.con.execute(each)
    assert not Path("out.csv").exists()
    query = found.bound_contributions(max_rows_per_user=1).count().sum("cost", low=0, high=2)
    for _ in range(2):  # the second one reads a copy
        assert 150 < query.release(epsilon=5.0).values["count"][0] < 250


def test_15_a_process_confines_what_it_opens(team, monkeypatch):
    """Those that judge and those that read, both before they look at a question."""
    seen = []

    def see(backend, memory, *, ordered):
        seen.append((memory, ordered))
        raise EngineUnavailable("not confined")

    made = team.ask(team.ana, "one").json()
    assert made["state"] == "answered"
    told = told_of(team)
    engine = replace(MEMORY, confine=see)  # of CSV files
    monkeypatch.setattr("hushed.tables._engine.files.MEMORY", engine)
    reads = told | {"do": "run", "run_memory": 10**9}
    for each in (told, reads, reads | {"function": {}}):
        with pytest.raises(EngineUnavailable, match="not confined"):
            _worker._find_table({}, "x", each)
    assert seen == [(256_000_000, False), (500_000_000, False), (500_000_000, True)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_function_is_given_rows_in_the_order_of_the_file(tmp_path, ending):
    """Several processors read it, and what one row takes them would decide where others stand."""
    frame = pa.table({"place": range(1_000_000)})
    write = csv.write_csv if ending == "csv" else parquet.write_table
    write(frame, tmp_path / f"rows.{ending}")
    found = table(tmp_path / f"rows.{ending}", types={"place": "int"})
    backend = found.connection.rows.get_backend()
    backend.con.execute("SET threads = 4")
    found.connection.engine.confine(backend, 10**9, ordered=True)
    assert read_columns(found, ["place"], 60)["place"] == list(range(1_000_000))
