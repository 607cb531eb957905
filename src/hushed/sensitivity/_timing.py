"""How long a sampling may take: the function is called a few times before the long run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hushed._functions._calls import answer, probe
from hushed._rows._owned import copy_rows
from hushed._rows._people import show_rows
from hushed.populations import Population
from hushed.sensitivity._canary import first_table
from hushed.sensitivity._designs import choose_design
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._pairs import Function
from hushed.sensitivity._plan import plan
from hushed.sensitivity._ranks import Calibration

_CHECKED = 34  # trials that are about as much work as what is evaluated again, as a check


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a sampling may take on one processor."""

    pairs: int
    calls: int  # of the function, about
    seconds_per_call: float
    seconds: float


def expect_time(
    f: Function,
    population: Population,
    *,
    reach: Neighbourhood,
    calibration: Calibration,
    gamma: float | None,
    pairs: int | None,
    symmetric: bool,
    seed: int,
) -> Expected:
    """Draw one public table, call the function on it, and say what that makes for all trials.

    A function that cannot be sampled is refused, as before the long run.
    """
    rank, total = plan(calibration, reach, gamma=gamma, pairs=pairs)
    design = choose_design(
        population,
        reach,
        rank=rank,
        gamma=total,
        calibration=calibration,
        seed=seed,
        nominal=False,
    )
    begun = time.perf_counter()
    table = first_table(design, seed=seed, private=False)
    drawing = time.perf_counter() - begun
    given = show_rows(table[: design.rows])
    probe(f, given)
    begun = time.perf_counter()
    answer(f, copy_rows(given), private=False)  # the first calls load what the function uses
    calling = time.perf_counter() - begun
    calls = reach.count_calls(symmetric=symmetric) * (rank.pairs + _CHECKED)
    return Expected(
        pairs=rank.pairs,
        calls=calls,
        seconds_per_call=calling,
        seconds=drawing * rank.pairs + calling * calls,
    )
