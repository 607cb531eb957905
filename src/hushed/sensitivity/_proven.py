"""Sensitivities that are proven by an argument."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import get_args

from hushed._ground.calls import called_as
from hushed._ground.checks import read_bound, require_one_of
from hushed._ground.numeric import finite_above, root_above
from hushed._ground.printing import format_exactly
from hushed.errors import ParameterError
from hushed.guarantee import Neighbours, RowUnit, Unit
from hushed.sensitivity._record import Sensitivity
from hushed.spaces import NORMS, Norm
from hushed.statistics import Mode, Numeric
from hushed.statistics._constructors import KINDS


@called_as('hs.proven_sensitivity(1.0, argument="one row changes a count by 1")')
def proven_sensitivity(
    value: float,
    norm: Norm = "l1",
    *,
    neighbours: Neighbours = "replace-one",
    unit: Unit | RowUnit = "row",
    argument: str,
) -> Sensitivity:
    """State a sensitivity that you can prove.

    Parameters
    ----------
    value : float
        Bound on the movement of the answer over all neighbouring tables, as computed in floating
        point; finite, above 0.
    norm : {"l1", "l2", "sup", "range"}, default "l1"
        Norm in which the movement is bounded.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        Relation between the tables.
    unit : {"row", "user", "person"}, default "row"
        What is replaced, added or removed between them: one row, or all rows of one user.
        ``"person"`` declares that each row is one person, and is for rows otherwise.
    argument : str
        The proof, or where to find it; goes into the certificate.

    Returns
    -------
    Sensitivity
        With gamma = 0.

    Raises
    ------
    ParameterError
        If the value is not finite or negative, or the argument is empty.

    Examples
    --------
    >>> proven_sensitivity(1 / 500, "l1", argument="mean of 500 values in [0, 1]").gamma
    0.0
    """
    require_one_of("unit", unit, (*get_args(Unit), "person"))
    return Sensitivity(
        value=read_bound("value", value),
        norm=norm,
        neighbours=neighbours,
        unit="row" if unit == "person" else unit,
        argument=argument,
        person=unit == "person",
    )


@called_as("hs.global_sensitivity(hs.statistics.mean(rows=1000, low=0, high=100))")
def global_sensitivity(statistic: Numeric | Mode, norm: Norm | None = None) -> Sensitivity:
    """Bound on the movement of a statistic on the worst table of its range.

    Parameters
    ----------
    statistic : Numeric or Mode
        Such as `hushed.statistics.mean`; it is released as a function of the rows. Of a mode it is
        the numbers of rows of its categories, by which hs.NoisyMax, hs.TopK or hs.Exponential
        choose.
    norm : {"l1", "l2", "sup", "range"}, optional
        Norm in which the movement is bounded. Of one number l1, l2 and sup are equal, and l1 is
        taken; of a mode it is sup, in which a row moves no number by more than 1.

    Returns
    -------
    Sensitivity
        With gamma = 0, and with the neighbours and the unit of the statistic. No other function is
        released with it.

    Raises
    ------
    ParameterError
        If it is no statistic of hushed, or the norm is none of it.

    Notes
    -----
    The answer is rounded to the nearest double, on two neighbouring tables, which moves it by no
    more than one unit in the last place of the largest answer: that is added.

    Examples
    --------
    >>> from hushed import statistics
    >>> s = statistics.mean(rows=1000, low=0, high=365)
    >>> round(global_sensitivity(s).value, 6)
    0.365
    """
    # A subclass may compute anything: it is none of ours.
    if type(statistic) is Mode:
        return _bound_counts(statistic, "sup" if norm is None else norm)
    if not isinstance(statistic, Numeric) or type(statistic) not in KINDS.values():
        raise ParameterError(
            "global_sensitivity takes a statistic such as hs.statistics.mean(...), got "
            f"{type(statistic).__name__}; of a function state what you can prove, with "
            "hs.proven_sensitivity",
            parameter="statistic",
        )
    kind = "mean" if getattr(statistic, "trim", None) == 0 else statistic.kind
    step = math.ulp(max(map(abs, statistic.span)))
    known = proven_sensitivity(
        finite_above(Fraction(statistic.global_sensitivity) + Fraction(step)),
        "l1" if norm is None else norm,
        neighbours=statistic.neighbours,
        unit=statistic.unit,
        argument=f"global sensitivity of the {kind} of rows that are moved into "
        f"[{format_exactly(statistic.low)}, {format_exactly(statistic.high)}]",
    )
    return replace(known, statistic=statistic)


def _bound_counts(statistic: Mode, norm: Norm) -> Sensitivity:
    """Bound the movement of numbers of rows: a replaced row leaves one, and enters another."""
    require_one_of("norm", norm, NORMS)
    touched = Fraction(1 if statistic.rows is None else 2)
    moved = {"l1": touched, "l2": root_above(int(touched)), "sup": Fraction(1), "range": touched}
    known = proven_sensitivity(
        finite_above(moved[norm]),
        norm,
        neighbours=statistic.neighbours,
        unit=statistic.unit,
        argument=f"a row counts for one of {len(statistic.categories)} public categories, or none",
    )
    return replace(known, statistic=statistic)
