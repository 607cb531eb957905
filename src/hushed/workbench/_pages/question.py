"""The page of a question: compose it, see its error, choose epsilon; nothing private is read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._web.composer import Typed, edit_fields
from hushed._web.messages import say_error
from hushed._web.question import read_question
from hushed._web.rendering import Fields, download
from hushed.errors import HushedError, ParameterError
from hushed.tables import Query
from hushed.workbench._bench import Turn, Workbench
from hushed.workbench._describing import Descriptions
from hushed.workbench._drafts import Draft
from hushed.workbench._views.composer import PREFIX, Composer, read_held, settle_fields
from hushed.workbench._views.curves import draw_prices
from hushed.workbench._views.exports import Source, write_question
from hushed.workbench._views.joins import ENDINGS
from hushed.workbench._views.preview import preview_answer
from hushed.workbench._views.pricing import Held, price_question
from hushed.workbench._views.releases import find_price, say_largest_error
from hushed.workbench._workspace import list_files

_FRESH = 1.0  # seconds: the ledger is asked no more often while somebody types
_BEGINNING = {"stat.1.kind": "count", "epsilon": "1", "moved": "epsilon"}


@dataclass(frozen=True, slots=True)
class _Pages:
    """What the handlers of this page share."""

    bench: Workbench
    tables: Descriptions
    known: dict[str, tuple[float, float | None]] = field(default_factory=dict)

    def compose(
        self, draft: Draft, fields: Mapping[str, str], *, checked: bool = False, soon: bool = False
    ) -> Composer:
        """Read the form, and move the slider that is not held.

        At a key press, ``soon``, what is left of the budget may be what it was a second ago.
        """
        described = self.tables.ask(draft, fields)
        question = read_question(described, fields)
        held: Held = read_held(fields)
        live = price_question(question, fields, held, self.find_left(described.budget, soon=soon))
        first = next(iter(live.errors), "") if checked else ""
        return Composer(
            draft=draft,
            form=Typed(fields=fields, errors=live.errors, first=first),
            live=live,
            held=held,
            url=f"{self.bench.root}/tables/{draft.id}/question",
            described=described,
            question=question,
            list_files=lambda: list_files(self.bench.workspace, ENDINGS),
        )

    def find_left(self, budget: str, *, soon: bool = False) -> float | None:
        """Ask what is left of a budget; None if that cannot be told."""
        if not budget:
            return None
        at, left = self.known.get(budget, (-_FRESH, None))
        if soon and time.monotonic() - at < _FRESH:
            return left
        try:
            left = self.bench.ledger().balance(budget).epsilon_left
        except HushedError:
            left = None
        self.known[budget] = time.monotonic(), left
        return left

    def keep(self, view: Composer, turn: int) -> Draft:
        """Write down what was typed."""
        kept = settle_fields(view.form.fields, view.live, view.held)
        return self.bench.drafts.change(view.draft.id, kept, prefix=PREFIX, turn=turn)

    def price(self, view: Composer) -> Composer:
        """Draw the curve, and ask the ledger for the price."""
        found: dict[str, Any] = {}
        budget, quote = view.described.budget, view.live.quote
        if quote is None:
            return view
        found["curve"] = draw_prices(view.question, view.live, self.find_left(budget))
        try:
            if budget:
                found["price"] = find_price(self.bench.ledger(), budget, view.question, quote)
                found["largest_error"] = say_largest_error(
                    view.question, view.live.sliders.error_of, found["price"].largest
                )
            else:
                found["price_problem"] = "No budget yet: choose the one that pays on the page Data."
        except HushedError as error:
            found["price_problem"] = say_error(error)
        return replace(view, **found)


def begin_fields(draft: Draft) -> dict[str, str]:
    """Fields of the page, or those that it begins with."""
    return draft.part(PREFIX) or dict(_BEGINNING)


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter(prefix="/tables/{identity}/question")
    pages = _Pages(bench, Descriptions(bench))

    def show(request: Request, view: Composer, status: int = 200) -> Response:
        part = request.headers.get("hx-request") == "true"
        template = "part_question_page.html" if part else "page_question.html"
        told = {"view": view, "active": "tables", "budget": view.described.budget}
        return bench.show(request, template, status, **told)

    @router.get("")
    def begin(request: Request, identity: str) -> Response:
        draft = bench.drafts.get(identity)
        try:
            view = pages.compose(draft, begin_fields(draft))
        except ParameterError:  # the page Data says what is missing
            return bench.go(f"/tables/{identity}/data")
        return show(request, view)

    @router.post("")
    def go_on(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        view = pages.compose(bench.drafts.get(identity), fields, checked=True)
        pages.keep(view, turn)
        if view.live.errors or view.question.table is None:
            return show(request, view, 422)
        return bench.go(f"/tables/{identity}/release")

    @router.post("/edit")
    def edit(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        edited = edit_fields(fields, fields.get("action", ""))
        view = pages.compose(bench.drafts.get(identity), edited)
        draft = pages.keep(view, turn)
        view = view.wait_for_columns()
        if request.headers.get("hx-request") != "true":
            return bench.go(f"/tables/{identity}/question")
        return show(request, replace(view, draft=draft))

    _add_parts(router, pages)
    return router


def _add_parts(router: APIRouter, pages: _Pages) -> None:
    """Add what changes while the page is open, and the exports."""
    bench = pages.bench

    @router.post("/live")
    def update(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        try:
            view = pages.compose(bench.drafts.get(identity), fields, soon=True)
        except ParameterError:  # the page Data was changed meanwhile, and says what is missing
            return Response(headers={"HX-Redirect": f"{bench.root}/tables/{identity}/data"})
        pages.keep(view, turn)
        answer = bench.show(request, "part_question_live.html", view=view)
        if view.live.quote is None and not view.empty:
            answer.headers["HX-Reswap"] = "none"  # what was said stays; errors come all the same
        else:
            answer.headers["HX-Trigger"] = "priced"
        return answer

    @router.post("/price")
    def tell_price(request: Request, identity: str, fields: Fields) -> Response:
        view = pages.price(pages.compose(bench.drafts.get(identity), fields))
        return bench.show(request, "part_question_price.html", view=view)

    @router.post("/preview")
    def preview(request: Request, identity: str, fields: Fields) -> Response:
        view = pages.compose(bench.drafts.get(identity), fields)
        found = preview_answer(view.described, view.question, view.live.epsilon or 1.0)
        told = {"preview": found, "preview_url": view.preview_url}
        return bench.show(request, "part_question_preview.html", **told)

    @router.get("/export/{kind}")
    def export(identity: str, kind: str, path: str = "") -> Response:
        draft = bench.drafts.get(identity)
        view = pages.compose(draft, begin_fields(draft))
        if view.question.table is None or view.live.epsilon is None:
            return bench.go(f"/tables/{identity}/question")
        described = view.described
        how = described.reading.as_arguments()
        source = Source(address=described.source, place=described.place, **how)
        asked = Query.of(view.question.table)
        terms = {"epsilon": view.live.epsilon, "delta": view.question.terms.delta}
        file = write_question(
            kind,
            asked,
            source if path == "yes" else source.without_path(),
            terms | {"noise": view.question.terms.noise},
            name="question",
        )
        return download(file.name, file.content, file.kind)
