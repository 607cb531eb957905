"""How far one user or row moves every number of a query, step by step, down to epsilon.

The numbers are those that the noise is scaled to: nothing is computed a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from hushed._ground.notebook import Shown
from hushed._ground.numeric import float_above, root_above
from hushed._ground.printing import format_down, format_exactly, format_up, name_count, shown
from hushed.guarantee import Guarantee
from hushed.tables._joins import Join, JoinUsers
from hushed.tables._measurements import Measurement
from hushed.tables._plan import Choice, GaussianNoise, Part, PartitionSelection, PartNoise, Plan
from hushed.tables._query import Query
from hushed.tables._requests import Aggregate
from hushed.tables._searching import SearchPart
from hushed.tables._top import TopChoice

Noise = Literal["Laplace", "Gaussian", "exponential", "joint exponential", "one-sided"]

DISTANCES = "how far one"  # begins what is said of distances
CENTRED = " (each less half of the largest one)"  # squares, which then move half as far
FROM_MIDDLE = " of distances from the middle of the bounds"
_DIGITS = 10  # of a part of epsilon
_LAST_BITS = Fraction(1, 2**44)  # of a part: what rounding may have added


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DistanceStep(Shown):
    """How far two neighbouring tables are apart after one step.

    Parameters
    ----------
    distance : float
        At most so far, rounded up.
    of : {"users", "rows", "groups", "answers", "bounds"}
        What is counted. Answers are in the units of the output, all groups together: in the l1
        norm for Laplace noise, in the l2 norm for Gaussian noise, in ranks for quantiles. Where a
        bound is searched, sums are in multiples of the bound farther from 0, and sums of
        distances, of half the range of the bounds.
    why : str
        What makes it so.
    """

    distance: float
    of: Literal["users", "rows", "groups", "answers", "bounds"]
    why: str

    def __str__(self) -> str:
        return f"{self.why}: {format_up(self.distance)} {self.of} apart at most"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Distances(Shown):
    """The way from one user or row to the noise of one measurement, and to epsilon.

    Parameters
    ----------
    output : str
        Output it belongs to; empty for partition selection.
    measured : str
        What is measured.
    steps : tuple of DistanceStep
        From the unit of privacy to the answers.
    noise : {"Laplace", "Gaussian", "exponential", "joint exponential", "one-sided"}
        Law of the noise; the exponential mechanism chooses a candidate instead, the joint one
        several keys. One-sided is the
        exponential noise of the search for a bound.
    scale : float
        Scale of the noise in the units of the answers: of the Laplace law, standard deviation of
        the Gaussian one, ranks, rows or users that make a choice e times as likely, rows of one
        comparison of a search.
    epsilon : float or None
        Privacy loss of this measurement, rounded up. None for Gaussian noise, which is composed as
        one mechanism.
    """

    output: str
    measured: str
    steps: tuple[DistanceStep, ...]
    noise: Noise
    scale: float
    epsilon: float | None

    def __str__(self) -> str:
        """Say it in one line."""
        name = shown(self.output) if self.output else "partition selection"
        what = f" ({self.measured})" if self.measured else ""
        way = " -> ".join(each.why for each in self.steps)
        size = format_up(self.scale, 4)
        law = {
            "Laplace": f"Laplace noise of scale {size}",
            "Gaussian": f"Gaussian noise of standard deviation {size}",
            "exponential": f"exponential mechanism, a factor e for {name_count(size, 'rank')}",
            "joint exponential": f"joint exponential mechanism, a factor e for {size} of them",
            "one-sided": f"one-sided exponential noise of scale {size}",
        }[self.noise]
        if self.steps[-1].of == "bounds":
            law += " of these"
        loss = "" if self.epsilon is None else f" -> epsilon {show_part(self.epsilon)}"
        return f"{name}{what}: {way} -> {law}{loss}"


def show_part(epsilon: float) -> str:
    """Print a part of epsilon, so that parts that are printed add up to no more than the whole.

    A part that was rounded in its last bits, as half of 0.3 is, stands as the decimal that it was
    meant to be; any other is rounded down. The whole stands beside them, and is never less.
    """
    near = f"{epsilon:.{_DIGITS}g}"
    if float(near) == epsilon:
        return near
    same = abs(Fraction(near) - Fraction(epsilon)) <= Fraction(epsilon) * _LAST_BITS
    return f"about {near if same else format_down(epsilon, _DIGITS)}"


def trace_distances(query: Query, plan: Plan) -> tuple[Distances, ...]:
    """Trace the distance of two neighbours through every part of a plan."""
    searched = {each.name: each for each in query.aggregates if each.search}
    found = [_trace_search(query, each) for each in plan.searches]
    found += [_trace_part(query, part, searched) for part in plan.parts]
    if plan.selection is not None:
        found.insert(0, _trace_selection(query, plan.selection))
    return tuple(found)


def explain_distances(found: Sequence[Distances], unit: str, promise: Guarantee) -> list[str]:
    """Explain in lines how far one unit moves the answers, and what hides it."""
    lines = [f"{DISTANCES} {unit} moves the answers at most, and the noise that hides it:"]
    lines += [f"  {each}" for each in found]
    delta = f", delta {format_up(promise.delta)}" if promise.delta else ""
    return [*lines, f"  all parts together: epsilon {format_up(promise.epsilon)}{delta}"]


def _trace_part(query: Query, part: Part, searched: Mapping[str, Aggregate]) -> Distances:
    measurement, law = part.measurement, part.noise
    moved, scale, epsilon = _size_noise(measurement, law)
    last = DistanceStep(distance=moved, of="answers", why=_explain_move(part, moved))
    if measurement.output in searched and measurement.feature and measurement.feature.grid:
        aggregate = searched[measurement.output]
        unit = size_unit(measurement, aggregate)
        moved, scale = (float_above(Fraction(each) / unit) for each in (moved, scale))
        what, times = _name_total(measurement), format_up(moved, 4)
        if aggregate.kind != "sum":
            what += FROM_MIDDLE + CENTRED * _is_square(measurement)
        power = "the square of " if measurement.feature.kind == "square" else ""
        why = f"{what} moves by {times} times {power}{name_unit(aggregate)}"
        last = DistanceStep(distance=moved, of="bounds", why=why)
    users = measurement.role in ("users", "top users")
    return Distances(
        output=measurement.output,
        measured=_name_measured(measurement),
        steps=(*_trace_unit(query, users=users), last),
        noise=_name_noise(law),
        scale=scale,
        epsilon=epsilon,
    )


def _trace_search(query: Query, part: SearchPart) -> Distances:
    rows, law = part.search.rows, part.law
    why = f"the numbers of rows beyond each bound move by {rows} or less, all the same way"
    return Distances(
        output=part.search.output,
        measured=f"search for {part.search.side}",
        steps=(
            *_trace_unit(query, users=False),
            DistanceStep(distance=rows, of="answers", why=why),
        ),
        noise="one-sided",
        scale=law.scale,
        epsilon=law.epsilon,
    )


def name_unit(aggregate: Aggregate) -> str:
    """Name what a sum is measured in whose bounds are not known yet."""
    return "the bound farther from 0" if aggregate.kind == "sum" else "half the range of the bounds"


def size_unit(measurement: Measurement, aggregate: Aggregate) -> Fraction:
    """Size the same unit, for the bounds of this aggregate; squared for squares."""
    low, high = Fraction(aggregate.low), Fraction(aggregate.high)
    unit = max(abs(low), abs(high)) if aggregate.kind == "sum" else (high - low) / 2
    return unit**2 if _is_square(measurement) else unit


def _trace_selection(query: Query, selection: PartitionSelection) -> Distances:
    groups, scale = query.contribution.groups, selection.noise.scale
    why = f"the numbers of {query.unit}s of all groups move by {groups} together"
    return Distances(
        output="",
        measured="",
        steps=(
            *_trace_unit(query, users=True),
            DistanceStep(distance=groups, of="answers", why=why),
        ),
        noise="Laplace",
        scale=float_above(scale),
        epsilon=float_above(groups / scale),
    )


def _trace_unit(query: Query, *, users: bool) -> list[DistanceStep]:
    """From the unit to the rows that are kept and the groups that they are in."""
    rows, groups = query.contribution.rows, query.contribution.groups
    steps = []
    if query.unit == "user":
        steps.append(DistanceStep(distance=1, of="users", why="one user"))
    steps += _trace_joins(query)
    if rows is not None and not users:
        why = "one row" if query.unit == "row" else f"{name_count(rows, 'row')} kept"
        steps.append(DistanceStep(distance=rows, of="rows", why=why))
    elif query.unit == "row":
        steps.append(DistanceStep(distance=1, of="rows", why="one row"))
    if query.keys.columns:
        why = f"in {name_count(groups, 'group')}"
        steps.append(DistanceStep(distance=groups, of="groups", why=why))
    return steps


def _trace_joins(query: Query) -> list[DistanceStep]:
    """List the joins: none of them makes two rows, or two users, of one."""
    unit: Literal["users", "rows"] = "users" if query.unit == "user" else "rows"
    found = [_explain_join(step) for step in query.steps if isinstance(step, Join | JoinUsers)]
    return [DistanceStep(distance=1, of=unit, why=why) for why in found]


def _explain_join(step: Join | JoinUsers) -> str:
    if isinstance(step, Join):
        return f"each row meets one public row at most, by {shown(step.on)}"
    return f"each row meets one row of the same user in {shown(step.table)} at most"


def _size_noise(measurement: Measurement, law: PartNoise) -> tuple[float, float, float | None]:
    """Distance, scale of the noise and epsilon, in the units of the answers."""
    step = Fraction(measurement.step)
    if isinstance(law, Choice):
        moved = Fraction(law.width, 2 * law.probability.denominator)
        scale = 2 * moved / Fraction(law.epsilon)
        return float_above(moved), float_above(scale), law.epsilon
    if isinstance(law, TopChoice):
        return law.mechanism.sensitivity.value, law.mechanism.scale, law.mechanism.epsilon
    if isinstance(law, GaussianNoise):
        moved = root_above(measurement.l2_squared) * step
        return float_above(moved), float_above(Fraction(law.sigma) * step), None
    scale = Fraction(law.scale)
    loss = float_above(measurement.l1 / scale)
    return float_above(measurement.l1 * step), float_above(scale * step), loss


def _name_noise(law: PartNoise) -> Noise:
    if isinstance(law, Choice):
        return "exponential"
    if isinstance(law, TopChoice):
        return "joint exponential"
    return "Gaussian" if isinstance(law, GaussianNoise) else "Laplace"


def _name_measured(measurement: Measurement) -> str:
    """Name what is measured, where an output has several measurements."""
    feature = measurement.feature
    if measurement.role == "rank":
        return f"quantile {format_exactly(measurement.probability)}"
    if measurement.role != "total" or feature is None:
        return ""
    names = {"steps": "sum", "square": "sum of squares", "present": "rows with a value"}
    return names[feature.kind]


def _explain_move(part: Part, moved: float) -> str:
    """Say how far the answers move, and how far each row moves them."""
    measurement, size = part.measurement, format_up(moved, 4)
    feature = measurement.feature
    if measurement.role == "rank":
        return f"ranks of the candidates move by {size}"
    if measurement.role == "bins":
        return f"the bins move by {size} together"
    if measurement.role in ("top", "top users"):
        what = "rows" if measurement.role == "top" else "users"
        return f"the number of {what} of each key moves by {size} or less, all the same way"
    if feature is None or feature.kind == "present":
        what = "users" if measurement.role == "users" else "rows"
        return f"the number of {what} moves by {size}"
    what = _name_total(measurement)
    if feature.grid is not None and feature.grid.centre:
        what += f" of distances from {feature.grid.centre:g}"
    what += CENTRED * _is_square(measurement)
    return f"{what}, in steps of {format_up(measurement.step, 2)}, moves by {size}"


def _name_total(measurement: Measurement) -> str:
    return f"the sum{' of squares' * _is_square(measurement)}"


def _is_square(measurement: Measurement) -> bool:
    return measurement.feature is not None and measurement.feature.kind == "square"
