"""From what the caller asked for to the rank of one trial and the gamma of the whole promise."""

from __future__ import annotations

from hushed._ground.decimals import decimal_of, read, stated_above
from hushed._ground.printing import as_given
from hushed.errors import ParameterError, TooFewPairs
from hushed.sensitivity._neighbourhood import Neighbourhood
from hushed.sensitivity._ranks import Calibration, Rank, choose_rank

DEFAULT_GAMMA = 0.05


def plan(
    calibration: Calibration,
    reach: Neighbourhood,
    *,
    gamma: float | None,
    pairs: int | None,
) -> tuple[Rank, float]:
    """Choose the rank for one trial.

    Trials and rank, with the gamma of a single trial. Gamma of the whole promise; rounded up.
    """
    if gamma is None and pairs is None:
        gamma = DEFAULT_GAMMA
    if gamma is not None:
        gamma = read("gamma", gamma, up=False)
        if not 0 < gamma < 1:
            raise ParameterError(
                f"gamma must be a number in (0, 1), got {as_given(gamma)}", parameter="gamma"
            )
    shared = reach.parts
    level = None if gamma is None else decimal_of(gamma) / shared
    try:
        rank = choose_rank(calibration, gamma=level, pairs=None if pairs is None else int(pairs))
    except TooFewPairs as few:
        if gamma is None or shared == 1:
            raise
        raise TooFewPairs(  # speaks of the caller's gamma, not of its part
            given=few.given,
            needed=few.needed,
            gamma=gamma,
            calibration=calibration,
            shared=shared,
        ) from None
    if gamma is not None:
        return rank, gamma
    total = rank.gamma if shared == 1 else stated_above(decimal_of(rank.gamma) * shared)
    if not total < 1:
        raise ParameterError(
            f"pairs={pairs} supports no gamma below 1 for all {shared} "
            f"{'records' if reach.protect == 'everyone' else 'blocks'}; give gamma instead "
            "of pairs and the number of pairs will follow"
        )
    return rank, total
