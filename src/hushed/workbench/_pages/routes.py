"""The page that compares: which promise at what price, on public rows."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from hushed.workbench._bench import Workbench
from hushed.workbench._drafts import Draft
from hushed.workbench._jobs import JobState
from hushed.workbench._views.comparisons import (
    draw_routes,
    list_cells,
    read_compared,
    read_comparison,
)
from hushed.workbench._works import Work, make_work_router


def _show(_bench: Workbench, _draft: Draft, state: JobState | None) -> dict[str, Any]:
    if state is None or state.status != "done":
        return {"compared": None}
    compared = read_compared(state.result)
    return {
        "compared": compared,
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
    return make_work_router(bench, WORK)
