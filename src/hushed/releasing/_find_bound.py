"""A clipping bound for a private column, found privately: no range has to be known."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

from hushed._functions._calls import call_privately
from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of
from hushed._ground.types import Floats
from hushed._rows._containers import is_series
from hushed._rows._users import name_user
from hushed.errors import BadFunction, BadRows, ParameterError
from hushed.guarantee import Neighbours, RowUnit, Unit
from hushed.ledger._notes import choose_note
from hushed.ledger._payments import Charges, check_ledger, explain_stops, pay
from hushed.mechanisms._bound_search import ARGUMENTS, SMALLEST, BoundSearch, Side
from hushed.releasing._certifying import certify
from hushed.releasing._release import Release
from hushed.releasing._statistic_release import draw_and_store
from hushed.sensitivity import Sensitivity, proven_sensitivity
from hushed.statistics._values import as_doubles, cells_of, check_numbers


@called_as("hs.find_bound(rows, epsilon=0.5)")
def find_bound(
    column: Any,
    *,
    epsilon: float,
    growth: float = 2.0,
    smallest: float = SMALLEST,
    above: float | None = None,
    side: Side = "high",
    users: Any = None,
    neighbours: Neighbours = "replace-one",
    unit: RowUnit = "row",
    ledger: Charges | None = None,
    budget: str | None = None,
    note: str = "",
    key: str | None = None,
) -> Release:
    """Find a bound to clip a private column at, where no range is known.

    The candidates are ``smallest``, ``growth smallest``, ``growth**2 smallest`` and so on, or the
    same below zero for the low end. The first one is chosen that has only few rows beyond it, up to
    noise.

    Parameters
    ----------
    column : array, list or series of numbers, shape (n,)
        The private values. A missing one, and what is not a number among objects, counts as
        beyond no bound: nothing is refused for what a row holds.
    epsilon : float
        Privacy loss of the search, in nats; finite, above 0. It stands for its shortest decimal.
        Half of what a sum may cost in all is a good share.
    growth : float, default 2
        Each candidate is so many times the one before; 1.01 or more.
    smallest : float, default 2**-20
        First candidate; 2**-1022 or more, public. A larger one makes a search on few rows surer.
    above : float, optional
        About how many rows may lie beyond the bound; by default 3 / epsilon. With fewer rows
        the search overshoots more often.
    side : {"high", "low"}, default "high"
        Which end of the range is looked for. The low one is below 0; for values that are all above
        it, it is near 0.
    users : array, list or series, shape (n,), optional
        The private user of each row. The promise is then for users with any number of rows, and
        users are counted instead of rows: by the farthest value of each. A row without a user is
        one of its own. Users are numbers, texts, bytes, dates, times, UUIDs, addresses, members of
        enumerations, or tuples of these; all that are something else are counted as one.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Relation that the promise refers to; it holds for both.
    unit : {"row", "person"}, default "row"
        ``"person"`` declares that each row is one person; it is for rows otherwise, or for users
        where they are given.
    ledger : Ledger or Charges, optional
        Where to charge before anything is drawn.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger.
    key : str, optional
        A name of your own for this search, which needs a `Ledger`: asking the same again under it
        tells the stored bound, at no cost.

    Returns
    -------
    Release
        The bound, one of the candidates with its sign, as ``value``, with its certificate.

    Raises
    ------
    BadRows
        If the column is not one list of numbers by its type and shape, or there is not one user for
        each row; nothing is charged.
    Overspent
        If it does not fit into the budget.
    ParameterError
        If a parameter cannot be used; nothing is charged.

    Notes
    -----
    Values beyond the bound exist, as a rule: the search stops where few are left, and its one-sided
    noise stops it early rather than late. A sum of clipped values is then too small. Both ends are
    two searches, and paid for twice.

    Examples
    --------
    >>> costs = [3.0, 47.0, 1100.0] * 1000
    >>> find_bound(costs, epsilon=10.0, above=50).value
    2048.0
    """
    sensitivity = proven_sensitivity(
        1.0,
        neighbours=neighbours,
        unit=_unit_of(unit, users),
        argument=ARGUMENTS["row" if users is None else "user"],
    )
    plan = BoundSearch(
        sensitivity, epsilon=epsilon, growth=growth, smallest=smallest, above=above, side=side
    )
    check_ledger(ledger, budget, key)
    held = _check_column("column", column)
    check_numbers(held)
    ids = None if users is None else _check_users(users, len(held))
    certify(plan, values=1).to_json()  # what it refuses, or cannot be written, is unpaid
    remark = choose_note(note, "find_bound: a clipping bound for a column")
    with explain_stops(ledger, budget, key):
        paid = pay(
            ledger,
            budget,
            plan.guarantee,
            remark,
            loss=plan.loss,
            key=key,
            question=_describe(plan, sensitivity),
        )
        value, certificate, entry = draw_and_store(
            lambda: _search(plan, _count_from(held, ids, plan.side)),
            lambda: certify(plan, values=1, charged=paid.terms),
            paid,
            "bound",
        )
    return Release(value=value, certificate=certificate, entry=entry)


def _search(plan: BoundSearch, values: Floats) -> float:
    """Search for the bound of sorted private values."""
    ladder = plan.candidates
    counts = values.size - np.searchsorted(values, ladder, side="right")
    found = float(ladder[plan.search(counts)])
    return found if plan.side == "high" else -found


def _count_from(held: Any, ids: list[Any] | None, side: Side) -> Floats:
    """Sort the values that are counted, with the sign that makes what is beyond a bound large."""
    values = as_doubles(held)
    if side == "low":
        values = -values
    values[np.isnan(values)] = -math.inf
    if ids is not None:
        farthest: dict[Any, float] = {}
        for place, (each, value) in enumerate(zip(ids, values.tolist(), strict=True)):
            user = _key_of(each, place)
            farthest[user] = max(value, farthest.get(user, -math.inf))
        values = np.array(list(farthest.values()), dtype=np.float64)
    values.sort()
    return values


def _key_of(each: Any, place: int) -> Any:
    """Key of a user; a row without one is a user of its own.

    All whose names cannot be told apart are one user: then no user is many.
    """
    name = name_user(each)
    if name == "missing":
        return (place,)
    return () if name == "unknown" else name


def _unit_of(unit: RowUnit, users: Any) -> Unit | RowUnit:
    """Say what is promised for; users are given by name, each with any number of rows."""
    require_one_of("unit", unit, ("row", "person"))
    if users is None:
        return unit
    if unit != "row":
        raise ParameterError("leave unit= out where users are given", parameter="unit")
    return "user"


def _describe(plan: BoundSearch, sensitivity: Sensitivity) -> str:
    """Digest what is asked; the column is known by the caller's key."""
    facts = [plan.epsilon, plan.growth, plan.smallest, plan.above, plan.side]
    whom = [plan.guarantee.neighbours, sensitivity.unit, sensitivity.person]
    text = json.dumps(["find_bound", *facts, *whom])
    return hashlib.sha256(text.encode()).hexdigest()


