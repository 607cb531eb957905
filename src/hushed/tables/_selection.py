"""Private partition selection: the threshold (tau) on the noisy number of users of a key."""

from __future__ import annotations

from fractions import Fraction

from hushed._ground.decimals import lower_double
from hushed._ground.numeric import first_whole
from hushed._ground.precise import Mpf, mp

_DIGITS = 60


def exposure_probability(tau: int, *, scale: Fraction, groups: int) -> Mpf:
    """Probability that a key of one user alone is released, over all keys of that user."""
    with mp.workdps(_DIGITS):
        ratio = mp.exp(-mp.mpf(scale.denominator) / scale.numerator)
        short = tau - 1
        one = ratio ** abs(short) / (1 + ratio)
        if short <= 0:  # P(X >= -s) is 1 - P(X > s)
            one = 1 - ratio * one
        return -mp.expm1(groups * mp.log1p(-one)) if one < 1 else mp.mpf(1)


def tau_threshold(*, scale: Fraction, groups: int, delta: float) -> int:
    """Compute tau: a key is released if its noisy number of users is at least this.

    It is the smallest integer with ``exposure_probability(...) <= delta``.

    Notes
    -----
    Korolova, Kenthapadi, Mishra and Ntoulas, *Releasing Search Queries and Clicks Privately*, WWW
    2009; Wilson et al., *Differentially Private SQL with Bounded User Contribution*, PoPETs 2020,
    here with the exact distribution of the noise. A user adds 1 to the counts of at most
    ``groups`` keys: on keys that others have too, the loss is ``groups/scale``; keys of this user
    alone are released with probability delta. Together (groups/scale, delta) in both directions:
    with ``b = P(E)`` on the keys of others, the event without the user has ``P(E) <= exp(e) b`` and
    with the user ``P(E) >= (1 - delta) b``.
    """
    most = lower_double(delta)
    return first_whole(
        lambda number: exposure_probability(number, scale=scale, groups=groups) <= most
    )
