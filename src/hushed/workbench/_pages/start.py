"""The page Start: continue, or begin."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from hushed.errors import HushedError
from hushed.workbench._bench import Workbench
from hushed.workbench._practice import make_practice
from hushed.workbench._views.recent import Charge, list_last


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter()

    @router.get("/")
    def show(request: Request) -> Response:
        drafts = bench.drafts.list()
        return bench.show(
            request, "page_start.html", active="start", drafts=drafts[:8], last=find_last(bench)
        )

    @router.get("/help")
    def show_help(request: Request) -> Response:
        return bench.show(request, "page_help.html", active="help")

    if bench.workspace.practice:

        @router.post("/begin")
        def practise() -> Response:
            draft = make_practice(bench)
            return RedirectResponse(f"{bench.root}/tables/{draft.id}/data", status_code=303)

    return router


def find_last(bench: Workbench) -> tuple[Charge, ...]:
    """Find the last releases; none if the ledger cannot be read, which every page tells."""
    try:
        return list_last(bench.ledger(), bench.drafts.list())
    except HushedError:
        return ()
