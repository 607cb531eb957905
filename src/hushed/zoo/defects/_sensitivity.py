"""Defects in a sensitivity: the noise has the right form and too small a scale."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.mechanisms import Smooth
from hushed.statistics import quantile
from hushed.zoo._curves import Truth, laplace_product_delta
from hushed.zoo._draws import clipped_sum, count, every_row
from hushed.zoo._events import compare
from hushed.zoo._record import Rows
from hushed.zoo.defects._defect import Defect, Version, Versions, choose_index, laplace_on, shift

_OFFSET = 2.0**50
_LEVELS = 5  # of a tree with 16 leaves


def _sum_of_squares(rows: Rows, /) -> float:
    return float((np.clip(rows, -1.0, 3.0) ** 2).sum())


def _deviations_from_rounded_mean(rows: Rows, /) -> float:
    mean = float(np.add.accumulate(rows)[-1]) / rows.size
    return math.fsum(((rows - mean) ** 2).tolist())


def _deviations_from_offset(rows: Rows, /) -> float:
    from_low = rows - _OFFSET
    mean = math.fsum(from_low.tolist()) / rows.size
    return math.fsum(((from_low - mean) ** 2).tolist())


def _count_in_8_bits(rows: Rows, /) -> float:
    return float((rows != 0).sum(dtype=np.int8))


def _count_in_64_bits(rows: Rows, /) -> float:
    return float((rows != 0).sum(dtype=np.int64))


def _percentage(rows: Rows, /) -> float:
    return 100 * float(np.clip(rows, 0, 1).mean())


def _rounded_up_percentage(rows: Rows, /) -> float:
    return float(math.ceil(_percentage(rows)))


def _gap_of_two(outputs: NDArray[np.float64], /) -> NDArray[np.bool_]:
    return np.asarray((outputs[:, 0] >= 2) & (outputs[:, 1] <= 0))


def _path(scale: float) -> Version:
    """Add noise to the nodes of a tree that count a row, from its leaf to the root."""
    mechanism, _ = laplace_on(count, scale, columns=_LEVELS)
    return mechanism, Truth(_LEVELS / scale, partial(laplace_product_delta, 1 / scale, _LEVELS))


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


def _public_size_delta(epsilon: float, *, epsilon0: float) -> float:
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


def _everything(_: float) -> float:
    return 1.0


def _nothing(_: float) -> float:
    return 0.0


_OF_THREE = quantile(0.5, rows=3, low=0.0, high=3.0)


def _median_of_local_scale(
    rows: Rows, rng: np.random.Generator, size: int, /, *, epsilon: float
) -> NDArray[np.float64]:
    scale = _OF_THREE.local_sensitivity(rows) / epsilon
    return np.asarray(float(_OF_THREE.value(rows)) + rng.laplace(scale=scale, size=size))


def _median_of_smooth_scale(
    rows: Rows, rng: np.random.Generator, size: int, /, *, epsilon: float
) -> NDArray[np.float64]:
    mechanism = Smooth(_OF_THREE, epsilon=epsilon)
    scale = mechanism.factor * _OF_THREE.smooth_sensitivity(rows, mechanism.beta)
    noise = rng.pareto(5, size=size) * rng.choice([-1.0, 1.0], size=size)  # Lomax, of tail 5
    return np.asarray(float(_OF_THREE.value(rows)) + scale * noise)


_all_at_least_one = compare(">=", 1.0, of=partial(np.min, axis=1))
_ROWS = np.full(1023, _OFFSET + 1.0)

SENSITIVITY = (
    shift(
        name="regression: lower bound used twice",
        pair=([0.5, 3.0], [0.5]),
        faulty=(_sum_of_squares, max(abs(-1.0), abs(-1.0)) ** 2),
        fixed=(_sum_of_squares, max(abs(-1.0), abs(3.0)) ** 2),
        neighbours="add-remove",
        source="IBM/differential-privacy-library issues 104 and 105 (LinearRegression)",
        why="the second moment of a feature in [-1, 3] moves by 9, not by 1",
    ),
    shift(
        name="sum: width of the bounds under add-remove",
        pair=([10.5, 11.0], [10.5]),
        faulty=(partial(clipped_sum, low=10.0, high=11.0), 11.0 - 10.0),
        fixed=(partial(clipped_sum, low=10.0, high=11.0), 11.0),
        neighbours="add-remove",
        source="defect class: a replace-one sensitivity claimed for add-remove neighbours",
        why="a row in [10, 11] that is added moves the sum by up to 11, not by 1",
    ),
    Defect(
        name="histogram: replacement counted once",
        pair=([2.0, 0.0], [1.0, 1.0]),
        at=lambda e: Versions(
            faulty=laplace_on(every_row, 1 / e, columns=2),
            fixed=laplace_on(every_row, 2 / e, columns=2),
            event=_gap_of_two,
        ),
        output="bins, shape (size, 2)",
        relation="every-answer",  # the rows are bins, both of which move by 1
        source="defect class: an add-remove sensitivity claimed for replace-one neighbours",
        why="a replaced row leaves one bin and enters another: l1 sensitivity 2, not 1",
    ),
    shift(
        name="sum of squared deviations: mean rounded",
        pair=(np.r_[_ROWS, _OFFSET], np.r_[_ROWS, _OFFSET + 1.0]),
        faulty=(_deviations_from_rounded_mean, 1023 / 1024),
        fixed=(_deviations_from_offset, 1023 / 1024 * (1 + 1e-9)),
        source=(
            "opendp/opendp issue 2923; Casacuberta, Shoemate, Vadhan, Wagaman, CCS 2022, for the "
            "rounding of sums"
        ),
        why=(
            "running sums and the mean are rounded to the spacing of doubles at 2^50 and above; "
            "one row in [2^50, 2^50 + 1] turns the rounding and moves every deviation by a quarter"
        ),
    ),
    shift(
        name="count: integer overflow",
        pair=(np.ones(127), np.ones(128)),
        faulty=(_count_in_8_bits, 1.0),
        fixed=(_count_in_64_bits, 1.0),
        neighbours="add-remove",
        source="Casacuberta, Shoemate, Vadhan, Wagaman, CCS 2022 (overflow)",
        why="in 8 bits 127 + 1 is -128, so one row moves the count by 255",
    ),
    shift(
        name="percentage: rounded before the noise",
        pair=(np.r_[1.0, np.full(199, 0.5)], np.full(200, 0.5)),
        faulty=(_rounded_up_percentage, 100 / 200),
        fixed=(_percentage, 100 / 200),
        source="Casacuberta, Shoemate, Vadhan, Wagaman, CCS 2022 (rounding); defect class",
        why="rounding up moves a percentage by 1 where a row moves it by 1/2 at most",
    ),
    shift(
        name="gradient: sensitivity divided by the batch size",
        pair=(np.r_[1.0, np.zeros(7)], np.r_[-1.0, np.zeros(7)]),
        faulty=(partial(clipped_sum, low=-1.0, high=1.0), 2.0 / 8),
        fixed=(partial(clipped_sum, low=-1.0, high=1.0), 2.0),
        source="Tramer, Terzis, Steinke, Song, Jagielski, Carlini, arXiv 2202.12219",
        why="the noise is fit for a mean, the output is a sum: a factor of the batch size",
    ),
    Defect(
        name="centring: two releases from one budget",
        pair=([1.0], []),
        at=lambda e: Versions(
            faulty=laplace_on(count, 1 / e, each=e, columns=2),
            fixed=laplace_on(count, 2 / e, each=e / 2, columns=2),
            event=_all_at_least_one,
        ),
        output="two values, shape (size, 2)",
        neighbours="add-remove",
        source="IBM/differential-privacy-library issue 104, item 2 (LinearRegression)",
        why="two releases on the same rows add up their losses",
    ),
    Defect(
        name="tree of counts: natural logarithm for base 2",
        pair=([1.0], []),
        at=lambda e: Versions(
            faulty=_path((math.log(16) + 1) / e),
            fixed=_path((math.log2(16) + 1) / e),
            event=_all_at_least_one,
        ),
        output="noisy nodes on the path from leaf to root, shape (size, 5)",
        neighbours="add-remove",
        source="defect class, for the binary mechanism of Dwork et al., STOC 2010",
        why="a row is counted in log2(16) + 1 = 5 nodes, not in log(16) + 1 = 3.8",
    ),
    choose_index(
        name="exponential mechanism without the factor 2",
        pair=(np.r_[2.0, np.zeros(9)], np.ones(10)),
        faulty=1.0,
        fixed=0.5,
        source=(
            "McSherry and Talwar, FOCS 2007; of the same class as ryan112358/mbi issue 65, where "
            "a score moves by twice its declared sensitivity"
        ),
        why="one score rises while the others fall, so normaliser and weight both move",
    ),
    choose_index(
        name="exponential mechanism, monotone factor under replacement",
        pair=([3.0, 3.0], [2.0, 4.0]),
        faulty=1.0,
        fixed=0.5,
        source="defect class: Dwork and Roth 2014, section 3.4, needs scores that move one way",
        why="replacing a row lowers one count and raises another",
    ),
    Defect(
        name="median: noise scaled to the local sensitivity",
        pair=([2.0, 2.0, 2.0], [1.0, 2.0, 2.0]),
        at=lambda e: Versions(
            faulty=(partial(_median_of_local_scale, epsilon=e), Truth(math.inf, _everything)),
            # Value and smooth sensitivity are the same on both tables.
            fixed=(partial(_median_of_smooth_scale, epsilon=e), Truth(0.0, _nothing)),
            event=compare("==", 2.0),
        ),
        output="median, shape (size,)",
        source=(
            "defect class: Nissim, Raskhodnikova, Smith, STOC 2007, who show that it leaks; "
            "differentialprivacy.org, *Inverse sensitivity*, 2023"
        ),
        why="where no row can move the median, it is shown without noise; next to it, with some",
    ),
    Defect(
        name="mean: private number of rows treated as public",
        pair=([1.0], [1.0, 0.0]),
        at=lambda e: Versions(
            faulty=(
                partial(_mean_of_public_size, epsilon=e),
                Truth(math.inf, partial(_public_size_delta, epsilon0=e)),
            ),
            fixed=(partial(_mean_of_noisy_size, epsilon=e), Truth(None, None)),
            event=compare(">", 1 + (math.log(2) + 1.0) / e),
        ),
        output="mean, shape (size,)",
        neighbours="add-remove",
        source="opendp/smartnoise-core issue 356 (mean under add-remove)",
        why="noise scaled to the private size has another width on the neighbour",
    ),
)
