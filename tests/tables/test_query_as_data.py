"""A query as data: what is written asks the same, whatever it is written as."""

import copy
import json
import pickle
import shlex
import tomllib

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.tables import _engine as engine

ROWS = "who,age,cost,city,a day\n1,30,10.5,Rome,2020-01-01\n1,31,2,Oslo,2020-01-02\n2,60,7,Rome,\n"
TYPES = {"who": "int", "age": "int", "cost": "float", "a day": "date"}
CITIES = ["Rome", "Oslo", "a, b", "it's", ' "x"', "-1", "È", "true", "\\n"]

names = st.text("ab_ '\"\\é-=:,", min_size=1, max_size=5)
bounds = st.floats(-1e6, 1e6).map(lambda low: (low, low + 10))
weights = st.sampled_from([1.0, 1.0, 2.0, 0.3])


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "visits of a clinic.csv"
    path.write_text(ROWS)
    return str(path)


@pytest.fixture(scope="module")
def database(csv):
    """The same rows in a database, beside a table of their users."""
    path = csv.removesuffix(".csv") + ".db"
    with duckdb.connect(path) as made:
        made.execute(f"CREATE TABLE rows AS FROM read_csv('{csv}', all_varchar=true)")
        made.execute('CREATE TABLE "all: people" AS SELECT 1 AS id, 3 AS age_then, 2.5 AS height')
        made.execute('ALTER TABLE "all: people" ADD COLUMN sex VARCHAR')
        made.execute('ALTER TABLE "all: people" ADD COLUMN "a,b" BOOLEAN')
    return f"duckdb:///{path}"


@pytest.fixture(scope="module")
def opened_once():
    """Give the same connection for the same words: opening takes longer than all else here."""
    kept = {}

    def connect(*given, **named):
        key = repr((given, named))
        if key not in kept:
            kept[key] = real(*given, **named)
        return kept[key]

    real = engine.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "connect", connect)
        yield


CONDITIONS = ["-cost < 3", "city in ['Rome', \"it's\"]", "column('a day') > '2020-01-01'"]
KINDS = ["count", "sum", "mean", "variance", "quantiles", "histogram"]
KEYS = {"city": CITIES, "a day": ["2020-01-01"], "who": [1, 2]}


@st.composite
def join(draw, added):
    """Draw a public table of these columns."""
    on = draw(st.sampled_from(sorted(KEYS)))
    keys = draw(st.lists(st.sampled_from(KEYS[on]), unique=True, min_size=1))
    kinds = [
        st.floats(-1e300, 1e300), st.integers(-(2**63), 2**63 - 1), st.booleans(),
        st.sampled_from(CITIES), st.sampled_from([1, 2.5, -0.0]),
    ]  # fmt: skip
    columns, default = {}, {}
    for name in added:
        kind = draw(st.sampled_from(kinds))
        columns[name] = [draw(kind) for _ in keys]
        default[name] = draw(kind)
    how = draw(st.sampled_from([{}, {"default": default}]))
    return "join", ({on: keys, **columns},), {"on": on, "users_are_public": True, **how}


@st.composite
def join_users(draw):
    """Draw columns of the table of users, often without a value for users who are not in it."""
    defaults = {
        "age_then": st.integers(-9, 9),
        "height": st.sampled_from([2, -0.5, 1e300]),
        "sex": st.sampled_from(["f", "1", "", "a=b", "-", " true"]),
        "a,b": st.booleans(),
    }
    plain = st.just(sorted({*defaults} - {"a,b"}))
    offered = draw(st.one_of(plain, plain, st.just(sorted(defaults))))
    columns = draw(st.lists(st.sampled_from(offered), unique=True, min_size=1))
    default = {name: draw(defaults[name]) for name in columns}
    how = draw(st.sampled_from([{}, {"default": default}]))
    return "join_users", ("all: people",), {"user": "id", "columns": columns, **how}


@st.composite
def steps(draw):
    """Draw filters and derived columns, in any order."""
    derived = draw(st.lists(names.filter(str.strip), unique=True, max_size=2))
    texts = st.sampled_from(["cost / 2", "floor(age/10)"])
    calls = [("derive", (name, draw(texts)), {}) for name in derived]
    added = draw(st.lists(names.filter(str.strip), unique=True, max_size=2))
    if added and not {*added} & {*derived, *TYPES, "city"}:
        calls.append(draw(join(added)))
    calls += [("filter", (text,), {}) for text in draw(st.lists(st.sampled_from(CONDITIONS)))]
    return draw(st.permutations(calls))


