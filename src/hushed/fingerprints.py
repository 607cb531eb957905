"""Whether a function is still what it was: its code, and whatever its code uses.

A function is followed through closures, defaults, globals, partial applications, wrappers, bound
objects, classes and the attributes of modules that its code names. Code that was installed, and
the standard library, is known by name and version alone.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import inspect
import marshal
import secrets
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from hushed.code import fields_of, is_library, names_in, own_code, reference

__all__ = ["Look", "changed", "content", "identity", "look", "same_function", "strangers"]

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, type(...)})
_NESTED = (list, tuple, set, frozenset, dict, types.MappingProxyType)
_DEEPEST = 60
_LONGEST = 50_000  # entries of a container that are looked at one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a look at a function has found.

    Parameters
    ----------
    marks : dict of str to str
        Digests of code and data, by name; of installed code its name, behind an equals sign.
    unseen : dict of str to object
        What has no digest, by name: locks, open files, caches and other things without a content
        that could be read.
    packages : frozenset of str
        Installed packages that it uses.
    """

    marks: dict[str, str]
    unseen: dict[str, Any] = field(repr=False)
    packages: frozenset[str]


def look(function: Any) -> Look:
    """Look at the code of a function and all that it uses.

    Parameters
    ----------
    function : callable
        Any function.

    Returns
    -------
    Look
        Equal marks for equal code over equal data, in any process of the same version of Python.
    """
    walk = _Walk()
    walk.visit("", function)
    return Look(marks=walk.marks, unseen=walk.unseen, packages=frozenset(walk.packages))


def content(value: Any) -> str:
    """Digest the content of a value.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    str
        Equal for equal content; nothing if it has none that could be read.
    """
    walk = _Walk()
    walk.visit("value", value)
    return "" if walk.unseen else _hashed(repr(sorted(walk.marks.items())).encode())


def identity(
    function: Callable[[Any], Any], found: Look | None = None, unwatched: tuple[str, ...] = ()
) -> str:
    """Name a function by its content, so that two estimates are known to be of the same one.

    Parameters
    ----------
    function : callable
        Any function.
    found : Look, optional
        What a look at it has found.
    unwatched : tuple of str, default ()
        Names of what changes by itself.

    Returns
    -------
    str
        Sixteen hexadecimal digits: equal only for equal name, code and data. Where something
        cannot be watched, a new name at every call, which errs towards telling functions apart.
    """
    found = look(function) if found is None else found
    if found.unseen or unwatched:
        return secrets.token_hex(8)
    facts = (getattr(function, "__qualname__", ""), sorted(found.marks.items()))
    return _hashed(repr(facts).encode())


def same_function(first: Callable[..., Any], second: Callable[..., Any]) -> bool:
    """Tell whether two functions do the same, as far as their code shows.

    Parameters
    ----------
    first, second : callable
        Any functions.

    Returns
    -------
    bool
        True for equal code over equal data, wherever it was defined. What has no digest must be
        one and the same object.
    """
    if first is second:  # compared with itself, now: see `changed` for the same one at two times
        return True
    ours, theirs = look(first), look(second)
    return ours.marks == theirs.marks and not strangers(ours, theirs)


def strangers(first: Look, second: Look) -> list[str]:
    """List what has no digest and is not the same object in two functions.

    Parameters
    ----------
    first, second : Look
        What was found in each.

    Returns
    -------
    list of str
        Names; not those of caches, which fill up anew in every process.
    """
    names = first.unseen.keys() | second.unseen.keys()
    missing = object()
    return sorted(
        name
        for name in names
        if first.unseen.get(name, missing) is not second.unseen.get(name, name)
        and not name.startswith("the cache of ")
    )


def changed(
    before: Mapping[str, str], now: Mapping[str, str], unwatched: tuple[str, ...] = ()
) -> list[str]:
    """List what is no longer what it was.

    Parameters
    ----------
    before, now : mapping of str to str
        Marks of a function at two times.
    unwatched : tuple of str, default ()
        Names that are passed over, with whatever lies within them.

    Returns
    -------
    list of str
        Names of what differs, appeared or went; empty if nothing did. Installed code that one
        look found and the other did not, because it is imported at the first call, is none.
    """
    return sorted(
        name
        for name in before.keys() | now.keys()
        if before.get(name) != now.get(name)
        and not ((name in before) != (name in now) and _installed(before, now, name))
        and not any(_within(name, each) for each in unwatched)
    )


