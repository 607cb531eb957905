"""Search for an event on one pair: runs to learn from, scores fitted on them, the best event."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._goal import Goal, Sides
from hushed.auditing._pairs import Pair
from hushed.auditing._runs import Runs
from hushed.auditing._scores import Effort, Family, Score, fit_scores, fit_trees
from hushed.auditing._selection import SelectedEvent, select_event

Floats = NDArray[np.float64]

_CELLS_KEPT = 2**25  # of one split on one table, for all pairs together
_LEAST = 10
_WORTH = 0.5  # of the best family's bound, which another one must reach to be tried again
_PILOT_CELLS = 2**18  # numbers on each table that trees are tried on: about a second
_PILOT_JUDGED = 2**14  # outputs on each table by which they are judged


@dataclass(slots=True, kw_only=True)
class Search:
    """Runs on one pair that serve the choice of an event; never those of the final split.

    `train` and `select` are encoded outputs on the two tables: scores are fitted on the first and
    thresholds chosen on the second, in every round. `reach` are the bounds that each family of
    scores could be expected to give when it was last tried.
    """

    pair: Pair
    train: Sides | None = None
    select: Sides | None = None
    reach: Mapping[str, float] = field(default_factory=dict)

    def draw_more(self, runs: Runs, size: int, stage: str, *, alive: int) -> int:
        """Draw more runs, half to train and half to select, where memory allows.

        `alive` is the number of pairs that share the memory. Returns the runs on each table.
        """
        most = _CELLS_KEPT // (runs.encoder.columns * alive)
        have = len(self.train[0]) if self.train else 0
        half = min(max(_LEAST, size // 2), most - have)
        if half < 1:
            return 0
        self.train = _append(self.train, runs.sample(self.pair, half, f"{stage}/train"))
        self.select = _append(self.select, runs.sample(self.pair, half, f"{stage}/select"))
        return 2 * half

    def choose_event(
        self,
        runs: Runs,
        goal: Goal,
        *,
        effort: Effort = "quick",
        without: Collection[str] = (),
    ) -> tuple[SelectedEvent, Floats]:
        """Fit scores on one half, select the event on the other; `without` some families.

        Returns also the signed scores of the selection split, from which to make bins.
        """
        if self.train is None or self.select is None:
            raise ValueError("there are no runs to choose from yet")
        families = fit_scores(
            runs.encoder, *self.train, effort=effort, bits=runs.bits, without=without
        )
        last = effort != "quick"  # in the rounds, runs are too few for more
        found = select_event(families, *self.select, goal, last=last)
        self.reach = found.reach
        if effort == "trees":
            found = self._try_trees(runs, goal, found)
        return found, found.event.sign * np.concatenate(found.scored)

    def _try_trees(self, runs: Runs, goal: Goal, found: SelectedEvent) -> SelectedEvent:
        """Give boosted trees their chance: the better of their event and the one found.

        Trees take as long as everything else together, so they learn from many outputs only if
        they do well after a few.
        """
        if self.train is None or self.select is None:
            return found
        few, beside = max(1, _PILOT_CELLS // runs.encoder.columns), found.event.score
        trees = fit_trees(runs.encoder, *(side[:few] for side in self.train), beside=beside)
        if trees is None:
            return found
        if len(self.train[0]) > few:
            part = self.select[0][:_PILOT_JUDGED], self.select[1][:_PILOT_JUDGED]
            tried = select_event([_wrap(trees)], *part, goal)
            known = select_event([_wrap(beside)], *part, goal)
            if not is_promising(tried, known):
                return found
            trees = fit_trees(runs.encoder, *self.train, beside=beside) or trees
        tried = select_event([_wrap(trees)], *self.select, goal, last=True)
        return tried if tried.objective > found.objective else found


def find_outdone(searches: list[Search]) -> frozenset[str]:
    """Families of scores that came near the best one on none of these pairs.

    Nothing is left out while some pair shows nothing at all: then the best is only the luckiest.
    """
    near: set[str] = set()
    for search in searches:
        best = max(search.reach.values(), default=0.0)
        if best <= 0:
            return frozenset()
        near |= {name for name, bound in search.reach.items() if bound >= _WORTH * best}
    return frozenset(name for search in searches for name in search.reach) - near


def _wrap(score: Score) -> Family:
    return Family(name="alone", scores=[score])


def is_promising(tried: SelectedEvent, known: SelectedEvent) -> bool:
    """Tell whether a score that has learnt from little may overtake one that has learnt from all.

    It may if its event shows more already, or if it tells outputs of the two tables apart at least
    as well, by more than luck (one standard error).

    Notes
    -----
    The second is the area under the curve of Mann and Whitney, Annals of Mathematical Statistics
    18, 1947: the probability that an output on the first table has the larger score.
    """
    areas = [_measure_area(*each.scored) for each in (tried, known)]
    luck = math.sqrt(1 / (6 * min(map(len, tried.scored))))
    return tried.predicted > known.predicted or areas[0] > areas[1] + luck


def _measure_area(first: Floats, second: Floats) -> float:
    """Probability that a score on the first table is the larger one; ties count as one half."""
    ordered = np.sort(second)
    below = np.searchsorted(ordered, first, side="left").mean()
    return float(below + np.searchsorted(ordered, first, side="right").mean()) / (2 * len(second))


def _append(before: Sides | None, fresh: Sides) -> Sides:
    if before is None:
        return fresh
    return np.concatenate([before[0], fresh[0]]), np.concatenate([before[1], fresh[1]])
