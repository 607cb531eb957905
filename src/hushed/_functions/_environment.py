"""What the last bits of a floating-point answer depend on: threads of BLAS, versions, processor.

A sum split among two threads rounds unlike one in a single thread. Wherever this package calls a
user's function, the thread pools of BLAS and OpenMP are therefore held to one thread.
"""

from __future__ import annotations

import platform
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hushed._ground.forks import do_in_forked_children
from hushed._ground.tensors import Precision, device_facts, epsilon_of

_ALWAYS = frozenset({"python", "numpy", "machine", "libc", "cpu"})
_BLAS = "blas of "

_Result = TypeVar("_Result")

_ROUNDINGS = 64  # measured: dot products of 20,000 to 2,000,000 rows differ by 0.8 to 2.0


class _Pools:
    """The thread pools of this process, and who holds them to one thread.

    BLAS pools have one limit for the process: the first that enters sets it, the last that leaves
    puts it back. OpenMP has one for each thread: every thread keeps its own.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.own = threading.local()
        self.inside = 0
        self.before: dict[str, tuple[Any, int]] = {}  # BLAS, by file: what to put back
        self.known: list[Any] = []
        self.modules = -1

    def found(self) -> list[Any]:
        """All pools; looked up again whenever modules were imported since."""
        with self.lock:
            if self.modules != len(sys.modules):
                from threadpoolctl import ThreadpoolController  # noqa: PLC0415

                self.known = ThreadpoolController().lib_controllers
                self.modules = len(sys.modules)
            return self.known

    def enter(self) -> None:
        pools = self.found()
        self.own.depth = getattr(self.own, "depth", 0) + 1
        with self.lock:
            self.inside += 1
            for pool in (each for each in pools if each.user_api == "blas"):
                self.before.setdefault(pool.filepath, (pool, pool.num_threads))
                _set(pool, 1)
        openmp = [each for each in pools if each.user_api == "openmp"]
        self.own.kept = [*getattr(self.own, "kept", []), [(p, p.num_threads) for p in openmp]]
        for pool in openmp:
            pool.set_num_threads(1)

    def leave(self) -> None:
        for pool, threads in self.own.kept.pop():
            pool.set_num_threads(threads)
        self.own.depth -= 1
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.put_back()

    def put_back(self) -> None:
        for pool, threads in self.before.values():
            _set(pool, threads)
        self.before.clear()

    def forked(self) -> None:
        """Only the thread that forked lives on: the others will never leave."""
        self.lock = threading.RLock()
        self.inside = getattr(self.own, "depth", 0)
        if not self.inside:
            self.put_back()


def _set(pool: Any, threads: int) -> None:
    """Set the number of threads of a BLAS pool.

    Recent versions of threadpoolctl obey one thread only, the first that asked, so that two do not
    disagree; here they are counted, and the others must be heard as well.
    """
    getattr(pool, "_real_set_num_threads", pool.set_num_threads)(threads)


_POOLS = _Pools()
do_in_forked_children(_POOLS.forked)


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold the thread pools of BLAS and OpenMP to one thread within the block."""
    _POOLS.enter()
    try:
        yield
    finally:
        _POOLS.leave()


def compute_alone(call: Callable[[], _Result]) -> _Result:
    """Compute with one thread, on public rows."""
    modules = len(sys.modules)
    with one_thread():
        known = {each.filepath for each in _POOLS.found()}
        result = call()
        if len(sys.modules) == modules:
            return result
        new = [each for each in _POOLS.found() if each.filepath not in known]
        wide = any(each.num_threads != 1 for each in new)
    if not wide:
        return result
    with one_thread():
        return call()


def facts(distributions: Iterable[str] = ()) -> dict[str, str]:
    """State what the last bits of an answer depend on here."""
    names = {name for name in distributions if name not in sys.stdlib_module_names}
    found = {name: version(name) for name in names} | device_facts(names)
    found |= {"python": platform.python_version(), "numpy": np.__version__}
    found |= {"machine": platform.machine(), "libc": _libc(), "cpu": _features()}
    for pool in _POOLS.found():
        if pool.user_api == "blas":
            owner = Path(pool.filepath).parent.name.removesuffix(".libs")
            told = (pool.internal_api, pool.version, getattr(pool, "architecture", ""))
            found[_BLAS + owner] = " ".join(str(each) for each in told if each)
    return dict(sorted(found.items()))


def packages_in(known: Mapping[str, str]) -> set[str]:
    """Name the packages whose versions are among some facts."""
    return {name for name in known.keys() - _ALWAYS if " " not in name}


@cache
def version(name: str) -> str:
    """Version of an installed package."""
    from importlib.metadata import PackageNotFoundError  # noqa: PLC0415
    from importlib.metadata import version as installed  # noqa: PLC0415

    try:
        return installed(name)
    except PackageNotFoundError:
        return str(getattr(sys.modules.get(name), "__version__", "unknown"))


@cache
def _libc() -> str:
    return " ".join(each for each in platform.libc_ver() if each) or platform.system()


@cache
def _features() -> str:
    """Processor features that NumPy found and was built to use."""
    try:
        core: Any = import_module("numpy._core._multiarray_umath")

        built = [*core.__cpu_baseline__, *core.__cpu_dispatch__]
        return " ".join(sorted(name for name in set(built) if core.__cpu_features__.get(name)))
    except (ImportError, AttributeError):
        return platform.processor()


def differences(
    then: Mapping[str, str],
    now: Mapping[str, str],
    whens: tuple[str, str] = ("then", "now"),
) -> tuple[str, ...]:
    """Say in which facts two environments differ."""
    return tuple(
        _describe_differences(name, then[name], now[name], whens)
        for name in sorted(then.keys() & now.keys())
        if then[name] != now[name]
    )


def _describe_differences(name: str, then: str, now: str, whens: tuple[str, str]) -> str:
    if name != "cpu":
        return f"{name} {then} {whens[0]}, {now} {whens[1]}"
    ours, theirs = set(then.split()), set(now.split())
    parts = [
        f"{' '.join(sorted(each))} {when}"
        for each, when in zip(
            (ours - theirs, theirs - ours), (f"only {each}" for each in whens), strict=True
        )
        if each
    ]
    return f"processor features: {', '.join(parts)}"


def rounding_limit(
    largest: float, shape: tuple[int, ...], norm: str = "sup", dtype: Precision = "float64"
) -> float:
    """Bound what counts as rounding between two computers."""
    dims = float(np.prod(shape))
    factor = {"l1": dims, "l2": dims**0.5, "range": 2.0}.get(norm, 1.0)
    return float(_ROUNDINGS * epsilon_of(dtype) * largest * factor)
