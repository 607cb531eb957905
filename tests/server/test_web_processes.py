"""Several web processes of one server: each promise holds across them, and through their deaths.

Two desks of one test process stand for two web processes where the moment counts: they share
nothing but the database, the mark and what the keeper hands on. `test_web_kills` kills real ones.
"""

from __future__ import annotations

import errno
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from fastapi.testclient import TestClient
from tests.server.conftest import (
    ORIGIN,
    QUERY,
    Team,
    make_folder,
    shared_runners,
    shared_workers,
)
from tests.server.test_on_postgres import make
from tests.server.test_workers import wait_for
from typer.testing import CliRunner

from hushed.cli import app
from hushed.errors import LedgerUnavailable, ParameterError
from hushed.ledger._together import reading
from hushed.server import _desk, _life, _people, _web_processes, serve
from hushed.server._adding import confirm_dataset
from hushed.server._app import make_app, open_desk, sweep
from hushed.server._audit import add_event, trail_head, verify_trail
from hushed.server._config import Settings
from hushed.server._desk import Desk
from hushed.server._functions import Function
from hushed.server._life import run_charged
from hushed.server._log import Log
from hushed.server._mark import read_mark
from hushed.server._people import revoke_token, set_active
from hushed.server._requests import Request, find_request
from hushed.server._routes import health
from hushed.server._setup import invite
from hushed.server._shared import Shared, SharedRates, make_shared
from hushed.server._tokens import Scope
from hushed.server._told import Told
from hushed.server._web_processes import WebProcesses

MOST = 5.0  # seconds that one waits for another who may not come: it passes without, too


