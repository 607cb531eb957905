"""What is kept of a sampling: under which name, and whether the function still gives it."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from hushed._functions._environment import compute_alone, rounding_limit
from hushed._functions._run_facts import (
    describe_content,
    describe_here,
    describe_record,
)
from hushed._functions._trials import streams
from hushed._rows._digest import digest
from hushed._types import Floats
from hushed.errors import DamagedRun
from hushed.populations import Population, PublicTable
from hushed.runs._journal import Journal, Keep, Run, check_place, open_journal
from hushed.sensitivity._designs import Design
from hushed.sensitivity._pairs import BlockTrial, PairTrial

Kept = str | PathLike[str] | Keep


def check_keep(keep: Kept | None, *, private: bool) -> None:
    """Refuse a place that is none, before anything is drawn."""
    if keep is not None:
        check_place(keep, private=private)


def describe_trial(
    trial: PairTrial | BlockTrial, seed: int, packages: frozenset[str]
) -> dict[str, Any]:
    """State all that decides what trials find: the trial, field by field, the seed and the place.

    Not the number of pairs, unless the rows of a trial depend on it: the first trials of a longer
    run are those of a shorter one.
    """
    return {
        "kind": type(trial).__name__,
        "trial": describe_record(
            "the sampled function",
            trial,
            design=_describe_design(trial.design, stacked=isinstance(trial, BlockTrial)),
            like=repr(trial.like),
            values=digest(trial.values) if len(trial.values) else "",
        ),
        "seed": seed,
        "here": describe_here(packages),
    }


def _describe_design(design: Design, *, stacked: bool) -> dict[str, Any]:
    """Describe where the rows come from; a dealt table by what it is dealt from.

    Disjoint trials are dealt in order, so that those of a longer run begin alike. A block of the
    last trials has rows of the first ones in it where a run ends.
    """
    instead: dict[str, Any] = {"population": _describe_population(design.population)}
    if design.route == "disjoint" and not stacked:
        instead |= {"dealt": "in order", "pairs": 0}
    return describe_record("the population", design, **instead)


def _describe_population(population: Population) -> Any:
    if type(population) is PublicTable:
        return population.describe()
    return describe_content("the population", population)


def open_kept(keep: Kept, trial: PairTrial | BlockTrial, run: Run, seed: int) -> Journal:
    """Open the journal of a sampling; the function must still give what is kept of it."""
    kept = open_journal(keep, run)
    for number in sorted(_choose_tried(kept)):
        ((_, before),) = kept.spans(number, number + 1)
        now = compute_alone(lambda n=number: trial(streams(seed, n, n + 1)))  # type: ignore[misc]
        largest = float(np.abs(before[..., 1]).max())
        allowed = rounding_limit(largest, trial.shape, "l1")
        with np.errstate(invalid="ignore"):
            moved = np.where(now == before, 0.0, np.abs(now - before))
        if not moved.max() <= allowed:
            kept.close()
            raise DamagedRun(
                f"the function no longer gives what is kept of trial {number}: something that it "
                "reads has changed (a file, a service), or what is kept was. Remove the run "
                f"{run.key[:12]} (hushed runs remove), or keep this one elsewhere"
            )
    return kept


def _choose_tried(kept: Journal) -> set[int]:
    """Choose the first and the last trial that are kept."""
    spans = list(kept.spans(0, kept.run.trials))
    return {spans[0][0], spans[-1][0] + len(spans[-1][1]) - 1} if spans else set()


def are_movements(found: Floats) -> bool:
    """Whether numbers may be movements and sizes of answers: neither negative nor undefined."""
    return bool((found >= 0).all())
