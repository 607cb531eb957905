"""Sequential audit: bets against the claim whose winnings may be looked at at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hushed._ground.printing import format_down
from hushed.auditing._bounds import Counts
from hushed.auditing._fixed import compute_minimum_detectable
from hushed.auditing._goal import AuditedClaim, Goal, Sides
from hushed.auditing._pairs import Pair
from hushed.auditing._runs import Runs
from hushed.auditing._scores import Event, fit_scores
from hushed.auditing._selection import select_event
from hushed.errors import TooFewSamples

Floats = NDArray[np.float64]
Grid = tuple[Floats, Floats]  # epsilons and deltas of claims that are bet against at once

_FIRST_ROUND, _GROWTH = 500, 0.1
_REFIT = 2.0
_ROWS_KEPT = 100_000
_MOST_OF_BET = 0.95
_STEPS = 40
_LARGEST_EPSILON = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Where a sequential audit stopped.

    `violated` says whether the average e-value of the claim reached its limit; `epsilon_low` and
    `delta_low` are certified at the claimed delta and epsilon. `pair` has the largest e-value,
    `event` is its event of the last epoch, `counts` those of the rounds in which it was bet on.
    `samples` are the runs per table, all pairs together. `named` are the pairs that violate the
    claim, each of them, with the confidence of the audit together.
    """

    violated: bool
    epsilon_low: float
    delta_low: float
    pair: Pair
    event: Event
    counts: Counts
    samples: int
    minimum_detectable: float
    named: tuple[str, ...] = ()


def make_grid(epsilon: float, delta: float) -> Grid:
    """Claims that are bet against at once: first the true claim, then others.

    Epsilons below and above it at its delta; deltas around it at its epsilon.
    """
    below = np.linspace(0, epsilon, 8, endpoint=False)
    above = np.geomspace(max(epsilon, 0.05), max(_LARGEST_EPSILON, 2 * epsilon), 40)[1:]
    epsilons = np.concatenate([below, [epsilon], above[above > epsilon]])
    low = np.linspace(0, delta, 4, endpoint=False) if delta else np.zeros(0)
    higher = np.geomspace(max(delta, 1e-6), 1, 24, endpoint=False)[1:]
    deltas = np.concatenate([low, [delta], higher[higher > delta]])
    return (
        np.concatenate([[epsilon], epsilons, np.full(len(deltas), epsilon)]),
        np.concatenate([[delta], np.full(len(epsilons), delta), deltas]),
    )


def choose_bets(share: float, other_share: float, grid: Grid) -> Floats:
    """Bets against each claim that would have grown fastest, from the shares seen before.

    Notes
    -----
    Bets b in ``[0, 0.95 / (exp(epsilon) + delta)]`` that maximise the expected logarithm of
    ``1 + b (x - exp(epsilon) y - delta)`` (Kelly, Bell System Technical Journal 35, 1956).
    """
    gains = _compute_gains(grid)
    chances = np.outer([1 - share, share], [1 - other_share, other_share]).ravel()
    low, high = np.zeros(len(grid[0])), _MOST_OF_BET / (np.exp(grid[0]) + grid[1])
    for _ in range(_STEPS):  # the slope falls with the bet; any bet within the bounds is valid
        middle = (low + high) / 2
        slope = chances @ (gains / (1 + middle * gains))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return low


def _compute_gains(grid: Grid) -> Floats:
    """``x - exp(epsilon) y - delta`` for (x, y) = (0,0), (0,1), (1,0), (1,1)."""
    weights, deltas = np.exp(grid[0]), grid[1]
    return np.stack([-deltas, -weights - deltas, 1 - deltas, 1 - weights - deltas])


