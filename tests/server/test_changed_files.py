"""What a steward is told of another file, and of a description that does not fit it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.conftest import QUERY, make_folder, open_team
from tests.server.test_confirming import LIMIT, replace_file
from typer.testing import CliRunner

from hushed import Guarantee
from hushed.cli import app
from hushed.errors import EngineUnavailable, ParameterError
from hushed.ledger._rows import run
from hushed.server._adding import add_dataset, confirm_dataset
from hushed.server._datasets import find_registered
from hushed.server._desk import Desk
from hushed.server._opening import open_own
from hushed.server._setup import invite
from hushed.server._tokens import Scope


def replace(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, path)


@pytest.fixture
def made(tmp_path):
    """A server with a data set of typed columns, and its file."""
    make_folder(tmp_path)
    source = tmp_path / "more.csv"
    source.write_text("who,day,cost\nP7771,2025-05-20,4562.72\n")
    column = {"cost": {"kind": "float", "low": 0, "high": 50}, "day": {"kind": "date"}}
    add_dataset(
        tmp_path / "stats", "more", {"source": str(source), "user": "who", "column": column}, LIMIT
    )
    return tmp_path / "stats", source


@pytest.mark.slow
def test_a_file_of_the_same_header_is_confirmed_without_a_word(made):
    folder, source = made
    replace(source, "who,day,cost\nP7772,20.05.2025,4562.73\n")
    found = confirm_dataset(folder, "more")
    assert (found.changes, found.problem) == ((), "")


def test_other_columns_are_told_and_taken(made):
    folder, source = made
    replace(source, "cost,who,ward,day\n1,P7772,A,2025-05-20\n")
    assert confirm_dataset(folder, "more").changes == (
        "new: ward",
        "the columns have another order",
    )
    replace(source, "cost,who,day\n1,P7772,2025-05-20\n")
    assert confirm_dataset(folder, "more").changes == ("gone: ward",)


def test_another_delimiter_is_refused_until_it_is_meant(made):
    folder, source = made
    replace(source, "who;day;cost\nP7772;20.05.2025;4562,73\n")
    with pytest.raises(ParameterError, match="accept-change") as refused:
        confirm_dataset(folder, "more")
    assert "separated by ',', now ';'" in str(refused.value)
    words = ["serve", "confirm", "more", "--folder", str(folder)]
    assert CliRunner().invoke(app, words).exit_code == 2
    taken = CliRunner().invoke(app, [*words, "--accept-change"])
    assert taken.exit_code == 0
    assert "changed: the cells were separated by ',', now ';'" in taken.stderr
    assert "semicolons" in " ".join(taken.stderr.split())
    assert "P7772" not in taken.output + str(refused.value)
    assert confirm_dataset(folder, "more").changes == ()


def test_a_new_file_with_semicolons_is_told_when_it_is_added(made, tmp_path):
    folder, _ = made
    source = tmp_path / "de.csv"
    source.write_text("who;cost\nP1;3,5\n")
    words = ["serve", "add", "de", str(source), "--epsilon", "1", "--folder", str(folder)]
    added = CliRunner().invoke(app, [*words, "--type", "cost=float"])
    assert added.exit_code == 0
    assert "semicolons" in " ".join(added.stderr.split())


def test_what_an_older_version_confirmed_has_no_layout_and_is_as_it_was(made):
    folder, source = made
    _, ledger, _ = open_own(folder)
    with closing(ledger):
        known = find_registered(ledger, "more")
        with ledger._store.writing() as connection:
            run(
                connection,
                "UPDATE @.hushed_s_datasets SET fingerprint = :print WHERE id = 'more'",
                {"print": known.fingerprint},
            )
        before = find_registered(ledger, "more")
        assert (before.fingerprint, before.layout) == (known.fingerprint, "")
    replace(source, "who;day;cost\n")
    assert confirm_dataset(folder, "more").changes == ()


@pytest.mark.parametrize("kind", [(), ("--type", "days=date")])
def test_a_range_of_what_is_no_number_is_refused_before_a_budget_is_opened(made, tmp_path, kind):
    folder, _ = made
    source = tmp_path / "days.csv"
    source.write_text("who,days\nP1,77712\n")
    words = ["serve", "add", "d", str(source), "--epsilon", "1", "--folder", str(folder)]
    refused = CliRunner().invoke(app, [*words, "--range", "days=0:100", *kind])
    assert refused.exit_code == 2
    assert "a range of 'days' is declared" in " ".join(refused.output.split())
    assert CliRunner().invoke(app, [*words, "--type", "days=int"]).exit_code == 0
    assert "77712" not in refused.output


@pytest.mark.parametrize("option", ["--range days=0:50", "--type days=float", "--keys days=1,2"])
def test_a_column_that_is_declared_twice_is_refused(made, tmp_path, option):
    """The last one counted, in silence."""
    folder, _ = made
    source = tmp_path / "days.csv"
    source.write_text("who,days\nP1,7\n")
    words = ["serve", "add", "d", str(source), "--epsilon", "1", "--folder", str(folder)]
    once = ["--type", "days=int", "--range", "days=0:100", "--keys", "days=1,2,3"]
    refused = CliRunner().invoke(app, [*words, *once, *option.split()])
    assert refused.exit_code == 2
    said = f"{option.split()[0]} names days twice: give it once"
    assert said in " ".join(refused.output.split())


@pytest.mark.slow
def test_a_file_that_was_replaced_is_not_told_as_open(tmp_path):
    """And the refusal names its code, and whom to ask."""
    tokens = make_folder(tmp_path)
    for team in open_team(tmp_path / "stats", tokens):
        (told,) = team.send("GET", "/v1/datasets", team.ana).json()["items"]
        assert told["open"]
        replace_file(team)
        (told,) = team.send("GET", "/v1/datasets", team.ana).json()["items"]
        assert not told["open"]
        from hushed.client._sending import read_problem

        found = team.ask(team.ana, "one")
        error = read_problem(found.status_code, found.content)
        assert isinstance(error, EngineUnavailable)
        assert "(dataset_changed)" in str(error)
        assert "Ask your steward" in str(error)


def share_of_more(folder: Path, source: Path) -> str:
    """Another data set, and a share of it for ana; her token."""
    source.write_text("patient,ward,cost\nP1,A,1\n")
    column = {"cost": {"kind": "float", "low": 0, "high": 50}}
    told = {"source": str(source), "user": "patient", "column": column}
    add_dataset(folder, "more", told, LIMIT)
    return invite(
        folder, "ana", "analyst", [("more", Guarantee(epsilon=0.5))], days=30, scope=Scope()
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", ["changed", "taken out"])
def test_what_waits_for_a_steward_keeps_its_asker_out_of_nothing(tmp_path, monkeypatch, way):
    """What is paid and waits for a data set that is not as it was counts as open no more."""
    tokens = make_folder(tmp_path)
    folder = tmp_path / "stats"
    tokens |= {"ana": share_of_more(folder, tmp_path / "more.csv")}
    path, body = "/v1/datasets/more/requests", {"query": QUERY, "epsilon": 0.1}
    for team in open_team(folder, tokens):
        limits = team.desk.settings.limits.model_copy(update={"open_per_person": 2})
        team.desk.settings = team.desk.settings.model_copy(update={"limits": limits})
        with monkeypatch.context() as held:
            held.setattr(Desk, "start", lambda *_: None)
            for key in "ab":
                assert team.ask(team.ana, key, wait=0).json()["state"] == "charged"
        headers = {"Idempotency-Key": "c"}
        found = team.send("POST", path, team.ana, json=body, headers=headers)
        assert found.json()["code"] == "too_many_open"
        if way == "changed":
            replace_file(team)
        else:
            del team.desk.datasets["stays"]
        found = team.send_until_answered(
            path, team.ana, json=body, headers=headers | {"Prefer": "wait=20"}
        )
        assert found.json()["state"] == "answered"
