"""A new process, in which a function was asked nothing yet."""

from __future__ import annotations

import functools
import io
import os
import warnings
from collections.abc import Callable
from typing import Any

from hushed._functions._fingerprints.code import is_library
from hushed._functions._sent import filtered_as

_MOST_BYTES = 2**28
_CACHE = type(functools.lru_cache(len))


def pack(function: Callable[[Any], Any]) -> bytes | None:
    """Pickle a function as it is now, its caches of `functools` empty; None if that fails."""
    import cloudpickle  # noqa: PLC0415

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            if type(value) is _CACHE and not is_library(value.__module__):
                return _cached, (value.cache_parameters(), value.__wrapped__)
            return super().reducer_override(value)

    content = _Short()
    try:
        Pickler(content).dump(function)
    except Exception:
        return None
    return content.getvalue()


class _Short(io.BytesIO):
    """A file that does not take very much."""

    def write(self, part: Any) -> int:
        if self.tell() + memoryview(part).nbytes > _MOST_BYTES:
            raise OSError("too large")
        return super().write(part)


def _cached(settings: dict[str, Any], function: Callable[..., Any]) -> Any:
    return functools.lru_cache(**settings)(function)


def call_anew(call: Callable[..., Any], *given: Any) -> Any:
    """Give the result of a call in a new process; None if it cannot be had there."""
    import cloudpickle  # noqa: PLC0415
    from joblib.externals.loky import ProcessPoolExecutor  # noqa: PLC0415

    try:
        payload = cloudpickle.dumps((call, given, list(warnings.filters), os.getpid()))
        executor = ProcessPoolExecutor(1)
    except Exception:
        return None
    try:
        return executor.submit(_call, payload).result()
    except Exception:  # it cannot be loaded there, or ends the process
        return None
    finally:
        executor.shutdown(wait=True, kill_workers=True)


def _call(payload: bytes) -> Any:
    import cloudpickle  # noqa: PLC0415

    call, given, filters, sender = cloudpickle.loads(payload)
    with filtered_as(None if sender == os.getpid() else filters):
        return call(*given)
