"""A search for a clipping bound: the first of public candidates with few rows above it."""

from __future__ import annotations

import math
import sys
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushed._ground.checks import (
    read_epsilon,
    require_one_of,
    require_positive,
    require_probability,
)
from hushed._ground.decimals import decimal_of
from hushed._ground.numeric import finite_above, first_whole
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.mechanisms._calibrated import Calibrated
from hushed.mechanisms._sparse_vector import SparseVector, round_down
from hushed.noise import discrete_exponential
from hushed.privacy_loss import PrivacyProfile
from hushed.spaces import Norm, SensitivityBound

SMALLEST = 2.0**-20
_LEAST_GROWTH = 1.01
_CELLS = 2048  # of the law of the noise on the threshold
_FAR = 50.0  # scales: what lies farther stops no search
_MOST_ROWS = 2.0**52
_SHARE = Fraction(3, 4)  # of epsilon for the threshold, see Notes

Side = Literal["high", "low"]
# Why a count moves by 1 at most, by the unit that is protected.
ARGUMENTS = {
    "row": "a row changes each number of rows beyond a candidate by at most 1, and all of them in "
    "the same direction, whether it is added, removed or replaced (docs/noise/sparse-vector.md)",
    "user": "a user changes each number of users with a row beyond a candidate by at most 1, and "
    "all of them in the same direction, with any number of rows (docs/noise/sparse-vector.md)",
}


