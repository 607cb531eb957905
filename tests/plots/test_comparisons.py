"""The figure of a comparison holds its numbers, its promises and its recommendation."""

import pytest

import hushed as hs
from hushed.plots import comparison_figure, save_figure

S = hs.statistics.median(rows=20, low=0, high=1)
UNIT = hs.populations.Uniform(low=0, high=1)


@pytest.mark.slow
def test_each_route_is_drawn_with_its_errors(tmp_path):
    """One row for each, with both errors, in the colour of its promise; the best one first."""
    found = hs.compare(S, UNIT, trials=5)
    chart = comparison_figure(found)
    rows = chart.to_dict()["data"]["values"]
    drawn = [(row["route"], row["promise"], row["half"], row["most"]) for row in rows]
    assert drawn == [(r.name, r.promise, r.error_50, r.error_95) for r in found.routes]
    save_figure(chart, tmp_path / "routes.svg")
    svg = (tmp_path / "routes.svg").read_text(encoding="utf-8")
    assert f"recommended: {found.recommended}" in svg
    assert "unit of the answer" in svg


def test_a_delta_stands_beside_the_epsilon():
    """Routes with a slack are drawn, too, and the level would be a stronger promise without it."""
    found = hs.compare(S, UNIT, trials=2, delta=1e-6)
    told = comparison_figure(found).to_dict()["title"]["subtitle"]
    assert "epsilon = 1, delta = 1e-06 where it is used; 2 tables" in told


@pytest.mark.slow
def test_levels_are_drawn_where_an_error_was_given():
    """Then the axis is epsilon."""
    found = hs.compare(S, UNIT, error=0.2, trials=5)
    chart = comparison_figure(found)
    rows = chart.to_dict()["data"]["values"]
    assert [row["most"] for row in rows] == [r.guarantee.epsilon for r in found.routes]
    assert "epsilon (nats)" in chart.to_json()


def test_an_error_of_nothing_has_a_place_on_the_axis():
    """A logarithm has none for 0, so it stands left of all others, and the axis says where."""
    rows = hs.populations.Simulator(
        lambda rng, n: rng.permutation(["a"] * (n - 1) + ["b"]).tolist()
    )
    found = hs.compare(hs.statistics.mode(["a", "b"], rows=50), rows, trials=2)
    assert found.routes[0].error_95 == 0
    drawn = comparison_figure(found)
    for row in drawn.to_dict()["data"]["values"]:
        assert row["half"] == row["most"] == pytest.approx(0.5)
    assert "(rows); 0 is drawn at 0.5" in drawn.to_json()
