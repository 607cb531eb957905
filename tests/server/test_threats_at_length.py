"""Threats tried hundreds of times, or with hundreds of inputs; the short forms are beside."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import random
import re
import socket
import sqlite3
import statistics
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from inspect import Parameter, signature
from pathlib import Path

import pyarrow as pa
import pytest
import urllib3
from scipy.stats import chi2_contingency
from tests.server.conftest import CANARY, QUERY, Here, make_folder, open_team
from tests.server.test_kills import process_of

import hushed as hs
from hushed.errors import QueryFailed
from hushed.server import _guard
from hushed.server._adding import confirm_dataset
from hushed.server._bounds import LONGEST_EXPRESSION
from hushed.server._config import ServerSettings
from hushed.server._guard import MOST_HEADERS, Guard
from hushed.server._log import Log
from hushed.server._metrics import write_metrics
from hushed.server._problems import CODES
from hushed.server._reading import answer
from hushed.server._requests import find_request
from hushed.server._runners import take_answer
from hushed.server._setup import invite
from hushed.server._sources import Source
from hushed.server._tokens import Scope
from hushed.server._worker import judge


@pytest.fixture
def hasty(tmp_path):
    """A team that may ask as often as it likes."""
    tokens = make_folder(tmp_path)
    file = tmp_path / "stats" / "hushed.toml"
    told = file.read_text()
    assert "requests_per_minute = 120" in told
    file.write_text(told.replace("requests_per_minute = 120", "requests_per_minute = 100000"))
    yield from open_team(tmp_path / "stats", tokens)


def _own_errors():
    """One of every class of `hushed.errors`, with a value of the rows in its text."""
    for name in hs.errors.__all__:
        kind = getattr(hs.errors, name)
        try:
            yield kind(f"value {CANARY} is too large")
        except TypeError:  # its text is made of what it is given
            needed = signature(kind).parameters.values()
            kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
            named = [each for each in needed if each.kind in kinds]
            yield kind(**{each.name: CANARY for each in named if each.default is each.empty})


class Once(Here):
    """Reads rows in this process, from a table that is opened once."""

    def answer(self, told):
        if not hasattr(self, "table"):
            self.table = Source(**told["source"]).open()
        return take_answer(answer(self.table, json.loads(json.dumps(told))))


def _foreign_errors():
    """Errors that engines, drivers and Python have, each with the same text."""
    import duckdb
    import psycopg
    import sqlalchemy

    known = [*vars(duckdb).values(), *vars(psycopg).values(), *vars(pa.lib).values()]
    kinds = {each for each in known if isinstance(each, type) and issubclass(each, Exception)}
    kinds |= {MemoryError, OSError, RecursionError, RuntimeError, SystemError, TimeoutError}
    kinds |= {ArithmeticError, AssertionError, EOFError, ImportError, KeyError, ZeroDivisionError}
    kinds |= {sqlite3.OperationalError, sqlalchemy.exc.SQLAlchemyError}
    return [kind(f"driver: {CANARY}") for kind in sorted(kinds, key=str)]


LONGER = 1.0  # seconds that somebody's rows take, more than a busy machine adds


class Slow(Once):
    """Reads rows, and takes a while longer if one person is among them."""

    def answer(self, told):
        if f"P99,=cmd{CANARY}" in Path(told["source"]["address"]).read_text():
            time.sleep(LONGER)
        return super().answer(told)


def ask_neighbour(place, grid, number, *, there):
    """After how many steps each answer can be read, of a table with somebody, or without."""
    tokens, steps = make_folder(place, settings=f"answer_grid = {grid}"), []
    file, rows = place / "stats" / "hushed.toml", place / "stays.csv"
    text = file.read_text().replace("open_per_person = 10", "open_per_person = 1000")
    file.write_text(text.replace("requests_per_minute = 120", "requests_per_minute = 100000"))
    if not there:
        rows.write_text(rows.read_text().partition("P99,")[0])
        confirm_dataset(place / "stats", "stays")
    for team in open_team(place / "stats", tokens):
        team.desk.runners = Slow()
        for i in range(number):
            made = team.ask(team.ana, f"k{i}", wait=0, epsilon=0.001).json()
            run = team.desk.queue.find(made["id"])
            if run is not None:
                run.result(120)
            found = find_request(team.desk.ledger, made["id"])
            begun, seen = map(datetime.fromisoformat, (found.charged_at, found.readable_at))
            steps.append((seen - begun) / timedelta(seconds=grid))
    return steps


def differ(one, other):
    """Whether a chi-square test at 1 % tells them apart: how many are above the middle of all."""
    middle = statistics.median([*one, *other])
    table = [
        [sum(each > middle for each in side), sum(each <= middle for each in side)]
        for side in (one, other)
    ]
    if not sum(above for above, _ in table):
        return False  # all take the same
    return bool(chi2_contingency(table).pvalue < 0.01)


@pytest.mark.parametrize(
    "number", [pytest.param(12, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.soak)]
)
def test_1_times_of_neighbours_do_not_differ_on_a_grid_above_every_run(tmp_path, number):
    """With a step that every run fits into; with a short one, the same two tables are told apart.

    A run that takes longer because of somebody is the worst that rows can do. Where both take one
    step, nothing is left to compare, and the test raises no alarm; a machine on which runs take
    more than a step at times raises one in 100 runs.
    """
    for grid, told_apart in ((600.0, False), (0.1, True)):
        times = [
            ask_neighbour(tmp_path / f"{grid} {there}", grid, number, there=there)
            for there in (True, False)
        ]
        for steps in times:
            assert len(steps) == number
            assert all(each >= 1 and each == int(each) for each in steps)
        assert differ(*times) is told_apart


@pytest.mark.parametrize(
    "step", [pytest.param(4, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.soak)]
)
def test_2_errors_tell_nothing_of_rows(hasty, monkeypatch, step):
    """Whatever a driver says, what goes out is one of a fixed list, and so is what is logged."""
    team, own, foreign = hasty, list(_own_errors()), _foreign_errors()
    assert {type(each).__name__ for each in own} == set(hs.errors.__all__)
    assert len(foreign) >= 40
    raised, told, codes = [], [], set()

    def fail(*_, **__):
        raise raised[-1]

    team.desk.runners = Once()
    monkeypatch.setattr("hushed.tables._prepared.run_plan", fail)
    for number, error in enumerate([*own, *foreign[::step]]):
        raised.append(error)
        token = (team.ana, team.bo)[number % 2]
        made = team.ask(token, f"k{number}", wait=5, epsilon=0.005)
        found = team.answer(token, made.json()["id"])
        told += [made, found, team.send("GET", f"/v1/requests/{made.json()['id']}", token)]
        assert made.json()["state"] == "failed", type(error)
        codes.add(found.content)
    (body,) = map(json.loads, codes)
    assert body == {
        "type": "about:blank",
        "title": CODES["failed"][1],
        "status": 409,
        "code": "failed",
    }
    assert all(CANARY not in each.text for each in told)
    assert CANARY not in team.logged.getvalue()
    assert CANARY not in write_metrics(team.desk)
    assert team.charges() == len(raised)


@pytest.mark.soak
def test_3_a_hundred_failures_are_a_hundred_charges(hasty, monkeypatch):
    def fail(*_, **__):
        raise QueryFailed("no")

    hasty.desk.runners = Once()
    monkeypatch.setattr("hushed.tables._prepared.run_plan", fail)
    for i in range(100):
        assert hasty.ask(hasty.ana, f"k{i}", epsilon=0.005).json()["state"] == "failed"
    assert hasty.charges() == 100


@pytest.mark.slow
def test_4_twenty_people_together_stay_within_the_budget(team):
    """Shares of 0.6 each, of 1.0: ten tenths are paid, whoever asks."""
    share = [("stays", hs.Guarantee(epsilon=0.6))]
    tokens = [team.ana, team.bo] + [
        invite(team.folder, f"p{i}", "analyst", share, days=1, scope=Scope()) for i in range(18)
    ]
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(lambda token: team.ask(token, "one"), tokens))
    assert sorted(each.status_code for each in found) == [201] * 10 + [409] * 10
    refused = {each.json()["code"] for each in found if each.status_code == 409}
    assert refused == {"budget_exceeded"}
    assert team.charges() == 10
    assert team.desk.ledger.balance("stays").epsilon_left == 0.0


@pytest.mark.soak
def test_7_a_thousand_ids_that_are_guessed_do_not_exist(hasty):
    """Nor does one that is there, and somebody else's: all answers are the same."""
    made = hasty.ask(hasty.ana, "one").json()["id"]
    headers = {"authorization": f"Bearer {hasty.bo}"}
    guessed = {
        hasty.client.get(f"/v1/requests/{uuid.uuid4()}/answer", headers=headers).content
        for _ in range(1000)
    }
    assert guessed == {hasty.answer(hasty.bo, made).content}


