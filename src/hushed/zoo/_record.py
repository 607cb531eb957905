"""The record of a specimen: mechanism, claim, truth, and the pair that shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import as_given, format_up
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee

Rows: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[Rows, Rows]
Relation = Literal["every-answer", "one-answer", "one-row"]
Curve = Callable[[float], float]
Event = Callable[[NDArray[Any]], NDArray[np.bool_]]


class BatchMechanism(Protocol):
    """A mechanism that draws many independent outputs at once."""

    def __call__(self, rows: Rows, rng: np.random.Generator, size: int, /) -> NDArray[Any]:
        """Draw ``size`` outputs on the same rows; the first axis counts them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Specimen(Shown):
    """A mechanism whose true privacy is known on the pair that shows it.

    Parameters
    ----------
    name : str
        Name in this zoo.
    mechanism : BatchMechanism
        ``mechanism(rows, rng, size)`` draws ``size`` independent outputs, shape ``(size,)`` or
        ``(size, k)``. Its randomness is audit randomness, seeded by ``rng``: never release with it.
    claim : Guarantee
        What the mechanism says of itself.
    relation : {"every-answer", "one-answer", "one-row"}
        What neighbours are. The rows are query answers, each of which may move by at most 1; or
        query answers of which one may move by at most 1; or records, of which one is replaced,
        added or removed, as ``claim.neighbours`` says.
    pairs : tuple of (rows, neighbour)
        Neighbours that show the truth; all numbers below are about the first one.
    private : bool
        Whether the claim is true.
    output : str
        How outputs are coded.
    source : str
        Where the mechanism, or the report of its defect, was published.
    argument : str
        How the truth was derived, in words.
    aliases : tuple of str, default ()
        Names that published tables use.
    epsilon : float, optional
        Largest privacy loss of the first pair, ``sup log P(E)/Q(E)`` with P the output on
        ``rows`` and Q on ``neighbour``, in nats; may be infinite. None where it is not known.
    delta : callable, optional
        ``delta(epsilon)``, the hockey-stick divergence ``sup P(E) - exp(epsilon) Q(E)`` of the
        first pair in the same direction, for epsilon of 0 or more. None where it is not known.
    supremum : float, optional
        Largest privacy loss over all neighbours of the same shape, or of any length where
        ``argument`` says so, in nats. None where it is not known.
    event : callable, optional
        Outputs to flags: an event on which the first pair shows its loss, or most of it.
    doubles : bool, default False
        Whether the truth is about the doubles that come out, bits included, not about the real
        numbers that they stand for.

    Raises
    ------
    ParameterError
        If there is no pair, a number is NaN or below 0, or a mechanism called private loses more
        than it claims on its own pair.

    Notes
    -----
    The output codes use plain numbers, so that a learned event can read them: flags are 1 (yes),
    0 (no) and -1 (not reached); a list with values is a block of flags, then a block of values
    that is 0 where no value was given; NaN stands for an answer that was withheld.
    """

    name: str
    mechanism: BatchMechanism
    claim: Guarantee
    relation: Relation
    pairs: tuple[Pair, ...]
    private: bool
    output: str
    source: str
    argument: str
    aliases: tuple[str, ...] = ()
    epsilon: float | None = None
    delta: Curve | None = None
    supremum: float | None = None
    event: Event | None = None
    doubles: bool = False

    def _card(self) -> Card:
        truth = "not known" if self.epsilon is None else f"{self.epsilon:.6g} on its own pair"
        return card_of_facts(
            f"Specimen {self.name}",
            (
                ("keeps its claim", "yes" if self.private else "no: a defect"),
                ("claims", f"epsilon {format_up(self.claim.epsilon)}"),
                ("true epsilon", truth),
                ("output", self.output),
                ("source", self.source),
            ),
        )

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ParameterError(f"specimen {self.name!r} has no pair; give at least one")
        if not isinstance(self.relation, str) or self.relation not in get_args(Relation):
            raise ParameterError(
                f"relation must be one of {get_args(Relation)}, got {as_given(self.relation)}"
            )
        for what in (self.epsilon, self.supremum):
            if what is not None and not what >= 0:
                raise ParameterError(f"a true epsilon must be 0 or more, got {what}")
        if self.epsilon is not None and self.supremum is not None:
            _require_at_most(self.name, self.epsilon, self.supremum, "its supremum")
        if self.private and self.claim.delta == 0:
            for what in (self.epsilon, self.supremum):
                if what is not None:
                    _require_at_most(self.name, what, self.claim.epsilon, "its claim")

    def violates(self) -> bool | None:
        """Whether the first pair alone refutes the claim.

        Returns
        -------
        bool or None
            None where neither the loss nor the curve of the pair is known.
        """
        if self.claim.delta == 0 and self.epsilon is not None:
            return self.epsilon > self.claim.epsilon * (1 + 1e-9)
        if self.delta is not None and math.isfinite(self.claim.epsilon):
            return self.delta(self.claim.epsilon) > self.claim.delta * (1 + 1e-9)
        return None


def _require_at_most(name: str, met: float, bound: float, what: str) -> None:
    """Refuse a record whose numbers contradict each other; 1e-9 of slack for quadrature."""
    if met > bound * (1 + 1e-9) + 1e-12:
        raise ParameterError(
            f"specimen {name!r} loses {met} on its pair, more than {what} of {bound}; "
            "correct one of the two"
        )
