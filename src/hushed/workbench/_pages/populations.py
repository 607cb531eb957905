"""The page of a population: do the private rows contradict it? The check costs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._ground.printing import format_up
from hushed._web.rendering import Fields
from hushed.errors import ParameterError
from hushed.workbench._bench import Turn, Workbench
from hushed.workbench._drafts import Draft
from hushed.workbench._jobs import JobState
from hushed.workbench._payments import Payment, address_of, make_pay_router
from hushed.workbench._views.populations import (
    describe_check,
    guarantee_of,
    read_check,
    write_check,
)
from hushed.workbench._views.samples import draw_histogram
from hushed.workbench._works import (
    FORM,
    Work,
    add_forms,
    find_draft,
    look_around,
    save_form,
    show_work,
)


def _show(_bench: Workbench, _draft: Draft, _state: JobState | None) -> dict[str, Any]:
    return {}


WORK = Work(
    path="populations",
    kind="population",
    job="pay",
    title="Check a population",
    name="A check",
    empty="Nothing here yet. A check tells whether private rows contradict a public population; it "
    "reads the rows and costs privacy.",
    words_of=read_check,
    show=_show,
)


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter()

    @router.post("/populations/{identity}/run")
    def look_at_price(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        draft = save_form(bench, find_draft(bench, WORK, identity), fields, turn)
        errors = WORK.read(draft.part(FORM), look_around(bench))[1]
        if errors:
            return show_work(bench, WORK, request, draft, errors)
        return bench.go(f"/populations/{draft.id}/pay")

    def prepare(draft: Draft) -> Payment:
        typed = draft.part(FORM)
        words, errors = WORK.read(typed, look_around(bench))
        promise = guarantee_of(typed)
        if errors or promise is None:
            raise ParameterError("the form is not complete: go back to it")

        def write(budget: str, note: str, key: str) -> list[str]:
            ledger = address_of(bench)
            return write_check(words, ledger=ledger, budget=budget, note=note, key=key)

        return Payment(
            promise=promise,
            sentences=(
                f"The rows of {typed['data']} are compared with the population {words[3]}.",
                f"Privacy loss (epsilon) {format_up(promise.epsilon)} for everybody whose row may "
                "be replaced. The number of rows is public.",
            ),
            price=format_up(promise.epsilon),
            command=write,
        )

    add_forms(router, bench, WORK)
    router.include_router(make_pay_router(bench, WORK, prepare, _tell))
    return router


def _tell(state: JobState) -> dict[str, Any]:
    """Tell the verdict, with the picture of public tables and the private one among them."""
    told = describe_check(state.result)
    picture = draw_histogram(
        told.deviations,
        told.statistic,
        title="largest difference of shares, with noise",
        marked="private table",
        sentence=f"Where the private table stands among {len(told.deviations)} public tables: "
        f"{told.verdict}.",
    )
    return {"told": told, "picture": picture, "values": None, "paragraphs": told.paragraphs}
