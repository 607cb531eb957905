"""Transformations that bound how many rows there are: in all, or of one user.

Which rows stay must depend neither on their order nor on chance that two neighbours do not
share. Every row gets a key: a hash, under a fresh secret salt, of its content and of how many
equal rows came before it. The rows with the smallest keys stay. For equal rows it does not matter
which of them is meant, so the result is a function of the multiset of rows and the salt, and under
one salt a row more or less changes what is kept by one row at most. That is a coupling of the two
runs, which is what a stability bound for a random transformation needs (Hay, Gaboardi, Vadhan, *A
Programming Framework for OpenDP*, 2020, Section 5). For a hash that cannot be told from a random
function the kept rows are a uniform sample; stability does not rest on that.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._ground.calls import called_as
from hushed.errors import ParameterError
from hushed.spaces import CHANGE_ONE, SYMMETRIC, Space
from hushed.spaces._sizes import check_size
from hushed.transformations._chain import Step, Transformation, linear
from hushed.transformations._matching import take_column, take_users

_SALT_BYTES = 32


@called_as("hs.transformations.resize(1000, 0.0)")
def resize(size: int, fill: float | str) -> Step[Transformation]:
    """Bring a column to a public number of rows.

    Parameters
    ----------
    size : int
        Rows wanted; 1 or more.
    fill : float or str
        Public constant that makes up for missing rows; of surplus rows a random sample stays.

    Returns
    -------
    Step
        From a column to one with that many rows, under rows replaced: each row added, removed
        or replaced in the input replaces at most one in the output.

    Raises
    ------
    ParameterError
        If the size is none.

    Notes
    -----
    Keep the ``size`` smallest of the keys and of infinitely many copies of the constant, which
    come last. One more row among the inputs enters and pushes out the largest, or stays out;
    one row replaced either enters or not in the place of the one that left or of the largest.
    """
    check_size(size)

    def build(space: Space) -> Transformation:
        column = take_column(space, "resize")
        if column.cell.check([fill])[0] != fill:
            raise ParameterError(f"{fill!r} is not a cell of a column of {column.cell}")
        pairs = space.metric.name == "symmetric" and column.size is not None
        return Transformation(
            name=f"resize({size})",
            source=space,
            target=Space(domain=replace(column, size=size, least=None), metric=CHANGE_ONE),
            function=lambda values: resized(values, size, fill, draw_salt()),
            relation=linear(lambda rows: rows // 2 if pairs else rows),
            settings=(size, fill),
        )

    return Step("resize", build)


def resized(values: NDArray[Any], size: int, fill: float | str, salt: bytes) -> NDArray[Any]:
    """Keep the rows with the smallest keys, and fill up."""
    kept = sorted(zip(rank_keys(values.tolist(), salt), values.tolist(), strict=True))[:size]
    found = np.empty(size, dtype=values.dtype)
    found[:] = [value for _, value in kept] + [fill] * (size - len(kept))
    return found


@called_as("hs.transformations.limit_rows(1000)")
def limit_rows(most: int) -> Step[Transformation]:
    """Keep at most so many rows of each user, chosen at random.

    Parameters
    ----------
    most : int
        Rows of one user that stay; 1 or more.

    Returns
    -------
    Step
        From a keyed table under users added, removed or replaced, to one under rows added and
        removed: ``most`` for each user added or removed, twice that for one replaced.

    Raises
    ------
    ParameterError
        If the number is none.
    """
    check_size(most)

    def build(space: Space) -> Transformation:
        table, key = take_users(space, "limit_rows")
        added = space.metric.name == "symmetric"
        return Transformation(
            name=f"limit_rows({most})",
            source=space,
            target=Space(domain=replace(table, size=None, least=None), metric=SYMMETRIC),
            function=lambda data: limited(data, key, most, draw_salt()),
            relation=linear(lambda users: rows_of_users(users, most=most, added=added)),
            settings=(most,),
        )

    return Step("limit_rows", build)


def rows_of_users(users: int, *, most: int, added: bool = True) -> int:
    """Rows added and removed with users who keep at most so many; twice that if replaced."""
    return users * (most if added else 2 * most)


def limited(
    data: dict[str, NDArray[Any]], key: str, most: int, salt: bytes
) -> dict[str, NDArray[Any]]:
    """Keep the rows with the smallest keys of each user."""
    rows = list(zip(*(values.tolist() for values in data.values()), strict=True))
    users: defaultdict[str, list[tuple[bytes, int]]] = defaultdict(list)
    keys = rank_keys(rows, salt)
    for place, (user, row_key) in enumerate(zip(data[key].tolist(), keys, strict=True)):
        users[name_user(user)].append((row_key, place))
    places = sorted(place for found in users.values() for _, place in sorted(found)[:most])
    return {name: values[places] for name, values in data.items()}


def name_user(user: Any) -> str:
    """Tell users apart: 0.0 and -0.0 are one; so are all rows without one, as NaN would not be."""
    return repr(user + 0.0 if isinstance(user, float) else user)


def draw_salt() -> bytes:
    """Draw what no two runs share."""
    return os.urandom(_SALT_BYTES)


def rank_keys(rows: Iterable[Any], salt: bytes) -> list[bytes]:
    """Key of each row: a keyed hash of its content and its number among equal rows."""
    seen: defaultdict[str, int] = defaultdict(int)
    keys = []
    for row in rows:
        content = repr(row)  # of floats, integers, strings and None: equal for equal rows alone
        seen[content] += 1
        told = f"{seen[content]}:{content}".encode("utf-8", "surrogatepass")
        keys.append(hashlib.blake2b(told, key=salt, digest_size=32).digest())
    return keys
