"""The page of audits: does a mechanism keep its word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import Response

from hushed._web.rendering import download
from hushed.errors import NotFound
from hushed.plots import certificate_page
from hushed.statements import Statement
from hushed.workbench._bench import Workbench
from hushed.workbench._drafts import Draft
from hushed.workbench._jobs import JobState, name_certificate
from hushed.workbench._views.audits import describe_verdict, list_zoo, read_audit, read_stand
from hushed.workbench._views.samples import draw_estimate, draw_event, draw_outcomes
from hushed.workbench._views.sources import Defined
from hushed.workbench._works import (
    ReadForm,
    Work,
    find_draft,
    find_job,
    home_of,
    make_work_router,
)


def _read(typed: Mapping[str, str], _tables: list[str], functions: list[Defined]) -> ReadForm:
    return read_audit(typed, functions)


def _show(_bench: Workbench, _draft: Draft, state: JobState | None) -> dict[str, Any]:
    found: dict[str, Any] = {"zoo": list_zoo(), "stand": None, "judged": None}
    if state is not None and state.status == "done":
        found["judged"] = judged = describe_verdict(state.result)
        found["event"], found["estimate"] = draw_event(judged), draw_estimate(judged)
        found["outcomes"] = draw_outcomes(judged)
    elif state is not None:
        found["stand"] = read_stand(state.notes)
    return found


WORK = Work(
    path="audits",
    kind="audit",
    job="audit",
    title="Check a mechanism",
    name="An audit",
    empty="Pick a broken mechanism from the zoo and see it caught.",
    words_of=_read,
    show=_show,
)


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = make_work_router(bench, WORK)

    @router.get("/audits/{identity}/certificate.json")
    def save_certificate(identity: str) -> Response:
        text = _read_certificate(bench, identity)
        return download("audit-certificate.json", text, "application/json")

    @router.get("/audits/{identity}/report.html")
    def save_report(identity: str) -> Response:
        page = certificate_page(Statement.from_json(_read_certificate(bench, identity)))
        return download("audit-report.html", page, "text/html")

    return router


def _read_certificate(bench: Workbench, identity: str) -> str:
    """Read what the last audit of a draft wrote; none is kept of one that was made before."""
    state = find_job(bench, find_draft(bench, WORK, identity), WORK.job)
    if state is not None and state.status == "done":
        path = name_certificate(home_of(bench), state.job)
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise NotFound("there is no certificate of this audit: run it first")
