"""The command ``hushed query``."""

import json
import math
import os
import re

import duckdb
import pandas as pd
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


def test_without_people_each_row_is_protected_and_that_is_said(run):
    """Before anything is paid; who names the column of people is not told so."""
    said = "if a person may have several, name their column with --user"
    assert said in run("--count", "--epsilon", 1, "--quote").stderr
    people = ("--user", "patient", "--max-rows-per-user", 1)
    assert said not in run("--count", *people, "--epsilon", 1, "--quote").stderr


def test_what_bounds_leave_out_stands_beside_the_numbers(run):
    """In the price and in the answer, with the option that puts it into the errors."""
    words = ("--user", "patient", "--max-rows-per-user", 2, "--count", "--epsilon", 1)
    said = "each user counts with 2 rows at most; all further rows are left out, and counts are too"
    priced, told = run(*words, "--quote").stdout, run(*words).stdout
    assert said in priced
    assert "such as --rows-per-user 5:300,9:20\n" in priced
    assert said in told
    assert "--rows-per-user of hushed query" in told
    guess = ("--rows-per-user", "5:300,9:20")
    for found in (run(*words, *guess, "--quote").stdout, run(*words, *guess).stdout):
        assert "are left out" not in found


def test_a_price_names_the_bounds_that_columns_are_moved_into(run):
    """A comma that was meant for thousands is seen before it is paid; each is named once."""
    words = ("--mean", "cost:0:20.000", "--variance", "cost:0:20", "--histogram", "cost:0:500:5")
    words = (*words, "--sum", "cost:0:search", "--count", "--epsilon", 1, "--quote")
    said = "cost is moved into 0 to 20, cost is moved into 0 to 500; no error includes that"
    assert said in run(*words).stdout.splitlines()
    assert "moved into" not in run("--count", "--epsilon", 1, "--quote").stdout


def test_what_no_budget_is_charged_for_says_so(run, tmp_path):
    """An answer without a ledger, and no price."""
    said = "no budget is charged: name one by --ledger and --budget"
    paid = ("--count", "--epsilon", 1)
    assert said in run(*paid).stderr
    assert said not in run(*paid, "--quote").stderr
    ledger = f"sqlite:///{tmp_path / 'l.db'}"
    with hs.Ledger(ledger) as book:
        book.open_budget("b", hs.Guarantee(epsilon=1, neighbours="add-remove"))
    charged = run(*paid, "--ledger", ledger, "--budget", "b")
    assert (charged.exit_code, said in charged.stderr) == (0, False)


def test_a_key_of_another_question_is_refused_in_words_of_commands(run, tmp_path):
    """It says how the answer is read again, by a command."""
    ledger = f"sqlite:///{tmp_path / 'l.db'}"
    with hs.Ledger(ledger) as book:
        book.open_budget("b", hs.Guarantee(epsilon=3, neighbours="add-remove"))
    paid = ("--epsilon", 1, "--ledger", ledger, "--budget", "b", "--key", "k")
    told = "an answer is stored under the key 'k': to the same question it is given again"
    first, again = (run("--count", *paid) for _ in range(2))
    assert (first.exit_code, again.exit_code, again.stdout) == (0, 0, first.stdout)
    assert (told in first.stderr, told in again.stderr) == (False, True)
    refused = run("--count", "--where", "cost > 1", *paid)
    assert refused.exit_code == 2
    assert "'hushed ledger answer', or take another --key" in refused.stderr
    assert "ledger.answer" not in refused.stderr


@pytest.mark.slow
def test_an_answer_as_text_and_as_json(run):
    """Two groups, three outputs, error bars; the same as one JSON object."""
    words = (
        "--user",
        "patient",
        "--max-rows-per-user",
        5,
        "--by",
        "city",
        "--keys",
        "Rome,Oslo",
        "--count",
    )
    words += ("--mean", "cost:0:500", "--quantile", "cost:0:500:0.5", "--epsilon", 50)
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[0].split() == [
        "city", "count", "[noise", "alone]", "mean_cost", "[noise", "alone]", "quantile_cost_0.5",
    ]  # fmt: skip
    wide = run(*words, "--rows-per-user", "3:2,9:4")
    assert wide.stdout.splitlines()[0].split()[1:3] == ["count", "mean_cost"]
    assert "16 rows of 4 users at most, by a public guess" in wide.stdout
    wrong = run(*words, "--rows-per-user", "3,9")
    assert (wrong.exit_code, "ROWS:USERS" in wrong.stderr) == (2, True)
    told = run(*words, "--where", "cost < 400", "--derive", "k=cost / 1000", "--json")
    found = json.loads(told.stdout)
    assert [row["city"] for row in found["rows"]] == ["Rome", "Oslo"]
    assert (found["epsilon"], found["unit"], found["neighbours"]) == (50, "user", "add-remove")
    assert found["rows"][0]["count_low"] < found["rows"][0]["count"]


