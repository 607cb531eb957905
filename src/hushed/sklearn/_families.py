"""Kinds of estimators: which fitted attributes are released, and how a model is made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.sklearn._examples import Scheme
from hushed.sklearn._needed import base, get_tags, linear_model, preprocessing

_CELLS = 2**22  # numbers that are held at once, where rows are compared with points
_LEAST = 1e-9  # of a released variance, or of a probability


@dataclass(frozen=True, kw_only=True)
class Family:
    """A kind of estimator of so many features, and classes if it has any."""

    features: int
    classes: int = 0

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Names and shapes of what is released; public."""
        raise NotImplementedError

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """What each axis of these runs over: feature, class, centre, axis or point."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Numbers that are released."""
        return sum(math.prod(each) for each in self.shapes.values())

    def fit(self, estimator: Any, features: Floats, labels: Floats | None) -> Any:
        """Fit a copy; the labels of a classifier are positions of classes."""
        return estimator.fit(features) if labels is None else estimator.fit(features, labels)

    def read(self, fitted: Any) -> Mapping[str, Any]:
        """Give what is released, by name."""
        return {name: getattr(fitted, name) for name in self.shapes}

    def fill(self, model: Any, values: Mapping[str, Floats]) -> None:
        """Put released numbers into a model that was never fitted."""
        for name, value in values.items():
            setattr(model, name, value if value.ndim else float(value))

    def lack(self, present: Floats) -> Floats | None:  # noqa: ARG002
        """Give numbers for a table of these classes alone, if it cannot be fitted; else None."""
        return None

    def join(self, fitted: Any) -> Floats:
        """Numbers of a fitted estimator, one after the other."""
        found = self.read(fitted)
        parts = []
        for name, shape in self.shapes.items():
            part = np.asarray(found[name], dtype=np.float64)
            if part.size != math.prod(shape):
                raise ParameterError(
                    f"the fit on a table gave {name} another shape than {shape}: its rows lacked a "
                    "class, or were too few"
                )
            parts.append(part.ravel())
        return np.concatenate(parts)

    def split(self, numbers: Floats) -> dict[str, Floats]:
        """Cut released numbers into those of each name."""
        ends = np.cumsum([math.prod(each) for each in self.shapes.values()])
        parts = np.split(np.atleast_1d(numbers).ravel(), ends[:-1])
        return {
            name: part.reshape(shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }


@dataclass(frozen=True, kw_only=True)
class Linear(Family):
    """Linear and generalised linear models: coefficients, and an intercept where it is fitted."""

    intercept: bool = True

    @property
    def rows(self) -> int:
        """Rows of the coefficients of a classifier; 0 of a regressor."""
        return 0 if not self.classes else 1 if self.classes == 2 else self.classes

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Coefficients, and intercepts."""
        lead = (self.rows,) if self.rows else ()
        own = {"coef_": (*lead, self.features)}
        return own | ({"intercept_": lead} if self.intercept else {})

    def lack(self, present: Floats) -> Floats | None:
        """Give zeros for a table that lacks a class."""
        return np.zeros(self.size) if present.size < self.classes else None

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """Classes, where there are any, and features."""
        lead = ("class",) if self.rows else ()
        return {"coef_": (*lead, "feature"), "intercept_": lead}

    def fill(self, model: Any, values: Mapping[str, Floats]) -> None:
        """Put coefficients into a model."""
        super().fill(model, values)
        if hasattr(model, "penalty") or hasattr(model, "solver"):
            model.n_iter_ = np.ones(1, dtype=np.int64)
        if hasattr(model, "_get_loss"):  # a generalised one predicts by the link of its loss
            model._base_loss = model._get_loss()
        if isinstance(model, linear_model.RidgeClassifier):  # as its fit does
            encoder = preprocessing.LabelBinarizer(pos_label=1, neg_label=-1)
            model._label_binarizer = encoder.fit(model.classes_)


@dataclass(frozen=True, kw_only=True)
class Bayes(Family):
    """Gaussian naive Bayes: shares of the classes, and mean and variance of each column in each."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Means, variances and shares."""
        each = (self.classes, self.features)
        return {"theta_": each, "var_": each, "class_prior_": (self.classes,)}

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """Classes, and features."""
        each = ("class", "feature")
        return {"theta_": each, "var_": each, "class_prior_": ("class",)}

    def fit(self, estimator: Any, features: Floats, labels: Floats | None) -> Any:
        """Fit on tables that may lack a class."""
        return estimator.partial_fit(features, labels, classes=np.arange(float(self.classes)))

    def fill(self, model: Any, values: Mapping[str, Floats]) -> None:
        """Put moments into a model: variances above 0, shares that add up to 1."""
        shares = np.maximum(values["class_prior_"], _LEAST)
        own = {"var_": np.maximum(values["var_"], _LEAST), "class_prior_": shares / shares.sum()}
        super().fill(model, {**values, **own})


@dataclass(frozen=True, kw_only=True)
class Centres(Family):
    """K-means: the centres, numbered as the public ones that it starts from."""

    count: int

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Centres."""
        return {"cluster_centers_": (self.count, self.features)}

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """Centres, and features."""
        return {"cluster_centers_": ("centre", "feature")}

    def fill(self, model: Any, values: Mapping[str, Floats]) -> None:
        """Put centres into a model."""
        super().fill(model, values)
        model._n_threads = 1


@dataclass(frozen=True, kw_only=True)
class Axes(Family):
    """Principal components: the axes, the centre, and the variance along each axis."""

    count: int

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Axes, centre and variances."""
        return {
            "components_": (self.count, self.features),
            "mean_": (self.features,),
            "explained_variance_": (self.count,),
        }

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """Axes, and features."""
        return {
            "components_": ("axis", "feature"),
            "mean_": ("feature",),
            "explained_variance_": ("axis",),
        }

    def fill(self, model: Any, values: Mapping[str, Floats]) -> None:
        """Put axes into a model."""
        kept = np.maximum(values["explained_variance_"], _LEAST)
        super().fill(model, {**values, "explained_variance_": kept})
        model.n_components_ = self.count


@dataclass(frozen=True, kw_only=True)
class Points(Family):
    """Any predictor, as what it predicts at public points."""

    points: tuple[tuple[float, ...], ...]

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """A number for each point, or one for each class and point."""
        more = (self.classes,) if self.classes else ()
        return {"predictions_": (len(self.points), *more)}

    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """Points, and classes."""
        return {"predictions_": ("point", "class") if self.classes else ("point",)}

    def lack(self, present: Floats) -> Floats | None:
        """Predict the one class that a table has."""
        if present.size >= min(self.classes, 2):
            return None
        found = np.zeros((len(self.points), self.classes))
        found[:, present.astype(np.int64)] = 1.0
        return found.ravel()

    def read(self, fitted: Any) -> Mapping[str, Any]:
        """Predict at the points: chances of the classes, votes where it knows none."""
        at = np.array(self.points)
        if not self.classes:
            return {"predictions_": fitted.predict(at)}
        found = np.zeros((len(at), self.classes))
        if hasattr(fitted, "predict_proba"):
            found[:, fitted.classes_.astype(np.int64)] = fitted.predict_proba(at)
        else:
            found[np.arange(len(at)), fitted.predict(at).astype(np.int64)] = 1.0
        return {"predictions_": found}


class NearestPoint(base.BaseEstimator):  # type: ignore[misc]
    """Predict what was released at the nearest public point."""

    def __init__(self, points: Floats, estimator: Any) -> None:
        self.points = points
        self.estimator = estimator

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)

    def _find(self, X: Floats) -> Any:
        step = max(1, _CELLS // self.points.size)  # of rows at a time, for the memory
        parts = [X[start : start + step, None, :] for start in range(0, max(len(X), 1), step)]
        near = [((part - self.points) ** 2).sum(axis=2).argmin(axis=1) for part in parts]
        return self.predictions_[np.concatenate(near)]

    def predict(self, X: Floats) -> Any:
        """Predict a number, or the class of the largest chance."""
        found = self._find(X)
        return self.classes_[found.argmax(axis=1)] if found.ndim > 1 else found

    def score(self, X: Floats, y: Any) -> float:
        """Compute the accuracy of a classifier, the R^2 of a regressor."""
        kind = base.ClassifierMixin if base.is_classifier(self) else base.RegressorMixin
        return float(kind.score(self, X, y))

    def __getattr__(self, name: str) -> Any:
        if name != "predict_proba" or "classes_" not in self.__dict__:
            raise AttributeError(name)
        return self._chances

    def _chances(self, X: Floats) -> Floats:
        shares = np.maximum(self._find(X), _LEAST)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A function of rows: an estimator that is fitted on them, as the numbers that it declares.

    The label is the last column, if there is one: of a classifier the position of the class. How
    rows were encoded, and of which columns, is a part of what is asked, under a key too.
    """

    estimator: Any
    family: Family
    scheme: Scheme
    columns: tuple[str, ...] = ()  # of the features, where they have names
    tells: bool = False  # whether a fit that fails says why, as on public rows

    def __post_init__(self) -> None:
        names = " and ".join(self.family.shapes)
        object.__setattr__(self, "__qualname__", f"{names} of {type(self.estimator).__name__}")

    def __call__(self, rows: Floats) -> Floats:
        """Fit a copy on the rows; zeros where that fails, for which rows it does is private."""
        try:
            found = self._fit(rows)
        except Exception:
            if self.tells:
                raise
            return np.zeros(self.family.size)
        return found if self.tells or np.isfinite(found).all() else np.zeros(self.family.size)

    def _fit(self, rows: Floats) -> Floats:
        features, labels = (rows[:, :-1], rows[:, -1]) if self.scheme.labelled else (rows, None)
        if labels is not None and self.family.classes:
            known = self.family.lack(np.unique(labels))
            if known is not None:
                return known
        return self.family.join(self.family.fit(base.clone(self.estimator), features, labels))


@dataclass(frozen=True, kw_only=True)
class Examples:
    """A function of rows that gives them as they are, for a fit with noise in its objective.

    How they were encoded, and of which columns, is a part of what is asked, under a key too.
    """

    estimator: str
    scheme: Scheme
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "__qualname__", f"coef_ and intercept_ of {self.estimator}")

    def __call__(self, rows: Floats) -> Floats:
        """Give the rows."""
        return rows
