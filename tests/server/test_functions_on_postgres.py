"""Registered functions of the rows of a real PostgreSQL, read by a role that only reads."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from tests.server.conftest import CANARY, open_team
from tests.server.functions import CODE, register

import hushed as hs
from hushed import Guarantee
from hushed.errors import ParameterError
from hushed.server._adding import add_dataset
from hushed.server._requests import find_request
from hushed.server._setup import check_server, invite, make_server
from hushed.server._tokens import Scope
from hushed.tables._whole import read_columns

pytestmark = pytest.mark.slow


def release(team: Any, token: str, name: str, key: str, **terms: Any) -> Any:
    """Release a function; the request when it has ended."""
    body = {"epsilon": 0.5} | terms
    headers = {"Idempotency-Key": key, "Prefer": "wait=30"}
    made = team.send("POST", f"/v1/functions/{name}/requests", token, json=body, headers=headers)
    assert made.status_code in (201, 202), made.text
    end = team.desk.queue.find(made.json()["id"])
    if end is not None:
        end.result(120)
    return find_request(team.desk.ledger, made.json()["id"])


def test_a_function_is_released_on_rows_of_a_database(tmp_path, postgres_url, source):
    """Charge, request and answer lie in one database, the rows in a table that is only read."""
    folder = tmp_path / "stats"
    make_server(folder, postgres_url)
    column = {"cost": {"low": 0, "high": 50}, "ward": {"keys": ["A", "B"]}}
    told = {"source": source, "table": "stays", "user": "patient", "column": column}
    limit = Guarantee(epsilon=3.0, gamma=0.65, neighbours="add-remove", unit="user")
    add_dataset(folder, "stays", told, limit)
    (tmp_path / "fees.py").write_text(CODE)
    register(tmp_path, "mean_cost")
    register(tmp_path, "failing")
    with pytest.raises(ParameterError, match="no column 'nothing'"):
        register(tmp_path, "talking", columns=("patient", "nothing"))
    token = invite(
        folder, "ana", "analyst", [("stays", Guarantee(epsilon=2.0))], days=30, scope=Scope()
    )
    assert check_server(folder).problems == ()
    for team in open_team(folder, {"ana": token, "bo": token, "sam": token}):
        found = release(team, token, "mean_cost", "one")
        assert found.state == "answered"
        value = team.answer(token, found.id).json()
        assert abs(value["value"] - 20.5) < 25  # 15 scales of its noise
        failed = release(team, token, "failing", "two")
        assert failed.state == "failed"
        assert [each.guarantee.epsilon for each in team.desk.ledger.entries("stays")] == [0.5, 0.5]
        assert team.desk.ledger.balance("stays").gamma_used > 0
        assert CANARY not in str(value) + str(failed) + team.logged.getvalue()


def test_the_rows_of_a_person_come_in_an_order_of_their_own(postgres_url, source):
    """However they are stored, which the rows of others decide, too."""
    found = []
    for turn in ("ASC", "DESC"):
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute("CREATE TABLE other AS SELECT * FROM stays WHERE cost < 50")
            owner.execute("INSERT INTO other SELECT 'P1', ward, -1 - cost FROM other")
            owner.execute("TRUNCATE stays")
            owner.execute(f"INSERT INTO stays SELECT * FROM other ORDER BY cost {turn}")
            owner.execute("DROP TABLE other")
        table = hs.table(source, "stays", user="patient")
        read = read_columns(table, ["cost", "patient", "ward"], 60)
        found.append(list(zip(read["patient"], read["cost"], read["ward"], strict=True)))
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute("DELETE FROM stays WHERE cost < 0")
    assert len(found[0]) == 120
    assert found[0] == found[1] == sorted(found[0])
