"""Whatever can be audited, as one thing: draw so many outputs on these rows."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any, Literal

import numpy as np

from hushed._ground.printing import name_count
from hushed.auditing._programs import Command, Raised
from hushed.engines._choice import Workers
from hushed.errors import BadFunction

Kind = Literal["batch", "scalar"]

_DEPTH = 6
_UNCHANGEABLE = frozenset({bool, int, float, complex, str, bytes, type(None)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A mechanism in the one form that the audit calls.

    `call` is a function of (rows, rng, size) for a batch, of (rows, rng) or (rows) otherwise. One
    that takes no generator (`takes_rng`) is trusted to draw its own fresh entropy.
    """

    call: Callable[..., Any]
    kind: Kind
    takes_rng: bool

    def draw(self, rows: Any, rng: np.random.Generator, size: int) -> Any:
        """Draw independent outputs; a run that raised gives `Raised`.

        Each call has rows of its own, or an array that is read-only: one that changes its rows
        would leave the same ones to all later runs, whichever table they came from.
        """
        drawn = self.stream(rows, rng, size)
        return drawn.copy() if isinstance(drawn, np.ndarray) else list(drawn)

    def stream(self, rows: Any, rng: np.random.Generator, size: int) -> Any:
        """Draw the same, one by one: each is to be read before the next one may change it."""
        give = _choose_copier(rows)
        if self.kind == "batch":
            return self._draw_batch(give(), rng, size)
        return (self._draw_one(give(), rng) for _ in range(size))

    def _draw_one(self, rows: Any, rng: np.random.Generator) -> Any:
        try:
            return self.call(rows, rng) if self.takes_rng else self.call(rows)
        except (BadFunction, KeyboardInterrupt):
            raise
        except BaseException as cause:  # asyncio and generators raise what is no Exception
            _refuse_changes(cause)
            return Raised(type(cause).__name__, str(cause))

    def _draw_batch(self, rows: Any, rng: np.random.Generator, size: int) -> Any:
        try:
            outputs = self.call(rows, rng, size)
        except (BadFunction, KeyboardInterrupt):
            raise
        except BaseException as cause:  # asyncio and generators raise what is no Exception
            _refuse_changes(cause)
            if size == 1:
                return [Raised(type(cause).__name__, str(cause))]
            raise BatchRaised(type(cause).__name__, size) from cause
        if not isinstance(outputs, np.ndarray | list | tuple) or np.ndim(outputs) == 0:
            raise BadFunction(
                "a batch mechanism must return an array or a list of "
                f"{name_count(size, 'output')}, got {type(outputs).__name__}"
            )
        if len(outputs) != size:
            raise BadFunction(
                f"a batch mechanism asked for {size} outputs returned {len(outputs)}; the first "
                "axis must be the run"
            )
        return outputs if isinstance(outputs, np.ndarray) else list(outputs)

    def one_at_a_time(self) -> Source:
        """Call a batch mechanism with a size of 1, so that a run that raises is one outcome."""
        call = self.call

        def single(rows: Any, rng: np.random.Generator) -> Any:
            return call(rows, rng, 1)[0]

        return Source(call=single, kind="scalar", takes_rng=True)


