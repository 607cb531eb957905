"""Requests: the list, where each stands, and the answer of who asked it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from hushed._ground.printing import format_number
from hushed._web.answers import describe_answer
from hushed._web.rendering import download
from hushed.releasing._names import list_named, name_numbers
from hushed.releasing._stored import read_release
from hushed.server._approving import cancel
from hushed.server._pages._house import House
from hushed.server._people import Caller
from hushed.server._problems import Problem
from hushed.server._routes.asking import Cursor, RequestId
from hushed.server._seen import (
    is_release,
    read_answer,
    read_certificate,
    require_visible,
    show_request,
    show_requests,
    write_certificate_page,
    write_stored,
)
from hushed.server._sessions import PAGES
from hushed.tables import Answer

_LINES = 500  # of an answer that a page shows; the files have all


def make_router(house: House) -> APIRouter:
    """Make the routes of requests."""
    router = APIRouter(prefix=PAGES)
    desk = house.desk
    reader = house.visitors.of_role("analyst", "steward")
    analyst = house.visitors.of_role("analyst")

    @router.get("/requests")
    def list_all(
        request: Request, caller: Annotated[Caller, Depends(reader)], cursor: Cursor = ""
    ) -> Response:
        found = show_requests(desk, caller, cursor=cursor, most=50)
        return house.show(request, "page_requests.html", active="requests", found=found)

    @router.get("/requests/{identity}")
    def one(
        request: Request, identity: RequestId, caller: Annotated[Caller, Depends(reader)]
    ) -> Response:
        found = require_visible(desk, caller, identity)
        told = show_request(desk, found, caller.name if found.person == caller.id else None)
        there = told.state == "answered" and told.deleted_at is None
        answer = _read(house, caller, identity) if there else None
        shown = None if answer is None else _describe(answer)
        return house.show(request, "page_request.html", active="requests", told=told, answer=shown)

    @router.get("/requests/{identity}/state")
    def wait(
        request: Request, identity: RequestId, caller: Annotated[Caller, Depends(reader)]
    ) -> Response:
        told = show_request(desk, require_visible(desk, caller, identity))
        answer = house.show(request, "part_state.html", told=told)
        if told.state != "charged":
            answer.headers["hx-redirect"] = f"{house.root}/requests/{told.id}"
        return answer

    @router.post("/requests/{identity}/cancel")
    def take_back(identity: RequestId, caller: Annotated[Caller, Depends(analyst)]) -> Response:
        found = require_visible(desk, caller, identity)
        cancel(desk, found, caller)
        return house.go(f"/requests/{found.id}")

    @router.get("/requests/{identity}/files/{kind}")
    def save(
        identity: RequestId, kind: str, caller: Annotated[Caller, Depends(reader)]
    ) -> Response:
        writers: dict[str, tuple[str, str, Callable[[], str]]] = {
            "json": ("json", "application/json", lambda: read_answer(desk, caller, identity)),
            "csv": ("csv", "text/csv", lambda: _write_csv(house, caller, identity)),
            "certificate": (
                "certificate.json",
                "application/json",
                lambda: read_certificate(desk, caller, identity),
            ),
            "page": ("certificate.html", "text/html", lambda: _write_page(house, caller, identity)),
        }
        if kind not in writers:
            raise Problem("not_found")
        ending, media, write = writers[kind]
        content = write()
        return download(f"answer-{identity[:8]}.{ending}", content, media)

    return router


def _describe(text: str) -> Any:
    """Say all that a page says of an answer, as it is stored."""
    if not is_release(text):
        return describe_answer(Answer.from_json(text), _LINES)
    value, certificate = read_release(text)
    numbers: list[tuple[str, ...]] = [
        (format_number(each),) for each in np.atleast_1d(value).ravel()
    ]
    head: tuple[str, ...] = ("value",)
    if name_numbers(value, certificate):
        head, numbers = ("name", *head), [*list_named(value, certificate)]
    lines = (head, *numbers[:_LINES])
    left_out = max(0, len(numbers) - _LINES)
    return SimpleNamespace(lines=lines, words=certificate.explain().split("\n"), left_out=left_out)


def _read(house: House, caller: Caller, identity: str) -> str | None:
    """Read an answer; None where the caller may not."""
    try:
        return read_answer(house.desk, caller, identity)
    except Problem as problem:
        if problem.code != "forbidden":
            raise
        return None


def _write_csv(house: House, caller: Caller, identity: str) -> str:
    return write_stored(read_answer(house.desk, caller, identity))


def _write_page(house: House, caller: Caller, identity: str) -> str:
    return write_certificate_page(house.desk, read_certificate(house.desk, caller, identity))
