"""People with their tokens, and the trail."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import ValidationError

from hushed._web.fields import Form
from hushed._web.rendering import Fields
from hushed.errors import ParameterError
from hushed.ledger._together import reading
from hushed.server._audit import trail_head
from hushed.server._pages._house import House
from hushed.server._people import (
    Caller,
    add_person,
    add_token,
    list_people,
    revoke_token,
    set_active,
)
from hushed.server._people_told import describe_people
from hushed.server._routes.keeping import AskedToken, Id, NewPerson, show_trail
from hushed.server._sessions import PAGES, write_address

_AT_ONCE = 100


def make_router(house: House) -> APIRouter:
    """Make the routes of what stewards keep."""
    router = APIRouter(prefix=PAGES)
    _add_people(router, house)
    _add_tokens(router, house)
    _add_trail(router, house)
    return router


def _show(request: Request, house: House, status: int = 200, **said: object) -> Response:
    found = describe_people(house.desk.ledger)
    told = {"errors": {}, "fields": {}, "fresh": None, "opens": "", **said}
    return house.show(request, "page_people.html", status, active="people", found=found, **told)


def _add_people(router: APIRouter, house: House) -> None:
    keeper, ledger = house.visitors.keeper(), house.desk.ledger

    @router.get("/people")
    def show(request: Request, caller: Annotated[Caller, Depends(keeper)]) -> Response:  # noqa: ARG001
        return _show(request, house)

    @router.post("/people")
    def add(
        request: Request, fields: Fields, caller: Annotated[Caller, Depends(keeper)]
    ) -> Response:
        told = {name: fields.get(name, "").strip() for name in ("name", "role")}
        try:
            new = NewPerson.model_validate(told)
            add_person(ledger, new.name, new.role, actor=caller.name)
        except ValidationError:
            return _show(
                request, house, 422, fields=fields, errors={"name": "give a name and a role"}
            )
        except ParameterError as error:
            return _show(request, house, 422, fields=fields, errors={"name": error.message})
        return house.go("/people")

    @router.post("/people/{person}/active")
    def change(person: Id, fields: Fields, caller: Annotated[Caller, Depends(keeper)]) -> Response:
        set_active(ledger, person, fields.get("active") == "yes", actor=caller.name)
        return house.go("/people")


def _add_tokens(router: APIRouter, house: House) -> None:
    keeper, ledger = house.visitors.keeper(), house.desk.ledger

    @router.post("/people/{person}/tokens")
    def add(
        request: Request, person: Id, fields: Fields, caller: Annotated[Caller, Depends(keeper)]
    ) -> Response:
        """Make a token, or an address that opens the pages once; it is shown this once."""
        form = Form(fields)
        days = form.whole("days", 30)
        page = fields.get("use") == "door"
        try:
            asked = AskedToken.model_validate({"days": days, "page": page})
        except ValidationError:
            form.refuse("days", "a token counts for 1 to 90 days")
        if form.errors:
            opened = {"errors": form.errors, "fields": fields, "opens": person}
            return _show(request, house, 422, **opened)
        scope = asked.scope().below(caller.scope)
        _, text = add_token(ledger, person, days=asked.life(), scope=scope, actor=caller.name)
        name = next(each["name"] for each in list_people(ledger) if each["id"] == person)
        text = write_address(house.desk.settings.server, text) if page else text
        fresh = {"name": name, "text": text, "page": page, "days": asked.life()}
        return _show(request, house, fresh=fresh)

    @router.post("/tokens/{token}/revoke")
    def revoke(token: Id, caller: Annotated[Caller, Depends(keeper)]) -> Response:
        revoke_token(ledger, token, actor=caller.name)
        return house.go("/people")


def _add_trail(router: APIRouter, house: House) -> None:
    keeper, desk = house.visitors.keeper(), house.desk

    @router.get("/trail")
    def trail(
        request: Request,
        caller: Annotated[Caller, Depends(keeper)],  # noqa: ARG001
        after: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    ) -> Response:
        with reading(desk.ledger) as connection:
            end = trail_head(connection)[0]
        first = max(0, end - _AT_ONCE) if after is None else after
        found = show_trail(desk, after=first, most=_AT_ONCE).items[::-1]
        earlier = max(0, first - _AT_ONCE) if first else None
        return house.show(request, "page_trail.html", active="trail", found=found, earlier=earlier)
