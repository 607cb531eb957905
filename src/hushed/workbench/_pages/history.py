"""The page History: drafts, prices that were asked, and releases."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed.errors import HushedError
from hushed.workbench._bench import ADDRESSES, Workbench
from hushed.workbench._jobs import stop_public_jobs
from hushed.workbench._views.recent import list_last

_MOST = 200
KINDS = {
    "": "all",
    "table": "tables",
    "function": "functions",
    "audit": "audits",
    "population": "populations",
    "comparison": "comparisons",
}


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter()

    @router.get("/history")
    def show(request: Request, kind: str = "", text: str = "") -> Response:
        every = bench.drafts.list()
        sought = text.strip().casefold()
        drafts = [
            each for each in every if kind in ("", each.kind) and sought in each.name.casefold()
        ]
        names = {each.id: each for each in every}
        events = [each for each in bench.drafts.events(_MOST) if not sought or sought in each.text]
        try:
            charges = list_last(bench.ledger(), every, _MOST)
        except HushedError:
            charges = ()
        return bench.show(
            request,
            "page_history.html",
            active="history",
            drafts=drafts[:_MOST],
            events=events,
            names=names,
            charges=[each for each in charges if not sought or sought in each.note.casefold()],
            kinds=list(KINDS.items()),
            kind=kind,
            text=text,
        )

    @router.post("/drafts/{identity}/copy")
    def copy(identity: str) -> Response:
        draft = bench.drafts.copy(identity)
        return bench.go(ADDRESSES[draft.kind].format(draft.id))

    @router.post("/drafts/{identity}/delete")
    def delete(identity: str) -> Response:
        bench.drafts.delete(identity)
        stop_public_jobs(bench.workspace.hidden / "jobs", identity)
        bench.secrets.pop(identity, None)
        return bench.go("/history")

    return router
