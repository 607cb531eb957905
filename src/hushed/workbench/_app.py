"""The app: pages, static files, the guard around them, and what an error looks like."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from hushed._ground.calls import called_as
from hushed._web.messages import say_error
from hushed._web.rendering import STATIC, is_part
from hushed.errors import HushedError, NotFound, Refusal
from hushed.workbench._bench import Workbench
from hushed.workbench._pages import (
    answer,
    audits,
    data,
    functions,
    history,
    ledger,
    populations,
    question,
    release,
    routes,
    settings,
    start,
)
from hushed.workbench._security import Door, Guard
from hushed.workbench._workspace import open_workspace, practice_of

# A page for each; all are there twice, once for the folder and once for its practice workspace.
PAGES = (
    start,
    data,
    question,
    release,
    answer,
    functions,
    audits,
    populations,
    routes,
    ledger,
    history,
    settings,
)
PRACTICE = "/practice"


@called_as('hs.workbench.create_app("study", port=8000)')
def create_app(folder: str | Path = ".", *, port: int, ledger: str | None = None) -> Guard:
    """Make the app of a workbench, for a server of your own on this computer.

    Parameters
    ----------
    folder : str or Path, default "."
        Folder of the tables. Drafts are kept in ``.hushed`` in it.
    port : int
        Port that it is going to be served on; requests to any other address are refused.
    ledger : str, optional
        Address of the ledger; by default ``ledger.db`` in the folder.

    Returns
    -------
    Guard
        An ASGI app. Its ``address`` has a key in it and opens it, once.

    Raises
    ------
    NotFound
        If there is no such folder.
    ParameterError
        If the folder cannot be read.
    """
    workspace = open_workspace(Path(folder), ledger)
    practice = Workbench(workspace=practice_of(workspace), root=PRACTICE)
    benches = (practice, Workbench(workspace=workspace))

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        """Close the ledgers as the server ends."""
        yield
        for bench in benches:
            bench.close()

    app = FastAPI(
        title="hushed workbench",
        version=version("hushed"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=live,
    )
    for bench in benches:
        for page in PAGES:
            app.include_router(page.make_router(bench), prefix=bench.root)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _handle_errors(app, benches)
    return Guard(app, Door(port=port))


def _handle_errors(app: FastAPI, benches: tuple[Workbench, Workbench]) -> None:
    practice, main = benches

    def bench_of(request: Request) -> Workbench:
        path = request.url.path
        return practice if path == PRACTICE or path.startswith(PRACTICE + "/") else main

    def show(request: Request, status: int, message: str) -> Response:
        template = "part_error.html" if is_part(request) else "page_error.html"
        return bench_of(request).show(request, template, status, message=message)

    @app.exception_handler(HushedError)
    def refuse(request: Request, error: Exception) -> Response:
        status = 404 if isinstance(error, NotFound) else 409 if isinstance(error, Refusal) else 422
        return show(request, status, say_error(error))

    @app.exception_handler(HTTPException)
    def miss(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        text = "There is no such page." if status == 404 else "The workbench did not take that."
        return show(request, status, text)

    @app.exception_handler(Exception)
    def fail(request: Request, error: Exception) -> Response:
        return show(
            request,
            500,
            f"Something failed that was not foreseen ({type(error).__name__}). If a release was "
            "under way, look at the ledger before doing it again.",
        )
