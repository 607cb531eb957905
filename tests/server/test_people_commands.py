"""The commands at the machine that list people, stop tokens, and read the trail."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from tests.server.conftest import QUERY, make_folder, open_team
from typer.testing import CliRunner

from hushed import Guarantee, Ledger
from hushed.cli import app
from hushed.client._sending import read_problem
from hushed.errors import LedgerUnavailable
from hushed.server import _giving, _setup
from hushed.server._callers import require_role
from hushed.server._config import read_settings
from hushed.server._daily import Daily
from hushed.server._judging import FunctionTerms, check_price
from hushed.server._opening import open_own
from hushed.server._people import Grant
from hushed.server._people_told import _say_share, say_left
from hushed.server._problems import Problem
from hushed.server._tokens import Scope


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    place = tmp_path_factory.mktemp("team")
    return place / "stats", make_folder(place)


def run(folder: Path, *words: str):
    return CliRunner().invoke(app, ["serve", *words, "--folder", str(folder)])


def token_id(token: str) -> str:
    return token.split("_")[1]


def test_people_are_listed_with_shares_and_tokens_and_no_secret(told):
    folder, tokens = told
    found = run(folder, "people")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert lines[0] == "ana, analyst"
    assert lines[1] == "  share of stays 0.6, 0.6 left"
    day = datetime.now(UTC).date().isoformat()
    assert lines[2].startswith(f"  {token_id(tokens['ana'])}  token, made {day}, ends in ")
    assert lines[-1] == "data set stays: epsilon 1 of 1 left"
    assert ", epsilon 1 of 1 left\n" in run(folder, "check").stdout
    for each in tokens.values():
        assert each.split("_", 2)[2] not in found.stdout + run(folder, "people", "--json").stdout


def test_a_stopped_token_opens_nothing_and_others_still_do(tmp_path):
    """While the server runs: the next request with that token is refused."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    second = run(folder, "invite", "ana").stdout.strip()
    for team in open_team(folder, tokens):
        assert team.send("GET", "/v1/me", team.ana).status_code == 200
        done = run(folder, "revoke", "ana", "--token", token_id(tokens["ana"]))
        assert done.stdout == "stopped 1 token\n"
        last = run(folder, "trail", "--most", "1").stdout
        assert f"revoked a token: ana {token_id(tokens['ana'])}" in last
        assert team.send("GET", "/v1/me", team.ana).status_code == 401
        assert team.send("GET", "/v1/me", second).status_code == 200
        assert run(folder, "revoke", "ana").stdout == "stopped 1 token; ana is out\n"
        assert team.send("GET", "/v1/me", second).status_code == 401
        assert team.send("GET", "/v1/me", team.bo).status_code == 200
        assert "ana, analyst, let out" in run(folder, "people").stdout
        again = run(folder, "invite", "ana").stdout.strip()
        assert team.send("GET", "/v1/me", again).status_code == 200
        assert team.send("GET", "/v1/me", second).status_code == 401


def test_a_backup_of_a_server_says_how_it_is_put_back(told, tmp_path):
    """Nobody charges by hand what a server has charged: the mark tells it."""
    folder, _ = told
    copy = ["ledger", "backup", f"sqlite:///{folder / 'hushed.db'}", str(tmp_path / "copy.db")]
    said = " ".join(CliRunner().invoke(app, copy).stderr.split())
    assert "hushed serve restore puts the copy back" in said
    assert "charge that again" not in said


