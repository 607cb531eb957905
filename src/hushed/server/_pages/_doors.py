"""In and out: the exchange of an address that is good once, and the first page of each role."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from hushed._web.rendering import Fields
from hushed.server._callers import Callers
from hushed.server._desk import Desk
from hushed.server._pages import (
    _approvals,
    _asking,
    _datasets,
    _functions,
    _keeping,
    _requests,
)
from hushed.server._pages._house import House, say_problem
from hushed.server._pages._visitors import Visitors
from hushed.server._people import Caller
from hushed.server._problems import Problem
from hushed.server._sessions import ENTER, PAGES, close_session, open_session


def make_house(desk: Desk, callers: Callers) -> House:
    """Make what the pages of a server share."""
    return House(desk=desk, visitors=Visitors(callers, desk.settings.server))


def make_pages(house: House) -> tuple[APIRouter, ...]:
    """Make the routes of all pages."""
    return (
        make_router(house),
        _approvals.make_router(house),
        _requests.make_router(house),
        _datasets.make_router(house),
        _asking.make_router(house),
        _functions.make_router(house),
        _keeping.make_router(house),
    )


def make_router(house: House) -> APIRouter:
    """Make the routes of the doors."""
    router = APIRouter()
    visitors = house.visitors
    anybody = visitors.of_role("analyst", "steward", quote_only=True)

    @router.get("/")
    @router.get(PAGES)
    def begin() -> Response:
        return house.go("/start")

    @router.get(f"{PAGES}/start")
    def start(caller: Annotated[Caller, Depends(anybody)]) -> Response:
        return house.go("/approvals" if caller.role == "steward" else "/datasets")

    @router.get(ENTER)
    def show(request: Request) -> Response:
        return house.show(request, "page_enter.html", problem=None, ended=False, again="")

    @router.post(ENTER)
    def enter(request: Request, fields: Fields) -> Response:
        """Open a session; whatever cookie the browser had counts no more for it."""
        address = request.scope.get("hushed_address", "")
        session = open_session(house.desk.ledger, fields.get("key", "").strip()[:200], address)
        if session is None:
            try:
                visitors.count_failure(address)
            except Problem as problem:
                return refuse(request, problem)
            return refuse(request, Problem("not_authenticated"))
        house.desk.log("signed in", person=session.person)
        answer = house.go("/start")
        answer.headers["set-cookie"] = visitors.write_cookie(session.cookie)
        return answer

    def refuse(request: Request, problem: Problem) -> Response:
        told = say_problem(problem)
        return house.show(
            request, "page_enter.html", problem.status, problem=told, ended=False, again=""
        )

    @router.post(f"{PAGES}/leave")
    def leave(request: Request, caller: Annotated[Caller, Depends(anybody)]) -> Response:
        close_session(house.desk.ledger, caller)
        request.state.caller = None
        answer = house.show(request, "page_enter.html", problem=None, ended=False, again="")
        answer.headers["set-cookie"] = visitors.write_cookie("")
        return answer

    return router
