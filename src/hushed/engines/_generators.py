"""The generator of Python's module random, which threads of a cluster's own must not draw from.

A function may seed it, and draw from it a moment later. In between, in that process, a thread of
Dask that estimates the size of an answer draws from it, too: one trial in a hundred of functions of
that kind then had another answer there.
"""

from __future__ import annotations

import random
import sys
from functools import cache
from importlib import util
from types import ModuleType

_THEIRS = ("dask", "distributed", "tornado")


class _Seen:
    """How many modules there were when they were last looked at."""

    modules = -1


def set_apart() -> None:
    """Give the modules of Dask a copy of the module random, with a generator of its own."""
    if _Seen.modules == len(sys.modules):
        return
    _Seen.modules = len(sys.modules)
    for name, module in list(sys.modules.items()):
        held = getattr(module, "__dict__", None)
        if name.partition(".")[0] in _THEIRS and held and held.get("random") is random:
            held["random"] = _copy_module()


@cache
def _copy_module() -> ModuleType:
    spec = util.find_spec("random")
    if spec is None or spec.loader is None:
        raise ImportError("random")
    found = util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
