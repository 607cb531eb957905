"""Public rows of the sampled route, encoded as the private ones are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hushed._ground.printing import name_count
from hushed._ground.types import Floats
from hushed._ground.warned import warn_outside
from hushed._rows._containers import is_series
from hushed._rows._ranges import Range, read_ranges
from hushed.errors import BadRows, HushedWarning, ParameterError
from hushed.populations import Population, PublicTable
from hushed.populations._sources import description
from hushed.populations._users import column_of_users
from hushed.sklearn._examples import NO_TIMES, Scheme, as_table, holds_times

_FEW = 2  # rows by which columns are known
_ENCODED = "encoded for the fit: what is missing is the middle of its range, or 0 without one"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows of a population in units of X, encoded as private rows are: a fit sees no others.

    Parameters
    ----------
    given : Population
        Its rows are arrays of the features, and of the label if there is one.
    scheme : Scheme
        How rows are encoded.
    """

    given: Population
    scheme: Scheme

    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Draw rows."""
        return encode_table(self.given.draw(rng, count), self.scheme)

    def parts(self) -> tuple[Population, ...]:
        """Name the population that it is made of."""
        return (self.given,)

    def support(self) -> tuple[Range, ...]:
        """Ranges of the encoded columns."""
        told: Any = getattr(self.given, "support", tuple)()
        known = all(isinstance(each, Range) for each in told) if isinstance(told, tuple) else False
        found = _place_ranges(told if known else read_ranges(told), _draw_few(self.given))
        return tuple((found | _list_ranges(self.scheme)).values())

    def describe(self) -> dict[str, Any]:
        """Describe the source: what was given, and the ranges that its columns were moved into."""
        told: dict[str, Any] = {
            "kind": f"examples, {_ENCODED}",
            "rows": description(self.given),
        }
        if self.scheme.middle is not None and self.scheme.half is not None:
            ends = zip(self.scheme.middle, self.scheme.half, strict=True)
            told["bounds"] = [[middle - half, middle + half] for middle, half in ends]
        return told | ({"label": list(self.scheme.span)} if self.scheme.span else {})


def read_population(given: Any, scheme: Scheme) -> Population:
    """Make a population of public rows, or encode the rows of the caller's own."""
    if isinstance(given, PublicTable):
        frame = encode_table(given.frame, scheme)
        _warn_missing(as_table(given.frame)[:, : scheme.features], scheme)
        bounds = _join_bounds(given, scheme) or None
        return replace(given, frame=frame, bounds=bounds, name=f"{given.name}, {_ENCODED}")
    if column_of_users(given) is not None:
        raise ParameterError(
            "the population draws people with several rows, and a private fit is for rows: give "
            "the law of the rows alone",
            parameter="population",
        )
    if hasattr(given, "draw"):
        return Encoded(given, scheme)
    if scheme.labelled and not (isinstance(given, tuple) and len(given) == 2):
        raise ParameterError(
            "population must be a tuple (X, y) of public rows, or one of hs.populations whose rows "
            f"end with the label, got {type(given).__name__}",
            parameter="population",
        )
    features, labels = given if scheme.labelled else (given, None)
    rows = _encode_given(features, labels, scheme)
    _warn_missing(as_table(features), scheme)
    return PublicTable(rows, name=f"public examples, {_ENCODED}", bounds=_name_bounds(scheme))


def _warn_missing(features: Floats, scheme: Scheme) -> None:
    """Warn of missing cells of public rows that count as 0, as those of private rows do then."""
    columns = int(np.isnan(features).any(axis=0).sum())
    if scheme.middle is None and columns:
        warn_outside(
            HushedWarning(
                f"the public rows have missing cells in {columns} of "
                f"{name_count(scheme.features, 'column')}, "
                "and without bounds= a missing cell counts as 0, in private rows too: give "
                "bounds=(low, high), and it counts as the middle of its range, or fill cells by a "
                "public rule"
            )
        )


def read_points(given: Any, scheme: Scheme) -> Any:
    """Read public points, in units of X."""
    try:
        if np.shape(given)[1:] == (scheme.features,) and len(given):
            return scheme.encode_features(given)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(
        f"points must be rows of {name_count(scheme.features, 'number')}", parameter="points"
    )


def _encode_given(features: Any, labels: Any, scheme: Scheme) -> Any:
    """Encode public rows and their labels."""
    try:
        if np.shape(features)[1:] == (scheme.features,):
            return scheme.encode(features, labels)
        problem = f"it has the shape {np.shape(features)}"
    except (TypeError, ValueError, OverflowError) as cause:
        problem = str(cause)
    label = ", and a label for each row" if scheme.labelled else ""
    raise BadRows(
        f"the public rows must be a table of {name_count(scheme.features, 'feature')} as in "
        f"X{label}: {problem}"
    )


