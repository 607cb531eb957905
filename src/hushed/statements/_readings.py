"""What a record says once it was read, and the kinds of records that there are, as data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hushed._ground.printing import flat
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger import Ledger
from hushed.privacy_loss import PrivacyProfile

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)

_CLOSE = 1e-9

Lines = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Released values as text, for a page."""

    name: str  # what stands above it
    lines: Lines  # the names of the columns first
    most: int = 24  # lines that a page shows: more would not print on two sides
    cell: int = 90  # letters of a cell that are shown at once; a click shows the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A record that was read, agrees with itself, and is put into words."""

    title: str  # of its page, after "Certificate of"
    subject: Any  # the object that was written down
    facts: dict[str, Any]  # what follows from the record, as plain values
    guarantee: Guarantee | None = None  # what is promised, if anything is
    loss: PrivacyProfile | None = None  # the curve behind it, where it is known
    rows: tuple[tuple[str, str], ...] = ()  # names and short texts, for a page
    tables: tuple[Table, ...] = ()
    short: str = ""  # what was released, in a list of others; otherwise its table says it
    outsider: str  # what an outsider could still learn
    paragraphs: tuple[tuple[str, str], ...] = ()  # heading and text
    warnings: tuple[str, ...] = ()  # what comes before all else


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of record: how it is written, how it is read, and what reading cannot check."""

    name: str
    schema: str  # as the record names it
    takes: tuple[type, ...]  # of what it is the record
    write: Callable[[Any], str]
    read: Callable[[str], Reading]  # refuses whatever contradicts itself
    write_again: Callable[[Reading], str]  # the record of what was read
    checked: str  # what reading has shown
    unchecked: tuple[str, ...]
    about: str = "data set"  # what the record is about, which its maker names
    charged: bool = False  # whether a ledger charges it
    without_ledger: tuple[str, ...] = ()  # what a ledger shows, and nothing else
    # Of a record that is of a whole ledger: what a ledger says otherwise.
    compare: Callable[[Reading, Ledger], list[str]] | None = None
    # Of such a record that the ledger has: what was charged after it.
    since: Callable[[Reading, Ledger], str] | None = None


def canonical(value: Any) -> str:
    """Write plain values in the one way that digests are made of."""
    try:
        return _CANONICAL.encode(value)
    except (ValueError, RecursionError):
        raise ParameterError(
            "a record holds numbers, texts, lists and objects of JSON: nothing infinite, no NaN, "
            "and nothing that is nested too deep"
        ) from None


def clean(reading: Reading) -> Reading:
    """Take out of what is shown whatever is not printed, such as controls of the direction."""
    return replace(
        reading,
        title=flat(reading.title),
        rows=tuple((flat(name), flat(text)) for name, text in reading.rows),
        tables=tuple(
            replace(
                each,
                name=flat(each.name),
                lines=tuple(tuple(map(flat, line)) for line in each.lines),
            )
            for each in reading.tables
        ),
        short=flat(reading.short),
        outsider=flat(reading.outsider),
        paragraphs=tuple((flat(head), _clean_lines(text)) for head, text in reading.paragraphs),
        warnings=tuple(map(_clean_lines, reading.warnings)),
    )


def _clean_lines(text: str) -> str:
    """Clean a text of several lines."""
    return "\n".join(map(flat, text.split("\n")))


def is_near(one: Any, other: Any) -> bool:
    """Whether plain values are the same, up to the last digits of their doubles."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_near(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_near, one, other))
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=_CLOSE)
    return bool(one == other)
