"""Lists that a server tells, as they are printed: a few lines for each thing, and no dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hushed._ground.printing import cut_text, flat, format_down, format_up

_LONGEST = 80  # characters of a condition that are shown


class Listed(list[dict[str, Any]]):
    """A list of what a server tells, which is printed in a few lines for each."""

    __slots__ = ()
    none = "nothing"

    def __str__(self) -> str:
        try:
            return "\n".join(line for each in self for line in self.describe(each)) or self.none
        except (
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ):  # of a server that tells something else
            return list.__repr__(self)

    __repr__ = __str__

    def describe(self, told: Mapping[str, Any]) -> Iterator[str]:
        """Describe one of them."""
        raise NotImplementedError


class Functions(Listed):
    """The registered functions of a server."""

    __slots__ = ()
    none = "no function"

    def describe(self, told: Mapping[str, Any]) -> Iterator[str]:
        """Say what it answers, for how much, and whom its promise is for."""
        says = f": {flat(told['says'])}" if told.get("says") else ""
        yield f"{flat(told['id'])}, of {flat(told['dataset'])}{says}"
        ends = f"up to {format_down(told['max_epsilon'])}"
        if told["min_epsilon"]:
            ends = f"from {format_up(told['min_epsilon'])} {ends}"
        gamma = format_up(told["gamma"])
        yield f"  a release costs epsilon {ends}{_say_above(told)}, and has gamma {gamma}"
        if told.get("rows"):
            rows = " or ".join(f"{each:,}" for each in told["rows"])
            unit = "people" if told.get("unit") == "user" else "rows"
            yield f"  what is promised is for tables of {rows} {unit}"
        if told.get("closed"):
            yield f"  it cannot be asked: {flat(told['closed'])}"


class Requests(Listed):
    """Requests, the newest first."""

    __slots__ = ()
    none = "no request"

    def describe(self, told: Mapping[str, Any]) -> Iterator[str]:
        """Say what was asked, for how much, and what became of it."""
        when = f"{told['asked_at'][:16].replace('T', ' ')} UTC"
        price = f"epsilon {format_up(told['epsilon'])}"
        price += f", delta {format_up(told['delta'])}" if told["delta"] else ""
        what = f"{_name(told)} of {flat(told['dataset'])}{_name_rows(told)}"
        yield f"{flat(told['id'])}  {flat(told['state'])}: {what}, {price}"
        said = [f"asked by {flat(told['asker'])}, {when}", f"key {flat(repr(told['key']))}"]
        said += [f"note {flat(repr(told['note']))}"] if told.get("note") else []
        said += [f"because {flat(told['reason'])}"] if told.get("reason") else []
        said += [f"kept until {told['kept_until'][:10]}"] if told.get("kept_until") else []
        said += [f"deleted {told['deleted_at'][:10]}"] if told.get("deleted_at") else []
        yield f"  {', '.join(said)}"


def _name(told: Mapping[str, Any]) -> str:
    """Name what was asked: the function, or the outputs of a query."""
    if told.get("function"):
        return f"function {flat(told['function'])}"
    query = told["query"]
    by = (query.get("groups") or {}).get("columns", ())
    named = ", ".join(flat(each["name"]) for each in query["aggregates"])
    return named + (f" by {', '.join(map(flat, by))}" if by else "")


def _name_rows(told: Mapping[str, Any]) -> str:
    """Name the rows that a query is about: two that differ in a filter alone look alike else."""
    words = {"filter": "where", "join": "joined by"}
    steps = (told["query"] or {}).get("steps") or ()
    return "".join(
        f", {said} {cut_text(flat(each[kind]), _LONGEST)}"
        for each in steps
        for kind, said in words.items()
        if kind in each
    )


def say_limits(told: Mapping[str, Any]) -> str:
    """Say what one request may cost, and above what it waits; nothing if the server told none."""
    if told.get("max_epsilon") is None:
        return ""
    most = format_down(told["max_epsilon"])
    return f"one request costs epsilon {most} at most{_say_above(told)}"


def _say_above(told: Mapping[str, Any]) -> str:
    above = told.get("approve_above")
    return "" if above is None else f" (above {format_down(above)} a steward has to approve it)"
