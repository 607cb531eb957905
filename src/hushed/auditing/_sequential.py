"""Sequential audit: bets against the claim whose winnings may be looked at at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._bounds import Counts
from hushed.auditing._claims import levels_in_words
from hushed.auditing._events import Event
from hushed.auditing._fixed import detectable
from hushed.auditing._pairs import Pair
from hushed.auditing._picking import best_pick
from hushed.auditing._runs import Runs
from hushed.auditing._scores import fitted_scores
from hushed.errors import TooFewSamples
from hushed.guarantee import Guarantee, shown_below

__all__ = ["Betting", "Outcome", "adjusted", "bet", "grid_of_claims", "play"]

Floats = NDArray[np.float64]

_FIRST_ROUND, _GROWTH = 500, 0.1
_REFIT = 2.0
_ROWS_KEPT = 100_000
_MOST_OF_BET = 0.95
_STEPS = 40
_LARGEST_EPSILON = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Where a sequential audit stopped.

    Parameters
    ----------
    violated : bool
        Whether the average e-value of the claim reached its limit.
    epsilon_low, delta_low : float
        Certified bounds at the claimed delta and epsilon.
    pair : Pair
        Pair with the largest e-value.
    event : Event
        Its event of the last epoch.
    counts : Counts
        Counts of that event, on rounds in which it was bet on.
    first : bool
        Whether the event is the likelier one on the first table.
    samples : int
        Runs per table, all pairs together.
    parts : int
        Pairs times directions, which share the evidence.
    named : tuple of str, default ()
        Pairs that violate the claim, each of them, with the confidence of the audit together.
    """

    violated: bool
    epsilon_low: float
    delta_low: float
    pair: Pair
    event: Event
    counts: Counts
    first: bool
    samples: int
    parts: int
    named: tuple[str, ...] = ()

    def detectable(self, claim: Guarantee, other_share: float, alpha: float) -> float:
        """Smallest epsilon that would have been caught, about.

        Parameters
        ----------
        claim : Guarantee
            The claim.
        other_share : float
            Probability of the event on the table where it is rarer.
        alpha : float
            Error of the audit.

        Returns
        -------
        float
            What a fixed sample of the size bet on would have caught with probability 0.95 at
            alpha over twice the parts: a betting audit needs somewhat more.
        """
        bet_on = max(self.counts.samples, 1)
        return detectable(claim, other_share, bet_on, alpha / (2 * self.parts), None)


def grid_of_claims(claim: Guarantee) -> tuple[Floats, Floats]:
    """Claims that are bet against at once: first the true claim, then larger ones.

    Parameters
    ----------
    claim : Guarantee
        The claim.

    Returns
    -------
    epsilons, deltas : ndarray, shape (claims,)
        The claim; epsilons below and above it at its delta; deltas around it at its epsilon.
    """
    below = np.linspace(0, claim.epsilon, 8, endpoint=False)
    above = np.geomspace(max(claim.epsilon, 0.05), _LARGEST_EPSILON, 40)[1:]
    epsilons = np.concatenate([below, [claim.epsilon], above[above > claim.epsilon]])
    low = np.linspace(0, claim.delta, 4, endpoint=False) if claim.delta else np.zeros(0)
    higher = np.geomspace(max(claim.delta, 1e-6), 1, 24, endpoint=False)[1:]
    deltas = np.concatenate([low, [claim.delta], higher[higher > claim.delta]])
    return (
        np.concatenate([[claim.epsilon], epsilons, np.full(len(deltas), claim.epsilon)]),
        np.concatenate([[claim.delta], np.full(len(epsilons), claim.delta), deltas]),
    )


def bet(share: float, other_share: float, epsilons: Floats, deltas: Floats) -> Floats:
    """Bets that would have grown fastest, from what was seen before.

    Parameters
    ----------
    share, other_share : float
        Earlier shares of the event on the likelier table and on the other, in (0, 1).
    epsilons, deltas : ndarray, shape (claims,)
        Claims bet against.

    Returns
    -------
    ndarray, shape (claims,)
        Bets b in ``[0, 0.95 / (exp(epsilon) + delta)]`` that maximise the expected logarithm
        of ``1 + b (x - exp(epsilon) y - delta)`` (Kelly, Bell System Technical Journal 35, 1956).
    """
    gains = _gains(epsilons, deltas)
    chances = np.outer([1 - share, share], [1 - other_share, other_share]).ravel()
    low, high = np.zeros(len(epsilons)), _MOST_OF_BET / (np.exp(epsilons) + deltas)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        slope = chances @ (gains / (1 + middle * gains))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return low


