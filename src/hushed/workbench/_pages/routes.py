"""The page that compares: which promise at what price, on public rows."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from hushed.workbench._bench import Workbench
from hushed.workbench._drafts import Draft
from hushed.workbench._jobs import JobState
from hushed.workbench._views.comparisons import (
    begin_function,
    draw_routes,
    goes_on,
    list_cells,
    read_compared,
    read_comparison,
)
from hushed.workbench._works import FORM, Work, find_draft, find_job, make_work_router


def _show(_bench: Workbench, draft: Draft, state: JobState | None) -> dict[str, Any]:
    if state is None or state.status != "done":
        return {"compared": None}
    compared = read_compared(state.result)
    return {
        "compared": compared,
        "command": state.result.get("next", ""),
        "goes_on": goes_on(compared, draft.part(FORM)),
        "cells": list_cells(compared),
        "picture": draw_routes(compared),
    }


WORK = Work(
    path="routes",
    kind="comparison",
    job="compare",
    title="Which promise at what price",
    name="A comparison",
    empty="Nothing here yet. Compare the ways to release a median of made-up ages: no private row "
    "is needed or seen.",
    words_of=read_comparison,
    show=_show,
)


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = make_work_router(bench, WORK)

    @router.post("/routes/{identity}/function")
    def make_private(identity: str) -> Response:
        draft = find_draft(bench, WORK, identity)
        state = find_job(bench, draft, WORK.job)
        if state is None or state.status != "done":
            return bench.go(f"/routes/{identity}")
        fields = begin_function(read_compared(state.result), draft.part(FORM))
        kept = {f"{FORM}{name}": text for name, text in fields.items()}
        made = bench.drafts.create("function", draft.name, kept)
        return bench.go(f"/functions/{made.id}")

    return router
