"""An answer beside what follows from its question: nothing here reads a row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from hushed._ground.types import Floats
from hushed.errors import HushedError, ParameterError
from hushed.tables._answers import Answer, Asked
from hushed.tables._asking import ask
from hushed.tables._distances import Distances, trace_distances
from hushed.tables._ladders import Candidates, describe_candidates, list_candidates
from hushed.tables._left_out import count_missing, widen
from hushed.tables._outputs import (
    error_bounds,
    follow_mean,
    has_whole_ends,
    rank_errors,
    shortfalls,
)
from hushed.tables._plan import Part, Plan
from hushed.tables._query import Query
from hushed.tables._release import plan_query
from hushed.tables._requests import Aggregate
from hushed.tables._table import Table

_SLACK = 1e-9
_ROUNDED = 1e-6  # of the range of a column: a mean is a rounded quotient
_PLAIN = ("count", "users", "sum", "histogram")  # whose error bars are those of the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What follows from the question of an answer, and from its promise."""

    answer: Answer  # with its columns in the order in which they were asked for
    query: Query  # the question, with the bounds that were found
    plan: Plan  # its noise
    distances: tuple[Distances, ...]  # from one unit to the noise, step by step


def follow_answer(answer: Answer) -> Followed:
    """Plan again what was asked, and refuse an answer that does not follow from it."""
    if answer.asked is None:
        raise ParameterError(
            "the answer does not say what it was asked by: it was made by hand, or by another "
            "version"
        )
    followed = _plan_again(answer, answer.asked)
    answer = followed.answer
    rules = (_check_columns, _check_promise, _check_shape, _check_laws, _check_bars, _check_choices)
    problems = [text for rule in rules for text in rule(answer, followed)]
    if problems:
        raise ParameterError(f"the answer does not follow from its question: {problems[0]}")
    return followed


def _plan_again(answer: Answer, asked: Asked) -> Followed:
    """Ask the question of a table of which only the columns are known."""
    query = asked.query
    nowhere: Any = None  # it is planned, and not asked
    bare = Table(
        connection=nowhere,
        query=Query(schema=tuple(query.columns.items()), user=query.user),
    )
    promise = answer.guarantee
    try:
        typed = ask(bare, query).query
        first = plan_query(
            typed, epsilon=promise.epsilon, delta=promise.delta, noise_name=asked.noise
        )
        found = _read_bounds(answer, typed)
        typed, plan = typed.with_bounds(found), first
        if found:
            plan = plan_query(
                typed, epsilon=promise.epsilon, delta=promise.delta, noise_name=asked.noise
            )
        answer = _put_in_order(answer, typed)
    except (HushedError, ArithmeticError, LookupError, TypeError, ValueError) as problem:
        raise ParameterError(f"what was asked does not fit the answer: {problem}") from None
    distances = trace_distances(typed, plan)
    return Followed(answer=answer, query=typed, plan=plan, distances=distances)


def _put_in_order(answer: Answer, query: Query) -> Answer:
    """Put columns in the order of the question: JSON has none."""
    names = [each.name for each in query.aggregates]
    columns: dict[str, Any] = {
        field: {name: getattr(answer, field)[name] for name in names}
        for field in ("values", "low", "high")
    }
    if any(len(getattr(answer, field)) != len(names) for field in columns):
        raise ParameterError("its outputs are not those that were asked for")
    keys = {name: answer.keys[name] for name in query.keys.columns}
    if len(keys) != len(answer.keys):
        raise ParameterError("its groups are not those that were asked for")
    return replace(answer, keys=keys, **columns)


def _read_bounds(answer: Answer, query: Query) -> dict[Any, float]:
    """Read the bounds that were searched, each among those that a search may find."""
    found = {}
    for each in query.searched:
        low, high = answer.bounds[each.output]
        end = low if each.side == "low" else high
        if end not in each.bounds:
            raise ValueError(f"{end!r} is no bound that a search finds")
        found[each.output, each.side] = end
    return found


def _check_columns(answer: Answer, followed: Followed) -> list[str]:
    """Compare the columns of the question with those that it uses, that of the users above all."""
    asked = answer.asked
    right = asked is not None and asked.query.columns == followed.query.used_columns()
    users = followed.query.user is None or followed.query.user in followed.query.used_columns()
    return [] if right and users else ["its columns are not those that it uses"]


