"""Defects in the noise itself: scale, shape, independence, support, the bits of a double."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.zoo._curves import (
    Truth,
    certain_truth,
    gaussian_delta,
    gaussian_truth,
    geometric_tail,
)
from hushed.zoo._draws import Noise, Noisy, draw_geometric, every_row, first
from hushed.zoo._events import compare
from hushed.zoo._record import Rows
from hushed.zoo.defects._defect import Defect, Versions, laplace_on

Values = NDArray[np.float64]
Shape = tuple[int, ...]
_GRID = 2.0**-20
_SEED = 20120
_WIDTH = 3  # of the noise that is clipped
_DELTA = 0.01


def _draw_textbook_laplace(rng: np.random.Generator, shape: Shape, /, *, scale: float) -> Values:
    uniform = 1 - rng.random(shape)
    sign = np.where(rng.random(shape) < 0.5, -scale, scale)
    return np.asarray(sign * np.log(uniform))


def _draw_known(_rng: np.random.Generator, shape: Shape, /, *, scale: float) -> Values:
    return np.full(shape, _known_noise(scale))


def _draw_one_sided(rng: np.random.Generator, shape: Shape, /, *, decay: float) -> Values:
    return np.asarray(np.floor(rng.standard_exponential(shape) / decay))


def _draw_clipped(rng: np.random.Generator, shape: Shape, /, *, decay: float) -> Values:
    return np.clip(draw_geometric(rng, shape, decay=decay), -_WIDTH, _WIDTH)


def _known_noise(scale: float) -> float:
    return float(np.random.default_rng(_SEED).laplace(scale=scale))


def _first_on_grid(rows: Rows, /) -> float:
    return float(np.round(rows[0] / _GRID) * _GRID)


def _first_times(rows: Rows, /, *, factor: float) -> float:
    return float(factor * rows[0])


def _gap_of_first_bins(outputs: Values, /) -> Values:
    return np.asarray(np.abs(outputs[:, 0] - outputs[:, 1] - 1))


def _finer_than_doubles_near_one(outputs: Values, /) -> NDArray[np.bool_]:
    scaled = outputs * 2.0**53
    return np.asarray(scaled != np.floor(scaled))


def _geometric_truth(epsilon: float) -> Truth:
    return Truth(epsilon, partial(_geometric_delta, decay=epsilon))


def _geometric_delta(epsilon: float, *, decay: float) -> float:
    """Divergence of two-sided geometric noise whose centre moves by 1."""
    if epsilon >= decay:
        return 0.0
    return 1 - geometric_tail(decay, 1) - math.exp(epsilon) * geometric_tail(decay, 1)


def _grid_delta(epsilon: float, *, epsilon0: float) -> float:
    """Divergence of two-sided geometric noise on the grid, moved by 1."""
    steps = round(1 / _GRID)
    decay = epsilon0 * _GRID
    if epsilon >= epsilon0:
        return 0.0
    # The ratio at grid point j of 0..steps is exp(decay (steps - 2j)): the event is j <= last.
    last = math.ceil((steps - epsilon / decay) / 2) - 1
    inside = 1 - geometric_tail(decay, last + 1)
    return inside - math.exp(epsilon) * geometric_tail(decay, steps - last)


def _clipped_noise_delta(epsilon: float, *, decay: float) -> float:
    """Divergence of clipped two-sided geometric noise on 0 from that on 1."""
    end = geometric_tail(decay, _WIDTH)
    inner = [
        geometric_tail(decay, z) - geometric_tail(decay, z + 1) for z in range(1 - _WIDTH, _WIDTH)
    ]
    law = np.array([end, *inner, end])
    p, q = np.append(law, 0.0), np.insert(law, 0, 0.0)
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def _squared_deviation(epsilon: float) -> Versions:
    """Scale the rows so that the right standard deviation is 1/2, of which the variance is 1/4."""
    deviation = 0.5
    movement = deviation / _analytic_deviation(epsilon)
    scaled = partial(_first_times, factor=movement)
    return Versions(
        faulty=(
            Noisy(scaled, Noise("normal", deviation**2)),
            gaussian_truth(movement / deviation**2),
        ),
        fixed=(Noisy(scaled, Noise("normal", deviation)), gaussian_truth(movement / deviation)),
        # where the likelihood ratio of the faulty one is exp(epsilon)
        event=compare(">", movement / 2 + epsilon * deviation**4 / movement),
    )


def _analytic_deviation(epsilon: float) -> float:
    """Find the standard deviation for movement 1, rounded up by one part in 10^9."""
    from scipy.optimize import brentq  # noqa: PLC0415

    root = brentq(lambda s: gaussian_delta(epsilon, ratio=1 / s) - _DELTA, 1e-2, 1e3, xtol=1e-12)
    return float(root) * (1 + 1e-9)


NAIVE_LAPLACE = Defect(
    name="Laplace on doubles",
    pair=([0.0], [1.0]),
    at=lambda e: Versions(
        faulty=(Noisy(first, partial(_draw_textbook_laplace, scale=1 / e)), Truth(math.inf, None)),
        fixed=(
            Noisy(_first_on_grid, partial(draw_geometric, decay=e * _GRID, unit=_GRID)),
            Truth(e, partial(_grid_delta, epsilon0=e)),
        ),
        event=_finer_than_doubles_near_one,
    ),
    output="double, shape (size,)",
    relation="every-answer",
    doubles=True,
    source=(
        "Mironov, CCS 2012; Haney et al., arXiv 2207.13793 (diffprivlib, SmartNoise Core, OpenDP)"
    ),
    why=(
        "1 + noise is rounded to a multiple of 2^-53 at least, also where it cancels; noise "
        "below 1/2 in size mostly has finer bits. The mass, near (1 - exp(-epsilon/2))/2 or "
        "more, depends on the logarithm's last bits and is not given in closed form"
    ),
)

NOISE = (
    Defect(
        name="Laplace: scale epsilon for 1/epsilon",
        pair=([1.0], [0.0]),
        at=lambda e: Versions(
            faulty=laplace_on(first, e),
            fixed=laplace_on(first, 1 / e),
            event=compare(">=", 1.0),
        ),
        share=0.5,  # 1 is its own reciprocal
        relation="every-answer",
        source="Ding, Wang, Wang, Zhang, Kifer, CCS 2018 (histogram)",
        why="the loss is 1/epsilon",
    ),
    Defect(
        name="Gaussian: variance passed as standard deviation",
        pair=([1.0], [0.0]),
        at=_squared_deviation,
        delta=_DELTA,
        output="a fraction of the row plus noise, shape (size,)",
        relation="every-answer",
        source="opendp/smartnoise-core issue 316 (a squared noise scale); defect class",
        why="a standard deviation below 1 shrinks when it is squared",
    ),
    Defect(
        name="histogram: one noise for all bins",
        pair=([2.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
        at=lambda e: Versions(
            faulty=(Noisy(every_row, Noise("laplace", 1 / e), columns=1), certain_truth(1.0)),
            fixed=laplace_on(every_row, 1 / e, each=e),
            event=compare("<", 1e-9, of=_gap_of_first_bins),
        ),
        output="bins, shape (size, 3)",
        relation="one-answer",
        neighbours="add-remove",
        source="jax-ml/jax pull request 3646 (key reuse in an example of private training)",
        why="differences between bins carry no noise",
    ),
    Defect(
        name="Laplace: seed reused between calls",
        pair=([1.0], [0.0]),
        at=lambda e: Versions(
            faulty=(Noisy(first, partial(_draw_known, scale=1 / e)), certain_truth(1.0)),
            fixed=laplace_on(first, 1 / e, each=e),
            event=compare("==", 1.0 + _known_noise(1 / e)),
        ),
        relation="every-answer",
        source="opendp/opendp issue 2934 (generator state copied into forked processes)",
        why="the noise is a constant that anybody can draw again",
    ),
    Defect(
        name="count: one-sided geometric noise",
        pair=([5.0], [6.0]),
        at=lambda e: Versions(
            faulty=(
                Noisy(first, partial(_draw_one_sided, decay=e)),
                certain_truth(1 - math.exp(-e)),
            ),
            fixed=(Noisy(first, partial(draw_geometric, decay=e)), _geometric_truth(e)),
            event=compare("<=", 5.0),
        ),
        output="count, shape (size,)",
        relation="every-answer",
        source="defect class: noise that never lowers a count",
        why="a count below the true one cannot occur",
    ),
    Defect(
        name="count: noise clipped in place of the output",
        pair=([0.0], [1.0]),
        at=lambda e: Versions(
            faulty=(
                Noisy(first, partial(_draw_clipped, decay=e)),
                Truth(math.inf, partial(_clipped_noise_delta, decay=e)),
            ),
            fixed=(
                Noisy(
                    first,
                    partial(draw_geometric, decay=e),
                    after=partial(np.clip, a_min=0.0, a_max=float(_WIDTH)),
                ),
                _geometric_truth(e),
            ),
            event=compare("<=", -float(_WIDTH)),
        ),
        output="whole number, shape (size,)",
        relation="every-answer",
        source="opendp/smartnoise-core pull request 318 (noise bounded by the bounds of the count)",
        why="bounded noise has ends that the neighbour does not reach",
    ),
    NAIVE_LAPLACE,
)
