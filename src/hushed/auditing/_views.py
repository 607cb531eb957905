"""Ways of looking at encoded outputs: values, increments, summaries, bits, structure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hushed.auditing._outputs import LOWEST_BIT, STRUCTURE, Encoder, lowest_bit

__all__ = ["View", "column_names", "columns", "view"]

Floats = NDArray[np.float64]
View = Literal["values", "increments", "summaries", "bits", "structure"]


def view(encoder: Encoder, encoded: Floats, name: View) -> Floats:
    """One way of looking at outputs.

    Parameters
    ----------
    encoder : Encoder
        How they were encoded.
    encoded : ndarray, shape (runs, columns)
        Encoded outputs.
    name : {"values", "increments", "summaries", "bits", "structure"}
        The numbers themselves; differences of neighbouring numbers, the first one kept; sum,
        least, largest and position of the largest; exponents of lowest set bits; types and
        lengths.

    Returns
    -------
    ndarray, shape (runs, ...)
        Columns of the view.
    """
    if name == "structure":
        return encoded[:, : (len(STRUCTURE) - 1) * encoder.objects]
    values = encoder.values(encoded)
    if name == "increments":
        with np.errstate(invalid="ignore"):
            return np.asarray(np.diff(values, axis=1, prepend=0.0))
    if name == "bits":
        return lowest_bit(values)
    if name == "summaries":
        filled = np.where(np.isnan(values), 0.0, values)
        parts = (filled.sum(axis=1), filled.min(axis=1), filled.max(axis=1), filled.argmax(axis=1))
        every = (*parts, np.isnan(values).sum(axis=1))
        return np.stack(every, axis=1).astype(np.float64)
    return values


def column_names(encoder: Encoder, name: View) -> list[str]:
    """Words for the columns of a view.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    name : str
        The view.

    Returns
    -------
    list of str
        One for each column.
    """
    if name == "structure":
        return [f"the {part} of the output" for part in STRUCTURE[:-1]] * encoder.objects
    if name == "summaries":
        return ["the sum", "the smallest", "the largest", "the place of the largest", "the gaps"]
    prefix = {"bits": LOWEST_BIT, "increments": "the increment to "}
    parts = [f"number {i + 1}" for i in range(encoder.width)]
    return [
        prefix.get(name, "") + part for part in (parts if encoder.width > 1 else ["the output"])
    ]


def columns(encoder: Encoder, encoded: Floats, views: tuple[View, ...]) -> Iterator[Floats]:
    """Columns of several views, one after the other.

    Parameters
    ----------
    encoder : Encoder
        How outputs were encoded.
    encoded : ndarray, shape (runs, columns)
        Encoded outputs.
    views : tuple of str
        The views.

    Yields
    ------
    ndarray, shape (runs,)
        A column.
    """
    for name in views:
        yield from view(encoder, encoded, name).T
