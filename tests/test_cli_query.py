"""The command ``hushed query``."""

import json
import re

import duckdb
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app

ROWS = "patient,city,cost\n" + "".join(
    f"{i % 40},{'Rome' if i % 3 else 'Oslo'},{(i * 37) % 500}\n" for i in range(200)
)


@pytest.fixture
def run(tmp_path):
    data = tmp_path / "visits.csv"
    data.write_text(ROWS)

    def call(*words):
        types = ["--type", "patient=int", "--type", "cost=float"]
        return CliRunner().invoke(app, ["query", str(data), *types, *map(str, words)])

    return call


def test_an_answer_as_text_and_as_json(run):
    """Two groups, three outputs, error bars; the same as one JSON object."""
    words = ("--user", "patient", "--rows", 5, "--by", "city", "--keys", "Rome,Oslo", "--count")
    words += ("--mean", "cost:0:500", "--quantile", "cost:0:500:0.5", "--epsilon", 50)
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[0].split() == [
        "city", "count", "mean_cost", "quantile_cost_0.5",
    ]  # fmt: skip
    told = run(*words, "--where", "cost < 400", "--derive", "k=cost / 1000", "--json")
    found = json.loads(told.stdout)
    assert [row["city"] for row in found["rows"]] == ["Rome", "Oslo"]
    assert (found["epsilon"], found["unit"], found["neighbours"]) == (50, "user", "add-remove")
    assert found["rows"][0]["count_low"] < found["rows"][0]["count"]


def test_a_quote_reads_no_row_and_charges_nothing(run, tmp_path):
    """The price with what would be left; then the query is charged, then refused."""
    url = f"sqlite:///{tmp_path / 'b.db'}"
    with hs.Ledger(url) as ledger:
        ledger.open_budget(
            "clinic", hs.Guarantee(epsilon=1.0, neighbours="add-remove", unit="user")
        )
    words = ("--user", "patient", "--count-users", "--epsilon", 0.75)
    words += ("--ledger", url, "--budget", "clinic", "--json")
    priced = json.loads(run(*words, "--quote").stdout)
    assert priced["epsilon_left"] == pytest.approx(0.25, rel=1e-6)
    assert run(*words).exit_code == 0
    refused = run(*words)
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["error"]["type"] == "Overspent"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--count", "--by", "city"), "private"),
        (("--count", "--keys", "a"), "--by"),
        (("--sum", "cost"), "COLUMN:LOW:HIGH"),
        (("--sum", "cost:1:x"), "COLUMN:LOW:HIGH"),
        (("--sum", "cots:0:1"), "did you mean 'cost'"),
        (("--histogram", "cost:0:1:2.5"), "whole number of bins"),
        (("--histogram", "cost:0:1:inf"), "whole number of bins"),
        (("--quantile", "cost:0:1"), "COLUMN:LOW:HIGH:PROBABILITY, got 'cost:0:1'"),
        (("--quantile", "cost:0:1:0.5,x"), "COLUMN:LOW:HIGH:PROBABILITY"),
        (("--quantile", "cost:0:1:nan"), "must lie in"),
        (("--where", "cost = 5"), "equal is written =="),
        (("--derive", "x"), "NAME=EXPRESSION"),
        (("--type", "cost"), "COLUMN=KIND"),
        (("--type", "cost=number"), "kinds are whole, real"),
        (("--type", "cots=float"), "did you mean 'cost'"),
        (("--sum", "city:0:1"), "--type COLUMN=float"),
        (("--where", "city > 3"), "--type COLUMN=float"),
        (("--count", "--user", "patient"), "rows of one user; give --max-rows-per-user N"),
        (("--count", "--user", "patient", "--by", "city", "--keys", "a", "--rows", 0), "rows must"),
        (
            (
                "--count-users",
                "--user",
                "patient",
                "--by",
                "city",
                "--select-partitions",
                "--delta",
                1e-6,
            ),
            "how many groups of one user count, or how many rows; give --groups N or --rows N",
        ),
        (
            ("--count", "--by", "city"),
            "give one of the two; give --keys A,B,C or --select-partitions",
        ),
        ((), "nothing is asked; add --count"),
        (("--count-users",), "--user COLUMN"),
        (("--count", "--rows", 3), "--user COLUMN"),
        (("--sum", "cost:0:1", "--sum", "cost:0:2"), "ask for each output once"),
        (("--count", "--noise", "gaussian"), "--delta: Gaussian noise cannot be had with"),
        (("--count", "--delta", 1e-6), "--noise gaussian"),
        (("--count", "--budget", "b"), "--budget was given without --ledger"),
        (("--count", "--header", "a,a"), "--header must name"),
        (("--count", "--by", "city", "--keys", "a", "--keys", "b"), "once for each"),
        (("--count", "--by", "patient", "--keys", "a"), "whole number"),
    ],
)
def test_bad_use_says_what_is_wanted(run, words, said):
    """Exit code 2 and a message on standard error."""
    ended = run(*words, "--epsilon", 1)
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert not re.search(r"\w=|\.\w+\(", ended.stderr.replace("COLUMN=", "").replace("NAME=", ""))


