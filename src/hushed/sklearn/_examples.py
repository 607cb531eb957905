"""Rows with labels as one table of numbers: each row is encoded by itself, by public rules."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from hushed._functions._calls import call_privately
from hushed._functions._carried import carries_rows
from hushed._functions._gate import admit_rows
from hushed._ground.checks import is_a, is_one_of
from hushed._ground.types import Floats
from hushed.errors import BadFunction, BadRows, ParameterError, PrivateRowsAsPopulation
from hushed.sklearn._needed import DataConversionWarning

_DEEPEST = 4  # lists within lists that a label is taken out of
# As numbers they are counts of a unit that a type has: private and public ones may differ in it.
_TIMES = (np.datetime64, np.timedelta64)
_NAMED_TIMES = ("Date", "Time", "Duration")  # of Polars
_TEXTS = ("object", "str", "utf8", "categor", "enum")  # beginnings, of pandas and Polars
_NAMED = 5  # columns that a message names
NO_TIMES = (
    "a column holds dates, times or durations, of which the number depends on the unit of its "
    "type: make numbers of them, such as days since a date, in private and public rows alike"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How rows become numbers: public ranges of the features, and what labels there are.

    ``middle`` and ``half`` are those of each range, where ranges are given. ``classes`` are those
    of a classifier, ``span`` the range of the label of a regressor, if one is given.
    """

    features: int
    labelled: bool
    middle: tuple[float, ...] | None = None
    half: tuple[float, ...] | None = None
    classes: tuple[Any, ...] = ()
    span: tuple[float, float] | None = None

    def scale(self, features: Floats) -> Floats:
        """Scale each feature by its range, which becomes [-1, 1]."""
        if self.middle is None or self.half is None:
            return features
        return np.asarray((features - np.array(self.middle)) / np.array(self.half))

    def encode_features(self, features: Any) -> Floats:
        """Scale, and move into the range; what is no number counts as the middle, or as 0."""
        scaled = self.scale(as_table(features))
        if self.middle is None:
            return np.nan_to_num(scaled, nan=0.0, posinf=0.0, neginf=0.0)
        return np.clip(np.nan_to_num(scaled, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)

    def encode_labels(self, labels: Any) -> Floats:
        """Position of each class, an unknown one as the first; or numbers, moved into the span."""
        if self.classes:
            places = {each: i for i, each in enumerate(self.classes)}
            kinds = {str, bytes, bool, int, float, *map(type, self.classes)}
            found = [_find_place(each, places, kinds) for each in labels]
            return np.array(found, dtype=np.float64)
        numbers = as_table(labels)
        if self.span is None:
            return np.nan_to_num(numbers, nan=0.0, posinf=0.0, neginf=0.0)
        low, high = self.span
        return np.clip(np.nan_to_num(numbers, nan=(low + high) / 2), low, high)

    def encode(self, features: Any, labels: Any) -> Floats:
        """Make one table of features, and labels in the last column."""
        table = self.encode_features(features)
        return np.column_stack([table, self.encode_labels(labels)]) if self.labelled else table


def as_table(features: Any) -> Floats:
    """Read cells as numbers; one that is missing, in whatever way, is none."""
    _refuse_masked(features, features if _is_listed(features) else ())
    found = np.asarray(features)
    objects = found.dtype == object
    if objects:
        found = np.where(_missing(found), np.nan, found)
    times = objects and any(is_a(each, *_TIMES) for each in found.flat)
    if times or holds_times(found) or holds_times(features):
        raise TypeError(NO_TIMES)
    return np.asarray(found, dtype=np.float64)


def holds_times(table: Any) -> bool:
    """Tell by its types whether a table has a column of dates, times or durations."""
    types = table.dtypes if hasattr(table, "columns") else [getattr(table, "dtype", None)]
    return any(
        getattr(each, "kind", "") in ("m", "M") or str(each).startswith(_NAMED_TIMES)
        for each in types
    )


def _missing(cells: Any) -> Any:
    """Find the cells of an array of objects that are None, or what a frame has in its place."""
    none = [each is None or type(each).__name__ in ("NAType", "NaTType") for each in cells.flat]
    return np.reshape(np.array(none, dtype=bool), cells.shape)


def _find_place(label: Any, places: dict[Any, int], kinds: set[type[Any]]) -> int:
    """Position of a label, out of NumPy, so that 1 and its kin are one; 0 of what is no class.

    No code of a class of the caller's is asked, and nothing fails.
    """
    plain = np.generic.item(label) if is_a(label, np.generic) else label
    return places.get(plain, 0) if is_one_of(plain, *kinds) else 0


def list_classes(given: Any) -> Any:
    """List public classes in order, each once; beside a text all numbers would become texts."""
    try:
        held = np.asarray(given, dtype=object).ravel().tolist()
    except (TypeError, ValueError):
        held = [given]
    cells = [np.generic.item(each) if isinstance(each, np.generic) else each for each in held]
    kinds = set(map(_find_kind, cells)) | {"" for each in held if isinstance(each, _TIMES)}
    if len(kinds) > 1 or "" in kinds:
        raise ParameterError(
            "labels must be all texts, or all finite numbers: else they become texts, and no "
            "private label is the same",
            parameter="labels",
        )
    return np.unique(np.asarray(cells))


def _find_kind(label: Any) -> str:
    """Tell of which kind a public label is; empty for what is no class."""
    if isinstance(label, str | bytes):
        return type(label).__name__
    known = isinstance(label, int) or (isinstance(label, float) and math.isfinite(label))
    return "number" if known else ""


def take_rows(features: Any) -> Any:
    """Admit private rows: a copy in a plain container; what is no table is refused."""
    if sparse.issparse(features):
        raise TypeError("X is a sparse matrix; rows are released from a dense one: X.toarray()")
    found = admit_rows(
        features if hasattr(type(features), "columns") else _as_array(features), None
    )
    if np.iscomplexobj(found):
        raise BadRows("Complex data not supported: X must hold real numbers")
    _refuse_times(found)
    return found


def take_labels(labels: Any) -> Any:
    """Admit private labels, one for each row."""
    if labels is None:
        raise BadRows("the estimator requires y to be passed, but the target y is None")
    found = admit_rows(_list_labels(labels) if _is_listed(labels) else _as_array(labels), None)
    if found.ndim == 2 and found.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: it is taken as one",
            DataConversionWarning,
            stacklevel=3,
        )
        found = found[:, 0]
    if found.ndim != 1:
        raise BadRows("y must be a 1d array of one label for each row of X")
    _refuse_times(found)
    return found