class BatchRaised(BadFunction):
    """A batch mechanism raised somewhere among many runs."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(
            f"the batch mechanism raised {name} among {size} runs, and which of them failed cannot "
            "be told; return None for a run that fails, or audit one run at a time",
            parameter="batch",
            hint="say batch=False",
        )
        self.name = name
        self.size = size

    def __reduce__(self) -> tuple[object, ...]:
        """Rebuild from the arguments, so that the error survives a trip between processes."""
        return (BatchRaised, (self.name, self.size))


def _refuse_changes(cause: BaseException) -> None:
    if isinstance(cause, ValueError) and "read-only" in str(cause):
        raise BadFunction(
            "the mechanism changes the rows it is given; let it work on a copy"
        ) from cause


def _choose_copier(rows: Any) -> Callable[[], Any]:
    """Choose how each call gets rows that no other call can have changed."""
    if isinstance(rows, np.ndarray) and not rows.dtype.hasobject:
        plain = type(rows) is np.ndarray and rows.nbytes
        # Over bytes nobody can unlock it.
        held = np.frombuffer(rows.tobytes(), rows.dtype).reshape(rows.shape) if plain else None
        return lambda: _lock(rows.copy()) if held is None else held.view()
    if type(rows) is list and _UNCHANGEABLE.issuperset(map(type, rows)):
        return rows.copy
    with suppress(Exception):  # what pickle refuses
        written = pickle.dumps(rows)  # quicker, and copies what lies in the cells of frames, too
        pickle.loads(written)  # noqa: S301
        return lambda: _lock(pickle.loads(written))  # noqa: S301
    return lambda: _lock(copy.deepcopy(rows))


def _lock(rows: Any) -> Any:
    if isinstance(rows, np.ndarray):
        rows.flags.writeable = False
    return rows


def adapt_mechanism(mechanism: Any, *, batch: bool, workers: Workers) -> Source:
    """Bring a mechanism into the form that the audit calls.

    A mechanism of this library is run as ``mechanism.draw(rows)``, so that the rows are the exact
    answer. Refused is what cannot be called so, or carries the state of a random generator into
    worker processes.
    """
    if isinstance(mechanism, Command):
        return Source(call=mechanism.draw, kind="batch", takes_rng=True)
    draw = getattr(mechanism, "draw", None)
    if callable(draw) and not callable(mechanism):
        return Source(call=draw, kind="scalar", takes_rng=False)
    if not callable(mechanism):
        raise BadFunction(
            f"expected a mechanism (rows, rng) -> output, a Command or an object with a method "
            f"draw, got {type(mechanism).__name__}"
        )
    if type(mechanism).__module__.partition(".")[0] == "opendp":
        return Source(call=mechanism, kind="scalar", takes_rng=False)
    found = find_carried_generator(mechanism)
    if found and workers != 1:
        raise BadFunction(
            f"the mechanism carries a random generator ({found}); every worker would get a copy "
            "and repeat the same numbers. Take the generator as second argument: "
            "mechanism(rows, rng)",
            parameter="workers",
            hint="or use workers=1",
        )
    return _adapt_function(mechanism, batch=batch)


def name_mechanism(mechanism: Any) -> str:
    """Name a mechanism, in a list."""
    return str(getattr(mechanism, "__qualname__", type(mechanism).__name__))


def _adapt_function(mechanism: Callable[..., Any], *, batch: bool) -> Source:
    wanted = _count_positional(mechanism)
    if batch:
        if wanted is not None and not wanted[0] <= 3 <= wanted[1]:
            raise BadFunction(
                "a batch mechanism takes (rows, rng, size)",
                parameter="batch",
                hint="say batch=False",
            )
        return Source(call=mechanism, kind="batch", takes_rng=True)
    if wanted is None or wanted[0] <= 1 == wanted[1]:
        return Source(call=mechanism, kind="scalar", takes_rng=False)
    if wanted[0] <= 2 <= wanted[1]:
        return Source(call=mechanism, kind="scalar", takes_rng=True)
    raise BadFunction(
        f"a mechanism takes (rows, rng) or (rows), this one needs {wanted[0]} arguments",
        parameter="batch",
        hint="say batch=True if the third is a size" if wanted[0] == 3 else "",
    )


def _count_positional(function: Callable[..., Any]) -> tuple[int, int] | None:
    """Fewest and most positional arguments; None if Python cannot tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        most = 10
    else:
        most = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    least = sum(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
        for p in parameters
    )
    return least, most


def find_carried_generator(function: Callable[..., Any]) -> str | None:
    """Find a generator with state of its own in what a function refers to, and say where.

    It would be copied into every worker. Closures, defaults, attributes, containers and the global
    names used are searched, through the Python functions they lead to.

    Notes
    -----
    Sources of operating-system entropy (`random.SystemRandom`) have no state and are fine, as
    are the global generators of `random` and `numpy.random`, which every process seeds anew.
    """
    return _find_generator(function, "the mechanism", _DEPTH, set())


def _find_generator(value: Any, where: str, depth: int, seen: set[int]) -> str | None:
    if isinstance(value, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        return f"{type(value).__name__} in {where}"
    if isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        return f"Random in {where}"
    if depth == 0 or id(value) in seen:
        return None
    seen.add(id(value))
    for name, part in _list_parts(value):
        found = _find_generator(part, f"{name} of {where}" if name else where, depth - 1, seen)
        if found:
            return found
    return None


def _list_parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, FunctionType):
        yield from _list_function_parts(value)
    elif isinstance(value, MethodType):
        yield from (("", value.__func__), ("the object", value.__self__))
    elif isinstance(value, BuiltinMethodType):  # rng.normal, say
        yield "the object", value.__self__
    elif isinstance(value, functools.partial):
        yield from (("", value.func), ("the bound arguments", (value.args, value.keywords)))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from (("", item) for item in list(value)[:100])
    elif isinstance(value, dict):
        yield from ((f"entry {key!r}", item) for key, item in list(value.items())[:100])
    elif _is_plain_object(value):
        yield from _list_object_parts(value)


def _list_object_parts(value: Any) -> Iterator[tuple[str, Any]]:
    names = getattr(type(value), "__slots__", ())
    held = dict(getattr(value, "__dict__", {}))
    held |= {n: getattr(value, n) for n in names if isinstance(n, str) and hasattr(value, n)}
    yield from ((f"attribute {name}", item) for name, item in held.items())
    call = vars(type(value)).get("__call__")
    if isinstance(call, FunctionType):
        yield "the method __call__", call


def _is_plain_object(value: Any) -> bool:
    module = type(value).__module__.partition(".")[0]
    return not isinstance(value, type) and module not in ("builtins", "numpy", "types", "opendp")


def _list_function_parts(function: FunctionType) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"variable {name}", cell.cell_contents
        except ValueError:  # the cell is empty: not defined yet
            continue
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "a default value", value
    if (function.__module__ or "").partition(".")[0] in ("numpy", "scipy", "random"):
        return
    for name in _list_names(code):
        if name in function.__globals__:
            yield f"global {name}", function.__globals__[name]


def _list_names(code: CodeType) -> set[str]:
    """Names used in a function, and in the functions written inside it."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _list_names(constant)
    return found
