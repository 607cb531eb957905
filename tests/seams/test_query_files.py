"""What a query is written to, and from: no file is lost, and what is written runs."""

import json
import shlex

import numpy as np
import pytest
from tests.commands import ended

import hushed as hs
from hushed.errors import KeyInUse, ParameterError
from hushed.tables import _question
from hushed.tables._question_errors import explain_query

COUNT = hs.Query(aggregates=[{"kind": "count"}])


@pytest.mark.slow_cases("link.db")
@pytest.mark.parametrize("target", ["rows.db", "link.db", "rows.db.wal"])
def test_a_saved_query_is_not_written_over_a_database(target, tmp_path):
    """A DuckDB file named by its address was destroyed by --save with --force."""
    import duckdb

    with duckdb.connect(str(tmp_path / "rows.db")) as database:
        database.execute("CREATE TABLE rows AS SELECT range AS age FROM range(9)")
    (tmp_path / "link.db").symlink_to(tmp_path / "rows.db")
    before = (tmp_path / "rows.db").read_bytes()
    words = ["query", "duckdb:///rows.db", "--count", "--epsilon", "1", "--quote", "--force"]
    run = ended(*words, "--save", target, cwd=tmp_path)
    assert run.returncode == 2
    assert "an input of this command" in run.stderr
    assert (tmp_path / "rows.db").read_bytes() == before
    assert not (tmp_path / "rows.db.wal").exists()


@pytest.mark.parametrize("epsilon", [np.float64(0.5), np.float32(0.5), 0.5])
def test_a_notebook_runs_whatever_type_its_epsilon_has(epsilon):
    """NumPy's own way to write a number is no number where NumPy is not imported."""
    cells = json.loads(COUNT.to_notebook("rows.csv", epsilon=epsilon))["cells"]
    assert cells[2]["source"] == "query.quote(epsilon=0.5)"
    assert "costs epsilon 0.5 again" in cells[0]["source"]


@pytest.mark.parametrize("epsilon", ["1); import os", float("nan"), 0.0, -1.0, True])
@pytest.mark.parametrize("form", ["to_cli", "to_notebook"])
def test_an_epsilon_that_is_none_is_not_exported(form, epsilon):
    """It would fail, or run something else, where the export is run."""
    with pytest.raises(ParameterError, match="epsilon"):
        getattr(COUNT, form)("rows.csv", epsilon=epsilon)


def test_a_file_whose_name_begins_with_a_dash_is_no_option(tmp_path):
    """The command that is written asks the same of it."""
    (tmp_path / "-rows.csv").write_text("age\n1\n2\n")
    words = shlex.split(COUNT.to_cli("-rows.csv", epsilon=1.0))[1:]
    run = ended(*words[:-2], "--quote", *words[-2:], cwd=tmp_path)
    assert (run.returncode, "count: within" in run.stdout) == (0, True)


LONG = "0x" + "f" * 6000  # of more digits than Python writes


@pytest.mark.parametrize(
    "parts",
    [
        'aggregates = [{kind = "histogram", column = "age", low = 0, high = 1, bins = LONG}]',
        'groups = {columns = ["age"], keys = [[LONG]]}',
        "max_rows_per_user = LONG",
        'self = "x"',
    ],
)
def test_odd_parts_of_a_file_are_refused_by_name(parts):
    """Each ended in an error of Python's, at best when the query was written."""
    with pytest.raises(ParameterError, match="this is no query"):
        hs.Query.from_toml(parts.replace("LONG", LONG))


def test_an_exported_query_reads_the_answer_that_is_stored(tmp_path):
    """It declares the types of the columns that it uses, and the others do not matter."""
    (tmp_path / "rows.csv").write_text("who,age,cost\n1,30,2\n2,40,3\n")
    table = hs.table(str(tmp_path / "rows.csv"), types={"age": "int", "cost": "float"})
    first = table.filter("age > 3").count()
    names = {}
    exec(hs.Query.of(first).to_python(str(tmp_path / "rows.csv")), names)
    other = hs.table(str(tmp_path / "rows.csv"), types={"age": "float"}).filter("age > 3").count()
    with hs.Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.open_budget("b", hs.Guarantee(epsilon=3.0, neighbours="add-remove"))
        terms = {"epsilon": 1.0, "ledger": ledger, "budget": "b", "key": "may"}
        answer = first.release(**terms)
        assert names["query"].release(**terms) == answer
        assert ledger.balance("b").epsilon_left == 2.0
        with pytest.raises(KeyInUse):
            other.release(**terms)