@pytest.mark.parametrize("data", ["rows.parquet", "parts", "parts/*.parquet"])
def test_one_of_several_private_files_is_no_public_guess(data, tmp_path, monkeypatch):
    """However the private table is named, none of its files says how many rows users have."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    frame = pd.DataFrame({"u": [1, 1, 1, 2]})
    files = ["rows.parquet", "parts/a.parquet", "parts/b.parquet", "public.parquet"]
    for name in files:
        frame.to_parquet(name)
    private = files[0] if data == files[0] else files[1]
    words = ["query", data, "--user", "u", "--max-rows-per-user", "1", "--count", "--epsilon", "1"]
    words += ["--quote", "--rows-per-user"]
    refused = CliRunner().invoke(app, [*words, private])
    assert refused.exit_code != 0
    assert "holds the private rows" in refused.stderr
    assert CliRunner().invoke(app, [*words, "public.parquet"]).exit_code == 0


@pytest.mark.slow
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


@pytest.mark.parametrize("priced", [("--error", "users=1"), ("--epsilon", 4)])
def test_a_quote_that_does_not_fit_is_a_price_all_the_same(run, tmp_path, priced):
    """It ends as what is refused, with price and reason; the query is written down."""
    url = f"sqlite:///{tmp_path / 'b.db'}"
    with hs.Ledger(url) as ledger:
        ledger.open_budget("c", hs.Guarantee(epsilon=0.1, neighbours="add-remove", unit="user"))
    words = ("--user", "patient", "--count-users", *priced, "--quote")
    charged = (*words, "--ledger", url, "--budget", "c")
    told = run(*charged, "--save", tmp_path / "q.toml")
    assert told.exit_code == 1
    assert (tmp_path / "q.toml").exists()
    assert told.stdout.startswith(run(*words).stdout)
    assert "the query does not fit: budget 'c': this charge of epsilon" in told.stdout
    found = json.loads(run(*charged, "--json").stdout)
    plain = json.loads(run(*words, "--json").stdout)
    assert "its epsilon is too large" in found.pop("refusal")
    assert found == {name: each for name, each in plain.items() if name != "refusal"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--count", "--by", "city"), "private"),
        (("--count", "--keys", "a"), "--by"),
        (("--sum", "cost"), "COLUMN:LOW:HIGH"),
        (("--sum", "cost:1:x"), "COLUMN:LOW:HIGH"),
        (("--sum", "cost:1:serch"), "LOW and HIGH are numbers, or the word search"),
        (("--median", "cost:0:search"), "got 'cost:0:search'; LOW and HIGH are numbers"),
        (("--sum", "cots:0:1"), "did you mean 'cost'"),
        (("--histogram", "cost:0:1:2.5"), "integer number of bins"),
        (("--histogram", "cost:0:1:inf"), "integer number of bins"),
        (("--quantile", "cost:0:1"), "COLUMN:LOW:HIGH:PROBABILITY, got 'cost:0:1'"),
        (("--quantile", "cost:0:1:0.5,x"), "COLUMN:LOW:HIGH:PROBABILITY"),
        (("--quantile", "cost:0:1:nan"), "lies between 0 and 1"),
        (("--where", "cost = 5"), "equal is written =="),
        (("--where", "cost = 5 AND NOT city == 'AND'"), "AND is written and; NOT is written not"),
        (("--derive", "x"), "NAME=EXPRESSION"),
        (("--type", "cost"), "COLUMN=TYPE"),
        (("--type", "cost=whole"), "types are int, float, string, bool, date, timestamp"),
        (("--type", "cots=float"), "did you mean 'cost'"),
        (("--sum", "city:0:1"), "--type city=float"),
        (("--mean", "cost*patient:0:1"), '--derive "NAME=cost*patient"'),
        (("--where", "city > 3"), "--type city=float"),
        (("--count", "--user", "patient"), "give --max-rows-per-user N"),
        (
            ("--count", "--user", "patient", "--max-rows-per-user", 0),
            "max_rows_per_user must be 1",
        ),
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
            "give --max-groups-per-user N or --max-rows-per-user N",
        ),
        (
            ("--count", "--by", "city"),
            "needs a delta; give --keys A,B,C or --select-partitions",
        ),
        ((), "the query has no aggregate; add --count"),
        (("--count-users",), "--user COLUMN"),
        (("--count", "--max-rows-per-user", 3), "--user COLUMN"),
        (("--sum", "cost:0:1", "--sum", "cost:0:2"), "ask for each output once"),
        (("--count", "--noise", "gaussian"), "--delta: Gaussian noise needs a delta above 0"),
        (("--count", "--delta", 1e-6), "--noise gaussian"),
        (("--count", "--budget", "b"), "--budget was given without --ledger"),
        (("--count", "--header", "a,a"), "--header must name"),
        (("--count", "--by", "city", "--keys", "a", "--keys", "b"), "once for each"),
        (("--count", "--by", "patient", "--keys", "a"), "an integer"),
    ],
)
def test_bad_use_says_what_is_wanted(run, words, said):
    """Exit code 2 and a message on standard error."""
    ended = run(*words, "--epsilon", 1)
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert not re.search(r"\w=|\.\w+\(", re.sub(r"(COLUMN|NAME|--type city)=", "", ended.stderr))


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


def test_json_holds_what_the_numbers_of_a_list_mean(run):
    """The edges of the bins of a histogram, and which quantiles were asked for."""
    words = ("--histogram", "cost:0:500:4", "--quantile", "cost:0:500:0.25,0.75")
    found = json.loads(run(*words, "--epsilon", 50, "--json").stdout)
    assert found["edges"] == {"histogram_cost": [0, 125, 250, 375, 500]}
    assert len(found["rows"][0]["histogram_cost"]) == 4
    assert found["probabilities"] == {"quantiles_cost": [0.25, 0.75]}


def test_a_quantile_in_another_order_is_told_the_right_one(run):
    """The probability comes last: one that stands before the range is met as a number above 1."""
    refused = run("--quantile", "cost:0.5:0:500", "--epsilon", 1)
    assert refused.exit_code == 2
    assert "--quantile takes COLUMN:LOW:HIGH:PROBABILITY, got 'cost:0.5:0:500'" in refused.stderr


def test_a_table_that_is_not_there_is_told_by_the_option(tmp_path):
    """The default name is seldom right in a DuckDB file: the tables there are named."""
    with duckdb.connect(str(tmp_path / "a.db")) as made:
        made.execute("CREATE TABLE sales (x INTEGER)")
    words = ["query", f"duckdb:///{tmp_path / 'a.db'}", "--count", "--epsilon", "1"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "its tables: sales; name one with --table NAME" in refused.stderr
    assert CliRunner().invoke(app, [*words, "--table", "sales"]).exit_code == 0


def test_a_file_of_rows_has_no_table_to_name(tmp_path):
    """A name that says nothing was meant for something else."""
    (tmp_path / "a.csv").write_text("x\n1\n")
    words = ["query", str(tmp_path / "a.csv"), "--count", "--epsilon", "1"]
    refused = CliRunner().invoke(app, [*words, "--table", "sales"])
    assert refused.exit_code == 2
    assert "--table names a table in a database, and" in refused.stderr
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.parametrize("option", ["--html", "--certificate"])
def test_who_wants_a_certificate_of_a_query_is_told_how(option):
    """It is made of the answer, by a command of its own."""
    words = ["query", "a.csv", "--count", option, "c.html"]
    refused = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert refused.exit_code == 2
    assert "'hushed certify answer.json'" in " ".join(refused.stderr.split())


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


@pytest.mark.slow
def test_a_bound_may_be_searched_and_is_told(run):
    """In words and as JSON; a quote says what the search costs."""
    words = ("--sum", "cost:0:search", "--epsilon", 50)
    found = json.loads(run(*words, "--json").stdout)
    low, high = found["bounds"]["sum_cost"]
    assert low == 0
    assert high >= 256  # its logarithm is whole
    assert math.log2(high).is_integer()
    assert "sum_cost: values were clipped to [0, " in run(*words).stdout
    quoted = run(*words, "--quote").stdout
    assert "rows beyond the high bound, sum within" in quoted
    assert "times the bound farther from 0;" in quoted
    refused = run("--histogram", "cost:0:search:5", "--epsilon", 1)
    assert (refused.exit_code, "COLUMN:LOW:HIGH:BINS" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_candidates_are_geometric_unless_their_number_is_given(run):
    """The default, a number, and a spacing; each is told."""
    for words, spacing, number in (
        ((), "geometric", 2000),
        (("--candidates", 51), "even", 51),
        (("--candidates", 51, "--spacing", "geometric"), "geometric", 51),
    ):
        asked = ("--median", "cost:1:500", *words, "--epsilon", 1)
        told = json.loads(run(*asked, "--json").stdout)["candidates"]["median_cost"]
        assert (told["spacing"], told["number"]) == (spacing, number)
        assert f"of {number} candidates" in run(*asked, "--quote").stdout


def test_a_quote_says_the_error_of_a_mean(run):
    """Given about how many rows there are, 1 or more."""
    words = ("--mean", "cost:0:500", "--epsilon", 1)
    assert (
        "give the approximate number of rows of a group, such as --about-rows 100"
        in run(*words, "--quote").stdout
    )
    told = run(*words, "--quote", "--about-rows", 200).stdout
    assert "if about 200 rows have a value" in told
    refused = run(*words, "--about-rows", 200)
    assert (refused.exit_code, "--quote" in refused.stderr) == (2, True)
    refused = run(*words, "--quote", "--about-rows", 0)
    assert (refused.exit_code, "--about-rows" in refused.stderr) == (2, True)


def test_decimals_that_cannot_be_read_are_warned_of(tmp_path):
    """A column of German numbers: no value is read, and the answer says so."""
    data = tmp_path / "costs.csv"
    data.write_text("who;cost\n" + "".join(f"{i};1.{i:03d},50\n" for i in range(300)))
    words = ["query", str(data), "--type", "cost=float", "--mean", "cost:0:5000", "--count"]
    told = CliRunner().invoke(app, [*words, "--epsilon", "60"])
    assert "cannot be distinguished from 0" in told.stdout
    assert "decimal points (1234.50)" in told.stdout
    told = CliRunner().invoke(app, [*words, "--epsilon", "60", "--json"])
    assert any(
        "cannot be distinguished from 0" in each for each in json.loads(told.stdout)["warnings"]
    )


QUERY_FILE = """
user = "patient"
max_rows_per_user = 5
groups = { columns = ["city"], keys = [["Rome", "Oslo"]] }
aggregates = [{ kind = "count" }, { kind = "mean", column = "cost", low = 0, high = 500 }]

