"""What certificates of statistics say in words: how exact, whom it protects, what is assumed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import flat, format_down, format_exactly, format_up
from hushed.mechanisms import InverseSensitivity, ProposeTest, Smooth, StableMode
from hushed.releasing._neighbour_words import ROWS_ALONE
from hushed.releasing._statistics import rebuild

if TYPE_CHECKING:
    from hushed.releasing._certificate import Certificate

_REASONS = {
    Smooth.name: "the scale of the noise changes little from neighbour to neighbour, and hides "
    "how far the answer moves there",
    InverseSensitivity.name: "one row changes by at most 1 how many rows must change before a "
    "value is the answer, whatever the table",
    ProposeTest.name: "one row changes by at most 1 how many rows must change before one more "
    "can move the answer by more than the bound, which is what is tested. A table where one row "
    "can do so now is answered with probability delta at most",
    StableMode.name: "one row changes by at most 1 how many rows can change and the category stays "
    "the same, which is what is tested. Where one row can change the category it is told with "
    "probability delta at most",
}


def explain_accuracy(certificate: Certificate, rows: str) -> str:
    """Say how exact the answer is, as far as that is public."""
    explained = {
        Smooth.name: _explain_smooth,
        InverseSensitivity.name: _explain_choice,
        ProposeTest.name: _explain_test,
        StableMode.name: _explain_mode,
    }[certificate.mechanism.name]
    return f"How exact the answer is: {explained(certificate, rows)}"


def _explain_smooth(certificate: Certificate, _: str) -> str:
    record = certificate.mechanism
    scale, accuracy = float(record.scale or 0), float(record.accuracy or 0)
    return (
        "the noise has the scale of the answer's smooth sensitivity "
        f"on these rows, times {format_down(scale, 4)}. That sensitivity is private, "
        "and so is the error; with probability 95 % it is at most "
        f"{format_up(accuracy, 4)} times as large. "
        f"What was drawn was rounded to a multiple of 2^{record.grid} and moved into the range."
    )


def _explain_choice(certificate: Certificate, rows: str) -> str:
    record = certificate.mechanism
    numeric = "low" in (certificate.statistic or {})
    nearest = "the nearest of them to " if numeric else ""
    return (
        f"it is one of {record.values} public values. With probability 95 % it is {nearest}what "
        f"the table would have answered with {math.ceil(record.accuracy or 0)} {rows} changed, or "
        "fewer."
    )


def _explain_test(certificate: Certificate, rows: str) -> str:
    record, mechanism = certificate.mechanism, rebuild(certificate)
    needed = mechanism.distance_needed(0.05) if isinstance(mechanism, ProposeTest) else 0
    scale, accuracy = float(record.scale or 0), float(record.accuracy or 0)
    return (
        f"there may be none: it is refused where few {rows} must change before one more can move "
        f"it by more than {format_down(certificate.sensitivity)}, the bound that was proposed. If "
        f"{needed} or more {rows} must change it is refused with probability 5 % at most. An "
        f"answer that was given has Laplace noise of scale {format_down(scale, 4)}, on a grid of "
        f"2^{record.grid}, and is within {format_up(accuracy, 4)} of the exact one with "
        "probability 95 %."
    )


def _explain_mode(certificate: Certificate, rows: str) -> str:
    record = certificate.mechanism
    return (
        f"there may be none: it is refused where few {rows} could make another one of the "
        f"{record.values} public categories the most frequent one. If {record.accuracy:.0f} {rows} "
        "or more can change, and it stays the same, it is refused with probability 5 % at most. "
        "What was told is exact."
    )


def explain_reach(certificate: Certificate) -> str:
    """Say whom the promise covers, and why."""
    reason = f"by its {certificate.argument}: {_REASONS[certificate.mechanism.name]}"
    return _explain_reach(certificate, reason)


def explain_bound(certificate: Certificate, moved: str) -> str:
    """Say whom noise for the largest movement on any table covers."""
    it, its = "it", "its"
    if "categories" in (certificate.statistic or {}):
        it, its = f"these numbers, in the {certificate.norm} norm,", "their"
    reason = (
        f"and one row moves {it} by at most {moved} on the worst table: {its} global sensitivity, "
        "for which the mechanism was made"
    )
    return _explain_reach(certificate, reason)


def _explain_reach(certificate: Certificate, reason: str) -> str:
    statistic = certificate.statistic or {}
    known = statistic.get("rows")
    number = "is private, too" if known is None else f"is public: {known}"
    person = "every person" if certificate.person else "every row"
    range_words = ""
    if "low" in statistic:
        range_words = _say_range(statistic, whose=" that they make" if certificate.chain else "")
    elif "categories" in statistic:
        range_words = " Rows that hold none of the public categories did not count."
    shares = [each for each in ("q", "trim") if each in statistic and statistic.get("trim") != 0]
    share = "".join(f" ({each} {statistic[each]!r})" for each in shares)
    limit, steps = "", ""
    if certificate.chain:
        limit = ", as far as each step before it does what it says of itself"
        steps = f" of what these steps make of the rows: {flat(certificate.chain)}"
        reason += ". One row more, less or replaced changes as much of what they make"
    return (
        f"Whom it protects: this holds for every table and {person}{limit}; no population is "
        f"assumed. Released was {_say_released(certificate)}{share}{steps}, {reason}. "
        f"The number of rows {number}.{range_words}"
    )


def _say_range(statistic: Mapping[str, Any], whose: str) -> str:
    """Say what was done with rows outside of the range; a chain gives numbers alone."""
    ends = f"[{format_exactly(statistic['low'])}, {format_exactly(statistic['high'])}]"
    moved = f" Each row{whose} was moved into {ends} by itself"
    if whose:
        return f"{moved}."
    return (
        f"{moved}; what is not a number, such as a missing value or a text (also one of digits), "
        "counted as the low end. In a list, or a column of objects, even all rows may be such: to "
        "refuse them would tell of rows."
    )


def _say_released(certificate: Certificate) -> str:
    """Name the statistic; of a mode whose numbers were released or compared, these."""
    statistic = certificate.statistic or {}
    if "categories" not in statistic or certificate.mechanism.name in _REASONS:
        return f"the {say_kind(statistic)}"
    return f"what the numbers of rows of {len(statistic['categories'])} public categories say"


def say_kind(statistic: Mapping[str, Any]) -> str:
    """Name the statistic; a quantile by the name that people know, if it has one."""
    kind = str(statistic.get("kind"))
    known = {0.0: "minimum", 0.5: "median", 1.0: "maximum"}
    if statistic.get("trim") == 0:
        return "mean"
    return known.get(float(statistic["q"]), kind) if kind == "quantile" else kind


def explain_assumptions() -> str:
    """Say what is assumed."""
    lines = [
        "the range, the candidates and all settings were chosen without looking at the private "
        "rows",
        ROWS_ALONE,
        "the released answer is the only output: not the running time",
    ]
    return "What is assumed:\n" + "\n".join(f"  - {line}" for line in lines)
