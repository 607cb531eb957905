"""Losses of objective perturbation: their gradients, curvatures and the constants of the proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hushed._ground.types import Floats

Slopes = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLoss:
    """Loss of one row as a function of its margins, one for each column of the coefficients.

    ``slopes`` are its derivatives by the margins, ``curvatures`` the second ones: for each row a
    number, or a matrix. ``steepest`` bounds the sum of the absolute slopes; the matrix of second
    derivatives has at most ``rank`` eigenvalues above 0, whose mean is at most ``mean_curvature``.
    """

    slopes: Slopes
    curvatures: Slopes
    steepest: float
    rank: int
    mean_curvature: float


def make_logistic() -> RowLoss:
    """``log(1 + exp(-y t))`` of a label y in {-1, 1}: slope below 1, curvature 1/4 at most."""
    return RowLoss(
        slopes=lambda t, y: -y[:, None] * _logistic(-y[:, None] * t),
        curvatures=lambda t, _: _logistic(t) * _logistic(-t),
        steepest=1.0,
        rank=1,
        mean_curvature=0.25,
    )


def make_softmax(classes: int) -> RowLoss:
    """``-log p_y`` of one of K classes, p the softmax of K margins.

    Notes
    -----
    The slopes are ``p - e_y``, whose absolute values add up to ``2 (1 - p_y)``. The curvature is
    ``diag(p) - p p'``: its trace ``1 - sum p^2`` is at most ``1 - 1/K``, and its rank ``K - 1``.
    """

    def slopes(t: Floats, y: Floats) -> Floats:
        return np.asarray(_softmax(t) - (y[:, None] == np.arange(classes)))

    def curvatures(t: Floats, _: Floats) -> Floats:
        p = _softmax(t)
        return np.asarray(p[:, :, None] * np.eye(classes) - p[:, :, None] * p[:, None, :])

    return RowLoss(
        slopes=slopes,
        curvatures=curvatures,
        steepest=2.0,
        rank=classes - 1,
        mean_curvature=1 / classes,
    )


def make_huber(cutoff: float) -> RowLoss:
    """``(t - y)^2 / 2``, continued by its tangents where the residual is beyond a cutoff."""
    return RowLoss(
        slopes=lambda t, y: np.asarray(np.clip(t - y[:, None], -cutoff, cutoff)),
        curvatures=lambda t, y: (np.abs(t - y[:, None]) <= cutoff).astype(np.float64),
        steepest=cutoff,
        rank=1,
        mean_curvature=1.0,
    )


LOSSES: Mapping[str, Callable[[int, float], RowLoss]] = {
    "logistic": lambda classes, cutoff: make_logistic(),  # noqa: ARG005
    "softmax": lambda classes, cutoff: make_softmax(classes),  # noqa: ARG005
    "huber": lambda classes, cutoff: make_huber(cutoff),  # noqa: ARG005
}


def _logistic(t: Floats) -> Floats:
    """``1 / (1 + exp(-t))``, to a few units in the last place on either side."""
    small = np.exp(-np.abs(t))
    return np.asarray(np.where(t >= 0, 1.0, small) / (1.0 + small))


def _softmax(t: Floats) -> Floats:
    weights = np.exp(t - t.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def compute_jacobian_loss(loss: RowLoss, squared_length: float, penalty: float) -> float:
    """Compute what the change of the volume costs: ``r log(1 + c s / penalty)``; not rounded.

    Notes
    -----
    One row adds a matrix A of r eigenvalues with trace ``r c s`` at most to a Hessian H, all of
    whose eigenvalues are ``penalty`` or more: ``log det(1 + H^-1 A) <= r log(1 + tr(H^-1 A) / r)``.
    """
    return loss.rank * math.log1p(loss.mean_curvature * squared_length / penalty)


def compute_least_penalty(loss: RowLoss, squared_length: float, level: float) -> float:
    """Compute the penalty that keeps the cost of the volume within a level; not rounded."""
    small = math.exp(-level / loss.rank)  # not exp(level), which leaves the doubles
    return loss.mean_curvature * squared_length * small / -math.expm1(-level / loss.rank)
