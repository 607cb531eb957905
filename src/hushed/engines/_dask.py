"""A Dask cluster: the engine that is tested for more than one machine.

The graph holds names of the standard library alone, for Dask's scheduler loads it, too, and need
not have this library. The work travels as a task, which any worker can run again; data that was
scattered would be gone with the workers that hold it.
"""

from __future__ import annotations

import operator
import os
import pickle
import platform
import queue
import sys
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, get_args

from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of, require_positive
from hushed.engines._generators import set_apart
from hushed.engines._protocol import OtherBits, Outcome, Span, Task
from hushed.engines._requirements import find_lacks
from hushed.engines._stub import check_size
from hushed.engines._worker import read_header, run_span
from hushed.errors import EngineUnavailable, MissingExtra, ParameterError, WorkerLost

_AHEAD = 2  # spans for each worker: one runs, one waits
_LOOK_SECONDS = 1.0  # between two looks at who is there
_LOST_SECONDS = 5.0  # without a connection, after which the scheduler is given up
_NAMED = 3  # of the workers that do not answer
_SILENT_SECONDS = 5.0  # longer than the last one heard of: a worker gets nothing a second time


@called_as('hs.engines.Dask("tcp://scheduler:8786")')
class Dask:
    """A Dask cluster as an engine: ``workers=hs.engines.Dask("tcp://HOST:8786")``.

    The same as ``workers="dask://HOST:8786"``, or as ``workers=client``, with two settings.

    Parameters
    ----------
    cluster : str or distributed.Client
        Address of the scheduler, or a client, which stays open.
    on_other_bits : {"refuse", "note"}, default "refuse"
        What to do with workers on which the first trials have other bits than here, as those with
        another processor may: refuse to run, or warn of how many trials ran there.
    patience : float, default 30
        Seconds to wait for the scheduler, for a first worker, and for the answer of a worker. A
        cluster that starts its workers when they are needed has 300 at least.

    Raises
    ------
    EngineUnavailable
        If there is no scheduler at the address.
    MissingExtra
        If Dask is not installed.
    """

    repeats = True  # spans that are overdue, in another worker

    def __init__(
        self, cluster: Any, *, on_other_bits: OtherBits = "refuse", patience: float = 30.0
    ) -> None:
        require_one_of("on_other_bits", on_other_bits, get_args(OtherBits))
        self.on_other_bits = on_other_bits
        self._patience = require_positive("patience", patience)
        self._own = isinstance(cluster, str)
        self._client = _connect(cluster, self._patience) if self._own else cluster
        if getattr(self._client, "asynchronous", False):
            raise ParameterError(
                "workers is an asynchronous client of Dask; give one that is not, or the address",
                parameter="workers",
            )
        if getattr(getattr(self._client, "cluster", None), "_adaptive", None) is not None:
            self._patience = max(self._patience, 300.0)
        set_apart()
        self._known: set[tuple[str, str]] = set()
        self._looked, self._count = -1e9, 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"the Dask cluster at {self._address}"

    @property
    def _address(self) -> str:
        scheduler = getattr(self._client, "scheduler", None)
        return str(getattr(scheduler, "address", "an address that is not known"))

    def slots(self) -> int:
        """Count the workers, each of which runs one span at a time.

        Returns
        -------
        int
            Their number.
        """
        if time.monotonic() - self._looked > _LOOK_SECONDS and self._client.status == "running":
            try:
                self._count = len(self._client.nthreads(callback_timeout=_LOST_SECONDS))
            except (OSError, TimeoutError) as cause:
                raise self._lost() from cause
            self._looked = time.monotonic()
        return self._count

    def _lost(self) -> EngineUnavailable:
        return EngineUnavailable(f"lost the Dask scheduler at {self._address}", parameter="workers")

    def close(self) -> None:
        """Close the client, if it was opened here."""
        if self._own:
            with suppress(Exception):
                self._client.close(timeout=2)

    def map_spans(self, task: Task, spans: Iterator[Span]) -> Iterator[tuple[Span, Outcome]]:
        """Run spans; Dask runs those that a dying worker took with it again.

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
            If a worker is not as this process is, none is there, or the scheduler is gone.
        ParameterError
            If the work is too large to be sent.
        WorkerLost
            If workers die again and again.
        """
        check_size(task, self.name)
        self._await_workers()
        self._greet(task)
        run = _Run(self._client, task)
        try:
            while True:
                while len(run.sent) < _AHEAD * max(1, self.slots()):
                    span = next(spans, None)
                    if span is None:
                        break
                    run.submit(span, again=run.is_out(span))
                if not run.sent:
                    return
                for future in self._await_futures(run):
                    span = run.sent.pop(future.key)[1]
                    outcome = self._read(future, span)
                    if outcome is None:
                        run.submit(span, again=True)
                    else:
                        yield span, outcome
        finally:
            run.cancel()

    def _await_workers(self) -> None:
        """Wait until a worker is there, but not for ever."""
        end = time.monotonic() + self._patience
        while not self.slots():
            if self._client.status != "running":
                raise self._lost()
            if time.monotonic() > end:
                raise EngineUnavailable(
                    f"{self.name} had no worker for {self._patience:.0f} seconds: start some, as "
                    "by dask worker ADDRESS --nworkers 4 --nthreads 1",
                    parameter="workers",
                )
            time.sleep(0.05)
            self._looked = -1e9

    def _greet(self, task: Task) -> None:
        """Ask workers that are not known yet what they are, before any of the work is sent."""
        header = read_header(task.payload)
        key = str(sorted(header.items()))
        told = self._ask_new(platform.python_version_tuple, key)
        new = list(told)
        if not new:
            return
        ours = platform.python_version_tuple()[:2]
        wrong = {
            place: ".".join(version[:2]) if isinstance(version, tuple) else str(version)
            for place, version in told.items()
            if not isinstance(version, tuple) or tuple(version[:2]) != ours
        }
        if wrong:
            places = ", ".join(f"{place} ({version})" for place, version in wrong.items())
            raise EngineUnavailable(
                f"workers run another Python than this process, {'.'.join(ours)}: {places}. What "
                "one sends, the other cannot load: start them with the same",
                parameter="workers",
            )
        asked = self._ask(pickle.loads, pickle.dumps(_Call(header)), workers=new)
        for place, lacks in asked.items():
            if lacks and not isinstance(lacks, OSError):  # as of one that has just ended
                raise EngineUnavailable(
                    f"worker {place}: {_describe_lack(lacks)}", parameter="workers"
                )
        self._known |= {(each, key) for each in new}

    def _ask_new(self, function: Any, key: str) -> dict[str, Any]:
        """Call something in the workers that are not known; those that end meanwhile are none."""
        end = time.monotonic() + self._patience
        while new := [each for each in self._client.nthreads() if (each, key) not in self._known]:
            told = self._ask(function, workers=new)
            gone = [each for each, answer in told.items() if isinstance(answer, OSError)]
            if not gone:
                return told
            if time.monotonic() > end:
                raise self._name_silent(gone)
            time.sleep(0.1)  # until the scheduler has noticed, too
        return {}

    def _ask(self, function: Any, *given: Any, workers: list[str]) -> dict[str, Any]:
        """Call something in workers; what it raises there is its answer."""
        named = {"workers": workers, "on_error": "return", "callback_timeout": self._patience}
        try:
            found: dict[str, Any] = self._client.run(function, *given, **named)
        except TimeoutError as cause:
            raise self._name_silent(workers) from cause
        except OSError as cause:
            raise self._lost() from cause
        return found

    def _name_silent(self, workers: list[str]) -> EngineUnavailable:
        """Find the first workers that do not answer, if the scheduler does."""
        silent: list[str] = []
        for each in workers:
            named = {"workers": [each], "on_error": "return", "callback_timeout": _LOOK_SECONDS}
            try:
                self._client.run(os.getpid, **named)
            except (OSError, TimeoutError):
                silent.append(each)
            if len(silent) == _NAMED:
                break
        self._looked = -1e9
        self.slots()  # raises where it is the scheduler that is silent
        which = f": {', '.join(silent)}" if silent else ""
        return EngineUnavailable(
            f"workers of {self.name} did not answer for {self._patience:.0f} seconds{which}. Their "
            "network may be cut, or they are busy with something else: stop them, or wait",
            parameter="workers",
        )

    def _await_futures(self, run: _Run) -> list[Any]:
        """Wait a moment for what is done; not for ever, if nobody is left to do it."""
        try:
            found = [run.ready.get(timeout=_LOOK_SECONDS)]
        except queue.Empty:
            self._check_alone(run)
            return []
        while not run.ready.empty():
            found.append(run.ready.get())
        run.heard = time.monotonic()
        return found

    def _check_alone(self, run: _Run) -> None:
        """Give up where neither the scheduler nor a worker has been there for long."""
        alone = time.monotonic() - run.heard
        if self._client.status != "running":
            if alone > _LOST_SECONDS:
                raise self._lost()
            return
        self._looked = -1e9
        if self.slots():
            run.heard = time.monotonic()
            run.free()
        elif alone > self._patience:
            raise WorkerLost(
                f"{self.name} has had no worker for {self._patience:.0f} seconds",
                parameter="workers",
            )

    def _read(self, future: Any, span: Span) -> Outcome | None:
        """Outcome of a span, or None if the worker that has it cannot be reached any more.

        An error here is trouble of the cluster, never of the function.
        """
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415

        where = f"at trials {span[0]} to {span[1] - 1}"
        try:
            outcome: Outcome = future.result(timeout=self._patience)
        except KilledWorker as cause:
            raise WorkerLost(
                f"workers of {self.name} died again and again {where}: the function may crash, or "
                "take more memory than they have",
                parameter="workers",
                hint="try workers=1 to see it happen",
            ) from cause
        except (CancelledError, OSError, TimeoutError) as cause:
            if isinstance(cause, TimeoutError) and self._client.status == "running":
                return None
            raise self._lost() from cause
        except Exception as cause:
            raise WorkerLost(
                f"{self.name} failed {where}: {_describe_lack(cause)}", parameter="workers"
            ) from cause
        return outcome


