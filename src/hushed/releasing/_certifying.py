"""Certificates are written here, before a private row is read."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import UTC, datetime
from typing import Literal

from hushed._functions._environment import facts, packages_in
from hushed._functions._gate import Outside
from hushed._ground.calls import called_as
from hushed._ground.types import Floats
from hushed._rows._ranges import Range
from hushed.blocks import Blocks
from hushed.mechanisms import Mechanism
from hushed.mechanisms._registry import StatisticMechanism
from hushed.releasing._blocks import describe_argument, state_parameters
from hushed.releasing._certificate import Certificate, MechanismRecord, SamplingRecord
from hushed.releasing._mechanisms import Admitted, admit_mechanism
from hushed.releasing._statistics import describe_draw, describe_movement, describe_outside
from hushed.sensitivity import Sampling, SamplingFacts
from hushed.sensitivity._remarks import list_kept_ranks


@called_as("hs.releasing.certify(hs.Laplace(sensitivity, epsilon=1.0), values=1)")
def certify(
    mechanism: Mechanism | Admitted,
    *,
    values: int,
    charged: str = "",
    outside: Outside = "clamp",
    confirmed: Literal["", "bits", "rounding"] = "",
    unsearched: tuple[str, ...] = (),
    labels: tuple[str, ...] = (),
) -> Certificate:
    """Write the certificate of a calibrated mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        What releases; its sensitivity comes from this package.
    values : int
        Numbers released together, or candidates chosen from; must not depend on the rows.
    charged : str, default ""
        Which budget was charged, and under which terms.
    outside : {"clamp", "allow"}, default "clamp"
        What was done with rows outside of the population's range, if it has one.
    confirmed : {"", "bits", "rounding"}, default ""
        How the function agreed with itself when sampled.
    unsearched : tuple of str, default ()
        Kinds of objects in a function, not sampled, that were not searched for the private rows.
    labels : tuple of str, default ()
        What each released number is, in order.

    Returns
    -------
    Certificate
        Depends on no private value.
    """
    read = admit_mechanism(mechanism)
    sensitivity = read.sensitivity
    known = sensitivity.sampling.environment if sensitivity.sampling else {}
    scale, grid = read.drawn(values)
    return Certificate(
        guarantee=read.guarantee,
        sensitivity=sensitivity.value,
        norm=sensitivity.norm,
        neighbours=sensitivity.neighbours,
        argument=sensitivity.argument,
        sampling=None if sensitivity.sampling is None else _record_sampling(sensitivity.sampling),
        mechanism=MechanismRecord(
            name=read.name,
            parameters=read.parameters,
            scale=scale,
            grid=grid,
            values=values,
            accuracy=read.error(values),
            stated=read.stated,
            value_scale=read.value_scale,
        ),
        versions=facts({"hushed", "scipy", *packages_in(known)}),
        created=_now(),
        charged=charged,
        person=sensitivity.person,
        outside=outside
        if sensitivity.sampling is not None and sensitivity.sampling.support
        else "no range",
        confirmed=confirmed,
        unsearched=unsearched,
        statistic=None if sensitivity.statistic is None else sensitivity.statistic.description(),
        labels=labels,
    )


def certify_statistic(
    mechanism: StatisticMechanism, *, charged: str = "", chain: str = ""
) -> Certificate:
    """Write the certificate of a statistic, which holds for every table.

    Depends on no private value.
    """
    statistic = mechanism.statistic
    moved, norm, argument = describe_movement(mechanism)
    return Certificate(
        guarantee=mechanism.guarantee,
        sensitivity=moved,
        norm=norm,
        neighbours=statistic.neighbours,
        argument=argument,
        sampling=None,
        mechanism=_record_drawn(mechanism.name, mechanism.parameters, describe_draw(mechanism)),
        versions=facts({"hushed", "scipy"}),
        created=_now(),
        charged=charged,
        person=statistic.unit == "person",
        outside=describe_outside(statistic),
        statistic=statistic.description(),
        chain=chain,
    )


def certify_blocks(
    mechanism: Blocks,
    function: str,
    *,
    charged: str = "",
    unsearched: tuple[str, ...] = (),
    labels: tuple[str, ...] = (),
) -> Certificate:
    """Write the certificate of a function that was asked about blocks.

    Depends on no private value.
    """
    drawn = mechanism.aggregation
    return Certificate(
        guarantee=mechanism.guarantee,
        sensitivity=drawn.movement,
        norm=drawn.norm,
        neighbours=mechanism.neighbours,
        argument=describe_argument(mechanism),
        sampling=None,
        mechanism=_record_drawn(
            mechanism.name, state_parameters(mechanism, function), drawn.describe_draw()
        ),
        versions=facts({"hushed", "scipy"}),
        created=_now(),
        charged=charged,
        person=mechanism.unit == "person",
        unsearched=unsearched,
        labels=labels,
    )


def _record_drawn(
    name: str,
    parameters: dict[str, float | int | bool | str],
    drawn: tuple[float | None, int | None, int, float | None],
) -> MechanismRecord:
    """Record a mechanism that says itself how it draws: scale, grid, values and accuracy."""
    scale, grid, values, accuracy = drawn
    return MechanismRecord(
        name=name, parameters=parameters, scale=scale, grid=grid, values=values, accuracy=accuracy
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _record_sampling(sampling: Sampling) -> SamplingRecord:
    description = sampling.population
    if sampling.data_dependent:  # ranges, sizes and digests then come from private rows
        description = {key: description[key] for key in ("kind", "name") if key in description}
    return SamplingRecord(
        **{each.name: getattr(sampling, each.name) for each in fields(SamplingFacts)},
        population=description,
        population_is_public=not sampling.data_dependent,
        route=sampling.design.route,
        public_rows=0 if sampling.data_dependent else sampling.design.public_rows,
        tables=0 if sampling.data_dependent else sampling.design.tables,
        support=() if sampling.data_dependent else tuple(map(_range, sampling.support)),
        values=() if sampling.data_dependent else sampling.values,
        container=sampling.layout.container,
        movements=() if sampling.data_dependent else _thin(sampling.draws),
        largest=0.0 if sampling.data_dependent else sampling.largest,
        environment=sampling.environment,
        names=() if sampling.data_dependent else sampling.names,
        elsewhere={} if sampling.data_dependent else sampling.elsewhere,
    )


def _range(one: Range) -> tuple[str, float | None, float | None, bool]:
    low, high = (end if math.isfinite(end) else None for end in (one.low, one.high))
    return (one.column, low, high, one.missing)


def _thin(draws: Floats) -> tuple[float, ...]:
    return tuple(draws[list_kept_ranks(draws.size)].tolist())