@st.composite
def aggregate(draw, kind, name):
    """Draw one aggregate with what may be said of it."""
    low, high = draw(bounds)
    how = {"low": low, "high": high} if kind != "count" else {}
    column = () if kind == "count" else (draw(st.sampled_from(["age", "cost"])),)
    if kind == "quantiles":
        column = (*column, draw(st.sampled_from([[0.5], [0.25, 0.75]])))
        how |= draw(st.sampled_from([{}, {"candidates": 11}]))
    if kind in ("sum", "mean"):
        how |= draw(st.sampled_from([{}, {"low": 0.0, "high": "search"}]))
    how |= draw(st.sampled_from([{}, {"weight": draw(weights)}, {"name": name}]))
    return kind, column, how


@st.composite
def asked(draw, beside=False):
    """Draw what is asked of the table, as calls of its methods; `beside` joins its users."""
    by_user, calls = beside or draw(st.booleans()), draw(steps())
    if beside:
        place = draw(st.one_of(st.just(0), st.integers(0, len(calls))))
        calls = [*calls[:place], draw(join_users()), *calls[place:]]
    if by_user:
        groups = draw(st.sampled_from([{}, {"max_groups_per_user": 2}]))
        calls.append(("bound_contributions", (), {"max_rows_per_user": 3} | groups))
    by = draw(st.lists(st.sampled_from(sorted(KEYS)), unique=True, max_size=2))
    keys = {c: draw(st.lists(st.sampled_from(KEYS[c]), unique=True, min_size=1)) for c in by}
    if by and draw(st.integers(0, 3)) == 0:
        of = "users" if by_user else "rows"
        return by_user, [*calls, ("top_k", by, {"k": 1, "keys": keys, "of": of})]
    if by:
        how = draw(st.sampled_from([{"keys": keys}, {"select_partitions": True}]))
        calls.append(("group_by", by, how))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True))
    return by_user, calls + [draw(aggregate(kind, f"x {kind}")) for kind in kinds]


def build(csv, drawn):
    by_user, calls = drawn
    opened = hs.table(csv, user="who" if by_user else None, types=TYPES)
    table = opened
    for method, positional, named in calls:
        table = getattr(table, method)(*positional, **named)
    return opened, table


def check_law(csv, drawn):
    """Ask the same by every way out and back."""
    opened, table = build(csv, drawn)
    query = hs.Query.of(table)
    assert opened.ask(query) == table
    assert hs.Query.from_toml(query.to_toml()) == query == hs.Query.from_json(query.to_json())
    found = {}
    exec(query.to_python(csv, "rows"), found)
    assert hs.Query.of(found["query"]) == query
    return query


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(drawn=asked())
def test_queries_ask_the_same_as_data_python_command_and_notebook(
    csv, opened_once, drawn, tmp_path_factory
):
    """Random queries, written as TOML, JSON, Python, a command and a notebook, and read again.

    So many see what one query in 18 has with 0.999.
    """
    check_all_ways(csv, drawn, tmp_path_factory.getbasetemp() / "saved.toml")


@pytest.mark.soak
@settings(max_examples=1_000, deadline=None)
@given(drawn=asked())
def test_a_thousand_queries_ask_the_same(csv, opened_once, drawn, tmp_path_factory):
    """So many see what one query in 145 has with 0.999."""
    check_all_ways(csv, drawn, tmp_path_factory.getbasetemp() / "saved.toml")


def check_all_ways(csv, drawn, saved):
    query = check_law(csv, drawn)
    check_command(csv, query, saved)
    check_notebook(csv, query)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(drawn=asked(beside=True))
def test_joins_by_users_are_exported_as_all_else(database, opened_once, drawn, tmp_path_factory):
    """As data, Python, a notebook and a command, with options where they can say it."""
    query = check_law(database, drawn)
    check_command(database, query, tmp_path_factory.getbasetemp() / "saved.toml")
    check_notebook(database, query)