[columns]
patient = "int"
cost = "float"
"""


class TestQueryFile:
    @pytest.fixture
    def ask(self, tmp_path):
        """Ask with a query file, and with options beside it."""
        data = tmp_path / "visits.csv"
        data.write_text(ROWS)

        def call(text, *words):
            path = tmp_path / "query.toml"
            path.write_text(text)
            usual = {"--file": str(path), "--epsilon": "1"}
            left = [each for each in usual if each not in words]
            given = [part for each in left for part in (each, usual[each])]
            return CliRunner().invoke(app, ["query", str(data), *given, *words])

        return call

    @pytest.mark.slow
    def test_it_says_what_the_options_say(self, ask, run):
        """The same price as with options on the command line."""
        options = ("--user", "patient", "--max-rows-per-user", 5, "--by", "city", "--quote")
        options += ("--keys", "Rome,Oslo", "--count", "--mean", "cost:0:500", "--epsilon", 1)
        wanted = run(*options, "--about-rows", 100).stdout
        assert "about 100 rows" in wanted
        assert ask(QUERY_FILE, "--quote", "--about-rows", "100").stdout == wanted

    @pytest.mark.slow
    def test_a_bound_may_be_searched(self, ask):
        """Both ends, with the word that the option takes."""
        mean = '{ kind = "mean", column = "cost", low = "search", high = "search" }'
        asked = f'aggregates = [{mean}]\n[columns]\ncost = "float"\n'
        found = json.loads(ask(asked, "--epsilon", "50", "--json").stdout)
        assert found["bounds"]["mean_cost"][0] < 0 < found["bounds"]["mean_cost"][1]

    @pytest.mark.slow
    def test_a_saved_file_asks_the_same_again(self, ask, run, tmp_path):
        """What --save writes is read by --file, and is not written over unless that is said."""
        saved = tmp_path / "saved.toml"
        options = ("--user", "patient", "--count", "--max-rows-per-user", 5, "--epsilon", 1)
        first = run(*options, "--quote", "--save", saved)
        assert first.exit_code == 0
        assert ask(saved.read_text(), "--quote").stdout == first.stdout
        for words, code in (((), 2), (("--force",), 0)):
            assert run(*options, "--quote", "--save", saved, *words).exit_code == code
        assert ask(QUERY_FILE, "--save", str(tmp_path / "visits.csv"), "--force").exit_code == 2
        assert (tmp_path / "visits.csv").read_text() == ROWS

    @pytest.mark.parametrize("held", ["id,diagnosis\n1,flu\n", "", "a = 1\n", "\xff\x00"])
    def test_no_other_file_is_replaced_by_a_query(self, run, tmp_path, held):
        """Not even by force: it may be somebody's private rows."""
        other = tmp_path / "priv.csv"
        other.write_bytes(held.encode("latin-1"))
        for words in ((), ("--force",)):
            ended = run("--count", "--epsilon", 1, "--quote", "--save", other, *words)
            assert ended.exit_code == 2
        assert "priv.csv exists and is not an earlier query" in " ".join(ended.stderr.split())
        assert other.read_bytes() == held.encode("latin-1")

    def test_a_query_is_written_into_a_pipe(self, run, tmp_path):
        """It holds nothing, and is not read first, which would wait for ever."""
        os.mkfifo(pipe := tmp_path / "pipe")
        reader = os.open(pipe, os.O_RDWR)
        try:
            words = ("--count", "--epsilon", 1, "--quote", "--save", pipe, "--force")
            assert run(*words).exit_code == 0
            assert os.read(reader, 10_000).startswith(b'format = "hushed query')
        finally:
            os.close(reader)

    @pytest.mark.parametrize(
        "words",
        [("--count",), ("--user", "patient"), ("--type", "cost=int"), ("--query", "{}")],
    )
    def test_nothing_else_says_what_is_asked(self, ask, words):
        """An option beside the file that asks for something is refused by its name."""
        ended = ask(QUERY_FILE, *words)
        assert ended.exit_code == 2
        assert f"leave {words[0]} out" in " ".join(ended.stderr.split())

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("rows = 5", "this is no query: 'rows'"),
            ("user = ['a']", "'user'"),
            ("aggregates = 'count'", "'aggregates'"),
            ("max_rows_per_user = 1.5", "'max_rows_per_user'"),
            ("user", "this is not TOML"),
            ("user = 'a'\nuser = 'b'", "this is not TOML"),
            ("user = 'nobody'", "there is no column 'nobody'"),
            ("max_row_per_user = 5", "did you mean 'max_rows_per_user'"),
            ("max_row_per_user = 5", "allowed are format, user, max_rows_per_user"),
            ("steps = [{filtr = 'cost > 1'}]", "'steps.0': a step has one of filter, derive, join"),
            ("steps = [{filtr = 'cost > 1'}]", "this one has 'filtr'; did you mean 'filter'?"),
            ("steps = [{derive = 'a', expr = 'cost'}]", "'steps.0.expr' is not known here"),
            ("steps = [{derive = 'a', expr = 'cost'}]", "allowed are derive, expression"),
            ("steps = [{derive = 'a'}]", "'steps.0.expression' is missing"),
            ("steps = ['cost > 1']", "not something of type str"),
            ("steps = [{join = 'cost', keys = []}]", "'steps.0.keys'"),
            ("aggregates = [{kind = 'cuont'}]", "no kind 'cuont'; did you mean 'count'?"),
            ("aggregates = [{kin = 'count'}]", "needs a kind, and this one has 'kin'"),
            ("aggregates = ['count']", "not something of type str"),
            ("groups = {columns = ['city'], key = 1}", "'groups.key' is not known here"),
            ("[columns]\ncost = 'number'", "'columns.cost': Input should be 'int'"),
            (
                "max_rows_per_user = 5\naggregates = [{kind = 'count'}]",
                'there is no user column; write user = "COLUMN" in',
            ),
        ],
    )
    def test_what_is_wrong_is_refused_by_its_part(self, ask, text, words):
        """Exit code 2 and the part; nothing is asked."""
        ended = ask(text)
        assert ended.exit_code == 2
        assert words in " ".join(ended.stderr.split())

    @staticmethod
    def several(folder, *words):
        """Ask with several files of questions."""
        (folder / "visits.csv").write_text(ROWS)
        return CliRunner().invoke(app, ["query", str(folder / "visits.csv"), *map(str, words)])

    def test_several_are_priced_together(self, run, tmp_path):
        """What each costs adds up, and a budget has room for all or not; nothing is asked."""
        one, two = tmp_path / "one.toml", tmp_path / "two.toml"
        for file in (one, two):
            options = ("--user", "patient", "--count", "--max-rows-per-user", 5, "--epsilon", 1)
            assert run(*options, "--quote", "--save", file).exit_code == 0
        both = ("--file", one, "--file", two, "--epsilon", 0.75)
        ended = self.several(tmp_path, *both, "--quote")
        assert ended.exit_code == 0, ended.stderr
        assert "together: epsilon 1.5 for adding or removing one user" in ended.stdout
        assert ended.stdout.count("epsilon 0.75 for adding") == 2
        url = f"sqlite:///{tmp_path / 'joint.db'}"
        with hs.Ledger(url) as ledger:
            limit = hs.Guarantee(epsilon=1.25, neighbours="add-remove", unit="user")
            ledger.open_budget("clinic", limit)
        ended = self.several(
            tmp_path, *both, "--quote", "--ledger", url, "--budget", "clinic", "--json"
        )
        assert ended.exit_code == 1
        found = json.loads(ended.stdout)
        assert found["together"]["epsilon"] == 1.5
        assert [each["epsilon"] for each in found["questions"]] == [0.75, 0.75]
        assert found["refusal"]
        with hs.Ledger(url) as ledger:
            assert not ledger.entries("clinic")

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (("--epsilon", 1), "with --quote all are priced together"),
            (("--quote",), "epsilon"),
            (("--epsilon", 1, "--quote", "--save", "new.toml"), "--save is about one question"),
            (("--epsilon", 1, "--quote", "--count"), "leave --count out"),
        ],
    )
    def test_several_are_not_asked_at_once(self, run, tmp_path, more, said):
        one, two = tmp_path / "one.toml", tmp_path / "two.toml"
        for file in (one, two):
            file.write_text("aggregates = [{kind = 'count'}]\n")
        ended = self.several(tmp_path, "--file", one, "--file", two, *more)
        assert ended.exit_code == 2
        assert said in " ".join(ended.stderr.split())
        assert not (tmp_path / "new.toml").exists()

    def test_several_that_protect_different_things_have_no_common_price(self, run, tmp_path):
        one, two = tmp_path / "one.toml", tmp_path / "two.toml"
        one.write_text("aggregates = [{kind = 'count'}]\n")
        two.write_text("user = 'patient'\nmax_rows_per_user = 2\naggregates = [{kind = 'count'}]\n")
        ended = self.several(tmp_path, "--file", one, "--file", two, "--epsilon", 1, "--quote")
        assert ended.exit_code == 2
        assert "one.toml: one row" in ended.stderr
        assert "two.toml: one user" in ended.stderr
        # Users of two columns are two kinds of people: no sum is a promise to either.
        one.write_text("user = 'city'\nmax_rows_per_user = 2\naggregates = [{kind = 'count'}]\n")
        ended = self.several(tmp_path, "--file", one, "--file", two, "--epsilon", 1, "--quote")
        assert ended.exit_code == 2, ended.stdout
        assert "one user, by city" in " ".join(ended.stderr.split())
        ended = self.several(tmp_path, "--file", one, "--file", one, "--epsilon", 1, "--quote")
        assert "a file is given twice" in ended.stderr

    def test_a_file_that_cannot_be_read_is_refused(self, ask, tmp_path):
        """One that is missing, and one that is not a text."""
        (tmp_path / "bytes.toml").write_bytes(b"note = '\xff'")
        for name, word in (("nowhere.toml", "there is no file"), ("bytes.toml", "UTF-8")):
            ended = ask("", "--file", str(tmp_path / name))
            assert ended.exit_code == 2
            assert word in " ".join(ended.stderr.split())