def _check_promise(answer: Answer, followed: Followed) -> list[str]:
    asked = answer.asked
    rules = {
        "guarantee": answer.guarantee == followed.plan.guarantee,
        "unit": answer.unit == followed.plan.unit,
        "level": asked is not None
        and 0 < asked.beta < 1
        and _is_near(answer.level, 1 - asked.beta),
    }
    return [f"{name} is another one" for name, holds in rules.items() if not holds]


def _check_shape(answer: Answer, followed: Followed) -> list[str]:
    """Compare the outputs, the keys and their number."""
    query, names = followed.query, [each.name for each in followed.query.aggregates]
    columns = [answer.values, answer.low, answer.high]
    sizes = {len(column) for each in (answer.keys, *columns) for column in each.values()}
    sizes |= {len(column) for column in answer.present.values()}
    if len(sizes) != 1:
        return ["its columns are not of one length"]
    if not all(map(_is_number, itertools.chain.from_iterable(answer.present.values()))):
        return ["a number of rows with a value is none"]
    keys = list(zip(*answer.keys.values(), strict=True)) if answer.keys else [()] * len(answer)
    if query.chooses_keys:
        places = [*range(1, query.aggregates[0].k + 1)]
        known = len(set(keys)) == len(keys) and set(keys) <= set(query.keys.combinations())
        right = known and list(answer.values[names[0]]) == places
        return [] if right else ["its keys are not as many as were asked for, each once"]
    if query.keys.values is not None:
        return [] if keys == query.keys.combinations() else ["its keys are not the public ones"]
    return [] if len(set(keys)) == len(keys) else ["a key is there twice"]


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _check_laws(answer: Answer, followed: Followed) -> list[str]:
    """Compare what is said of all values of an output together."""
    aggregates, parts, beta = followed.query.aggregates, followed.plan.parts, _beta(answer)
    of, missing = {each.name: each for each in aggregates}, _missing(answer, followed)
    quantiles = [each for each in aggregates if each.kind == "quantiles"]
    wanted: dict[str, dict[str, Any]] = {
        "rank_error": rank_errors(aggregates, parts, beta, missing),
        "shortfall": shortfalls(aggregates, parts, beta, missing),
        "candidates": {
            each.name: asdict(describe_candidates(each.low, each.high, each.bins, each.spacing))
            for each in quantiles
        },
        "probabilities": {each.name: each.probabilities for each in quantiles},
        "bounds": {each.name: (each.low, each.high) for each in aggregates if each.search},
        "edges": {
            each.name: tuple(np.linspace(each.low, each.high, each.bins + 1).tolist())
            for each in aggregates
            if each.kind == "histogram"
        },
    }
    found = [
        name for name, right in wanted.items() if not _is_near(dict(getattr(answer, name)), right)
    ]
    measured = [name for name in of if of[name].kind in ("mean", "variance")]
    if sorted(answer.present) != sorted(measured):
        found.append("the number of rows with a value")
    return [f"{name} does not follow from it" for name in found]


def _check_bars(answer: Answer, followed: Followed) -> list[str]:
    """Compare each error bar with the noise, and means with the bounds of their column."""
    found, missing = [], _missing(answer, followed)
    for each in followed.query.aggregates:
        rows = zip(*(column[each.name] for column in _columns(answer)), strict=True)
        own = [part for part in followed.plan.parts if part.measurement.output == each.name]
        lacking = missing.get(each.name, 0)
        right = _bar_of(each, error_bounds(own, _beta(answer)), lacking)
        if not all(right(value, low, high) for value, low, high in rows):
            found.append(f"an error bar of {each.name} is not that of its noise")
        elif each.kind == "mean" and not _follow_means(answer, each, own, lacking):
            found.append(f"an error bar of {each.name} is not that of its noise, and its rows")
    return found


