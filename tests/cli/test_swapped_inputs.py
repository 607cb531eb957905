"""What a command is given in the wrong place is refused in words, and nothing private is shown."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.commands import ended

import hushed as hs
from hushed.cli._inputs import read_population
from hushed.errors import PrivateRowsAsPopulation
from hushed.ledger import Ledger
from hushed.plots import certificate_page

SECRET = "Mergelstetten"
HOLDS = f"city,cost\nBonn,4711.5\n{SECRET},70.25\n"
# What each command is given, and where; {} is what is swapped.
COMMANDS = {
    "query": "query {} --count --epsilon 1",
    "statistic": "statistic median {} --column cost --low 0 --high 9 --epsilon 1",
    "release": "release {} f.py:f --header --population uniform:0,1 --gamma 0.3 --epsilon 1",
    "population": "release stays.csv f.py:f --header --population {} --gamma 0.3 --epsilon 1",
    "blocks": "blocks {} f.py:f --header --low 0 --high 1 --epsilon 2",
    "find-bound": "find-bound {} --column cost --epsilon 0.5",
    "verify": "verify {}",
    "certify": "certify {}",
    "study": "study {}",
    "report": "report {} b",
    "ledger": "ledger show {} b",
    "charge": "query stays.csv --count --epsilon 1 --budget b --ledger {}",
    "question": "query stays.csv --epsilon 1 --file {}",
    "key": "keys show {}",
}
FILES = (
    "sqlite:///x.db", "x.db", "stays.csv", "cert.json", "folder", "empty.csv", "binary.bin",
    "https://example.org/x.csv", "nothere.csv", "f.py",
)  # fmt: skip
# What each of them takes; a question that is empty has no aggregate, which is said.
RIGHT = {
    ("query", "stays.csv"), ("statistic", "stays.csv"), ("find-bound", "stays.csv"),
    ("verify", "cert.json"), ("study", "cert.json"), ("report", "sqlite:///x.db"),
    ("ledger", "sqlite:///x.db"), ("charge", "sqlite:///x.db"), ("release", "stays.csv"),
    ("blocks", "stays.csv"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swapped")
    (folder / "folder").mkdir()
    (folder / "empty.csv").write_text("")
    (folder / "binary.bin").write_bytes(bytes(range(256)) + SECRET.encode())
    (folder / "stays.csv").write_text(HOLDS)
    (folder / "f.py").write_text("def f(rows): return float(rows.mean())\n")
    limit = hs.Guarantee(epsilon=5.0, neighbours="add-remove")
    with pytest.MonkeyPatch.context() as patch, hs.Ledger(f"sqlite:///{folder}/x.db") as ledger:
        patch.chdir(folder)
        ledger.open_budget("b", limit)
        answer = hs.table("stays.csv").count().release(epsilon=0.5, ledger=ledger, budget="b")
    (folder / "cert.json").write_text(hs.certify(answer).to_json())
    return folder


def _entries(folder: Path) -> int:
    with hs.Ledger(f"sqlite:///{folder}/x.db") as ledger:
        return ledger.balance("b").entries


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_what_is_given_in_the_wrong_place_is_refused(name: str, folder: Path) -> None:
    """Exit code 2 (1 for the private rows as public ones), one error, no private cell."""
    before = _entries(folder)
    never = ("Traceback", SECRET, "4711", "did you mean 'folder'")
    for given in FILES:
        if (name, given) in RIGHT:
            continue
        end = ended(*COMMANDS[name].format(given).split(), cwd=folder)
        told = end.stderr
        assert end.returncode == (1 if (name, given) == ("population", "stays.csv") else 2), given
        assert not end.stdout, given
        assert "Error: " in told or ": " in told.splitlines()[-1]
        assert not [each for each in never if each in told], given
    assert _entries(folder) == before


@pytest.mark.parametrize("command", ["certify", "verify", "study", "release", "blocks"])
def test_the_address_of_a_ledger_is_known_as_one(command: str, folder: Path) -> None:
    """And what reads a ledger is named."""
    end = ended(*COMMANDS[command].format("sqlite:///x.db").split(), cwd=folder)
    told = " ".join(end.stderr.split())
    assert "that is the address of a ledger: hushed ledger show and report read one" in told
    address = "postgresql://me:4711@host/rows"  # of a ledger, or of private rows
    told = " ".join(ended(*COMMANDS[command].format(address).split(), cwd=folder).stderr.split())
    assert "that is the address of a database: hushed query reads a table in one" in told
    assert "4711" not in told


def test_query_says_where_a_ledger_and_a_question_go(folder: Path) -> None:
    """A ledger or a question as the table, and a table or a ledger as the question."""
    (folder / "question.toml").write_text("")
    (folder / "x.sqlite").write_text("")
    for words, told in (
        ("query sqlite:///x.db", "sqlite:// is the address of a ledger (ledger=, --ledger)"),
        ("query sqlite:///x.db", "sqlite3 -header -csv shop.sqlite 'SELECT * FROM stays'"),
        ("query x.sqlite", "a table in SQLite is copied to a CSV file first: sqlite3 -header"),
        ("query x.db", "and a ledger by ledger=, or --ledger"),
        ("query question.toml", "a question in a file is read by hs.Query.from_toml, or --file"),
        ("query stays.csv --file stays.csv", "stays.csv: this is not TOML"),
        ("query stays.csv --file stays.csv", "hushed query stays.csv --file question.toml"),
        ("query stays.csv --query question.toml", "--file the name of a file of one"),
        ("query stays.csv --file x.db", "x.db: this is not text in UTF-8; --file takes a question"),
    ):
        end = ended(*words.split(), "--epsilon", 1, cwd=folder)
        assert end.returncode == 2
        assert told in " ".join(end.stderr.split())


@pytest.mark.parametrize("command", ["query", "statistic median"])
def test_a_spreadsheet_is_called_that(command: str, folder: Path) -> None:
    """With how it is saved, for whom a database or Parquet is no help."""
    (folder / "stays.xlsx").write_text("")
    bounds = ("--low", 0, "--high", 1) if "median" in command else ("--count",)
    end = ended(*command.split(), "stays.xlsx", *bounds, "--epsilon", 1, cwd=folder)
    assert end.returncode == 2
    told = "Excel files and other spreadsheets are not read: save the sheet as CSV UTF-8"
    assert told in " ".join(end.stderr.split())


def test_a_page_and_a_text_that_is_not_utf_8_are_called_that(folder: Path) -> None:
    """A page is no certificate; Parquet with such a text was called damaged."""
    (folder / "page.html").write_text(certificate_page((folder / "cert.json").read_text()))
    told = ended("verify", "page.html", cwd=folder).stderr
    assert "page.html is a page, not the file that it was made of" in told
    bad = pa.array([b"\xff"]).buffers()
    texts = pa.StringArray.from_buffers(1, *bad[1:])
    parquet.write_table(pa.table({"ward": texts, "n": [1.0]}), folder / "bad.parquet")
    words = "statistic median bad.parquet --column n --low 0 --high 9 --epsilon 1"
    told = " ".join(ended(*words.split(), cwd=folder).stderr.split())
    assert "bad.parquet holds a text that is not UTF-8: write the file again" in told


def test_certify_says_what_it_takes(folder: Path) -> None:
    for given in ("sqlite:///x.db", "x.db", "stays.csv", "folder", "binary.bin", "empty.csv"):
        told = " ".join(ended("certify", given, cwd=folder).stderr.split())
        assert "certify takes what --out of hushed query wrote" in told, given
        assert "--ledger ADDRESS --budget NAME --entry NUMBER" in told, given
    told = " ".join(ended("verify", "certs.json", cwd=folder).stderr.split())
    assert "did you mean 'cert.json'? verify takes a certificate:" in told
    told = " ".join(ended("verify", "stays.csv", cwd=folder).stderr.split())
    assert told.startswith("ParameterError: stays.csv is no answer or certificate: it is not JSON.")


def test_runs_are_not_looked_for_in_a_file(folder: Path) -> None:
    end = ended("runs", "list", "stays.csv", cwd=folder)
    assert end.returncode == 2
    assert "stays.csv is no folder, and runs are kept in one" in end.stderr


def test_a_part_of_the_private_table_is_no_population(tmp_path):
    """As a file of the folder, or of the pattern, that a team server reads."""
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("1.parquet", "2.parquet"):
        parquet.write_table(pa.table({"cost": [1.0, 2.0]}), parts / name)
    for private in (parts, f"{parts}/*.parquet", parts / "2.parquet"):
        with pytest.raises(PrivateRowsAsPopulation, match="holds the private rows"):
            read_population(str(parts / "2.parquet"), private=private)
    read_population(str(parts / "1.parquet"), private=parts / "2.parquet")


def test_a_name_that_is_nearly_right_is_asked_for(tmp_path: Path) -> None:
    told = ended("compose", "laplce:0.1", "--delta", "1e-6", cwd=tmp_path).stderr
    assert "unknown release 'laplce'; did you mean 'laplace'?" in told


def test_a_table_in_utf16_is_refused_before_a_charge(tmp_path: Path) -> None:
    """With a header; without one its first bytes are those of a row, which decides nothing."""
    (tmp_path / "stays.csv").write_text("cost\n" + "7\n" * 60, encoding="utf-16")
    about = ("stays.csv", "--low", "0", "--high", "9", "--epsilon", "1")
    paid = ("--ledger", "sqlite:///l.db", "--budget", "b")
    ended("ledger", "open", "sqlite:///l.db", "b", "--epsilon", "3", cwd=tmp_path)
    for words in (
        ("statistic", "median", *about, "--header", *paid),
        ("query", "stays.csv", "--mean", "cost:0:9", "--epsilon", "1"),
    ):
        end = ended(*words, cwd=tmp_path)
        assert end.returncode == 2
        assert "stays.csv is in UTF-16, as Windows writes texts; save it in UTF-8" in end.stderr
    assert not Ledger(f"sqlite:///{tmp_path}/l.db").entries("b")
    told = set()
    for encoding in ("utf-16", "utf-8"):  # the same words whatever the file holds
        (tmp_path / "stays.csv").write_text("7\n" * 60, encoding=encoding)
        told.add(ended("statistic", "median", *about, "--no-header", cwd=tmp_path).stderr)
    (words,) = told
    assert "in UTF-16, as Windows writes them, no cell is a number" in words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--save", "a.toml", "--save", "b.toml"), "'--save': it takes one value, and is given"),
        (("--epsilon", "1", "--epsilon=2"), "'--epsilon': it takes one value, and is given"),
        (("--epsilon",), "'--epsilon' requires an argument"),
    ],
)
def test_an_option_that_is_given_twice_or_without_its_value_is_refused(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """Not the last one of two: what was asked for first would be left out without a word."""
    (tmp_path / "stays.csv").write_text("cost\n" + "7\n" * 60)
    end = ended("query", "stays.csv", *words, cwd=tmp_path)
    assert end.returncode == 2
    assert said in " ".join(end.stderr.replace("│", " ").split())
