"""A team server without a network: a clinic, an analyst, another one, a steward."""

from __future__ import annotations

import atexit
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient
from tests.server.documented import check_documented

from hushed import Guarantee
from hushed.server._adding import add_dataset, confirm_dataset
from hushed.server._app import make_app, open_desk
from hushed.server._desk import Desk
from hushed.server._log import Log
from hushed.server._reading import answer
from hushed.server._runners import Runners, take_answer
from hushed.server._setup import invite, make_server
from hushed.server._sources import Source
from hushed.server._tokens import Scope
from hushed.server._workers import Workers

_DOCUMENT: dict[str, Any] = {}
ORIGIN = "http://127.0.0.1:8642"
CANARY = "424242"
_LONGEST_WAIT = 120.0  # seconds for an answer, on a machine that is busy
QUERY: dict[str, Any] = {
    "user": "patient",
    "columns": {"cost": "float", "ward": "string"},
    "max_rows_per_user": 1,
    "aggregates": [{"kind": "count"}],
}


@dataclass(kw_only=True)
class Team:
    """A server with its people; ``ana`` and ``bo`` have shares of 0.6, the data set has 1.0."""

    folder: Path
    desk: Desk
    client: TestClient
    ana: str
    bo: str
    sam: str
    logged: StringIO
    document: dict[str, Any] = field(repr=False)

    def send(self, method: str, path: str, token: str | None = None, **rest: Any) -> Any:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        headers |= rest.pop("headers", {})
        found = self.client.request(method, path, headers=headers, **rest)
        check_documented(self.document, method, path, found)
        return found

    def ask(self, token: str, key: str, wait: int = 20, **terms: Any) -> Any:
        body = {"query": QUERY, "epsilon": 0.1} | terms
        headers = {"Idempotency-Key": key} | ({"Prefer": f"wait={wait}"} if wait else {})
        path = "/v1/datasets/stays/requests"
        return self.send_until_answered(path, token, json=body, headers=headers)

    def send_until_answered(self, path: str, token: str, **asked: Any) -> Any:
        """Ask; where an answer is waited for, go on waiting: a machine may be busy.

        The same key is paid once, however often it is sent.
        """
        found = self.send("POST", path, token, **asked)
        ends = time.monotonic() + _LONGEST_WAIT
        while "Prefer" in asked["headers"] and found.status_code == 202:
            if found.json()["state"] != "charged" or time.monotonic() > ends:
                break
            found = self.send("POST", path, token, **asked)
        return found

    def answer(self, token: str, request: str, **rest: Any) -> Any:
        return self.send("GET", f"/v1/requests/{request}/answer", token, **rest)

    def person(self, name: str) -> str:
        people = self.send("GET", "/v1/people", self.sam).json()["items"]
        return next(each["id"] for each in people if each["name"] == name)

    def charges(self) -> int:
        return len(self.desk.ledger.entries("stays"))


@cache
def _made() -> tuple[Path, dict[str, str]]:
    """A server that no test opens; making it takes a second."""
    place = Path(mkdtemp(prefix="hushed-server-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place, _make(place)


def make_folder(
    place: Path, *, settings: str = "answer_grid = 0.0", stays: str = ""
) -> dict[str, str]:
    """A folder of a server, and the tokens of its people: a copy of one that is made once."""
    made, tokens = _made()
    shutil.copytree(made, place, dirs_exist_ok=True)
    file = place / "stats" / "hushed.toml"
    told = file.read_text().replace("answer_grid = 1.0", settings)
    file.write_text(told.replace("[dataset.stays]\n", f"[dataset.stays]\n{stays}\n"))
    confirm_dataset(place / "stats", "stays")  # a copy of a file is another file
    return dict(tokens)


def _make(place: Path) -> dict[str, str]:
    source = place / "stays.csv"
    rows = [f"P{i},{'AB'[i % 2]},{i % 50}" for i in range(60)]
    source.write_text("\n".join(["patient,ward,cost", *rows, f"P99,=cmd{CANARY},{CANARY}", ""]))
    folder = place / "stats"
    make_server(folder)
    column = {"cost": {"kind": "float", "low": 0, "high": 50}, "ward": {"keys": ["A", "B"]}}
    told = {"source": str(source), "user": "patient", "column": column, "max_delta": 0.01}
    limit = Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
    add_dataset(folder, "stays", told, limit)
    share = [("stays", Guarantee(epsilon=0.6))]
    tokens = {
        name: invite(folder, name, "analyst", share, days=30, scope=Scope())
        for name in ("ana", "bo")
    }
    return tokens | {"sam": invite(folder, "sam", "steward", [], days=30, scope=Scope())}


@cache
def shared_workers() -> Workers:
    """Processes that judge questions, for all teams of these tests: each takes seconds to start."""
    made = Workers()
    atexit.register(made.processes.close)
    return made


@cache
def shared_runners() -> Runners:
    """Processes that read rows, for all teams."""
    made = Runners()
    atexit.register(made.processes.close)
    return made


@dataclass
class Here(Runners):
    """Reads rows in this process, where a test can change what happens."""

    def answer(self, told: dict[str, Any]) -> str:
        told = json.loads(json.dumps(told))
        return take_answer(answer(Source(**told["source"]).open(), told))


def open_team(folder: Path, tokens: dict[str, str]) -> Iterator[Team]:
    """Serve a folder in this process."""
    logged = StringIO()
    desk = open_desk(folder, Log(logged), shared_workers(), shared_runners())
    served = make_app(desk)
    if not _DOCUMENT:  # that of every server; to write it takes half a second
        _DOCUMENT.update(served._app._app.openapi())  # of the app: no line of the log tells of it
    with TestClient(served, base_url=ORIGIN, raise_server_exceptions=False) as client:
        yield Team(
            folder=folder, desk=desk, client=client, logged=logged, document=_DOCUMENT, **tokens
        )


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A team for tests in which everything is refused."""
    place = tmp_path_factory.mktemp("quiet")
    yield from open_team(place / "stats", make_folder(place))


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    tokens = make_folder(tmp_path)
    yield from open_team(tmp_path / "stats", tokens)


def make_rows(url: str) -> str:
    """A table of stays on PostgreSQL and a role that may only read it; its address."""
    import psycopg
    from sqlalchemy import make_url

    rows = [(f"P{i}", "AB"[i % 2], i % 50) for i in range(60)]
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE TABLE stays (patient text, ward text, cost double precision)")
        with owner.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO stays VALUES (%s, %s, %s)",
                [*rows, ("P99", f"=cmd{CANARY}", int(CANARY))],
            )
        owner.execute("DROP ROLE IF EXISTS stays_reader")
        owner.execute("CREATE ROLE stays_reader LOGIN PASSWORD 'secret'")
        owner.execute("GRANT SELECT ON stays TO stays_reader")
    found = make_url(url).set(username="stays_reader", password="secret")
    return found.render_as_string(hide_password=False)


@pytest.fixture
def source(postgres_url: str) -> Iterator[str]:
    """The address of a table on PostgreSQL, for a login that may only read it."""
    import psycopg

    yield make_rows(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("DROP OWNED BY stays_reader")
        owner.execute("DROP ROLE stays_reader")
