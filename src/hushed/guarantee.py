"""What is promised, and for whom: the (epsilon, delta, gamma) triple and what it refers to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Literal, get_args

from hushed.decimals import decimal_of, read, stated_above, total_of
from hushed.errors import ParameterError

__all__ = [
    "Guarantee",
    "Neighbours",
    "Protect",
    "RowUnit",
    "Unit",
    "money_above",
    "money_below",
    "shown_above",
    "shown_below",
    "stated_gamma",
    "union_gamma",
]

_MONEY_DIGITS = 400  # no double has more
_WRITTEN_OUT = 1e15  # below, large numbers are printed without an exponent

Neighbours = Literal["replace-one", "add-remove"]
Protect = Literal["record", "everyone", "simultaneous"]
Unit = Literal["row", "user"]
RowUnit = Literal["row", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """An (epsilon, delta, gamma) promise for one neighbour relation.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss, in nats; 0 or more, may be infinite. A float stands for its
        shortest decimal: 0.1 is one tenth. Other real numbers are exact, and rounded up to the
        decimal of a float, as are delta and gamma.
    delta : float, default 0
        Slack in the (epsilon, delta) inequality; in [0, 1].
    gamma : float, default 0
        Probability, over the population, that the (epsilon, delta) inequality may fail; in
        [0, 1). Zero means that every pair of neighbours is covered. Its unit is one pair of
        neighbours for ``protect="record"`` and the whole table otherwise.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        The relation that all three numbers refer to.
    unit : {"row", "user"}, default "row"
        What is replaced, added or removed between neighbours: one row, or all rows of one user.
        Neither promise implies the other, so that they are never added up: a user may have many
        rows, and a query that keeps one row of each user may swap it for another when that row
        goes, and so move by more than when the user goes.
    protect : {"record", "everyone", "simultaneous"}, default "record"
        Whom ``gamma`` speaks of: one record at a time, or all records of the table at once, by
        the union bound (``"everyone"``) or by a sampled maximum (``"simultaneous"``).
    data_dependent : bool, default False
        True when the population was made from the private rows. The numbers are then nominal:
        the estimate itself leaks, and no (epsilon, delta, gamma) statement is proved.
    estimates : tuple of (str, float), default ()
        The sampled sensitivities behind ``gamma``: fingerprint and gamma of each. Promises that
        share an estimate share its gamma. Empty for a gamma that was stated by hand.
    marginal : bool, default False
        True when part of ``gamma`` is a probability over the sampler and the pair together
        (``calibration="marginal"``): under the one sensitivity that was drawn, a larger share of
        pairs may fail, and no promise is broken by it.

    Raises
    ------
    ParameterError
        If a number leaves its range, is NaN, or is no real number.

    Notes
    -----
    Random differential privacy: Hall, Rinaldo, Wasserman, *Random Differential Privacy*,
    Journal of Privacy and Confidentiality 4(2), 2012; Rubinstein and Alda, ICML 2017,
    Definition 4.
    """

    epsilon: float
    delta: float = 0.0
    gamma: float = 0.0
    neighbours: Neighbours = "replace-one"
    unit: Unit = "row"
    protect: Protect = "record"
    data_dependent: bool = False
    estimates: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    marginal: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "gamma"):
            object.__setattr__(self, name, read(name, getattr(self, name), up=True))
        if not self.epsilon >= 0:
            raise ParameterError(f"epsilon must be 0 or more, got {self.epsilon}")
        if not 0 <= self.delta <= 1:
            raise ParameterError(f"delta must lie in [0, 1], got {self.delta}")
        if not 0 <= self.gamma < 1:
            raise ParameterError(f"gamma must lie in [0, 1), got {self.gamma}")
        if self.neighbours not in get_args(Neighbours):
            raise ParameterError(
                f"neighbours must be one of {get_args(Neighbours)}, got {self.neighbours!r}"
            )
        if self.unit not in get_args(Unit):
            raise ParameterError(f"unit must be one of {get_args(Unit)}, got {self.unit!r}")
        if self.protect not in get_args(Protect):
            raise ParameterError(
                f"protect must be one of {get_args(Protect)}, got {self.protect!r}"
            )


def union_gamma(guarantees: Iterable[Guarantee]) -> float:
    """Gamma of several promises together, each sampled sensitivity counted once.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        Promises made about the same private table.

    Returns
    -------
    float
        Upper bound on the probability that any of the promises fails its pair; may reach or
        exceed 1, when nothing is promised any more. Rounded up.

    Notes
    -----
    The event behind a sampled sensitivity concerns the pair and the sampler, not the noise:
    releasing again with the same estimate adds no new event. Different estimates are added by
    the union bound. A gamma stated by hand, without an estimate, is its own event every time.
    Promises under ``protect="record"`` speak of one pair; adding them bounds the failure of
    one and the same pair.
    """
    events: dict[str, float] = {}
    total = Fraction(0)
    for promise in guarantees:
        for fingerprint, gamma in promise.estimates:
            events[fingerprint] = max(gamma, events.get(fingerprint, 0.0))
        total += stated_gamma(promise)
    return stated_above(total + total_of(events.values()))


def stated_gamma(promise: Guarantee) -> Fraction:
    """Part of a gamma that no sampled sensitivity accounts for: it was stated by hand.

    Parameters
    ----------
    promise : Guarantee
        The promise.

    Returns
    -------
    Fraction
        Exact, 0 or more; an event of its own each time.
    """
    sampled = total_of(gamma for _, gamma in promise.estimates)
    return max(Fraction(0), decimal_of(promise.gamma) - sampled)


def shown_above(level: float, digits: int = 6) -> str:
    """Print what is promised or spent: a number that is not below it.

    Parameters
    ----------
    level : float
        Epsilon, delta, gamma, or another bound; not NaN.
    digits : int, default 6
        Most significant digits.

    Returns
    -------
    str
        The nearest such number if it is not below the decimal that the level stands for;
        otherwise the next one up. So 0.1 stays ``0.1``, and 1.0000004 becomes ``1.00001``.
    """
    return _shown(level, digits, up=True)


def shown_below(level: float, digits: int = 6) -> str:
    """Print what is left, or what holds at least: a number that is not above it.

    Parameters
    ----------
    level : float
        The rest of a budget, or another lower bound; not NaN.
    digits : int, default 6
        Most significant digits.

    Returns
    -------
    str
        As `shown_above`, on the other side.
    """
    return _shown(level, digits, up=False)


def _shown(level: float, digits: int, *, up: bool) -> str:
    nearest, exact = f"{level:.{digits}g}", Decimal(repr(float(level)))
    # Of decimals, not of doubles: below 1e-307 several decimals are one double.
    if not math.isinf(level) and (Decimal(nearest) < exact if up else Decimal(nearest) > exact):
        with localcontext(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR):
            rounded = (+exact).normalize()
        nearest = f"{float(rounded):.{digits}g}"
        if Decimal(nearest) != rounded:
            nearest = f"{rounded:.{digits}g}"
    long = "e+" in nearest and abs(float(nearest)) < _WRITTEN_OUT
    return f"{float(nearest):.0f}" if long else nearest


def money_above(amount: float) -> str:
    """Print what something may cost: cents, not below the amount.

    Parameters
    ----------
    amount : float
        In any currency; finite.

    Returns
    -------
    str
        With two decimals and thousands separated.
    """
    return _money(amount, ROUND_CEILING)


def money_below(amount: float) -> str:
    """Print what may be spent: cents, not above the amount.

    Parameters
    ----------
    amount : float
        In any currency; finite.

    Returns
    -------
    str
        As `money_above`, on the other side.
    """
    return _money(amount, ROUND_FLOOR)


def _money(amount: float, rounding: str) -> str:
    with localcontext(prec=_MONEY_DIGITS, rounding=rounding):
        return f"{Decimal(repr(float(amount))).quantize(Decimal('0.01')):,}"
