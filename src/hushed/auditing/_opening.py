"""The parts of what is no container: frames, tensors, and objects of any class."""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from types import MemberDescriptorType
from typing import Any

import numpy as np

from hushed._ground.tensors import fetch


class Hidden(Exception):
    """A part that cannot be looked into; its text names it."""


def open_parts(value: Any) -> dict[str, Any]:
    """List the parts of an object by name.

    Raises
    ------
    Hidden
        If it hides them.
    """
    if isinstance(value, memoryview):
        return {"bytes": value.tobytes()}
    if isinstance(value, np.void):
        return {"type": str(value.dtype), "cells": value.item()}
    library = type(value).__module__.partition(".")[0]
    frame = _FRAMES[library](value) if library in _FRAMES else None
    if frame is not None:
        return frame
    tensor = fetch(value)
    if isinstance(tensor, np.ndarray | np.generic):
        return {"values": tensor}
    if dataclasses.is_dataclass(value):
        names = [each.name for each in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names} | list_attributes(value)
    return _open_object(value)


def list_attributes(value: Any) -> dict[str, Any]:
    """List what an object of a class of somebody's own holds besides: attributes, and slots.

    Also what makes the values of missing keys of a dict, and what an error was raised from.
    """
    found: dict[str, Any] = {}
    for kind in type(value).__mro__:
        own = vars(kind).items() if "__slots__" in vars(kind) else ()
        slots = [name for name, each in own if isinstance(each, MemberDescriptorType)]
        found |= {name: getattr(value, name) for name in slots if hasattr(value, name)}
    if isinstance(value, defaultdict):
        found["made by"] = value.default_factory
    if isinstance(value, BaseException):
        found |= {"raised from": value.__cause__, "raised after": value.__context__}
    attributes = getattr(value, "__dict__", None) or {}
    if isinstance(value, np.ma.MaskedArray):  # of which its mask is read as such
        attributes = {name: each for name, each in attributes.items() if name != "_mask"}
    if isinstance(value, Enum):  # of whose class its type tells, wherever that lies
        attributes = {name: each for name, each in attributes.items() if name != "__objclass__"}
    return found | attributes


# Frames print a few rows only.
def _open_arrow(value: Any) -> dict[str, Any] | None:
    if hasattr(value, "column_names"):  # two columns may have one name
        besides = [value.schema.metadata, *(each.metadata for each in value.schema)]
        schema = str(value.schema.remove_metadata())
        return {"schema": schema, "metadata": besides, "each": list(value.columns)}
    if hasattr(value, "chunks"):
        return {"type": str(value.type), "chunks": list(value.chunks)}
    if hasattr(value, "dictionary"):  # which may have more entries than are used
        places = value.indices if hasattr(value, "indices") else value.index  # of all, or of one
        return {"type": str(value.type), "places": places, "entries": value.dictionary}
    read = next((n for n in ("to_pylist", "as_py") if hasattr(value, n)), None)
    if read is None:
        return None
    kind = getattr(value, "schema", getattr(value, "type", ""))
    return {"type": str(kind), "values": getattr(value, read)()}


def _open_polars(value: Any) -> dict[str, Any] | None:
    kind = _name_of(value, "polars")
    if kind == "DataFrame":
        return {"columns": value.columns, "each": value.get_columns()}
    if kind == "Series":
        flags, parts = str(value.flags), value.n_chunks()
        told = {"name": value.name, "type": str(value.dtype), "flags": flags, "parts": parts}
        return told | {"values": value.to_list()}
    return None


def _open_pandas(value: Any) -> dict[str, Any] | None:
    kind = _name_of(value, "pandas")
    if kind == "DataFrame":
        each = [value.iloc[:, at].tolist() for at in range(value.shape[1])]
        types = [_describe_type(kind) for kind in value.dtypes]
        told = {"columns": value.columns, "types": types, "index": value.index, "each": each}
        return told | {"attributes": dict(value.attrs), "flags": str(value.flags)}
    if kind is None:
        return None
    names = list(value.names) if kind == "Index" else value.name
    found = {"name": names, "type": _describe_type(value.dtype), "values": value.tolist()}
    if kind == "Index":  # the levels of one of several may have more entries than are used
        levels = [list(each) for each in getattr(value, "levels", ())]
        return found | {"levels": levels, "frequency": str(getattr(value, "freq", None))}
    return found | {"index": value.index, "attributes": value.attrs, "flags": str(value.flags)}


def _describe_type(kind: Any) -> Any:
    """Say what a type says, with all categories of one that has some, and whether they rank."""
    categories = getattr(kind, "categories", None)
    if categories is None:
        return str(kind)
    return [str(kind), list(categories), bool(getattr(kind, "ordered", False))]


_FRAMES = {"pyarrow": _open_arrow, "polars": _open_polars, "pandas": _open_pandas}


def _name_of(value: Any, library: str) -> str | None:
    """Say what kind of table an object is."""
    theirs = [each.__name__ for each in type(value).__mro__ if each.__module__.startswith(library)]
    return next((kind for kind in ("DataFrame", "Series", "Index") if kind in theirs), None)


def _open_object(value: Any) -> dict[str, Any]:
    """Take an object apart as pickle would, which knows attributes, slots and types written in C.

    Functions and methods are told by their names there, which say nothing of what they hold.
    """
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if callable(value) and hasattr(value, "__name__"):
        require_importable(value)
        return {"name": name}
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:
        raise Hidden(name) from None
    if isinstance(reduced, str):  # the name of a thing that exists once
        return {"name": reduced}
    _, given, state, *rest = (*reduced, None)[: max(len(reduced), 3)]
    if isinstance(state, tuple) and len(state) == 2:  # attributes, and slots
        halves = [{} if each is None else each for each in state]
        state = halves[0] | halves[1] if all(isinstance(each, dict) for each in halves) else state
    plain = tuple(each for each in given if not isinstance(each, type))
    parts: dict[str, Any] = {"given": plain} if plain else {}
    parts |= {f"items {at}": list(e) for at, e in enumerate(rest) if isinstance(e, Iterable)}
    if isinstance(state, dict) and all(isinstance(each, str) for each in state):
        parts |= state
    elif state is not None:
        parts["state"] = state
    besides = list_attributes(value)  # which pickle may be told to leave out
    return parts | {name: each for name, each in besides.items() if name not in parts}


def require_importable(value: Any) -> None:
    """Refuse a function or class that its name does not tell: one that lies in no module.

    Raises
    ------
    Hidden
        If it does not, or is a function that holds something.
    """
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for each in getattr(value, "__qualname__", "").split("."):
        found = getattr(found, each, None)
    if found is not value or not (isinstance(value, type) or not getattr(value, "__dict__", None)):
        raise Hidden("class" if isinstance(value, type) else type(value).__name__)
