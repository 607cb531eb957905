"""Noise scaled to the smooth sensitivity of a statistic: the scale follows the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from hushed import noise
from hushed._ground.calls import called_as
from hushed._ground.checks import (
    read_array,
    read_epsilon,
    require_count,
    require_one_of,
    require_probability,
)
from hushed._ground.decimals import decimal_of
from hushed._ground.numeric import ARITHMETIC, LIBRARY, float_above, round_up
from hushed._ground.precise import Mpf, mp
from hushed._ground.printing import as_given
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.mechanisms._law import Known, pure_losses
from hushed.mechanisms._on_statistic import OnStatistic
from hushed.populations import Population
from hushed.populations._drawing import draw_rows
from hushed.populations._sources import description
from hushed.privacy_loss import PrivacyProfile, randomised_response
from hushed.statistics import Numeric
from hushed.statistics._constructors import KINDS
from hushed.statistics._priors import Source
from hushed.statistics._record import ReadRows

HeavyNoise = Literal["lomax", "t2"]

_TAIL, _LARGEST_TAIL = 5, 1000
_SHARE = Fraction(3, 10)  # of epsilon: smoothing for Student's law
_TAILS, _SHARES = (3, 5, 10, 20, 50), tuple(Fraction(k, 10) for k in (1, 2, 3, 4))  # to choose from
_MARGIN = Fraction(1, 1 << 41)  # between the smoothing asked for and the one that is computed with
_COMPUTED = Fraction(1, 1 << 42)  # what the rounding of a smooth sensitivity costs in smoothing
_BITS = 256


@called_as("hs.Smooth(hs.statistics.median(rows=1000, low=0, high=100), epsilon=1.0)")
@dataclass(frozen=True, slots=True)
class Smooth(OnStatistic):
    """Add noise in proportion to the smooth sensitivity, which is small on most tables.

    Parameters
    ----------
    statistic : Quantile, TrimmedMean or InterquartileRange
        What is released, from `hushed.statistics`.
    epsilon : float
        Privacy loss, in nats; finite, above 0. It stands for its shortest decimal.
    noise : {"lomax", "t2"}, default "lomax"
        Law of the noise: two-sided Lomax, or Student's t with 2 degrees.
    tail : int, optional
        Exponent m of Lomax noise, 1 to 1000; 5 by default. None for Student's.
    smoothing : float, optional
        Beta, by which the logarithm of the smooth sensitivity may differ between neighbours: at
        most ``epsilon / tail``, the default for Lomax noise, and below ``epsilon / 2`` for
        Student's, where 0.3 epsilon is the default. A larger one makes the smooth sensitivity
        smaller and its factor larger. Choose it without the private rows.

    Raises
    ------
    ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Nissim, Raskhodnikova and Smith, *Smooth Sensitivity and Sampling in Private Data Analysis*,
    STOC 2007, with noise whose loss is known exactly: docs/worst-case.md. The promise is pure
    epsilon, and holds for every table.
    """

    name: ClassVar[Literal["smooth"]] = "smooth"
    accuracy_name: ClassVar[str] = (
        "error in 95 % of draws, in units of the private smooth sensitivity"
    )

    statistic: Numeric
    _: KW_ONLY
    epsilon: float
    noise: HeavyNoise = "lomax"
    tail: int | None = None
    smoothing: float | None = None
    _source: Source = field(default_factory=Source, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Numeric) or type(self.statistic) not in KINDS.values():
            raise ParameterError(
                "Smooth takes a statistic of numbers such as hs.statistics.median(...), got "
                f"{type(self.statistic).__name__}"
            )
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        require_one_of("noise", self.noise, get_args(HeavyNoise))
        if self.noise == "lomax":
            tail = require_count("tail", _TAIL if self.tail is None else self.tail)
            if tail > _LARGEST_TAIL:
                raise ParameterError(
                    f"tail must be {_LARGEST_TAIL} or less: its powers are exact, and "
                    "beyond that the noise is nearly Laplace noise anyway",
                    parameter="tail",
                )
            object.__setattr__(self, "tail", tail)
        elif self.tail is not None:
            raise ParameterError("tail belongs to noise='lomax': leave it out", parameter="tail")
        if self.smoothing is not None:
            given = read_epsilon_share(self.smoothing)
            object.__setattr__(self, "smoothing", given)
        self._check_smoothing()

    @classmethod
    def for_population(
        cls,
        statistic: Numeric,
        population: Population,
        *,
        epsilon: float,
        rows: int | None = None,
        tables: int = 50,
        beta: float = 0.05,
        seed: int = 0,
        noise: HeavyNoise | None = None,
    ) -> Smooth:
        """Choose law, tail and smoothing by the errors on tables of a public population.

        Parameters
        ----------
        statistic : Quantile, TrimmedMean or InterquartileRange
            What is to be released.
        population : Population
            Public source of rows. A wrong one costs accuracy, and no privacy; the private rows are
            none, and a release of them is refused where the population holds them.
        epsilon : float
            Privacy loss, in nats.
        rows : int, optional
            Rows of each table; those of the statistic, if their number is public.
        tables : int, default 50
            Tables to draw.
        beta : float, default 0.05
            The error that is exceeded with this probability is made small, on average.
        seed : int, default 0
            Seed of the tables.
        noise : {"lomax", "t2"}, optional
            Law to choose within; both by default.

        Returns
        -------
        Smooth
            The best one of nine: five tails of Lomax noise with their largest smoothing, and four
            smoothings of Student's. With `noise` the best one of that law.

        Raises
        ------
        ParameterError
            If a parameter cannot be used.
        BadRows
            If the population raises, or gives something else than rows.
        """
        description(population)  # refuses what is none
        if noise is not None:
            require_one_of("noise", noise, get_args(HeavyNoise))
        made = list_choices(statistic, epsilon, noise)
        count = statistic.rows if rows is None else require_count("rows", rows)
        if count is None:
            raise ParameterError(
                "the number of rows is private: give rows, a public guess of it", parameter="rows"
            )
        require_count("tables", tables)
        errors = measure_choices(made, population, rows=count, tables=tables, beta=beta, seed=seed)
        chosen = made[int(np.argmin(errors))]
        object.__setattr__(chosen, "_source", Source(population))
        return chosen

    @property
    def made_from(self) -> Any:
        """Population by which it was chosen, if it was."""
        return self._source.made_from

    def _check_smoothing(self) -> None:
        """Refuse a smoothing that the tail cannot hide, or that rounding leaves no room for."""
        asked, level = self._asked, decimal_of(self.epsilon)
        holds = self.tail * asked <= level if self.tail else 2 * asked < level
        if not holds:
            most = f"epsilon / {self.tail} (tail={self.tail})" if self.tail else "below epsilon / 2"
            raise ParameterError(
                f"smoothing must be {most}, because the tail of the noise hides no more than that; "
                f"got {as_given(self.smoothing)} at epsilon={self.epsilon}",
                parameter="smoothing",
            )
        if asked <= 2 * _MARGIN:
            raise ParameterError(
                "smoothing must be above 2**-40, which rounding takes: ask for a larger epsilon",
                parameter="smoothing",
            )

    @property
    def _asked(self) -> Fraction:
        """Smoothing as asked for, exact."""
        if self.smoothing is not None:
            return decimal_of(self.smoothing)
        level = decimal_of(self.epsilon)
        return level / self.tail if self.tail else level * _SHARE

    @property
    def beta(self) -> Fraction:
        """Smoothing of the sensitivity that is computed: a hair below the one asked for."""
        return self._asked - _MARGIN

    @property
    def factor(self) -> float:
        """Scale of the noise in units of the smooth sensitivity, rounded up."""
        return noise_factor(
            self.noise, decimal_of(self.epsilon), self.beta + _COMPUTED, self.tail or 0
        )

    @property
    def rounding(self) -> float:
        """Half a step of the grid, which the answer is rounded to."""
        return math.ldexp(0.5, noise.range_grid(*self.statistic.span))

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: that of any mechanism of pure epsilon."""
        return randomised_response(self.epsilon)

    @called_as("mechanism.losses(3)")
    def losses(self, rows: float) -> Known:
        """Epsilon, rho and curve where so many rows differ."""
        return pure_losses(self._level(rows))

    def accuracy(self, beta: float = 0.05) -> float:
        """Error in units of the smooth sensitivity, exceeded with probability at most beta.

        The smooth sensitivity that it counts is private, and so is the error in the units of the
        answer: `error_on` says it for a public table.
        """
        require_probability("beta", beta)
        if self.tail:
            size = math.expm1(-math.log(beta) / self.tail)
        else:
            size = (1 - beta) * math.sqrt(2 / (beta * (2 - beta)))
        return round_up(self.factor * size, LIBRARY)

    @called_as("mechanism.exceeds(2.0)")
    def exceeds(self, size: ArrayLike) -> Floats:
        """Probability of an error above a size; it is what `accuracy` inverts.

        Parameters
        ----------
        size : float or array of float
            In units of the smooth sensitivity; 0 or more.

        Returns
        -------
        ndarray of float
            As doubles compute it. What moving the answer into its range does is left out.
        """
        far = read_array("size", size) / self.factor
        if self.tail:
            return np.asarray(np.exp(-self.tail * np.log1p(far)))
        root = np.sqrt(2 + far * far)
        return np.asarray(2 / (root * (root + far)))  # 1 - far / root, where nothing cancels

    def error_on(self, public_rows: Any, beta: float = 0.05) -> float:
        """Error on a public table, exceeded with probability at most beta.

        Parameters
        ----------
        public_rows : array, list or frame
            A public table like the private one: what comes out is about these rows, exactly.
        beta : float, default 0.05
            Probability; in (0, 1).

        Returns
        -------
        float
            In the units of the answer, half a step of the grid included.
        """
        moved = self.statistic.smooth_sensitivity(public_rows, self.beta)
        return round_up(self.accuracy(beta) * moved, ARITHMETIC) + self.rounding

    def draw(self, rows: Any) -> float:
        """Release the statistic of a table, in its public range."""
        value = self.statistic.value(rows)
        moved = self.statistic.smooth_sensitivity(rows, self.beta)
        scale = Fraction(self.factor) * Fraction(moved)
        low, high = self.statistic.span
        if self.tail:
            return noise.add_lomax(value, scale=scale, tail=self.tail, low=low, high=high)
        return noise.add_student(value, scale=scale, low=low, high=high)


