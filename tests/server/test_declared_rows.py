"""How many rows of each person count is declared by the steward, and is the same for all."""

from __future__ import annotations

import pytest
from tests.server.conftest import QUERY, make_folder, open_team
from tests.server.test_crashes import sender

from hushed import connect
from hushed.errors import ParameterError
from hushed.server._config import digest_of, parse_settings


@pytest.fixture
def bounded(tmp_path):
    """A server that counts two rows of each person."""
    tokens = make_folder(tmp_path, stays="max_rows_per_user = 2")
    yield from open_team(tmp_path / "stats", tokens)


@pytest.mark.parametrize("what", ["quote", "requests"])
def test_another_bound_is_refused_before_anything_is_paid(bounded, what):
    for rows, status in ((1, 422), (3, 422), (2, 202 if what == "requests" else 200)):
        found = bounded.send(
            "POST",
            f"/v1/datasets/stays/{what}",
            bounded.ana,
            json={"query": QUERY | {"max_rows_per_user": rows}, "epsilon": 0.1},
            headers={"Idempotency-Key": f"of {rows}"},
        )
        assert found.status_code == status
        if status == 422:
            assert found.json()["code"] == "bad_query"
            assert (
                f"2 rows count in this data set, for all who ask it, and asked were {rows}"
                in (found.json()["detail"])
            )
    assert bounded.charges() == (what == "requests")


def test_who_asks_need_not_give_it_and_cannot_give_another(bounded):
    table = connect("http://127.0.0.1:8642", bounded.ana, send=sender(bounded)).table("stays")
    assert table.count().quote(epsilon=0.1).epsilon == 0.1
    assert "declared: 2 rows of each person" in str(table.count())
    # Another bound beside it takes nothing of it back.
    grouped = table.bound_contributions(max_groups_per_user=1).group_by("ward")
    assert grouped.count().quote(epsilon=0.1).epsilon == 0.1
    assert str(grouped.count()).count("2 rows of each person") == 1
    other = table.bound_contributions(max_rows_per_user=5).count()
    assert "of each person" not in str(other)
    with pytest.raises(ParameterError, match="2 rows count in this data set"):
        other.quote(epsilon=0.1)
    shown = bounded.send("GET", "/v1/datasets/stays", bounded.bo).json()
    assert shown["max_rows_per_user"] == 2
    # A number of people takes no rows of theirs.
    people = {key: each for key, each in QUERY.items() if key != "max_rows_per_user"}
    people["aggregates"] = [{"kind": "count_users"}]
    found = bounded.ask(bounded.ana, "people", wait=0, query=people)
    assert found.status_code == 202, found.text


def test_what_was_confirmed_before_there_was_such_a_bound_is_as_it_was():
    text = '[dataset.stays]\nsource = "a.csv"\nuser = "who"\nbudget = "stays"\n'
    plain = parse_settings(text).dataset["stays"]
    assert digest_of(plain) == "7a169c168fadcdb502d6fb331c4db44baf452a71e0b49727d576fd7a8724234b"
    more = parse_settings(f"{text}max_rows_per_user = 2\n").dataset["stays"]
    assert digest_of(more) != digest_of(plain)


def test_it_is_about_people():
    text = '[dataset.stays]\nsource = "a.csv"\nbudget = "stays"\nmax_rows_per_user = 2\n'
    with pytest.raises(ValueError, match="name their column"):
        parse_settings(text)