def check_notebook(source, query):
    import nbformat

    notebook = nbformat.reads(query.to_notebook(source, "rows", epsilon=0.5), as_version=4)
    nbformat.validate(notebook)
    found = {}
    exec(notebook.cells[1].source, found)
    assert hs.Query.of(found["query"]) == query


def check_command(csv, query, saved):
    words = shlex.split(query.to_cli(csv, "rows", epsilon=1))
    assert words[:3] == ["hushed", "query", csv]
    private_keys = query.groups is not None and query.groups.keys is None
    delta = ["--delta", "1e-6"] if private_keys else []
    asked_for = [*words[1:], *delta, "--quote", "--save", str(saved), "--force"]
    ended = CliRunner().invoke(app, asked_for)
    assert ended.exit_code == 0, ended.stderr
    assert hs.Query.from_toml(saved.read_text()) == query
    return words


@pytest.mark.slow
def test_a_command_has_options_where_they_say_all_and_the_whole_query_elsewhere(csv, tmp_path):
    """A weight, a name or a key with a comma has no option."""
    table = hs.table(csv, user="who", types=TYPES).filter("-cost < 3")
    table = table.bound_contributions(max_rows_per_user=3)
    plain = (
        table.group_by("city", keys=["Rome", "Oslo"]).count().mean("cost", low=-1, high="search")
    )
    plain = plain.quantiles("cost", [0.5], low=0, high=9, name="median_cost")
    words = check_command(csv, hs.Query.of(plain), tmp_path / "a.toml")
    assert words[3:] == [
        *("--user", "who", "--type", "cost=float", "--type", "who=int"),
        *("--max-rows-per-user", "3", "--where=-cost < 3"),
        *("--by", "city", "--keys", "Rome,Oslo", "--count", "--mean", "cost:-1.0:search"),
        *("--median", "cost:0.0:9.0", "--epsilon", "1.0"),
    ]  # fmt: skip
    for other in (
        plain.count(name="n"),
        table.count(weight=2),
        table.group_by("city", keys=["a, b"]).count(),
        table.derive("x=y", "cost").count(),
        table.derive("k", "cost").filter("k > 1").count(),
        table.sum("cost", low=0, high=1).count(),
    ):
        words = check_command(csv, hs.Query.of(other), tmp_path / "b.toml")
        assert json.loads(words[words.index("--query") + 1]) == json.loads(
            hs.Query.of(other).to_json()
        )


@pytest.mark.slow
def test_a_join_by_users_has_options(database, tmp_path):
    """Its values for users without a row, too; a comma in a column's name has none."""
    table = hs.table(database, user="who", types=TYPES).bound_contributions(max_rows_per_user=3)
    how = {"user": "id", "columns": ["sex", "height"], "default": {"sex": "1", "height": 2}}
    joined = table.join_users("all: people", **how).filter("sex == '1'").count()
    words = check_command(database, hs.Query.of(joined), tmp_path / "a.toml")
    start = words.index("--join-users")
    assert words[start : start + 6] == [
        *("--join-users", "all: people:id:height,sex"),
        *("--default", "height=2.0", "--default", "sex=1"),
    ]
    named = table.join_users("all: people", user="id", columns=["a,b"]).count()
    assert "--query" in check_command(database, hs.Query.of(named), tmp_path / "b.toml")


def test_what_is_left_out_is_filled_in(csv):
    """Written by hand or by methods, the same question is equal and has one digest."""
    by_hand = hs.Query(
        columns={"cost": "float"},
        aggregates=[
            {"kind": "quantiles", "column": "cost", "probabilities": [0.5], "low": -0.0, "high": 9},
            {"kind": "histogram", "column": "cost", "low": 0, "high": 9},
        ],
    )
    table = hs.table(csv, types={"cost": "float"})
    asked = table.quantiles("cost", [0.5], low=0, high=9.0).histogram("cost", low=0.0, high=9)
    assert by_hand == hs.Query.of(asked)
    assert len({by_hand.digest(), hs.Query.of(asked).digest()}) == 1
    other = hs.Query.of(
        table.quantiles("cost", [0.5], low=0, high=9.5).histogram("cost", low=0, high=9)
    )
    assert other != by_hand
    assert other.digest() != by_hand.digest()