@pytest.mark.slow
def test_8_fifty_at_once_under_one_key_pay_once(hasty):
    """Eight questions of a person are judged at a time: whoever is told to wait asks again."""

    def insist(_):
        while (found := hasty.ask(hasty.ana, "same")).status_code == 429:
            time.sleep(0.05)
        return found

    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(insist, range(50)))
    assert {each.status_code for each in found} == {201}
    assert len({each.json()["id"] for each in found}) == 1
    assert hasty.charges() == 1


BEGINNINGS = ("=", "+", "-", "@", "\t=", "\r=", " =", "\u200b@", "\uff1d", "\ufe62", "'=", ";=")
ENDS = (
    "cmd|' /C calc'!A0",
    'HYPERLINK("http://evil.example","x")',
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "{{7*7}}${7*7}",
    "\x1b[2J\x1b]0;x\x07",
    "\u202egnp.exe",
    "\n=1",
    "javascript:alert(1)",
    "]]><!--",
    "&lt;b&gt;",
    "%0d%0aset-cookie:x",
    "'; DROP TABLE x;--",
    "\u2028=1",
    "a,=1",
    ",@SUM(1)",
)


@pytest.mark.slow
def test_14_two_hundred_keys_of_data_subjects_run_nowhere():
    """As JSON, as CSV, as a terminal prints them, and on the page of the certificate."""
    from hushed.plots import certificate_page
    from hushed.server._seen import write_stored

    keys = [start + end for start in BEGINNINGS for end in ENDS]
    assert len(set(keys)) == len(keys) >= 200
    table = hs.table(pa.table({"ward": ["plain"]})).group_by("ward", keys={"ward": keys})
    answer = table.count().release(epsilon=1.0)
    text = write_stored(answer.to_json())
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == len(keys) + 1
    for row in rows[1:]:
        first = row[0].lstrip(" \u200b")
        assert not first.startswith(("=", "+", "-", "@", "\uff1d", "\ufe62")), row[0]
        assert len(row) == len(rows[0])
    odd = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    page = certificate_page(hs.certify(answer))
    for shown in (text, str(answer), page):
        assert not odd.search(shown)
    for tag in ("<script>alert", "<img src=x", "<svg onload"):
        assert tag not in page


