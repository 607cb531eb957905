"""Plans that an open table keeps: one question is compiled once, and two are not mixed up."""

import os
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import EngineUnavailable
from hushed.tables._engine import copies, execution, plans

SURE = {"epsilon": 1e5}  # noise far below one half
ROWS = {
    "who": [i // 2 for i in range(400)],
    "x": [float(i % 4) for i in range(400)],
    "y": [float(i % 8) for i in range(400)],
    "g": ["a", "b"] * 200,
}
BOUNDS = {"max_rows_per_user": 2, "max_groups_per_user": None}


def opened(rows=None, **how):
    return hs.table(pa.table(ROWS if rows is None else rows), user="who", **how)


def bounded(table, **how):
    return table.bound_contributions(**BOUNDS | how)


@pytest.fixture
def compiled(monkeypatch):
    """Count what is compiled."""
    found, compile_sql = [], execution.compile_sql
    monkeypatch.setattr(
        execution, "compile_sql", lambda query: found.append(compile_sql(query)) or found[-1]
    )
    return found


def numbers(answer):
    return [round(row["n"]) for row in answer.rows()]


def test_the_same_question_is_compiled_once_whatever_it_pays(compiled):
    """Price and noise are not part of the plan; the answer is right each time."""
    query = bounded(opened()).filter("x > 1").count(name="n")
    assert numbers(query.release(**SURE)) == [200]
    before = len(compiled)
    assert before > 0
    for terms in (SURE, {"epsilon": 2e5}, SURE | {"noise": "gaussian", "delta": 1e-6}):
        assert numbers(query.release(**terms)) == [200]
    again = bounded(replaced(query)).filter("x > 1").count(name="n")  # built anew, as a server does
    assert numbers(again.release(**SURE)) == [200]
    assert len(compiled) == before


def replaced(query):
    return type(query)(
        query=type(query.query)(schema=query.query.schema, user=query.query.user),
        connection=query.connection,
    )


DIFFERENT = {
    "a constant": (lambda t: bounded(t).filter("x > 2").count(name="n"), [100]),
    "a column": (lambda t: bounded(t).filter("y > 1").count(name="n"), [300]),
    "a comparison": (lambda t: bounded(t).filter("x >= 1").count(name="n"), [300]),
    "no condition": (lambda t: bounded(t).count(name="n"), [400]),
    "a bound on rows": (lambda t: bounded(t, max_rows_per_user=1).count(name="n"), [200]),
    "a derived column": (
        lambda t: bounded(t.derive("z", "x + 1")).sum("z", low=0, high=4, name="n"),
        [1000],
    ),
    "another of that name": (
        lambda t: bounded(t.derive("z", "x + 2")).sum("z", low=0, high=5, name="n"),
        [1400],
    ),
    "a sum": (lambda t: bounded(t).sum("x", low=0, high=3, name="n"), [600]),
    "a clipped sum": (lambda t: bounded(t).sum("x", low=0, high=2, name="n"), [500]),
    "a sum of another column": (lambda t: bounded(t).sum("y", low=0, high=7, name="n"), [1400]),
    "users": (lambda t: bounded(t).count_users(name="n"), [200]),
    "keys": (lambda t: bounded(t.group_by("g", keys=["a", "b"])).count(name="n"), [200, 200]),
    "other keys": (lambda t: bounded(t.group_by("g", keys=["b", "c"])).count(name="n"), [200, 0]),
    "chosen keys": (
        lambda t: bounded(t.group_by("g", select_partitions=True)).count(name="n"),
        [200, 200],
    ),
}


@pytest.mark.slow
def test_another_question_of_one_table_has_a_plan_of_its_own():
    """Each in turn on one table, forwards and backwards; what is told is the truth about each."""
    table = opened()
    turns = [*DIFFERENT.values(), *reversed(DIFFERENT.values())]
    for ask, truth in turns:
        asked = ask(table)
        delta = 1e-9 if asked.query.keys.selected else 0.0
        assert numbers(asked.release(**SURE, delta=delta)) == truth
    assert len(table.connection.plans) >= len(DIFFERENT)  # one for each copy that it read
    secrets = [each.secret for each in table.connection.plans.values()]
    assert len(set(secrets)) == len(secrets)


@pytest.mark.slow
def test_the_same_words_on_another_table_are_another_plan(tmp_path):
    """Of other rows, other types and other names of columns; nothing is shared between tables."""
    file = tmp_path / "t.csv"
    file.write_text("who,x,y\n" + "".join(f"{i},0{i % 3},1\n" for i in range(300)))
    of_types = [
        (opened({"who": [1, 2, 3], "x": [2.0, 2.0, 0.0]}), "x > 1", 2),
        (opened({"who": [1, 2, 3], "x": [0.0, 2.0, 0.0]}), "x > 1", 1),
        (hs.table(file, user="who", types={"x": "float"}), "x == 1", 100),
        (hs.table(file, user="who", types={"x": "int"}), "x == 1", 100),
        (hs.table(file, user="who", types={"x": "string"}), "x == '1'", 0),
        (hs.table(file, user="who", header="who,y,x", types={"x": "int"}), "x == 1", 300),
    ]
    for _ in range(2):
        for table, condition, truth in of_types:
            query = bounded(table.filter(condition), max_rows_per_user=1).count(name="n")
            assert numbers(query.release(**SURE)) == [truth]
    assert all(len(table.connection.plans) == 1 for table, _, _ in of_types)


def test_a_changed_file_is_not_answered_by_a_plan_of_before(tmp_path):
    """The table refuses, and one that is opened again sees the new rows."""
    file = tmp_path / "t.csv"
    file.write_text("who,x\n1,5\n2,5\n")

    def ask():
        table = hs.table(file, user="who", types={"x": "float"})
        return bounded(table, max_rows_per_user=1).filter("x > 1").count(name="n")

    query = ask()
    assert numbers(query.release(**SURE)) == [2]
    file.write_text("who,x\n1,5\n2,5\n3,5\n")
    os.utime(file, (1, 1))
    with pytest.raises(EngineUnavailable, match="not as it was"):
        query.release(**SURE)
    assert numbers(ask().release(**SURE)) == [3]


def test_plans_follow_the_copy_that_holds_their_columns(monkeypatch):
    """Questions of two columns in turn share one copy; it is not filled again for each of them."""
    filled, run = [], execution.run_command

    def run_command(connection, sql, clock):
        filled.extend([sql] if sql.startswith("CREATE OR REPLACE") else [])
        run(connection, sql, clock)

    monkeypatch.setattr(copies, "run_command", run_command)
    table = bounded(opened())
    x, y = (table.sum(name, low=0, high=7, name="n") for name in "xy")
    for query, truth in 3 * [(x, [600]), (y, [1400])]:
        assert numbers(query.release(**SURE)) == truth
    assert len(filled) == 2
    assert len(table.connection.copies) == 1


def test_a_plan_outlives_the_copy_that_it_reads(compiled):
    """A copy that made room is filled again when its question is asked again."""
    table = opened()
    queries = [bounded(table.filter(f"x > {i}")).count(name="n") for i in range(4)]
    for _ in range(2):
        assert [numbers(each.release(**SURE)) for each in queries] == [[300], [200], [100], [0]]
    assert len(table.connection.copies) == copies.MOST_COPIES
    assert len(compiled) == 2 * len(queries)


@pytest.mark.slow
def test_few_plans_are_kept_and_no_long_ones(monkeypatch):
    """The one that was used longest ago makes room."""
    table = opened()
    queries = [bounded(table.filter(f"x > {i}")).count(name="n") for i in range(5)]
    monkeypatch.setattr(plans, "MOST_PLANS", 3)
    for first, second in pairwise(queries):
        for each in (first, second):
            each.prepare(epsilon=1.0)
            assert len(table.connection.plans) <= 3
    kept = list(table.connection.plans)
    queries[2].prepare(epsilon=1.0)
    assert list(table.connection.plans) == [*kept[1:], kept[0]]
    long = bounded(table.group_by("g", keys=[f"{i}{'k' * 150}" for i in range(400)])).count(
        name="n"
    )
    long.prepare(epsilon=1.0)
    assert len(table.connection.plans) == 3


@pytest.mark.slow
def test_where_rights_or_rows_may_change_every_question_is_planned_again(compiled, tmp_path):
    """Of a view no copy is kept, and no plan."""
    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE held AS SELECT i AS who, i AS x FROM range(9) AS t(i)")
        made.execute("CREATE VIEW looked AS SELECT * FROM held")
    with pytest.warns(UserWarning, match="a view"):
        table = hs.table(f"duckdb:///{path}", "looked", user="who")
    query = bounded(table).count(name="n")
    for turn in (1, 2):
        query.prepare(epsilon=1.0)
        assert len(compiled) == turn
    assert table.connection.plans == {}


@pytest.mark.slow
def test_other_joined_tables_have_plans_of_their_own(tmp_path):
    """The same words, and a joined table of another name with other rows."""
    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE held AS SELECT i AS who FROM range(9) AS t(i)")
        for name, most in (("few", 3), ("many", 7)):
            made.execute(f"CREATE TABLE {name} AS SELECT i AS pid, 1 AS z FROM range({most}) t(i)")
    table = hs.table(f"duckdb:///{path}", "held", user="who")
    for _ in range(2):
        for name, truth in (("few", 3), ("many", 7)):
            joined = table.join_users(name, user="pid", columns=["z"])
            assert joined.connection.plans is not table.connection.plans
            query = bounded(joined).filter("z == 1").count(name="n")
            assert numbers(query.release(**SURE)) == [truth]
    assert table.connection.plans == {}
