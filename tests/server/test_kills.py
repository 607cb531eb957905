"""A real server that is killed again and again: every charge has one answer, which can be read.

What a kill must meet is a charge without an answer. Each life is killed as soon as the log tells of
a charge, the first one at once, while four threads wait for answers of some 40 ms of a processor.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import pytest
from benchmarks.serving import children
from tests.server.conftest import make_folder
from tests.server.test_on_postgres import make

from hushed import Ledger
from hushed.client import Client, ServedAnswer, connect
from hushed.client._sending import NotTaken
from hushed.errors import EngineUnavailable, LedgerUnavailable, QueryFailed
from hushed.ledger._entries import Entry
from hushed.server._life import MOST_ATTEMPTS
from hushed.server._requests import list_open, list_requests

ASKED = 2  # questions of each of four threads; as many as kills to soak
PATIENCE = 600.0  # seconds for all that a test waits for; twenty times that to soak


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass(kw_only=True)
class Process:
    """A server in a process of its own, on a port that stays the same."""

    folder: Path
    port: int
    web: int = 1
    stop: float
    program: tuple[str, ...] = (sys.executable, "-m", "hushed")
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def told(self, event: str) -> int:
        """Count the lines of an event in the log of all its lives."""
        return self._log.read_text().count(f'"event": "{event}"')

    def reasons(self) -> set[str]:
        """Give the reasons for which requests have failed."""
        lines = (line for line in self._log.read_text().splitlines() if '"failed"' in line)
        told = (json.loads(line) for line in lines if line.startswith("{"))
        return {each["reason"] for each in told if each["event"] == "failed"}

    @property
    def _log(self) -> Path:
        return self.folder.parent / "log"

    def start(self) -> None:
        """Start it, and wait until it says that it is ready."""
        command = [*self.program, "serve", "--folder", str(self.folder)]
        command += ["--web", str(self.web)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        while time.monotonic() < self.stop:
            assert self._process.poll() is None, self._log.read_text()
            with suppress(OSError), urlopen(f"{self.url}/readyz", timeout=5) as found:
                assert found.status == 200
                return
            time.sleep(0.02)
        pytest.fail("the server was not ready in time")

    def workers(self) -> list[int]:
        """Processes that it has started, to judge and to read."""
        assert self._process is not None
        return children(self._process)

    def kill(self) -> None:
        """End it by signal 9, in the middle of whatever it does."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)


@contextmanager
def process_of(
    folder: Path, web: int = 1, patience: float = PATIENCE, program: tuple[str, ...] = ()
) -> Iterator[Process]:
    """Serve a folder on a free port; the process is gone at the end."""
    port = free_port()
    file = folder / "hushed.toml"
    told = file.read_text().replace("127.0.0.1:8642", f"127.0.0.1:{port}")
    file.write_text(told.replace("requests_per_minute = 120", "requests_per_minute = 100000"))
    process = Process(folder=folder, port=port, web=web, stop=time.monotonic() + patience)
    process.program = program or process.program
    process.start()
    try:
        yield process
    finally:
        process.kill()


@dataclass(kw_only=True)
class Asker:
    """An analyst who asks one question after another, and goes on after every broken line."""

    client: Client
    name: str
    asked: int
    seen: dict[str, ServedAnswer] = field(default_factory=dict)  # by the key
    failed: set[str] = field(default_factory=set)  # keys of what was cut off three times
    stop: float

    def ask_all(self) -> None:
        asked = self.client.table("stays").bound_contributions(max_rows_per_user=1).count()
        epsilon = 0.16 / self.asked  # two threads of each person, and a share of 0.6
        for number in range(self.asked):
            key = f"{self.name} {number}"
            while key not in self.seen and key not in self.failed:
                assert time.monotonic() < self.stop, "no answer in time"
                try:
                    self.seen[key] = asked.release(epsilon=epsilon, key=key, timeout=5)
                except QueryFailed:
                    self.failed.add(key)
                except (LedgerUnavailable, EngineUnavailable, NotTaken):
                    continue  # not taken: what would judge it was killed, or is not up yet


def client_of(process: Process, token: str) -> Client:
    found = connect(process.url, token)
    object.__setattr__(found.line, "pause", lambda _: time.sleep(0.05))
    return found


