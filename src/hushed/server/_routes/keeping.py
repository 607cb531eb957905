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
from hushed.server._callers import Callers, Shown, require_keeper
from hushed.server._daily import LARGEST
from hushed.server._desk import Desk
from hushed.server._giving import set_quota, spent_before
from hushed.server._people import (
    Caller,
    Grant,
    Role,
    add_person,
    add_token,
    list_people,
    list_shares,
    require_person,
    revoke_token,
    set_active,
)
from hushed.server._problems import Problem, document
from hushed.server._requests import find_ids
from hushed.server._seen import show_share
from hushed.server._sessions import write_address
from hushed.server._shown import (
    KeptShare,
    Left,
    Listed,
    NewToken,
    ShownBudget,
    ShownEntry,
    ShownEvent,
    ShownPerson,
)
from hushed.server._tokens import DOOR_DAYS, LONGEST_DAYS, Scope

Id = Annotated[str, Path(max_length=64)]
Name = Annotated[StrictStr, Field(max_length=64)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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
    datasets: Annotated[list[Name], Field(max_length=100)] | None = None
    quote_only: StrictBool = False
    page: StrictBool = False  # good once, within a day, to open the pages
    addresses: Annotated[
        list[Annotated[StrictStr, Field(max_length=50)]], Field(max_length=20)
    ] = []

    def scope(self) -> Scope:
        """Say what the token may do."""
        datasets = None if self.datasets is None else tuple(self.datasets)
        return Scope(
            datasets=datasets,
            quote_only=self.quote_only,
            addresses=tuple(self.addresses),
            use="door" if self.page else "api",
        )

    def life(self) -> int:
        """Say for how many days it counts."""
        return DOOR_DAYS if self.page else self.days


class Quota(_Body):
    """A share of a data set, which counts from now on."""

    epsilon: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0
    reserve: StrictBool = False
    per_day: Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)] | None = None


def keeper_of(callers: Callers) -> Callable[..., Caller]:
    """Make a dependency that lets in stewards who keep people and shares."""

    def find(request: HttpRequest, shown: Shown) -> Caller:
        return require_keeper(callers.find(request, shown))

    return find


def make_router(desk: Desk, callers: Callers) -> APIRouter:
    """Make the routes of stewards."""
    router = APIRouter(prefix="/v1", tags=["keeping"])
    steward = keeper_of(callers)
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
        scope = asked.scope().below(caller.scope)
        identity, text = add_token(
            desk.ledger, person, days=asked.life(), scope=scope, actor=caller.name
        )
        address = write_address(desk.settings.server, text) if asked.page else None
        return NewToken(id=identity, token=text, address=address)

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
    ) -> dict[str, KeptShare]:
        """List the shares of a data set, by the name of their person."""
        return show_shares(desk, dataset)

    @router.put(
        "/datasets/{dataset}/quotas/{person}",
        responses=document("forbidden", "not_found", "bad_value", "budget_exceeded"),
    )
    def give(
        dataset: Id, person: Id, quota: Quota, caller: Annotated[Caller, Depends(steward)]
    ) -> KeptShare:
        """Give somebody a share, in place of the one before; it counts from now on.

        The same share again, of the same budget, changes nothing, whatever was spent of it.
        With `reserve`, it is set aside: charged to the data set now, and nobody else spends it.
        `per_day` is the most epsilon that may be charged to it in a day; without it, the limit that
        was there stays.
        """
        return give_share(desk, dataset, person, quota, caller)


def show_shares(desk: Desk, dataset: str) -> dict[str, KeptShare]:
    """Show the shares of a data set that count, by the name of their person."""
    _require(desk, dataset)
    shares = list_shares(desk.ledger, dataset)
    return {name: _show_kept(desk, each) for name, each in shares.items()}


def _show_kept(desk: Desk, share: Grant) -> KeptShare:
    told = show_share(desk, share).model_dump()
    return KeptShare(**told, spent_before=spent_before(desk.ledger, share))


def give_share(desk: Desk, dataset: str, person: str, quota: Quota, caller: Caller) -> KeptShare:
    """Give somebody a share of a data set."""
    _require(desk, dataset)
    with reading(desk.ledger) as connection:
        require_person(connection, person)
    above = desk.datasets[dataset].settings.budget
    cap = Guarantee(epsilon=quota.epsilon, delta=quota.delta)
    try:
        given = set_quota(
            desk.ledger,
            person,
            dataset,
            cap,
            above=above,
            actor=caller.name,
            reserve=quota.reserve,
            per_day=quota.per_day,
        )
    except Overspent:
        raise Problem("budget_exceeded") from None
    return _show_kept(desk, given.grant)


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
        return show_budget(desk, dataset)

    @router.get("/datasets/{dataset}/entries", responses=document("forbidden", "not_found"))
    def entries(
        dataset: Id,
        caller: Annotated[Caller, Depends(steward)],  # noqa: ARG001
        after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
        most: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Listed[ShownEntry]:
        """List the charges of a data set, in their order."""
        return show_entries(desk, dataset, after=after, most=most)

    @router.get("/audit", responses=document("forbidden"))
    def audit(
        caller: Annotated[Caller, Depends(steward)],  # noqa: ARG001
        after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
        most: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Listed[ShownEvent]:
        """List the trail: who did what."""
        return show_trail(desk, after=after, most=most)


def show_budget(desk: Desk, dataset: str) -> ShownBudget:
    """Show where the budget of a data set stands."""
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


def show_entries(desk: Desk, dataset: str, *, after: int, most: int) -> Listed[ShownEntry]:
    """Show charges of a data set, in their order."""
    _require(desk, dataset)
    found = desk.ledger.entries(desk.datasets[dataset].settings.budget)[after : after + most]
    requests = find_ids(desk.ledger, [each.key for each in found if each.key is not None])
    items = [
        ShownEntry(
            number=each.number,
            at=each.at,
            epsilon=each.guarantee.epsilon,
            delta=each.guarantee.delta,
            note=each.note,
            request=each.key if each.key in requests else None,
            digest=each.digest,
        )
        for each in found
    ]
    return Listed(items=items, cursor=str(items[-1].number) if len(items) == most else None)


def show_trail(desk: Desk, *, after: int, most: int) -> Listed[ShownEvent]:
    """Show events of the trail, in their order."""
    with reading(desk.ledger) as connection:
        found = list_events(connection, after=after, most=most)
    ends = [each["number"] for each in found if each["action"] in ("answered", "failed")]
    if ends:
        desk.require_told(max(ends))
    items = [ShownEvent.model_validate(each) for each in found]
    return Listed(items=items, cursor=str(items[-1].number) if len(items) == most else None)
