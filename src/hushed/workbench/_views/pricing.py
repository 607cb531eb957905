"""The two sliders: privacy loss and error, each from the other; every number is the library's.

The one that is held stays as it was typed; the other one is what `quote` or `quote_for` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from hushed._ground.printing import format_down, format_up
from hushed._web.fields import Form
from hushed._web.question import Terms
from hushed._web.sentences import say_meaning
from hushed.errors import HushedError, NotFeasible, ParameterError
from hushed.tables import Quote, Table
from hushed.workbench._views.question import Question
from hushed.workbench._views.sentences import Statistic, list_statistics, say_error, spell_field

Held = Literal["epsilon", "epsilon-slider", "error", "error-slider"]
_LEAST, _MOST = 0.01, 10.0  # ends of the slider of epsilon, in nats
_END = 1000  # last place of a slider
POINTS = 40
_USUAL = 1.0
_SLIDER_DIGITS, _ERROR_DIGITS = 3, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sliders:
    """Where both sliders stand, what the fields beside them say, and where they end."""

    epsilon: str = ""
    epsilon_at: int = _END // 2
    error: str = ""
    error_at: int = _END // 2
    error_of: str = ""
    choices: tuple[tuple[str, str], ...] = ()  # outputs that have an error, and their labels
    least_error: str = ""
    most_error: str = ""
    least_epsilon: str = format_up(_LEAST)
    most_epsilon: str = format_up(_MOST)
    end: str = ""  # why the slider of epsilon ends there


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What changes with every key press."""

    sliders: Sliders
    statistics: tuple[Statistic, ...] = ()
    sentence: str = ""
    meaning: str = ""
    errors: Mapping[str, str]
    epsilon: float | None = None
    quote: Quote | None = None
    lines: tuple[str, ...] = ()  # all that the library says of the price


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with its terms: equal questions have equal prices, whatever the connection."""

    query: Any  # what is asked, as the table holds it
    terms: Terms
    table: Table = field(compare=False, repr=False)


def ask_of(table: Table, terms: Terms) -> Asked:
    """Give a question by which prices are remembered."""
    return Asked(query=table.query, terms=terms, table=table)


def price_question(
    question: Question, fields: Mapping[str, str], held: Held, left: float | None
) -> Live:
    """Set the slider that is not held, and say what the error is and means.

    Parameters
    ----------
    question : Question
        What is asked.
    fields : mapping of str to str
        The form as typed.
    held : str
        The field that was moved last.
    left : float or None
        What is left of the budget, where the slider of epsilon ends.
    """
    form = Form(fields, dict(question.errors))
    if question.table is None:
        sliders = Sliders(
            epsilon=form.text("epsilon"),
            error=form.text("error"),
            error_of=form.text("error_of"),
            choices=tuple(question.labels.items()),
        )
        return Live(sliders=sliders, errors=form.errors)
    asked = ask_of(question.table, question.terms)
    ends = find_ends(asked, left)
    choices = _list_choices(question, ends)
    wanted = form.text("error_of")
    error_of = wanted if wanted in dict(choices) else next(iter(dict(choices)), "")
    epsilon, errors = _choose_epsilon(question, form, held, ends, error_of)
    try:
        quote = None if epsilon is None else quote_at(asked, epsilon)
    except HushedError as error:
        errors.setdefault("epsilon", error.message)
        quote = None
    return _describe(question, form, held, ends, quote, errors, choices, error_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where the slider of epsilon ends, the quotes there, and why."""

    low: float
    high: float
    least: Quote | None
    most: Quote | None
    why: str


def find_ends(asked: Asked, left: float | None) -> Ends:
    """Find the range of epsilon that can be asked for: it ends where the budget or the noise do."""
    high, why = _MOST, ""
    if left is not None and 0 < left < _MOST:
        high, why = left, "the slider ends at what is left of the budget"
    return _find_ends(asked, min(_LEAST, high / 10), high, why)


@lru_cache(maxsize=256)
def _find_ends(asked: Asked, low: float, high: float, why: str) -> Ends:
    """Move both ends towards the middle until the library prices them."""
    least, most, first, last = None, None, low, high
    reason = ""
    for place in range(POINTS):
        last = between(low, high, 1 - place / POINTS)
        try:
            most = quote_at(asked, last)
            break
        except HushedError as error:
            reason = reason or error.message
    for place in range(POINTS):
        first = between(low, last, place / POINTS)
        try:
            least = quote_at(asked, first)
            break
        except HushedError as error:
            reason = reason or error.message
    if reason:
        why = f"other values of epsilon cannot be had: {reason}"
    return Ends(low=first, high=last, least=least, most=most, why=why)


@lru_cache(maxsize=4096)
def quote_at(asked: Asked, epsilon: float) -> Quote:
    return asked.table.quote(epsilon=epsilon, **asked.terms.as_arguments())