def test_several_need_postgresql(tmp_path):
    """A ledger in a file has one process; nothing is begun."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    with pytest.raises(ParameterError, match="2 web processes need a ledger on PostgreSQL"):
        serve(folder, web=2)
    for odd in (0, -1, 65):
        with pytest.raises(ParameterError, match="1 to 64 web processes"):
            serve(folder, web=odd)
    done = CliRunner().invoke(app, ["serve", "--web", "2", "--folder", str(folder)])
    assert done.exit_code == 2
    assert "hushed serve move" in done.output


class TestRates:
    """How often somebody knocks is counted in all processes together."""

    def test_two_who_share_count_together(self):
        with make_shared() as one:
            two = Shared(one.number)
            rates = [SharedRates(each, "requests", 5) for each in (one, two)]
            assert [rates[i % 2].take("ana") for i in range(7)] == [True] * 5 + [False] * 2
            assert rates[0].take("bo")
            assert SharedRates(two, "failures", 1).take("ana")  # another count

    def test_a_minute_later_all_is_forgotten_and_not_before(self, monkeypatch):
        moment = [1000.0]
        monkeypatch.setattr("hushed.server._shared.time.monotonic", lambda: moment[0])
        with make_shared() as shared:
            rates = SharedRates(shared, "requests", 3)
            taken = [1000.0, 1007.0, 1031.0]
            for moment[0] in taken:
                assert rates.take("ana")
            for moment[0] in (1031.0, 1045.0, 1060.0):
                assert not rates.take("ana")
            moment[0] = 1066.0
            assert rates.take("ana")  # the first one is gone
            assert not rates.take("ana")
            moment[0] = 9000.0
            assert [rates.take("ana") for _ in range(4)] == [True] * 3 + [False]

    def test_in_no_minute_are_there_more_than_allowed(self, monkeypatch):
        """By brute force over random moments."""
        moment, moments = [0.0], random.Random(5)
        monkeypatch.setattr("hushed.server._shared.time.monotonic", lambda: moment[0])
        with make_shared() as shared:
            rates, passed = SharedRates(shared, "requests", 4), []
            for _ in range(3000):
                moment[0] += moments.choice([0.0, 0.3, 2.0, 11.0, 40.0])
                if rates.take("ana"):
                    passed.append(moment[0])
        assert len(passed) > 500
        for first, fifth in zip(passed, passed[4:], strict=False):
            assert fifth - first >= 60.0

    def test_a_crowd_of_addresses_crowds_out_nobody_who_asks(self):
        with make_shared() as shared:
            asked = SharedRates(shared, "requests", 1)
            assert asked.take("ana")
            failures = SharedRates(shared, "failures", 10)
            assert all(failures.take(f"10.0.{i // 256}.{i % 256}") for i in range(20_000))
            assert not asked.take("ana")

    @pytest.mark.slow
    def test_processes_count_exactly(self):
        """Four at once, who are started anew and take what they can."""
        program = (
            "import sys; from hushed.server._shared import *; time.monotonic = lambda: 100.0; "
            "rates = SharedRates(Shared(int(sys.argv[1])), 'requests', 15000); "
            "print('ready', flush=True); input(); "
            "print(sum(rates.take('ana') for _ in range(5000)))"
        )
        with make_shared() as shared:
            started = [
                subprocess.Popen(
                    [sys.executable, "-c", program, str(shared.number)],
                    pass_fds=[shared.number],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
                for _ in range(4)
            ]
            for each in started:
                assert each.stdout.readline() == b"ready\n"
            for each in started:
                each.stdin.write(b"\n")
                each.stdin.flush()
            taken = [int(each.communicate(timeout=300)[0]) for each in started]
        assert sum(taken) == 15_000


def test_a_wait_looks_at_the_moments_of_the_grid(monkeypatch):
    """And at none between them, wherever it runs: that would tell how long the rows took."""
    start = datetime(2027, 1, 31, tzinfo=UTC)
    told = {"id": "1", "person": "p", "dataset": "d", "key": "k", "digest": "", "body": ""}
    told |= {"token": "t", "asked_at": "", "budget": "b", "quota": "q", "question": ""}
    charged = Request(**told, state="charged", entry=1, charged_at=start.isoformat())

    class Clock(datetime):
        @classmethod
        def now(cls, zone=None):
            return start + timedelta(seconds=passed[0])

    monkeypatch.setattr("hushed.server._requests.datetime", Clock)
    passed = [0.0]
    for passed[0], left in ((0.25, 0.75), (3.0, 1.0), (7.9, 0.1), (-0.25, 0.25)):
        assert charged.next_look(1.0) == pytest.approx(left)


@pytest.mark.slow
def test_a_mark_that_moves_while_somebody_looks_is_no_older_ledger(team, monkeypatch):
    """The server was told to be unready: the mark was read after the trail."""
    require = health.require_version

    def move(connection):
        require(connection)
        with _people.telling(team.desk.ledger) as other:
            add_event(other, actor="x", action="y", about="z")
        team.desk.move_mark()

    monkeypatch.setattr(health, "require_version", move)
    assert team.send("GET", "/readyz").status_code == 200


@pytest.mark.slow
def test_a_mark_that_is_gone_is_told_as_a_ledger_that_cannot_be_used(team):
    """It was told as something that the asker had named wrongly."""
    assert team.ask(team.ana, "one").status_code == 201
    (team.folder / "server.mark").rename(team.folder / "elsewhere")
    assert team.ask(team.ana, "two").json()["code"] == "ledger_unavailable"
    assert team.ask(team.ana, "one").json()["code"] == "ledger_unavailable"


@pytest.mark.slow
def test_a_web_process_that_starts_later_is_the_same_server(tmp_path):
    """Settings and data sets are those of the start; what was changed since is not asked."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    keeper = open_desk(folder, Log(StringIO()), Mock(), Mock())
    told = Told.read(Told.of(keeper).write())
    assert told.settings == keeper.settings
    source = tmp_path / "stays.csv"
    source.write_text(source.read_text() + "P100,A,1\n")
    file = folder / "hushed.toml"
    file.write_text(file.read_text().replace("run_seconds = 30", "run_seconds = 3"))
    confirm_dataset(folder, "stays")
    told_anew = open_desk(folder, Log(StringIO()), Mock(), Mock())
    assert not told_anew.datasets["stays"].stale
    web = open_desk(folder, Log(StringIO()), Mock(), Mock(), told)
    assert web.settings.limits.run_seconds == 30
    assert "stop the server" in web.datasets["stays"].stale
    for each in (keeper, told_anew, web):
        each.ledger.close()


