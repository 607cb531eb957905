"""The command that releases a statistic by the way that was recommended for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

import hushed as hs
from hushed._ground.printing import format_exactly
from hushed.cli._statistic_options import Described

_WAYS = {  # by route: what chooses it among the mechanisms of a statistic
    "inverse sensitivity": (),
    "smooth, t2": ("--mechanism", "smooth", "--noise", "t2"),
    "smooth, lomax": ("--mechanism", "smooth", "--noise", "lomax"),
    "propose-test": ("--mechanism", "propose-test"),
}


def next_command(name: str, found: hs.Comparison, given: Described, unit: str) -> str:
    """Write the command; nothing where ``hushed statistic`` has no such way."""
    chosen = next((each for each in found.routes if each.name == found.recommended), None)
    if chosen is None or chosen.name not in _WAYS:
        return ""
    way = [*_WAYS[chosen.name]]
    if name == "mode" and way:
        way = ["--mechanism", "stable-mode"]
    if bound := re.search(r"\bbound=([^,)]+)", chosen.how):
        way += ["--bound", bound[1]]
    if chosen.guarantee.delta:
        way += ["--delta", format_exactly(chosen.guarantee.delta)]
    words = [*_described(given), *way, "--epsilon", format_exactly(chosen.guarantee.epsilon)]
    if unit != "row":
        words += ["--unit", unit]
    return " ".join(["hushed", "statistic", name, "PRIVATE.csv", *map(quote, words)])


def _described(given: Described) -> Iterator[str]:
    """Write the options that describe a statistic as they were given."""
    numbers = {"--low": given.low, "--high": given.high, "--q": given.q, "--trim": given.trim}
    for option, number in numbers.items():
        if number is not None:
            yield from (option, format_exactly(number))
    for category in given.category or ():
        yield from ("--category", category)
    if given.column is not None:
        yield from ("--column", given.column)
    if given.private_count:
        yield "--private-count"
