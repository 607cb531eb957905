"""Choices that say more than one index, at the end of a chain of scores."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count, require_positive
from hushed._ground.decimals import stated_above
from hushed._ground.types import Integers
from hushed.errors import ParameterError
from hushed.measurements._losses import losses_of
from hushed.measurements._noisy import count_scores
from hushed.measurements._record import Measurement
from hushed.mechanisms import Winner
from hushed.mechanisms._arguments import bound_spread, finite_values
from hushed.mechanisms._exponential import bounded_losses
from hushed.mechanisms._law import pure_losses
from hushed.mechanisms._noisy_max import NOISY_MAX_BITS, draw_winner
from hushed.mechanisms._top_k import MOST_PAIRS, MOST_PLACES, TOP_K_BITS, list_steps
from hushed.noise._grid import floor_log2
from hushed.noise._joint import select_top
from hushed.spaces import PURE, Distance, Norm, Space
from hushed.transformations._chain import Step
from hushed.transformations._matching import refuse


@called_as("hs.measurements.top_k(2, 2.0)")
def top_k(k: int, scale: float) -> Step[Measurement]:
    """Choose the k best candidates together, as `hushed.TopK` does.

    Parameters
    ----------
    k : int
        How many candidates are chosen; 1 or more.
    scale : float
        Temperature, in the units of the scores: a choice whose worst place is this much worse is e
        times less likely. Finite, above 0.

    Returns
    -------
    Step
        From a vector of k scores or more to the indices of k different candidates, the best first.
        A distance d loses ``epsilon = 4 d / scale`` in the sup norm, and ``2 d / scale`` in the
        one-sided distance or the l1 norm, with what rounding to the grid adds; for k = 1 half of
        it. It is no more at any point of the curve than losses in a range of that width.

    Raises
    ------
    ParameterError
        If k or the scale cannot be used.

    Notes
    -----
    Gillenwater, Joseph, Munoz Medina and Ribero, ICML 2022. Proof: docs/noise/joint.md, where the
    range of the movements is that of the scores at the distance d.

    Examples
    --------
    >>> from hushed import transformations as t
    >>> from hushed.spaces import SYMMETRIC, Cell, Column, Space
    >>> votes = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
    >>> counts = votes >> t.histogram(["a", "b", "c"], norm="one-sided")
    >>> best = counts >> top_k(2, 2.0)
    >>> best(["a"] * 500 + ["b"] * 900).tolist()
    [1, 0]
    >>> round(best.map(1), 6)
    1.0
    """
    places, temperature = require_count("k", k), _read_scale(scale)
    if places > MOST_PLACES:
        raise ParameterError(f"k must be {MOST_PLACES} or less, got {places}", parameter="k")
    grid = floor_log2(temperature) - TOP_K_BITS
    rate = Fraction(2) ** grid / temperature
    ways = 1 if places == 1 else 2

    def build(space: Space) -> Measurement:
        dims = count_scores("top_k", space)
        if not places <= dims <= MOST_PAIRS // places:
            wanted = f"a vector of {places} to {MOST_PAIRS // places} scores for k={places}"
            raise refuse("top_k", space, wanted, "")

        def draw(scores: Any) -> Integers:
            return select_top(list_steps(finite_values(scores), grid), k=places, rate=rate)

        return Measurement(
            name=f"top_k({places}, {scale:g})",
            source=space,
            measure=PURE,
            draw=draw,
            known=lambda d_in: losses_of(
                bounded_losses(_lose(_spread(space, d_in, grid), ways * rate))
            ),
            settings=("top_k", places, scale),
        )

    return Step("top_k", build)


@called_as("hs.measurements.noisy_max(2.0)")
def noisy_max(scale: float) -> Step[Measurement]:
    """Choose the candidate with the largest noisy score, and tell its gap, as `hushed.NoisyMax`.

    Parameters
    ----------
    scale : float
        Scale b of the Laplace noise on each score, in its units; finite, above 0.

    Returns
    -------
    Step
        From a vector of two scores or more to a `hushed.mechanisms.Winner`. A distance d loses
        ``epsilon = 2 d / scale`` in the sup norm, and ``d / scale`` in the one-sided distance or
        the l1 norm, with what rounding to the grid adds.

    Raises
    ------
    ParameterError
        If the scale is not finite and above 0.

    Notes
    -----
    Ding, Wang, Zhang, Kifer, PVLDB 13(3), 2019. Proof: docs/noise/sparse-vector.md, where the range
    of the movements is that of the scores at the distance d. Who does not need the gap chooses with
    less error by `exponential`.

    Examples
    --------
    >>> from hushed import transformations as t
    >>> from hushed.spaces import SYMMETRIC, Cell, Column, Space
    >>> votes = Space(domain=Column(cell=Cell(type="string")), metric=SYMMETRIC)
    >>> counts = votes >> t.histogram(["a", "b", "c"], norm="one-sided")
    >>> (counts >> noisy_max(2.0))(["a"] * 500 + ["b"] * 900).index
    1
    """
    width = _read_scale(scale)
    grid = floor_log2(width) - NOISY_MAX_BITS
    steps = width / Fraction(2) ** grid

    def build(space: Space) -> Measurement:
        if count_scores("noisy_max", space) < 2:
            raise refuse("noisy_max", space, "a vector of two scores or more", "")

        def draw(scores: Any) -> Winner:
            return draw_winner(finite_values(scores), grid, steps)

        return Measurement(
            name=f"noisy_max({scale:g})",
            source=space,
            measure=PURE,
            draw=draw,
            known=lambda d_in: losses_of(pure_losses(_lose(_spread(space, d_in, grid), 1 / steps))),
            settings=("noisy_max", scale),
        )

    return Step("noisy_max", build)


def _read_scale(scale: float) -> Fraction:
    return Fraction(require_positive("scale", scale))


def _spread(space: Space, d_in: Distance, grid: int) -> int | None:
    """Bound how far scores move apart at a distance, in steps; None if they move without bound."""
    if d_in.value == math.inf:
        return None
    if not d_in.value:
        return 0
    distance = math.ceil(Fraction(d_in.value) / Fraction(2) ** grid)
    # The range of the movements is at most the one-sided distance, and that at most the l1 norm.
    norm: Norm = "sup" if space.metric.name == "sup" else "range"
    return bound_spread(distance, norm, monotone=False)


def _lose(spread: int | None, rate: Fraction) -> float:
    return math.inf if spread is None else stated_above(spread * rate)
