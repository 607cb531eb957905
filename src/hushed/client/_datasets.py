"""The data sets of a server, as they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hushed._ground.printing import flat, format_down, format_up, name_count
from hushed.client._listed import Listed, say_limits


class Datasets(Listed):
    """A list of data sets that is printed in a few lines for each."""

    __slots__ = ()
    none = "no data set"

    def describe(self, told: Mapping[str, Any]) -> Iterator[str]:
        """Say whom it protects, what is left of the share, and which columns there are."""
        return _describe(told)


def _describe(told: Mapping[str, Any]) -> Iterator[str]:
    user = told.get("user")
    unit = "each row" if user is None else f"each person, by the column {flat(str(user))}"
    closed = "" if told.get("open", True) else "; it cannot be asked now"
    yield f"{flat(str(told.get('id')))}: protected is {unit}{closed}"
    share = told.get("share")
    if share is not None:
        left = f"epsilon {format_down(share['left']['epsilon'])} of {format_up(share['epsilon'])}"
        if share.get("left_today") is not None:
            today = f"{format_down(share['left_today'])} of {format_up(share['per_day'])}"
            left += f", today ({flat(str(share.get('today')))}, UTC) {today} for each day"
            if not share["left_today"]:
                left += ", used up, or ended by a restoration; more after that day"
        if share.get("gamma") and share.get("gamma_left") is not None:
            gamma = f"{format_down(share['gamma_left'])} of {format_up(share['gamma'])}"
            left += f", gamma {gamma} for functions"
        yield f"  your share has left: {left}"
    limits = say_limits(told)
    if limits:
        yield f"  {limits}"
    if (most := told.get("max_rows_per_user")) is not None:
        yield f"  of each person {name_count(most, 'row')} count{'s' * (most == 1)}"
    for column in told.get("columns", ()):
        yield f"  {_describe_column(column)}"


def _describe_column(column: Mapping[str, Any]) -> str:
    known = f"{flat(str(column['name']))}, {flat(str(column['kind']))}"
    low, high = column.get("low"), column.get("high")
    if low is not None or high is not None:
        known += f", from {flat(_bound(low))} to {flat(_bound(high))}"
    if column.get("keys"):
        known += ": " + ", ".join(flat(str(each)) for each in column["keys"])
    return known


def _bound(value: object) -> str:
    return "?" if value is None else str(value)
