"""Trials that are kept: run as others are, and those of an earlier run are not run again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from hushed._functions._environment import compute_alone
from hushed._functions._fingerprints import look
from hushed._functions._run_facts import describe_content, describe_here
from hushed._functions._sent import Evaluate
from hushed._functions._streams import streams
from hushed._functions._trials import may_round_otherwise, run_trials
from hushed._ground.types import Floats
from hushed.engines._choice import Workers
from hushed.errors import DamagedRun
from hushed.runs._journal import Journal, Keep, Run, open_journal


def run_kept(
    evaluate: Evaluate,
    trials: int,
    *,
    seed: int,
    workers: Workers,
    keep: str | PathLike[str] | Keep | None,
    name: str,
    content: Any = None,
    report: Callable[[int], None] | None = None,
) -> Floats:
    """Run seeded trials on public rows; what is kept of them goes by content and seed.

    The content is that of what is run, unless it is told.
    """
    run = partial(run_trials, evaluate, trials, seed=seed, workers=workers, report=report)
    if keep is None:
        return run()
    told = evaluate if content is None else content
    facts = {
        "kind": "trials",
        "trial": describe_content(f"the {name}", told),
        "seed": seed,
        "here": describe_here(look(told).packages),
    }
    other = may_round_otherwise(workers)
    found = Run(facts=facts, name=name, trials=trials, shape=None, other_bits=other)
    with open_journal(keep, found) as journal:
        check_kept(journal, evaluate, seed)
        return run(kept=journal)


def check_kept(
    kept: Journal,
    evaluate: Evaluate,
    seed: int,
    limit: Callable[[Floats], float] = lambda _: 0.0,
) -> None:
    """Refuse what is kept if the first or the last trial of it comes out otherwise now.

    A limit bounds what may differ, given the results. Where other bits are allowed, what was noted
    to be of another place is not tried.
    """
    for number in sorted(_choose_tried(kept)):
        ((_, before, _),) = kept.spans(number, number + 1)
        now = compute_alone(lambda n=number: evaluate(streams(seed, n, n + 1)))  # type: ignore[misc]
        if not _is_near(before, now, limit(before)):
            kept.close()
            raise DamagedRun(
                f"the function no longer gives what is kept of trial {number}: something that it "
                "reads has changed (a file, a service), or what is kept was. Remove the run "
                f"{kept.run.key[:12]} (hushed runs remove), or keep this one elsewhere"
            )


def _choose_tried(kept: Journal) -> set[int]:
    """Choose the first and the last trial that are kept."""
    spans = [
        (first, first + len(values))
        for first, values, note in kept.spans(0, kept.run.trials)
        if not (note and kept.run.other_bits)
    ]
    return {spans[0][0], spans[-1][1] - 1} if spans else set()


def _is_near(before: Floats, now: Floats, limit: float) -> bool:
    """Whether results differ by no more than a limit; undefined ones are equal to each other."""
    if before.shape != now.shape:
        return False
    with np.errstate(invalid="ignore"):
        same = (now == before) | (np.isnan(now) & np.isnan(before))
        moved = np.where(same, 0.0, np.abs(now - before))
    return bool(not moved.size or moved.max() <= limit)
