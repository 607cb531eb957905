"""What an analyst does: see data sets, price a question, ask it, read the answer."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.concurrency import run_in_threadpool

from hushed._web.rendering import download
from hushed.server._callers import Callers, Visitor
from hushed.server._desk import Desk
from hushed.server._judging import Ask, AskQuote, read_asked
from hushed.server._life import take
from hushed.server._people import Caller
from hushed.server._problems import document
from hushed.server._requests import Request, find_request
from hushed.server._seen import (
    list_datasets,
    read_answer,
    read_certificate,
    require_visible,
    show_caller,
    show_dataset,
    show_quote,
    show_request,
    show_requests,
    write_certificate_page,
    write_stored,
)
from hushed.server._shown import (
    RETRY_AFTER,
    Listed,
    ShownDataset,
    ShownEnvelope,
    ShownMe,
    ShownQuote,
    ShownRequest,
    tell,
)
from hushed.server._taking import Show, Shown, Taken

_LONGEST_WAIT = 30.0
_SHORTEST_LOOK = 0.05  # seconds between two looks at a request, where there is no grid
_WAIT = re.compile(r"(?:^|[,;])\s*wait=([0-9]{1,3})\s*(?:$|[,;])")
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
PreferHeader = Annotated[str, Header(max_length=200)]
Cursor = Annotated[str, Query(max_length=100)]
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
    anybody = callers.visiting("analyst", "steward", quote_only=True)

    @router.get("/me", response_model=ShownMe, responses=document())
    async def me(visitor: Annotated[Visitor, Depends(anybody)]) -> Response:
        """Say who you are, and what your token may do."""
        return await visitor.have(lambda caller: tell(show_caller(desk, caller)))

    @router.get("/datasets", response_model=Listed[ShownDataset], responses=document("forbidden"))
    async def datasets(visitor: Annotated[Visitor, Depends(anybody)]) -> Response:
        """List the data sets that you may ask."""
        return await visitor.have(
            lambda caller: tell(Listed[ShownDataset](items=list_datasets(desk, caller)))
        )

    @router.get("/datasets/{dataset}", response_model=ShownDataset, responses=document("not_found"))
    async def dataset(
        dataset: DatasetId, visitor: Annotated[Visitor, Depends(anybody)]
    ) -> Response:
        """Describe a data set: columns and types, public bounds and keys, what is left for you."""
        return await visitor.have(lambda caller: tell(show_dataset(desk, caller, dataset)))

    @router.post(
        "/datasets/{dataset}/quote",
        response_model=ShownQuote,
        responses=document(
            *("not_found", "bad_query", "busy", "dataset_changed", "dataset_unavailable")
        ),
    )
    async def quote(
        dataset: DatasetId, asked: AskQuote, visitor: Annotated[Visitor, Depends(anybody)]
    ) -> Response:
        """Price a question; no row is read, and nothing is charged."""
        return await visitor.have(lambda caller: tell(show_quote(desk, caller, dataset, asked)))


def _add_asking(router: APIRouter, desk: Desk, callers: Callers) -> None:
    analyst = callers.visiting("analyst")

    @router.post(
        "/datasets/{dataset}/requests",
        status_code=202,
        response_model=ShownRequest,
        responses={
            201: {"description": "Answered.", "model": ShownRequest},
            **document(
                "no_key",
                "forbidden",
                "not_found",
                "budget_exceeded",
                "quota_exceeded",
                "day_exceeded",
                "room_exceeded",
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
        dataset: DatasetId,
        asked: Ask,
        visitor: Annotated[Visitor, Depends(analyst)],
        key: KeyHeader = None,
        prefer: PreferHeader = "",
    ) -> Response:
        """Ask: the one step that costs. Under the same key it is paid once, however often sent."""
        return await answer_taken(
            desk, visitor, prefer, lambda caller: take(desk, caller, dataset, key, asked)
        )


async def answer_taken(
    desk: Desk,
    visitor: Visitor,
    prefer: str,
    work: Callable[[Caller], Request],
    together: Callable[[Show], Awaitable[Taken]] | None = None,
) -> Response:
    """Take a request, and say where it stands, after as long a wait as was asked for.

    Perhaps it can be taken `together` with those of others, and takes no thread of its own.
    """
    wanted = _WAIT.search(prefer)
    seconds = 0.0 if wanted is None else min(float(wanted[1]), _LONGEST_WAIT)

    def show(made: Request, asker: str) -> Shown:
        waits = wanted is not None and made.shown_state() == "charged"
        return Shown(made, asker, None if waits else _tell_taken(desk, made, asker))

    with desk.queue.asking():
        taken = None if together is None else await together(show)
        if isinstance(taken, Caller):  # who was found, and counted
            visitor = Visitor(partial(_give, taken))
        if not isinstance(taken, Shown):
            taken = await visitor.have(lambda caller: show(work(caller), caller.name))
    if taken.told is not None:
        return taken.told
    made = await _wait(desk, taken.made, seconds)
    return await run_in_threadpool(_tell_taken, desk, made, taken.asker)


def _give(caller: Caller) -> Caller:
    return caller


def _tell_taken(desk: Desk, made: Request, asker: str) -> Response:
    """Say where a request stands, to whom it belongs."""
    shown = show_request(desk, made, asker)
    headers = {"location": f"{desk.settings.server.path}/v1/requests/{made.id}"}
    if shown.state not in RETRY_AFTER:
        return tell(shown, 201, headers)
    return tell(shown, 202, headers | {"retry-after": RETRY_AFTER[shown.state]})


async def _wait(desk: Desk, made: Request, seconds: float) -> Request:
    """Wait for an answer without keeping a thread, until it may be seen or the time is over.

    It never ends when a run ends: that would tell how long the rows took. Where the run is in this
    process, the database is asked once, when the run has ended.
    """
    clock = asyncio.get_running_loop().time
    ends = clock() + seconds
    future = desk.queue.find(made.id)
    if future is not None:  # it runs in this process
        await asyncio.wait([asyncio.wrap_future(future)], timeout=seconds)
        if not future.done():
            return made
    grid = max(desk.grid(made.dataset, read_asked(made.body).function), _SHORTEST_LOOK)
    while True:
        if not made.has_ended():
            found = await run_in_threadpool(find_request, desk.ledger, made.id)
            made = found or made
        left = ends - clock()
        if left <= 0 or made.shown_state() != "charged":
            return made
        await asyncio.sleep(min(left, made.next_look(grid) + 0.001))


def _add_requests(router: APIRouter, desk: Desk, callers: Callers) -> None:
    reader = callers.visiting("analyst", "steward")

    @router.get("/requests", response_model=Listed[ShownRequest], responses=document("forbidden"))
    async def requests(
        visitor: Annotated[Visitor, Depends(reader)],
        cursor: Cursor = "",
        most: Most = 50,
        state: Literal["pending"] | None = None,
    ) -> Response:
        """List requests, the newest first: your own; a steward sees all of them."""
        return await visitor.have(
            lambda caller: tell(show_requests(desk, caller, cursor=cursor, most=most, state=state))
        )

    @router.get(
        "/requests/{request}",
        response_model=ShownRequest,
        responses=document("forbidden", "not_found"),
    )
    async def one(request: RequestId, visitor: Annotated[Visitor, Depends(reader)]) -> Response:
        """Say where a request stands; free, for ever."""

        def look(caller: Caller) -> Response:
            found = require_visible(desk, caller, request)
            shown = show_request(desk, found, caller.name if found.person == caller.id else None)
            after = RETRY_AFTER.get(shown.state)
            return tell(shown, headers=None if after is None else {"retry-after": after})

        return await visitor.have(look)


def _add_answers(router: APIRouter, desk: Desk, callers: Callers) -> None:
    reader = callers.visiting("analyst", "steward")
    refusals = document("forbidden", "not_found", "not_ready", "failed", "answer_deleted")

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
    async def answer(
        request: RequestId,
        visitor: Annotated[Visitor, Depends(reader)],
        accept: Annotated[str, Header(max_length=200)] = "",
    ) -> Response:
        """Read the answer: the same bytes, for ever, at no cost."""

        def read(caller: Caller) -> Response:
            text = read_answer(desk, caller, request)
            if "text/csv" in accept:
                return Response(write_stored(text), media_type="text/csv")
            return Response(text, media_type="application/json")

        return await visitor.have(read)

    @router.get(
        "/requests/{request}/certificate",
        responses=refusals
        | {
            200: {
                "description": "The signed certificate, or its page, to print.",
                "model": ShownEnvelope,
                "content": {"text/html": {"schema": {"type": "string"}}},
            }
        },
        response_class=Response,
    )
    async def certificate(
        request: RequestId,
        visitor: Annotated[Visitor, Depends(reader)],
        accept: Annotated[str, Header(max_length=200)] = "",
    ) -> Response:
        """Read the signed certificate of the answer, or with `Accept: text/html` its page."""

        def read(caller: Caller) -> Response:
            text = read_certificate(desk, caller, request)
            if not wants_page(accept):
                return Response(text, media_type="application/json")
            page = write_certificate_page(desk, text)
            return download(f"certificate-{request[:8]}.html", page, "text/html")

        return await visitor.have(read)


def wants_page(accept: str) -> bool:
    """Whether somebody would rather have a page than JSON: the one that is named first."""
    page, plain = accept.find("text/html"), accept.find("application/json")
    return page >= 0 and (plain < 0 or page < plain)
