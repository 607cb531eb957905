"""The table of the comparison, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from benchmarks.peers.cases import CASES, Case

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
GROUPS = {
    "noise": (
        "Drawing release noise",
        "Time of a call, and in brackets how many times ours it is. Laplace noise of scale 1; "
        "Gaussian noise of sigma 5.",
    ),
    "accounting": (
        "Adding up releases",
        "The epsilon at delta = 1e-6, time, and in brackets how many times ours. Smaller is "
        "better, as long as it is a bound.",
    ),
    "release": (
        "Whole releases at epsilon = 1",
        "Time, in brackets how many times ours, and the mean absolute error. The neighbours are "
        "the same in a row: one row replaced for mean and median, added or removed for the "
        "histogram.",
    ),
}


class Answered(Protocol):
    """What came of one library."""

    name: str
    version: str
    cases: dict[str, dict[str, Any]]
    failed: str


def duration(seconds: float) -> str:
    """Seconds with a unit, to two digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
        if seconds >= size or unit == "ns":
            return (
                f"{seconds / size:.2g} {unit}"
                if seconds < 100 * size
                else f"{seconds / size:.0f} {unit}"
            )
    raise AssertionError


def cell(case: Case, found: dict[str, Any] | None, ours: dict[str, Any] | None) -> str:
    """One entry: what a library gave for a case, beside ours."""
    if found is None:
        return "-"
    if "failed" in found:
        return "failed"
    parts = []
    if case.second == "epsilon":
        parts.append(f"{found['epsilon']:.6g}")
    parts.append(duration(found["seconds"]))
    if ours and "seconds" in ours and ours is not found and ours["seconds"]:
        ratio = found["seconds"] / ours["seconds"]
        parts[-1] += f" ({ratio:.0f})" if ratio >= 10 else f" ({ratio:.2g})"
    if case.second == "error":
        parts.append(f"error {found['error']:.2g}")
    return ", ".join(parts)


def group_table(group: str, outcomes: Sequence[Answered]) -> list[str]:
    """Lines of the table of one group: cases down, libraries across."""
    names = [name for name, case in CASES.items() if case.group == group]
    shown = [o for o in outcomes if any(n in o.cases for n in names)]
    ours = outcomes[0].cases
    heading, words = GROUPS[group]
    lines = [f"### {heading}", "", words, ""]
    lines.append("| job | " + " | ".join(o.name for o in shown) + " |")
    lines.append("|---" * (len(shown) + 1) + "|")
    for name in names:
        case = CASES[name]
        title = case.title + (f" (true: {case.truth:.6g})" if case.truth else "")
        cells = [cell(case, o.cases.get(name), ours.get(name)) for o in shown]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def report(outcomes: Sequence[Answered], machine: str, missing: Sequence[str]) -> str:
    """Write the whole report: machine, versions, tables, and what could not be measured."""
    versions = ", ".join(f"{o.name} {o.version}" for o in outcomes if not o.failed)
    lines = [f"Measured on {machine}.", "", f"Versions: {versions}.", ""]
    for group in GROUPS:
        lines += group_table(group, outcomes)
    failed = [f"* {o.name}: {o.failed}" for o in outcomes if o.failed]
    failed += [f"* {name}: could not be installed" for name in missing]
    for outcome in outcomes:
        for name, found in outcome.cases.items():
            if "failed" in found:
                failed.append(f"* {outcome.name}, {CASES[name].title}: {found['failed']}")
    lines += ["### Not measured", "", *(failed or ["Everything asked for was measured."]), ""]
    return "\n".join(lines)


def page_with(page: str, text: str) -> str:
    """Put the report between the marks of a page."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"
