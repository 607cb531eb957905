"""Names and keys of others cannot write on the terminal, forge lines, or take another's place."""

import json

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import hushed as hs
from hushed._ground.printing import plain_path, shown
from hushed.cli import app
from hushed.errors import HushedError, NotFound, ParameterError

EVIL = [
    "Ro\x1b[2J\x1b]0;pwned\x07me",
    "Rome  1000000 [999990, 1000010]\nOslo",
    "a\rb",
    "\u202eemoR",
    "a\u2028b",
    "a\x85b",
    "\x9b31m",
    "\u2066x\u2069",
    " lead",
    "trail ",
    "",
    "a  5 [1, 9]",
]


def safe(text):
    """Nothing in it moves the cursor, ends a line within a cell, or turns the direction."""
    return all(each.isprintable() or each == "\n" for each in text)


class TestShown:
    @pytest.mark.slow
    @given(st.text())
    def test_one_plain_line(self, text):
        """Whatever the text: printable, on one line, of bounded length, with no columns in it."""
        found = shown(text)
        assert found.isprintable()
        assert len(found) < 700
        assert found == text or found[0] in "'\""

    @pytest.mark.slow
    @given(st.text(max_size=60), st.text(max_size=60))
    def test_two_texts_are_told_apart(self, one, other):
        assert (shown(one) == shown(other)) == (one == other)


class TestAnswers:
    def test_keys_and_names_are_clean_on_a_terminal_and_as_they_are_in_data(self):
        """A key of a data subject stands in quotation marks, its controls spelled out."""
        names = {"evil\x1b[31m": EVIL * 40, "x": [1.0] * (40 * len(EVIL))}
        table = hs.table(pa.table(names))
        query = table.group_by("evil\x1b[31m", keys=EVIL).count(name="c\nd")
        query = query.mean("x", low=0, high=1, name="m\x1b").quantiles(
            "x", [0.5], low=0, high=1, name="q\u202e"
        )
        answer = query.release(epsilon=1000.0)
        for said in (str(answer), answer.explain(), query.quote(epsilon=1.0, rows=9).explain()):
            assert safe(said)
        assert len(str(answer).split("\n\n")[0].splitlines()) == 1 + len(EVIL)
        assert [row["evil\x1b[31m"] for row in answer.rows()] == EVIL
        with pytest.raises(NotFound) as caught:
            answer.value("\x1b")
        assert safe(str(caught.value))

    @pytest.mark.slow
    def test_messages_about_columns_are_clean(self):
        frame = pa.table({"na\x1bme\n": ["a"], "n": [1], "o": [[1]]})
        for ask in (
            lambda t: t.filter("nosuch > 1"),
            lambda t: t.filter("column('na\\x1bme\\n') > 1"),
            lambda t: t.filter("n > 1 \x1b[2J"),
            lambda t: t.sum("na\x1bme\n", low=0, high=1),
            lambda t: t.group_by("\x1b", keys=["a"]),
            lambda t: t.group_by("na\x1bme\n", keys=["\x1b", 1]),
            lambda t: t.count(name="\x1b").count(name="\x1b"),
            lambda t: t.derive("na\x1bme\n", "1"),
            lambda t: hs.table(frame, user="\x1b"),
            lambda t: hs.table(frame, types={"\x1b": "float"}),
        ):
            with pytest.raises(HushedError) as caught:
                ask(hs.table(frame))
            assert safe(str(caught.value))
            assert "\n" not in str(caught.value)

    @pytest.mark.slow
    def test_selected_keys_on_the_command_line(self, tmp_path):
        """Clean as text, untouched as JSON."""
        with duckdb.connect(str(tmp_path / "t.db")) as made:
            made.execute("CREATE TABLE t (u int, k varchar)")
            made.executemany(
                "INSERT INTO t VALUES (?, ?)",
                [(i * len(EVIL) + j, k) for i in range(60) for j, k in enumerate(EVIL)],
            )
        words = ["query", f"duckdb:///{tmp_path / 't.db'}", "--table", "t", "--user", "u"]
        words += [
            "--max-groups-per-user",
            "1",
            "--max-rows-per-user",
            "1",
            "--by",
            "k",
            "--select-partitions",
            "--count",
        ]
        words += ["--epsilon", "100", "--delta", "1e-6"]
        told = CliRunner().invoke(app, words)
        assert (told.exit_code, safe(told.stdout)) == (0, True)
        found = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
        assert {row["k"] for row in found["rows"]} == set(EVIL)

    @pytest.mark.slow
    def test_days_are_texts_in_json(self, tmp_path):
        """A grouping by day used to end in a traceback after the charge."""
        words = ["query", str(tmp_path / "t.csv"), "--type", "d=date", "--by", "d"]
        (tmp_path / "t.csv").write_text("d,x\n2024-02-29,1\n")
        words += ["--keys", "2024-02-29,2024-03-01", "--count", "--epsilon", "1", "--json"]
        found = json.loads(CliRunner().invoke(app, words).stdout)
        assert [row["d"] for row in found["rows"]] == ["2024-02-29", "2024-03-01"]


