"""A Spark cluster: waves of long spans, for Spark takes a tenth of a second for each task.

Only data frames are used, no RDDs. What a wave gave is known when all of it is done. Spark is asked
in threads: a signal that comes amid its answer breaks the connection, and would be taken for an
error of the session, with Ctrl-C lost.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar, get_args

from hushed._ground.calls import called_as
from hushed._ground.checks import require_count, require_one_of
from hushed.engines._protocol import OtherBits, Outcome, Span, Task
from hushed.engines._stub import check_size, make_stub, read_answer
from hushed.errors import EngineUnavailable, MissingExtra, ParameterError, WorkerLost

_AHEAD = 4  # spans for each slot in a wave
_ATTEMPTS = 3
_LOOK_SECONDS = 1.0  # between two looks at how many tasks run at once
_CANCEL_SECONDS = 5.0  # to take back what is on its way
_SCHEMA = "number long, answer binary"
_Result = TypeVar("_Result")


@called_as("hs.engines.Spark(session)")
class Spark:
    """A Spark cluster as an engine: ``workers=hs.engines.Spark(session)``.

    The same as ``workers=session``, with two settings.

    Parameters
    ----------
    session : pyspark.sql.SparkSession or None
        A session, which stays open; if None, the one that is active, or one that is made as Spark
        is configured, and stopped at the end.
    on_other_bits : {"refuse", "note"}, default "refuse"
        What to do with workers on which the first trials have other bits than here, as those with
        another processor may: refuse to run, or warn of how many trials ran there.
    slots : int or None
        How many tasks the cluster runs at once; if None, what Spark says.

    Raises
    ------
    EngineUnavailable
        If no session can be made.
    MissingExtra
        If Spark is not installed.
    """

    span_seconds = (5.0, 60.0)

    def __init__(
        self,
        session: Any = None,
        *,
        on_other_bits: OtherBits = "refuse",
        slots: int | None = None,
    ) -> None:
        require_one_of("on_other_bits", on_other_bits, get_args(OtherBits))
        self.on_other_bits = on_other_bits
        self._slots = None if slots is None else require_count("slots", slots)
        self._own = False
        if session is None:
            session, self._own = _find_session()
        self._session = session
        self._looked, self._count = -1e9, 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return "the Spark cluster"

    def slots(self) -> int:
        """Count the tasks that run at once.

        Returns
        -------
        int
            Their number.
        """
        if self._slots is not None:
            return self._slots
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._count = self._ask_slots()
            self._looked = time.monotonic()
        return self._count

    def _ask_slots(self) -> int:
        try:
            return int(_ask(lambda: self._session.sparkContext.defaultParallelism))
        except Exception as cause:  # of Java, of the gateway, or a session without a context
            if self._is_stopped():
                raise self._lost() from cause
            raise ParameterError(
                "this Spark session does not say how many tasks run at once: give "
                "hs.engines.Spark(session, slots=N)",
                parameter="workers",
            ) from cause

    def _is_stopped(self) -> bool:
        def look() -> None:
            self._session.conf.get("spark.app.name")
            self._session.range(1).schema  # noqa: B018 - fails where there is no session any more

        try:
            _ask(look)
        except Exception:  # of Java, or of the gateway
            return True
        return False

    def _lost(self) -> EngineUnavailable:
        return EngineUnavailable(
            "the Spark session is stopped, or its driver is gone", parameter="workers"
        )

    def close(self) -> None:
        """Stop the session, if it was made here."""
        if self._own:
            with suppress(Exception):
                _ask(self._session.stop)

    def map_spans(self, task: Task, spans: Iterator[Span]) -> Iterator[tuple[Span, Outcome]]:
        """Run spans in waves; a wave that is lost with its workers runs again.

        Parameters
        ----------
        task : Task
            What is run.
        spans : iterator of (int, int)
            What it is run for.

        Yields
        ------
        (Span, Outcome)
            Spans, and what came of them.

        Raises
        ------
        EngineUnavailable
            If the session is gone, or its workers run another Python.
        ParameterError
            If the work is too large to be sent.
        WorkerLost
            If workers die again and again.
        """
        check_size(task, self.name)
        payload = self._share(task.payload)
        try:
            while wave := list(islice(spans, _AHEAD * max(1, self.slots()))):
                for number, answer in self._run_wave(task, payload, wave):
                    yield wave[number], read_answer(answer, "a worker")
        finally:
            with suppress(Exception):
                _ask(payload.destroy)

    def _share(self, payload: bytes) -> Any:
        """Send a payload to each executor once; where that is not known, with each wave.

        A session that is gone is noticed by the first wave.
        """
        try:
            return _ask(lambda: self._session.sparkContext.broadcast(payload))
        except Exception:  # of Java, of the gateway, or a session without a context
            return _Held(payload)

    def _run_wave(self, task: Task, payload: Any, wave: list[Span]) -> list[tuple[int, bytes]]:
        """Run a wave, and again if it is lost."""
        run = _make_map(make_stub(), payload, task.digest, task.seed, wave)
        last: Exception | None = None
        for _ in range(_ATTEMPTS):
            try:
                rows = self._collect(run, len(wave))
            except Exception as cause:  # of Java, of the gateway, of Python workers
                last = cause
                if self._is_stopped():
                    raise self._lost() from cause
                if type(cause).__name__ == "PythonException":  # before the work was loaded
                    lines = str(cause).strip().splitlines()
                    raise EngineUnavailable(
                        f"workers of {self.name} cannot run hushed ({lines[-1][:200]}): set "
                        "PYSPARK_PYTHON to a Python that is as this one",
                        parameter="workers",
                    ) from cause
                continue
            return [(row[0], bytes(row[1])) for row in rows]
        raise WorkerLost(
            f"workers of {self.name} died again and again between trials {wave[0][0]} and "
            f"{wave[-1][1] - 1}: the function may crash, or take more memory than they have",
            parameter="workers",
            hint="try workers=1 to see it happen",
        ) from last

    def _collect(self, run: Callable[[Any], Iterator[Any]], spans: int) -> list[Any]:
        """Run spans as one job of Spark; a stop takes it back, which Spark would go on with."""
        tag = f"hushed-{uuid.uuid4().hex[:12]}"

        def collect() -> list[Any]:
            _find_tags(self._session)[0](tag)
            frame = self._session.range(0, spans, 1, spans).mapInArrow(run, _SCHEMA)
            found: list[Any] = frame.collect()
            return found

        try:
            return _ask(_inherit(self._session, collect))
        except (KeyboardInterrupt, SystemExit):
            if not self._own:  # else all of the session is stopped
                with suppress(Exception):
                    _ask(lambda: _find_tags(self._session)[1](tag), _CANCEL_SECONDS)
            raise


def _ask(call: Callable[[], _Result], seconds: float | None = None) -> _Result:
    """Make a call in a thread of its own, and wait for it: a stop ends the waiting alone."""
    told: Future[_Result] = Future()

    def run() -> None:
        try:
            told.set_result(call())
        except BaseException as error:  # raised again where it is waited for
            told.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return told.result(seconds)


def _inherit(session: Any, call: Callable[[], _Result]) -> Callable[[], _Result]:
    """Give a call in a thread what the caller set for its jobs, as the pool in which they run."""
    wrap: Any = import_module("pyspark").inheritable_thread_target(session)
    found: Callable[[], _Result] = call if wrap is session else wrap(call)
    return found


def _find_tags(session: Any) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """Find what tags the jobs of this thread, and what ends those with a tag, from any thread.

    The tags of a session are those of one thread of Java, but for Spark Connect, which has no
    context.
    """
    try:
        context = session.sparkContext
    except Exception:  # of a session without one
        return session.addTag, session.interruptTag
    return context.addJobTag, context.cancelJobsWithTag


class _Held:
    """A payload that travels with each wave."""

    def __init__(self, value: bytes) -> None:
        self.value = value


def _make_map(
    call: Callable[..., bytes], payload: Any, digest: str, seed: int, wave: list[Span]
) -> Callable[[Any], Iterator[Any]]:
    """Make what Spark runs for each row; it travels by its code, and needs no hushed to arrive."""

    def run(batches: Any) -> Iterator[Any]:
        import pyarrow  # noqa: PLC0415 - there

        for batch in batches:
            for number in batch.column(0).to_pylist():
                answer = call(payload.value, digest, seed, *wave[number])
                yield pyarrow.RecordBatch.from_pydict({"number": [number], "answer": [answer]})

    return run


def _find_session() -> tuple[Any, bool]:
    """Find the active session, or make one; tell whether it was made here."""
    try:
        sql: Any = import_module("pyspark.sql")
    except ImportError as cause:
        raise MissingExtra("a Spark cluster", "spark") from cause
    try:
        found = sql.SparkSession.getActiveSession()
        if found is not None:
            return found, False
        made = _ask(sql.SparkSession.builder.getOrCreate)
    except Exception as cause:  # of Java, or of the gateway
        raise EngineUnavailable(
            f"no Spark session could be made ({type(cause).__name__}): make one, and give it as "
            "workers",
            parameter="workers",
        ) from cause
    if made.sparkContext.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        made.sparkContext.pythonExec = sys.executable  # else whatever python3 is
    return made, True
