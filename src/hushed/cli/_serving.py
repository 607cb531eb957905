"""The commands ``hushed serve``: a team server, experimental."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushed._ground.numerals import read_number
from hushed._ground.printing import flat, format_down, format_up
from hushed.cli._options import JsonOption
from hushed.cli._outcome import DONE, REFUSED, finish, print_line, print_note, print_notes
from hushed.cli._serving_functions import add_function, remove_function
from hushed.cli._serving_people import (
    FolderOption,
    invite,
    list_events,
    list_people,
    read_pairs,
    revoke,
)
from hushed.errors import HushedError, ParameterError
from hushed.guarantee import Guarantee

if TYPE_CHECKING:
    from hushed.client import Client

_LOOKED_AT = 20  # requests that wait: each is priced again by the server
_STOPPED = "stopped; look at hushed serve check before trying again"
UrlOption = Annotated[str, typer.Option("--url", metavar="URL", help="Address of the server.")]
RequestArgument = Annotated[
    str, typer.Argument(metavar="REQUEST", help="Id of the request, or its first 8 characters.")
]
_SENT = "stopped; hushed serve waiting tells whether the request still waits"
NameArgument = Annotated[str, typer.Argument(metavar="DATASET", help="Name of the data set.")]
OtherPeopleOption = Annotated[
    bool,
    typer.Option(
        "--other-people",
        help="The rows are of people who were in none before: of another budget, what was spent "
        "before is not charged.",
    ),
]
SamePeopleOption = Annotated[
    bool,
    typer.Option(
        "--same-people",
        help="The column of the people is another one than before, and names the same people: "
        "what was spent counts for each of them.",
    ),
]
SecondBudgetOption = Annotated[
    bool,
    typer.Option(
        "--second-budget",
        help="Take a table that is a data set already, with a budget for each: whoever is in it "
        "has the privacy loss of both.",
    ),
]


def run_server(
    context: typer.Context,
    folder: FolderOption = Path(),
    web: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Processes that answer over HTTP; more than 1 need a ledger on PostgreSQL.",
        ),
    ] = 1,
) -> None:
    """Serve a team over HTTP, on this computer. Experimental: TLS is the work of a proxy."""
    if context.invoked_subcommand is not None:
        return
    with finish(json=False, stopped="the server has stopped; what was charged stays"):
        from hushed.server._serving import serve_program  # noqa: PLC0415

        print_note("experimental: read what is missing in docs/operating.md first")
        serve_program(folder, web)


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    ledger: Annotated[
        str | None, typer.Option(metavar="URL", help="Ledger; by default a file in the folder.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a server: folder, settings, ledger, and the key that signs certificates."""
    with finish(json=json, stopped=_STOPPED) as result:
        from hushed.server._setup import make_server  # noqa: PLC0415

        key = make_server(folder, ledger)
        result.update(folder=str(folder), keyid=key, kept=DONE)
        if not json:
            from hushed.server._people_told import INVITE_STEWARDS  # noqa: PLC0415

            print_line(f"made {folder}; certificates are signed by key {key}")
            print_note(f"if costly requests are to wait for approval, {INVITE_STEWARDS}")


