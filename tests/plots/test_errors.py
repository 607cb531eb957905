"""Error against epsilon: every point is what a quote, or a mechanism, says of that epsilon."""

import math

import pyarrow as pa
import pytest

import hushed as hs
from hushed.errors import ParameterError
from hushed.plots import error_figure

TABLE = hs.table(pa.table({"cost": [1.0, 2.0]}))
S = hs.proven_sensitivity(2.0, argument="two counts of one person")


def points(chart):
    return chart.to_dict()["data"]["values"]


def test_the_epsilon_that_is_asked_for_is_marked():
    """On each line, at the error that the quote tells, which stands above in numbers."""
    query = TABLE.count().sum("cost", low=0, high=5)
    chart = error_figure(query, epsilon=(0.1, 9), asked_at=0.73).to_dict()
    rule, dots = (layer["data"]["values"] for layer in chart["layer"][1:])
    quoted = {each.name: each.accuracy for each in query.quote(epsilon=0.73).outputs}
    assert {each["of"]: each["error"] for each in dots} == quoted
    assert {each["epsilon"] for each in (*rule, *dots)} == {0.73}
    told = chart["title"]["subtitle"][1]
    assert told.startswith("dots, at epsilon 0.73: count ")
    assert all(f"{name} {error:.4g}" in told for name, error in quoted.items())
    with pytest.raises(ParameterError, match=r"not between the ends of epsilon, 0\.1 and 9"):
        error_figure(query, epsilon=(0.1, 9), asked_at=10)


def test_a_query_is_drawn_by_its_quotes():
    """A count has the error of the discrete Laplace law, of whose tail the sum is taken here."""
    rows = points(error_figure(TABLE.count().mean("cost", low=0, high=5), epsilon=(0.1, 2)))
    assert {each["of"] for each in rows} == {"count"}  # of a mean nothing is known without rows
    assert (rows[0]["epsilon"], rows[-1]["epsilon"]) == (0.1, 2)
    alone = points(error_figure(TABLE.count(), epsilon=(0.1, 2)))
    for each in alone:
        q = math.exp(-each["epsilon"])
        mass = [(1 - q) / (1 + q) * q**k for k in range(1000)]
        first = next(k for k in range(1000) if 2 * sum(mass[k + 1 :]) <= 0.05)
        assert each["error"] == first
    with_rows = points(error_figure(TABLE.mean("cost", low=0, high=5), terms={"rows": 1000}))
    assert {each["of"] for each in with_rows} == {"mean_cost"}


def test_a_mechanism_is_drawn_by_its_accuracy():
    """Laplace noise of scale 2 / epsilon exceeds scale * log(20) in one of twenty draws."""
    rows = points(error_figure(hs.Laplace(S, epsilon=1.0)))
    for each in rows:
        assert each["error"] == pytest.approx(2 * 2.99573 / each["epsilon"], rel=1e-3)


def axis_of(chart):
    return chart.to_dict()["encoding"]["y"]["title"]


def test_the_axis_names_the_unit_of_the_error():
    """Of numbers, of scores, of ranks; of several units each line has its own in the legend."""
    sup = hs.proven_sensitivity(1.0, "sup", argument="a score")
    ranks = TABLE.quantiles("cost", [0.5], low=0, high=5)
    assert axis_of(error_figure(hs.Laplace(S, epsilon=1.0))) == "error (unit of the answer)"
    three = axis_of(error_figure(hs.Laplace(S, epsilon=1.0), dims=3))
    assert three == "error of all 3 numbers (unit of the answer)"
    scores = axis_of(error_figure(hs.Exponential(sup, epsilon=1.0), dims=30))
    assert scores == "error (score below the best, among 30 candidates)"
    assert axis_of(error_figure(ranks)) == "error (ranks)"
    both = error_figure(ranks.count())
    assert axis_of(both) == "error, each in its unit below"
    lines = {each["line"] for each in points(both)}
    assert lines == {"count (unit of the answer)", "quantiles_cost (ranks)"}


def test_what_has_no_error_is_refused():
    """Clearly: a mean without rows, ends in the wrong order, another object."""
    with pytest.raises(ParameterError, match="rows a group has"):
        error_figure(TABLE.mean("cost", low=0, high=5))
    with pytest.raises(ParameterError, match="lower end first"):
        error_figure(TABLE.count(), epsilon=(2, 1))
    with pytest.raises(ParameterError, match="got float"):
        error_figure(1.0)


def test_the_edges_of_a_histogram_are_printed():
    """Its numbers mean nothing without them."""
    answer = TABLE.histogram("cost", low=0, high=6, bins=3).release(epsilon=1)
    assert "edges of the bins of histogram_cost: 0 2 4 6\n" in str(answer)


def test_what_is_no_figure_says_what_is(tmp_path):
    """A mechanism whose error is in rows, a page, a sensitivity: each names the way."""
    inverse = hs.InverseSensitivity(hs.statistics.median(low=0, high=1), epsilon=1.0)
    with pytest.raises(ParameterError, match=r"changed rows that .* comparison_figure"):
        error_figure(inverse)
    with pytest.raises(ParameterError, match=r"a page is a text.*write_text"):
        hs.plots.save_figure("<html></html>", tmp_path / "c.html")
    with pytest.raises(ParameterError, match=r"give released\.certificate"):
        hs.plots.movement_figure(S)