class TestCollisions:
    @pytest.mark.parametrize(
        "ask",
        [
            lambda t: t.count().count(name="count_low"),
            lambda t: t.count(name="a_high").count(name="a"),
            lambda t: t.mean("x", low=0, high=1, name="m").count(name="m_rows"),
            lambda t: t.count(name="m_rows").variance("x", low=0, high=1, name="m"),
            lambda t: t.count(name="a").count(name="a_low").count(name="a_low_low"),
            lambda t: t.count(name="k").group_by("k", keys=["a"]),
            lambda t: t.count(name="x").group_by("x_low", keys=[1]),
            lambda t: t.group_by("x_low", keys=[1]).count(name="x"),
            lambda t: t.mean("x", low=0, high=1, name="r").group_by("r_rows", keys=[1]),
            lambda t: t.histogram("x", low=0, high=1, name="h").count(name="h_low"),
        ],
    )
    def test_names_that_would_take_anothers_place_are_refused(self, ask):
        table = hs.table(pa.table({"x": [1.0], "k": ["a"], "x_low": [1], "r_rows": [1]}))
        with pytest.raises(ParameterError, match=r"there already|already"):
            ask(table)

    @pytest.mark.slow
    def test_every_column_of_an_answer_is_its_own(self):
        """Names that only look like it are allowed: quantiles have no error bars."""
        table = hs.table(pa.table({"x": [1.0] * 9, "k": ["a"] * 9}))
        query = table.group_by("k", keys=["a"]).quantiles("x", [0.5], low=0, high=1, name="q")
        query = query.count(name="q_rank").count(name="q_rows").sum("x", low=0, high=1, name="low")
        answer = query.release(epsilon=1.0)
        assert len(answer.to_dict()) == 1 + 1 + 3 * 3


class TestCopies:
    """What is changed after opening changes no answer."""

    @pytest.mark.parametrize("kind", ["numpy", "masked", "objects", "polars"])
    def test_a_frame_that_is_changed_later(self, kind):
        import pandas as pd
        import polars as pl

        cells = np.zeros(50)
        if kind == "polars":
            table = hs.table(pl.DataFrame({"x": cells}))
            cells[:] = 20.0
        else:
            held = {"masked": pd.array(cells, dtype="Float64"), "objects": cells.astype(object)}
            frame = pd.DataFrame({"x": held.get(kind, cells)}, copy=False)
            table = hs.table(frame, types={"x": "float"})
            frame.iloc[:, 0] = 20.0
            cells[:] = 20.0
            if kind == "numpy":
                frame["x"].to_numpy().setflags(write=True)
        value = table.sum("x", low=0, high=20).release(epsilon=1000.0).value("sum_x")
        assert abs(value) < 10

    def test_objects_that_cannot_say_what_they_are(self, assert_silent):
        """Their cells are missing, decide nothing else, and their message is not told."""
        import pandas as pd

        class Odd:
            def __str__(self):
                raise ValueError("Wilhelmina-Quux")

        class Liar(str):
            def __str__(self):
                raise ValueError("Wilhelmina-Quux")

        frame = pd.DataFrame({"o": pd.Series([Odd(), Liar("b"), "a"] * 30, dtype=object)})
        table = hs.table(frame)
        counts = [
            table.filter(text).count().release(epsilon=100.0).value("count")
            for text in ("is_null(o)", "o == 'b'", "o == 'a'")
        ]
        assert all(abs(found - 30) < 3 for found in counts)


class TestPasswords:
    @pytest.mark.parametrize(
        "words",
        [
            ["release", "postgresql://a:SECRETPW@h/x", "F", "--population", "uniform:0,1",
             "--epsilon", "1"],
            ["release", "d.csv", "postgresql://a:SECRETPW@h/x", "--population", "uniform:0,1",
             "--epsilon", "1"],
            ["release", "d.csv", "F", "--population", "postgresql://a:SECRETPW@h/x",
             "--epsilon", "1"],
            ["query", "a:SECRETPW@h/x", "--count", "--epsilon", "1"],
            ["query", "h/x?password=SECRETPW", "--count", "--epsilon", "1"],
            ["verify", "postgresql://a:SECRETPW@h/x", "F"],
            ["audit", "postgresql://a:SECRETPW@h/x", "--epsilon", "1"],
        ],
    )  # fmt: skip
    def test_no_command_prints_one(self, words, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "f.py").write_text("def f(rows):\n    return rows.mean()\n")
        (tmp_path / "d.csv").write_text("0.5\n0.25\n")
        told = CliRunner().invoke(app, ["f.py:f" if each == "F" else each for each in words])
        assert told.exit_code in (1, 2)
        assert "SECRETPW" not in told.output

    def test_names_of_files_are_shown(self):
        assert plain_path("visits 2024.csv") == "visits 2024.csv"
        assert "SECRET" not in plain_path("motherduck_token=SECRET")