def add(
    name: NameArgument,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="File or address of the table.")],
    epsilon: Annotated[float, typer.Option(help="Limit on epsilon of everybody together.")],
    delta: Annotated[float, typer.Option(help="Limit on delta of everybody together.")] = 0.0,
    gamma: Annotated[
        float, typer.Option(help="Limit on gamma of all registered functions together.")
    ] = 0.0,
    table: Annotated[str, typer.Option(help="Name of the table in a database.")] = "rows",
    user: Annotated[
        str | None, typer.Option(help="Column of the people; without it a row is protected.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", help="COLUMN=KIND, as for hushed query.")
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--range", help="COLUMN=LOW:HIGH, public; told to those who ask."),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(help="COLUMN=A,B,C, public; told to those who ask."),
    ] = None,
    max_epsilon: Annotated[
        float | None, typer.Option(help="The most that one request may cost.")
    ] = None,
    max_delta: Annotated[
        float | None, typer.Option(help="The same for delta; by default the limit on delta.")
    ] = None,
    approve_above: Annotated[
        float | None,
        typer.Option(
            help="Epsilon above which a request waits for a steward's approval; have two stewards, "
            "for nobody approves what was asked with a token that they made."
        ),
    ] = None,
    max_rows_per_user: Annotated[
        int | None,
        typer.Option(
            help="Rows of each person that count, for all who ask; a question names them."
        ),
    ] = None,
    other_people: OtherPeopleOption = False,
    same_people: SamePeopleOption = False,
    second_budget: SecondBudgetOption = False,
    folder: FolderOption = Path(),
    json: JsonOption = False,
) -> None:
    """Describe a data set and open its budget; no row is read."""
    with finish(json=json, stopped=_STOPPED) as result:
        from hushed.server._adding import add_dataset  # noqa: PLC0415
        from hushed.server._columns import describe_columns  # noqa: PLC0415
        from hushed.tables._engine.normalisation import COLUMN_TYPES, say_no_type  # noqa: PLC0415

        columns: dict[str, dict[str, Any]] = {}
        for column, told in read_pairs("--type", kind):
            if told not in COLUMN_TYPES:
                raise ParameterError(say_no_type(column, told))
            columns.setdefault(column, {})["kind"] = told
        for column, told in read_pairs("--range", bounds):
            low, high = _bounds(told)
            columns.setdefault(column, {}).update(low=low, high=high)
        for column, told in read_pairs("--keys", keys):
            columns.setdefault(column, {})["keys"] = told.split(",")
        given = {"user": user, "max_epsilon": max_epsilon, "approve_above": approve_above}
        given["max_rows_per_user"] = max_rows_per_user
        told_all = {name: each for name, each in given.items() if each is not None}
        most_delta = delta / 2 if max_delta is None else max_delta  # the rest buys tighter sums
        section = {"source": source, "table": table, "max_delta": most_delta, "column": columns}
        limit = Guarantee(
            epsilon=epsilon,
            delta=delta,
            gamma=gamma,
            neighbours="add-remove",
            unit="row" if user is None else "user",
        )
        problem = add_dataset(
            folder,
            name,
            section | told_all,
            limit,
            other_people=other_people,
            same_people=same_people,
            second_budget=second_budget,
        )
        result.update(dataset=name, kept=DONE)
        notes = describe_columns(folder, name)
        result.update(notes=list(notes))
        if problem:
            result.update(problem=problem)
        if not json:
            more = f", gamma {format_up(gamma)}" if gamma else ""
            slack = f"delta {format_up(delta)}{more}"
            print_line(f"added {name}, with a budget of epsilon {format_up(epsilon)}, {slack}")
            print_line(
                "protected is each row, for ever: if a person may have several, take the data set "
                "out of hushed.toml, and add the table under another name, with --user COLUMN"
                if user is None
                else f"protected is each person, by the column {flat(user)}"
            )
            print_line(f"{name} can be asked after the next start")
            if delta:
                print_note(
                    f"requests may bring delta {format_down(delta / 2)} in all; the other half of "
                    f"{format_up(delta)} buys tighter sums of epsilon"
                )
            print_notes(notes)
            if problem:
                print_note(f"added, but look at this: {problem}")


