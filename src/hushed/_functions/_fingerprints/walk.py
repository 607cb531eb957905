"""Follow a function through all that it uses.

A function is followed through closures, defaults, globals, partial applications, wrappers, bound
objects, classes and the attributes of modules that its code names. Code that was installed, and
the standard library, is known by name and version alone.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import marshal
import operator
import os
import sys
import types
import typing
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from hushed._functions._fingerprints.code import (
    READERS,
    collect_names,
    digest_code,
    fields_of,
    is_installed,
    is_kept,
    is_library,
    list_added,
    list_asked,
    list_expanded,
    list_strings,
    list_texts,
    reads_environment,
    reference,
)
from hushed._functions._fingerprints.objects import (
    foreign_attributes,
    inherited_content,
    is_reduced_by_default,
    own_attributes,
    reduce_object,
    shows_memory,
)

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, type(...)})
_NESTED = (list, tuple, set, frozenset, dict, types.MappingProxyType)
_FOLLOWED = (FunctionType, MethodType, ModuleType, functools.partial, type, np.ndarray, *_NESTED)
_LOOKERS = (operator.attrgetter, operator.methodcaller)  # which look up a text that they hold
_DEEPEST = 60
_ANY = "*"  # among names: whatever it may be
_OF_WRAPPERS = {*functools.WRAPPER_ASSIGNMENTS, "__wrapped__"}  # which are of what is wrapped
_ANNOTATIONS = frozenset({  # by which code reads annotations
    "__annotations__", "__annotate__", "from_callable", "get_annotations", "get_type_hints",
    "getfullargspec", "signature",
})  # fmt: skip
_ANNOTATION_READERS = (
    inspect.get_annotations,
    inspect.getfullargspec,
    inspect.signature,
    typing.get_type_hints,
)
_LONGEST = 50_000  # entries of a container that are looked at one by one


def digest_bytes(content: bytes) -> str:
    """Digest bytes."""
    return hashlib.sha256(content).hexdigest()[:16]


class Marks(dict[str, str]):
    """Digests by name; two things of one name, as an attribute and a global, are both kept."""

    def __setitem__(self, name: str, digest: str) -> None:
        while self.get(name, digest) != digest:
            name += "'"
        super().__setitem__(name, digest)


class Walk:
    """One look at a function: follows what it uses and notes digests by name."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = Marks()
        self.unseen: dict[str, Any] = {}
        self.packages: set[str] = set()
        self.seen: dict[Any, tuple[str, Any]] = {}  # objects are kept, so that no id is used twice
        self.digests: dict[int, tuple[str, Any]] = {}
        self.depth = 0
        self.texts: set[str] = set()  # by which something may be looked up
        self.environment = self.annotations = False  # whether something reads them
        self.annotated: list[tuple[str, Any]] = []  # functions, but for those of installed code

    def visit_late(self) -> None:
        """Note what is only a part of the function if something that it uses reads it."""
        if self.annotations or "__annotations__" in self.texts:
            for name, each in self.annotated:
                self._annotations(f"{name}.__annotations__".lstrip("."), each)
        self._environment()

    def _annotations(self, name: str, function: Any) -> None:
        try:
            self.visit(name, function.__annotations__)
        except Exception:  # they name what is not there, which is found when they are looked at
            self.unseen[name] = function

    def _environment(self) -> None:
        """Note variables of the environment that what was followed so far may look up by a text.

        One that is not set has no mark, so that setting it is a change.
        """
        found = self.texts | list_expanded(self.texts) if self.environment else set()
        for name in sorted(found.intersection(os.environ)):
            self.marks[f"os.environ[{name}]"] = digest_bytes(os.fsencode(os.environ[name]))

    def visit(self, name: str, value: Any, names: frozenset[str] = frozenset()) -> None:
        """Note one thing; ``names`` are those that the code at hand may look up in a module."""
        if isinstance(value, ModuleType):
            self._module(name, value, names)
            return
        if type(value) in (str, bytes) or type(value) in _NESTED:
            self.texts.update(list_strings(value))
        self.environment |= any(value is each for each in READERS)  # under whatever name
        self.annotations |= any(value is each for each in _ANNOTATION_READERS)
        if type(value) in _PLAIN:
            self.marks[name] = digest_bytes(marshal.dumps(value, 2))
            return
        if type(value) in _NESTED or type(value) is np.ndarray:
            if id(value) not in self.digests:
                self.digests[id(value)] = ("itself", value)  # should it hold itself
                self.digests[id(value)] = (self._digest(name, value), value)
            self.marks[name] = self.digests[id(value)][0]
            return
        known = self.seen.get(id(value))
        if known:
            self.marks[name] = f"as {known[0]}"
            return
        self.seen[id(value)] = (name, value)
        named = ""
        with suppress(Exception):  # attributes of a class that fail when looked at
            named = reference(value)
        if named and (name or not isinstance(value, FunctionType)):
            self.marks[name] = f"={named}"
            self.packages.add(named.partition(".")[0])
            return
        if self.depth >= _DEEPEST:
            self.unseen[name] = value
            return
        self.depth += 1
        try:
            self._follow(name, value)
        except Exception:  # attributes, slots or classes that fail when looked at
            self.unseen[name] = value
        finally:
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
            self._added(within, value, value.func)
        elif isinstance(value, MethodType):
            self.visit(f"{within}{value.__name__}", value.__func__)
            if isinstance(value.__self__, type):  # a class method
                self.visit(f"{within}{value.__self__.__name__}", value.__self__)
            else:
                self._attributes(name, within, value.__self__)
        elif isinstance(value, staticmethod | classmethod | property):
            self._descriptor(name, within, value)
            wrapped = value.fget if isinstance(value, property) else value.__func__
            self._added(within, value, wrapped)
        elif isinstance(value, type):
            self._class(name, within, value)
        elif isinstance(value, types.BuiltinMethodType) and value.__self__ is not None:
            self.marks[name] = digest_bytes(value.__name__.encode())
            self.visit(f"{within}self", value.__self__)
        elif type(value).__name__ == "_lru_cache_wrapper":
            self.visit(f"{within}function", value.__wrapped__)
            self.unseen[f"the cache of {name or value.__name__}"] = value
            self._added(within, value, value.__wrapped__)
        else:
            self._raised(within, value)
            self._attributes(name, within, value)

    def _added(self, within: str, value: Any, wrapped: Any) -> None:
        """Note what a wrapper has beside what it wraps: attributes, and a class of the caller's."""
        for key, each in own_attributes(value):
            if key == "__annotations__":
                self.annotated.append((within.removesuffix("."), value))
            elif key not in _OF_WRAPPERS or not _is_taken_over(key, each, wrapped):
                self.visit(within + key, each)
        if not is_library(type(value).__module__):
            self.visit(f"{within}{type(value).__name__}", type(value))

    def _descriptor(self, name: str, within: str, value: Any) -> None:
        if not isinstance(value, property):
            self.visit(name, value.__func__)
            return
        for part in (value.fget, value.fset, value.fdel):
            self.visit(f"{within}{getattr(part, '__name__', 'none')}", part)
        said: Any = value.__doc__
        if not isinstance(said, str | None):
            self.visit(f"{within}__doc__", said)

    def _module(self, name: str, module: ModuleType, names: frozenset[str]) -> None:
        open_to_all = not names or _ANY in names  # in a container; or looked into by text
        if open_to_all and not is_library(module.__name__) and module.__name__ != "__main__":
            names = names | {each for each in module.__dict__ if not each.startswith("__")}
        if not is_library(module.__name__):
            names = names | {"__getattr__"}  # gives what is not there
        if not is_library(type(module).__module__):  # as a property of its class does
            self.visit(f"{name}.{type(module).__name__}", type(module))
        for each in sorted(names & module.__dict__.keys()):
            key = (id(module), each)
            if key not in self.seen:
                self.seen[key] = (name, module)
                self._member(f"{name}.{each}", module, each, names)

    def _member(self, name: str, module: ModuleType, each: str, names: frozenset[str]) -> None:
        """Note an attribute of a module; an object that installed code keeps there by name."""
        value = module.__dict__[each]
        kept = is_library(module.__name__) and is_library(type(value).__module__)
        if module is sys and type(value) not in _PLAIN:  # its lists change all the time
            self.marks[name] = f"=sys.{each}"
            return
        if kept and not isinstance(value, _FOLLOWED) and type(value) not in _PLAIN:
            self.marks[name] = f"={module.__name__}.{each}"
            self.packages.add(module.__name__.partition(".")[0])
        else:
            self.visit(name, value, names)

    def _function(self, name: str, within: str, function: FunctionType) -> None:
        code = function.__code__
        library = bool(name) and is_installed(function)  # the function itself is always read
        if library:  # a closure made by installed code, around what may be the user's own
            self.marks[name] = f"={function.__module__}.{function.__qualname__}"
        else:
            self.marks[f"the code of {name}" if name else "its own code"] = digest_code(code)
        defaults = function.__defaults__ or ()
        named = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        for key, each in zip(named, defaults, strict=False):
            self.visit(within + key, each)
        for key, each in sorted((function.__kwdefaults__ or {}).items()):
            self.visit(within + key, each)
        names = collect_names(code)
        cells = [
            (key, _content(cell))
            for key, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        ]
        used = () if library else (*_globals(function, names), *list_added(names.all))
        held = (*defaults, *(each for _, each in (*cells, *used)))
        by_text = names.by_text or any(type(each) in _LOOKERS for each in held)
        looked_up = names.all | {_ANY} if by_text else names.all
        for key, each in cells:
            self.visit(within + key, each, looked_up)
        for key, each in (*sorted(function.__dict__.items()), *_written_over(function)):
            self.visit(within + key, each)
        if not library:
            self.texts |= names.texts
            self.annotated.append((name, function))
            self.annotations |= not names.all.isdisjoint(_ANNOTATIONS)
            self.environment |= reads_environment(function)
            for key, each in used:
                self.visit(within + key, each, looked_up)

    def _class(self, name: str, within: str, kind: type) -> None:
        if is_library(kind.__module__) and not _functions(kind):
            self.marks[f"the class {name}"] = f"={kind.__module__}.{kind.__qualname__}"
            return
        bases = [base for base in kind.__mro__[1:] if base is not object]
        self.marks[f"the class {name}"] = digest_bytes(
            repr([b.__qualname__ for b in bases]).encode()
        )
        for base in bases:
            self.visit(f"{within}{base.__name__}", base)
        if type(kind) is not type:
            self.visit(f"{within}{type(kind).__name__}", type(kind))
        for key, each in fields_of(kind):
            self.visit(within + key, each)

    def _attributes(self, name: str, within: str, value: Any) -> None:
        """Follow an object: its attributes and its class, or whatever pickle would keep of it."""
        kind = type(value)
        if kind is ContextVar:  # of which no pickle is made
            for each in read_variable(value):
                self.visit(f"{within}value", each)
            return
        custom, library = not is_reduced_by_default(kind), is_library(kind.__module__)
        listed = own_attributes(value)
        if custom and library and not kind.__module__.startswith("hushed."):
            listed = foreign_attributes(value)
            if shows_memory(value) and not isinstance(value, np.ndarray):
                self.unseen[name or kind.__name__] = value
        elif custom:  # its own code says what pickle keeps, and may leave out what it holds
            listed = itertools.chain(listed, inherited_content(value))
        for key, each in listed:
            self.visit(within + key, each)
        self.visit(f"{within}{kind.__name__}", kind)
        try:
            reduced = reduce_object(value)
        except Exception:
            self.unseen[name or kind.__name__] = value
            return
        if isinstance(reduced, str):
            if library and not is_kept(reduced, value):
                self.unseen[name or kind.__name__] = value
            self.marks[name] = digest_bytes(f"{kind.__module__}.{reduced}".encode())
            return
        parts = [reduced[:2], reduced[2] if custom and len(reduced) > 2 else None]
        parts += [None if items is None else list(items) for items in reduced[3:5]]
        self.marks[name or "its content"] = self._digest(name, parts)

    def _raised(self, within: str, value: Any) -> None:
        """Note what an exception holds beside its content: others, and where it was raised."""
        if not isinstance(value, BaseException):
            return
        for key in ("__cause__", "__context__", *_list_members(type(value))):
            self.visit(within + key, getattr(value, key, None))
        if value.__traceback__ is not None:  # with the variables of all that was called
            self.unseen[f"{within}__traceback__"] = value

    def _digest(self, name: str, value: Any) -> str:
        """One digest of a container and all within."""
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            fields = value.dtype.names and repr(value.dtype)
            told = repr((value.dtype.str, fields, value.shape)).encode()
            if fields or value.dtype.metadata is not None:
                self.visit(f"{name}.dtype", value.dtype)
            return digest_bytes(told + np.ascontiguousarray(value).tobytes())
        if _is_plain(value):
            return digest_bytes(marshal.dumps(value, 2))
        if len(value) > _LONGEST:
            return self._pickled(name, value)
        if self.depth >= _DEEPEST:
            self.unseen[name] = value
            return ""
        outer, self.marks = self.marks, Marks()
        self.depth += 1
        try:
            for key, each in _entries(value):
                self.visit(f"{name}[{key}]", each)
        finally:
            self.depth -= 1
            inner, self.marks = self.marks, outer
        order = sorted(inner.values()) if isinstance(value, set | frozenset) else inner
        found = list(order.items()) if isinstance(order, dict) else order
        return digest_bytes(repr((type(value).__name__, found)).encode())

    def _pickled(self, name: str, value: Any) -> str:
        import cloudpickle  # noqa: PLC0415

        try:
            return digest_bytes(cloudpickle.dumps(value))
        except Exception:
            self.unseen[name] = value
            return ""


