"""Registered functions: what is promised of each, its price, and the button that pays."""

import uuid
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import ValidationError

from hushed._web.fields import Form
from hushed._web.rendering import Fields
from hushed.server._judging import FunctionPrice, FunctionTerms
from hushed.server._pages._house import House
from hushed.server._pages._words import read_key
from hushed.server._people import Caller
from hushed.server._problems import Problem
from hushed.server._routes.functions import FunctionId, take_function
from hushed.server._seen import show_function, show_function_quote
from hushed.server._sessions import PAGES
from hushed.server._values import say_value

_SHOWN_HERE = ("bad_value", "too_many", "busy", "function_changed", "dataset_changed", "no_gamma")
Price = TypeVar("Price", FunctionPrice, FunctionTerms)


def make_router(house: House) -> APIRouter:
    """Make the routes of functions."""
    router = APIRouter(prefix=f"{PAGES}/functions/{{function}}")
    desk = house.desk
    anybody = house.visitors.of_role("analyst", "steward", quote_only=True)
    payer = house.visitors.of_role("analyst")

    def show(
        request: Request, caller: Caller, function: str, status: int = 200, **said: Any
    ) -> Response:
        told = show_function(desk, caller, function)
        empty: dict[str, Any] = {
            "problem": "",
            "quote": None,
            "fields": {},
            "errors": {},
            "may_pay": False,
        }
        found = {"active": "datasets", "told": told} | empty | said
        return house.show(request, "page_function.html", status, **found)

    @router.get("")
    def one(
        request: Request, function: FunctionId, caller: Annotated[Caller, Depends(anybody)]
    ) -> Response:
        return show(request, caller, function)

    @router.post("/price")
    def price(
        request: Request,
        function: FunctionId,
        fields: Fields,
        caller: Annotated[Caller, Depends(anybody)],
    ) -> Response:
        form = Form(fields)
        wanted = _read_price(form)
        if wanted is None:
            return show(request, caller, function, 422, fields=fields, errors=form.errors)
        try:
            quote = show_function_quote(desk, caller, function, wanted)
        except Problem as problem:
            if problem.code not in _SHOWN_HERE:
                raise
            said = problem.tell(caller.role).said
            return show(request, caller, function, problem.status, problem=said, fields=fields)
        pays = caller.role == "analyst" and not caller.scope.quote_only
        key = str(uuid.uuid4())
        return show(request, caller, function, quote=quote, key=key, may_pay=pays, fields=fields)

    @router.post("/requests")
    def pay(
        function: FunctionId, fields: Fields, caller: Annotated[Caller, Depends(payer)]
    ) -> Response:
        """Ask: under the key of the page it is paid once, however often it is sent."""
        wanted = _read_terms(Form(fields), fields.get("note", "").strip())
        if wanted is None:
            raise Problem("bad_value", "the page of the price was changed: price it again")
        made = take_function(desk, caller, function, read_key(fields), wanted)
        return house.go(f"/requests/{made.id}")

    return router


def _read_price(form: Form) -> FunctionPrice | None:
    """Read a price that is asked; None if a field needs another look, where it is told."""
    epsilon, error = form.number("epsilon"), form.number("error")
    if form.errors:
        return None
    if (epsilon is None) == (error is None):
        form.refuse("epsilon", "give the privacy loss, such as 0.1, or the error: one of them")
        return None
    return _check(form, FunctionPrice, epsilon=epsilon, error=error)


def _read_terms(form: Form, note: str) -> FunctionTerms | None:
    """Read what is paid; None if it is not what the page has sent."""
    return _check(form, FunctionTerms, epsilon=form.number("epsilon"), note=note)


def _check(form: Form, kind: type[Price], **told: Any) -> Price | None:
    try:
        return kind.model_validate(told | {"delta": form.number("delta") or 0.0})
    except ValidationError as error:
        first = error.errors()[0]
        form.refuse(str(first["loc"][0]), say_value(first))
        return None
