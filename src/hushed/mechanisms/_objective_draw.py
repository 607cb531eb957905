"""Objective perturbation: coefficients that minimise a loss with noise in it, by name."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hushed._ground.checks import (
    read_count,
    read_epsilon,
    require_one_of,
    require_positive,
    require_probability,
)
from hushed._ground.numeric import COARSE, SERIES, round_down, round_up
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.mechanisms._arguments import finite_values, require_movement
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._laplace import LaplaceNoise
from hushed.mechanisms._law import Law
from hushed.mechanisms._objective_loss import (
    LOSSES,
    RowLoss,
    compute_jacobian_loss,
    compute_least_penalty,
)
from hushed.mechanisms._objective_solver import Problem, compute_error, minimise
from hushed.privacy_loss import PrivacyProfile, approximate
from hushed.spaces import Norm, SensitivityBound

MOST_ROWS = 1 << 20  # of a table whose number of rows is private
_MOST_COEFFICIENTS = 2048
_SHARE = 2.0**-6  # of epsilon, for the distance between what was computed and the minimum
_LEAST_PENALTY, _LEAST_OF_ROW = 2.0**-30, 2.0**-44  # below, doubles find no minimum in any time
_SHORTENED = 1 - 2.0**-40  # so that the length of a clipped row is not above the bound
# Fields of one family, and what they are elsewhere: other values would be certified, of no meaning.
_OWN = (("classes", "softmax", 2), ("cutoff", "huber", 1.0))
_SPARE = 1 - 2.0**-40  # so that the parts of epsilon add up to less than it


@dataclass(frozen=True, slots=True)
class ObjectiveDraw(Calibrated):
    """Minimise ``sum of losses + penalty / 2 |theta|^2 + <b, theta>`` for Laplace noise b.

    Rows are numbers in [-1, 1] for each feature, of an l1 length of ``clip`` at most, then a 1 if
    there is an ``intercept``, then a label. Proof: docs/objective.md.
    """

    name: ClassVar[str] = "objective"
    law: ClassVar[type[Law]] = LaplaceNoise
    norms: ClassVar[tuple[Norm, ...]] = ("l1",)
    law_name: ClassVar[str] = "objective perturbation: a fit with Laplace"
    outcome: ClassVar[str] = (
        "all {values} coefficients, of features and labels as they were scaled, are within {error} "
        "of those of the same fit without noise, whatever the rows are: the error comes near this "
        "where there are few of them, and is a small part of it where there are many. "
        "PrivateEstimator.error_on measures it on public rows"
    )

    sensitivity: SensitivityBound
    _: KW_ONLY
    epsilon: float
    family: str
    features: int
    rows: int
    penalty: float
    clip: float
    intercept: bool = True
    classes: int = 2
    cutoff: float = 1.0
    reach: float = 64.0

    def __post_init__(self) -> None:
        require_movement(self.sensitivity, "objective perturbation", *self.norms)
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        require_one_of("family", self.family, LOSSES)
        for name in ("penalty", "clip", "cutoff", "reach"):
            object.__setattr__(self, name, require_positive(name, getattr(self, name)))
        read_count("features", self.features, 1)
        read_count("rows", self.rows, 1, 1 << 40)
        read_count("classes", self.classes, 2)
        for name, family, default in _OWN:
            if self.family != family and getattr(self, name) != default:
                raise ParameterError(
                    f"{name} is for family={family!r}: leave it out", parameter=name
                )
        if not isinstance(self.intercept, bool):
            raise ParameterError("intercept must be True or False", parameter="intercept")
        if math.prod(self.shape) > _MOST_COEFFICIENTS:
            raise ParameterError(
                f"the fit has {math.prod(self.shape)} coefficients; objective perturbation takes "
                f"{_MOST_COEFFICIENTS} at most"
            )
        if self.sensitivity.neighbours == "add-remove" and self.rows != MOST_ROWS:
            raise ParameterError(
                f"where the number of rows is private, rows must be {MOST_ROWS}", parameter="rows"
            )
        wanted = self.gradient_bound(self.sensitivity.neighbours)
        if not self.sensitivity.value >= wanted:
            raise ParameterError(f"the sensitivity must be {wanted!r} or more: see gradient_bound")

    @property
    def row_loss(self) -> RowLoss:
        """The loss of a row, with its constants."""
        return LOSSES[self.family](self.classes, self.cutoff)

    @property
    def shape(self) -> tuple[int, int]:
        """Features with the constant one, and margins."""
        return self.features + self.intercept, self.classes if self.family == "softmax" else 1

    @property
    def squared_length(self) -> float:
        """Bound on the squared Euclidean length of a row: numbers of at most 1, and their sum."""
        return round_up(min(self.clip, self.clip**2) + self.intercept)

    def gradient_bound(self, neighbours: str) -> float:
        """L1 distance of the gradients of two neighbours at any point; rounded up."""
        one = self.row_loss.steepest * (self.clip + self.intercept)
        return round_up(one * (2 if neighbours == "replace-one" else 1))

    @property
    def used_penalty(self) -> float:
        """The penalty, raised where the volume would cost more than half of epsilon; rounded up.

        One that is so small that the minimum could not be computed is raised, too.
        """
        level = self.epsilon * (1 - _SHARE) / 2
        least = compute_least_penalty(self.row_loss, self.squared_length, level)
        flat = max(_LEAST_PENALTY, _LEAST_OF_ROW * self.rows)
        return max(self.penalty, round_up(least, SERIES), flat)

    @property
    def noise_epsilon(self) -> float:
        """What is left of epsilon for the noise in the objective; rounded down."""
        volume = compute_jacobian_loss(self.row_loss, self.squared_length, self.used_penalty)
        left = self.epsilon * (1 - _SHARE) - round_up(volume, SERIES)
        return round_down(left * _SPARE, SERIES)

    @property
    def gap_epsilon(self) -> float:
        """Share of epsilon for the noise on what was computed; rounded down."""
        return round_down(self.epsilon * _SHARE * _SPARE, SERIES)

    @property
    def noise(self) -> LaplaceNoise:
        """Law of the noise in the objective."""
        return LaplaceNoise(self.sensitivity.value, self.noise_epsilon)

    @property
    def gap(self) -> float:
        """Distance to the minimum, both moved into the ball of radius ``reach``; l2, public.

        Four times what rounding can do at that radius, so that it is surely reached.
        """
        _, exponent = self.noise.drawn(math.prod(self.shape))
        length = math.sqrt(self.squared_length)
        slopes = self.rows * length * self.row_loss.steepest
        error = compute_error(
            self.row_loss,
            rows=self.rows,
            shape=self.shape,
            length=length,
            penalty=self.used_penalty,
            reach=self.reach,
            noise=self.used_penalty * self.reach + slopes,
            half_step=math.ldexp(1.0, exponent - 1),
        )
        return round_up(4 * error / self.used_penalty, COARSE)

    @property
    def gap_noise(self) -> LaplaceNoise:
        """Law of the noise on what was computed, which is as far from the minimum as ``gap``.

        What moving into the ball rounds is counted as well.
        """
        count = math.prod(self.shape)
        rounded = (count + 8) * 2.0**-52 * self.reach
        moved = 2 * math.sqrt(count) * (self.gap + rounded)
        return LaplaceNoise(round_up(moved, COARSE), self.gap_epsilon)

    @property
    def scale(self) -> float:
        """Scale of the noise in the objective."""
        return self.sensitivity.value / self.noise_epsilon

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: no more is known than epsilon."""
        return approximate(self.epsilon)

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:  # noqa: ARG002
        """Euclidean distance to the fit without noise, exceeded with probability beta at most.

        Notes
        -----
        The gradient at one minimum is b at the other: they are ``|b| / penalty`` apart at most, as
        far as that on a table that says nothing. Rows whose losses curve the objective by c are
        ``|b| / (penalty + c)`` apart; c is private.
        """
        require_probability("beta", beta)
        count = math.prod(self.shape)
        inside = self.noise.error(beta / 2, count) / self.used_penalty
        return round_up(
            math.sqrt(count) * (inside + self.gap_noise.error(beta / 2, count)) + self.gap, COARSE
        )

    def fit(self, public_rows: ArrayLike) -> Floats:
        """Fit without noise: for public rows only."""
        return self._minimise(public_rows, np.zeros(self.shape))

    def draw(self, value: ArrayLike) -> Floats:
        """Draw coefficients by a table of rows: features in order, then the intercept."""
        perturbation = np.asarray(self.noise.draw(np.zeros(self.shape)))
        return np.asarray(self.gap_noise.draw(self._minimise(value, perturbation)))

    def _minimise(self, value: ArrayLike, perturbation: Floats) -> Floats:
        """Minimise the objective of a table with a perturbation, to the distance `gap`."""
        table = finite_values(value)
        p, k = self.shape
        counted = self.sensitivity.neighbours == "replace-one"
        if table.ndim != 2 or table.shape[1] != p + 1 or len(table) > self.rows:
            raise ParameterError("there must be a row of features and a label for each record")
        if counted and len(table) != self.rows:
            raise ParameterError("the table has another number of rows")
        _, exponent = self.noise.drawn(p * k)
        problem = Problem(
            features=self._clip(table[:, :-1]),
            labels=self._read_labels(table[:, -1]),
            loss=self.row_loss,
            penalty=self.used_penalty,
            perturbation=perturbation,
            length=math.sqrt(self.squared_length),
            half_step=math.ldexp(1.0, exponent - 1),
        )
        with np.errstate(all="ignore"):  # a caller's own setting makes an error of a small number
            found = minimise(problem, reach=self.reach, within=self.gap)
        return np.asarray(found.T.ravel())

    def _clip(self, features: Floats) -> Floats:
        """Move each row into the ball; the constant of a row without a known label is 0."""
        own = np.clip(features[:, : self.features], -1.0, 1.0)
        sizes = np.abs(own).sum(axis=1, keepdims=True)
        most = self.clip * _SHORTENED
        kept = own * np.where(sizes > most, most / np.maximum(sizes, most), 1.0)
        return np.hstack([kept, np.clip(features[:, self.features :], 0.0, 1.0)])

    def _read_labels(self, labels: Floats) -> Floats:
        """Make each label one that the loss knows."""
        if self.family == "logistic":
            return np.where(labels > 0, 1.0, -1.0)
        if self.family == "softmax":
            return np.clip(np.rint(labels), 0, self.classes - 1)
        return np.clip(labels, -1.0, 1.0)

    def _values_of(self, shape: tuple[int, ...] | None) -> int:
        count = math.prod(self.shape)
        if shape is not None and len(shape) == 1 and shape != (count,):
            raise ParameterError("the fit has another number of coefficients")
        return count
