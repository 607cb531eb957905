"""Statistics at the end of a chain: drawn by their inverse sensitivity, a known loss a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hushed._decimals import decimal_of, stated_above
from hushed.measurements._losses import Loss, losses_of
from hushed.measurements._record import Measurement
from hushed.mechanisms import InverseSensitivity
from hushed.mechanisms._exponential import bounded_losses
from hushed.spaces import PURE, Distance, Measure, Space
from hushed.statistics import Numeric, Statistic
from hushed.transformations._chain import Step
from hushed.transformations._matching import refuse, take_column

_STEP = "inverse_sensitivity"


def inverse_sensitivity(
    statistic: Statistic,
    *,
    epsilon: float,
    candidates: Sequence[float] | None = None,
    prior: Sequence[float] | None = None,
) -> Step[Measurement]:
    """Release a statistic by its inverse sensitivity, as `hushed.InverseSensitivity` does.

    Parameters
    ----------
    statistic : Statistic
        From `hushed.statistics`. Without ``rows`` it takes a column under rows added or removed;
        with ``rows=N`` a column of N rows under rows replaced.
    epsilon : float
        Privacy loss for each row that differs, in nats; finite, above 0. It stands for its
        shortest decimal.
    candidates, prior : sequence of float, optional
        As the mechanism takes them.

    Returns
    -------
    Step
        From a column of numbers without missing values to one of the candidates; of a mode, from
        any column to one of its categories. A distance of d rows loses ``d epsilon``, and no more
        at any point of the curve than losses in a range of that width.

    Raises
    ------
    ParameterError
        If the mechanism refuses a parameter.

    Notes
    -----
    One row moves each length by at most 1, so d rows move it by at most d, some up and some down,
    and the losses of all candidates lie within ``2 d (epsilon / 2)``. Lengths are whole numbers,
    which the grid of the draw does not move. Proof: docs/worst-case.md.
    """
    mechanism = InverseSensitivity(statistic, epsilon=epsilon, candidates=candidates, prior=prior)

    def build(space: Space) -> Measurement:
        _check_column(statistic, space)
        return Measurement(
            name=f"{_STEP}({statistic.kind}, epsilon={mechanism.epsilon:g})",
            source=space,
            measure=PURE,
            draw=mechanism.draw,
            known=lambda d_in: _compute_losses(mechanism.epsilon, d_in),
            settings=(InverseSensitivity.name, mechanism),
        )

    return Step(_STEP, build)


def _check_column(statistic: Statistic, space: Space) -> None:
    """Refuse a column of other cells, another public size or another relation of neighbours."""
    numeric = isinstance(statistic, Numeric)
    size = take_column(space, _STEP, numeric=numeric, complete=numeric).size
    rows, metric = statistic.rows, space.metric.name
    if rows is None and metric != "symmetric":
        wanted = "rows added or removed, for a statistic without rows=NUMBER"
        raise refuse(_STEP, space, wanted, "to_symmetric()")
    if rows is not None and (size != rows or metric != "change-one"):
        fix = "to_change_one()" if size == rows else f"resize({rows})"
        raise refuse(_STEP, space, f"{rows} rows, of which some are replaced,", fix)


def _compute_losses(epsilon: float, d_in: Distance) -> Mapping[Measure, Loss]:
    """Bound the loss where so many rows differ: d times epsilon, exact as decimals."""
    far = d_in.value == math.inf
    level: Any = math.inf if far else stated_above(decimal_of(epsilon) * Fraction(d_in.value))
    return losses_of(bounded_losses(level))
