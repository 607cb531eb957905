"""A real server while things break: its database, its disk, its line, its process."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from io import StringIO, TextIOWrapper
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3
from tests.postgres import _RUNNING, _account, _start, running_postgres
from tests.server.conftest import QUERY, make_folder, make_rows
from tests.server.test_kills import Asker, Process, check_counts, client_of, process_of
from tests.server.test_on_postgres import make
from tests.server.test_workers import wait_for

from hushed import Guarantee, Ledger
from hushed.server import _serving
from hushed.server._config import ServerSettings
from hushed.server._desk import Desk
from hushed.server._guard import Guard
from hushed.server._log import Log
from hushed.server._requests import list_open
from hushed.server._setup import invite
from hushed.server._tokens import Scope

pytestmark = pytest.mark.slow

STOPPED = 130  # what a command of ours ends with when it was stopped
ASKED = 4  # questions of each of four threads


def ask(process: Process, token: str, key: str, wait: int = 0, epsilon: float = 0.1):
    """Ask over HTTP; the answer of the server, or None if the line broke."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    headers |= {"idempotency-key": key} | ({"prefer": f"wait={wait}"} if wait else {})
    body = json.dumps({"query": QUERY, "epsilon": epsilon})
    url = f"{process.url}/v1/datasets/stays/requests"
    with suppress(urllib3.exceptions.HTTPError):
        return urllib3.request("POST", url, body=body, headers=headers, retries=False, timeout=90.0)
    return None


def ask_until_answered(process: Process, token: str, key: str, epsilon: float = 0.1):
    """Ask under the same key until there is an answer, as the client does; its bytes."""
    stop = time.monotonic() + 120
    while time.monotonic() < stop:
        found = ask(process, token, key, wait=5, epsilon=epsilon)
        if found is not None and found.status == 201:
            url = f"{process.url}/v1/requests/{found.json()['id']}/answer"
            headers = {"authorization": f"Bearer {token}"}
            read = urllib3.request("GET", url, headers=headers, retries=False, timeout=30.0)
            if read.status == 200:
                return read.data
        time.sleep(0.1)
    pytest.fail("no answer in time")


def codes_of(found) -> Counter:
    return Counter(
        "broken" if each is None else (each.status, each.json().get("code")) for each in found
    )


def test_many_at_once_take_exactly_what_there_is(tmp_path):
    """64 questions of a tenth at the same moment, on 1: ten are paid, 54 are refused."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    share = [("stays", Guarantee(epsilon=1.0))]
    tokens = [invite(folder, f"p{i}", "analyst", share, days=1, scope=Scope()) for i in range(16)]
    with process_of(folder) as process, ThreadPoolExecutor(64) as pool:
        found = list(pool.map(lambda i: ask(process, tokens[i % 16], f"k{i}"), range(64)))
    assert codes_of(found) == {(202, None): 10, (409, "budget_exceeded"): 54}
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        assert len(ledger.entries("stays")) == 10
        assert ledger.balance("stays").epsilon_left == 0.0
        assert sum(len(ledger.entries(f"stays/p{i}")) for i in range(16)) == 10


@contextmanager
def four_who_ask(process: Process, tokens: dict[str, str]):
    """Four threads who ask four questions each, and go on after every broken line."""
    askers = [
        Asker(
            client=client_of(process, tokens[name]),
            name=f"{name} {i}",
            asked=ASKED,
            stop=process.stop,
        )
        for name in ("ana", "bo")
        for i in range(2)
    ]
    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(each.ask_all) for each in askers]
        try:
            yield askers
            for each in asking:
                each.result()
        finally:
            for each in askers:
                each.stop = 0.0  # nobody goes on asking what has failed


def test_a_stop_under_load_leaves_nothing_unpaid_or_lost(tmp_path, monkeypatch):
    """SIGTERM while four threads ask: it ends in time, and the next start answers the rest."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    with process_of(folder) as process:
        with four_who_ask(process, tokens) as askers:
            wait_for(lambda: process.told("charged") >= 3)
            with socket.create_connection(("127.0.0.1", process.port), 30) as odd:
                odd.sendall(b"no HTTP\r\n\r\n")
                assert odd.recv(12) == b"HTTP/1.1 400"
            process._process.send_signal(signal.SIGTERM)
            assert process._process.wait(100) == STOPPED  # 35 s on a machine that is not shared
            process.start()
        check_counts(f"sqlite:///{folder}/hushed.db", askers, ASKED, process)
    lines = (tmp_path / "log").read_text().splitlines()
    said = ("experimental: ", "the server has stopped")  # by the command, first and last
    told = [json.loads(each) for each in lines if not each.startswith(said)]
    assert "library" in {each["event"] for each in told}  # and no line is plain text


