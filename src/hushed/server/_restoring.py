"""Put a copy of the ledger back: one that lacks nothing, or one whose gap is booked as spent."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from hushed._ground.decimals import stated_above
from hushed._ground.printing import name_count, plain_path
from hushed.errors import DamagedLedger, NotFound, Overspent, ParameterError, QueryFailed
from hushed.ledger import Ledger
from hushed.ledger._failures import write_failure
from hushed.ledger._migrations import now
from hushed.ledger._rows import run
from hushed.ledger._together import entry_within, keep_within, reading, writing
from hushed.server._alone import locked_file, require_own, serving_alone, set_own
from hushed.server._audit import add_event, trail_head, verify_trail
from hushed.server._config import Settings, ledger_address, read_settings
from hushed.server._daily import end_days
from hushed.server._disk import hand_over, sync_folder
from hushed.server._keys import name_key
from hushed.server._life import FAILURE
from hushed.server._mark import (
    Spent,
    Tally,
    check_mark,
    count_missing,
    read_mark,
    read_spent,
    write_mark,
)
from hushed.server._moved import BY_ITS_TOOLS, require_unmoved
from hushed.server._opening import mark_path
from hushed.server._people import MACHINE
from hushed.server._requests import decline_all, end_request, list_open
from hushed.server._retention import count_old
from hushed.server._schema import fetch_all, require_version, upgrade_tables

_PARTS = ("", "-wal", "-shm", "-journal")  # files of a ledger in a file
_NEW = "make a new server, with budgets of what is surely left"
_RETIRED = "its one entry, which charged nothing, is from after the copy that was restored"
_NOTE = "charged after the copy that was restored, and lost with the ledger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What `restore_server` has done."""

    lost: int = 0  # events, or charges, that the copy does not have, at least
    booked: tuple[str, ...] = ()  # budgets in which a gap was booked as spent
    failed: int = 0  # requests that were charged in the copy, and have failed now
    declined: int = 0  # requests that waited for approval, asked with tokens that are revoked now
    revoked: int = 0  # tokens
    days: int = 0  # shares with a limit for each day, of which nothing is left today
    returned: int = 0  # answers that are there again, and that the server deletes when it starts
    kept: str = field(default="", repr=False)  # where the file before is


def restore_server(folder: Path, copy: Path | None, *, accept_loss: bool) -> Restored:
    """Take a ledger back into service that was restored, or a copy in its place.

    The server must be stopped. A ledger that lacks what the mark tells is refused, unless the loss
    is accepted: then all that is missing is booked as spent.
    """
    settings = read_settings(folder)
    address = ledger_address(folder, settings)
    here = address.startswith("sqlite:///")
    if copy is None:
        if here:
            require_unmoved(folder, address)
        with Ledger(address, create=False) as ledger, serving_alone(ledger):
            return _take_back(folder, settings, ledger, accept_loss=accept_loss)
    if not here:
        raise ParameterError(BY_ITS_TOOLS)
    path = Path(address.removeprefix("sqlite:///"))
    with locked_file(path), ExitStack() as held:
        require_unmoved(folder, address)
        fresh = held.enter_context(_fresh(path, copy))
        with Ledger(f"sqlite:///{fresh}", create=False) as ledger:
            done = _prepare(folder, settings, ledger, accept_loss=accept_loss)
        with closing(sqlite3.connect(fresh)) as whole:  # all in one file, which is moved
            whole.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        kept = _swap(fresh, path)
        with Ledger(address, create=False) as ledger:
            _mark(folder, settings, ledger, done)
    return replace(done, kept=kept)


def _take_back(folder: Path, settings: Settings, ledger: Ledger, *, accept_loss: bool) -> Restored:
    done = _prepare(folder, settings, ledger, accept_loss=accept_loss)
    _mark(folder, settings, ledger, done)
    return done


def _mark(folder: Path, settings: Settings, ledger: Ledger, done: Restored) -> None:
    """Let the mark tell of the new trail; a ledger that lacks nothing has what it tells already."""
    if done.lost:
        with reading(ledger) as connection:
            spent = Tally().count(connection)
            write_mark(mark_path(folder, settings), trail_head(connection), spent)


@contextmanager
def _fresh(path: Path, copy: Path) -> Iterator[Path]:
    """Copy a copy beside the ledger; nothing of it is left if it is not taken."""
    if not copy.is_file():
        raise NotFound(f"there is no file {plain_path(copy)}")
    if path.exists() and copy.samefile(path):
        raise ParameterError("this is the ledger itself: leave the file out")
    fresh = path.with_name(f"{path.name}.restoring")
    _remove(fresh)
    try:
        with Ledger(f"sqlite:///{copy.absolute()}", create=False) as given:
            given.backup(fresh)
        yield fresh
    finally:
        _remove(fresh)


def _parts(path: Path) -> list[Path]:
    """Name the files of a ledger that are there."""
    named = (path.with_name(f"{path.name}{part}") for part in _PARTS)
    return [each for each in named if os.path.lexists(each)]


def _remove(path: Path) -> None:
    for part in _parts(path):
        part.unlink(missing_ok=True)


