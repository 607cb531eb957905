"""Defects in what is shown: thresholds, lengths, bounds, missing values, sampling, memory."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.guarantee import Guarantee
from hushed.zoo.curves import (
    constant,
    laplace_delta,
    laplace_product_delta,
    subsampled_epsilon,
)
from hushed.zoo.events import above, at_least, released, withheld
from hushed.zoo.gaussian import subsampled_laplace
from hushed.zoo.integers import geometric_tail, release_threshold, two_sided_geometric
from hushed.zoo.record import Rows
from hushed.zoo.twins import Twins, twins

__all__ = ["output_twins"]

_DELTA = 0.01
_LENGTH = 4
_DAYS = 5


def output_twins(epsilon: float) -> list[Twins]:
    """All twins whose defect is in what is shown.

    Parameters
    ----------
    epsilon : float
        Claimed epsilon of every twin; above 0. Those with a threshold claim delta = 0.01 too.

    Returns
    -------
    list of tuple of (faulty, corrected)
        The twins.
    """
    return [
        _comparison(epsilon),
        _threshold_cut_to_integer(epsilon),
        _threshold_of_other_noise(epsilon),
        _length_of_input(epsilon),
        _empty_is_withheld(epsilon),
        _bounds_from_data(epsilon),
        _nan_passes(epsilon),
        _linear_amplification(epsilon),
        _noise_drawn_again(epsilon),
    ]


def _comparison(epsilon: float) -> Twins:
    """Use a threshold computed for a strict comparison with a non-strict one."""
    bar = release_threshold(epsilon, _DELTA) - 1
    return _thresholds(
        "threshold: strict comparison in the delta only",
        faulty=(bar, bar - 1),
        corrected=(bar + 1, bar),
        epsilon=epsilon,
        source="opendp/opendp issue 2922 (thresholded Laplace)",
        argument="the mass at the threshold itself is released and not counted in delta",
    )


def _threshold_cut_to_integer(epsilon: float) -> Twins:
    """Cut the threshold of the continuous law to an integer, which lowers it."""
    exact = release_threshold(epsilon, _DELTA) - 0.5
    return _thresholds(
        "threshold: cut to an integer",
        faulty=(math.floor(exact), math.floor(exact) - 1),
        corrected=(math.ceil(exact), math.ceil(exact) - 1),
        epsilon=epsilon,
        source="google/differential-privacy pull request 101 (dpagg.Count)",
        argument="cutting the threshold lowers it by up to one unit",
    )


def _thresholds(
    name: str,
    *,
    faulty: tuple[int, int],
    corrected: tuple[int, int],
    epsilon: float,
    source: str,
    argument: str,
) -> Twins:
    """Twins given as (threshold with >=, least noise that passes it for one row)."""
    return twins(
        name,
        faulty=partial(_count_over, epsilon=epsilon, bar=faulty[0]),
        corrected=partial(_count_over, epsilon=epsilon, bar=corrected[0]),
        claim=Guarantee(epsilon=epsilon, delta=_DELTA, neighbours="add-remove"),
        pair=(np.ones(1), np.ones(0)),
        event=released,
        event_words="a count is released",
        output="count, or NaN where withheld, shape (size,)",
        source=source,
        argument=argument,
        faulty_truth=(math.inf, partial(constant, value=geometric_tail(epsilon, faulty[1]))),
        corrected_truth=(math.inf, partial(constant, value=geometric_tail(epsilon, corrected[1]))),
    )


def _threshold_of_other_noise(epsilon: float) -> Twins:
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    deviation = math.sqrt(2 * math.log(1.25 / _DELTA)) / epsilon
    wrong = 1 + math.log(1 / (2 * _DELTA)) / epsilon
    right = 1 - deviation * float(ndtri(_DELTA)) * (1 + 1e-12)
    masses = [float(ndtr((1 - bar) / deviation)) for bar in (wrong, right)]
    return twins(
        "threshold: Laplace formula for Gaussian noise",
        faulty=partial(_gaussian_count_over, deviation=deviation, bar=wrong),
        corrected=partial(_gaussian_count_over, deviation=deviation, bar=right),
        claim=Guarantee(epsilon=epsilon, delta=_DELTA, neighbours="add-remove"),
        pair=(np.ones(1), np.ones(0)),
        event=released,
        event_words="a count is released",
        output="count, or NaN where withheld, shape (size,)",
        source="opendp/smartnoise-sdk issue 204 (tau of the SQL reader)",
        argument="Gaussian noise of the same epsilon is wider than the Laplace formula assumes",
        faulty_truth=(math.inf, partial(constant, value=masses[0])),
        corrected_truth=(math.inf, partial(constant, value=masses[1])),
    )


def _length_of_input(epsilon: float) -> Twins:
    rows = np.ones(_LENGTH - 1)
    return twins(
        "output as long as the input",
        faulty=partial(_noisy_rows, scale=1 / epsilon, padded=False),
        corrected=partial(_noisy_rows, scale=1 / epsilon, padded=True),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        pair=(rows, rows[:-1]),
        event=_three_shown,
        event_words="three values are shown",
        output=f"one noisy value per row, NaN beyond the last, shape (size, {_LENGTH})",
        source="defect class: the number of values is the number of rows",
        argument="noise on the values does not hide how many there are",
        faulty_truth=(math.inf, partial(constant, value=1.0)),
        corrected_truth=(epsilon, partial(laplace_delta, epsilon)),
    )


def _empty_is_withheld(epsilon: float) -> Twins:
    return twins(
        "empty group withheld exactly",
        faulty=partial(_group_count, scale=1 / epsilon, hide_empty=True),
        corrected=partial(_group_count, scale=1 / epsilon, hide_empty=False),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        pair=(np.ones(0), np.ones(1)),
        event=withheld,
        event_words="no count is shown",
        output="count, or NaN where withheld, shape (size,)",
        source="defect class: None or an error when no row is there",
        argument="whether an answer comes at all depends on a single row",
        faulty_truth=(math.inf, partial(constant, value=1.0)),
        corrected_truth=(epsilon, partial(laplace_delta, epsilon)),
    )


def _bounds_from_data(epsilon: float) -> Twins:
    rows, neighbour = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    scale = 1 / (3 * epsilon)
    mass = 1 - 0.5 * math.exp(-rows.mean() / scale)
    return twins(
        "output clamped to bounds from the data",
        faulty=partial(_clamped_mean, scale=scale, from_data=True),
        corrected=partial(_clamped_mean, scale=scale, from_data=False),
        claim=Guarantee(epsilon=epsilon),
        pair=(rows, neighbour),
        event=partial(above, bound=0.0),
        event_words="the mean is above 0",
        output="mean, shape (size,)",
        source="defect class: bounds taken from the private rows (diffprivlib warns of it)",
        argument="on the neighbour the bounds meet, and nothing but 0 can be shown",
        faulty_truth=(math.inf, partial(constant, value=mass)),
        corrected_truth=(epsilon, partial(laplace_delta, epsilon)),
    )


def _nan_passes(epsilon: float) -> Twins:
    return twins(
        "NaN passes the clamp",
        faulty=partial(_sum_of_clamped, scale=1 / epsilon, replace=False),
        corrected=partial(_sum_of_clamped, scale=1 / epsilon, replace=True),
        claim=Guarantee(epsilon=epsilon),
        pair=(np.array([0.5, math.nan]), np.array([0.5, 1.0])),
        event=withheld,
        event_words="the sum is NaN",
        output="sum, shape (size,)",
        source="google/differential-privacy pull request 405 (ClampFloat64)",
        argument="comparisons with NaN are false, so it is neither raised nor lowered",
        faulty_truth=(math.inf, partial(constant, value=1.0)),
        corrected_truth=(epsilon, partial(laplace_delta, epsilon)),
    )


def _linear_amplification(epsilon: float) -> Twins:
    """Claim rate times the inner epsilon; the corrected one has the inner epsilon that fits."""
    rate = 0.5
    wrong = subsampled_laplace(epsilon / rate, rate, claim=epsilon)
    right = subsampled_laplace(subsampled_epsilon(epsilon, rate), rate)
    return twins(
        "subsampling: amplification taken as linear",
        faulty=wrong.mechanism,
        corrected=right.mechanism,
        claim=wrong.claim,
        pair=wrong.pairs[0],
        event=partial(at_least, bound=1.0),
        event_words="the value is at least 1",
        output="value, shape (size,)",
        source="defect class: rate times epsilon for log(1 + rate (exp(epsilon) - 1))",
        argument="the amplified loss is convex in epsilon and lies above the straight line",
        faulty_truth=(wrong.epsilon, wrong.delta),
        corrected_truth=(right.epsilon, right.delta),
    )


def _noise_drawn_again(epsilon: float) -> Twins:
    return twins(
        "answer to a repeated question drawn again",
        faulty=partial(_asked_again, scale=1 / epsilon, remember=False),
        corrected=partial(_asked_again, scale=1 / epsilon, remember=True),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pair=(np.array([1.0]), np.array([0.0])),
        event=_all_at_least_one,
        event_words="all answers are at least 1",
        output=f"answers on {_DAYS} days, shape (size, {_DAYS})",
        source="defect class, avoided by the memory of RAPPOR (Erlingsson et al., CCS 2014)",
        argument="answers to one question compose unless the first one is repeated",
        faulty_truth=(_DAYS * epsilon, partial(laplace_product_delta, epsilon, _DAYS)),
        corrected_truth=(epsilon, partial(laplace_delta, epsilon)),
    )


def _count_over(
    rows: Rows, rng: np.random.Generator, size: int, /, *, epsilon: float, bar: int
) -> NDArray[np.float64]:
    if rows.size == 0:
        return np.full(size, np.nan)
    noisy = rows.size + two_sided_geometric(epsilon, rng, size)
    return np.where(noisy >= bar, noisy, np.nan)


def _gaussian_count_over(
    rows: Rows, rng: np.random.Generator, size: int, /, *, deviation: float, bar: float
) -> NDArray[np.float64]:
    if rows.size == 0:
        return np.full(size, np.nan)
    noisy = rows.size + rng.normal(scale=deviation, size=size)
    return np.where(noisy >= bar, noisy, np.nan)


def _noisy_rows(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, padded: bool
) -> NDArray[np.float64]:
    length = _LENGTH if padded else min(rows.size, _LENGTH)
    shown = np.zeros(_LENGTH)
    shown[: min(rows.size, _LENGTH)] = rows[:_LENGTH]
    noisy = shown + rng.laplace(scale=scale, size=(size, _LENGTH))
    noisy[:, length:] = np.nan
    return np.asarray(noisy)


def _group_count(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, hide_empty: bool
) -> NDArray[np.float64]:
    if hide_empty and rows.size == 0:
        return np.full(size, np.nan)
    return np.asarray(rows.size + rng.laplace(scale=scale, size=size))


def _clamped_mean(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, from_data: bool
) -> NDArray[np.float64]:
    noisy = np.clip(rows, 0, 1).mean() + rng.laplace(scale=scale, size=size)
    low, high = (float(rows.min()), float(rows.max())) if from_data else (-10.0, 10.0)
    return np.asarray(np.clip(noisy, low, high))


def _sum_of_clamped(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, replace: bool
) -> NDArray[np.float64]:
    clamped = np.clip(np.where(np.isnan(rows), 0.0, rows) if replace else rows, 0.0, 1.0)
    return np.asarray(float(clamped.sum()) + rng.laplace(scale=scale, size=size))


def _asked_again(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float, remember: bool
) -> NDArray[np.float64]:
    noise = rng.laplace(scale=scale, size=(size, 1 if remember else _DAYS))
    return np.asarray(rows[0] + np.broadcast_to(noise, (size, _DAYS)))


def _three_shown(outputs: NDArray[Any], /) -> NDArray[np.bool_]:
    return np.asarray((~np.isnan(outputs)).sum(axis=1) == 3)


def _all_at_least_one(outputs: NDArray[np.float64], /) -> NDArray[np.bool_]:
    return np.asarray((outputs >= 1).all(axis=1))