def test_true_is_not_one():
    """Keys of different types are different queries."""
    one, true = (hs.Query(groups={"columns": ["a"], "keys": [[key]]}) for key in (1, True))
    assert one != true
    assert one.digest() != true.digest()


def test_the_digest_is_the_same_in_every_version():
    """It names stored answers and certificates: a change of the form needs a new format."""
    query = hs.Query(user="who", columns={"who": "int"}, aggregates=[{"kind": "count_users"}])
    content = (
        '{"aggregates":[{"kind":"count_users","name":"users","weight":1.0}],'
        '"columns":{"who":"int"},"format":"hushed query 1","user":"who"}'
    )
    import hashlib

    assert query.digest() == hashlib.sha256(content.encode()).hexdigest()


def test_a_query_is_frozen_and_has_a_schema():
    """It cannot be changed, and a reader of JSON can be told what it holds."""
    query = hs.Query()
    with pytest.raises(Exception, match="frozen"):
        query.user = "who"
    typed = hs.Query(columns={"age": "int"}, aggregates=[{"kind": "count"}])
    before = typed.digest()
    for change in (
        lambda columns: columns.update(age="string"),
        lambda columns: columns.__setitem__("age", "string"),
        lambda columns: columns.__ior__({"age": "string"}),
        lambda columns: columns.pop("age"),
        lambda columns: columns.setdefault("other", "int"),
    ):
        with pytest.raises(TypeError, match="frozen"):
            change(typed.columns)
    for copied in (pickle.loads(pickle.dumps(typed)), copy.deepcopy(typed)):
        assert (copied, copied.digest(), copied.columns) == (typed, before, {"age": "int"})
    properties = hs.Query.model_json_schema()["properties"]
    assert set(tomllib.loads(query.to_toml())) <= set(properties)
    assert {"steps", "groups", "aggregates", "columns"} <= set(properties)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"rows": 3}, "'rows'"),
        ({"format": "hushed query 2"}, "'format'.*hushed query 1"),
        ({"user": 3}, "'user'.*string"),
        ({"max_rows_per_user": 0}, "'max_rows_per_user'"),
        ({"max_rows_per_user": True}, "'max_rows_per_user'"),
        ({"aggregates": [{"kind": "men"}]}, "'aggregates.0'.*'mean'"),
        ({"aggregates": [{"kind": "sum", "column": "a", "low": 0}]}, "high.*missing"),
        ({"aggregates": [{"kind": "sum", "column": "a", "low": "0", "high": 1}]}, "low.*search"),
        ({"aggregates": [{"kind": "sum", "column": "a", "low": float("nan"), "high": 1}]}, "low"),
        ({"groups": {"columns": []}}, "'groups.columns'"),
        ({"groups": {"columns": ["a"], "keys": []}}, "keys"),
        ({"groups": {"columns": ["a"], "keys": [[1.5]]}}, "keys"),
        ({"columns": {"a": "decimal"}}, "columns.a"),
        ({"steps": [{"filter": "a > 1", "derive": "x"}]}, "steps.0"),
    ],
)
def test_what_is_no_query_is_refused_by_its_part(parts, words):
    """An error of ours, which names the part."""
    with pytest.raises(hs.errors.ParameterError, match=words):
        hs.Query(**parts)


@pytest.mark.parametrize("text", ["[[[", "a = ", "1", "[" * 100_000, "\x00"])
def test_text_that_is_no_query_is_refused(text):
    """As JSON and as TOML."""
    for read in (hs.Query.from_json, hs.Query.from_toml):
        with pytest.raises(hs.errors.ParameterError):
            read(text)


@pytest.mark.slow
def test_a_table_that_does_not_fit_is_refused(csv):
    """Another user column, other types, a question of its own, or no query at all."""
    query = hs.Query.of(hs.table(csv, user="who", types=TYPES).mean("cost", low=0, high=1))
    for table, words in (
        (hs.table(csv, types=TYPES), "user='who'"),
        (hs.table(csv, user="who", types={"who": "int"}), "'cost' is of type string.*float"),
        (hs.table(csv, user="who", types=TYPES).count(), "asked of this table already"),
        (hs.table(pa.table({"who": [1]}), user="who"), "no column 'cost'"),
    ):
        with pytest.raises(hs.errors.ParameterError, match=words):
            table.ask(query)
    with pytest.raises(hs.errors.ParameterError, match=r"takes a hushed\.Query, got str"):
        hs.table(csv).ask("count")


