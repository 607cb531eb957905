"""Sparse vector: the private forms and the published broken ones."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.zoo.curves import discrete_delta, discrete_epsilon, laplace_product_delta
from hushed.zoo.events import flags_among
from hushed.zoo.flags import (
    FlagLaw,
    draw_flags,
    flag_outcomes,
    flag_probabilities,
    value_densities,
)
from hushed.zoo.record import Event, Pair, Specimen

__all__ = [
    "numeric_sparse_vector",
    "sparse_vector",
    "sparse_vector_fresh_threshold",
    "sparse_vector_ignores_cutoff",
    "sparse_vector_shows_value",
    "sparse_vector_too_little_noise",
    "sparse_vector_without_query_noise",
]

_LYU = "Lyu, Su, Li, PVLDB 10(6), 2017, Algorithm {}; formulas of Ding et al., CCS 2018"
_QUADRATURE = (
    "given the threshold's noise the flags are independent, so every sequence of flags has a "
    "one-dimensional integral; all sequences are enumerated"
)
_FLAGS = "flags 1 yes, 0 no, -1 not reached, shape (size, k)"


def half_and_half(k: int) -> Pair:
    """All ones against twos in the first half and zeros in the second.

    Parameters
    ----------
    k : int
        Number of answers.

    Returns
    -------
    tuple of (rows, neighbour)
        Each of shape (k,).
    """
    half = k // 2
    return np.ones(k), np.r_[np.full(half, 2.0), np.zeros(k - half)]


def sparse_vector(
    epsilon: float = 0.1, k: int = 10, cutoff: int = 1, threshold: float = 0.5
) -> Specimen:
    """Sparse vector with noise on threshold and answers, which is private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 10
        Number of queries; at most 16.
    cutoff : int, default 1
        Number N of yes after which it stops.
    threshold : float, default 0.5
        Public threshold T.

    Returns
    -------
    Specimen
        True loss 0.0885 on half and half at the defaults; it tends to the claim as k grows.
    """
    law = FlagLaw(
        threshold=threshold,
        threshold_scale=2 / epsilon,
        query_scale=4 * cutoff / epsilon,
        cutoff=cutoff,
    )
    return _flags(
        "sparse vector", ("SVT", "SVT1"), law, half_and_half(k), epsilon, True, _LYU.format(1)
    )


def sparse_vector_fresh_threshold(
    epsilon: float = 0.1, k: int = 5, cutoff: int = 2, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that draws its threshold anew after each yes, which is private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 5
        Number of queries; at most 16.
    cutoff : int, default 2
        Number N of yes after which it stops.
    threshold : float, default 1
        Public threshold T.

    Returns
    -------
    Specimen
        Its loss on half and half stays well below the claim.
    """
    law = FlagLaw(
        threshold=threshold,
        threshold_scale=2 * cutoff / epsilon,
        query_scale=4 * cutoff / epsilon,
        cutoff=cutoff,
        fresh=True,
    )
    return _flags(
        "sparse vector, fresh threshold",
        ("Sparse", "SVT2"),
        law,
        half_and_half(k),
        epsilon,
        True,
        _LYU.format(2),
    )


def sparse_vector_too_little_noise(
    epsilon: float = 0.1, k: int = 10, cutoff: int = 1, threshold: float = 1.0
) -> Specimen:
    """Sparse vector whose answers get too little noise, which is not private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 10
        Number of queries; at most 16.
    cutoff : int, default 1
        Number N of yes after which it stops.
    threshold : float, default 1
        Public threshold T.

    Returns
    -------
    Specimen
        True loss 0.1725 on half and half at the defaults; ``(1 + 6N)/4`` times the claim is the
        supremum over any number of queries.
    """
    law = FlagLaw(
        threshold=threshold,
        threshold_scale=4 / epsilon,
        query_scale=4 / (3 * epsilon),
        cutoff=cutoff,
    )
    return _flags(
        "sparse vector, too little noise",
        ("iSVT3", "SVT4"),
        law,
        half_and_half(k),
        epsilon,
        False,
        _LYU.format(4),
        supremum=(1 + 6 * cutoff) / 4 * epsilon,
    )