def _bounds(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return read_number(low.strip()), read_number(high.strip())
    except ValueError:
        raise ParameterError("--range is COLUMN=LOW:HIGH, such as --range cost=0:5000") from None


def confirm(
    name: NameArgument,
    accept_change: Annotated[
        bool,
        typer.Option(
            "--accept-change",
            help="Take a file whose columns are of other types, or whose cells are separated in "
            "another way.",
        ),
    ] = False,
    other_people: OtherPeopleOption = False,
    same_people: SamePeopleOption = False,
    second_budget: SecondBudgetOption = False,
    folder: FolderOption = Path(),
    json: JsonOption = False,
) -> None:
    """Take a data set as it is now, after its file or its description was changed."""
    with finish(json=json, stopped=_STOPPED) as result:
        from hushed.server._adding import confirm_dataset  # noqa: PLC0415
        from hushed.server._columns import describe_columns  # noqa: PLC0415

        found = confirm_dataset(
            folder,
            name,
            accept_change=accept_change,
            other_people=other_people,
            same_people=same_people,
            second_budget=second_budget,
        )
        result.update(dataset=name, budget=found.budget, at_once=found.at_once, kept=DONE)
        result.update(changes=list(found.changes), carried=list(found.carried))
        notes = describe_columns(folder, name)
        result.update(notes=list(notes))
        if found.problem:
            result.update(problem=found.problem)
        if not json:
            when = (
                "now (a server that was started with this description takes it within 20 "
                "seconds, any other one at its next start)"
                if found.at_once
                else "after the next start"
            )
            print_line(f"{name} can be asked again {when}, against budget {found.budget!r}")
            for each in found.changes:
                print_note(f"changed: {each}")
            print_notes((*found.carried, *notes))
            if found.problem:
                print_note(f"confirmed, but look at this: {found.problem}")


def check(folder: FolderOption = Path(), json: JsonOption = False) -> None:
    """Look at settings, data sets, budgets, key and trail without starting; no row is read."""
    with finish(json=json, stopped="stopped") as result:
        from hushed.server._setup import check_server  # noqa: PLC0415

        found = check_server(folder)
        result.update(facts=list(found.facts), problems=list(found.problems))
        if found.problems:
            result["exit_code"] = REFUSED
        if not json:
            for each in found.facts:
                print_line(each)
            for each in found.problems:
                print_note(f"problem: {each}")


def rotate_key(folder: FolderOption = Path(), json: JsonOption = False) -> None:
    """Make a new key that signs certificates, of a server that is stopped.

    What was signed before is checked by the old public key, which the server goes on naming.
    """
    with finish(json=json, stopped="stopped; run hushed serve check: either key counts") as result:
        from hushed.server._rotating import change_key  # noqa: PLC0415

        old, new = change_key(folder)
        result.update(keyid=new, former=old, kept=DONE)
        if not json:
            print_line(f"certificates are signed by key {new} from the next start on")
            print_note(
                f"{old} signs no more; it is listed as a former key, and checks what it signed"
            )


def move(
    to: Annotated[str, typer.Option(metavar="URL", help="postgresql://USER@HOST/DATABASE.")],
    folder: FolderOption = Path(),
    json: JsonOption = False,
) -> None:
    """Move the ledger of a server that is stopped to PostgreSQL: all of it, or nothing."""
    with finish(json=json, stopped=_STOPPED) as result:
        from hushed.server._moving import move_server  # noqa: PLC0415

        kept = move_server(folder, to)
        result.update(ledger=kept, kept=DONE)
        if not json:
            print_line(f"moved; the old ledger is {kept}, and is not served any more")


def restore(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="A copy made by hushed ledger backup; without it, the ledger as it is now.",
        ),
    ] = None,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Take an older copy: what it lacks is booked as spent, what waits for an answer "
            "fails, what waits for approval is declined, and all tokens are revoked.",
        ),
    ] = False,
    folder: FolderOption = Path(),
    json: JsonOption = False,
) -> None:
    """Put a copy of the ledger back, of a server that is stopped; an older one is refused."""
    with finish(json=json, stopped="stopped; run it again before the server starts") as result:
        from hushed.server._restoring import restore_server  # noqa: PLC0415

        found = restore_server(folder, file, accept_loss=accept_loss)
        result.update(asdict(found) | {"before": found.kept, "kept": DONE})
        if not json:
            print_line("restored; the server can start")
            if found.kept:
                print_line(f"the ledger before is {found.kept}")
            if found.lost:
                print_note(
                    f"{found.lost} events or charges are lost; booked as spent, with all that was "
                    f"left of a gamma, in {', '.join(found.booked) or 'no budget'}; "
                    f"failed: {found.failed} requests; "
                    f"declined: {found.declined} that waited for approval; "
                    f"revoked: {found.revoked} tokens. "
                    "Look at people and shares, and invite everybody again: the share that "
                    "somebody has, given again, is no second one"
                )
                if found.days:
                    print_note(
                        "nobody who has a limit for each day has anything left of today (UTC), "
                        "because what was charged today may be lost: from the next day on the "
                        f"limits are whole again; shares with such a limit: {found.days}"
                    )
            else:
                print_note(
                    "no answer is missing; what was done to people and tokens in the last ten "
                    "seconds, or while the server was stopped, may be: look at hushed serve people"
                )
            if found.returned:
                print_note(
                    f"{found.returned} answers of the copy are older than retention_days: they are "
                    "deleted when the server starts"
                )


