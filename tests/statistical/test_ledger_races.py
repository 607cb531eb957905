"""Processes that race for the last unit, and processes killed in the middle of a charge.

By default few, and at chosen moments; `make soak` has many, at random ones.
"""

import multiprocessing
import os
import signal
import sqlite3
import struct
import sys
import time
from collections import Counter

import numpy as np
import pytest

import hushed as hs
from hushed.errors import Overspent

UNIT = 1e-6
RECORD = struct.Struct("<q")


@pytest.fixture(scope="module")
def processes():
    """Starts processes of their own that need not import everything again."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["hushed.ledger._accounts", "sqlalchemy", "psycopg", __name__, "tests.statistical"]
    )
    return context


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/race.db"
    return request.getfixturevalue("postgres_url")


def race(url, rounds, barrier, results):
    """Try to get the last unit of each budget, all at the same moment."""
    won = []
    try:
        with hs.Ledger(url, create=False) as book:
            for number in range(rounds):
                barrier.wait(200)
                try:
                    book.charge(f"round {number}", hs.Guarantee(epsilon=1.0))
                except Overspent:
                    continue
                won.append(number)
    except Exception:
        barrier.abort()  # nobody waits for it
        raise
    finally:
        results.put(won)


def run_race(processes, url, runners, rounds):
    """Who won: the number of winners of each round."""
    with hs.Ledger(url) as book:
        for number in range(rounds):
            book.open_budget(f"round {number}", hs.Guarantee(epsilon=3.0))
            book.charge(f"round {number}", hs.Guarantee(epsilon=2.0))
    barrier, results = processes.Barrier(runners), processes.Queue()
    children = [
        processes.Process(target=race, args=(url, rounds, barrier, results)) for _ in range(runners)
    ]
    for each in children:
        each.start()
    winners = Counter(number for _ in children for number in results.get(timeout=240))
    for each in children:
        each.join()
    assert [each.exitcode for each in children] == [0] * runners
    with hs.Ledger(url) as book:
        for number in range(rounds):
            assert book.balance(f"round {number}").entries == 2
            assert book.balance(f"round {number}").spent.epsilon == 3.0
    return winners


@pytest.mark.slow
def test_eight_processes_race_for_the_last_unit(processes, url):
    """One process gets it, seven are refused; nothing is charged twice, in twelve rounds."""
    assert run_race(processes, url, 8, 12) == dict.fromkeys(range(12), 1)


@pytest.mark.soak
def test_sixty_four_processes_race_for_the_last_unit(processes, url):
    """One of 64 gets it in each of ten rounds: 0 double, 0 overspent."""
    assert run_race(processes, url, 64, 10) == dict.fromkeys(range(10), 1)


def spend(url, pipe):
    """Charge and answer until killed; an answer is one write that cannot be torn."""
    with hs.Ledger(url, create=False) as book:
        while True:
            entry = book.charge("b", hs.Guarantee(epsilon=UNIT))
            os.write(pipe.fileno(), RECORD.pack(entry.number))


def end_of(processes, target, url, *given, act=lambda child, pipe: None):
    """Numbers that a spender answered before it ended, and its exit code."""
    ours, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=target, args=(url, theirs, *given))
    child.start()
    theirs.close()
    act(child, ours)
    child.join()
    told = b""
    while chunk := os.read(ours.fileno(), 65536):
        told += chunk
    ours.close()
    return [number for (number,) in RECORD.iter_unpack(told)], child.exitcode


def kill_once(processes, url, wait, *, started):
    """Numbers that a spender answered before it was killed, some seconds after start or answer."""

    def kill(child, pipe):
        if started:
            assert pipe.poll(60)
        time.sleep(wait)
        child.kill()

    numbers, code = end_of(processes, spend, url, act=kill)
    assert code == -9
    return numbers


def kill_many(processes, make_url, trials, *, each=50, settled=lambda url: None):
    """Kill spenders at random moments; how many charges were answered, how many were not.

    A server finishes what a killed client had sent: settled(url) returns when it has.
    """
    rng = np.random.default_rng(20)
    answered = unanswered = 0
    for start in range(0, trials, each):
        url = make_url()
        with hs.Ledger(url) as book:
            book.open_budget("b", hs.Guarantee(epsilon=1.0))
            known = 0
            for _ in range(min(each, trials - start)):
                # One in ten while it opens the ledger, the others while it charges.
                started = bool(rng.random() < 0.9)
                wait = float(rng.uniform(0.0, 0.01 if started else 0.1))
                numbers = kill_once(processes, url, wait, started=started)
                settled(url)
                entries = book.balance("b").entries
                # Nothing lost: what was answered is there, in order. Nothing unpaid: no answer
                # without its entry. At most one charge, the last, was made and not answered.
                assert numbers == list(range(known + 1, known + 1 + len(numbers)))
                assert 0 <= entries - known - len(numbers) <= 1
                unanswered += entries - known - len(numbers)
                answered, known = answered + len(numbers), entries
            assert len(book.entries("b")) == known
            assert book.balance("b").spent.epsilon == known / 10**6
    return answered, unanswered


def spend_until(url, pipe, moment):
    """Charge and answer twice; die before the given call of the second time that leaves Python."""
    left = [moment]

    def die(_, event, called):
        if event == "c_call" and called.__name__ in {"execute", "commit", "write"}:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    with hs.Ledger(url, create=False) as book:
        for second in (False, True):
            sys.setprofile(die if second else None)
            entry = book.charge("b", hs.Guarantee(epsilon=UNIT))
            os.write(pipe.fileno(), RECORD.pack(entry.number))
        sys.setprofile(None)


@pytest.mark.slow
def test_a_kill_at_each_moment_of_a_charge_loses_nothing(processes, tmp_path):
    """Before each statement, the commit and the answer: what was answered is there, always.

    No draw: were the answer given before the commit, the kill between the two would show it.
    """
    ends = []
    for moment in range(100):
        url = f"sqlite:///{tmp_path}/{moment}.db"
        with hs.Ledger(url) as book:
            book.open_budget("b", hs.Guarantee(epsilon=1.0))
        numbers, code = end_of(processes, spend_until, url, moment)
        with hs.Ledger(url) as book:
            ends.append((len(numbers), book.balance("b").entries, code))
        if code == 0:
            break
    # Killed before the commit, killed after it but before the answer, and alive.
    *before, unanswered, whole = ends
    assert before == [(1, 1, -9)] * len(before)
    assert len(before) >= 3  # before the transaction, within it, and before the commit
    assert unanswered == (1, 2, -9)
    assert whole == (2, 2, 0)


@pytest.mark.slow
def test_killed_spenders_lose_nothing(processes, tmp_path):
    """Fifteen kill -9 at random moments: every answer is paid for, the file is whole."""
    file = tmp_path / "kill.db"
    answered, _ = kill_many(processes, lambda: f"sqlite:///{file}", 15)
    assert answered > 0
    found = sqlite3.connect(file)
    assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found.close()


@pytest.mark.soak
def test_a_thousand_killed_spenders_lose_nothing(processes, tmp_path):
    """A thousand kill -9 at random moments, some of them between a charge and its answer."""
    files = iter(range(1000))
    answered, unanswered = kill_many(
        processes, lambda: f"sqlite:///{tmp_path}/kill{next(files)}.db", 1000
    )
    assert answered > 800  # nine in ten were killed after their first answer
    assert unanswered > 0  # the dangerous moment was hit


@pytest.mark.parametrize(
    "kills", [pytest.param(10, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.soak)]
)
def test_killed_clients_of_a_server_lose_nothing(processes, postgres, kills):
    """Clients of PostgreSQL are killed; what they sent may be committed after them."""
    answered, _ = kill_many(
        processes,
        lambda: postgres.url(postgres.create_database()),
        kills,
        settled=lambda url: wait_for_the_server(postgres, url),
    )
    assert answered > 0


def wait_for_the_server(postgres, url):
    """Return when only one session, the ledger of the test, is left on the database."""
    sessions = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{url.rsplit('/', 1)[1]}'"
    ends = time.monotonic() + 60
    while (left := int(postgres.run(sessions))) > 1:
        assert time.monotonic() < ends, f"{left - 1} sessions of killed clients are still there"
        time.sleep(0.005)
