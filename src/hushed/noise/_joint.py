"""The joint exponential mechanism: several candidates at once, with exact probabilities.

A choice of k different candidates loses ``u = max_i (a_(i) - a_{s_i})``: how far the i-th chosen
score lies below the i-th best one, at worst, up to 2**61 steps. It is drawn with probability
proportional to ``exp(-rate u)``. Proof: docs/noise/joint.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushed._ground.types import Integers
from hushed.noise._entropy import Words, operating_system_words
from hushed.noise._integers import uniform_integers
from hushed.noise._thresholds import Uniform, exp_bounds

_MARGIN = 2.0**-20  # bounds the relative error of a weight in doubles, see docs/noise/joint.md
_SHARE_BITS = 36
_MOST_LOST = 1 << 61  # steps; a larger loss is cut to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """How many choices lose how much."""

    losses: Integers  # all values that a loss can have, upwards from 0
    within: Integers  # candidates allowed in place i if the loss is at most that


def list_losses(ranked: Integers | NDArray[np.object_], k: int) -> Ladder:
    """Count the candidates of each place for each loss; scores come in steps, best first."""
    behind = np.maximum(ranked[:k, None] - ranked[None, :], 0)
    apart = np.minimum(behind, _MOST_LOST).astype(np.int64)
    losses = np.unique(apart)
    within = np.stack([np.searchsorted(each, losses, side="right") for each in apart])
    return Ladder(losses=losses, within=within.astype(np.int64))


def choose_level(words: Words, ladder: Ladder, rate: Fraction) -> int:
    """Choose a level a with probability ``N_a (exp(-rate t_a) - exp(-rate t_{a+1}))``, normalised.

    N_a counts the choices that lose at most t_a, the a-th of the losses. Levels are proposed by
    whole shares that lie above the weights, and accepted exactly.
    """
    shift, shares = _list_shares(ladder, float(rate))
    ends = np.cumsum(shares)
    while True:
        ticket = uniform_integers(int(ends[-1]))
        level = int(np.searchsorted(ends, ticket, side="right"))
        ceiling = Fraction(int(shares[level])) * Fraction(2) ** (shift - _SHARE_BITS)
        if _accept(words, ladder, level, rate, ceiling):
            return level


def _list_shares(ladder: Ladder, rate: float) -> tuple[int, Integers]:
    """Bound each weight by ``share 2**(shift - 36)``, from above; whole shares, 1 or more."""
    places = np.arange(ladder.within.shape[0])[:, None]
    counts = np.log((ladder.within - places).astype(np.float64)).sum(axis=0)
    with np.errstate(over="ignore"):
        worth = ladder.losses * rate
        gaps = np.append(np.diff(ladder.losses) * rate, np.inf)
    logs = counts - worth + np.log(-np.expm1(-gaps))
    shift = math.ceil(float(logs.max()) / math.log(2))
    with np.errstate(under="ignore"):
        real = np.exp(logs - shift * math.log(2)) * (1 + _MARGIN)
    return shift, np.maximum(np.ceil(np.ldexp(real, _SHARE_BITS)), 1).astype(np.int64)


def _accept(words: Words, ladder: Ladder, level: int, rate: Fraction, ceiling: Fraction) -> bool:
    """Toss a coin with the weight of a level divided by a bound on it, exactly."""
    count = math.prod(int(n) - i for i, n in enumerate(ladder.within[:, level].tolist()))
    factor = count / ceiling
    spare = max(factor.numerator.bit_length() - factor.denominator.bit_length(), 0) + 8
    number = Uniform(0, 0, words)
    while True:
        number.refine()
        low, high = _enclose_step(ladder.losses, level, rate, number.length + spare)
        if number.prefix + 1 <= low * factor / (1 << spare):
            return True
        if number.prefix >= high * factor / (1 << spare):
            return False


def _enclose_step(losses: Integers, level: int, rate: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ``exp(-rate t_a) - exp(-rate t_{a+1})``, times ``2**bits``."""
    low, high = exp_bounds(rate * int(losses[level]), bits)
    if level + 1 == losses.size:
        return low, high
    next_low, next_high = exp_bounds(rate * int(losses[level + 1]), bits)
    return low - next_high, high - next_low


def choose_places(within: Integers) -> Integers:
    """Choose ranks: place i uniformly among the first ``within[i]`` that are not taken yet."""
    taken: list[int] = []
    chosen = []
    for i, count in enumerate(within.tolist()):
        rank = int(uniform_integers(count - i))
        for other in sorted(taken):
            rank += other <= rank
        taken.append(rank)
        chosen.append(rank)
    return np.array(chosen, dtype=np.int64)


def select_top(steps: Integers | NDArray[np.object_], *, k: int, rate: Fraction) -> Integers:
    """Draw k different candidates, given their scores in whole steps.

    Indices, the place of the best first.
    """
    order = np.argsort(-steps, kind="stable")
    ladder = list_losses(steps[order], k)
    level = choose_level(operating_system_words(), ladder, rate)
    return np.asarray(order[choose_places(ladder.within[:, level])])
