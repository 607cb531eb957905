"""What the person at the machine does: make a server, add data sets, let people in, check."""

from __future__ import annotations

import ipaddress
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushed._ground.printing import name_count, plain_path
from hushed.errors import HushedError, NotFound, ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger import Ledger
from hushed.ledger._together import reading
from hushed.server._alone import claim
from hushed.server._audit import add_event, list_events, trail_head, verify_trail
from hushed.server._columns import say_columns
from hushed.server._config import (
    FILE,
    Settings,
    ledger_address,
    parse_settings,
)
from hushed.server._datasets import (
    Dataset,
    open_all,
    require_dataset,
    require_keys,
    say_may_change,
)
from hushed.server._disk import hand_over, list_short_room
from hushed.server._giving import Given, Wanted, give_shares
from hushed.server._keys import FORMER, KEY_FILE, NEXT, PUBLIC, list_keys, read_key
from hushed.server._mark import write_mark
from hushed.server._opening import mark_path, open_own
from hushed.server._people import (
    MACHINE,
    Role,
    check_days,
    check_person,
    insert_person,
    list_approvers,
    list_grants,
    list_people,
    require_person,
    revoke_token,
    set_active,
    take_share,
    tell_token,
    write_active,
)
from hushed.server._people_told import (
    PersonView,
    TokenView,
    datasets_of_budgets,
    describe_people,
    list_open_tokens,
    say_approvers,
    say_budgets,
    say_left,
    say_unused,
)
from hushed.server._requests import list_open
from hushed.server._schema import make_tables
from hushed.server._sessions import write_address
from hushed.server._tokens import DOOR_DAYS, Scope
from hushed.statements import key_id, make_key

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction
    from hushed.tables import Table

_WIDEST = 8  # bits of a network of proxies: 10.0.0.0/8 is of one house
_NEW = """\
# The settings of a team server. `hushed serve check` reads them without starting.
format = "hushed server 1"

[server]
listen = "127.0.0.1:8642"  # another address needs a proxy with TLS, and behind_proxy = true
behind_proxy = false
# public_url = "https://stats.example.org"
# trusted_proxies = ["127.0.0.1"]
stewards_read_answers = false
# retention_days = 365  # older answers are deleted; without it they are kept for ever
# metrics = "127.0.0.1:8643"  # /metrics for Prometheus, on this computer alone
# mark = "/var/lib/hushed/stats.mark"  # best where a backup of the ledger does not set it back

[ledger]
url = "sqlite:///hushed.db"

[limits]
run_seconds = 30  # an answer that takes longer fails, and stays paid
answer_grid = 1.0  # seconds: answers become readable at multiples of it, counted from the charge
max_epsilon_per_request = 1.0
open_per_person = 10
# kept_per_person = 1_000_000_000  # bytes of questions and answers; then no more are taken
running_per_person = 2
requests_per_minute = 120
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What `check_server` has seen."""

    facts: tuple[str, ...]
    problems: tuple[str, ...]


def make_server(folder: Path, url: str | None = None) -> str:
    """Make folder, settings, key and tables; the digest of the public key."""
    for name in (FILE, KEY_FILE, NEXT, FORMER):
        if (folder / name).exists():
            raise ParameterError(f"{plain_path(folder / name)} exists: there is a server already")
    text = _NEW
    if url is not None:
        import tomli_w  # noqa: PLC0415

        line = tomli_w.dumps({"url": url}).strip()
        text = text.replace('url = "sqlite:///hushed.db"', line)
    settings = parse_settings(text)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    address = ledger_address(folder, settings)
    _make_private(address)
    private, public = make_key()
    _write_new(folder / KEY_FILE, private, 0o600)
    _write_new(folder / PUBLIC, public, 0o644)
    _write_new(folder / FILE, text.encode(), 0o600)  # an address may hold a password
    try:
        with Ledger(address) as ledger:
            head = make_tables(ledger, _claim(key_id(public)))
    except BaseException:  # nothing was made: another try begins with an empty folder
        for name in (KEY_FILE, PUBLIC, FILE):
            (folder / name).unlink(missing_ok=True)
        raise
    write_mark(mark_path(folder, settings), head, {})
    return key_id(public)


def _make_private(address: str) -> None:
    """Make the file of a new ledger one that nobody else reads: it holds questions and answers."""
    path = address.removeprefix("sqlite:///")
    if path != address and not os.path.lexists(path) and os.path.isdir(os.path.dirname(path)):
        _write_new(Path(path), b"", 0o600)


