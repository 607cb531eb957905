"""Compile a query to the SQL of an engine."""

from __future__ import annotations

from functools import cache
from typing import Any

from hushed._ground.forks import ForkSafeLock, do_in_forked_children

_COMPILING = ForkSafeLock()
_STATE: dict[str, Any] = {}  # the setting of the user, while a thread compiles


def compile_sql(query: Any) -> str:
    """Compile a query to the SQL of its engine; nothing is read."""
    import ibis  # noqa: PLC0415

    backend = query.get_backend()
    kind: Any = type(backend.compiler)
    with _COMPILING:
        before, ibis.options.sql.fuse_selects = ibis.options.sql.fuse_selects, False
        _STATE["before"] = before
        given, backend.compiler = backend.compiler, _limit_without_copies(kind)
        try:
            return str(backend.compile(query))
        finally:
            backend.compiler = given
            ibis.options.sql.fuse_selects = before
            del _STATE["before"]


@cache
def _limit_without_copies(kind: Any) -> Any:
    """Make a compiler that puts a LIMIT into a subquery, and copies nothing below it.

    That of Ibis copies the subquery with all that lies below it: for a query in many stages, most
    of the time that it takes to compile. Nothing else refers to the subquery: it had a name.
    """
    from sqlglot.expressions import Subquery  # noqa: PLC0415

    def visit_limit(self: Any, op: Any, *, parent: Any, n: Any, offset: Any) -> Any:
        within = parent.this
        plain = isinstance(parent, Subquery) and isinstance(n, int) and offset == 0
        if not plain or within.args.get("limit") is not None:
            return kind.visit_Limit(self, op, parent=parent, n=n, offset=offset)
        return type(within)(**within.args).limit(n, copy=False)  # a subquery would be copied again

    return type(kind.__name__, (kind,), {"visit_Limit": visit_limit})()


def _restore_setting() -> None:
    """After a fork no other thread compiles any more, to put the setting back."""
    if "before" in _STATE:
        import ibis  # noqa: PLC0415

        ibis.options.sql.fuse_selects = _STATE.pop("before")


do_in_forked_children(_restore_setting)
