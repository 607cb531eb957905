"""What an object holds: its attributes, and what pickle would keep of it, or leave out."""

from __future__ import annotations

import array
import collections
import copyreg
import functools
import inspect
import mmap
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

_ALL = slice(None)

# What a class inherits holds, whatever its own methods make of it.
_INHERITED: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (np.ndarray, lambda value: np.ndarray.view(value, np.ndarray)),
    (dict, lambda value: dict(dict.items(value))),
    (set, lambda value: frozenset(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (collections.deque, lambda value: list(collections.deque.__iter__(value))),
    (float, float.__float__),
    (int, int.__int__),
    *(
        (kind, functools.partial(lambda kind, value: kind.__getitem__(value, _ALL), kind))
        for kind in (list, tuple, str, bytes, bytearray, array.array)
    ),
)


def own_attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Give the attributes of an object by name: those in its dictionary, and its slots."""
    held = getattr(value, "__dict__", None)
    yield from sorted(held.items(), key=lambda item: str(item[0])) if type(held) is dict else ()
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            full = f"_{kind.__name__.lstrip('_')}{name}" if _is_mangled(name) else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, full):
                yield name, getattr(value, full)


def foreign_attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Give attributes that no code of an object's class names: pickle may leave them out."""
    held = getattr(value, "__dict__", None)
    kind: Any = type(value)
    if type(held) is dict and held:
        known = _list_named(kind)
        yield from sorted((key, each) for key, each in held.items() if str(key) not in known)


def inherited_content(value: Any) -> Iterator[tuple[str, Any]]:
    """Give what an object holds as an instance of a type of Python, as the items of a list."""
    for kind, read in _INHERITED:
        if isinstance(value, kind):
            yield kind.__name__, read(value)


def shows_memory(value: Any) -> bool:
    """Whether an object is a window on memory, of which pickle keeps where it is and no content."""
    return any(isinstance(each, mmap.mmap | memoryview) for _, each in own_attributes(value))


def is_reduced_by_default(kind: type) -> bool:
    """Whether pickle keeps all that an object of a class holds."""
    plain = ("__reduce_ex__", "__reduce__", "__getstate__")
    own = any(getattr(kind, name) is not getattr(object, name) for name in plain)
    return kind not in copyreg.dispatch_table and not own


def reduce_object(value: Any) -> Any:
    """Ask for what pickle would keep of an object."""
    registered = copyreg.dispatch_table.get(type(value))
    return registered(value) if registered else value.__reduce_ex__(4)


def _is_mangled(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


@functools.lru_cache(maxsize=256)
def _list_named(kind: type) -> frozenset[str]:
    """List the names that the code of a class and of its bases uses, and its fields."""
    found: set[str] = set()
    for base in kind.__mro__:
        found |= base.__dict__.keys() | inspect.get_annotations(base).keys()
        left = [code for each in base.__dict__.values() for code in _list_codes(each)]
        while left:
            code = left.pop()
            found.update(code.co_names)
            left += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return frozenset(found)


def _list_codes(member: Any) -> list[types.CodeType]:
    parts = [getattr(member, name, None) for name in ("fget", "fset", "__func__", "func")]
    codes = [getattr(each, "__code__", None) for each in (member, *parts)]
    return [each for each in codes if isinstance(each, types.CodeType)]
