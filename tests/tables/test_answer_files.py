"""Answers as frames and files: the same cells everywhere, and nothing is written over."""

import csv
import datetime
import json
import resource
import signal
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import hushed as hs
from hushed import noise
from hushed.cli import app
from hushed.errors import NotFound, ParameterError

DAYS = [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]


@pytest.fixture(scope="module")
def answer():
    """Two keys of two kinds, one of which would break a careless CSV file, and each output."""
    rows = {"x": [0.5, 2.5, 9.0] * 40, "k": ['a,"b\n'] * 120, "d": DAYS * 60, "t": [True] * 120}
    keys = {"k": ['a,"b\n'], "d": DAYS, "t": [True, False]}
    query = hs.table(pa.table(rows)).group_by("k", "d", "t", keys=keys)
    query = query.count().mean("x", low=0, high=10).histogram("x", low=0, high=9, bins=3)
    query = query.quantiles("x", [0.5], low=0, high=10, name="median")
    return query.quantiles("x", [0.75, 0.25], low=0, high=10, name="q").release(epsilon=60.0)


COLUMNS = [
    *("k", "d", "t", "count", "count_low", "count_high"),
    *("mean_x", "mean_x_low", "mean_x_high", "mean_x_rows"),
    *("histogram_x", "histogram_x_edges", "histogram_x_low", "histogram_x_high"),
    *("median", "q_0.75", "q_0.25"),
]


def expected(answer):
    """The cells, read off the fields of the answer."""
    found = {**answer.keys, **{name: list(answer.values[name]) for name in ("count", "mean_x")}}
    for name in ("count", "mean_x", "histogram_x"):
        found |= {f"{name}_low": answer.low[name], f"{name}_high": answer.high[name]}
    found |= {"histogram_x": answer.values["histogram_x"], "mean_x_rows": answer.present["mean_x"]}
    found |= {"median": answer.values["median"], "histogram_x_edges": [[0.0, 3.0, 6.0, 9.0]] * 4}
    found |= {"q_0.75": [each[0] for each in answer.values["q"]]}
    found |= {"q_0.25": [each[1] for each in answer.values["q"]]}
    return {name: list(found[name]) for name in COLUMNS}


