"""The life of a request: judged, charged, answered, and only then shown.

The charges and the row of the request are one transaction; answer, certificate and the end of the
request are another. A server that is killed between them finds the request charged, and answers it
with fresh noise at no cost: of the first noise nothing was shown, so that one answer leaves in all.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from hushed.errors import DamagedLedger, LedgerUnavailable, Overspent, QueryFailed
from hushed.ledger._balance import terms_of
from hushed.ledger._entries import Entry
from hushed.ledger._failures import write_failure
from hushed.ledger._migrations import now
from hushed.ledger._notes import write_note
from hushed.ledger._together import (
    Charge,
    Wish,
    charge_each,
    entry_within,
    find_budget,
    keep_within,
    reading,
    reading_in_turn,
)
from hushed.server._audit import add_event, telling
from hushed.server._callers import require_grant_within
from hushed.server._daily import count_daily, refuse_daily
from hushed.server._datasets import Dataset
from hushed.server._desk import Desk
from hushed.server._functions import require_function
from hushed.server._judging import (
    Asked,
    AskFunction,
    Judged,
    can_be_asked,
    judge,
    read_asked,
    tell_run,
)
from hushed.server._people import (
    Caller,
    Grant,
    find_counting_of,
    is_set_aside,
    require_person,
)
from hushed.server._problems import Problem
from hushed.server._refusing import refuse_full, refuse_kept, refuse_share, require_gamma
from hushed.server._requests import (
    KeyTaken,
    Request,
    State,
    count_attempt,
    count_open,
    count_pending,
    end_request,
    find_by_key,
    find_request,
    insert_certificate,
    insert_request,
    list_open,
    list_open_within,
    return_attempt,
)
from hushed.server._runners import Failed, Interrupted, Unread
from hushed.statements import LedgerEntry, Statement, sign
from hushed.statements._certifying import certify_record
from hushed.statements._statement import ASKED, REGISTERED, digest_asked

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

MOST_ATTEMPTS = 3  # the first one, and two after a crash
_NO_NOTE = "no note given"
FAILURE = "it failed after the charge, which stays"


def take(desk: Desk, caller: Caller, dataset: str, key: str | None, asked: Asked) -> Request:
    """Take a request. One that was taken before is found without a share, too: it is paid."""
    if key is None:
        raise Problem("no_key")
    with reading_in_turn(desk.ledger) as connection:  # one look for all of it
        known = None
        if caller.scope.allows_dataset(dataset):
            known = find_known_within(connection, caller, dataset, key, asked)
        if known is not None:
            return known
        grant = require_grant_within(connection, desk, caller, dataset)
        waiting = _count_busy(desk, connection, caller, count_open(connection, caller.id))
    return _ask(desk, caller, grant, key, asked, waiting)


def _ask(desk: Desk, caller: Caller, grant: Grant, key: str, asked: Asked, waiting: int) -> Request:
    """Take a request under a key that was looked for; whoever was faster with it pays alone."""
    limits = desk.settings.limits
    if desk.count_waiting() >= limits.queue:
        raise Problem("busy", wait=5)
    if waiting >= limits.open_per_person:
        raise Problem("too_many_open", wait=2)
    dataset = desk.datasets[grant.dataset]
    require_payable(desk, grant, asked)
    judged = judge(desk, caller.id, dataset, asked)
    if dataset.needs_approval(asked.epsilon):
        return hold(desk, caller, grant, key, asked, judged)
    wish, made = wish_for(desk, caller, grant, key, asked, judged)
    try:
        charge_each(desk.ledger, wish.charges, wish.within, wish.before)
    except (KeyTaken, Overspent) as error:
        # Perhaps a race that the other one has won.
        found = find_known(desk, caller, grant.dataset, key, asked)
        if found is not None:
            return found
        if isinstance(error, KeyTaken):
            raise Problem("ledger_unavailable") from None
        raise refuse_full(desk.ledger, grant, error, judged) from None
    return begin(desk, made[-1])


def require_payable(desk: Desk, grant: Grant, asked: Asked) -> None:
    """Refuse a function that was changed, or whose gamma a share cannot pay."""
    if asked.function is not None:
        function = require_function(desk.functions, asked.function)
        above = desk.datasets[grant.dataset].settings.budget
        require_gamma(desk.ledger, above, grant, function.require_record())


def begin(desk: Desk, request: Request) -> Request:
    """Have what is charged answered when its turn has come."""
    desk.log("charged", request=request.id, person=request.person, dataset=request.dataset)
    desk.start(request, partial(run_request, desk, request))
    return request


def find_known(desk: Desk, caller: Caller, dataset: str, key: str, asked: Asked) -> Request | None:
    """Find what was taken under a key before; another question under it is refused."""
    with reading(desk.ledger) as connection:
        return find_known_within(connection, caller, dataset, key, asked)


def find_known_within(
    connection: Transaction, caller: Caller, dataset: str, key: str, asked: Asked
) -> Request | None:
    """Find it in a transaction that is under way."""
    known = find_by_key(connection, caller.id, key)
    if known is not None:
        # The note is no part of the question: the first one stays.
        noted = asked.model_copy(update={"note": read_asked(known.body).note} | _same(known, asked))
        if known.digest != noted.digest(dataset):
            raise Problem("key_reused")
    return known


def _same(known: Request, asked: Asked) -> dict[str, str]:
    """Give the record that was asked first, where one of both comes from a client without any."""
    first = read_asked(known.body)
    if not isinstance(first, AskFunction) or not isinstance(asked, AskFunction):
        return {}
    return {} if first.record and asked.record else {"record": first.record}


def budget_of(desk: Desk, grant: Grant) -> str:
    """Give the budget in which the answer stands: a share that is set aside was paid before."""
    above = desk.datasets[grant.dataset].settings.budget
    return grant.budget if is_set_aside(desk.ledger, grant, above) else above


def _new(
    desk: Desk, caller: Caller, grant: Grant, key: str, asked: Asked, judged: Judged
) -> Request:
    """Make the request that is going to be written; it is charged to nobody yet."""
    return Request(
        id=str(uuid.uuid4()),
        person=caller.id,
        dataset=grant.dataset,
        key=key,
        digest=asked.digest(grant.dataset),
        body=asked.model_dump_json(),
        state="pending",
        token=caller.token,
        asked_at=now(),
        budget=budget_of(desk, grant),
        quota=grant.budget,
        question=judged.digest,
    )


def wish_for(
    desk: Desk, caller: Caller, grant: Grant, key: str, asked: Asked, judged: Judged
) -> tuple[Wish, list[Request]]:
    """Say what is charged to data set and share, with the request: all of it, or nothing.

    The request as it was charged is put into the list.
    """

    def write(connection: Transaction, request: Request) -> None:
        insert_request(connection, request)
        counting = _check_again(desk, connection, caller, grant)
        epsilon, (_, at) = judged.guarantee.epsilon, request.charge()
        count_daily(connection, caller.id, counting, epsilon, at)
        add_event(connection, actor=caller.name, action="asked", about=request.id)

    new = _new(desk, caller, grant, key, asked, judged)
    return wish_of(desk, new, caller.name, asked, judged, write)


def wish_of(
    desk: Desk,
    request: Request,
    name: str,
    asked: Asked,
    judged: Judged,
    write: Callable[[Transaction, Request], None],
) -> tuple[Wish, list[Request]]:
    """Say what a request charges to its budgets, in the name of who asked it, and what it writes.

    The request as it was charged is put into the list.
    """
    charge = Charge(
        guarantee=judged.guarantee,
        loss=judged.loss,
        note=write_note(name, asked.note or _NO_NOTE),
        key=request.id,
        question=judged.digest,
    )
    made: list[Request] = []

    def within(connection: Transaction, entries: tuple[Entry, ...]) -> None:
        own, share = entries[0], entries[-1]
        charged = replace(
            request,
            state="charged",
            entry=own.number,
            quota_entry=share.number,
            question=judged.digest,
            attempts=1,
            charged_at=own.at,
        )
        write(connection, charged)
        made.append(charged)

    # One budget, if the share is set aside.
    charges = dict.fromkeys((request.budget, request.quota), charge)
    return Wish(charges=charges, within=within, before=desk.begin_charges), made


def hold(
    desk: Desk, caller: Caller, grant: Grant, key: str, asked: Asked, judged: Judged
) -> Request:
    """Let a costly request wait for approval, uncharged. It has to fit the share already."""
    try:
        desk.ledger.quote(grant.budget, judged.guarantee, loss=judged.loss)
    except Overspent:
        raise refuse_share(desk.ledger, grant, judged) from None
    request = _new(desk, caller, grant, key, asked, judged)
    try:
        with telling(desk.ledger) as connection:
            insert_request(connection, request)
            daily = _check_token(desk, connection, caller, grant)[0].daily
            if daily is not None and judged.guarantee.epsilon > daily.most:  # on no day
                raise refuse_daily(daily, judged.guarantee.epsilon)
            if count_pending(connection, caller.id) > desk.settings.limits.pending_per_person:
                raise Problem("too_many_open", "they wait for approval", wait=60)
            add_event(connection, actor=caller.name, action="asked for approval", about=request.id)
    except KeyTaken:
        found = find_known(desk, caller, grant.dataset, key, asked)
        if found is None:
            raise Problem("ledger_unavailable") from None
        return found
    desk.log("pending", request=request.id, person=caller.id, dataset=request.dataset)
    return request


def _check_again(desk: Desk, connection: Transaction, caller: Caller, grant: Grant) -> Grant:
    """Check in the transaction of the charge what may have changed since; the share as it is."""
    found, waiting = _check_token(desk, connection, caller, grant)
    if _count_busy(desk, connection, caller, waiting) > desk.settings.limits.open_per_person:
        raise Problem("too_many_open", wait=2)
    return found


def _count_busy(desk: Desk, connection: Transaction, caller: Caller, waiting: int) -> int:
    """Count what somebody waits for, without what waits for a steward: that may take days.

    What waits is looked at only where there is too much of it.
    """
    if waiting < desk.settings.limits.open_per_person:
        return waiting
    return waiting - sum(_is_held(desk, each) for each in list_open_within(connection, caller.id))


def _is_held(desk: Desk, request: Request) -> bool:
    """Whether a request has to wait until a data set, or a function, is back as it was."""
    dataset = desk.datasets.get(request.dataset)
    if dataset is None or not can_be_asked(dataset):
        return True
    name = read_asked(request.body).function
    try:
        return name is not None and not require_function(desk.functions, name)
    except Problem:
        return True


def _check_token(
    desk: Desk, connection: Transaction, caller: Caller, grant: Grant
) -> tuple[Grant, int]:
    """Check token and room, and find the share as it is, and how much its person waits for."""
    counts, found, waiting, kept = find_counting_of(connection, caller.token, caller.id, grant)
    if not counts:
        raise Problem("not_authenticated")
    if found is None:
        raise Problem("conflict", "your share was changed meanwhile; nothing was charged")
    if kept > desk.settings.limits.kept_per_person:
        raise refuse_kept(desk.settings, kept)
    return found, waiting


def run_request(desk: Desk, request: Request, *, again: bool = False) -> None:
    """Answer what is charged, in a process on which nobody who asks has to wait.

    So how long an answer takes delays no other price or charge, whose time everybody sees.
    """
    dataset = desk.datasets.get(request.dataset)
    if dataset is None or dataset.table is None or dataset.stale:
        return  # it waits for the steward
    name = read_asked(request.body).function
    if name is not None and (name not in desk.functions or desk.functions[name].stale):
        return  # so does a function that is not there, or not as it was
    if not desk.alone:
        return  # it waits until nobody else may be answering it
    desk.move_mark(request.id)  # no row is read, and no attempt counted, before it is on the disk
    if request.budget != budget_of(desk, _share_of(request)):  # the data set has another one now
        fail_request(desk, request, "budget")
        return
    if _is_other(desk, read_asked(request.body)):
        fail_request(desk, request, "function")
        return
    if again and not _begin_again(desk, request):
        return
    try:
        _run(desk, request, dataset)
    except LedgerUnavailable:  # nothing was shown: what cannot be written down is no attempt
        try:  # where there is no room for this either, no other attempt can be counted
            return_attempt(desk.ledger, request.id)
        except LedgerUnavailable:
            desk.unwritten.add(request.id)
        raise


def _is_other(desk: Desk, asked: Asked) -> bool:
    """Whether the function of the name is another one, or is given others, than was looked at."""
    if not isinstance(asked, AskFunction) or not asked.record:
        return False
    return asked.record != desk.functions[asked.function].require_record().digest()


def _share_of(request: Request) -> Grant:
    """Give the share of a request as it was charged: alone, if it was set aside."""
    reserved = request.budget == request.quota
    return Grant(dataset=request.dataset, budget=request.quota, reserved=reserved)


def _begin_again(desk: Desk, request: Request) -> bool:
    """Count another attempt, if there is one left; what only waited for its turn lost none."""
    current = find_request(desk.ledger, request.id)
    if current is None or current.state != "charged":
        return False
    if request.id in desk.unwritten:  # the last attempt goes on
        desk.unwritten.discard(request.id)
    elif not count_attempt(desk.ledger, request, MOST_ATTEMPTS):
        fail_request(desk, request, "attempts")
        return False
    desk.log("answered again", request=request.id)
    return True


def _run(desk: Desk, request: Request, dataset: Dataset) -> None:
    told = tell_run(desk, dataset, read_asked(request.body), request.question)
    told |= {"terms": _tell_terms(desk, request), "created": charged_second(request)}
    try:
        text = desk.runners.answer(told)
    except Unread as reason:
        return_attempt(desk.ledger, request.id)
        desk.log("data set unavailable", request=request.id, reason=str(reason))
    except Interrupted as reason:  # nothing of this run was shown; the sweeper reads again
        if desk.stopping:
            return_attempt(desk.ledger, request.id)
        desk.log("run interrupted", request=request.id, reason=str(reason))
    except Failed as reason:
        fail_request(desk, request, str(reason))
    else:
        keep_answer(desk, request, text)


def _tell_terms(desk: Desk, request: Request) -> str:
    """Say what the charge counts towards, for the certificate of a release."""
    return terms_of(find_budget(desk.ledger, request.budget), request.charge()[0])


def keep_answer(desk: Desk, request: Request, answer: str) -> None:
    """Write answer, certificate and end in one transaction; only then may anybody see it."""
    with reading(desk.ledger) as connection:
        entry = entry_within(connection, request.budget, request.charge()[0])
        name = require_person(connection, request.person)["name"]
    statement = certify_answer(desk, request, entry, answer, name)
    signed = sign(statement, desk.key)
    with telling(desk.ledger) as connection:
        if keep_within(connection, entry, answer) != answer:
            raise DamagedLedger(f"entry {entry.number} of {entry.budget!r} has an answer already")
        insert_certificate(connection, request.id, signed)
        _end(desk, connection, request, "answered", len(answer.encode()) + len(signed.encode()))
    desk.log("answered", request=request.id)
    desk.move_mark(request.id)  # by the run, and not by who looks: that would tell when it ended


def _end(
    desk: Desk, connection: Transaction, request: Request, state: State, size: int = 0
) -> None:
    """End a request; the trail tells the moment at which it could be seen, and not the true one."""
    grid = desk.grid(request.dataset, read_asked(request.body).function)
    at = end_request(connection, request, state, grid, size)
    add_event(connection, actor="server", action=state, about=request.id, at=at)


def certify_answer(
    desk: Desk, request: Request, entry: Entry, answer: str, actor: str
) -> Statement:
    """Certify an answer as of the charge behind it: when its run ended is not told."""
    budget = find_budget(desk.ledger, entry.budget)
    name = read_asked(request.body).function
    known = {} if name is None else {name: desk.functions[name].require_record().digest()}
    found = LedgerEntry(
        budget=entry.budget,
        number=entry.number,
        at=entry.at,
        note=entry.note,
        question=entry.question,
        digest=entry.digest,
        terms=terms_of(budget, entry.number),
    )
    return certify_record(
        answer,
        data=request.dataset,
        note=entry.note,
        actor=actor,
        entry=found,
        software={f"{REGISTERED}{name}": digest for name, digest in known.items()}
        | {ASKED: digest_asked(request.id, request.key)},
    )


def charged_second(request: Request) -> str:
    """Give the time that a certificate tells: any later one would tell how long rows took."""
    return datetime.fromisoformat(request.charge()[1]).isoformat(timespec="seconds")


def fail_request(desk: Desk, request: Request, reason: str) -> None:
    """Write down that a request failed after its charge; the words are the same for any reason."""
    with telling(desk.ledger) as connection:
        entry = entry_within(connection, request.budget, request.charge()[0])
        keep_within(connection, entry, write_failure(QueryFailed(FAILURE)))
        _end(desk, connection, request, "failed")
    desk.log("failed", request=request.id, reason=reason)
    desk.move_mark(request.id)  # by the run, and not by who looks: that would tell when it ended


def run_charged(desk: Desk, identity: str) -> None:
    """Run what another process of this server has charged a moment ago."""
    found = find_request(desk.ledger, identity)
    if found is not None and found.state == "charged":
        desk.start(found, partial(run_request, desk, found))


def recover(desk: Desk) -> int:
    """Answer what was charged before a crash, at no cost; how many requests there are."""
    desk.move_mark()
    found = [each for each in list_open(desk.ledger) if desk.queue.find(each.id) is None]
    for each in found:
        desk.start(each, partial(run_request, desk, each, again=True))
    return len(found)
