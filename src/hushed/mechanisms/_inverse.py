"""Inverse sensitivity: a value is the likelier, the fewer rows must change to make it true."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from hushed import noise
from hushed._ground.calls import called_as
from hushed._ground.checks import read_epsilon, require_probability
from hushed._ground.printing import format_up, name_count
from hushed._ground.types import Floats, Integers
from hushed.errors import ParameterError
from hushed.mechanisms._exponential import bounded_losses
from hushed.mechanisms._law import Known
from hushed.mechanisms._on_statistic import OnStatistic
from hushed.privacy_loss import PrivacyProfile, bounded_range
from hushed.statistics import Mode, Numeric, Statistic
from hushed.statistics._constructors import KINDS
from hushed.statistics._priors import remember
from hushed.statistics._record import read_candidates

WIDTH = 2.0  # one row moves every length by at most 1, some up and some down
_GRID = 2.0**20  # the logarithm of a prior is rounded to whole parts of this
_FARTHEST = 2.0**32
_MOST_QUADRATIC = 1 << 14
_LEAST_WEIGHT = 1e-290  # of the largest one: its share in all of them is a normal double
_COMPUTED = 1 + 2.0**-20  # covers what doubles lose of a chance
_NEGLIGIBLE = 60.0  # lengths are cut where a value has e**-60 of the best one's probability


@called_as("hs.InverseSensitivity(hs.statistics.median(low=0, high=100), epsilon=1.0)")
@dataclass(frozen=True, slots=True)
class InverseSensitivity(OnStatistic):
    """Draw a value whose odds fall by ``exp(epsilon / 2)`` for each row that must change.

    A statistic of numbers is rounded to the nearest candidate: that one needs no row to change.

    Parameters
    ----------
    statistic : Statistic
        What is released, from `hushed.statistics`.
    epsilon : float
        Privacy loss, in nats; finite, above 0. It stands for its shortest decimal.
    candidates : sequence of float, optional
        Public values to choose from, in the range of the statistic. By default 2,000 of them,
        geometric where the range is not negative, else even. A mode chooses from its categories.
    prior : sequence of float, optional
        Public weight of each candidate, 0 or more: a guess, which costs accuracy where it is wrong
        and no privacy. A candidate of weight 0 is left out.

    Raises
    ------
    ParameterError
        If a parameter cannot be used.

    Notes
    -----
    Asi and Duchi, *Near Instance-Optimality in Differential Privacy*, 2020. The promise holds for
    every table and every function: docs/worst-case.md.
    """

    name: ClassVar[Literal["inverse-sensitivity"]] = "inverse-sensitivity"
    accuracy_name: ClassVar[str] = "changed rows that explain the answer in 95 % of draws"

    statistic: Statistic
    _: KW_ONLY
    epsilon: float
    candidates: Sequence[float] | None = None
    prior: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if type(self.statistic) not in KINDS.values():  # a subclass may compute anything
            raise ParameterError(
                "InverseSensitivity takes a statistic such as hs.statistics.median(...), got "
                f"{type(self.statistic).__name__}"
            )
        if not self.statistic.invertible:
            raise ParameterError(
                f"the inverse sensitivity of the {self.statistic.kind} is known for a public "
                "number of rows only",
                parameter="rows",
                hint="give rows=NUMBER, or use hs.Smooth",
            )
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        noise.selection_scale(width=WIDTH, epsilon=self.epsilon)  # refuses too small an epsilon
        if self.candidates is not None:
            object.__setattr__(self, "candidates", _read_values(self.statistic, self.candidates))
        if self.prior is not None:
            prior = read_prior(self.prior, len(self.values), self.epsilon)
            if isinstance(self.statistic, Mode) and not all(prior):
                raise ParameterError(
                    "every category must have a weight above 0, for it may be the answer: leave it "
                    "out of hs.statistics.mode, then its rows do not count",
                    parameter="prior",
                )
            object.__setattr__(self, "prior", prior)
        if (
            self.statistic.quadratic
            and min(self._reach, self.statistic.rows or 0) > _MOST_QUADRATIC
        ):
            least = self.epsilon * self._reach / _MOST_QUADRATIC
            raise ParameterError(
                f"epsilon must be {format_up(least, 3)} or more for so many rows: the search for "
                f"the lengths of the {self.statistic.kind} would take minutes; or take its smooth "
                "sensitivity",
                parameter="epsilon",
            )

    @property
    def values(self) -> tuple[Any, ...]:
        """What is chosen from."""
        if self.candidates is not None:
            return tuple(self.candidates)
        if isinstance(self.statistic, Mode):
            return tuple(self.statistic.categories)
        return _default_values(self.statistic)[0]

    @property
    def count(self) -> int:
        """How many of them can win."""
        return len(self.values) if self.prior is None else sum(map(bool, self.prior))

    @property
    def spacing(self) -> Literal["geometric", "even", "given", "categories"]:
        """Where the candidates come from."""
        if self.candidates is not None:
            return "given"
        if isinstance(self.statistic, Mode):
            return "categories"
        return _default_values(self.statistic)[1]

    @property
    def least(self) -> float:
        """Smallest weight of a candidate that is not left out, as a share of all weights."""
        if self.prior is None:
            return 1 / len(self.values)
        return min(filter(None, self.prior)) / math.fsum(self.prior)

    @property
    def parameters(self) -> dict[str, float | int | bool | str]:
        """What a certificate says of it, beside the statistic."""
        return {
            "epsilon": self.epsilon,
            "candidates": self.count,
            "spacing": self.spacing,
            "prior": self.prior is not None,
            "least": self.least,
            "fingerprint": self._fingerprint(),
        }

    @property
    def loss(self) -> PrivacyProfile:
        """Privacy loss at every level: the losses of all candidates lie in a range of epsilon."""
        return bounded_range(self.epsilon)

    @called_as("mechanism.losses(3)")
    def losses(self, rows: float) -> Known:
        """Epsilon, rho and curve where so many rows differ."""
        return bounded_losses(self._level(rows))

    def accuracy(self, beta: float = 0.05) -> float:
        """Count the changed rows that explain the drawn value except with probability beta.

        The drawn value is the candidate nearest to what the table would have answered with so many
        rows changed, or fewer. If it is empty, with one more.
        """
        return rows_astray(self.epsilon, self.least, beta)

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
            Distance from the exact value that a drawn one keeps to, by `chances_on`; NaN for a
            mode.
        """
        require_probability("beta", beta)
        if not isinstance(self.statistic, Numeric):
            return math.nan
        chances = self.chances_on(public_rows)
        far = np.abs(np.array(self.values) - float(self.statistic.value(public_rows)))
        order = np.argsort(far)[::-1]
        beyond = np.cumsum(chances[order]) * _COMPUTED  # with a chance of that or a farther one
        return float(far[order][np.searchsorted(beyond, beta, side="right")])

    def chances_on(self, public_rows: Any) -> Floats:
        """Probability with which each value is drawn on a public table.

        Parameters
        ----------
        public_rows : array, list or frame
            A public table like the private one: what comes out is about these rows.

        Returns
        -------
        ndarray of float
            One number for each of `values`, as doubles compute it; together they are 1.
        """
        kept, offsets = self._offers()
        scores = offsets - self._lengths(public_rows, kept)
        reach = noise.selection_scale(width=WIDTH, epsilon=self.epsilon)[0]
        weights = np.exp((scores - scores.max()) / reach)
        chances = np.zeros(len(self.values))
        chances[kept] = weights / weights.sum()
        return chances

    def draw(self, rows: Any) -> Any:
        """Release the statistic of a table: one of the candidates."""
        kept, offsets = self._offers()
        found = noise.select(offsets - self._lengths(rows, kept), width=WIDTH, epsilon=self.epsilon)
        return self.values[int(kept[found])]

    def _lengths(self, rows: Any, kept: Integers) -> Integers:
        """Rows that must change before each candidate is the answer, cut at a public number.

        So cut, they still move by at most 1 with a row. One of them is 0, or 1 of an empty table:
        a statistic of numbers is rounded to the nearest of these candidates.
        """
        if isinstance(self.statistic, Numeric):
            wanted = np.array(self.values)[kept]
            found = self.statistic.lengths(rows, wanted, most=self._reach, nearest=True)
        else:
            found = self.statistic.lengths(rows, self.values)[kept]
        return np.asarray(np.minimum(found, self._reach))

    @property
    def _reach(self) -> int:
        """Length at which a candidate has a negligible chance."""
        farther = (_NEGLIGIBLE - math.log(self.least)) * 2 / self.epsilon
        return math.ceil(min(farther, _FARTHEST))

    def _offers(self) -> tuple[Integers, Floats]:
        """Places of the candidates that can win, and what the prior adds to their scores."""
        if self.prior is None:
            return np.arange(len(self.values)), np.zeros(len(self.values))
        weights = np.array(self.prior)
        kept = np.flatnonzero(weights).astype(np.int64)
        return kept, compute_offsets(weights[kept], self.epsilon)

    def _fingerprint(self) -> str:
        text = repr((self.values, self.prior))
        return hashlib.sha256(text.encode()).hexdigest()


