"""Sensitivities that are proven by an argument."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, get_args

import numpy as np

from hushed._ground.checks import require_one_of
from hushed._ground.decimals import read
from hushed._ground.numeric import finite_above
from hushed.errors import ParameterError
from hushed.guarantee import Neighbours, RowUnit, Unit
from hushed.sensitivity._record import Sensitivity
from hushed.spaces import Norm


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
        value=_bound(value),
        norm=norm,
        neighbours=neighbours,
        unit="row" if unit == "person" else unit,
        argument=argument,
        person=unit == "person",
    )


def _bound(value: Any) -> float:
    """Read a bound as a double that is not below it: it is compared with rows, so no decimal."""
    if isinstance(value, Rational | Decimal):
        try:
            return finite_above(Fraction(value))
        except (ValueError, OverflowError):
            raise ParameterError(
                f"value must be finite, got {value!r}", parameter="value"
            ) from None
    if isinstance(value, float | int | np.number) and not math.isfinite(value):
        raise ParameterError(f"value must be finite, got {value!r}", parameter="value")
    return read("value", value, up=True)