def _installed(before: Mapping[str, str], now: Mapping[str, str], name: str) -> bool:
    return (before.get(name) or now.get(name) or "").startswith("=")


def _within(name: str, outer: str) -> bool:
    plain = name.removeprefix("the code of ").removeprefix("the class ")
    return outer in (name, plain) or plain.startswith((f"{outer}.", f"{outer}["))


def _hashed(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


class _Walk:
    """One look at a function: follows what it uses and notes digests by name."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = {}
        self.unseen: dict[str, Any] = {}
        self.packages: set[str] = set()
        self.seen: dict[Any, tuple[str, Any]] = {}  # objects are kept, so that no id is used twice
        self.depth = 0

    def visit(self, name: str, value: Any, names: frozenset[str] = frozenset()) -> None:
        """Note one thing; ``names`` are those that the code at hand may look up in a module."""
        if isinstance(value, ModuleType):
            self._module(name, value, names)
            return
        if type(value) in _PLAIN:
            self.marks[name] = _hashed(marshal.dumps(value, 2))
            return
        if type(value) in _NESTED or isinstance(value, np.ndarray):
            self.marks[name] = self._digest(name, value)
            return
        known = self.seen.get(id(value))
        if known:
            self.marks[name] = f"as {known[0]}"
            return
        self.seen[id(value)] = (name, value)
        named = reference(value)
        if named:
            self.marks[name] = f"={named}"
            self.packages.add(named.partition(".")[0])
            return
        if self.depth >= _DEEPEST:
            self.unseen[name] = value
            return
        self.depth += 1
        self._follow(name, value)
        self.depth -= 1

    def _follow(self, name: str, value: Any) -> None:
        within = f"{name}." if name else ""
        if isinstance(value, FunctionType):
            self._function(name, within, value)
        elif isinstance(value, functools.partial | functools.partialmethod):
            self.visit(f"{within}func", value.func)
            self.visit(f"{within}args", value.args)
            for key, each in value.keywords.items():
                self.visit(within + key, each)
        elif isinstance(value, MethodType):
            self.visit(f"{within}{value.__name__}", value.__func__)
            self._attributes(name, within, value.__self__)
        elif isinstance(value, staticmethod | classmethod):
            self.visit(name, value.__func__)
        elif isinstance(value, property):
            for part in (value.fget, value.fset):
                self.visit(f"{within}{getattr(part, '__name__', 'none')}", part)
        elif isinstance(value, type):
            self._class(name, within, value)
        elif isinstance(value, types.BuiltinMethodType) and value.__self__ is not None:
            self.marks[name] = _hashed(value.__name__.encode())
            self.visit(f"{within}self", value.__self__)
        elif type(value).__name__ == "_lru_cache_wrapper":
            self.visit(f"{within}function", value.__wrapped__)
            self.unseen[f"the cache of {name or value.__name__}"] = value
        else:
            self._attributes(name, within, value)

    def _module(self, name: str, module: ModuleType, names: frozenset[str]) -> None:
        for each in sorted(names & module.__dict__.keys()):
            key = (id(module), each)
            if key not in self.seen:
                self.seen[key] = (name, module)
                self.visit(f"{name}.{each}", module.__dict__[each], names)

    def _function(self, name: str, within: str, function: FunctionType) -> None:
        code = function.__code__
        library = is_library(function.__module__)
        if library:  # a closure made by installed code, around what may be the user's own
            self.marks[name] = f"={function.__module__}.{function.__qualname__}"
        else:
            self.marks[f"the code of {name}" if name else "its own code"] = own_code(code)
        if function.__defaults__:
            self.visit(f"{within}defaults", function.__defaults__)
        for key, each in sorted((function.__kwdefaults__ or {}).items()):
            self.visit(within + key, each)
        names = names_in(code)
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        for key, cell in cells:
            self.visit(within + key, _content(cell), names.all)
        for key, each in sorted(function.__dict__.items()):
            self.visit(within + key, each)
        if not library:
            for key, each in _globals(function, names):
                self.visit(within + key, each, names.all)

    def _class(self, name: str, within: str, kind: type) -> None:
        if is_library(kind.__module__) and not _functions(kind):
            self.marks[f"the class {name}"] = f"={kind.__module__}.{kind.__qualname__}"
            return
        bases = [base for base in kind.__mro__[1:] if base is not object]
        self.marks[f"the class {name}"] = _hashed(repr([b.__qualname__ for b in bases]).encode())
        for base in bases:
            self.visit(f"{within}{base.__name__}", base)
        for key, each in fields_of(kind):
            self.visit(within + key, each)

    def _attributes(self, name: str, within: str, value: Any) -> None:
        """Follow an object: its attributes and its class, or whatever pickle would keep of it."""
        kind = type(value)
        custom = not _reduced_by_default(kind)
        if not (custom and is_library(kind.__module__)) or kind.__module__.startswith("hushed."):
            for key, each in _own(value):
                self.visit(within + key, each)
        self.visit(f"{within}{kind.__name__}", kind)
        try:
            reduced = _reduced(value)
        except Exception:
            self.unseen[name or kind.__name__] = value
            return
        if isinstance(reduced, str):
            self.marks[name] = _hashed(f"{kind.__module__}.{reduced}".encode())
            return
        parts = [reduced[:2], reduced[2] if custom and len(reduced) > 2 else None]
        parts += [None if items is None else list(items) for items in reduced[3:5]]
        self.marks[name or "its content"] = self._digest(name, parts)

    def _digest(self, name: str, value: Any) -> str:
        """One digest of a container and all within."""
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            told = repr((value.dtype.str, value.dtype.names, value.shape)).encode()
            return _hashed(told + np.ascontiguousarray(value).tobytes())
        if _is_plain(value):
            return _hashed(marshal.dumps(value, 2))
        if len(value) > _LONGEST:
            return self._pickled(name, value)
        outer, self.marks = self.marks, {}
        self.depth += 1
        if self.depth > _DEEPEST:
            self.unseen[name] = value
        else:
            for key, each in _entries(value):
                self.visit(f"{name}[{key}]", each)
        self.depth -= 1
        inner, self.marks = self.marks, outer
        order = sorted(inner.values()) if isinstance(value, set | frozenset) else inner
        found = list(order.items()) if isinstance(order, dict) else order
        return _hashed(repr((type(value).__name__, found)).encode())

    def _pickled(self, name: str, value: Any) -> str:
        import cloudpickle  # noqa: PLC0415

        try:
            return _hashed(cloudpickle.dumps(value))
        except Exception:
            self.unseen[name] = value
            return ""


def _is_plain(value: Any) -> bool:
    """Whether a container holds numbers, texts and containers of them alone."""
    if type(value) not in (list, tuple, dict, set, frozenset):
        return False
    rest = set(map(type, value))
    entries = value.values() if type(value) is dict else ()
    rest |= set(map(type, entries))
    if rest <= _PLAIN:
        return True
    if not rest <= _PLAIN | set(_NESTED) or len(value) > _LONGEST:
        return False
    return all(type(e) in _PLAIN or _is_plain(e) for each in (value, entries) for e in each)


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | types.MappingProxyType):
        for place, (key, each) in enumerate(value.items()):
            told = key if isinstance(key, str) else place
            yield f"key {place}", key
            yield told, each
    elif isinstance(value, np.ndarray):
        yield "array", (value.dtype.str, value.shape)
        yield "values", value.ravel().tolist()
    else:
        yield from enumerate(value)


def _functions(kind: type) -> list[Any]:
    routine = FunctionType | staticmethod | classmethod
    return [each for _, each in fields_of(kind) if isinstance(each, routine)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _globals(function: FunctionType, names: Any) -> Iterator[tuple[str, Any]]:
    """Give globals and modules that the code of a function looks up."""
    known = function.__globals__
    yield from ((name, known[name]) for name in sorted(names.globals) if name in known)
    package = str(known.get("__package__") or "")
    for name in sorted(names.imported):
        for full in (name, f"{package}.{name}".rstrip(".")):
            if full in sys.modules:
                yield full, sys.modules[full]
                break


def _own(value: Any) -> Iterator[tuple[str, Any]]:
    """Give the attributes of an object by name: those in its dictionary, and its slots."""
    held = getattr(value, "__dict__", None)
    yield from sorted(held.items(), key=lambda item: str(item[0])) if type(held) is dict else ()
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            full = f"_{kind.__name__.lstrip('_')}{name}" if _mangled(name) else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, full):
                yield name, getattr(value, full)


def _mangled(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


def _reduced_by_default(kind: type) -> bool:
    own = inspect.getattr_static(kind, "__getstate__", None)
    return (
        kind not in copyreg.dispatch_table
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
        and own is inspect.getattr_static(object, "__getstate__", None)
    )


def _reduced(value: Any) -> Any:
    """What pickle would keep of an object."""
    registered = copyreg.dispatch_table.get(type(value))
    return registered(value) if registered else value.__reduce_ex__(4)