def test_a_delta_of_the_budget_can_be_asked(tmp_path):
    """Without --max-delta one request may bring the half of delta that is for requests."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    source = str(tmp_path / "stays.csv")
    given = (source, "--second-budget", "--epsilon", "1", "--delta", "1e-6")
    added = run(folder, "add", "more", *given)
    assert added.exit_code == 0
    assert "more can be asked after the next start" in added.stdout
    assert "requests may bring delta 5e-07 in all" in " ".join(added.stderr.split())
    found = read_settings(folder).dataset
    assert found["more"].max_delta == 5e-7
    run(folder, "add", "less", *given, "--max-delta", "0")
    assert read_settings(folder).dataset["less"].max_delta == 0


@pytest.mark.slow
def test_a_table_of_texts_is_told_and_can_be_given_types(tmp_path):
    """Without types nobody can ask for a sum; the words say what to do, and doing it works."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    source = tmp_path / "more.csv"
    source.write_text("ward,days\nA,77712\n")
    words = ["more", str(source), "--epsilon", "1"]
    added = run(folder, "add", *words)
    assert added.exit_code == 0
    assert "declare what are numbers" in " ".join(added.stderr.split())
    again = run(folder, "add", *words, "--type", "days=int")
    assert again.exit_code == 2
    said = " ".join(again.stderr.split())
    assert "edit [dataset.more] there, then run hushed serve confirm more" in said
    assert "77712" not in added.output + again.output
    file = folder / "hushed.toml"
    assert "[dataset.more]" in file.read_text()
    file.write_text(file.read_text() + "[dataset.more.column.days]\nkind = 'int'\n")
    assert run(folder, "confirm", "more").exit_code == 0
    assert run(folder, "invite", "ana", "--share", "more=1").exit_code == 0
    for team in open_team(folder, tokens):
        found = team.send("GET", "/v1/datasets/more", team.ana).json()["columns"]
        assert [each["kind"] for each in found] == ["string", "int"]
    typed = ("add", "third", str(source), "--epsilon", "1", "--type", "days=int")
    refused = run(folder, *typed)
    assert refused.exit_code == 1
    assert "this table is data set 'more', too" in " ".join(refused.stderr.split())
    typed = run(folder, *typed, "--second-budget")
    assert typed.exit_code == 0
    assert "declare what are numbers" not in " ".join(typed.stderr.split())


@pytest.mark.slow
def test_people_who_were_not_named_are_named_under_another_name(tmp_path):
    """A budget keeps what it protects: the words say what to do, and doing it works."""
    make_folder(tmp_path)
    folder, source = tmp_path / "stats", tmp_path / "more.csv"
    source.write_text("ward,who\nA,77712\n")
    words = [str(source), "--epsilon", "1"]
    added = run(folder, "add", "more", *words)
    assert "under another name, with --user COLUMN" in " ".join(added.stdout.split())
    file = folder / "hushed.toml"
    file.write_text(file.read_text() + 'user = "who"\n')
    refused = run(folder, "confirm", "more")
    assert refused.exit_code == 2
    said = " ".join(refused.stderr.split())
    assert "add the data set under another name" in said
    assert "hushed ledger open with --neighbours add-remove --unit user" in said
    text = file.read_text()
    file.write_text(text[: text.index("[dataset.more]")])
    missed = run(folder, "add", "people", *words, "--user", "who", "--keys", "wad=A")
    assert "did you mean 'ward'?" in " ".join(missed.stderr.split())
    assert run(folder, "add", "people", *words, "--user", "who").exit_code == 0


def test_a_bound_that_a_question_lacks_is_named(quiet):
    """By the name that it has in a question, on a page and in Python."""
    body = {"query": QUERY | {"max_rows_per_user": None}, "epsilon": 0.1}
    told = quiet.send("POST", "/v1/datasets/stays/quote", quiet.ana, json=body)
    assert "max_rows_per_user" in told.json()["detail"]
    assert str(read_problem(422, told.content)).endswith(
        "; call .bound_contributions(max_rows_per_user=N)"
    )


