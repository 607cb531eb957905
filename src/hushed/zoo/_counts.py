"""Geometric noise on counts: clipped, leaky, and behind a threshold."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.guarantee import Guarantee
from hushed.zoo._curves import certain_truth, discrete_truth, geometric_tail
from hushed.zoo._draws import draw_geometric, release_above
from hushed.zoo._events import compare, released
from hushed.zoo._record import Rows, Specimen


def truncated_geometric(epsilon: float = 0.1, top: int = 5) -> Specimen:
    """Count with two-sided geometric noise, clipped to ``0..top``, which is private.

    Outputs are whole numbers, shape ``(size,)``; the loss equals the claim.
    """
    return _clipped("truncated geometric", ("TruncatedGeometric",), epsilon, top, 0.0)


def leaky_geometric(epsilon: float = 0.1, top: int = 5, leak: float = 0.01) -> Specimen:
    """Clipped geometric that shows the raw count with some probability: not private.

    Outputs are whole numbers, shape ``(size,)``. It is (epsilon, leak)-private, not epsilon.
    """
    return _clipped("leaky truncated geometric", ("LeakyGeometric",), epsilon, top, leak)


def release_threshold(epsilon: float, delta: float) -> int:
    """Smallest whole threshold that a new key, counted once, passes with probability delta.

    Threshold, rounded up: the side of less leakage.
    """
    threshold = 1
    while geometric_tail(epsilon, threshold - 1) > delta:
        threshold += 1
    return threshold


def count_above_threshold(
    epsilon: float = 1.0, delta: float = 0.01, *, strict: bool = False, threshold: int | None = None
) -> Specimen:
    """Count of a key that may be new, released when its noisy value passes a threshold.

    Outputs are counts or NaN (withheld), shape ``(size,)``. The pair is one row against none; a
    table without the key always withholds.
    """
    bar = release_threshold(epsilon, delta) if threshold is None else threshold
    least = bar + 1 if strict else bar
    mass = geometric_tail(epsilon, least - 1)
    return Specimen(
        name=f"count above a threshold, {'strict' if strict else 'non-strict'}",
        mechanism=partial(release_above, noise=partial(draw_geometric, decay=epsilon), least=least),
        claim=Guarantee(epsilon=epsilon, delta=delta, neighbours="add-remove"),
        relation="one-row",
        pairs=((np.ones(1), np.ones(0)),),
        private=mass <= delta,
        epsilon=math.inf,
        supremum=math.inf,
        delta=certain_truth(mass).delta,
        event=released,
        output="count, or NaN where it was withheld, shape (size,)",
        source="Korolova, Kenthapadi, Mishra, Ntoulas, WWW 2009; Wilson et al., PoPETs 2020",
        argument="without the row nothing is ever released, so the divergence is the tail's mass",
    )


def _clipped(
    name: str, aliases: tuple[str, ...], epsilon: float, top: int, leak: float
) -> Specimen:
    claim = Guarantee(epsilon=epsilon)
    truth = discrete_truth(*(_clipped_law(x, epsilon, top, leak) for x in (0, 1)))
    return Specimen(
        name=name,
        aliases=aliases,
        mechanism=partial(_clip, epsilon=epsilon, top=top, leak=leak),
        claim=claim,
        relation="every-answer",
        pairs=((np.array([0.0]), np.array([1.0])),),
        private=leak == 0,
        epsilon=epsilon if leak == 0 else truth.epsilon,
        delta=truth.delta,
        event=compare("==", 0.0),
        output=f"whole number from 0 to {top}, shape (size,)",
        source="Ghosh, Roughgarden, Sundararajan, STOC 2009; leak as in Liu and Oh, NeurIPS 2019",
        argument="the law is a finite sum",
    )


def _clipped_law(true: int, epsilon: float, top: int, leak: float) -> NDArray[np.float64]:
    ratio = math.exp(-epsilon)
    law = [ratio ** abs(v - true) * (1 - ratio) / (1 + ratio) for v in range(1, top)]
    ends = geometric_tail(epsilon, true), geometric_tail(epsilon, top - true)
    p = np.array([ends[0], *law, ends[1]]) * (1 - leak)
    p[true] += leak
    return p


def _clip(
    rows: Rows, rng: np.random.Generator, size: int, /, *, epsilon: float, top: int, leak: float
) -> NDArray[np.float64]:
    noisy = np.clip(rows[0] + draw_geometric(rng, (size,), decay=epsilon), 0.0, float(top))
    if leak == 0:
        return np.asarray(noisy)
    return np.asarray(np.where(rng.random(size) < leak, rows[0], noisy))