def list_waiting(url: UrlOption, json: JsonOption = False) -> None:
    """List what waits for approval, with the token in HUSHED_TOKEN or HUSHED_TOKEN_FILE."""
    with finish(json=json, stopped="stopped") as result:
        from hushed.client import connect  # noqa: PLC0415

        client = connect(url)
        found = client.waiting()
        why_not = {each["id"]: _say_why_not(client, each["id"]) for each in found[:_LOOKED_AT]}
        result.update(requests=found, why_not=why_not)
        if not json:
            for each in found:
                price = f"epsilon {format_up(each['epsilon'])}, delta {format_up(each['delta'])}"
                told = f"{each['id']}  {each['asker']} asks {each['dataset']} for {price}"
                print_line(told + (f": {flat(each['note'])}" if each["note"] else ""))
                print_line(f"  {_say_asked(each)}")
                if why := why_not.get(each["id"]):
                    print_line(f"  it cannot be approved now: {flat(why)}")
            if len(found) > _LOOKED_AT:
                print_note(f"whether they can be approved was asked of the first {_LOOKED_AT}")
            print_note(
                f"{len(found)} wait; --json shows the whole questions, hushed serve approve or "
                "decline with an id decides one"
            )


def _say_why_not(client: Client, request: str) -> str | None:
    """Say what keeps a request from being approved now; None if the server does not say."""
    try:
        return client.why_not(request)
    except HushedError:  # it is of an older version, or busy
        return None


def _say_asked(told: Mapping[str, Any]) -> str:
    """Say in a line what is asked, as the pages do."""
    from hushed._web.sentences import say_query  # noqa: PLC0415
    from hushed.tables import Query  # noqa: PLC0415

    if told["query"] is None:
        return f"release of {flat(told['function'])}"
    try:
        return flat(say_query(Query.model_validate(told["query"])))
    except ValueError:  # of a server of another version
        return "a question that this version does not know"


def approve(request: RequestArgument, url: UrlOption, json: JsonOption = False) -> None:
    """Approve what somebody else has asked, as a steward: it is charged now, and answered."""
    with finish(json=json, stopped=_SENT) as result:
        from hushed.client import connect  # noqa: PLC0415

        found = connect(url).approve(request)
        result.update(found, kept=DONE)
        if not json:
            print_line(f"approved; charge {found['entry']} of {found['dataset']}")


def decline(
    request: RequestArgument,
    url: UrlOption,
    reason: Annotated[str, typer.Option(help="Why; who asked reads it.")],
    json: JsonOption = False,
) -> None:
    """Decline what somebody has asked, as a steward; nothing was charged."""
    with finish(json=json, stopped=_SENT) as result:
        from hushed.client import connect  # noqa: PLC0415

        result.update(connect(url).decline(request, reason), kept=DONE)
        if not json:
            print_line("declined; nothing was charged")


serve = typer.Typer(
    invoke_without_command=True,
    help="Serve a team: answers over HTTP against a budget. Experimental.\n\n"
    "docs/operating.md says what is missing.\n\n"
    "To take a data set away, take its section out of hushed.toml and start the server again: "
    "what was spent stays, and is charged where it is added again. remove-function takes a "
    "function away, revoke a share.",
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
serve.callback()(run_server)
serve.command("init")(init)
serve.command("add")(add)
serve.command("add-function")(add_function)
serve.command("remove-function")(remove_function)
serve.command("invite")(invite)
serve.command("people")(list_people)
serve.command("revoke")(revoke)
serve.command("trail")(list_events)
serve.command("confirm")(confirm)
serve.command("check")(check)
serve.command("rotate-key")(rotate_key)
serve.command("move")(move)
serve.command("restore")(restore)
serve.command("waiting")(list_waiting)
serve.command("approve")(approve)
serve.command("decline")(decline)
