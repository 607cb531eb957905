"""Independent seeded trials in parallel: the same answer for any number of workers."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hushed._checks import is_whole
from hushed._functions._environment import compute_alone
from hushed._functions._results import Kept, Results
from hushed._functions._spans import Spans, cut_span
from hushed._types import Floats
from hushed.engines import (
    Done,
    Engine,
    Lacks,
    Local,
    Outcome,
    Raised,
    Span,
    Task,
    Workers,
    open_engine,
    pack,
    rebuild,
)
from hushed.errors import EngineUnavailable, ParameterError, WorkerLost

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
    workers: Workers = None,
    report: Callable[[int], None] | None = None,
    alike: Alike | None = None,
    kept: Kept | None = None,
) -> Floats:
    """Run seeded trials, here or in workers; those that are kept are not run again.

    An engine runs all but the first trial. Otherwise trials run here until it is worth while to
    start processes of this machine.
    """
    results = Results(first, trials, report or (lambda _: None), kept)
    with open_engine(workers) as asked:
        gaps = results.read_kept()
        engine, size = asked, 1
        if engine is None or isinstance(engine, int):
            engine, rate = _start_here(evaluate, seed, gaps, results, engine)
            size = max(1, int(rate * _CHUNK_SECONDS))
        elif gaps:
            start, stop = cut_span(gaps, 1)
            results.fill(start, _evaluate(evaluate, seed, start, stop))
        if gaps:
            task = pack(_Sent(evaluate, alike, list(warnings.filters)), seed)
            _run_there(evaluate, task, engine, Spans(gaps, engine.slots, size), results)
    return results.array


def _start_here(
    evaluate: Evaluate, seed: int, gaps: deque[Span], results: Results, workers: int | None
) -> tuple[Engine, float]:
    """Run what is not worth worker processes; the engine for the rest, and the speed here."""
    asked = _read_configured_jobs() if workers is None else workers
    jobs = _all_cores() if asked is None else asked
    worth = math.inf if jobs == 1 else _WORTH_WORKERS_SECONDS if asked is None else 0.0
    return Local(jobs), _run_here(evaluate, seed, gaps, results, worth)


def _run_here(
    evaluate: Evaluate, seed: int, gaps: deque[Span], results: Results, worth: float
) -> float:
    """Run in this process until done, or until more than ``worth`` seconds of work are left.

    Returns the trials per second of the last chunk.
    """
    size, rate = 1, 0.0
    while gaps:
        begun = time.perf_counter()
        start, stop = cut_span(gaps, size)
        results.fill(start, _evaluate(evaluate, seed, start, stop))
        elapsed = max(time.perf_counter() - begun, 1e-9)
        rate = (stop - start) / elapsed
        if elapsed < _CHUNK_SECONDS / 4:
            size *= 2
        elif (results.trials - results.done) / rate > worth:
            break
    return rate


def _run_there(
    evaluate: Evaluate, task: Task, engine: Engine, spans: Spans, results: Results
) -> None:
    """Run on an engine; what it loses is run again, and what it gives twice counts once."""
    for _ in range(_ATTEMPTS):
        outcomes = engine.map_spans(task, spans)
        try:
            for span, outcome in outcomes:
                _take(evaluate, task.seed, engine, span, outcome, spans, results)
        finally:
            close = getattr(outcomes, "close", None)
            if close is not None:
                close()
        lost = spans.lost()
        if not lost:
            return
        spans = Spans(lost, engine.slots)
    raise WorkerLost(
        f"{engine.name} lost {len(lost)} pieces of work {_ATTEMPTS} times, the first at trials "
        f"{lost[0][0]} to {lost[0][1] - 1}",
        parameter="workers",
        hint="try workers=1",
    )


def _take(
    evaluate: Evaluate,
    seed: int,
    engine: Engine,
    span: Span,
    outcome: Outcome,
    spans: Spans,
    results: Results,
) -> None:
    """Fill in what came of a span, or raise what was raised there."""
    if isinstance(outcome, Raised):
        raise rebuild(outcome.error)
    seconds = outcome.seconds if isinstance(outcome, Done) else None
    if isinstance(outcome, Lacks):
        if not isinstance(engine, Local):
            raise EngineUnavailable(f"{engine.name}: {outcome.place}: {outcome.words}")
        values = _evaluate(evaluate, seed, *span)
    else:
        values = outcome.values
    if len(values) == span[1] - span[0] and spans.take_back(span, seconds):
        results.fill(span[0], values)


class _Sent:
    """The work of a run, with what it takes to do it in another process as here.

    Parameters
    ----------
    evaluate : callable
        What is run.
    alike : callable or None
        Asked in a worker whether it is the same there.
    filters : list
        Filters of warnings here.
    """

    def __init__(self, evaluate: Evaluate, alike: Alike | None, filters: list[Any]) -> None:
        self.evaluate, self.alike = evaluate, alike
        self.filters: list[Any] | None = filters
        self.sender = os.getpid()

    def prepare(self) -> str:
        """Tell what is wrong here: another function was loaded than was sent."""
        if self.sender == os.getpid():
            self.filters = None
        with filtered_as(self.filters):
            known = self.alike is None or self.alike(self.evaluate)
        return "" if known else "the function is another one there, or answers otherwise"

    def __call__(self, seed: int, start: int, stop: int) -> Floats:
        """Run a span."""
        with filtered_as(self.filters):
            return _evaluate(self.evaluate, seed, start, stop)


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
