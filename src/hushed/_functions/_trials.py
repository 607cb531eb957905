"""Independent seeded trials in parallel: the same answer for any number of workers."""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushed._checks import is_whole, require_count
from hushed._functions._environment import compute_alone
from hushed._types import Floats
from hushed.errors import BadFunction, ParameterError, WorkerLost

# Fraction of the period between two trials: the golden ratio, so that streams stay far apart.
_STRIDE = 0x9E3779B97F4A7C15F39CC0605CEDC835
_PERIOD = 2**128
_CHUNK_SECONDS = 0.2
_WORTH_WORKERS_SECONDS = 1.0
_ATTEMPTS = 3


def seed_from(rng: int | np.random.Generator | None) -> int:
    """Integer seed from what a caller may hand in."""
    if rng is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(rng, np.random.Generator):
        return int.from_bytes(rng.bytes(16), "little")
    if not is_whole(rng) or rng < 0:
        raise ParameterError(
            f"seed must be an integer of 0 or more or a Generator, got {rng!r}", parameter="seed"
        )
    return int(rng)


class Streams:
    """The generators of consecutive trials; `trial` is the number of the last one handed out.

    Parameters
    ----------
    seed : int
        Seed of the whole run.
    start, stop : int
        First trial, and one past the last.
    """

    __slots__ = ("_bits", "_generator", "_left", "_state", "_stride", "trial")

    def __init__(self, seed: int, start: int, stop: int) -> None:
        bits = np.random.PCG64DXSM(np.random.SeedSequence(seed))
        bits.advance(start * _STRIDE % _PERIOD)
        self._state: Any = bits.state
        self._stride = _stride(bits)
        self._bits, self._generator = bits, np.random.Generator(bits)
        self.trial, self._left = start - 1, stop - start

    def __iter__(self) -> Streams:
        """Return itself."""
        return self

    def __next__(self) -> np.random.Generator:
        """Move the generator to the stream of the next trial."""
        if self._left <= 0:
            raise StopIteration
        self._left -= 1
        self.trial += 1
        self._bits.state = self._state
        multiplier, increment = self._stride
        inner = self._state["state"]
        inner["state"] = (multiplier * inner["state"] + increment) % _PERIOD
        return self._generator


def streams(seed: int, start: int, stop: int) -> Streams:
    """Move one generator through the streams of the trials from ``start`` up to ``stop``."""
    return Streams(seed, start, stop)


Evaluate = Callable[[Streams], Floats]
"""Consumes one generator for each trial, gives one row of results for each, stacked.

It may be asked for the same trials again, and must then give the same."""


class KeptTrials(Protocol):
    """Results of trials that need not be run again, and where those of others are kept."""

    def spans(self, first: int, stop: int) -> Iterator[tuple[int, Floats]]: ...
    def add(self, first: int, values: Floats) -> None: ...


Alike = Callable[[Any], bool]
"""Asked in a worker: does what was loaded there do the same as here?"""


def _stride(bits: np.random.PCG64DXSM) -> tuple[int, int]:
    """Multiplier and increment of one stride, which is an affine map of the 128-bit state.

    Computing the next state this way costs a tenth of asking the generator to advance. The map is
    measured on the generator itself at two states, so no constant of its algorithm is repeated.
    """
    kept: Any = bits.state
    images = []
    for start in (0, 1):
        moved: Any = {**kept, "state": {**kept["state"], "state": start}}
        bits.state = moved
        bits.advance(_STRIDE)
        images.append(int(bits.state["state"]["state"]))
    bits.state = kept
    return (images[1] - images[0]) % _PERIOD, images[0]


def run_trials(
    evaluate: Evaluate,
    trials: int,
    *,
    seed: int,
    first: int = 0,
    workers: int | None = None,
    report: Callable[[int], None] | None = None,
    alike: Alike | None = None,
    kept: KeptTrials | None = None,
) -> Floats:
    """Run seeded trials, here or in worker processes; those that are kept are not run again."""
    workers = None if workers is None else require_count("workers", workers)
    told = report or (lambda _: None)
    asked = workers if workers is not None else _read_configured_jobs()
    jobs = _all_cores() if asked is None else asked
    worth = math.inf if jobs == 1 else _WORTH_WORKERS_SECONDS if asked is None else 0.0
    found: list[Floats] = []
    position, stop = first, first + trials
    pieces = list(kept.spans(first, stop)) if kept else []
    for start, values in [*pieces, (stop, np.empty(0))]:
        gap = _Gap(evaluate, alike, seed, position, start, kept, told)
        found += gap.run(jobs, worth) if position < start else []
        if len(values):
            found.append(values)
            told(len(values))
        position = start + len(values)
    return np.concatenate(found) if found else np.empty(0)


@dataclass(frozen=True, slots=True)
class _Gap:
    """Trials that are not kept, between two that are."""

    evaluate: Evaluate
    alike: Alike | None
    seed: int
    first: int
    stop: int
    kept: KeptTrials | None
    told: Callable[[int], None]

    def run(self, jobs: int, worth: float) -> list[Floats]:
        done, position, rate = _run_here(
            self.evaluate, self.seed, (self.first, self.stop), self.finish, worth
        )
        left = self.stop - position
        if left:
            size = max(1, min(int(rate * _CHUNK_SECONDS), math.ceil(left / (4 * jobs))))
            spans = [
                (a, min(a + size, position + left)) for a in range(position, position + left, size)
            ]
            done += _run_there(self.evaluate, self.alike, self.seed, spans, jobs, self.finish)
        return done

    def finish(self, first: int, values: Floats) -> None:
        if self.kept is not None:
            self.kept.add(first, values)
        self.told(len(values))


