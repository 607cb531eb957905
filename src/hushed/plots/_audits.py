"""An audit as a page: verdict, estimated curve, certified bound and claim, drawn apart."""

from __future__ import annotations

import math
from html import escape

from hushed._ground.printing import Spelling, spell_argument
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
    ticks = "".join(
        _tick(at(each, 0), 0, 18, f"{each:.4g}", "middle") for each in _lay_ticks(right)
    ) + "".join(_tick(at(0, each), -8, 4, f"{each:.4g}", "end") for each in _lay_ticks(top))
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
        f'<polyline points="{frame}" fill="none" stroke="#444"/>{ticks}'
        f'<polyline points="{line}" fill="none" stroke="{_BLUE}" stroke-width="2" '
        'stroke-dasharray="6 3"/>'
        + dot(report.epsilon_low, claim.delta, _ORANGE)
        + dot(claim.epsilon, report.delta_low, _ORANGE)
        + dot(claim.epsilon, claim.delta, _GREEN)
        + legend
        + f'<text x="{_WIDTH / 2:.0f}" y="{_HEIGHT - 16}" text-anchor="middle">'
        "epsilon (nats)</text>"
        f'<text x="8" y="{_MARGIN - 12}">delta</text></svg>'
    )


def _tick(at: str, dx: int, dy: int, text: str, anchor: str) -> str:
    """Draw a mark on an axis, with its number beside it."""
    x, y = map(float, at.split(","))
    end = (x, y + 5) if anchor == "middle" else (x - 5, y)
    return (
        f'<path d="M{x:.1f} {y:.1f}L{end[0]:.1f} {end[1]:.1f}" stroke="#444"/>'
        f'<text x="{x + dx:.1f}" y="{y + dy:.1f}" text-anchor="{anchor}">{text}</text>'
    )


def _lay_ticks(top: float) -> list[float]:
    """Lay three to six round numbers from 0 to the end of an axis."""
    power = 10.0 ** math.floor(math.log10(top))
    step = next(power * each for each in (0.2, 0.5, 1, 2) if top < 6 * power * each)
    return [step * i for i in range(int(top / step) + 1)]
