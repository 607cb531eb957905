"""Which family an estimator is of, and why others are refused."""

from __future__ import annotations

from enum import Enum
from os import PathLike
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from hushed._functions._fingerprints.code import is_library
from hushed._ground.checks import is_real, is_whole
from hushed._ground.printing import name_count
from hushed._ground.types import Floats
from hushed.errors import ParameterError
from hushed.sklearn._families import Axes, Bayes, Centres, Family, Linear, Points
from hushed.sklearn._needed import (
    FrozenEstimator,
    base,
    cluster,
    decomposition,
    linear_model,
    naive_bayes,
    svm,
)

_REGRESSORS = (
    linear_model.ARDRegression,
    linear_model.BayesianRidge,
    linear_model.ElasticNet,
    linear_model.GammaRegressor,
    linear_model.HuberRegressor,
    linear_model.Lars,
    linear_model.Lasso,
    linear_model.LassoLars,
    linear_model.LinearRegression,
    linear_model.PoissonRegressor,
    linear_model.QuantileRegressor,
    linear_model.Ridge,
    linear_model.SGDRegressor,
    linear_model.TheilSenRegressor,
    linear_model.TweedieRegressor,
    svm.LinearSVR,
)
_CLASSIFIERS = (
    linear_model.LogisticRegression,
    linear_model.Perceptron,
    linear_model.RidgeClassifier,
    linear_model.SGDClassifier,
    svm.LinearSVC,
)
_RELEASED = (
    *_REGRESSORS,
    *_CLASSIFIERS,
    naive_bayes.GaussianNB,
    cluster.KMeans,
    cluster.MiniBatchKMeans,
    decomposition.PCA,
)
_ROWS = (
    "it keeps rows as they are (neighbours, support vectors, points of a kernel), so that its "
    "attributes are private rows"
)
_TREES = (
    "its thresholds lie between rows, and neither their number nor their places stay when a row "
    "changes"
)
_SEVERAL = (
    "it fits several things on the rows, or chooses among fits, and each of them is an answer "
    "about the rows. Fit what comes before on public rows, choose on public rows, and make the "
    "last step private"
)
_REASONS = (
    (("Pipeline", "Search", "Voting", "Stacking", "Calibrated", "CV", "RFE"), _SEVERAL),
    (("Neighbors", "SVC", "SVR", "SVM", "GaussianProcess", "KernelRidge"), _ROWS),
    (("Tree", "Forest", "Boost", "Bagging"), _TREES),
)


def choose_family(estimator: Any, *, features: int, classes: int, points: Floats | None) -> Family:
    """Choose what is released of an estimator; refuse what cannot be."""
    own: dict[str, int] = {"features": features, "classes": classes}
    if points is not None:
        _check_predicts(estimator)
        return Points(points=tuple(map(tuple, points.tolist())), **own)
    if type(estimator) in (*_REGRESSORS, *_CLASSIFIERS):
        return Linear(intercept=bool(estimator.fit_intercept), **own)
    if type(estimator) is naive_bayes.GaussianNB:
        return Bayes(**own)
    if type(estimator) in (cluster.KMeans, cluster.MiniBatchKMeans):
        return Centres(count=_count_centres(estimator, features), **own)
    if type(estimator) is decomposition.PCA:
        return Axes(count=_count_axes(estimator, features), **own)
    raise ParameterError(explain_refusal(estimator), parameter="estimator")


def check_released(estimator: Any, points: Any) -> None:
    """Refuse what no route releases, before a route is said to need more options."""
    if points is None and type(estimator) not in _RELEASED:
        raise ParameterError(explain_refusal(estimator), parameter="estimator")


def check_estimator(estimator: Any) -> None:
    """Refuse what is no estimator, before it is asked for its tags."""
    known = hasattr(estimator, "fit") and hasattr(estimator, "__sklearn_tags__")
    if not known or isinstance(estimator, type):
        got = type(estimator).__name__
        if isinstance(estimator, type) and hasattr(estimator, "fit"):
            got = f"the class {estimator.__name__}: give {estimator.__name__}(), with its options"
        raise ParameterError(
            f"the estimator must be one of scikit-learn, got {got}", parameter="estimator"
        )


def explain_refusal(estimator: Any) -> str:
    """Say why an estimator is not released, and what to do."""
    name = type(estimator).__name__
    found = [why for parts, why in _REASONS if any(part in name for part in parts)]
    why = found[0] if found else "nothing is known of what its attributes say"
    more = (
        ""
        if found and found[0] is _SEVERAL
        else (". Released can be what it predicts at public points: give points=")
    )
    return (
        f"{name} is not released: {why}{more}. Attributes are released of linear and generalised "
        "linear models, GaussianNB, KMeans and PCA"
    )


