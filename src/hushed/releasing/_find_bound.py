"""A clipping bound for a private column, found privately: no range has to be known."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np

from hushed._checks import require_one_of
from hushed._types import Floats
from hushed.errors import BadRows
from hushed.guarantee import Neighbours, RowUnit, Unit
from hushed.mechanisms._bound_search import SMALLEST, BoundSearch
from hushed.releasing._certificate import certify
from hushed.releasing._keeping import Charges, check_ledger, explain_stops, pay
from hushed.releasing._release import Release
from hushed.releasing._statistic_release import draw_and_store
from hushed.sensitivity import Sensitivity, proven_sensitivity
from hushed.statistics._values import check_numbers, read_numbers

_ARGUMENT = (
    "a row changes each number of rows above a candidate by at most 1, and all of them in the same "
    "direction, whether it is added, removed or replaced (docs/noise/sparse-vector.md)"
)


def find_bound(
    column: Any,
    *,
    epsilon: float,
    growth: float = 2.0,
    smallest: float = SMALLEST,
    above: float | None = None,
    neighbours: Neighbours = "replace-one",
    unit: RowUnit = "row",
    ledger: Charges | None = None,
    budget: str | None = None,
    note: str = "",
    key: str | None = None,
) -> Release:
    """Find an upper bound to clip a private column at, where no range is known.

    The candidates are ``smallest``, ``growth smallest``, ``growth**2 smallest`` and so on. The
    first one is chosen that has only few rows above it, up to noise.

    Parameters
    ----------
    column : array, list or series of numbers, shape (n,)
        The private values. A missing one, and what is not a number among objects, counts as below
        every bound: nothing is refused for what a row holds.
    epsilon : float
        Privacy loss of the search, in nats; finite, above 0. It stands for its shortest decimal.
        Half of what a sum may cost in all is a good share.
    growth : float, default 2
        Each candidate is so many times the one before; 1.01 or more.
    smallest : float, default 2**-20
        First candidate; above 0, public. A larger one makes a search on few rows surer.
    above : float, optional
        About how many rows may lie above the bound; by default 3 / epsilon. With fewer rows
        the search overshoots more often.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Relation that the promise refers to; it holds for both.
    unit : {"row", "person"}, default "row"
        ``"person"`` declares that each row is one person; it is for rows otherwise.
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
        The bound, one of the candidates, as ``value``, with its certificate.

    Raises
    ------
    BadRows
        If the column is not one list of numbers by its type and shape; nothing is charged.
    Overspent
        If it does not fit into the budget.
    ParameterError
        If a parameter cannot be used; nothing is charged.

    Notes
    -----
    Values above the bound exist, as a rule: the search stops where few are left, and its one-sided
    noise stops it early rather than late. A sum of clipped values is then too small. For values
    below 0, search in the negated column, too, and pay for both.

    Examples
    --------
    >>> costs = [3.0, 47.0, 1100.0] * 1000
    >>> find_bound(costs, epsilon=10.0, above=50).value
    2048.0
    """
    sensitivity = proven_sensitivity(
        1.0, neighbours=neighbours, unit=_row_unit(unit), argument=_ARGUMENT
    )
    plan = BoundSearch(sensitivity, epsilon=epsilon, growth=growth, smallest=smallest, above=above)
    check_ledger(ledger, budget, key)
    values = _read_column(column)
    certify(plan, values=1).to_json()  # what it refuses, or cannot be written, is unpaid
    remark = note or "find_bound: a clipping bound for a column"
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
            lambda: _search(plan, values),
            lambda: certify(plan, values=1, charged=paid.terms),
            paid,
            "bound",
        )
    return Release(value=value, certificate=certificate, entry=entry)


def _search(plan: BoundSearch, values: Floats) -> float:
    """Search for the bound of sorted private values."""
    ladder = plan.candidates
    counts = values.size - np.searchsorted(values, ladder, side="right")
    return float(ladder[plan.search(counts)])


def _row_unit(unit: RowUnit) -> Unit | RowUnit:
    """Refuse users: how many rows one has is not bounded here."""
    require_one_of("unit", unit, ("row", "person"))
    return unit


def _describe(plan: BoundSearch, sensitivity: Sensitivity) -> str:
    """Digest what is asked; the column is known by the caller's key."""
    facts = [plan.epsilon, plan.growth, plan.smallest, plan.above]
    whom = [plan.guarantee.neighbours, sensitivity.unit, sensitivity.person]
    text = json.dumps(["find_bound", *facts, *whom])
    return hashlib.sha256(text.encode()).hexdigest()


def _dimensions(shape: object) -> str:
    """Words for the layout of an array that is no single column."""
    if not isinstance(shape, tuple) or len(shape) == 1:
        return ""
    return f" of {len(shape)} dimensions"


def _read_column(column: Any) -> Floats:
    """Read the private values as sorted doubles; refused by types and shape alone, unpaid."""
    held = list(column) if isinstance(column, tuple | range) else column
    known = isinstance(held, list | np.ndarray) or type(held).__name__ == "Series"
    if not known and hasattr(held, "__array__"):
        held = np.asarray(held)
    shape = (0,) if isinstance(held, list) else getattr(held, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 1 or isinstance(held, np.ma.MaskedArray):
        raise BadRows(
            "the column must be one list of real numbers: a list, an array of one dimension or a "
            f"series, got {type(column).__name__}{_dimensions(shape)}; nothing was charged"
        )
    check_numbers(held)
    return read_numbers(held, -math.inf, math.inf)
