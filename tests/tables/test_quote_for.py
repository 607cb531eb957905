"""From errors to epsilon: the smallest one whose quote keeps them, and the weights for it."""

import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hushed as hs
from hushed.cli import app
from hushed.errors import NotFeasible, NotFound, ParameterError
from hushed.tables import _quotes

GAUSSIAN = {"noise": "gaussian", "delta": 1e-6}


@pytest.fixture
def table():
    return hs.table(pa.table({"x": [1.0] * 9, "g": ["a"] * 9}))


def of_three(table, weights=(1.0, 1.0, 1.0)):
    """A count, a mean, and two quantiles."""
    count, mean, quantiles = weights
    return (
        table.count(weight=count)
        .mean("x", low=0, high=10, weight=mean)
        .quantiles("x", [0.25, 0.5], low=0, high=10, weight=quantiles)
    )


THREE = {"count": 50, "mean_x": 0.3, "quantiles_x": 40}


def kept(query, errors, epsilon, **terms):
    quote = query.quote(epsilon=epsilon, **terms)
    return all(quote.accuracy(name) <= most for name, most in errors.items())


@pytest.mark.slow_cases("solve-terms1", "weights-terms1")
@pytest.mark.parametrize("terms", [{}, GAUSSIAN])
@pytest.mark.parametrize("share", ["weights", "solve"])
def test_the_quote_keeps_every_error_and_a_smaller_epsilon_does_not(terms, share, table):
    """Asked again at the epsilon, and at one that is 0.05 % smaller; what binds is what is lost."""
    found = of_three(table).quote_for(errors=THREE, rows=1000, share=share, **terms)
    assert kept(found.table, THREE, found.epsilon, rows=1000, **terms)
    smaller = found.table.quote(epsilon=found.epsilon * 0.9995, rows=1000, **terms)
    lost = {name for name, most in THREE.items() if smaller.accuracy(name) > most}
    assert set(found.binding) == lost
    assert found.binding == (("quantiles_x",) if share == "weights" else tuple(THREE))
    assert found.quote == found.table.quote(epsilon=found.epsilon, rows=1000, **terms)


@pytest.mark.slow
@pytest.mark.parametrize("name", THREE)
def test_the_epsilon_is_that_of_a_grid(name, table):
    """The first of a fine grid whose quote keeps the error, for each output alone."""
    grid = np.geomspace(0.01, 10, 501)  # steps of 1.4 %
    first = next(e for e in grid if kept(of_three(table), {name: THREE[name]}, e, rows=1000))
    found = of_three(table).quote_for(errors={name: THREE[name]}, rows=1000)
    assert first / 1.015 <= found.epsilon <= first * 1.0002
    assert found.binding == (name,)


@pytest.mark.slow_cases("terms0-12-True")
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize(
    ("terms", "steps"), [({}, 12), pytest.param(GAUSSIAN, 12, marks=pytest.mark.slow)]
)
def test_no_weights_of_a_grid_need_less(terms, steps, private, table):
    """Of all weights of a grid, with public keys and with partition selection; it helps much."""
    if private:
        table = table.group_by("g", select_partitions=True)
        terms = {**terms, "delta": 1e-6}
    found = of_three(table).quote_for(errors=THREE, rows=1000, share="solve", **terms)
    plain = of_three(table).quote_for(errors=THREE, rows=1000, **terms)
    assert found.epsilon < 0.8 * plain.epsilon
    tried = 0
    for cut in itertools.combinations(range(1, steps), 2):
        shares = np.diff([0, *cut, steps]) * 3 / steps  # the sum of the weights stays
        query = of_three(table, [float(each) for each in shares])
        assert not kept(query, THREE, found.epsilon * 0.999, rows=1000, **terms)
        tried += 1
    assert tried == math.comb(steps - 1, 2)


@pytest.mark.slow
def test_gaussian_weights_are_the_best_of_a_fine_grid(table):
    """Of two sums, whose shares are one number."""
    wanted = {"a": 300.0, "b": 40.0}

    def query(weight):
        made = table.sum("x", low=0, high=10, name="a", weight=weight)
        return made.sum("x", low=0, high=3, name="b", weight=2 - weight)

    found = query(1.0).quote_for(errors=wanted, share="solve", **GAUSSIAN)
    assert found.binding == ("a", "b")
    for weight in np.linspace(0.02, 1.98, 99):
        assert not kept(query(float(weight)), wanted, found.epsilon * 0.999, **GAUSSIAN)
    assert found.epsilon < 0.9 * query(1.0).quote_for(errors=wanted, **GAUSSIAN).epsilon


