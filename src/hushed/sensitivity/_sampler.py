"""Run a sampling: the first table, the trials, and the record of what they found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hushed._functions._anew import pack
from hushed._functions._calls import Probe, probe
from hushed._functions._environment import facts
from hushed._functions._fingerprints import Look, content, identity, list_changes, look
from hushed._functions._settings import reset, settings
from hushed._functions._trials import run_trials
from hushed._printing import show_progress
from hushed._rows import _containers as containers
from hushed._rows._people import show_rows
from hushed._rows._ranges import Range, is_within
from hushed._tensors import Precision, is_written_to_unseen, note_types
from hushed._types import Floats
from hushed.engines._choice import Workers
from hushed.errors import BadFunction, BadRows, ParameterError
from hushed.populations import (
    Population,
    PublicTable,
    description,
    keeps_its_range,
    support,
)
from hushed.runs._journal import Run
from hushed.sensitivity._blockwise import Blockwise, bound_average, limit
from hushed.sensitivity._canary import Alike, first_table, shown
from hushed.sensitivity._declarations import (
    bent_movement,
    block_dependence,
    check_population,
    check_small,
    order_dependence,
)
from hushed.sensitivity._designs import Design, choose_design
from hushed.sensitivity._keeping import Kept, are_movements, describe_trial, open_kept
from hushed.sensitivity._memory import check_anew, check_memory, stir
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._pairs import BlockTrial, Function, PairTrial
from hushed.sensitivity._ranks import Calibration, Rank
from hushed.sensitivity._record import Sampling
from hushed.sensitivity._updates import Update, UpdateTrial, add_gap
from hushed.sensitivity._values import choose_values, write_values
from hushed.spaces import Norm

_MOST_NAMES = 20


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
class _Start:
    """What was known before the long run."""

    described: dict[str, Any]  # the population
    design: Design
    first: Any  # the first table
    table: str  # its digest
    known: Probe  # what the function answered on it
    dtype: Precision  # in which type of numbers
    packed: bytes | None  # the function, before it was asked anything
    look: Look  # the function
    settings: dict[str, str]
    ranges: tuple[Range, ...]
    values: Any  # given rows, in a table


def run_sampling(
    request: Request, *, workers: Workers, progress: bool, keep: Kept | None = None
) -> Sampling:
    """Measure the movements of all pairs, and what the declarations are worth."""
    start = _start(request)
    trial = _make_trial(request, start)
    # What the declarations are worth, before the long run; judged against what it finds.
    moved: dict[str, float] = {}
    if isinstance(trial, BlockTrial):
        moved["batch"] = block_dependence(trial, seed=request.seed)
    if request.symmetric:
        moved["symmetric"] = order_dependence(trial, seed=request.seed, batch=request.batch)
    if request.monotone:
        corners = write_values(start.values)
        moved["monotone"] = bent_movement(trial, corners, seed=request.seed, batch=request.batch)
    found = _run(request, start, trial, workers=workers, progress=progress, keep=keep)
    movements = found[..., 0].ravel()[: request.rank.pairs]
    if isinstance(trial, UpdateTrial):
        moved["update"] = float(found[..., 2].max())
        movements = add_gap(movements, moved["update"])
    draws = bound_average(np.sort(movements), request.reach.blocks)
    draws.flags.writeable = False
    stir(trial)
    after = look(request.function)
    moving = {
        *list_changes(start.look.marks, after.marks),
        *reset(start.settings, settings()),
    }
    unwatched = _name_few({*moving, *after.unseen})
    _check_declarations(request, start, trial, found, moved, float(draws[request.rank.rank - 1]))
    if unwatched:
        _check_anew(request, start, trial, moving, float(draws[request.rank.rank - 1]))
    return _record(request, start, found, draws, after, unwatched)


def _start(request: Request) -> _Start:
    """Draw the first table, and ask the function about it."""
    seed, private = request.seed, request.data_dependent
    described = description(request.population)
    design = _choose_design(request, described)
    first = first_table(design, seed=seed, private=private)
    check_population(design, first, seed=seed, private=private)
    packed = pack(request.function)
    with note_types() as coarsest:
        known = _probe(request.function, first, design.rows, batch=request.batch, private=private)
    _check_monotone(request, first, known)
    before, settled = look(request.function), settings()
    ranges = _support(request.population, first, containers.layout(first))
    if not keeps_its_range(request.population):
        design = replace(design, ranges=ranges)
    return _Start(
        described=described,
        design=design,
        first=first,
        table=content(first),
        known=known,
        dtype=coarsest(),
        packed=packed,
        look=before,
        settings=settled,
        ranges=ranges,
        values=choose_values(request.values, first, ranges, monotone=request.monotone),
    )


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
    return replace(known, shape=known.shape[1:], answer=known.answer[0]) if batch else known


def _make_trial(request: Request, start: _Start) -> PairTrial | BlockTrial:
    """Make what is run for every pair, or in batch mode for every block of pairs."""
    at_once = 1
    if request.batch:
        at_once = min(max(1, request.batch_rows // start.design.count), request.rank.pairs)
    kind: Any = BlockTrial if request.batch else PairTrial
    if request.update is not None:
        kind = partial(UpdateTrial, update=request.update)
    trial: PairTrial | BlockTrial = kind(
        function=request.function,
        design=start.design,
        norm=request.norm,
        reach=replace(request.reach, values=len(start.values)),
        values=start.values,
        symmetric=request.symmetric,
        at_once=at_once,
        like=containers.signature(start.first),
        shape=start.known.shape,
        fresh=start.known.fresh,
        private=request.data_dependent,
    )
    return trial


def _run(
    request: Request,
    start: _Start,
    trial: PairTrial | BlockTrial,
    *,
    workers: Workers,
    progress: bool,
    keep: Kept | None,
) -> Floats:
    """Run the trials, in workers that know the function for the one that was sent.

    Those that are kept are not run again.
    """
    alike, trials = _alike(request, start), _count_trials(request, trial)
    run = partial(run_trials, trial, trials, seed=request.seed, workers=workers, alike=alike)
    if keep is None:
        with show_progress("measuring movement", trials, shown=progress) as report:
            return run(report=report)
    journal = open_kept(keep, trial, _make_run(request, start, trial), request.seed)
    what = f"measuring movement{journal.describe_kept()}"
    with journal, show_progress(what, trials, shown=progress) as report:
        return run(report=report, kept=journal)


def _make_run(request: Request, start: _Start, trial: PairTrial | BlockTrial) -> Run:
    """Say under what the trials are kept."""
    packages = start.look.packages | look(request.population).packages
    if request.update is not None:
        packages |= look(request.update).packages
    return Run(
        facts=describe_trial(trial, request.seed, packages),
        name=f"sensitivity of {_name(request.function)}",
        trials=_count_trials(request, trial),
        shape=(*([trial.at_once] if request.batch else []), 2 + isinstance(trial, UpdateTrial)),
        private=request.data_dependent,
        check=are_movements,
    )


def _alike(request: Request, start: _Start) -> Alike:
    return Alike(
        seed=request.seed,
        batch=request.batch,
        marks=start.look.marks,
        settings=start.settings,
        answer=start.known.answer,
        table=start.table,
    )


def _count_trials(request: Request, trial: PairTrial | BlockTrial) -> int:
    return -(-request.rank.pairs // (trial.at_once if request.batch else 1))


def _check_declarations(
    request: Request,
    start: _Start,
    trial: PairTrial | BlockTrial,
    found: Floats,
    moved: Mapping[str, float],
    value: float,
) -> None:
    """Judge what was declared of the function against the movement that was kept."""
    for declared, size in moved.items():
        check_small(size / request.reach.blocks, value, declared)
    between = shown(start.first, start.design.rows, batch=request.batch)
    check_memory(trial, found, between, value * request.reach.blocks, seed=request.seed)


def _check_anew(
    request: Request,
    start: _Start,
    trial: PairTrial | BlockTrial,
    moving: set[str],
    value: float,
) -> None:
    """Ask the function as it was before the run, where not all of it can be watched."""
    marks = {name: mark for name, mark in start.look.marks.items() if name not in moving}
    check_anew(
        trial,
        start.packed,
        replace(_alike(request, start), marks=marks),
        value * request.reach.blocks,
    )


def _record(
    request: Request,
    start: _Start,
    found: Floats,
    draws: Floats,
    after: Look,
    unwatched: tuple[str, ...],
) -> Sampling:
    """Keep all that is needed to run the sampling again."""
    rank, known = request.rank, start.known
    largest = max(float(found[..., 1].max()), float(np.abs(known.answer).max()))
    most = limit(float(draws[rank.rank - 1]), request.reach.blocks, math.prod(known.shape))
    if request.reach.blocks > 1 and 0 < most / 2 < largest:
        raise BadFunction(
            "the function's answers are so much larger than their movement that their average "
            "cannot be computed exactly enough in doubles: let it subtract a public constant"
        )
    return Sampling(
        calibration=request.calibration,
        norm=request.norm,
        pairs=rank.pairs,
        rank=rank.rank,
        gamma=request.gamma,
        tail_mass=rank.tail_mass,
        sampling_error=rank.sampling_error,
        requested_gamma=request.requested_gamma,
        asked_pairs=request.asked_pairs,
        protect=request.reach.protect,
        rows=request.reach.rows,
        neighbours=request.reach.neighbours,
        distance=request.reach.distance,
        position=request.reach.position,
        sizes=request.reach.sizes,
        monotone=request.monotone,
        values=write_values(start.values),
        seed=request.seed,
        symmetric=request.symmetric,
        updated=request.update is not None,
        batch=request.batch,
        batch_rows=request.batch_rows,
        population=start.described,
        source=request.population,
        given=request.given if request.update is None else (request.given, request.update),
        called=request.function,
        data_dependent=request.data_dependent,
        layout=containers.layout(start.first),
        shape=known.shape,
        function=_name(request.function),
        identity=identity(request.function, after, unwatched),
        draws=draws,
        answer=known.answer,
        table=start.table,
        largest=largest,
        dtype=start.dtype,
        environment=facts(after.packages),
        state=after.marks,
        settings=start.settings,
        unwatched=unwatched,
        design=start.design,
        blocks=request.reach.blocks,
        shift=0.0,
        locked=isinstance(show_rows(start.first), np.ndarray) and not known.fresh,
        limit=most,
        support=start.ranges,
        user=request.user,
    )


def _name(f: Function) -> str:
    inner = f.function if type(f) is Blockwise else f
    return str(getattr(inner, "__qualname__", type(inner).__name__))


def _name_few(names: set[str]) -> tuple[str, ...]:
    """Sort names; of very many parts only what they are parts of."""
    if len(names) > _MOST_NAMES:
        names = {name.partition(".")[0].partition("[")[0] for name in names}
    return tuple(sorted(names))