@pytest.mark.slow
def test_a_command_and_a_notebook_have_the_delta_and_the_noise_of_the_release(csv, tmp_path):
    """Private keys need a delta: without it neither would run."""
    table = hs.table(csv, user="who", types=TYPES)
    table = table.bound_contributions(max_rows_per_user=3, max_groups_per_user=1)
    query = hs.Query.of(table.group_by("city", select_partitions=True).count())
    terms = {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}
    words = shlex.split(query.to_cli(csv, **terms))
    assert words[-6:] == ["--epsilon", "1.0", "--delta", "1e-06", "--noise", "gaussian"]
    ended = CliRunner().invoke(app, [*words[1:], "--quote"])
    assert (ended.exit_code, "delta 1e-06" in ended.stdout) == (0, True)
    found = {}
    for cell in json.loads(query.to_notebook(csv, **terms))["cells"][1:]:
        exec(cell["source"], found)
    assert found["answer"].guarantee.delta == 1e-6
    assert found["answer"].asked.noise == "gaussian"


@pytest.mark.parametrize("terms", [{"delta": -1e-6}, {"delta": 2.0}, {"noise": "none"}])
def test_a_delta_or_a_noise_that_is_none_is_not_exported(csv, terms):
    """It would fail where the export is run."""
    query = hs.Query.of(hs.table(csv, types=TYPES).count())
    with pytest.raises(hs.errors.ParameterError, match=next(iter(terms))):
        query.to_notebook(csv, epsilon=1.0, **terms)


@pytest.mark.parametrize("source", ["duckdb:///clinic.db", "postgresql://host/db", "spark://host"])
def test_a_table_that_nobody_named_is_filled_in_by_whoever_runs_it(source):
    """A database has tables of many names: without one the command asked for one called rows."""
    query = hs.Query(aggregates=[{"kind": "count"}])
    assert "--table TABLE" in query.to_cli(source, epsilon=1.0)
    assert f"hs.table({source!r}, 'TABLE')" in query.to_python(source)
    assert "'TABLE'" in query.to_notebook(source, epsilon=1.0)
    assert "--table stays" in query.to_cli(source, "stays", epsilon=1.0)
    assert "--table" not in query.to_cli(source, "rows", epsilon=1.0)
    assert "--table" not in query.to_cli("stays.csv", epsilon=1.0)


@pytest.mark.parametrize("weight", ["-1.0", "0.0", "inf"])
@pytest.mark.parametrize("kind", ["count", "top_k"])
def test_a_weight_of_no_share_is_refused_when_it_is_read(kind, weight):
    """Not only once a table is asked."""
    table = hs.table(pa.table({"x": ["a", "b"]}))
    asked = table.count() if kind == "count" else table.top_k("x", k=1, keys=["a", "b"])
    written = hs.Query.of(asked).to_toml()
    assert "weight = 1.0" in written
    with pytest.raises(hs.errors.ParameterError, match="weight"):
        hs.Query.from_toml(written.replace("weight = 1.0", f"weight = {weight}"))


def test_a_table_is_not_pickled_and_says_what_is():
    """It holds a connection; what is asked of it goes to another process as data."""
    table = hs.table(pa.table({"x": [1, 2]})).filter("x > 1").count()
    for ended in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"neither pickled nor copied.*hs\.Query\.of\(table\)"):
            ended(table)
    assert pickle.loads(pickle.dumps(hs.Query.of(table))) == hs.Query.of(table)


def test_a_notebook_says_that_each_run_of_its_release_costs_again():
    """The cell charges no ledger, and no word says that one limits it."""
    query = hs.Query.of(hs.table(pa.table({"x": [1, 2]})).count())
    notebook = json.loads(query.to_notebook("rows.parquet", epsilon=0.5))
    words, release = notebook["cells"][0]["source"], notebook["cells"][3]["source"]
    assert "ledger" not in release
    assert "costs epsilon 0.5 again, and nothing counts or limits that" in words
    assert "key=" in words
