"""Statistics at the end of a chain, whose mechanisms lose a known amount for each row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hushed._ground.calls import called_as
from hushed._ground.decimals import decimal_of, stated_above
from hushed.accounting._pure import pure_zcdp
from hushed.measurements._losses import Loss, losses_of, pure_curve
from hushed.measurements._record import Measurement
from hushed.mechanisms import InverseSensitivity, Smooth
from hushed.mechanisms._exponential import bounded_losses
from hushed.mechanisms._smooth import HeavyNoise
from hushed.spaces import PRIVACY_PROFILE, PURE, ZCDP, Distance, Measure, Space
from hushed.statistics import Numeric, Statistic
from hushed.transformations._chain import Step
from hushed.transformations._matching import refuse, take_column

_STEP = "inverse_sensitivity"


@called_as(
    "hs.measurements.inverse_sensitivity(hs.statistics.median(low=0, high=100), epsilon=1.0)"
)
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
        _check_column(_STEP, statistic, space)
        return Measurement(
            name=f"{_STEP}({statistic.kind}, epsilon={mechanism.epsilon:g})",
            source=space,
            measure=PURE,
            draw=mechanism.draw,
            known=lambda d_in: losses_of(bounded_losses(_add_rows(mechanism.epsilon, d_in))),
            settings=(InverseSensitivity.name, mechanism),
        )

    return Step(_STEP, build)


@called_as("hs.measurements.smooth(hs.statistics.median(rows=1000, low=0, high=100), epsilon=1.0)")
def smooth(
    statistic: Numeric,
    *,
    epsilon: float,
    noise: HeavyNoise = "lomax",
    tail: int | None = None,
    smoothing: float | None = None,
) -> Step[Measurement]:
    """Release a statistic with noise for its smooth sensitivity, as `hushed.Smooth` does.

    Parameters
    ----------
    statistic : Quantile, TrimmedMean or InterquartileRange
        From `hushed.statistics`. Without ``rows`` it takes a column under rows added or removed;
        with ``rows=N`` a column of N rows under rows replaced.
    epsilon : float
        Privacy loss for each row that differs, in nats; finite, above 0. It stands for its
        shortest decimal.
    noise : {"lomax", "t2"}, default "lomax"
        As the mechanism takes it.
    tail : int, optional
        As the mechanism takes it.
    smoothing : float, optional
        As the mechanism takes it.

    Returns
    -------
    Step
        From a column of numbers without missing values to a number in the range of the statistic.
        A distance of d rows loses ``d epsilon``.

    Raises
    ------
    ParameterError
        If the mechanism refuses a parameter.

    Notes
    -----
    Two tables of a space at distance d are joined by d steps of one row, through tables of the
    same space, and each step is pure epsilon whatever the rows are. Proof: docs/worst-case.md.
    """
    mechanism = Smooth(statistic, epsilon=epsilon, noise=noise, tail=tail, smoothing=smoothing)

    def build(space: Space) -> Measurement:
        _check_column(Smooth.name, statistic, space)
        return Measurement(
            name=f"{Smooth.name}({statistic.kind}, epsilon={mechanism.epsilon:g})",
            source=space,
            measure=PURE,
            draw=mechanism.draw,
            known=lambda d_in: _compute_pure(_add_rows(mechanism.epsilon, d_in)),
            settings=(Smooth.name, mechanism),
        )

    return Step(Smooth.name, build)


def _check_column(step: str, statistic: Statistic, space: Space) -> None:
    """Refuse a column of other cells, another public size or another relation of neighbours."""
    numeric = isinstance(statistic, Numeric)
    size = take_column(space, step, numeric=numeric, complete=numeric).size
    rows, metric = statistic.rows, space.metric.name
    if rows is None and metric != "symmetric":
        wanted = "rows added or removed, for a statistic without rows=NUMBER"
        raise refuse(step, space, wanted, "to_symmetric()")
    if rows is not None and (size != rows or metric != "change-one"):
        fix = "to_change_one()" if size == rows else f"resize({rows})"
        raise refuse(step, space, f"{rows} rows, of which some are replaced,", fix)


def _add_rows(epsilon: float, d_in: Distance) -> Any:
    """Bound the loss where so many rows differ: d times epsilon, exact as decimals."""
    if d_in.value == math.inf:
        return math.inf
    return stated_above(decimal_of(epsilon) * Fraction(d_in.value))


def _compute_pure(level: float) -> Mapping[Measure, Loss]:
    """State a pure loss as every measure does."""
    known: dict[Measure, Any] = {PURE: level, PRIVACY_PROFILE: pure_curve(level)}
    if 0 < level < math.inf:
        known[ZCDP] = pure_zcdp(level)
    return losses_of(known)
