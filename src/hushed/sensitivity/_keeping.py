"""What is kept of a sampling: under which name, and whether the function still gives it."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from hushed._functions._environment import rounding_limit
from hushed._functions._kept import check_kept
from hushed._functions._run_facts import (
    describe_content,
    describe_here,
    describe_record,
)
from hushed._ground.calls import called_as
from hushed._ground.types import Floats
from hushed._rows._digest import digest
from hushed.errors import ParameterError
from hushed.populations import Population, PublicTable
from hushed.runs._journal import (
    Journal,
    Keep,
    Run,
    check_place,
    open_journal,
    open_place,
    read_facts,
    read_keep,
    read_parts,
)
from hushed.sensitivity._designs import Design
from hushed.sensitivity._pairs import BlockTrial, PairTrial

Kept = str | PathLike[str] | Keep

_TRIALS = ("PairTrial", "BlockTrial", "UpdateTrial")


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
    check_kept(kept, trial, seed, partial(_limit_rounding, trial.shape))
    return kept


def _limit_rounding(shape: tuple[int, ...], found: Floats) -> float:
    """Bound what counts as rounding in movements, given them and the sizes of answers."""
    return rounding_limit(float(np.abs(found[..., 1]).max()), shape, "l1")


def are_movements(found: Floats) -> bool:
    """Whether numbers may be movements and sizes of answers: neither negative nor undefined."""
    return bool((found >= 0).all())


@called_as('hs.sensitivity.read_movements("runs", key)')
def read_movements(keep: Kept, key: str) -> Floats:
    """Read the movements that a sampling has found so far, from where it keeps its trials.

    So a sampling can be watched from another process while it runs.

    Parameters
    ----------
    keep : str, path or hushed.runs.Keep
        What was given as ``keep`` to `hushed.sample_sensitivity`.
    key : str
        Key of the run, as `hushed.runs.list_runs` gives it.

    Returns
    -------
    ndarray of float
        Sorted upwards; of blocks, before they are averaged. The one that is kept in the end is
        chosen among those of all pairs: until then it can only be larger.

    Raises
    ------
    ParameterError
        If the run is no sampling.
    """
    place = open_place(read_keep(keep))
    told = read_facts(place, key)
    kind = told["facts"].get("kind") if told and isinstance(told["facts"], dict) else None
    if told is None or kind not in _TRIALS:
        raise ParameterError(
            "the run is no sampling of a sensitivity: choose one that hs.runs.list_runs calls so",
            parameter="key",
        )
    found, upto = [np.empty(0)], 0
    for each in read_parts(place, key)[0]:
        new = each.values[max(0, upto - each.first) : max(0, told["trials"] - each.first)]
        if len(new) and are_movements(new):
            found.append(new[..., 0].ravel())
        upto = max(upto, each.stop)
    return np.sort(np.concatenate(found))
