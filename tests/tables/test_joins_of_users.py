"""Two private tables joined by their users: against plain Python, neighbours and misuse."""

from collections import Counter

import duckdb
import pyarrow as pa
import pytest
from tests.nasty_tables import to_postgres

import hushed as hs
from hushed.errors import KeyInUse, NotFound, ParameterError
from hushed.tables._scan import fetch_keys, prepare, run_scan

VISITS = [(who, float(i % 4)) for i, who in enumerate([1, 1, 1, 2, 3, 3, 4, None, 7, 7] * 3)]
PEOPLE = [(1, 30, "f"), (2, 41, "m"), (2, 40, "m"), (4, None, None), (9, 50, "f"), (None, 1, "f")]
SEXES = ["f", "m", "?"]


def framed(names, rows, kinds):
    """An Arrow table of these rows."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(each, kind) for each, kind in zip(columns, kinds, strict=True)]
    return pa.table(dict(zip(names, arrays, strict=True)))


def tables(visits, people):
    """Both tables as frames."""
    return {
        "visits": framed(["who", "x"], visits, [pa.int64(), pa.float64()]),
        "people": framed(["pid", "age", "sex"], people, [pa.int64(), pa.int64(), pa.string()]),
    }


def in_duckdb(path, visits=VISITS, people=PEOPLE):
    """A DuckDB file with both tables; its address."""
    with duckdb.connect(str(path)) as made:
        for name, frame in tables(visits, people).items():
            made.register("frame", frame)
            made.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM frame")
    return f"duckdb:///{path}"


@pytest.fixture(params=["duckdb", "postgres"])
def source(request, tmp_path):
    """The address of a database with both tables."""
    if request.param == "duckdb":
        return in_duckdb(tmp_path / "t.db")
    url = request.getfixturevalue("postgres_url")
    for name, frame in tables(VISITS, PEOPLE).items():
        to_postgres(frame, url, name)
    return url


def opened(source):
    return hs.table(source, "visits", user="who")


def cells(query, secret=5, *, copied=False):
    """Exact answers of each measurement by public key."""
    found = run_scan(prepare(query.connection, query.query, secret, copied=copied))
    return dict(zip(found.keys, zip(*found.values, strict=True), strict=True))


def by_sex(table, default=None):
    joined = table.join_users("people", user="pid", columns=["age", "sex"], default=default)
    joined = joined.bound_contributions(max_rows_per_user=2).group_by("sex", keys=SEXES)
    return joined.count().count_users().sum("age", low=0, high=64)


def test_rows_meet_one_row_of_their_user(source):
    """Two people rows of one user double nothing; who is in one table only is left out."""
    found = cells(by_sex(opened(source)))
    visits = Counter(who for who, _ in VISITS)
    assert found[("f",)][:2] == (min(2, visits[1]), 1)
    assert found[("m",)][:2] == (min(2, visits[2]), 1)
    assert found[("?",)][:2] == (0, 0)


@pytest.mark.slow
def test_users_without_a_row_take_the_stated_values(source):
    """A missing cell of a row that is there stays missing, and is no match that failed."""
    found = cells(by_sex(opened(source), default={"age": 5, "sex": "?"}))
    assert found[("?",)][:2] == (4, 2)  # users 3 and 7, two rows each
    assert found[("f",)][:2] == (2, 1)


@pytest.mark.slow
def test_keys_of_the_joined_table_are_found_by_partition_selection(source):
    """The same row of a user is met in every query of one answer, for each secret."""
    joined = opened(source).join_users("people", user="pid", columns=["age"])
    query = joined.bound_contributions(max_rows_per_user=1)
    query = (
        query.group_by("age", select_partitions=True).count().histogram("x", low=0, high=4, bins=2)
    )
    ages = set()
    for secret in (0, 1, 5):
        ready = prepare(query.connection, query.query, secret)
        found = run_scan(ready)
        keys = fetch_keys(ready, [key[0] for key in found.keys])
        held = [keys[key[0]] for key in found.keys]
        assert [sum(bins) for bins in found.values[1]] == list(found.values[0])
        ages |= {age for (age,) in held}
        assert len(held) == 2
    assert ages in ({30, 40}, {30, 41}, {30, 40, 41})


HOLDINGS = [
    (visits, people)
    for visits in ([0.0], [0.0, 3.0], [3.0] * 4)
    for people in ([], [(20, "f"), (60, "m")], [(64, "m")] * 3)
]


@pytest.mark.slow
@pytest.mark.parametrize("copied", [False, True])
def test_one_user_with_all_rows_in_both_tables_moves_no_answer_farther_than_is_said(
    copied, tmp_path
):
    """All holdings of one user beside the others: counts by 2, users by 1, the sum by 128."""
    with_user = []
    for i, (visits, people) in enumerate([([], []), *HOLDINGS]):
        source = in_duckdb(
            tmp_path / f"{i}.db",
            VISITS + [(50, x) for x in visits],
            PEOPLE + [(50, age, sex) for age, sex in people],
        )
        query = by_sex(opened(source), default={"age": 0, "sex": "?"})
        with_user.append((cells(query, copied=copied), query))
    (without, query), *others = with_user
    limits = [part.measurement.l1 for part in plan_parts(query)]
    farthest = [0, 0, 0]
    for found, _ in others:
        for i in range(3):
            moved = sum(abs(found[key][i] - without[key][i]) for key in found)
            farthest[i] = max(farthest[i], moved)
    assert all(f <= limit for f, limit in zip(farthest, limits, strict=True))
    assert farthest[0] == limits[0]


def plan_parts(query):
    """The parts of the plan, with what they are scaled to."""
    from hushed.tables._release import plan_query

    return plan_query(query.query, epsilon=1.0, delta=0.0, noise_name="laplace").parts


@pytest.mark.slow
def test_the_query_is_written_and_asked_again(tmp_path):
    """As TOML, JSON, Python and a notebook; with and without stated values."""
    import json

    source = in_duckdb(tmp_path / "t.db")
    table = opened(source)
    for default in (None, {"age": 7, "sex": "?"}):
        asked = by_sex(table, default)
        query = hs.Query.of(asked)
        assert table.ask(query) == asked
        assert hs.Query.from_toml(query.to_toml()) == query == hs.Query.from_json(query.to_json())
        found = {}
        exec(query.to_python(source, "visits"), found)
        assert hs.Query.of(found["query"]) == query
        cell = json.loads(query.to_notebook(source, "visits", epsilon=1.0))["cells"][1]
        exec(cell["source"], found)
        assert hs.Query.of(found["query"]) == query
        command = query.to_cli(source, "visits", epsilon=1.0)
        assert "--join-users people:pid:age,sex" in command
        assert ("--default age=7 --default 'sex=?'" in command) == (default is not None)


@pytest.mark.slow
def test_a_certificate_names_both_tables(tmp_path):
    """Who is protected, and by how much, follows from the question again."""
    answer = by_sex(opened(in_duckdb(tmp_path / "t.db"))).release(epsilon=1.0)
    statement = hs.certify(answer)
    assert hs.verify(statement.to_json()).reproduced
    assert "all rows in both tables" in statement.explain()
    assert "people" in statement.explain()


@pytest.mark.slow
def test_releases_share_the_copy_of_the_joined_rows(tmp_path):
    """Two answers of one question; the second one reads the copy, and neither writes the file."""
    path = tmp_path / "t.db"
    source = in_duckdb(path)
    before = path.read_bytes()
    query = by_sex(opened(source))
    for _ in range(2):
        rows = query.release(epsilon=1000.0).rows()
        assert [row["count"] for row in rows] == pytest.approx([2, 2, 0], abs=1)
    assert len(query.connection.copies) == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"name": "people", "user": "sex", "columns": ["age"]}, "type int here and of type string"),
        ({"name": "people", "user": "nobody", "columns": ["age"]}, "no column 'nobody'"),
        ({"name": "people", "user": "pid", "columns": ["nothing"]}, "no column 'nothing'"),
        ({"name": "people", "user": "pid", "columns": []}, "name the columns"),
        ({"name": "people", "user": "pid", "columns": "age"}, "list names"),
        ({"name": "visits", "user": "who", "columns": ["x"]}, "a column 'x' already"),
        ({"name": "people", "user": "pid", "columns": ["age"], "default": {}}, "of each added"),
        (
            {"name": "people", "user": "pid", "columns": ["age"], "default": {"age": "x"}},
            "must be of type int",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(how, words, tmp_path):
    """Before anything is read, by the part that does not fit."""
    table = opened(in_duckdb(tmp_path / "t.db"))
    name = how.pop("name")
    with pytest.raises(ParameterError, match=words):
        table.join_users(name, **how)


@pytest.mark.slow
def test_what_cannot_be_joined_by_users_is_refused(tmp_path):
    """A table that is not there, rows as the unit, and frames, which are in no database."""
    source = in_duckdb(tmp_path / "t.db")
    with pytest.raises(NotFound, match=r"no table 'nobody'; its tables: [a-z, ]*$"):
        opened(source).join_users("nobody", user="pid", columns=["age"])
    with pytest.raises(ParameterError, match="no user column"):
        hs.table(source, "visits").join_users("people", user="pid", columns=["age"])
    frame = hs.table(tables(VISITS, PEOPLE)["visits"], user="who")
    with pytest.raises(ParameterError, match="one database"):
        frame.join_users("people", user="pid", columns=["age"])


@pytest.mark.slow
@pytest.mark.slow
def test_copies_of_ours_are_no_tables(tmp_path):
    """Bounded rows are kept as a temporary table: it is neither listed nor joined."""
    query = opened(in_duckdb(tmp_path / "temp.db"))
    query.bound_contributions(max_rows_per_user=1).count().release(epsilon=1.0)
    backend = query.connection.rows.get_backend().con
    kept = backend.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()
    assert kept, "no copy was kept, and nothing is tried"
    with pytest.raises(NotFound, match=r"no table 'nobody'; its tables: people, visits$"):
        query.join_users("nobody", user="who", columns=["x"])
    for name in (kept[0][0], f"main.{kept[0][0]}", f"temp.main.{kept[0][0]}"):
        with pytest.raises(NotFound, match="no table"):
            query.join_users(name, user="who", columns=["x"])


@pytest.mark.slow
def test_a_joined_view_causes_a_warning_and_keeps_no_copy(tmp_path):
    """What a view reads may change, and its rows cannot be checked: price and answer say so."""
    path = tmp_path / "t.db"
    source = in_duckdb(path)
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE VIEW looked AS SELECT * FROM people")
    with pytest.warns(UserWarning, match="a view"):
        query = opened(source).join_users("looked", user="pid", columns=["age"])
    asked = query.bound_contributions(max_rows_per_user=1).count()
    for told in (asked.quote(epsilon=1.0), asked.release(epsilon=1.0)):
        assert told.warnings[0].startswith("looked is a view")
    assert query.connection.copies is None


@pytest.mark.slow
def test_another_joined_table_of_the_same_name_is_another_question(postgres, tmp_path):
    """The search path says which table a name means, and a key names one question."""
    database = postgres.create_database()
    postgres.run(
        "CREATE TABLE visits AS SELECT generate_series(1, 9) AS who",
        *(
            f"CREATE SCHEMA {each}; CREATE TABLE {each}.people AS "
            "SELECT generate_series(1, 9) AS pid, 1 AS age"
            for each in ("one", "two")
        ),
        database=database,
    )
    with hs.Ledger(f"sqlite:///{tmp_path}/book.db") as book:
        book.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove", unit="user"))
        ask = {"epsilon": 1.0, "ledger": book, "budget": "b", "key": "mine"}
        queries = []
        for each in ("one", "two", "one"):
            url = f"{postgres.url(database)}?options=-csearch_path%3D{each},public"
            joined = opened(url).join_users("people", user="pid", columns=["age"])
            queries.append(joined.bound_contributions(max_rows_per_user=1).count())
        answer = queries[0].release(**ask)
        with pytest.raises(KeyInUse):
            queries[1].release(**ask)
        assert queries[2].release(**ask) == answer
