"""Sparse vector: the private forms and the published broken ones, as a table of noise scales."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.zoo._curves import Truth, discrete_truth
from hushed.zoo._events import flags_among
from hushed.zoo._flags import (
    FORMS,
    FlagLaw,
    choose_law,
    draw_flags,
    enumerate_flags,
    flags_with_values_delta,
    is_shown_below,
    shown_value_bars,
    shown_value_delta,
)
from hushed.zoo._record import Pair, Specimen

_SOURCE = "Lyu, Su, Li, PVLDB 10(6), 2017, Algorithm {}; formulas of Ding et al., CCS 2018"
_NUMERIC = "Wang, Ding, Wang, Kifer, Zhang, PLDI 2019; Lyu, Su, Li 2017, Algorithm 7"
_ENUMERATED = (
    "given the threshold's noise the flags are independent, so every sequence of flags has a "
    "one-dimensional integral; all sequences are enumerated"
)
_FLAGS = "flags 1 yes, 0 no, -1 not reached, shape (size, k)"
_WITH_VALUES = "a block of flags, then a block of values (0 where none), shape (size, 2k)"


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
    return _release_flags(1, _half_and_half(k), epsilon, threshold, cutoff)


def sparse_vector_fresh_threshold(
    epsilon: float = 0.1, k: int = 5, cutoff: int = 2, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that draws its threshold anew after each yes, which is private.

    Parameters
    ----------
    epsilon : float
        As for `sparse_vector`.
    k, cutoff : int
        As for `sparse_vector`.
    threshold : float
        As for `sparse_vector`.

    Returns
    -------
    Specimen
        Its loss on half and half stays well below the claim.
    """
    return _release_flags(2, _half_and_half(k), epsilon, threshold, cutoff)


def sparse_vector_too_little_noise(
    epsilon: float = 0.1, k: int = 10, cutoff: int = 1, threshold: float = 1.0
) -> Specimen:
    """Sparse vector whose answers get too little noise, which is not private.

    Parameters
    ----------
    epsilon : float
        As for `sparse_vector`.
    k, cutoff : int
        As for `sparse_vector`.
    threshold : float
        As for `sparse_vector`.

    Returns
    -------
    Specimen
        True loss 0.1725 on half and half at the defaults; ``(1 + 6N)/4`` times the claim is the
        supremum over any number of queries.
    """
    return _release_flags(4, _half_and_half(k), epsilon, threshold, cutoff)