@dataclass(slots=True, kw_only=True)
class Betting:
    """Winnings of one pair and direction against every claim of the grid.

    `first` says whether the event is to be the likelier one on the first table. The event changes
    between epochs only, from samples seen before. `wealth` are logarithms of e-values. `seen` are
    hits and samples on the likelier table, then on the other, on which the next bet is based;
    `counted` the same for the rounds in which this event was bet on.
    """

    pair: Pair
    first: bool
    event: Event
    wealth: Floats
    seen: list[int]
    counted: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    def advance(self, one: Floats, other: Floats, grid: Grid) -> None:
        """Bet on fresh outputs, paired in the order in which they were drawn; learn from them.

        Notes
        -----
        Event and bets are fixed before the outputs are seen. For independent x and y the expected
        factor is ``1 + b (p - exp(epsilon) q - delta)``, at most 1 under the claim, so wealth is a
        nonnegative supermartingale (Ville, 1939; Waudby-Smith and Ramdas, JRSS B 86, 2024).
        """
        ahead, behind = (one, other) if self.first else (other, one)
        x, y = self.event.contains(ahead), self.event.contains(behind)
        shares = [(self.seen[i] + 0.5) / (self.seen[i + 1] + 1) for i in (0, 2)]
        bets = choose_bets(shares[0], shares[1], grid)
        table = np.bincount(2 * x.astype(int) + y, minlength=4)
        self.wealth += table @ np.log1p(bets * _compute_gains(grid))
        for kept in (self.seen, self.counted):
            for i, count in enumerate((x.sum(), len(x), y.sum(), len(y))):
                kept[i] += int(count)


