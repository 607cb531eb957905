"""The command that releases an answer by the way that was recommended for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from shlex import quote

import hushed as hs
from hushed._ground.printing import format_exactly
from hushed.cli._block_options import Parts
from hushed.cli._records import Source
from hushed.cli._statistic_options import Described

_WAYS = {  # by route: what chooses it among the mechanisms of a statistic
    "inverse sensitivity": (),
    "smooth, t2": ("--mechanism", "smooth", "--noise", "t2"),
    "smooth, lomax": ("--mechanism", "smooth", "--noise", "lomax"),
    "global sensitivity": ("--mechanism", "laplace"),
    "propose-test": ("--mechanism", "propose-test"),
    "top k": ("--mechanism", "top-k", "--k", "1"),
    "noisy max": ("--mechanism", "noisy-max"),
}
_VOTES = {"blocks, votes": "votes", "blocks, stable label": "stable"}
_SAMPLED = {"sampled, Laplace": "laplace", "sampled, Gaussian": "gaussian"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What was compared, as the options of ``hushed compare`` say it."""

    asked: str
    public: Source
    described: Described
    unit: str
    user: str | None = None
    parts: Parts = field(default_factory=Parts)


def next_command(given: Compared, found: hs.Comparison) -> str:
    """Write the command; nothing where no command has that way."""
    chosen = next((each for each in found.routes if each.name == found.recommended), None)
    if chosen is None:
        return ""
    words = list((_for_function if ".py:" in given.asked else _for_statistic)(given, chosen))
    if not words:
        return ""
    words += ["--epsilon", format_exactly(chosen.guarantee.epsilon)]
    return " ".join(["hushed", *map(quote, words)])


def _for_statistic(given: Compared, chosen: hs.ComparedRoute) -> Iterator[str]:
    """Write the words for a statistic, but for epsilon."""
    if chosen.name.startswith("table query"):
        yield from _for_query(given, searched=chosen.name != "table query")
        return
    if chosen.name not in _WAYS:
        return
    yield from ("statistic", given.asked, "PRIVATE.csv", *_described(given.described))
    if given.asked == "mode" and chosen.name == "propose-test":
        yield from ("--mechanism", "stable-mode")
    else:
        yield from _WAYS[chosen.name]
    for option, value in re.findall(r"\b(bound|tail|smoothing)=([^,)]+)", chosen.how):
        yield from (f"--{option}", value)
    if chosen.guarantee.delta:
        yield from ("--delta", format_exactly(chosen.guarantee.delta))
    if given.unit != "row":
        yield from ("--unit", given.unit)


def _for_query(given: Compared, *, searched: bool) -> Iterator[str]:
    """Write the words for a query: a column has a name there, and a type that is stated."""
    told = given.described
    if given.public.header is False:
        return
    if told.column and (told.column.isdecimal() or ":" in told.column or "=" in told.column):
        return
    column = told.column or "COLUMN"
    if given.asked == "mode":
        keys = told.category or []
        if told.holds_text and not any("," in each or each != each.strip() for each in keys):
            yield from ("query", "PRIVATE.csv", "--type", f"{column}=string", "--by", column)
            yield from ("--keys", ",".join(keys), "--top-k", "1")
        return
    if told.low is None or told.high is None:
        return
    high = "search" if searched else format_exactly(told.high)
    span = f"{column}:{format_exactly(told.low)}:{high}"
    yield from ("query", "PRIVATE.csv", "--type", f"{column}=float")
    if given.asked in ("mean", "trimmed-mean"):  # a table has one without trimming alone
        yield from ("--mean", span)
    elif told.q is None:
        yield from ("--median", span)
    else:
        yield from ("--quantile", f"{span}:{format_exactly(told.q)}")


def _for_function(given: Compared, chosen: hs.ComparedRoute) -> Iterator[str]:
    """Write the words for a function, but for epsilon."""
    words = list(_for_sampled(given, chosen) or _for_blocks(given, chosen))
    if not words:
        return
    yield from words
    yield from _read_alike(given)
    if chosen.guarantee.delta:
        yield from ("--delta", format_exactly(chosen.guarantee.delta))


def _for_sampled(given: Compared, chosen: hs.ComparedRoute) -> list[str]:
    public, averaged = given.public, given.parts.block_rows
    if chosen.name not in _SAMPLED:
        return []
    words = ["release", "PRIVATE.csv", given.asked, "--population", public.population]
    for each in public.bounds or ():
        words += ["--bounds", each]
    if public.promise is not None:
        words += ["--promise", public.promise]
    if public.missing is not None:
        words += ["--missing", public.missing]
    words += ["--gamma", format_exactly(chosen.guarantee.gamma)]
    words += ["--mechanism", _SAMPLED[chosen.name]]
    return words + ([] if averaged is None else ["--block-rows", str(averaged)])


def _for_blocks(given: Compared, chosen: hs.ComparedRoute) -> list[str]:
    """Write the words for blocks; of averages over blocks ``hushed blocks`` knows nothing."""
    told, parts = given.described, given.parts
    if parts.block_rows is not None:
        return []
    words = ["blocks", "PRIVATE.csv", given.asked]
    if chosen.name == "blocks" and told.low is not None and told.high is not None:
        words += ["--low", format_exactly(told.low), "--high", format_exactly(told.high)]
    elif chosen.name in _VOTES:
        words += ["--aggregate", _VOTES[chosen.name]]
        for each in told.category or ():
            words += ["--candidate", each]
    elif chosen.name == "blocks, vectors" and parts.radius is not None:
        words += ["--aggregate", "vector"]
        words += [f"--centre={format_exactly(number)}" for number in parts.centre or ()]
        words += ["--radius", format_exactly(parts.radius)]
    else:
        return []
    return words + ([] if parts.blocks is None else ["--blocks", str(parts.blocks)])


def _read_alike(given: Compared) -> Iterator[str]:
    """Write how rows are read, and whose they are."""
    public = given.public
    if public.frame != "numpy":
        yield from ("--frame", public.frame)
    if public.header is not None:
        yield "--header" if public.header else "--no-header"
    if given.user is not None:
        yield from ("--user", given.user)
    if given.unit != "row":
        yield from ("--unit", given.unit)


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