@dataclass
class Pair:
    """Two web processes and their keeper."""

    keeper: Desk
    webs: tuple[Team, Team]

    @property
    def url(self) -> str:
        return self.keeper.ledger._store.url

    def entries(self) -> int:
        return len(self.keeper.ledger.entries("stays"))


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str, source: str) -> Iterator[Pair]:
    yield from open_pair(tmp_path / "stats", make(tmp_path / "stats", postgres_url, source))


@pytest.fixture
def dear(tmp_path: Path, postgres_url: str, source: str) -> Iterator[Pair]:
    """The same, where what costs more than 0.2 waits for approval."""
    tokens = make(tmp_path / "stats", postgres_url, source, stays="dear")
    yield from open_pair(tmp_path / "stats", tokens)


def open_pair(folder: Path, tokens: dict[str, str]) -> Iterator[Pair]:
    keeper = open_desk(folder, Log(StringIO()), shared_workers(), shared_runners())
    keeper.serve_alone()
    told = Told.of(keeper)
    with ExitStack() as held:
        keeper.shared = held.enter_context(make_shared())
        held.callback(keeper.close)
        webs = []
        for _ in range(2):
            logged = StringIO()
            desk = open_desk(folder, Log(logged), shared_workers(), shared_runners(), told)
            desk.shared = Shared(keeper.shared.number)
            desk.errand = lambda request: run_charged(keeper, request)
            served = make_app(desk)
            client = TestClient(served, base_url=ORIGIN, raise_server_exceptions=False)
            held.enter_context(client)
            document = served._app._app.openapi()
            webs.append(
                Team(
                    folder=folder,
                    desk=desk,
                    client=client,
                    logged=logged,
                    document=document,
                    **tokens,
                )
            )
        yield Pair(keeper, (webs[0], webs[1]))
        with reading(keeper.ledger) as connection:
            verify_trail(connection)
        keeper.ledger.verify("stays")


def both(work, *given) -> list[Any]:
    """Do the same with both at once."""
    with ThreadPoolExecutor(2) as pool:
        return [each.result() for each in [pool.submit(work, *each) for each in given]]


def meeting() -> Any:
    """Let two wait for each other; one who is kept from coming is waited for a while."""
    barrier = threading.Barrier(2)

    def wait() -> None:
        with suppress(threading.BrokenBarrierError):
            barrier.wait(MOST)

    return wait


@pytest.mark.slow
def test_the_same_key_at_two_processes_at_once_is_paid_once(pair, monkeypatch):
    """Both have judged it before either charges; one answer, the same bytes at both."""
    one, two = pair.webs
    meet, judge = meeting(), _life.judge

    def judge_together(*told):
        found = judge(*told)
        meet()
        return found

    monkeypatch.setattr(_life, "judge", judge_together)
    found = both(lambda web: web.ask(web.ana, "same"), (one,), (two,))
    assert [each.status_code for each in found] == [201, 201]
    assert len({each.json()["id"] for each in found}) == 1
    assert pair.entries() == 1
    identity = found[0].json()["id"]
    answers = [each.answer(each.ana, identity) for each in pair.webs]
    assert answers[0].content == answers[1].content
    assert [each.status_code for each in answers] == [200, 200]
    other = QUERY | {"aggregates": [{"kind": "count", "name": "other"}]}
    assert two.ask(two.ana, "same", query=other).json()["code"] == "key_reused"


@pytest.mark.slow
def test_a_token_that_is_revoked_at_one_asks_nothing_at_the_other(pair, monkeypatch):
    """Between the judging and the charge, and after it."""
    one, two = pair.webs
    judge = _life.judge

    def judge_and_revoke(*told):
        found = judge(*told)
        token = two.ana.split("_")[1]
        assert two.send("DELETE", f"/v1/tokens/{token}", two.sam).status_code == 204
        return found

    monkeypatch.setattr(_life, "judge", judge_and_revoke)
    assert one.ask(one.ana, "late").status_code == 401
    assert one.ask(one.ana, "later").status_code == 401
    assert pair.entries() == 0


