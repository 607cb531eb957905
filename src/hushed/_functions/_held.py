"""What an object holds, as pickle, Python's collector and a few libraries tell it."""

from __future__ import annotations

import copyreg
import ctypes
import datetime
import gc
import inspect
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from types import (
    AsyncGeneratorType,
    CellType,
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

from hushed._functions._fingerprints.code import (
    collect_names,
    fields_of,
    is_installed,
    is_library,
    list_asked,
)
from hushed._functions._fingerprints.objects import foreign_attributes
from hushed._functions._fingerprints.walk import read_variable
from hushed._functions._lazy import is_planned, list_planned
from hushed._functions._memory import FRAMES, list_arrays

OWN = frozenset({list, dict, set, np.ndarray})  # cells and rows that are of one table alone

_PYTHON = (".py", ".pyc")
_MODULE = {"__name__", "__spec__", "__loader__"}
_CAPSULE = type(datetime.datetime_CAPI)  # memory of C, which says what it is by a name alone
_DATA_OF_C: Any = ctypes.Structure.__mro__[1]
_NOTEBOOKS = {"IPython", "ipykernel"}  # whose objects hold all that was ever shown
_SEEN_INTO = {"builtins", "numpy", "pandas", *sys.stdlib_module_names}
_CLOSED = {  # whatever they hand to pickle
    "duckdb": None,  # all of them
    "_duckdb": None,
    "polars": {"LazyGroupBy", "SQLContext", "When", "ChainedWhen"},
    "pyarrow": {"Expression"},
    "sqlite3": {"Connection", "Cursor"},
}


def name_hiding(value: Any) -> str:
    """Name the kind of an object that does not tell all it holds; empty if it does."""
    library, kind = str(type(value).__module__).partition(".")[0], type(value).__name__
    if _has_objects(value):
        return "polars.Object"
    if type(value) is _CAPSULE:  # but for the state of a generator of random numbers
        return "" if '"BitGenerator"' in repr(value) else "builtins.PyCapsule"
    return f"{library.lstrip('_')}.{kind}" if _is_closed(value, library) else ""


def _has_objects(value: Any) -> bool:
    """Whether a frame of Polars has objects that other tables may hold, too, as texts are.

    Its memory is not told, so that a part of it is known by such objects alone as are of one table.
    """
    if not _is_of_polars(value):
        return False
    return not OWN.issuperset(map(type, list_cells(value)))


def _is_of_polars(value: Any) -> bool:
    """Whether an object is a frame or a series of Polars."""
    library = str(type(value).__module__).partition(".")[0]
    return library == "polars" and type(value).__name__ in FRAMES


def _is_closed(value: Any, library: str) -> bool:
    """Whether an object is of compiled code, and neither pickle nor the collector tells of it."""
    if is_planned(value):
        return not list_planned(value)[1]
    if library in _CLOSED:
        closed = _CLOSED[library]
        if closed is None or any(each.__name__ in closed for each in type(value).__mro__):
            return True
    if (
        library in _SEEN_INTO
        or not is_library(str(type(value).__module__))
        or _is_python(type(value))
    ):
        return False
    return not list_arrays(value) and _reduce(value) is None


def _is_python(kind: Any) -> bool:
    """Whether a class is written in Python; those of C that say where they are found are not."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    made_when_run, fixed = kind.__flags__ & 1 << 9, kind.__flags__ & 1 << 8
    return bool(made_when_run and not fixed) and file.endswith(_PYTHON)


def list_within(value: Any) -> Any:
    """List what an object holds; nothing of one that fails when it is looked at."""
    try:
        return _look_within(value)
    except Exception:  # as one that stands for another one, which is not there now
        return None


def _look_within(value: Any) -> Any:
    """List what an object holds; of a function what its code uses."""
    if isinstance(value, FunctionType | ModuleType):
        return _list_open(value) if isinstance(value, ModuleType) else _list_used(value)
    if isinstance(value, CodeType) or (
        type(value).__module__.partition(".")[0] in _NOTEBOOKS
        or (isinstance(value, type) and is_library(value.__module__))
    ):
        return None
    if isinstance(value, type):
        fields = [each for _, each in fields_of(value)]
        return [*fields, *_list_annotations(value), type(value), *value.__bases__]
    if isinstance(value, weakref.ref):
        return value()
    if type(value) in _LOOKED_INTO:
        return _LOOKED_INTO[type(value)](value)
    return _look_by_kind(value)


def _list_open(module: ModuleType) -> Any:
    """List what a module of the user's has, where nobody knows by which names it is asked.

    That of a program or a notebook has all there is.
    """
    own = None if is_library(type(module).__module__) else type(module)
    if is_library(module.__name__) or module.__name__ == "__main__":
        return own
    return [own, *(each for name, each in vars(module).items() if not name.startswith("__"))]


def _look_by_kind(value: Any) -> Any:
    """List what pickle or Python's own collector knows an object to hold."""
    if isinstance(value, _DATA_OF_C):  # whose class is written in Python
        return gc.get_referents(value)
    if _is_of_polars(value):
        return list_cells(value)
    if is_planned(value):
        return [list_planned(value)[0], vars(value)]
    found = [_look_by_pickle(value), _look_by_collector(value)]
    with suppress(Exception):  # names of its attributes that are no texts
        found += [each for _, each in foreign_attributes(value)]
    return found


def _look_by_collector(value: Any) -> Any:
    """List what Python's own collector knows an object to hold, which no class can hide.

    Not of objects of classes that installed code writes in Python, and nowhere in C: loggers,
    streams and the like hold on to the whole program, the user's rows included; columns of pandas
    hold on to each other.
    """
    kind = type(value)
    foreign = [each for each in kind.__mro__ if each.__module__.partition(".")[0] not in _SEEN_INTO]
    if is_library(kind.__module__) and all(map(_is_python, (kind, *foreign))):
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


def _list_suspended(held: Any, frame: FrameType | None) -> Any:
    """List what code that will run later holds, and what it will look up; none if it has ended."""
    if frame is None:
        return None
    cells = tuple(CellType() for _ in frame.f_code.co_freevars)  # they are among its variables
    code = FunctionType(frame.f_code, frame.f_globals, closure=cells)
    return [dict(frame.f_locals), code, *gc.get_referents(held)]  # these lie on its stack


# What such an object holds, of which pickle keeps nothing.
_LOOKED_INTO: dict[type, Callable[[Any], Any]] = {
    MappingProxyType: dict,
    property: gc.get_referents,  # its remark, too
    ContextVar: lambda held: [*read_variable(held), *gc.get_referents(held)],
    GeneratorType: lambda held: _list_suspended(held, held.gi_frame),
    CoroutineType: lambda held: _list_suspended(held, held.cr_frame),
    AsyncGeneratorType: lambda held: _list_suspended(held, held.ag_frame),
    weakref.ProxyType: lambda held: held.__init__.__self__,
    weakref.CallableProxyType: lambda held: held.__init__.__self__,
    weakref.finalize: lambda held: held.peek(),
    np.nditer: lambda held: held.operands,
    np.flatiter: lambda held: held.base,
    np.broadcast: lambda held: held.iters,
    # That of a module holds all that the program does.
    FrameType: lambda held: None if held.f_locals is held.f_globals else dict(held.f_locals),
}

CHANGING = frozenset({ContextVar, GeneratorType, CoroutineType, AsyncGeneratorType, FrameType})


def _list_used(function: FunctionType) -> list[Any]:
    """List what the code of a function uses, beside its arguments."""
    used = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            used.append(cell.cell_contents)
    if is_installed(function):  # a closure made by installed code, around what may be the user's
        return [*used, function.__dict__]
    names = collect_names(function.__code__)
    asked = list_asked(function) & function.__globals__.keys()
    known = [each for each in used if isinstance(each, ModuleType)]
    used = [each for each in used if not isinstance(each, ModuleType)]
    used += [function.__dict__, *_list_annotations(function)]
    known += [function.__globals__[each] for each in asked]
    known += [sys.modules[each] for each in names.imported & sys.modules.keys()]
    for held in known:  # also modules within modules, which are added to these
        if isinstance(held, ModuleType) and not is_library(held.__name__):
            named = [held.__dict__[each] for each in names.all & held.__dict__.keys()]
            known += [each for each in named if all(each is not other for other in known)]
            used.append(type(held))
    return [*used, *(each for each in known if not isinstance(each, ModuleType))]


def _list_annotations(value: Any) -> list[Any]:
    """List what a function or a class says of its arguments or fields, which may be any objects."""
    with suppress(Exception):  # they name what is not there, which is found when they are looked at
        return list(inspect.get_annotations(value).values())
    return []


def list_cells(table: Any) -> list[Any]:
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
