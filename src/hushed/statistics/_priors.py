"""Public numbers that remember what they were made from, so that a release can refuse its rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Prior(tuple[float, ...]):
    """Candidates, or weights of them, and what they were made from; a plain tuple in a pickle."""

    made_from: Any = None

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


def make_prior(weights: Iterable[float], made_from: Any) -> Prior:
    """Make weights that remember what they were made from."""
    made = Prior(weights)
    made.made_from = made_from
    return made


def remember(values: Iterable[Any], given: Any) -> tuple[Any, ...]:
    """Give values that were read, and remember what a caller handed in."""
    return make_prior(values, given.made_from if isinstance(given, Prior) else given)


class Source:
    """What a choice was made by, such as a population; nothing of it is in a pickle."""

    __slots__ = ("made_from",)

    def __init__(self, made_from: Any = None) -> None:
        self.made_from = made_from

    def __reduce__(self) -> Any:
        return Source, ()