def list_choices(statistic: Numeric, epsilon: float, law: HeavyNoise | None) -> list[Smooth]:
    """List the laws, tails and smoothings that `Smooth.for_population` chooses from."""
    level = decimal_of(read_epsilon(epsilon))
    made = []
    if law != "t2":
        made += [Smooth(statistic, epsilon=epsilon, tail=tail) for tail in _TAILS]
    if law != "lomax":
        made += [
            Smooth(statistic, epsilon=epsilon, noise="t2", smoothing=float(share * level))
            for share in _SHARES
        ]
    return made


def measure_choices(
    made: Sequence[Smooth],
    population: Population,
    *,
    rows: int,
    tables: int,
    beta: float,
    seed: int,
) -> Floats:
    """Sum the error of each choice over public tables; a table is drawn and sorted once for all."""
    errors = np.zeros(len(made))
    for table in range(tables):
        drawn = draw_rows(population, np.random.default_rng([seed, table]), rows)
        read = ReadRows.of(made[0].statistic, drawn)
        errors += [each.error_on(read, beta) for each in made]
    return errors


def read_epsilon_share(value: Any) -> float:
    """Read a smoothing, which stands for its shortest decimal as an epsilon does."""
    try:
        return read_epsilon(value)
    except ParameterError:
        raise ParameterError(
            f"smoothing must be a finite number above 0, got {as_given(value)}",
            parameter="smoothing",
        ) from None


