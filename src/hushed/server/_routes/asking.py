"""What an analyst does: see data sets, price a question, ask it, read the answer."""

import asyncio
import re
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.concurrency import run_in_threadpool

from hushed.server._callers import Callers, require_grant
from hushed.server._desk import Desk
from hushed.server._judging import Ask, Asked, AskQuote, read_asked
from hushed.server._life import ask, find_known
from hushed.server._people import Caller
from hushed.server._problems import Problem, document
from hushed.server._requests import Request, find_request
from hushed.server._seen import (
    list_datasets,
    own_grants,
    read_answer,
    read_certificate,
    require_visible,
    show_dataset,
    show_quote,
    show_request,
    show_requests,
    show_share,
    write_stored,
)
from hushed.server._shown import (
    Listed,
    ShownDataset,
    ShownEnvelope,
    ShownMe,
    ShownQuote,
    ShownRequest,
)

_LONGEST_WAIT = 30.0
_SHORTEST_LOOK = 0.05  # seconds between two looks at a request, where there is no grid
_WAIT = re.compile(r"(?:^|[,;])\s*wait=([0-9]{1,3})\s*(?:$|[,;])")
_WAITING = {"pending": "60", "charged": "1"}  # seconds after which to look again
DatasetId = Annotated[str, Path(max_length=64)]
RequestId = Annotated[str, Path(max_length=36)]
KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]([ -~]*[!-~])?$",
        description="A name of your own for this request: under it, it is paid once.",
    ),
]
Cursor = Annotated[str, Query(max_length=40)]
Most = Annotated[int, Query(ge=1, le=100)]


def make_router(desk: Desk, callers: Callers) -> APIRouter:
    """Make the routes of analysts."""
    router = APIRouter(prefix="/v1", tags=["asking"])
    _add_datasets(router, desk, callers)
    _add_asking(router, desk, callers)
    _add_requests(router, desk, callers)
    _add_answers(router, desk, callers)
    return router


def _add_datasets(router: APIRouter, desk: Desk, callers: Callers) -> None:
    anybody = callers.of_role("analyst", "steward", quote_only=True)

    @router.get("/me", responses=document())
    def me(caller: Annotated[Caller, Depends(anybody)]) -> ShownMe:
        """Say who you are, and what your token may do."""
        shares = [show_share(desk, each) for each in own_grants(desk, caller)]
        return ShownMe(
            id=caller.id,
            name=caller.name,
            role=caller.role,
            token_expires=caller.expires,
            quote_only=caller.scope.quote_only,
            shares=shares,
        )

    @router.get("/datasets", responses=document("forbidden"))
    def datasets(caller: Annotated[Caller, Depends(anybody)]) -> Listed[ShownDataset]:
        """List the data sets that you may ask."""
        return Listed(items=list_datasets(desk, caller))

    @router.get("/datasets/{dataset}", responses=document("not_found"))
    def dataset(dataset: DatasetId, caller: Annotated[Caller, Depends(anybody)]) -> ShownDataset:
        """Describe a data set: columns and types, public bounds and keys, what is left for you."""
        return show_dataset(desk, caller, dataset)

    @router.post(
        "/datasets/{dataset}/quote",
        responses=document(
            *("not_found", "bad_query", "busy", "dataset_changed", "dataset_unavailable")
        ),
    )
    def quote(
        dataset: DatasetId, asked: AskQuote, caller: Annotated[Caller, Depends(anybody)]
    ) -> ShownQuote:
        """Price a question; no row is read, and nothing is charged."""
        return show_quote(desk, caller, dataset, asked)


def _add_asking(router: APIRouter, desk: Desk, callers: Callers) -> None:
    analyst = callers.of_role("analyst")

    @router.post(
        "/datasets/{dataset}/requests",
        status_code=202,
        responses={
            201: {"description": "Answered.", "model": ShownRequest},
            **document(
                "no_key",
                "forbidden",
                "not_found",
                "budget_exceeded",
                "quota_exceeded",
                "conflict",
                "dataset_changed",
                "bad_query",
                "key_reused",
                "too_many_open",
                "busy",
                "dataset_unavailable",
            ),
        },
    )
    async def request(
        response: Response,
        dataset: DatasetId,
        asked: Ask,
        caller: Annotated[Caller, Depends(analyst)],
        key: KeyHeader = None,
        prefer: Annotated[str, Header(max_length=200)] = "",
    ) -> ShownRequest:
        """Ask: the one step that costs. Under the same key it is paid once, however often sent."""
        if key is None:
            raise Problem("no_key")
        made = await run_in_threadpool(take, desk, caller, dataset, key, asked)
        return await answer_taken(desk, response, made, prefer)