def _is_plain(value: Any, depth: int = 3) -> bool:
    """Whether a container holds numbers, texts and few levels of containers of them alone."""
    if type(value) not in (list, tuple, dict, set, frozenset):
        return False
    entries = value.values() if type(value) is dict else ()
    kinds = set(map(type, value)) | set(map(type, entries))
    if kinds <= _PLAIN:
        return True
    if not (depth and kinds <= _PLAIN | set(_NESTED)) or len(value) > _LONGEST:
        return False
    return all(
        type(each) in _PLAIN or _is_plain(each, depth - 1)
        for each in itertools.chain(value, entries)
    )


def _is_taken_over(key: str, held: Any, wrapped: Any) -> bool:
    """Whether a wrapper has it of what it wraps, as `functools.update_wrapper` leaves it.

    Texts are what either was called when: of a class method of a named tuple they differ, until it
    went through a pickle.
    """
    own = wrapped if key == "__wrapped__" else getattr(wrapped, key, None)
    return held is own or isinstance(held, str | None)


def _list_members(kind: type) -> Iterator[str]:
    """List what an error of Python keeps beside its content, as the object it is about."""
    for each in kind.__mro__:
        members = vars(each).items() if is_library(each.__module__) else ()
        yield from (
            key for key, held in members if isinstance(held, MemberDescriptorType) and key[0] != "_"
        )


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
    routines = (FunctionType, staticmethod, classmethod)
    return [each for _, each in fields_of(kind) if isinstance(each, routines)]