@pytest.mark.slow
def test_declared_keys_are_of_the_type_of_their_column(tmp_path):
    """The command writes texts: by a text nobody could group whole numbers."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    source = tmp_path / "more.csv"
    source.write_text("patient,age,ill,day\nP1,1,true,2024-02-29\n")
    words = ["more", str(source), "--user", "patient", "--epsilon", "1"]
    for name in ("age=int", "ill=bool", "day=date"):
        words += ["--type", name]
    keys = ("age=1, 2", "ill=true,False", "day=2024-02-29", "patient=P1,P2")
    listed = [part for each in keys for part in ("--keys", each)]
    for wrong in ("age=1,two", "ill=1", "day=today", "patient=P1,P1"):
        refused = run(folder, "add", *words, "--keys", wrong)
        assert refused.exit_code == 2, wrong
        assert "key" in refused.stderr or "date" in refused.stderr
        assert "more" not in read_settings(folder).dataset
    assert run(folder, "add", *words, *listed).exit_code == 0
    assert run(folder, "invite", "ana", "--share", "more=1").exit_code == 0
    for team in open_team(folder, tokens):
        found = team.send("GET", "/v1/datasets/more", team.ana).json()["columns"]
        assert [each["keys"] for each in found] == [
            ["P1", "P2"],
            [1, 2],
            [True, False],
            ["2024-02-29"],
        ]
    file = folder / "hushed.toml"
    file.write_text(file.read_text().replace('"2024-02-29"', '"some day"'))
    assert "some day" in run(folder, "check").stderr
    assert run(folder, "confirm", "more").exit_code == 2


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_token_is_shown_though_its_share_cannot_be_read_again(tmp_path, monkeypatch, more):
    """It counts by then, and nobody would see it later."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"

    def fail(*_, **__):
        raise LedgerUnavailable("the ledger cannot be used now")

    with monkeypatch.context() as away:
        away.setattr(_giving, "_tell", fail)
        found = run(folder, "invite", "eve", "--share", "stays=0.2", *more)
    assert found.exit_code == 0
    assert "the shares are given" in found.stderr
    token = json.loads(found.stdout)["token"] if more else found.stdout.strip()
    for team in open_team(folder, tokens):
        shares = team.send("GET", "/v1/me", token).json()["shares"]
        assert [(each["dataset"], each["epsilon"]) for each in shares] == [("stays", 0.2)]


@pytest.mark.slow
def test_another_token_gives_no_second_budget(tmp_path):
    """The same share again is the one that is there; a larger one counts in full, as is said."""
    tokens, folder = make_folder(tmp_path), tmp_path / "stats"
    for team in open_team(folder, tokens):
        for i in range(4):
            assert team.ask(team.ana, f"k{i}").status_code == 201
        same = run(folder, "invite", "ana", "--share", "stays=0.6")
        assert "ana has this share of stays already: 0.2 of 0.6 is left" in same.stderr
        run(folder, "revoke", "ana")
        back = run(folder, "invite", "ana", "--share", "stays=0.6")
        assert "0.2 of 0.6 is left" in back.stderr
        token = back.stdout.strip()
        assert team.ask(token, "much", epsilon=0.3).json()["code"] == "quota_exceeded"
        raised = run(folder, "invite", "ana", "--share", "stays=2")
        assert "had spent 0.4 of earlier shares of stays; from now on 2 more" in raised.stderr
        assert "2 is more than the budget of stays, which binds all the same: 1" in raised.stderr
        assert "share of stays 2, 2 left, 0.4 spent of earlier" in run(folder, "people").stdout
        told = json.loads(run(folder, "invite", "ana", "--share", "stays=2", "--json").stdout)
        assert told["shares"] == [
            {
                "dataset": "stays",
                "epsilon": 2.0,
                "delta": 0.0,
                "gamma": 0.0,
                "reserved": False,
                "new": False,
                "epsilon_left": 2.0,
                "spent_before": 0.4,
                "per_day": None,
            }
        ]


@pytest.fixture(scope="module")
def revoked(tmp_path_factory):
    """A folder whose ana was revoked, and what tells of all that is in it."""
    place = tmp_path_factory.mktemp("revoked")
    make_folder(place)
    folder = place / "stats"
    run(folder, "revoke", "ana")

    def state():
        with closing(sqlite3.connect(folder / "hushed.db")) as database:
            budgets = database.execute("SELECT name FROM hushed_budgets").fetchall()
        return run(folder, "people").stdout, run(folder, "trail").stdout, budgets

    return folder, state, state()


@pytest.mark.parametrize(
    "words",
    [
        ("--share", "stays=5", "--reserve"),
        ("--share", "stays=0.1", "--share", "nothing=1"),
        ("--share", "stays=0.1", "--share", "stays=0.2"),
        ("--share", "stays=0.1:2"),
        ("--share", "stays=0.1", "--days", "91"),
        ("--share", "stays=0.1", "--steward"),
    ],
)
@pytest.mark.parametrize("name", ["fay", "ana"])
def test_a_refused_invitation_leaves_nothing(revoked, name, words):
    """Nobody is let in, no budget is opened, and the trail tells of nothing."""
    folder, state, before = revoked
    found = run(folder, "invite", name, *words)
    assert found.exit_code != 0
    assert not found.stdout
    assert state() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody",), "there is nobody of that name"),
        (("ana", "--token", "0" * 12), "has no such token"),
        (("bo", "--token", "ANA"), "has no such token"),
    ],
)
def test_what_is_not_there_is_refused_and_stops_nothing(told, words, said):
    """A token of one person is not stopped under the name of another."""
    folder, tokens = told
    words = tuple(token_id(tokens["ana"]) if each == "ANA" else each for each in words)
    before = run(folder, "people").stdout
    found = run(folder, "revoke", *words)
    assert found.exit_code == 2
    assert said in found.stderr
    assert run(folder, "people").stdout == before