@pytest.mark.slow
def test_two_stewards_at_two_processes_approve_once(dear):
    """And a request that waits is seen, and taken back, at either."""
    one, two = dear.webs
    sue = invite(one.folder, "sue", "steward", [], days=30, scope=Scope())
    made = one.ask(one.ana, "dear", epsilon=0.3).json()
    assert made["state"] == "pending"
    path = f"/v1/requests/{made['id']}/approve"
    found = both(lambda web, token: web.send("POST", path, token), (one, one.sam), (two, sue))
    told = sorted((each.status_code, each.json().get("code")) for each in found)
    assert told == [(200, None), (409, "not_pending")]
    assert dear.entries() == 1
    second = two.ask(two.ana, "back", epsilon=0.3).json()
    assert one.send("DELETE", f"/v1/requests/{second['id']}", one.ana).status_code == 204
    assert two.send("POST", f"/v1/requests/{second['id']}/approve", sue).status_code == 409
    assert dear.entries() == 1


@pytest.mark.slow
def test_a_steward_who_is_let_out_while_a_price_is_found_approves_nothing(dear, monkeypatch):
    """To judge takes a while; the other process has stopped the token meanwhile."""
    one, two = dear.webs
    sue = invite(one.folder, "sue", "steward", [], days=30, scope=Scope())
    made = one.ask(one.ana, "dear", epsilon=0.3).json()
    judge = _life.judge

    def judge_and_revoke(*told):
        revoke_token(two.desk.ledger, sue.split("_")[1], actor="sam")
        return judge(*told)

    monkeypatch.setattr("hushed.server._approving.judge", judge_and_revoke)
    assert one.send("POST", f"/v1/requests/{made['id']}/approve", sue).status_code == 401
    assert dear.entries() == 0


@pytest.mark.slow
def test_an_address_that_opens_once_opens_at_one_process(pair):
    """Both are shown it at the same time."""
    door = invite(
        pair.webs[0].folder, "sue", "steward", [], days=1, scope=Scope(use="door")
    ).partition("#")[2]
    headers = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}

    def enter(web):
        return web.client.post(
            "/pages/enter", data={"key": door}, headers=headers, follow_redirects=False
        ).status_code

    assert sorted(both(enter, (pair.webs[0],), (pair.webs[1],))) == [303, 401]


@pytest.mark.slow
def test_limits_of_a_person_hold_across_processes(dear, monkeypatch):
    """Both count what waits before either has written that one more does: one has to wait."""
    one, two = dear.webs
    for web in dear.webs:
        limits = web.desk.settings.limits.model_copy(update={"pending_per_person": 1})
        web.desk.settings = web.desk.settings.model_copy(update={"limits": limits})
    meet, counted = meeting(), _life.count_pending

    def count_together(*told):
        found = counted(*told)
        meet()
        return found

    monkeypatch.setattr(_life, "count_pending", count_together)
    found = both(lambda web, key: web.ask(web.ana, key, epsilon=0.3), (one, "a"), (two, "b"))
    assert codes_of_clients(found) == ["pending", "too_many_open"]


def codes_of_clients(found) -> list[str]:
    return sorted(each.json().get("code") or each.json()["state"] for each in found)


@pytest.mark.slow
def test_requests_of_a_minute_are_counted_together(pair):
    """A connection stays with one process: half of the limit would be no limit that anybody set."""
    one, two = pair.webs
    shared = SharedRates(pair.keeper.shared, "requests", 120)
    person = one.person("ana")
    while shared.take(person):
        pass
    for web in (one, two):
        assert web.send("GET", "/v1/me", web.ana).status_code == 429
        assert web.send("GET", "/v1/me", web.bo).status_code == 200


@pytest.mark.slow
def test_nobody_waits_for_somebody_who_waits_for_him(pair, monkeypatch):
    """One process revokes a token while the other lets its person out: both are done at once.

    The database ended one of them after a second, as a deadlock: each held what the other needed.
    """
    one, two = pair.webs
    person, token = one.person("ana"), one.ana.split("_")[1]
    tell, told = _people.add_event, threading.Event()

    def tell_later(connection, **event):
        if event["action"] == "revoked a token":
            told.wait(MOST)
        tell(connection, **event)
        if event["action"] == "let out":
            told.set()

    monkeypatch.setattr(_people, "add_event", tell_later)
    with ThreadPoolExecutor(1) as pool:
        revoking = pool.submit(revoke_token, one.desk.ledger, token, actor="sam")
        time.sleep(0.5)
        set_active(two.desk.ledger, person, False, actor="sam")
        revoking.result(60)
    assert one.send("GET", "/v1/me", one.ana).status_code == 401