def kill_often(
    process: Process, kills: int, moments: random.Random, asking: list[Future[None]]
) -> int:
    """Kill after a few charges of each life, at once or when they may be answered; how many lives.

    So often, and until a kill has met a charge without an answer. Of many kills, each fourth is of
    a process that judges or reads: the server lives on.
    """
    number, lives = 0, 1
    while number < kills or not (process.told("answered again") or all_done(asking)):
        wanted = process.told("charged") + (moments.randint(1, 3) if number else 1)
        while process.told("charged") < wanted and not all_done(asking):
            time.sleep(0.001)
        time.sleep(moments.choice([0.0, 0.01, 0.05, 0.2]) if number else 0.0)
        number += 1
        started = process.workers() if number % 4 == 0 else []
        if started:
            with suppress(ProcessLookupError):
                os.kill(moments.choice(started), signal.SIGKILL)
            continue
        process.kill()
        process.start()
        lives += 1
    return lives


def all_done(asking: list[Future[None]]) -> bool:
    """Whether all have their answers; who has given up fails the test now."""
    done = [each for each in asking if each.done()]
    for each in done:
        each.result()
    return len(done) == len(asking)


HOW_OFTEN = pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.soak)]
)


@HOW_OFTEN
def test_kills_lose_no_answer_and_charge_nothing_twice(tmp_path, monkeypatch, kills):
    """Entries of the ledger, requests and answers that can be read for nothing: as many of each."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tokens = make_folder(tmp_path)
    ask_under_kills(tmp_path / "stats", tokens, f"sqlite:///{tmp_path}/stats/hushed.db", kills)


@pytest.mark.soak  # web processes on PostgreSQL are killed in each run: test_web_kills.py
def test_kills_on_postgresql_lose_and_double_nothing(tmp_path, monkeypatch, postgres_url, source):
    """The lock of a dead process does not keep the next one out, either."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tokens = make(tmp_path / "stats", postgres_url, source)
    ask_under_kills(tmp_path / "stats", tokens, postgres_url, 200)


def asked_of(kills: int) -> int:
    """Questions of each thread: so many that they are asked until the last kill."""
    return max(ASKED, kills)


def patience_of(kills: int) -> float:
    """Seconds for as many starts, also where others use the processors."""
    return PATIENCE if kills < 4 else 20 * PATIENCE


def ask_under_kills(folder: Path, tokens: dict[str, str], url: str, kills: int) -> None:
    """Ask from four threads while the server is killed, and count at the end."""
    asked = asked_of(kills)
    with process_of(folder, patience=patience_of(kills)) as process, ThreadPoolExecutor(4) as pool:
        askers = [
            Asker(
                client=client_of(process, tokens[name]),
                name=f"{name} {i}",
                asked=asked,
                stop=process.stop,
            )
            for name in ("ana", "bo")
            for i in range(2)
        ]
        asking = [pool.submit(each.ask_all) for each in askers]
        lives = kill_often(process, kills, random.Random(11), asking)
        for each in asking:
            each.result()
        entries = check_counts(url, askers, asked, process)
        for each in askers:
            for answer in each.seen.values():
                assert each.client.answer(answer.request) == answer
            assert each.client.recover() == []
        with Ledger(url, create=False) as ledger:
            assert ledger.entries("stays") == entries  # reading was free
        assert process.told("serving") == lives
        assert process.told("answered again") > 0  # after a kill between a charge and its answer


def check_counts(url: str, askers: list[Asker], asked: int, process: Process) -> tuple[Entry, ...]:
    """One charge of the data set and of a share for each key, and none without an end.

    A request that three kills have cut off has failed, and its charge stays, as the page for
    operators says. Of many kills some do that; no other request may fail.
    """
    seen = {key for each in askers for key in each.seen}
    failed = {key for each in askers for key in each.failed}
    assert len(seen) + len(failed) == 4 * asked
    with Ledger(url, create=False) as ledger:
        entries = ledger.entries("stays")
        ledger.verify("stays")
        assert list_open(ledger) == ()
        requests = list_requests(ledger, person=None, cursor="", most=1000)
        shares = [len(ledger.entries(f"stays/{name}")) for name in ("ana", "bo")]
    assert {each.key for each in requests if each.state == "answered"} == seen
    assert {each.key for each in requests if each.state == "failed"} == failed
    assert len(requests) == 4 * asked
    assert all(each.attempts == MOST_ATTEMPTS for each in requests if each.state == "failed")
    assert process.reasons() <= {"attempts"}
    cuts = process.told("serving") - 1 + process.told("run interrupted")
    assert not failed or cuts >= MOST_ATTEMPTS  # a web process reads nothing: its end is none
    charged = sorted(requests, key=lambda each: each.charge())
    assert [each.key for each in entries] == [each.id for each in charged]
    assert shares == [2 * asked] * 2
    return entries
