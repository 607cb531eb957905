"""The page Settings: workspace, appearance, versions, licences."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from platform import python_version

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._web.rendering import STATIC, Fields
from hushed.workbench._bench import Workbench
from hushed.workbench._views.addresses import with_password

THEMES = (("system", "as the computer"), ("light", "light"), ("dark", "dark"))
_PACKAGES = ("hushed", "numpy", "duckdb", "ibis-framework", "pyarrow", "fastapi", "uvicorn")


def make_router(bench: Workbench) -> APIRouter:
    """Make the routes of the page."""
    router = APIRouter()

    @router.get("/settings")
    def show(request: Request) -> Response:
        return bench.show(
            request,
            "page_settings.html",
            active="settings",
            themes=THEMES,
            address=with_password(bench.workspace.ledger),
            versions=[("Python", python_version()), *list_versions()],
            licences=(STATIC / "LICENSES").read_text("utf-8"),
        )

    @router.post("/settings")
    def change(fields: Fields) -> Response:
        theme = fields.get("theme", "system")
        if theme in dict(THEMES):
            bench.drafts.change_setting("theme", theme)
        return bench.go("/settings")

    return router


def list_versions() -> list[tuple[str, str]]:
    """List the packages that the workbench rests on."""
    found = []
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            found.append((name, "not installed"))
    return found
