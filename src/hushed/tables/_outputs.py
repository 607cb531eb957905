"""From noisy measurements to outputs with error bars; nothing here sees the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

from hushed._ground.numeric import float_above
from hushed.tables._ladders import list_candidates
from hushed.tables._left_out import RATIOS, widen
from hushed.tables._plan import Choice, GaussianNoise, LaplaceNoise, Part
from hushed.tables._requests import Aggregate
from hushed.tables._top import TopChoice

Interval = tuple[Any, Any]
_EXACT = 2.0**53  # up to here every whole number is a float
_NEAR = 1e-9  # of a range: a value so near to an end of it may have been clipped


def evaluate(
    aggregates: Sequence[Aggregate],
    parts: Sequence[Part],
    noisy: Sequence[list[Any]],
    beta: float,
    missing: Mapping[str, int] = MappingProxyType({}),
) -> tuple[dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]]]:
    """Compute the outputs from noisy measurements; `missing` is what each one may lack.

    Returns values, lower ends and upper ends, by output.
    """
    values: dict[str, tuple[Any, ...]] = {}
    low: dict[str, tuple[Any, ...]] = {}
    high: dict[str, tuple[Any, ...]] = {}
    for each in aggregates:
        own = [i for i, part in enumerate(parts) if part.measurement.output == each.name]
        theirs = [parts[i] for i in own]
        errors = error_bounds(theirs, beta)
        groups = [
            _Measured(each, theirs, list(group), errors)
            for group in zip(*(noisy[i] for i in own), strict=True)
        ]
        found = [_OUTPUTS[each.kind](group) for group in groups]
        if missing.get(each.name):
            bars = zip(groups, found, strict=True)
            found = [(value, _include(group, bar, missing)) for group, (value, bar) in bars]
        values[each.name] = tuple(value for value, _ in found)
        low[each.name] = tuple(bar[0] for _, bar in found)
        high[each.name] = tuple(bar[1] for _, bar in found)
    return values, low, high


def error_bounds(parts: Sequence[Part], beta: float) -> list[float]:
    """Half-widths, in units of the outputs, that hold together except with probability beta."""
    return [
        part.noise.error(beta / len(parts)) * part.measurement.step
        for part in parts
        if isinstance(part.noise, LaplaceNoise | GaussianNoise)
    ]


class _Measured(NamedTuple):
    """What one output of one group is computed from."""

    aggregate: Aggregate
    parts: Sequence[Part]
    noisy: list[Any]
    errors: list[float]


def _include(given: _Measured, bar: Interval, missing: Mapping[str, int]) -> Interval:
    """Include in an error bar what contribution bounds leave out."""
    fewest = given.noisy[-1] - given.errors[-1] if given.aggregate.kind in RATIOS else 0.0
    return widen(given.aggregate, bar, fewest, missing[given.aggregate.name])


def _number(given: _Measured) -> tuple[Any, Interval]:
    step, error = given.parts[0].measurement.step, given.errors[0]
    value = given.noisy[0] if step == 1 else given.noisy[0] * step
    return value, (value - error, value + error)


def _histogram(given: _Measured) -> tuple[Any, Interval]:
    counts, error = given.noisy[0], given.errors[0]
    return counts, ([n - error for n in counts], [n + error for n in counts])


def _place(given: _Measured) -> tuple[Any, Interval]:
    return given.noisy[0], (None, None)


def _quantiles(given: _Measured) -> tuple[Any, Interval]:
    aggregate, noisy = given.aggregate, given.noisy
    offered = list_candidates(
        aggregate.low, aggregate.high, aggregate.bins, aggregate.spacing
    ).tolist()
    by_size = sorted(range(len(noisy)), key=aggregate.probabilities.__getitem__)
    found = [0.0] * len(noisy)
    for place, index in zip(by_size, sorted(noisy), strict=True):
        found[place] = offered[index]
    return (found if len(noisy) > 1 else found[0]), (None, None)


def make_whole(aggregate: Aggregate, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Round chosen candidates to whole numbers, for a column that holds no others.

    No value lies between a candidate and the whole number next to it, or it is that number: so as
    many rows are below and above. With ends that are none a value could leave its bounds.
    """
    if not has_whole_ends(aggregate):
        return values
    return tuple(
        [round(v) for v in each] if isinstance(each, list) else round(each) for each in values
    )


def has_whole_ends(aggregate: Aggregate) -> bool:
    """Whether both bounds of a column are whole numbers that a float holds exactly."""
    return all(end.is_integer() and abs(end) <= _EXACT for end in (aggregate.low, aggregate.high))


def _mean(given: _Measured) -> tuple[Any, Interval]:
    aggregate, parts, noisy, errors = given
    centre, reach = _middle(parts[0])
    total, rows = noisy[0] * parts[0].measurement.step, noisy[1]
    mean = _clip(total / max(rows, 1), -reach, reach)
    low, high = _ratio(total, errors[0], rows, errors[1], -reach, reach)
    ends = aggregate.low, aggregate.high
    return _clip(centre + mean, *ends), (_clip(centre + low, *ends), _clip(centre + high, *ends))


