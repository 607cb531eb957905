"""Sparse vector: the private forms and the published broken ones, as a table of noise scales."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

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


def sparse_vector(algorithm: int, epsilon: float = 0.1, *, k: int | None = None) -> Specimen:
    """Make a sparse vector by its number in `FORMS`, on k queries."""
    form = FORMS[algorithm]
    k = form.k if k is None else k
    law = choose_law(form, epsilon)
    if algorithm == 3:
        return _show_value(law, epsilon, k, form.cutoff)
    if algorithm == 7:
        return _release_values(law, epsilon, k, form.cutoff)
    # An answer above the threshold and all others below it pin a threshold that has all the noise.
    pinned = (np.r_[2.0, np.zeros(k - 1)], np.ones(k))
    return _release_flags(algorithm, law, epsilon, pinned if algorithm == 5 else _half_and_half(k))


def _show_value(law: FlagLaw, epsilon: float, k: int, cutoff: int) -> Specimen:
    """Build the one that shows the noisy value it compared: it loses most in the far tail."""
    pair = (np.ones(k), np.full(k, 2.0))
    argument = (
        "a value far below everything forces the threshold below it, so each of the k answers "
        "contributes its whole movement; the curve by two nested quadratures"
    )
    truth = Truth(k * epsilon / (2 * cutoff), partial(shown_value_delta, k=k, law=law))
    built = _specimen(3, law, epsilon, pair, truth, argument)
    bars = shown_value_bars(epsilon, k=k, law=law)
    return replace(built, event=partial(is_shown_below, bars=bars))


def _release_values(law: FlagLaw, epsilon: float, k: int, cutoff: int) -> Specimen:
    """Build the one that answers with fresh noisy values: each adds to the loss of the flags."""
    pair = _half_and_half(k)
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


def _release_flags(algorithm: int, law: FlagLaw, epsilon: float, pair: Pair) -> Specimen:
    """Build a specimen that releases flags only, with both laws enumerated."""
    form = FORMS[algorithm]
    (outcomes, p), (_, q) = (enumerate_flags(rows, law) for rows in pair)
    telling = p > math.exp(epsilon) * q
    if not telling.any():
        telling = np.arange(p.size) == np.argmax(p / q)
    built = _specimen(algorithm, law, epsilon, pair, discrete_truth(p, q), _ENUMERATED)
    built = replace(built, event=partial(flags_among, members=outcomes[telling]))
    if form.supremum is None:
        return built
    argument = f"{_ENUMERATED}; the supremum is over any number of queries"
    return replace(built, supremum=form.supremum(epsilon, form.cutoff), argument=argument)


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
