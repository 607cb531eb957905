"""Defects in what is shown: thresholds, lengths, bounds, missing values, sampling, memory."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.zoo._counts import release_threshold
from hushed.zoo._curves import (
    Truth,
    certain_truth,
    geometric_tail,
    subsampled_epsilon,
)
from hushed.zoo._draws import Noise, Noisy, clipped_sum, count, draw_geometric, first, release_above
from hushed.zoo._events import compare, released, withheld
from hushed.zoo._gaussian import subsampled_laplace
from hushed.zoo._record import Rows
from hushed.zoo.defects._defect import Defect, Versions, laplace_on

_DELTA = 0.01
_LENGTH = 4
_DAYS = 5
_threshold = partial(
    Defect,
    pair=([1.0], []),
    delta=_DELTA,
    neighbours="add-remove",
    output="count, or NaN where withheld, shape (size,)",
)


def _thresholds(epsilon: float, faulty: int, fixed: int) -> Versions:
    """Release noisy counts from the one or the other number on."""
    geometric = partial(draw_geometric, decay=epsilon)
    return Versions(
        faulty=(
            partial(release_above, noise=geometric, least=faulty),
            certain_truth(geometric_tail(epsilon, faulty - 1)),
        ),
        fixed=(
            partial(release_above, noise=geometric, least=fixed),
            certain_truth(geometric_tail(epsilon, fixed - 1)),
        ),
        event=released,
    )


def _exact_threshold(epsilon: float) -> float:
    """Stand for a threshold from a continuous law: it lies between two whole numbers."""
    return release_threshold(epsilon, _DELTA) - 0.5


def _threshold_of_other_noise(epsilon: float) -> Versions:
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    deviation = math.sqrt(2 * math.log(1.25 / _DELTA)) / epsilon
    wrong = 1 + math.log(1 / (2 * _DELTA)) / epsilon
    right = 1 - deviation * float(ndtri(_DELTA)) * (1 + 1e-12)
    normal = Noise("normal", deviation)
    return Versions(
        faulty=(
            partial(release_above, noise=normal, least=wrong),
            certain_truth(float(ndtr((1 - wrong) / deviation))),
        ),
        fixed=(
            partial(release_above, noise=normal, least=right),
            certain_truth(float(ndtr((1 - right) / deviation))),
        ),
        event=released,
    )


def _amplification(epsilon: float) -> Versions:
    """Spend rate times the inner epsilon; the fixed one has the inner epsilon that fits."""
    rate = 0.5
    wrong = subsampled_laplace(epsilon / rate, rate)
    right = subsampled_laplace(subsampled_epsilon(epsilon, rate), rate)
    return Versions(
        faulty=(wrong.mechanism, Truth(wrong.epsilon, wrong.delta)),
        fixed=(right.mechanism, Truth(right.epsilon, right.delta)),
        event=compare(">=", 1.0),
    )


def _padded(rows: Rows, /, *, fill: float) -> Rows:
    shown = np.full(_LENGTH, fill)
    shown[: rows.size] = rows[:_LENGTH]
    return shown


def _count_shown(outputs: NDArray[Any], /) -> NDArray[Any]:
    return np.asarray((~np.isnan(outputs)).sum(axis=1))


def _clipped_mean(rows: Rows, /) -> float:
    return float(np.clip(rows, 0, 1).mean())


def _clamp_to_rows(
    rows: Rows, rng: np.random.Generator, size: int, /, *, noise: Noise
) -> NDArray[np.float64]:
    noisy = _clipped_mean(rows) + noise(rng, (size,))
    return np.asarray(np.clip(noisy, float(rows.min()), float(rows.max())))


def _sum_without_nan(rows: Rows, /) -> float:
    return clipped_sum(np.where(np.isnan(rows), 0.0, rows), low=0.0, high=1.0)


OUTPUT = (
    _threshold(
        name="threshold: strict comparison in the delta only",
        at=lambda e: _thresholds(e, release_threshold(e, _DELTA) - 1, release_threshold(e, _DELTA)),
        source="opendp/opendp issue 2922 (thresholded Laplace)",
        why="the mass at the threshold itself is released and not counted in delta",
    ),
    _threshold(
        name="threshold: cut to an integer",
        at=lambda e: _thresholds(
            e, math.floor(_exact_threshold(e)), math.ceil(_exact_threshold(e))
        ),
        source="google/differential-privacy pull request 101 (dpagg.Count)",
        why="cutting the threshold lowers it by up to one unit",
    ),
    _threshold(
        name="threshold: Laplace formula for Gaussian noise",
        at=_threshold_of_other_noise,
        source="opendp/smartnoise-sdk issue 204 (tau of the SQL reader)",
        why="Gaussian noise of the same epsilon is wider than the Laplace formula assumes",
    ),
    Defect(
        name="output as long as the input",
        pair=([1.0, 1.0, 1.0], [1.0, 1.0]),
        at=lambda e: Versions(
            faulty=(
                Noisy(partial(_padded, fill=math.nan), Noise("laplace", 1 / e)),
                certain_truth(1.0),
            ),
            fixed=laplace_on(partial(_padded, fill=0.0), 1 / e, each=e),
            event=compare("==", 3, of=_count_shown),
        ),
        output=f"one noisy value per row, NaN beyond the last, shape (size, {_LENGTH})",
        neighbours="add-remove",
        source="defect class: the number of values is the number of rows",
        why="noise on the values does not hide how many there are",
    ),
    Defect(
        name="empty group withheld exactly",
        pair=([], [1.0]),
        at=lambda e: Versions(
            faulty=(
                partial(release_above, noise=Noise("laplace", 1 / e), least=-math.inf),
                certain_truth(1.0),
            ),
            fixed=laplace_on(count, 1 / e, each=e),
            event=withheld,
        ),
        output="count, or NaN where withheld, shape (size,)",
        neighbours="add-remove",
        source="defect class: None or an error when no row is there",
        why="whether an answer comes at all depends on a single row",
    ),
    Defect(
        name="output clamped to bounds from the data",
        pair=([0.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
        at=lambda e: Versions(
            faulty=(
                partial(_clamp_to_rows, noise=Noise("laplace", 1 / (3 * e))),
                certain_truth(1 - 0.5 * math.exp(-(1 / 3) / (1 / (3 * e)))),
            ),
            fixed=laplace_on(
                _clipped_mean, 1 / (3 * e), each=e, after=partial(np.clip, a_min=-10.0, a_max=10.0)
            ),
            event=compare(">", 0.0),
        ),
        output="mean, shape (size,)",
        source="defect class: bounds taken from the private rows (diffprivlib warns of it)",
        why="on the neighbour the bounds meet, and nothing but 0 can be shown",
    ),
    Defect(
        name="NaN passes the clamp",
        pair=([0.5, math.nan], [0.5, 1.0]),
        at=lambda e: Versions(
            faulty=(
                Noisy(partial(clipped_sum, low=0.0, high=1.0), Noise("laplace", 1 / e)),
                certain_truth(1.0),
            ),
            fixed=laplace_on(_sum_without_nan, 1 / e, each=e),
            event=withheld,
        ),
        output="sum, shape (size,)",
        source="google/differential-privacy pull request 405 (ClampFloat64)",
        why="comparisons with NaN are false, so it is neither raised nor lowered",
    ),
    Defect(
        name="subsampling: amplification taken as linear",
        pair=([1.0], []),
        at=_amplification,
        neighbours="add-remove",
        source="defect class: rate times epsilon for log(1 + rate (exp(epsilon) - 1))",
        why="the amplified loss is convex in epsilon and lies above the straight line",
    ),
    Defect(
        name="answer to a repeated question drawn again",
        pair=([1.0], [0.0]),
        at=lambda e: Versions(
            faulty=laplace_on(first, 1 / e, each=e, columns=_DAYS),
            fixed=laplace_on(
                first,
                1 / e,
                each=e,
                columns=1,
                after=partial(np.repeat, repeats=_DAYS, axis=1),
            ),
            event=compare(">=", 1.0, of=partial(np.min, axis=1)),
        ),
        output=f"answers on {_DAYS} days, shape (size, {_DAYS})",
        relation="every-answer",
        source="defect class, avoided by the memory of RAPPOR (Erlingsson et al., CCS 2014)",
        why="answers to one question compose unless the first one is repeated",
    ),
)