def test_a_stop_ends_in_time_whatever_is_under_way_and_what_it_cuts_off_is_no_attempt(tmp_path):
    """An answer of millions of numbers takes minutes to store, which no other stop cuts short.

    Three such stops made a request fail that was paid, as three kills do.
    """
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    slow = (
        "import time\n"
        "from hushed.cli import main\n"
        "from hushed.server import _life, _serving\n"
        "_serving.LEAVE_SECONDS = 1.0\n"
        "_life.keep_answer = lambda desk, *_: (desk.log('storing'), time.sleep(600))\n"
        "main()"
    )
    with process_of(folder, program=(sys.executable, "-c", slow)) as process:
        assert ask(process, tokens["ana"], "slow").status == 202
        for stops in range(1, 5):
            wait_for(lambda stops=stops: process.told("storing") == stops)
            process._process.send_signal(signal.SIGTERM)
            assert process._process.wait(100) == STOPPED
            assert process.told("stop cut off") == stops
            with closing(sqlite3.connect(folder / "hushed.db")) as ledger:
                told = ledger.execute("SELECT state, attempts FROM hushed_s_requests").fetchall()
            assert told == [("charged", 0)]
            if stops == 4:
                process.program = Process.program
            process.start()
        ask_until_answered(process, tokens["ana"], "slow")
    with Ledger(f"sqlite:///{folder}/hushed.db", create=False) as ledger:
        assert len(ledger.entries("stays")) == 1


def test_a_program_whose_server_was_stopped_twice_goes_on(tmp_path, monkeypatch):
    """Ctrl-C once more, while a run ends: half a minute later the notebook was gone."""
    ended = []
    make_folder(tmp_path)
    monkeypatch.setattr("posix._exit", ended.append)
    monkeypatch.setattr(_serving, "LEAVE_SECONDS", 0.1)
    monkeypatch.setattr(_serving, "_serve_here", lambda _, leaving: leaving.begin())

    def stop(desk):
        desk.queue.close()
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(Desk, "close", stop)
        with pytest.raises(KeyboardInterrupt):
            _serving.serve(tmp_path / "stats")
    time.sleep(0.5)
    assert not ended


def test_what_a_stop_gives_up_is_asked_again():
    """Whoever waits longer than a stop does is told to ask again, and not that something failed."""
    sent, began = [], asyncio.Event()

    async def app(scope, receive, send):
        began.set()
        await asyncio.sleep(600)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    async def ask_and_stop():
        guard = Guard(app, ServerSettings(), body=1024, log=Log(StringIO()))
        host = [(b"host", b"127.0.0.1:8642")]
        scope = {"type": "http", "method": "GET", "path": "/v1/me", "query_string": b""}
        task = asyncio.create_task(guard({**scope, "headers": host}, receive, send))
        await began.wait()
        task.cancel()  # as Uvicorn does
        await task

    asyncio.run(ask_and_stop())
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]
    assert json.loads(sent[1]["body"])["code"] == "ledger_unavailable"


def busiest(process: Process) -> int | None:
    """A process of the server that reads rows now: of those that started, the one that works."""
    tasks = Path(f"/proc/{process._process.pid}/task").glob("*/children")
    pids = [int(each) for task in tasks for each in task.read_text().split()]
    return max(pids, key=ticks, default=None)


def ticks(pid: int) -> int:
    with suppress(OSError):
        return sum(
            map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
        )
    return -1


def test_processes_that_are_killed_take_no_paid_answer_away(tmp_path, monkeypatch):
    """Two of those that judge and read are killed by signal 9: the server lives, all are answered.

    No more than two, for a run that was killed three times has failed.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    with process_of(folder) as process:
        with four_who_ask(process, tokens) as askers:
            for wanted in (2, 5):
                wait_for(lambda wanted=wanted: process.told("charged") >= wanted)
                os.kill(busiest(process), signal.SIGKILL)
        check_counts(f"sqlite:///{folder}/hushed.db", askers, ASKED, process)
        assert process.told("serving") == 1


def test_a_locked_ledger_makes_people_wait_and_nothing_else(tmp_path):
    """Somebody holds the database: the server lives, and everything is paid once when it ends."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    with process_of(folder) as process, ThreadPoolExecutor(4) as pool:
        ask_until_answered(process, tokens["ana"], "first")
        with closing(sqlite3.connect(folder / "hushed.db", isolation_level=None)) as held:
            held.execute("BEGIN IMMEDIATE")
            asked = [
                pool.submit(ask, process, tokens["bo"], f"k{i}", epsilon=0.01) for i in range(4)
            ]
            time.sleep(2)
            assert not any(each.done() and each.result().status == 202 for each in asked)
            assert urllib3.request("GET", f"{process.url}/livez", timeout=30.0).status == 200
            held.execute("ROLLBACK")
        assert {each.result().status for each in asked} <= {202, 503}
        for i in range(4):
            ask_until_answered(process, tokens["bo"], f"k{i}", epsilon=0.01)
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        assert len(ledger.entries("stays")) == 5
        assert list_open(ledger) == ()


