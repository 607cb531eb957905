"""A data set whose database does not answer at the start is opened when it does."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import duckdb
import psycopg
import pytest
from tests.server.conftest import open_team
from tests.server.test_web_processes import Pair, make, open_pair

from hushed import Guarantee
from hushed.errors import Refusal
from hushed.server import _app
from hushed.server._adding import add_dataset, confirm_dataset
from hushed.server._app import sweep
from hushed.server._opening import open_own
from hushed.server._setup import check_server, invite, make_server
from hushed.server._tokens import Scope

LIMIT = Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")


@pytest.fixture(autouse=True)
def only_this_one_sweeps(monkeypatch):
    """The server itself does not: on a busy machine the look at its start ends beside the test."""
    monkeypatch.setattr(_app, "sweep", lambda _: None)


HOLD = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('held', flush=True); input()"


@contextmanager
def locked(file):
    """Another process has the file."""
    command = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        yield
        other.stdin.close()


@pytest.mark.slow
def test_whoever_adds_a_view_is_told_what_its_rows_must_be_like(tmp_path):
    """As who opens it in Python is: those who ask gain by a view that mixes people.

    Who adds a table a second time is told, too, that nobody is kept by one budget any more.
    """
    with duckdb.connect(tmp_path / "stays.db") as made:
        made.execute("CREATE TABLE held AS SELECT 1 AS patient, 2 AS cost")
        made.execute("CREATE VIEW top AS SELECT patient, max(cost) OVER () AS cost FROM held")
    make_server(tmp_path / "stats")
    told = {"source": f"duckdb:///{tmp_path}/stays.db", "table": "top", "user": "patient"}
    words = "top is a view: the guarantee holds only if"
    assert words in add_dataset(tmp_path / "stats", "tops", told, LIMIT)
    assert add_dataset(tmp_path / "stats", "stays", told | {"table": "held"}, LIMIT) == ""
    said = r"^this table is data set 'stays', too: .* whoever is in it .*--second-budget$"
    with pytest.raises(Refusal, match=said):
        add_dataset(tmp_path / "stats", "twice", told | {"table": "held"}, LIMIT)
    with open_own(tmp_path / "stats")[1] as ledger:
        assert {each.name for each in ledger.budgets()} == {"tops", "stays"}
    twice = told | {"table": "held"}
    again = add_dataset(tmp_path / "stats", "twice", twice, LIMIT, second_budget=True)
    assert "write budget = 'stays' into a section [dataset.twice]" in again
    file = tmp_path / "stats" / "hushed.toml"
    text = file.read_text()
    file.write_text(text.replace('budget = "twice"', 'budget = "stays"'))
    assert confirm_dataset(tmp_path / "stats", "twice").problem == ""  # one budget is for both
    file.write_text(text)
    with pytest.raises(Refusal, match="--second-budget"):
        confirm_dataset(tmp_path / "stats", "twice")
    confirm_dataset(tmp_path / "stats", "twice", second_budget=True)
    assert "too: with a budget for each" in confirm_dataset(tmp_path / "stats", "twice").problem
    told |= {"table": "held", "user": None}  # no budget is for rows and for people
    rows = replace(LIMIT, unit="row")
    with pytest.raises(Refusal, match="--second-budget"):
        add_dataset(tmp_path / "stats", "rows", told, rows)
    by_row = add_dataset(tmp_path / "stats", "rows", told, rows, second_budget=True)
    assert "take [dataset.stays] out of hushed.toml if this one is to be asked" in by_row
    found = check_server(tmp_path / "stats")
    assert any(each.startswith(f"data set tops: {words}") for each in found.facts)
    assert found.problems == ()


@pytest.mark.slow
def test_a_file_that_another_program_had_at_the_start_is_opened_later(tmp_path, monkeypatch):
    """Until then nobody can ask, and hears that it may pass; nothing has to be confirmed.

    It is named from where the command is given, as every other file.
    """
    monkeypatch.chdir(tmp_path)
    with duckdb.connect(tmp_path / "stays.db") as made:
        made.execute("CREATE TABLE stays AS SELECT 'P' || i AS patient FROM range(60) AS t(i)")
    make_server(tmp_path / "stats")
    told = {"source": "duckdb:///stays.db", "table": "stays", "user": "patient"}
    add_dataset(tmp_path / "stats", "stays", told, LIMIT)
    assert 'source = "duckdb:///../stays.db"' in (tmp_path / "stats/hushed.toml").read_text()
    share = [("stays", Guarantee(epsilon=0.6))]
    tokens = {
        name: invite(tmp_path / "stats", name, role, asked, days=30, scope=Scope())
        for name, role, asked in (
            ("ana", "analyst", share),
            ("bo", "analyst", share),
            ("sam", "steward", []),
        )
    }
    served = open_team(tmp_path / "stats", tokens)
    with locked(tmp_path / "stays.db"):
        team = next(served)
        assert team.desk.datasets["stays"].away
        refused = team.ask(team.ana, "one")
        assert (refused.status_code, refused.json()["code"]) == (503, "dataset_unavailable")
        sweep(team.desk)
        assert team.desk.datasets["stays"].away
    sweep(team.desk)
    assert team.ask(team.ana, "one", wait=20).status_code == 201
    assert team.logged.getvalue().count('"data set cannot be asked"') == 1
    assert team.logged.getvalue().count('"data set can be asked"') == 1
    assert next(served, None) is None


@contextmanager
def locked_out(url):
    """The login that reads the rows is refused."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("ALTER ROLE stays_reader NOLOGIN")
        yield
        owner.execute("ALTER ROLE stays_reader LOGIN")


@pytest.mark.slow
def test_every_process_opens_what_has_come_back(tmp_path, postgres_url, source):
    """The login was locked out when the server started; all processes ask again."""
    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    with locked_out(postgres_url):
        pairs = open_pair(folder, tokens)
        pair: Pair = next(pairs)
        one, two = pair.webs
        assert one.ask(one.ana, "one").json()["code"] == "dataset_unavailable"
    for desk in (pair.keeper, one.desk, two.desk):
        sweep(desk)
        assert not desk.datasets["stays"].stale
    for web, key in ((one, "one"), (two, "two")):
        assert web.ask(web.ana, key, wait=20).status_code == 201
    assert next(pairs, None) is None


@pytest.mark.slow
def test_what_was_changed_while_it_was_away_stays_closed(tmp_path, postgres_url, source):
    """It is looked at as at a start: another budget in the file has to be confirmed."""
    from hushed.ledger import Ledger
    from hushed.ledger._rows import run
    from hushed.server._audit import telling

    folder = tmp_path / "stats"
    tokens = make(folder, postgres_url, source)
    with locked_out(postgres_url):
        served = open_team(folder, tokens)
        team = next(served)
        with Ledger(postgres_url, create=False) as ledger, telling(ledger) as connection:
            run(connection, "UPDATE @.hushed_s_datasets SET config_digest = 'another'", {})
    sweep(team.desk)
    assert team.desk.datasets["stays"].stale.startswith("its description was changed")
    assert not team.desk.datasets["stays"].away
    assert team.ask(team.ana, "one").json()["code"] == "dataset_changed"
    assert next(served, None) is None
