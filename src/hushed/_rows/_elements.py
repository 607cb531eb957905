"""Types of the elements of a table: recorded where it is sampled, compared and cast at the gate.

A type is public, a value is not: whether and how a column is cast follows from types alone. Lists
and columns of objects have a type in every cell; there a single row can decide that a table is
refused, as it can where the number of rows is wrong. Nobody but the holder of the rows sees that.
"""

from __future__ import annotations

import math
import operator
import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, time
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

_BUILTIN: dict[type, str] = {bool: "bool", int: "int", float: "float", complex: "complex"}
_AS_NUMPY = {"int": "int64", "float": "float64", "complex": "complex128"}
_SIMPLE = re.compile(r"[A-Za-z]\w*(\[\w+\])?")
_FLAT = {str, bytes, type(None), *_BUILTIN}
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Cells:
    """Types of Python objects in a list of rows or a column, by where they stand in a row."""

    numbers: frozenset[tuple[str, str]]  # places and types of numbers
    # Places and names of all other types; missing values have none.
    others: frozenset[tuple[str, str]]
    # Places of arrays, lists, tuples and dicts that all have one shape, length or set of keys.
    forms: frozenset[tuple[str, str]] = frozenset()
    # Places of dicts, and the order of their keys, where all of them agree on one.
    orders: frozenset[tuple[str, tuple[str, ...]]] = frozenset()

    def by_place(self) -> dict[str, set[str]]:
        """Types of numbers at each place."""
        found: dict[str, set[str]] = {}
        for place, kind in self.numbers:
            found.setdefault(place, set()).add(kind)
        return found

    def numbers_at(self, column: str) -> set[str]:
        """Types of numbers in rows at a place or under a key; of rows themselves under no name."""
        named = {"\n", f"\n{column}", f"\n{column!r}"} if column else {""}
        return {kind for place, kind in self.numbers if place in named}


@dataclass(frozen=True, slots=True)
class Element:
    """Type of the elements of an array, a column or a list."""

    dtype: Any = None  # as NumPy, pandas or Polars names it; None for the rows of a list
    cells: Cells | None = None  # types of the Python objects, where it holds such


def cells(values: Iterable[Any], *, column: bool) -> Cells:
    """Collect the types of objects."""
    found = _Collector(column=column)
    held = list(values)
    kinds = set(map(type, held))
    if kinds <= _FLAT and not (column and float in kinds):
        held = [kind() for kind in kinds]  # one of each tells as much
    for value in held:
        found.look(value, "")
    forms = [(place, min(told)) for place, told in found.forms.items() if len(told) == 1]
    orders = [(place, _join_orders(each)) for place, each in found.orders.items()]
    return Cells(
        frozenset(found.numbers),
        frozenset(found.others),
        frozenset(forms),
        frozenset((place, order) for place, order in orders if order),
    )


