"""From a wanted bound on every attacker's advantage to a level."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

from hushed import privacy_loss
from hushed._ground.calls import called_as
from hushed._ground.checks import read_count, require_one_of, require_probability
from hushed._ground.decimals import read
from hushed.errors import ParameterError

_LEAST = 1e-150  # the smallest level whose square is a double


@called_as("hs.epsilon_for_advantage(0.1)")
def epsilon_for_advantage(
    advantage: float,
    *,
    releases: int = 1,
    family: Literal["laplace", "bounded-range", "gaussian"] = "laplace",
) -> float:
    """Largest level per release that keeps every attacker's joint advantage small.

    Parameters
    ----------
    advantage : float
        Wanted bound on true positive minus false positive rate of any attacker who guesses
        between two neighbours from all releases; in (0, 1).
    releases : int, default 1
        Number of equal releases; 1 or more.
    family : {"laplace", "bounded-range", "gaussian"}, default "laplace"
        Mechanism. For Gaussian noise the result is the ratio sensitivity over sigma.

    Returns
    -------
    float
        Level in nats (or ratio), rounded down; within 0.01 % of the largest for one release or
        Gaussian noise, 0.1 % otherwise.

    Raises
    ------
    ParameterError
        If ``advantage`` lies outside (0, 1), or ``releases`` outside 1 to 10 million.
    """
    advantage = read("advantage", advantage, up=False)
    require_probability("advantage", advantage)
    releases = read_count("releases", releases, 1, 10**7)
    makers = {
        "laplace": privacy_loss.laplace,
        "bounded-range": privacy_loss.bounded_range,
        "gaussian": privacy_loss.gaussian,
    }
    require_one_of("family", family, makers)

    def joint(level: float) -> float:
        return makers[family](level).compose(releases).advantage()

    guess = _guess(advantage, releases)
    low, high = guess, guess
    while joint(low) > advantage:
        low, high = 0.7 * low, low
    at_high = joint(high)
    while at_high <= advantage:
        low, high = high, 1.5 * high
        at_high = joint(high)
    at_low = joint(low)
    # False position, kept honest by a bisection step whenever it moves one end too little.
    for turn in range(200):
        if high - low < 1e-5 * low:
            break
        share = (advantage - at_low) / (at_high - at_low)
        middle = low + (high - low) * (min(max(share, 0.02), 0.98) if turn % 3 < 2 else 0.5)
        value = joint(middle)
        if value <= advantage:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return low


def _guess(advantage: float, releases: int) -> float:
    """Level to start from: many small losses look Gaussian, with a ratio of level times root."""
    ratio = -2 * NormalDist().inv_cdf((1 - advantage) / 2)
    if advantage < 1e-6:  # where the density is as good as constant, and 1 swallows the rest
        ratio = advantage * math.sqrt(2 * math.pi)
    guess = ratio / math.sqrt(releases)
    if guess < _LEAST:
        raise ParameterError(f"advantage={advantage!r} is too small for doubles; ask for a larger")
    return guess
