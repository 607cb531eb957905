"""The minimum of a perturbed objective, and a proven bound on how far the answer is from it.

The objective is ``sum_i loss(theta; x_i, y_i) + penalty / 2 |theta|^2 + <b, theta>``. It is
strongly convex: where its gradient has length m, the minimum is within ``m / penalty``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count

import numpy as np

from hushed._ground.types import Floats
from hushed.mechanisms._objective_loss import RowLoss

_CHUNK = 256  # rows whose terms are added in doubles; sums of chunks are added exactly
_UNIT = 2.0**-53
_EXP = 64.0  # units by which exp, a sum of few terms and a quotient may be off
_STEPS, _HALVINGS = 100, 40
_AT_ONCE = 1 << 22  # numbers of a part of the second derivatives


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is minimised over matrices of one row for each feature, and what is public of it.

    ``length`` bounds the Euclidean length of every row of features, ``half_step`` half a step of
    the grid on which the perturbation was drawn.
    """

    features: Floats
    labels: Floats
    loss: RowLoss
    penalty: float
    perturbation: Floats
    length: float
    half_step: float


def compute_error(
    loss: RowLoss,
    *,
    rows: int,
    shape: tuple[int, int],
    length: float,
    penalty: float,
    reach: float,
    noise: float,
    half_step: float,
) -> float:
    """Bound how far a gradient in doubles is from that of a continuous perturbation; l2.

    For coefficients of length up to ``reach`` and a perturbation of length up to ``noise``.

    Notes
    -----
    Margins of p products are off by ``(p + 4) u length reach``, in any order of the sum; slopes
    by twice that, and by a few units of their own; a sum over a chunk of k rows by ``k u`` of its
    terms. The last term is the distance of the drawn perturbation to the continuous one, which lies
    anywhere in its cell. A quarter is added for the products of these.
    """
    p, k = shape
    slopes = 2 * (p + 4) * length * reach + _EXP + k
    summed = rows * length * (slopes + (_CHUNK + 2) * loss.steepest)
    others = 8 * (rows * length * loss.steepest + penalty * reach + noise)
    return 1.25 * (_UNIT * (summed + others) + math.sqrt(p * k) * half_step)


def minimise(problem: Problem, *, reach: float, within: float) -> Floats:
    """Find the minimum, moved into the ball of radius ``reach``, to a proven distance.

    Newton's method, and gradient descent where that is stuck.

    Notes
    -----
    It ends. Where a gradient of length m is off by e, a step of descent lowers the objective, which
    has a minimum, by ``(m^2 - e^2) / (2 curvature)`` or more; so m gets as small as e, and the
    bound on the distance as small as a few e over the penalty, which ``within`` is larger than.
    """
    theta = np.zeros((problem.features.shape[1], problem.perturbation.shape[1]))
    for step in count():
        slope = _gradient(problem, theta)
        if _distance(problem, theta, slope, reach) <= within:
            return _into_ball(theta, reach)
        found = _newton(problem, theta, slope) if step < _STEPS else None
        theta = _descend(problem, theta, slope) if found is None else found
    raise AssertionError


def _gradient(problem: Problem, theta: Floats) -> Floats:
    """Gradient of the objective, its sum over rows nearly exact."""
    sums = []
    for start in range(0, len(problem.labels), _CHUNK):
        part = slice(start, start + _CHUNK)
        x, y = problem.features[part], problem.labels[part]
        sums.append((x.T @ problem.loss.slopes(x @ theta, y)).ravel())
    total = [math.fsum(each) for each in zip(*sums, strict=True)] if sums else [0.0] * theta.size
    own = np.array(total).reshape(theta.shape)
    return np.asarray(own + problem.penalty * theta + problem.perturbation)


def _distance(problem: Problem, theta: Floats, slope: Floats, reach: float) -> float:
    """Bound the distance to the minimum, once both are moved into the ball.

    Notes
    -----
    Two points outside of a ball of radius B, at least ``r`` from its centre, are brought together
    by a factor ``B / r`` or more.
    """
    size = _norm(theta)
    error = compute_error(
        problem.loss,
        rows=len(problem.labels),
        shape=(theta.shape[0], theta.shape[1]),
        length=problem.length,
        penalty=problem.penalty,
        reach=size,
        noise=_norm(problem.perturbation),
        half_step=problem.half_step,
    )
    apart = (_norm(slope) + error) / problem.penalty
    return apart * reach / max(reach, size - apart) * (1 + 2.0**-40)


def _newton(problem: Problem, theta: Floats, slope: Floats) -> Floats | None:
    """Take a Newton step, halved until the gradient is shorter; None if it never is."""
    try:
        step = np.linalg.solve(_hessian(problem, theta), slope.ravel()).reshape(theta.shape)
    except np.linalg.LinAlgError:
        return None
    size = _norm(slope)
    for _ in range(_HALVINGS):
        tried = theta - step
        if _norm(_gradient(problem, tried)) < size:
            return np.asarray(tried)
        step = step / 2
    return None


def _hessian(problem: Problem, theta: Floats) -> Floats:
    """Matrix of second derivatives, feature by feature and margin by margin."""
    k = theta.shape[1]
    total = np.zeros((*theta.shape, *theta.shape))
    margins = [(i, j) for i in range(k) for j in range(i, k)]
    rows = max(1, _AT_ONCE // theta.size)
    for start in range(0, len(problem.labels), rows):
        part = slice(start, start + rows)
        x = problem.features[part]
        bent = problem.loss.curvatures(x @ theta, problem.labels[part])
        for i, j in margins:
            own = (x * (bent if bent.ndim == 2 else bent[:, i, j, None])).T @ x
            total[:, i, :, j] += own
            if i != j:
                total[:, j, :, i] += own
    total = total.reshape(theta.size, theta.size)
    total.flat[:: theta.size + 1] += problem.penalty
    return total


def _descend(problem: Problem, theta: Floats, slope: Floats) -> Floats:
    most = max(problem.loss.mean_curvature * problem.loss.rank, 0.5)
    steepest = most * problem.length**2 * len(problem.labels) + problem.penalty
    return np.asarray(theta - slope / steepest)


def _norm(values: Floats) -> float:
    """Euclidean length, also of numbers whose squares are beyond the doubles."""
    return math.hypot(*values.ravel().tolist())


def _into_ball(theta: Floats, reach: float) -> Floats:
    size = _norm(theta)
    return theta if size <= reach else np.asarray(theta * (reach / size))