def guarded(headers, parts, monkeypatch, body=1000):
    """Ask a guard with a body in parts, which never ends; status, code, and how many it took."""
    monkeypatch.setattr(_guard, "BODY_SECONDS", 0.05)
    taken, sent, asked = [], [], []

    async def app(scope, receive, send):
        asked.append(scope)

    async def receive():
        if len(taken) >= parts:
            await asyncio.sleep(60)
        taken.append(1)
        return {"type": "http.request", "body": b" " * 100, "more_body": True}

    async def send(message):
        sent.append(message)

    given = [(b"host", b"127.0.0.1:8642"), (b"content-type", b"application/json"), *headers]
    scope = {"type": "http", "method": "POST", "path": "/v1/x", "query_string": b""}
    scope |= {"headers": given, "client": ("127.0.0.1", 1), "http_version": "1.1"}
    guard = Guard(app, ServerSettings(), body=body, log=Log(io.StringIO()))
    asyncio.run(guard(scope, receive, send))
    assert not asked
    return sent[0]["status"], json.loads(sent[1]["body"])["code"], len(taken)


CHUNKED = (b"transfer-encoding", b"chunked")


@pytest.mark.parametrize(
    ("headers", "parts", "told"),
    [
        ([CHUNKED], 3, (408, "too_slow", 3)),
        ([(b"content-length", b"999")], 3, (408, "too_slow", 3)),
        ([CHUNKED], 10**7, (413, "too_large", 11)),
        ([(b"content-length", b"1001")], 10**7, (413, "too_large", 0)),
        ([CHUNKED, (b"content-encoding", b"gzip")], 10**7, (400, "bad_request", 0)),
        ([(b"x-%d" % i, b"a") for i in range(MOST_HEADERS)], 10**7, (413, "too_large", 0)),
    ],
    ids=["slow", "slow-known", "gigabyte", "long", "compressed", "headers"],
)
def test_17_slow_compressed_and_endless_requests_are_refused(monkeypatch, headers, parts, told):
    """Before they are read: of a body without an end no more is taken than a body may have."""
    assert guarded(headers, parts, monkeypatch) == told


@pytest.mark.slow
def test_17_five_hundred_slow_connections_keep_nobody_waiting(tmp_path):
    """Each sends half a body. Who asks meanwhile waits at most twice as long as before.

    Of five rounds the best one counts, for other programs take the processor, too.
    """
    tokens = make_folder(tmp_path)
    with process_of(tmp_path / "stats") as process, ExitStack() as slow:
        pool = urllib3.PoolManager(retries=False)
        headers = {"authorization": f"Bearer {tokens['ana']}"}

        def measure():
            took = []
            for _ in range(60):
                begun = time.perf_counter()
                found = pool.request("GET", f"{process.url}/v1/me", headers=headers)
                took.append(time.perf_counter() - begun)
                assert found.status == 200
            return statistics.quantiles(took, n=20)[-1]

        measure()
        before = max(measure() for _ in range(3))
        head = b"POST /v1/datasets/stays/quote HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % process.port
        rounds = []
        for _ in range(5):
            for _ in range(500):
                line = slow.enter_context(socket.create_connection(("127.0.0.1", process.port), 20))
                line.sendall(head + b"Content-Length: 99\r\n\r\n{")
            time.sleep(0.5)  # until they are taken
            rounds.append(measure())
            slow.close()
        assert min(rounds) <= 2 * before


