"""The pages of the ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._web.messages import say_error
from hushed._web.rendering import Fields, download
from hushed.errors import DamagedLedger, HushedError, NotFound
from hushed.ledger import Ledger
from hushed.plots import certificate_page
from hushed.statements import certify_budget
from hushed.workbench._bench import Workbench
from hushed.workbench._describing import PREFIX
from hushed.workbench._views.addresses import read_segment
from hushed.workbench._views.ledgers import (
    NEIGHBOURS,
    UNITS,
    Opening,
    describe_budget,
    read_opening,
)


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the pages."""
    router = APIRouter()

    @router.get("/ledger")
    def show_all(request: Request) -> Response:
        return bench.show(
            request, "page_ledger.html", active="ledger", said="", bad="", anchors=False
        )

    @router.get("/ledger/open")
    def show_opening(request: Request, unit: str = "user", table: str = "") -> Response:
        fields = {"unit": unit, "neighbours": "add-remove", "table": table}
        return show_form(bench, request, fields, Opening())

    @router.post("/ledger/open")
    def open_budget(request: Request, fields: Fields) -> Response:
        opening = read_opening(fields)
        wrong = open_limit(bench, opening)
        if wrong is not None:
            return show_form(bench, request, fields, wrong, status=422)
        return bench.go(choose_budget(bench, fields.get("table", ""), opening.name))

    @router.post("/ledger/verify")
    def verify(request: Request) -> Response:
        said, bad = verify_all(bench)
        return bench.show(
            request, "page_ledger.html", active="ledger", said=said, bad=bad, anchors=bool(said)
        )

    @router.post("/ledger/backup")
    def back_up(request: Request) -> Response:
        said, bad = copy_ledger(bench)
        return bench.show(
            request, "page_ledger.html", active="ledger", said=said, bad=bad, anchors=False
        )

    _add_files(router, bench)

    @router.get("/ledger/{segment}")
    def show_one(request: Request, segment: str) -> Response:
        name = read_segment(segment)
        view = describe_budget(require_ledger(bench), name, bench.drafts.list())
        return bench.show(request, "page_budget.html", active="ledger", view=view, budget=name)

    return router


def _add_files(router: APIRouter, bench: Workbench) -> None:
    """Add what can be downloaded; the export comes before the page of a budget of that name."""

    @router.get("/ledger/export")
    def export() -> Response:
        return download("hushed-ledger.json", bench.ledger().export(), "application/json")

    @router.get("/ledger/{segment}/report.{kind}")
    def report(segment: str, kind: Literal["html", "json"]) -> Response:
        name = read_segment(segment)
        made = certify_budget(require_ledger(bench), name)
        if kind == "json":
            return download(f"report-{name}.json", made.to_json(), "application/json")
        return download(f"report-{name}.html", certificate_page(made), "text/html")


def require_ledger(bench: Workbench) -> Ledger:
    """Open the ledger, or say that there is none."""
    try:
        return bench.ledger()
    except NotFound:
        raise NotFound("there is no budget yet; open one on the page Ledger") from None


def open_limit(bench: Workbench, opening: Opening) -> Opening | None:
    """Open a budget; what is wrong if that is refused."""
    if opening.limit is None:
        return opening
    try:
        bench.ledger(create=True).open_budget(opening.name, opening.limit, note=opening.note)
    except HushedError as error:
        at = error.parameter if error.parameter in ("epsilon", "delta", "gamma") else "name"
        return Opening(errors={str(at): say_error(error)})
    return None


def choose_budget(bench: Workbench, identity: str, name: str) -> str:
    """Choose a new budget for the table from whose page it was opened; where to go on."""
    if not identity:
        return "/ledger"
    try:
        draft = bench.drafts.get(identity)
        if draft.kind != "table":
            return "/ledger"
        bench.drafts.change(identity, draft.part(PREFIX) | {"budget": name}, prefix=PREFIX)
    except NotFound:  # deleted meanwhile
        return "/ledger"
    return f"/tables/{draft.id}/data"


def copy_ledger(bench: Workbench) -> tuple[tuple[str, ...], str]:
    """Copy the ledger into the folder, under a name that is ours."""
    name = f"ledger-copy-{datetime.now(UTC):%Y%m%d-%H%M%S}.db"
    try:
        bench.ledger().backup(bench.workspace.folder / name)
    except HushedError as error:
        return (), say_error(error)
    return (f"copied to {name} in the folder",), ""


def verify_all(bench: Workbench) -> tuple[tuple[str, ...], str]:
    """Check the chain of every budget; what to keep of each, and what is wrong with the first."""
    said: list[str] = []
    try:
        ledger = bench.ledger()
        for name in [each.name for each in ledger.budgets()]:
            said += [f"{name}: sound, {ledger.verify(name)}"]
    except DamagedLedger as error:
        return tuple(said), f"{say_error(error)} Do not release; restore a copy, and compare it."
    except HushedError as error:
        return tuple(said), say_error(error)
    return tuple(said), ""


def show_form(
    bench: Workbench, request: Request, fields: Fields, opening: Opening, status: int = 200
) -> Response:
    """Show the form of a new budget."""
    return bench.show(
        request,
        "page_open_budget.html",
        status,
        active="ledger",
        fields=fields,
        errors=opening.errors,
        units=UNITS,
        neighbours=NEIGHBOURS,
    )
