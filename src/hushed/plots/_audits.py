"""An audit as a figure and a page: curve, certified bound and claim, and what was seen."""

from __future__ import annotations

from typing import Any

from hushed._ground.calls import called_as
from hushed._ground.printing import Spelling, format_down, spell_argument
from hushed.auditing import AuditReport
from hushed.auditing._outcomes import find_event
from hushed.auditing._report import list_bounds
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.plots._figures import (
    altair_or_refuse,
    draw_svg,
    require_kind,
    shows_offline,
    tell_apart,
)
from hushed.plots._pages import render_page

_CURVE = "estimated curve, no certificate"
_CERTIFIED = "certified: the truth is to the right of it, or above"
_CLAIM = "claim"
_BELOW: dict[str, Any] = {"orient": "bottom", "columns": 1}  # the legend of a panel
_SIZE = {"width": 480, "height": 220}
_SMALL = {"width": 330, "height": 150}  # two of them stand side by side on a printed page


@called_as("hs.plots.audit_figure(report)")
@shows_offline
def audit_figure(report: AuditReport) -> Any:
    """Draw what an audit found.

    Parameters
    ----------
    report : AuditReport
        What `hushed.audit` found.

    Returns
    -------
    altair chart
        Delta against epsilon, with the estimated curve, the certified points and the claim, of a
        claim of epsilon and delta that has a curve; below it the outcomes on both inputs, those of
        the event to the right of a line.

    Raises
    ------
    ParameterError
        If the report has neither, as those of sequential audits and of populations.
    MissingExtra
        If the extra ``hushed[plot]`` is not installed.
    """
    require_kind("report", report, AuditReport)
    alt = altair_or_refuse()
    panels = _draw_panels(alt, report, _SIZE)
    if not panels:
        raise ParameterError(
            "this audit has no figure: one on fixed pairs keeps its outcomes, a sequential one and "
            "one of a population do not"
        )
    # Each panel has a legend of its own, below it.
    return alt.vconcat(*panels).resolve_scale(color="independent", shape="independent")


def draw_for_certificate(report: AuditReport) -> str:
    """Draw an audit for the page of a certificate, side by side; nothing if it has no figure."""
    if report.outcomes is None:
        return ""
    alt = altair_or_refuse()
    panels = alt.hconcat(*_draw_panels(alt, report, _SMALL))
    return draw_svg(panels.resolve_scale(color="independent", shape="independent"))


def _draw_panels(alt: Any, report: AuditReport, size: dict[str, int]) -> list[Any]:
    drawn = (_draw_curve(alt, report), _draw_outcomes(alt, report))
    return [each.properties(**size) for each in drawn if each is not None]


def audit_page(report: AuditReport, spell: Spelling = spell_argument, name: str = "") -> str:
    """Write a report as one self-contained HTML page, with the name of what was audited."""
    whose = " for this sensitivity" if report.population else ""
    told = report.explain(spell).split("\n\n")
    try:
        picture = draw_svg(audit_figure(report))
    except ParameterError:
        picture = ""
    return render_page(
        heading=f"Audit: {report.verdict}{whose}",
        rows=[
            *([("audited mechanism", name)] if name else []),
            ("claim", report.to_dict()["claim"]),
            *list_bounds(report),
            ("confidence", format_down(report.confidence)),
            ("runs on each side", f"{report.samples:,}"),
        ],
        picture=picture,
        caption="What was found",
        paragraphs=[("", each) for each in told],
        itself="The record",
        json=report.to_json(),
    )


def _draw_curve(alt: Any, report: AuditReport) -> Any:
    """Delta against epsilon: estimated curve, certified points, claimed point."""
    if report.estimate is None or not isinstance(report.claim, Guarantee):
        return None
    claim = report.claim
    pairs = zip(report.estimate.epsilon.tolist(), report.estimate.values.tolist(), strict=True)
    curve = [{"epsilon": a, "delta": b, "what": _CURVE} for a, b in pairs]
    certified = ((report.epsilon_low, claim.delta), (claim.epsilon, report.delta_low))
    points = [{"epsilon": a, "delta": b, "what": _CERTIFIED} for a, b in certified]
    points.append({"epsilon": claim.epsilon, "delta": claim.delta, "what": _CLAIM})
    looks = tell_apart((_CURVE, _CERTIFIED, _CLAIM), ("stroke", "triangle-up", "diamond"), **_BELOW)

    def place(rows: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.Data(values=rows)).encode(
            x=alt.X("epsilon:Q", title="epsilon (nats)"), y=alt.Y("delta:Q", title="delta"), **looks
        )

    # Hollow, and of two sizes: the claim does not hide a certified point behind it.
    line = place(curve).mark_line()
    small = place(points[:2]).mark_point(size=60, strokeWidth=2, filled=False, opacity=1)
    large = place(points[2:]).mark_point(size=160, strokeWidth=2, filled=False, opacity=1)
    return (line + small + large).properties(title="Delta against epsilon")


def _draw_outcomes(alt: Any, report: AuditReport) -> Any:
    """How often outcomes came up on either input, in the order of what they speak for."""
    if report.outcomes is None:
        return None
    sides, counts = report.witness.sides, report.witness.counts
    groups = [each for each in zip(*report.outcomes, strict=True) if any(each)]
    runs = [max(1, sum(each)) for each in report.outcomes]
    bars, dots = (
        [
            {"from": i, "middle": i + 0.5, "to": i + 1, "share": each[k] / runs[k], "what": side}
            for i, each in enumerate(groups)
        ]
        for k, side in enumerate(sides)
    )
    title = f"groups of outcomes, those that speak for the {sides[0]} to the right"
    unnamed = alt.Axis(labels=False, ticks=False, grid=False)
    x = {"title": title, "axis": unnamed, "scale": alt.Scale(domain=[0, len(groups)])}
    # Some room above: else a dot is cut in half by the edge.
    most = max(each[k] / runs[k] for each in groups for k in (0, 1))
    y = alt.Y(
        "share:Q",
        title="share of runs",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[0, min(1.0, 1.1 * most)]),
    )
    looks = tell_apart(sides, ("square", "circle"), title="runs on the input", **_BELOW)
    bar = alt.Chart(alt.Data(values=bars)).mark_bar(opacity=0.4)
    dot = alt.Chart(alt.Data(values=dots)).mark_point(filled=True, size=40, opacity=1)
    start = find_event(groups, counts.hits, counts.other_hits)
    rule = alt.Chart(alt.Data(values=[{"at": start}])).mark_rule(strokeDash=[2, 2], size=2)
    drawn = (
        bar.encode(x=alt.X("from:Q", **x), x2="to:Q", y=y, y2=alt.datum(0), **looks)
        + dot.encode(x=alt.X("middle:Q", **x), y=y, **looks)
        + rule.encode(x=alt.X("at:Q", **x))
    )
    heading = {
        "text": "Outcomes on both inputs",
        "subtitle": "the event that was judged is all to the right of the dotted line",
    }
    return drawn.properties(title=heading)
