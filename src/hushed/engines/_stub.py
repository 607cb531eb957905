"""What is sent to a worker that may have no hushed: a function of the standard library alone."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from hushed.engines._protocol import Lacks, Outcome, Task
from hushed.engines._worker import run_span
from hushed.errors import ParameterError

_MOST_BYTES = 500_000_000


def make_stub() -> Callable[..., bytes]:
    """Make a function that travels by its code, and says what is lacking where it arrives."""
    function = pickle.dumps(run_span)

    def call(payload: bytes, digest: str, seed: int, start: int, stop: int) -> bytes:
        import pickle  # noqa: PLC0415 - there, where nothing of this module is

        try:
            run = pickle.loads(function)  # noqa: S301 - made above
        except Exception as cause:  # whatever an import may raise
            return pickle.dumps(f"hushed cannot be loaded there ({type(cause).__name__}: {cause})")
        return pickle.dumps(run(payload, digest, seed, start, stop))

    return call


def read_answer(answer: bytes, place: str) -> Outcome:
    """Read what a stub gave back."""
    found: Any = pickle.loads(answer)  # noqa: S301 - by a worker, which ran the work
    return Lacks(found, place) if isinstance(found, str) else found


def check_size(task: Task, name: str) -> None:
    """Refuse work that is too large to be sent."""
    if len(task.payload) > _MOST_BYTES:
        raise ParameterError(
            f"the function holds {len(task.payload) / 1e6:.0f} MB, more than can be sent to "
            f"{name}: let it load them from a path that the workers can read",
            parameter="workers",
        )
