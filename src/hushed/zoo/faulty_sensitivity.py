"""Defects in a sensitivity: the noise has the right form and too small a scale."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.guarantee import Guarantee
from hushed.zoo.curves import laplace_product_delta
from hushed.zoo.events import above
from hushed.zoo.record import Rows
from hushed.zoo.twins import Twins, choice, shifted, twins

__all__ = ["sensitivity_twins"]

_OFFSET = 2.0**50
_ROWS = 1024


def sensitivity_twins(epsilon: float) -> list[Twins]:
    """All twins whose defect is a sensitivity.

    Parameters
    ----------
    epsilon : float
        Claimed epsilon of every twin; above 0.

    Returns
    -------
    list of tuple of (faulty, corrected)
        The twins.
    """
    return [
        _lower_bound_twice(epsilon),
        _range_instead_of_magnitude(epsilon),
        _replacement_counted_once(epsilon),
        _rounded_mean(epsilon),
        _overflow(epsilon),
        _rounding_before_noise(epsilon),
        _batch_mean_clipped(epsilon),
        _composition_forgotten(epsilon),
        _natural_logarithm(epsilon),
        _factor_two(epsilon),
        _monotone_under_replacement(epsilon),
        _private_size(epsilon),
    ]


def _lower_bound_twice(epsilon: float) -> Twins:
    low, high = -1.0, 3.0
    statistic = partial(_clipped_squares, low=low, high=high)
    return shifted(
        "regression: lower bound used twice",
        faulty=(statistic, max(abs(low), abs(low)) ** 2 / epsilon),
        corrected=(statistic, max(abs(low), abs(high)) ** 2 / epsilon),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        pair=(np.array([0.5, 3.0]), np.array([0.5])),
        source="IBM/differential-privacy-library issues 104 and 105 (LinearRegression)",
        argument="the second moment of a feature in [-1, 3] moves by 9, not by 1",
    )


def _range_instead_of_magnitude(epsilon: float) -> Twins:
    statistic = partial(_clipped_sum, low=10.0, high=11.0)
    return shifted(
        "sum: width of the bounds under add-remove",
        faulty=(statistic, (11.0 - 10.0) / epsilon),
        corrected=(statistic, 11.0 / epsilon),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        pair=(np.array([10.5, 11.0]), np.array([10.5])),
        source="defect class: a replace-one sensitivity claimed for add-remove neighbours",
        argument="a row in [10, 11] that is added moves the sum by up to 11, not by 1",
    )


def _replacement_counted_once(epsilon: float) -> Twins:
    rows, neighbour = np.array([2.0, 0.0]), np.array([1.0, 1.0])

    def truth(scale: float) -> tuple[float, partial[float]]:
        return 2 / scale, partial(laplace_product_delta, 1 / scale, 2)

    return twins(
        "histogram: replacement counted once",
        faulty=partial(_noisy_bins, scale=1 / epsilon),
        corrected=partial(_noisy_bins, scale=2 / epsilon),
        claim=Guarantee(epsilon=epsilon),
        pair=(rows, neighbour),
        event=_gap_of_two,
        event_words="the first bin is at least 2 and the second at most 0",
        output="bins, shape (size, 2)",
        source="defect class: an add-remove sensitivity claimed for replace-one neighbours",
        argument="a replaced row leaves one bin and enters another: l1 sensitivity 2, not 1",
        relation="every-answer",  # the rows are bins, both of which move by 1
        faulty_truth=truth(1 / epsilon),
        corrected_truth=truth(2 / epsilon),
    )


def _rounded_mean(epsilon: float) -> Twins:
    rows = np.full(_ROWS, _OFFSET + 1.0)
    moved = rows.copy()
    moved[-1] = _OFFSET
    claimed = (_ROWS - 1) / _ROWS
    return shifted(
        "sum of squared deviations: mean rounded",
        faulty=(_deviations_from_rounded_mean, claimed / epsilon),
        corrected=(_deviations_from_offset, claimed * (1 + 1e-9) / epsilon),
        claim=Guarantee(epsilon=epsilon),
        pair=(moved, rows),
        source=(
            "opendp/opendp issue 2923; Casacuberta, Shoemate, Vadhan, Wagaman, CCS 2022, for the "
            "rounding of sums"
        ),
        argument=(
            "running sums and the mean are rounded to the spacing of doubles at 2^50 and above; "
            "one row in [2^50, 2^50 + 1] turns the rounding and moves every deviation by a quarter"
        ),
    )


def _overflow(epsilon: float) -> Twins:
    return shifted(
        "count: integer overflow",
        faulty=(_narrow_count, 1 / epsilon),
        corrected=(_wide_count, 1 / epsilon),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        pair=(np.ones(127), np.ones(128)),
        source="Casacuberta, Shoemate, Vadhan, Wagaman, CCS 2022 (overflow)",
        argument="in 8 bits 127 + 1 is -128, so one row moves the count by 255",
    )


def _rounding_before_noise(epsilon: float) -> Twins:
    rows, neighbour = np.full(200, 0.5), np.full(200, 0.5)
    rows[0] = 1.0
    step = 100 / 200
    return shifted(
        "percentage: rounded before the noise",
        faulty=(_rounded_up_percentage, step / epsilon),
        corrected=(_percentage, step / epsilon),
        claim=Guarantee(epsilon=epsilon),
        pair=(rows, neighbour),
        source="Casacuberta, Shoemate, Vadhan, Wagaman, CCS 2022 (rounding); defect class",
        argument="rounding up moves a percentage by 1 where a row moves it by 1/2 at most",
    )


def _batch_mean_clipped(epsilon: float) -> Twins:
    batch = 8
    rows = np.zeros(batch)
    rows[0] = 1.0
    total = partial(_clipped_sum, low=-1.0, high=1.0)
    return shifted(
        "gradient: sensitivity divided by the batch size",
        faulty=(total, 2.0 / batch / epsilon),
        corrected=(total, 2.0 / epsilon),
        claim=Guarantee(epsilon=epsilon),
        pair=(rows, np.r_[-1.0, rows[1:]]),
        source="Tramer, Terzis, Steinke, Song, Jagielski, Carlini, arXiv 2202.12219",
        argument="the noise is fit for a mean, the output is a sum: a factor of the batch size",
    )


def _composition_forgotten(epsilon: float) -> Twins:
    def truth(each: float) -> tuple[float, partial[float]]:
        return 2 * each, partial(laplace_product_delta, each, 2)

    return twins(
        "centring: two releases from one budget",
        faulty=partial(_two_counts, scale=1 / epsilon),
        corrected=partial(_two_counts, scale=2 / epsilon),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        pair=(np.ones(1), np.ones(0)),
        event=_both_at_least_one,
        event_words="both values are at least 1",
        output="two values, shape (size, 2)",
        source="IBM/differential-privacy-library issue 104, item 2 (LinearRegression)",
        argument="two releases on the same rows add up their losses",
        faulty_truth=truth(epsilon),
        corrected_truth=truth(epsilon / 2),
    )


def _natural_logarithm(epsilon: float) -> Twins:
    leaves = 16
    levels = round(math.log2(leaves)) + 1
    wrong = (math.log(leaves) + 1) / epsilon

    def truth(scale: float) -> tuple[float, partial[float]]:
        return levels / scale, partial(laplace_product_delta, 1 / scale, levels)

    return twins(
        "tree of counts: natural logarithm for base 2",
        faulty=partial(_path, levels=levels, scale=wrong),
        corrected=partial(_path, levels=levels, scale=levels / epsilon),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        pair=(np.ones(1), np.ones(0)),
        event=_all_at_least_one,
        event_words="every node on the path of the row is at least 1",
        output="noisy nodes on the path from leaf to root, shape (size, 5)",
        source="defect class, for the binary mechanism of Dwork et al., STOC 2010",
        argument="a row is counted in log2(16) + 1 = 5 nodes, not in log(16) + 1 = 3.8",
        faulty_truth=truth(wrong),
        corrected_truth=truth(levels / epsilon),
    )


def _factor_two(epsilon: float) -> Twins:
    return choice(
        "exponential mechanism without the factor 2",
        faulty=epsilon,
        corrected=epsilon / 2,
        claim=Guarantee(epsilon=epsilon),
        pair=(np.r_[2.0, np.zeros(9)], np.ones(10)),
        source=(
            "McSherry and Talwar, FOCS 2007; of the same class as ryan112358/mbi issue 65, where "
            "a score moves by twice its declared sensitivity"
        ),
        argument="one score rises while the others fall, so normaliser and weight both move",
    )


def _monotone_under_replacement(epsilon: float) -> Twins:
    return choice(
        "exponential mechanism, monotone factor under replacement",
        faulty=epsilon,
        corrected=epsilon / 2,
        claim=Guarantee(epsilon=epsilon),
        pair=(np.array([3.0, 3.0]), np.array([2.0, 4.0])),
        source="defect class: Dwork and Roth 2014, section 3.4, needs scores that move one way",
        argument="replacing a row lowers one count and raises another",
    )


def _private_size(epsilon: float) -> Twins:
    return twins(
        "mean: private number of rows treated as public",
        faulty=partial(_mean_of_public_size, epsilon=epsilon),
        corrected=partial(_mean_of_noisy_size, epsilon=epsilon),
        claim=Guarantee(epsilon=epsilon, neighbours="add-remove"),
        pair=(np.array([1.0]), np.array([1.0, 0.0])),
        event=partial(above, bound=1 + (math.log(2) + 1.0) / epsilon),
        event_words="the mean is far above 1",
        output="mean, shape (size,)",
        source="opendp/smartnoise-core issue 356 (mean under add-remove)",
        argument="noise scaled to the private size has another width on the neighbour",
        faulty_truth=(math.inf, partial(_private_size_delta, epsilon0=epsilon)),
    )


def _private_size_delta(epsilon: float, *, epsilon0: float) -> float:
    """Divergence of 1 + Lap(1/e0) from 1/2 + Lap(1/(2 e0)): two half lines, solved by hand."""
    width = 1 / epsilon0
    need = epsilon + math.log(2)
    # The log ratio is -log 2 - |y-1|/w + 2|y-1/2|/w: slopes -1, then 3 up to y = 1, then 1.
    low = -need * width
    high = need * width if need * width >= 1 else (need * width + 2) / 3

    def tails(centre: float, scale: float) -> float:
        left = 0.5 * math.exp((low - centre) / scale)
        far = 0.5 * math.exp(-abs(high - centre) / scale)
        return left + (far if high >= centre else 1 - far)

    return tails(1.0, width) - math.exp(epsilon) * tails(0.5, width / 2)


def _clipped_squares(rows: Rows, /, *, low: float, high: float) -> float:
    return float((np.clip(rows, low, high) ** 2).sum())


def _clipped_sum(rows: Rows, /, *, low: float, high: float) -> float:
    return float(np.clip(rows, low, high).sum())


def _deviations_from_rounded_mean(rows: Rows, /) -> float:
    mean = float(np.add.accumulate(rows)[-1]) / rows.size
    return math.fsum(((rows - mean) ** 2).tolist())


def _deviations_from_offset(rows: Rows, /) -> float:
    from_low = rows - _OFFSET
    mean = math.fsum(from_low.tolist()) / rows.size
    return math.fsum(((from_low - mean) ** 2).tolist())


def _narrow_count(rows: Rows, /) -> float:
    return float((rows != 0).sum(dtype=np.int8))


def _wide_count(rows: Rows, /) -> float:
    return float((rows != 0).sum(dtype=np.int64))


def _percentage(rows: Rows, /) -> float:
    return 100 * float(np.clip(rows, 0, 1).mean())


def _rounded_up_percentage(rows: Rows, /) -> float:
    return float(math.ceil(_percentage(rows)))


def _noisy_bins(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float
) -> NDArray[np.float64]:
    return np.asarray(rows + rng.laplace(scale=scale, size=(size, rows.size)))


def _two_counts(
    rows: Rows, rng: np.random.Generator, size: int, /, *, scale: float
) -> NDArray[np.float64]:
    return np.asarray(rows.size + rng.laplace(scale=scale, size=(size, 2)))


def _path(
    rows: Rows, rng: np.random.Generator, size: int, /, *, levels: int, scale: float
) -> NDArray[np.float64]:
    return np.asarray(rows.size + rng.laplace(scale=scale, size=(size, levels)))


def _mean_of_public_size(
    rows: Rows, rng: np.random.Generator, size: int, /, *, epsilon: float
) -> NDArray[np.float64]:
    mean = np.clip(rows, 0, 1).mean()
    return np.asarray(mean + rng.laplace(scale=1 / (rows.size * epsilon), size=size))


def _mean_of_noisy_size(
    rows: Rows, rng: np.random.Generator, size: int, /, *, epsilon: float
) -> NDArray[np.float64]:
    noise = rng.laplace(scale=2 / epsilon, size=(2, size))
    total = float(np.clip(rows, 0, 1).sum())
    return np.asarray((total + noise[0]) / np.maximum(1.0, rows.size + noise[1]))


def _gap_of_two(outputs: NDArray[np.float64], /) -> NDArray[np.bool_]:
    return np.asarray((outputs[:, 0] >= 2) & (outputs[:, 1] <= 0))


def _both_at_least_one(outputs: NDArray[np.float64], /) -> NDArray[np.bool_]:
    return np.asarray((outputs >= 1).all(axis=1))


def _all_at_least_one(outputs: NDArray[np.float64], /) -> NDArray[np.bool_]:
    return np.asarray((outputs >= 1).all(axis=1))
