"""Python code as it is written: what it names, where it came from, and a digest of it."""

from __future__ import annotations

import dis
import functools
import hashlib
import marshal
import os
import random
import re
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

_MOST_TEXTS, _MOST_BYTES = 1000, 1 << 20
_CONTAINERS = (dict, list, tuple, set, frozenset)
_NAME = re.compile(r"[^\W\d]\w*")
# Methods of pandas, DuckDB and Polars that look variables up under their names in a text. Where in
# the text they stand is not parsed: each word of it may be one.
_QUERIES = {"query", "eval", "sql", "execute", "executemany", "from_query", "table", "view"}
_QUERIES |= {"read_sql", "read_sql_query", "query_df"}
_ENVIRONMENT = frozenset({"environ", "getenv", "environb", "getenvb", "expandvars"})
READERS = (
    *(getattr(os, each) for each in sorted(_ENVIRONMENT) if hasattr(os, each)),
    os.path.expandvars,
)
_SKIPPED = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType)


_BUILTINS_BY_TEXT = {"getattr", "vars", "globals", "eval", "exec", "__import__"}
_OTHERS_BY_TEXT = {
    "attrgetter", "methodcaller", "import_module", "__dict__", "__getattribute__", "__globals__",
    "f_globals", "f_locals", "f_builtins", "getattr_static", "resolve_name",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Names:
    """Names that code looks up, in the functions defined within it too."""

    globals: frozenset[str]  # as globals
    imported: frozenset[str]  # modules that it imports
    all: frozenset[str]  # all of these, and attributes
    # Texts among its constants, which may be names, too, if it looks something up by text.
    texts: frozenset[str] = frozenset()

    @property
    def by_text(self) -> bool:
        """Whether it may look something up under a name that is only a text."""
        return bool(
            self.globals & _BUILTINS_BY_TEXT  # and not the method eval of a model
            or self.all & _OTHERS_BY_TEXT
            or {"sys", "modules"} <= self.all
        )


@functools.lru_cache(maxsize=1000)
def collect_names(code: CodeType) -> Names:
    """Collect the names that code looks up."""
    found: dict[str, set[str]] = {"globals": set(), "imported": set()}
    everything: set[str] = set()
    texts: set[str] = set()
    for each in _nested(code):
        everything |= set(each.co_names)
        written = {text for const in each.co_consts for text in list_strings(const)}
        texts |= written
        for step in dis.get_instructions(each):
            if step.opname == "MATCH_CLASS":  # its attributes are named by a constant
                everything |= written
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                found["globals"].add(str(step.argval))
            elif step.opname == "IMPORT_NAME":
                found["imported"].add(str(step.argval))
    if found["globals"] & {"eval", "exec"}:
        texts |= {name for text in texts for name in _NAME.findall(text)}
    found["globals"] |= _list_variables(code, everything, texts)
    # "import a.b" binds a, and "from a import b" may import the module a.b
    imported = found["imported"] | {each.partition(".")[0] for each in found["imported"]}
    return Names(
        globals=frozenset(found["globals"]),
        imported=frozenset(imported),
        all=frozenset(everything),
        texts=frozenset(texts),
    )


def _list_variables(code: CodeType, names: Iterable[str], texts: Iterable[str]) -> set[str]:
    """List variables in texts of queries, where code calls one; but for those of its own."""
    own = {name for each in _nested(code) for name in (*each.co_varnames, *each.co_freevars)}
    if _QUERIES.isdisjoint(names):
        return set()
    return {name for each in texts for name in _NAME.findall(each)} - own


def list_asked(function: types.FunctionType) -> frozenset[str]:
    """List globals that a function uses, also by a query that it was given as a text."""
    code, names = function.__code__, collect_names(function.__code__)
    if _QUERIES.isdisjoint(names.all):
        return names.globals
    held: list[Any] = [function.__defaults__, function.__kwdefaults__]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            held.append(cell.cell_contents)
    held += [function.__globals__[each] for each in names.globals & function.__globals__.keys()]
    texts = {text for each in held for text in list_strings(each)}
    return names.globals | _list_variables(code, names.all, texts)


def list_strings(held: Any, depth: int = 2) -> Iterator[str]:
    """List the texts that a value is, or that it holds in a few small containers.

    Bytes are texts, too, where they name a variable of the environment.
    """
    if type(held) is str:
        yield held
    elif type(held) is bytes and len(held) <= _MOST_BYTES:
        with suppress(UnicodeDecodeError):  # on Windows; then it names no variable
            yield os.fsdecode(held)
    elif type(held) in _CONTAINERS and depth and len(held) <= _MOST_TEXTS:
        for each in [*held, *held.values()] if type(held) is dict else list(held):
            yield from list_strings(each, depth - 1)


def list_expanded(texts: Iterable[str]) -> set[str]:
    """List names in texts that `os.path.expandvars` may look up, as in ``"$HOME/rows"``."""
    return {name for each in texts if "$" in each or "%" in each for name in _NAME.findall(each)}


def reads_environment(function: types.FunctionType) -> bool:
    """Tell whether a function names what looks up variables of the environment."""
    return not collect_names(function.__code__).all.isdisjoint(_ENVIRONMENT)


def list_texts(function: types.FunctionType) -> frozenset[str]:
    """Texts under which a function may look something up: also how its own module is called."""
    names = collect_names(function.__code__)
    if not names.by_text:
        return frozenset()
    own = function.__globals__.get("__name__") if "__name__" in names.globals else None
    return names.texts | {own} if isinstance(own, str) else names.texts


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _nested(each)


def digest_code(code: CodeType) -> str:
    """Digest code without its place and name."""
    facts = (
        code.co_code,
        code.co_exceptiontable,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        [_constant(each) for each in code.co_consts],
    )
    return hashlib.sha256(marshal.dumps(facts, 2)).hexdigest()[:16]


def _constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return "code", digest_code(value)
    if isinstance(value, slice):  # a constant from Python 3.14 on
        return "slice", value.start, value.stop, value.step
    return tuple(map(_constant, value)) if type(value) is tuple else value


@functools.cache
def _find_install_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(sorted({paths["stdlib"], paths["platstdlib"]}))


@functools.lru_cache(maxsize=10_000)
def is_library(name: str | None) -> bool:
    """Tell whether a module was installed, or comes with Python, and does not change meanwhile."""
    top = str(name).partition(".")[0]
    if top == "__main__":
        return False
    if top == "hushed" or top in sys.builtin_module_names:
        return True
    module = sys.modules.get(str(name)) or sys.modules.get(top)
    spec = path = None
    with suppress(Exception):  # a module's own `__getattr__` may fail
        spec, path = getattr(module, "__spec__", None), getattr(module, "__file__", None)
    if path is None:
        return getattr(spec, "origin", None) in ("built-in", "frozen")
    parts = path.replace("\\", "/").split("/")
    if "site-packages" in parts or "dist-packages" in parts:
        return True
    return str(path).startswith(_find_install_roots())


def is_installed(function: types.FunctionType) -> bool:
    """Tell whether a function was made by installed code, also where it came out of a pickle.

    One that a decorator, or a class like those of `namedtuple`, brings along travels by its code.
    """
    name = function.__globals__.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or not is_library(name):
        return False
    file = getattr(module, "__file__", None)
    own = getattr(module, "__dict__", None) is function.__globals__
    return own or (file is not None and function.__code__.co_filename == file)


def is_kept(name: str, value: Any) -> bool:
    """Tell whether installed code keeps an object under its name."""
    loaded = list(sys.modules.items())
    holding = (place for place, held in loaded if getattr(held, "__dict__", {}).get(name) is value)
    return any(is_library(place) for place in holding)


def reference(value: Any) -> str:
    """Name installed code by where it is imported from."""
    if value is np.random.mtrand._rand or value is random._inst:
        return "numpy.random" if value is np.random.mtrand._rand else "random"
    if not callable(value) or (isinstance(value, types.FunctionType) and not is_installed(value)):
        return ""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        return ""
    own = getattr(value, "__self__", None)
    places = [getattr(value, "__module__", None), type(own).__module__]
    if isinstance(own, types.ModuleType):
        places.append(own.__name__)
    if type(value).__module__ == "numpy":
        places.append("numpy")
    for module in places:
        if isinstance(module, str) and is_library(module):
            for path in {name, name.rpartition(".")[2]}:
                if _is_found(module, path, value):
                    return f"{module}.{path}"
    return ""


def _is_found(module: str, path: str, value: Any) -> bool:
    at: Any = sys.modules.get(module)
    try:
        for part in path.split("."):
            at = getattr(at, part)
        return at is value or (isinstance(at, _BOUND) and bool(at == value))
    except Exception:
        return False


_FRAMES = {
    "pandas": ("DataFrame", "Series", "Index"),
    "polars": ("DataFrame", "Series", "LazyFrame", "Expr"),
}


def list_added(names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Give what a program added to frames under some names: accessors, and methods put there.

    Code reaches them by its rows, which nobody follows.
    """
    for library, kinds in _FRAMES.items():
        for kind in kinds:
            held = vars(getattr(sys.modules.get(library), kind, object))
            for name in sorted(held.keys() & names):
                if is_added(held[name]):
                    yield f"{kind}.{name}", held[name]


def is_added(value: Any) -> bool:
    """Tell whether an attribute of an installed class was not put there by installed code."""
    held = ("_ns", "_accessor", "fget", "__func__")  # by accessors, properties, class methods
    value = next((getattr(value, name) for name in held if hasattr(value, name)), value)
    if isinstance(value, types.FunctionType):
        return not is_installed(value)
    return not is_library((value if isinstance(value, type) else type(value)).__module__)


_BOUND = (types.MethodType, types.BuiltinMethodType)


def fields_of(kind: type) -> Iterator[tuple[str, Any]]:
    """Give what a class defines itself: methods and data, without what Python adds."""
    for name, value in sorted(kind.__dict__.items()):
        special = name.startswith("__") and name.endswith("__")
        if (
            isinstance(value, _SKIPPED)
            or name == "_abc_impl"
            or (special and not _is_own(name, value))
        ):
            continue
        yield name, value


_MADE_BY_PYTHON = frozenset(
    {
        "__abstractmethods__", "__annotations__", "__annotations_cache__", "__annotate_func__",
        "__match_args__", "__orig_bases__", "__parameters__", "__slotnames__", "__slots__",
        "__static_attributes__", "__type_params__",
    }
)  # fmt: skip
_MADE_BY_LIBRARIES = ("__attrs", "__dataclass", "__non_callable", "__protocol", "__pydantic")


def _is_own(name: str, value: Any) -> bool:
    """Whether what stands under a special name of a class was put there by whoever wrote it."""
    if isinstance(value, types.FunctionType | staticmethod | classmethod | property):
        return True
    if isinstance(value, bool | int | float | str | bytes):
        return name not in ("__module__", "__qualname__", "__doc__", "__firstlineno__")
    if isinstance(value, list | dict | set | tuple | frozenset | np.ndarray):
        return name not in _MADE_BY_PYTHON and not name.startswith(_MADE_BY_LIBRARIES)
    return (
        callable(value) and not isinstance(value, type) and not is_library(type(value).__module__)
    )
