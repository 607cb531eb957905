"""Building blocks of the defect twins: one statistic plus Laplace noise, one choice of index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hushed.guarantee import Guarantee
from hushed.zoo.curves import discrete_delta, discrete_epsilon, laplace_delta
from hushed.zoo.events import at_least, at_most, equal
from hushed.zoo.record import BatchMechanism, Curve, Event, Pair, Relation, Rows, Specimen

__all__ = ["Statistic", "Twins", "add_laplace", "choice", "shifted", "twins"]

Twins: TypeAlias = tuple[Specimen, Specimen]
Statistic = Callable[[Rows], float]


def add_laplace(
    rows: Rows, rng: np.random.Generator, size: int, /, *, statistic: Statistic, scale: float
) -> NDArray[np.float64]:
    """Draw a statistic with Laplace noise.

    Parameters
    ----------
    rows : ndarray of float
        Records.
    rng : numpy.random.Generator
        Source of audit randomness; consumed.
    size : int
        Number of draws.
    statistic : callable
        Statistic of the rows.
    scale : float
        Scale of the noise; above 0.

    Returns
    -------
    ndarray of float, shape (size,)
        Noisy values.
    """
    return np.asarray(statistic(rows) + rng.laplace(scale=scale, size=size))


def twins(
    name: str,
    *,
    faulty: BatchMechanism,
    corrected: BatchMechanism,
    claim: Guarantee,
    pair: Pair,
    event: Event,
    event_words: str,
    output: str,
    source: str,
    argument: str,
    faulty_truth: tuple[float | None, Curve | None],
    corrected_truth: tuple[float | None, Curve | None] = (None, None),
    relation: Relation = "one-row",
) -> Twins:
    """Pair a defect with its correction, under the same claim, pair and event.

    Parameters
    ----------
    name : str
        The defect in a few words.
    faulty, corrected : BatchMechanism
        The two mechanisms.
    claim : Guarantee
        What both claim.
    pair : tuple of (rows, neighbour)
        Pair that shows the defect.
    event : Event
        Event that shows it.
    event_words : str
        The event in words.
    output : str
        How outputs are coded.
    source : str
        Public report, or the class of defect.
    argument : str
        Why the faulty one fails.
    faulty_truth, corrected_truth : tuple of (float or None, callable or None)
        Loss and curve on the pair, as far as known.
    relation : {"every-answer", "one-answer", "one-row"}, default "one-row"
        What neighbours are, as in `Specimen`.

    Returns
    -------
    tuple of (faulty, corrected)
        Two specimens.
    """
    halves = []
    for mechanism, truth, private in (
        (faulty, faulty_truth, False),
        (corrected, corrected_truth, True),
    ):
        halves.append(
            Specimen(
                name=f"{name} ({'corrected' if private else 'faulty'})",
                mechanism=mechanism,
                claim=claim,
                relation=relation,
                pairs=(pair,),
                private=private,
                output=output,
                source=source,
                argument=argument,
                epsilon=truth[0],
                delta=truth[1],
                event=event,
                event_words=event_words,
            )
        )
    return halves[0], halves[1]


def shifted(
    name: str,
    *,
    faulty: tuple[Statistic, float],
    corrected: tuple[Statistic, float],
    claim: Guarantee,
    pair: Pair,
    source: str,
    argument: str,
    relation: Relation = "one-row",
) -> Twins:
    """Twins that add Laplace noise to one statistic; the defect is in the statistic or the scale.

    Parameters
    ----------
    name : str
        The defect in a few words.
    faulty, corrected : tuple of (callable, float)
        Statistic and noise scale.
    claim : Guarantee
        What both claim.
    pair : tuple of (rows, neighbour)
        Pair that moves the faulty statistic too far.
    source, argument : str
        Public report, and why the faulty one fails.
    relation : {"every-answer", "one-answer", "one-row"}, default "one-row"
        What neighbours are, as in `Specimen`.

    Returns
    -------
    tuple of (faulty, corrected)
        Two specimens whose curves are `laplace_delta`.
    """
    truths: list[tuple[float, Curve]] = []
    for statistic, scale in (faulty, corrected):
        loss = abs(statistic(pair[0]) - statistic(pair[1])) / scale
        truths.append((loss, partial(laplace_delta, loss)))
    here, there = faulty[0](pair[0]), faulty[0](pair[1])
    upward = here > there
    return twins(
        name,
        faulty=partial(add_laplace, statistic=faulty[0], scale=faulty[1]),
        corrected=partial(add_laplace, statistic=corrected[0], scale=corrected[1]),
        claim=claim,
        pair=pair,
        event=partial(at_least if upward else at_most, bound=here),
        event_words=f"the value is at {'least' if upward else 'most'} {here:g}",
        output="value, shape (size,)",
        source=source,
        argument=argument,
        faulty_truth=truths[0],
        corrected_truth=truths[1],
        relation=relation,
    )


def choice(
    name: str,
    *,
    faulty: float,
    corrected: float,
    claim: Guarantee,
    pair: Pair,
    source: str,
    argument: str,
) -> Twins:
    """Twins that choose an index with probability ``exp(factor * score)``; the factor is wrong.

    Parameters
    ----------
    name : str
        The defect in a few words.
    faulty, corrected : float
        Factors of the score in the exponent.
    claim : Guarantee
        What both claim.
    pair : tuple of (scores, scores)
        Pair of score vectors.
    source, argument : str
        Public report, and why the faulty one fails.

    Returns
    -------
    tuple of (faulty, corrected)
        Two specimens over the same candidates.
    """
    laws = [[_choice_law(x, factor) for x in pair] for factor in (faulty, corrected)]
    top = int(np.argmax(laws[0][0] / laws[0][1]))
    truths = [(discrete_epsilon(p, q), partial(discrete_delta, p, q)) for p, q in laws]
    return twins(
        name,
        faulty=partial(_choose, factor=faulty),
        corrected=partial(_choose, factor=corrected),
        claim=claim,
        pair=pair,
        event=partial(equal, to=float(top)),
        event_words=f"candidate {top} is chosen",
        output="index from 0, shape (size,)",
        source=source,
        argument=argument,
        faulty_truth=truths[0],
        corrected_truth=truths[1],
        relation="every-answer",
    )


def _choice_law(scores: Rows, factor: float) -> NDArray[np.float64]:
    weights = np.exp(factor * (scores - scores.max()))
    return np.asarray(weights / weights.sum())


def _choose(rows: Rows, rng: np.random.Generator, size: int, /, *, factor: float) -> NDArray[Any]:
    ladder = np.cumsum(_choice_law(rows, factor))
    return np.minimum(np.searchsorted(ladder, rng.random(size), side="right"), rows.size - 1)
