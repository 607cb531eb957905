"""What is promised, and for whom: the (epsilon, delta, gamma) triple and what it refers to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, get_args

from hushed._ground.calls import called_as
from hushed._ground.checks import is_whole, read_list, require_least, require_one_of, require_within
from hushed._ground.decimals import decimal_of, read, stated_above, total_of
from hushed._ground.numeric import SERIES, round_up
from hushed._ground.printing import as_given
from hushed.errors import ParameterError

__all__ = [
    "Guarantee",
    "Neighbours",
    "Protect",
    "RowUnit",
    "Unit",
    "stated_gamma",
    "union_gamma",
]

# When several releases with one sampled sensitivity are about one event, whose gamma counts once.
SAME_EVENT: dict[str, str] = {
    "row": "the same table with its rows in the same order (for a symmetric function that is no "
    "average over blocks, in any order)",
    "user": "the same table with the rows of each person in the same order",
}

# Gammas add up for a fixed list of functions. An answer may tell so much of the table that a
# function which follows from it moves far on this table, and hardly ever on sampled ones.
CHOSEN_FIRST = (
    "Gamma does not hold for a function that was chosen, or sampled, because of an answer about "
    "the same rows."
)

_LARGEST_EXPONENT = 700.0  # beyond it exp() overflows

Neighbours = Literal["replace-one", "add-remove"]
Protect = Literal["record", "everyone", "simultaneous", "table"]
Unit = Literal["row", "user"]
RowUnit = Literal["row", "person"]


@called_as("hs.Guarantee(epsilon=1.0)")
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
    protect : {"record", "everyone", "simultaneous", "table"}, default "record"
        Whom ``gamma`` is about: one record at a time, or all records of the table at once, by
        the union bound (``"everyone"``) or by a sampled maximum (``"simultaneous"``), each
        against a fresh draw; or (``"table"``) all neighbours of the table whose new row is one of
        the public values that were given when the sensitivity was sampled.
    distance : int, default 1
        Rows, or users, in which the two tables differ: the promise is for so many at once, and
        for fewer only where ``gamma`` is 0.
    data_dependent : bool, default False
        True when the population was made from the private rows. The numbers are then nominal:
        the estimate itself leaks, and no (epsilon, delta, gamma) statement is proved.
    estimates : tuple of (str, float), default ()
        The sampled sensitivities behind ``gamma``: fingerprint and gamma of each. Promises that
        share an estimate share its gamma. Empty for a gamma that was stated by hand.
    marginal : bool, default False
        True when part of ``gamma`` is an average over the sampler (``calibration="marginal"``):
        under the one sensitivity that was drawn, a larger share of pairs may well fail, and no
        promise is broken by it. Under the other calibrations it does so with a probability that
        is counted into gamma.

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
    distance: int = 1
    data_dependent: bool = False
    estimates: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    marginal: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "gamma"):
            object.__setattr__(self, name, read(name, getattr(self, name), up=True))
        require_least("epsilon", self.epsilon)
        require_within("delta", self.delta, 0, 1)
        if not 0 <= self.gamma < 1:
            raise ParameterError(f"gamma must lie in [0, 1), got {self.gamma}", parameter="gamma")
        require_one_of("neighbours", self.neighbours, get_args(Neighbours))
        require_one_of("unit", self.unit, get_args(Unit))
        require_one_of("protect", self.protect, get_args(Protect))
        if not is_whole(self.distance) or self.distance < 1:
            raise ParameterError(
                f"distance must be a whole number of 1 or more, got {as_given(self.distance)}",
                parameter="distance",
            )
        for name in ("data_dependent", "marginal"):
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(
                    f"{name} must be True or False, got {as_given(getattr(self, name))}",
                    parameter=name,
                )
        object.__setattr__(self, "estimates", _read_estimates(self.estimates))

    def for_replacement(self) -> Guarantee:
        """Turn a promise for one row more or less into one for one row replaced.

        To add it to promises for ``neighbours="replace-one"``, which cannot be turned the other
        way: they are about tables with equally many rows alone.

        Returns
        -------
        Guarantee
            Of ``2 epsilon`` and ``(1 + exp(epsilon)) delta``, rounded up.

        Raises
        ------
        ParameterError
            If the promise is for ``neighbours="replace-one"``, for several rows at once, or has a
            gamma or a population made of private rows.

        Notes
        -----
        A row is replaced in two steps, added and taken away, and each is between two neighbours: so
        ``P(A) <= exp(epsilon) P'(A) + delta``, and ``P'(A) <= exp(epsilon) P''(A) + delta`` (group
        privacy; Vadhan, *The Complexity of Differential Privacy*, 2017, Lemma 2.2). With a gamma
        the table in between may be one that the promise does not cover.

        Examples
        --------
        >>> Guarantee(epsilon=0.5, neighbours="add-remove").for_replacement().epsilon
        1.0
        """
        if self.neighbours != "add-remove":
            raise ParameterError(
                f"the promise is for {self.neighbours} neighbours, and only one for add-remove "
                "can be turned: it holds for the table in between, too",
                parameter="neighbours",
            )
        if self.gamma > 0 or self.data_dependent or self.distance != 1:
            raise ParameterError(
                "only a promise with gamma = 0, for one row at a time, and by no population of "
                "private rows is turned into one for replaced rows: sample with "
                "neighbours='replace-one' in the first place"
            )
        epsilon, delta = self.epsilon, 0.0
        if self.delta > 0:
            grown = math.exp(epsilon) if epsilon < _LARGEST_EXPONENT else math.inf
            delta = round_up((1 + grown) * self.delta, SERIES, ceiling=1.0)
        twice = stated_above(2 * decimal_of(epsilon)) if math.isfinite(epsilon) else epsilon
        return replace(self, epsilon=twice, delta=delta, neighbours="replace-one")


def _read_estimates(estimates: object) -> tuple[tuple[str, float], ...]:
    """Refuse names that occur twice, and gammas that are none: their sum would be too small."""
    if not isinstance(estimates, tuple) or not all(
        isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str)
        for each in estimates
    ):
        raise ParameterError(
            "estimates must be a tuple of pairs of a name and its gamma", parameter="estimates"
        )
    if len(dict(estimates)) < len(estimates):
        raise ParameterError("estimates names a sampled sensitivity twice")
    found = tuple((name, read("gamma", gamma, up=True)) for name, gamma in estimates)
    for name, gamma in found:
        if not _is_text(name):
            raise ParameterError("a name among estimates has no zero bytes and no lone surrogates")
        require_within("a gamma among estimates", gamma, 0, 1)
    return found


def _is_text(name: str) -> bool:
    """Whether every database can hold a text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in name