@pytest.mark.slow
def test_a_process_that_dies_between_a_charge_and_its_errand_loses_nothing(pair):
    """Its keeper never heard of the charge, and finds it in the ledger."""
    one, two = pair.webs
    one.desk.errand = lambda _: None
    made = one.ask(one.ana, "one", wait=0).json()
    assert made["state"] == "charged"
    assert two.ask(two.ana, "one", wait=0).json()["id"] == made["id"]
    sweep(pair.keeper)
    found = two.ask(two.ana, "one", wait=30)
    assert (found.status_code, found.json()["id"]) == (201, made["id"])
    assert two.answer(two.ana, made["id"]).status_code == 200
    assert pair.entries() == 1


@pytest.mark.slow
def test_no_process_shows_an_end_that_the_mark_does_not_cover(pair, monkeypatch):
    """The keeper has stored an answer, and the disk is full: no other process shows it."""
    one, two = pair.webs
    wrote, full = _desk.write_mark, []

    def write_mark(*told):
        if full:
            raise LedgerUnavailable("no room")
        wrote(*told)

    end = _life._end

    def end_and_fill(*told):
        end(*told)
        full.append("now")

    monkeypatch.setattr(_desk, "write_mark", write_mark)
    monkeypatch.setattr(_life, "_end", end_and_fill)
    made = one.ask(one.ana, "one", wait=0).json()["id"]
    wait_for(lambda: find_request(pair.keeper.ledger, made).has_ended())
    wait_for(lambda: pair.keeper.queue.count() == 0)
    for web in pair.webs:
        for path in (f"/{made}/answer", f"/{made}/certificate", f"/{made}", ""):
            found = web.send("GET", f"/v1/requests{path}", web.ana)
            assert found.json()["code"] == "ledger_unavailable"
    full.clear()
    assert two.answer(two.ana, made).status_code == 200
    with reading(two.desk.ledger) as connection:
        assert read_mark(two.desk.mark) == trail_head(connection)


@pytest.mark.slow
def test_an_older_mark_never_replaces_a_newer_one(pair, monkeypatch):
    """One process has looked how far the trail is, and writes later than the other."""
    one, two = pair.webs
    wrote, began, go = _desk.write_mark, threading.Event(), threading.Event()

    def write_late(path, head, spent):
        if not began.is_set():
            began.set()
            go.wait(MOST)
        wrote(path, head, spent)

    def tell():
        with _people.telling(one.desk.ledger) as connection:
            add_event(connection, actor="x", action="y", about="z")
            return trail_head(connection)

    monkeypatch.setattr(_desk, "write_mark", write_late)
    tell()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(one.desk.move_mark)
        assert began.wait(60)
        last = tell()
        second = pool.submit(two.desk.move_mark)
        with suppress(TimeoutError):
            second.result(MOST / 2)
        go.set()
        first.result(60)
        second.result(60)
    assert read_mark(two.desk.mark) == last


@pytest.mark.slow
def test_a_lock_of_the_mark_that_cannot_be_had_is_told_as_a_ledger_that_cannot_be_used(team):
    """A folder in its place, or no room for it."""
    with make_shared() as shared:
        team.desk.shared = shared
        (team.folder / "server.mark.lock").mkdir()
        with pytest.raises(LedgerUnavailable, match="lock beside the mark"):
            team.desk.move_mark()
        (team.folder / "server.mark.lock").rmdir()
        team.desk.move_mark()
        team.desk.shared = None


