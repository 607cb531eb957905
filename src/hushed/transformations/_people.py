"""Counts of people by group, each person once in a group and in so many groups at most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count, require_one_of
from hushed._ground.numeric import finite_above, root_above
from hushed.spaces import Numbers, Space
from hushed.spaces._cells import keys_of
from hushed.transformations._aggregates import CountNorm
from hushed.transformations._answers import NORM_METRICS
from hushed.transformations._chain import Step, Transformation, linear
from hushed.transformations._grouping import check_keys, rows_with
from hushed.transformations._matching import take_users
from hushed.transformations._resizing import draw_salt, name_user, rank_keys


@called_as('hs.transformations.count_users("city", ["Bonn", "Ulm"], groups=1)')
def count_users(
    column: str | Sequence[str],
    keys: Iterable[Any],
    *,
    groups: int | None = None,
    norm: CountNorm = "l2",
) -> Step[Transformation]:
    """Count the users in each public group, each of them once in a group.

    Parameters
    ----------
    column : str or sequence of str
        Column of strings, integers or truth values that says where a row belongs; or several.
    keys : iterable
        Public keys, one for each group; tuples where there are several columns. Rows with another
        key are not counted.
    groups : int, optional
        Groups that one user is counted in, at most: a random sample of those with rows of theirs.
        All by default.
    norm : {"l1", "l2", "sup", "one-sided"}, default "l2"
        Norm in which the movement of the counts is bounded.

    Returns
    -------
    Step
        From a keyed table under users to a vector of integers, in the order of the keys. One user
        of at most k groups, added or removed, moves it by k in l1, ``sqrt(k)`` in l2, and 1 in sup
        and one-sided; d users by d times that. For one replaced, k is twice as large (but no more
        than there are keys) and one-sided it is 2.

    Raises
    ------
    ParameterError
        If a number, a key or a norm is none.

    Notes
    -----
    Counts of rows would move by k in l2, for all k rows of a user may be in one group. Proof:
    docs/transformations.md.
    """
    wanted = keys_of(keys)
    require_one_of("norm", norm, get_args(CountNorm))
    if groups is not None:
        require_count("groups", groups, plain=True)
    most = min(len(wanted), groups or len(wanted))

    def build(space: Space) -> Transformation:
        table, key = take_users(
            space, "count_users", "or count rows by group_by(column, keys) >> each(count())"
        )
        names = check_keys("count_users", table, column, wanted)
        replaced = space.metric.name == "change-one"
        return Transformation(
            name=f"count_users({', '.join(map(repr, names))}, {len(wanted)} keys, groups={most})",
            source=space,
            target=Space(domain=Numbers(type="int", dims=len(wanted)), metric=NORM_METRICS[norm]),
            function=lambda data: _tally(data, key, names, wanted, most, draw_salt()),
            relation=linear(
                lambda users: users_movement(
                    users, groups=most, keys=len(wanted), norm=norm, replaced=replaced
                )
            ),
            settings=(column, wanted, groups, norm),
        )

    return Step("count_users", build)


def users_movement(
    users: int, *, groups: int, keys: int, norm: CountNorm, replaced: bool = False
) -> float:
    """Bound the movement of counts of users, each once in so many groups at most; rounded up.

    Each of them changes every count by at most 1, and so many counts: ``min(groups, keys)``, or
    twice ``groups`` if replaced, ``keys`` at most. Tight: all may be alike.
    """
    touched = min(2 * groups if replaced else groups, keys)
    if norm == "l1":
        return finite_above(Fraction(users * touched))
    if norm == "l2":
        return finite_above(root_above(users * users * touched))
    if norm == "one-sided" and replaced:  # out of one group and into another one, if there is one
        return finite_above(Fraction(users * min(2, keys)))
    return finite_above(Fraction(users))


def _tally(
    data: dict[str, NDArray[Any]],
    key: str,
    names: Sequence[str],
    wanted: Sequence[Any],
    most: int,
    salt: bytes,
) -> NDArray[np.int64]:
    """Count each user once in the groups that are drawn for them; other users change nothing."""
    users = [name_user(user) for user in data[key].tolist()]
    found: defaultdict[str, list[int]] = defaultdict(list)
    for at, group in enumerate(wanted):
        for user in {users[row] for row in np.flatnonzero(rows_with(data, names, group))}:
            found[user].append(at)
    counts = np.zeros(len(wanted), dtype=np.int64)
    for user, places in found.items():
        counts[_choose_groups(user, places, most, salt)] += 1
    return counts


def _choose_groups(user: str, places: list[int], most: int, salt: bytes) -> list[int]:
    """Keep so many groups of a user: by their name and the salt alone, so at random."""
    if len(places) <= most:
        return places
    ranks = rank_keys([(user, at) for at in places], salt)
    return [at for _, at in sorted(zip(ranks, places, strict=True))[:most]]
