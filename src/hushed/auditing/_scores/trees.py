"""A score for outputs whose numbers belong together: gradient boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._outputs import Encoder, FeatureMap, apply_feature_map

Floats = NDArray[np.float64]

_TRAINING_ROWS = 400_000  # on each table: some ten seconds
_LEAF = 50
_LEAVES = 1_000
_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boosted:
    """Log odds of gradient boosted trees: a fitted classifier of scikit-learn."""

    encoder: Encoder
    maps: tuple[FeatureMap, ...]
    trees: Any

    def evaluate(self, encoded: Floats) -> Floats:
        """Score each output; some at a time, for the trees see many times what the output holds."""
        starts = range(_AT_ONCE, len(encoded), _AT_ONCE)
        with _one_thread():
            return np.concatenate(
                [
                    self.trees.decision_function(_join_features(self.encoder, part, self.maps))
                    for part in np.split(encoded, starts)
                ]
            )

    def describe(self, threshold: float, *, first: bool) -> str:
        """Name the classifier and its level."""
        way = "at least" if first else "at most"
        return (
            f"gradient boosted trees on the {', '.join(self.maps)} of the output give log odds "
            f"of {way} {threshold:.4g}"
        )


def _join_features(encoder: Encoder, encoded: Floats, maps: tuple[FeatureMap, ...]) -> Floats:
    joined = np.concatenate([apply_feature_map(encoder, encoded, name) for name in maps], axis=1)
    # What is not a number gets one of its own: trees refuse a column without any number.
    return np.where(np.isnan(joined), -2e300, np.clip(joined, -1e300, 1e300))


def _one_thread() -> Any:
    """Keep trees to one thread: on a busy machine those that wait cost more than they give."""
    return import_module("threadpoolctl").threadpool_limits(limits=1)


def fit_boosted(
    encoder: Encoder, first: Floats, second: Floats, maps: tuple[FeatureMap, ...]
) -> Boosted | None:
    """Fit trees, if scikit-learn is installed."""
    try:
        ensemble = import_module("sklearn.ensemble")
    except ImportError:
        return None
    parts = [each[:_TRAINING_ROWS] for each in (first, second)]
    features = np.concatenate([_join_features(encoder, each, maps) for each in parts])
    labels = np.repeat([1, 0], [len(each) for each in parts])
    trees = ensemble.HistGradientBoostingClassifier(
        max_iter=40,
        max_leaf_nodes=15,
        min_samples_leaf=max(_LEAF, len(labels) // (2 * _LEAVES)),
        early_stopping=False,
        random_state=0,
    )
    with _one_thread():
        trees.fit(features, labels)
    return Boosted(encoder=encoder, maps=maps, trees=trees)