def _gains(epsilons: Floats, deltas: Floats) -> Floats:
    """``x - exp(epsilon) y - delta`` for (x, y) = (0,0), (0,1), (1,0), (1,1)."""
    weights = np.exp(epsilons)
    return np.stack([-deltas, -weights - deltas, 1 - deltas, 1 - weights - deltas])


@dataclass(slots=True, kw_only=True)
class Betting:
    """Winnings of one pair and direction against every claim of the grid.

    Parameters
    ----------
    pair : Pair
        Where the mechanism is run.
    first : bool
        Whether the event is to be the likelier one on the first table.
    event : Event
        What is bet on; changes between epochs only, from samples seen before.
    wealth : ndarray, shape (claims,)
        Logarithms of the e-values.
    seen : list of int
        Hits and samples on the likelier table, then on the other, on which the next bet is based.
    counted : list of int
        The same for the rounds in which this event was bet on.
    """

    pair: Pair
    first: bool
    event: Event
    wealth: Floats
    seen: list[int]
    counted: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    def advance(self, one: Floats, other: Floats, claims: tuple[Floats, Floats]) -> None:
        """Bet on fresh outputs, then learn from them.

        Parameters
        ----------
        one, other : ndarray, shape (runs, columns)
            Fresh outputs on the two tables, paired in the order in which they were drawn.
        claims : tuple of ndarray
            Grid of claims.

        Notes
        -----
        Event and bets are fixed before the outputs are seen. For independent x and y the expected
        factor is ``1 + b (p - exp(epsilon) q - delta)``, at most 1 under the claim, so wealth is a
        nonnegative supermartingale (Ville, 1939; Waudby-Smith and Ramdas, JRSS B 86, 2024).
        """
        ahead, behind = (one, other) if self.first else (other, one)
        x, y = self.event.holds(ahead), self.event.holds(behind)
        shares = [(self.seen[i] + 0.5) / (self.seen[i + 1] + 1) for i in (0, 2)]
        bets = bet(shares[0], shares[1], *claims)
        table = np.bincount(2 * x.astype(int) + y, minlength=4)
        self.wealth += table @ np.log1p(bets * _gains(*claims))
        for kept in (self.seen, self.counted):
            for i, count in enumerate((x.sum(), len(x), y.sum(), len(y))):
                kept[i] += int(count)


