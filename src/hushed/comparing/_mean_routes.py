"""The mean of a table query: within a declared range, and with an upper end that is searched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from hushed._ground.decimals import decimal_of, stated_below
from hushed._ground.printing import format_exactly
from hushed._ground.types import Floats, Integers
from hushed.comparing._offers import Offer, Plan, Priced, say_unit
from hushed.comparing._question import Question
from hushed.comparing._simulated import Table
from hushed.guarantee import Guarantee
from hushed.mechanisms._bound_search import SMALLEST, BoundSearch
from hushed.sensitivity import proven_sensitivity
from hushed.statistics import Numeric, TrimmedMean
from hushed.statistics._values import only_column, read_numbers

_COUNTS, _CELLS = 101, 512  # cells of the noise on a count, and of that on a threshold
_BEYOND = 24  # bounds above the range that a search may go on to
_NEGLIGIBLE = 1e-6  # chance of a bound, which is left out
_HALVINGS = 50


def takes_mean(statistic: object) -> bool:
    """Whether it is a mean of all rows, as a table has it."""
    return isinstance(statistic, TrimmedMean) and not statistic.trim


@dataclass(frozen=True, slots=True)
class Quotient:
    """A noisy sum over a noisy count, for each table and bound that may be found on it."""

    cases: Floats  # rows: weight, exact answer, count, centre, reach, sum of distances from it
    owners: Integers  # table of each case
    share: float  # epsilon of each of the two
    tables: int

    def quantile(self, beta: float) -> float:
        """Error that is exceeded with probability at most beta."""
        _, exact, _, centre, reach, _ = self.cases.T
        low, high = 0.0, float((np.abs(centre - exact) + reach).max())
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._beyond(middle) <= beta else (middle, high)
        return high

    def _beyond(self, error: float) -> float:
        weight, exact, count, centre, reach, total = (each[:, None] for each in self.cases.T)
        noise, shares = _spread_counts(self.share)
        rows = np.maximum(count + noise, 1.0)
        scale = reach / self.share
        up, down = exact + error - centre, exact - error - centre
        above = np.where(up < reach, _tail((up * rows - total) / scale), 0.0)
        below = np.where(down > -reach, _tail((total - down * rows) / scale), 0.0)
        return float(weight[:, 0] @ ((above + below) @ shares)) / self.tables

    def take(self, kept: Integers) -> Quotient:
        """Mixture over some of the tables alone."""
        stay = np.isin(self.owners, kept)
        return replace(self, cases=self.cases[stay], owners=self.owners[stay], tables=len(kept))


def _tail(size: Floats) -> Floats:
    """Probability that Laplace noise of scale 1 is above a size."""
    far = np.exp(-np.abs(size)) / 2
    return np.where(size > 0, far, 1 - far)


@lru_cache(maxsize=8)
def _spread_counts(share: float) -> tuple[Floats, Floats]:
    """Give the noise on a count, middles of many cells of equal probability, with their shares."""
    middles = (np.arange(_COUNTS) + 0.5) / _COUNTS - 0.5
    rounded = np.rint(-np.sign(middles) * np.log1p(-2 * np.abs(middles)) / share)
    noise, cells = np.unique(rounded, return_counts=True)
    return noise, cells / _COUNTS


def offer_mean(statistic: Numeric, question: Question, *, searched: bool) -> Offer:
    """Offer the mean of a table, each part with an equal share of epsilon."""
    high = '"search"' if searched else format_exactly(statistic.high)

    def plan(epsilon: float) -> Plan:
        part = decimal_of(epsilon) / (3 if searched else 2)
        law = _search_by(stated_below(part)) if searched else None
        promised = Guarantee(epsilon=epsilon, neighbours="add-remove")
        asked = f"mean(COLUMN, low={format_exactly(statistic.low)}, high={high})"
        how = f"hs.table(...).{asked}.release(epsilon={format_exactly(epsilon)})"

        def price(rows: Floats) -> Priced:
            cases = rows.reshape(-1, 6)
            owners = np.repeat(np.arange(len(rows)), rows.shape[1] // 6)
            kept = cases[:, 0] > _NEGLIGIBLE
            errors = Quotient(cases[kept], owners[kept], float(part), len(rows))
            return Priced(guarantee=promised, errors=errors, how=how)

        measure = partial(_measure, statistic, law)
        return Plan(measure=measure, price=price)

    return Offer(promise=f"every table, one {say_unit(question)} more or less", at=plan)


def _search_by(epsilon: float) -> BoundSearch:
    """Make the search of a query: one row moves the rows beyond each bound by one at most."""
    moved = proven_sensitivity(
        1.0, "sup", neighbours="add-remove", argument="rows, counted beyond each bound"
    )
    return BoundSearch(moved, epsilon=epsilon)


def _measure(statistic: Numeric, law: BoundSearch | None, table: Table) -> Floats:
    """List the cases of a table: weight, answer, count, centre, reach, sum from the centre."""
    read = table.read(statistic)
    values, bounds, weights = read.values, np.array([statistic.high]), np.array([1.0])
    if law is not None:  # powers of two, of which those far above the range are left out
        bounds = SMALLEST * 2.0 ** np.arange(1000)
        bounds = bounds[bounds > max(statistic.low, 0.0)]
        bounds = bounds[: int(np.searchsorted(bounds, statistic.high)) + _BEYOND]
        if values[-1] == statistic.high:  # a query that searches knows nothing of that end
            values = read_numbers(only_column(table.rows), statistic.low, float(bounds[-1]))
        upto = np.searchsorted(values, bounds, side="right")
        weights = _chances(law, values.size - upto)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    inside = np.searchsorted(values, bounds, side="right")
    count = float(values.size)
    centre, reach = (statistic.low + bounds) / 2, (bounds - statistic.low) / 2
    total = sums[inside] + bounds * (count - inside) - centre * count
    same = np.ones(bounds.size)
    exact = float(statistic.value(read))
    return np.stack([weights, exact * same, count * same, centre, reach, total], axis=1).ravel()


def _chances(law: BoundSearch, beyond: Integers) -> Floats:
    """Chance that a search ends at each bound, by the noise on the counts; the last has the rest.

    A bound ends it if its count, with noise, is not above the threshold, with noise of its own.
    """
    scales = law.plan.scales
    step = float(2.0**law.plan.grid)
    bar = -float(scales.threshold) * step * np.log1p(-(np.arange(_CELLS) + 0.5) / _CELLS)
    over = np.maximum(beyond[:, None] - (law.above or 0.0) + bar, 0.0)
    stops = np.exp(-over / (float(scales.query) * step))
    reached = np.cumprod(np.concatenate([np.ones((1, _CELLS)), 1 - stops[:-1]]), axis=0)
    found = (reached * stops).mean(axis=1)
    found[-1] += (reached[-1] * (1 - stops[-1])).mean()
    return np.asarray(found)
