"""What only Spark does: settings of a session, its log, its end, names and types of its own."""

import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import CANARY_TEXT, TRACES
from tests.engines import MASTER
from tests.tables.test_normalised import counts, private_counts

import hushed as hs
from hushed.errors import NotFound, ParameterError, QueryFailed
from hushed.tables._engine.spark import master_url

HERE = Path(__file__).resolve().parents[1]
ADDRESS = f"spark://{MASTER}"
ENDINGS = {
    "stopped with the charge": ("QueryFailed", 1),
    "stopped before": ("EngineUnavailable", 0),
    "another session": ("answered", 1),
    "stopped while collecting": ("QueryFailed", 1),
    "killed with the charge": ("QueryFailed", 1),
    "killed before": ("EngineUnavailable", 0),
    "opened when killed": ("EngineUnavailable", 0),
}


@pytest.mark.parametrize(
    ("address", "master"),
    [
        ("local", "local"),
        ("local[4]", "local[4]"),
        ("local[*]", "local[*]"),
        ("local[2, 3]", "local[2, 3]"),
        ("localhost:7077", "spark://localhost:7077"),
        ("local.example:7077", "spark://local.example:7077"),
        ("10.0.0.1:7077", "spark://10.0.0.1:7077"),
    ],
)
def test_a_host_is_not_this_process(address, master):
    """Only Spark's own names for a run in this process are taken for one."""
    assert master_url(address) == master


def view(session, name, query):
    session.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {query}")
    return ADDRESS, name


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")  # pyspark and pandas are not of one age
class TestSpark:
    ROWS = (
        "SELECT * FROM VALUES (1, 'a\\\\b', TIMESTAMP'2020-01-01 00:30:00Z'),"
        " (2, 'b', TIMESTAMP'2019-12-31 23:30:00Z'), (3, CAST(X'FFFE61' AS STRING), NULL),"
        " (4, CAST(X'FEFF61' AS STRING), NULL) AS v(u, k, z)"
    )

    @pytest.mark.parametrize(
        ("setting", "value"),
        [
            ("spark.sql.ansi.enabled", "true"),
            ("spark.sql.ansi.enabled", "false"),
            ("spark.sql.codegen.wholeStage", "false"),
            ("spark.sql.execution.arrow.pyspark.enabled", "true"),
            ("spark.sql.parser.escapedStringLiterals", "true"),
            ("spark.sql.session.timeZone", "America/New_York"),
            ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
        ],
    )
    def test_settings_of_the_session_change_no_answer(self, spark, setting, value):
        """Constants, times and keys are read alike, and the setting is left as it was."""
        source = view(spark, "settings", self.ROWS)
        before = spark.conf.get(setting)
        spark.conf.set(setting, value)
        try:
            table = hs.table(*source, user="u").bound_contributions(max_rows_per_user=1)
            query = table.filter("k in ['a\\\\b', 'b'] and z < '2020-01-01T00:00:00'")
            assert counts(query.filter("year(z) == 2019").count()) == [1]
            keyed = table.group_by("k", keys=["a\\b", "b", "c"])
            assert counts(keyed.count()) == [1, 1, 0]
            found = private_counts(table.group_by("k", select_partitions=True).count())
            assert found == {("a\\b",): 1, ("b",): 1, ("\ufffd\ufffda",): 2}
            assert spark.conf.get(setting) == value
        finally:
            spark.conf.set(setting, before)

    def test_what_fails_on_a_value_says_nothing_of_it(self, spark, ledger, assert_silent):
        """A view with a strict cast fails the query; neither error nor log quotes the cell."""
        failing = f"SELECT CAST(x AS INT) AS n FROM VALUES ('1'), ('{CANARY_TEXT}') AS v(x)"
        query = hs.table(*view(spark, "failing", failing)).sum("n", low=0, high=9)
        from pyspark.errors import PySparkException
        from pyspark.logger import PySparkLogger

        log, heard = PySparkLogger.getLogger("SQLQueryContextLogger"), io.StringIO()
        listening = logging.StreamHandler(heard)
        log.addHandler(listening)
        try:
            with pytest.raises(QueryFailed, match="the charge stays") as caught:
                query.release(epsilon=1.0, ledger=ledger, budget="b")
            assert heard.getvalue() == ""
            with pytest.raises(PySparkException):
                spark.table("failing").collect()
            assert CANARY_TEXT in heard.getvalue()  # or the test shows nothing
        finally:
            log.removeHandler(listening)
        assert_silent(caught.value)
        assert len(ledger.log) == 1

    def test_columns_that_spark_takes_for_one_are_refused(self, spark):
        """Before any charge, unless the session tells cases apart."""
        source = view(spark, "cased", "SELECT 1 AS n")
        spark.createDataFrame([(1, 2)], ["u", "U"]).createOrReplaceTempView("cased")
        with pytest.raises(ParameterError, match="same name"):
            hs.table(*source)
        spark.conf.set("spark.sql.caseSensitive", "true")
        try:
            assert counts(hs.table(*source).filter("u == 1 and U == 2").count()) == [1]
        finally:
            spark.conf.set("spark.sql.caseSensitive", "false")

    def test_names_of_columns_may_hold_any_mark(self, spark):
        """Quotation marks, dots and letters of every language."""
        names = ["a`b", "c.d", 'say "x"', "Ünï"]
        spark.createDataFrame([(1, 2, 3, 4)], names).createOrReplaceTempView("marks")
        asked = " and ".join(f"column('{name}') == {i}" for i, name in enumerate(names, 1))
        assert counts(hs.table(ADDRESS, "marks").filter(asked).count()) == [1]

    @pytest.mark.parametrize(
        ("odd", "known"),
        [
            ("array(1)", True),
            ("map('a', 1)", True),
            ("X'FF'", True),
            ("parse_json('1')", False),
            ("INTERVAL '1' YEAR", False),
            ("INTERVAL '1 2' DAY TO HOUR", False),
        ],
    )
    def test_types_that_cannot_be_asked(self, spark, odd, known):
        """Left alone where they can be; else the table is refused, with advice."""
        source = view(spark, "types", f"SELECT 1 AS n, {odd} AS odd")
        if known:
            table = hs.table(*source)
            assert table.columns["odd"] == "other"
            assert counts(table.filter("n == 1").count()) == [1]
        else:
            with pytest.raises(ParameterError, match="query a view"):
                hs.table(*source)

    def test_a_table_that_is_not_there(self, spark):
        """Is told as such, in whichever schema it was looked for."""
        for name in ("nosuch", "default.nosuch", "nosuch.nosuch"):
            with pytest.raises(NotFound, match="nosuch"):
                hs.table(ADDRESS, name)

    def test_a_session_that_ends_is_charged_or_refused(self, tmp_path):
        """Stopped or killed, before the charge or after it: a plain error, and no cell in it."""
        done = subprocess.run(
            [sys.executable, str(HERE / "spark_endings.py")],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found = {line["case"]: (line["found"], line["charges"]) for line in lines}
        assert found == ENDINGS, done.stderr
        assert not [trace for trace in TRACES if trace in done.stdout + done.stderr]
