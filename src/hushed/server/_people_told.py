"""What is said of each person: shares, tokens that count, how long, when last used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from hushed._ground.printing import format_down, format_up
from hushed.ledger import Balance, Ledger
from hushed.ledger._together import reading
from hushed.server._config import Settings
from hushed.server._giving import spent_before
from hushed.server._people import Grant, list_approvers, list_grants, list_people
from hushed.server._schema import fetch_all

_USES: Final = {
    "api": "token",
    "door": "address for the pages",
    "page": "session of the pages",
}
INVITE_STEWARDS: Final = (
    "let two stewards in at this machine, each by hushed serve invite NAME --steward, for nobody "
    "approves what was asked with a token that they made"
)
_HOUR, _DAY = 3600, 86_400
_NOT_NAMED: Final = (
    "; nobody spends from it now, for no data set and no share has it: what is left is there for "
    "the next data set that names it"
)
_ENDED: Final = (
    "; nobody spends from it now, for this share counts no more: what is left is given to nobody"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenView:
    """A token that counts."""

    id: str
    what: str
    made: str  # the day
    expires: str
    ends: str
    used: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonView:
    """Somebody, with what counts now."""

    id: str
    name: str
    role: str
    active: bool
    shares: tuple[str, ...]
    kept: int  # bytes of what was asked and answered
    tokens: tuple[TokenView, ...]


def describe_people(ledger: Ledger) -> tuple[PersonView, ...]:
    """Describe everybody, and nothing that opens a door."""
    return tuple(_describe(ledger, each) for each in list_people(ledger))


def say_budgets(ledger: Ledger, settings: Settings) -> dict[tuple[str, ...], str]:
    """Say what is left of each budget, by the data sets that share it."""
    found = datasets_of_budgets(settings)
    budgets = {each.name for each in ledger.budgets()}
    return {
        tuple(names): say_left(ledger.balance(budget))
        for budget, names in found.items()
        if budget in budgets
    }


def datasets_of_budgets(settings: Settings) -> dict[str, list[str]]:
    """List the data sets of each budget."""
    found: dict[str, list[str]] = {}
    for name, each in settings.dataset.items():
        found.setdefault(each.budget, []).append(name)
    return found


def say_unused(ledger: Ledger, settings: Settings) -> dict[str, str]:
    """Say of the budgets that no data set has, and no share that counts, what is left for whom."""
    used = {each.budget for each in settings.dataset.values()}
    for person in list_people(ledger):
        used |= {each.budget for each in list_grants(ledger, person["id"])}
    with reading(ledger) as connection:
        rows = fetch_all(connection, "SELECT budget FROM @.hushed_s_grants")
    shares = {row["budget"] for row in rows}
    unused = {each.name for each in ledger.budgets()} - used
    return {each: _ENDED if each in shares else _NOT_NAMED for each in unused}


def say_approvers(ledger: Ledger, settings: Settings) -> str:
    """Say that fewer than two stewards can approve, where something waits for approval at all."""
    waits = [name for name, each in settings.dataset.items() if each.approve_above is not None]
    able = list_approvers(ledger) if waits else []
    if not waits or len(able) > 1:
        return ""
    told = f"costly requests of {', '.join(waits)} wait for approval, and "
    if not able:
        return f"{told}nobody can approve them: {INVITE_STEWARDS}"
    return (
        f"{told}{able[0]} alone can approve them, but none that was asked with a token that "
        f"{able[0]} made: {INVITE_STEWARDS}"
    )


def say_left(balance: Balance) -> str:
    """Say what is left of a budget; of a delta and a gamma, if it has them."""
    limit = balance.budget.limit
    told = f"epsilon {format_down(balance.epsilon_left, 3)} of {format_up(limit.epsilon, 4)} left"
    if limit.delta:
        told += f", delta {format_down(balance.delta_left, 3)} of {format_up(limit.delta, 4)} left"
    if limit.gamma:
        told += f", gamma {format_down(balance.gamma_left, 3)} of {format_up(limit.gamma, 4)} left"
    return told


def list_open_tokens(person: dict[str, Any]) -> tuple[TokenView, ...]:
    """List the tokens of somebody that count now."""
    moment = datetime.now(UTC)
    return tuple(
        TokenView(
            id=each["id"],
            what=_USES[each["use"]] + _say_scope(each),
            made=each["made"][:10],
            expires=each["expires"],
            ends=_say_end(datetime.fromisoformat(each["expires"]), moment),
            used="not used yet" if each["last_used"] is None else f"last used {each['last_used']}",
        )
        for each in person["tokens"]
        if each["revoked"] is None and datetime.fromisoformat(each["expires"]) > moment
    )


def _describe(ledger: Ledger, person: dict[str, Any]) -> PersonView:
    return PersonView(
        id=person["id"],
        name=person["name"],
        role=person["role"],
        active=person["active"],
        kept=person["kept"],
        shares=tuple(_say_share(ledger, each) for each in list_grants(ledger, person["id"])),
        tokens=list_open_tokens(person),
    )


def _say_share(ledger: Ledger, share: Grant) -> str:
    balance = ledger.balance(share.budget)
    limit = balance.budget.limit
    told = f"{share.dataset} {format_up(limit.epsilon, 4)}"
    told += f", {format_down(balance.epsilon_left, 3)} left"
    if limit.delta:
        told += f", delta {format_up(limit.delta, 4)}, {format_down(balance.delta_left, 3)} left"
    if limit.gamma:
        told += f", gamma {format_up(limit.gamma, 4)}, {format_down(balance.gamma_left, 3)} left"
    told += ", set aside" if share.reserved else ""
    told += "" if share.daily is None else f", each day {share.daily.say()}"
    before = spent_before(ledger, share)
    return told + (f", {format_up(before, 4)} spent of earlier shares" if before else "")


def _say_scope(token: dict[str, Any]) -> str:
    told = ["for prices alone"] if token["quote_only"] else []
    if token["datasets"] is not None:
        told.append(f"for {', '.join(token['datasets']) or 'no data set'}")
    if token["addresses"]:
        told.append(f"from {', '.join(token['addresses'])}")
    return "".join(f", {each}" for each in told)


def _say_end(ends: datetime, moment: datetime) -> str:
    left = (ends - moment).total_seconds()
    if left >= 2 * _DAY:
        return f"ends in {round(left / _DAY)} days"
    if left >= 2 * _HOUR:
        return f"ends in {round(left / _HOUR)} hours"
    return f"ends in {max(1, int(left // 60))} minutes"
