"""Columns of another private table of the same people: read, joined, previewed, released."""

import json

import duckdb
import pyarrow as pa
import pytest

import hushed as hs
from hushed._web.question import read_question
from hushed.tables import Query
from hushed.workbench._drafts import Drafts
from hushed.workbench._views.besides import join_private
from hushed.workbench._views.preview import MADE_UP, preview_answer
from hushed.workbench._views.question import Described

KINDS = {"who": "int", "cost": "float"}
ASKED = {
    "beside": "people",
    "beside.user": "pid",
    "beside.2.add": "age",
    "beside.3.add": "sex",
    "beside.3.keys": "f, m",
    "max_rows": "2",
    "group": "sex",
    "stat.1.kind": "count",
    "stat.2.kind": "mean",
    "stat.2.column": "age",
    "stat.2.low": "0",
    "stat.2.high": "100",
}


def fill(path):
    """Write a database with 300 stays of 100 people, of whom 20 are in no other table."""
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE stays AS SELECT range % 100 AS who, 10.0 AS cost FROM range(300)"
        )
        made.execute(
            "CREATE TABLE people AS SELECT range AS pid, 40 AS age, "
            "CASE WHEN range < 60 THEN 'f' ELSE 'm' END AS sex, 1.5 AS weight, "
            "TIMESTAMP '2024-01-01 10:00:00' AS born FROM range(80)"
        )
    return f"duckdb:///{path}"


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    source = fill(tmp_path_factory.mktemp("tables") / "clinic.duckdb")
    table = hs.table(source, "stays", user="who", types={"cost": "float"})
    public = hs.table(pa.table({"who": [1], "cost": [1.0]}), user="who")
    return Described(table=table, budget="", kinds=KINDS, rows=3000, public=public)


def test_the_question_is_that_of_the_method_and_its_preview_is_made_up(described):
    """The public table has no such columns, so that no preview is drawn from it."""
    joined = join_private(described, ASKED)
    question = read_question(joined, ASKED)
    assert not question.errors
    by_hand = (
        described.table.join_users("people", user="pid", columns=["age", "sex"])
        .bound_contributions(max_rows_per_user=2)
        .group_by("sex", keys=["f", "m"])
        .count()
        .mean("age", low=0, high=100)
    )
    assert Query.of(question.table) == Query.of(by_hand)
    preview = preview_answer(joined, question, 100.0)
    assert preview.headline == MADE_UP
    assert [each[0] for each in preview.lines[1:]] == ["f", "m"]


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"beside": "persons"}, "beside", "people"),
        ({"beside.user": "sex"}, "beside", "of one type"),
        ({"beside.user": "nobody"}, "beside.user", "pid"),
        ({"beside.2.add": "", "beside.3.add": ""}, "beside", "choose the columns"),
        ({"beside.2.rest": "30"}, "beside.3.rest", "too, or for none"),
        ({"beside.2.rest": "x", "beside.3.rest": "f"}, "beside.2.rest", "of type int"),
        ({"beside.2.rest": "1_0", "beside.3.rest": "f"}, "beside.2.rest", "of type int"),
        ({"beside.2.keys": "1_0"}, "beside.2.keys", "whole number"),
        ({"beside.2.keys": "x"}, "beside.2.keys", "whole number"),
        ({"beside.4.add": "weight", "beside.4.keys": "1.5"}, "beside.4.keys", "of type float"),
        ({"beside.5.add": "born", "beside.5.keys": "now"}, "beside.5.keys", "of type timestamp"),
        (
            {"beside.2.rest": "3", "beside.3.rest": "f", "beside.5.add": "born"}
            | {"beside.5.rest": "now"},
            "beside",
            "born",
        ),
        ({"beside.3.keys": ""}, "keys", "no public keys"),
    ],
)
def test_what_cannot_be_joined_is_said_at_its_field(described, more, field, words):
    """Nothing is asked then, not even without the columns."""
    fields = ASKED | more
    question = read_question(join_private(described, fields), fields)
    assert question.table is None
    assert words in question.errors[field]


@pytest.mark.slow
def test_what_was_joined_is_shown_released_and_exported(browser, folder):
    """The page of the release tells both tables; the files ask the same question."""
    fill(folder / "clinic.duckdb")
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        book.open_budget("stays", hs.Guarantee(epsilon=400, neighbours="add-remove", unit="user"))
    told = {"where": "file", "file": "clinic.duckdb", "place": "stays", "budget": "stays"}
    told |= {"protect": "person", "user": "who", "max_rows": "2"}
    told |= {"col.1.name": "cost", "col.1.kind": "float"}
    fields = {f"data.{name}": text for name, text in told.items()}
    draft = Drafts(folder / ".hushed" / "drafts.db").create("table", "Stays", fields)
    alone = browser.get(f"/tables/{draft.id}/question").text
    assert "Columns of another private table of the same people" in alone
    form = ASKED | {"epsilon": "300", "moved": "epsilon"}
    page = browser.post(f"/tables/{draft.id}/question", data=form)
    assert page.url.path == f"/tables/{draft.id}/release", page.text
    assert "those in people among them" in page.text
    assert "age, sex: of one row of the same person in people" in page.text
    again = browser.get(f"/tables/{draft.id}/question").text
    assert 'value="sex" checked' in again
    assert 'value="age" checked' in again
    program = browser.get(f"/tables/{draft.id}/question/export/python?path=yes").text
    made = {}
    exec(program, made)
    joined = json.loads(Query.of(made["query"]).to_json())["steps"][0]
    assert (joined["join_users"], joined["user"]) == ("people", "pid")
    found = made["query"].release(epsilon=300)
    assert [round(each) for each in found.values["count"]] == [120, 40]
