"""What is answered by the shortest way is what the routes answer, and stops as soon."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import QUERY, make_folder, open_team

from hushed import Guarantee
from hushed.errors import LedgerUnavailable
from hushed.ledger import Ledger
from hushed.ledger._glances import Glances
from hushed.server import _judging, _life, _quick, _taking
from hushed.server._desk import Desk
from hushed.server._quick import Quick
from hushed.server._rates import Rates
from hushed.server._short import Short

PRICE = "/v1/datasets/stays/quote"
ASK, ASKED = "/v1/datasets/stays/requests", "/v1/datasets/{dataset}/requests"


@contextmanager
def by_routes(team) -> Iterator[None]:
    """Leave all to the routes."""
    guard = team.client.app
    quick, guard._app = guard._app, guard._app._app
    try:
        yield
    finally:
        guard._app = quick


@pytest.fixture
def found(monkeypatch):
    """What was answered by the shortest way."""
    seen = []
    for name in ("_find", "_find_price"):
        real = getattr(Quick, name)
        monkeypatch.setattr(Quick, name, _noting(real, seen))
    return seen


@pytest.fixture
def short(monkeypatch):
    """The routes whose work was done without them."""
    seen = []
    real = Short.find

    def find(self, scope, body):
        known = real(self, scope, body)
        seen.extend(known[:1] if known else ())
        return known

    monkeypatch.setattr(Short, "find", find)
    return seen


def _noting(real, seen):
    if real.__name__ == "_find":

        def find(self, scope):
            plain = real(self, scope)
            seen.append(plain is not None)
            return plain

        return find

    async def price(self, scope, body):
        plain = await real(self, scope, body)
        seen.append(plain is not None)
        return plain

    return price


def tell(answer):
    return answer.status_code, sorted(answer.headers.items()), answer.content


@pytest.mark.slow
def test_all_that_is_asked_is_answered_as_the_routes_do(team, found, monkeypatch):
    """Byte by byte, with headers: for each kind of person, of token, and of what is not there."""
    monkeypatch.setattr("hushed.server._rates.Rates.take", lambda *_: True)
    made = team.ask(team.ana, "one").json()["id"]
    people = f"/v1/people/{team.person('ana')}/tokens"
    told = {"prices": {"quote_only": True}, "other": {"datasets": ["other"]}}
    told |= {"far": {"addresses": ["10.0.0.0/8"]}}
    tokens = {"ana": team.ana, "bo": team.bo, "sam": team.sam, "none": None, "wrong": "wrong"}
    for name, narrowed in told.items():
        tokens[name] = team.send("POST", people, team.sam, json=narrowed).json()["token"]
    looks = [
        (f"/v1/requests/{each}{what}", headers)
        for each in (made, str(uuid.uuid4()), "x" * 37)
        for what in ("", "/answer", "/certificate", "/other")
        for headers in ({}, {"accept": "text/csv"}, {"accept": "x" * 201})
    ]
    prices = [{"query": QUERY, "epsilon": 0.1}, {"query": QUERY, "epsilon": 99.0}, {"query": 1}]
    quick = {}
    for _ in range(2):  # the second time, tokens were used today, and prices are known
        for name, token in tokens.items():
            before = len(found)
            for path, headers in looks if name != "wrong" else looks[:1]:
                head = headers | ({"authorization": f"Bearer {token}"} if token else {})
                shown = tell(team.client.get(path, headers=head))
                with by_routes(team):
                    assert tell(team.client.get(path, headers=head)) == shown, (name, path)
            for body in prices if name != "wrong" else ():
                head = {"authorization": f"Bearer {token}"} if token else {}
                shown = tell(team.client.post(PRICE, headers=head, json=body))
                with by_routes(team):
                    assert tell(team.client.post(PRICE, headers=head, json=body)) == shown
            quick[name] = sum(found[before:])
    # Who asked sees the request, its answer and its certificate, and each the price.
    assert quick == {
        "ana": 3 + 1,
        "bo": 1,
        "sam": 0,
        "none": 0,
        "wrong": 0,
        "prices": 1,
        "other": 0,
        "far": 0,
    }


ODD_BODIES: list[Any] = [
    {"query": QUERY, "epsilon": 99.0},
    {"query": QUERY, "epsilon": "0.01"},
    {"query": QUERY},
    {"query": 1, "epsilon": 0.01},
    {"query": QUERY, "epsilon": 0.01, "more": 1},
    {"query": QUERY | {"columns": {"nothing": "float"}}, "epsilon": 0.01},
    {"query": QUERY, "epsilon": 0.01, "note": "x" * 501},
    {"query": QUERY, "epsilon": 0.01, "noise": "gaussian", "delta": 0.5},
    [],
    None,
]
ODD_HEADERS = [
    {"idempotency-key": "x" * 201},
    {"idempotency-key": " x"},
    {"idempotency-key": ""},
    {"idempotency-key": b"\xfc"},
    {"idempotency-key": "odd", "prefer": "x" * 201},
    {},
]


def test_a_question_is_taken_as_the_route_takes_it(team, short, monkeypatch):
    """Byte by byte, with headers: whatever token, key and body, whichever way comes first."""
    monkeypatch.setattr(Rates, "take", lambda *_: True)
    people = f"/v1/people/{team.person('ana')}/tokens"
    tokens = {"ana": team.ana, "bo": team.bo, "sam": team.sam, "none": None, "wrong": "wrong"}
    tokens |= {"cut": team.ana[:-1], "stopped": team.ana.replace("_", "-")}
    for name, narrowed in [
        ("prices", {"quote_only": True}),
        ("other", {"datasets": ["other"]}),
        ("far", {"addresses": ["10.0.0.0/8"]}),
    ]:
        tokens[name] = team.send("POST", people, team.sam, json=narrowed).json()["token"]
    good = {"query": QUERY, "epsilon": 0.01}
    cases = [(good, {"idempotency-key": "new"}), (good | {"note": "b"}, {"idempotency-key": "new"})]
    cases += [(body, {"idempotency-key": "odd"}) for body in ODD_BODIES]
    cases += [(good, headers) for headers in ODD_HEADERS]
    short.clear()
    codes, made, taken = set(), set(), {}
    for number, (name, token) in enumerate(tokens.items()):
        head = {"prefer": "wait=20"} | ({"authorization": f"Bearer {token}"} if token else {})
        for body, more in cases if name in ("ana", "prices") else cases[:3]:
            told = {"headers": head | more, "json": body}
            for path in (ASK, "/v1/datasets/none/requests") if body is good else (ASK,):
                before = len(short)
                if number % 2:
                    with by_routes(team):
                        team.client.post(path, **told)
                shown = tell(team.client.post(path, **told))
                with by_routes(team):
                    assert tell(team.client.post(path, **told)) == shown, (name, path, body, more)
                codes.add(shown[0])
                made |= {json.loads(shown[2])["id"]} if shown[0] == 201 else set()
                taken[name] = taken.get(name, 0) + len(short) - before
    assert codes >= {201, 400, 401, 403, 404, 422}
    # What can be read takes the short way, whoever asks, be its epsilon too large.
    assert set(short) == {ASKED}
    assert taken["bo"] == taken["none"] == taken["wrong"] == 4  # one of no data set
    assert len(made) == team.charges()  # each of them once
    assert {each.note for each in team.desk.ledger.entries("stays")} == {
        "by ana: no note given",
        "by bo: no note given",
    }


@pytest.mark.parametrize("shown", [True, False])
def test_a_data_set_of_others_is_refused_on_the_way_of_one_that_is_not_there(
    team, short, monkeypatch, shown
):
    """The way by the route takes twice as long: whoever has no share would hear of the name."""
    person = team.send("POST", "/v1/people", team.sam, json={"name": "eve"}).json()["id"]
    told = team.send("POST", f"/v1/people/{person}/tokens", team.sam, json={}).json()
    head = {"authorization": f"Bearer {told['token']}"} if shown else {}
    looked, look = [], Quick._find_share

    def find_share(self, scope, dataset):
        looked.append(dataset)
        return look(self, scope, dataset)

    monkeypatch.setattr(Quick, "_find_share", find_share)
    ways, answers = [], []
    for name in ("stays", "nowhere"):
        for what in ("requests", "quote"):
            short.clear()
            path, body = f"/v1/datasets/{name}/{what}", {"query": QUERY, "epsilon": 0.1}
            headers = head | {"idempotency-key": "one"}
            answers.append(tell(team.client.post(path, headers=headers, json=body)))
            ways.append(tuple(short))
    assert answers[0][0] == (404 if shown else 401)
    assert answers[:2] == answers[2:]
    assert ways[:2] == ways[2:]
    assert looked == ["stays", "nowhere"]


@pytest.mark.parametrize("name", ["x" * 64, "x" * 65, "", "a/b", "%2F", "sta%79s", "stays%0A"])
def test_names_of_data_sets_are_refused_as_the_route_refuses_them(team, name):
    body, head = {"query": QUERY, "epsilon": 0.01}, {"idempotency-key": "one"}
    for token in (team.ana, None):
        more = {"authorization": f"Bearer {token}"} if token else {}
        path = f"/v1/datasets/{name}/requests"
        shown = team.client.post(path, headers=head | more | {"prefer": "wait=20"}, json=body)
        with by_routes(team):
            other = team.client.post(path, headers=head | more | {"prefer": "wait=20"}, json=body)
        assert tell(other) == tell(shown)


@pytest.mark.parametrize("path", ["/v1/me", "/readyz"])
def test_who_one_is_and_readiness_are_told_as_by_the_routes(team, short, path):
    for token in (team.ana, team.sam, None, "wrong"):
        head = {"authorization": f"Bearer {token}"} if token else {}
        shown = tell(team.client.get(path, headers=head))
        with by_routes(team):
            assert tell(team.client.get(path, headers=head)) == shown
    assert short == [path] * 4
    (team.folder / "server.mark").write_text("9999:0123456789abcdef\n{}\n")
    shown = tell(team.client.get("/readyz"))
    with by_routes(team):
        assert tell(team.client.get("/readyz")) == shown
    assert shown[0] == 503
    team.desk.mark.unlink()


def _let_out(team, monkeypatch):
    path = f"/v1/people/{team.person('ana')}"
    assert team.send("PATCH", path, team.sam, json={"active": False}).status_code == 200


def _change(team, monkeypatch):
    source = team.folder.parent / "stays.csv"
    source.write_text(source.read_text() + "P100,A,1\n")


def _set(place, name, value):
    return lambda team, monkeypatch: monkeypatch.setattr(place, name, value)


def _fail(error):
    def fail(*_):
        raise error

    def set_up(team, monkeypatch):
        for place in (_life, _taking):
            monkeypatch.setattr(place, "reading_in_turn", fail)

    return set_up


SETUPS = {
    "open": _set(_life, "count_open", lambda *_: 99),
    "rate": _set(Rates, "take", lambda *_: False),
    "queue": _set(Desk, "count_waiting", lambda _: 10**6),
    "let out": _let_out,
    "stopped meanwhile": _set(_life, "find_counting_of", lambda *_: (False, None, 0, 0)),
    "changed": _change,
    "away": _fail(LedgerUnavailable("away")),
    "fault": _fail(KeyError("private")),
}


@pytest.mark.parametrize(
    ("limit", "status", "code"),
    [
        ("share", 409, "quota_exceeded"),
        ("budget", 409, "budget_exceeded"),
        ("open", 429, "too_many_open"),
        ("rate", 429, "too_many"),
        ("queue", 503, "busy"),
        ("let out", 401, "not_authenticated"),
        ("stopped meanwhile", 401, "not_authenticated"),
        ("key", 422, "key_reused"),
        ("changed", 409, "dataset_changed"),
        ("away", 503, "ledger_unavailable"),
        ("fault", 500, "unforeseen"),
    ],
)
def test_each_limit_holds_on_both_ways(team, short, monkeypatch, limit, status, code):
    """The same refusal, the same line of the log, and nothing is charged."""
    assert team.ask(team.ana, "one", epsilon=0.3).status_code == 201
    assert team.ask(team.bo, "one", epsilon=0.5).status_code == 201
    epsilon = {"share": 0.4, "budget": 0.25}.get(limit, 0.01)
    SETUPS.get(limit, lambda *_: None)(team, monkeypatch)
    key, before = "one" if limit == "key" else "two", team.charges()
    line = f'"route": "{ASKED}", "status": {status}'
    # The last time it was judged before, and may be taken together with others.
    ways = [nullcontext(), by_routes(team), nullcontext()]
    for number, way in enumerate(ways, start=1):
        short.clear()
        with way:
            told = team.ask(team.ana, key, wait=0, epsilon=epsilon)
        assert (told.status_code, told.json()["code"]) == (status, code)
        assert "private" not in told.text
        assert short == ([] if number == 2 else [ASKED])
        assert team.charges() == before
        assert team.logged.getvalue().count(line) == number


def test_what_waits_is_looked_at_by_the_shortest_way_too(tmp_path, found):
    """Whether its run has ended makes no difference before it may be seen."""
    tokens = make_folder(tmp_path, settings="answer_grid = 600.0")
    for team in open_team(tmp_path / "stats", tokens):
        made = team.ask(team.ana, "one", wait=0).json()["id"]
        for _ in range(2):
            shown = team.send("GET", f"/v1/requests/{made}", team.ana)
            assert (shown.json()["state"], shown.headers["retry-after"]) == ("charged", "1")
            assert found[-1]
            assert team.answer(team.ana, made).json()["code"] == "not_ready"
            assert not found[-1]
            while team.desk.queue.count():
                time.sleep(0.01)


def test_an_end_that_the_mark_may_not_tell_of_is_left_to_the_route(team, found):
    """The route has the mark moved; after that it tells of the end for ever."""
    made = team.ask(team.ana, "one").json()["id"]
    for each in ("", "/answer", "/certificate"):
        team.desk.covered.clear()
        for known in (False, True):
            assert team.send("GET", f"/v1/requests/{made}{each}", team.ana).status_code == 200
            assert found[-1] is known


def test_that_a_token_was_used_today_is_written_down(team, found):
    made = team.ask(team.ana, "one").json()["id"]
    assert team.answer(team.ana, made).status_code == 200
    with sqlite3.connect(team.folder / "hushed.db") as database:
        database.execute("UPDATE hushed_s_tokens SET last_used = '2020-01-01'")
    for known in (False, True):
        assert team.answer(team.ana, made).status_code == 200
        assert found[-1] is known
    with sqlite3.connect(team.folder / "hushed.db") as database:
        used = {each for (each,) in database.execute("SELECT last_used FROM hushed_s_tokens")}
    assert len(used) == 2


def test_a_token_stops_at_the_next_request(team, found):
    made = team.ask(team.ana, "one").json()["id"]
    assert team.answer(team.ana, made).status_code == 200
    assert team.answer(team.ana, made).status_code == 200
    assert found[-1]
    path = f"/v1/people/{team.person('ana')}"
    team.send("PATCH", path, team.sam, json={"active": False})
    for each in ("", "/answer", "/certificate"):
        assert team.send("GET", f"/v1/requests/{made}{each}", team.ana).status_code == 401
        assert not found[-1]


def test_each_request_is_counted_once(tmp_path, found):
    """Whichever way it is answered."""
    tokens = make_folder(tmp_path)
    file = tmp_path / "stats" / "hushed.toml"
    file.write_text(
        file.read_text().replace("requests_per_minute = 120", "requests_per_minute = 12")
    )
    for team in open_team(tmp_path / "stats", tokens):
        made = team.ask(team.ana, "one").json()["id"]
        body = {"query": QUERY, "epsilon": 0.1}
        codes = [team.answer(team.ana, made).status_code for _ in range(5)]
        codes += [team.send("POST", PRICE, team.ana, json=body).status_code for _ in range(7)]
        assert codes == [200] * 11 + [429]
        assert sum(found) >= 9
        assert team.answer(team.ana, made).status_code == 429


def test_a_price_is_found_once_for_all_and_what_is_left_for_each(team, monkeypatch):
    """It is that of the question and the table; a share is looked up each time."""
    asked = []
    real = _judging._ask
    monkeypatch.setattr(_judging, "_ask", lambda *told: asked.append(told[-1]) or real(*told))
    body = {"query": QUERY, "epsilon": 0.1}

    def price(token):
        return team.send("POST", PRICE, token, json=body).json()

    first = price(team.ana)
    assert price(team.ana) == first
    assert price(team.bo) == first
    assert asked == ["price"]
    assert team.ask(team.ana, "one").status_code == 201
    assert price(team.ana)["left"] != first["left"]
    assert price(team.bo) == first
    assert team.send("POST", PRICE, team.sam, json=body).json()["left"] is None
    body["epsilon"] = 0.2
    assert price(team.bo)["epsilon"] == 0.2
    assert asked.count("price") == 2


def test_a_price_of_a_table_that_changed_is_not_told(team):
    body = {"query": QUERY, "epsilon": 0.1}
    for _ in range(2):
        assert team.send("POST", PRICE, team.ana, json=body).status_code == 200
    source = team.folder.parent / "stays.csv"
    source.write_text(source.read_text() + "P100,A,1\n")
    shown = team.send("POST", PRICE, team.ana, json=body)
    assert (shown.status_code, shown.json()["code"]) == (409, "dataset_changed")


def test_prices_of_a_table_in_a_database_are_not_kept(team):
    """It may change unseen."""
    stays = team.desk.datasets["stays"]
    asked = _judging.AskQuote.model_validate({"query": QUERY, "epsilon": 0.1})
    team.send("POST", PRICE, team.ana, json={"query": QUERY, "epsilon": 0.1})
    found = team.desk.prices.find(stays, asked)
    assert found is not None
    object.__setattr__(stays, "known", "")
    team.desk.prices.keep(stays, asked, found)
    assert team.desk.prices.find(stays, asked) is None


def test_a_price_that_nobody_waits_for_counts_until_its_thread_has_ended(team, monkeypatch):
    """Else those who ask and go away would have more threads than there are."""
    body = {"query": QUERY, "epsilon": 0.1}
    assert team.send("POST", PRICE, team.ana, json=body).status_code == 200
    quick, begun, go = team.client.app._app, threading.Event(), threading.Event()

    def price(*_):
        begun.set()
        assert go.wait(20)

    monkeypatch.setattr(_quick, "show_quote_of", price)
    scope = {
        "path": PRICE,
        "headers": [(b"authorization", f"Bearer {team.ana}".encode())],
    }

    async def ask():
        task = asyncio.create_task(quick._find_price(scope, json.dumps(body).encode()))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert quick._pricing == 1

    asyncio.run(ask())
    go.set()
    quick._threads.shutdown()
    assert quick._pricing == 0


class TestGlances:
    @pytest.fixture
    def glances(self, tmp_path: Path) -> Iterator[Glances]:
        ledger = Ledger(f"sqlite:///{tmp_path / 'a.db'}")
        made = Glances(ledger)
        yield made
        made.close()
        ledger.close()

    def count(self, glances):
        with glances.looking() as connection:
            return connection.execute("SELECT COUNT(*) FROM hushed_budgets").fetchone()[0]

    def test_nothing_is_written(self, glances):
        assert self.count(glances) == 0
        with pytest.raises(LedgerUnavailable), glances.looking() as connection:
            connection.execute("DELETE FROM hushed_budgets")
        assert self.count(glances) == 0

    def test_another_file_is_not_looked_into(self, glances, tmp_path):
        assert self.count(glances) == 0
        (tmp_path / "a.db").rename(tmp_path / "b.db")
        (tmp_path / "a.db").write_bytes((tmp_path / "b.db").read_bytes())
        with pytest.raises(LedgerUnavailable):
            self.count(glances)

    def test_nobody_is_waited_for(self, glances, tmp_path):
        """Everybody else would wait, too."""
        glances._store.close()
        with sqlite3.connect(tmp_path / "a.db", isolation_level=None) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            begun = time.monotonic()
            with pytest.raises(LedgerUnavailable):
                self.count(glances)
            assert time.monotonic() - begun < 2.0

    def test_a_connection_that_was_closed_for_a_fork_is_opened_again(self, glances):
        assert self.count(glances) == 0
        glances._connection.close()
        assert self.count(glances) == 0

    @pytest.mark.parametrize("ends", [["-shm"], ["-wal"], ["-shm", "-wal"]])
    def test_a_log_that_is_removed_stops_no_charges(self, glances, tmp_path, ends):
        """Its connection is closed with the others: else the log that is gone stays in use."""
        with Ledger(f"sqlite:///{tmp_path / 'b.db'}") as ledger:
            ledger.open_budget("b", Guarantee(epsilon=10.0))
            kept = Glances(ledger)
            ledger.charge("b", Guarantee(epsilon=1.0))
            assert self.count(kept) == 1
            for end in ends:
                (tmp_path / f"b.db{end}").unlink()
            with pytest.raises(LedgerUnavailable):
                ledger.charge("b", Guarantee(epsilon=1.0))
            numbers = [ledger.charge("b", Guarantee(epsilon=1.0)).number for _ in range(3)]
            assert numbers == list(range(numbers[0], numbers[0] + 3))
            assert numbers[0] >= 2
            ledger.verify("b")
            assert self.count(kept) == 1
            kept.close()
