"""Transformations and how they chain: a function between two spaces, and its stability map.

A transformation says how far outputs can move when inputs move: for every two inputs at most
``d_in`` apart, the outputs are at most ``map(d_in)`` apart. Chaining composes functions and maps
(Hay, Gaboardi, Vadhan, *A Programming Framework for OpenDP*, 2020; McSherry, *Privacy Integrated
Queries*, SIGMOD 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Generic, TypeVar

from hushed._functions._gate import read_rows
from hushed._functions._row_functions import refuse_carrying_steps
from hushed._ground.notebook import Card, Shown
from hushed._ground.printing import format_up
from hushed._ground.weak_promises import NOMINAL
from hushed.errors import ParameterError, SpaceMismatch
from hushed.guarantee import Neighbours
from hushed.spaces import Distance, Space
from hushed.transformations._matching import conversions

_Made = TypeVar("_Made")
Relation = Callable[[Distance], Distance]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Transformation(Shown):
    """A function between two spaces with a proven, declared or sampled stability.

    Parameters
    ----------
    name : str
        What it does, for messages and arguments.
    source : Space
        What it takes.
    target : Space
        What it gives.
    function : callable
        Checked member of the source domain in, member of the target domain out.
    relation : callable
        Stability map: distance of inputs in, bound on the distance of outputs out; never
        decreasing.
    steps : tuple of Transformation, default ()
        The transformations that were chained; empty for a single one.
    settings : tuple, default ()
        Public settings of a single one, as its constructor took them.
    raw : bool, default False
        True if it must be given the very rows that were sampled: no step may change them before.
    keeps : bool, default False
        True if it gives the rows that it takes.
    """

    name: str
    source: Space
    target: Space
    function: Callable[[Any], Any] = field(repr=False)
    relation: Relation = field(repr=False)
    steps: tuple[Transformation, ...] = field(default=(), repr=False)
    settings: tuple[Any, ...] = ()
    raw: bool = False
    keeps: bool = False

    def __call__(self, data: Any) -> Any:
        """Check that data lies in the source domain, and apply the function to a copy."""
        refuse_carrying_steps(self.function, data)
        return self.function(read_rows(self.source.domain.check, data))

    def map(self, d_in: float | Distance) -> Distance:
        """Carry a distance of inputs to a distance of outputs.

        Parameters
        ----------
        d_in : int, float or Distance
            Bound on the distance of two inputs under the source metric.

        Returns
        -------
        Distance
            Bound on the distance of their outputs under the target metric, rounded up, for the
            arithmetic that is used; with the gamma of sampled sensitivities on the way.

        Raises
        ------
        ParameterError
            If the distance is negative, NaN, or not an integer where rows are counted.
        """
        return self.relation(distance_in(self.source, d_in))

    def __rshift__(self, other: Any) -> Any:
        """Chain: what this one gives, the other one takes."""
        if isinstance(other, Transformation):
            return _chained(self, other)
        if isinstance(other, Step):
            return apply_step(self, other)
        if hasattr(type(other), "__rrshift__") or not (callable(other) or hasattr(other, "draw")):
            return NotImplemented
        raise SpaceMismatch(f"{self.name} cannot be followed by {_stranger(other)}")

    def __str__(self) -> str:
        """Name, source and target."""
        return f"{self.name}: from {self.source} to {self.target}"

    def _card(self) -> Card:
        facts = [("steps", self.name), ("takes", str(self.source)), ("gives", str(self.target))]
        with suppress(Exception):  # a map may be a function of the caller
            found = self.map(least := least_distance(self.source))
            moved = f"{format_up(found.value)} ({self.target.metric})"
            at = f"at a distance of {least} ({self.source.metric})"
            facts.append(("moves by at most", f"{moved}, {at}{but_for(found)}"))
        return Card(title="Transformation", text=str(self), facts=tuple(facts), words="")


def _stranger(other: Any) -> str:
    """Say what was put behind a transformation, and how it is meant to come in."""
    if hasattr(other, "statistic"):
        return (
            f"the mechanism {type(other).__name__}: end the chain with "
            "measurements.inverse_sensitivity(statistic, epsilon=...), smooth, stable_mode or "
            "propose_test, or give the chain, the rows and the mechanism to release(...)"
        )
    if hasattr(other, "draw"):
        return (
            f"the mechanism {type(other).__name__}, which has a sensitivity of its own: end the "
            "chain with measurements.laplace(scale), or top_k or noisy_max, or give the chain to "
            "release(...) as the function, and chain_sensitivity(chain) to the mechanism"
        )
    return (
        "a plain function, of which nobody says how far it moves: put it in with declared(...) or "
        "from_sensitivity(...), or behind the noise, where it costs nothing"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Step(Generic[_Made]):
    """A transformation or measurement whose source space is not known yet.

    Parameters
    ----------
    name : str
        What it does, for messages.
    build : callable
        Source space in, the finished thing out; refuses a space that does not suit.
    """

    name: str
    build: Callable[[Space], _Made] = field(repr=False)

    def __rrshift__(self, left: Any) -> _Made:
        """Build it on a space."""
        if isinstance(left, Space):
            return self.build(left)
        return NotImplemented

    def __rshift__(self, other: Any) -> Any:
        """Chain two steps before either knows its space."""
        if not isinstance(other, Step):
            return NotImplemented
        return Step(f"{self.name} >> {other.name}", lambda space: self.build(space) >> other)


def apply_step(left: Transformation, step: Step[Any]) -> Any:
    """Build a step on what a transformation gives, and chain the two."""
    built = step.build(left.target)
    return left >> built if isinstance(built, Transformation) else built.after(left)


def _chained(first: Transformation, second: Transformation) -> Transformation:
    joined_spaces(first.name, first.target, second.name, second.source)
    if second.raw:
        require_raw(first, second.name)
    steps = (*(first.steps or (first,)), *(second.steps or (second,)))
    functions = [step.function for step in steps]
    return Transformation(
        name=f"{first.name} >> {second.name}",
        source=first.source,
        target=second.target,
        function=lambda data: reduce(lambda value, function: function(value), functions, data),
        relation=lambda d_in: second.relation(first.relation(d_in)),
        steps=steps,
        raw=first.raw or second.raw,
        keeps=first.keeps and second.keeps,
    )


def require_raw(first: Transformation, name: str) -> None:
    """Refuse to change rows before something that was sampled."""
    if not first.keeps:
        raise SpaceMismatch(
            f"{first.name} comes before {name}, whose sensitivity was sampled on rows as the "
            "population gives them, not on what the step makes of them: sample the composed "
            "function instead, lambda rows: f(step(rows)), on a population of what the step takes"
        )


def joined_spaces(left: str, given: Space, right: str, wanted: Space) -> None:
    """Refuse to chain two things whose spaces differ."""
    if given != wanted:
        raise SpaceMismatch(
            f"{left} gives {given}; {right} takes {wanted}; {conversions(given, wanted)}"
        )


def describe_chain(chain: Transformation) -> str:
    """Name the steps of a chain, and what they take."""
    return f"{chain.name}, on {chain.source}"


def require_own_chain(function: Any, sensitivity: Any) -> None:
    """Refuse a function other than the chain whose movement is given.

    Steps with a function of the caller's may have one name, so that the movement is compared, too.

    Raises
    ------
    ParameterError
        If it is another chain, or none.
    """
    if not getattr(sensitivity, "chain", ""):
        return
    if (
        isinstance(function, Transformation)
        and describe_chain(function) == sensitivity.chain
        and function.map(least_distance(function.source)).value <= sensitivity.value
    ):
        return
    raise ParameterError(
        f"the sensitivity is that of the chain {sensitivity.chain}, and bounds nothing else: "
        "release that chain, take chain_sensitivity of the one to be released, or state what you "
        "can prove with hs.proven_sensitivity"
    )


def but_for(distance: Distance) -> str:
    """Say how often a distance may be exceeded, and of which population that is said."""
    if not distance.terms:
        return ""
    nominal = any(term.data_dependent for term in distance.terms)
    often = f", but for a gamma of {format_up(distance.gamma)}, as it was sampled"
    return often + f"; {NOMINAL}" * nominal


def distance_in(space: Space, d_in: float | Distance) -> Distance:
    """Read a distance between two members of a space."""
    distance = d_in if isinstance(d_in, Distance) else Distance(d_in)
    if space.metric.of_rows and not isinstance(distance.value, int):
        raise ParameterError(
            f"{space.metric} are counted in integers, got a distance of {distance.value!r}"
        )
    return distance


def least_distance(space: Space) -> int:
    """Distance of neighbours: 2 between tables of equal size, of which rows come and go."""
    swapped = space.metric.name == "symmetric" and space.neighbours == "replace-one"
    return 2 if swapped else 1


def neighbours_at(space: Space, d_in: int) -> Neighbours:
    """Name the relation of neighbours at a distance, and refuse a distance that none have."""
    neighbours = space.neighbours
    if neighbours is None:
        raise ParameterError(
            f"a guarantee is about rows, not of {space}: chain it behind them, or ask map for the "
            "loss at a distance"
        )
    distance_in(space, d_in)
    if d_in < 1 or d_in % least_distance(space):
        raise ParameterError(
            "neighbours differ in one row or more, and tables of equal size by an even number of "
            f"rows added and removed: d_in=2 for one replaced; got {d_in}"
        )
    return neighbours


def linear(bound: Callable[[int], float]) -> Relation:
    """Make a relation from a bound on plain numbers; what was sampled before is passed on."""
    return lambda d_in: Distance(bound(d_in.value), d_in.terms)  # type: ignore[arg-type]
