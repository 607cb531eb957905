"""One test for each threat that the server has a defence for; docs/operating.md numbers them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sqlite3
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from io import StringIO
from unittest.mock import Mock

import pyarrow as pa
import pytest
from tests.server.conftest import CANARY, QUERY, Here, make_folder, open_team

import hushed as hs
from hushed.errors import DamagedLedger, QueryFailed
from hushed.ledger._together import reading
from hushed.server import _judging, _life
from hushed.server._app import open_desk
from hushed.server._audit import verify_trail
from hushed.server._config import ServerSettings
from hushed.server._guard import Guard, check_json, find_address
from hushed.server._log import Log
from hushed.server._people import find_caller
from hushed.server._problems import CODES, Problem
from hushed.server._requests import readable_at
from hushed.server._setup import invite
from hushed.server._tokens import Scope, make_token
from hushed.tables._prepared import Prepared

START = "2026-01-01T00:00:00.000000+00:00"


@pytest.mark.slow
def test_1_answers_are_readable_on_a_grid(tmp_path):
    """Whatever the true time, an answer appears a whole number of steps after its charge."""
    for microseconds, steps in ((1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2)):
        done = datetime.fromisoformat(START) + timedelta(microseconds=microseconds)
        moment = datetime.fromisoformat(readable_at(START, done.isoformat(), 1.0))
        assert moment - datetime.fromisoformat(START) == timedelta(seconds=steps)
    tokens = make_folder(tmp_path, settings="answer_grid = 3600.0")
    for team in open_team(tmp_path / "stats", tokens):
        made = team.ask(team.ana, "one", wait=0).json()
        future = team.desk.queue.find(made["id"])
        if future is not None:
            future.result(20)
        assert team.desk.ledger.answer("stays", 1) is not None  # it is there, and nobody sees it
        assert team.send("GET", f"/v1/requests/{made['id']}", team.ana).json() == made
        assert team.answer(team.ana, made["id"]).json()["code"] == "not_ready"
        trail = team.send("GET", "/v1/audit", team.sam).json()["items"]
        assert trail[-1]["action"] == "asked"


@pytest.mark.slow
def test_3_a_failure_keeps_its_charge(team, monkeypatch):
    """Asking until it fails is no way to ask for nothing."""

    def fail(*_, **__):
        raise QueryFailed("no")

    team.desk.runners = Here()
    monkeypatch.setattr("hushed.tables._prepared.run_plan", fail)
    for i in range(4):
        assert team.ask(team.ana, f"k{i}").json()["state"] == "failed"
        assert team.ask(team.ana, f"k{i}").json()["state"] == "failed"
    assert team.charges() == 4


@pytest.mark.slow
def test_4_people_together_stay_within_the_budget_of_the_data_set(team):
    """Shares of 0.6 and 0.6 of 1.0: ten tenths are paid, whoever asks."""
    asked = [(team.ana if i % 2 else team.bo, f"k{i}") for i in range(12)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: team.ask(*each), asked))
    codes = sorted(each.status_code for each in found)
    assert codes == [201] * 10 + [409] * 2
    refused = {each.json()["code"] for each in found if each.status_code == 409}
    assert refused == {"budget_exceeded"}
    assert team.charges() == 10
    assert team.desk.ledger.balance("stays").epsilon_left == 0.0


@pytest.mark.slow
def test_5_one_share_does_not_use_up_that_of_others(team):
    """A share is a cap; and one request has a largest price."""
    for i in range(6):
        assert team.ask(team.ana, f"k{i}").status_code == 201
    over = team.ask(team.ana, "over")
    assert (over.status_code, over.json()["code"]) == (409, "quota_exceeded")
    assert team.ask(team.bo, "k").status_code == 201
    dear = team.ask(team.bo, "dear", epsilon=1.5)
    assert (dear.status_code, dear.json()["code"]) == (422, "bad_value")
    assert team.charges() == 7


@pytest.mark.slow
def test_6_a_price_tells_nothing_of_what_others_did(team):
    """Not a byte of a quote changes when somebody else pays."""

    def quote():
        body = {"query": QUERY, "epsilon": 0.1}
        return team.send("POST", "/v1/datasets/stays/quote", team.ana, json=body)

    before = quote()
    assert before.status_code == 200
    for i in range(5):
        assert team.ask(team.bo, f"k{i}").status_code == 201
    assert quote().content == before.content


@pytest.mark.slow
def test_7_what_is_anothers_does_not_exist(team):
    """A foreign id and one that does not exist get the same answer, whatever is tried."""
    made = team.ask(team.ana, "one").json()["id"]
    for path in ("", "/answer", "/certificate"):
        foreign = team.send("GET", f"/v1/requests/{made}{path}", team.bo)
        nobody = team.send("GET", f"/v1/requests/{uuid.uuid4()}{path}", team.bo)
        assert foreign.status_code == 404
        assert foreign.content == nobody.content
    assert team.send("GET", "/v1/requests", team.bo).json()["items"] == []
    hidden = team.send("GET", "/v1/datasets/nothing", team.bo)
    assert hidden.status_code == 404


@pytest.mark.slow
def test_8_and_9_a_key_is_paid_once_and_means_one_question(team):
    """Many at once under one key: one charge, the same answer; another question is refused."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: team.ask(team.ana, "same"), range(16)))
    assert {each.status_code for each in found} == {201}
    assert len({each.json()["id"] for each in found}) == 1
    assert team.charges() == 1
    identity = found[0].json()["id"]
    assert len({team.answer(team.ana, identity).content for _ in range(3)}) == 1
    noted = team.ask(team.ana, "same", note="the note is no part of the question")
    assert (noted.json()["id"], noted.json()["note"], team.charges()) == (identity, "", 1)
    other = team.ask(team.ana, "same", epsilon=0.2)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert team.ask(team.bo, "same").json()["id"] != identity
    bare = team.send(
        "POST", "/v1/datasets/stays/requests", team.ana, json={"query": QUERY, "epsilon": 0.1}
    )
    assert (bare.status_code, bare.json()["code"]) == (400, "no_key")


