"""Whether two functions are the same one."""

from __future__ import annotations

import hashlib
import inspect
import secrets
from collections.abc import Callable
from types import CodeType
from typing import Any

__all__ = ["identity", "same_function"]


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
    names = [function.__globals__.get(name) for name in function.__code__.co_names]
    return [function.__defaults__, function.__kwdefaults__, *cells, *names]


def _same_object(first: Any, second: Any, compared: frozenset[tuple[int, int]]) -> bool:
    if first is second:
        return True
    if callable(first) and callable(second):
        return same_function(first, second, compared=compared)
    return identity(first) == identity(second)