class TestFrames:
    @pytest.mark.slow
    def test_arrow_holds_every_cell_in_its_type(self, answer):
        """Counts and their number of rows whole, days as days, lists as lists."""
        made = answer.to_arrow()
        assert made.column_names == COLUMNS
        assert made.to_pydict() == expected(answer)
        types = {name: str(made.schema.field(name).type) for name in COLUMNS}
        assert {types[name] for name in ("count", "mean_x_rows")} == {"int64"}
        assert (types["d"], types["t"]) == ("date32[day]", "bool")
        assert types["histogram_x"].startswith("list<")
        assert made.schema.field("histogram_x").type.value_type == pa.int64()
        assert types["q_0.25"] == types["count_low"] == "double"

    @pytest.mark.slow
    def test_pandas_and_polars_hold_the_same(self, answer):
        frame = answer.to_pandas()
        assert isinstance(frame, pd.DataFrame)
        assert str(frame["count"].dtype) == "int64"
        plain = {
            name: [list(cell) if hasattr(cell, "tolist") and cell.ndim else cell for cell in column]
            for name, column in frame.items()
        }
        assert plain == expected(answer)
        frame = answer.to_polars()
        assert isinstance(frame, pl.DataFrame)
        assert frame.to_dict(as_series=False) == expected(answer)
        assert frame.schema["count"] == pl.Int64

    def test_the_promise_stands_in_the_metadata(self, answer):
        said = json.loads(answer.to_arrow().schema.metadata[b"hushed"])
        assert (said["epsilon"], said["delta"], said["unit"]) == (60.0, 0.0, "row")
        assert (said["neighbours"], said["level"]) == ("add-remove", 0.95)
        assert said["rank_error"] == dict(answer.rank_error)

    def test_numbers_beyond_64_bits_stay_whole(self, monkeypatch):
        """Noise may be that large; the sum is exact."""
        monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.full(size, 2**63 - 1))
        query = hs.table(pa.table({"x": [1.0] * 5})).count()
        query = query.histogram("x", low=0, high=2, bins=2)
        answer = query.release(epsilon=1.0)
        made = answer.to_arrow().to_pydict()
        assert int(made["count"][0]) == answer.value("count") == 2**63 + 4
        assert [int(each) for each in made["histogram_x"][0]] == answer.value("histogram_x")
        frame = answer.to_polars()
        assert int(frame["count"][0]) == answer.value("count")
        assert [int(each) for each in frame["histogram_x"][0]] == answer.value("histogram_x")

    def test_keys_beyond_64_bits_stay_whole(self):
        """A column of unsigned numbers holds them; Polars reads them, too."""
        most = 2**64 - 1
        rows = pa.table({"k": pa.array([most, 0] * 9, pa.uint64())})
        query = hs.table(rows).group_by("k", select_partitions=True).count()
        answer = query.release(epsilon=100.0, delta=0.01)
        for keys in (answer.to_arrow()["k"].to_pylist(), answer.to_polars()["k"].to_list()):
            assert sorted(map(int, keys)) == [0, most]

    def test_an_answer_without_groups_has_its_columns(self, answer):
        query = hs.table(pa.table({"k": ["a"], "x": [1.0]})).group_by("k", select_partitions=True)
        query = query.histogram("x", low=0, high=2).quantiles("x", [0.5, 0.1], low=0, high=2)
        made = query.release(epsilon=0.1, delta=1e-12).to_arrow()
        assert made.num_rows == 0
        assert made.column_names[:3] == ["k", "histogram_x", "histogram_x_edges"]
        assert made.column_names[-2:] == ["quantiles_x_0.5", "quantiles_x_0.1"]

    def test_an_answer_without_groups_says_tau(self):
        """The price says the same number before, whatever the rows are; else it is not said."""
        one, other = pa.table({"k": ["a"]}), pa.table({"k": ["b", "c"] * 5})
        asked = [
            hs.table(each).group_by("k", select_partitions=True).count() for each in (one, other)
        ]
        terms = {"epsilon": 0.1, "delta": 1e-12}
        told = [each.release(**terms).warnings[0] for each in asked]
        tau = asked[0].quote(**terms).threshold
        assert told[0] == told[1]
        assert f"noisy number of rows is at least {tau} (tau)" in told[0]
        many = hs.table(pa.table({"k": ["a"] * 999})).group_by("k", select_partitions=True).count()
        assert not many.release(epsilon=1.0, delta=1e-6).warnings

    def test_a_quantile_asked_for_twice_loses_none(self):
        query = hs.table(pa.table({"x": [1.0] * 9})).quantiles("x", [0.5, 0.5], low=0, high=2)
        answer = query.release(epsilon=1.0)
        assert answer.to_arrow().to_pydict() == {"quantiles_x": [answer.value("quantiles_x")]}

    @pytest.mark.parametrize("taken", ["q_0.25", "q_0.75", "h_edges"])
    def test_no_two_columns_have_one_name(self, taken):
        """Those of quantiles and of edges are refused as names of other outputs, and of keys."""
        table = hs.table(pa.table({"x": [1.0], taken: ["a"]}))
        query = table.quantiles("x", [0.25, 0.75], low=0, high=1, name="q")
        query = query.histogram("x", low=0, high=1, name="h")
        for ask in (lambda: query.count(name=taken), lambda: query.group_by(taken, keys=["a"])):
            with pytest.raises(ParameterError, match=rf"column '?{taken}'? already"):
                ask()