def require_kind(labels: Any, classes: tuple[Any, ...]) -> None:
    """Refuse labels of a type of which no class is one; of what holds objects no cell is asked."""
    texts = {"U": str, "T": str, "S": bytes}.get(labels.dtype.kind)
    if not classes or labels.dtype.kind not in "biufUTS" or isinstance(classes[0], texts or Real):
        return
    raise BadRows(
        f"y is an array of {labels.dtype.type.__name__}, and the classes are "
        f"{type(classes[0]).__name__}: every label would count as the first class. Give y and "
        "labels in one type",
        parameter="labels",
    )


def _refuse_times(found: Any) -> None:
    if holds_times(found):
        raise BadRows(NO_TIMES)


def _as_array(values: Any) -> Any:
    """Make an array of a list, a series and their like, in silence: cells may say something.

    In a list each cell keeps its own type: beside one text NumPy would make texts of all.
    """
    if type(values) is np.ndarray:
        return values
    told = ""
    try:  # of a class of the caller's it may speak, or fail
        rows = call_privately(list, values) if _is_listed(values) else []
        found = call_privately(np.asarray, values)
        if not hasattr(type(values), "dtype") and found.dtype.kind not in "biufc":
            found = call_privately(partial(np.asarray, dtype=object), values)
    except BadFunction:
        told = "X and y must be arrays, frames or lists, all rows of one length"
    if told:
        raise BadRows(told)
    _refuse_masked(values, rows)
    return found


def _refuse_masked(values: Any, rows: Iterable[Any]) -> None:
    """Refuse a masked array, or a list of such rows: as a plain one it shows what its mask hides.

    A masked cell of a list is none of these: it hides nothing, and is missing.
    """
    if any(is_a(each, np.ma.MaskedArray) and each is not np.ma.masked for each in (values, *rows)):
        raise BadRows("rows must not be a masked array: fill the missing cells or drop their rows")


