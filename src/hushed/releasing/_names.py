"""Names beside a released value: those that the function gave on public tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushed._ground.printing import flat, format_number
from hushed.mechanisms import Winner
from hushed.mechanisms._registry import CERTIFIED
from hushed.releasing._certificate import Certificate

_CHOOSING = ("exponential", "noisy-max", "top-k")


def names_of(certificate: Certificate) -> tuple[str, ...]:
    """Give the names of a function's numbers; empty if it gave none on public tables.

    What was said of the numbers comes first. The numbers of rows of the categories of a mode are
    named by these: 1 and "1" are two.
    """
    if certificate.labels:
        return certificate.labels
    if certificate.mechanism.name in CERTIFIED and certificate.statistic is not None:
        categories = certificate.statistic.get("categories", ())
        names = tuple(map(str, categories))
        return names if len(set(names)) == len(names) else tuple(map(repr, categories))
    return () if certificate.sampling is None else certificate.sampling.names


def name_numbers(value: Any, certificate: Certificate) -> dict[str, float]:
    """Put released numbers beside their names; empty if there are none, or candidates are told."""
    names = names_of(certificate)
    numbers = isinstance(value, np.ndarray) and value.dtype == np.float64
    if not numbers or value.size != len(names):
        return {}
    return dict(zip(names, value.tolist(), strict=True))


def name_chosen(value: Any, certificate: Certificate) -> tuple[str, ...]:
    """Name the candidates that were chosen, the first one first; empty if they have no names."""
    names = names_of(certificate)
    if not names or certificate.mechanism.name not in _CHOOSING:
        return ()
    places = np.ravel(value.index if isinstance(value, Winner) else value).tolist()
    if not all(type(each) is int and 0 <= each < len(names) for each in places):
        return ()  # of an entry that was written by hand
    return tuple(names[each] for each in places)


def name_value(certificate: Certificate) -> str:
    """Name what has no name of its own: candidates are told by their places."""
    made = certificate.mechanism
    if made.stated or made.name not in _CHOOSING:
        return "value"
    more = made.name == "top-k"
    return f"chosen candidate{'s, the best first,' if more else ','} counted from 0"


def list_named(value: Any, certificate: Certificate) -> list[tuple[str, str]]:
    """List what has a name: each number, or which candidates were chosen."""
    numbers = name_numbers(value, certificate)
    found = [(flat(name), format_number(number)) for name, number in numbers.items()]
    chosen = name_chosen(value, certificate)
    return found + ([("chosen", ", ".join(map(flat, chosen)))] if chosen else [])
