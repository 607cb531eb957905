"""Settings of Python and of installed libraries on which an answer may depend.

They belong to a thread or to the process, and so to no function: what looks at a function does not
see them. Those that other libraries keep elsewhere are not known here: `list_unwatched` names them.
"""

from __future__ import annotations

import decimal
import locale
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np

from hushed._functions._fingerprints import combine, look


def settings(libraries: Iterable[str] | None = None) -> dict[str, str]:
    """Read the settings, by name, of this thread; of libraries that are loaded, or of some."""
    found = {name: repr(read()) for name, read in _ALWAYS.items()}
    wanted = _LOADED if libraries is None else set(libraries)
    for library, (name, read) in _LOADED.items():
        module = sys.modules.get(library)
        if module is not None and library in wanted:
            found[name] = _read(read, module)
    return found


def reset(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Name what is set to something else now; a library that was loaded since has no before."""
    return tuple(name for name in sorted(before.keys() & now.keys()) if before[name] != now[name])


def list_unwatched(packages: Iterable[str]) -> tuple[str, ...]:
    """Name the installed packages, of some, whose settings are not known here."""
    return tuple(sorted(set(packages) - {*_LOADED, "numpy", "hushed"}))


def _read(read: Callable[[Any], Any], module: Any) -> str:
    try:
        return repr(read(module))
    except Exception:  # another version, or half imported
        return ""


def _decimals() -> list[Any]:
    """Read the context of this thread, and those that new threads and contexts are copies of."""
    kept = (decimal.DefaultContext, decimal.BasicContext, decimal.ExtendedContext)
    return [_decimal(each) for each in (decimal.getcontext(), *kept)]


def _decimal(context: decimal.Context) -> list[Any]:
    traps = sorted(kind.__name__ for kind, trapped in context.traps.items() if trapped)
    return [context.prec, context.rounding, context.Emin, context.Emax, context.clamp, traps]


def _errcall() -> str:
    """Digest what NumPy calls in place of a warning."""
    found = np.geterrcall()
    called = found is not None and not {"call", "log"}.isdisjoint(np.geterr().values())
    return combine(look(found)) if called else ""


def _errors() -> list[Any]:
    """Which warnings are errors: only that changes what a function does."""
    filters: list[Any] = list(warnings.filters)
    return [
        (getattr(text, "pattern", text), kind.__qualname__, getattr(place, "pattern", place), line)
        for action, text, kind, place, line in filters
        if action == "error"
    ]


def _pandas(module: Any) -> list[Any]:
    """Options of how pandas computes; not of how it prints.

    They are read below `pandas.options`, which warns of some.
    """
    held = module._config.config._global_config
    groups = {group: dict(held.get(group, {})) for group in ("compute", "mode", "future")}
    if not _errors():  # where warnings are errors, how it warns changes what functions answer
        for name in ("performance_warnings", "sim_interactive"):
            groups["mode"].pop(name, None)
        if groups["mode"].get("chained_assignment") != "raise":
            groups["mode"].pop("chained_assignment", None)
    return [(group, sorted(found.items())) for group, found in groups.items()]


def _sklearn(module: Any) -> list[Any]:
    shown = {"display", "print_changed_only"}
    return sorted(item for item in module.get_config().items() if item[0] not in shown)


def _polars(module: Any) -> list[Any]:
    """Options of how Polars computes; not of how it prints."""
    printing = ("set_fmt", "set_tbl", "set_ascii", "set_float", "set_verbose")
    digits = {"set_thousands_separator", "set_decimal_separator", "set_trim_decimal_zeros"}
    return [
        each
        for each in sorted(module.Config.state().items())
        if not each[0].startswith(printing) and each[0] not in digits
    ]


def _torch(module: Any) -> list[Any]:
    """Read what tensors are made of and how they are multiplied; one thread is held elsewhere.

    One by one: versions differ in what may be read together.
    """
    return [
        *(_read(methodcaller(name), module) for name in _TORCH),
        *(_read(attrgetter(f"backends.{path}"), module) for path in _TORCH_BACKENDS),
    ]


_TORCH = (
    "get_default_dtype",
    "get_default_device",
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
    "is_grad_enabled",
)
_TORCH_BACKENDS = (
    "cuda.matmul.allow_tf32",
    "cudnn.allow_tf32",
    "cudnn.deterministic",
    "cudnn.benchmark",
    "cudnn.enabled",
)


def _mpmath(mpmath: Any) -> list[Any]:
    """Precisions, how numbers are rounded, and whether a root of -1 is an error."""
    used = mpmath.mp
    return [used.prec, mpmath.iv.prec, getattr(used, "rounding", "n"), used.trap_complex]


_ALWAYS: dict[str, Callable[[], Any]] = {
    "the decimal context": _decimals,
    "the locale": lambda: locale.setlocale(locale.LC_ALL),
    "numpy.geterr()": lambda: sorted(np.geterr().items()),
    "numpy.geterrcall()": _errcall,
    "numpy.getbufsize()": np.getbufsize,
    "the time zone": lambda: (time.tzname, time.timezone, time.altzone),
    "the longest integers in texts": sys.get_int_max_str_digits,
    "the limit of recursion": sys.getrecursionlimit,
    "the warnings that are errors": _errors,
}
_LOADED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "pandas": ("the options of pandas", _pandas),
    "sklearn": ("the configuration of sklearn", _sklearn),
    "polars": ("polars.Config", _polars),
    "torch": ("the settings of torch", _torch),
    "jax": ("jax.config", lambda jax: sorted(jax.config.values.items())),
    "keras": ("the floats of keras", lambda keras: (keras.config.floatx(), keras.config.epsilon())),
    "mpmath": ("the settings of mpmath", _mpmath),
    "xarray": ("the options of xarray", lambda xarray: sorted(xarray.get_options().items())),
}
