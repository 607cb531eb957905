"""Figures: the drawn numbers are the library's, and units and sources are there."""

import pytest

from hushed import privacy_loss
from hushed.cost import CostModel
from hushed.plots import _pricing as pricing
from hushed.plots import save_figure


def values(chart):
    return chart.to_dict()["data"]["values"]


def test_risk_lines_hold_the_table():
    """A drawn point is the published confidence of the reference table."""
    rows = values(pricing.risk_against_level([1.0], dims=[1, 3]))
    found = [r["y"] for r in rows if abs(r["x"] - 0.5) < 1e-12 and "k = 3" in r["series"]]
    assert found == [pytest.approx(1 - 0.5192833390, abs=1e-9)]


@pytest.mark.slow
def test_cost_marks_the_optimum():
    """The optimum of the health centre is marked with its cost, and its level rounded up."""
    chart = pricing.cost_against_level(CostModel(per_person=5500, people=100), 0.5)
    assert "37,805.86 at ε = 0.2742" in chart.to_json(ensure_ascii=False)


@pytest.mark.slow
def test_cost_has_one_legend(tmp_path):
    """Each basis is named once, with the colour and the dash of its line."""
    chart = pricing.cost_against_level(CostModel(per_person=5500, people=100), 0.5)
    save_figure(chart, tmp_path / "cost.svg")
    svg = (tmp_path / "cost.svg").read_text(encoding="utf-8")
    assert svg.count('role-legend-title"') == 1
    assert [svg.count(f">{basis}: ") for basis in ("published", "exact", "loss")] == [1, 1, 1]


def test_tradeoff_starts_at_one():
    """The trade-off starts at 1 without false positives and stays below a blind guess."""
    rows = values(pricing.tradeoff_curve({"Gaussian": privacy_loss.gaussian(1.0)}))
    drawn = [r for r in rows if r["series"] == "Gaussian"]
    assert drawn[0]["y"] == 1.0
    assert all(r["y"] <= 1 - r["x"] + 1e-12 for r in drawn)
