"""What a private fit learns of the rows stays neither in the estimator nor on a disk."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from joblib import Memory
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import hushed as hs
from hushed.errors import ParameterError
from hushed.sklearn import PrivateEstimator

POINTS = [[0.2, 0.2], [0.8, 0.8]]
ROWS = np.random.default_rng(1).random((24, 2))
LABELS = ROWS.sum(axis=1)


def private(estimator, **options):
    """Make one that releases what it predicts at public points."""
    return PrivateEstimator(
        estimator,
        route="blocks",
        blocks=12,
        points=POINTS,
        bounds=(0, 1),
        labels=(0, 2),
        radius=3.0,
        epsilon=5.0,
        delta=1e-3,
        **options,
    )


class Nearest(RegressorMixin, BaseEstimator):
    """One that keeps its rows."""

    def fit(self, X, y):
        """Keep them."""
        self.rows_ = X, y
        return self

    def predict(self, X):
        """Predict the mean."""
        return np.full(len(X), self.rows_[1].mean())


class ItsOwnCopy(Nearest):
    """One that scikit-learn's clone gives back."""

    def __sklearn_clone__(self):
        return self


class Shelf:
    """What all copies of an estimator share."""

    def __init__(self):
        self.held = []

    def __deepcopy__(self, memo):
        return self


class Shelving(Nearest):
    """One that puts its rows on a shelf."""

    def __init__(self, shelf=None):
        self.shelf = shelf

    def fit(self, X, y):
        """Keep them there."""
        shelf = self.shelf[0] if isinstance(self.shelf, list) else self.shelf
        shelf.held.append(X)
        return super().fit(X, y)


SHARING = {
    "its own copy": ItsOwnCopy,
    "one within": lambda: TransformedTargetRegressor(ItsOwnCopy()),
    "a parameter": lambda: Shelving(Shelf()),
    "in a list": lambda: Shelving([Shelf()]),
}


@pytest.mark.parametrize("name", SHARING)
def test_an_estimator_whose_copies_share_what_they_learn_is_refused(name, ledger):
    """The released model is such a copy, and would hold the private rows."""
    found = private(SHARING[name](), ledger=ledger, budget="b")
    with pytest.raises(ParameterError, match=r"shares a (ItsOwnCopy|Shelf) with its copies"):
        found.fit(ROWS, LABELS)
    assert not ledger.log


@pytest.mark.parametrize(
    "estimator",
    [Shelving(np.float64), Shelving(partial(max, 1)), FrozenEstimator(DummyRegressor())],
    ids=["a class", "a function", "one that fits nothing"],
)
def test_what_learns_nothing_may_be_shared(estimator):
    """Classes and functions are their own copies, and so is a frozen estimator."""
    private(estimator)._order(len(ROWS), 2, labelled=True, names=())


@pytest.mark.parametrize("keeper", [str, Path, Memory])
def test_nothing_that_was_computed_is_kept_in_a_folder(keeper, tmp_path):
    """Rows of a step are written by joblib, scaled, where memory= says, and stay there."""
    steps = [("scale", StandardScaler()), ("fit", Ridge())]
    kept = Memory(str(tmp_path), verbose=0) if keeper is Memory else keeper(tmp_path)
    estimator = TransformedTargetRegressor(Pipeline(steps, memory=kept))
    before = list(tmp_path.rglob("*"))
    law = hs.populations.Simulator(lambda rng, count: rng.random((count, 3)))
    found = PrivateEstimator(
        estimator,
        law,
        points=POINTS,
        bounds=(0, 1),
        labels=(0, 2),
        gamma=0.5,
        calibration="marginal",
    ).fit(ROWS, LABELS)
    assert found.predictions_.shape == (2,)
    assert list(tmp_path.rglob("*")) == before
