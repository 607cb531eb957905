"""Where rows lie: folders, databases in files, wide tables; and copies of what is private."""

import shutil

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

import hushed as hs
from hushed.errors import HushedError
from hushed.workbench._marks import is_copy, mark_source
from hushed.workbench._privates import Private, require_public
from hushed.workbench._views.columns import MOST_COLUMNS
from hushed.workbench._views.data import describe_data
from hushed.workbench._views.exports import Source, write_question
from hushed.workbench._views.suggestions import settle_suggestions
from hushed.workbench._workspace import find_table, list_tables, open_workspace

COST = {
    "where": "file",
    "protect": "row",
    "col.0.name": "cost",
    "col.0.kind": "float",
    "col.0.low": "0",
    "col.0.high": "9",
}


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    """A file that is added to it is noticed, and a link in it is refused."""
    (tmp_path / "visits").mkdir()
    for part in range(2):
        parquet.write_table(pa.table({"cost": [1.0]}), tmp_path / "visits" / f"{part}.parquet")
    workspace = open_workspace(tmp_path)
    assert "visits/" in list_tables(workspace)
    fields = COST | {"file": "visits/"}
    found = describe_data(workspace, fields)
    assert found.errors == {}
    assert found.described.table.count().release(epsilon=1e6).values["count"] == (2,)
    parquet.write_table(pa.table({"cost": [1.0]}), tmp_path / "visits" / "2.parquet")
    assert describe_data(workspace, fields | {"mark": found.mark}).stale
    (tmp_path / "visits" / "3.parquet").symlink_to(tmp_path / "visits" / "2.parquet")
    with pytest.raises(HushedError, match="link"):
        find_table(workspace, "visits/")
    for name in ("../", "visits/../", ".hushed/", "/"):
        with pytest.raises(HushedError):
            find_table(workspace, name)


def test_a_changed_duckdb_file_is_noticed(tmp_path):
    """Also where what was written stands in the file beside it still."""
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE stays AS SELECT 1.5 AS cost")
    workspace = open_workspace(tmp_path)
    fields = COST | {"file": "clinic.duckdb", "place": "stays"}
    found = describe_data(workspace, fields)
    assert (found.errors, found.stale) == ({}, False)
    beside = path.with_name("clinic.duckdb.wal")
    beside.write_bytes(b"x")
    assert mark_source(f"duckdb:///{path}") != found.mark
    beside.unlink()
    assert mark_source(f"duckdb:///{path}") == found.mark
    path.write_bytes(path.read_bytes() + b"\0" * 4096)
    assert mark_source(f"duckdb:///{path}") != found.mark


@pytest.mark.slow
def test_of_a_wide_table_used_columns_stay_and_others_are_found(tmp_path):
    """As many as may be shown can be in use, and one more is still found by its name."""
    names = [f"c{i:03d}" for i in range(450)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n")
    fields = {"where": "file", "file": "wide.csv", "protect": "person", "user": "c449"}
    for i in range(MOST_COLUMNS + 1):
        fields |= {f"col.{i}.name": names[i], f"col.{i}.kind": "float"}
    workspace = open_workspace(tmp_path)
    shown = [each.name for each in describe_data(workspace, fields | {"search": "c44"}).columns]
    assert shown == [*names[: MOST_COLUMNS + 1], *names[440:]]
    every = describe_data(workspace, {"where": "file", "file": "wide.csv"})
    assert len(every.columns) == MOST_COLUMNS
    assert every.hidden == 450 - MOST_COLUMNS


@pytest.mark.filterwarnings("ignore:The cells of this file are separated by semicolons")
@pytest.mark.slow_cases("command")
@pytest.mark.parametrize("kind", ["python", "command"])
def test_exports_of_a_file_without_names_have_its_header(tmp_path, kind):
    """And a wrong header is told at its field."""
    (tmp_path / "bare.csv").write_text("1;2\n3;4\n")
    fields = COST | {"file": "bare.csv", "first": "record", "header": "cost;nights"}
    workspace = open_workspace(tmp_path)
    described = describe_data(workspace, fields).described
    how = described.reading.as_arguments()
    source = Source(address=described.source, place=described.place, **how)
    asked, terms = hs.Query.of(described.table.count()), {"epsilon": 1e6}
    written = write_question(
        kind, asked, source, terms if kind == "command" else {}, name="q"
    ).content.decode()
    if kind == "python":
        found = {}
        exec(written, found)
        assert found["query"].release(epsilon=1e6).values["count"] == (2,)
    else:
        assert "--header 'cost;nights'" in written
    wrong = describe_data(workspace, fields | {"header": "cost;cost"})
    assert "no column twice" in wrong.errors["header"]


def test_a_copy_of_a_private_file_is_not_public_under_another_name(tmp_path):
    """One byte more, or another one, is another file: that is not noticed."""
    private = tmp_path / "stays.csv"
    private.write_text("cost\n1\n2\n")
    for name in ("copy.csv", "changed.csv", "longer.csv"):
        shutil.copy(private, tmp_path / name)
    (tmp_path / "changed.csv").write_text("cost\n1\n3\n")
    (tmp_path / "longer.csv").write_text("cost\n1\n2\n\n")
    (tmp_path / "hard.csv").hardlink_to(private)
    copies = {e: is_copy(tmp_path / e, private) for e in ("copy.csv", "hard.csv", "changed.csv")}
    assert copies == {"copy.csv": True, "hard.csv": True, "changed.csv": False}
    assert not is_copy(tmp_path / "longer.csv", private)
    with pytest.raises(HushedError, match="private table itself"):
        require_public(tmp_path / "copy.csv", private, ())
    with pytest.raises(HushedError, match="the draft Stays calls private"):
        require_public(tmp_path / "copy.csv", None, (Private(path=private, draft="Stays"),))
    fields = COST | {"file": "stays.csv", "public": "copy.csv"}
    found = describe_data(open_workspace(tmp_path), fields)
    assert found.described is None
    assert "private table itself" in found.errors["public"]


@pytest.mark.slow
def test_the_population_of_a_function_is_no_copy_of_private_rows(browser, folder):
    """Neither of its own nor of those of another draft."""
    (folder / "copy.csv").write_bytes((folder / "stays.csv").read_bytes())
    page = str(browser.post("/functions/new").url)
    typed = {"population": "file", "population_file": "copy.csv"}
    said = browser.post(f"{page}/run", data=typed | {"data": "stays.csv"}).text
    assert "private table itself" in said
    browser.post(f"{page}/draft", data=typed)
    assert "calls private" not in browser.post(f"{page}/run", data=typed).text
    table = str(browser.post("/tables").url)
    browser.post(f"{table}/live", data={"where": "file", "file": "stays.csv"})
    assert "calls private" in browser.post(f"{page}/run", data=typed).text


def test_what_was_suggested_goes_with_the_table_that_suggested_it():
    """What was changed by hand stays."""
    before = {
        "public": "public.csv",
        "col.0.kind": "float",
        "col.0.low": "0",
        "col.0.high": "99",
        "col.0.origin": "public.csv",
        "col.0.taken": "kind,low,high",
    }
    typed = before | {"col.0.high": "500"}
    kept = settle_suggestions(before, typed, holds=lambda: True)
    assert kept == typed | {"col.0.taken": "kind,low"}
    gone = {"col.0.kind": "", "col.0.low": "", "col.0.origin": "", "col.0.taken": ""}
    other = settle_suggestions(before, typed | {"public": "other.csv"}, holds=lambda: True)
    assert other == typed | {"public": "other.csv"} | gone
    assert settle_suggestions(before, typed, holds=lambda: False) == typed | gone
