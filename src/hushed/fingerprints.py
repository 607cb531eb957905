"""Whether two functions are the same one."""

from __future__ import annotations

import functools
import hashlib
import inspect
import secrets
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

__all__ = ["changed", "identity", "same_function", "state"]

_DEEPEST = 20


def identity(function: Callable[[Any], Any]) -> str:
    """Name a function by its content, so that two estimates are known to be of the same one.

    Parameters
    ----------
    function : callable
        Any function.

    Returns
    -------
    str
        Sixteen hexadecimal digits: equal only for equal code, closure and name. The same function
        may get another name in another run or version of Python; one that cannot be pickled
        gets a new one at every call. Both err towards telling functions apart.
    """
    import cloudpickle  # noqa: PLC0415

    try:
        content = cloudpickle.dumps(function)
    except Exception:
        return secrets.token_hex(8)
    code = getattr(function, "__code__", None)  # an importable function is pickled by name only
    if code is not None:
        content += code.co_code + repr(code.co_names).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def same_function(
    first: Callable[..., Any],
    second: Callable[..., Any],
    *,
    compared: frozenset[tuple[int, int]] = frozenset(),
) -> bool:
    """Tell whether two functions do the same, as far as their code shows.

    Parameters
    ----------
    first, second : callable
        Any functions.
    compared : frozenset of (int, int), default empty
        Pairs under comparison already, by `id`: a function may call itself.

    Returns
    -------
    bool
        True for one and the same object, and for Python functions with equal code, defaults,
        closures and globals, wherever they were defined; for other objects, equal pickles.
    """
    if first is second or (id(first), id(second)) in compared:
        return True
    ours, theirs = (getattr(each, "__code__", None) for each in (first, second))
    if ours is None or theirs is None or hasattr(first, "__self__") or hasattr(second, "__self__"):
        return identity(first) == identity(second)
    if _bare(ours) != _bare(theirs):
        return False
    seen = compared | {(id(first), id(second))}
    used = zip(_used(first), _used(second), strict=True)
    return all(_same_object(a, b, seen) for a, b in used)


def _bare(code: CodeType) -> CodeType:
    """Code without its place and name."""
    constants = tuple(_bare(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(
        co_filename="",
        co_firstlineno=1,
        co_linetable=b"",
        co_name="",
        co_qualname="",
        co_consts=tuple("" if isinstance(c, str) and "<locals>" in c else c for c in constants),
    )


def _used(function: Any) -> list[Any]:
    """List what a Python function uses besides its code."""
    cells = inspect.getclosurevars(function).nonlocals.values()
    names = [function.__globals__.get(name) for name in sorted(_names(function.__code__))]
    return [function.__defaults__, function.__kwdefaults__, *cells, *names]


def _names(code: CodeType) -> set[str]:
    """Collect names that code looks up, in the functions defined within it too."""
    nested = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, nested))


def _same_object(first: Any, second: Any, compared: frozenset[tuple[int, int]]) -> bool:
    if first is second:
        return True
    if callable(first) and callable(second):
        return same_function(first, second, compared=compared)
    return identity(first) == identity(second)


def state(function: Callable[..., Any]) -> dict[str, str]:
    """Digest the data that a function uses besides its code, by name.

    Parameters
    ----------
    function : callable
        Any function.

    Returns
    -------
    dict of str to str
        Digests of closures, defaults, globals and attributes of a bound object, and of those of
        the functions that it uses from its own module. What cannot be pickled is left out.
    """
    found: dict[str, str] = {}
    _collect(function, "", found, set())
    return found


def changed(function: Callable[..., Any], before: Mapping[str, str]) -> list[str]:
    """List the data of a function that is no longer what it was.

    Parameters
    ----------
    function : callable
        Any function.
    before : mapping of str to str
        Its `state` at some earlier time.

    Returns
    -------
    list of str
        Names in ``before`` whose data changed; empty if none did.
    """
    now = state(function) if before else {}
    return sorted(name for name, mark in before.items() if now.get(name) != mark)


def _collect(function: Any, within: str, found: dict[str, str], seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    for name, value in _held(function):
        if isinstance(value, FunctionType | functools.partial):
            if within.count(".") < _DEEPEST and _near(value, function):
                _collect(value, f"{within}{name}.", found, seen)
        elif not (callable(value) or inspect.ismodule(value)):
            mark = _mark(value)
            if mark:
                found[within + name] = mark


def _near(used: Any, user: Any) -> bool:
    """Whether a function was written beside its user: libraries do not change in between."""
    wrapped = isinstance(used, functools.partial) or isinstance(user, functools.partial)
    return wrapped or getattr(used, "__module__", None) == getattr(user, "__module__", None)


def _held(function: Any) -> Iterator[tuple[str, Any]]:
    """Give the data of a callable by name."""
    if isinstance(function, functools.partial):
        yield from (("func", function.func), ("args", function.args))
        yield from function.keywords.items()
        return
    if not isinstance(function, FunctionType):
        own = getattr(function, "__self__", function)
        yield from getattr(own, "__dict__", {}).items()
        yield "call", getattr(function, "__func__", None) or type(function).__call__
        return
    yield "defaults", (function.__defaults__, function.__kwdefaults__)
    yield from inspect.getclosurevars(function).nonlocals.items()
    known = function.__globals__
    yield from ((name, known[name]) for name in _names(function.__code__) if name in known)


def _mark(value: Any) -> str:
    import cloudpickle  # noqa: PLC0415

    try:
        return hashlib.sha256(cloudpickle.dumps(value)).hexdigest()[:16]
    except Exception:
        return ""
