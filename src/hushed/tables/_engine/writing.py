"""Writing a query down in the language of an engine, before it is asked."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any

_STATE: dict[str, Any] = {"lock": RLock()}


def written(query: Any) -> str:
    """Write a query down in the language of its engine; nothing is read."""
    import ibis  # noqa: PLC0415

    with _STATE["lock"]:
        before, ibis.options.sql.fuse_selects = ibis.options.sql.fuse_selects, False
        _STATE["before"] = before
        try:
            return str(query.get_backend().compile(query))
        finally:
            ibis.options.sql.fuse_selects = before
            del _STATE["before"]


def _anew() -> None:
    """After a fork no other thread writes any more, and what it set is put back."""
    _STATE["lock"] = RLock()
    if "before" in _STATE:
        import ibis  # noqa: PLC0415

        ibis.options.sql.fuse_selects = _STATE.pop("before")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_anew)