def _join_orders(orders: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Order of keys that all rows agree with; empty if there is none."""
    before: TopologicalSorter[str] = TopologicalSorter()
    for order in orders:
        for place, key in enumerate(order):
            before.add(key, *order[max(0, place - 1) : place])
    try:
        return tuple(before.static_order())
    except CycleError:
        return ()


class _Collector:
    """Takes note of types; a container within itself is looked into once."""

    def __init__(self, *, column: bool) -> None:
        self.numbers: set[tuple[str, str]] = set()
        self.others: set[tuple[str, str]] = set()
        self.forms: dict[str, set[str]] = {}
        self.orders: dict[str, dict[tuple[str, ...], None]] = {}
        self.column = column
        self.within: list[int] = []

    def look(self, value: Any, place: str) -> None:
        kind = _number_type(value)
        if kind:
            if not (self.column and isinstance(value, float) and math.isnan(value)):
                self.numbers.add((place, kind))
        elif value is not None and type(value).__name__ not in ("NAType", "NaTType"):
            self.others.add((place, f"{type(value).__module__}.{type(value).__qualname__}"))
            self.others.update((place, told) for told in _describe_contents(value))
            if form := _form(value):
                self.forms.setdefault(place, set()).add(form)
            if isinstance(value, dict):
                self.orders.setdefault(place, {})[tuple(map(repr, value))] = None
            if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
                self.numbers.add((f"{place}[]", value.dtype.name))
            elif id(value) not in self.within and len(self.within) < _DEEPEST:
                self.within.append(id(value))
                for inner, each in list_inner(value):
                    self.look(each, f"{place}\n{inner}")
                self.within.pop()


def _describe_contents(value: Any) -> list[str]:
    """Tell what an array, a series, a tensor or a frame within a row says of its own types."""
    if isinstance(value, np.ndarray):
        told = {"U": "text", "S": "bytes"}.get(value.dtype.kind, str(value.dtype))
        if value.dtype.kind in "biufc":  # compared, and cast, by what they hold
            told = "numbers" if value.dtype.isnative else "numbers with their bytes reversed"
        return [f"{value.ndim} dimensions", told]
    if isinstance(value, datetime | time) and value.tzinfo is not None:
        return ["of a time zone"]
    if hasattr(value, "columns") and hasattr(value, "dtypes"):
        pairs = zip(map(repr, value.columns), map(str, value.dtypes), strict=True)
        return [f"column {place}, {name}: {dtype}" for place, (name, dtype) in enumerate(pairs)]
    return [str(getattr(value, name)) for name in ("dtype", "typecode") if hasattr(value, name)]


def _form(value: Any) -> str:
    """Shape of an array, length of a list, keys of a dict: what a row may not have less or more."""
    if isinstance(value, dict):
        return repr(sorted(map(repr, value)))
    if isinstance(value, list | tuple):
        return str(len(value))
    shape = None if isinstance(value, np.generic) else getattr(value, "shape", None)
    return repr(tuple(shape)) if isinstance(shape, tuple) else ""  # of an array, or as one


def list_inner(value: Any) -> Iterable[tuple[str, Any]]:
    """Places and contents of a nested value: rows in a tuple or dict are records."""
    if isinstance(value, dict):
        return [(repr(key), each) for key, each in value.items()]
    if isinstance(value, tuple):
        return [(str(i), each) for i, each in enumerate(value)]
    if isinstance(value, list | set | frozenset):
        return [("", each) for each in value]
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        return [("", each) for each in value.ravel().tolist()]
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in fields(value)]
    return []


def _number_type(value: Any) -> str:
    found = _BUILTIN.get(type(value), "")
    if not found and isinstance(value, np.generic) and value.dtype.kind in "biufc":
        found = f"numpy.{value.dtype.name}"
    return found


def name_type(dtype: object) -> str:
    """Name a type, if that tells no more than a type: categories and fields may be private."""
    told = str(dtype)
    return told if _SIMPLE.fullmatch(told) else ""


def alike(first: Cells, second: Cells) -> bool:
    """Tell whether two drawn tables hold the same types of numbers, as far as both hold any."""
    ours, theirs = first.by_place(), second.by_place()
    return all(ours[place] == theirs[place] for place in ours.keys() & theirs.keys())


def target(found: Cells, wanted: Cells) -> dict[str, str] | None:
    """Say what numbers are to be cast to."""
    if not found.others <= wanted.others:
        return None
    forms = dict(found.forms)
    seen = {place for place, _ in found.others}
    if any(place in seen and forms.get(place) != form for place, form in wanted.forms):
        return None
    casts = {}
    sampled = wanted.by_place()
    for place, kinds in found.by_place().items():
        known = sampled.get(place, set())
        if kinds == known:
            continue
        if len(known) != 1 or not all(_lossless(kind, *known) for kind in kinds):
            return None
        (casts[place],) = known
    return casts


def _lossless(kind: str, wanted: str) -> bool:
    """Whether one type of number holds another's, but for integers beyond 2**53 in doubles.

    Those are rounded, each by itself, so that neighbours stay neighbours: to refuse them would
    make the refusal tell of a value.
    """
    if kind == wanted:
        return True
    if kind == "int":  # of any size: one beyond the doubles becomes infinite
        return wanted in ("float", "numpy.float64")
    ours, theirs = (_AS_NUMPY.get(name, name.removeprefix("numpy.")) for name in (wanted, kind))
    return np.can_cast(theirs, ours, "safe")


def order_keys(values: Iterable[Any], found: Cells, wanted: Cells) -> list[Any] | None:
    """Put the keys of dicts in rows into the order of those that were sampled, row by row.

    A function may take what comes first. None if nobody knows how to make such a row again.
    """
    if wanted.orders <= found.orders:
        return list(values)
    sampled = dict(wanted.orders)
    try:
        return [_order(value, "", sampled) for value in values]
    except _Unknown:
        return None


def _order(value: Any, place: str, sampled: dict[str, tuple[str, ...]]) -> Any:
    if not any(known.startswith(place) for known in sampled):
        return value
    if not isinstance(value, dict):
        held = list_inner(value)
        parts = [_order(each, f"{place}\n{inner}", sampled) for inner, each in held]
        if all(part is each for part, (_, each) in zip(parts, held, strict=True)):
            return value
        if type(value) not in (list, tuple):
            raise _Unknown
        return type(value)(parts)
    known = sampled.get(place, ())
    keys = sorted(value, key=lambda key: _find(repr(key), known))
    parts = [_order(value[key], f"{place}\n{key!r}", sampled) for key in keys]
    if keys == list(value) and all(map(operator.is_, parts, value.values())):
        return value
    if type(value) not in (dict, OrderedDict):
        raise _Unknown
    return type(value)(zip(keys, parts, strict=True))


def _find(name: str, order: tuple[str, ...]) -> int:
    return order.index(name) if name in order else len(order)


def cast_cells(values: Iterable[Any], casts: dict[str, str]) -> list[Any] | None:
    """Cast numbers within objects."""
    if not casts:
        return list(values)
    try:
        return [_cast(value, "", casts) for value in values]
    except _Unknown:
        return None


class _Unknown(Exception):
    """A container of which nobody knows how to make another one."""


def _cast(value: Any, place: str, casts: dict[str, str]) -> Any:
    if _number_type(value):
        return _number(value, casts[place]) if place in casts else value
    if not any(inner.startswith(place) and inner != place for inner in casts):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return value.astype(casts[f"{place}[]"]) if f"{place}[]" in casts else value
    parts = [_cast(each, f"{place}\n{inner}", casts) for inner, each in list_inner(value)]
    if type(value) in (dict, OrderedDict):
        return type(value)(zip(value, parts, strict=True))
    if type(value) in (list, tuple):
        return type(value)(parts)
    if parts:
        raise _Unknown
    return value


def _number(value: Any, kind: str) -> Any:
    builtin = {name: made for made, name in _BUILTIN.items()}.get(kind)
    make = builtin or np.dtype(kind.removeprefix("numpy.")).type
    try:
        return make(value)
    except OverflowError:  # a whole number beyond the doubles
        return make(math.inf if value > 0 else -math.inf)


def convertible(found: np.dtype[Any], wanted: np.dtype[Any]) -> np.dtype[Any] | None:
    """Say what an array is to be cast to."""
    if found.subdtype is not None or wanted.subdtype is not None:
        return _convertible_parts(found, wanted)
    if found.names is not None or wanted.names is not None:
        return _convertible_fields(found, wanted)
    if found.kind == wanted.kind and wanted.kind in "US":
        # The width is that of the longest text: as it is seen, it may tell of a single row.
        return wanted if found.itemsize <= wanted.itemsize else None
    if wanted.kind in "biufc" and found.kind in "biufc":
        return wanted if np.can_cast(found, wanted, "safe") else None
    return wanted if found == wanted or found.newbyteorder("=") == wanted else None


def _convertible_parts(found: np.dtype[Any], wanted: np.dtype[Any]) -> np.dtype[Any] | None:
    if found.shape != wanted.shape:
        return None
    inner = convertible(found.base, wanted.base)
    return None if inner is None else np.dtype((inner, wanted.shape))


def _convertible_fields(found: np.dtype[Any], wanted: np.dtype[Any]) -> np.dtype[Any] | None:
    if found.names is None or found.names != wanted.names:
        return None
    fields = []
    for name in found.names:
        inner = convertible(found[name], wanted[name])
        if inner is None:
            return None
        fields.append((name, inner))
    same = all(inner == wanted[name] for name, inner in fields)
    return wanted if same else np.dtype(fields)
