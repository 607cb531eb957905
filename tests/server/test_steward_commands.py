"""What the commands of a steward say of what was done, and of what nobody has declared."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("fastapi")

from tests.commands import ended
from tests.server.conftest import make_folder
from typer.testing import CliRunner

from hushed import Guarantee
from hushed.cli import app
from hushed.client._tokens import find_token
from hushed.errors import ParameterError
from hushed.server._config import source_of
from hushed.server._opening import open_own
from hushed.server._setup import check_server, list_counting, show_people
from hushed.tables._requests import read_grouping

pytestmark = pytest.mark.slow


def run(folder, *words):
    return CliRunner().invoke(app, ["serve", *words, "--folder", str(folder)])


@pytest.fixture
def unread():
    """A pipe that nobody reads any more, as that of head -0."""
    reads, writes = os.pipe()
    os.close(reads)
    return f"/dev/fd/{writes}"


def test_a_token_that_nobody_could_read_is_told_with_what_was_done(tmp_path, unread):
    """The person is in, and the share is set aside: the words say so, and what to do works."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    words = ("serve", "invite", "eve", "--share", "stays=0.2", "--reserve", "--folder", folder)
    found = ended(*words, cwd=tmp_path, stdout=unread)
    assert found.returncode == 2
    said = " ".join(found.stderr.split())
    assert "eve is in, with all shares that were named" in said
    assert "hushed serve invite eve makes another one and keeps the shares" in said
    assert list_counting(folder, "eve")[0] == ("stays",)
    assert run(folder, "invite", "eve").stdout.startswith("hsh_")
    (eve,) = (each for each in show_people(folder)[0] if each.name == "eve")
    assert len(eve.tokens) == 2
    lost = run(folder, "revoke", "eve", "--token", eve.tokens[0].id)
    assert lost.stdout == "stopped 1 token\n"


@pytest.mark.parametrize(
    "words",
    [
        ("add", "more", "stays.csv", "--epsilon", "1", "--second-budget"),
        ("confirm", "stays"),
        ("revoke", "ana", "--share", "stays"),
        ("revoke", "ana"),
    ],
)
def test_what_was_done_is_no_failure_where_its_words_could_not_be_written(tmp_path, unread, words):
    make_folder(tmp_path)
    found = ended("serve", *words, "--folder", "stats", cwd=tmp_path, stdout=unread)
    assert "it was done all the same" in found.stderr


def test_columns_that_nobody_has_declared_are_named_to_the_steward(tmp_path):
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    (tmp_path / "more.csv").write_text("who,age,diagnosis\n77712,77713,77714\n")
    words = ("more", str(tmp_path / "more.csv"), "--epsilon", "1", "--user", "who")
    added = run(folder, "add", *words, "--type", "age=float")
    assert added.exit_code == 0
    told = "although nothing is declared of them: 'diagnosis'; to keep one out"
    assert told in " ".join(added.stderr.split())
    facts = check_server(folder).facts
    assert any(each.startswith("data set more: ") and told in each for each in facts)
    assert not any(each.startswith("data set stays: these columns") for each in facts)
    assert "7771" not in added.output + " ".join(facts)