@pytest.mark.slow
def test_a_quote_explains_how_far_one_user_moves_it(run):
    """With --explain in lines, and always as JSON; without --quote it is refused."""
    words = ("--user", "patient", "--max-rows-per-user", 5, "--count", "--epsilon", 0.5)
    way = "count: one user -> 5 rows kept -> the number of rows moves by 5 -> Laplace noise"
    assert way in run(*words, "--quote", "--explain").stdout
    assert way not in run(*words, "--quote").stdout
    found = json.loads(run(*words, "--quote", "--json").stdout)["distances"]
    assert [(step["of"], step["distance"]) for step in found[0]["steps"]] == [
        ("users", 1),
        ("rows", 5),
        ("answers", 5),
    ]
    assert (found[0]["noise"], found[0]["scale"], found[0]["epsilon"]) == ("Laplace", 10, 0.5)
    refused = run(*words, "--explain")
    assert (refused.exit_code, "--quote" in refused.stderr) == (2, True)


@pytest.mark.parametrize(("option", "first"), [("--top-k", "Rome"), ("--top-k-users", "Oslo")])
def test_a_top_is_chosen_by_rows_or_by_users(tmp_path, option, first):
    """One user has most of the rows of one city; the other one has most users."""
    data = tmp_path / "visits.csv"
    lines = ["who,city", *["1,Rome"] * 300, *[f"{i},Oslo" for i in range(2, 60)]]
    data.write_text("\n".join(lines) + "\n")
    words = ["query", str(data), "--type", "who=int", "--user", "who", "--by", "city"]
    words += ["--keys", "Paris,Rome,Oslo", option, "1", "--epsilon", "9000", "--json"]
    words += ["--max-rows-per-user", "300"]
    found = json.loads(CliRunner().invoke(app, words).stdout)
    assert found["rows"] == [{"city": first, "rank": 1}]
    assert set(found["shortfall"]) == {"rank"}


