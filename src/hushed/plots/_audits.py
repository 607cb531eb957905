"""An audit as a page: verdict, estimated curve, certified bound and claim, drawn apart."""

from __future__ import annotations

from html import escape

from hushed._printing import Spelling, spell_argument
from hushed.auditing import AuditReport
from hushed.guarantee import Guarantee
from hushed.plots._figures import COLOURS

_WIDTH, _HEIGHT, _MARGIN = 640, 320, 56
_BLUE, _ORANGE, _GREEN = COLOURS[:3]


def audit_page(report: AuditReport, spell: Spelling = spell_argument) -> str:
    """Write a report as one self-contained HTML page."""
    parts = report.explain(spell).split("\n\n")
    paragraphs = "\n".join(f"<p>{escape(part)}</p>" for part in parts)
    whose = " for this sensitivity" if report.population else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Audit</title>\n'
        "<style>body{font:16px/1.5 sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}"
        "svg{max-width:100%}pre{white-space:pre-wrap;font-size:12px}</style></head><body>\n"
        f"<h1>Audit: {escape(report.verdict)}{whose}</h1>\n{_picture(report)}\n{paragraphs}\n"
        f"<details><summary>Record</summary><pre>{escape(report.to_json())}</pre></details>\n"
        "</body></html>\n"
    )


def _picture(report: AuditReport) -> str:
    """Delta against epsilon: estimated curve, certified point, claimed point."""
    if report.estimate is None or not isinstance(report.claim, Guarantee):
        return ""
    curve = list(
        zip(report.estimate.epsilon.tolist(), report.estimate.values.tolist(), strict=True)
    )
    claim = report.claim
    right = max(curve[-1][0], report.epsilon_low * 1.1)
    top = max(curve[0][1], report.delta_low, claim.delta, 1e-3) * 1.1

    def at(epsilon: float, delta: float) -> str:
        x = _MARGIN + (_WIDTH - 2 * _MARGIN) * epsilon / right
        y = _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * delta / top
        return f"{x:.1f},{y:.1f}"

    def dot(epsilon: float, delta: float, colour: str) -> str:
        x, y = at(epsilon, delta).split(",")
        return f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>'

    line = " ".join(at(*point) for point in curve)
    frame = " ".join((at(0, top), at(0, 0), at(right, 0)))
    words = (
        (_BLUE, "estimated curve (no certificate)"),
        (_ORANGE, "certified: the truth lies to the right of or above these points"),
        (_GREEN, "claim"),
    )
    legend = "".join(
        f'<text x="{_MARGIN + 180}" y="{24 + 18 * i}" fill="{colour}">{text}</text>'
        for i, (colour, text) in enumerate(words)
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="12" role="img" '
        'aria-label="delta against epsilon">'
        f'<polyline points="{frame}" fill="none" stroke="#444"/>'
        f'<polyline points="{line}" fill="none" stroke="{_BLUE}" stroke-width="2" '
        'stroke-dasharray="6 3"/>'
        + dot(report.epsilon_low, claim.delta, _ORANGE)
        + dot(claim.epsilon, report.delta_low, _ORANGE)
        + dot(claim.epsilon, claim.delta, _GREEN)
        + legend
        + f'<text x="{_WIDTH - _MARGIN}" y="{_HEIGHT - 20}" text-anchor="end">'
        f"epsilon, from 0 to {right:.4g}</text>"
        f'<text x="8" y="{_MARGIN - 12}">delta, from 0 to {top:.4g}</text></svg>'
    )
