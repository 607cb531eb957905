"""What runs in a worker: it loads the work once, and runs spans of it."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import socket
import struct
import threading
import time
import uuid
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushed._ground.forks import ForkSafeLock
from hushed._ground.types import Floats
from hushed.engines._errors import pack_error
from hushed.engines._generators import set_apart
from hushed.engines._protocol import Done, Lacks, Outcome, Raised, Task
from hushed.engines._requirements import find_lacks, read_requirements
from hushed.errors import BadFunction

# Known to a process and to what is pickled by it: is a worker the process that sent the work?
_PROCESS = uuid.uuid4().hex
_RUNNING, _HERE = ForkSafeLock(), threading.local()
_LENGTH = struct.Struct("<Q")


class Work(Protocol):
    """What is sent to workers."""

    def prepare(self) -> str:
        """Make ready, once in each worker; words on what is wrong there, or none."""

    def __call__(self, seed: int, start: int, stop: int) -> Floats:
        """Run a span of trials."""

    @property
    def note(self) -> str:
        """Words on what differs here though it may run, or none."""

    @property
    def private(self) -> bool:
        """Whether it holds private rows, which its own words may tell."""


def pack(work: Work, seed: int, *, far: bool = True) -> Task:
    """Make a task of some work; refuse what cannot be sent.

    Parameters
    ----------
    work : Work
        What is run.
    seed : int
        Seed of the run.
    far : bool, default True
        Whether workers may be of another machine, and must be asked what they have.

    Returns
    -------
    Task
        What an engine is given.

    Raises
    ------
    BadFunction
        If the work holds what cannot be sent.
    """
    import cloudpickle  # noqa: PLC0415

    try:
        content = cloudpickle.dumps(work)
    except (TypeError, AttributeError, ValueError, RuntimeError, pickle.PicklingError) as cause:
        told = type(cause).__name__ if work.private else str(cause)
        raise BadFunction(
            f"the function cannot be sent to worker processes ({told}); "
            "create what it holds inside the function, or do without such processes",
            parameter="workers",
            hint="use workers=1",
        ) from (None if work.private else cause)
    header = json.dumps(read_requirements(content) if far else {}).encode()
    content = _LENGTH.pack(len(header)) + header + content
    return Task(content, hashlib.sha256(content).hexdigest(), seed)


def read_header(payload: bytes) -> dict[str, str]:
    """Read what a payload needs, without loading any of it."""
    (length,) = _LENGTH.unpack(payload[: _LENGTH.size])
    found: dict[str, str] = json.loads(payload[_LENGTH.size : _LENGTH.size + length])
    return found


def run_span(
    payload: bytes | NDArray[np.uint8], digest: str, seed: int, start: int, stop: int
) -> Outcome:
    """Run a span of trials in a worker.

    A process runs one span at a time, whatever its number of threads: functions may use what is
    global, and one object may be the function of all threads.

    Parameters
    ----------
    payload : bytes or ndarray of uint8
        The payload of a task.
    digest : str
        Its digest.
    seed : int
        Seed of the run.
    start, stop : int
        First trial, and one past the last.

    Returns
    -------
    Outcome
        What came of it. Errors are values, too.
    """
    with _RUNNING:
        within, _HERE.runs = runs_span(), True
        try:
            return _run_span(_Payload(payload, digest), seed, start, stop)
        finally:
            _HERE.runs = within


def _run_span(payload: _Payload, seed: int, start: int, stop: int) -> Outcome:
    place = _describe_place()
    set_apart()
    work = _load(payload)
    if isinstance(work, str):
        return Lacks(work, place)
    begun = time.perf_counter()
    try:
        values = work(seed, start, stop)
    except (Exception, SystemExit) as error:
        return Raised(pack_error(error), place)
    return Done(values, time.perf_counter() - begun, place, work.note)


def runs_span() -> bool:
    """Whether this thread runs a span, so that others would wait for it, and it for them."""
    return getattr(_HERE, "runs", False)


class _Payload:
    """A payload that a cache knows by its digest."""

    __slots__ = ("content", "digest")

    def __init__(self, content: bytes | NDArray[np.uint8], digest: str) -> None:
        self.content, self.digest = content, digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Payload) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=2)
def _load(payload: _Payload) -> Work | str:
    """Load the work; or words on why it cannot run here."""
    import cloudpickle  # noqa: PLC0415

    content = bytes(payload.content)
    if lacks := find_lacks(read_header(content)):
        return lacks
    (length,) = _LENGTH.unpack(content[: _LENGTH.size])
    try:
        work: Any = cloudpickle.loads(memoryview(content)[_LENGTH.size + length :])
    except (Exception, SystemExit) as cause:  # a module that is only there where it was sent from
        # Words of imports name modules; others are of code that travelled, and may tell rows.
        told = f": {cause}" if isinstance(cause, ImportError) else ""
        return f"what was sent cannot be loaded ({type(cause).__name__}{told})"
    try:
        return work.prepare() or work  # type: ignore[no-any-return]
    except (Exception, SystemExit) as cause:
        return f"what was sent cannot be tried there ({type(cause).__name__})"


def name_process() -> str:
    """Name this process, among all processes of all machines."""
    return f"{_PROCESS}-{os.getpid()}"


def _describe_place() -> str:
    return f"{socket.gethostname()}, process {os.getpid()}"