def _swap(fresh: Path, path: Path) -> str:
    """Put a file in the place of another one, which is kept with all that belongs to it."""
    kept = ""
    if found := _parts(path):  # also where the ledger is lost: its log would be read with the copy
        stem = f"{path.name}.replaced"
        taken = (path.with_name(f"{stem}{i or ''}") for i in range(1000))
        old = next(each for each in taken if not _parts(each))
        kept = str(old) if path in found else ""
        for part in reversed(found):  # the ledger itself goes last: until then it is whole
            with suppress(FileNotFoundError):
                part.rename(old.with_name(part.name.replace(path.name, old.name, 1)))
    with os.fdopen(os.open(fresh, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        hand_over(file.fileno(), path.parent)
        os.fsync(file.fileno())
    fresh.rename(path)
    sync_folder(path.parent)
    return kept


def _prepare(folder: Path, settings: Settings, ledger: Ledger, *, accept_loss: bool) -> Restored:
    """Check a ledger from end to end, and book what it lacks; the server can start on it then."""
    path = mark_path(folder, settings)
    mark, spent = read_mark(path), read_spent(path)
    with reading(ledger) as connection:
        require_version(connection)
        key = name_key(require_own(connection, folder, former=True))
        verify_trail(connection)
        number, end = mark[0], trail_head(connection)[0]
        charges = count_missing(connection, spent)
        lost = max(0, number - end, charges)
        if end >= number:
            check_mark(connection, mark)  # another trail is no older one
    for each in ledger.budgets():
        ledger.verify(each.name)
    if lost and not accept_loss:
        raise DamagedLedger(
            f"this copy is older than the ledger was: it has {name_count(end, 'event')}, and "
            f"the mark tells of {number}; it lacks {name_count(charges, 'charge')} of which the "
            "mark tells. Restore a newer copy; or book what is missing as spent, fail what waits "
            "for an answer and revoke all tokens, with --accept-loss"
        )
    upgrade_tables(ledger)
    with writing(ledger) as connection:
        set_own(connection, key)  # a copy may be from before the key was changed
    returned = count_old(ledger, settings.server.retention_days)
    if not lost:
        with writing(ledger) as connection:
            add_event(connection, actor=MACHINE, action="restored the ledger", about="whole")
        return Restored(returned=returned)
    booked = _book(settings, ledger, spent)
    failed, declined, revoked, days = _end_open(ledger, lost)
    return Restored(
        lost=lost,
        booked=booked,
        failed=failed,
        declined=declined,
        revoked=revoked,
        days=days,
        returned=returned,
    )


def _book(settings: Settings, ledger: Ledger, spent: dict[str, Spent]) -> tuple[str, ...]:
    """Charge each budget with what it lacks, as one promise: lost charges keep no less together."""
    if not spent:
        raise DamagedLedger(f"the mark does not tell what was charged: {_NEW}")
    with reading(ledger) as connection:
        here = Tally().count(connection)
        statement = "SELECT budget FROM @.hushed_s_grants WHERE reserved = 0"
        caps = {str(each["budget"]) for each in fetch_all(connection, statement)}
    booked = []
    for name, told in sorted(spent.items()):
        if name not in here:
            if told.entries and not _is_share(name, settings):  # opened again, it would be empty
                raise DamagedLedger(
                    f"the copy is older than the budget {name!r}, to which answers were charged: "
                    f"restore a newer copy, or {_NEW}"
                )
            continue
        epsilon = stated_above(max(told.epsilon - here[name].epsilon, Fraction(0)))
        delta = stated_above(max(told.delta - here[name].delta, Fraction(0)))
        known = ledger.balance(name)
        lacking = told.entries > here[name].entries
        if lacking and told.entries == 1 and epsilon == delta == 0.0:  # it was retired
            ledger.retire_budget(name, _RETIRED)
            booked.append(name)
            continue
        if not lacking or epsilon == delta == known.gamma_left == 0.0:
            continue
        lacks = replace(
            known.budget.limit, epsilon=epsilon, delta=delta, gamma=known.gamma_left
        )  # of gamma the mark tells nothing: no more than all that was left of it
        try:
            ledger.charge(name, lacks, note=_NOTE)
        except Overspent:
            if name in caps:  # below a budget that binds
                continue
            raise DamagedLedger(
                f"what budget {name!r} lacks, epsilon {epsilon!r} and delta {delta!r}, does not "
                f"fit into it as one charge: {_NEW}"
            ) from None
        booked.append(name)
    return tuple(booked)


def _is_share(name: str, settings: Settings) -> bool:
    """Whether a budget is named as shares are, whose charges are in the one of their data set."""
    dataset, _, person = name.partition("/")
    own = {each.budget for each in settings.dataset.values()}
    return bool(person) and dataset in settings.dataset and name not in own


def _end_open(ledger: Ledger, lost: int) -> tuple[int, int, int, int]:
    """Fail what is charged, for it may have been answered since; let nobody in by an old token.

    What waits for approval was asked with such a token.
    """
    found = list_open(ledger)
    with writing(ledger) as connection:
        for each in found:
            entry = entry_within(connection, each.budget, each.charge()[0])
            keep_within(connection, entry, write_failure(QueryFailed(FAILURE)))
            at = end_request(connection, each, "failed", 0.0)
            add_event(connection, actor=MACHINE, action="failed", about=each.id, at=at)
        statement = "UPDATE @.hushed_s_tokens SET revoked = :at WHERE revoked IS NULL"
        revoked = run(connection, statement, {"at": now()}).rowcount
        declined = decline_all(connection)
        for waited in declined:
            add_event(connection, actor=MACHINE, action="declined", about=waited)
        days = end_days(connection)
        about = f"{lost} events or charges are lost"
        add_event(connection, actor=MACHINE, action="restored the ledger", about=about)
    return len(found), len(declined), int(revoked), days