def test_10_a_stolen_database_holds_no_token(team):
    """Neither the tokens nor their secrets are in the file."""
    with sqlite3.connect(team.folder / "hushed.db") as database:
        dump = "\n".join(database.iterdump())
    for token in (team.ana, team.bo, team.sam):
        identity, secret = re.fullmatch(r"hsh_([0-9a-f]+)_(.{43})_[0-9a-f]{8}", token).groups()
        assert identity in dump
        assert secret not in dump


@pytest.mark.slow
def test_11_revoked_expired_and_narrowed_tokens(team):
    """Each stops at once, and looks like a token that never was."""
    path = f"/v1/people/{team.person('ana')}/tokens"
    unknown = team.send("GET", "/v1/me", make_token()[1])
    assert (unknown.status_code, unknown.json()["code"]) == (401, "not_authenticated")
    made = team.send("POST", path, team.sam, json={"days": 1}).json()
    assert team.send("GET", "/v1/me", made["token"]).status_code == 200
    assert team.send("DELETE", f"/v1/tokens/{made['id']}", team.sam).status_code == 204
    assert team.send("GET", "/v1/me", made["token"]).content == unknown.content
    with sqlite3.connect(team.folder / "hushed.db") as database:
        made = team.send("POST", path, team.sam, json={"days": 1}).json()
        past = "2020-01-01T00:00:00+00:00"
        database.execute("UPDATE hushed_s_tokens SET expires = ? WHERE id = ?", (past, made["id"]))
    assert team.send("GET", "/v1/me", made["token"]).content == unknown.content
    assert team.send("POST", path, team.sam, json={"days": 91}).status_code == 422
    told = {"quote_only": True, "datasets": ["other"]}
    narrow = team.send("POST", path, team.sam, json=told).json()["token"]
    assert team.send("GET", "/v1/datasets/stays", narrow).status_code == 404
    assert team.ask(narrow, "k").status_code == 403
    far = team.send("POST", path, team.sam, json={"addresses": ["10.0.0.0/8"]}).json()["token"]
    assert find_caller(team.desk.ledger, far, "10.1.2.3") is not None
    assert find_caller(team.desk.ledger, far, "11.1.2.3") is None
    away = team.send("PATCH", path.removesuffix("/tokens"), team.sam, json={"active": False})
    assert away.json()["active"] is False
    assert team.send("GET", "/v1/me", team.ana).content == unknown.content
    back = team.send("PATCH", path.removesuffix("/tokens"), team.sam, json={"active": True})
    assert back.json()["active"] is True
    assert team.send("GET", "/v1/me", team.ana).content == unknown.content  # perhaps stolen
    team.send("PATCH", path.removesuffix("/tokens"), team.sam, json={"active": False})
    fresh = invite(team.folder, "ana", "analyst", [], days=1, scope=Scope())  # in again by that
    assert team.send("GET", "/v1/me", fresh).status_code == 200
    assert team.send("GET", "/v1/me", team.ana).content == unknown.content


def test_12_a_token_of_some_addresses_makes_none_of_others(team):
    """Who holds a steward's token that counts from here alone makes none that counts elsewhere."""
    here = Scope(addresses=("127.0.0.0/8", "::1"))
    away = invite(team.folder, "sam", "steward", [], days=1, scope=here)
    team.client._transport.client = ("127.0.0.1", 5)
    path = f"/v1/people/{team.person('sam')}/tokens"

    def make(*addresses):
        return team.send("POST", path, away, json={"addresses": addresses} if addresses else {})

    for addresses in (["10.0.0.0/8"], ["0.0.0.0/0"], ["127.0.0.1", "10.9.8.7"], ["::/0"]):
        assert (make(*addresses).status_code, make(*addresses).json()["code"]) == (422, "bad_value")
    assert "127.0.0.0/8" in make("10.0.0.0/8").json()["detail"]
    for addresses, elsewhere in (((), "10.1.2.3"), (("127.0.0.1",), "127.0.0.2")):
        token = make(*addresses).json()["token"]
        assert team.send("GET", "/v1/me", token).status_code == 200
        assert find_caller(team.desk.ledger, token, elsewhere) is None
    free = team.send("POST", path, team.sam, json={"addresses": ["10.0.0.0/8"]})
    assert free.status_code == 201


@pytest.mark.slow
def test_12_guessing_is_slowed_and_keeps_nobody_out(team):
    """After ten wrong tokens of an address 429; one that counts gets in."""
    found = [team.send("GET", "/v1/me", "wrong") for _ in range(100)]
    assert [each.status_code for each in found] == [401] * 10 + [429] * 90
    assert len({each.content for each in found}) == 2
    assert team.send("GET", "/v1/me", team.ana).status_code == 200


@pytest.mark.slow
def test_13_no_cookie_lets_anybody_in(team):
    """A page of somebody else can send cookies, and no token."""
    stolen = {"cookie": f"token={team.ana}", "origin": "https://evil.example"}
    found = team.send("GET", "/v1/me", headers=stolen)
    assert found.status_code == 401
    assert "set-cookie" not in found.headers
    assert "access-control-allow-origin" not in found.headers


@pytest.mark.slow
def test_14_keys_from_data_subjects_are_harmless(team):
    """A key that a spreadsheet would run gets an apostrophe; JSON is never taken for a page."""
    evil = f"=cmd{CANARY}"
    groups = {"columns": ["ward"], "keys": [["A", evil]]}
    made = team.ask(team.ana, "one", query=QUERY | {"groups": groups}).json()
    text = team.answer(team.ana, made["id"], headers={"accept": "text/csv"})
    assert text.headers["content-type"].startswith("text/csv")
    assert f'\n"\'{evil}",' in text.text
    plain = team.answer(team.ana, made["id"])
    assert plain.headers["x-content-type-options"] == "nosniff"
    assert plain.headers["content-type"] == "application/json"
    assert "default-src 'none'" in plain.headers["content-security-policy"]