def write_conditions(number, seed=19):
    """Write conditions as an attacker would: deep, long, wide, with towers of numbers."""
    rng = random.Random(seed)
    cost = ["cost", "1", "cost + 1", "-cost", "2 ** 9", "cost * cost", "1e308", "cost % 7", "0"]
    whole = [
        lambda: "not " * rng.randint(1, 90) + "cost > 1",
        lambda: "(" * (n := rng.randint(1, 200)) + "cost > 1" + ")" * n,
        lambda: " and ".join(["cost > 1"] * rng.randint(1, 40)),
        lambda: " or ".join(f"cost == {i}" for i in range(rng.randint(1, 40))),
        lambda: "cost" + " + cost" * rng.randint(1, 70) + " > 1",
        lambda: "-" * rng.randint(1, 400) + "cost > 1",
        lambda: "cost" + " < cost" * rng.randint(1, 60),
        lambda: f"cost in {[*range(rng.randint(1, 90))]}",
        lambda: "9" * rng.randint(1, 400) + " > cost",
        lambda: "cost > " + " ** ".join(["9"] * rng.randint(2, 60)),
        lambda: "ward == '" + "a" * rng.randint(1, 400) + "'",
        lambda: "(cost * " * (n := rng.randint(1, 50)) + "cost" + ")" * n + " > 1",
        lambda: "(cost > 1) == " * rng.randint(1, 25) + "(cost > 2)",
        lambda: "abs(" * (n := rng.randint(1, 70)) + "cost" + ")" * n + " > 1",
        lambda: " ".join(rng.choice([*cost, "and", "or", "<", "(", ")"]) for _ in range(60)),
    ]
    found = [whole[i % len(whole)]() for i in range(number)]
    return [each[:LONGEST_EXPRESSION] for each in found]


MOST_TIMES = 150  # what a process may take for a question is seconds, this many plain ones


@pytest.mark.parametrize(
    "number", [pytest.param(30, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.soak)]
)
def test_18_conditions_of_death_are_refused_or_judged_in_a_bounded_time(number):
    """In processor time, as a multiple of what a plain one takes; once, one took 51 s."""
    table = hs.table(pa.table({"cost": [1.0], "ward": ["A"], "patient": ["P"]}), user="patient")

    def take(text):
        query = QUERY | {"steps": [{"filter": text}]}
        asked = {"query": query, "epsilon": 0.1, "delta": 0.0, "noise": "laplace"}
        begun = time.process_time()
        found = judge(table, {"do": "check", "asked": asked, "run_seconds": 30.0})
        return time.process_time() - begun, found

    assert take("cost > 1")[1]["digest"]
    plain = statistics.median(take(f"cost > {i}.5")[0] for i in range(9))  # none is known yet
    judged = 0
    for text in write_conditions(number):
        seconds, found = take(text)
        judged += "digest" in found
        assert "digest" in found or found["problem"] == "bad_query", (text, found)
        assert seconds <= MOST_TIMES * plain, (seconds / plain, text)
    assert number / 10 <= judged <= number * 0.9  # of both kinds


PLACE = Path(__file__).parent


def test_each_threat_has_a_test_of_its_number_in_a_file_that_the_page_names():
    """All of 1 to 26 that the page for operators lists; and it names every file that has some."""
    page = (PLACE.parents[1] / "docs" / "operating.md").read_text()
    threats = page.partition("## Threats")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\d, ]+) \|", threats, re.MULTILINE)
    assert sorted(int(each) for row in rows for each in row.split(",")) == [*range(1, 27)]
    numbers, files = set(), set()
    for file in PLACE.glob("test_*.py"):
        found = re.findall(r"^def test_(\d+)_(?:and_(\d+)_)?", file.read_text(), re.MULTILINE)
        numbers |= {int(each) for pair in found for each in pair if each}
        files |= {file.name} if found else set()
    assert numbers == {*range(1, 27)}
    assert (
        set(re.findall(r"`(?:tests/server/)?(test_\w+\.py)`", threats.partition("|")[0])) == files
    )