def _dimensions(shape: object) -> str:
    """Words for the layout of an array that is no single column."""
    if not isinstance(shape, tuple) or len(shape) == 1:
        return ""
    return f" of {len(shape)} dimensions"


def _check_column(name: str, column: Any) -> Any:
    """Take one list of private cells; refused by types and shape alone, unpaid."""
    held = _make_plain(column)
    known = isinstance(held, list | np.ndarray) or is_series(held)
    shape = (0,) if isinstance(held, list) else held.shape if known else None
    of = " of real numbers" if name == "column" else ""
    if not isinstance(shape, tuple) or len(shape) != 1 or isinstance(held, np.ma.MaskedArray):
        raise BadRows(
            f"the {name} must be one list{of}: a list, an array of one dimension or a "
            f"series, got {type(column).__name__}{_dimensions(shape)}; nothing was charged"
        )
    return held


def _make_plain(column: Any) -> Any:
    """Make a list or an array of what may be one; what it does when it is read is its own code."""
    if type(column) in (list, np.ndarray) or is_series(column):
        return column
    listed = isinstance(column, list | tuple | range)
    if not listed and not hasattr(type(column), "__array__"):
        return column
    if isinstance(column, np.ma.MaskedArray):
        return column
    try:
        return call_privately(list if listed else np.asarray, column)
    except BadFunction:  # whose words are about functions
        pass
    raise BadRows(
        f"the {'list' if listed else 'array'} cannot be read: why is not said, because it may hold "
        "a private value; nothing was charged"
    )


def _check_users(users: Any, rows: int) -> list[Any]:
    """Take the users of the rows; there must be one for each."""
    held = _check_column("users", users)
    if len(held) != rows:
        raise BadRows("there must be one user for each row of the column; nothing was charged")
    return cells_of(held)
