"""Expressions are judged in linear time, refused beyond a stated size, and planned in time."""

import ast

import pandas as pd
import pyarrow as pa
import pytest
from tests.nasty_tables import to_postgres

import hushed as hs
from hushed.errors import HushedError, ParameterError
from hushed.tables import _expressions as expressions
from hushed.tables._scan import prepare, run_scan

COLUMNS = {"x": "float", "n": "int", "b": "bool", "s": "string", "d": "date"}


def nested(form, times, inner="b"):
    for _ in range(times):
        inner = form.format(inner)
    return inner


@pytest.fixture
def table():
    rows = {"x": [1.0, -2.0, None], "n": [1, 5, 7], "b": [True, False, None], "s": ["a", "b", "c"]}
    return hs.table(pa.table({**rows, "d": pa.array([0, 1, 2], pa.date32())}))


def count(query):
    return run_scan(prepare(query.count().connection, query.count().query, 1)).values[0][0]


class TestLinear:
    @pytest.mark.parametrize(
        "form",
        ["({}) in [True, False, True]", "({}) == b", "not ({})", "is_null({})",
         "({}) == (n < 3)", "({} or b) and b", "True in [True] and ({}) in [False]"],
    )  # fmt: skip
    def test_every_part_is_looked_at_once(self, form, monkeypatch):
        """Twice as deep is at most about twice the work, counted, not timed."""
        looked = []
        found = expressions._Checker.infer

        def counted(self, node):
            looked.append(node)
            return found(self, node)

        monkeypatch.setattr(expressions._Checker, "infer", counted)
        for times in (6, 12, 24):
            looked.clear()
            text = nested(form, times)
            try:
                parsed = expressions.parse(text, COLUMNS)
            except ParameterError:
                assert times == 24  # too deep for some
                continue
            parts = [each for each in ast.walk(parsed.tree) if isinstance(each, ast.expr)]
            assert len(looked) <= len(parts)

    @pytest.mark.parametrize(
        "form",
        ["({}) in [True, False, True]", "({}) not in [True]", "({}) == b", "({}) != (b == b)",
         "is_null({})", "({}) == True and b"],
    )  # fmt: skip
    def test_what_is_deep_is_answered(self, form, table):
        """Engines write lists and conditions out: at this depth an exponential one never ends."""
        query = table.filter(nested(form, 25))
        assert len(prepare(query.count().connection, query.count().query, 1).plain.sql) < 10_000
        query.count().release(epsilon=1.0, timeout=60)

    @pytest.mark.slow_cases("({0} or b) and ({0} or not b) and {0}-b", "{0} + {0}-x")
    @pytest.mark.parametrize(
        ("form", "column"),
        [("{0} == {0}", "b"), ("({0} or b) and ({0} or not b) and {0}", "b"), ("{0} + {0}", "x"),
         *(pytest.param(*each, marks=pytest.mark.slow) for each in (
             ("True == {0} == True", "b"), ("{0} in [True, False]", "b"), ("abs({0})", "x")))],
    )  # fmt: skip
    def test_derived_columns_in_a_chain_are_answered(self, form, column, table):
        """A condition on the last one is not pushed down through the others, doubling each time."""
        query = table.derive("d0", column)
        for i in range(18):
            query = query.derive(f"d{i + 1}", form.format(f"d{i}"))
        last = "d18" if column == "b" else "d18 > 0"
        answer = query.filter(last).count().release(epsilon=1.0, timeout=60)
        assert len(answer.to_dict()["count"]) == 1

    def test_lists_of_bools_mean_what_they_say(self, table):
        """Missing stays missing, in every kind of list, in the list and out of it."""
        found = {
            "b in [True]": 1, "b in [False]": 1, "b in [True, False]": 2, "b not in [True]": 1,
            "b not in [True, False]": 0, "is_null(b in [True, False])": 1,
            "is_null(b in [False])": 1, "(n < 3) in [True, True]": 1, "(n > 0) in [False]": 0,
        }  # fmt: skip
        assert {text: count(table.filter(text)) for text in found} == found

    @pytest.mark.slow
    @pytest.mark.parametrize("engine", ["duckdb", "postgres"])
    def test_whether_a_condition_is_missing(self, engine, request):
        """Counted by hand: b is true, false and missing, s is a, b and missing."""
        frame = pa.table({"b": [True, False, None], "s": ["a", "b", None], "n": [1, 5, 7]})
        source = (frame, "rows")
        if engine == "postgres":
            source = (request.getfixturevalue("postgres_url"), "t")
            to_postgres(frame, *source)
        found = {
            "is_null(not b)": 1, "is_null(not not b)": 1, "not is_null(not b)": 2,
            "is_null(b not in [True])": 1, "is_null(s not in ['a'])": 1, "is_null(s in ['a'])": 1,
            "is_null(s != 'a')": 1, "is_null(b == (n < 3))": 1, "is_null(b and n < 6)": 0,
            "is_null(b and n > 6)": 1, "is_null(b or n > 6)": 0, "is_null(is_null(not b))": 0,
            "(not b) == (not (n > 3))": 0, "(not b) != (not (n > 3))": 2,
            "(not b) in [True, False]": 2, "is_null(not (b and not b))": 1, "not (b or b)": 1,
        }  # fmt: skip
        table = hs.table(*source)
        assert {text: count(table.filter(text)) for text in found} == found

    def test_a_condition_in_the_middle_of_a_chain_is_refused(self, table):
        """It would be reads b twice, and doubled at every level; columns and numbers may stand."""
        for text in ("b == (n < 3) == b", "True == (not b) == b", "b == is_null(n) == b"):
            with pytest.raises(ParameterError, match="reads b twice"):
                table.filter(text)
        assert count(table.filter("0 < n + 1 < 7")) == 2
        assert count(table.filter("True == b == True")) == 1
        assert count(table.filter("-3 < -2 < n")) == 3