def test_a_misspelt_data_set_of_a_limit_is_named(told):
    """Before it is said that a limit is one of a share."""
    found = run(told[0], "invite", "ana", "--share", "stays=0.6", "--per-day", "stay=0.3")
    said = " ".join(found.stderr.split())
    assert "there is no data set 'stay' in hushed.toml; did you mean 'stays'?" in said


def test_a_token_itself_is_not_repeated_on_the_screen(told):
    folder, tokens = told
    found = run(folder, "revoke", "ana", "--token", tokens["ana"])
    assert found.exit_code == 2
    assert tokens["ana"] not in found.output


def test_the_trail_is_listed_in_order_and_a_changed_one_is_refused(tmp_path):
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    found = json.loads(run(folder, "trail", "--json").stdout)
    numbers = [each["number"] for each in found["events"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert found["events"][0]["action"] == "made the server"
    assert found["head"].startswith(f"{numbers[-1]}:")
    last = run(folder, "trail", "--most", "2").stdout.splitlines()
    assert [int(each.split()[0]) for each in last] == numbers[-2:]
    after = run(folder, "trail", "--after", "1", "--most", "2").stdout.splitlines()
    assert [int(each.split()[0]) for each in after] == [2, 3]
    with closing(sqlite3.connect(folder / "hushed.db")) as database, database:
        database.execute("UPDATE hushed_s_audit SET body = '{}' WHERE number = 2")
    refused = run(folder, "trail")
    assert refused.exit_code == 1
    assert "event 2" in refused.stderr


def test_a_token_for_a_day_is_said_to_be_one(tmp_path):
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    done = run(folder, "invite", "eve", "--days", "1")
    assert done.exit_code == 0, done.output
    assert "this is a token for a day, for eve" in done.stderr


def test_a_share_that_comes_back_is_told_and_can_be_taken_away(tmp_path):
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    assert run(folder, "revoke", "ana").exit_code == 0
    told = json.loads(run(folder, "invite", "ana", "--json").stdout)
    assert (told["shares"], told["other_shares"]) == ([], ["stays"])
    said = " ".join(run(folder, "invite", "ana").stderr.split())
    assert "ana has a share of stays, too, as before: hushed serve revoke ana --share stays" in said
    refused = run(folder, "invite", "ana", "--share", "stays=0")
    assert "revoke NAME --share DATASET takes one away" in " ".join(refused.stderr.split())
    taken = run(folder, "revoke", "ana", "--share", "stays")
    assert taken.stdout == "ana has no share of stays any more\n"
    assert "share of stays, too" not in " ".join(run(folder, "invite", "ana").stderr.split())
    again = run(folder, "revoke", "ana", "--share", "stays")
    assert "has no share of 'stays'" in " ".join(again.stderr.split())
    assert run(folder, "invite", "ana", "--share", "stays=0.6").exit_code == 0


def test_an_invitation_is_done_where_other_shares_cannot_be_read(tmp_path, monkeypatch):
    def fail(*_):
        raise LedgerUnavailable("it is busy")

    make_folder(tmp_path)
    monkeypatch.setattr(_setup, "list_counting", fail)
    done = run(tmp_path / "stats", "invite", "ana")
    assert done.exit_code == 0
    assert done.stdout.startswith("hsh_")
    told = run(tmp_path / "stats", "invite", "ana", "--json")
    assert json.loads(told.stdout)["other_shares"] is None
    said = " ".join(done.stderr.split())
    assert "shares and tokens of ana could not be read: hushed serve people lists them" in said


@pytest.mark.parametrize("more", [(), ("--page",)])
def test_an_invitation_names_the_tokens_that_still_count(tmp_path, more):
    """Whoever gives a new one for a lost one would leave the lost one open."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    (before,) = json.loads(run(folder, "people", "--json").stdout)["people"][0]["tokens"]
    done = run(folder, "invite", "ana", *more)
    said = " ".join(done.stderr.split())
    assert said.count("counts, too, as before") == 1
    assert f"hushed serve revoke ana --token {before['id']} stops it" in said
    assert before["id"] not in done.stdout
    assert run(folder, "revoke", "ana").exit_code == 0
    told = run(folder, "invite", "ana", *more, "--json")
    assert json.loads(told.stdout)["other_tokens"] == []


@pytest.mark.parametrize("size", ["0.3", "0.30"])
def test_what_is_set_aside_stays_so_where_the_same_share_is_given_without_it(tmp_path, size):
    """As after a restoration, when everybody is invited again: nothing is left to nobody."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    assert run(folder, "invite", "cy", "--share", "stays=0.3", "--reserve").exit_code == 0
    told = json.loads(run(folder, "invite", "cy", "--share", f"stays={size}", "--json").stdout)
    assert (told["shares"][0]["new"], told["shares"][0]["reserved"]) == (False, True)
    said = " ".join(run(folder, "invite", "cy", "--share", f"stays={size}").stderr.split())
    assert "cy has this share of stays already, set aside: 0.3 of 0.3 is left" in said
    assert "share of stays 0.3, 0.3 left, set aside" in run(folder, "people").stdout


def test_what_is_set_aside_stays_so_where_the_budget_has_a_gamma(tmp_path):
    """A share that is set aside has none, a cap has: they are the same share all the same."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    limit = Guarantee(epsilon=1.0, gamma=0.1, neighbours="add-remove", unit="user")
    with Ledger(f"sqlite:///{folder}/hushed.db") as ledger:
        ledger.open_budget("wider", limit)
    file = folder / "hushed.toml"
    file.write_text(file.read_text().replace('budget = "stays"', 'budget = "wider"'))
    assert run(folder, "confirm", "stays").exit_code == 0
    made = run(folder, "invite", "cy", "--share", "stays=0.3", "--reserve")
    assert "no gamma: cy cannot ask a registered function" in " ".join(made.stderr.split())
    cap = run(folder, "invite", "bo", "--share", "stays=0.3")
    assert "share of stays has a gamma of 0.1" in " ".join(cap.stderr.split())
    told = json.loads(run(folder, "invite", "cy", "--share", "stays=0.3", "--json").stdout)
    assert (told["shares"][0]["new"], told["shares"][0]["reserved"]) == (False, True)


def test_people_say_deltas_what_is_set_aside_and_what_shares_a_budget(tmp_path):
    """Two data sets on one budget are named together: they are no two budgets."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    settings = folder / "hushed.toml"
    told = settings.read_text()
    section = told[told.index("[dataset.stays]") :]
    settings.write_text(told + "\n" + section.replace("dataset.stays", "dataset.labs"))
    assert 'budget = "stays"' in section
    set_aside = run(folder, "invite", "cy", "--page", "--share", "stays=0.3", "--reserve")
    assert set_aside.exit_code == 0, set_aside.output
    lines = run(folder, "people").stdout.splitlines()
    assert "  share of stays 0.3, 0.3 left, set aside" in lines
    assert lines[-1] == "data sets stays and labs, which share one budget: epsilon 0.7 of 1 left"
    known = json.loads(run(folder, "people", "--json").stdout)
    assert known["datasets"] == dict.fromkeys(("labs", "stays"), "epsilon 0.7 of 1 left")
    assert "budget stays of the data sets stays and labs: " in run(folder, "check").stdout
    (door,) = (each for each in lines if "address for the pages" in each)
    assert door.count("not used yet") == 1


def test_delta_and_gamma_of_a_share_and_of_a_budget_are_listed(tmp_path):
    make_folder(tmp_path)
    with Ledger(f"sqlite:///{tmp_path / 'stats' / 'hushed.db'}") as ledger:
        limit = Guarantee(epsilon=2.0, delta=1e-5, neighbours="add-remove", unit="user")
        ledger.open_budget("both", limit)
        assert say_left(ledger.balance("both")) == "epsilon 2 of 2 left, delta 5e-06 of 1e-05 left"
        told = _say_share(ledger, Grant(dataset="stays", budget="both"))
        gamma = Guarantee(epsilon=1.0, gamma=0.2, neighbours="add-remove", unit="user")
        ledger.open_budget("sampled", gamma)
        left = say_left(ledger.balance("sampled"))
        share = _say_share(ledger, Grant(dataset="stays", budget="sampled"))
    assert told == "stays 2, 2 left, delta 1e-05, 5e-06 left"
    assert left == "epsilon 1 of 1 left, gamma 0.2 of 0.2 left"
    assert share == "stays 1, 1 left, gamma 0.2, 0.2 left"


def test_who_may_not_do_it_is_told_who_may():
    sam = SimpleNamespace(role="steward", scope=Scope())
    with pytest.raises(Problem) as refused:
        require_role(sam, "analyst")
    assert "A steward keeps people and shares, and never asks" in refused.value.said
    with pytest.raises(Problem) as refused:
        require_role(SimpleNamespace(role="analyst", scope=Scope(quote_only=True)), "analyst")
    assert "asks prices, and nothing else" in refused.value.said


def test_a_price_above_the_most_of_a_request_is_named():
    dataset = SimpleNamespace(settings=SimpleNamespace(max_epsilon=1.0, max_delta=0.0))
    with pytest.raises(Problem) as refused:
        check_price(dataset, SimpleNamespace(max_epsilon=1.0), FunctionTerms(epsilon=1.7), 1.625)
    assert refused.value.detail == (
        "one request may cost at most epsilon 1.0, and this one costs epsilon 1.625"
    )


def test_a_day_of_which_nothing_is_left_says_why_and_until_when():
    daily = Daily(most=0.2, day="2999-01-01", spent=Fraction(1, 5))
    assert daily.say() == (
        "0 of 0.2 left of 2999-01-01 (UTC), used up, or ended by a restoration of the ledger with "
        "a loss; more after that day"
    )
    assert replace(daily, spent=Fraction(1, 10)).say() == "0.1 of 0.2 left of 2999-01-01 (UTC)"


def test_a_type_of_another_name_is_told_by_ours(told):
    folder, _ = told
    for kind, meant in (("datetime", "timestamp"), ("text", "string"), ("flot", "float")):
        done = run(folder, "add", "x", "no.csv", "--epsilon", "1", "--type", f"cost={kind}")
        assert f"cannot be of type '{kind}'" in " ".join(done.output.split())
        assert f"did you mean '{meant}'?" in " ".join(done.output.split())


def test_the_letter_to_an_analyst_names_what_its_commands_print(tmp_path):
    """Of docs/operating.md: one token, one address of the pages, and the share stays as it is."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    part = page.partition("## What you write to an analyst")[2].partition("\n## ")[0]
    letter = part.partition("```text\n")[2].partition("```")[0]
    run(folder, "revoke", "ana")
    printed = []
    for each in part.partition("```sh\n")[2].partition("```")[0].splitlines():
        words = [str(folder) if word == "stats" else word for word in each.split()[1:]]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
        printed.append(done.stdout.strip())
    token, door = printed
    assert f"Token:   {token[:4]}..." in letter
    address, _, secret = door.partition("#")
    assert f"Pages:   https://stats.example.org{urlsplit(address).path}#{secret[:4]}..." in letter
    (ana,) = (each for each in _setup.show_people(folder)[0] if each.name == "ana")
    assert len(ana.tokens) == 2
    assert len(ana.shares) == 1
    assert "share of stays 1.5" in run(folder, "people").stdout


def test_the_page_gives_a_data_set_more_and_what_was_spent_stays_spent(tmp_path):
    """The commands of docs/operating.md, after the settings are changed as it says."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
    part = page.partition("## Take out, give back, change a budget")[2].partition("\n## ")[0]
    commands = part.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert len(commands) == 2
    with open_own(folder)[1] as ledger:
        spent = Guarantee(epsilon=0.25, neighbours="add-remove", unit="user")
        ledger.charge("stays", spent)
    settings = folder / "hushed.toml"
    told = settings.read_text()
    settings.write_text(told.replace('budget = "stays"', 'budget = "wider"'))
    for each in commands:
        words = each.replace("sqlite:///stats", f"sqlite:///{folder}").split()[1:]
        words = [str(folder) if word == "stats" else word for word in words]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    assert "data set stays: epsilon 5.75 of 6 left" in run(folder, "people").stdout