def count_features(public: Any, *, labelled: bool) -> int:
    """Count the features of public rows, whose last column is the label if they are one table."""
    pair = isinstance(public, tuple) and len(public) == 2 and labelled
    rows = _draw_few(public) if hasattr(public, "draw") else public[0] if pair else public
    shape = np.shape(rows)
    if len(shape) != 2:
        raise ParameterError(
            "population must be that of the fit: (X, y), or one of hs.populations",
            parameter="population",
        )
    return int(shape[1]) - (labelled and not pair)


def check_columns(public: Any, names: tuple[str, ...], *, labelled: bool) -> None:
    """Refuse public rows whose columns have other names than those of X, or another order.

    Columns are taken by their places. Names of columns are public; those that are no texts say
    nothing.
    """
    if hasattr(public, "draw"):
        found = name_columns(_draw_few(public))[: -1 if labelled else None]
    else:
        found = name_columns(public[0] if isinstance(public, tuple) and public else public)
    if names and found and found != names:
        raise BadRows(
            "the columns of X are not those of the public rows, points or ranges, by name and in "
            "this order, and columns are taken by their places: put those of X in the order of the "
            "public ones"
        )


def _draw_few(population: Any) -> Any:
    """Draw a few rows of a population; none if that fails, as sampling tells in its own words."""
    try:
        return population.draw(np.random.default_rng(0), _FEW)
    except Exception:
        return None


def name_columns(rows: Any) -> tuple[str, ...]:
    """Names of the columns of a frame, or of a series of it; none where they are no texts."""
    names = tuple(rows.columns) if hasattr(type(rows), "columns") else ()
    if is_series(rows) and hasattr(type(rows), "index"):  # as frame.min() gives it
        names = tuple(rows.index)
    return names if all(isinstance(each, str) for each in names) else ()


def encode_table(rows: Any, scheme: Scheme) -> Any:
    """Encode public rows that end with the label: of a classifier the position of the class."""
    if holds_times(rows):
        raise BadRows(f"the population: {NO_TIMES}")
    try:
        table = as_table(rows)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2 or table.shape[1] != scheme.features + scheme.labelled:
        last = ", and the label" if scheme.labelled else ""
        raise BadRows(
            "the population must give arrays of numbers: "
            f"{name_count(scheme.features, 'feature')} as in X{last}"
        )
    features = scheme.encode_features(table[:, : scheme.features])
    if not scheme.labelled:
        return features
    label = table[:, -1]
    if scheme.classes and not np.isin(label, np.arange(len(scheme.classes))).all():
        raise BadRows(
            f"the last column of the population must be the position of the class among the "
            f"{len(scheme.classes)} labels, from 0 on"
        )
    known = label if scheme.classes else scheme.encode_labels(label)
    return np.column_stack([features, known])


def _list_ranges(scheme: Scheme) -> dict[str, Range]:
    """List the ranges of encoded columns, by place, where they are known."""
    found = {}
    if scheme.middle is not None:
        found = {str(i): Range(column=str(i), low=-1.0, high=1.0) for i in range(scheme.features)}
    label = (0.0, float(len(scheme.classes) - 1)) if scheme.classes else scheme.span
    if scheme.labelled and label:
        last = str(scheme.features)
        found[last] = Range(column=last, low=label[0], high=label[1])
    return found


def _join_bounds(given: PublicTable, scheme: Scheme) -> dict[str, tuple[float, float]]:
    """Give the ranges of encoded columns, by place: those of the fit before those of the table."""
    ranges = _place_ranges(given.support(), given.frame) | _list_ranges(scheme)
    return {name: (each.low, each.high) for name, each in ranges.items()}


def _place_ranges(ranges: tuple[Range, ...], rows: Any) -> dict[str, Range]:
    """Name ranges of columns by the places that these have in an encoded table."""
    names = list(name_columns(rows))
    places = [str(names.index(one.column)) if one.column in names else one.column for one in ranges]
    return {at: replace(one, column=at) for at, one in zip(places, ranges, strict=True)}


def _name_bounds(scheme: Scheme) -> list[tuple[float, float]] | None:
    """Give the ranges of all columns, where all are known, as a table of public rows takes them."""
    found = _list_ranges(scheme)
    if len(found) < scheme.features + scheme.labelled:
        return None
    return [(each.low, each.high) for each in found.values()]