@pytest.mark.slow
def test_the_queue_is_that_of_all(pair, monkeypatch):
    """What one process has charged counts at the other."""
    one, two = pair.webs
    one.desk.errand = lambda _: None
    assert one.ask(one.ana, "one", wait=0).status_code == 202
    limits = two.desk.settings.limits.model_copy(update={"queue": 1})
    two.desk.settings = two.desk.settings.model_copy(update={"limits": limits})
    assert two.ask(two.bo, "two", wait=0).json()["code"] == "busy"
    stale = {"stays": replace(two.desk.datasets["stays"], stale="gone")}
    assert two.desk.count_waiting() == 1
    two.desk.datasets, before = stale, two.desk.datasets
    assert two.desk.count_waiting() == 0  # it waits for a steward, and nobody else for it
    two.desk.datasets = before
    sweep(pair.keeper)
    wait_for(lambda: not pair.keeper.queue.count())
    assert two.ask(two.bo, "two").status_code == 201


@dataclass
class Crew:
    """A keeper whose web processes are programs of a test."""

    web: WebProcesses
    logged: StringIO

    def told(self, event: str) -> int:
        return self.logged.getvalue().count(f'"event": "{event}"')


@pytest.fixture
def crew(tmp_path: Path, monkeypatch: Any) -> Iterator[Callable[[str], Crew]]:
    make_folder(tmp_path)
    logged = StringIO()
    desk = open_desk(tmp_path / "stats", Log(logged), Mock(), Mock())
    program = tmp_path / "program"
    monkeypatch.setattr(_web_processes, "sys", SimpleNamespace(executable=str(program)))
    with ExitStack() as held:

        def start(text: str) -> Crew:
            program.write_text(f"#!/bin/sh\n{text}\n")
            program.chmod(0o700)
            shared = held.enter_context(make_shared())
            listening = held.enter_context(socket.create_server(("127.0.0.1", 0)))
            web = WebProcesses(
                desk=desk, folder=tmp_path, listening=listening, shared=shared, number=1
            )
            held.enter_context(web.serving())
            return Crew(web, logged)

        yield start
    desk.ledger.close()


@pytest.mark.slow
def test_a_web_process_that_cannot_start_is_tried_again(crew, monkeypatch):
    """A database may be away for a while: the keeper waits, and goes on trying."""
    monkeypatch.setattr(_web_processes, "_PAUSE_SECONDS", 0.01)
    found = crew("exit 7")
    wait_for(lambda: found.told("web process ended") >= 3)
    assert '"code": 7' in found.logged.getvalue()
    assert found.web.count_ready() == 0


def test_a_web_process_that_gets_no_memory_is_tried_again(crew, monkeypatch):
    """The system starts none for a while: the one that has ended is replaced all the same."""
    monkeypatch.setattr(_web_processes, "_PAUSE_SECONDS", 0.01)
    tried, popen = [], _web_processes.subprocess.Popen

    def start(*words, **more):
        tried.append(words)
        if len(tried) in (2, 3):
            raise BlockingIOError(errno.EAGAIN, "no process to be had")
        return popen(*words, **more)

    monkeypatch.setattr(_web_processes.subprocess, "Popen", start)
    found = crew("exit 7")
    wait_for(lambda: found.told("web process ended") >= 3)
    assert found.told("web process cannot start") == 2


@pytest.mark.slow
def test_a_frozen_web_process_is_replaced(crew, monkeypatch):
    """It tells nothing, and may hold what others wait for: it is killed."""
    monkeypatch.setattr(_web_processes, "_START_SECONDS", 0.2)
    monkeypatch.setattr(_web_processes, "_SILENT_SECONDS", 0.2)
    found = crew("exec sleep 600")
    wait_for(lambda: found.told("web process ended") >= 2)
    assert f'"code": {-signal.SIGKILL}' in found.logged.getvalue()


def test_a_function_that_was_registered_since_the_start_is_not_asked(tmp_path):
    """The keeper, which has it run, knows nothing of it, or knows another one."""

    def function(name: str, digest: str, stale: str = "") -> Function:
        record = SimpleNamespace(digest=lambda: digest)
        return Function(id=name, folder=tmp_path, record=record, stale=stale)

    told = Told(settings=Settings(), known={}, functions={"mean": "a"})
    again = Told.read(told.write())
    assert again == told
    assert not again.hold_function(function("mean", "a")).stale
    assert "stop the server" in again.hold_function(function("mean", "b")).stale
    assert "stop the server" in again.hold_function(function("new", "a")).stale
    assert again.hold_function(function("mean", "a", stale="damaged")).stale == "damaged"