class _Run:
    """What one run has on its way."""

    def __init__(self, client: Any, task: Task) -> None:
        self.client, self.task = client, task
        self.name = f"hushed-{uuid.uuid4().hex[:12]}"
        self.sent: dict[str, tuple[Any, Span]] = {}
        self.ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.number = 0
        self.heard = time.monotonic()
        self.common: list[Any] = []
        self.past: list[Any] = []
        self._send_common(None)

    def _send_common(self, workers: list[str] | None) -> None:
        """Send what all spans need: once, and again where only a silent worker may have it."""
        import dask  # noqa: PLC0415

        self.past += self.common
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            self.common = [
                self._submit("function", workers, pickle.loads, pickle.dumps(run_span)),
                self._submit("work", workers, bytes, self.task.payload),
            ]
        self.workers = workers

    def _submit(self, part: str, workers: list[str] | None, function: Any, *given: Any) -> Any:
        self.number += 1
        return self.client.submit(
            function,
            *given,
            key=f"{self.name}-{part}-{self.number}",
            pure=False,
            workers=workers,
            allow_other_workers=workers is not None,
        )

    def is_out(self, span: Span) -> bool:
        """Whether a span is on its way already."""
        return any(each == span for _, each in self.sent.values())

    def submit(self, span: Span, *, again: bool = False) -> None:
        """Send a span; a second time, to workers that were heard of lately.

        A worker that is cut off looks idle to the scheduler for minutes.
        """
        workers = self._find_heard() if again else None
        if workers is not None and workers != self.workers:
            self._send_common(workers)
        task = self.task
        given = (*self.common, task.digest, task.seed, *span)
        future = self._submit(str(span[0]), workers, operator.call, *given)
        self.sent[future.key] = (future, span)
        future.add_done_callback(self.ready.put)

    def free(self) -> None:
        """Send everything again if what all spans need lies on a worker alone that is cut off.

        The others wait for it without end, so that no span is done, and none is overdue.
        """
        held: list[Any] = []
        with suppress(OSError, TimeoutError):
            asked = {"keys": [each.key for each in self.common], "callback_timeout": _LOST_SECONDS}
            held = list(self.client.sync(self.client.scheduler.who_has, **asked).values())
        if all(len(each) > 1 for each in held):
            return
        heard = self._find_heard()
        if heard in (None, self.workers) or all(set(each) & set(heard or ()) for each in held):
            return
        for span in {span for _, span in self.sent.values()}:
            self.submit(span, again=True)

    def _find_heard(self) -> list[str] | None:
        """Find the workers that the scheduler has heard of lately; None if it has of all."""
        told: dict[str, Any] = {}
        with suppress(OSError, TimeoutError):  # whoever waits for the answers sees to it
            named = {"n_workers": -1, "callback_timeout": _LOST_SECONDS}
            told = self.client.sync(self.client.scheduler.identity, **named)["workers"]
        newest = max((each["last_seen"] for each in told.values()), default=0.0)
        heard = [
            place for place, each in told.items() if newest - each["last_seen"] < _SILENT_SECONDS
        ]
        return heard if len(heard) < len(told) else None

    def cancel(self) -> None:
        """Take back what is on its way, and forget the work."""
        left = [*(future for future, _ in self.sent.values()), *self.common, *self.past]
        if self.client.status == "running" and not sys.is_finalizing():
            with suppress(Exception):
                self.client.cancel(left, force=True)
        self.sent.clear()
        self.common.clear()
        self.past.clear()