async def answer_taken(desk: Desk, response: Response, made: Request, prefer: str) -> ShownRequest:
    """Say where a request stands that was taken, after as long a wait as was asked for."""
    found = _WAIT.search(prefer)
    if found is not None:
        made = await _wait(desk, made, min(float(found[1]), _LONGEST_WAIT))
    response.headers["location"] = f"/v1/requests/{made.id}"
    state = made.shown_state()
    if state in _WAITING:
        response.headers["retry-after"] = _WAITING[state]
    else:
        response.status_code = 201
    return await run_in_threadpool(show_request, desk, made)


def take(desk: Desk, caller: Caller, dataset: str, key: str, asked: Asked) -> Request:
    """Take a request. One that was taken before is found without a share, too: it is paid."""
    known = None
    if caller.scope.allows_dataset(dataset):
        known = find_known(desk, caller, dataset, key, asked)
    return known or ask(desk, caller, require_grant(desk, caller, dataset), key, asked)


async def _wait(desk: Desk, made: Request, seconds: float) -> Request:
    """Wait for an answer without keeping a thread, until it may be seen or the time is over.

    It never ends when a run ends: that would tell how long the rows took.
    """
    clock = asyncio.get_running_loop().time
    ends = clock() + seconds
    future = desk.queue.find(made.id)
    if future is not None:  # it runs in this process
        await asyncio.wait([asyncio.wrap_future(future)], timeout=seconds)
    grid = max(desk.grid(made.dataset, read_asked(made.body).function), _SHORTEST_LOOK)
    while True:
        made = await run_in_threadpool(find_request, desk.ledger, made.id) or made
        left = ends - clock()
        if left <= 0 or made.shown_state() != "charged":
            return made
        await asyncio.sleep(min(left, made.next_look(grid) + 0.001))


def _add_requests(router: APIRouter, desk: Desk, callers: Callers) -> None:
    reader = callers.of_role("analyst", "steward")

    @router.get("/requests", responses=document("forbidden"))
    def requests(
        caller: Annotated[Caller, Depends(reader)],
        cursor: Cursor = "",
        most: Most = 50,
        state: Literal["pending"] | None = None,
    ) -> Listed[ShownRequest]:
        """List requests, the newest first: your own; a steward sees all of them."""
        return show_requests(desk, caller, cursor=cursor, most=most, state=state)

    @router.get("/requests/{request}", responses=document("forbidden", "not_found"))
    def one(
        response: Response, request: RequestId, caller: Annotated[Caller, Depends(reader)]
    ) -> ShownRequest:
        """Say where a request stands; free, for ever."""
        found = require_visible(desk, caller, request)
        state = found.shown_state()
        if state in _WAITING:
            response.headers["retry-after"] = _WAITING[state]
        return show_request(desk, found)


def _add_answers(router: APIRouter, desk: Desk, callers: Callers) -> None:
    reader = callers.of_role("analyst", "steward")
    refusals = document("forbidden", "not_found", "not_ready", "failed")

    @router.get(
        "/requests/{request}/answer",
        responses=refusals
        | {
            200: {
                "description": "The answer, as `hushed.Answer.from_json` reads it, or a table; "
                "of a function, the record of its release, or its numbers.",
                "content": {
                    "application/json": {"schema": {"type": "object", "title": "Answer"}},
                    "text/csv": {"schema": {"type": "string"}},
                },
            }
        },
        response_class=Response,
    )
    def answer(
        request: RequestId,
        caller: Annotated[Caller, Depends(reader)],
        accept: Annotated[str, Header(max_length=200)] = "",
    ) -> Response:
        """Read the answer: the same bytes, for ever, at no cost."""
        text = read_answer(desk, caller, request)
        if "text/csv" in accept:
            return Response(write_stored(text), media_type="text/csv")
        return Response(text, media_type="application/json")

    @router.get(
        "/requests/{request}/certificate",
        responses=refusals
        | {200: {"description": "The signed certificate.", "model": ShownEnvelope}},
        response_class=Response,
    )
    def certificate(request: RequestId, caller: Annotated[Caller, Depends(reader)]) -> Response:
        """Read the signed certificate of the answer."""
        return Response(read_certificate(desk, caller, request), media_type="application/json")
