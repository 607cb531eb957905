"""The family of sparse-vector mechanisms: a table, one sampler, and exact laws of their flags."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushed.errors import ParameterError
from hushed.zoo._curves import laplace_product_delta
from hushed.zoo._quadrature import Rule, laplace_above, laplace_below, laplace_density, rule
from hushed.zoo._record import Rows

Law = NDArray[np.float64]
Scale = Callable[[float, int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagLaw:
    """Comparison of noisy answers with a noisy threshold; scales are those of Laplace noise."""

    threshold: float  # public
    threshold_scale: float  # above 0
    query_scale: float  # of each answer; 0 for none
    cutoff: int | None  # number of yes after which it stops; None if it never does
    fresh: bool = False  # whether the threshold is drawn anew after each yes
    # Of a fresh draw that is added to an answer and released on yes; 0 to release the very noisy
    # value that was compared; None to release flags only.
    value_scale: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One algorithm: scales of its Laplace noises from epsilon e and the cut-off n.

    ``values`` is the scale of fresh noise on a released value: 0 shows the very value that was
    compared, None releases flags only. ``supremum`` is the largest loss over any number of queries.
    In the published tables there are ``k`` queries, it stops after ``cutoff`` times yes, if ever,
    and the public threshold is ``bar``.
    """

    name: str
    aliases: tuple[str, ...]
    threshold: Scale
    queries: Scale
    values: Scale | None = None
    private: bool = True
    stops: bool = True
    fresh: bool = False
    supremum: Scale | None = None
    k: int = 10
    cutoff: int = 1
    bar: float = 1.0


def _no_noise(_epsilon: float, _cutoff: int) -> float:
    return 0.0


# By the number of the algorithm in Lyu, Su, Li; a comment says why a broken one fails.
FORMS = {
    1: Form(
        name="sparse vector",
        aliases=("SVT", "SVT1"),
        threshold=lambda e, _: 2 / e,
        queries=lambda e, n: 4 * n / e,
        bar=0.5,
    ),
    2: Form(
        name="sparse vector, fresh threshold",
        aliases=("Sparse", "SVT2"),
        threshold=lambda e, n: 2 * n / e,
        queries=lambda e, n: 4 * n / e,
        fresh=True,
        k=5,
        cutoff=2,
    ),
    3: Form(  # the value shown tells that the threshold lies below it
        name="sparse vector, shows the value",
        aliases=("iSVT4", "SVT3"),
        threshold=lambda e, _: 2 / e,
        queries=lambda e, n: 2 * n / e,
        values=_no_noise,
        private=False,
    ),
    4: Form(  # the noise on the queries does not grow with the cut-off, and is too small for 1
        name="sparse vector, too little noise",
        aliases=("iSVT3", "SVT4"),
        threshold=lambda e, _: 4 / e,
        queries=lambda e, _: 4 / (3 * e),
        private=False,
        supremum=lambda e, n: (1 + 6 * n) / 4 * e,
    ),
    5: Form(  # an answer above and one below it pin the threshold between them
        name="sparse vector, no query noise",
        aliases=("iSVT1", "SVT5"),
        threshold=lambda e, _: 2 / e,
        queries=_no_noise,
        private=False,
        stops=False,
        supremum=lambda *_: math.inf,
    ),
    6: Form(  # any number of yes for the price of one
        name="sparse vector, noise ignores the cut-off",
        aliases=("iSVT2", "SVT6"),
        threshold=lambda e, _: 2 / e,
        queries=lambda e, _: 2 / e,
        private=False,
        stops=False,
    ),
    7: Form(
        name="numeric sparse vector",
        aliases=("NumericalSVT",),
        threshold=lambda e, _: 3 / e,
        queries=lambda e, n: 6 * n / e,
        values=lambda e, n: 3 * n / e,
        k=5,
        cutoff=2,
    ),
}


def choose_law(form: Form, epsilon: float) -> FlagLaw:
    """Make the law of one algorithm at an epsilon."""
    return FlagLaw(
        threshold=form.bar,
        threshold_scale=form.threshold(epsilon, form.cutoff),
        query_scale=form.queries(epsilon, form.cutoff),
        cutoff=form.cutoff if form.stops else None,
        fresh=form.fresh,
        value_scale=None if form.values is None else form.values(epsilon, form.cutoff),
    )


