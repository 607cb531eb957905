"""A Ray cluster: tasks that Ray runs again where a worker dies; no actors, which it does not."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, get_args

from hushed._ground.calls import called_as
from hushed._ground.checks import require_one_of, require_positive
from hushed.engines._protocol import OtherBits, Outcome, Span, Task
from hushed.engines._stub import check_size, make_stub, read_answer
from hushed.errors import EngineUnavailable, MissingExtra, ParameterError, WorkerLost

_AHEAD = 2  # spans for each worker: one runs, one waits
_LOOK_SECONDS = 1.0  # between two looks at who is there
_RETRIES = 3
_TRIES, _PAUSE_SECONDS = 3, 1.0  # of a client; one that fails takes Ray 40 seconds
_LOST_SECONDS = 5.0  # without its head, after which the cluster is given up; Ray ends us after 60
_ENDING_SECONDS = 2.0  # that spans have to end by themselves before they are cancelled


@called_as('hs.engines.Ray("auto")')
class Ray:
    """A Ray cluster as an engine: ``workers=hs.engines.Ray()``, or ``workers="ray"``.

    Parameters
    ----------
    address : str, default "ray"
        ``"ray"`` for the cluster to which this process is connected, else the one of
        ``RAY_ADDRESS``, else one of this machine that is started, and stopped at the end;
        ``"ray://HOST:10001"`` for a server of Ray's clients, which starts a process for each of
        them. Where that process dies at once it is asked for again: three times in all, each of
        which takes Ray up to 40 seconds.
    on_other_bits : {"refuse", "note"}, default "refuse"
        What to do with workers on which the first trials have other bits than here, as those with
        another processor may: refuse to run, or warn of how many trials ran there.
    patience : float, default 30
        Seconds to wait for a first worker.

    Raises
    ------
    EngineUnavailable
        If there is no cluster at the address.
    MissingExtra
        If Ray is not installed.
    """

    def __init__(
        self,
        address: str = "ray",
        *,
        on_other_bits: OtherBits = "refuse",
        patience: float = 30.0,
    ) -> None:
        require_one_of("on_other_bits", on_other_bits, get_args(OtherBits))
        self.on_other_bits = on_other_bits
        self._patience = require_positive("patience", patience)
        self._address = address
        self._ray, self._own = _connect(address)
        self._looked, self._count = -1e9, 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return "the Ray cluster" + ("" if self._address == "ray" else f" at {self._address}")

    def slots(self) -> int:
        """Count the processors that the cluster has for tasks.

        Returns
        -------
        int
            Their number.
        """
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            self._count = self._ask_slots()
            self._looked = time.monotonic()
        return self._count

    def _ask_slots(self) -> int:
        """Ask the head, in a thread: Ray would wait for a lost one, and then end this program."""
        told: list[int | Exception] = []

        def ask() -> None:
            try:
                told.append(int(self._ray.cluster_resources().get("CPU", 0)))
            except Exception as cause:  # errors of Ray, and of its transport
                told.append(cause)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_LOST_SECONDS)
        found = told[0] if told else None
        if isinstance(found, Exception):
            raise self._lost() from found
        if found is None and not self._has_head():
            raise self._lost()
        return self._count if found is None else found

    def _has_head(self) -> bool:
        """Whether the head takes connections."""
        try:
            host, _, port = self._ray.get_runtime_context().gcs_address.rpartition(":")
        except Exception:  # a client at ray://, which knows no address of the head
            return True
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()
        except (OSError, ValueError):
            return False
        return True

    def _lost(self) -> EngineUnavailable:
        return EngineUnavailable(f"lost {self.name}", parameter="workers")

    def close(self) -> None:
        """Disconnect from the cluster, if it was connected to here."""
        if self._own:
            with suppress(Exception):
                self._ray.shutdown()

    def map_spans(self, task: Task, spans: Iterator[Span]) -> Iterator[tuple[Span, Outcome]]:
        """Run spans; Ray runs those that a dying worker took with it again.

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
            If there is no worker, or the cluster is gone.
        ParameterError
            If the work is too large to be sent.
        WorkerLost
            If workers die again and again.
        """
        check_size(task, self.name)
        self._await_workers()
        sent: dict[Any, Span] = {}
        try:
            remote = self._ray.remote(max_retries=_RETRIES, num_cpus=1)(make_stub())
            payload = self._ray.put(task.payload)
            while True:
                while len(sent) < _AHEAD * max(1, self.slots()):
                    span = next(spans, None)
                    if span is None:
                        break
                    sent[remote.remote(payload, task.digest, task.seed, *span)] = span
                if not sent:
                    return
                for ref in self._await_tasks(list(sent)):
                    span = sent.pop(ref)
                    yield span, self._read(ref, span)
        except (self._ray.exceptions.RayError, ConnectionError) as cause:
            raise self._lost() from cause
        finally:
            self._take_back(list(sent))

    def _take_back(self, refs: list[Any]) -> None:
        """Cancel what runs on after a while: Ray aborts this process if it ends at that moment."""
        if not refs or not self._has_head():
            return
        with suppress(Exception):
            named = {"num_returns": len(refs), "timeout": _ENDING_SECONDS, "fetch_local": False}
            for ref in self._ray.wait(refs, **named)[1]:
                self._ray.cancel(ref, force=True)

    def _await_workers(self) -> None:
        """Wait until a worker is there, but not for ever."""
        end = time.monotonic() + self._patience
        while not self.slots():
            if time.monotonic() > end:
                raise EngineUnavailable(
                    f"{self.name} had no processor for {self._patience:.0f} seconds: start some, "
                    "as by ray start --address=HOST:6379",
                    parameter="workers",
                )
            time.sleep(0.2)
            self._looked = -1e9

    def _await_tasks(self, refs: list[Any]) -> list[Any]:
        """Wait for what is done; not for ever, if nobody is left to do it."""
        seen = time.monotonic()
        while True:
            done: list[Any]
            done, _ = self._ray.wait(refs, num_returns=1, timeout=_LOOK_SECONDS)
            if done:
                return done
            if not self._has_head():
                self._await_head()
            elif self.slots():
                seen = time.monotonic()
            elif time.monotonic() - seen > self._patience:
                raise WorkerLost(
                    f"{self.name} has had no processor for {self._patience:.0f} seconds",
                    parameter="workers",
                )

    def _await_head(self) -> None:
        """Wait a moment for a head that comes back."""
        end = time.monotonic() + _LOST_SECONDS
        while not self._has_head():
            if time.monotonic() > end:
                raise self._lost()
            time.sleep(_LOOK_SECONDS)

    def _read(self, ref: Any, span: Span) -> Outcome:
        """Outcome of a span; an error here is trouble of the cluster, never of the function."""
        try:
            return read_answer(self._ray.get(ref), "a worker")
        except self._ray.exceptions.RayError as cause:
            if not self._has_head():
                raise self._lost() from cause
            raise WorkerLost(
                f"workers of {self.name} died again and again at trials {span[0]} to "
                f"{span[1] - 1} ({type(cause).__name__}): the function may crash, or take more "
                "memory than they have",
                parameter="workers",
                hint="try workers=1 to see it happen",
            ) from cause


def _connect(address: str) -> tuple[Any, bool]:
    """Import Ray and connect; tell whether that was done here."""
    try:
        ray: Any = import_module("ray")
    except ImportError as cause:
        raise MissingExtra("a Ray cluster", "ray") from cause
    if ray.is_initialized():
        if address != "ray":
            raise ParameterError(
                f"this process is connected to a Ray cluster already, and cannot be to {address} "
                'at the same time; workers="ray" uses the one that there is',
                parameter="workers",
            )
        return ray, False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report that it is used
    try:
        with _leave_handler():
            if address == "ray":
                ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
            else:
                _connect_client(ray, address)
    except Exception as cause:  # errors of Ray, of its transport, and of what it starts
        again = address != "ray" and isinstance(cause, ConnectionAbortedError)
        tried = f" in {_TRIES} tries" if again else ""
        raise EngineUnavailable(
            f"no Ray cluster could be reached at {address} ({type(cause).__name__}{tried})",
            parameter="workers",
        ) from cause
    return ray, True


def _connect_client(ray: Any, address: str) -> None:
    """Connect to a server of clients; again where the process that it forks for us dies at once.

    The server has threads of gRPC when it forks: one child in fifteen finds a lock of theirs held,
    and aborts before it runs anything. Ray tells that as an aborted connection.
    """
    for left in reversed(range(_TRIES)):
        try:
            ray.init(address)
        except ConnectionAbortedError:
            if not left:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


@contextmanager
def _leave_handler() -> Iterator[None]:
    """Leave a program its handler of SIGTERM: with the one that Ray sets, it aborts."""
    ours: Any = signal.SIG_DFL
    if threading.current_thread() is threading.main_thread():  # no other may set one
        ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if ours not in (signal.SIG_DFL, None):
            signal.signal(signal.SIGTERM, ours)
