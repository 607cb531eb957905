"""A real server that is killed again and again: every charge has one answer, which can be read."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.server.conftest import make_folder

from hushed import Ledger
from hushed.client import Client, ServedAnswer, connect
from hushed.errors import LedgerUnavailable
from hushed.server._requests import list_open, list_requests

pytestmark = pytest.mark.slow

KILLS, ASKED = 6, 12
PATIENCE = 600.0  # seconds for everything that a test waits for, together


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass(kw_only=True)
class Process:
    """A server in a process of its own, on a port that stays the same."""

    folder: Path
    port: int
    stop: float = field(default_factory=lambda: time.monotonic() + PATIENCE)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def told(self, event: str) -> int:
        """Count the lines of an event in the log of all its lives."""
        return self._log.read_text().count(f'"event": "{event}"')

    @property
    def _log(self) -> Path:
        return self.folder.parent / "log"

    def start(self) -> None:
        """Start it, and wait until it says that it is ready."""
        command = [sys.executable, "-m", "hushed", "serve", "--folder", str(self.folder)]
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

    def kill(self) -> None:
        """End it by signal 9, in the middle of whatever it does."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(10)


@contextmanager
def process_of(folder: Path) -> Iterator[Process]:
    """Serve a folder on a free port; the process is gone at the end."""
    port = free_port()
    file = folder / "hushed.toml"
    told = file.read_text().replace("127.0.0.1:8642", f"127.0.0.1:{port}")
    file.write_text(told.replace("requests_per_minute = 120", "requests_per_minute = 100000"))
    process = Process(folder=folder, port=port)
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
    seen: dict[str, ServedAnswer] = field(default_factory=dict)  # by the key
    stop: float

    def ask_all(self) -> None:
        asked = self.client.table("stays").bound_contributions(max_rows_per_user=1).count()
        for number in range(ASKED):
            key = f"{self.name} {number}"
            while key not in self.seen:
                assert time.monotonic() < self.stop, "no answer in time"
                with suppress(LedgerUnavailable):
                    self.seen[key] = asked.release(epsilon=0.01, key=key, timeout=5)


def client_of(process: Process, token: str) -> Client:
    found = connect(process.url, token)
    object.__setattr__(found.line, "pause", lambda _: time.sleep(0.05))
    return found


def kill_often(process: Process, moments: random.Random) -> None:
    """Kill after a few charges of each life, at once or when they may be answered."""
    for _ in range(KILLS):
        wanted = process.told("charged") + moments.randint(1, 3)
        while process.told("charged") < wanted and time.monotonic() < process.stop:
            time.sleep(0.001)
        time.sleep(moments.choice([0.0, 0.01, 0.05, 0.2]))
        process.kill()
        process.start()


def test_kills_lose_no_answer_and_charge_nothing_twice(tmp_path, monkeypatch):
    """Entries of the ledger, requests and answers that can be read for nothing: as many of each."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tokens = make_folder(tmp_path)
    folder = tmp_path / "stats"
    with process_of(folder) as process, ThreadPoolExecutor(4) as pool:
        askers = [
            Asker(client=client_of(process, tokens[name]), name=f"{name} {i}", stop=process.stop)
            for name in ("ana", "bo")
            for i in range(2)
        ]
        asking = [pool.submit(each.ask_all) for each in askers]
        kill_often(process, random.Random(11))
        for each in asking:
            each.result()
        keys = {key for each in askers for key in each.seen}
        assert len(keys) == 4 * ASKED
        with Ledger(f"sqlite:///{folder / 'hushed.db'}", create=False) as ledger:
            entries = ledger.entries("stays")
            ledger.verify("stays")
            assert list_open(ledger) == ()
            requests = list_requests(ledger, person=None, cursor="", most=1000)
            shares = [len(ledger.entries(f"stays/{name}")) for name in ("ana", "bo")]
        assert [each.state for each in requests] == ["answered"] * len(keys)
        assert {each.key for each in requests} == keys
        assert [each.key for each in entries] == [
            each.id for each in sorted(requests, key=lambda each: each.entry)
        ]
        assert shares == [2 * ASKED] * 2
        for each in askers:
            for answer in each.seen.values():
                assert each.client.answer(answer.request) == answer
            assert each.client.recover() == []
        with Ledger(f"sqlite:///{folder / 'hushed.db'}", create=False) as ledger:
            assert ledger.entries("stays") == entries  # reading was free
        assert process.told("serving") == KILLS + 1
        assert process.told("answered again") > 0  # after a kill between a charge and its answer
