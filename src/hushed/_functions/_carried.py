"""Whether a function or a population carries the private rows with it.

Objects and memory are compared, never values: the answer is not paid for, and whoever knows all
rows but one could otherwise try tables until one is refused.
"""

from __future__ import annotations

import copyreg
import ctypes
import gc
import pickle
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    ModuleType,
)
from typing import Any

import numpy as np

from hushed._functions._fingerprints.code import collect_names, fields_of, is_installed, is_library
from hushed._functions._memory import FRAMES, Memory, list_arrays

_MOST_WORK = 1_000_000
_PYTHON = (".py", ".pyc")
_MODULE = {"__name__", "__spec__", "__loader__"}

_SINGLE = frozenset({str, bytes, int, float, bool, type(None), np.float64, np.int64})
_OWN = frozenset({list, dict, set, np.ndarray})  # cells and rows that are of one table alone
_DATA_OF_C: Any = ctypes.Structure.__mro__[1]

_NESTED = frozenset({list, tuple, dict, set, frozenset})
_NOTEBOOKS = {"IPython", "ipykernel"}  # whose objects hold all that was ever shown
_OTHER = object()  # rows that nothing holds
_SEEN_INTO = {"builtins", "numpy", "pandas", *sys.stdlib_module_names}
_CLOSED = {"LazyFrame", "Expr", "LazyGroupBy", "SQLContext"}  # of Polars


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
    within = _list_within(value)
    return [] if within is None else [within]


class _Search(pickle.Pickler):
    """Go where pickle goes, also through what cannot be pickled, and keep nothing."""

    def __init__(self, rows: Any) -> None:
        super().__init__(_Nowhere(), protocol=5)
        self.rows = rows
        cells = _list_within_cells(rows)
        self.single = {id(each) for each in cells if type(each) in _OWN}
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
        return "numbers" if kind is np.ndarray and not value.dtype.hasobject else None

    def reducer_override(self, value: Any) -> Any:
        if value is str:
            return NotImplemented
        return str, (), _list_within(value)


class _Inventory(_Search):
    """Go through all there is, and note the kinds of objects that hide what they hold."""

    def __init__(self) -> None:
        super().__init__(_OTHER)
        self.hiding: set[str] = set()

    def persistent_id(self, value: Any) -> Any:
        found, kind = super().persistent_id(value), type(value)
        if found is None and kind not in _SINGLE | _NESTED and _is_closed(value):
            self.hiding.add(f"{kind.__module__.partition('.')[0].lstrip('_')}.{kind.__name__}")
        return found


def list_unsearched(thing: Any) -> tuple[str, ...]:
    """List the kinds of objects, to be reached from a thing, that no search for rows sees into."""
    search = _Inventory()
    try:
        search.dump(thing)
    except Exception:  # objects that lie too deep within each other
        _carries_deep(thing, search)
    return tuple(sorted(search.hiding))


def _is_closed(value: Any) -> bool:
    """Whether an object is of compiled code, and neither pickle nor the collector tells of it."""
    module = str(type(value).__module__)
    library = module.partition(".")[0]
    if library == "polars":
        return any(each.__name__ in _CLOSED for each in type(value).__mro__)
    if library in ("duckdb", "_duckdb"):
        return True
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    if library in _SEEN_INTO or not is_library(module) or file.endswith(_PYTHON):
        return False
    return not list_arrays(value) and _reduce(value) is None


def _is_plain(value: Any) -> bool:
    """Whether a container holds numbers and texts alone."""
    held = value.values() if type(value) is dict else ()
    return _SINGLE.issuperset(map(type, value)) and _SINGLE.issuperset(map(type, held))


def _list_within_cells(rows: Any) -> list[Any]:
    """List the objects that rows and their cells are, at any depth of lists, tuples and dicts."""
    seen: dict[int, Any] = {}
    with suppress(Exception):  # no table: nothing to name
        found = _list_cells(rows)
        for each in found:
            kind = type(each)
            if kind in _SINGLE or id(each) in seen:
                continue
            seen[id(each)] = each
            if kind is np.ndarray:
                found += _list_cells(each)
            elif kind in _NESTED and not _is_plain(each):
                found += [*each, *(each.values() if kind is dict else ())]
    return list(seen.values())


def _list_within(value: Any) -> Any:
    """List what an object holds; nothing of one that fails when it is looked at."""
    try:
        return _look_within(value)
    except Exception:  # as one that stands for another one, which is not there now
        return None


