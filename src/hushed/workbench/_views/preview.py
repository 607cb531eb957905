"""A preview of an answer: on a public table, or on rows that are made up from types and bounds."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._web.answers import draw_answer, list_answer
from hushed._web.svg import Picture
from hushed.errors import HushedError
from hushed.tables import Answer, Query, Table, table
from hushed.tables._question_parts import JoinUsers
from hushed.workbench._views.question import Described, Question

_ROWS, _MOST_ROWS, _ROWS_OF_USER = 1000, 20_000, 3
_MADE_UP_KEYS = 4
_MOST_PICTURES = 2
_ALMOST_EXACT = 1000.0  # epsilon at which hardly any noise is left, for public rows only
_DAYS = 365
_START = datetime.date(2024, 1, 1)

MADE_UP = "Made-up rows, not your data"
PUBLIC = "The public table, not your data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an answer could look like."""

    headline: str
    lines: tuple[tuple[str, ...], ...] = ()
    exact: tuple[tuple[str, ...], ...] = ()  # with hardly any noise; of a public table only
    pictures: tuple[Picture, ...] = ()
    problem: str = ""


def preview_answer(described: Described, question: Question, epsilon: float) -> Preview:
    """Answer the question on rows that are not private; nothing is charged."""
    headline = MADE_UP if described.example is None else PUBLIC
    if question.table is None:
        return Preview(headline=headline)
    try:
        rows = described.example or make_up(described)
        answer = _answer(rows, question, epsilon)
        exact = _answer(rows, question, _ALMOST_EXACT) if described.example is not None else None
    except HushedError as error:
        return Preview(headline=headline, problem=error.message)
    return Preview(
        headline=headline,
        lines=list_answer(answer),
        exact=() if exact is None else list_answer(exact),
        pictures=draw_answer(answer, headline)[:_MOST_PICTURES],
    )


def _answer(rows: Table, question: Question, epsilon: float) -> Answer:
    """Answer a question; rows that are made up have the columns of the other private table."""
    asked, terms = Query.of(question.table), question.terms  # type: ignore[arg-type]
    steps = tuple(each for each in asked.steps if not isinstance(each, JoinUsers))
    asked = asked.model_copy(update={"steps": steps})
    return rows.ask(asked).release(epsilon=epsilon, delta=terms.delta, noise=terms.noise)


def make_up(described: Described, seed: int | None = None) -> Table:
    """Make up rows from the types, bounds and keys that were declared."""
    import pyarrow as pa  # noqa: PLC0415  (only for tables)

    size = min(described.rows or _ROWS, _MOST_ROWS)
    rng = np.random.default_rng(seed)
    kinds = (described.base or described).kinds  # a public file adds the others
    columns = {name: _make_column(described, name, kind, size, rng) for name, kind in kinds.items()}
    user = described.table.user
    if user is not None:
        people = rng.integers(max(1, size // _ROWS_OF_USER), size=size)
        text = described.table.columns[user] == "string"
        columns[user] = [f"person {each}" for each in people] if text else people.tolist()
    types = {name: kind for name, kind in kinds.items() if kind != "other"}
    return table(pa.table(columns), user=user, types=types)  # type: ignore[arg-type]


def _make_column(
    described: Described, name: str, kind: str, size: int, rng: np.random.Generator
) -> list[Any]:
    """Make up a column: keys equally often, numbers evenly between their bounds."""
    keys = described.keys.get(name)
    if keys:
        return [keys[i] for i in rng.integers(len(keys), size=size)]
    low, high = (_read(text, end) for text, end in zip(_limits(described, name), (0, 100)))  # noqa: B905
    makers: dict[str, Callable[[], list[Any]]] = {
        "int": lambda: np.rint(rng.uniform(low, high, size)).astype(np.int64).tolist(),
        "float": lambda: rng.uniform(low, high, size).tolist(),
        "bool": lambda: rng.integers(2, size=size).astype(bool).tolist(),
        "date": lambda: _days(rng, size),
        "timestamp": lambda: [
            datetime.datetime.combine(each, datetime.time()) for each in _days(rng, size)
        ],
    }
    if kind in makers:
        return makers[kind]()
    return [f"{name} {i + 1}" for i in rng.integers(_MADE_UP_KEYS, size=size)]


def _limits(described: Described, name: str) -> tuple[str, str]:
    return described.limits.get(name, ("", ""))


def _read(text: str, default: float) -> float:
    try:
        return float(text)
    except ValueError:
        return default


def _days(rng: np.random.Generator, size: int) -> list[datetime.date]:
    return [_START + datetime.timedelta(days=int(each)) for each in rng.integers(_DAYS, size=size)]
