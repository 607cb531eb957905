"""The app of a server: routes, the guard around them, and what a refusal looks like."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

from hushed._ground.calls import called_as
from hushed._web.rendering import STATIC
from hushed.errors import HushedError
from hushed.ledger import Ledger
from hushed.ledger._together import reading
from hushed.server._approving import expire
from hushed.server._bounds import write_bounds
from hushed.server._callers import ROLE, Callers, find_visitor
from hushed.server._config import Settings
from hushed.server._datasets import (
    Dataset,
    close_file,
    open_all,
    open_as_registered,
    was_confirmed,
)
from hushed.server._desk import Desk
from hushed.server._functions import Function, open_functions
from hushed.server._guard import METHODS, Guard, show_problem
from hushed.server._keys import list_keys
from hushed.server._life import recover
from hushed.server._log import Log
from hushed.server._opening import mark_path, open_own
from hushed.server._pages._doors import make_house, make_pages
from hushed.server._pages._house import House
from hushed.server._pages._visitors import is_page
from hushed.server._problems import Problem, ProblemBody, name_cause, problem_of
from hushed.server._quick import Quick
from hushed.server._retention import delete_answers
from hushed.server._routes import approving, asking, functions, health, keeping
from hushed.server._runners import Runners
from hushed.server._sessions import PAGES
from hushed.server._told import Told
from hushed.server._values import say_value
from hushed.server._workers import Workers

SWEEP_SECONDS = 10.0
# A question that waits to be judged keeps one, and eight of a person may wait. With the usual 40,
# five people could keep everybody out, the steward who stops their tokens among them.
THREADS = 240


@called_as('hs.server.create_app("server")')
def create_app(folder: str | Path = ".") -> Guard:
    """Make the app of a team server, for an ASGI server of your own. Experimental.

    Parameters
    ----------
    folder : str or Path, default "."
        The folder that ``hushed serve init`` has made.

    Returns
    -------
    Guard
        An ASGI app. It keeps other processes from serving this ledger until it is shut down.

    Raises
    ------
    NotFound
        If there is no such folder, or it belongs to no server.
    ParameterError
        If its settings cannot be used.
    LedgerUnavailable, DamagedLedger, NewerLedger
        If the ledger cannot be used, was set back to an older copy, or is served already.
    Refusal
        If the ledger belongs to another server.
    """
    place = Path(folder)
    desk = open_desk(place, Log())
    try:
        desk.serve_alone()
    except BaseException:
        desk.close()
        raise
    return make_app(desk)


def open_desk(
    folder: Path,
    log: Log,
    workers: Workers | None = None,
    runners: Runners | None = None,
    told: Told | None = None,
) -> Desk:
    """Open ledger and data sets; no row is read. Several desks may share processes.

    A web process is told what the server was started with, whatever the file says by now.
    """
    settings, ledger, key = open_own(folder, None if told is None else told.settings)
    try:
        datasets, registered = _open_askable(folder, settings, ledger, log, told)
        with reading(ledger) as connection:
            keys = list_keys(connection, folder, key)
    except BaseException:
        ledger.close()
        raise
    judging = Workers(settings.limits.workers) if workers is None else workers
    scanning = Runners() if runners is None else runners
    desk = Desk(
        ledger=ledger,
        settings=settings,
        datasets=datasets,
        functions=registered,
        key=key,
        keys=keys,
        log=log,
        workers=judging,
        runners=scanning,
        mark=mark_path(folder, settings),
    )
    if told is not None:
        desk.hold = told.hold
    if workers is None:
        desk.at_end(judging.processes.close)
    if runners is None:
        desk.at_end(scanning.processes.close)
    return desk


def _open_askable(
    folder: Path, settings: Settings, ledger: Ledger, log: Log, told: Told | None
) -> tuple[dict[str, Dataset], dict[str, Function]]:
    datasets = open_all(folder, settings, ledger)
    registered = open_functions(folder, settings, ledger)
    if told is not None:
        datasets = {name: told.hold(each) for name, each in datasets.items()}
        registered = {name: told.hold_function(each) for name, each in registered.items()}
    for dataset in datasets.values():
        if dataset.stale:
            log("data set cannot be asked", dataset=dataset.id, reason=dataset.stale)
    for function in registered.values():
        if function.stale:
            log("function cannot be asked", function=function.id, reason=function.stale)
    return datasets, registered


def make_app(desk: Desk) -> Guard:
    """Make the app around what is open."""
    app = FastAPI(
        title="hushed server",
        summary="Private answers over HTTPS, against a budget. Experimental.",
        version=version("hushed"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # `_describe` has a route that writes it once
        redirect_slashes=False,  # it would send a token on by http, for TLS ends at the proxy
        separate_input_output_schemas=False,
        lifespan=lambda _: _live(desk),
    )
    callers = Callers(desk)
    app.include_router(health.make_router(desk))
    app.include_router(asking.make_router(desk, callers))
    app.include_router(functions.make_router(desk, callers))
    app.include_router(approving.make_router(desk, callers))
    app.include_router(keeping.make_router(desk, callers))
    house = make_house(desk, callers)
    for each in make_pages(house):
        app.include_router(each, include_in_schema=False)
    app.mount(f"{PAGES}/static", StaticFiles(directory=STATIC), name="static")
    _handle_errors(app, house)
    _describe(app)
    limits = desk.settings.limits
    return Guard(Quick(app, desk, callers), desk.settings.server, body=limits.body, log=desk.log)


@asynccontextmanager
async def _live(desk: Desk) -> AsyncIterator[None]:
    """Sweep at once and then again and again.

    A sweep that runs at the end is waited for: it would open the ledger that was closed.
    """
    ending = asyncio.Event()

    async def sweep_often() -> None:
        while not ending.is_set():
            await run_in_threadpool(sweep, desk)
            with suppress(TimeoutError):
                await asyncio.wait_for(ending.wait(), SWEEP_SECONDS)

    current_default_thread_limiter().total_tokens = THREADS
    task = asyncio.create_task(sweep_often())
    try:
        yield
    finally:
        ending.set()
        await task
        await run_in_threadpool(desk.close)


def sweep(desk: Desk) -> None:
    """Answer what was charged before a crash, end what waited too long, and open what was away.

    Of several processes of a server, one alone reads rows and ends what others asked.
    """
    try:
        if desk.errand is None:
            desk.keep_alone()
            recover(desk)
            expire(desk)
            delete_answers(desk)
    except Exception as error:  # whatever it was, the next sweep comes
        desk.log("sweep failed", **name_cause(error))
    for dataset in [*desk.datasets.values()]:  # last: a database that is away may take its time
        try:
            _open_again(desk, dataset)
        except Exception as error:  # of this one alone
            desk.log("sweep failed", dataset=dataset.id, **name_cause(error))


def _open_again(desk: Desk, dataset: Dataset) -> None:
    """Open a data set whose database did not answer, or that a steward has confirmed.

    What was confirmed may differ from what another process was started with: that one opens it
    as well, or reads no row of it.
    """
    confirmed = was_confirmed(dataset, desk.ledger)
    if not confirmed and not dataset.away:
        return
    if confirmed:
        close_file(dataset, desk.datasets.values())
    found = open_as_registered(dataset, desk.ledger)
    found = found if confirmed else desk.hold(found)
    desk.datasets[dataset.id] = found
    if not found.stale:
        desk.log("data set can be asked", dataset=found.id)
    elif found.stale != dataset.stale:
        desk.log("data set cannot be asked", dataset=found.id, reason=found.stale)


def _show(house: House, request: Request, problem: Problem) -> Response:
    problem.tell(request.scope.get(ROLE, ""))
    page = is_page(request.scope["path"])
    return house.refuse(request, problem) if page else show_problem(problem)


def _handle_errors(app: FastAPI, house: House) -> None:
    show, log = partial(_show, house), house.desk.log

    @app.exception_handler(Problem)
    def refuse(request: Request, problem: Any) -> Response:
        return show(request, problem)

    @app.exception_handler(HushedError)
    def translate(request: Request, error: Any) -> Response:
        return show(request, problem_of(error, log))

    @app.exception_handler(RequestValidationError)
    def misread(request: Request, error: Any) -> Response:
        visitor = find_visitor(request)
        try:
            if visitor is not None:  # whoever may not ask hears of no value
                visitor.find()
        except Problem as problem:
            return show(request, problem)
        except HushedError as unavailable:
            return show(request, problem_of(unavailable, log))
        return show(request, _problem_of_values(error))

    @app.exception_handler(HTTPException)
    def miss(request: Request, error: Any) -> Response:
        codes = {404: "not_found", 405: "method_not_allowed"}
        allow = _list_methods(app, request) if error.status_code == 405 else ""
        return show(request, Problem(codes.get(error.status_code, "bad_request"), allow=allow))

    @app.exception_handler(Exception)
    def fail(request: Request, error: Any) -> Response:  # noqa: ARG001
        return show(request, Problem("unforeseen"))


def _list_methods(app: FastAPI, request: Request) -> str:
    """List what is done with an address: each method is matched, for it may have several routes."""
    if isinstance(request.scope.get("endpoint"), StaticFiles):  # which has moved the scope on
        return "GET, HEAD"
    tried = {method: dict(request.scope) | {"method": method} for method in sorted(METHODS)}
    return ", ".join(
        method
        for method, scope in tried.items()
        if any(route.matches(scope)[0] is Match.FULL for route in app.routes)
    )


def _problem_of_values(error: RequestValidationError) -> Problem:
    """Name the first value that cannot be used."""
    found = error.errors()[0]
    place = [str(each) for each in found["loc"]]
    said = say_value(found)
    if place[:2] == ["header", "Idempotency-Key"]:
        return Problem("no_key", said)
    if found["type"] == "json_invalid":  # whose place is that of a character
        place = place[:1]
    code = "bad_query" if "query" in place[:2] and place[0] == "body" else "bad_value"
    return Problem(code, f"{'.'.join(place[1:] or place)[:100]}: {said}")


def _describe(app: FastAPI) -> None:
    """Describe refusals in OpenAPI; the ones that FastAPI adds by itself are never sent.

    To write it takes 20 ms, in which nobody else is answered, and anybody may ask for it.
    """

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title,
                summary=app.summary,
                version=app.version,
                routes=app.routes,
                openapi_version="3.1.0",
            )
            schemas = made["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            write_bounds(schemas)
            schemas["Problem"] = ProblemBody.model_json_schema()
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]

    @cache
    def write() -> bytes:
        return bytes(JSONResponse(describe()).body)

    async def show(_: Request) -> Response:
        return Response(write(), media_type="application/json")

    app.add_route("/openapi.json", show, include_in_schema=False)