def test_14_no_cell_is_run_wherever_it_is_split():
    """After blanks, in full width, and where a semicolon ends a cell: texts stand in quotes."""
    from hushed.server._seen import write_stored

    keys = [" =1", "\u200b@x", "\uff1d1", "a;=1", "-5", "plain"]
    table = hs.table(pa.table({"ward": ["plain"]})).group_by("ward", keys={"ward": keys})
    text = write_stored(table.count().release(epsilon=1.0).to_json())
    cells = [line.partition(",")[0] for line in text.splitlines()[1:]]
    assert cells == ['"\' =1"', '"\' @x"', '"\'\uff1d1"', '"a;=1"', '"\'-5"', '"plain"']


@pytest.mark.slow_cases("step0", "step1", "step2", "step3")
@pytest.mark.parametrize(
    "step",
    [
        {"filter": "read_csv('/etc/passwd') == 1"},
        {"filter": "pg_read_file('/etc/passwd') == ''"},
        {"filter": "read_parquet('http://127.0.0.1/x') == 1"},
        {"derive": "x", "expression": "getenv('HUSHED_TOKEN')"},
        {"filter": "ward == (select 1)"},
        {"derive": "x", "expression": "__import__('os')"},
        {"join_users": "people", "user": "patient", "columns": {"age": "int"}},
    ],
)
def test_15_a_question_reaches_nothing_but_its_table(quiet, step):
    """No file, no address, no code, no other table; nothing is charged."""
    found = quiet.ask(quiet.ana, "one", query=QUERY | {"steps": [step]})
    assert (found.status_code, found.json()["code"]) == (422, "bad_query")
    assert "passwd" not in quiet.logged.getvalue()
    assert quiet.charges() == 0


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{" + b" " * 70_000 + b"}", "too_large"),
        (b"[" * 40 + b"]" * 40, "bad_request"),
        (b'{"epsilon": NaN}', "bad_request"),
        (b'{"epsilon": 0.1, "epsilon": 0.2}', "bad_request"),
        (b"\xff{}", "bad_request"),
        (b'{"note": "\\u0000"}', "bad_request"),
        (b'{"query": {"columns": {"\\ud800": "int"}}}', "bad_request"),
        (b"{", "bad_request"),
    ],
)
def test_17_huge_and_odd_bodies_are_refused(quiet, body, code):
    """Before anybody parses them twice."""
    path = "/v1/datasets/stays/quote"
    headers = {"content-type": "application/json"}
    found = quiet.send("POST", path, quiet.ana, content=body, headers=headers)
    assert (found.status_code, found.json()["code"]) == (CODES[code][0], code)
    assert found.headers["content-type"] == "application/problem+json"
    assert found.headers["connection"] == "close"  # the rest of a long one is not read


@pytest.mark.parametrize(
    ("body", "taken"),
    [
        ("[" * 32 + "]" * 32, True),
        ('{"a":[' * 16 + "]}" * 16, True),
        ("[" + "[]," * 40 + '"\\"' + "[" * 40 + '"]', True),  # a bracket of a text is none
        ('["' + "[" * 40 + '\\\\", ' + "[" * 32 + "]" * 33, False),
        ('{"a":[' * 16 + "[]" + "]}" * 16, False),
        ('["' + "[" * 40, False),
        (r'["\\u0000", "\ud83d\ude00", "\u0041"]', True),
        (r'["\\\u0000"]', False),
        (r'["\ude00\ud83d"]', False),
    ],
)
def test_17_levels_and_texts_of_a_body_are_read_as_json_reads_them(body, taken):
    if taken:
        check_json(body.encode())
        return
    with pytest.raises(Problem, match="bad_request"):
        check_json(body.encode())


def test_17_a_body_of_many_parts_keeps_nobody_waiting():
    """It is read before anybody looks who sent it, by the thread that speaks with all."""

    def measure(work, given):
        begun = time.process_time()
        work(given)
        return time.process_time() - begun

    body = b'["\\u0041",' + b"{}," * 20_000 + b"1]"
    read = min(measure(json.loads, body) for _ in range(5))
    assert min(measure(check_json, body) for _ in range(5)) < 8 * read  # it was 30 times


@pytest.mark.parametrize("path", ["/v1/requests/%00", "/v1/requests?cursor=%00"])
def test_17_an_address_with_nul_is_no_failure_of_the_ledger(quiet, path):
    """PostgreSQL stores no NUL: whoever sends one would be asked to try again."""
    found = quiet.send("GET", path, quiet.ana)
    assert (found.status_code, found.json()["code"]) == (400, "bad_request")


def test_17_a_header_that_stands_once_and_comes_twice_is_refused(quiet):
    """A proxy may look at the other one."""
    for name in ("authorization", "content-type", "idempotency-key"):
        told = quiet.client.get("/v1/me", headers=[(name, "Bearer a"), (name, "Bearer b")])
        assert (told.status_code, told.json()["code"]) == (400, "bad_request")
        assert told.json()["detail"] == f"the header {name} is sent once"


def test_a_list_that_comes_in_several_headers_is_one_list(team):
    """Whichever way it is answered; a wait is among what the client prefers."""
    sent = [("authorization", f"Bearer {team.ana}"), ("idempotency-key", "a")]
    sent += [("prefer", "respond-async"), ("prefer", "wait=20")]
    body = {"query": QUERY, "epsilon": 0.1}
    made = team.client.post("/v1/datasets/stays/requests", headers=sent, json=body)
    assert made.status_code == 201
    for accept in (["application/json", "text/csv"], ["text/csv", "*/*"]):
        head = [*sent[:1], *(("accept", each) for each in accept)]
        path = f"/v1/requests/{made.json()['id']}/answer"
        told = team.client.get(path, headers=head)
        assert told.headers["content-type"].startswith("text/csv")
        assert team.client.get(path, headers=[*head, ("accept", "x" * 200)]).status_code == 422


