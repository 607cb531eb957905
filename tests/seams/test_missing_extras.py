"""What needs packages of an extra says so in one way, wherever it is asked for."""

import importlib
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.commands import ended

import hushed as hs
from hushed import statements
from hushed.errors import MissingExtra
from hushed.measurements import to_opendp
from hushed.plots import check_suffix
from hushed.transformations import count

SOURCE = Path(hs.__file__).parent
OWN_WAYS = {  # imports that may fail, and no package would help: another way, or other words
    "auditing/_scores/trees.py",
    "_functions/_environment.py",
    "cli/_exits.py",
    "engines/_requirements.py",
    "server/_alone.py",
}


ROWS = hs.spaces.Space(domain=hs.spaces.Column(cell=hs.spaces.Cell()), metric=hs.spaces.SYMMETRIC)
FRAME = pa.table({"x": [1]})


def import_again():
    """Import the package of private estimators anew."""
    known = [name for name in sys.modules if name.startswith("hushed.sklearn")]
    held = {name: sys.modules.pop(name) for name in known}
    try:
        importlib.import_module("hushed.sklearn")
    finally:
        sys.modules.update(held)


DOORS = {
    "estimator": ("sklearn", "sklearn", import_again),
    "figure": ("altair", "plot", lambda: check_suffix(Path("x.svg"))),
    "query": ("duckdb", "tables", lambda: hs.table("rows.csv")),
    "server": ("psycopg", "postgres", lambda: hs.table("postgresql://a@localhost/b")),
    "session": ("pyspark", "spark", lambda: hs.table("spark://local[1]")),
    "ledger": ("psycopg", "postgres", lambda: hs.Ledger("postgresql://a@localhost/b")),
    "dask": ("distributed", "dask", lambda: hs.engines.engine_of("dask://localhost:1")),
    "ray": ("ray", "ray", lambda: hs.engines.engine_of("ray")),
    "spark": ("pyspark", "spark", lambda: hs.engines.engine_of("spark")),
    "chain": ("opendp.prelude", "opendp", lambda: to_opendp(ROWS >> count())),
    "signature": (
        "cryptography.hazmat.primitives.asymmetric",
        "sign",
        statements.make_key,
    ),
    "frame": (
        "pandas",
        "pandas",
        lambda: hs.table(FRAME).count().release(epsilon=1).to_pandas(),
    ),
    "other frame": (
        "polars",
        "polars",
        lambda: hs.table(FRAME).count().release(epsilon=1).to_polars(),
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_of_python_says_the_same(door, monkeypatch):
    """The error, and what to install."""
    lacking, extra, ask = DOORS[door]
    monkeypatch.setitem(sys.modules, lacking, None)
    with pytest.raises(MissingExtra) as caught:
        ask()
    assert caught.value.extra == extra
    words = rf"an? .* needs packages that are not installed: pip install 'hushed\[{extra}\]'"
    assert re.match(words, str(caught.value))


def test_a_signature_cannot_be_checked_without_the_package(monkeypatch):
    """Whichever part of the package is asked for first."""
    for part in ("exceptions", "hazmat.primitives.asymmetric"):
        monkeypatch.setitem(sys.modules, f"cryptography.{part}", None)
    with pytest.raises(MissingExtra, match=r"hushed\[sign\]"):
        statements.open_signed("{}", b"key")


COMMANDS = {
    "figure": ("altair", "plot", ("risk", "--epsilon0", 1, "--plot", "x.svg")),
    "table": ("duckdb", "tables", ("query", "rows.csv", "--count", "--epsilon", 1)),
    "server": (
        "psycopg",
        "postgres",
        ("query", "postgresql://a@localhost/b", "--count", "--epsilon", 1),
    ),
    "ledger": ("psycopg", "postgres", ("ledger", "show", "postgresql://a@localhost/b")),
    "rows": (
        "polars",
        "polars",
        ("sensitivity", "f.py:f", "--population", "p.parquet", "--rows", 5),
    ),
    "frame": (
        "polars",
        "polars",
        ("sensitivity", "f.py:f", "--population", "p.csv", "--rows", 5, "--frame", "polars"),
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_ends_the_same(name, monkeypatch, tmp_path):
    """Refused: exit code 1, the words on standard error."""
    lacking, extra, words = COMMANDS[name]
    monkeypatch.setitem(sys.modules, lacking, None)
    (tmp_path / "f.py").write_text("def f(rows): return 0.0\n")
    for each in ("rows.csv", "p.parquet", "p.csv"):
        (tmp_path / each).write_text("x\n1\n2\n")
    done = ended(*words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("MissingExtra: ")
    assert f"pip install 'hushed[{extra}]'" in done.stderr


def test_no_other_error_names_an_extra():
    """The words stand in one place, and every import that may fail is refused with them."""
    texts = {str(p.relative_to(SOURCE)): p.read_text() for p in SOURCE.rglob("*.py")}
    there = "engines/_requirements.py"  # what a worker of a cluster lacks, with its versions
    assert {name for name, text in texts.items() if "pip install" in text} == {"errors.py", there}
    caught = {name for name, text in texts.items() if re.search(r"except \(?ImportError", text)}
    refused = {name for name, text in texts.items() if "raise MissingExtra(" in text}
    assert caught - OWN_WAYS <= refused
    assert caught >= OWN_WAYS
