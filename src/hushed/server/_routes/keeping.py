"""What a steward does: people, tokens, shares, budgets, the trail. No address, path or code."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi import Request as HttpRequest
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from hushed.errors import Overspent
from hushed.guarantee import Guarantee
from hushed.ledger._together import reading
from hushed.server._audit import list_events
from hushed.server._callers import Callers, Shown
from hushed.server._desk import Desk
from hushed.server._people import (
    Caller,
    Role,
    add_person,
    add_token,
    list_people,
    list_shares,
    require_person,
    revoke_token,
    set_active,
    set_quota,
)
from hushed.server._problems import Problem, document
from hushed.server._routes.asking import show_share
from hushed.server._shown import (
    Left,
    Listed,
    NewToken,
    ShownBudget,
    ShownEntry,
    ShownEvent,
    ShownPerson,
    ShownShare,
)
from hushed.server._tokens import LONGEST_DAYS, Scope

Id = Annotated[str, Path(max_length=64)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NewPerson(_Body):
    """Somebody to let in."""

    name: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    role: Role = "analyst"


class ChangedPerson(_Body):
    """Whether somebody is let in."""

    active: StrictBool


class AskedToken(_Body):
    """What a new token may do: it narrows what its person may."""

    days: Annotated[StrictInt, Field(ge=1, le=LONGEST_DAYS)] = 30
    datasets: Annotated[list[StrictStr], Field(max_length=100)] | None = None
    quote_only: StrictBool = False
    addresses: Annotated[
        list[Annotated[StrictStr, Field(max_length=50)]], Field(max_length=20)
    ] = []


class Quota(_Body):
    """A share of a data set, which counts from now on."""

    epsilon: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0
    reserve: StrictBool = False


class _Steward:
    """Lets in stewards whose token is not narrowed: it could make itself a wider one."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    def __call__(self, request: HttpRequest, shown: Shown) -> Caller:
        caller = self._callers.find(request, shown)
        narrowed = caller.scope.datasets is not None or caller.scope.quote_only
        if caller.role != "steward" or narrowed:
            raise Problem("forbidden")
        return caller


def make_router(desk: Desk, callers: Callers) -> APIRouter:
    """Make the routes of stewards."""
    router = APIRouter(prefix="/v1", tags=["keeping"])
    steward = _Steward(callers)
    _add_people(router, desk, steward)
    _add_tokens(router, desk, steward)
    _add_shares(router, desk, steward)
    _add_budgets(router, desk, steward)
    return router


def _add_people(router: APIRouter, desk: Desk, steward: Callable[..., Caller]) -> None:
    @router.get("/people", responses=document("forbidden"))
    def people(caller: Annotated[Caller, Depends(steward)]) -> Listed[ShownPerson]:  # noqa: ARG001
        """List people and their tokens."""
        return Listed(items=[ShownPerson.model_validate(each) for each in list_people(desk.ledger)])

    @router.post("/people", status_code=201, responses=document("forbidden"))
    def add(new: NewPerson, caller: Annotated[Caller, Depends(steward)]) -> ShownPerson:
        """Let somebody in, who has no token yet."""
        made = add_person(desk.ledger, new.name, new.role, actor=caller.name)
        return _person(desk, made)

    @router.patch("/people/{person}", responses=document("forbidden", "not_found"))
    def change(
        person: Id, changed: ChangedPerson, caller: Annotated[Caller, Depends(steward)]
    ) -> ShownPerson:
        """Let somebody out, or in again: all tokens stop counting at once."""
        set_active(desk.ledger, person, changed.active, actor=caller.name)
        return _person(desk, person)


def _person(desk: Desk, identity: str) -> ShownPerson:
    found = next(each for each in list_people(desk.ledger) if each["id"] == identity)
    return ShownPerson.model_validate(found)


