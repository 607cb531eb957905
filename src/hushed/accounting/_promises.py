"""What promises say together: whom they cover, and the sum of their gammas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from hushed._ground.calls import called_as
from hushed._ground.printing import format_up
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Protect, union_gamma
from hushed.privacy_loss import PrivacyProfile


@runtime_checkable
class Promises(Protocol):
    """Anything that carries a guarantee: a certificate, for one."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, and for whom."""


@runtime_checkable
class Releasable(Promises, Protocol):
    """A guarantee together with the curve behind it: a mechanism."""

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level."""


@called_as("hs.accounting.joined([hs.Guarantee(epsilon=1.0)], 1.0, 0.0)")
def joined(promises: Sequence[Guarantee], epsilon: float, delta: float) -> Guarantee:
    """Join what several promises say of gamma and of whom they cover, at a joint level.

    Parameters
    ----------
    promises : sequence of Guarantee
        At least one, all for one neighbour relation and one unit.
    epsilon, delta : float
        The joint level.

    Returns
    -------
    Guarantee
        With the gammas of different sampled sensitivities added up, each counted once.

    Raises
    ------
    ParameterError
        If the relations or the units differ, or the gammas reach 1.
    """
    _check_alike(promises)
    gamma = union_gamma(promises)
    if gamma >= 1:
        raise ParameterError(
            f"the gammas add up to {format_up(gamma)}: nothing is promised any more; use fewer "
            "different sampled sensitivities, or a smaller gamma for each"
        )
    sampled = {promise.protect for promise in promises if promise.gamma > 0}
    events: dict[str, float] = {}
    for promise in promises:
        for fingerprint, share in promise.estimates:
            events[fingerprint] = max(share, events.get(fingerprint, 0.0))
    by_hand = any(promise.gamma > 0 and not promise.estimates for promise in promises)
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        gamma=gamma,
        neighbours=promises[0].neighbours,
        unit=promises[0].unit,
        distance=promises[0].distance,
        protect=_weakest(sampled or {promise.protect for promise in promises}),
        data_dependent=any(promise.data_dependent for promise in promises),
        # A gamma stated by hand has no fingerprint; the joint gamma then stands by itself.
        estimates=() if by_hand else tuple(sorted(events.items())),
        marginal=any(promise.marginal for promise in promises),
    )


def _check_alike(promises: Sequence[Guarantee]) -> None:
    """Refuse promises about different neighbours."""
    relations = {promise.neighbours for promise in promises}
    if len(relations) > 1:
        raise ParameterError(
            f"promises for different neighbour relations cannot be joined: {sorted(relations)}. "
            "State all of them for one: sample or query again with that neighbours=, or compose "
            "them by hs.compose, with guarantee.for_replacement() in place of a release for "
            "add-remove with gamma = 0, which keeps 2 epsilon where a row is replaced. The other "
            "way round there is none"
        )
    if len({promise.unit for promise in promises}) > 1:
        raise ParameterError(
            "promises for rows and promises for users cannot be joined: neither promise implies "
            "the other; state all of them for one unit. Questions to hs.table(..., user=COLUMN) "
            "are for users, and without user= for rows. A statistic is for rows, also with "
            "unit='person': add it to promises for rows, or ask a table with user=COLUMN for it"
        )
    if len({promise.distance for promise in promises}) > 1:
        raise ParameterError(
            "promises for different numbers of rows replaced at once cannot be joined: "
            f"{sorted({promise.distance for promise in promises})}; state all of them for one"
        )


def _weakest(found: set[Protect]) -> Protect:
    """Weakest of the scopes: one record, then all records by whichever argument."""
    if "table" in found:
        if len(found) > 1:
            raise ParameterError(
                "promises for given replacements (protect='table') and for fresh draws cannot be "
                "joined: neither implies the other; sample all of them with one protect"
            )
        return "table"
    if "record" in found:
        return "record"
    return "everyone" if "everyone" in found else "simultaneous"