@called_as("hs.union_gamma([hs.Guarantee(epsilon=1.0, gamma=0.01)] * 2)")
def union_gamma(guarantees: Iterable[Guarantee]) -> float:
    """Gamma of several promises together, each sampled sensitivity counted once.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        Promises made about the same private table, its rows in the same order (for a symmetric
        function that is no average over blocks, in any order); a million at most.

    Returns
    -------
    float
        Upper bound on the probability that any of the promises fails its pair; may reach or
        exceed 1, when nothing is promised any more. Rounded up.

    Notes
    -----
    The event behind a sampled sensitivity concerns the pair and the sampler, not the noise:
    releasing again with the same estimate adds no new event, if the rows are in the same order:
    in another order a row stands elsewhere, or in a block with others. Different estimates are
    added by the union bound. A gamma stated by hand, without an estimate, is its own event every
    time. Promises under ``protect="record"`` are about one pair; adding them bounds the failure of
    one and the same pair.
    """
    events: dict[str, float] = {}
    total = Fraction(0)
    for promise in read_list("guarantees", guarantees, of="[Guarantee(epsilon=1.0)]"):
        if not isinstance(promise, Guarantee):
            raise ParameterError(
                f"guarantees must be of Guarantee, got {type(promise).__name__}",
                parameter="guarantees",
            )
        for fingerprint, gamma in promise.estimates:
            events[fingerprint] = max(gamma, events.get(fingerprint, 0.0))
        total += stated_gamma(promise)
    return stated_above(total + total_of(events.values()))


@called_as("hs.guarantee.stated_gamma(hs.Guarantee(epsilon=1.0))")
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
