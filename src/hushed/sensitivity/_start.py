"""The first table of a sampling: what was asked for, and what is known before the long run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushed._functions._anew import pack
from hushed._functions._calls import Probe, probe
from hushed._functions._fingerprints import (
    Look,
    content,
    look,
)
from hushed._functions._settings import settings
from hushed._ground.tensors import Precision, is_written_to_unseen, note_types
from hushed._rows import _containers as containers
from hushed._rows._kinds import list_kinds
from hushed._rows._ranges import Range, is_within
from hushed.errors import BadFunction, BadRows, ParameterError
from hushed.populations import (
    Population,
    PublicTable,
    description,
    keeps_its_range,
    support,
)
from hushed.sensitivity._canary import first_table, look_at_sources, shown
from hushed.sensitivity._declarations import (
    check_population,
)
from hushed.sensitivity._designs import Design, choose_design
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._pairs import Function
from hushed.sensitivity._ranks import Calibration, Rank
from hushed.sensitivity._updates import Update
from hushed.sensitivity._values import choose_values
from hushed.spaces import Norm


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What `sample_sensitivity` was asked for, checked, with the rank that follows from it.

    The fields that a `Sampling` has, too, mean the same there; ``gamma`` is the whole promise's.
    """

    function: Function
    population: Population
    given: Any
    reach: Neighbourhood
    values: Any
    monotone: bool
    norm: Norm
    calibration: Calibration
    rank: Rank
    gamma: float
    requested_gamma: float | None
    asked_pairs: int | None
    batch: bool
    batch_rows: int
    symmetric: bool
    update: Update | None
    data_dependent: bool
    seed: int
    user: str | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What was known before the long run."""

    described: dict[str, Any]  # the population
    design: Design
    first: Any  # the first table
    table: str  # its digest
    known: Probe  # what the function answered on it
    dtype: Precision  # in which type of numbers
    packed: bytes | None  # the function, before it was asked anything
    kinds: list[type]  # classes of objects in its rows
    look: Look  # the function, and these
    sources: dict[str, str]  # what the population and an update use
    settings: dict[str, str]
    ranges: tuple[Range, ...]
    values: Any  # given rows, in a table


def start_sampling(request: Request) -> Start:
    """Draw the first table, and ask the function about it."""
    seed, private = request.seed, request.data_dependent
    described = description(request.population)
    design = _choose_design(request, described)
    sources = look_at_sources(request.population, request.update)
    first = first_table(design, seed=seed, private=private)
    check_population(design, first, seed=seed, private=private)
    packed = pack(request.function)
    with note_types() as coarsest:
        known = _probe(request.function, first, design.rows, batch=request.batch, private=private)
    _check_monotone(request, first, known)
    kinds = list_kinds(first)
    before, settled = look(request.function, kinds), settings()
    ranges = _support(request.population, first, containers.layout(first))
    if not keeps_its_range(request.population):
        design = replace(design, ranges=ranges)
    return Start(
        described=described,
        design=design,
        first=first,
        table=content(first),
        known=known,
        dtype=coarsest(),
        packed=packed,
        kinds=kinds,
        look=before,
        sources=dict(sources.items() & look_at_sources(request.population, request.update).items()),
        settings=settled,
        ranges=ranges,
        values=_choose_values(request, first, ranges),
    )


def _choose_values(request: Request, first: Any, ranges: tuple[Range, ...]) -> Any:
    """Take the given rows; one outside of a range would be another row once it is moved into it."""
    values = choose_values(request.values, first, ranges, monotone=request.monotone)
    if len(values) and not is_within(values, ranges):
        raise ParameterError(
            "values hold a row outside of the range that the population states: a private row like "
            "it is moved into the range, and none else is covered; give rows within it, or the "
            "population a wider range",
            parameter="values",
        )
    return values


def _check_monotone(request: Request, first: Any, known: Probe) -> None:
    """Refuse answers of several numbers that may move furthest for a row inside of the range.

    They do not where one cell is replaced: as it leaves its old value, no number comes back. A row
    of several columns has other cells, and an added row has no old value.
    """
    one = len(containers.layout(first).columns) <= 1 and request.reach.neighbours == "replace-one"
    if request.monotone and request.norm != "sup" and not one and math.prod(known.shape) > 1:
        raise ParameterError(
            "an answer of several numbers may move furthest, as a whole, for a row inside of the "
            "range, even if each number is monotone, where a row of several columns is replaced, "
            "or one is added: monotone=True takes norm='sup' there, or give values instead",
            parameter="monotone",
        )


def _choose_design(request: Request, described: Mapping[str, Any]) -> Design:
    if described.get("kind") == "public table" and not isinstance(request.population, PublicTable):
        raise ParameterError(
            "the population describes itself as a public table but is not one: its tables would "
            "share rows; hand in the hs.populations.PublicTable itself",
            parameter="population",
        )
    return choose_design(
        request.population,
        request.reach,
        rank=request.rank,
        gamma=request.gamma,
        calibration=request.calibration,
        seed=request.seed,
        nominal=request.data_dependent,
    )


def _support(population: Population, first: Any, layout: containers.Layout) -> tuple[Range, ...]:
    """Ranges that the population keeps to; its first rows must."""
    ranges = support(population, layout)
    if not is_within(first, ranges):
        raise BadRows("the population gave rows outside of the range that it states as its support")
    return ranges


def _probe(f: Function, first: Any, rows: int, *, batch: bool, private: bool) -> Probe:
    """Call the function on the first table, to find what is wrong with it before the long run."""
    if batch and not isinstance(first, np.ndarray):
        raise ParameterError(
            "batch=True needs a population that gives NumPy arrays, "
            f"this one gives {containers.layout(first)}"
        )
    given = shown(first, rows, batch=batch)
    known = probe(
        f, given, private=private, writable=lambda: is_written_to_unseen(look(f).packages)
    )
    if batch and known.shape[:1] != (1,):
        raise BadFunction(
            f"with batch=True the function got one table in an array of shape {given.shape} and "
            f"returned shape {known.shape}; it must return one answer for each table along the "
            "first axis"
        )
    if not batch:
        return known
    return replace(known, shape=known.shape[1:], answer=known.answer[0], names=())