def draw_flags(rows: Rows, rng: np.random.Generator, size: int, /, *, law: FlagLaw) -> Law:
    """Draw runs of a sparse-vector mechanism, of shape (size, k) or (size, 2k).

    Flags are 1 (yes), 0 (no), -1 (not reached). If values are released, a second block holds the
    values, 0 where there is none.
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


def enumerate_flags(rows: Rows, law: FlagLaw) -> tuple[NDArray[np.int8], Law]:
    """List every sequence of flags of 16 queries at most, with its probability to about 1e-13.

    Notes
    -----
    Given the threshold's noise the answers are independent (the representation used by Lyu, Su,
    Li, *Understanding the Sparse Vector Technique*, PVLDB 10(6), 2017, in the proofs of their
    theorems). A threshold that is drawn anew makes the stretches between two yes independent.
    """
    k = rows.size
    if not 1 <= k <= 16:
        raise ParameterError(f"flags of 1 to 16 queries can be enumerated, got {k}")
    scales = [s for s in (law.threshold_scale, law.query_scale) if s > 0]
    grid = rule(
        [0.0, *(rows - law.threshold).tolist()], shortest=min(scales), longest=law.threshold_scale
    )
    gap = law.threshold + grid.at - rows[:, None]
    no, yes = laplace_below(gap, law.query_scale), laplace_above(gap, law.query_scale)
    mass = grid.weights * laplace_density(grid.at, law.threshold_scale)
    found: list[tuple[list[int], float]] = []

    def walk(flags: list[int], weight: Law, past: float, left: int) -> None:
        # ``weight`` is over the threshold's noise; ``past`` is what no longer depends on it.
        i = len(flags)
        if left == 0 or i == k:
            chance = past if left == 0 else past * float(weight.sum())
            found.append((flags + [-1] * (k - i), chance))
            return
        walk([*flags, 0], weight * no[i], past, left)
        hit = weight * yes[i]
        if law.fresh or left == 1:
            walk([*flags, 1], mass, past * float(hit.sum()), left - 1)
        else:
            walk([*flags, 1], hit, past, left - 1)

    walk([], mass, 1.0, k + 1 if law.cutoff is None else law.cutoff)
    outcomes, chances = zip(*found, strict=True)
    return np.array(outcomes, dtype=np.int8), np.array(chances)


def value_densities(
    rows: Rows, law: FlagLaw, *, kinks: tuple[float, ...], per_scale: int = 16
) -> tuple[Rule, Law, float]:
    """Law of a sparse vector that stops at its first yes and shows the value it compared.

    The rule is over the value minus the public threshold, and breaks at the ``kinks``: the answers
    of both neighbours, so that both laws come on the same points. With it come the densities of
    stopping at each query with that value, and the probability that no answer passes.
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


def _shown_values(k: int, law: FlagLaw) -> tuple[Rule, tuple[Law, Law], tuple[float, float]]:
    """Laws of the value shown, on all ones and on all twos."""
    grid, p, p_none = value_densities(np.ones(k), law, kinks=(1.0, 2.0))
    _, q, q_none = value_densities(np.full(k, 2.0), law, kinks=(1.0, 2.0))
    return grid, (p, q), (p_none, q_none)


def shown_value_delta(epsilon: float, *, k: int, law: FlagLaw) -> float:
    """Divergence of all ones from all twos where the value that was compared is shown."""
    grid, (p, q), (p_none, q_none) = _shown_values(k, law)
    over = np.maximum(p - math.exp(epsilon) * q, 0.0)
    return float((grid.weights * over).sum()) + max(0.0, p_none - math.exp(epsilon) * q_none)


def shown_value_bars(epsilon: float, *, k: int, law: FlagLaw) -> Law:
    """Find, for each query, the value below which the likelihood ratio exceeds exp(epsilon)."""
    grid, (p, q), _ = _shown_values(k, law)
    telling = p > math.exp(epsilon) * q
    return np.asarray(np.where(telling, law.threshold + grid.at, -np.inf).max(axis=1))


def is_shown_below(outputs: Law, /, *, bars: Law) -> NDArray[np.bool_]:
    """Flag runs whose value shown lies at or below the bar of its query."""
    k = bars.size
    return np.asarray(((outputs[:, :k] == 1) & (outputs[:, k:] <= bars)).any(axis=1))


def flags_with_values_delta(
    epsilon: float, *, p: Law, q: Law, values: NDArray[np.int64], each: float
) -> float:
    """Sum, over sequences of flags, what they leave of epsilon to the values released with them."""
    parts = []
    for chance, other, released in zip(p.tolist(), q.tolist(), values.tolist(), strict=True):
        left = epsilon + math.log(other / chance)
        if released:
            parts.append(chance * laplace_product_delta(each, released, left))
        else:
            parts.append(chance * max(0.0, -math.expm1(left)))
    return math.fsum(parts)
