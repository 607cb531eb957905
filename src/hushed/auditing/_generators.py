"""Random generators that a function carries with it, and would copy into every worker."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

__all__ = ["carried_generator"]

_DEPTH = 6


def carried_generator(function: Callable[..., Any]) -> str | None:
    """Find a generator with state of its own in what a function refers to.

    Parameters
    ----------
    function : callable
        A function, a method, a partial function or an object that can be called.

    Returns
    -------
    str or None
        Where it is, in words, or None. Closures, defaults, attributes, containers and the
        global names used are searched, through the Python functions they lead to.

    Notes
    -----
    Sources of operating-system entropy (`random.SystemRandom`) have no state and are fine, as
    are the global generators of `random` and `numpy.random`, which every process seeds anew.
    """
    return _search(function, "the mechanism", _DEPTH, set())


def _search(value: Any, where: str, depth: int, seen: set[int]) -> str | None:
    if isinstance(value, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        return f"{type(value).__name__} in {where}"
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        return f"Random in {where}"
    if depth == 0 or id(value) in seen:
        return None
    seen.add(id(value))
    for name, part in _parts(value):
        found = _search(part, f"{name} of {where}" if name else where, depth - 1, seen)
        if found:
            return found
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, FunctionType):
        yield from _function_parts(value)
    elif isinstance(value, MethodType):
        yield from (("", value.__func__), ("the object", value.__self__))
    elif isinstance(value, BuiltinMethodType):  # rng.normal, say
        yield "the object", value.__self__
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("the bound arguments", (value.args, value.keywords)))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (("", item) for item in list(value)[:100])
    elif isinstance(value, dict):
        yield from ((f"entry {key!r}", item) for key, item in list(value.items())[:100])
    elif _is_plain_object(value):
        yield from _object_parts(value)


def _object_parts(value: Any) -> Iterator[tuple[str, Any]]:
    names = getattr(type(value), "__slots__", ())
    held = dict(getattr(value, "__dict__", {}))
    held |= {n: getattr(value, n) for n in names if isinstance(n, str) and hasattr(value, n)}
    yield from ((f"attribute {name}", item) for name, item in held.items())
    call = vars(type(value)).get("__call__")
    if isinstance(call, FunctionType):
        yield "the method __call__", call


def _is_plain_object(value: Any) -> bool:
    module = type(value).__module__.partition(".")[0]
    return not isinstance(value, type) and module not in ("builtins", "numpy", "types", "opendp")


def _function_parts(function: FunctionType) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"variable {name}", cell.cell_contents
        except ValueError:  # the cell is empty: not defined yet
            continue
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "a default value", value
    if function.__module__.partition(".")[0] in ("numpy", "scipy", "random"):
        return
    for name in _names(code):
        if name in function.__globals__:
            yield f"global {name}", function.__globals__[name]


def _names(code: CodeType) -> set[str]:
    """Names used in a function, and in the functions written inside it."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found