@pytest.mark.parametrize(
    "words",
    [
        ["--top-k", 2],
        ["--top-k", 2, "--by", "city"],
        ["--top-k", 2, "--by", "city", "--select-partitions"],
        ["--top-k", 1, "--top-k-users", 1, "--by", "city", "--keys", "Rome,Oslo"],
    ],
)
def test_a_top_needs_public_keys(run, words):
    """It is a choice among them, and one query."""
    result = run(*words, "--epsilon", 1)
    assert result.exit_code == 2
    assert "--keys" in result.output


class TestJoins:
    """``--join`` of a public file, and ``--join-users`` of another private table."""

    WARDS = "city,beds,code,coast,share\nRome,1200,007,no,0.5\nOslo,300,12,yes,2\n"

    @pytest.fixture
    def quote(self, run, tmp_path):
        (tmp_path / "wards.csv").write_text(self.WARDS)
        pd.DataFrame({"city": ["Rome"], "code": ["12"]}).to_parquet(tmp_path / "w.parquet")

        def call(file, *words):
            saved = tmp_path / "asked.toml"
            words = ("--join", f"{tmp_path / file}:city", "--count", "--epsilon", 1, *words)
            words = words if "--save" in words else (*words, "--save", saved)
            ended = run(*words, "--quote", "--force")
            return ended, hs.Query.from_toml(saved.read_text()) if ended.exit_code == 0 else None

        return call

    def test_a_public_file_is_the_same_join_as_in_python(self, quote, tmp_path):
        """Whole numbers, decimals and texts as they look; codes with leading zeros are texts."""
        ended, asked = quote("wards.csv", "--where", "beds > 500")
        assert ended.exit_code == 0, ended.stderr
        held = {
            "city": ["Rome", "Oslo"],
            "beds": [1200, 300],
            "code": ["007", "12"],
            "coast": ["no", "yes"],
            "share": [0.5, 2.0],
        }
        table = hs.table(tmp_path / "visits.csv", types={"patient": "int", "cost": "float"})
        assert asked == hs.Query.of(table.join(held, on="city").filter("beds > 500").count())
        ended, asked = quote("w.parquet", "--default", "code=9")
        default = {"code": "9"}  # a text, as the column is
        held = {"city": ["Rome"], "code": ["12"]}
        assert asked == hs.Query.of(table.join(held, on="city", default=default).count())

    def test_a_derived_column_is_joined_by(self, quote, tmp_path):
        """It, and those before it, come before the join; later ones may use what was joined."""
        (tmp_path / "bands.csv").write_text("band,rate\n0,1.5\n1,2.5\n")
        words = ["--derive", "half=cost / 2", "--derive", "band=floor(half / 100)"]
        words += ["--derive", "dear=rate > 2", "--where", "rate < 3"]
        words = ["--join", f"{tmp_path}/bands.csv:band", *words]
        ended, asked = quote("wards.csv", *words)
        assert ended.exit_code == 0, ended.stderr
        assert [type(each).__name__ for each in asked.steps] == [
            *("Derive", "Derive", "Join", "Join", "Filter", "Derive")
        ]

    def test_the_rows_that_match_are_counted(self, run, tmp_path):
        """Rows without a match are left out, or take the stated value."""
        (tmp_path / "wards.csv").write_text("city,beds\nRome,5\n")
        words = ("--join", f"{tmp_path / 'wards.csv'}:city", "--sum", "beds:0:9", "--json")
        for default, most in (((), 5 * 133), (("--default", "beds=2"), 5 * 133 + 2 * 67)):
            found = json.loads(run(*words, *default, "--epsilon", 5000).stdout)
            assert found["rows"][0]["sum_beds"] == pytest.approx(most, abs=0.5)

    def test_a_file_by_users_needs_a_yes_and_price_and_answer_say_what_is_published(
        self, run, tmp_path
    ):
        """A list of the people who are protected is a mistake, almost surely."""
        (tmp_path / "people.csv").write_text("patient,born\n1,1980\n2,1990\n")
        words = ["--join", f"{tmp_path / 'people.csv'}:patient", "--user", "patient", "--count"]
        words += ["--max-rows-per-user", 3, "--epsilon", 1]
        refused = run(*words)
        assert refused.exit_code == 2
        told = " ".join(refused.stderr.split())
        assert "'patient' is the column of the users" in told
        assert "--join-users" in told
        assert "give --users-are-public" in told
        for more in (["--quote"], []):
            ended = run(*words, *more, "--users-are-public")
            assert ended.exit_code == 0, ended.stderr
            told = " ".join(ended.stdout.split())
            assert "joined public table (2 rows; columns patient, born) becomes a part of" in told

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--default", "bed=0"), "--default names 'bed', which no --join or --join-users adds"),
            (("--default", "beds=0"), "default must give the value of each added column"),
            (("--default", "beds"), "--default takes COLUMN=VALUE"),
            (("--join", "wards.csv"), "--join takes FILE:COLUMN"),
            (("--join-users", "people:id"), "--join-users takes TABLE:USER:COLUMN,COLUMN"),
            (("--join-users", "people:id:age"), "this one has no user column"),
        ],
    )
    def test_what_joins_nothing_is_refused(self, quote, words, said):
        """Bad use, told by the option."""
        ended, _ = quote("wards.csv", *words)
        assert ended.exit_code == 2
        assert said in " ".join(ended.stderr.split())

    def test_nothing_is_written_over_a_joined_file(self, quote, tmp_path):
        """Not even by force."""
        ended, _ = quote("wards.csv", "--save", tmp_path / "wards.csv")
        assert (ended.exit_code, "an input of this command" in ended.stderr) == (2, True)
        assert (tmp_path / "wards.csv").read_text() == self.WARDS

    def test_the_private_file_is_no_public_one(self, quote):
        """A join would write all of its rows into the query."""
        ended, _ = quote("visits.csv")
        assert ended.exit_code != 0
        assert "holds the private rows" in " ".join(ended.stderr.split())