@dataclass(frozen=True, slots=True)
class BoundSearch(Calibrated):
    """The first candidate bound with few rows beyond it; `hushed.find_bound` searches by it.

    Notes
    -----
    `SparseVector` on the numbers of rows beyond each candidate, with the sign turned. One row moves
    all of them the same way, whether it is added, removed or replaced, so they are monotone. So
    does one user, who is counted by the farthest of his rows.

    If the noise on the threshold is large, the search goes on beyond the largest value. It passes m
    candidates there with probability ``exp(-e1 above) / binomial(m + e1/e2, m)``, where e1 and e2
    are the parts of epsilon for threshold and counts. With halves that is about 1/m, and one search
    in thirty would overshoot by ten candidates. Three quarters for the threshold make it
    ``0.11 / binomial(m + 3, 3)``: one in 2,700.
    """

    name: ClassVar[str] = "bound-search"
    norms: ClassVar[tuple[Norm, ...]] = SparseVector.norms
    outcome: ClassVar[str] = (
        "at most {error} {rows} lie beyond the bound that was found, whatever the column is, "
        "unless it is the last candidate"
    )
    law_name: ClassVar[str] = SparseVector.law_name

    sensitivity: SensitivityBound  # how far a count of rows moves; all of them the same way
    _: KW_ONLY
    # Privacy loss of the search, in nats; finite, above 0. It stands for its shortest decimal.
    epsilon: float
    growth: float = 2.0  # each candidate is so many times the one before; 1.01 or more
    smallest: float = SMALLEST  # first candidate; above 0
    # About how many rows, or users, may lie beyond the bound; by default 3 / epsilon for each of
    # them that a count moves by.
    above: float | None = None
    # Which end of the range is bounded: the candidates of a low end are the negated ones, and the
    # values that lie below them are beyond.
    side: Side = "high"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        for name in ("growth", "smallest"):
            object.__setattr__(self, name, require_positive(name, getattr(self, name)))
        if self.growth < _LEAST_GROWTH:
            raise ParameterError(
                f"growth must be {_LEAST_GROWTH} or more, got {self.growth}", parameter="growth"
            )
        if self.smallest < sys.float_info.min:
            raise ParameterError(
                f"smallest must be 2**-1022 or more, got {self.smallest}: below it there are too "
                "few doubles for candidates to grow",
                parameter="smallest",
            )
        if self.above is None:
            moved = Fraction(self.sensitivity.value)
            object.__setattr__(self, "above", float(3 * moved / decimal_of(self.epsilon)))
        object.__setattr__(self, "above", require_positive("above", self.above))
        require_one_of("side", self.side, get_args(Side))
        self.plan  # noqa: B018  (refuses what no noise fits)

    @property
    def plan(self) -> SparseVector:
        """How the counts are compared."""
        return SparseVector(
            self.sensitivity,
            epsilon=self.epsilon,
            threshold=-(self.above or 0.0),
            monotone=True,
            share=_SHARE,
        )

    @property
    def candidates(self) -> Floats:
        """Candidate bounds, upwards; the last one is near the largest double."""
        return list_candidates(self.smallest, self.growth)

    @property
    def scale(self) -> float:
        """Scale of the noise on a count, in rows."""
        return self.plan.scale

    def _values_of(self, shape: tuple[int, ...] | None) -> int:  # noqa: ARG002
        return 1

    def _drawn(self, values: int) -> tuple[float, int]:  # noqa: ARG002
        return self.scale, self.grid

    @property
    def grid(self) -> int:
        """Counts are rounded down to multiples of ``2**grid``: not at all."""
        return self.plan.grid

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss of the search at every level."""
        return self.plan.loss

    def accuracy(self, beta: float = 0.05, dims: int = 1) -> float:  # noqa: ARG002
        """Rows beyond the bound found, but with chance beta, unless it is the last; rounded up.

        ``above + s2 log(2 candidates / beta)``, s2 the scale of the noise on a count.
        """
        return self.rows_beyond(beta, self.candidates.size)

    def rows_beyond(self, beta: float, candidates: int) -> float:
        """Rows beyond the bound found among so many candidates, but with chance beta."""
        far = self.plan.accuracy(beta, candidates)
        return finite_above(decimal_of(self.above or 0.0) + decimal_of(far))

    def usual_accuracy(self, beta: float = 0.05) -> float:
        """Rows beyond the bound found on a falling tail, exceeded with chance beta at most.

        Where at least ``2 accuracy(beta)`` rows lie beyond the first candidate, and where those
        beyond, once they are fewer, fall at least as fast as the roots of the candidates rise, as
        they do in a Pareto tail of index 1/2, or a lighter one; elsewhere `accuracy` holds. Rows
        that are missing, or 0, lie beyond no candidate.

        Notes
        -----
        More than c rows are left if the search stops at one of the candidates with ``c + 1`` rows
        beyond or more. With noise T on the threshold none of them stops it with probability
        ``prod_j 1 - exp(-(c_j - above + T) / s2)``, which grows with every c_j; they are
        ``(c + 1) growth**(j/2)`` or more, rounded down to whole rows. The mean over T is a sum over
        cells of equal probability, by the low end of each: rounded up. Below the small values
        ``2 accuracy`` rows or more are beyond every candidate: one of these m candidates stops the
        search with probability ``m exp(-(2 accuracy - above) / s2) <= beta**2 / (4 m)``, which is
        added.
        """
        require_probability("beta", beta)
        plan, most = self.plan, self.accuracy(beta)
        if most >= _MOST_ROWS:
            return most
        step = Fraction(2) ** plan.grid
        found = _count_usual(
            float(plan.scales.query * step),
            float(plan.scales.threshold * step),
            (self.above or 0.0) + 2 * float(step),  # rounding to the grid takes two steps
            self.growth,
            beta - beta**2 / (4 * self.candidates.size),
        )
        return min(most, float(found))

    def search(self, counts: NDArray[np.int64]) -> int:
        """Find the index of a candidate, given the rows beyond each; the last one if none fits."""
        plan = self.plan
        grid, scale = plan.grid, plan.scales.query
        bar = round_down(Fraction(plan.threshold), grid) + discrete_exponential(
            plan.scales.threshold
        )
        for index, count in enumerate(counts.tolist()):
            if round_down(-count, grid) + discrete_exponential(scale) >= bar:
                return index
        return counts.size - 1


@lru_cache(maxsize=64)
def list_candidates(smallest: float, growth: float) -> Floats:
    """List the candidates from the smallest one to the doubles' end."""
    most = math.ceil((math.log(sys.float_info.max) - math.log(smallest)) / math.log(growth)) + 1
    with np.errstate(over="ignore"):
        ladder = np.cumprod(np.concatenate([[smallest], np.full(most, growth)]))
    ladder = ladder[np.isfinite(ladder)]
    ladder.flags.writeable = False
    return ladder


@lru_cache(maxsize=256)
def _count_usual(spread: float, threshold: float, least: float, growth: float, beta: float) -> int:
    """Count the rows left on a falling tail, but with chance beta; see `usual_accuracy`."""
    cells = -threshold * np.log1p(-np.arange(_CELLS) / _CELLS)

    def is_kept(most: int) -> bool:
        survives = np.ones(_CELLS)
        ideal = float(most + 1)
        while (count := math.floor(ideal)) - least <= _FAR * spread:
            survives *= -np.expm1(-np.maximum(count - least + cells, 0.0) / spread)
            if survives.mean() < 1.0 - beta:  # it only falls
                return False
            ideal *= math.sqrt(growth)
        return True

    return 0 if is_kept(0) else first_whole(is_kept)
