"""Learned scores: how much likelier an output is on one table than on the other.

A score is fitted on training samples. Whatever it is, an event "the score is at least t" is an
event, so a bad score makes a bound small and never wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._outputs import Encoder, FeatureMap
from hushed.auditing._scores.histogram import Binning, Histograms, fit_family, score_together
from hushed.auditing._scores.pattern import (
    Categories,
    Mixture,
    fit_categories,
    fit_mixtures,
    score_mixtures,
)
from hushed.auditing._scores.repeats import fit_repeats
from hushed.auditing._scores.smoothing import fit_slope
from hushed.auditing._scores.trees import fit_boosted

__all__ = [
    "Effort",
    "Event",
    "Family",
    "Histograms",
    "Score",
    "fit_scores",
    "fit_slope",
    "fit_trees",
]

Floats = NDArray[np.float64]
Effort = Literal["quick", "bins", "trees"]

_FEW_CATEGORIES = 50
_SMOOTH = Binning(bins=64, penalty=None, smooth=True)
_QUICK = (Binning(bins=64, penalty=3.0),)
_FINE = (Binning(bins=256, penalty=3.0), Binning(bins=64, penalty=6.0))
_POOLED = Binning(bins=256, penalty=3.0, pooled=True)
_BITS = Binning(bins=32, penalty=None)


class Score(Protocol):
    """A function from encoded outputs to numbers."""

    def evaluate(self, encoded: Floats) -> Floats:
        """Score each output; large where the first table is likelier."""

    def describe(self, threshold: float, *, first: bool) -> str:
        """Say which outputs have a score of at least (or, for the second table, at most) this."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """Scores that look at outputs in the same way, more or less finely."""

    name: str
    scores: list[Any]

    def evaluate(self, encoded: Floats) -> list[Floats]:
        """Score each output by each; what they have in common is computed once."""
        if isinstance(self.scores[0], Histograms):
            return list(score_together(self.scores, encoded))
        if isinstance(self.scores[0], Mixture):
            return list(score_mixtures(self.scores, encoded))
        return [each.evaluate(encoded) for each in self.scores]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """A set of outputs: those whose score passes a threshold. Ties are never split.

    With `first` the event is the likelier one on the first table (score at least the threshold),
    otherwise on its neighbour (score at most the threshold).
    """

    score: Score
    threshold: float
    first: bool

    @property
    def sign(self) -> float:
        """Factor that makes the event the large scores."""
        return 1.0 if self.first else -1.0

    def contains(self, encoded: Floats) -> NDArray[np.bool_]:
        """Tell which outputs are inside."""
        scores = self.score.evaluate(encoded)
        return scores >= self.threshold if self.first else scores <= self.threshold

    def describe(self) -> str:
        """Words such as ``"the output lies in [-inf, 0.5)"``."""
        return self.score.describe(self.threshold, first=self.first)


def fit_scores(
    encoder: Encoder,
    first: Floats,
    second: Floats,
    *,
    effort: Effort,
    bits: bool = True,
    without: Collection[str] = (),
) -> Iterator[Family]:
    """Fit the scores worth trying on training samples of the two tables, one family at a time.

    Whole outputs if they are few, else those among them that repeat; patterns with numbers given
    them; histograms of the feature maps. `effort` says how many: one kind of bins ("quick"), or
    finer and pooled ones, too. `bits` says whether to look at the bit patterns of doubles;
    `without` names families to leave out, as long as any other one is left.
    """
    categories = fit_categories(encoder, first, second)
    if categories is not None:
        yield Family(name="categories", scores=[categories])
        if encoder.columns == 1 or len(categories.keys) < _FEW_CATEGORIES:
            return
        bits = bits and encoder.objects
    binnings, mixtures = _QUICK if effort == "quick" else _FINE, []
    if categories is None:
        # First, for of events that are as good the first one stays: a single output says most.
        repeats = fit_repeats(encoder, first, second) if "repeats" not in without else []
        if repeats:
            yield Family(name="repeats", scores=repeats)
        if "mixtures" not in without:
            mixtures = fit_mixtures(encoder, first, second, (*binnings, _SMOOTH))
        if mixtures:
            yield Family(name="mixtures", scores=mixtures)
        # One number needs no curve: only its mixtures are tried with one.
        binnings = (*binnings, _SMOOTH) if encoder.width > 1 else binnings
    own: tuple[FeatureMap, ...] = ("structure",) if encoder.objects else ()
    groups: list[tuple[FeatureMap, ...]] = [(*own, "values")]
    if bits:
        groups.append(("bits",))
    if encoder.width > 1:
        groups += [(*own, "increments"), ("summaries",)]
    wanted = [maps for maps in groups if maps[-1] not in without]
    for maps in wanted if wanted or categories or mixtures else groups:
        chosen = _choose_binnings(maps, binnings, pooled=encoder.width > 1)
        yield Family(name=maps[-1], scores=fit_family(encoder, first, second, maps, chosen))


def fit_trees(encoder: Encoder, first: Floats, second: Floats, *, beside: Score) -> Score | None:
    """Fit boosted trees, if they can tell more than the best of the other scores.

    None for outputs of one number or of a few kinds, which counts know all about, and without
    scikit-learn.
    """
    if isinstance(beside, Categories) and len(beside.keys) < _FEW_CATEGORIES:
        return None
    if encoder.width == 1:
        return None
    own: tuple[FeatureMap, ...] = ("structure",) if encoder.objects else ()
    return fit_boosted(encoder, first, second, (*own, "values", "increments", "summaries"))


def _choose_binnings(
    maps: tuple[FeatureMap, ...], binnings: tuple[Binning, ...], *, pooled: bool
) -> tuple[Binning, ...]:
    if maps == ("bits",):
        return (_BITS,)
    return (*binnings, _POOLED) if pooled and maps != ("summaries",) else binnings