@contextmanager
def full_disk(process: Process, room: int):
    """No file of a process grows beyond so many bytes."""
    pid = process._process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_a_full_disk_charges_nothing_that_is_not_answered_later(tmp_path):
    """Nothing can be written, no log either: refused or waiting, and all right afterwards."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    with process_of(folder) as process:
        first = ask_until_answered(process, tokens["ana"], "first")
        with full_disk(process, 100):
            found = [ask(process, tokens["bo"], f"k{i}", epsilon=0.01) for i in range(4)]
            told = codes_of(found)
            assert set(told) <= {(503, "ledger_unavailable"), (202, None)}, told
            assert urllib3.request("GET", f"{process.url}/livez", timeout=30.0).status == 200
        answers = {
            f"k{i}": ask_until_answered(process, tokens["bo"], f"k{i}", epsilon=0.01)
            for i in range(4)
        }
        assert ask_until_answered(process, tokens["ana"], "first") == first
        for key, answer in answers.items():
            assert ask_until_answered(process, tokens["bo"], key, epsilon=0.01) == answer
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        assert len(ledger.entries("stays")) == 5
        ledger.verify("stays")


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path):
    """It goes to a full disk, too, and nobody's answer waits for it."""
    if not Path("/dev/full").exists():
        pytest.skip("a system without /dev/full")
    with open("/dev/full", "wb", buffering=0) as full:  # what is written fails at once, and once
        log = Log(TextIOWrapper(full, write_through=True))
        log("charged", request="x")
        log("charged", request="y")
        assert log.read_counts() == {("charged",): 2}


def send_raw(process: Process, token: str, key: str, *, part: float, read: int) -> None:
    """Send so much of a request, read so many bytes, and cut the line."""
    body = json.dumps({"query": QUERY, "epsilon": 0.1}).encode()
    host = urlsplit(process.url).netloc
    head = (
        f"POST /v1/datasets/stays/requests HTTP/1.1\r\nhost: {host}\r\n"
        f"authorization: Bearer {token}\r\ncontent-type: application/json\r\n"
        f"idempotency-key: {key}\r\nprefer: wait=20\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", process.port), timeout=60) as line:
        line.sendall(head + body[: int(part * len(body))])
        while read > 0 and (found := line.recv(read)):
            read -= len(found)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset


def test_a_line_that_is_cut_anywhere_costs_nothing_more(tmp_path):
    """In the body, after the charge, in the middle of the answer: one charge, the same bytes."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    url = f"sqlite:///{folder}/hushed.db"
    with process_of(folder) as process, Ledger(url) as ledger:
        send_raw(process, tokens["ana"], "half", part=0.5, read=0)
        send_raw(process, tokens["ana"], "whole", part=1.0, read=0)
        send_raw(process, tokens["ana"], "read", part=1.0, read=60)
        send_raw(process, tokens["bo"], "read", part=1.0, read=300)
        cut = [("ana", "whole"), ("ana", "read"), ("bo", "read")]
        seen = [ask_until_answered(process, tokens[name], key) for name, key in cut]
        assert seen == [ask_until_answered(process, tokens[name], key) for name, key in cut]
        assert len(ledger.entries("stays")) == 3  # half a body charged nothing
        ask_until_answered(process, tokens["ana"], "half")
        assert len(ledger.entries("stays")) == 4


def test_a_database_that_is_killed_loses_nothing_and_comes_back(tmp_path, monkeypatch):
    """Ledger and rows are gone at once and there again: refused meanwhile, and then as before."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with running_postgres(durable=True) as server:
        url = server.url(server.create_database())
        tokens = make(tmp_path / "stats", url, make_rows(url))
        with process_of(tmp_path / "stats") as process:
            with four_who_ask(process, tokens) as askers:
                for wanted, pause in ((2, 0.0), (6, 0.05)):
                    wait_for(lambda wanted=wanted: process.told("charged") >= wanted)
                    time.sleep(pause)
                    restart(server)
            check_counts(url, askers, ASKED, process)
            for each in askers:
                for answer in each.seen.values():
                    assert each.client.answer(answer.request) == answer


def restart(server) -> None:
    """Kill PostgreSQL by signal 9, with all that it has started, and start it again."""
    killed = _RUNNING[server.process]
    pid = killed.pid
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for each in (pid, *map(int, children)):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    killed.wait(30)
    stop = time.monotonic() + 60
    while time.monotonic() < stop:
        started = _RUNNING[server.process] = _start(command, _account(), server.folder / "log")
        while started.poll() is None and time.monotonic() < stop:
            with suppress(subprocess.CalledProcessError):
                server.run("SELECT 1")
                return
            time.sleep(0.05)
        time.sleep(0.2)
    pytest.fail("PostgreSQL did not come back")