def test_17_a_connection_that_asks_nothing_is_ended():
    """A thousand of them would keep everybody else out: the head of a request has its time."""
    import uvicorn
    from uvicorn.server import ServerState

    from hushed.server._patience import HEAD_SECONDS, Impatient

    timers = []

    class Loop:
        def call_later(self, seconds, call):
            timers.append((seconds, call, Mock()))
            return timers[-1][2]

        def create_task(self, work, **_):
            work.close()
            return Mock()

    async def app(scope, receive, send): ...

    config = uvicorn.Config(app, http=Impatient, log_config=None)
    config.load()

    def begin():
        transport = Mock(is_closing=lambda: False, get_extra_info=lambda _: None)
        line = config.http_protocol_class(config, ServerState(), {}, Loop())
        line.connection_made(transport)
        line.data_received(b"GET /livez HTTP/1.1\r\nHo")
        return line, transport

    line, _ = begin()
    line.data_received(b"st: x\r\n\r\n")
    timers[0][2].cancel.assert_called_once()  # the rest came in time
    _, transport = begin()
    assert [seconds for seconds, _, _ in timers] == [HEAD_SECONDS] * 2
    assert not transport.close.called
    timers[1][1]()
    assert transport.close.called


def test_17_whoever_keeps_sending_little_pushes_nobody_else_out(monkeypatch):
    """New connections for those that are ended: the slowest go, and who has asked stays."""
    from uvicorn.server import ServerState

    from hushed.server import _patience
    from hushed.server._serving import configure

    config, state = configure(None), ServerState()
    config.load()
    monkeypatch.setattr(_patience, "MOST_WAITING", 3)
    monkeypatch.setattr(_patience.Impatient, "_slow", {})
    loop = Mock(create_task=lambda work, **_: work.close() or Mock())
    lines = [_patience.Impatient(config, state, {}, loop) for _ in range(6)]
    ends = [Mock(get_extra_info=lambda _: None) for _ in lines]
    for line, end, data in zip(
        lines,
        ends,
        [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HT"]
        + [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"] * 4,
        strict=True,
    ):
        line.connection_made(end)
        line.data_received(data)
    assert [end.abort.called for end in ends] == [False, True, True, False, False, False]
    lines[-1].data_received(b"12345678")
    assert list(_patience.Impatient._slow) == lines[3:5]


def test_17_whoever_was_answered_and_asks_no_more_keeps_nobody_out(monkeypatch):
    """A thousand who ask something small now and then had all places; now the oldest one goes."""
    import uvicorn
    from uvicorn.server import ServerState

    from hushed.server import _patience

    monkeypatch.setattr(_patience, "MOST_WAITING", 3)
    monkeypatch.setattr(_patience.Impatient, "_slow", {})
    state, answering = ServerState(), asyncio.Event()

    async def app(scope, receive, send):
        size = 3_000_000 if scope["path"] == "/large" else 1
        if scope["path"] == "/long":
            await answering.wait()
        headers = [(b"content-length", b"%d" % size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(size)})

    async def ask(address, path, size):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        if size:
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(size)
        return reader, writer

    async def crowd():
        config = uvicorn.Config(
            app, http=_patience.Impatient, log_config=None, timeout_keep_alive=600
        )
        config.load()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: config.http_protocol_class(config, state, {}, loop), "127.0.0.1", 0
        )
        async with server, asyncio.timeout(20):
            address = server.sockets[0].getsockname()
            asked = [("/long", 0), ("/large", 3_000_000), *[("/", 1)] * 6]
            lines = [await ask(address, *each) for each in asked]
            while len(state.connections) > 4:  # one is answered still, and three wait to go on
                await asyncio.sleep(0.01)
            assert not await lines[1][0].read()
            answering.set()
            assert b" 200 " in await lines[0][0].readuntil(b"\r\n\r\n")
            for _, writer in lines:
                writer.close()

    asyncio.run(crowd())


def test_17_answers_that_are_taken_slowly_fill_no_memory(monkeypatch):
    """Many long ones at once: those that are taken slowest are ended, and one alone never is."""
    from uvicorn.server import ServerState

    from hushed.server import _patience
    from hushed.server._serving import configure

    config, state = configure(None), ServerState()
    config.load()
    monkeypatch.setattr(_patience, "MOST_UNREAD", 100)
    monkeypatch.setattr(_patience.Impatient, "_slow", {})
    loop = Mock(create_task=lambda work, **_: work.close() or Mock())
    ended = []
    for size in (0, 500, 40, 50, 60, 10):
        line = _patience.Impatient(config, state, {}, loop)
        end = Mock(get_extra_info=lambda _: None, get_write_buffer_size=lambda size=size: size)
        end.abort.side_effect = lambda size=size: ended.append(size)
        line.connection_made(end)
        if size:  # the first one has asked nothing yet, and keeps nothing in the memory
            line.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            line.pause_writing()
        assert sum(each.transport.get_write_buffer_size() for each in line._slow) <= max(100, size)
    assert ended == [500, 40, 50]


@pytest.mark.slow
@pytest.mark.parametrize("reads", [False, True])
def test_17_whoever_takes_no_answer_is_ended(monkeypatch, reads):
    """An answer that nobody reads keeps no place; who reads slowly is let read to the end."""
    import uvicorn
    from uvicorn.server import ServerState

    from hushed.server import _patience

    monkeypatch.setattr(_patience, "UNREAD_SECONDS", 0.3)
    monkeypatch.setattr(_patience.Impatient, "_slow", {})
    size = 20_000_000
    state = ServerState()

    async def app(scope, receive, send):
        headers = [(b"content-length", b"%d" % size), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(size)})

    async def take():
        config = uvicorn.Config(app, http=_patience.Impatient, log_config=None)
        config.load()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: config.http_protocol_class(config, state, {}, loop), "127.0.0.1", 0
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            found = 0
            while reads and (taken := await reader.read(200_000)):
                found += len(taken)
                await asyncio.sleep(0.005)
            async with asyncio.timeout(20):
                while state.connections or not state.total_requests:
                    await asyncio.sleep(0.01)
            writer.close()
            return found

    assert (asyncio.run(take()) > size) == reads
    assert not _patience.Impatient._slow


