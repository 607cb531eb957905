"""How a process reads rows for what is paid: scan, noise, and the text of the answer.

Noise is drawn here, because it is needed between two scans where keys or bounds are chosen, and
because so the exact numbers never leave the process that has read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hushed.errors import EngineUnavailable, HushedError, QueryFailed
from hushed.server._worker import prepare, tell_unavailable
from hushed.tables import Query

if TYPE_CHECKING:
    from hushed.tables import Table


def answer(table: Table, told: dict[str, Any]) -> dict[str, Any]:
    """Answer a question that was charged; what fails is told by a word of a fixed list."""
    if "function" in told:
        from hushed.server._sampled import release_function  # noqa: PLC0415

        return release_function(table, told)
    return _answer_query(table, told)


def _answer_query(table: Table, told: dict[str, Any]) -> dict[str, Any]:
    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return text

    try:
        query = Query.model_validate(told["asked"]["query"])
        prepared = prepare(table, query, told["asked"], told["run_seconds"])
    except EngineUnavailable as error:
        return tell_unavailable(error)
    except HushedError:
        return {"problem": "unknown"}  # what was charged cannot be asked any more
    if prepared.digest != told["question"]:
        return {"problem": "unknown"}
    try:
        prepared.answer(charged=told["question"], keep=keep)
    except EngineUnavailable as error:
        return tell_unavailable(error)
    except QueryFailed:  # a failure is kept, unless only the connection was lost
        return {"problem": "rows" if kept else "interrupted"}
    return {"answer": kept[0]}
