"""The engine of one machine: joblib's processes (loky), or whatever joblib was told to use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from hushed.engines._protocol import Outcome, Span, Task
from hushed.engines._worker import run_span, runs_span
from hushed.errors import WorkerLost

_ATTEMPTS = 3


class Local:
    """Worker processes of this machine, by joblib; `joblib.parallel_config` is obeyed.

    Parameters
    ----------
    jobs : int
        Number of processes.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self.jobs} processes of this machine"

    def slots(self) -> int:
        """Count the processes."""
        return self.jobs

    def map_spans(self, task: Task, spans: Iterator[Span]) -> Iterator[tuple[Span, Outcome]]:
        """Run spans; those that a dying worker took with it run again."""
        from joblib.externals.loky.process_executor import BrokenProcessPool  # noqa: PLC0415

        # An array, so that joblib shares a large one through a memory map instead of copying it.
        payload = np.frombuffer(task.payload, dtype=np.uint8)
        sent: dict[Span, None] = {}
        for _ in range(_ATTEMPTS):
            left = chain(tuple(sent), spans)
            try:
                yield from self._run(payload, task, left, sent)
            except BrokenProcessPool:
                continue
            except KeyboardInterrupt:
                stop_workers()
                raise
            return
        lost = min(sent)
        raise WorkerLost(
            f"worker processes died {_ATTEMPTS} times at trials {lost[0]} to {lost[1] - 1}; "
            "the function may crash or run out of memory",
            parameter="workers",
            hint="try workers=1 to see it happen",
        )

    def _run(
        self, payload: Any, task: Task, left: Iterator[Span], sent: dict[Span, None]
    ) -> Iterator[tuple[Span, Outcome]]:
        """Run spans until workers die; `sent` holds those whose outcome did not come."""
        import joblib  # noqa: PLC0415
        from joblib.externals.loky.process_executor import BrokenProcessPool  # noqa: PLC0415

        jobs = 1 if runs_span() else self.jobs  # a function that samples: its threads would wait
        settings: dict[str, Any] = {"n_jobs": jobs, "batch_size": 1}
        parallel = joblib.Parallel(**settings, return_as="list")
        if getattr(parallel._backend, "supports_return_generator", False):
            parallel = joblib.Parallel(**settings, return_as="generator_unordered")
        kind = type(parallel._backend).__name__

        def calls() -> Iterator[Any]:
            for span in left:
                sent[span] = None
                yield joblib.delayed(_run)(payload, task.digest, task.seed, span)

        outcomes = parallel(calls())
        try:
            for span, outcome in outcomes:
                sent.pop(span, None)
                yield span, outcome
        except BrokenProcessPool:
            raise
        except Exception as cause:
            if kind in ("LokyBackend", "ThreadingBackend", "SequentialBackend"):
                raise
            raise WorkerLost(
                f"joblib's {kind} lost the run ({type(cause).__name__}): joblib does not run again "
                "what was lost",
                parameter="workers",
                hint='give the cluster itself, such as workers="dask://HOST:8786"',
            ) from cause
        finally:
            if hasattr(outcomes, "close"):
                with suppress(Exception):  # workers are ended, and what they ran with them
                    outcomes.close()


def _run(payload: Any, digest: str, seed: int, span: Span) -> tuple[Span, Outcome]:
    return span, run_span(payload, digest, seed, *span)


def stop_workers() -> None:
    """End joblib's processes."""
    from joblib.externals.loky import get_reusable_executor  # noqa: PLC0415

    get_reusable_executor().shutdown(wait=False, kill_workers=True)
