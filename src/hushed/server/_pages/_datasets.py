"""Data sets: what is public about them, and for stewards budget, shares and charges."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import ValidationError

from hushed._web.fields import Form
from hushed._web.rendering import Fields
from hushed.server._callers import require_grant, require_keeper
from hushed.server._pages._house import House
from hushed.server._people import Caller, list_people
from hushed.server._problems import Problem
from hushed.server._routes.asking import DatasetId
from hushed.server._routes.keeping import (
    Quota,
    give_share,
    show_budget,
    show_entries,
    show_shares,
)
from hushed.server._seen import list_datasets, list_functions, show_dataset
from hushed.server._sessions import PAGES
from hushed.server._shown import ShownDataset
from hushed.server._values import say_value

_AT_ONCE = 50


def make_router(house: House) -> APIRouter:
    """Make the routes of data sets."""
    router = APIRouter(prefix=PAGES)
    desk = house.desk
    anybody = house.visitors.of_role("analyst", "steward", quote_only=True)
    keeper = house.visitors.keeper()

    @router.get("/datasets")
    def list_all(request: Request, caller: Annotated[Caller, Depends(anybody)]) -> Response:
        found = list_datasets(desk, caller)
        gauges = [_gauge_of(house, caller, each) for each in found]
        return house.show(
            request,
            "page_datasets.html",
            active="datasets",
            found=list(zip(found, gauges, strict=True)),
        )

    def show(
        request: Request, caller: Caller, dataset: str, status: int = 200, **said: object
    ) -> Response:
        told = show_dataset(desk, caller, dataset)
        keeps = caller.role == "steward" and _keeps(caller)
        people = [each for each in list_people(desk.ledger) if each["role"] == "analyst"]
        return house.show(
            request,
            "page_dataset.html",
            status,
            active="datasets",
            told=told,
            functions=[each for each in list_functions(desk, caller) if each.dataset == told.id],
            gauge=_gauge_of(house, caller, told),
            keeps=keeps,
            budget=show_budget(desk, told.id) if keeps else None,
            shares=show_shares(desk, told.id) if keeps else {},
            people=[(each["id"], each["name"]) for each in people if each["active"]]
            if keeps
            else [],
            **{"problem": "", "fields": {}, "errors": {}, **said},
        )

    @router.get("/datasets/{dataset}")
    def one(
        request: Request, dataset: DatasetId, caller: Annotated[Caller, Depends(anybody)]
    ) -> Response:
        return show(request, caller, dataset)

    @router.post("/datasets/{dataset}/shares")
    def give(
        request: Request,
        dataset: DatasetId,
        fields: Fields,
        caller: Annotated[Caller, Depends(keeper)],
    ) -> Response:
        person, quota, errors = _read_share(fields)
        if quota is None or errors:
            return show(request, caller, dataset, 422, fields=fields, errors=errors)
        try:
            give_share(desk, dataset, person, quota, caller)
        except Problem as problem:
            if problem.code != "budget_exceeded":
                raise
            errors["epsilon"] = "less than that is left of the budget to be set aside"
            return show(request, caller, dataset, 409, fields=fields, errors=errors)
        return house.go(f"/datasets/{dataset}")

    @router.get("/datasets/{dataset}/entries")
    def entries(
        request: Request,
        dataset: DatasetId,
        caller: Annotated[Caller, Depends(keeper)],  # noqa: ARG001
        after: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    ) -> Response:
        budget = show_budget(desk, dataset)
        first = max(0, budget.charges - _AT_ONCE) if after is None else after
        found = show_entries(desk, dataset, after=first, most=_AT_ONCE)
        return house.show(
            request,
            "page_entries.html",
            active="datasets",
            dataset=dataset,
            gauge=house.gauge(budget.name),
            found=found.items[::-1],
            earlier=max(0, first - _AT_ONCE) if first else None,
        )

    return router


def _read_share(fields: Mapping[str, str]) -> tuple[str, Quota | None, dict[str, str]]:
    """Read whose share it is, and how much; what is wrong stands by its field."""
    form, quota = Form(fields), None
    person, epsilon, delta = form.text("person"), form.number("epsilon"), form.number("delta", 0.0)
    if not person:
        form.refuse("person", "choose somebody")
    if epsilon is None:
        form.refuse("epsilon", "give the most that this person may spend, such as 1")
    told = {"epsilon": epsilon, "delta": delta, "reserve": form.text("reserve") == "yes"}
    told |= {"per_day": form.number("per_day")}
    try:
        quota = Quota.model_validate(told)
    except ValidationError as error:
        found = error.errors()[0]
        form.refuse(str(found["loc"][0]), say_value(found))
    return person, quota, form.errors


def _keeps(caller: Caller) -> bool:
    try:
        require_keeper(caller)
    except Problem:
        return False
    return True


def _gauge_of(house: House, caller: Caller, told: ShownDataset) -> Any:
    """Show where the own share stands, or to a steward the budget; None if the token is narrowed.

    The API does not tell it then, either.
    """
    if caller.role != "steward":
        budget = require_grant(house.desk, caller, told.id).budget
        today = None if told.share is None else told.share.left_today
        return house.gauge(budget, told.max_epsilon, math.inf if today is None else today)
    if not _keeps(caller):
        return None
    return house.gauge(house.desk.datasets[told.id].settings.budget, told.max_epsilon)
