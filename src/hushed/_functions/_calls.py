"""A user's function: called with care, its answer checked and read as numbers."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushed._functions._answer_names import refuse_other_names, split_names
from hushed._functions._environment import compute_alone
from hushed._functions._silence import silence
from hushed._functions._turns import Turn
from hushed._ground.calls import called_as
from hushed._ground.exact import moved_by_rounding
from hushed._ground.forks import ForkSafeLock
from hushed._ground.own_words import is_own
from hushed._ground.stops import watch_stops
from hushed._ground.tensors import fetch
from hushed._ground.types import Floats
from hushed._rows import _containers as containers
from hushed._rows._owned import copy_rows
from hushed.errors import BadFunction, RandomFunction

Answer = TypeVar("Answer")

# One thread at a time may have the global generators seeded for its call.
_SEEDED = ForkSafeLock()


def answer(
    function: Callable[[Any], Any], rows: Any, *, private: bool, names: tuple[str, ...] = ()
) -> Floats:
    """Call a function on rows and read its answer as numbers, which must have these names."""
    numbers, found = answer_named(function, rows, private=private)
    if names:
        refuse_other_names(found, names, private=private)
    return numbers


def answer_named(
    function: Callable[[Any], Any], rows: Any, *, private: bool
) -> tuple[Floats, tuple[str, ...]]:
    """Call a function on rows and read its answer as numbers, with their names if it gives some."""
    with Turn(function):
        if private:
            return read_privately(function, rows, _read_answer)
        try:
            raw = function(rows)
        except (Exception, SystemExit) as cause:
            raise _report_public_failure(cause) from cause
        return _read_answer(raw)


def read_privately(
    function: Callable[[Any], Any], rows: Any, read: Callable[[Any], Answer]
) -> Answer:
    """Call a function on private rows and read its answer, which may speak then, or as it goes."""
    raised, problem = "", None
    with silence(), watch_stops() as is_stop:
        try:
            return read(call_privately(function, rows))
        except BaseException as cause:  # what its attributes or its conversion raise may hold one
            if is_own(cause):
                problem = cause.with_traceback(None)  # whose frames hold the answer
            raised = "" if is_stop(cause) else public_name(type(cause), "an exception")
    if problem is not None:
        raise problem
    if not raised:
        raise KeyboardInterrupt
    raise BadFunction(
        f"the answer on the private rows cannot be read: it raised {raised}; its message is "
        "withheld, because it may contain a private value"
    )


def call_privately(function: Callable[[Any], Any], rows: Any) -> Any:
    """Call a function on private rows; what it prints, warns or raises may hold a private value.

    A `KeyboardInterrupt` that it raises itself is a failure as others are: a stop may be repeated
    at no cost, and would tell of the rows each time.
    """
    # Errors are raised outside of the handlers, so that they do not carry the first as context.
    raised = ""
    with silence(), watch_stops() as is_stop:  # what it holds as it fails may speak when it goes
        try:
            return function(rows)
        except BaseException as cause:
            raised = "" if is_stop(cause) else _say_failure(cause)
    if not raised:
        raise KeyboardInterrupt
    raise BadFunction(
        f"the function {raised} on the private rows; its message is withheld, "
        "because it may contain a private value"
    )


def _say_failure(cause: BaseException) -> str:
    """Say in what way a function failed; an average over blocks reads answers of parts itself."""
    if type(cause) is BadFunction:  # its words may repeat those of the function
        return (
            "failed, or gave a part an answer that is no finite number, or of another shape than "
            "the others,"
        )
    return f"raised {public_name(type(cause), 'an exception')}"


def _read_answer(raw: Any) -> tuple[Floats, tuple[str, ...]]:
    if isinstance(raw, float):  # the common case
        return _numbers(raw), ()
    plain, names = split_names(raw)
    numbers = _numbers(plain)
    if type(raw) is dict and numbers.ndim != 1:
        raise BadFunction("the function returned a dict of arrays; it must hold one number a name")
    return numbers, names


def public_name(kind: type, otherwise: str) -> str:
    """Name a type, if it is surely not made up from the rows."""
    if kind is type(None):
        return kind.__name__
    library = kind.__module__.partition(".")[0]
    known = library in ("builtins", "numpy") and kind.__module__ in sys.modules
    found = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    return kind.__name__ if known and found else otherwise


def _report_public_failure(cause: BaseException) -> BadFunction:
    if isinstance(cause, ValueError) and "read-only" in str(cause):
        return BadFunction("the function changes the rows it is given; let it work on a copy")
    return BadFunction(f"the function raised {type(cause).__name__} on public rows: {cause}")


def _numbers(raw: Any) -> Floats:
    if isinstance(raw, float):  # the common case, numpy.float64 included
        if math.isfinite(raw):
            return np.array(raw)
        raise BadFunction("the function returned NaN or infinity; it must return finite numbers")
    if callable(raw):
        raise BadFunction(
            "the function returned a function; wrap it as hs.on_lattice(f, lattice=..., dims=...) "
            "to measure and release it by the Bernstein mechanism"
        )
    if raw is None or isinstance(raw, str | bytes | Mapping | set) or np.ma.is_masked(raw):
        what = "masked values" if np.ma.is_masked(raw) else public_name(type(raw), "an object")
        raise BadFunction(
            f"the function returned {what}; it must return a number or an array of numbers"
        )
    raw, read = _read(raw)
    if read is None:
        raise BadFunction(
            f"the function returned {public_name(type(raw), 'an object')}, which NumPy cannot "
            "read as one array; join parts of different shapes with np.concatenate, and move what "
            "lies on a device to the host"
        )
    if read.dtype.kind not in "biuf" or read.size == 0:
        # Not the whole dtype, whose width is that of the longest text.
        what = "nothing" if read.size == 0 else f"values of type {read.dtype.type.__name__}"
        raise BadFunction(
            f"the function returned {what}; it must return a number or an array of numbers"
        )
    if moved_by_rounding(raw, read):
        raise BadFunction(
            "the function returned integers beyond 2**53, or long doubles: reading them as doubles "
            "would move them; divide them by a constant, or round them within the function"
        )
    numbers = np.array(read, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise BadFunction("the function returned NaN or infinity; it must return finite numbers")
    return numbers


def _read(raw: Any) -> tuple[Any, NDArray[Any] | None]:
    """Answer on the host, and an array of it; None if that fails: the reason may be private."""
    try:
        here = fetch(raw)
        return here, np.asarray(here)
    except (Exception, SystemExit):
        return raw, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one public table told about a function."""

    shape: tuple[int, ...]  # shape of the answer
    # True if the function fails on read-only arrays, though it leaves writable ones unchanged.
    fresh: bool
    answer: Floats  # the answer itself
    names: tuple[str, ...] = ()  # of its numbers, where it gives some