class TestFiles:
    def test_a_csv_file_has_every_cell(self, answer, tmp_path):
        """Lists as JSON; read by another reader, with the line end inside of a key."""
        answer.to_csv(tmp_path / "a.csv")
        with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
            head, *lines = csv.reader(file)
        assert head == COLUMNS
        for i, line in enumerate(lines):
            for name, cell in zip(head, line, strict=True):
                wanted = expected(answer)[name][i]
                if name in ("k", "d"):
                    assert cell == str(wanted)
                else:
                    assert json.loads(cell) == wanted
        assert len(lines) == 4

    def test_no_spreadsheet_runs_a_key(self, tmp_path):
        """Keys may come from data subjects: in CSV alone they get an apostrophe; numbers do not."""
        keys = ["=1+1", "-x", "\t@x", "a;=1", "-5", "+1e3", "x"]
        counted = hs.table(pa.table({"k": keys})).group_by("k", keys=keys).count(name="=n")
        answer = counted.release(epsilon=60.0)
        answer.to_csv(tmp_path / "a.csv")
        text = (tmp_path / "a.csv").read_text()
        head, *lines = csv.reader(text.splitlines())
        assert head == ["k", "'=n", "'=n_low", "'=n_high"]
        wanted = ["'=1+1", "'-x", "'\t@x", "a;=1", "-5", "+1e3", "x"]
        assert [line[0] for line in lines] == wanted
        assert '"a;=1"' in text  # where a comma is a point, a semicolon begins a cell
        assert answer.to_arrow()["k"].to_pylist() == keys

    def test_a_parquet_file_is_the_arrow_table(self, answer, tmp_path):
        answer.to_parquet(str(tmp_path / "a.parquet"))
        read = parquet.read_table(tmp_path / "a.parquet")
        assert read.to_pydict() == expected(answer)
        assert read.schema.metadata[b"hushed"] == answer.to_arrow().schema.metadata[b"hushed"]

    def test_json_is_read_again(self, answer):
        assert hs.Answer.from_json(answer.to_json()) == answer
        for text in ("", "{}", "[1]", answer.to_json()[:-1]):
            with pytest.raises(ParameterError, match="no answer"):
                hs.Answer.from_json(text)

    @pytest.mark.parametrize("name", ["to_csv", "to_parquet"])
    def test_no_file_is_written_over(self, name, answer, tmp_path):
        """Nor is a folder, or one that is not there."""
        (tmp_path / "a").write_text("paid for")
        with pytest.raises(ParameterError, match="exists, and may be an answer that was paid for"):
            getattr(answer, name)(tmp_path / "a")
        assert (tmp_path / "a").read_text() == "paid for"
        with pytest.raises(NotFound, match="cannot be written"):
            getattr(answer, name)(tmp_path / "no" / "a")
        with pytest.raises(NotFound, match="cannot be written: this is no name"):
            getattr(answer, name)(tmp_path / "a\0b")

    @pytest.mark.parametrize("name", ["to_csv", "to_parquet"])
    def test_a_file_is_written_whole_or_not_at_all(self, name, answer, tmp_path):
        """Where there is no room, part of an answer looked like all of it, and was kept as paid."""
        handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, most))
        try:
            with pytest.raises(NotFound, match="cannot be written: File too large"):
                getattr(answer, name)(tmp_path / "a")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
            signal.signal(signal.SIGXFSZ, handled)
        assert not (tmp_path / "a").exists()
        getattr(answer, name)(tmp_path / "a")