def test_outputs_without_an_error_keep_their_weights(table):
    """One error of three decides epsilon; solving wants an error for each."""
    query = of_three(table, (1.0, 5.0, 2.0))
    found = query.quote_for(errors={"count": 50})
    assert found.weights == {"count": 1.0, "mean_x": 5.0, "quantiles_x": 2.0}
    assert found.table == query
    with pytest.raises(ParameterError, match="name an error for mean_x, quantiles_x, too"):
        query.quote_for(errors={"count": 50}, share="solve")


@pytest.mark.slow
def test_the_work_grows_with_the_number_of_outputs_and_not_with_its_square(table):
    """A hundred outputs took half an hour: for each of them all others were quoted, too."""
    calls = []

    def count(number):
        query = table
        for i in range(number):
            query = query.sum("x", low=0, high=1 + i, name=f"s{i}")
        with pytest.MonkeyPatch.context() as patch:
            kept_error = _quotes._error
            patch.setattr(_quotes, "_error", lambda *e: calls.append(1) or kept_error(*e))
            calls.clear()
            found = query.quote_for(errors={f"s{i}": 9.0 for i in range(number)}, share="solve")
        assert set(found.binding) == {f"s{i}" for i in range(number)}
        return len(calls)

    assert count(24) < 3 * count(12)


def test_a_top_has_an_error_and_no_weights(table):
    query = table.top_k("g", k=2, keys=["a", "b", "c"])
    found = query.quote_for(errors={"rank": 20}, share="solve")
    assert found.quote.accuracy("rank") <= 20
    assert not kept(query, {"rank": 20}, found.epsilon * 0.9995)
    assert found.table == query


