"""Whether a function or a population carries the private rows with it.

Objects and memory are compared, never values: the answer is not paid for, and whoever knows all
rows but one could otherwise try tables until one is refused.
"""

from __future__ import annotations

import pickle
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from hushed._functions._fingerprints.code import is_installed, is_library
from hushed._functions._held import CHANGING, OWN, list_cells, list_within, name_hiding
from hushed._functions._memory import Memory, list_arrays

_MOST_WORK = 1_000_000

_SINGLE = frozenset({str, bytes, int, float, bool, type(None), np.float64, np.int64})
_NESTED = frozenset({list, tuple, dict, set, frozenset})
_OTHER = object()  # rows that nothing holds


class _Carried(BaseException):
    """The rows were met."""


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, text: Any) -> int:
        return len(text)


def carries_rows(thing: Any, rows: Any) -> bool:
    """Tell whether the rows themselves, or a view of some, can be reached from a thing.

    They are in a closure, a global, a default, an attribute, or a module that a function names.
    Copies are not seen, nor what was computed from the rows, nor what is found by text alone, nor
    what lies in objects that `list_unsearched` names.
    """
    if type(thing) in _SINGLE:
        return False
    search = _Search(rows)
    try:
        search.dump(thing)
    except _Carried:
        return True
    except Exception:  # objects that lie too deep within each other
        return _carries_deep(thing, search)
    return False


def _carries_deep(thing: Any, search: _Search) -> bool:
    """Search in the same way, object by object: slower, and to any depth.

    It ends after a million objects: some make others whenever they are looked at.
    """
    found = [thing]  # what lies near comes first
    seen: dict[int, Any] = {}
    for value in found:
        if type(value) in _SINGLE or id(value) in seen:
            continue
        if len(seen) == _MOST_WORK:
            break
        seen[id(value)] = value  # kept, so that no id is used twice
        try:
            with suppress(Exception):  # a container that changes meanwhile
                found += [] if search.persistent_id(value) is not None else _list_parts(value)
        except _Carried:
            return True
    return False


def _list_parts(value: Any) -> list[Any]:
    """List what pickle would go on to: what a container holds, or an object."""
    if type(value) is dict:
        return [*value, *value.values()]
    if type(value) in (list, tuple, set, frozenset):
        return list(value)
    within = list_within(value)
    return [] if within is None else [within]


class _Search(pickle.Pickler):
    """Go where pickle goes, also through what cannot be pickled, and keep nothing."""

    def __init__(self, rows: Any) -> None:
        super().__init__(_Nowhere(), protocol=5)
        self.rows = rows
        cells = _list_within_cells(rows)
        self.single = {id(each) for each in cells if type(each) in OWN}
        self.memory = Memory(
            array
            for each in (rows, *cells)
            if type(each) is not list
            for array in list_arrays(each, private=True)
        )

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if kind in _SINGLE:  # of which there are millions
            return None
        if value is self.rows or id(value) in self.single:
            raise _Carried
        if kind in _NESTED:
            return "plain" if _is_plain(value) else None
        if any(map(self.memory.meets, list_arrays(value))):
            raise _Carried
        plain = kind is np.ndarray and not value.dtype.hasobject and _is_bare(value.dtype)
        return "numbers" if plain else None

    def reducer_override(self, value: Any) -> Any:
        if value is str:
            return NotImplemented
        return str, (), list_within(value)


def _is_bare(kind: np.dtype[Any]) -> bool:
    """Whether a type of numbers, and those of its fields, hold nothing else."""
    parts = [each[0] for each in (kind.fields or {}).values()]
    parts += [] if kind.subdtype is None else [kind.subdtype[0]]
    titles = [each[2] for each in (kind.fields or {}).values() if len(each) > 2]
    named = all(type(each) is str for each in titles)
    return kind.metadata is None and named and all(map(_is_bare, parts))


class _Inventory(_Search):
    """Go through all there is, and note the kinds of objects that hide what they hold."""

    def __init__(self) -> None:
        super().__init__(_OTHER)
        self.hiding: set[str] = set()

    def persistent_id(self, value: Any) -> Any:
        found, kind = super().persistent_id(value), type(value)
        if found is None and kind not in _SINGLE | _NESTED and (name := name_hiding(value)):
            self.hiding.add(name)
        return found


def list_unsearched(thing: Any) -> tuple[str, ...]:
    """List the kinds of objects, to be reached from a thing, that no search for rows sees into."""
    search = _Inventory()
    try:
        search.dump(thing)
    except Exception:  # objects that lie too deep within each other
        _carries_deep(thing, search)
    return tuple(sorted(search.hiding))


class _Finder(_Search):
    """Go through all there is, and note the objects of a class, and whether others may join them.

    That may be where there is code of the caller's: what it refers to changes as the caller likes.
    """

    def __init__(self, kind: type) -> None:
        super().__init__(_OTHER)
        self.kind = kind
        self.found: dict[int, Any] = {}
        self.lasting = True

    def persistent_id(self, value: Any) -> Any:
        kind = type(value)
        if kind is self.kind:
            self.found[id(value)] = value
            return "found"
        if kind not in _SINGLE and kind not in _NESTED and _is_of_callers(value):
            self.lasting = False
        return super().persistent_id(value)


def list_held(thing: Any, kind: type) -> tuple[list[Any], bool]:
    """List the objects of a class that can be reached from a thing, but for those in each other.

    And say whether that lasts: all that was met is the library's own, and nobody changes it.
    """
    search = _Finder(kind)
    try:
        search.dump(thing)
    except Exception:  # objects that lie too deep within each other
        _carries_deep(thing, search)
    return list(search.found.values()), search.lasting


def _is_of_callers(value: Any) -> bool:
    """Whether an object is a function, a class or a module that is not installed, or of such one.

    Variables, frames and the like hold one thing now and another one later.
    """
    if isinstance(value, FunctionType):
        return not is_installed(value)
    if isinstance(value, ModuleType):
        return not is_library(value.__name__)
    known = value if isinstance(value, type) else type(value)
    return known in CHANGING or not is_library(known.__module__)


def _is_plain(value: Any) -> bool:
    """Whether a container holds numbers and texts alone."""
    held = value.values() if type(value) is dict else ()
    return _SINGLE.issuperset(map(type, value)) and _SINGLE.issuperset(map(type, held))


def _list_within_cells(rows: Any) -> list[Any]:
    """List the objects that rows and their cells are, at any depth of lists, tuples and dicts."""
    seen: dict[int, Any] = {}
    with suppress(Exception):  # no table: nothing to name
        found = [*rows.values()] if type(rows) is dict else list_cells(rows)
        for each in found:
            kind = type(each)
            if kind in _SINGLE or id(each) in seen:
                continue
            seen[id(each)] = each
            if kind is np.ndarray:
                found += list_cells(each)
            elif kind in _NESTED and not _is_plain(each):
                found += [*each, *(each.values() if kind is dict else ())]
    return list(seen.values())