def rows_astray(epsilon: float, least: float, beta: float) -> float:
    """Rows by which a drawn value may be worse than the best one except with probability beta."""
    require_probability("beta", beta)
    drawn, grid = noise.selection_scale(width=WIDTH, epsilon=epsilon)
    return drawn * -(math.log(least) + math.log(beta)) * (1 + 1e-15) + math.ldexp(1.0, grid)


@lru_cache(maxsize=64)
def _default_values(statistic: Numeric) -> tuple[tuple[float, ...], Literal["geometric", "even"]]:
    values, spacing = statistic.candidates()
    return tuple(values.tolist()), spacing


def _read_values(statistic: Statistic, given: Any) -> tuple[Any, ...]:
    if not isinstance(statistic, Numeric):
        raise ParameterError(
            "a mode is chosen from its categories: leave candidates out", parameter="candidates"
        )
    return remember(read_candidates(given, statistic.span).tolist(), given)


def read_prior(given: Any, count: int, epsilon: float) -> tuple[float, ...]:
    """Read public weights, and refuse what cannot be rounded to a grid without harm."""
    noise.selection_scale(width=WIDTH, epsilon=epsilon)  # refuses too small an epsilon
    weights = np.asarray(given)
    if weights.shape != (count,) or weights.dtype.kind not in "iuf":
        raise ParameterError(
            f"prior must be a list of {name_count(count, 'number')}, one for each candidate",
            parameter="prior",
        )
    weights = weights.astype(np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ParameterError(
            "every weight of the prior must be finite and 0 or more, and one above 0",
            parameter="prior",
        )
    given_any = weights > 0
    weights = weights / weights.max()
    if (weights[given_any] < _LEAST_WEIGHT).any():
        raise ParameterError(
            f"every weight of the prior must be 0, or {_LEAST_WEIGHT:g} of the largest one or more",
            parameter="prior",
        )
    if -compute_offsets(weights[given_any], epsilon).min() > _FARTHEST:
        raise ParameterError(
            "the prior is too uneven for so small an epsilon: leave its smallest weights out",
            parameter="prior",
        )
    return remember(weights.tolist(), given)


def compute_offsets(weights: Floats, epsilon: float) -> Floats:
    """Rows that a weight is worth, on a grid so coarse that adding a length is exact."""
    worth = 2 / epsilon * np.log(weights / weights.max())
    return np.asarray(np.rint(worth * _GRID) / _GRID)
