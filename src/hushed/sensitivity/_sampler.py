"""Run a sampling: the trials, and the record of what they found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hushed._functions._carried import list_unsearched
from hushed._functions._environment import facts
from hushed._functions._fingerprints import (
    Look,
    combine,
    identity,
    list_changes,
    look,
    look_at_kinds,
)
from hushed._functions._settings import reset, settings
from hushed._functions._trials import may_round_otherwise, run_trials
from hushed._ground.printing import flat
from hushed._ground.progress import show_progress
from hushed._ground.types import Floats
from hushed._rows import _containers as containers
from hushed._rows._people import show_rows
from hushed.engines._choice import Workers
from hushed.errors import BadFunction, WorkerLost
from hushed.runs._journal import Run
from hushed.sensitivity._blockwise import Blockwise, bound_average, limit
from hushed.sensitivity._canary import Alike, name_table, shown
from hushed.sensitivity._declarations import (
    bent_movement,
    block_dependence,
    check_small,
    declared_rounding,
    order_dependence,
)
from hushed.sensitivity._keeping import Kept, are_movements, describe_trial, open_kept
from hushed.sensitivity._memory import check_anew, check_memory, stir
from hushed.sensitivity._pairs import BlockTrial, Function, PairTrial
from hushed.sensitivity._record import Sampling
from hushed.sensitivity._start import Request, Start
from hushed.sensitivity._updates import UpdateTrial, add_gap
from hushed.sensitivity._values import write_values

_MOST_NAMES = 20

_CHAINS = "hushed.transformations._chain"  # which stands above, and is not imported here


def run_sampling(
    request: Request,
    start: Start,
    *,
    workers: Workers,
    progress: bool,
    keep: Kept | None = None,
) -> Sampling:
    """Measure the movements of all pairs, and what the declarations are worth."""
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
    noted: Counter[str] = Counter()
    run = partial(_run, workers=workers, progress=progress, keep=keep, noted=noted)
    found = run(request, start, trial)
    movements = found[..., 0].ravel()[: request.rank.pairs]
    if isinstance(trial, UpdateTrial):
        moved["update"] = float(found[..., 2].max())
        movements = add_gap(movements, moved["update"])
    largest = _find_largest(start, found)
    rounding = declared_rounding(start.dtype, largest, start.known.shape, request.norm)
    movements = add_gap(movements, 2 * len(moved) * rounding)
    draws = bound_average(np.sort(movements), request.reach.blocks)
    draws.flags.writeable = False
    stir(trial)
    after = look(request.function, start.kinds)
    moving = {
        *list_changes(start.look.marks, after.marks),
        *reset(start.settings, settings()),
    }
    unwatched = _name_few({*moving, *after.unseen})
    kept = float(draws[request.rank.rank - 1])
    _check_declarations(request, start, trial, found, moved, kept, rounding)
    anew = _check_anew(request, start, trial, moving, kept) if unwatched else None
    if request.data_dependent:  # whether it fails there may follow from the rows
        anew = None
    elsewhere = {flat(note): min(n * trial.at_once, len(draws)) for note, n in noted.items()}
    record = _record(request, start, found, draws, after, unwatched)
    return replace(record, asked_anew=anew, elsewhere=elsewhere)


def _make_trial(request: Request, start: Start) -> PairTrial | BlockTrial:
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
        names=start.known.names,
        fresh=start.known.fresh,
        private=request.data_dependent,
    )
    return trial


def _run(
    request: Request,
    start: Start,
    trial: PairTrial | BlockTrial,
    *,
    workers: Workers,
    progress: bool,
    keep: Kept | None,
    noted: Counter[str],
) -> Floats:
    """Run the trials, in workers that know the function for the one that was sent.

    Those that are kept are not run again.
    """
    alike, trials = _alike(request, start), _count_trials(request, trial)
    run = partial(
        run_trials, trial, trials, seed=request.seed, workers=workers, alike=alike, noted=noted
    )
    if keep is None:
        with show_progress("measuring movement", trials, shown=progress) as report:
            return _check_movements(run(report=report))
    kept = replace(_make_run(request, start, trial), other_bits=may_round_otherwise(workers))
    journal = open_kept(keep, trial, kept, request.seed)
    what = f"measuring movement{journal.describe_kept()}"
    with journal, show_progress(what, trials, shown=progress) as report:
        return _check_movements(run(report=report, kept=journal))


def _check_movements(found: Floats) -> Floats:
    """Refuse what an engine gave, if no trial gives it."""
    if not are_movements(found):
        raise WorkerLost(
            "the workers gave movements that are negative, or no numbers: no trial does",
            parameter="workers",
            hint="try workers=1",
        )
    return found


def _make_run(request: Request, start: Start, trial: PairTrial | BlockTrial) -> Run:
    """Say under what the trials are kept."""
    packages = start.look.packages | look(request.population).packages
    kinds = look_at_kinds(start.kinds)
    if request.update is not None:
        packages |= look(request.update).packages
    return Run(
        facts=describe_trial(trial, request.seed, packages)
        | ({"classes": combine(kinds)} if kinds.marks else {}),
        name=f"sensitivity of {_name(request.function)}",
        trials=_count_trials(request, trial),
        shape=(*([trial.at_once] if request.batch else []), 2 + isinstance(trial, UpdateTrial)),
        private=request.data_dependent,
        check=are_movements,
    )


def _alike(request: Request, start: Start) -> Alike:
    return Alike(
        seed=request.seed,
        batch=request.batch,
        marks=start.look.marks,
        settings=start.settings,
        answer=start.known.answer,
        table=name_table(start.first),
        sources=start.sources,
        packages=start.look.packages,
        texts=not containers.holds_numbers_alone(start.first),
    )


def _count_trials(request: Request, trial: PairTrial | BlockTrial) -> int:
    return -(-request.rank.pairs // (trial.at_once if request.batch else 1))


def _check_declarations(
    request: Request,
    start: Start,
    trial: PairTrial | BlockTrial,
    found: Floats,
    moved: Mapping[str, float],
    value: float,
    rounding: float,
) -> None:
    """Judge what was declared of the function against the movement that was kept."""
    blocks = request.reach.blocks
    for declared, size in moved.items():
        check_small(size / blocks, value, declared, rounding / blocks)
    between = shown(start.first, start.design.rows, batch=request.batch)
    check_memory(trial, found, between, value * request.reach.blocks, seed=request.seed)


def _check_anew(
    request: Request,
    start: Start,
    trial: PairTrial | BlockTrial,
    moving: set[str],
    value: float,
) -> bool:
    """Ask the function as it was before the run, where not all of it can be watched."""
    marks = {name: mark for name, mark in start.look.marks.items() if name not in moving}
    return check_anew(
        trial,
        start.packed,
        replace(_alike(request, start), marks=marks),
        value * request.reach.blocks,
    )


def _find_largest(start: Start, found: Floats) -> float:
    """Largest absolute number in the answers on the drawn tables."""
    return max(float(found[..., 1].max()), float(np.abs(start.known.answer).max()))


def _record(
    request: Request,
    start: Start,
    found: Floats,
    draws: Floats,
    after: Look,
    unwatched: tuple[str, ...],
) -> Sampling:
    """Keep all that is needed to run the sampling again."""
    rank, known = request.rank, start.known
    largest = _find_largest(start, found)
    given = request.given if request.update is None else (request.given, request.update)
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
        given=given,
        called=request.function,
        data_dependent=request.data_dependent,
        layout=containers.layout(start.first),
        shape=known.shape,
        names=known.names,
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
        unsearched=() if request.data_dependent else list_unsearched((request.function, given)),
        design=start.design,
        blocks=request.reach.blocks,
        shift=0.0,
        locked=isinstance(show_rows(start.first), np.ndarray) and not known.fresh,
        limit=most,
        support=start.ranges,
        user=request.user,
    )


def _name(f: Function) -> str:
    inner: Any = f.function if type(f) is Blockwise else f
    if type(inner).__module__ == _CHAINS:  # a chain is named by its steps
        return str(inner.name)
    return str(getattr(inner, "__qualname__", type(inner).__name__))


def _name_few(names: set[str]) -> tuple[str, ...]:
    """Sort names; of very many parts only what they are parts of."""
    if len(names) > _MOST_NAMES:
        names = {name.partition(".")[0].partition("[")[0] for name in names}
    return tuple(sorted(names))
