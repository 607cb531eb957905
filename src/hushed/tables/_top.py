"""The most frequent of some public keys: chosen together, by the joint exponential mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hushed._ground.decimals import stated_below
from hushed.errors import ParameterError
from hushed.guarantee import Unit
from hushed.mechanisms import TopK
from hushed.mechanisms._top_k import MOST_PAIRS
from hushed.sensitivity import proven_sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class TopChoice:
    """A choice of the k keys with the most rows."""

    # On the numbers of rows, or of users, of all keys. A unit of privacy moves each by the rows
    # that it contributes at most, or by 1, and moves all of them the same way.
    mechanism: TopK

    def error(self, beta: float, candidates: int) -> float:
        """Rows, or users, by which a chosen key falls short of the best one for its place, at most.

        For all places together, except with probability beta.
        """
        return self.mechanism.accuracy(beta, candidates)

    def error_one_by_one(self, beta: float, candidates: int) -> float:
        """Find the same of k queries for one key each, at epsilon / k."""
        return self.mechanism.accuracy_one_by_one(beta, candidates)

    def choose(self, counts: Sequence[int]) -> list[int]:
        """Choose the places of k keys, the one with the most first."""
        chosen: list[int] = self.mechanism.draw(counts).tolist()
        return chosen


def plan_top(k: int, moved: int, epsilon: Fraction, unit: Unit) -> TopChoice:
    """Plan a choice of k keys whose numbers move by this much at most, all the same way."""
    movement = proven_sensitivity(
        moved,
        "sup",
        neighbours="add-remove",
        unit=unit,
        argument=f"one {unit} adds to groups, and takes from none",
    )
    return TopChoice(mechanism=TopK(k, movement, epsilon=stated_below(epsilon), monotone=True))


def require_choice(k: int, candidates: int) -> None:
    """Refuse more places than keys, and more keys than are drawn from."""
    if not 1 <= k <= candidates:
        raise ParameterError(
            f"k must lie between 1 and the number of keys, {candidates}, got {k}", parameter="k"
        )
    if k * candidates > MOST_PAIRS:
        raise ParameterError(
            f"k times the number of keys may be {MOST_PAIRS} at most, got {k} times {candidates}",
            parameter="k",
        )
