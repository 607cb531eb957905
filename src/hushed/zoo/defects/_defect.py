"""A defect as a row of a table, and the faulty/fixed pair of specimens that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushed.guarantee import Guarantee
from hushed.zoo._curves import Truth, discrete_truth, laplace_truth
from hushed.zoo._draws import Noise, Noisy, Statistic
from hushed.zoo._events import compare
from hushed.zoo._record import BatchMechanism, Event, Relation, Rows, Specimen

FaultyAndFixed: TypeAlias = tuple[Specimen, Specimen]
Version: TypeAlias = tuple[BatchMechanism, Truth]
Number = Callable[[Rows], float]


class Versions(NamedTuple):
    """Both mechanisms, each with its truth on the pair, and the event that shows the defect."""

    faulty: Version
    fixed: Version
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One row: what is wrong, the rows and the neighbour that show it, and both versions.

    ``at`` gives the versions at a claimed epsilon, which is ``share`` of the epsilon asked for;
    ``source`` names the public report or the class of defect, and ``why`` says why it fails.
    """

    name: str
    pair: tuple[ArrayLike, ArrayLike]
    at: Callable[[float], Versions]
    source: str
    why: str
    output: str = "value, shape (size,)"
    relation: Relation = "one-row"
    neighbours: Literal["replace-one", "add-remove"] = "replace-one"
    delta: float = 0.0
    share: float = 1.0
    most: Callable[[float], float] | None = None  # largest loss of the faulty one over all pairs
    doubles: bool = False  # the truth is about bits


def build(defect: Defect, epsilon: float) -> FaultyAndFixed:
    """Build the faulty and the fixed specimen, under the same claim, pair and event."""
    claimed = defect.share * epsilon
    versions = defect.at(claimed)
    rows, neighbour = (np.array(each, dtype=np.float64) for each in defect.pair)

    def specimen(ending: str, mechanism: BatchMechanism, truth: Truth) -> Specimen:
        return Specimen(
            name=f"{defect.name} ({ending})",
            mechanism=mechanism,
            claim=Guarantee(epsilon=claimed, delta=defect.delta, neighbours=defect.neighbours),
            relation=defect.relation,
            pairs=((rows, neighbour),),
            private=ending == "corrected",
            output=defect.output,
            source=defect.source,
            argument=defect.why,
            epsilon=truth.epsilon,
            supremum=defect.most(claimed) if defect.most and ending == "faulty" else None,
            delta=truth.delta,
            event=versions.event,
            doubles=defect.doubles,
        )

    return (
        specimen("faulty", *versions.faulty),
        specimen("corrected", *versions.fixed),
    )


def laplace_on(
    statistic: Statistic,
    scale: float,
    *,
    each: float | None = None,
    columns: int | None = None,
    after: Callable[[NDArray[np.float64]], Any] | None = None,
) -> Version:
    """Add Laplace noise to numbers that move by 1; ``each`` is the loss of one, if not 1/scale."""
    truth = laplace_truth(1 / scale if each is None else each, columns or 1)
    return Noisy(statistic, Noise("laplace", scale), columns, after), truth


def shift(
    *,
    pair: tuple[ArrayLike, ArrayLike],
    faulty: tuple[Number, float],
    fixed: tuple[Number, float],
    **words: Any,
) -> Defect:
    """Make the row of Laplace noise on a statistic: each version has its statistic and sensitivity.

    The event is the half line from the faulty statistic of the rows, away from the neighbour.
    """
    rows, neighbour = (np.asarray(each, dtype=np.float64) for each in pair)
    here, there = faulty[0](rows), faulty[0](neighbour)
    event = compare(">=" if here > there else "<=", here)

    def version(statistic: Number, sensitivity: float, epsilon: float) -> Version:
        scale = sensitivity / epsilon
        moved = abs(statistic(rows) - statistic(neighbour))
        return Noisy(statistic, Noise("laplace", scale)), laplace_truth(moved / scale)

    return Defect(
        pair=pair,
        at=lambda e: Versions(version(*faulty, e), version(*fixed, e), event),
        **words,
    )


def choose_index(
    *, pair: tuple[ArrayLike, ArrayLike], faulty: float, fixed: float, **words: Any
) -> Defect:
    """Make the row of an index that is drawn with probability ``exp(factor epsilon score)``.

    Each version has its factor. The event is the index whose probability rises the most.
    """
    rows, neighbour = (np.asarray(each, dtype=np.float64) for each in pair)

    def version(factor: float) -> Version:
        laws = (_choice_law(x, factor) for x in (rows, neighbour))
        return partial(_choose, factor=factor), discrete_truth(*laws)

    def at(epsilon: float) -> Versions:
        ratio = _choice_law(rows, faulty * epsilon) / _choice_law(neighbour, faulty * epsilon)
        event = compare("==", float(np.argmax(ratio)))
        return Versions(version(faulty * epsilon), version(fixed * epsilon), event)

    output = "index from 0, shape (size,)"
    return Defect(pair=pair, at=at, output=output, relation="every-answer", **words)


def _choice_law(scores: Rows, factor: float) -> NDArray[np.float64]:
    weights = np.exp(factor * (scores - scores.max()))
    return np.asarray(weights / weights.sum())


def _choose(rows: Rows, rng: np.random.Generator, size: int, /, *, factor: float) -> NDArray[Any]:
    ladder = np.cumsum(_choice_law(rows, factor))
    return np.minimum(np.searchsorted(ladder, rng.random(size), side="right"), rows.size - 1)
