"""The page Data: say what a table is, once."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._web.fields import Form
from hushed._web.messages import say_error
from hushed._web.rendering import Fields
from hushed.errors import HushedError
from hushed.workbench._bench import Turn, Workbench
from hushed.workbench._drafts import Draft
from hushed.workbench._views.addresses import split_password
from hushed.workbench._views.data import find_public
from hushed.workbench._views.suggestions import settle_suggestions, suggest_columns
from hushed.workbench._workspace import list_files, list_tables

PREFIX = "data."
_LONGEST_NAME = 200
# Fields that stand on the page before a table is opened.
_OF_THE_PLACE = ("where", "file", "place", "first", "header", "newlines", "address", "mark")


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter()

    @router.get("/tables")
    def list_tables(request: Request) -> Response:
        drafts = bench.drafts.list("table")
        return bench.show(request, "page_tables.html", active="tables", drafts=drafts)

    @router.post("/tables")
    def begin() -> Response:
        draft = bench.drafts.create("table", "New question", {"data.where": "file"})
        return bench.go(f"/tables/{draft.id}/data")

    @router.get("/tables/{identity}/data")
    def show(request: Request, identity: str) -> Response:
        return show_data(bench, request, bench.drafts.get(identity), "page_data.html")

    @router.post("/tables/{identity}/data/live")
    def change(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        return show_data(bench, request, save(bench, identity, fields, turn), "part_data.html")

    @router.post("/tables/{identity}/data/suggest")
    def suggest(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        draft = save(bench, identity, fields, turn)
        try:
            typed = draft.part(PREFIX)
            public = find_public(bench.workspace, Form(typed), bench.list_privates(identity))
            filled = suggest_columns(public, typed)
        except HushedError as error:
            found = {"public": say_error(error)}
            return show_data(bench, request, draft, "page_data.html", more=found)
        bench.drafts.change(identity, filled, prefix=PREFIX)
        return bench.go(f"/tables/{identity}/data")

    @router.post("/tables/{identity}/data/keep")
    def keep(identity: str, fields: Fields, turn: Turn) -> Response:
        draft = save(bench, identity, fields, turn)
        mark = bench.describe(draft).mark
        bench.drafts.change(identity, draft.part(PREFIX) | {"mark": mark}, prefix=PREFIX)
        return bench.go(f"/tables/{identity}/data")

    @router.post("/tables/{identity}/data")
    def go_on(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        draft = save(bench, identity, fields, turn)
        if bench.describe(draft).described is None:
            return show_data(bench, request, draft, "page_data.html", status=422, asked=True)
        return bench.go(f"/tables/{identity}/question")

    return router


def save(bench: Workbench, identity: str, fields: Mapping[str, str], turn: int) -> Draft:
    """Write down what was typed; a password goes to memory, and nowhere else."""
    typed = {name: text for name, text in fields.items() if name not in ("password", "name")}
    secret = fields.get("password", "")
    if typed.get("address"):
        try:
            typed["address"], within = split_password(typed["address"])
        except HushedError:
            typed["address"], within = "", ""  # what cannot be read may hold a password anywhere
        secret = secret or within
    if secret:
        bench.secrets[identity] = secret
    before = bench.drafts.get(identity)
    if "rows" not in typed:  # the table could not be opened, and the page did not show the rest
        kept = before.part(PREFIX).items()
        typed = {key: text for key, text in kept if key not in _OF_THE_PLACE} | typed
    if typed.get("file", "") != before.fields.get("data.file", ""):
        typed["mark"] = ""
    typed = settle_suggestions(
        before.part(PREFIX), typed, holds=lambda: _is_public(bench, identity, typed)
    )
    name = fields.get("name", "").strip()[:_LONGEST_NAME] or before.name
    draft = bench.drafts.change(identity, typed, prefix=PREFIX, name=name, turn=turn)
    if typed.get("mark"):
        return draft
    mark = bench.describe(draft).mark
    if not mark:
        return draft
    return bench.drafts.change(identity, typed | {"mark": mark}, prefix=PREFIX, turn=turn)


def _is_public(bench: Workbench, identity: str, typed: Mapping[str, str]) -> bool:
    """Whether the public table may still suggest."""
    try:
        find_public(bench.workspace, Form(typed), bench.list_privates(identity))
    except HushedError:
        return False
    return True


def show_data(
    bench: Workbench,
    request: Request,
    draft: Draft,
    template: str,
    *,
    status: int = 200,
    asked: bool = False,
    more: Mapping[str, str] | None = None,
) -> Response:
    """Show the page, or its part that changes while one types."""
    view = bench.describe(draft)
    gauges, _ = bench.gauges()
    budgets = [("", "none yet: a release needs one")]
    budgets += [(each.name, each.sentence) for each in gauges]
    return bench.show(
        request,
        template,
        status,
        active="tables",
        draft=draft,
        view=view,
        fields=draft.part(PREFIX),
        errors=find_shown(view.errors, draft.part(PREFIX), asked=asked) | dict(more or {}),
        files=list_tables(bench.workspace),
        publics=list_files(bench.workspace),
        budgets=budgets,
        has_password=draft.id in bench.secrets,
        budget=draft.fields.get("data.budget", ""),
    )


def find_shown(
    errors: Mapping[str, str], fields: Mapping[str, str], *, asked: bool
) -> dict[str, str]:
    """Leave out remarks on what nobody has filled in yet, until somebody wants to go on."""
    return {name: text for name, text in errors.items() if asked or fields.get(name)}