@lru_cache(maxsize=256)
def noise_factor(law: HeavyNoise, epsilon: Fraction, beta: Fraction, tail: int) -> float:
    """Smallest factor c with which noise c S Z loses epsilon for every beta-smooth S; rounded up.

    Notes
    -----
    Lomax, density ``(m/2) (1 + |z|)**-(m+1)``: the loss is exactly the largest of ``(m + 1) log(1 +
    1/c)``, ``beta + (m + 1) log(1 + exp(-beta)/c)`` and ``m beta``. Student's t with d = 2 degrees:
    the largest of ``3 asinh(1/(2 sqrt(2) c))`` and ``3/2 arcosh(cosh(beta) + exp(-beta)/(4 c**2)) +
    beta/2``. Both are proved in docs/worst-case.md.
    """
    with mp.workprec(_BITS):
        if law == "lomax":
            still = 1 / mp.expm1(_mpf(epsilon / (tail + 1)))
            moving = _mpf_exp(-beta) / mp.expm1(_mpf((epsilon - beta) / (tail + 1)))
        else:
            still = 1 / (mp.sqrt(8) * mp.sinh(_mpf(epsilon / 3)))
            # cosh(a) - cosh(b) = 2 sinh((a + b)/2) sinh((a - b)/2) with a = (2 epsilon - beta) / 3
            apart = mp.sinh(_mpf((epsilon + beta) / 3)) * mp.sinh(_mpf((epsilon - 2 * beta) / 3))
            moving = mp.sqrt(_mpf_exp(-beta) / (8 * apart))
        found = max(still, moving) * (1 + mp.ldexp(1, 16 - _BITS))
        exact = Fraction(int(mp.floor(mp.ldexp(found, _BITS))) + 1, 1 << _BITS)
    above = float_above(exact)
    if math.isinf(above):
        raise ParameterError("the noise would exceed every double: ask for a larger epsilon")
    return above


def _mpf(number: Fraction) -> Mpf:
    return mp.mpf(number.numerator) / number.denominator


def _mpf_exp(number: Fraction) -> Mpf:
    return mp.exp(_mpf(number))