def test_a_key_with_a_blank_is_refused(run):
    """``Rome, Oslo`` would be charged for a group ' Oslo' that is not there."""
    words = ("--count", "--by", "city", "--epsilon", 1)
    refused = run(*words, "--keys", "Rome, Oslo")
    assert (refused.exit_code, "' Oslo'" in refused.stderr) == (2, True)
    assert run(*words, "--keys", "Rome,Oslo").exit_code == 0


def test_a_median_is_the_quantile_of_one_half(run):
    """The same choice under its own name; swapped bounds and missing ones are told."""
    words = ("--median", "cost:0:500", "--candidates", 51, "--epsilon", 1000, "--json")
    row = json.loads(run(*words).stdout)["rows"][0]
    costs = sorted((i * 37) % 500 for i in range(200))
    assert costs[95] <= row["median_cost"] <= costs[105]
    refused = run("--median", "cost:0", "--epsilon", 1)
    assert (refused.exit_code, "--median takes COLUMN:LOW:HIGH" in refused.stderr) == (2, True)


def test_a_table_that_is_not_there_is_told_by_the_option(tmp_path):
    """The default name is seldom right in a DuckDB file: the tables there are named."""
    with duckdb.connect(str(tmp_path / "a.db")) as made:
        made.execute("CREATE TABLE sales (x INTEGER)")
    words = ["query", f"duckdb:///{tmp_path / 'a.db'}", "--count", "--epsilon", "1"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "tables in there: sales; name one with --table NAME" in refused.stderr
    assert CliRunner().invoke(app, [*words, "--table", "sales"]).exit_code == 0


def test_a_file_without_names_shows_no_record(tmp_path):
    """A record in place of the names is refused unseen, and counts once the names are given."""
    data = tmp_path / "visits.csv"
    data.write_text("P77123;cardio;HIV positive;120077\nP77124;cardio;flu;5\n" * 3)
    words = ["query", str(data), "--user", "patient", "--count-users", "--epsilon", "200"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "--header" in refused.stderr
    assert not any(cell in refused.output for cell in ("P77123", "cardio", "HIV", "120077"))
    told = CliRunner().invoke(app, [*words, "--header", "patient;ward;ill;visits", "--json"])
    assert json.loads(told.stdout)["rows"][0]["users"] == 2


def test_quantiles_of_one_option_are_in_order_with_their_error_in_words(run):
    """Three at once, other candidates, and what the choice may miss."""
    words = ("--quantile", "cost:0:500:0.75,0.25,0.5", "--candidates", 11, "--epsilon", 1)
    found = json.loads(run(*words, "--json").stdout)
    three, one, two = found["rows"][0]["quantiles_cost"]
    assert one <= two <= three
    assert all(value % 50 == 0 for value in (one, two, three))
    assert found["rank_error"]["quantiles_cost"] > 0
    assert "ranks (rows in order" in run(*words).stdout


def test_a_quote_says_the_error_of_a_mean(run):
    """Given about how many rows there are, 1 or more."""
    words = ("--mean", "cost:0:500", "--epsilon", 1)
    told = run(*words, "--quote").stdout
    assert "say about how many rows a group has, such as --about-rows 100" in told
    told = run(*words, "--quote", "--about-rows", 200).stdout
    assert "if about 200 rows have a value" in told
    refused = run(*words, "--about-rows", 200)
    assert (refused.exit_code, "--quote" in refused.stderr) == (2, True)
    refused = run(*words, "--quote", "--about-rows", 0)
    assert (refused.exit_code, "--about-rows" in refused.stderr) == (2, True)


def test_decimals_that_cannot_be_read_are_remarked(tmp_path):
    """A column of German numbers: no value is read, and the answer says so."""
    data = tmp_path / "costs.csv"
    data.write_text("who;cost\n" + "".join(f"{i};1.{i:03d},50\n" for i in range(300)))
    words = ["query", str(data), "--type", "cost=float", "--mean", "cost:0:5000", "--count"]
    told = CliRunner().invoke(app, [*words, "--epsilon", "60"])
    assert "cannot be told from 0" in told.stdout
    assert "decimal points (1234.50)" in told.stdout
    told = CliRunner().invoke(app, [*words, "--epsilon", "60", "--json"])
    assert any("cannot be told from 0" in each for each in json.loads(told.stdout)["warnings"])
