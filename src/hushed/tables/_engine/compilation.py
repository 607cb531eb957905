"""Compile a query to the SQL of an engine."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any

_STATE: dict[str, Any] = {"lock": RLock()}


def compile_sql(query: Any) -> str:
    """Compile a query to the SQL of its engine; nothing is read."""
    import ibis  # noqa: PLC0415

    with _STATE["lock"]:
        before, ibis.options.sql.fuse_selects = ibis.options.sql.fuse_selects, False
        _STATE["before"] = before
        try:
            return str(query.get_backend().compile(query))
        finally:
            ibis.options.sql.fuse_selects = before
            del _STATE["before"]


def _reset_after_fork() -> None:
    """After a fork no other thread compiles any more: make a new lock, and restore the setting."""
    _STATE["lock"] = RLock()
    if "before" in _STATE:
        import ibis  # noqa: PLC0415

        ibis.options.sql.fuse_selects = _STATE.pop("before")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