@pytest.mark.parametrize(
    "text",
    ["a" * 501 + " > 1", "not " * 70 + "cost > 1"],
    ids=["long", "nots"],
)
def test_18_expressions_of_death_are_refused(quiet, text):
    found = quiet.ask(quiet.ana, "one", query=QUERY | {"steps": [{"filter": text}]})
    assert found.json()["code"] == "bad_query"
    assert quiet.charges() == 0


def test_18_very_many_quantiles_are_refused(quiet):
    """The engine plans thousands for a minute, in which nobody else is answered."""
    asked = [i / 1000 for i in range(1, 202)]
    told = {"kind": "quantiles", "column": "cost", "low": 0, "high": 50, "probabilities": asked}
    found = quiet.ask(quiet.ana, "one", query=QUERY | {"aggregates": [told]})
    assert (found.status_code, found.json()["code"]) == (422, "bad_query")
    assert quiet.charges() == 0


WARDS = [str(each) for each in range(300)]
MANY = [each / 1000 for each in range(1, 200)]
BOUNDED = {"column": "cost", "low": 0, "high": 50}


@pytest.mark.slow_cases("candidates")
@pytest.mark.parametrize(
    "query",
    [
        {"groups": {"columns": ["ward", "patient"], "keys": [WARDS, WARDS]}},
        {
            "aggregates": [
                {"kind": "histogram", "column": "cost", "low": 0, "high": 50, "bins": 10**5}
            ]
        },
        {
            "aggregates": [
                BOUNDED | {"kind": "quantiles", "probabilities": [i / 1000 for i in range(1, 200)]}
            ],
            "groups": {"columns": ["ward"], "keys": [WARDS[:30]]},
        },
    ],
    ids=["groups", "bins", "candidates"],
)
def test_19_an_answer_has_no_million_numbers(quiet, query):
    """A million took a gigabyte of the server, which was killed, and tried it again."""
    columns = QUERY["columns"] | {"patient": "string"}
    found = quiet.ask(quiet.ana, "one", query=QUERY | {"columns": columns} | query)
    assert (found.status_code, found.json()["code"]) == (422, "bad_query")
    assert "at most" in found.json()["detail"]
    body = {"query": QUERY | {"columns": columns} | query, "epsilon": 0.1}
    priced = quiet.send("POST", "/v1/datasets/stays/quote", quiet.ana, json=body)
    assert priced.status_code == 422
    assert quiet.charges() == 0


@pytest.mark.parametrize(("spelled", "status"), [("x" * 26, 201), ("x" * 27, 422), ("ä" * 5, 422)])
def test_19_long_keys_do_not_stand_in_each_of_many_rows(team, monkeypatch, spelled, status):
    """A question of 60 kB for an epsilon of 1e-6 had an answer of 17 MB, stored and signed."""
    monkeypatch.setattr(_judging, "MOST_SPELLED", 2 * 2 * (28 + 3))
    groups = {"columns": ["ward", "patient"], "keys": [["A", "B"], [spelled, spelled[1:] + "y"]]}
    query = QUERY | {"columns": QUERY["columns"] | {"patient": "string"}, "groups": groups}
    found = team.ask(team.ana, "one", query=query, epsilon=1e-6)
    assert found.status_code == status
    assert team.charges() == int(status == 201)
    if status == 422:
        assert "124 characters" in found.json()["detail"]
        assert spelled not in found.text


@pytest.mark.slow
def test_19_one_person_has_few_requests_open(team, monkeypatch):
    """Who has ten without an answer waits; others ask."""
    monkeypatch.setattr(type(team.desk), "start", lambda *_: None)  # nothing is answered
    codes = [team.ask(team.ana, f"k{i}", wait=0, epsilon=0.01).status_code for i in range(11)]
    assert codes == [202] * 10 + [429]
    assert team.ask(team.bo, "k", wait=0).status_code == 202
    assert team.charges() == 11


@pytest.mark.slow_cases("{'noise': 'none'}")
@pytest.mark.parametrize(
    "terms",
    [
        {"epsilon": 5e-324},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": 1e308},
        {"epsilon": "0.1"},
        {"delta": 1},
        {"delta": 0.5},
        {"noise": "none"},
        {"note": "n" * 501},
        {"extra": 1},
    ],
    ids=str,
)
def test_20_odd_numbers_are_refused(quiet, terms):
    """Never 500, and nothing is charged."""
    found = quiet.ask(quiet.ana, "one", **terms)
    assert found.status_code == 422, found.text
    assert quiet.charges() == 0


@pytest.mark.parametrize("odd", [True, "1"])
def test_20_what_is_no_number_gives_no_share_and_no_price(team, odd):
    """As the document says; `true` would be an epsilon of 1."""
    path = f"/v1/datasets/stays/quotas/{team.person('bo')}"
    for body in ({"epsilon": odd}, {"epsilon": 1, "delta": odd}, {"epsilon": 1, "per_day": odd}):
        assert team.send("PUT", path, team.sam, json=body).status_code == 422
    body = {"query": QUERY, "errors": {"count": odd}}
    found = team.send("POST", "/v1/datasets/stays/quote", team.ana, json=body)
    assert (found.status_code, found.json()["detail"][-16:]) == (422, "must be a number")


