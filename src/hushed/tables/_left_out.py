"""What contribution bounds leave out at most, by a public guess, and error bars that include it.

No private row is read: the guess says how many rows the users have. If theirs are no more, each bar
holds as stated. All that is left out may lie in one group, so every group gets all of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from hushed._ground.checks import list_in_order
from hushed._ground.numeric import float_above
from hushed._ground.printing import as_given, brief, name_count
from hushed.errors import ParameterError
from hushed.populations import PublicTable
from hushed.tables import _engine as engine
from hushed.tables._query import Query
from hushed.tables._requests import Aggregate

if TYPE_CHECKING:
    from hushed.tables._answers import Answer

_MOST = 10**15  # rows or users of a guess: sums of them stay exact as doubles
RATIOS = ("mean", "variance")  # kinds that divide by a number of rows
_CLIPPED = ("sum", *RATIOS)
_ADDED_UP = {"count", "users", "count_users", "sum", "histogram"}
_FORMS = (
    "rows_per_user must be a public table with the user column, or numbers: the rows of each user, "
    "[1, 1, 7], or how many users have so many rows, {1: 300, 7: 20}"
)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What contribution bounds leave out at most, by a public guess.

    Parameters
    ----------
    rows : int
        Rows of all users together.
    users : int
        Users with a row that is left out: as many may be missing in a group.
    all_rows, all_users : int, optional
        All rows and users that there are by the guess; not stored with an answer.
    """

    rows: int
    users: int
    all_rows: int | None = field(default=None, compare=False)
    all_users: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Say it in words, as ``1 row of 1 user``."""
        return f"{name_count(self.rows, 'row')} of {name_count(self.users, 'user')}"


def read_left_out(guess: Any, query: Query) -> LeftOut | None:
    """Count what contribution bounds would leave out of users with so many rows.

    Notes
    -----
    A user with r rows keeps ``min(r, g, m)`` or more of them: the bound on groups keeps g groups,
    or all if there are fewer, with a row in each, and the bound on rows keeps m of those.
    """
    if guess is None:
        return None
    if query.user is None:
        raise ParameterError(
            "rows_per_user is about contribution bounds, and without a user column there are none: "
            "leave it out",
            parameter="rows_per_user",
        )
    held = _read_guess(guess, query.user)
    kept = _find_kept(query)
    beyond = {rows: users for rows, users in held.items() if kept is not None and rows > kept}
    return LeftOut(
        sum((rows - (kept or 0)) * users for rows, users in beyond.items()),
        sum(beyond.values()),
        all_rows=sum(rows * users for rows, users in held.items()),
        all_users=sum(users for rows, users in held.items() if rows),
    )


def read_counts(stored: Mapping[str, Any]) -> LeftOut:
    """Read what was stored."""
    rows, users = stored["rows"], stored["users"]
    if type(rows) is not int or type(users) is not int or not 0 <= users <= rows:
        raise TypeError("left_out")
    return LeftOut(rows, users)


def _find_kept(query: Query) -> int | None:
    """Find how many rows of a user are kept at least, if there are so many; None if all are."""
    bounds = query.contribution_bounds
    groups, known = bounds.max_groups_per_user, query.keys.values
    if groups is not None and known is not None and math.prod(map(len, known)) <= groups:
        groups = None  # all groups are kept
    found = [each for each in (bounds.max_rows_per_user, groups) if each is not None]
    return min(found) if found else None


def _read_guess(guess: Any, user: str) -> dict[int, int]:
    """Read how many users have so many rows."""
    if isinstance(guess, PublicTable):
        guess = guess.frame
    named = isinstance(guess, Mapping) and all(isinstance(name, str) for name in guess)
    if named or hasattr(guess, "columns"):
        return _count_rows(engine.read_public(guess), user)
    if isinstance(guess, Mapping):
        pairs = [(_read_whole(rows), _read_whole(users)) for rows, users in guess.items()]
        return dict(pairs)
    if isinstance(guess, str | bytes) or not isinstance(guess, Iterable):
        raise ParameterError(f"{_FORMS}; got {as_given(guess)}", parameter="rows_per_user")
    return dict(Counter(map(_read_whole, list_in_order(guess))))


def _count_rows(held: Mapping[str, Sequence[Any]], user: str) -> dict[int, int]:
    if user not in held:
        raise ParameterError(
            f"the public table of rows_per_user needs the user column {brief(user)}; its columns: "
            f"{', '.join(map(brief, held)) or 'none'}",
            parameter="rows_per_user",
        )
    # A missing user has no rows that count; NaN is unequal to itself.
    known = Counter(each for each in held[user] if each is not None and each == each)  # noqa: PLR0124
    return dict(Counter(known.values()))


def _read_whole(value: Any) -> int:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    if type(plain) is not int or not 0 <= plain <= _MOST:
        # Not the value: in place of the numbers it may be the names of the users that were given.
        what = "another number" if isinstance(plain, int | float) else type(plain).__name__
        raise ParameterError(f"{_FORMS}; got {what}", parameter="rows_per_user")
    return plain


def count_missing(query: Query, left_out: LeftOut | None) -> dict[str, int]:
    """Count what each output may lack: rows, or users of a group; nothing without a guess."""
    if left_out is None:
        return {}
    users = left_out.users if query.keys.columns else 0  # one row of every user is kept
    return {
        each.name: users
        if each.kind == "users" or (each.kind == "top" and each.of == "users")
        else left_out.rows
        for each in query.aggregates
    }


def widen(each: Aggregate, bar: tuple[Any, Any], fewest: float, missing: int) -> tuple[Any, Any]:
    """Widen an error bar by what is left out; `fewest` are the rows of a mean that are kept.

    Ends that are computed in doubles are moved outwards by more than they are rounded by, but not
    out of what a mean or a variance of values between the bounds can be.

    Notes
    -----
    Between 0 and D rows are missing, each with any value between the bounds. A mean in [a, b] of n
    rows or more becomes one of ``n + d`` rows, at most ``(n b + D high) / (n + D)``: more rows that
    are kept, or fewer that are missing, move it less. A variance V around the mean M becomes at
    most ``(1 - w) V + w F``, where w is the share of the missing and F the largest squared distance
    from M; and at least ``(1 - w) V``.
    """
    low, high = bar
    if not missing or low is None:
        return bar
    if each.kind == "histogram":
        return low, [end + missing for end in high]
    if each.kind == "sum":
        below, above = missing * min(each.low, 0.0), missing * max(each.high, 0.0)
        return _move(low + below, -1, low, below), _move(high + above, 1, high, above)
    if each.kind not in _CLIPPED:
        return low, high + missing
    share = missing / (max(fewest, 0.0) + missing)
    if each.kind == "mean":
        lower = _move(_between(low, each.low, share), -1, low, each.low)
        upper = _move(_between(high, each.high, share), 1, high, each.high)
        return max(lower, each.low), min(upper, each.high)
    farthest = (each.high - each.low) ** 2  # of two values between the bounds
    top = ((each.high - each.low) / 2) ** 2  # the largest variance
    upper = _move(_between(high, farthest, share), 1, high, farthest)
    return max(_move(low * (1 - share), -1, low), 0.0), max(high, min(top, upper))


def add_missing(each: Aggregate, error: float, missing: int, rows: int = 1) -> float:
    """Add to an error by noise how far the output moves if so many rows are missing; rounded up.

    Notes
    -----
    A sum moves by the larger bound for each row. Of a mean over n rows, d of them missing, the kept
    ones differ by ``d / n`` of the distance of their mean from that of the missing ones, which is
    at most that of the bounds; of a variance by d / n of the square of it at most (see `widen`).
    """
    if not missing:
        return error
    low, high = Fraction(each.low), Fraction(each.high)
    moved = Fraction(missing)
    if each.kind == "sum":
        moved *= max(-low, high, Fraction(0))
    elif each.kind in RATIOS:
        moved *= (high - low) ** (2 if each.kind == "variance" else 1) / Fraction(rows)
    return float_above(Fraction(error) + moved)


def _move(end: float, sign: int, *terms: float) -> float:
    """Move an end outwards by far more than these terms are rounded by."""
    return end + sign * 2.0**-48 * max(abs(each) for each in (end, *terms))


def _between(start: float, end: float, share: float) -> float:
    """Go from a start to an end by a share of the way."""
    return start + (end - start) * share


def remark_of(answer: Answer, name: str) -> str:
    """Say in two words what the error bar of an output does not include; nothing if it is whole."""
    if name in (*answer.rank_error, *answer.shortfall):
        return ""
    asked = answer.asked
    if asked is None:
        return "noise alone"
    kind = next((each.kind for each in asked.query.aggregates if each.name == name), "")
    if leaves_out(answer, kind):
        return "noise alone"
    return "values clipped" if kind in _CLIPPED else ""


def leaves_out(answer: Answer, kind: str) -> bool:
    """Whether contribution bounds may leave something out that an error bar does not include."""
    asked = answer.asked
    if asked is None:
        return answer.unit == "user"
    query = asked.query
    if query.user is None or asked.left_out is not None:
        return False
    if kind == "count_users" and query.groups is None:
        return False
    return query.max_rows_per_user is not None or query.max_groups_per_user is not None


def say_kept(query: Query, left_out: LeftOut | None) -> str:
    """Say what contribution bounds leave out that no error of a quote includes; or nothing."""
    kinds = {each.kind for each in query.aggregates}
    whole = kinds == {"users"} and not query.keys.columns  # one row of every user is kept
    if query.user is None or left_out is not None or whole or _find_kept(query) is None:
        return ""
    bounds = query.contribution_bounds
    return _say_kept(bounds.max_rows_per_user, bounds.max_groups_per_user, kinds)


def _say_kept(rows: int | None, groups: int | None, kinds: Iterable[str]) -> str:
    bounds = ((rows, "row"), (groups, "group"))
    kept = " in ".join(f"{most} {what}{'s' * (most > 1)}" for most, what in bounds if most)
    moved = "counts are too low, and sums off, by an unknown amount"
    if _ADDED_UP.isdisjoint(kinds):
        moved = "how far that moves the numbers is unknown"
    return f"each user counts with {kept} at most; all further rows are left out, and {moved}"


def advise_bars(answer: Answer) -> list[str]:
    """Say in a line what contribution bounds leave out that no error includes, and what does."""
    asked = answer.asked
    kinds = set() if asked is None else {each.kind for each in asked.query.aggregates}
    if asked is None or not any(leaves_out(answer, each) for each in kinds):
        return []
    query = asked.query
    said = _say_kept(query.max_rows_per_user, query.max_groups_per_user, kinds)
    way = "rows_per_user of release, --rows-per-user of hushed query"
    if not answer.takes_guess:
        way = "which a team server does not take: ask the steward which bound few people pass"
    return [
        f"Noise alone: {said}. An error that includes it needs a public guess of the rows of each "
        f"user ({way})."
    ]


def describe_bars(answer: Answer) -> str:
    """Say what the error bars include, and what they do not."""
    asked = answer.asked
    kinds = ["sum", "count"] if asked is None else [each.kind for each in asked.query.aggregates]
    absent = ["values moved into their bounds (clipping)"] if set(kinds) & set(_CLIPPED) else []
    if any(leaves_out(answer, each) for each in kinds):
        absent.append("rows left out of those who have many (contribution bounds)")
    rest = f"; it does not include {' and '.join(absent)}" if absent else ""
    found = None if asked is None else asked.left_out
    if found is None:
        return f"against the noise alone{rest}."
    return (
        f"against the noise, and against what contribution bounds leave out: {found} "
        f"at most, by a public guess{rest}."
    )
