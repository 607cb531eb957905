"""Figures of risk, cost, composition, loss and trade-off; each with units, legend and source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushed import risk
from hushed._ground.printing import format_up, money_above
from hushed.cost import CostModel
from hushed.plots._figures import COLOURS, altair_or_refuse
from hushed.privacy_loss import PrivacyProfile

Rows = list[dict[str, Any]]
_SOURCE = "Dandekar, Basu, Bressan, Differential Privacy at Risk, PoPETs 2021"


def _lines(rows: Rows, *, x: str, y: str, by: str, title: str, caption: str) -> Any:
    """Line chart of plain rows."""
    alt = altair_or_refuse()
    legend = alt.Legend(labelLimit=400, titleLimit=400)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line()
        .encode(
            x=alt.X("x:Q", title=x),
            y=alt.Y("y:Q", title=y),
            color=alt.Color(
                "series:N", title=by, sort=None, scale=alt.Scale(range=list(COLOURS)), legend=legend
            ),
            strokeDash=alt.StrokeDash("series:N", title=by, sort=None, legend=legend),
        )
        .properties(title={"text": title, "subtitle": caption}, width=480, height=320)
    )


def risk_against_level(epsilon0: Sequence[float], *, dims: Sequence[int] = (1,)) -> Any:
    """Draw the published risk against the level, with the exact delta beside it."""
    rows: Rows = []
    for top in epsilon0:
        levels = [top * i / 100 for i in range(101)]
        for k in dims:
            rows += [
                {
                    "x": level,
                    "y": 1 - risk.published_confidence(level, top, k),
                    "series": f"published, ε₀ = {format_up(top)}, k = {k}",
                }
                for level in levels
            ]
        rows += [
            {
                "x": level,
                "y": risk.delta(level, top),
                "series": f"exact delta, ε₀ = {format_up(top)}",
            }
            for level in levels
        ]
    return _lines(
        rows,
        x="level ε (nats)",
        y="risk or delta (probability)",
        by="quantity",
        title="Privacy at risk of the Laplace mechanism",
        caption=f"Published risk: {_SOURCE}, Theorem 4.1. Exact: hockey-stick divergence.",
    )


def cost_against_level(
    model: CostModel, epsilon0: float, *, bases: Sequence[str] = ("published", "exact", "loss")
) -> Any:
    """Cost against the level, with the optimum of each basis marked."""
    alt = altair_or_refuse()
    rows: Rows = []
    points: Rows = []
    for basis in bases:
        best = model.optimum(epsilon0, basis=basis)  # type: ignore[arg-type]
        # The least cost is told in the legend: beside its point it would lie across other curves.
        series = f"{basis}: {money_above(best.budget)} at ε = {format_up(best.epsilon, 4)}"
        points.append({"x": best.epsilon, "y": best.budget, "series": series})
        for i in range(1, 201):
            level = epsilon0 * i / 200
            cost = model.cost_at_risk(level, epsilon0, basis=basis)  # type: ignore[arg-type]
            rows.append({"x": level, "y": cost, "series": series})
    lines = _lines(
        rows,
        x="level ε (nats)",
        y="cost, all people together (currency of the model)",
        by="confidence, and its least cost",
        title=f"Compensation budget at ε₀ = {format_up(epsilon0)}",
        caption=f"{_SOURCE}, section 5; the exact and the published basis are nominal.",
    )
    # Not coloured: colours of points would have a legend of their own.
    marked = alt.Chart(alt.Data(values=points)).encode(x="x:Q", y="y:Q", detail="series:N")
    return lines + marked.mark_circle(size=60, opacity=1, color="black")


def tradeoff_curve(curves: dict[str, PrivacyProfile], *, points: int = 100) -> Any:
    """Trade-off of the best attacker's two errors."""
    rates = [i / points for i in range(points + 1)]
    rows: Rows = [{"x": a, "y": 1 - a, "series": "blind guess"} for a in rates]
    for name, curve in curves.items():
        rows += [{"x": a, "y": curve.tradeoff(a), "series": name} for a in rates]
    return _lines(
        rows,
        x="false-positive rate (probability)",
        y="least false-negative rate (probability)",
        by="mechanism",
        title="What the best attacker cannot avoid",
        caption="Dong, Roth, Su, Gaussian Differential Privacy, JRSS-B 2022",
    )