def _is_listed(values: Any) -> bool:
    """Tell what holds objects, each of its own type, from what has one type for all of them."""
    return isinstance(values, Sequence) and not hasattr(type(values), "dtype")


def _list_labels(labels: Any) -> Any:
    """Make an array of a list of labels, each as it is; one in a list of its own is taken out."""
    told = ""
    try:
        held = call_privately(list, labels)  # of a class of the caller's it may speak, or fail
    except BadFunction:
        told = "y must be a list or an array of one label for each row of X"
    if told:
        raise BadRows(told)
    found = np.empty(len(held), dtype=object)
    for place, each in enumerate(held):
        found[place] = _take_out(each)
    return found


def _take_out(label: Any) -> Any:
    """Take a label out of lists of one; NumPy would ask a cell of how many parts it is."""
    for _ in range(_DEEPEST):
        if not (is_one_of(label, list, tuple) and len(label) == 1):
            break
        label = label[0]
    alone = is_one_of(label, np.ndarray) and label.size == 1
    return label.reshape(-1)[0] if alone else label


def read_shape(features: Any, labels: Any) -> tuple[int, int]:
    """Read the numbers of rows and columns, which are public; refuse what is no table."""
    if len(features.shape) != 2:
        raise BadRows(
            "X must have two dimensions. Reshape your data: X.reshape(-1, 1) for one feature, "
            "X.reshape(1, -1) for one row"
        )
    rows, columns = map(int, features.shape)
    if columns < 1:
        raise BadRows(f"0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required.")
    if labels is not None and len(labels) != rows:
        raise BadRows("y must be a 1d array of one label for each row of X")
    return rows, columns


def encode_privately(scheme: Scheme, features: Any, labels: Any) -> Floats:
    """Encode admitted rows: whatever is wrong with a cell is not told."""
    told = ""
    try:
        return np.asarray(call_privately(partial(_encode_both, scheme, labels), features))
    except BadFunction:
        told = "X must hold numbers, and y what its type says: a cell could not be read as one"
    if named := _name_texts(features):
        raise BadRows(
            f"{told}. By their types, these columns hold texts or objects: {named}. Leave them "
            "out, or make numbers of them by public rules, such as one column of 0 and 1 for each "
            "known text"
        )
    raise BadRows(f"{told}; which one is not said, because it may be private")


def _name_texts(features: Any) -> str:
    """Name columns of texts, categories or objects by their types, which are public; no cell."""
    if not hasattr(features, "columns"):
        return ""
    found = [
        repr(name)
        for name, kind in zip(features.columns, features.dtypes, strict=True)
        if str(kind).lower().startswith(_TEXTS)
    ]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def _encode_both(scheme: Scheme, labels: Any, features: Any) -> Floats:
    with np.errstate(all="ignore"):  # a caller's own setting makes an error of a large cell
        return scheme.encode(features, labels)


def read_ranges(bounds: Any, features: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Read public ranges of all features: two numbers, or two lists of them."""
    try:
        low, high = (_read_ends(each, features) for each in bounds)
    except (TypeError, ValueError):
        raise ParameterError(
            f"bounds must be (low, high): two numbers, or two lists of {features} numbers",
            parameter="bounds",
        ) from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ParameterError(
            "bounds must be (low, high), where each low is below the high of the same feature, and "
            "both are finite",
            parameter="bounds",
        )
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    return tuple(middle.tolist()), tuple(half.tolist())


def _read_ends(given: Any, features: int) -> Floats:
    """Read one end of all ranges; a list of another length is none, also one of a single number."""
    ends = np.asarray(given, float)
    return np.full(features, ends) if ends.ndim == 0 else ends.reshape(features)


def refuse_carried(public: Any, *private: Any) -> None:
    """Refuse a population, or public points or ranges, that hold the private rows themselves."""
    if any(each is not None and carries_rows(public, each) for each in private):
        raise PrivateRowsAsPopulation(
            "the private rows are handed in as what is public of the fit, in the population, the "
            "points, the bounds, the labels or the estimator: give public ones",
            parameter="population",
        )