def play(runs: Runs, pairs: list[Pair], claim: Guarantee, samples: int, alpha: float) -> Outcome:
    """Bet until the claim is contradicted or the samples are spent.

    Parameters
    ----------
    runs : Runs
        The mechanism.
    pairs : list of Pair
        Pairs; every one gets the same number of runs.
    claim : Guarantee
        The claim.
    samples : int
        Runs per table, all pairs together, at most.
    alpha : float
        Probability of any wrong statement, whenever one looks.

    Returns
    -------
    Outcome
        The verdict and the bounds at the time of stopping.

    Raises
    ------
    TooFewSamples
        If they do not suffice for a warm-up and one round on every pair.

    Notes
    -----
    The e-values of all pairs and directions are averaged, which needs no independence at a fixed
    time; all parts advance together, so the average is an e-process. Half of alpha pays for
    epsilons, half for deltas: an e-value counts from ``2 / alpha`` on. An epsilon is certified if
    it and every smaller one of the grid were contradicted at some time. The average shows that
    some pair violates; which ones is told by closed testing (`adjusted`).
    """
    least = 3 * _FIRST_ROUND * len(pairs)
    if samples < least:
        raise TooFewSamples(given=samples, needed=least, claim=levels_in_words(claim))
    claims = grid_of_claims(claim)
    limit = math.log(2 / alpha)
    kept = [_trained(runs, pair, _FIRST_ROUND, "warm-up") for pair in pairs]
    used, epoch = 2 * _FIRST_ROUND, 2 * _FIRST_ROUND
    parts = [
        _started(runs, pair, both, first, (claim, samples, alpha), None)
        for pair, both in zip(pairs, kept, strict=True)
        for first in (True, False)
    ]
    best, alone = np.full(len(claims[0]), -math.inf), np.full(len(parts), -math.inf)
    number = 0
    while (used + _FIRST_ROUND) * len(pairs) <= samples and best[0] < limit:
        size = min(max(_FIRST_ROUND, int(_GROWTH * used)), samples // len(pairs) - used)
        if used >= _REFIT * epoch:
            epoch = used
            parts = [
                _started(runs, part.pair, kept[i // 2], part.first, (claim, samples, alpha), part)
                for i, part in enumerate(parts)
            ]
        number += 1
        for i, pair in enumerate(pairs):
            one, other = runs.sample(pair, size, f"round {number}")
            parts[2 * i].advance(one, other, claims)
            parts[2 * i + 1].advance(one, other, claims)
            kept[i] = tuple(
                np.concatenate(each)[-_ROWS_KEPT:]
                for each in zip(kept[i], (one, other), strict=True)
            )
        used += size
        logs = np.array([part.wealth for part in parts])
        best = np.maximum(best, np.logaddexp.reduce(logs, axis=0) - math.log(len(parts)))
        alone = np.maximum(alone, adjusted(logs[:, 0]))
        runs.tell(
            f"round {number}: {used * len(pairs)} runs, evidence against the claim "
            f"{math.exp(min(best[0], 700)):.3g} of {2 / alpha:.3g} needed, epsilon is at least "
            f"{shown_below(_certified(best, claims, limit)[0], 4)}"
        )
    leader = max(parts, key=lambda part: float(part.wealth[0]))
    epsilon_low, delta_low = _certified(best, claims, limit)
    hits, total, other_hits, other_total = leader.counted
    return Outcome(
        violated=bool(best[0] >= limit),
        epsilon_low=epsilon_low,
        delta_low=delta_low,
        pair=leader.pair,
        event=leader.event,
        counts=Counts(
            hits=hits,
            samples=max(1, total),
            other_hits=other_hits,
            other_samples=max(1, other_total),
        ),
        first=leader.first,
        samples=used * len(pairs),
        parts=len(parts),
        named=tuple(
            dict.fromkeys(
                part.pair.name for part, log in zip(parts, alone, strict=True) if log >= limit
            )
        ),
    )


def adjusted(logs: Floats) -> Floats:
    """Evidence for each hypothesis by itself, out of evidence for all, by closed testing.

    Parameters
    ----------
    logs : ndarray, shape (parts,)
        Logarithms of e-values.

    Returns
    -------
    ndarray, shape (parts,)
        Logarithm of the smallest average over all sets that hold the hypothesis: it with the
        m smallest others, for the worst m. Those that reach ``1 / alpha`` are all false but
        with probability alpha, together.

    Notes
    -----
    Vovk and Wang, *E-values: calibration, combination and applications*, Annals of Statistics
    49, 2021, Algorithm 1: the averages over all subsets, of which only these matter.
    """
    found = np.empty(len(logs))
    for i, own in enumerate(logs):
        others = np.sort(np.delete(logs, i))
        sums = np.logaddexp.accumulate(np.concatenate([[own], others]))
        found[i] = float((sums - np.log(np.arange(1, len(logs) + 1))).min())
    return found


def _trained(runs: Runs, pair: Pair, size: int, stage: str) -> tuple[Floats, ...]:
    """Draw outputs to learn from at first; nothing is bet on them."""
    return runs.sample(pair, 2 * size, stage)


def _started(
    runs: Runs,
    pair: Pair,
    both: tuple[Floats, ...],
    first: bool,
    goal: tuple[Guarantee, int, float],
    before: Betting | None,
) -> Betting:
    """Begin an epoch: an event from all outputs seen so far, the wealth kept."""
    claim, final, alpha = goal
    train, select = ([each[i::2] for each in both] for i in (0, 1))
    scores = fitted_scores(runs.encoder, *train, effort="quick", bits=runs.bits)
    pick = best_pick(scores, *select, claim=claim, final=final, alpha=alpha, directions=(first,))
    shares = (pick.share, pick.other_share)
    seen = [n for share in shares for n in (round(share * len(select[0])), len(select[0]))]
    wealth = before.wealth if before else np.zeros(len(grid_of_claims(claim)[0]))
    return Betting(pair=pair, first=first, event=pick.event, wealth=wealth, seen=seen)


def _certified(best: Floats, claims: tuple[Floats, Floats], limit: float) -> tuple[float, float]:
    """Largest epsilon, and largest delta, up to which everything was contradicted."""
    # The claim itself, the epsilons at its delta, then the deltas at its epsilon.
    start = int(np.flatnonzero(np.diff(claims[0]) < 0)[-1]) + 1
    epsilons, deltas = slice(1, start), slice(start, len(best))
    found = []
    for values, part in ((claims[0], epsilons), (claims[1], deltas)):
        beaten = best[part] >= limit
        count = len(beaten) if beaten.all() else int(np.argmin(beaten))
        found.append(float(values[part][count - 1]) if count else 0.0)
    return found[0], found[1]