@pytest.mark.slow
def test_figures_of_an_answer_and_of_a_price(run, tmp_path):
    """Drawn as asked; a file that is no figure, or an input, is refused before a charge."""
    words = ("--count", "--mean", "cost:0:500", "--epsilon", 1)
    for more, title in (((), "Private answer"), (("--quote",), "Error against epsilon")):
        figure = tmp_path / "a.html"
        ended = run(*words, *more, "--plot", figure)
        assert ended.exit_code == 0, ended.stderr
        assert "figure written to" in ended.stderr
        assert title in figure.read_text()
    other = tmp_path / "notes.svg"
    other.write_text("mine")
    for path, said in ((other, "is not a figure of hushed"), (tmp_path / "a.pdf", ".svg")):
        refused = run(*words, "--plot", path)
        assert refused.exit_code == 2
        assert said in " ".join(refused.stderr.split())
    assert other.read_text() == "mine"
    bins = run("--histogram", "cost:0:500:5", "--epsilon", 1, "--plot", tmp_path / "b.svg")
    assert (bins.exit_code, "--plot draws counts" in bins.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["query", "vists.csv", "--count", "--epsilon", "1"], "did you mean 'visits.csv'?"),
        (["query", "duckdb:///clinc.db", "--count", "--epsilon", "1"], "did you mean 'clinic.db'?"),
        (["query", "visits.csv", "--file", "asked.tml", "--epsilon", "1"], "mean 'asked.toml'?"),
        (["verify", "asked.tmol"], "did you mean 'asked.toml'?"),
        (["compare", "median", "--rows", "5", "--population", "Visit.csv"], "mean 'visits.csv'?"),
        (
            ["compare", "median", "--rows", "5", "--population", "visits.csv", "--column", "ag"],
            "has no column 'ag'; did you mean 'age'? it has age",
        ),
    ],
)
def test_a_misspelt_file_or_column_is_asked_for(words, said, tmp_path, monkeypatch):
    """What stands beside it, and nothing for what may be an address with a password."""
    monkeypatch.chdir(tmp_path)
    for name in ("visits.csv", "clinic.db", "asked.toml", "pass=1.csv"):
        (tmp_path / name).write_text("age\n1\n2\n")
    domain = ["--low", "0", "--high", "9"] if words[0] == "compare" else []
    ended = CliRunner().invoke(app, [*words, *domain])
    assert ended.exit_code == 2
    assert said in " ".join(ended.stderr.split())
    hidden = CliRunner().invoke(app, ["query", "pass=2.csv", "--count", "--epsilon", "1"])
    assert "not shown" in hidden.stderr
    assert "pass=" not in hidden.stderr


def test_a_missing_table_is_not_sent_to_a_ledger_beside_it(tmp_path, monkeypatch):
    """A typing error of another table is still asked about."""
    from hushed._ground.printing import suggest_path

    monkeypatch.chdir(tmp_path)
    (tmp_path / "stays.db").touch()
    assert suggest_path("stays.csv") == ""
    assert "stays.db" in suggest_path("stay.db")
    (tmp_path / "stay.csv").touch()
    assert "stay.csv" in suggest_path("stays.csv")