def fix_chance(estimator: Any) -> Any:
    """Copy an estimator; one that tosses coins gets a seed, for its answers must not vary.

    None says how far it is: what C code prints of a fit goes past Python, and tells of its rows.
    None keeps in a folder what it computed.
    """
    copy = base.clone(estimator)
    _refuse_shared(estimator, copy)
    held = copy.get_params()
    chance = {name: 0 for name in held if _is_named(name, "random_state") and held[name] is None}
    loud = [name for name in held if _is_named(name, "verbose") and held[name]]
    # Below 0 it is less than silent to some.
    quiet = {name: 0 for name in loud if not (is_real(held[name]) and held[name] < 0)}
    kept = {name: None for name in held if _is_named(name, "memory") and _is_cache(held[name])}
    copy.set_params(**chance, **quiet, **kept)
    return copy


def _is_cache(value: Any) -> bool:
    """Whether an option names a folder, or an object of joblib that writes into one."""
    return isinstance(value, str | PathLike) or hasattr(value, "cache")


def _refuse_shared(estimator: Any, copy: Any) -> None:
    """Refuse an estimator that is its own copy, or holds what is: rows would stay in it.

    Of a class that is installed it is known not to learn, unless it is an estimator.
    """
    ours, theirs = _spread(estimator), _spread(copy)
    for place, each in ours.items():
        if place in theirs and _learns(each):
            raise ParameterError(
                f"the estimator shares a {type(each).__name__} with its copies, so that what a fit "
                "keeps of private rows would stay there: let each copy have its own",
                parameter="estimator",
            )


def _spread(estimator: Any) -> dict[int, Any]:
    """Give an estimator and its options, at any depth, by their identity; none of a frozen one."""
    left, found = [estimator], dict[int, Any]()
    while left:
        each = left.pop()
        if id(each) not in found:
            found[id(each)] = each
            left += each if type(each) in (list, tuple, set) else []
            left += each.values() if type(each) is dict else []
            left += each.get_params(deep=False).values() if _is_fitted_anew(each) else []
    return found


def _learns(value: Any) -> bool:
    """Whether an object may keep something of what it is given."""
    kind = type(value)
    if isinstance(value, type | FunctionType | BuiltinFunctionType | MethodType | Enum):
        return False
    return _is_fitted_anew(value) if hasattr(kind, "fit") else not is_library(kind.__module__)


def _is_fitted_anew(value: Any) -> bool:
    """Whether an object is an estimator that learns where it is fitted."""
    known = hasattr(type(value), "fit") and hasattr(type(value), "get_params")
    return known and type(value) is not FrozenEstimator


def _is_named(name: str, option: str) -> bool:
    """Whether an option of an estimator, or of one within it, has a name."""
    return name.rpartition("__")[2] == option


def check_private_options(estimator: Any) -> None:
    """Refuse options that make more of the rows public than the declared attributes."""
    for name in ("warm_start", "early_stopping"):
        if getattr(estimator, name, False):
            raise ParameterError(
                f"{name}=True makes a fit depend on more than its rows: leave it out",
                parameter="estimator",
            )


def _check_predicts(estimator: Any) -> None:
    if not hasattr(estimator, "predict") or any(
        part in type(estimator).__name__ for part in _REASONS[0][0]
    ):
        raise ParameterError(
            f"points= is for one estimator that predicts; {type(estimator).__name__} is none, or "
            "fits several things on the rows",
            parameter="points",
        )


def _count_centres(estimator: Any, features: int) -> int:
    """Count centres; those it starts from are public, or their numbers would change places."""
    count = int(estimator.n_clusters)
    if np.shape(estimator.init) != (count, features):
        raise ParameterError(
            f"init must hold {name_count(count, 'centre')} of {name_count(features, 'number')}",
            parameter="estimator",
        )
    return count


def _count_axes(estimator: Any, features: int) -> int:
    count = estimator.n_components
    if not is_whole(count):
        raise ParameterError(
            "PCA needs n_components as a whole number: how many axes explain a share is an answer "
            "about the rows",
            parameter="estimator",
        )
    if not 1 <= count <= features:
        raise ParameterError(
            f"n_components must lie between 1 and {features}", parameter="estimator"
        )
    return int(count)