def sparse_vector_without_query_noise(
    epsilon: float = 0.1, k: int = 10, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that adds no noise to the answers and never stops: not private at all.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 10
        Number of queries; at most 16.
    threshold : float, default 1
        Public threshold T.

    Returns
    -------
    Specimen
        Infinite loss; the divergence is ``1 - exp(-epsilon/2)`` at every epsilon when T = 1: one
        above and the rest below, against all ones.
    """
    law = FlagLaw(threshold=threshold, threshold_scale=2 / epsilon, query_scale=0.0, cutoff=None)
    pair = (np.r_[2.0, np.zeros(k - 1)], np.ones(k))
    return _flags(
        "sparse vector, no query noise",
        ("iSVT1", "SVT5"),
        law,
        pair,
        epsilon,
        False,
        _LYU.format(5),
        supremum=math.inf,
    )


def sparse_vector_ignores_cutoff(
    epsilon: float = 0.1, k: int = 10, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that never stops, with noise for a single yes: not private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 10
        Number of queries; at most 16.
    threshold : float, default 1
        Public threshold T.

    Returns
    -------
    Specimen
        True loss 0.42 on half and half at the defaults; it grows with k.
    """
    law = FlagLaw(
        threshold=threshold, threshold_scale=2 / epsilon, query_scale=2 / epsilon, cutoff=None
    )
    return _flags(
        "sparse vector, noise ignores the cut-off",
        ("iSVT2", "SVT6"),
        law,
        half_and_half(k),
        epsilon,
        False,
        _LYU.format(6),
    )


def sparse_vector_shows_value(
    epsilon: float = 0.1, k: int = 10, cutoff: int = 1, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that shows the noisy value it compared, which is not private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 10
        Number of queries; more than ``2 cutoff``, so that the claim fails.
    cutoff : int, default 1
        Number N of yes after which it stops.
    threshold : float, default 1
        Public threshold T.

    Returns
    -------
    Specimen
        Loss ``k epsilon / (2N)`` on all ones against all twos, in the far tail. The curve is
        known for ``cutoff=1`` only, to about 1e-6.

    Raises
    ------
    ParameterError
        If k is too small.
    """
    if k <= 2 * cutoff:
        raise ParameterError(f"k must be above 2 cutoff = {2 * cutoff}, got {k}")
    law = FlagLaw(
        threshold=threshold,
        threshold_scale=2 / epsilon,
        query_scale=2 * cutoff / epsilon,
        cutoff=cutoff,
        value_scale=0.0,
    )
    return Specimen(
        name="sparse vector, shows the value",
        aliases=("iSVT4", "SVT3"),
        mechanism=partial(draw_flags, law=law),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((np.ones(k), np.full(k, 2.0)),),
        private=False,
        epsilon=k * epsilon / (2 * cutoff),
        delta=partial(_shown_value_delta, k=k, law=law) if cutoff == 1 else None,
        event=_shown_value_event(epsilon, k=k, law=law) if cutoff == 1 else None,
        event_words="the value shown lies below a bar that rises with the number of the query",
        output="a block of flags, then a block of values (0 where none), shape (size, 2k)",
        source=_LYU.format(3),
        argument=(
            "a value far below everything forces the threshold below it, so each of the k answers "
            "contributes its whole movement; the curve by two nested quadratures"
        ),
    )


def numeric_sparse_vector(
    epsilon: float = 0.1, k: int = 5, cutoff: int = 2, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that answers with a fresh noisy value, which is private.

    Parameters
    ----------
    epsilon : float, default 0.1
        Claimed epsilon; above 0.
    k : int, default 5
        Number of queries; at most 16.
    cutoff : int, default 2
        Number c of yes after which it stops.
    threshold : float, default 1
        Public threshold T.

    Returns
    -------
    Specimen
        The pair is half and half, where each released value adds ``epsilon/(3c)`` to the loss of
        the flags.
    """
    law = FlagLaw(
        threshold=threshold,
        threshold_scale=3 / epsilon,
        query_scale=6 * cutoff / epsilon,
        cutoff=cutoff,
        value_scale=3 * cutoff / epsilon,
    )
    rows, neighbour = half_and_half(k)
    p, q = flag_probabilities(rows, law), flag_probabilities(neighbour, law)
    values = (flag_outcomes(k, cutoff) == 1).sum(axis=1)
    each = epsilon / (3 * cutoff)
    curve = partial(_numeric_delta, p=p, q=q, values=values, each=each)
    return Specimen(
        name="numeric sparse vector",
        aliases=("NumericalSVT",),
        mechanism=partial(draw_flags, law=law),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=((rows, neighbour),),
        private=True,
        epsilon=float((np.log(p / q) + values * each).max()),
        delta=curve,
        output="a block of flags, then a block of values (0 where none), shape (size, 2k)",
        source="Wang, Ding, Wang, Kifer, Zhang, PLDI 2019; Lyu, Su, Li 2017, Algorithm 7",
        argument=f"{_QUADRATURE}; given the flags, the values are fresh Laplace noise",
    )


def _flags(
    name: str,
    aliases: tuple[str, ...],
    law: FlagLaw,
    pair: Pair,
    epsilon: float,
    private: bool,
    source: str,
    supremum: float | None = None,
) -> Specimen:
    """Build a specimen that releases flags only, with both laws enumerated."""
    p, q = (flag_probabilities(x, law) for x in pair)
    outcomes = flag_outcomes(pair[0].size, law.cutoff)
    telling = p > math.exp(epsilon) * q
    if not telling.any():
        telling = np.arange(p.size) == np.argmax(p / q)
    return Specimen(
        name=name,
        aliases=aliases,
        mechanism=partial(draw_flags, law=law),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=(pair,),
        private=private,
        epsilon=discrete_epsilon(p, q),
        delta=partial(discrete_delta, p, q),
        supremum=supremum,
        event=partial(flags_among, members=outcomes[telling]),
        event_words=f"the flags are one of {int(telling.sum())} sequences",
        output=_FLAGS,
        source=source,
        argument=_QUADRATURE
        + ("; the supremum is over any number of queries" if supremum is not None else ""),
    )


def _shown_value_delta(epsilon: float, *, k: int, law: FlagLaw) -> float:
    grid, p, p_none = value_densities(np.ones(k), law, kinks=(1.0, 2.0))
    _, q, q_none = value_densities(np.full(k, 2.0), law, kinks=(1.0, 2.0))
    over = np.maximum(p - math.exp(epsilon) * q, 0.0)
    return float((grid.weights * over).sum()) + max(0.0, p_none - math.exp(epsilon) * q_none)


def _shown_value_event(epsilon: float, *, k: int, law: FlagLaw) -> Event:
    """Find, for each query, the value below which the likelihood ratio exceeds exp(epsilon)."""
    grid, p, _ = value_densities(np.ones(k), law, kinks=(1.0, 2.0))
    _, q, _ = value_densities(np.full(k, 2.0), law, kinks=(1.0, 2.0))
    telling = p > math.exp(epsilon) * q
    bars = np.where(telling, law.threshold + grid.at, -np.inf).max(axis=1)
    return partial(_shown_below, bars=bars)


def _shown_below(
    outputs: NDArray[np.float64], /, *, bars: NDArray[np.float64]
) -> NDArray[np.bool_]:
    k = bars.size
    return np.asarray(((outputs[:, :k] == 1) & (outputs[:, k:] <= bars)).any(axis=1))


def _numeric_delta(
    epsilon: float,
    *,
    p: NDArray[np.float64],
    q: NDArray[np.float64],
    values: NDArray[np.int64],
    each: float,
) -> float:
    parts = []
    for chance, other, count in zip(p.tolist(), q.tolist(), values.tolist(), strict=True):
        left = epsilon + math.log(other / chance)
        if count:
            parts.append(chance * laplace_product_delta(each, count, left))
        else:
            parts.append(chance * max(0.0, -math.expm1(left)))
    return math.fsum(parts)