def sparse_vector_without_query_noise(
    epsilon: float = 0.1, k: int = 10, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that adds no noise to the answers and never stops: not private at all.

    Parameters
    ----------
    epsilon : float
        As for `sparse_vector`.
    k : int
        As for `sparse_vector`.
    threshold : float
        As for `sparse_vector`.

    Returns
    -------
    Specimen
        Infinite loss; the divergence is ``1 - exp(-epsilon/2)`` at every epsilon when T = 1: one
        above and the rest below, against all ones.
    """
    return _release_flags(5, (np.r_[2.0, np.zeros(k - 1)], np.ones(k)), epsilon, threshold)


def sparse_vector_ignores_cutoff(
    epsilon: float = 0.1, k: int = 10, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that never stops, with noise for a single yes: not private.

    Parameters
    ----------
    epsilon : float
        As for `sparse_vector`.
    k : int
        As for `sparse_vector`.
    threshold : float
        As for `sparse_vector`.

    Returns
    -------
    Specimen
        True loss 0.42 on half and half at the defaults; it grows with k.
    """
    return _release_flags(6, _half_and_half(k), epsilon, threshold)


def sparse_vector_shows_value(
    epsilon: float = 0.1, k: int = 10, cutoff: int = 1, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that shows the noisy value it compared, which is not private.

    Parameters
    ----------
    epsilon : float
        As for `sparse_vector`.
    k : int, default 10
        Number of queries; more than ``2 cutoff``, so that the claim fails.
    cutoff : int
        As for `sparse_vector`.
    threshold : float
        As for `sparse_vector`.

    Returns
    -------
    Specimen
        Loss ``k epsilon / (2N)`` on all ones against all twos, in the far tail. The curve is
        known for ``cutoff=1`` only, to about 1e-6.
    """
    if k <= 2 * cutoff:
        raise ParameterError(f"k must be above 2 cutoff = {2 * cutoff}, got {k}")
    law = choose_law(3, epsilon, threshold, cutoff)
    pair = (np.ones(k), np.full(k, 2.0))
    argument = (
        "a value far below everything forces the threshold below it, so each of the k answers "
        "contributes its whole movement; the curve by two nested quadratures"
    )
    truth = Truth(k * epsilon / (2 * cutoff), None)
    if cutoff > 1:
        return _specimen(3, law, epsilon, pair, truth, argument)
    truth = truth._replace(delta=partial(shown_value_delta, k=k, law=law))
    built = _specimen(3, law, epsilon, pair, truth, argument)
    bars = shown_value_bars(epsilon, k=k, law=law)
    return replace(built, event=partial(is_shown_below, bars=bars))


def numeric_sparse_vector(
    epsilon: float = 0.1, k: int = 5, cutoff: int = 2, threshold: float = 1.0
) -> Specimen:
    """Sparse vector that answers with a fresh noisy value, which is private.

    Parameters
    ----------
    epsilon : float
        As for `sparse_vector`.
    k, cutoff : int
        As for `sparse_vector`.
    threshold : float
        As for `sparse_vector`.

    Returns
    -------
    Specimen
        The pair is half and half, where each released value adds ``epsilon/(3c)`` to the loss of
        the flags, c being the cut-off.
    """
    law, pair = choose_law(7, epsilon, threshold, cutoff), _half_and_half(k)
    (outcomes, p), (_, q) = (enumerate_flags(rows, law) for rows in pair)
    values = (outcomes == 1).sum(axis=1)
    each = epsilon / (3 * cutoff)
    truth = Truth(
        float((np.log(p / q) + values * each).max()),
        partial(flags_with_values_delta, p=p, q=q, values=values, each=each),
    )
    argument = f"{_ENUMERATED}; given the flags, the values are fresh Laplace noise"
    return _specimen(7, law, epsilon, pair, truth, argument)


def _half_and_half(k: int) -> Pair:
    """All ones against twos in the first half and zeros in the second."""
    half = k // 2
    return np.ones(k), np.r_[np.full(half, 2.0), np.zeros(k - half)]


def _release_flags(
    algorithm: int, pair: Pair, epsilon: float, threshold: float, cutoff: int = 1
) -> Specimen:
    """Build a specimen that releases flags only, with both laws enumerated."""
    law, supremum = choose_law(algorithm, epsilon, threshold, cutoff), FORMS[algorithm].supremum
    (outcomes, p), (_, q) = (enumerate_flags(rows, law) for rows in pair)
    telling = p > math.exp(epsilon) * q
    if not telling.any():
        telling = np.arange(p.size) == np.argmax(p / q)
    built = _specimen(algorithm, law, epsilon, pair, discrete_truth(p, q), _ENUMERATED)
    built = replace(built, event=partial(flags_among, members=outcomes[telling]))
    if supremum is None:
        return built
    argument = f"{_ENUMERATED}; the supremum is over any number of queries"
    return replace(built, supremum=supremum(epsilon, cutoff), argument=argument)


def _specimen(
    algorithm: int, law: FlagLaw, epsilon: float, pair: Pair, truth: Truth, argument: str
) -> Specimen:
    form = FORMS[algorithm]
    return Specimen(
        name=form.name,
        aliases=form.aliases,
        mechanism=partial(draw_flags, law=law),
        claim=Guarantee(epsilon=epsilon),
        relation="every-answer",
        pairs=(pair,),
        private=form.private,
        epsilon=truth.epsilon,
        delta=truth.delta,
        output=_FLAGS if law.value_scale is None else _WITH_VALUES,
        source=_NUMERIC if algorithm == 7 else _SOURCE.format(algorithm),
        argument=argument,
    )