@pytest.mark.slow
def test_21_a_changed_certificate_is_refused(team):
    """Any byte of what was signed; and a key of somebody else."""
    from hushed.errors import ParameterError
    from hushed.statements import make_key, open_signed

    made = team.ask(team.ana, "one").json()["id"]
    text = team.send("GET", f"/v1/requests/{made}/certificate", team.ana).text
    public = team.send("GET", "/v1/keys").json()["keys"][0]["pem"].encode()
    statement = open_signed(text, public)
    assert (statement.data, statement.actor, statement.entry.number) == ("stays", "ana", 1)
    told = json.loads(text)
    payload = told["payload"]
    swapped = payload[:100] + ("A" if payload[100] != "A" else "B") + payload[101:]
    for envelope, key in ((json.dumps(told | {"payload": swapped}), public), (text, make_key()[1])):
        with pytest.raises(ParameterError):
            open_signed(envelope, key)


def test_23_a_proxy_is_believed_only_if_it_is_ours(team):
    """A forged header changes nothing; a foreign Host reaches nothing."""
    from starlette.datastructures import Headers

    headers = Headers({"x-forwarded-for": "6.6.6.6, 10.0.0.9"})
    assert find_address({"client": ("9.9.9.9", 1)}, headers, ()) == "9.9.9.9"
    assert find_address({"client": ("127.0.0.1", 1)}, headers, ("127.0.0.1",)) == "10.0.0.9"
    found = team.send("GET", "/livez", headers={"host": "evil.example"})
    assert (found.status_code, found.json()["code"]) == (421, "wrong_host")


@pytest.mark.slow
def test_24_a_steward_asks_nothing_and_reads_no_answer(team):
    """Questions are seen, answers are not; a changed trail shows."""
    made = team.ask(team.ana, "one").json()["id"]
    assert team.ask(team.sam, "one").status_code == 403
    assert team.send("GET", f"/v1/requests/{made}", team.sam).json()["epsilon"] == 0.1
    assert team.answer(team.sam, made).status_code == 403
    assert team.send("GET", f"/v1/requests/{made}/certificate", team.sam).status_code == 403
    for path in ("/v1/people", "/v1/audit", "/v1/datasets/stays/budget"):
        assert team.send("GET", path, team.ana).status_code == 403
        assert team.send("GET", path, team.sam).status_code == 200
    narrow = team.send(
        "POST", f"/v1/people/{team.person('sam')}/tokens", team.sam, json={"datasets": ["stays"]}
    ).json()["token"]
    assert team.send("GET", "/v1/people", narrow).status_code == 403  # it could widen itself
    with reading(team.desk.ledger) as connection:
        verify_trail(connection)
    with sqlite3.connect(team.folder / "hushed.db") as database:
        database.execute("UPDATE hushed_s_audit SET body = replace(body, 'ana', 'bob')")
    with pytest.raises(DamagedLedger), reading(team.desk.ledger) as connection:
        verify_trail(connection)


@pytest.mark.slow
def test_24_a_steward_who_may_read_answers_leaves_a_trail(tmp_path, monkeypatch):
    """Answer, certificate and page: the trail tells of each before it is shown, or it is not."""
    from hushed.errors import LedgerUnavailable
    from hushed.server import _seen

    tokens = make_folder(tmp_path)
    file = tmp_path / "stats" / "hushed.toml"
    told = file.read_text()
    assert "stewards_read_answers = false" in told
    file.write_text(told.replace("stewards_read_answers = false", "stewards_read_answers = true"))

    def events():
        found = team.send("GET", "/v1/audit?most=1000", team.sam).json()["items"]
        told = [(each["actor"], each["action"], each["about"]) for each in found]
        return [each for each in told if each[1].startswith("read")]

    for team in open_team(tmp_path / "stats", tokens):
        made = team.ask(team.ana, "one").json()["id"]
        own = team.answer(team.ana, made)
        assert team.send("GET", f"/v1/requests/{made}/certificate", team.ana).status_code == 200
        assert events() == []  # whose answer it is reads it as often as she likes
        assert team.answer(team.sam, made).content == own.content
        assert events() == [("sam", "read an answer", made)]
        assert team.send("GET", f"/v1/requests/{made}/certificate", team.sam).status_code == 200
        assert events()[1:] == [("sam", "read a certificate", made)]
        text = team.answer(team.sam, made, headers={"accept": "text/csv"})
        assert text.status_code == 200
        assert len(events()) == 3
        assert team.answer(team.sam, str(uuid.uuid4())).status_code == 404
        assert len(events()) == 3
        with reading(team.desk.ledger) as connection:
            verify_trail(connection)

        def fail(*_, **__):
            raise LedgerUnavailable("no")

        monkeypatch.setattr(_seen, "add_event", fail)
        refused = team.answer(team.sam, made)
        assert (refused.status_code, refused.json()["code"]) == (503, "ledger_unavailable")


@pytest.mark.slow
def test_25_a_changed_file_is_not_asked(team):
    """Neither while the server runs nor after a start; nothing is charged until it is confirmed."""
    from hushed.server._adding import confirm_dataset

    source = team.folder.parent / "stays.csv"
    source.write_text(source.read_text() + "P100,A,1\n")
    found = team.ask(team.ana, "one")
    assert (found.status_code, found.json()["code"]) == (409, "dataset_changed")
    away = source.rename(source.with_suffix(".away"))
    found = team.ask(team.ana, "one")  # a disk that is away may come back: the client asks again
    assert (found.status_code, found.json()["code"]) == (503, "dataset_unavailable")
    away.rename(source)
    assert open_desk(team.folder, Log(team.logged)).datasets["stays"].stale
    confirm_dataset(team.folder, "stays")
    assert not open_desk(team.folder, Log(team.logged)).datasets["stays"].stale
    assert team.charges() == 0


@pytest.mark.slow
def test_25_a_file_that_was_rewritten_in_place_is_not_asked(team):
    """Of the same size, and given the time that it had."""
    source = team.folder.parent / "stays.csv"
    before, text = source.stat(), source.read_text()
    with source.open("r+") as file:
        file.write(text.replace("P1,B,1", "P1,B,9"))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = source.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )
    found = team.ask(team.ana, "one")
    assert (found.status_code, found.json()["code"]) == (409, "dataset_changed")
    assert open_desk(team.folder, Log(team.logged)).datasets["stays"].stale
    assert team.charges() == 0