def _claim(keyid: str) -> Callable[[Transaction], tuple[int, str]]:
    """Make a ledger the one of a server, in the transaction that makes the tables."""

    def claim_within(connection: Transaction) -> tuple[int, str]:
        claim(connection, keyid)
        add_event(connection, actor=MACHINE, action="made the server", about=keyid)
        return trail_head(connection)

    return claim_within


def _write_new(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        hand_over(file.fileno(), path.parent)
        file.write(content)


def open_server(folder: Path) -> tuple[Settings, Ledger]:
    """Open settings and ledger of a server."""
    settings, ledger, _ = open_own(folder)
    return settings, ledger


def invite(
    folder: Path,
    name: str,
    role: Role,
    shares: Sequence[tuple[str, Guarantee]],
    *,
    days: int,
    scope: Scope,
    reserve: bool = False,
    per_day: Mapping[str, float] | None = None,
    tell: Callable[[Given], None] = lambda _: None,
) -> str:
    """Let somebody in, with shares of data sets; the token, or an address that opens the pages.

    Either is shown this once. All of it is done, or nothing.

    Shares are caps, or set aside. Somebody who is in already gets another token, and the shares
    that are given, of which the same ones change nothing; somebody who was let out is in again,
    with this token alone. ``per_day`` limits, by data set, the epsilon of a day; a limit that is
    not named stays as it is. ``tell`` hears of each share.
    """
    settings, ledger = open_server(folder)
    days = DOOR_DAYS if scope.use == "door" else days
    check_days(days)
    check_person(name, role)
    if role == "steward" and shares:
        raise ParameterError("a steward asks nothing: leave --share out")
    limits = dict(per_day or {})
    for dataset in limits:
        require_dataset(settings, dataset)
    if alone := limits.keys() - {dataset for dataset, _ in shares}:
        raise ParameterError(
            f"a limit by the day is one of a share: give --share {min(alone)}=EPSILON, too. "
            "The share that somebody has, given again, changes nothing else"
        )
    wanted = [
        Wanted(
            dataset=dataset,
            cap=cap,
            above=found.budget,
            reserve=reserve,
            per_day=limits.get(dataset),
        )
        for dataset, cap in shares
        for found in (require_dataset(settings, dataset),)
    ]
    with ledger:
        known = next((each for each in list_people(ledger) if each["name"] == name), None)
        if known is not None and known["role"] != role:
            raise ParameterError(f"{name} is in already, as {known['role']}")
        person = str(uuid.uuid4()) if known is None else known["id"]
        made: list[str] = []

        def let_in(connection: Transaction) -> None:
            if known is None:
                insert_person(connection, person, name, role, actor=MACHINE)
            elif not require_person(connection, person)["active"]:  # else the token opens nothing
                write_active(connection, person, True, actor=MACHINE)

        def make(connection: Transaction) -> None:
            made.append(tell_token(connection, person, days=days, scope=scope, actor=MACHINE)[1])

        told = give_shares(ledger, person, name, wanted, actor=MACHINE, before=let_in, after=make)
        with suppress(HushedError):  # the token counts by now, and is shown this once
            for each in told():
                tell(each)
    return write_address(settings.server, made[-1]) if scope.use == "door" else made[-1]


def show_people(folder: Path) -> tuple[tuple[PersonView, ...], dict[tuple[str, ...], str]]:
    """Describe everybody, with shares and what opens doors now; what is left of the budgets."""
    settings, ledger = open_server(folder)
    with ledger:
        return describe_people(ledger), say_budgets(ledger, settings)


def stop_tokens(folder: Path, name: str, token: str | None = None) -> tuple[list[str], int]:
    """Let somebody out, with all tokens and sessions, or stop one of them.

    Gives the ids, and how many requests that waited for approval are declined.
    """
    _, ledger = open_server(folder)
    with ledger:
        person = _find_person(ledger, name)
        open_ones = [each.id for each in list_open_tokens(person)]
        if token is None:
            return open_ones, set_active(ledger, person["id"], False, actor=MACHINE)
        if token not in open_ones:
            raise NotFound(
                f"{name} has no such token that counts: give the 12 characters that hushed serve "
                "people lists, and not the token itself"
            )
        return [token], revoke_token(ledger, token, actor=MACHINE)


def end_share(folder: Path, name: str, dataset: str) -> int:
    """Take a share of somebody away; how many requests that waited are declined."""
    _, ledger = open_server(folder)
    with ledger:
        return take_share(ledger, _find_person(ledger, name)["id"], dataset, actor=MACHINE)


def list_counting(folder: Path, name: str) -> tuple[tuple[str, ...], tuple[TokenView, ...]]:
    """List the data sets of which somebody has a share, and what opens doors for them."""
    _, ledger = open_server(folder)
    with ledger:
        person = _find_person(ledger, name)
        found = list_grants(ledger, person["id"])
        return tuple(each.dataset for each in found), list_open_tokens(person)


def _find_person(ledger: Ledger, name: str) -> dict[str, Any]:
    for each in list_people(ledger):
        if each["name"] == name:
            return each
    raise NotFound("there is nobody of that name; hushed serve people lists all")


def read_trail(folder: Path, after: int | None, most: int) -> tuple[list[dict[str, Any]], str]:
    """Read events in their order, and the end of the chain, which is checked."""
    _, ledger = open_server(folder)
    with ledger, reading(ledger) as connection:
        head = verify_trail(connection)
        first = max(0, int(head.partition(":")[0]) - most) if after is None else after
        return list_events(connection, after=first, most=most), head


def _look_at(dataset: Dataset, table: Table) -> list[str]:
    """Say what is wrong with a data set that can be asked all the same."""
    found = [say_may_change(table)]
    try:
        require_keys(dataset.settings, table)
    except ParameterError as error:
        found.append(error.message)
    return [*filter(None, found)]


def _look_at_budgets(ledger: Ledger, settings: Settings) -> tuple[list[str], list[str]]:
    """Say what is left of each budget, and which of them are damaged."""
    facts, problems = [], []
    shared, unused = datasets_of_budgets(settings), say_unused(ledger, settings)
    for budget in ledger.budgets():
        try:
            verified = ledger.verify(budget.name)
            balance = ledger.balance(budget.name)
            names = shared.get(budget.name, [])
            of = f" of the data sets {' and '.join(names)}" if len(names) > 1 else ""
            told = say_left(balance) + unused.get(budget.name, "")
            told = "retired, it takes no charge" if balance.retired else told
            facts.append(f"budget {budget.name}{of}: {verified}, {told}")
        except HushedError as error:
            problems.append(error.message)
    return facts, problems


def check_server(folder: Path) -> Check:
    """Look at everything that can be looked at without starting; no row is read."""
    from hushed.server._registering import check_functions  # noqa: PLC0415  (it loads all)

    settings, ledger = open_server(folder)
    facts, problems = [], []
    with ledger:
        datasets = open_all(folder, settings, ledger)
        for each in datasets.values():
            if each.stale:
                problems.append(f"data set {each.id}: {each.stale}")
            else:
                facts.append(f"data set {each.id}: can be asked")
            if each.table is not None:
                facts += [f"data set {each.id}: {more}" for more in each.table.connection.told]
                problems += [f"data set {each.id}: {more}" for more in _look_at(each, each.table)]
                told = say_columns(folder, each.settings, each.table)
                facts += [f"data set {each.id}: {more}" for more in told]
        known, wrong = check_functions(folder, settings, ledger, datasets)
        facts, problems = facts + known, problems + wrong
        known, wrong = _look_at_budgets(ledger, settings)
        facts, problems = facts + known, problems + wrong
        try:
            with reading(ledger) as connection:
                facts.append(f"trail: {verify_trail(connection)}")
                now_is, *former = list_keys(connection, folder, read_key(folder))
                facts += [f"former key {each.kid}, until {each.valid_until}" for each in former]
                facts.append(f"key {now_is.kid}, since {now_is.valid_from}")
        except HushedError as error:
            problems.append(error.message)
        if few := say_approvers(ledger, settings):
            (facts if list_approvers(ledger) else problems).append(few)
        people = list_people(ledger)
        facts.append(f"people: {len(people)}; requests without an answer: {len(list_open(ledger))}")
        path = ledger._store.path if ledger._store.sqlite else None
    files = [path.with_name(f"{path.name}{end}") for end in ("", "-wal")] if path else []
    problems += list_short_room(folder, files)
    problems += [
        f"trusted_proxies has {each}: whoever asks from there is believed to be the "
        "proxy, and says from which address they come. Name the proxy alone"
        for each in settings.server.trusted_proxies
        if ipaddress.ip_network(each).prefixlen < _WIDEST
    ]
    if (folder / KEY_FILE).stat().st_mode & 0o077:
        problems.append(f"{KEY_FILE} can be read by others: chmod 600 {KEY_FILE}")
    if (days := settings.server.retention_days) is not None:
        facts.append(f"answers: deleted {name_count(days, 'day')} after they can be read")
    return Check(facts=tuple(facts), problems=tuple(problems))