@pytest.mark.parametrize(
    ("errors", "more", "problem", "words"),
    [
        ({}, {}, ParameterError, "such as {'count': 50}"),
        ([("count", 5)], {}, ParameterError, "such as {'count': 50}"),
        ({"nosuch": 5}, {}, NotFound, "no output 'nosuch'; there are count, mean_x, sum_x"),
        ({"count": 0}, {}, ParameterError, "above 0, got 0"),
        ({"count": -1.0}, {}, ParameterError, "above 0, got -1.0"),
        ({"count": math.inf}, {}, ParameterError, "finite number above 0, got inf"),
        ({"count": math.nan}, {}, ParameterError, "finite number above 0, got nan"),
        ({"count": "5"}, {}, ParameterError, "got '5'"),
        ({"count": True}, {}, ParameterError, "got True"),
        ({"mean_x": 0.5}, {}, ParameterError, "give a public guess of it, such as rows=100"),
        ({"sum_x": 5}, {}, ParameterError, "depends on the bound that the search will find"),
        ({"mean_x": 10}, {"rows": 100}, ParameterError, "every epsilon .* keeps mean_x within 10"),
        ({"count": 1e12}, {}, ParameterError, "every epsilon from 1e-09 on keeps count within"),
        ({"count": 10**400}, {}, ParameterError, "finite number above 0, got an integer of"),
        ({"mean_x": 1e-9}, {"rows": 9}, NotFeasible, "no epsilon up to 1000 keeps mean_x within"),
        ({"count": 5}, {"share": "best"}, ParameterError, "share"),
        ({"count": 5}, {"beta": 2.0}, ParameterError, "beta"),
        ({"count": 5}, {"noise": "gaussian"}, ParameterError, "needs a delta"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused_with_words(errors, more, problem, words, table):
    query = table.count().mean("x", low=0, high=10).sum("x", low=0, high="search")
    with pytest.raises(problem, match=words):
        query.quote_for(errors=errors, **more)


def test_one_error_of_the_only_output_is_enough(table):
    """As for `quote`, which took it, while `quote_for` refused the word."""
    found = table.count().quote_for(error=50)
    assert found.epsilon == table.count().quote_for(errors={"count": 50}).epsilon
    assert found.errors == {"count": 50}
    with pytest.raises(ParameterError, match="error is that of the only output"):
        of_three(table).quote_for(error=50)
    with pytest.raises(ParameterError, match=r"must be given, such as errors=\{'count'"):
        table.count().quote_for()


class TestCommand:
    """``hushed query --error``."""

    @pytest.fixture
    def run(self, tmp_path):
        data = tmp_path / "visits.csv"
        data.write_text("cost\n" + "5\n" * 200)

        def call(*words):
            typed = ["query", str(data), "--type", "cost=float", *map(str, words)]
            return CliRunner().invoke(app, typed)

        return call

    ASKED = ("--count", "--mean", "cost:0:100")
    ERRORS = ("--error", "count=8", "--error", "mean_cost=6", "--about-rows", 200)

    @pytest.mark.slow
    def test_it_is_quoted_and_released_at_the_epsilon_of_python(self, run, tmp_path):
        """With what decides it; the price is charged, and the saved query has the weights."""
        rows = pa.table({"cost": [5.0] * 200})
        query = hs.table(rows).count().mean("cost", low=0, high=100)
        wanted = {"count": 8.0, "mean_cost": 6.0}
        told = query.quote_for(errors=wanted, rows=200, share="solve")
        shown = run(*self.ASKED, *self.ERRORS, "--share", "solve", "--quote")
        assert shown.exit_code == 0, shown.output
        assert "count within 8, mean_cost within 6; count and mean_cost decide" in shown.stdout
        url, file = f"sqlite:///{tmp_path / 'b.db'}", tmp_path / "query.toml"
        with hs.Ledger(url) as book:
            book.open_budget("b", hs.Guarantee(epsilon=9.0, neighbours="add-remove"))
        words = ("--share", "solve", "--ledger", url, "--budget", "b", "--save", file, "--json")
        found = json.loads(run(*self.ASKED, *self.ERRORS, *words).stdout)
        assert found["epsilon"] == told.epsilon
        assert found["weights"] == told.weights
        assert found["binding"] == ["count", "mean_cost"]
        with hs.Ledger(url) as book:
            assert book.balance("b").epsilon_left == pytest.approx(9.0 - told.epsilon)
        saved = hs.Query.from_toml(file.read_text())
        assert {each.name: each.weight for each in saved.aggregates} == told.weights

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            ((), "give --epsilon, or --error NAME=VALUE"),
            (("--epsilon", 1, "--error", "count=5"), "one of the two"),
            (("--epsilon", 1, "--share", "solve"), "--share is for --error"),
            (("--epsilon", 1, "--about-rows", 9), "--about-rows is for --quote and --error"),
            (("--error", "count"), "--error takes NAME=VALUE"),
            (("--error", "count=five"), "--error takes NAME=VALUE"),
            (("--error", "count=5", "--error", "count=6"), "names 'count' twice"),
            (("--error", "mean_cost=5"), "give --about-rows"),
        ],
    )
    def test_what_is_wrong_is_told(self, words, told, run):
        result = run(*self.ASKED, *words)
        assert result.exit_code == 2
        assert told in " ".join(result.stderr.split())


def test_every_quote_says_its_price():
    """Epsilon and delta, by the same names."""
    counted = hs.table(pa.table({"x": [1.0, 2.0]})).count()
    pure, slack = (
        counted.quote(epsilon=0.5),
        counted.quote(epsilon=0.5, delta=1e-6, noise="gaussian"),
    )
    assert (pure.epsilon, pure.delta) == (0.5, 0.0)
    assert (slack.epsilon, slack.delta) == (slack.guarantee.epsilon, 1e-6)
    asked = counted.quote_for(errors={"count": 10.0})
    assert (asked.epsilon, asked.delta) == (asked.quote.epsilon, asked.quote.delta)


def test_the_output_of_count_users_is_named():
    """Its name is another one than that of the method and of the option."""
    asked = hs.table(pa.table({"u": ["a", "b"]}), user="u").count_users()
    asked = asked.bound_contributions(max_rows_per_user=1).count()
    told = "no output 'count_users'; that of count_users is called users; there are users, count"
    with pytest.raises(NotFound, match=told):
        asked.quote_for(errors={"count_users": 50})
    with pytest.raises(NotFound, match=told):
        asked.release(epsilon=1.0).value("count_users")
    with pytest.raises(ParameterError, match=told):
        asked.quote(epsilon=1.0).accuracy("count_users")