class TestSize:
    @pytest.mark.parametrize(
        "text",
        ["-" * 5000 + "x > 1", "-" * 100_000 + "x > 1", "not " * 2400 + "b", "(" * 150 + "x",
         "x" + ".a" * 4000, "x > 1" + " or x > 1" * 5000, "n in [" + "1," * 4000 + "]",
         "s == '" + "a" * 20_000 + "'", nested("abs({})", 90, "x") + " > 1", "[" * 190,
         "x" + "[0]" * 3000, "+".join(["x"] * 200) + " > 1", "f'{x}'" * 900, "lambda: " * 900],
    )  # fmt: skip
    def test_what_is_too_large_is_refused_shortly(self, text, table):
        """With words that do not quote it, and no exception of Python's own."""
        with pytest.raises(ParameterError) as caught:
            table.filter(text)
        assert len(str(caught.value)) < 600
        assert text[:200] not in str(caught.value)

    def test_the_limits_are_told(self, table):
        for text in ("s == '" + "a" * 10_000 + "'", "b or " * 600 + "b", "not " * 70 + "b"):
            with pytest.raises(ParameterError, match="10000 characters, 500 parts, and 60 parts"):
                table.filter(text)
        assert count(table.filter("n in [" + ",".join(map(str, range(480))) + "]")) == 3
        assert count(table.filter("not " * 50 + "b")) == 1

    def test_little_room_on_the_stack_is_told_alike(self, table):
        """However deep the caller stands, what comes is an error of ours or an answer."""

        def deep(level):
            if level:
                return deep(level - 1)
            try:
                table.filter("not " * 40 + "(x + 1 > 0)")
            except HushedError as error:
                return type(error)
            return None

        met = set()
        for level in range(500, 990, 7):
            try:
                met.add(deep(level))
            except RecursionError:  # there was no room for the call itself
                break
        assert met <= {None, ParameterError}
        assert met

    @pytest.mark.slow
    def test_a_query_that_is_too_long_is_refused_at_once(self, table, ledger):
        """Many filters, many operations, many aggregates: before Ibis tries for minutes."""
        filters, chain, many = table, table.derive("d0", "x"), table
        for i in range(1000):
            filters = filters.filter("x > 0")
            chain = chain.derive(f"d{i + 1}", f"d{i} + 1")
        for i in range(101):
            many = many.count(name=f"c{i}")
        wide = table.filter("+".join(["x"] * 55) + " > 1")
        for query in (filters.count(), chain.sum("d1000", low=0, high=1), wide.count(), many):
            with pytest.raises(ParameterError, match=r"too long|aggregates"):
                query.release(epsilon=1.0, ledger=ledger, budget="b")
        assert ledger.log == []


def test_a_name_that_no_database_can_read_is_refused_in_words():
    """Half of a pair of surrogates in the name of a column, which is public."""
    rows = pd.DataFrame([[1.0], [2.0]])
    rows.columns = pd.Index(["cost\ud800"], dtype=object)
    with pytest.raises(ParameterError, match="surrogates"):
        hs.table(rows)