@pytest.mark.parametrize(
    "text",
    [
        "a." * 20_000 + "b = 1",
        "[" + "'='. " * 20_000 + "b]",
        'x = ["""\n"" """"", {' + '"{".' * 20_000 + 'b = 1}, "z"]',
    ],
    ids=["bare", "quoted", "behind a string"],
)
def test_a_name_of_many_parts_is_refused_at_once(text):
    """The parser takes the square of their number: 400 kilobytes took more than four minutes."""
    with pytest.raises(ParameterError, match="too many dots"):
        hs.Query.from_toml(text)


def test_dots_in_strings_are_no_parts():
    """Public keys may have any number of them."""
    keys = ["1." * 100, 'a"' + "." * 100, "'" * 3 + "." * 100, "\n" + "." * 100, "#" + "." * 99]
    query = hs.Query(groups={"columns": ["k"], "keys": [keys]}, aggregates=[{"kind": "count"}])
    assert hs.Query.from_toml(query.to_toml()) == query
    loose = 'x = """' + "." * 99 + '""" # ' + "." * 99
    with pytest.raises(ParameterError, match="this is no query"):
        hs.Query.from_toml(loose)


@pytest.mark.parametrize("part", ["steps", "aggregates"])
def test_more_parts_than_a_table_takes_are_refused_before_it_is_asked(part):
    """Thousands of them took a minute to be refused."""
    each = {"kind": "count"} if part == "aggregates" else {"filter": "x > 1"}
    with pytest.raises(ParameterError, match=f"'{part}': Tuple should have at most"):
        hs.Query(**{part: [each] * 101})


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_query_that_is_refused_leaves_no_file(form, tmp_path):
    """The same command, once there is a budget, was refused for the file that it had left."""
    (tmp_path / "rows.csv").write_text("age\n1\n2\n")
    words = ["query", "rows.csv", "--count", "--epsilon", "1", *form, "--save", "asked.toml"]
    words += ["--ledger", "sqlite:///book.db", "--budget", "study", "--out", "answer.json"]
    with hs.Ledger(f"sqlite:///{tmp_path}/book.db") as book:
        assert ended(*words, cwd=tmp_path).returncode != 0
        assert not (tmp_path / "asked.toml").exists()
        limit = hs.Guarantee(epsilon=1.0, neighbours="add-remove")
        book.open_budget("study", limit)
        assert ended(*words, cwd=tmp_path).returncode == 0
    assert hs.Query.from_toml((tmp_path / "asked.toml").read_text()).aggregates == COUNT.aggregates
    assert hs.Answer.from_json((tmp_path / "answer.json").read_text()).guarantee.epsilon == 1.0


MANY = {f"c{i}": [] for i in range(1000)}
GROUPED = {"columns": ["k"]}
JOIN = {"join": "k", "keys": ["a"], "columns": {"c": ["x"]}}
QUANTILES = {"kind": "quantiles", "column": "c", "low": 0, "high": 1}
USERS = {"join_users": "t", "user": "u"}


@pytest.mark.parametrize(
    "parts",
    [
        {"steps": [[]] * 1000},
        {"steps": [{"filter": 1}] * 1000},
        {"steps": [JOIN | {"keys": [[]] * 1000}]},
        {"steps": [JOIN | {"columns": MANY | {"z": [[]]}}]},
        {"steps": [JOIN | {"columns": {"c": [[]] * 1000}}]},
        {"steps": [JOIN | {"default": MANY}]},
        {"steps": [USERS | {"columns": MANY}]},
        {"steps": [USERS | {"columns": {"c": "int"}, "default": MANY}]},
        {"aggregates": [{}] * 1000},
        {"aggregates": [QUANTILES | {"probabilities": [[]] * 1000}]},
        {"groups": {"columns": [1] * 1000}},
        {"groups": GROUPED | {"keys": [[[]] * 1000]}},
        {"groups": GROUPED | {"keys": [1] * 1000}},
        {"columns": MANY},
    ],
)
def test_what_is_wrong_a_thousand_times_is_looked_at_once(parts, monkeypatch):
    """Whoever may ask a server nothing kept it busy for seconds with one body of 60 kB."""
    seen = []

    def explain(error, query, given):
        seen.append(error.error_count())
        return explain_query(error, query, given)

    monkeypatch.setattr(_question, "explain_query", explain)
    with pytest.raises(ParameterError, match="this is no query"):
        hs.Query(**parts)
    assert max(seen) < 50