def probe(
    function: Callable[[Any], Any],
    rows: Any,
    *,
    private: bool = False,
    writable: Callable[[], bool] = lambda: False,
) -> Probe:
    """Call a function on public rows a few times, to learn its shape and its manners.

    It is not tried on read-only arrays if, when it was called, ``writable`` says so.
    """
    if not callable(function):
        raise BadFunction(f"expected a function of the rows, got {type(function).__name__}")
    first, names = compute_alone(lambda: _first_answer(function, rows, private=private))
    second = compute_alone(lambda: answer(function, copy_rows(rows), private=private, names=names))
    if first.shape != second.shape or not np.array_equal(first, second):
        raise RandomFunction(
            "the function gave two answers on the same rows: it draws random numbers of its own, "
            "or handles them in no fixed order (Polars: maintain_order=True); fix its seed "
            "(random_state=0, say), or wrap it as hs.fixed_seed(f, seed=0) if it uses the global "
            "generators of random or numpy.random"
        )
    fresh = False
    if isinstance(rows, np.ndarray) and writable():
        fresh = True
    elif isinstance(rows, np.ndarray):
        locked = np.concatenate([rows, rows[:1]])[: len(rows)]  # a part of a table, as sampled
        locked.flags.writeable = False
        try:
            again = compute_alone(lambda: answer(function, locked, private=private))
        except BadFunction:
            fresh = True
        else:
            if not np.array_equal(first, again):
                raise BadFunction(
                    "the function gives another answer where it must not write to its rows, or "
                    "where they are part of a larger array: let it look at the values alone. If it "
                    "draws random numbers of its own, fix its seed (random_state=0, say)"
                )
    return Probe(shape=first.shape, fresh=fresh, answer=first, names=names)


def _first_answer(
    function: Callable[[Any], Any], rows: Any, *, private: bool
) -> tuple[Floats, tuple[str, ...]]:
    """Answer on a copy of the rows, which must come back unchanged, whatever the answer is."""
    given = copy_rows(rows)
    changed = "the function changes the rows it is given; let it work on a copy"
    try:
        first = answer_named(function, given, private=private)
    except BadFunction as bad:
        if not containers.is_same(given, rows):
            raise BadFunction(changed) from bad
        raise
    if not containers.is_same(given, rows):
        raise BadFunction(changed)
    return first


@dataclass(frozen=True, slots=True)
class FixedSeed:
    """A function that sees the same global random numbers at every call."""

    # Takes rows; may use the generators of `random` and `numpy.random`.
    function: Callable[[Any], Any]
    seed: int  # seed of both, set before each call; their state is put back afterwards

    def __call__(self, rows: Any) -> Any:
        """Call the function with both generators seeded."""
        with _SEEDED:
            kept = random.getstate(), np.random.get_state()  # noqa: NPY002
            random.seed(self.seed)
            np.random.seed(self.seed)  # noqa: NPY002
            try:
                return self.function(rows)
            finally:
                random.setstate(kept[0])
                np.random.set_state(kept[1])  # noqa: NPY002


@called_as("hs.fixed_seed(f, seed=1)")
def fixed_seed(function: Callable[[Any], Any], *, seed: int = 0) -> FixedSeed:
    """Make a function that uses global randomness repeatable.

    Parameters
    ----------
    function : callable
        Takes rows; may use the global generators of `random` and `numpy.random`. A generator
        that the function makes for itself is beyond reach: give that one a seed.
    seed : int, default 0
        Seed for every call. The released answer is that of this one seed.

    Returns
    -------
    FixedSeed
        The wrapped function.

    Examples
    --------
    >>> import random
    >>> steady = fixed_seed(lambda rows: random.random(), seed=1)
    >>> steady([1, 2]) == steady([1, 2])
    True
    """
    return FixedSeed(function, seed)
