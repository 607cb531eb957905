"""Which group keys may be named: enough users behind them, after noise."""

from __future__ import annotations

from fractions import Fraction

import mpmath

from hushed._decimals import lower_double
from hushed._numeric import first_whole

_DIGITS = 60


def appears(limit: int, *, scale: Fraction, groups: int) -> mpmath.mpf:
    """Chance that one user makes any key appear that nobody else has."""
    with mpmath.workdps(_DIGITS):
        ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        short = limit - 1
        one = ratio ** abs(short) / (1 + ratio)
        if short <= 0:  # P(X >= -s) is 1 - P(X > s)
            one = 1 - ratio * one
        return -mpmath.expm1(groups * mpmath.log1p(-one)) if one < 1 else mpmath.mpf(1)


def threshold(*, scale: Fraction, groups: int, delta: float) -> int:
    """Smallest noisy number of users that lets a key be named.

    The smallest whole number with ``appears(...) <= delta``. A key is named if its noisy number of
    users is at least this.

    Notes
    -----
    Korolova, Kenthapadi, Mishra and Ntoulas, *Releasing Search Queries and Clicks Privately*, WWW
    2009; Wilson et al., *Differentially Private SQL with Bounded User Contribution*, PoPETs 2020,
    here with the exact law of the noise that is drawn. A user adds 1 to the counts of at most
    ``groups`` keys: on keys that others have too, the loss is ``groups/scale``; keys of this user
    alone appear with chance delta. Together (groups/scale, delta) in both directions: with
    ``b = P(E)`` on the keys of others, the event without the user has ``P(E) <= exp(e) b`` and
    with the user ``P(E) >= (1 - delta) b``.
    """
    most = lower_double(delta)
    return first_whole(lambda number: appears(number, scale=scale, groups=groups) <= most)