def _add_tokens(router: APIRouter, desk: Desk, steward: Callable[..., Caller]) -> None:
    @router.post(
        "/people/{person}/tokens", status_code=201, responses=document("forbidden", "not_found")
    )
    def add(person: Id, asked: AskedToken, caller: Annotated[Caller, Depends(steward)]) -> NewToken:
        """Make a token. It is shown this once; only a digest of it is kept."""
        scope = Scope(
            datasets=None if asked.datasets is None else tuple(asked.datasets),
            quote_only=asked.quote_only,
            addresses=tuple(asked.addresses),
        )
        identity, text = add_token(
            desk.ledger, person, days=asked.days, scope=scope, actor=caller.name
        )
        return NewToken(id=identity, token=text)

    @router.delete("/tokens/{token}", status_code=204, responses=document("forbidden", "not_found"))
    def revoke(token: Id, caller: Annotated[Caller, Depends(steward)]) -> Response:
        """Stop a token, at once."""
        revoke_token(desk.ledger, token, actor=caller.name)
        return Response(status_code=204)


def _add_shares(router: APIRouter, desk: Desk, steward: Callable[..., Caller]) -> None:
    @router.get("/datasets/{dataset}/quotas", responses=document("forbidden", "not_found"))
    def shares(
        dataset: Id,
        caller: Annotated[Caller, Depends(steward)],  # noqa: ARG001
    ) -> dict[str, ShownShare]:
        """List the shares of a data set, by the name of their person."""
        _require(desk, dataset)
        shares = list_shares(desk.ledger, dataset)
        return {name: show_share(desk, each) for name, each in shares.items()}

    @router.put(
        "/datasets/{dataset}/quotas/{person}",
        responses=document("forbidden", "not_found", "bad_value", "budget_exceeded"),
    )
    def give(
        dataset: Id, person: Id, quota: Quota, caller: Annotated[Caller, Depends(steward)]
    ) -> ShownShare:
        """Give somebody a share, in place of the one before; it counts from now on.

        With `reserve`, it is set aside: charged to the data set now, and nobody else spends it.
        """
        _require(desk, dataset)
        with reading(desk.ledger) as connection:
            require_person(connection, person)
        above = desk.datasets[dataset].settings.budget
        cap = Guarantee(epsilon=quota.epsilon, delta=quota.delta)
        try:
            grant = set_quota(
                desk.ledger,
                person,
                dataset,
                cap,
                above=above,
                actor=caller.name,
                reserve=quota.reserve,
            )
        except Overspent:
            raise Problem("budget_exceeded") from None
        return show_share(desk, grant)


def _require(desk: Desk, dataset: str) -> None:
    if dataset not in desk.datasets:
        raise Problem("not_found")


def _add_budgets(router: APIRouter, desk: Desk, steward: Callable[..., Caller]) -> None:
    @router.get("/datasets/{dataset}/budget", responses=document("forbidden", "not_found"))
    def budget(
        dataset: Id,
        caller: Annotated[Caller, Depends(steward)],  # noqa: ARG001
    ) -> ShownBudget:
        """Say where the budget of a data set stands."""
        _require(desk, dataset)
        found = desk.ledger.balance(desk.datasets[dataset].settings.budget)
        limit = found.budget.limit
        return ShownBudget(
            name=found.budget.name,
            epsilon=limit.epsilon,
            delta=limit.delta,
            unit=limit.unit,
            neighbours=limit.neighbours,
            method=found.budget.method,
            charges=found.entries,
            used=found.used,
            left=Left(epsilon=found.epsilon_left, delta=found.delta_left),
        )

    @router.get("/datasets/{dataset}/entries", responses=document("forbidden", "not_found"))
    def entries(
        dataset: Id,
        caller: Annotated[Caller, Depends(steward)],  # noqa: ARG001
        after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
        most: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Listed[ShownEntry]:
        """List the charges of a data set, in their order."""
        _require(desk, dataset)
        found = desk.ledger.entries(desk.datasets[dataset].settings.budget)[after : after + most]
        items = [
            ShownEntry(
                number=each.number,
                at=each.at,
                epsilon=each.guarantee.epsilon,
                delta=each.guarantee.delta,
                note=each.note,
                request=each.key,
                digest=each.digest,
            )
            for each in found
        ]
        return Listed(items=items, cursor=str(items[-1].number) if len(items) == most else None)

    @router.get("/audit", responses=document("forbidden"))
    def audit(
        caller: Annotated[Caller, Depends(steward)],  # noqa: ARG001
        after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
        most: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Listed[ShownEvent]:
        """List the trail: who did what."""
        with reading(desk.ledger) as connection:
            found = list_events(connection, after=after, most=most)
        items = [ShownEvent.model_validate(each) for each in found]
        return Listed(items=items, cursor=str(items[-1].number) if len(items) == most else None)