class _Call:
    """Pickled, it is the call that looks for what is lacking: loading it makes the call."""

    def __init__(self, header: dict[str, str]) -> None:
        self.header = header

    def __reduce__(self) -> Any:
        return find_lacks, (self.header,)


def _describe_lack(lacks: Any) -> str:
    """Words on what a worker lacks, or on the error with which it answered."""
    if isinstance(lacks, ModuleNotFoundError):
        name = str(lacks.name or "").partition(".")[0]
        if name == "hushed":
            return "hushed is not installed there: install the same as here"
        return f"it has no module {name}"
    return lacks if isinstance(lacks, str) else f"{type(lacks).__name__}: {lacks}"


def _connect(address: str, patience: float) -> Any:
    """Open a client of a scheduler."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError as cause:
        raise MissingExtra("a Dask cluster", "dask") from cause
    place = address.removeprefix("dask://")
    place = place if "://" in place else f"tcp://{place}"
    try:
        with warnings.catch_warnings():  # by the thread that connects: versions are compared here
            warnings.filterwarnings("ignore", message="Mismatched versions")
            return distributed.Client(place, timeout=patience, set_as_default=False)
    except (OSError, ValueError, TypeError) as cause:
        raise EngineUnavailable(
            f"there is no Dask scheduler at {place} ({type(cause).__name__}); "
            "dask scheduler starts one",
            parameter="workers",
        ) from cause
