"""Bounds that are not known: found in the rows first, by sparse vector, and public from then on.

One bound serves all groups. One unit of privacy moves the numbers of rows beyond all candidates the
same way, by its rows at most, so that they are monotone: docs/noise/sparse-vector.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from hushed._ground.decimals import stated_below
from hushed._ground.types import StoredType
from hushed.errors import ParameterError
from hushed.mechanisms._bound_search import BoundSearch
from hushed.sensitivity import proven_sensitivity
from hushed.tables._grid import FARTHEST
from hushed.tables._ladders import climb_powers, list_powers
from hushed.tables._measurements import Feature, UnitContribution
from hushed.tables._requests import Aggregate

Side = Literal["low", "high"]
# Exponents of the bounds that a search tries: for doubles as far as they are read, for integers
# those of 64 bits.
_REAL, _WHOLE = (-20, math.floor(math.log2(FARTHEST))), (0, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A bound of an aggregate that is found in the rows of all groups together."""

    output: str  # output whose column is clipped at it
    side: Side  # which of its bounds
    feature: Feature  # on which rung of the bounds a value lies
    # How far one unit moves the number of rows beyond each bound, all of them the same way.
    rows: int
    bounds: tuple[float, ...]  # what is chosen from, away from zero


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPart:
    """A bound that is found first, and the noise of its search."""

    search: Search  # what is searched
    law: BoundSearch  # how: by sparse vector, with one-sided exponential noise
    share: float  # its share of the budget

    def draw(self, rows: Sequence[int]) -> float:
        """Choose a bound, given the rows on each rung between the bounds."""
        beyond = sum(rows) - np.cumsum(np.asarray(rows, dtype=np.int64))
        return self.search.bounds[self.law.search(beyond[:-1])]

    def error(self, beta: float) -> float:
        """Rows beyond the bound that is found, except with probability beta."""
        return self.law.rows_beyond(beta, len(self.search.bounds))


def searches(
    aggregate: Aggregate, contribution: UnitContribution, columns: Mapping[str, StoredType]
) -> tuple[Search, ...]:
    """List the bounds of an aggregate that have to be found in the rows."""
    column, rows = aggregate.column or "", contribution.rows or 0
    least, most = _REAL if columns.get(column) == "float" else _WHOLE
    found = []
    for side in aggregate.search:
        other = aggregate.low if side == "high" else -aggregate.high
        if "low" in aggregate.search and "high" in aggregate.search:
            other = 0.0
        powers = list_powers(max(other, 0.0), least, most)
        if not powers:
            raise ParameterError(
                f"there is nothing to search beyond {other:g}: give both bounds", parameter=side
            )
        ladder = climb_powers(powers, negated=side == "low")
        feature = Feature(kind="rung", column=column, bins=ladder.rungs, ladder=ladder)
        bounds = powers if side == "high" else tuple(-each for each in powers)
        found.append(
            Search(output=aggregate.name, side=side, feature=feature, rows=rows, bounds=bounds)
        )
    return tuple(found)


def plan_search(search: Search, epsilon: Fraction, share: float) -> SearchPart:
    """One unit moves the numbers of rows beyond all bounds the same way."""
    moved = proven_sensitivity(
        float(search.rows),
        "sup",
        neighbours="add-remove",
        argument="rows of one unit, counted beyond each bound",
    )
    law = BoundSearch(moved, epsilon=stated_below(epsilon))
    return SearchPart(search=search, law=law, share=share)
