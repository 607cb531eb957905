"""How long a sampling may take: a command that calls the function a few times, on public rows."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._web.rendering import Fields
from hushed.workbench._bench import Turn, Workbench
from hushed.workbench._drafts import Draft
from hushed.workbench._jobs import new_job, start_job, stop_job
from hushed.workbench._views.functions import tell_trial, write_trial
from hushed.workbench._works import (
    FORM,
    Work,
    find_draft,
    find_job,
    home_of,
    look_around,
    save_form,
    show_work,
)

_TRIAL = "trial"


def describe_trial(bench: Workbench, draft: Draft, words: list[str]) -> dict[str, Any]:
    """Describe what the last trial of what stands in the form has told."""
    state = find_job(bench, draft, _TRIAL)
    if state is None or list(state.job.words) != write_trial(words):
        return {"trial": None, "expected": ""}
    told = tell_trial(state.result, words) if state.status == "done" else ""
    return {"trial": state, "expected": told}


def make_trial_router(bench: Workbench, work: Work) -> APIRouter:
    """Make the routes of the button that asks how long a sampling may take."""
    router = APIRouter()
    base = f"/{work.path}/{{identity}}/trial"

    @router.post(base)
    def begin(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        draft = save_form(bench, find_draft(bench, work, identity), fields, turn)
        words, errors = work.read(draft.part(FORM), look_around(bench))
        if errors:
            return show_work(bench, work, request, draft, errors)
        bench.require_writable()
        job = new_job(_TRIAL, draft.id, write_trial(words))
        start_job(home_of(bench), bench.workspace.folder, job)
        return bench.go(f"/{work.path}/{draft.id}#trial")

    @router.get(base)
    def show(request: Request, identity: str) -> Response:
        draft = find_draft(bench, work, identity)
        words, _ = work.read(draft.part(FORM), look_around(bench))
        address = f"{bench.root}/{work.path}/{draft.id}"
        found = describe_trial(bench, draft, words)
        return bench.show(request, "part_trial.html", address=address, **found)

    @router.post(base + "/stop")
    def stop(identity: str) -> Response:
        draft = find_draft(bench, work, identity)
        state = find_job(bench, draft, _TRIAL)
        if state is not None:
            stop_job(home_of(bench), state.job.id)
        return bench.go(f"/{work.path}/{draft.id}#trial")

    return router
