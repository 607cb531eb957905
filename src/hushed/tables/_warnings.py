"""Warnings from noisy numbers; nothing here sees the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hushed._ground.printing import format_down, format_up, shown
from hushed.tables._left_out import LeftOut
from hushed.tables._plan import Choice, Part, PartitionSelection
from hushed.tables._requests import Aggregate
from hushed.tables._top import TopChoice

_ADVICE = (
    "If there should be more, check the type of the column, its decimal points (1234.50) and its "
    "dates (2024-03-01): a cell that cannot be read as its type is missing."
)
_OF_KEYS = "So is a user whose id is not of the declared type; a key is spelled as in the table."


def present_rows(
    aggregates: Sequence[Aggregate], parts: Sequence[Part], noisy: Sequence[list[Any]]
) -> dict[str, tuple[float, ...]]:
    """Noisy number of rows with a value: the divisor of means and variances."""
    found = {}
    for each in aggregates:
        if each.kind in ("mean", "variance"):
            found[each.name] = tuple(noisy[_last_index(parts, each)])
    return found


def data_warnings(
    aggregates: Sequence[Aggregate], parts: Sequence[Part], noisy: Sequence[list[Any]], beta: float
) -> tuple[str, ...]:
    """Say how many rows have a value, and warn where there are few."""
    counted = next((each for each in aggregates if each.kind == "count"), None)
    total = None if counted is None else _last_index(parts, counted)
    found: list[str] = []
    for name, present in present_rows(aggregates, parts, noisy).items():
        error = _error(parts[_last_index(parts, _find_aggregate(aggregates, name))], beta)
        lost = sum(number <= error for number in present)
        few = 0
        if total is not None:
            spread = _error(parts[total], beta)
            few = sum(
                error < number and 2 * (number + error) < rows - spread
                for number, rows in zip(present, noisy[total], strict=True)
            )
        found += _describe_present(name, present, error, lost, few)
    return tuple(found)


def zero_warnings(
    aggregates: Sequence[Aggregate],
    low: Mapping[str, Sequence[Any]],
    high: Mapping[str, Sequence[Any]],
) -> tuple[str, ...]:
    """Warn of counts and sums that cannot be told from 0, which is what missing values give."""
    found = []
    for each in aggregates:
        if each.kind not in ("count", "users", "sum"):
            continue
        bars = list(zip(low[each.name], high[each.name], strict=True))
        lost = sum(least <= 0 <= most or most < 0 <= each.low for least, most in bars)
        where = "" if len(bars) == 1 else f" in {lost} of {len(bars)} groups"
        if lost:
            found.append(
                f"{shown(each.name)}:{where} it cannot be distinguished from 0. {_ADVICE} "
                f"{_OF_KEYS}"
            )
    return tuple(found)


def guess_warnings(
    aggregates: Sequence[Aggregate], low: Mapping[str, Sequence[Any]], guess: LeftOut | None
) -> tuple[str, ...]:
    """Warn of a public guess of rows that the noisy numbers contradict: its bars do not hold."""
    if guess is None or guess.all_rows is None or guess.all_users is None:
        return ()
    found = []
    for each in aggregates:
        ends = low[each.name]
        if not ends or each.kind not in ("count", "users"):
            continue
        # A row lies in one group, a user may lie in several.
        least = sum(ends) if each.kind == "count" else max(ends)
        known, what = (
            (guess.all_rows, "rows") if each.kind == "count" else (guess.all_users, "users")
        )
        if least > known:
            found.append(
                f"{shown(each.name)}: the guess of the rows of each user (rows_per_user, "
                f"--rows-per-user) is of {known} {what}, and the noisy numbers say that there are "
                f"more, about {format_down(least, 4)} at least: the error bars, which rest on "
                "that guess, are too short."
            )
    return tuple(found)


def say_empty(selection: PartitionSelection, unit: str) -> tuple[str, ...]:
    """Say why no group is told, which the query and its price alone decide, and no row."""
    return (
        f"No group is told: partition selection tells one if its noisy number of {unit}s is at "
        f"least {selection.threshold} (tau). tau follows from epsilon, delta and the contribution "
        f"bounds alone. Groups of fewer {unit}s mostly stay hidden: group by something coarser, "
        "list public keys, or allow a larger epsilon or delta.",
    )


def _describe_present(
    name: str, present: Sequence[float], error: float, lost: int, few: int
) -> list[str]:
    name = shown(name)
    where = "" if len(present) == 1 else f" in {{}} of {len(present)} groups"
    found = []
    if len(present) == 1:
        within = format_up(error, 4)
        found.append(f"{name}: about {present[0]:.0f} rows with a value, within {within}.")
    if lost:
        found.append(
            f"{name}:{where.format(lost)} the number of rows with a value cannot be distinguished "
            f"from 0, and the answer is mostly noise. {_ADVICE}"
        )
    if few:
        found.append(
            f"{name}:{where.format(few)} fewer than half of the rows have a value. {_ADVICE}"
        )
    return found


def _find_aggregate(aggregates: Sequence[Aggregate], name: str) -> Aggregate:
    return next(each for each in aggregates if each.name == name)


def _last_index(parts: Sequence[Part], aggregate: Aggregate) -> int:
    """Index of the last measurement of an output: the number of rows, if there is one."""
    return max(i for i, part in enumerate(parts) if part.measurement.output == aggregate.name)


def _error(part: Part, beta: float) -> float:
    if isinstance(part.noise, Choice | TopChoice):
        raise NotImplementedError(part.measurement.role)
    return part.noise.error(beta)
