"""What an isolated process is told: its work, and one part of the rows."""

from __future__ import annotations

import marshal
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hushed._functions._isolated_call import ALIGNED, HEAD, PART
from hushed._functions._silence import silence
from hushed._ground.stops import watch_stops
from hushed._rows._apart import dump_apart
from hushed.errors import BadFunction


def pack_function(function: Any) -> bytes:
    """Pack a function, or labels, with all that they hold."""
    import cloudpickle  # noqa: PLC0415

    try:
        return bytes(cloudpickle.dumps(function))
    except (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError) as cause:
        raise BadFunction(
            f"the function cannot be sent to a fresh process ({cause}); create what it holds "
            "inside the function"
        ) from cause


def pack_work(
    function: Callable[[Any], Any],
    labels: Sequence[Any] | None,
    shape: tuple[int, ...],
    modules: Sequence[str],
    limits: dict[str, float],
) -> bytes:
    """Pack all that a process is told before it is given rows."""
    if not callable(function):
        raise BadFunction(f"expected a function of the rows, got {type(function).__name__}")
    packed = pack_function(function)
    listed = None if labels is None else pack_function(list(labels))
    path = [os.path.abspath(each) for each in sys.path]
    told = {"path": path, "modules": list(modules), "function": packed, "labels": listed}
    return pickle.dumps({**told, **limits, "shape": tuple(shape)})


def pack_part(seed: int, part: Any) -> list[bytes | memoryview]:
    """Pack a part; an empty pickle if that fails, so that its call fails as any other.

    A cell may raise what a stop raises: only a signal stops.
    """
    if type(part) is np.ndarray and part.flags.c_contiguous and _is_plain(part.dtype):
        described = marshal.dumps((part.dtype.str, part.shape))
        head = PART.pack(seed, len(described)) + described
        return [
            head,
            bytes(-(HEAD.size + len(head)) % ALIGNED),
            part.reshape(-1).view(np.uint8).data,
        ]
    if type(part) is np.ndarray and not part.dtype.hasobject:
        return [PART.pack(seed, 0), pickle.dumps(part, protocol=5)]
    with silence(), watch_stops() as is_stop:
        try:
            return [PART.pack(seed, 0), dump_apart(part)]
        except BaseException as cause:
            if not is_stop(cause):
                return [PART.pack(seed, 0)]
    raise KeyboardInterrupt


def _is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether a type of numbers is told by a short text."""
    return dtype.isbuiltin == 1 and dtype.kind in "biufc" and dtype.metadata is None