def _follow_means(answer: Answer, each: Aggregate, parts: Sequence[Part], missing: int) -> bool:
    """Whether the error bars of means follow from their values and numbers of rows."""
    told = zip(*(column[each.name] for column in (*_columns(answer), answer.present)), strict=True)
    spread = error_bounds(parts, _beta(answer))[-1]
    for mean, low, high, rows in told:
        bar = follow_mean(each, parts, mean, rows, _beta(answer), missing)
        # A mean is rounded, and its bar is farther out, as rows are more than the fewest.
        turned = rows / (rows - spread) if rows > spread else 1.0
        slack = _ROUNDED * (each.high - each.low) + 4 * _ulp(each) * turned
        if bar is not None and max(abs(bar[0] - low), abs(bar[1] - high)) > slack:
            return False
    return True


def _ulp(each: Aggregate) -> float:
    """How far apart doubles are at the ends of a column, which may be far from its range."""
    return math.ulp(max(abs(each.low), abs(each.high)))


def _bar_of(
    each: Aggregate, errors: Sequence[float], missing: int
) -> Callable[[Any, Any, Any], bool]:
    """Give the rule for value, low and high end of an output, of which so much may be missing."""
    if each.kind == "histogram":
        bar = partial(_is_bar, replace(each, kind="count"), errors[0], missing)
        return lambda value, low, high: (
            len(value) == len(low) == len(high) == each.bins and all(map(bar, value, low, high))
        )
    if each.kind in _PLAIN:
        return partial(_is_bar, each, errors[0], missing)
    if each.kind in ("quantiles", "top"):
        return lambda value, low, high: low is None and high is None  # noqa: ARG005
    floor, top = each.low, each.high
    if each.kind == "variance":
        floor, top = 0.0, ((each.high - each.low) / 2 + 2 * _ulp(each)) ** 2 * (1 + 1e-9)
    slack = _SLACK * (top - floor)  # quotients round
    return lambda value, low, high: floor <= low <= value + slack and value - slack <= high <= top


def _is_bar(each: Aggregate, error: float, missing: int, value: Any, low: Any, high: Any) -> bool:
    """Whether these are the ends of a number, which are rounded as the number is.

    Doubles are coarse far from zero, and an end is compared as one. No rounding takes half of the
    noise away from a number that was released: that is compared exactly.
    """
    right = widen(each, (value - error, value + error), 0.0, missing)
    near = all(
        abs(told - end) <= _SLACK * abs(end - value) + math.ulp(end) and math.isfinite(end)
        for told, end in zip((low, high), right, strict=True)
    )
    half = Fraction(error) / 2
    return near and min(Fraction(value) - Fraction(low), Fraction(high) - Fraction(value)) >= half


def _missing(answer: Answer, followed: Followed) -> dict[str, int]:
    """Count what each output may lack, by the guess of the answer."""
    asked = answer.asked
    return {} if asked is None else count_missing(followed.query, asked.left_out)


def _check_choices(answer: Answer, followed: Followed) -> list[str]:
    """Look for each quantile among its candidates, and in order."""
    found = []
    for each in followed.query.aggregates:
        if each.kind != "quantiles":
            continue
        offered = list_candidates(each.low, each.high, each.bins, each.spacing)
        if has_whole_ends(each):  # of a column of whole numbers
            offered = np.union1d(offered, np.rint(offered))
        for value in answer.values[each.name]:
            listed = value if isinstance(value, list) else [value]
            by_size = sorted(range(len(listed)), key=lambda i: each.probabilities[i])
            ordered = [listed[i] for i in by_size]
            if len(listed) != len(each.probabilities) or not _are_among(listed, offered):
                found.append(f"a value of {each.name} is no candidate of its quantile")
            elif ordered != sorted(ordered):
                found.append(f"the quantiles of {each.name} are not in order")
    return found


def _are_among(values: list[float], offered: Floats) -> bool:
    """Whether all values are candidates, up to the last digits."""
    apart = np.abs(np.subtract.outer(np.asarray(values, dtype=np.float64), offered)).min(axis=1)
    return bool(np.all(apart <= _SLACK * np.abs(values)))


def _is_near(one: Any, other: Any) -> bool:
    """Whether two descriptions agree, up to the last digits of their numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_near(one[name], other[name]) for name in one)
    if isinstance(one, Candidates):
        return _is_near(asdict(one), other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_is_near, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_SLACK)
    return bool(one == other)


def _columns(answer: Answer) -> tuple[Any, Any, Any]:
    return answer.values, answer.low, answer.high


def _beta(answer: Answer) -> float:
    return 0.0 if answer.asked is None else answer.asked.beta
