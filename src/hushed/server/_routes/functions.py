"""Registered functions: what is promised of each, its price, and its release.

What enters a function is fixed at the machine. An analyst names it, and chooses the price.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from hushed.ledger._together import reading
from hushed.server._callers import Callers, Visitor
from hushed.server._desk import Desk
from hushed.server._judging import AskFunction, FunctionPrice, FunctionTerms, read_asked
from hushed.server._life import take
from hushed.server._people import Caller
from hushed.server._problems import document
from hushed.server._requests import Request, find_by_key
from hushed.server._routes.asking import KeyHeader, PreferHeader, answer_taken
from hushed.server._seen import (
    dataset_of,
    list_functions,
    show_function,
    show_function_quote,
)
from hushed.server._shown import Listed, ShownFunction, ShownQuote, ShownRequest

FunctionId = Annotated[str, Path(max_length=64)]
_CHANGED = ("not_found", "dataset_changed", "dataset_unavailable", "function_changed", "bad_query")


def make_router(desk: Desk, callers: Callers) -> APIRouter:
    """Make the routes of functions."""
    router = APIRouter(prefix="/v1/functions", tags=["functions"])
    anybody = callers.of_role("analyst", "steward", quote_only=True)
    analyst = callers.visiting("analyst")

    @router.get("", responses=document("forbidden"))
    def functions(caller: Annotated[Caller, Depends(anybody)]) -> Listed[ShownFunction]:
        """List the functions that you may ask, with their promise in words."""
        return Listed(items=list_functions(desk, caller))

    @router.get("/{function}", responses=document("not_found"))
    def function(
        function: FunctionId, caller: Annotated[Caller, Depends(anybody)]
    ) -> ShownFunction:
        """Describe a function: what it answers, whom its releases protect, and how far."""
        return show_function(desk, caller, function)

    @router.post("/{function}/quote", responses=document(*_CHANGED, "no_gamma", "busy"))
    def quote(
        function: FunctionId, asked: FunctionPrice, caller: Annotated[Caller, Depends(anybody)]
    ) -> ShownQuote:
        """Price a release; no row is read, and nothing is charged."""
        return show_function_quote(desk, caller, function, asked)

    @router.post(
        "/{function}/requests",
        status_code=202,
        response_model=ShownRequest,
        responses={
            201: {"description": "Answered.", "model": ShownRequest},
            **document(
                *_CHANGED,
                *(
                    "no_key",
                    "forbidden",
                    "budget_exceeded",
                    "quota_exceeded",
                    "day_exceeded",
                    "room_exceeded",
                    "no_gamma",
                    "conflict",
                ),
                *("key_reused", "too_many_open", "busy"),
            ),
        },
    )
    async def request(
        function: FunctionId,
        asked: FunctionTerms,
        visitor: Annotated[Visitor, Depends(analyst)],
        key: KeyHeader = None,
        prefer: PreferHeader = "",
    ) -> Response:
        """Release it: the one step that costs. Under the same key it is paid once."""
        return await answer_taken(
            desk, visitor, prefer, lambda caller: take_function(desk, caller, function, key, asked)
        )

    return router


def take_function(
    desk: Desk, caller: Caller, name: str, key: str | None, asked: FunctionTerms
) -> Request:
    """Take a request for a function, as one for a query is taken."""
    wanted = AskFunction(function=name, **asked.model_dump())
    known = None
    if key is not None:
        with reading(desk.ledger) as connection:
            known = find_by_key(connection, caller.id, key)
    if known is not None and read_asked(known.body).function == name:
        dataset = known.dataset  # whatever the name stands for now, this one is taken already
    else:
        dataset = dataset_of(desk, name)
    return take(desk, caller, dataset, key, wanted)