@dataclass(slots=True, kw_only=True)
class _Game:
    """All bets of an audit: pairs, two directions of each, and the best evidence so far.

    `parts` holds the two directions of a pair next to each other, `kept` the latest outputs of
    each pair, `best` the largest average e-value of each claim so far, `alone` the largest evidence
    for the violation of each part by itself; both logarithms. `used` are the runs on each pair.
    """

    runs: Runs
    goal: Goal
    grid: Grid
    kept: list[Sides]
    parts: list[Betting]
    best: Floats
    alone: Floats
    used: int = 2 * _FIRST_ROUND
    epoch: int = 2 * _FIRST_ROUND
    rounds: int = 0

    @property
    def limit(self) -> float:
        """Logarithm from which on an e-value counts; epsilons and deltas share alpha."""
        return math.log(2 / self.goal.alpha)

    def play_round(self, pairs: list[Pair]) -> None:
        """Bet on fresh outputs of every pair, on new events if there is twice as much to learn."""
        size = min(
            max(_FIRST_ROUND, int(_GROWTH * self.used)), self.goal.final // len(pairs) - self.used
        )
        if self.used >= _REFIT * self.epoch:
            self.epoch = self.used
            self.parts = [
                _start_epoch(
                    self.runs,
                    part.pair,
                    self.kept[i // 2],
                    self.goal,
                    part.wealth,
                    first=part.first,
                )
                for i, part in enumerate(self.parts)
            ]
        self.rounds += 1
        for i, pair in enumerate(pairs):
            one, other = self.runs.sample(pair, size, f"round {self.rounds}")
            self.parts[2 * i].advance(one, other, self.grid)
            self.parts[2 * i + 1].advance(one, other, self.grid)
            before = self.kept[i]
            self.kept[i] = (
                np.concatenate([before[0], one])[-_ROWS_KEPT:],
                np.concatenate([before[1], other])[-_ROWS_KEPT:],
            )
        self.used += size
        logs = np.array([part.wealth for part in self.parts])
        average = np.logaddexp.reduce(logs, axis=0) - math.log(len(self.parts))
        self.best = np.maximum(self.best, average)
        self.alone = np.maximum(self.alone, close_tests(logs[:, 0]))

    def certify(self) -> tuple[float, float]:
        """Largest epsilon, and largest delta, up to which everything was contradicted."""
        # The claim itself, the epsilons at its delta, then the deltas at its epsilon.
        start = int(np.flatnonzero(np.diff(self.grid[0]) < 0)[-1]) + 1
        found = []
        for values, part in zip(self.grid, (slice(1, start), slice(start, None)), strict=True):
            beaten = self.best[part] >= self.limit
            count = len(beaten) if beaten.all() else int(np.argmin(beaten))
            found.append(float(values[part][count - 1]) if count else 0.0)
        return found[0], found[1]

    def report_progress(self, pairs: int) -> None:
        """Say in words how the bets stand."""
        self.runs.report(
            f"round {self.rounds}: {self.used * pairs} runs, evidence against the claim "
            f"{math.exp(min(self.best[0], 700)):.3g} of {2 / self.goal.alpha:.3g} needed, epsilon "
            f"is at least {format_down(self.certify()[0], 4)}",
            self.used * pairs / self.goal.final,
        )

    def end(self, pairs: int) -> Outcome:
        """Verdict and bounds as they stand."""
        leader = max(self.parts, key=lambda part: float(part.wealth[0]))
        epsilon_low, delta_low = self.certify()
        hits, total, other_hits, other_total = leader.counted
        counts = Counts(
            hits=hits,
            samples=max(1, total),
            other_hits=other_hits,
            other_samples=max(1, other_total),
        )
        named = [
            part.pair.name
            for part, log in zip(self.parts, self.alone, strict=True)
            if log >= self.limit
        ]
        return Outcome(
            violated=bool(self.best[0] >= self.limit),
            epsilon_low=epsilon_low,
            delta_low=delta_low,
            pair=leader.pair,
            event=leader.event,
            counts=counts,
            samples=self.used * pairs,
            minimum_detectable=detect_by_bets(self.goal.claim, counts, self.goal.alpha, pairs),
            named=tuple(dict.fromkeys(named)),
        )


def detect_by_bets(claim: AuditedClaim, counts: Counts, alpha: float, pairs: int) -> float:
    """About what would have been caught: by a fixed sample of the size bet on, at this error.

    Bets need somewhat more. Half of alpha is for epsilons, and each pair has two directions.
    """
    return compute_minimum_detectable(
        claim, counts.other_share, int(counts.samples), alpha / (4 * pairs), None
    )


def run_sequential(runs: Runs, pairs: list[Pair], goal: Goal) -> Outcome:
    """Bet until the claim is contradicted or the samples are spent.

    Every pair gets the same number of runs; the goal has the runs per table of all pairs together,
    at most. They are refused if they do not suffice for a warm-up and one round on every pair.

    Notes
    -----
    The e-values of all pairs and directions are averaged, which needs no independence at a fixed
    time; all parts advance together, so the average is an e-process. Half of alpha pays for
    epsilons, half for deltas: an e-value counts from ``2 / alpha`` on. An epsilon is certified if
    it and every smaller one of the grid were contradicted at some time. The average shows that
    some pair violates; which ones is told by closed testing (`close_tests`).
    """
    least = 3 * _FIRST_ROUND * len(pairs)
    if goal.final < least:
        raise TooFewSamples(given=goal.final, needed=least, claim=goal.claim.describe())
    grid = make_grid(goal.claim.epsilon, goal.claim.delta)
    # Outputs to learn from at first; nothing is bet on them.
    kept = [runs.sample(pair, 2 * _FIRST_ROUND, "warm-up") for pair in pairs]
    parts = [
        _start_epoch(runs, pair, both, goal, np.zeros(len(grid[0])), first=first)
        for pair, both in zip(pairs, kept, strict=True)
        for first in (True, False)
    ]
    game = _Game(
        runs=runs,
        goal=goal,
        grid=grid,
        kept=kept,
        parts=parts,
        best=np.full(len(grid[0]), -math.inf),
        alone=np.full(len(parts), -math.inf),
    )
    while (game.used + _FIRST_ROUND) * len(pairs) <= goal.final and game.best[0] < game.limit:
        game.play_round(pairs)
        game.report_progress(len(pairs))
    return game.end(len(pairs))


def close_tests(logs: Floats) -> Floats:
    """Evidence for each hypothesis by itself, out of evidence for all, by closed testing.

    Both are logarithms of e-values. Hypotheses that reach ``1 / alpha`` are all false but with
    probability alpha, together.

    Notes
    -----
    Vovk and Wang, *E-values: calibration, combination and applications*, Annals of Statistics
    49, 2021, Algorithm 1: the smallest average over all sets that hold the hypothesis is that of
    it with the m smallest others, for the worst m.
    """
    found = np.empty(len(logs))
    for i, own in enumerate(logs):
        others = np.sort(np.delete(logs, i))
        sums = np.logaddexp.accumulate(np.concatenate([[own], others]))
        found[i] = float((sums - np.log(np.arange(1, len(logs) + 1))).min())
    return found


def _start_epoch(
    runs: Runs, pair: Pair, both: Sides, goal: Goal, wealth: Floats, *, first: bool
) -> Betting:
    """Begin an epoch: an event from all outputs seen so far, the wealth kept."""
    train, select = ((both[0][i::2], both[1][i::2]) for i in (0, 1))
    scores = fit_scores(runs.encoder, *train, effort="quick", bits=runs.bits)
    found = select_event(scores, *select, goal, directions=(first,))
    shares = (found.share, found.other_share)
    seen = [n for share in shares for n in (round(share * len(select[0])), len(select[0]))]
    return Betting(pair=pair, first=first, event=found.event, wealth=wealth, seen=seen)
