"""What releases on disjoint parts of the rows promise together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from hushed._ground.calls import called_as
from hushed._ground.printing import as_given
from hushed.accounting._joint import Composition, read_item, read_sequence
from hushed.accounting._promises import joined
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.privacy_loss import Bracket


@called_as('hs.parallel([hs.Guarantee(epsilon=1.0, neighbours="add-remove")] * 2)')
def parallel(
    parts: Sequence[object], *, membership: Literal["private", "public"] = "private"
) -> Composition:
    """Join releases on disjoint parts of the rows.

    Parameters
    ----------
    parts : sequence
        One release per part: mechanisms, certificates or guarantees; a million at most.
    membership : {"private", "public"}, default "private"
        Whether which row lies in which part may itself depend on the row. Public membership
        never changes between neighbours.

    Returns
    -------
    Composition
        The largest epsilon and the largest delta. Gammas are added, also of one sampled
        sensitivity that several parts share: each part is another table, and which part a record
        lies in may depend on the record.

    Raises
    ------
    ParameterError
        If there are no parts, a promise is for users, or the relation is replace-one with private
        membership: a replaced row may leave one part and enter another.

    Notes
    -----
    McSherry, *Privacy Integrated Queries*, SIGMOD 2009, Theorem 4: for adding or removing one
    record: it changes one part. The rows of one user may lie in many parts.
    """
    items = [read_item(one) for one in read_sequence(parts)]
    promises = [item.guarantee for item in items if item.guarantee is not None]
    if not items or len(promises) != len(items):
        raise ParameterError(
            "parallel composition needs mechanisms, certificates or guarantees: the neighbour "
            "relation must be known"
        )
    if membership not in ("private", "public"):
        raise ParameterError(
            f"membership must be 'private' or 'public', got {as_given(membership)}",
            parameter="membership",
        )
    if membership == "private" and promises[0].neighbours == "replace-one":
        raise ParameterError(
            "under replace-one a replaced row may leave one part and enter another, so the largest "
            "promise does not cover it; state the promises for add-remove, say "
            "membership='public' if no row can change its part, or use compose"
        )
    if any(promise.unit == "user" for promise in promises):
        raise ParameterError("disjoint parts may each hold rows of one user: use compose")
    if any(promise.distance > 1 for promise in promises):
        raise ParameterError("disjoint parts may each hold some of several rows: use compose")
    epsilon = max(promise.epsilon for promise in promises)
    delta = max(promise.delta for promise in promises)
    found = [item.loss.epsilon_bracket(delta).low for item in items]
    return Composition(
        epsilon=epsilon,
        delta=delta,
        guarantee=joined([_apart(promise) for promise in promises], epsilon, delta),
        method="parallel",
        theorem="disjoint parts (McSherry, SIGMOD 2009, Theorem 4)",
        releases=len(items),
        exact=Bracket(low=min(epsilon, max(found)), high=epsilon),
    )


def _apart(promise: Guarantee) -> Guarantee:
    """Promise of a table of its own: its gamma is an event that no other promise shares."""
    return replace(promise, estimates=())
