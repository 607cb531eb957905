"""What a noise law says of itself: the one place that a sensitivity, a chain and a query ask.

Each of the three hands it a bound on how far an answer moves: a sensitivity with its epsilon, a
chain with the scale, whose loss at every distance it asks for, a query with a bound in whole steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from hushed import noise
from hushed._ground.types import Floats
from hushed.accounting._pure import pure_zcdp
from hushed.errors import ParameterError
from hushed.privacy_loss import PrivacyProfile, approximate
from hushed.spaces import PRIVACY_PROFILE, PURE, ZCDP, Measure, Norm

Known = Mapping[Measure, float | PrivacyProfile]


class Law:
    """A law of noise, or of a choice, that is drawn by `hushed.noise`: a frozen record.

    ``name`` is what it is called everywhere. ``norms``: the bounds that it takes. ``reach``: for
    each metric of a chain, how far it moves at a distance of 1, as `loss` counts it. ``measure``:
    in which terms a chain states its loss. ``selects``: it gives an index, not numbers.
    ``opendp``: the constructor of the same there, empty if there is none.
    """

    __slots__ = ()

    name: ClassVar[str]
    norms: ClassVar[tuple[Norm, ...]]
    reach: ClassVar[Mapping[str, int]]
    measure: ClassVar[Measure] = PURE
    selects: ClassVar[bool] = False
    opendp: ClassVar[str] = ""

    @classmethod
    def of_scale(cls, scale: float) -> Self:
        """Law of a scale in the units of the answer, as a chain takes it."""
        raise NotImplementedError

    def grid(self, dims: int) -> noise.Grid:
        """Grid that so many doubles are rounded to."""
        raise NotImplementedError

    def drawn(self, dims: int) -> tuple[float, int]:
        """Scale as drawn, what the grid adds included, and the exponent of the grid."""
        grid = self.grid(dims)
        try:
            return math.ldexp(grid.scale, grid.exponent), grid.exponent
        except OverflowError:
            problem = "the noise would exceed every double: rescale the answer"
        raise ParameterError(problem)

    def loss(self, moved: float, dims: int) -> Known:
        """All that is known of the loss when the answer moves that far; rounding to the grid, too.

        Rounded up; nothing is lost if nothing moves, and everything at an infinite distance.
        """
        raise NotImplementedError

    def error(self, beta: float, dims: int = 1) -> float:
        """Error that none of so many numbers exceeds except with probability beta.

        Of a choice the shortfall against the best of so many candidates.
        """
        raise NotImplementedError

    def draw(self, values: Floats) -> Any:
        """Noisy numbers, or the index of a candidate; `values` are finite doubles."""
        raise NotImplementedError


def pure_losses(epsilon: float) -> Known:
    """Epsilon, rho and curve of what is known to lose so much and no more."""
    known: Known = {PURE: epsilon, PRIVACY_PROFILE: approximate(epsilon, 0.0)}
    return {**known, ZCDP: pure_zcdp(epsilon)} if 0 < epsilon < math.inf else known


def plain(released: Floats) -> float | Floats:
    """Give one number as a float, several as they are."""
    return released if released.ndim else float(released)


def chance_of_each(beta: float, count: int) -> float:
    """Probability for each of several independent numbers, so that any fails with beta."""
    return -math.expm1(math.log1p(-beta) / count)
