"""Columns of a public file on the page of a question: read, joined, grouped by, refused."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from starlette.testclient import TestClient

import hushed as hs
from hushed._web.question import read_question
from hushed.tables import Query
from hushed.workbench._drafts import Drafts
from hushed.workbench._views.joins import join_public
from hushed.workbench._views.preview import preview_answer
from hushed.workbench._views.question import Described

WARDS = {"ward": ["A", "B"], "region": ["north", "south"], "beds": [10, 25]}
ASKED = {
    "join": "wards.csv",
    "group": "region",
    "stat.1.kind": "count",
    "stat.2.kind": "sum",
    "stat.2.column": "beds",
}


@pytest.fixture(scope="module")
def described():
    rows = {"ward": ["A", "B", "C"], "cost": [1.0, 2.0, 3.0]}
    table = hs.table(pa.table(rows), types={"cost": "float"})
    kinds = {"ward": "string", "cost": "float"}
    return Described(table=table, budget="", kinds=kinds, rows=3000)


@pytest.fixture
def wards(tmp_path):
    lines = ["ward,region,beds", "A,north,10", "B,south,25"]
    (tmp_path / "wards.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "wards.csv"


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_is_joined_as_the_method_of_a_table_joins_it(described, wards, ending):
    """Its values are public keys, and its ends public bounds."""
    path = wards.with_suffix(ending)
    if ending == ".parquet":
        parquet.write_table(pa.table(WARDS), path)
    joined = join_public(described, ASKED, path)
    question = read_question(joined, ASKED)
    assert not question.errors
    by_hand = (
        described.table.join(WARDS, on="ward")
        .group_by("region", keys=["north", "south"])
        .count()
        .sum("beds", low=10, high=25)
    )
    assert Query.of(question.table) == Query.of(by_hand)
    preview = preview_answer(joined, question, 100.0)
    assert [each[0] for each in preview.lines[1:]] == ["north", "south"]
    assert all(float(each[1].split()[0]) > 1000 for each in preview.lines[1:])


def test_rows_without_a_match_may_be_kept_with_stated_values(described, wards):
    """One value for each added column; bounds and keys have them, too."""
    fields = ASKED | {"join_default": "beds = 0, region = none"}
    question = read_question(join_public(described, fields, wards), fields)
    by_hand = (
        described.table.join(WARDS, on="ward", default={"beds": 0, "region": "none"})
        .group_by("region", keys=["none", "north", "south"])
        .count()
        .sum("beds", low=0, high=25)
    )
    assert Query.of(question.table) == Query.of(by_hand)


@pytest.mark.parametrize(
    ("text", "more", "field", "words"),
    [
        ("ward,beds\nA,1\nA,2\n", {}, "join", "two rows for"),
        ("city,beds\nA,1\n", {}, "join_on", "no column of the same name"),
        ("ward,cost\nA,1\n", {"join_on": "ward"}, "join", "already"),
        ("ward,cost,beds\nA,1,2\n", {}, "join_on", "say by which column: ward, cost"),
        ("ward,beds\nA,\n", {}, "join", "no missing cell"),
        ("ward,beds\nA\n", {}, "join", "not all of one width"),
        ("", {}, "join", "no CSV file with a line of names"),
        ("ward,beds,region\nA,1,n\n", {"join_default": "beds=0"}, "join_default", "region, too"),
        ("ward,beds\nA,1\n", {"join_default": "<b>"}, "join_default", "column = value"),
    ],
)
def test_what_cannot_be_joined_is_said_at_its_field(described, wards, text, more, field, words):
    """Nothing is asked then, not even without the columns."""
    wards.write_text(text)
    fields = ASKED | {"group": ""} | more
    question = read_question(join_public(described, fields, wards), fields)
    assert question.table is None
    assert words in question.errors[field]


@pytest.mark.parametrize("key", ["1_0", "١٠", "1e1"])
def test_a_key_that_python_alone_reads_as_ten_is_refused(tmp_path, key):
    """It would be joined to the rows of 10."""
    table = hs.table(pa.table({"ward": [10, 11]}))
    described = Described(table=table, budget="", kinds={"ward": "int"}, rows=3000)
    (tmp_path / "wards.csv").write_text(f"ward,beds\n{key},1\n")
    question = read_question(join_public(described, ASKED, tmp_path / "wards.csv"), ASKED)
    assert "has keys that are no int" in question.errors["join_on"]


@pytest.fixture
def asked(browser: TestClient, folder: Path, wards: Path) -> str:
    """Address of the question about a table; one with a budget."""
    (folder / "wards.csv").write_text(wards.read_text())
    with hs.Ledger(f"sqlite:///{folder / 'ledger.db'}") as book:
        book.open_budget("stays", hs.Guarantee(epsilon=3.0, neighbours="add-remove"))
    told = {"where": "file", "file": "stays.csv", "protect": "row", "budget": "stays"}
    told |= {"col.1.name": "ward", "col.1.kind": "string"}
    fields = {f"data.{name}": text for name, text in told.items()}
    draft = Drafts(folder / ".hushed" / "drafts.db").create("table", "Stays", fields)
    return f"/tables/{draft.id}"


@pytest.mark.slow
def test_the_question_with_a_join_is_released_and_a_private_file_is_not_joined(
    browser, folder, asked
):
    """The page of the release says what is joined; a copy of private rows is refused."""
    form = ASKED | {"epsilon": "1", "moved": "epsilon"}
    page = browser.post(f"{asked}/question", data=form)
    assert page.url.path == f"{asked}/release"
    assert "beds, region: joined by ward; rows without a match are left out" in page.text
    (folder / "copy.csv").write_bytes((folder / "stays.csv").read_bytes())
    for name in ("copy.csv", "../ledger.db", "nothing.csv"):
        refused = browser.post(f"{asked}/question", data=form | {"join": name})
        assert refused.status_code == 422
        assert 'id="join-error">' in refused.text
    assert "P1" not in refused.text
