"""What a fit needs and was not given: all of it is said at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hushed.errors import ParameterError
from hushed.sklearn._needed import base, cluster, linear_model

_PERTURBED = (linear_model.LogisticRegression, linear_model.Ridge)  # by the route "objective"


def require_all(asked: Any, *, labelled: bool) -> None:
    """Refuse a fit that lacks options, and name every one of them."""
    found = dict(_list_missing(asked, labelled=labelled))
    if found:
        whose = f"route={asked.route!r} of {type(asked.estimator).__name__}"
        raise ParameterError(
            f"{whose} needs {'; '.join(found.values())}", parameter=next(iter(found))
        )


def _list_missing(asked: Any, *, labelled: bool) -> Iterator[tuple[str, str]]:
    """List missing options with what each of them is."""
    if asked.epsilon is None:
        yield "epsilon", "epsilon=, the privacy loss of one fit, such as 1.0"
    if asked.points is None and _starts_anywhere(asked.estimator):
        yield (
            "estimator",
            "an estimator that starts from public centres, init=array: else which centre is "
            "called the first depends on single rows",
        )
    if base.is_classifier(asked.estimator) and not _knows_classes(asked):
        yield (
            "labels",
            "labels=[...], to name the public classes: which ones occur among the private rows is "
            "private",
        )
    yield from _OF_ROUTES[asked.route](asked, labelled)
    if asked.ledger is not None and asked.budget is None:
        yield "budget", "budget=, the name of the budget in the ledger"


def _starts_anywhere(estimator: Any) -> bool:
    """Whether the centres that it starts from are drawn, or computed, from the rows."""
    if type(estimator) not in (cluster.KMeans, cluster.MiniBatchKMeans):
        return False
    return isinstance(estimator.init, str) or callable(estimator.init)


def _knows_classes(asked: Any) -> bool:
    """Whether classes are named, or stand in public rows."""
    given = asked.population
    return asked.labels is not None or (isinstance(given, tuple) and len(given) == 2)


def _of_sampled(asked: Any, labelled: bool) -> Iterator[tuple[str, str]]:
    if asked.population is None:
        rows = "(X, y)" if labelled else "X"
        taken = type(asked.estimator) in _PERTURBED
        others = "route='blocks' or 'objective'"
        others += "" if taken else ", which takes LogisticRegression and Ridge"
        yield (
            "population",
            f"population=, {rows} of public rows like the private ones, or one of hs.populations "
            f"(without one use {others})",
        )


def _of_blocks(asked: Any, _: bool) -> Iterator[tuple[str, str]]:
    if isinstance(asked.delta, int | float) and not asked.delta:  # what is odd is refused as such
        yield "delta", "delta= above 0, well below 1 divided by the number of rows"
    if asked.radius is None:
        yield (
            "radius",
            "a public radius= of the ball that the attributes of each block are moved into, "
            "around centre= or 0",
        )


def _of_objective(asked: Any, _: bool) -> Iterator[tuple[str, str]]:
    kind = type(asked.estimator)
    if kind not in _PERTURBED:
        return  # which is refused with the reason
    if asked.bounds is None:
        yield "bounds", "bounds=(low, high), the public ranges of the features"
    if kind is linear_model.Ridge and asked.labels is None:
        yield "labels", "labels=(low, high), the public range of the label"


_OF_ROUTES = {"sampled": _of_sampled, "blocks": _of_blocks, "objective": _of_objective}
