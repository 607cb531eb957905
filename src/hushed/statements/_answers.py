"""Answers of queries on tables, as one kind of record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from hushed._ground.decimals import decimal_of
from hushed._ground.printing import flat, format_exactly, format_up, name_count, shown
from hushed._ground.weak_promises import epsilon_warnings
from hushed.errors import DamagedLedger, ParameterError
from hushed.statements._published import assume_joined, list_published
from hushed.statements._readings import Kind, Reading, Table
from hushed.statements._words import describe_outsider, describe_promise
from hushed.tables import Answer, Query
from hushed.tables._agreement import Followed, follow_answer
from hushed.tables._answers import percent
from hushed.tables._distances import CENTRED, FROM_MIDDLE
from hushed.tables._format import list_lines
from hushed.tables._question_parts import Derive, Filter, Join, JoinUsers
from hushed.tables._storage import read_answer, write_answer

_MOST_COLUMNS = 20
_LONG = 1_500  # letters that all long cells have room for: the bins of histograms, and their errors
_ASSUMED = (
    "The query was run as it is asked here, on the table that is named; no row of it was made from "
    "rows of somebody else, as in some views, or where texts in a file hold ends of lines; low and "
    "high ends, keys "
    "and conditions were chosen without looking at the rows; names of columns and their types are "
    "public; how long the query took, or that it failed, was told to nobody outside"
)
_FIRST_WORDS = {
    "the only aggregate of the query uses all of epsilon": "the one aggregate gets all of epsilon",
    "the bound farther from 0": "the larger bound",
    "half the range of the bounds": "half the distance of the bounds",
    CENTRED: "",
    FROM_MIDDLE: "",
}


def _read(text: str) -> Reading:
    """Read an answer, and plan again what it was asked by."""
    try:
        answer = read_answer(text)
    except DamagedLedger:
        raise ParameterError("the record is no answer of this version") from None
    followed = follow_answer(answer)
    answer = followed.answer
    promise, query = answer.guarantee, followed.query
    return Reading(
        title="a private answer",
        subject=answer,
        guarantee=promise,
        loss=followed.plan.loss,
        facts=_list_facts(followed),
        rows=(
            ("protected", "one person, with all rows" if query.unit == "user" else "one row"),
            ("epsilon", format_up(promise.epsilon)),
            ("delta", format_up(promise.delta)),
            ("neighbours", f"{promise.neighbours}, one {query.unit}"),
            ("noise", _describe_noise(followed)),
        ),
        tables=(_list_values(answer),),
        outsider=describe_outsider(promise, list_published(_asked_of(answer))),
        paragraphs=_explain(answer, followed),
        warnings=epsilon_warnings(promise.epsilon, answer.unit),
    )


def _asked_of(answer: Answer) -> Query | None:
    return None if answer.asked is None else answer.asked.query


def _list_facts(followed: Followed) -> dict[str, Any]:
    """List what follows from question and promise, for those who read the file without hushed."""
    plan = followed.plan
    return {
        "unit": plan.unit,
        "rule": _as_at_first(plan.rule),
        "threshold": None if plan.selection is None else plan.selection.threshold,
        "noise": [
            asdict(each)
            | {"steps": [asdict(step) | {"why": _as_at_first(step.why)} for step in each.steps]}
            for each in followed.distances
        ],
    }


def _as_at_first(words: str) -> str:
    """Put words into those of the first certificates, with which a file is compared."""
    for now, first in _FIRST_WORDS.items():
        words = words.replace(now, first)
    return words


def _list_values(answer: Answer) -> Table:
    head, *rows = list_lines(answer)
    ranks = {
        shown(name): f"{shown(name)} [within {name_count(format_up(error, 4), 'rank')}]"
        for name, error in answer.rank_error.items()
    }
    lines = [[ranks.get(each, each) for each in head], *rows]
    barred = set(answer.values) - set(answer.rank_error) - set(answer.shortfall)
    bars = f", with error bars of {percent(answer.level)}" if barred else ""
    made = Table(name=f"What was released{bars}", lines=tuple(map(tuple, lines)))
    long = sum(len(each) > made.cell for line in made.lines[1 : made.most + 1] for each in line)
    return replace(made, cell=max(made.cell, _LONG // max(long, 1)))


def _explain(answer: Answer, followed: Followed) -> tuple[tuple[str, str], ...]:
    first, *rest = answer.explain().split("\n")
    exact = " ".join([first.partition(". ")[2] or first, *rest])
    way = "\n".join(f"  - {flat(each)}" for each in followed.distances)
    asked, who = answer.asked, "person" if answer.unit == "user" else "row"
    delta = answer.guarantee.delta
    slack = f", delta {format_up(delta)}" if delta else ""
    return (
        ("What was asked", "" if asked is None else describe_query(asked.query, answer.bounds)),
        ("What is promised", describe_promise(answer.guarantee)),
        ("How exact it is", exact),
        (
            "Why it holds",
            f"How far one {answer.unit} can move each number that was measured, and the noise "
            f"that hides it:\n{way}\nAll parts together: epsilon "
            f"{format_up(answer.guarantee.epsilon)}{slack}.\nProof, not samples: it holds for "
            f"every table and every {who}; no population is assumed (gamma = 0).",
        ),
        ("What is assumed", f"{_ASSUMED}{assume_joined(_asked_of(answer))}."),
    )


def describe_query(query: Query, found: Mapping[str, tuple[float, float]]) -> str:
    """Say in a sentence or two what is asked, with the bounds that were found for it."""
    asked = ", ".join(_describe_aggregate(each, found) for each in query.aggregates)
    text = asked[:1].upper() + asked[1:]
    conditions = [flat(each.filter) for each in query.steps if isinstance(each, Filter)]
    derived = [each for each in query.steps if isinstance(each, Derive)]
    if query.groups is not None:
        known = "found with noise" if query.groups.keys is None else "public"
        text += f", by {_name_all(query.groups.columns)} (keys {known})"
    if len(conditions) > 1:  # each is one condition, also where it has an `or`
        conditions = [f"({each})" for each in conditions]
    if conditions:
        text += f"; only rows where {' and '.join(conditions)}"
    text += f".{_describe_missing(query)}{_describe_columns(query)}"
    for each in query.steps:
        if isinstance(each, Join | JoinUsers):
            text += f" {_describe_join(each)}"
    if derived:
        told = "; ".join(f"{shown(each.derive)} = {flat(each.expression)}" for each in derived)
        text += f" Derived: {told}."
    bounds = [
        f"{most} {what} of each person" if most > 1 else f"one {what[:-1]} of each person"
        for most, what in (
            (query.max_rows_per_user or 0, "rows"),
            (query.max_groups_per_user or 0, "groups"),
        )
        if most
    ]
    if query.user is not None:
        text += f" Rows with the same {shown(query.user)} belong to one person."
    return text + (f" At most {' and '.join(bounds)} count." if bounds else "")


def _describe_join(each: Join | JoinUsers) -> str:
    """Say which table was joined; the digest of a public one is that of its canonical JSON."""
    others = "are left out" if each.default is None else "keep stated values"
    if isinstance(each, JoinUsers):
        return (
            f"Joined with the private table {shown(each.join_users)}, of which one row of each "
            f"person gives the columns {_name_all(tuple(each.columns))}; rows of a person without "
            f"one {others}. The person who is protected has all rows in both tables."
        )
    content = json.dumps(each.model_dump(exclude_none=True), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(content.encode()).hexdigest()
    return (
        f"Joined by {shown(each.join)} with a public table of one row for each of {len(each.keys)} "
        f"keys and the columns {_name_all(tuple(each.columns))} (SHA-256 {digest}); rows without a "
        f"match {others}."
    )


def _describe_aggregate(each: Any, found: Mapping[str, tuple[float, float]]) -> str:
    column = getattr(each, "column", None)
    if column is None:
        named = {"count": "number of rows", "count_users": "number of people"}
        if each.kind in named:
            return named[each.kind]
        keys = "key" if each.k == 1 else f"{each.k} keys"
        return f"the {keys} with the most {each.of}"
    searched = [isinstance(end, str) for end in (each.low, each.high)]
    told = found.get(each.name, (each.low, each.high)) if any(searched) else (each.low, each.high)
    low, high = map(_describe_end, told)
    ends = f"(values moved into {low} to {high}{_describe_search(low, high, searched)})"
    if each.kind == "quantiles":
        which = ", ".join(f"{_write_percent(p)} %" for p in each.probabilities)
        return f"quantiles {which} of {shown(column)} {ends}"
    if each.kind == "histogram":
        return (
            f"histogram of {shown(column)} in {each.bins} bins from {low} to {high} (values "
            "outside count in the first or the last bin)"
        )
    return f"{each.kind} of {shown(column)} {ends}"


def _write_percent(share: float) -> str:
    """Write a share in percent; none below 1 is 100 %."""
    return format_exactly(float(100 * decimal_of(share)))


def _describe_columns(query: Query) -> str:
    """Name the columns that the query knows of its table, whose place is private."""
    named = [f"{shown(name)} ({kind})" for name, kind in query.columns.items()]
    more = [f"{len(named) - _MOST_COLUMNS} more"] * (len(named) > _MOST_COLUMNS)
    return f" Columns that it uses: {', '.join(named[:_MOST_COLUMNS] + more)}." if named else ""


def _describe_missing(query: Query) -> str:
    """Say what was done with missing cells of the columns that were added up or counted."""
    kinds = {each.kind for each in query.aggregates if getattr(each, "column", None) is not None}
    if not kinds:
        return ""
    told = ["count as 0 in a sum"] * ("sum" in kinds) + ["are left out"] * bool(kinds - {"sum"})
    return f" Missing values {' and '.join(told)}{' of the others' * (len(told) > 1)}."


def _describe_search(low: str, high: str, searched: list[bool]) -> str:
    """Say which of the ends were searched for."""
    if not any(searched):
        return ""
    if all(searched):
        return ", bounds that were found with noise"
    return f", of which {low if searched[0] else high} was found with noise"


def _describe_end(end: float | str) -> str:
    return end if isinstance(end, str) else format_exactly(end)


def _describe_noise(followed: Followed) -> str:
    return ", ".join(sorted({each.noise for each in followed.distances}))


def _name_all(names: tuple[str, ...]) -> str:
    return " and ".join(map(shown, names))


def _write(answer: Answer) -> str:
    if answer.asked is None:
        raise ParameterError(
            "the answer does not say what was asked, so that nothing can be certified: it was made "
            "by hand, or stored by another version"
        )
    return write_answer(answer)


ANSWERS = Kind(
    name="answer",
    schema="hushed answer",
    takes=(Answer,),
    write=_write,
    read=_read,
    charged=True,
    write_again=lambda reading: write_answer(reading.subject),
    checked="digests; promise, noise, keys, candidates and error bars follow from the question",
    unchecked=(
        "that the query ran as it is asked here, and on the table that is named",
        "that the noise was drawn",
        "variances, and means at an end of their range, beyond the bounds of their columns; "
        "remarks on the numbers",
    ),
    without_ledger=("that these values were released, and not changed since",),
)