def _run_here(
    evaluate: Evaluate,
    seed: int,
    span: tuple[int, int],
    finish: Callable[[int, Floats], None],
    worth: float,
) -> tuple[list[Floats], int, float]:
    """Run in this process until done, or until more than ``worth`` seconds of work are left.

    Returns the results, the first trial not run, and the trials per second of the last chunk.
    """
    done: list[Floats] = []
    (position, stop), size, rate = span, 1, 0.0
    while position < stop:
        begun = time.perf_counter()
        upto = min(position + size, stop)
        done.append(_evaluate(evaluate, seed, position, upto))
        finish(position, done[-1])
        elapsed = max(time.perf_counter() - begun, 1e-9)
        rate = (upto - position) / elapsed
        position = upto
        if elapsed < _CHUNK_SECONDS / 4:
            size *= 2
        elif (stop - position) / rate > worth:
            break
    return done, position, rate


def _run_there(
    evaluate: Evaluate,
    alike: Alike | None,
    seed: int,
    spans: list[tuple[int, int]],
    workers: int,
    finish: Callable[[int, Floats], None],
) -> list[Floats]:
    """Run in joblib's workers; repeat the spans that a dying worker took with it, or refused."""
    import joblib  # noqa: PLC0415
    from joblib.externals.loky.process_executor import BrokenProcessPool  # noqa: PLC0415

    payload, digest = _pack((evaluate, alike, os.getpid(), list(warnings.filters)))
    done: dict[int, Floats] = {}
    for _ in range(_ATTEMPTS):
        left = [span for span in spans if span[0] not in done]
        parallel = joblib.Parallel(n_jobs=workers, return_as="list")
        streaming = getattr(parallel._backend, "supports_return_generator", False)
        if streaming:
            parallel = joblib.Parallel(n_jobs=workers, return_as="generator")
        calls = (joblib.delayed(_chunk)(payload, digest, seed, a, b) for a, b in left)
        try:
            for (start, upto), result in zip(left, parallel(calls), strict=True):
                done[start] = _evaluate(evaluate, seed, start, upto) if result is None else result
                finish(start, done[start])
        except BrokenProcessPool:
            continue
        except KeyboardInterrupt:
            _stop_workers()
            raise
        return [done[start] for start, _ in spans]
    lost = next(span for span in spans if span[0] not in done)
    raise WorkerLost(
        f"worker processes died {_ATTEMPTS} times at trials {lost[0]} to {lost[1] - 1}; "
        "the function may crash or run out of memory",
        parameter="workers",
        hint="try workers=1 to see it happen",
    )


def _pack(
    evaluate: tuple[Evaluate, Alike | None, int, list[Any]],
) -> tuple[NDArray[np.uint8], str]:
    import cloudpickle  # noqa: PLC0415

    try:
        content = cloudpickle.dumps(evaluate)
    except (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError) as cause:
        raise BadFunction(
            f"the function cannot be sent to worker processes ({cause}); "
            "create what it holds inside the function, or do without such processes",
            parameter="workers",
            hint="use workers=1",
        ) from cause
    # An array, so that joblib shares a large one through a memory map instead of copying it.
    return np.frombuffer(content, dtype=np.uint8), hashlib.sha256(content).hexdigest()


def _chunk(
    payload: NDArray[np.uint8], digest: str, seed: int, start: int, stop: int
) -> Floats | None:
    evaluate, filters = _unpack(_Payload(payload, digest))
    if evaluate is None:
        return None
    with filtered_as(filters):
        return _evaluate(evaluate, seed, start, stop)


@contextmanager
def filtered_as(filters: list[Any] | None) -> Iterator[None]:
    """Filter warnings in a worker process, which does one thing at a time, as where it was sent."""
    if filters is None:  # by a thread of this process
        yield
        return
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.filters[:] = filters  # type: ignore[index]
        yield


def _evaluate(evaluate: Evaluate, seed: int, start: int, stop: int) -> Floats:
    """Results with one thread of BLAS: a worker has one, this process all of them."""
    return compute_alone(lambda: evaluate(streams(seed, start, stop)))


class _Payload:
    """A pickled function that a cache knows by its digest."""

    __slots__ = ("content", "digest")

    def __init__(self, content: NDArray[np.uint8], digest: str) -> None:
        self.content, self.digest = content, digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Payload) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=2)
def _unpack(payload: _Payload) -> tuple[Evaluate | None, list[Any] | None]:
    """Load what is to be run; None if that fails, or it is another one here than was sent.

    With it come the filters of warnings where it was sent; None if that was in this process.
    """
    import cloudpickle  # noqa: PLC0415

    try:
        evaluate, alike, sender, told = cloudpickle.loads(payload.content.tobytes())
    except Exception:  # as a cache that is only kept in a script or notebook
        return None, None
    filters = None if sender == os.getpid() else told
    with filtered_as(filters):
        return (evaluate if alike is None or alike(evaluate) else None), filters


def _read_configured_jobs() -> int | None:
    """Jobs that the caller set through joblib, or None if the caller set nothing."""
    import joblib  # noqa: PLC0415

    plain: Any = joblib.Parallel(n_jobs=None)
    default = type(plain._backend).__name__ == "LokyBackend"
    jobs = int(joblib.effective_n_jobs(plain.n_jobs))
    return None if default and jobs == 1 else jobs


def _all_cores() -> int:
    import joblib  # noqa: PLC0415

    return int(joblib.cpu_count())


def _stop_workers() -> None:
    from joblib.externals.loky import get_reusable_executor  # noqa: PLC0415

    get_reusable_executor().shutdown(wait=False, kill_workers=True)
