"""Errors on their way from a worker: packed with their causes, and made again."""

from __future__ import annotations

import pickle
from itertools import pairwise

from hushed.errors import WorkerLost

_MOST_CAUSES = 8


def pack_error(error: BaseException) -> bytes:
    """Pickle an error and its causes; one that cannot be made again becomes its words."""
    import cloudpickle  # noqa: PLC0415

    chain: list[bytes] = []
    each: BaseException | None = error
    while each is not None and len(chain) < _MOST_CAUSES:
        try:
            content = cloudpickle.dumps(each)
            known = type(cloudpickle.loads(content)) is type(each)
        except Exception:  # classes of the user may fail in any way
            known = False
        if not known:
            words = f"{type(each).__name__}: {each}"
            content = pickle.dumps(WorkerLost(words) if each is error else RuntimeError(words))
        chain.append(content)
        each = each.__cause__
    return pickle.dumps(chain)


def rebuild(error: bytes) -> BaseException:
    """Make the error of a `Raised` again, with its causes.

    Parameters
    ----------
    error : bytes
        As a worker packed it.

    Returns
    -------
    BaseException
        The error, as it would have been raised here.
    """
    import cloudpickle  # noqa: PLC0415

    try:
        found = [_load(each) for each in cloudpickle.loads(error)]
    except Exception as problem:  # an engine of the caller's made it, or cut it
        return WorkerLost(f"an error of a worker cannot be read ({type(problem).__name__})")
    for one, cause in pairwise(found):
        one.__cause__ = cause
    return found[0]


def _load(content: bytes) -> BaseException:
    import cloudpickle  # noqa: PLC0415

    try:
        loaded = cloudpickle.loads(content)
    except Exception as cause:  # a class that only the worker has
        return WorkerLost(f"a worker raised an error that is not known here ({cause})")
    return loaded if isinstance(loaded, BaseException) else WorkerLost(repr(loaded))
