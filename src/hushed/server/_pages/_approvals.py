"""What waits for a steward: the price as it is now, and two buttons."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import ValidationError

from hushed._ground.printing import format_down, format_up, shown
from hushed._web.rendering import Fields
from hushed._web.svg import Picture, draw_gauge
from hushed.errors import Overspent
from hushed.ledger import Balance
from hushed.server._approving import (
    approve,
    decline,
    require_four_eyes,
    require_seen,
    require_share,
    require_token,
)
from hushed.server._daily import refuse_daily
from hushed.server._judging import (
    Asked,
    AskFunction,
    AskQuote,
    FunctionPrice,
    Judged,
    judge,
    read_asked,
)
from hushed.server._life import budget_of, require_payable
from hushed.server._pages._house import House
from hushed.server._pages._words import split_words
from hushed.server._people import Caller
from hushed.server._problems import Problem
from hushed.server._refusing import say_short
from hushed.server._requests import Request as Row
from hushed.server._routes.approving import Declined
from hushed.server._routes.asking import RequestId
from hushed.server._seen import (
    find_requests,
    show_function_quote,
    show_quote,
    show_request,
    show_requests,
)
from hushed.server._sessions import PAGES
from hushed.server._shown import ShownRequest

_MOST = 20  # that are priced at once; each takes a process some hundredths of a second
_DECIDED = 10
_MOST_KNOWN = 500
Priced = tuple[Judged, tuple[str, ...]]  # what is charged, and the errors of the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a charge would do to a budget."""

    sentence: str
    fits: bool
    picture: Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A request that waits, with its price as it is now."""

    told: ShownRequest
    price: str = ""  # digest of the price that is shown
    own: Step | None = None  # the budget of the data set; None if the share was set aside
    share: Step | None = None  # that of who asked
    errors: tuple[str, ...] = ()  # of the answer
    changed: bool = False  # whether it is charged in another way than when it was asked
    problem: str = ""  # why it cannot be approved

    @property
    def ready(self) -> bool:
        """Whether it can be approved."""
        fits = self.share is not None and self.share.fits and (self.own is None or self.own.fits)
        return fits and not self.problem


@dataclass(frozen=True, slots=True)
class _Pages:
    """What the handlers of these pages share."""

    house: House
    known: dict[str, Priced] = field(default_factory=dict)  # by request, while this process lives
    lock: Any = field(default_factory=threading.Lock)

    def show(
        self, request: Request, caller: Caller, status: int = 200, problem: str = "", why: str = ""
    ) -> Response:
        """Show what waits, and what was decided last."""
        desk = self.house.desk
        found, more = find_requests(desk, caller, cursor="", most=_MOST, state="pending")
        last = show_requests(desk, caller, most=100).items
        return self.house.show(
            request,
            "page_approvals.html",
            status,
            active="approvals",
            found=[self.look(caller, each) for each in found],
            more=more is not None,
            decided=[each for each in last if each.decided_by is not None][:_DECIDED],
            problem=problem,
            why=why,
        )

    def look(self, steward: Caller, found: Row) -> Waiting:
        """Price a request that waits as `approve` will, and say what keeps it from that."""
        desk = self.house.desk
        told = show_request(desk, found)
        try:
            require_token(desk, found)
            grant = require_share(desk, found)
            require_payable(desk, grant, read_asked(found.body))
            judged, errors = self._price(steward, found)
            budget = budget_of(desk, grant)
            share = _step(self.house, grant.budget, f"share of {told.asker}", judged)
            # A share that is set aside was charged to the budget when it was given.
            aside = budget == grant.budget
            own = None if aside else _step(self.house, budget, f"budget '{shown(budget)}'", judged)
        except Problem as problem:
            return Waiting(told=told, problem=problem.tell("steward").said)
        daily, epsilon, why = grant.daily, judged.guarantee.epsilon, ""
        if daily is not None and epsilon > daily.left():
            why = refuse_daily(daily, epsilon).tell("steward").said
        try:
            require_four_eyes(desk, steward, found)
        except Problem as problem:
            why = problem.title
        return Waiting(
            told=told,
            price=judged.digest,
            errors=errors,
            own=own,
            share=share,
            changed=judged.digest != found.question,
            problem=why,
        )

    def _price(self, steward: Caller, found: Row) -> Priced:
        """Judge a request, once: who asks what takes long must not keep stewards waiting."""
        known = self.known.get(found.id)
        if known is None:
            desk = self.house.desk
            asked = read_asked(found.body)
            judged = judge(desk, steward.id, desk.datasets[found.dataset], asked)
            known = judged, self._list_errors(steward, found.dataset, asked)
            with self.lock:
                while len(self.known) >= _MOST_KNOWN:
                    self.known.pop(next(iter(self.known)))
                self.known[found.id] = known
        return known

    def _list_errors(self, steward: Caller, dataset: str, asked: Asked) -> tuple[str, ...]:
        """List the errors of an answer in words."""
        desk = self.house.desk
        if isinstance(asked, AskFunction):
            price = FunctionPrice(epsilon=asked.epsilon, delta=asked.delta)
            told = show_function_quote(desk, steward, asked.function, price)
            errors = [each.error for each in told.outputs if each.error is not None]
            return tuple(f"within {format_up(each)} in 95 % of draws" for each in errors)
        terms = AskQuote.model_validate(asked.model_dump(exclude={"note"}))
        return tuple(split_words(show_quote(desk, steward, dataset, terms).words)[0])

    def decide(
        self, request: Request, caller: Caller, identity: str, do: Callable[[], object]
    ) -> Response:
        """Decide, and list what is left; whoever comes too late sees why."""
        try:
            do()
        except Problem as problem:
            if problem.code == "not_found":
                raise
            now = show_request(self.house.desk, require_seen(self.house.desk, caller, identity))
            said = problem.tell("steward").said
            return self.show(request, caller, problem.status, said, _say_end(now))
        return self.house.go("/approvals")

    def approve(self, caller: Caller, identity: str, seen: str) -> None:
        """Approve, unless the price is another one than was looked at."""
        found = require_seen(self.house.desk, caller, identity)
        if found.state == "pending":  # else `approve` says what is the matter
            now = self.look(caller, found)
            if now.price not in ("", seen):
                raise Problem(
                    "conflict", "the price was changed since you looked: look at it again"
                )
        approve(self.house.desk, caller, identity)

    def decline(self, caller: Caller, identity: str, reason: str) -> None:
        """Decline, with a reason."""
        try:
            why = Declined(reason=reason)
        except ValidationError:
            raise Problem("bad_value", "give a reason of at most 500 characters") from None
        decline(self.house.desk, caller, identity, why.reason)


def make_router(house: House) -> APIRouter:
    """Make the routes of approvals."""
    router = APIRouter(prefix=PAGES)
    pages = _Pages(house)
    steward = house.visitors.of_role("steward")

    @router.get("/approvals")
    def list_all(request: Request, caller: Annotated[Caller, Depends(steward)]) -> Response:
        return pages.show(request, caller)

    @router.post("/requests/{identity}/approve")
    def agree(
        request: Request,
        identity: RequestId,
        fields: Fields,
        caller: Annotated[Caller, Depends(steward)],
    ) -> Response:
        do = partial(pages.approve, caller, identity, fields.get("price", ""))
        return pages.decide(request, caller, identity, do)

    @router.post("/requests/{identity}/decline")
    def refuse(
        request: Request,
        identity: RequestId,
        fields: Fields,
        caller: Annotated[Caller, Depends(steward)],
    ) -> Response:
        do = partial(pages.decline, caller, identity, fields.get("reason", "").strip())
        return pages.decide(request, caller, identity, do)

    return router


def _step(house: House, budget: str, what: str, judged: Judged) -> Step:
    ledger = house.desk.ledger
    before = ledger.balance(budget)
    after: Balance | None = None
    try:
        after = ledger.quote(budget, judged.guarantee, loss=judged.loss)
        limit = format_down(before.budget.limit.epsilon, 6)
        spent, then = (format_up(each.spent.epsilon, 4) for each in (before, after))
        sentence = f"The {what}: {spent}, then {then} of {limit}."
    except Overspent:
        sentence = f"Does not fit the {what}: {say_short(ledger, budget, judged)}."
    picture = draw_gauge(before.used, None if after is None else after.used, sentence=sentence)
    return Step(sentence=sentence, fits=after is not None, picture=picture)


def _say_end(told: ShownRequest) -> str:
    """Say how a request ended that somebody else decided, or the asker took back."""
    if told.state == "pending":
        return f"The request of {told.asker} goes on waiting."
    if told.decided_by is None:
        ends = {"cancelled": f"{told.asker} took it back", "expired": "it waited too long"}
        return f"The request of {told.asker} waits no more: {ends.get(told.state, told.state)}."
    how = f"declined it: {told.reason}" if told.state == "declined" else "approved it"
    return f"The request of {told.asker} waits no more: {told.decided_by} {how}."
