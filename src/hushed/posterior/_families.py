"""Known families: rows are moved into a public range, so that the range of the likelihood follows.

Their log likelihoods are ``x a(theta) - b(theta)``, linear in the row x, so that the largest
difference between two rows is that between the ends of the range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.checks import read_finite, require_positive
from hushed._ground.numeric import round_up
from hushed._ground.printing import as_given, format_exactly
from hushed._ground.stops import watch_stops
from hushed._ground.types import Floats
from hushed.errors import BadFunction, ParameterError
from hushed.guarantee import Neighbours, RowUnit
from hushed.posterior._candidates import choose_step, read_points
from hushed.posterior._mechanism import Posterior
from hushed.posterior._scores import BITS, STEEPEST
from hushed.sensitivity import proven_sensitivity

_ROUNDING = 2.0**-48  # share of the largest terms that their difference may be wrong by


@dataclass(frozen=True, slots=True)
class Family:
    """Log likelihood of one number, moved into ``[low, high]``; what is no number counts as low."""

    kind: Literal["bernoulli", "normal mean", "poisson"]
    low: float
    high: float
    std: float = 1.0

    def __call__(self, row: Any, points: Floats) -> Floats:
        """Log likelihoods of a table of one row of one number, up to a constant."""
        _require_one_column(row)
        slopes, terms = self.split(points)
        return self.read(row) * slopes - terms

    def read(self, row: Any) -> float:
        """Read the number of a row."""
        with watch_stops() as is_stop:
            try:
                value = float(np.asarray(row, dtype=np.float64).reshape(-1)[0])
            except BaseException as cause:  # whatever it is, it is no number
                if is_stop(cause):
                    raise
                value = math.nan
        return self.low if math.isnan(value) else min(max(value, self.low), self.high)

    def split(self, points: Floats) -> tuple[Floats, Floats]:
        """Factor of the row, and what does not depend on it."""
        if self.kind == "bernoulli":
            return np.log(points) - np.log1p(-points), -np.log1p(-points)
        if self.kind == "poisson":
            return np.log(points), points
        return points / (self.std * self.std), points**2 / (2 * (self.std * self.std))

    def list_ends(self, points: Floats) -> list[Floats]:
        """Log likelihoods of the two ends of the range, between which those of all rows lie."""
        slopes, terms = self.split(points)
        return [end * slopes - terms for end in (self.low, self.high)]

    def bound_range(self, points: Floats, neighbours: Neighbours) -> float:
        """Range of what a row moves; rounded up."""
        slopes, terms = self.split(points)
        ends = self.list_ends(points)
        largest = max(abs(self.low), abs(self.high)) * np.abs(slopes).max() + np.abs(terms).max()
        moved = [ends[1] - ends[0]] if neighbours == "replace-one" else ends
        widest = max(float(np.ptp(each)) for each in moved)
        return round_up(widest + _ROUNDING * float(largest))

    def describe(self) -> str:
        """Say which family it is."""
        spread = ""
        if self.kind == "normal mean":
            spread = f" of standard deviation {format_exactly(self.std)}"
        ends = f"[{format_exactly(self.low)}, {format_exactly(self.high)}]"
        return f"{self.kind}{spread}, rows moved into {ends}"


@called_as("hs.posterior.bernoulli([0.1, 0.2, 0.3], epsilon=1.0)")
def bernoulli(
    candidates: Sequence[float],
    *,
    epsilon: float,
    prior: tuple[float, float] = (1.0, 1.0),
    neighbours: Neighbours = "replace-one",
    unit: RowUnit = "row",
) -> Posterior:
    """Posterior of the probability of a 1 among rows of 0 and 1, with a Beta prior.

    Parameters
    ----------
    candidates : sequence of float
        Probabilities to choose from, in (0, 1). Wider ones make each row tell more, and cost
        weight.
    epsilon : float
        Privacy loss of a draw.
    prior : tuple of float, default (1, 1)
        The two parameters of a Beta distribution.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How two tables differ.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    Posterior
        Rows are moved into [0, 1].

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    """
    points = read_points(candidates)
    if points.ndim != 1 or not ((points > 0) & (points < 1)).all():
        raise ParameterError("candidates must be in (0, 1)", parameter="candidates")
    a, b = (require_positive("prior", each) for each in _read_pair(prior))
    weights = (a - 1) * np.log(points) + (b - 1) * np.log1p(-points)
    return _build(Family("bernoulli", 0.0, 1.0), points, weights, epsilon, neighbours, unit)


@called_as("hs.posterior.normal_mean([0.0, 5.0, 10.0], epsilon=1.0, std=2.0, low=0, high=10)")
def normal_mean(
    candidates: Sequence[float],
    *,
    epsilon: float,
    std: float,
    low: float,
    high: float,
    prior: tuple[float, float] | None = None,
    neighbours: Neighbours = "replace-one",
    unit: RowUnit = "row",
) -> Posterior:
    """Posterior of the mean of normal rows of known standard deviation, with a normal prior.

    Parameters
    ----------
    candidates : sequence of float
        Means to choose from.
    epsilon : float
        Privacy loss of a draw.
    std : float
        Standard deviation of a row; above 0.
    low, high : float
        Public range that rows are moved into.
    prior : tuple of float, optional
        Mean and standard deviation of a normal prior; even by default.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How two tables differ.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    Posterior
        Of the mean, as if the rows had not been moved into their range.

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    """
    points = read_points(candidates)
    spread = require_positive("std", std)
    low, high = read_finite("low", low), read_finite("high", high)
    if points.ndim != 1 or not low < high:
        raise ParameterError("candidates must be numbers, and low below high", parameter="low")
    weights = np.zeros(len(points))
    if prior is not None:
        first, second = _read_pair(prior)
        centre, wide = read_finite("prior", first), require_positive("prior", second)
        weights = -((points - centre) ** 2) / (2 * wide**2)
    family = Family("normal mean", low, high, spread)
    return _build(family, points, weights, epsilon, neighbours, unit)


@called_as("hs.posterior.poisson([1.0, 2.0, 3.0], epsilon=1.0, high=10)")
def poisson(
    candidates: Sequence[float],
    *,
    epsilon: float,
    high: float,
    prior: tuple[float, float] | None = None,
    neighbours: Neighbours = "replace-one",
    unit: RowUnit = "row",
) -> Posterior:
    """Posterior of the rate of Poisson counts, with a Gamma prior.

    Parameters
    ----------
    candidates : sequence of float
        Rates to choose from, above 0.
    epsilon : float
        Privacy loss of a draw.
    high : float
        Public bound that counts are moved below; above 0.
    prior : tuple of float, optional
        Shape and rate of a Gamma prior; even by default.
    neighbours : {"replace-one", "add-remove"}, default "replace-one"
        How two tables differ.
    unit : {"row", "person"}, default "row"
        Whether each row is declared to be one person.

    Returns
    -------
    Posterior
        Rows are moved into [0, high].

    Raises
    ------
    ParameterError
        If a parameter leaves its range.
    """
    points = read_points(candidates)
    if points.ndim != 1 or not (points > 0).all():
        raise ParameterError("candidates must be above 0", parameter="candidates")
    weights = np.zeros(len(points))
    if prior is not None:
        shape, rate = (require_positive("prior", each) for each in _read_pair(prior))
        weights = (shape - 1) * np.log(points) - rate * points
    family = Family("poisson", 0.0, require_positive("high", high))
    return _build(family, points, weights, epsilon, neighbours, unit)


def _check_candidates(family: Family, points: Floats, neighbours: Neighbours) -> float:
    """Bound the range; refuses candidates of which the rows say far less than of each other.

    How steep a row is is convex in the row, so that none is steeper than those at the ends.
    """
    with np.errstate(all="ignore"):
        bound = family.bound_range(points, neighbours)
        steepest = max(float(np.ptp(each)) for each in family.list_ends(points))
    if not 0 < bound < math.inf or not steepest <= STEEPEST / 2 * choose_step(bound, BITS):
        raise ParameterError(
            f"the candidates, from {points.min():g} to {points.max():g}, and rows in "
            f"[{family.low:g}, {family.high:g}] do not suit each other: what a row changes is lost "
            "in rounding; choose candidates nearer to the rows",
            parameter="candidates",
        )
    return bound


def _require_one_column(row: Any) -> None:
    """Refuse a table of several columns, which is known before a row is; rows of a list are not."""
    columns = 1
    if not isinstance(row, list):
        names = getattr(getattr(row, "dtype", None), "names", None)
        columns = len(names) if names else math.prod(np.shape(row)[1:])
    if columns != 1:
        raise BadFunction(f"this family is for one number a row, not {columns}: give its column")


def _read_pair(prior: Any) -> tuple[Any, Any]:
    """Read the two parameters of a prior."""
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise ParameterError(f"prior must be two numbers, got {as_given(prior)}", parameter="prior")
    return prior[0], prior[1]


def _build(
    family: Family,
    points: Floats,
    weights: Floats,
    epsilon: float,
    neighbours: Neighbours,
    unit: RowUnit,
) -> Posterior:
    """Posterior of a family, whose prior is given by logarithms of weights."""
    bound = _check_candidates(family, points, neighbours)
    proven = proven_sensitivity(
        bound,
        "range",
        neighbours=neighbours,
        unit=unit,
        argument=f"log likelihood of a family that is linear in the row: {family.describe()}",
    )
    flat = not weights.any()
    return Posterior(
        family,
        points,
        epsilon=epsilon,
        prior=None if flat else np.exp(weights - weights.max()),
        sensitivity=proven,
    )
