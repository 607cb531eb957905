"""The language of conditions: its page is complete, and its errors name the way out."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import ParameterError
from hushed.tables._expressions import ARITHMETIC, COMPARISONS, FUNCTIONS, parse

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
COLUMNS = {
    "cost": "float",
    "age": "int",
    "city": "string",
    "insured": "bool",
    "born": "date",
    "seen": "timestamp",
    "length of stay": "int",
    "day": "string",
    "wide": "int",
}


def page() -> list[list[str]]:
    section = PAGE.read_text().partition("### Conditions and derived columns\n")[2]
    rows = section.partition("\n## ")[0].splitlines()
    lines = [row.strip("| ").split(" | ") for row in rows if row.startswith("| ")]
    return lines[1:]


def test_the_page_names_all_of_the_language() -> None:
    named = " ".join(what for what, _, _ in page())
    for each in (*ARITHMETIC.values(), *COMPARISONS.values(), "and", "or", "not"):
        assert f"`{each}`" in named, each
    for each in FUNCTIONS:
        assert f"`{each}(x)`" in named, each
    used = " ".join(example for _, example, _ in page())
    for each in (*ARITHMETIC.values(), *COMPARISONS.values(), *FUNCTIONS, "True", "column"):
        assert each in used, each


def test_every_example_of_the_page_is_read() -> None:
    examples = [each for _, example, _ in page() for each in re.findall(r"`([^`]+)`", example)]
    assert len(examples) > 20
    for each in examples:
        parse(each, COLUMNS)


def test_a_function_that_is_not_on_the_page_is_refused() -> None:
    named = set(re.findall(r"`(\w+)\(x\)`", " ".join(what for what, _, _ in page())))
    assert named == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("born < '2024-13-01'", "there is no day or time '2024-13-01'"),
        ("seen < '2024-03-01 25:00'", "there is no day or time '2024-03-01 25:00'"),
        ("born == '01.03.2024'", "'01.03.2024' is no date: write 'YYYY-MM-DD'"),
        ("born in ['01.03.2024']", "'01.03.2024' is no date: write 'YYYY-MM-DD'"),
        ("seen < 'noon'", "is no timestamp: write 'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM'"),
        ("born == date('2024-03-01')", "a date or time is written as a string, 'YYYY-MM-DD'"),
        ("seen == timestamp('2024')", "a date or time is written as a string, 'YYYY-MM-DD'"),
        ("wide == 9223372036854775813", "from -2**63 to 2**63 - 1 = 9223372036854775807"),
        ("born < 2024", "allowed are columns, numbers, strings, dates as 'YYYY-MM-DD'"),
    ],
)
def test_a_constant_that_cannot_be_meant_is_explained(text: str, told: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse(text, COLUMNS)
    assert told in str(refused.value)
    assert "to read strings" not in str(refused.value)
    assert "finite" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("day < '2024-03-01'", "dates, declare the column type ... types={'day': 'date'}"),
        ("'2024-03-01' <= day", "dates, declare the column type ... types={'day': 'date'}"),
        (
            "day < '2024-03-01 12:00'",
            "times, declare the column type ... types={'day': 'timestamp'}",
        ),
        ("day < '5'", "numbers, declare the column type ... types={'day': 'float'}"),
        ("day < 5", "numbers, declare the column type ... types={'day': 'float'}"),
        ("year(day) == 2024", "dates, declare the column type ... types={'day': 'date'}"),
        ("day < born", "dates, declare the column type ... types={'day': 'date'}"),
    ],
)
def test_a_column_of_strings_is_to_be_declared(text: str, kind: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse(text, COLUMNS)
    start, end = kind.split(" ... ")
    assert f"to read strings as {start}" in str(refused.value)
    assert str(refused.value).endswith(end)


@pytest.mark.parametrize(
    "text", ["seen - born", "born - seen", "cost - seen", "abs(born)", "day - city", "-born"]
)
def test_a_difference_of_dates_is_made_where_the_table_is(text: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse(text, COLUMNS)
    assert (
        "differences of dates are not in the language: make a column of days where the table is "
        "made"
    ) in str(refused.value)
    assert "to read strings" not in str(refused.value)


@pytest.mark.parametrize("text", ["insured + 1", "year(cost) == 2024", "not cost", "born + 1"])
def test_only_strings_are_to_be_declared(text: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse(text, COLUMNS)
    assert "is needed here" in str(refused.value)
    assert "declare" not in str(refused.value)


def test_a_wide_number_is_asked_as_a_string() -> None:
    frame = pd.DataFrame({"wide": pd.Series([2**63 + 5, 1], dtype="uint64")})
    table = hs.table(frame, types={"wide": "string"}).filter("wide == '9223372036854775813'")
    assert 0.5 < table.count().release(epsilon=1e4).value("count") < 1.5


def test_the_command_spells_the_type_of_dates(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("customer,day\nA,2024-01-01\n")
    asked = ["query", str(path), "--where", "day < '2024-03-01'", "--count", "--epsilon", "1"]
    done = CliRunner().invoke(app, asked)
    told = " ".join(done.output.split())
    assert "to read strings as dates, declare the column type: --type day=date" in told


def test_a_question_in_a_file_writes_the_types_of_dates_there(tmp_path: Path) -> None:
    path, question = tmp_path / "orders.csv", tmp_path / "question.toml"
    path.write_text("customer,day\nA,2024-01-01\n")
    question.write_text(
        "steps = [{ filter = \"day < '2024-03-01'\" }]\naggregates = [{ kind = 'count' }]\n"
    )
    asked = ["query", str(path), "--file", str(question), "--epsilon", "1"]
    told = " ".join(CliRunner().invoke(app, asked).output.split())
    assert "to read strings as dates, write the types under columns in question.toml" in told
