"""Everything that is asked is kept, with its answer: nobody fills the disk with it."""

from __future__ import annotations

import time

import pytest
from tests.server.conftest import make_folder, open_team
from tests.server.test_daily import make_older
from tests.server.test_on_postgres import make
from typer.testing import CliRunner

from hushed.cli import app
from hushed.ledger._rows import run
from hushed.ledger._together import reading, writing
from hushed.server._requests import certificate_within, find_request
from hushed.server._retention import Retention, delete_answers
from hushed.server._schema import BESIDES

ROOM = 1_000_000
SETTINGS = f"answer_grid = 0.0\nkept_per_person = {ROOM}"


@pytest.fixture
def team(tmp_path):
    """A team in which each may take a million bytes, and what is dear waits."""
    tokens = make_folder(tmp_path, settings=SETTINGS, stays="approve_above = 0.2")
    yield from open_team(tmp_path / "stats", tokens)


def kept(team, name="ana"):
    people = team.send("GET", "/v1/people", team.sam).json()["items"]
    return next(each["kept"] for each in people if each["name"] == name)


def fill(team, size, name="ana"):
    """As if somebody had asked so much."""
    with writing(team.desk.ledger) as connection:
        statement = "UPDATE @.hushed_s_people SET kept = :size WHERE name = :name"
        run(connection, statement, {"size": size, "name": name})


def size_of(team, request):
    """What a request takes, counted by hand."""
    with reading(team.desk.ledger) as connection:
        signed = certificate_within(connection, request)
    asked = find_request(team.desk.ledger, request)
    answer = team.answer(team.ana, request).content
    return BESIDES + len(asked.body.encode()) + len(answer) + len(signed.encode())


def check_full(team):
    """What is asked and answered counts; who has no room left is charged nothing more."""
    first = team.ask(team.ana, "first", note="für später").json()["id"]
    assert kept(team) == size_of(team, first)
    assert kept(team, "bo") == 0
    shown = CliRunner().invoke(app, ["serve", "people", "--folder", str(team.folder)])
    assert f"takes {kept(team) / 1e6:,.3f} MB of the disk" in shown.stdout
    fill(team, ROOM)
    refused = team.ask(team.ana, "more")
    assert (refused.status_code, refused.json()["code"]) == (409, "room_exceeded")
    assert "of at most 1,000,000" in refused.json()["detail"]
    assert (kept(team), team.charges()) == (ROOM, 1)
    assert team.ask(team.ana, "first", note="für später").json()["id"] == first
    assert team.answer(team.ana, first).status_code == 200
    assert team.ask(team.bo, "his").status_code == 201
    fill(team, ROOM - 10_000)
    assert team.ask(team.ana, "more").status_code == 201


def test_who_has_filled_the_room_of_one_person_asks_no_more(team):
    check_full(team)


def test_room_does_not_tell_when_a_run_has_ended(tmp_path):
    """An answer that nobody may read yet takes none: who has little left would see it come."""
    tokens = make_folder(tmp_path, settings="answer_grid = 600.0")
    for team in open_team(tmp_path / "stats", tokens):
        made = team.ask(team.ana, "first", wait=0).json()["id"]
        body = find_request(team.desk.ledger, made).body
        ends = time.monotonic() + 60
        while not (ended := find_request(team.desk.ledger, made).has_ended()):
            assert time.monotonic() < ends
            time.sleep(0.02)
        assert ended
        assert kept(team) == BESIDES + len(body.encode())
    make_older(f"sqlite:///{tmp_path}/stats/hushed.db", "5")
    for team in open_team(tmp_path / "stats", tokens):  # nor does a newer version of the server
        assert kept(team) == BESIDES + len(body.encode())
        with writing(team.desk.ledger) as connection:  # as if its time had come
            run(connection, "UPDATE @.hushed_s_requests SET readable_at = charged_at", {})
        assert kept(team) == size_of(team, made)


@pytest.mark.slow
def test_what_waits_and_is_taken_back_counts(team):
    """It is kept as well, and costs nothing."""
    for key in "abc":
        made = team.ask(team.ana, key, wait=0, epsilon=0.3).json()
        assert made["state"] == "pending"
        assert team.send("DELETE", f"/v1/requests/{made['id']}", team.ana).status_code == 204
    assert kept(team) > 3 * BESIDES
    fill(team, ROOM)
    refused = team.ask(team.ana, "d", wait=0, epsilon=0.3)
    assert (refused.json()["code"], kept(team)) == ("room_exceeded", ROOM)


@pytest.mark.slow
def test_what_is_deleted_gives_room(team, monkeypatch):
    """The question stays, and is counted; the refusal says that waiting helps."""
    made = team.ask(team.ana, "first").json()["id"]
    settings = team.desk.settings
    server = settings.server.model_copy(update={"retention_days": 1})
    team.desk.settings = settings.model_copy(update={"server": server})
    monkeypatch.setattr("hushed.server._retention._ends", lambda _: "9999")
    team.desk.retention = Retention()
    assert delete_answers(team.desk) == 1
    body = find_request(team.desk.ledger, made).body
    assert kept(team) == BESIDES + len(body.encode())
    fill(team, ROOM)
    assert "deleted after 1 day" in team.ask(team.ana, "more").json()["detail"]


@pytest.mark.slow
def test_it_is_the_same_on_postgres(tmp_path, postgres_url, source):
    """Where several processes charge."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    for team in open_team(folder, tokens):
        limits = team.desk.settings.limits.model_copy(update={"kept_per_person": ROOM})
        team.desk.settings = team.desk.settings.model_copy(update={"limits": limits})
        check_full(team)
