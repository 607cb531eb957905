"""What each released number of a fit is: the attribute, the feature, the class, the scale."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hushed._ground.printing import cut_text, flat
from hushed.sklearn._examples import Scheme
from hushed.sklearn._families import Family, Linear

_LONGEST = 80  # letters of the name of a column, or a class


def label_numbers(
    family: Family, scheme: Scheme, names: tuple[str, ...], *, objective: bool
) -> tuple[str, ...]:
    """Say what each number is, in the order in which they are released, and in which units.

    Names of columns, ranges and classes are public. Columns without names, or of which two would
    read alike, are told by their places from 0.
    """
    columns = [_plain(each) for each in names]
    if len(set(columns)) != scheme.features:
        columns = [f"feature {place}" for place in range(scheme.features)]
    classes = [_plain(repr(each)) for each in scheme.classes]
    if len(set(classes)) != len(classes):
        classes = [f"number {place}" for place in range(len(classes))]
    found = [
        (which, _describe(name, which, columns, classes) + _scaled(name, which, family, scheme))
        for name, which in _walk(family)
    ]
    if objective:  # which releases the numbers of one class after those of another
        found.sort(key=lambda each: each[0].get("class", 0))
    in_span = _in_span(scheme) if objective else ""
    return tuple(label + in_span for _, label in found)


def _walk(family: Family) -> Iterator[tuple[str, dict[str, int]]]:
    """Go through the numbers of all attributes; each is named by its places on their axes."""
    for name, shape in family.shapes.items():
        for places in np.ndindex(shape):
            yield name, dict(zip(family.axes[name], places, strict=True))


def _describe(name: str, which: dict[str, int], columns: list[str], classes: list[str]) -> str:
    told = name
    if "feature" in which:
        told += f" of {columns[which['feature']]}"
    for axis in ("centre", "axis", "point"):
        if axis in which:
            told += f", {axis} {which[axis]}"
    if "class" in which:  # of two classes, numbers are those of the second one
        lone = len(classes) == 2 and name in ("coef_", "intercept_")
        told += f", class {classes[1 if lone else which['class']]}"
    return told


def _scaled(name: str, which: dict[str, int], family: Family, scheme: Scheme) -> str:
    """Say how a number depends on the scale of the features; nothing where they have none."""
    if scheme.middle is None or scheme.half is None:
        return ""
    if isinstance(family, Linear):
        if "feature" in which:
            return f", for a step of {scheme.half[which['feature']]:.6g}"
        return ", at the middle of all ranges"
    if "feature" not in which:
        return ", of scaled features" if name == "explained_variance_" else ""
    middle, half = scheme.middle[which["feature"]], scheme.half[which["feature"]]
    return f", {middle - half:.6g} to {middle + half:.6g} scaled to [-1, 1]"


def _in_span(scheme: Scheme) -> str:
    """Say how the label of a regressor is scaled where noise stands in the objective."""
    if scheme.span is None:
        return ""
    low, high = scheme.span
    return f"; label {low:.6g} to {high:.6g} scaled to [-1, 1]"


def _plain(name: str) -> str:
    """Show a name that may be any text; half of a pair of surrogates could not be written."""
    return cut_text(flat(name), _LONGEST).encode(errors="replace").decode()