def _look_within(value: Any) -> Any:
    """List what an object holds; of a function what its code uses."""
    if isinstance(value, FunctionType):
        return _list_used(value)
    if isinstance(value, ModuleType | CodeType) or (
        type(value).__module__.partition(".")[0] in _NOTEBOOKS
        or (isinstance(value, type) and is_library(value.__module__))
    ):
        return None
    if isinstance(value, type):
        return [*(each for _, each in fields_of(value)), type(value), *value.__bases__]
    if isinstance(value, weakref.ref):
        return value()
    if type(value) in _LOOKED_INTO:
        return _LOOKED_INTO[type(value)](value)
    return _look_by_kind(value)


def _look_by_kind(value: Any) -> Any:
    """List what pickle or Python's own collector knows an object to hold."""
    if isinstance(value, _DATA_OF_C):  # whose class is written in Python
        return gc.get_referents(value)
    if type(value).__module__.startswith("polars.") and type(value).__name__ in FRAMES:
        return _list_cells(value)
    return [_look_by_pickle(value), _look_by_collector(value)]


def _look_by_collector(value: Any) -> Any:
    """List what Python's own collector knows an object to hold, which no class can hide.

    Not of objects of classes that installed code writes in Python: loggers, streams and the like
    hold on to the whole program, the user's rows included.
    """
    kind: Any = type(value)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    if kind.__flags__ & 1 << 9 and is_library(kind.__module__) and file.endswith(_PYTHON):
        return None
    found = gc.get_referents(value)  # but for all names of a module
    return [each for each in found if not (type(each) is dict and each.keys() >= _MODULE)]


def _look_by_pickle(value: Any) -> Any:
    """List what pickle would keep of an object, or its attributes."""
    reduced = _reduce(value)
    if reduced is not None and not isinstance(reduced, str):
        return [*reduced[:3], *(list(each) for each in reduced[3:5] if each is not None)]
    slots = [vars(kind).get("__slots__", ()) for kind in type(value).__mro__]
    flat = [name for each in slots for name in ((each,) if isinstance(each, str) else each)]
    return [getattr(value, name, None) for name in ("__wrapped__", "__dict__", *flat)]


def _reduce(value: Any) -> Any:
    """Ask for what pickle would keep of an object; None if it cannot be pickled."""
    registered = copyreg.dispatch_table.get(type(value))
    with suppress(Exception):
        return registered(value) if registered else value.__reduce_ex__(5)
    return None


# What such an object holds, of which pickle keeps nothing.
_LOOKED_INTO: dict[type, Callable[[Any], Any]] = {
    MappingProxyType: dict,
    property: lambda held: [held.fget, held.fset, held.fdel],
    ContextVar: lambda held: held.get(None),
    GeneratorType: lambda held: held.gi_frame,
    CoroutineType: lambda held: held.cr_frame,
    AsyncGeneratorType: lambda held: held.ag_frame,
    np.nditer: lambda held: held.operands,
    np.flatiter: lambda held: held.base,
    np.broadcast: lambda held: held.iters,
    # That of a module holds all that the program does.
    FrameType: lambda held: None if held.f_locals is held.f_globals else dict(held.f_locals),
}


def _list_used(function: FunctionType) -> list[Any]:
    """List what the code of a function uses, beside its arguments."""
    used = [function.__defaults__, function.__kwdefaults__, function.__dict__]
    for cell in function.__closure__ or ():
        try:
            used.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    if is_installed(function):  # a closure made by installed code, around what may be the user's
        return used
    names = collect_names(function.__code__)
    known = [function.__globals__[each] for each in names.globals & function.__globals__.keys()]
    known += [sys.modules[each] for each in names.imported & sys.modules.keys()]
    for held in known:  # also modules within modules, which are added to these
        if isinstance(held, ModuleType) and not is_library(held.__name__):
            named = [held.__dict__[each] for each in names.all & held.__dict__.keys()]
            known += [each for each in named if all(each is not other for other in known)]
    return used + known


def _list_cells(table: Any) -> list[Any]:
    """Cells of a table that are objects; rows of a list."""
    if type(table) is list:
        return list(table)
    if isinstance(table, np.ndarray):
        return list(table.ravel().tolist()) if table.dtype.hasobject else []
    if type(table).__module__.partition(".")[0] not in ("pandas", "polars"):
        return []
    columns = [table[each] for each in table.columns] if hasattr(table, "columns") else [table]
    return [
        cell for each in columns if str(each.dtype).lower() == "object" for cell in each.to_list()
    ]