@pytest.mark.slow
def test_26_logs_hold_no_query_and_no_token(team):
    """Constants of a query, notes, names and tokens stay out; each line is JSON."""
    step = {"filter": "ward == 'secretward'"}
    made = team.ask(team.ana, "secretkey", query=QUERY | {"steps": [step]}, note="secretnote")
    assert made.status_code == 201
    team.send("GET", "/v1/secretpath", team.ana)
    logged = team.logged.getvalue()
    assert all(json.loads(line)["event"] for line in logged.splitlines())
    for secret in ("secret", "ana", team.ana[20:40], QUERY["user"]):
        assert secret not in logged.replace("data set unavailable", "")


@pytest.mark.slow
def test_nothing_is_answered_twice_for_one_charge(team, monkeypatch):
    """A prepared query answers for the charge of its question alone."""
    seen = []
    kept = Prepared.answer

    def answer(self, *, charged, keep):
        seen.append(charged)
        return kept(self, charged=charged, keep=keep)

    team.desk.runners = Here()
    monkeypatch.setattr(Prepared, "answer", answer)
    for _ in range(3):
        assert team.ask(team.ana, "one").status_code == 201
    assert len(seen) == 1
    assert team.desk.ledger.entries("stays")[0].question == seen[0]


@pytest.mark.slow
def test_1_a_wait_does_not_end_when_a_run_ends(tmp_path):
    """What cannot be read before the time is over is waited for as long as was asked."""
    tokens = make_folder(tmp_path, settings="answer_grid = 3600.0")
    for team in open_team(tmp_path / "stats", tokens):
        began = time.monotonic()
        made = team.ask(team.ana, "one", wait=5)
        assert time.monotonic() - began >= 5
        assert (made.status_code, made.json()["state"]) == (202, "charged")
        future = team.desk.queue.find(made.json()["id"])
        if future is not None:  # a busy machine
            future.result(60)
        assert team.desk.ledger.answer("stays", 1) is not None  # the run had ended


class Slow(Here):
    """Reads rows, and ends in another second than the one of the charge."""

    def answer(self, told):
        time.sleep(1.1)
        return super().answer(told)


@pytest.mark.slow
def test_1_a_certificate_does_not_tell_when_the_run_ended(team):
    """Whoever pays chooses the moment of the charge, and could so find the time of a run."""
    team.desk.runners = Slow()
    made = team.ask(team.ana, "one").json()
    assert made["state"] == "answered"
    found = team.send("GET", f"/v1/requests/{made['id']}/certificate", team.ana).json()
    told = json.loads(base64.b64decode(found["payload"]))
    seconds = "2026-01-01T00:00:00"
    assert told["created"][: len(seconds)] == made["charged_at"][: len(seconds)]
    later = re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", json.dumps(told))
    assert {*later} == {made["charged_at"][: len(seconds)]}  # nor does another part


@pytest.mark.slow
def test_11_what_is_stopped_while_it_asks_pays_nothing(team, monkeypatch):
    """A token revoked, somebody let out, a share replaced: after the check, before the charge.

    The first question is judged by its own thread, the others were judged before.
    """
    import hushed.server._life as life
    import hushed.server._taking as taking

    person = team.person("ana")
    path = f"/v1/people/{person}"
    token = team.send("POST", f"{path}/tokens", team.sam, json={"days": 1}).json()

    def ask_while(shown, method, address, **rest):
        done = []

        def after(real):
            def meanwhile(*given, **named):
                found = real(*given, **named)
                if found is not None and not done:
                    done.append(team.send(method, address, team.sam, **rest).status_code)
                return found

            return meanwhile

        with monkeypatch.context() as late:
            late.setattr(life, "judge", after(life.judge))
            late.setattr(taking, "find_judged", after(taking.find_judged))
            found = team.ask(shown, "late", wait=0)
        assert done in ([200], [204])
        return found.status_code, found.json()["code"]

    quota = "/v1/datasets/stays/quotas/" + person
    stopped = ask_while(token["token"], "DELETE", f"/v1/tokens/{token['id']}")
    assert stopped == (401, "not_authenticated")
    assert ask_while(team.ana, "PUT", quota, json={"epsilon": 0.5}) == (409, "conflict")
    stopped = ask_while(team.ana, "PATCH", path, json={"active": False})
    assert stopped == (401, "not_authenticated")
    assert team.charges() == 0


@pytest.mark.slow
def test_11_a_narrowed_steward_sees_no_other_data_set(team):
    address = f"/v1/people/{team.person('sam')}/tokens"
    narrow = team.send("POST", address, team.sam, json={"datasets": ["other"]}).json()["token"]
    assert team.send("GET", "/v1/datasets", narrow).json()["items"] == []
    assert [e["id"] for e in team.send("GET", "/v1/datasets", team.sam).json()["items"]] == [
        "stays"
    ]


@pytest.mark.slow
def test_11_a_narrowed_token_sees_no_page_end_of_others(team):
    """Where a page of requests ends told how many there were of other data sets, and when."""
    assert team.ask(team.ana, "one").status_code == 201
    for name, token in (("ana", team.ana), ("sam", team.sam)):
        path = f"/v1/people/{team.person(name)}/tokens"
        for datasets, seen in ((["stays"], 1), (["other"], 0), (["other", "stays"], 1), ([], 0)):
            asked = {"days": 1, "datasets": datasets}
            narrow = team.send("POST", path, team.sam, json=asked).json()["token"]
            told = team.send("GET", "/v1/requests?most=1", narrow).json()
            assert len(told["items"]) == seen
            assert (told["cursor"] is not None) == bool(seen)
        assert len(team.send("GET", "/v1/requests?most=1", token).json()["items"]) == 1


