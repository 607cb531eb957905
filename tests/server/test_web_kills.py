"""A server of several web processes that are killed and stopped, and a keeper that is."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.server.test_kills import (
    ASKED,
    HOW_OFTEN,
    PATIENCE,
    Asker,
    Process,
    all_done,
    asked_of,
    check_counts,
    client_of,
    free_port,
    patience_of,
    process_of,
)
from tests.server.test_metrics import read
from tests.server.test_on_postgres import make


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait as long as a process may take to start where many others run."""
    stop = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < stop
        time.sleep(0.01)


def web_pids(process: Process) -> list[int]:
    """List the web processes of a keeper."""
    found = []
    for task in Path(f"/proc/{process._process.pid}/task").glob("*/children"):
        for pid in map(int, task.read_text().split()):
            with suppress(OSError):
                if b"_web_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
    return found


def kill_webs(process: Process, kills: int, moments: random.Random, asking: list[Any]) -> int:
    """Kill one web process after the other, each a few charges after the one before; how often."""
    killed: set[int] = set()
    while len(killed) < kills and not all_done(asking):
        wanted = process.told("charged") + moments.randint(1, 2)
        while process.told("charged") < wanted and not all_done(asking):
            time.sleep(0.001)
        time.sleep(moments.choice([0.0, 0.01, 0.05, 0.2]))
        alive = sorted({*web_pids(process)} - killed)
        if alive:
            chosen = moments.choice(alive)
            os.kill(chosen, signal.SIGKILL)
            killed.add(chosen)
    return len(killed)


def askers_of(process: Process, tokens: dict[str, str], asked: int) -> list[Asker]:
    return [
        Asker(
            client=client_of(process, tokens[name]),
            name=f"{name} {i}",
            asked=asked,
            stop=process.stop,
        )
        for name in ("ana", "bo")
        for i in range(2)
    ]


@HOW_OFTEN
def test_web_processes_that_are_killed_are_replaced_and_lose_nothing(
    tmp_path, monkeypatch, postgres_url, source, kills
):
    """By signal 9, under load: as many charges as requests and answers that can be read again.

    The keeper lives on, and so does the other process; metrics and health tell of all of them.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder, watched = tmp_path / "stats", free_port()
    tokens = make(folder, postgres_url, source)
    tell_metrics_at(folder, watched)
    asked, patience = asked_of(kills), patience_of(kills)
    with process_of(folder, web=2, patience=patience) as process, ThreadPoolExecutor(4) as pool:
        askers = askers_of(process, tokens, asked)
        asking = [pool.submit(each.ask_all) for each in askers]
        killed = kill_webs(process, kills, random.Random(17), asking)
        for each in asking:
            each.result()
        assert killed == kills
        check_counts(postgres_url, askers, asked, process)
        for each in askers:
            for answer in each.seen.values():
                assert each.client.answer(answer.request) == answer
            assert each.client.recover() == []
        assert process.told("serving") == 1
        wait_for(lambda: process.told("web process ended") == killed)
        wait_for(lambda: read(scrape(watched))["hushed_web_processes", None] == 2)
        found = read(scrape(watched))
        assert found["hushed_requests", 'state="answered"'] == 4 * asked
        assert found["hushed_faults_total", 'fault="web_process_ended"'] == killed
        with urlopen(f"{process.url}/readyz", timeout=60) as ready:
            assert ready.status == 200
    assert "Traceback" not in process._log.read_text()


def tell_metrics_at(folder: Path, port: int) -> None:
    file = folder / "hushed.toml"
    told = file.read_text().replace('# metrics = "127.0.0.1:8643"', f'metrics = "127.0.0.1:{port}"')
    file.write_text(told)


def scrape(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as found:
        return found.read().decode()


@pytest.mark.slow
def test_numbers_are_those_of_all_processes(tmp_path, postgres_url, source):
    """Answers over HTTP that two processes gave, and those of one that was stopped since."""
    folder, watched = tmp_path / "stats", free_port()
    make(folder, postgres_url, source)
    tell_metrics_at(folder, watched)
    label = 'method="GET",route="/livez",status="200"'
    with process_of(folder, web=2) as process:
        for _ in range(20):
            with urlopen(f"{process.url}/livez", timeout=60) as found:
                assert found.status == 200
        wait_for(lambda: read(scrape(watched)).get(("hushed_http_responses_total", label)) == 20)
        wait_for(lambda: len(web_pids(process)) == 2 == process.told("web process started"))
        for pid in web_pids(process):
            os.kill(pid, signal.SIGTERM)  # one that somebody stops is replaced, too
        wait_for(lambda: process.told("web process started") == 4)
        assert read(scrape(watched))["hushed_http_responses_total", label] == 20


@pytest.mark.soak  # a server of one process is stopped in each run: test_faults.py
def test_a_stop_ends_all_and_the_next_start_answers_the_rest(
    tmp_path, monkeypatch, postgres_url, source
):
    """SIGTERM while four threads ask: no process is left, and nothing is lost."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tokens = make(tmp_path / "stats", postgres_url, source)
    with process_of(tmp_path / "stats", web=2) as process, ThreadPoolExecutor(4) as pool:
        askers = askers_of(process, tokens, ASKED)
        asking = [pool.submit(each.ask_all) for each in askers]
        wait_for(lambda: process.told("charged") >= 3)
        pids = web_pids(process)
        assert len(pids) == 2
        process._process.send_signal(signal.SIGTERM)
        assert process._process.wait(200) == 130
        assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
        process.start()
        for each in asking:
            each.result()
        check_counts(postgres_url, askers, ASKED, process)
    assert "Traceback" not in process._log.read_text()


@pytest.mark.slow
def test_a_killed_keeper_takes_its_web_processes_with_it(
    tmp_path, monkeypatch, postgres_url, source
):
    """Nobody would answer what they charge; the next start answers what they charged."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tokens = make(tmp_path / "stats", postgres_url, source)
    with process_of(tmp_path / "stats", web=2) as process, ThreadPoolExecutor(4) as pool:
        askers = askers_of(process, tokens, ASKED)
        asking = [pool.submit(each.ask_all) for each in askers]
        wait_for(lambda: process.told("charged") >= 2)
        pids = web_pids(process)
        process.kill()
        wait_for(lambda: not any(map(is_running, pids)))
        process.start()
        for each in asking:
            each.result()
        check_counts(postgres_url, askers, ASKED, process)


def is_running(pid: int) -> bool:
    """Whether it runs; one that has ended may not have been waited for yet."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