@lru_cache(maxsize=1024)
def _quote_for(asked: Asked, output: str, error: float) -> float:
    return asked.table.quote_for(errors={output: error}, **asked.terms.as_arguments()).epsilon


def between(low: float, high: float, share: float) -> float:
    """Give a number between two, in steps of equal factors, in few digits and not beyond them."""
    if share <= 0 or low >= high:
        return low
    if share >= 1 or low <= 0:
        return high
    found = float(f"{low * (high / low) ** share:.{_SLIDER_DIGITS}g}")
    return min(max(found, low), high)


def _place(value: float, low: float, high: float) -> int:
    """Place a number on a slider in steps of equal factors."""
    if not 0 < low < high or value <= low:
        return 0
    share = math.log(value / low) / math.log(high / low)
    return min(_END, round(_END * share))


def _list_choices(question: Question, ends: Ends) -> tuple[tuple[str, str], ...]:
    """List the outputs whose error is known."""
    if ends.most is None:
        return ()
    known = {each.name for each in ends.most.outputs if each.accuracy is not None}
    return tuple((name, label) for name, label in question.labels.items() if name in known)


def _error_ends(ends: Ends, output: str) -> tuple[float, float]:
    """Give the least and the largest error between the ends of epsilon."""
    if ends.least is None or ends.most is None or not output:
        return 0.0, 0.0
    high = ends.least.accuracy(output) or 0.0
    return max(ends.most.accuracy(output) or 0.0, high * 1e-6), high


def _choose_epsilon(
    question: Question, form: Form, held: Held, ends: Ends, error_of: str
) -> tuple[float | None, dict[str, str]]:
    """Choose epsilon by the field that is held; what cannot be had is told at that field."""
    if ends.most is None:
        return None, {**form.errors, "epsilon": ends.why}
    if (
        held in ("error", "error-slider")
        and error_of
        and (held == "error-slider" or form.text("error"))
    ):
        return _epsilon_of_error(question, form, held, ends, error_of)
    if held == "epsilon-slider":
        share = (form.number("epsilon-slider", _END / 2) or 0.0) / _END
        return between(ends.low, ends.high, share), form.errors
    usual = min(max(_USUAL, ends.low), ends.high)
    epsilon = form.number("epsilon", usual)
    return (None if "epsilon" in form.errors else epsilon), form.errors


def _epsilon_of_error(
    question: Question, form: Form, held: Held, ends: Ends, error_of: str
) -> tuple[float | None, dict[str, str]]:
    if question.table is None:
        return None, form.errors
    asked = ask_of(question.table, question.terms)
    low, high = _error_ends(ends, error_of)
    if held == "error-slider":
        share = (form.number("error-slider", _END / 2) or 0.0) / _END
        error: float | None = between(low, high, share)
    else:
        error = form.number("error")
    if error is None:
        return None, form.errors
    try:
        return _quote_for(asked, error_of, error), form.errors
    except (NotFeasible, ParameterError) as refusal:
        return None, {**form.errors, "error": refusal.message}


def _describe(
    question: Question,
    form: Form,
    held: Held,
    ends: Ends,
    quote: Quote | None,
    errors: dict[str, str],
    choices: tuple[tuple[str, str], ...],
    error_of: str,
) -> Live:
    """Say where both sliders stand, and what that means."""
    low, high = _error_ends(ends, error_of)
    shown_epsilon, shown_error = form.text("epsilon"), form.text("error")
    error = None
    if quote is not None:
        epsilon = quote.guarantee.epsilon
        shown_epsilon = shown_epsilon if held == "epsilon" and shown_epsilon else repr(epsilon)
        error = quote.accuracy(error_of) if error_of else None
        if error is not None and not (held == "error" and shown_error):
            shown_error = format_up(error, _ERROR_DIGITS)
    if not choices:  # what stands there is an error of something else
        shown_error = ""
    sliders = Sliders(
        epsilon=shown_epsilon,
        epsilon_at=_END // 2
        if quote is None
        else _place(quote.guarantee.epsilon, ends.low, ends.high),
        error=shown_error,
        error_at=_END // 2 if error is None else _place(error, low, high),
        error_of=error_of,
        choices=choices,
        least_error=format_up(low, 3),
        most_error=format_up(high, 3),
        least_epsilon=format_up(ends.low, 3),
        most_epsilon=format_down(ends.high, 3),
        end=ends.why,
    )
    if quote is None:
        return Live(sliders=sliders, errors=errors)
    return Live(
        sliders=sliders,
        statistics=list_statistics(question, quote),
        sentence=say_error(question, quote, error_of, error),
        meaning=say_meaning(quote.guarantee.epsilon, quote.guarantee.delta, quote.unit),
        errors=errors,
        epsilon=quote.guarantee.epsilon,
        quote=quote,
        lines=tuple(quote.explain(spell_field, distances=False).split("\n")),
    )