def test_whole_numbers_that_may_lose_decimals_are_told_by_types_alone(tmp_path):
    """Of a column that is stored as whole numbers nothing is lost."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    (tmp_path / "a.csv").write_text("cost\n1\n")
    pandas.DataFrame({"cost": [1.0]}).to_parquet(tmp_path / "b.parquet")
    pandas.DataFrame({"cost": [1]}).to_parquet(tmp_path / "c.parquet")
    for file, is_told in (("a.csv", True), ("b.parquet", True), ("c.parquet", False)):
        words = (file[0], str(tmp_path / file), "--epsilon", "1", "--type", "cost=int")
        added = run(folder, "add", *words)
        assert added.exit_code == 0
        said = " ".join(added.stderr.split())
        assert ("A cell that is none, such as 3.7, is read as missing" in said) == is_told
    said = run(folder, "confirm", "a").stderr
    assert "is read as missing" in " ".join(said.split())


def test_who_has_no_token_hears_where_one_comes_from(monkeypatch):
    monkeypatch.delenv("HUSHED_TOKEN", raising=False)
    monkeypatch.delenv("HUSHED_TOKEN_FILE", raising=False)
    with pytest.raises(ParameterError, match=r"by hushed serve invite NAME .* HUSHED_TOKEN"):
        find_token(None, None)


@pytest.mark.parametrize("columns", [["ward", "sex"], ("ward", "sex")])
def test_columns_of_groups_in_a_list_are_told_how_they_are_given(columns):
    known = {"ward": "string", "sex": "string"}
    with pytest.raises(ParameterError, match="one after the other, and not in a list"):
        read_grouping(known, (columns,), None, select_partitions=True)


def test_fewer_than_two_stewards_are_told_before_something_waits(tmp_path):
    """By the settings alone; who has made the token of an analyst approves nothing of it."""
    made = CliRunner().invoke(app, ["serve", "init", str(tmp_path / "stats")])
    assert "let two stewards in" in " ".join(made.stderr.split())
    folder = tmp_path / "stats"
    (tmp_path / "more.csv").write_text("cost\n1\n")
    words = ("more", str(tmp_path / "more.csv"), "--epsilon", "1", "--approve-above", "0.5")
    said = " ".join(run(folder, "add", *words).stderr.split())
    assert "costly requests of more wait for approval, and nobody can approve them" in said
    assert any("nobody can approve" in each for each in check_server(folder).problems)
    assert run(folder, "invite", "sam", "--steward").exit_code == 0
    found = check_server(folder)
    assert found.problems == ()
    assert any("sam alone can approve them" in each for each in found.facts)
    assert "sam alone can approve them" in " ".join(run(folder, "confirm", "more").stderr.split())
    assert run(folder, "invite", "sue", "--steward").exit_code == 0
    assert "approve them" not in " ".join(check_server(folder).facts)
    assert run(folder, "revoke", "sue").exit_code == 0
    assert "sam alone can approve them" in " ".join(check_server(folder).facts)


def test_budgets_that_nothing_uses_are_marked(tmp_path):
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    with open_own(folder)[1] as ledger:
        ledger.open_budget("spare", Guarantee(epsilon=1.0))
        ledger.open_budget("wrong", Guarantee(epsilon=9.0))
        ledger.retire_budget("wrong")
    assert run(folder, "revoke", "bo", "--share", "stays").exit_code == 0
    facts = check_server(folder).facts
    unused = [each.split()[1] for each in facts if "nobody spends from it now" in each]
    assert unused == ["spare:", "stays/bo:"]
    (share,) = [each for each in facts if each.startswith("budget stays/bo: ")]
    assert "given to nobody" in share  # the next share of bo has a budget of its own
    (ended,) = [each for each in facts if each.startswith("budget wrong: ")]
    assert "retired" in ended


def test_a_file_that_is_not_there_is_named_without_a_way_out_of_the_folder(tmp_path):
    """It was `stats/../none.csv`, which nobody has typed; a link that leads elsewhere stays."""
    make_folder(tmp_path)
    found = run(tmp_path / "stats", "add", "more", str(tmp_path / "none.csv"), "--epsilon", "1")
    assert found.exit_code == 2
    assert f"there is no file {tmp_path / 'none.csv'}" in " ".join(found.stderr.split())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "stats").symlink_to(tmp_path / "stats")
    linked = tmp_path / "elsewhere" / "stats"
    assert source_of(linked, "../stays.csv") == str(linked / "../stays.csv")
    assert source_of(tmp_path / "stats", "../stays.csv") == str(tmp_path / "stays.csv")
    assert source_of(tmp_path, "duckdb:///a/../b.db") == f"duckdb:///{tmp_path / 'b.db'}"


def test_settings_that_cannot_be_written_are_as_they_were_and_the_same_command_goes_on(
    tmp_path, monkeypatch
):
    """The budget is open by then: nothing of it is lost, and nothing is charged twice."""
    make_folder(tmp_path)
    folder, words = (
        tmp_path / "stats",
        ("add", "more", str(tmp_path / "more.csv"), "--epsilon", "1"),
    )
    (tmp_path / "more.csv").write_text("patient,cost\np,1\n")
    before = (folder / "hushed.toml").read_text()

    def fail(number):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fail)
        found = run(folder, *words)
    assert found.exit_code == 2
    assert "cannot be written (No space left on device), and is as it was" in " ".join(
        found.stderr.split()
    )
    assert (folder / "hushed.toml").read_text() == before
    assert run(folder, *words).exit_code == 0
    assert check_server(folder).problems == ()
