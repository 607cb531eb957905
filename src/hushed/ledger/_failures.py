"""Failures on private rows, stored as the answers that they are."""

from __future__ import annotations

import json
from typing import NoReturn

from hushed import errors
from hushed.errors import BadFunction, QueryFailed

_VERSION = 1


def write_failure(error: BadFunction | QueryFailed) -> str:
    """Write down that a function or a query failed on the private rows: an answer, too."""
    record = {"schema": "hushed failure", "version": _VERSION}
    return json.dumps(record | {"error": type(error).__name__, "message": str(error)})


def raise_failure(text: str) -> None:
    """Raise the failure that is stored as an answer; nothing if it is another answer."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(record, dict) and record.get("schema") == "hushed failure":
        _raise(str(record.get("error")), str(record.get("message")))


def _raise(name: str, message: str) -> NoReturn:
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BadFunction | QueryFailed)):
        kind = BadFunction
    raise kind(message)
