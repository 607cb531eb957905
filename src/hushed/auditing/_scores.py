"""Learned scores: how much likelier an output is on one table than on the other.

A score is fitted on training samples. Whatever it is, an event "the score is at least t" is an
event, so a bad score makes a bound small and never wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._histograms import Grain, fit_histograms
from hushed.auditing._mixtures import fit_mixture
from hushed.auditing._outputs import Encoder
from hushed.auditing._symbols import fit_symbols
from hushed.auditing._trees import fit_boosted
from hushed.auditing._views import View

__all__ = ["Effort", "Score", "fitted_scores"]

Floats = NDArray[np.float64]
Effort = Literal["quick", "bins", "trees"]

_FEW_SYMBOLS = 50
_SMOOTH = Grain(bins=64, penalty=None, smooth=True)
_QUICK = (Grain(bins=64, penalty=3.0),)
_FINE = (Grain(bins=256, penalty=3.0), Grain(bins=64, penalty=6.0))
_POOLED = Grain(bins=256, penalty=3.0, pooled=True)
_BITS = Grain(bins=32, penalty=None)


class Score(Protocol):
    """A function from encoded outputs to numbers."""

    def of(self, encoded: Floats) -> Floats:
        """Score each output; large where the first table is likelier."""

    def words(self, threshold: float, *, first: bool) -> str:
        """Say which outputs have a score of at least (or, for the second table, at most) this."""


def fitted_scores(
    encoder: Encoder, first: Floats, second: Floats, *, effort: Effort, bits: bool = True
) -> Iterator[Score]:
    """Scores worth trying, fitted on training samples.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    first, second : ndarray, shape (runs, columns)
        Training outputs on the two tables.
    effort : {"quick", "bins", "trees"}
        One kind of bins; finer and pooled ones, too; boosted trees as well.
    bits : bool, default True
        Whether to look at the bit patterns of doubles.

    Yields
    ------
    Score
        Whole outputs if they are few; patterns with numbers given them; histograms of the views;
        trees at last.
    """
    symbols = fit_symbols(encoder, first, second)
    if symbols is not None:
        yield symbols
        if encoder.columns == 1 or len(symbols.keys) < _FEW_SYMBOLS:
            return
        bits = bits and encoder.objects
    grains = _QUICK if effort == "quick" else _FINE
    if symbols is None:
        yield from _mixtures(encoder, first, second, (*grains, _SMOOTH))
        grains = (*grains, _SMOOTH) if encoder.width > 1 else grains  # one number needs no curve
    own: tuple[View, ...] = ("structure",) if encoder.objects else ()
    groups: list[tuple[View, ...]] = [(*own, "values")]
    if bits:
        groups.append(("bits",))
    if encoder.width > 1:
        groups += [(*own, "increments"), ("summaries",)]
    for views in groups:
        for grain in _grains(views, grains, pooled=encoder.width > 1):
            yield fit_histograms(encoder, first, second, views, grain)
    if effort == "trees" and encoder.width > 1:
        seen: tuple[View, ...] = (*own, "values", "increments", "summaries")
        yield from filter(None, [fit_boosted(encoder, first, second, seen)])


def _grains(
    views: tuple[View, ...], grains: tuple[Grain, ...], *, pooled: bool
) -> tuple[Grain, ...]:
    if views == ("bits",):
        return (_BITS,)
    return (*grains, _POOLED) if pooled and views != ("summaries",) else grains


def _mixtures(
    encoder: Encoder, first: Floats, second: Floats, grains: tuple[Grain, ...]
) -> Iterator[Score]:
    for grain in grains:
        mixture = fit_mixture(encoder, first, second, grain)
        if mixture is None:
            return
        yield mixture
