"""What a steward confirms at the machine reaches a server that runs; nothing else does."""

from __future__ import annotations

import os
import time

import duckdb
import pytest
from tests.server.conftest import make_folder, open_team
from typer.testing import CliRunner

from hushed import Guarantee
from hushed.cli import app
from hushed.server._adding import add_dataset, confirm_dataset
from hushed.server._app import sweep
from hushed.server._datasets import Dataset, close_file

LIMIT = Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")


def replace_file(team, rows="P100,A,1\n"):
    """Put another file in its place, as each night."""
    source = team.folder.parent / "stays.csv"
    other = source.with_suffix(".new")
    other.write_text(source.read_text() + rows)
    os.replace(other, source)


def test_a_file_that_is_replaced_and_confirmed_is_asked_without_a_new_start(team):
    """By the budget that it had; until it is confirmed nothing is charged, whatever is swept."""
    assert team.ask(team.ana, "first").status_code == 201
    for night in range(2):
        replace_file(team, f"P10{night},A,1\n")
        for _ in range(2):
            found = team.ask(team.ana, f"early {night}")
            assert (found.status_code, found.json()["code"]) == (409, "dataset_changed")
            sweep(team.desk)
        assert team.charges() == 1 + night
        found = confirm_dataset(team.folder, "stays")
        assert (found.budget, found.at_once, found.problem) == ("stays", True, "")
        sweep(team.desk)
        assert team.ask(team.ana, f"late {night}").status_code == 201
        assert team.charges() == 2 + night
    assert team.logged.getvalue().count('"data set can be asked"') == 2


def test_what_was_charged_before_is_answered_after_it(tmp_path, monkeypatch):
    tokens = make_folder(tmp_path)
    for team in open_team(tmp_path / "stats", tokens):
        with monkeypatch.context() as dead:
            dead.setattr(type(team.desk), "start", lambda *_: None)
            made = team.ask(team.ana, "one", wait=0).json()["id"]
        replace_file(team)
        confirm_dataset(team.folder, "stays")
        state, ends = "charged", time.monotonic() + 60
        while state == "charged" and time.monotonic() < ends:
            sweep(team.desk)
            time.sleep(0.6)  # so many may ask in a minute
            state = team.send("GET", f"/v1/requests/{made}", team.ana).json()["state"]
        assert state == "answered"


def test_another_file_than_the_one_that_was_confirmed_is_not_asked(team):
    replace_file(team)
    confirm_dataset(team.folder, "stays")
    replace_file(team, "P101,A,1\n")
    sweep(team.desk)
    assert team.ask(team.ana, "one").json()["code"] == "dataset_changed"
    assert "its file was changed" in team.desk.datasets["stays"].stale
    assert team.charges() == 0


def test_another_description_counts_from_the_next_start_on(team):
    """A server that runs goes on with what it was started with: its bounds are told to people."""
    file = team.folder / "hushed.toml"
    file.write_text(file.read_text().replace("high = 50", "high = 60"))
    found = confirm_dataset(team.folder, "stays")
    assert not found.at_once
    before = team.desk.datasets["stays"]
    sweep(team.desk)
    assert team.desk.datasets["stays"] is before
    assert team.ask(team.ana, "one").status_code == 201


@pytest.mark.slow
def test_new_columns_are_shown_once_they_are_confirmed(team):
    source = team.folder.parent / "stays.csv"
    first, *rows = source.read_text().splitlines()
    source.write_text("\n".join([f"{first},age", *(f"{row},7" for row in rows), ""]))
    confirm_dataset(team.folder, "stays")
    sweep(team.desk)
    shown = team.send("GET", "/v1/datasets/stays", team.ana).json()
    assert [each["name"] for each in shown["columns"]] == ["patient", "ward", "cost", "age"]


def test_a_view_is_told_when_it_is_confirmed(tmp_path):
    """Its definition and its tables may change, and no fingerprint sees what that does."""
    make_folder(tmp_path)
    with duckdb.connect(tmp_path / "more.db") as made:
        made.execute("CREATE TABLE held AS SELECT 1 AS patient, 2 AS cost")
        made.execute("CREATE VIEW top AS SELECT patient, max(cost) OVER () AS cost FROM held")
    told = {"source": f"duckdb:///{tmp_path}/more.db", "table": "top", "user": "patient"}
    add_dataset(tmp_path / "stats", "tops", told, LIMIT)
    assert (
        "top is a view: the guarantee holds only"
        in confirm_dataset(tmp_path / "stats", "tops").problem
    )


@pytest.mark.slow
def test_a_duckdb_file_that_is_replaced_shows_its_new_columns(tmp_path):
    """DuckDB would give the old file again, as long as anything of it is open."""
    tokens = make_folder(tmp_path)
    told = {"source": f"duckdb:///{tmp_path}/more.db", "table": "held", "user": "patient"}
    with duckdb.connect(tmp_path / "more.db") as made:
        made.execute("CREATE TABLE held AS SELECT 1 AS patient, 2 AS cost")
        made.execute("CREATE TABLE other AS SELECT 1 AS patient, 2 AS cost")
    add_dataset(tmp_path / "stats", "more", told, LIMIT)
    add_dataset(tmp_path / "stats", "other", told | {"table": "other"}, LIMIT)
    for team in open_team(tmp_path / "stats", tokens):
        with duckdb.connect(tmp_path / "new.db") as made:
            made.execute("CREATE TABLE held AS SELECT 1 AS patient, 2 AS cost, 3 AS age")
            made.execute("CREATE TABLE other AS SELECT 1 AS patient, 2 AS cost")
        os.replace(tmp_path / "new.db", tmp_path / "more.db")
        before: Dataset = team.desk.datasets["more"]
        assert before.table is not None
        close_file(before, team.desk.datasets.values())  # as another process would, to confirm
        confirm_dataset(tmp_path / "stats", "more")
        sweep(team.desk)
        found = team.desk.datasets["more"]
        assert not found.stale
        assert list(found.table.columns) == ["patient", "cost", "age"]


def test_what_no_running_server_has_is_not_said_to_be_asked_soon(tmp_path):
    """A data set that was added since the start, or is described anew, waits for the next one."""
    make_folder(tmp_path)
    told = {"source": f"{tmp_path}/clinic.csv", "user": "patient"}
    (tmp_path / "clinic.csv").write_text("patient,ward\n1,A\n")
    add_dataset(tmp_path / "stats", "more", told, LIMIT)
    words = ["serve", "confirm", "more", "--folder", str(tmp_path / "stats")]
    said = " ".join(CliRunner().invoke(app, words).stdout.split())
    assert "a server that was started with this description takes it within 20 seconds" in said
    assert "any other one at its next start" in said