def _written_over(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Give what a function says of itself, where that is no longer what its code says."""
    code = function.__code__
    if function.__name__ != code.co_name:
        yield "__name__", function.__name__
    if function.__qualname__ != code.co_qualname:
        yield "__qualname__", function.__qualname__
    if function.__doc__ != (code.co_consts[0] if code.co_consts else None):
        yield "__doc__", function.__doc__


def read_variable(variable: ContextVar[Any]) -> list[Any]:
    """Give what a context variable has here, its default included, if it has anything."""
    try:
        return [variable.get()]
    except LookupError:
        return []


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _globals(function: FunctionType, names: Any) -> Iterator[tuple[str, Any]]:
    """Give globals and modules that the code of a function looks up."""
    known = function.__globals__
    texts = list_texts(function)
    # Code that was run by exec may have its own. mypy knows this attribute with a cold cache only.
    built_in: dict[str, Any] = cast(Any, function).__builtins__
    for name in sorted(list_asked(function) | texts):
        if name in known or name in built_in:
            yield name, known[name] if name in known else built_in[name]
    for name in sorted(texts & sys.modules.keys()):
        if not is_library(name):
            yield name, sys.modules[name]
    package = str(known.get("__package__") or "")
    for name in sorted(names.imported):
        for full in (name, f"{package}.{name}".rstrip(".")):
            if full in sys.modules:
                yield full, sys.modules[full]
                break
