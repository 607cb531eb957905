"""Public weights that remember what they were made from, so that a release can refuse its rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Prior(tuple[float, ...]):
    """Weights of candidates, made by a function from a population; a plain tuple in a pickle."""

    made_from: Any = None

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


def make_prior(weights: Iterable[float], made_from: Any) -> Prior:
    """Make weights that remember what they were made from."""
    made = Prior(weights)
    made.made_from = made_from
    return made


def keep_source(weights: Iterable[float], given: Any) -> tuple[float, ...]:
    """Give weights that were read from others what those remember."""
    return make_prior(weights, given.made_from) if isinstance(given, Prior) else tuple(weights)
