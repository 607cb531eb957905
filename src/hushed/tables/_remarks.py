"""What the noisy numbers of a mean say about the cells behind it; nothing here sees the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushed._printing import format_up, shown
from hushed.tables._plan import Choice, Part
from hushed.tables._requests import Aggregate

_LARGE = 10.0  # from here on odds may grow by 22,000

_ADVICE = (
    "If there should be more, are the column's type, its decimal points (1234.50) and its dates "
    "(2024-03-01) right? A cell that cannot be read is missing."
)


def present_rows(
    aggregates: Sequence[Aggregate], parts: Sequence[Part], noisy: Sequence[list[Any]]
) -> dict[str, tuple[float, ...]]:
    """Noisy number of rows with a value, which means and variances are divided by."""
    found = {}
    for each in aggregates:
        if each.kind in ("mean", "variance"):
            found[each.name] = tuple(noisy[_last(parts, each)])
    return found


def hardly_private(epsilon: float, unit: str) -> tuple[str, ...]:
    """Say of a large epsilon that it keeps little.

    One sentence from 10 on, nothing below.
    """
    if epsilon < _LARGE:
        return ()
    return (
        f"epsilon {format_up(epsilon)} keeps hardly anything private: answers may be e^"
        f"{format_up(epsilon)} times likelier because of one {unit}.",
    )


def remarks(
    aggregates: Sequence[Aggregate], parts: Sequence[Part], noisy: Sequence[list[Any]], beta: float
) -> tuple[str, ...]:
    """Say how many rows have a value, and where that should give pause."""
    counted = next((each for each in aggregates if each.kind == "count"), None)
    total = None if counted is None else _last(parts, counted)
    said: list[str] = []
    for name, present in present_rows(aggregates, parts, noisy).items():
        error = _error(parts[_last(parts, _named(aggregates, name))], beta)
        lost = sum(number <= error for number in present)
        few = 0
        if total is not None:
            spread = _error(parts[total], beta)
            few = sum(
                error < number and 2 * (number + error) < rows - spread
                for number, rows in zip(present, noisy[total], strict=True)
            )
        said += _said(name, present, error, lost, few)
    return tuple(said)


def _said(name: str, present: Sequence[float], error: float, lost: int, few: int) -> list[str]:
    name = shown(name)
    where = "" if len(present) == 1 else f" in {{}} of {len(present)} groups"
    found = []
    if len(present) == 1:
        within = format_up(error, 4)
        found.append(f"{name}: about {present[0]:.0f} rows with a value, within {within}.")
    if lost:
        found.append(
            f"{name}:{where.format(lost)} the number of rows with a value cannot be told from 0, "
            f"and what is answered there is mostly noise. {_ADVICE}"
        )
    if few:
        found.append(
            f"{name}:{where.format(few)} fewer than half of the rows have a value. {_ADVICE}"
        )
    return found


def _named(aggregates: Sequence[Aggregate], name: str) -> Aggregate:
    return next(each for each in aggregates if each.name == name)


def _last(parts: Sequence[Part], aggregate: Aggregate) -> int:
    """Place of the last measurement of an output: the number of rows, where there is one."""
    return max(i for i, part in enumerate(parts) if part.measurement.output == aggregate.name)


def _error(part: Part, beta: float) -> float:
    if isinstance(part.noise, Choice):
        raise NotImplementedError(part.measurement.role)
    return part.noise.error(beta)
