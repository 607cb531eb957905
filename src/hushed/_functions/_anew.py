"""A new process, in which a function was asked nothing yet."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from hushed._functions._fingerprints.code import collect_names, is_library, list_texts
from hushed._functions._sent import filtered_as, load_filters, pack_filters

_MOST_BYTES = 2**28
_ATTEMPTS = 2
_CACHE = type(functools.lru_cache(len))


def pack(function: Callable[[Any], Any]) -> bytes | None:
    """Pickle a function as it is now, its caches of `functools` empty; None if that fails.

    With it go the globals that it names by a text alone, unless they cannot be sent.
    """
    return _pack(function, by_text=True) or _pack(function, by_text=False)


def _pack(function: Callable[[Any], Any], *, by_text: bool) -> bytes | None:
    import cloudpickle  # noqa: PLC0415

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            if type(value) is _CACHE and not is_library(value.__module__):
                return _cached, (value.cache_parameters(), value.__wrapped__)
            found = super().reducer_override(value)
            if by_text and type(value) is FunctionType and type(found) is tuple:
                found[2][1]["__globals__"].update(_list_named(value))
            return found

    content = _Short()
    try:
        Pickler(content).dump(function)
    except Exception:
        return None
    return content.getvalue()


def _list_named(function: FunctionType) -> dict[str, Any]:
    """List the globals named by a text, as in ``globals()["x"]``, and modules without a file."""
    names, known = collect_names(function.__code__), function.__globals__
    texts = list_texts(function)
    found = {each: known[each] for each in texts if each in known}
    for name in (names.imported | names.texts | texts) & sys.modules.keys():
        held = vars(sys.modules[name])
        unsaved = name in ("__main__", known.get("__name__")) or not held.get("__file__")
        if unsaved and not is_library(name):
            open_to_all = names.by_text and name != "__main__"  # as all of it is watched
            used = held.keys() if open_to_all else (names.all | names.texts) & held.keys()
            given = {each: held[each] for each in used if each[:2] != "__"}
            found[f"the module {name}"] = _Module(name, given)
    return found


class _Module:
    """What a function uses of a module that the new process cannot import."""

    def __init__(self, name: str, held: dict[str, Any]) -> None:
        self.name, self.held = name, held

    def __reduce__(self) -> Any:
        return _fill_module, (self.name, self.held)


def _fill_module(name: str, held: dict[str, Any]) -> None:
    vars(sys.modules.setdefault(name, ModuleType(name))).update(held)


class _Short(io.BytesIO):
    """A file that does not take very much."""

    def write(self, part: Any) -> int:
        if self.tell() + memoryview(part).nbytes > _MOST_BYTES:
            raise OSError("too large")
        return super().write(part)


def _cached(settings: dict[str, Any], function: Callable[..., Any]) -> Any:
    return functools.lru_cache(**settings)(function)


def call_anew(call: Callable[..., Any], *given: Any, seconds: float) -> Any:
    """Give the result of a call in a new process; None if it cannot be had there in time.

    A process that could not start, or ended, did so by chance, for all that is known: it is tried
    once more.
    """
    import cloudpickle  # noqa: PLC0415
    from joblib.externals.loky import BrokenProcessPool  # noqa: PLC0415

    try:
        payload = cloudpickle.dumps((call, given, pack_filters(), os.getpid()))
    except Exception:
        return None
    for _ in range(_ATTEMPTS):
        try:
            return _run_anew(payload, seconds)
        except TimeoutError:  # an error of the system, too, and no chance
            return None
        except (BrokenProcessPool, OSError):
            continue
        except Exception:  # it cannot be loaded there, or fails
            return None
    return None


def _run_anew(payload: bytes, seconds: float) -> Any:
    """Start a process, and end it once it has answered, or does not."""
    from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415

    executor = ProcessPoolExecutor(1)
    try:
        return executor.submit(_call, payload).result(seconds)
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _call(payload: bytes) -> Any:
    """Call in silence: what is said there was said, or will be, in the process of the caller."""
    import cloudpickle  # noqa: PLC0415

    with open(os.devnull, "w") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
    call, given, filters, sender = cloudpickle.loads(payload)
    with filtered_as(None if sender == os.getpid() else load_filters(filters)):
        return call(*given)
