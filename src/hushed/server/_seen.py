"""What a caller may see: data sets, prices, requests, answers; for the API and for the pages."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np

from hushed._ground.printing import flat, tame_cell
from hushed.errors import NotFound
from hushed.ledger._together import reading
from hushed.plots import certificate_page
from hushed.releasing import Certificate
from hushed.releasing._names import name_numbers
from hushed.releasing._stored import read_release
from hushed.server._audit import add_event, telling
from hushed.server._callers import require_grant
from hushed.server._config import most_epsilon
from hushed.server._desk import Desk
from hushed.server._functions import Function, Record
from hushed.server._judging import (
    Asked,
    AskFunction,
    AskQuote,
    FunctionPrice,
    can_be_asked,
    price,
    price_function,
    read_asked,
)
from hushed.server._people import Caller, Grant, is_set_aside, list_grants, require_person
from hushed.server._problems import Problem
from hushed.server._refusing import why_no_gamma
from hushed.server._requests import (
    Request,
    State,
    find_certificate,
    find_request,
    list_requests,
)
from hushed.server._retention import kept_until
from hushed.server._shown import (
    Left,
    Listed,
    ShownDataset,
    ShownFunction,
    ShownMe,
    ShownQuote,
    ShownRequest,
    ShownShare,
)
from hushed.tables import Answer

_NO_ANSWER = {  # nothing was charged
    "pending": "The request waits for a steward's approval.",
    "declined": "A steward declined the request: there will be none.",
    "cancelled": "The request was taken back: there will be none.",
    "expired": "The request waited too long for approval: there will be none.",
}


def list_datasets(desk: Desk, caller: Caller) -> list[ShownDataset]:
    """List the data sets of a caller; a steward sees all that the token may."""
    if caller.role == "steward":
        names = [each for each in sorted(desk.datasets) if caller.scope.allows_dataset(each)]
        return [_dataset(desk, name, None) for name in names]
    return [_dataset(desk, each.dataset, each) for each in own_grants(desk, caller)]


def show_dataset(desk: Desk, caller: Caller, dataset: str) -> ShownDataset:
    """Show a data set to a caller; one that may not be seen is not there."""
    grant = _find_grant(desk, caller, dataset)
    return _dataset(desk, dataset, grant)


def show_quote(desk: Desk, caller: Caller, dataset: str, asked: AskQuote) -> ShownQuote:
    """Price a question for a caller."""
    return show_quote_of(desk, caller, dataset, asked, _find_grant(desk, caller, dataset))


def show_quote_of(
    desk: Desk, caller: Caller, dataset: str, asked: AskQuote, grant: Grant | None
) -> ShownQuote:
    """Price a question for a caller whose share is known."""
    told = price(desk, caller.id, desk.datasets[dataset], asked, grant)
    told["needs_approval"] = desk.datasets[dataset].needs_approval(told["epsilon"])
    return ShownQuote.model_validate(told)


def list_functions(desk: Desk, caller: Caller) -> list[ShownFunction]:
    """List the functions of the data sets that a caller sees."""
    seen = {each.id: each.share for each in list_datasets(desk, caller)}
    shares = {each.dataset: each for each in own_grants(desk, caller)}
    found = [each for each in desk.functions.values() if each.dataset in seen]
    return [_function(desk, each, seen[each.dataset], shares.get(each.dataset)) for each in found]


def show_function(desk: Desk, caller: Caller, name: str) -> ShownFunction:
    """Show a function to a caller; one of a data set that may not be seen is not there."""
    dataset = dataset_of(desk, name)
    grant = _find_grant(desk, caller, dataset)
    return _function(desk, desk.functions[name], _dataset(desk, dataset, grant).share, grant)


def dataset_of(desk: Desk, function: str) -> str:
    """Name the data set of a function; one that is not there is of one that nobody may see.

    So the same is done for both.
    """
    found = desk.functions.get(function)
    return "" if found is None else found.dataset


def _function(
    desk: Desk, found: Function, share: ShownShare | None, grant: Grant | None
) -> ShownFunction:
    record = found.require_record()
    dataset = desk.datasets[found.dataset]
    most = most_epsilon(dataset.settings, desk.settings.limits)
    if record.max_epsilon is not None:
        most = min(most, record.max_epsilon)
    closed = (
        "it is not as it was when it was registered"
        if found.stale or not can_be_asked(dataset)
        else ""
    )
    if not closed:
        budget = None if grant is None else grant.budget
        closed = why_no_gamma(desk.ledger, dataset.settings.budget, budget, record)
    names = ShownFunction.model_fields.keys() & set(Record.model_fields)
    told = record.model_dump(include=set(names)) | {
        "id": found.id,
        "record": record.digest(),
        "max_epsilon": most,
        "approve_above": dataset.settings.approve_above,
        "answer_grid": desk.grid(found.dataset, found.id),
        "open": not closed,
        "closed": closed,
        "share": share,
    }
    return ShownFunction.model_validate(told)


def show_function_quote(desk: Desk, caller: Caller, name: str, asked: FunctionPrice) -> ShownQuote:
    """Price a function for a caller."""
    dataset = dataset_of(desk, name)
    grant = _find_grant(desk, caller, dataset)
    told = price_function(desk, caller.id, name, asked, grant)
    told["needs_approval"] = desk.datasets[dataset].needs_approval(told["epsilon"])
    return ShownQuote.model_validate(told)


def _find_grant(desk: Desk, caller: Caller, dataset: str) -> Grant | None:
    """Find the share of an analyst; a steward has none, and sees what the token may."""
    if caller.role == "analyst":
        return require_grant(desk, caller, dataset)
    if dataset not in desk.datasets or not caller.scope.allows_dataset(dataset):
        raise Problem("not_found")
    return None


def own_grants(desk: Desk, caller: Caller) -> list[Grant]:
    """List the shares of a caller that the token may use."""
    return [
        each
        for each in list_grants(desk.ledger, caller.id)
        if each.dataset in desk.datasets and caller.scope.allows_dataset(each.dataset)
    ]


def _dataset(desk: Desk, name: str, share: Grant | None) -> ShownDataset:
    found = desk.datasets[name]
    most = most_epsilon(found.settings, desk.settings.limits)
    told = found.layout() | {"max_epsilon": most, "open": can_be_asked(found)}
    left = None if share is None else show_share(desk, share)
    return ShownDataset.model_validate(told | {"share": left})


def show_caller(desk: Desk, caller: Caller) -> ShownMe:
    """Say who somebody is, and what the token may do."""
    return ShownMe(
        id=caller.id,
        name=caller.name,
        role=caller.role,
        token_expires=caller.expires,
        quote_only=caller.scope.quote_only,
        shares=[show_share(desk, each) for each in own_grants(desk, caller)],
    )


def show_share(desk: Desk, share: Grant) -> ShownShare:
    """Show a share to its person, and to a steward."""
    balance = desk.ledger.balance(share.budget)
    limit, daily = balance.budget.limit, share.daily
    return ShownShare(
        dataset=share.dataset,
        epsilon=limit.epsilon,
        delta=limit.delta,
        gamma=limit.gamma,
        gamma_left=balance.gamma_left,
        reserved=is_set_aside(desk.ledger, share, desk.datasets[share.dataset].settings.budget),
        left=Left(epsilon=balance.epsilon_left, delta=balance.delta_left),
        per_day=None if daily is None else daily.most,
        left_today=None if daily is None else daily.left(),
        today=None if daily is None else daily.today(),
    )


def show_requests(
    desk: Desk, caller: Caller, *, cursor: str = "", most: int = 50, state: str | None = None
) -> Listed[ShownRequest]:
    """Show requests, the newest first: those of the caller, or all to a steward."""
    found, more = find_requests(desk, caller, cursor=cursor, most=most, state=state)
    told = [(each, each.shown_state()) for each in found]
    desk.require_marked(*(each for each, state in told if state == each.state))
    asker = caller.name if caller.role == "analyst" else None
    return Listed(items=[show_found(desk, each, state, asker) for each, state in told], cursor=more)


def find_requests(
    desk: Desk, caller: Caller, *, cursor: str, most: int, state: str | None
) -> tuple[list[Request], str | None]:
    """Find the requests that a caller sees, and the cursor of those that follow."""
    person = caller.id if caller.role == "analyst" else None
    seen = list_requests(
        desk.ledger,
        person=person,
        cursor=cursor,
        most=most,
        state=state,
        datasets=caller.scope.datasets,
    )
    last = seen[-1] if len(seen) == most else None
    return list(seen), None if last is None else f"{last.asked_at}_{last.id}"


def require_visible(desk: Desk, caller: Caller, request: str) -> Request:
    """Find a request of the caller; that of somebody else does not exist, but for a steward."""
    found = find_request(desk.ledger, request, caller.id if caller.role == "analyst" else None)
    if found is None or not caller.scope.allows_dataset(found.dataset):
        raise Problem("not_found")
    return found


def show_request(desk: Desk, found: Request, asker: str | None = None) -> ShownRequest:
    """Show a request to whom it belongs, whose name is known then, and to a steward."""
    state = found.shown_state()
    if state == found.state:  # one that ends unseen is not looked at: it would tell when it ends
        desk.require_marked(found)  # that it failed may tell of rows, and is shown once, too
    return show_found(desk, found, state, asker)


def show_found(desk: Desk, found: Request, state: State, asker: str | None = None) -> ShownRequest:
    """Show a request in a state that may be told."""
    asked = read_asked(found.body)
    # Of few numbers a digest tells them to whoever tries: it is for those who may read the answer.
    reads = asker is not None or desk.settings.server.stewards_read_answers
    if asker is None:
        with reading(desk.ledger) as connection:
            asker = require_person(connection, found.person)["name"]
    return ShownRequest(
        id=found.id,
        asker=asker,
        dataset=found.dataset,
        state=state,
        key=found.key,
        query=None if isinstance(asked, AskFunction) else asked.query,
        function=asked.function,
        epsilon=asked.epsilon,
        delta=asked.delta,
        noise=_name_noise(desk, asked),
        note=asked.note,
        entry=found.entry,
        asked_at=found.asked_at,
        charged_at=found.charged_at,
        readable_at=None if state == "charged" else found.readable_at,
        decided_by=found.decided_by,
        reason=found.reason,
        kept_until=_keep_until(desk, found) if state == "answered" else None,
        deleted_at=found.deleted_at,
        answer_sha256=found.answer_sha256 if reads else None,
    )


def _keep_until(desk: Desk, found: Request) -> str | None:
    if found.readable_at is None or found.deleted_at is not None:
        return None
    return kept_until(desk, found.readable_at)


def _name_noise(desk: Desk, asked: Asked) -> str:
    if not isinstance(asked, AskFunction):
        return asked.noise
    found = desk.functions.get(asked.function)
    return "" if found is None or found.record is None else found.record.noise


def read_answer(desk: Desk, caller: Caller, request: str) -> str:
    """Read the answer of a request, as it is stored."""
    found = _require_answered(desk, caller, request)
    try:
        text = _require_text(desk.ledger.answer(found.budget, found.charge()[0]))
    except NotFound:  # its time ended a moment ago
        raise Problem("answer_deleted") from None
    return _tell_read(desk, caller, found, "read an answer", text)


def read_certificate(desk: Desk, caller: Caller, request: str) -> str:
    """Read the signed certificate of an answer."""
    found = _require_answered(desk, caller, request)
    text = _require_text(find_certificate(desk.ledger, found.id))
    return _tell_read(desk, caller, found, "read a certificate", text)


def _tell_read(desk: Desk, caller: Caller, found: Request, action: str, text: str) -> str:
    """Write into the trail that a steward reads an answer of somebody else, before it is shown."""
    if caller.role == "steward":
        with telling(desk.ledger) as connection:
            add_event(connection, actor=caller.name, action=action, about=found.id)
    return text


def _require_answered(desk: Desk, caller: Caller, request: str) -> Request:
    """Find a request whose answer the caller may read now."""
    if caller.role == "steward" and not desk.settings.server.stewards_read_answers:
        raise Problem("forbidden", "On this server stewards read no answers.")
    found = require_visible(desk, caller, request)
    state = found.shown_state()
    if state == found.state:
        desk.require_marked(found)
    if state != "answered":
        why = _NO_ANSWER.get(state, "")
        raise Problem("failed") if state == "failed" else Problem("not_ready", why, wait=1)
    if found.deleted_at is not None:
        raise Problem("answer_deleted", f"SHA-256 of what could be read: {found.answer_sha256}")
    return found


def _require_text(text: str | None) -> str:
    if text is None:
        raise Problem("not_ready", wait=1)
    return text


def write_certificate_page(desk: Desk, signed: str) -> str:
    """Write the page of a certificate, checked by the key that it was signed with."""
    named = {each["keyid"] for each in json.loads(signed)["signatures"]}
    key = next((each for each in desk.keys if each.kid in named), desk.keys[0])
    return certificate_page(signed, key=key.pem.encode())


def write_stored(text: str) -> str:
    """Write an answer, as it is stored, as CSV."""
    if is_release(text):
        return _write_numbers(*read_release(text))
    return write_csv(Answer.from_json(text))


def _write_numbers(value: Any, certificate: Certificate) -> str:
    """Write released numbers, each beside its name if it has one."""
    if named := name_numbers(value, certificate):
        lines = (f"{_quote(name)},{number!r}" for name, number in named.items())
        return "\n".join(['"name","value"', *lines, ""])
    numbers = np.atleast_1d(value).ravel()
    return "\n".join(['"value"', *(repr(float(each)) for each in numbers), ""])


def _quote(name: str) -> str:
    return '"{}"'.format(_tame(name).replace('"', '""'))


def is_release(text: str) -> bool:
    """Whether a stored answer is the release of a function."""
    return bool(json.loads(text)["schema"] == "hushed release")


def write_csv(answer: Answer) -> str:
    """Write an answer as CSV that no spreadsheet runs: keys may come from data subjects."""
    keys = {
        name: tuple(_tame(each) if isinstance(each, str) else each for each in column)
        for name, column in answer.keys.items()
    }
    columns = replace(answer, keys=keys).to_dict()
    out = io.StringIO()
    # Texts stand in quotes: a semicolon begins a cell of its own where commas are points.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([_tame(name) for name in columns])
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def _tame(text: str) -> str:
    return tame_cell(flat(text))
