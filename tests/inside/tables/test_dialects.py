"""An engine is one record: no other code asks for its name, one more record is one more engine."""

import ast
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.tables._engine import opening
from hushed.tables._engine.duckdb import DUCKDB
from hushed.tables._engine.engines import BY_NAME, BY_SCHEME

SOURCE = Path(hs.__file__).parent


def compared_names(tree):
    """Strings that some code compares with, or chooses by."""
    asked = [node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.match_case)]
    asked += [node.slice for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    inner = [each for node in asked for each in ast.walk(node)]
    keys = [key for n in ast.walk(tree) if isinstance(n, ast.Dict) for key in n.keys if key]
    return {e.value for e in [*inner, *keys] if isinstance(e, ast.Constant)}


class TestRecords:
    @pytest.mark.slow_cases("tables")
    @pytest.mark.parametrize("package", ["tables", "cli"])
    def test_no_code_asks_for_the_name_of_an_engine(self, package):
        """Neither by comparing with a name, nor by a mapping from names to what differs."""
        for file in (SOURCE / package).rglob("*.py"):
            found = compared_names(ast.parse(file.read_text())) & {*BY_NAME, *BY_SCHEME}
            assert not found, file.name

    @pytest.mark.parametrize(
        "code",
        [
            "x = e == 'duckdb'",
            "x = e in ('a', 'duckdb')",
            "x = {'duckdb': 1}[e]",
            "x = y['duckdb']",
        ],
    )
    def test_code_that_asks_is_found(self, code):
        assert "duckdb" in compared_names(ast.parse(code))

    def test_one_more_record_is_one_more_engine(self, tmp_path, monkeypatch):
        """Addresses with its scheme are opened by it, and its queries are planned and run by it."""
        with duckdb.connect(str(tmp_path / "t.db")) as made:
            made.execute("CREATE TABLE t AS SELECT 1 AS x FROM range(50)")
        asked = []

        def fetch(backend, query):
            asked.append(query.sql)
            return DUCKDB.fetch(backend, query)

        address = f"quack:///{tmp_path / 't.db'}"
        with pytest.raises(ParameterError, match="cannot read quack"):
            hs.table(address, "t")
        other = replace(DUCKDB, schemes=("quack",), fetch=fetch)
        monkeypatch.setattr(opening, "BY_SCHEME", {**BY_SCHEME, "quack": other})
        table = hs.table(address, "t")
        assert table.connection.engine is other
        assert asked == []
        assert table.count().release(epsilon=50.0).value("count") > 40
        assert len(asked) == 1
