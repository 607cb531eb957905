"""How much the web process does for a request, counted: threads, transactions, looks."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from fractions import Fraction
from threading import Semaphore, current_thread
from typing import Any
from unittest.mock import Mock

import anyio.to_thread
import pytest
from tests.server.conftest import QUERY
from tests.server.test_workers import wait_for

from hushed import Guarantee
from hushed.ledger import Ledger
from hushed.ledger._glances import Glances
from hushed.ledger._rows import run
from hushed.ledger._store import Store
from hushed.ledger._together import reading, writing
from hushed.server import _callers, _gates, _life, _mark, _quick, _requests, _serving
from hushed.server._desk import Desk
from hushed.server._gates import MOST_AT_ONCE
from hushed.server._judging import Ask
from hushed.server._life import take
from hushed.server._mark import Tally, write_mark
from hushed.server._people import MACHINE, find_caller, insert_token
from hushed.server._requests import OPEN, find_request, list_requests
from hushed.server._routes import asking
from hushed.server._serving import listen
from hushed.server._tokens import Scope
from hushed.workbench._serving import open_port


@pytest.fixture
def counted(monkeypatch):
    """Counts what a process does: transactions that read, and work that is given to threads."""
    counts: Counter[str] = Counter()
    looking, run_sync = Store.looking, anyio.to_thread.run_sync
    glancing = Glances.looking

    @contextmanager
    def look(self: Store) -> Any:
        counts["transactions"] += 1
        with looking(self) as connection:
            yield connection

    @contextmanager
    def glance(self: Glances) -> Any:
        counts["glances"] += 1
        with glancing(self) as connection:
            yield connection

    async def hand_over(*args: Any, **rest: Any) -> Any:
        counts["threads"] += 1
        return await run_sync(*args, **rest)

    monkeypatch.setattr(Store, "looking", look)
    monkeypatch.setattr(Glances, "looking", glance)
    monkeypatch.setattr(anyio.to_thread, "run_sync", hand_over)
    return counts


@pytest.mark.parametrize(
    ("path", "transactions"),
    [
        ("/v1/me", 3),  # who asks, the shares, where one stands
        ("/v1/requests/{}", 3),  # who asks, the request, whether the mark tells of its end
        ("/v1/requests/{}/answer", 5),
        ("/v1/requests/{}/certificate", 4),
    ],
)
def test_a_reader_takes_one_thread_and_few_transactions(team, counted, path, transactions):
    """Each thread more is a wait of the loop for it, of all who ask at once."""
    made = team.ask(team.ana, "one").json()
    path = path.format(made["id"])
    team.desk.covered.clear()
    counted.clear()
    assert team.send("GET", path, team.ana).status_code == 200
    glances = int("requests" in path)  # of who asks, and whether it can be answered at once
    found = {"threads": 1, "transactions": transactions, "glances": glances}
    assert counted == Counter(found)


@pytest.mark.parametrize("path", ["", "/answer", "/certificate"])
def test_what_was_read_before_takes_no_thread(team, counted, path):
    """One look over a connection that is kept."""
    made = team.ask(team.ana, "one").json()
    counted.clear()
    assert team.send("GET", f"/v1/requests/{made['id']}{path}", team.ana).status_code == 200
    assert counted == {"glances": 1}


@pytest.mark.parametrize("path", ["/answer", "/certificate"])
def test_what_is_long_keeps_everybody_waiting_once(team, counted, monkeypatch, path):
    """Afterwards it is read by a thread: a certificate of 20 MB takes 30 ms and more."""
    made = team.ask(team.ana, "one").json()
    monkeypatch.setattr(_quick, "_LONGEST_ANSWER", 10)
    threads = []
    for _ in range(3):
        counted.clear()
        assert team.send("GET", f"/v1/requests/{made['id']}{path}", team.ana).status_code == 200
        threads.append(counted["threads"])
    assert threads == [0, 1, 1]


def test_who_asks_and_does_not_wait_takes_one_thread(team, counted):
    """Taken and shown in one."""
    team.ask(team.ana, "one")
    counted.clear()
    assert team.ask(team.ana, "one", wait=0).status_code == 201
    assert counted["threads"] == 1


def test_who_asks_anew_is_looked_up_in_one_transaction(team, counted, monkeypatch):
    """Who asks, the key and the share at once, by the thread that takes what many ask.

    All else is in the charge.
    """
    monkeypatch.setattr(Desk, "start", lambda *_: None)
    assert team.ask(team.ana, "one", wait=0).status_code == 202
    counted.clear()
    assert team.ask(team.ana, "two", wait=0).status_code == 202
    assert counted == {"transactions": 1}


def test_of_many_who_ask_at_once_one_looks_at_a_time(team, monkeypatch):
    """Hundreds of threads that each let go of Python again and again keep the loop waiting."""
    monkeypatch.setattr(Desk, "start", lambda *_: None)
    asked = Ask(query=QUERY, epsilon=0.01)
    caller = find_caller(team.desk.ledger, team.ana, "")
    take(team.desk, caller, "stays", "0", asked)  # judged by now
    looking, together = Store.looking, []
    lock, inside = threading.Lock(), []

    @contextmanager
    def look(self: Store) -> Any:
        with looking(self) as connection:
            with lock:
                inside.append(None)
                together.append(len(inside))
            time.sleep(0.02)
            with lock:
                inside.pop()
            yield connection

    def ask(key: int) -> None:
        found = find_caller(team.desk.ledger, team.ana, "")
        assert take(team.desk, found, "stays", str(key), asked).state == "charged"

    monkeypatch.setattr(Store, "looking", look)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(1, 4)))
    assert together == [1] * 6


@pytest.mark.parametrize("path", ["/v1/requests", "/v1/functions", "/pages/requests"])
def test_what_one_person_reads_keeps_nobody_else_waiting(team, monkeypatch, path):
    """Few of it are worked on at once, some wait without a thread, and more are refused."""
    reads, held = MOST_AT_ONCE + 2, Semaphore(0)
    begun, real = Semaphore(0), _callers.Callers.admit

    def admit(self: Any, scope: Any, text: str, use: Any = "api") -> Any:
        found = real(self, scope, text, use)
        if found.name == "ana":
            begun.release()
            assert held.acquire(timeout=60)
        return found

    shown = {"authorization": f"Bearer {team.ana}"}
    if path.startswith("/pages"):
        caller, life = find_caller(team.desk.ledger, team.ana, ""), timedelta(hours=1)
        with writing(team.desk.ledger) as connection:
            told = {"scope": Scope(use="page"), "maker": MACHINE, "life": life}
            _, session = insert_token(connection, caller.id, **told)
        shown = {"cookie": f"hushed-8642={session}"}
    monkeypatch.setattr(_callers.Callers, "admit", admit)
    monkeypatch.setattr(_gates, "MOST_WAITING", 2)
    with ThreadPoolExecutor(reads) as pool:
        asked = [pool.submit(team.client.get, path, headers=shown) for _ in range(reads)]
        for _ in range(MOST_AT_ONCE):
            assert begun.acquire(timeout=60)
        wait_for(lambda: [each.inside for each in gates_of(team).values()] == [reads])
        assert not begun.acquire(timeout=0.2)
        assert team.client.get(path, headers=shown).status_code == 429
        assert team.send("GET", "/v1/requests", team.bo).status_code == 200
        held.release(reads)
        assert [each.result().status_code for each in asked] == [200] * reads
    assert not gates_of(team)


def test_no_look_at_requests_reads_the_questions_of_all(team, monkeypatch):
    """Where somebody had asked five thousand long ones, each of their charges read 300 MB."""
    asked: list[tuple[str, dict[str, Any]]] = [(OPEN, {"person": "p", "now": "n"})]
    real = _requests.fetch_all

    def note(connection: Any, statement: str, **values: Any) -> Any:
        if current_thread() is here:  # the running server looks for what is open, too
            asked.append((statement, values))
        return real(connection, statement, **values)

    here = current_thread()
    monkeypatch.setattr(_requests, "fetch_all", note)
    for person, cursor in (("p", ""), (None, "c")):
        list_requests(team.desk.ledger, person=person, cursor=cursor, most=50)
    with reading(team.desk.ledger) as connection:
        plans = [
            [row[3] for row in run(connection, f"EXPLAIN QUERY PLAN {each}", values).fetchall()]
            for each, values in asked
        ]
    looks = [step for plan in plans for step in plan if "hushed_s_requests" in step]
    assert len(looks) == 4
    assert all(" INDEX " in each for each in looks), looks
    assert all("COVERING" in each for each in looks[:2]), looks
    assert not [each for plan in plans for each in plan if each.endswith(" FOR ORDER BY")]


def gates_of(team: Any) -> Any:
    """Who asks now."""
    return team.client.app._app._gates._gates


def test_a_token_that_waits_to_be_written_keeps_nobody_from_looking(team):
    """Its first use of a day is written down, and the ledger may be locked meanwhile."""
    ledger, found = team.desk.ledger, []
    with writing(ledger) as connection:
        run(connection, "UPDATE @.hushed_s_tokens SET last_used = NULL", {})
    assert find_caller(ledger, team.bo, "") is not None  # and it is written down
    first, other = (
        threading.Thread(target=lambda text=text: found.append(find_caller(ledger, text, "")))
        for text in (team.ana, team.bo)
    )
    with writing(ledger):
        first.start()
        first.join(0.5)
        other.start()
        other.join(5)
        assert first.is_alive()
        assert [each.name for each in found] == ["bo"]
    first.join(20)
    assert len(found) == 2


@pytest.mark.parametrize(
    ("who", "path", "code"),
    [
        (None, "/v1/requests?most=0", 401),
        ("hsh_0", "/v1/requests?most=0", 401),
        ("ana", "/v1/requests?most=0", 422),
        ("sam", f"/v1/datasets/stays/requests?{'x' * 9}", 403),
    ],
)
def test_whoever_may_not_ask_hears_of_no_value(quiet, who, path, code):
    """Who asks is found by the thread that works; a value that cannot be used comes before it."""
    token = getattr(quiet, who) if who in ("ana", "sam") else who
    if "datasets" in path:
        found = quiet.send("POST", path, token, json={"query": 1})
    else:
        found = quiet.send("GET", path, token)
    assert found.status_code == code


def test_who_waits_is_woken_by_the_end_and_asks_the_database_once(team, monkeypatch):
    """No thread, and no look at the database, while it runs."""
    held: Future[None] = Future()
    made = team.ask(team.ana, "one").json()
    done = find_request(team.desk.ledger, made["id"])
    charged = _life.replace(done, state="charged", done_at=None, readable_at=None)
    looks: list[str] = []

    def look(ledger: Any, identity: str) -> Any:
        looks.append(identity)
        return done

    monkeypatch.setattr(asking, "find_request", look)
    monkeypatch.setattr(team.desk.queue.__class__, "find", lambda *_: held)

    async def wait(seconds: float, ends: float | None) -> Any:
        if ends is not None:
            asyncio.get_running_loop().call_later(ends, held.set_result, None)
        return await asking._wait(team.desk, charged, seconds)

    assert asyncio.run(wait(0.2, None)) is charged
    assert looks == []
    assert asyncio.run(wait(20.0, 0.2)) is done
    assert looks == [made["id"]]


@pytest.mark.parametrize("open_socket", [lambda: listen("127.0.0.1:0"), lambda: open_port(0)])
def test_no_answer_waits_for_the_other_end_to_acknowledge_its_head(open_socket):
    """Asyncio turns Nagle's wait off only where a socket says that it is one of TCP."""

    async def serve(listening: socket.socket) -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def met(_: Any, writer: asyncio.StreamWriter) -> None:
            own = writer.get_extra_info("socket")
            found.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(met, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return await found

    with open_socket() as listening:
        assert asyncio.run(serve(listening))


def test_what_is_loaded_is_left_out_of_collections_of_garbage(team, monkeypatch):
    """To go through all of it would keep every thread, and who asks, for a tenth of a second."""
    frozen: list[int] = []

    def run(*_: Any) -> None:
        frozen.append(gc.get_freeze_count())

    monkeypatch.setattr(_serving.uvicorn.Server, "run", run)
    monkeypatch.setattr(_serving, "listen", lambda _: listen("127.0.0.1:0"))
    try:
        _serving._serve_here(team.desk, Mock())
    finally:
        gc.unfreeze()
    assert frozen[0] > 50_000


def test_the_mark_tells_of_every_budget_and_reads_those_that_were_charged(tmp_path, monkeypatch):
    """A sum of its own, of what the ledger lists; nothing is read where nothing was charged."""
    read: list[str] = []
    real = _mark.rows.entries_after

    def note(connection: Any, name: str, *told: Any) -> Any:
        read.append(name)
        return real(connection, name, *told)

    monkeypatch.setattr(_mark.rows, "entries_after", note)
    tally, file = Tally(), tmp_path / "mark"
    with Ledger(f"sqlite:///{tmp_path / 'a.db'}") as ledger:
        for turn, charged in enumerate([(), "a", "ab", (), "c", "bb"]):
            if turn in (0, 4):
                for name in "c" if turn else "ab":
                    ledger.open_budget(name, Guarantee(epsilon=5.0, delta=0.1))
            for name in charged:
                ledger.charge(name, Guarantee(epsilon=0.1 * (turn + 1), delta=1e-9))
            read.clear()
            with reading(ledger) as connection:
                write_mark(file, (turn, "0" * 64), tally.count(connection))
            assert sorted(read) == sorted(set(charged))
            entries = {name: ledger.entries(name) for name in ("abc" if turn > 3 else "ab")}
            found = _mark.read_spent(file)
            assert found.keys() == entries.keys()
            for name, listed in entries.items():
                sums = [
                    sum(Fraction(repr(getattr(each.guarantee, what))) for each in listed)
                    for what in ("epsilon", "delta")
                ]
                told = found[name]
                assert [told.entries, told.epsilon, told.delta] == [len(listed), *sums]