class TestCommand:
    """``hushed query --out``."""

    @pytest.fixture
    def run(self, tmp_path):
        (tmp_path / "rows.csv").write_text("x\n" + "1\n" * 50)
        url = f"sqlite:///{tmp_path / 'b.db'}"
        with hs.Ledger(url) as book:
            book.open_budget("b", hs.Guarantee(epsilon=99.0, neighbours="add-remove"))

        def call(*words):
            typed = ["query", str(tmp_path / "rows.csv"), "--type", "x=float", "--count"]
            typed += ["--quantile", "x:0:2:0.25,0.5", "--epsilon", "30"]
            return CliRunner().invoke(app, [*typed, *map(str, words)])

        def paid():
            with hs.Ledger(url) as book:
                return len(book.entries("b"))

        call.paid, call.words = paid, ("--ledger", url, "--budget", "b")
        return call

    @pytest.mark.slow
    @pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".feather", ".json"])
    def test_the_file_holds_what_was_printed(self, suffix, run, tmp_path):
        """And replaces another one only by force."""
        out = tmp_path / f"a{suffix}"
        told = json.loads(run("--out", out, "--json").stdout)["rows"][0]
        if suffix == ".json":
            found = hs.Answer.from_json(out.read_text()).rows()[0]
            assert found["quantiles_x"] == told["quantiles_x"]
        else:
            read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}.get(suffix, pd.read_feather)
            found = read(out).iloc[0]
            assert [found["quantiles_x_0.25"], found["quantiles_x_0.5"]] == told["quantiles_x"]
        assert found["count"] == told["count"]
        before = out.read_bytes()
        refused = run("--out", out, *run.words)
        assert refused.exit_code == 2
        assert "exists" in refused.stderr
        assert (run.paid(), out.read_bytes()) == (0, before)
        out.write_bytes(b"old")
        assert run("--out", out, "--force").exit_code == 0
        assert out.read_bytes() not in (b"", b"old")

    @pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".db", ".duckdb"])
    def test_a_table_of_others_is_not_replaced_by_force(self, suffix, run, tmp_path):
        """It may be somebody's private rows; an answer of hushed is replaced."""
        other, frame = tmp_path / f"other{suffix}", pd.DataFrame({"x": [1, 2]})
        if suffix in (".csv", ".parquet", ".arrow"):
            out = other
            write = {".csv": "to_csv", ".parquet": "to_parquet"}.get(suffix, "to_feather")
            getattr(frame, write)(other)
        else:
            out = tmp_path / "linked.csv"
            out.symlink_to(other)
            library = duckdb if suffix == ".duckdb" else sqlite3
            with library.connect(str(other)) as made:
                made.execute("CREATE TABLE t (x INTEGER)")
        before = other.read_bytes()
        refused = run("--out", out, "--force")
        assert refused.exit_code == 2
        assert "a table that hushed did not write" in " ".join(refused.stderr.split())
        assert (run.paid(), other.read_bytes()) == (0, before)

    @pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
    def test_an_earlier_answer_is_replaced_by_force(self, suffix, run, tmp_path):
        out = tmp_path / f"a{suffix}"
        assert run("--out", out).exit_code == 0
        assert run("--out", out, "--force").exit_code == 0

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("--out", "{0}/a.txt"), "ends in .csv, .parquet, .arrow, .feather, .json"),
            (("--out", "{0}/no/a.csv"), "there is no folder"),
            (("--out", "{0}/rows.csv", "--force"), "an input of this command"),
            (("--out", "{0}/a.csv", "--quote"), "--quote gives none"),
            (("--out", "{0}/a.csv", "--save", "{0}/a.csv"), "the file of --save, too"),
        ],
    )
    def test_what_cannot_be_written_is_not_charged(self, words, told, run, tmp_path):
        given = [word.format(tmp_path) for word in words]
        result = run(*given, *run.words)
        assert result.exit_code != 0
        assert told in " ".join(result.stderr.split())
        assert run.paid() == 0
        assert not (tmp_path / "a.csv").exists()

    @pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".feather", ".json"])
    def test_a_stored_answer_is_written_like_a_new_one(self, suffix, run, tmp_path):
        """Byte by byte, at no charge; nothing is replaced that is there."""
        first, again = tmp_path / f"first{suffix}", tmp_path / f"again{suffix}"
        assert run("--out", first, "--key", "k", *run.words).exit_code == 0
        words = ["ledger", "answer", run.words[1], "b", "k", "--out", str(again)]
        assert CliRunner().invoke(app, words).exit_code == 0
        assert again.read_bytes() == first.read_bytes()
        assert run.paid() == 1
        refused = CliRunner().invoke(app, words)
        assert refused.exit_code == 2
        assert "exists" in refused.stderr
        assert CliRunner().invoke(app, [*words, "--force"]).exit_code == 0

    def test_a_stored_release_is_written_as_its_certificate(self, tmp_path):
        url = f"sqlite:///{tmp_path / 'l.db'}"
        with hs.Ledger(url) as book:
            book.open_budget("b", hs.Guarantee(epsilon=50))
            s = hs.statistics.median(rows=9, low=0, high=9)
            named = {"ledger": book, "budget": "b", "key": "k"}
            made = hs.release(s, list(range(9)), hs.InverseSensitivity(s, epsilon=1.0), **named)
        out = tmp_path / "a.json"
        words = ["ledger", "answer", url, "b", "k", "--out"]
        assert CliRunner().invoke(app, [*words, str(out)]).exit_code == 0
        assert hs.Certificate.from_json(out.read_text()) == made.certificate
        refused = CliRunner().invoke(app, [*words, str(tmp_path / "a.csv")])
        assert refused.exit_code == 2
        assert "the answer of no query" in refused.stderr
