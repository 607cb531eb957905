"""Independent seeded trials in parallel: the same answer for any number of workers."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from hushed._functions._results import Kept, Results
from hushed._functions._sent import Alike, Evaluate, Sent, run_streams
from hushed._functions._spans import SECONDS, Spans, cut_span
from hushed._functions._streams import Streams as Streams  # noqa: PLC0414 - found here, too
from hushed._functions._streams import streams as streams  # noqa: PLC0414
from hushed._ground.checks import is_whole
from hushed._ground.printing import as_given
from hushed._ground.types import Floats
from hushed.engines import Done, Engine, Lacks, Outcome, Raised, Span, Task, rebuild
from hushed.engines._choice import Workers, open_engine
from hushed.engines._local import Local
from hushed.engines._worker import pack
from hushed.errors import EngineUnavailable, HushedWarning, ParameterError, Refusal, WorkerLost

_CHUNK_SECONDS = 0.2
_WORTH_WORKERS_SECONDS = 1.0
_ATTEMPTS = 3
_FIRST, _FIRST_SECONDS = 5, 1.0  # trials that workers of another kind repeat


def seed_from(rng: int | np.random.Generator | None) -> int:
    """Integer seed from what a caller may hand in."""
    if rng is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(rng, np.random.Generator):
        return int.from_bytes(rng.bytes(16), "little")
    if not is_whole(rng) or rng < 0:
        raise ParameterError(
            f"seed must be an integer of 0 or more or a Generator, got {as_given(rng)}",
            parameter="seed",
        )
    return int(rng)


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
    noted: Counter[str] | None = None,
) -> Floats:
    """Run seeded trials, here or in workers; those that are kept are not run again.

    An engine runs all but the first trial. Otherwise trials run here until it is worth while to
    start processes of this machine. How many trials ran where something differs is `noted`.
    """
    results = Results(first, trials, report or (lambda _: None), kept)
    with open_engine(workers) as asked:
        gaps = results.read_kept()
        engine, size = asked, 1
        work = Sent(evaluate, alike)
        if engine is None or isinstance(engine, int):
            engine, rate = _start_here(evaluate, seed, gaps, results, engine)
            size = max(1, int(rate * _CHUNK_SECONDS))
            if gaps:
                work.repeat(_list_done(results, gaps[0][0]), seed)
        elif gaps:
            work.compare(
                _run_first(evaluate, seed, gaps, results), seed, allowed=may_round_otherwise(engine)
            )
        if gaps:
            task = pack(work, seed, far=not isinstance(engine, Local))
            _run_there(evaluate, task, engine, gaps, size, results)
    if noted is not None:
        noted.update(results.notes)
    if may_round_otherwise(engine):
        for note, count in results.notes.items():
            text = f"{count} of {trials} trials ran where {note}"
            warnings.warn(text, HushedWarning, stacklevel=2)
    return results.array


def may_round_otherwise(engine: Workers) -> bool:
    """Whether workers may give other bits than this process, which is then noted."""
    return getattr(engine, "on_other_bits", "refuse") == "note"


def _run_first(
    evaluate: Evaluate, seed: int, gaps: deque[Span], results: Results
) -> list[tuple[int, Floats]]:
    """Run the first trials here, a few if they are fast: workers may be asked to repeat them."""
    found: list[tuple[int, Floats]] = []
    end = time.perf_counter() + _FIRST_SECONDS
    while gaps and len(found) < _FIRST and (not found or time.perf_counter() < end):
        start, stop = cut_span(gaps, 1)
        values = run_streams(evaluate, seed, start, stop)
        results.fill(start, values)
        found.append((start, values))
    return found


def _list_done(results: Results, stop: int) -> list[tuple[int, Floats]]:
    """List the first trials, a few, which were all done before another one."""
    places = range(results.first, min(stop, results.first + _FIRST))
    return [(each, results.array[each - results.first :][:1]) for each in places]


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
        start, stop = cut_span(gaps, size)
        begun = time.perf_counter()
        found = run_streams(evaluate, seed, start, stop)
        elapsed = max(time.perf_counter() - begun, 1e-9)
        results.fill(start, found)  # not counted: a slow disk is asked less often, not more
        rate = (stop - start) / elapsed
        if elapsed < _CHUNK_SECONDS / 4:
            size *= 2
        elif (results.trials - results.done) / rate > worth:
            break
    return rate


def _run_there(
    evaluate: Evaluate, task: Task, engine: Engine, gaps: deque[Span], size: int, results: Results
) -> None:
    """Run on an engine; what it loses is run again, and what it gives twice counts once."""
    seconds = getattr(engine, "span_seconds", SECONDS)
    lost = list(gaps)
    for _ in range(_ATTEMPTS):
        repeats = getattr(engine, "repeats", False)
        spans = Spans(lost, engine.slots, size, seconds, repeats=repeats)
        outcomes = engine.map_spans(task, spans)
        try:
            for span, outcome in outcomes:
                _take(evaluate, task.seed, engine, span, outcome, spans, results)
                if spans.waits_in_vain:
                    break
        except (WorkerLost, EngineUnavailable) as error:
            raise _count_done(error, results) from error.__cause__
        finally:
            close = getattr(outcomes, "close", None)
            if close is not None:
                close()
        lost = spans.lost()
        if not lost:
            return
        size = 1
    raise WorkerLost(
        f"{engine.name} lost {len(lost)} pieces of work {_ATTEMPTS} times, the first at trials "
        f"{lost[0][0]} to {lost[0][1] - 1}",
        parameter="workers",
        hint="try workers=1",
    )


def _count_done(error: Refusal, results: Results) -> Refusal:
    """Say with an error of an engine how much was done, and what becomes of it."""
    fate = "; the same call does not run again what is kept of them"
    if results.kept is None:
        fate = ", and are lost"
    words = f"{error.message}; {results.done} of {results.trials} trials were done{fate}"
    return type(error)(words, parameter=error.parameter, hint=error.hint)


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
            raise EngineUnavailable(
                f"{engine.name}: {outcome.place}: {outcome.words}", parameter="workers"
            )
        values = run_streams(evaluate, seed, *span)
    elif isinstance(outcome, Done) and results.are_alike(outcome.values):
        values = outcome.values
    else:
        raise WorkerLost(
            f"{engine.name} gave something else than results of trials, for trials {span[0]} to "
            f"{span[1] - 1}",
            parameter="workers",
            hint="try workers=1",
        )
    if len(values) == span[1] - span[0] and spans.take_back(span, seconds):
        results.fill(span[0], values, getattr(outcome, "note", ""))


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
