"""The family of sparse-vector mechanisms: one sampler, and exact laws of their flags."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.errors import ParameterError
from hushed.zoo.quadrature import Rule, laplace_above, laplace_below, laplace_density, rule
from hushed.zoo.record import Rows

__all__ = ["FlagLaw", "draw_flags", "flag_outcomes", "flag_probabilities", "value_densities"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagLaw:
    """Comparison of noisy answers with a noisy threshold.

    Parameters
    ----------
    threshold : float
        Public threshold T.
    threshold_scale : float
        Scale of the Laplace noise on the threshold; above 0.
    query_scale : float
        Scale of the Laplace noise on each answer; 0 for none.
    cutoff : int or None
        Number of yes after which the mechanism stops; None if it never stops.
    fresh : bool, default False
        Whether the threshold is drawn anew after each yes.
    value_scale : float or None, default None
        Scale of a fresh Laplace draw that is added to an answer and released on yes; 0 to release
        the very noisy value that was compared; None to release flags only.

    Raises
    ------
    ParameterError
        If a scale is negative, or the cut-off is below 1.
    """

    threshold: float
    threshold_scale: float
    query_scale: float
    cutoff: int | None
    fresh: bool = False
    value_scale: float | None = None

    def __post_init__(self) -> None:
        if not (self.threshold_scale > 0 and self.query_scale >= 0):
            raise ParameterError(
                "threshold_scale must be above 0 and query_scale 0 or more, got "
                f"{self.threshold_scale} and {self.query_scale}"
            )
        if self.cutoff is not None and self.cutoff < 1:
            raise ParameterError(f"cutoff must be 1 or more, or None, got {self.cutoff}")


def draw_flags(
    rows: Rows, rng: np.random.Generator, size: int, /, *, law: FlagLaw
) -> NDArray[np.float64]:
    """Draw runs of a sparse-vector mechanism.

    Parameters
    ----------
    rows : ndarray of float, shape (k,)
        Query answers.
    rng : numpy.random.Generator
        Source of audit randomness; consumed.
    size : int
        Number of runs.
    law : FlagLaw
        Which member of the family.

    Returns
    -------
    ndarray of float, shape (size, k) or (size, 2k)
        Flags 1 (yes), 0 (no), -1 (not reached); then, if values are released, a second block with
        the values, 0 where there is none.
    """
    k = rows.size
    noisy = np.broadcast_to(rows, (size, k))
    if law.query_scale > 0:
        noisy = noisy + rng.laplace(scale=law.query_scale, size=(size, k))
    bar = law.threshold + rng.laplace(scale=law.threshold_scale, size=size)
    flags = np.full((size, k), -1.0)
    left = np.full(size, k + 1 if law.cutoff is None else law.cutoff)
    for i in range(k):
        running = left > 0
        yes = running & (noisy[:, i] >= bar)
        flags[running, i] = 0.0
        flags[yes, i] = 1.0
        left -= yes
        if law.fresh:
            again = law.threshold + rng.laplace(scale=law.threshold_scale, size=size)
            bar = np.where(yes, again, bar)
    if law.value_scale is None:
        return flags
    if law.value_scale > 0:
        noisy = rows + rng.laplace(scale=law.value_scale, size=(size, k))
    return np.concatenate([flags, np.where(flags == 1, noisy, 0.0)], axis=1)


def flag_outcomes(k: int, cutoff: int | None) -> NDArray[np.int8]:
    """All sequences of flags that a run can end with.

    Parameters
    ----------
    k : int
        Number of queries; at most 16.
    cutoff : int or None
        Number of yes after which a run stops.

    Returns
    -------
    ndarray of int8, shape (outcomes, k)
        Flags 1, 0 and -1, in the order of `flag_probabilities`.

    Raises
    ------
    ParameterError
        If there are too many queries to enumerate.
    """
    if not 1 <= k <= 16:
        raise ParameterError(f"flags of 1 to 16 queries can be enumerated, got {k}")
    limit = k + 1 if cutoff is None else cutoff
    done: list[list[int]] = []

    def walk(prefix: list[int], left: int) -> None:
        if left == 0 or len(prefix) == k:
            done.append(prefix + [-1] * (k - len(prefix)))
            return
        walk([*prefix, 0], left)
        walk([*prefix, 1], left - 1)

    walk([], limit)
    return np.array(done, dtype=np.int8)


def flag_probabilities(rows: Rows, law: FlagLaw) -> NDArray[np.float64]:
    """Probability of every sequence of flags, by quadrature over the threshold's noise.

    Parameters
    ----------
    rows : ndarray of float, shape (k,)
        Query answers.
    law : FlagLaw
        Which member of the family.

    Returns
    -------
    ndarray of float, shape (outcomes,)
        Probabilities in the order of `flag_outcomes`, to about 1e-13.

    Notes
    -----
    Given the threshold's noise the answers are independent (the representation used by Lyu, Su,
    Li, *Understanding the Sparse Vector Technique*, PVLDB 10(6), 2017, in the proofs of their
    theorems). A threshold that is drawn anew makes the stretches between two yes independent.
    """
    k = rows.size
    scales = [s for s in (law.threshold_scale, law.query_scale) if s > 0]
    grid = rule(
        [0.0, *(rows - law.threshold).tolist()], shortest=min(scales), longest=law.threshold_scale
    )
    gap = law.threshold + grid.at - rows[:, None]
    no, yes = laplace_below(gap, law.query_scale), laplace_above(gap, law.query_scale)
    mass = grid.weights * laplace_density(grid.at, law.threshold_scale)
    chances: list[float] = []

    def walk(i: int, weight: NDArray[np.float64], past: float, left: int) -> None:
        if left == 0:
            chances.append(past)
            return
        if i == k:
            chances.append(past * float(weight.sum()))
            return
        walk(i + 1, weight * no[i], past, left)
        hit = weight * yes[i]
        if law.fresh or left == 1:
            walk(i + 1, mass, past * float(hit.sum()), left - 1)
        else:
            walk(i + 1, hit, past, left - 1)

    walk(0, mass, 1.0, k + 1 if law.cutoff is None else law.cutoff)
    return np.array(chances)


def value_densities(
    rows: Rows, law: FlagLaw, *, kinks: tuple[float, ...], per_scale: int = 16
) -> tuple[Rule, NDArray[np.float64], float]:
    """Law of a sparse vector that stops at its first yes and shows the value it compared.

    Parameters
    ----------
    rows : ndarray of float, shape (k,)
        Query answers.
    law : FlagLaw
        With ``cutoff=1`` and noise on the queries.
    kinks : tuple of float
        Answers of both neighbours, so that both laws come on the same points.
    per_scale : int, default 16
        Panels in a stretch as long as the smallest scale.

    Returns
    -------
    grid : Rule
        Quadrature rule over the released value minus the public threshold.
    densities : ndarray of float, shape (k, points)
        Density of stopping at query j with that value.
    none : float
        Probability that no answer passes.
    """
    grid = rule(
        [0.0, *(x - law.threshold for x in kinks)],
        shortest=min(law.threshold_scale, law.query_scale),
        longest=max(law.threshold_scale, law.query_scale),
        per_scale=per_scale,
    )
    bar = law.threshold + grid.at
    before = laplace_density(grid.at, law.threshold_scale)
    densities = []
    for x in rows:
        passed = laplace_density(bar - x, law.query_scale)
        densities.append(passed * grid.running(before))
        before = before * laplace_below(bar - x, law.query_scale)
    return grid, np.stack(densities), math.fsum(grid.weights * before)
