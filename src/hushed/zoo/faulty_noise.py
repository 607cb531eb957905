"""Defects in the noise itself: scale, shape, independence, support, the bits of a double."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.guarantee import Guarantee
from hushed.zoo.curves import constant, laplace_delta
from hushed.zoo.events import above, at_most, equal
from hushed.zoo.gaussian import gaussian_curve
from hushed.zoo.integers import geometric_tail, two_sided_geometric
from hushed.zoo.record import Rows
from hushed.zoo.twins import Twins, shifted, twins

__all__ = ["naive_laplace", "noise_twins"]

_GRID = 2.0**-20
_SEED = 20120
_NOISE_WIDTH = 3


def noise_twins(epsilon: float) -> list[Twins]:
    """All twins whose defect is in the noise.

    Parameters
    ----------
    epsilon : float
        Claimed epsilon of every twin; above 0.

    Returns
    -------
    list of tuple of (faulty, corrected)
        The twins. The one with the scale upside down claims half of it, because 1 is its own
        reciprocal.
    """
    return [
        _scale_upside_down(epsilon / 2),
        _variance_for_deviation(epsilon),
        _noise_shared(epsilon),
        _seed_reused(epsilon),
        _one_sided(epsilon),
        _noise_clipped(epsilon),
        naive_laplace(epsilon),
    ]


def naive_laplace(epsilon: float = 0.1) -> Twins:
    """Laplace noise by the inverse distribution function on doubles, beside a grid.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.

    Returns
    -------
    tuple of (faulty, corrected)
        Outputs are doubles, shape ``(size,)``. Near 0 the noise has finer bits than any sum of 1
        and noise: an output that is not a multiple of 2^-53 cannot come from 1. The corrected one
        rounds to a grid of 2^-20 and adds two-sided geometric noise.
    """
    return twins(
        "Laplace on doubles",
        faulty=partial(_textbook_laplace, scale=1 / epsilon),
        corrected=partial(_grid_laplace, epsilon=epsilon),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pair=(np.array([0.0]), np.array([1.0])),
        event=_finer_than_grid,
        event_words="the output is not a multiple of 2^-53",
        output="double, shape (size,)",
        source=(
            "Mironov, CCS 2012; Haney et al., arXiv 2207.13793 "
            "(diffprivlib, SmartNoise Core, OpenDP)"
        ),
        argument=(
            "1 + noise is rounded to a multiple of 2^-53 at least, also where it cancels; noise "
            "below 1/2 in size mostly has finer bits. The mass, near (1 - exp(-epsilon/2))/2 or "
            "more, depends on the logarithm's last bits and is not given in closed form"
        ),
        faulty_truth=(math.inf, None),
        corrected_truth=(epsilon, partial(_grid_delta, epsilon0=epsilon)),
    )


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


def _scale_upside_down(epsilon: float) -> Twins:
    first = _first
    return shifted(
        "Laplace: scale epsilon for 1/epsilon",
        faulty=(first, epsilon),
        corrected=(first, 1 / epsilon),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pair=(np.array([1.0]), np.array([0.0])),
        source="Ding, Wang, Wang, Zhang, Kifer, CCS 2018 (histogram)",
        argument="the loss is 1/epsilon",
    )


def _variance_for_deviation(epsilon: float) -> Twins:
    delta, deviation = 0.01, 0.5
    movement = deviation / _analytic_deviation(epsilon, delta)
    cut = movement / 2 + epsilon * deviation**4 / movement
    return twins(
        "Gaussian: variance passed as standard deviation",
        faulty=partial(_moved_gaussian, movement=movement, deviation=deviation**2),
        corrected=partial(_moved_gaussian, movement=movement, deviation=deviation),
        claim=Guarantee(epsilon=epsilon, delta=delta),
        relation="every-answer",
        pair=(np.array([1.0]), np.array([0.0])),
        event=partial(above, bound=cut),
        event_words="the value is above the point where the likelihood ratio is exp(epsilon)",
        output="a fraction of the row plus noise, shape (size,)",
        source="opendp/smartnoise-core issue 316 (a squared noise scale); defect class",
        argument="a standard deviation below 1 shrinks when it is squared",
        faulty_truth=(math.inf, partial(gaussian_curve, ratio=movement / deviation**2)),
        corrected_truth=(math.inf, partial(gaussian_curve, ratio=movement / deviation)),
    )


def _analytic_deviation(epsilon: float, delta: float) -> float:
    """Find the standard deviation for movement 1, rounded up by one part in 10^9."""
    from scipy.optimize import brentq  # noqa: PLC0415

    root = brentq(lambda s: gaussian_curve(epsilon, ratio=1 / s) - delta, 1e-2, 1e3, xtol=1e-12)
    return float(root) * (1 + 1e-9)


def _noise_shared(epsilon: float) -> Twins:
    return twins(
        "histogram: one noise for all bins",
        faulty=partial(_bins, scale=1 / epsilon, shared=True),
        corrected=partial(_bins, scale=1 / epsilon, shared=False),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        relation="one-answer",
        pair=(np.array([2.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0])),
        event=_first_two_differ_by_one,
        event_words="the first bin exceeds the second by 1, to nine digits",
        output="bins, shape (size, 3)",
        source="jax-ml/jax pull request 3646 (key reuse in an example of private training)",
        argument="differences between bins carry no noise",
        faulty_truth=(math.inf, partial(constant, value=1.0)),
        corrected_truth=(epsilon, partial(laplace_delta, epsilon)),
    )


def _seed_reused(epsilon: float) -> Twins:
    known = float(np.random.default_rng(_SEED).laplace(scale=1 / epsilon))
    return twins(
        "Laplace: seed reused between calls",
        faulty=partial(_same_seed, scale=1 / epsilon),
        corrected=partial(_fresh, scale=1 / epsilon),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pair=(np.array([1.0]), np.array([0.0])),
        event=partial(equal, to=1.0 + known),
        event_words="the value is the one that the known seed gives",
        output="value, shape (size,)",
        source="opendp/opendp issue 2934 (generator state copied into forked processes)",
        argument="the noise is a constant that anybody can draw again",
        faulty_truth=(math.inf, partial(constant, value=1.0)),
        corrected_truth=(epsilon, partial(laplace_delta, epsilon)),
    )


def _one_sided(epsilon: float) -> Twins:
    ratio = math.exp(-epsilon)
    return twins(
        "count: one-sided geometric noise",
        faulty=partial(_count, epsilon=epsilon, two_sided=False),
        corrected=partial(_count, epsilon=epsilon, two_sided=True),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pair=(np.array([5.0]), np.array([6.0])),
        event=partial(at_most, bound=5.0),
        event_words="the count is at most 5",
        output="count, shape (size,)",
        source="defect class: noise that never lowers a count",
        argument="a count below the true one cannot occur",
        faulty_truth=(math.inf, partial(constant, value=1 - ratio)),
        corrected_truth=(epsilon, partial(_two_sided_delta, epsilon0=epsilon)),
    )


def _two_sided_delta(epsilon: float, *, epsilon0: float) -> float:
    """Divergence of two-sided geometric noise whose centre moves by 1."""
    if epsilon >= epsilon0:
        return 0.0
    return 1 - geometric_tail(epsilon0, 1) - math.exp(epsilon) * geometric_tail(epsilon0, 1)


def _noise_clipped(epsilon: float) -> Twins:
    top = _NOISE_WIDTH
    return twins(
        "count: noise clipped in place of the output",
        faulty=partial(_clipped_count, epsilon=epsilon, top=top, noise_first=True),
        corrected=partial(_clipped_count, epsilon=epsilon, top=top, noise_first=False),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pair=(np.array([0.0]), np.array([1.0])),
        event=partial(at_most, bound=-float(top)),
        event_words="the output is at the lower end of the noise",
        output="whole number, shape (size,)",
        source="opendp/smartnoise-core pull request 318 (noise bounded by the bounds of the count)",
        argument="bounded noise has ends that the neighbour does not reach",
        faulty_truth=(math.inf, partial(_clipped_noise_delta, epsilon0=epsilon, top=top)),
        corrected_truth=(epsilon, partial(_two_sided_delta, epsilon0=epsilon)),
    )


def _clipped_noise_delta(epsilon: float, *, epsilon0: float, top: int) -> float:
    """Divergence of clipped two-sided geometric noise on 0 from that on 1."""
    law = np.array(
        [geometric_tail(epsilon0, top)]
        + [
            geometric_tail(epsilon0, z) - geometric_tail(epsilon0, z + 1)
            for z in range(1 - top, top)
        ]
        + [geometric_tail(epsilon0, top)]
    )
    p, q = np.append(law, 0.0), np.insert(law, 0, 0.0)
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def _first(rows: Rows, /) -> float:
    return float(rows[0])


def _textbook_laplace(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float
) -> NDArray[np.float64]:
    uniform = 1 - rng.random(size)
    sign = np.where(rng.random(size) < 0.5, -scale, scale)
    return np.asarray(rows[0] + sign * np.log(uniform))


def _grid_laplace(
    rows: Rows, rng: np.random.Generator, size: int, /, *, epsilon: float
) -> NDArray[np.float64]:
    steps = two_sided_geometric(epsilon * _GRID, rng, size)
    return np.asarray((np.round(rows[0] / _GRID) + steps) * _GRID)


def _moved_gaussian(
    rows: Rows, rng: np.random.Generator, size: int, /, *, movement: float, deviation: float
) -> NDArray[np.float64]:
    return np.asarray(movement * rows[0] + rng.normal(scale=deviation, size=size))


def _bins(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, shared: bool
) -> NDArray[np.float64]:
    return np.asarray(rows + rng.laplace(scale=scale, size=(size, 1 if shared else rows.size)))


def _same_seed(
    rows: Rows,
    rng: np.random.Generator,  # noqa: ARG001  ignoring it is the defect
    size: int,
    /,
    *,
    scale: float,
) -> NDArray[np.float64]:
    known = float(np.random.default_rng(_SEED).laplace(scale=scale))
    return np.full(size, rows[0] + known)


def _fresh(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float
) -> NDArray[np.float64]:
    return np.asarray(rows[0] + rng.laplace(scale=scale, size=size))


def _count(
    rows: Rows, rng: np.random.Generator, size: int, /, *, epsilon: float, two_sided: bool
) -> NDArray[np.float64]:
    if two_sided:
        return np.asarray(rows[0] + two_sided_geometric(epsilon, rng, size))
    return np.asarray(rows[0] + np.floor(rng.standard_exponential(size) / epsilon))


def _clipped_count(
    rows: Rows,
    rng: np.random.Generator,
    size: int,
    /,
    *,
    epsilon: float,
    top: int,
    noise_first: bool,
) -> NDArray[np.float64]:
    noise = two_sided_geometric(epsilon, rng, size)
    if noise_first:
        return np.asarray(rows[0] + np.clip(noise, -top, top))
    return np.asarray(np.clip(rows[0] + noise, 0, top))


def _finer_than_grid(outputs: NDArray[np.float64], /) -> NDArray[np.bool_]:
    scaled = outputs * 2.0**53
    return np.asarray(scaled != np.floor(scaled))


def _first_two_differ_by_one(outputs: NDArray[Any], /) -> NDArray[np.bool_]:
    return np.asarray(np.abs(outputs[:, 0] - outputs[:, 1] - 1) < 1e-9)
