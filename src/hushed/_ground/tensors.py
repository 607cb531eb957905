"""Answers of torch and JAX: moved to the host, and what their last bits depend on.

Neither is imported here: a function that answers with a tensor has done so itself. Whatever reads
the answer of a user's function fetches it here first.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, get_args

import numpy as np

Precision = Literal["float64", "float32", "float16", "bfloat16"]

# Distance from 1 to the next number. Whole numbers count as doubles: they are read exactly.
_EPSILONS: dict[str, float] = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
_MANY = 1000  # elements of a list that are looked at one by one
_DEVICE = " device"
_XLA = ("deterministic", "multi_thread_eigen", "fast_math", "autotune_level")


class _Here(threading.local):
    """Types of the answers that the present thread fetched, if they are noted."""

    noted: list[Precision] | None = None


_HERE = _Here()


def epsilon_of(dtype: Precision) -> float:
    """Distance from 1 to the next number of a type."""
    return _EPSILONS[dtype]


def fetch(raw: Any) -> Any:
    """Bring tensors and arrays of torch and JAX to the host, as NumPy arrays without gradients."""
    if _HERE.noted is not None:
        _HERE.noted += _list_types(raw)
    return _fetch(raw)


def _fetch(raw: Any) -> Any:
    if isinstance(raw, np.ndarray | np.generic | float | int):
        return raw
    if _is_tensor(raw):
        return _fetch_tensor(raw)
    if _is_of("jax", "Array", raw):
        found = np.asarray(raw)
        return found.astype(np.float32) if found.dtype.name == "bfloat16" else found
    if type(raw) in (list, tuple) and len(raw) <= _MANY:
        return [_fetch(each) for each in raw]
    return raw


def _is_tensor(raw: Any) -> bool:
    return _is_of("torch", "Tensor", raw)


def _is_of(library: str, name: str, raw: Any) -> bool:
    kind = getattr(sys.modules.get(library), name, None)
    return isinstance(kind, type) and isinstance(raw, kind)


def _fetch_tensor(tensor: Any) -> Any:
    here = tensor.detach().cpu().resolve_conj().resolve_neg()
    return (here.float() if str(here.dtype) == "torch.bfloat16" else here).numpy()


@contextmanager
def note_types() -> Iterator[Callable[[], Precision]]:
    """Note the types of all answers that this thread fetches within the block.

    Gives a function that names the coarsest; ``"float64"`` if none is coarser.
    """
    before, _HERE.noted = _HERE.noted, []
    noted = _HERE.noted
    try:
        yield lambda: max(["float64", *noted], key=_EPSILONS.__getitem__)
    finally:
        _HERE.noted = before


def _list_types(raw: Any) -> list[Precision]:
    if isinstance(raw, float | int | str | bytes):
        return []
    if type(raw) in (list, tuple) and len(raw) <= _MANY:
        return [name for each in raw for name in _list_types(each)]
    dtype = getattr(raw, "dtype", None)
    if dtype is None:
        try:
            dtype = np.asarray(raw).dtype
        except Exception:  # reading the answer says what is wrong with it
            return []
    name = str(getattr(dtype, "name", dtype)).lower().removeprefix("torch.")
    return [known for known in get_args(Precision) if known == name]


def is_written_to_unseen(packages: Collection[str]) -> bool:
    """Tell whether a library is used that takes read-only arrays for writable ones, and warns."""
    return "torch" in packages


def device_facts(packages: Collection[str]) -> dict[str, str]:
    """State devices and flags of the libraries that a function uses, if they are loaded."""
    found = {}
    for library, (device, flags) in _LIBRARIES.items():
        module = sys.modules.get(library)
        if library in packages and module is not None:
            found[library + _DEVICE] = _tell(device, module)
            found[f"{library} flags"] = _tell(flags, module)
    return found


def devices_in(facts: Mapping[str, str]) -> dict[str, str]:
    """Devices among some facts, by the name of the fact."""
    return {name: value for name, value in facts.items() if name.endswith(_DEVICE)}


def _tell(read: Callable[[Any], str], module: Any) -> str:
    try:
        return read(module)
    except Exception:  # another version, or half imported
        return "unknown"


def _torch_device(torch: Any) -> str:
    """Name the graphics processor, if this process has woken one."""
    if not torch.cuda.is_initialized():
        return "cpu"
    return f"cuda: {torch.cuda.get_device_name()}"


def _torch_flags(torch: Any) -> str:
    told = {
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "float32 matmul": torch.get_float32_matmul_precision(),
        "cudnn deterministic": torch.backends.cudnn.deterministic,
        "cudnn benchmark": torch.backends.cudnn.benchmark,
        "cudnn tf32": torch.backends.cudnn.allow_tf32,
        "CUBLAS_WORKSPACE_CONFIG": os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""),
    }
    return _join(told)


def _jax_device(jax: Any) -> str:
    first = jax.devices()[0]
    return first.platform if first.platform == "cpu" else f"{first.platform}: {first.device_kind}"


def _jax_flags(jax: Any) -> str:
    """State flags and cores: JAX has threads of its own, as many, which nothing here holds.

    Measured with 0.10 on processors: sums and means of 100,000 numbers round by the number of
    cores; NPROC=1 in the environment, before JAX is imported, makes it one.
    """
    told = {
        "x64": jax.config.jax_enable_x64,
        "matmul": jax.config.jax_default_matmul_precision,
        "cores": os.environ.get("NPROC") or _count_cores(),
        "XLA flags": " ".join(_list_xla_flags()),
    }
    return _join(told)


def _list_xla_flags() -> list[str]:
    """List the flags that change numbers; others may hold the names of folders."""
    given = os.environ.get("XLA_FLAGS", "").split()
    return [each for each in given if any(word in each for word in _XLA)]


def _count_cores() -> int:
    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known else os.cpu_count() or 1


def _join(told: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in told.items() if value != "")


_LIBRARIES: dict[str, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
    "torch": (_torch_device, _torch_flags),
    "jax": (_jax_device, _jax_flags),
}