def test_13_nobody_is_sent_on_to_another_address(quiet):
    """A redirect would name http, at which a token travels for everybody to read."""
    found = quiet.client.get(
        "/v1/me/", headers={"authorization": f"Bearer {quiet.ana}"}, follow_redirects=False
    )
    assert (found.status_code, found.json()["code"]) == (404, "not_found")
    assert "location" not in found.headers


@pytest.mark.slow
def test_19_the_limit_of_open_requests_holds_in_a_race(team, monkeypatch):
    """All look before anybody is charged; the charge looks again."""
    monkeypatch.setattr(type(team.desk), "start", lambda *_: None)
    ask = _life._ask
    monkeypatch.setattr(_life, "_ask", lambda *told: ask(*told[:-1], 0))
    codes = [team.ask(team.ana, f"k{i}", wait=0, epsilon=0.01).status_code for i in range(11)]
    assert codes == [202] * 10 + [429]
    assert team.charges() == 10


@pytest.mark.slow
def test_shares_that_are_given_at_once_are_all_given(team):
    """The last one counts; and one that was opened before a crash keeps no other one out."""
    path = f"/v1/datasets/stays/quotas/{team.person('ana')}"
    limit = team.desk.ledger.balance("stays").budget.limit
    team.desk.ledger.open_budget("stays/ana/2", replace(limit, epsilon=0.3))
    with ThreadPoolExecutor(6) as pool:
        sizes = [0.5, 0.5, 0.5, 0.4, 0.4, 0.4]
        given = [
            pool.submit(team.send, "PUT", path, team.sam, json={"epsilon": size}) for size in sizes
        ]
    assert [each.result().status_code for each in given] == [200] * 6
    (share,) = team.send("GET", "/v1/me", team.ana).json()["shares"]
    events = team.send("GET", "/v1/audit?most=1000", team.sam).json()["items"]
    last = [each for each in events if each["action"] == "gave a share"][-1]
    assert f"epsilon {share['epsilon']!r}" in last["about"]
    assert team.ask(team.ana, "one").status_code == 201


def test_24_nobody_is_called_as_the_server_is(quiet):
    """Its own events stand in the trail under that name."""
    for name in ("server", "Server"):
        found = quiet.send("POST", "/v1/people", quiet.sam, json={"name": name})
        assert (found.status_code, found.json()["code"]) == (422, "bad_value")


def test_26_an_unforeseen_error_reaches_no_log(team, monkeypatch):
    """Whoever serves the app would print the error with its text; only its kind is told."""
    from starlette.testclient import TestClient

    def fail(*_, **__):
        raise RuntimeError(CANARY)

    monkeypatch.setattr("hushed.server._seen.price", fail)
    client = TestClient(team.client.app, base_url=str(team.client.base_url))  # errors are raised
    found = client.post(
        "/v1/datasets/stays/quote",
        json={"query": QUERY, "epsilon": 0.1},
        headers={"authorization": f"Bearer {team.ana}"},
    )
    assert (found.status_code, found.json()["code"]) == (500, "unforeseen")
    told = [json.loads(line) for line in team.logged.getvalue().splitlines()]
    assert [each.get("error", each.get("status")) for each in told] == ["RuntimeError", 500]
    assert CANARY not in found.text + team.logged.getvalue()


def test_a_clock_that_was_set_back_hides_no_answer_and_keeps_nobody_out():
    """The end seems to be before the charge: the answer stays on the grid, not hours away."""
    start = datetime.fromisoformat(START)
    for back in (0.0, 0.3, 3599.7, 3600.0):
        done = start - timedelta(seconds=back)
        wait = datetime.fromisoformat(readable_at(START, done.isoformat(), 1.0)) - done
        assert timedelta(0) <= wait <= timedelta(seconds=2)
        assert (done + wait - start) % timedelta(seconds=1) == timedelta(0)


def test_a_server_that_stops_tells_to_ask_again():
    """Uvicorn cancels what is under way, and would answer 500 for it, though it may be paid."""
    told = []

    async def hang(*_):
        await asyncio.sleep(60)

    async def send(message):
        told.append(message)

    async def whole():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def stop(body):
        scope = {"type": "http", "method": "POST", "path": "/v1/x", "query_string": b""}
        scope["headers"] = [(b"host", b"127.0.0.1:8642"), (b"content-length", b"0")]
        guard = Guard(hang, ServerSettings(), body=1024, log=Log(StringIO()))
        task = asyncio.create_task(guard(scope, body, send))
        await asyncio.sleep(0)  # it goes as far as it can
        assert not task.done()
        task.cancel()
        await task

    for body in (whole, hang):  # in the app, and while the body is awaited
        told.clear()
        asyncio.run(stop(body))
        assert [each.get("status") for each in told] == [503, None]
        found = json.loads(told[1]["body"])
        assert (found["code"], "you pay once" in found["title"]) == ("ledger_unavailable", True)
        assert "Nothing was charged, unless" in found["title"]


@pytest.mark.slow
def test_19_people_together_whose_questions_wait_keep_no_steward_out(team):
    """As many wait to be judged as ten people may have; their tokens can be stopped meanwhile."""
    waiting, go = threading.Semaphore(0), threading.Event()

    class Hanging:
        ended = 0

        def turn(self, *_):
            waiting.release()
            go.wait()
            raise Problem("busy")

    team.desk.workers = Hanging()
    path, body = "/v1/datasets/stays/quote", {"query": QUERY, "epsilon": 0.1}
    with ThreadPoolExecutor(90) as pool:
        try:
            asked = [pool.submit(team.send, "POST", path, team.ana, json=body) for _ in range(80)]
            assert all(waiting.acquire(timeout=120) for _ in asked)
            steward = pool.submit(team.send, "GET", "/v1/people", team.sam)
            assert steward.result(120).status_code == 200
        finally:
            go.set()
    assert {each.result().status_code for each in asked} == {503}