def follow_mean(
    aggregate: Aggregate,
    parts: Sequence[Part],
    mean: float,
    rows: float,
    beta: float,
    missing: int = 0,
) -> tuple[float, float] | None:
    """Follow the error bar of a mean from its value and its rows; None where it was clipped."""
    centre, reach = _middle(parts[0])
    errors, ends = error_bounds(parts, beta), (aggregate.low, aggregate.high)
    near = _NEAR * (aggregate.high - aggregate.low) + math.ulp(max(map(abs, ends)))
    if rows >= 1 and min(mean - aggregate.low, aggregate.high - mean) <= near:
        return None
    low, high = _ratio((mean - centre) * rows, errors[0], rows, errors[1], -reach, reach)
    bar = _clip(centre + low, *ends), _clip(centre + high, *ends)
    return widen(aggregate, bar, rows - errors[-1], missing)


def _variance(given: _Measured) -> tuple[Any, Interval]:
    _, parts, noisy, errors = given
    _, reach = _middle(parts[0])
    total, squares, rows = noisy
    measured = [part.measurement for part in parts]
    total, squares = total * measured[0].step, squares * measured[1].step
    shift, top = measured[1].offset * measured[1].step, reach * reach
    mean = _clip(total / max(rows, 1), -reach, reach)
    second = _clip(squares / max(rows, 1) + shift, 0.0, top)
    low, high = _ratio(total, errors[0], rows, errors[2], -reach, reach)
    below, above = _ratio(squares, errors[1], rows, errors[2], -shift, top - shift)
    least = 0.0 if low <= 0.0 <= high else min(low * low, high * high)
    most = max(low * low, high * high)
    ends = _clip(below + shift - most, 0.0, top), _clip(above + shift - least, 0.0, top)
    return _clip(second - mean * mean, 0.0, top), ends


def _middle(part: Part) -> tuple[float, float]:
    """Centre of a column, and the largest distance of a value from it."""
    grid = part.measurement.feature.grid if part.measurement.feature else None
    if grid is None:
        raise NotImplementedError(part.measurement.role)
    return grid.centre, max(grid.high - grid.centre, grid.centre - grid.low)


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _ratio(
    total: float, error: float, rows: float, spread: float, low: float, high: float
) -> tuple[float, float]:
    """All ratios of a sum and a count within their error bars, known to lie in [low, high]."""
    least, most = rows - spread, rows + spread
    if least <= 0:
        return low, high
    below, above = total - error, total + error
    return (
        _clip(min(below / least, below / most), low, high),
        _clip(max(above / least, above / most), low, high),
    )


_OUTPUTS: Mapping[str, Callable[[_Measured], tuple[Any, Interval]]] = MappingProxyType(
    {
        "count": _number,
        "users": _number,
        "sum": _number,
        "mean": _mean,
        "variance": _variance,
        "histogram": _histogram,
        "quantiles": _quantiles,
        "top": _place,
    }
)


def rank_error(aggregate: Aggregate, parts: Sequence[Part], beta: float, missing: int = 0) -> float:
    """Ranks by which the quantiles of one output and group may miss, all together.

    Notes
    -----
    D missing rows move the quantile of probability p by ``max(p, 1 - p) D`` ranks at most: those
    below a candidate by 0 to D, the wanted rank by p D.
    Each choice gets an equal part of beta, and the largest error e counts for all. The best
    candidate of a rank misses by nothing: every row is nearest to one. It holds for the sorted
    answers as well. Let ``s < t`` be two wanted ranks with candidates x and y, and y below x. With
    L and U the rows below and up to a candidate, ``L(y) <= U(y) <= L(x) <= U(x)``, and
    ``L(x) - s <= e``, ``t - U(y) <= e``. Exchanged, ``L(y) - s <= L(x) - s <= e`` and
    ``s - U(y) <= t - U(y) <= e``, likewise x for t, and sorting is a chain of such exchanges.
    """
    choices = [part.noise for part in parts if isinstance(part.noise, Choice)]
    error = max(each.error(beta / len(choices), aggregate.bins) for each in choices)
    farthest = max(max(each.probability, 1 - each.probability) for each in choices)
    return error if not missing else float_above(Fraction(error) + farthest * missing)


def rank_errors(
    aggregates: Sequence[Aggregate],
    parts: Sequence[Part],
    beta: float,
    missing: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, float]:
    """For each output of quantiles, its `rank_error`."""
    return {
        each.name: rank_error(
            each,
            [part for part in parts if part.measurement.output == each.name],
            beta,
            missing.get(each.name, 0),
        )
        for each in aggregates
        if each.kind == "quantiles"
    }


def shortfalls(
    aggregates: Sequence[Aggregate],
    parts: Sequence[Part],
    beta: float,
    missing: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, float]:
    """For each top, the rows by which a chosen key may fall short of the best for its place."""
    asked = {each.name: each for each in aggregates}
    return {
        part.measurement.output: float_above(
            Fraction(part.noise.error(beta, asked[part.measurement.output].bins))
            + missing.get(part.measurement.output, 0)
        )
        for part in parts
        if isinstance(part.noise, TopChoice)
    }
