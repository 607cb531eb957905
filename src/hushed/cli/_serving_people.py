"""``hushed serve invite``, ``people``, ``revoke`` and ``trail``: who may ask, and who did what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hushed._ground.numerals import read_number
from hushed._ground.printing import flat, format_down, format_up, shown
from hushed.cli._options import JsonOption
from hushed.cli._outcome import DONE, finish, print_line, print_note
from hushed.errors import HushedError, ParameterError
from hushed.guarantee import Guarantee

if TYPE_CHECKING:
    from hushed.server._giving import Given
    from hushed.server._people_told import TokenView

_STOPPED = "stopped; look at hushed serve people before trying again"
FolderOption = Annotated[Path, typer.Option("--folder", help="Folder of the server.")]


def invite(
    person: Annotated[str, typer.Argument(metavar="NAME", help="Whom to let in.")],
    share: Annotated[
        list[str] | None,
        typer.Option(
            help="DATASET=EPSILON or DATASET=EPSILON:DELTA: what this person may spend. The share "
            "that somebody has, given again, changes nothing; another size counts in full from "
            "now on."
        ),
    ] = None,
    reserve: Annotated[
        bool,
        typer.Option(
            "--reserve",
            help="Set the shares aside: charged to the data set now, and nobody else spends them. "
            "They have no gamma, and ask no registered function.",
        ),
    ] = False,
    per_day: Annotated[
        list[str] | None,
        typer.Option(
            help="DATASET=EPSILON, beside --share: the most that may be charged to the share in a "
            "day, of UTC. Without it, a limit that is there stays."
        ),
    ] = None,
    steward: Annotated[
        bool,
        typer.Option("--steward", help="Somebody who keeps people and shares, and never asks."),
    ] = False,
    days: Annotated[int, typer.Option(help="How long the token counts; at most 90.")] = 30,
    quote_only: Annotated[
        bool, typer.Option("--quote-only", help="A token that asks prices, and reads no answer.")
    ] = False,
    page: Annotated[
        bool,
        typer.Option("--page", help="In place of a token, an address that opens the pages once."),
    ] = False,
    folder: FolderOption = Path(),
    json: JsonOption = False,
) -> None:
    """Let somebody in, and print the token, or an address for a browser: it is shown this once."""
    with finish(json=json, stopped=_STOPPED) as result:
        from hushed.server._setup import invite as let_in  # noqa: PLC0415
        from hushed.server._tokens import Scope  # noqa: PLC0415

        shares = [(name, _cap(told)) for name, told in read_pairs("--share", share, "stays=2")]
        limits = {
            name: _epsilon(told) for name, told in read_pairs("--per-day", per_day, "stays=0.3")
        }
        given: list[Given] = []
        token = let_in(
            folder,
            person,
            "steward" if steward else "analyst",
            shares,
            days=days,
            scope=Scope(quote_only=quote_only, use="door" if page else "api"),
            reserve=reserve,
            per_day=limits,
            tell=given.append,
        )
        what = "address" if page else "token"
        result["kept"] = (
            f"{flat(person)} is in, with all shares that were named, and the {what} is shown to "
            f"nobody any more: hushed serve invite {flat(person)} makes another one and keeps the "
            f"shares; hushed serve people lists the one that was lost, and hushed serve revoke "
            f"{flat(person)} --token ID stops it"
        )
        result.update({"person": person, what: token})
        result.update(shares=[_show_share(each) for each in given])
        if len(given) < len(shares):
            print_note("the shares are given; what is left of them could not be read")
        others, tokens = _find_others(folder, person, {name for name, _ in shares}, token)
        result.update(other_shares=others)
        result.update(other_tokens=None if tokens is None else [asdict(each) for each in tokens])
        if others is None:
            print_note(
                f"other shares and tokens of {person} could not be read: hushed serve people "
                "lists them"
            )
        if not json:
            print_line(token)
            length = "a day" if days == 1 else f"{days} days"
            told = "opens the pages once, within a day" if page else f"is a token for {length}"
            print_note(f"this {told}, for {person}; it is not shown again")
            for each in given:
                for line in _say_share(person, each):
                    print_note(line)
            for other in others or ():
                print_note(
                    f"{person} has a share of {other}, too, as before: hushed serve revoke "
                    f"{person} --share {other} takes it away"
                )
            for old in tokens or ():
                print_note(
                    f"{old.id} of {person} counts, too, as before ({old.what}, made {old.made}, "
                    f"{old.ends}, {old.used}): hushed serve revoke {person} --token {old.id} "
                    "stops it"
                )


def _find_others(
    folder: Path, person: str, named: set[str], token: str
) -> tuple[list[str], list[TokenView]] | tuple[None, None]:
    """Find shares and tokens that somebody has besides; it is done, whatever this finds."""
    from hushed.server._setup import list_counting  # noqa: PLC0415

    try:
        shares, tokens = list_counting(folder, person)
    except HushedError:
        return None, None
    return sorted({*shares} - named), [each for each in tokens if f"_{each.id}_" not in token]


def _show_share(given: Given) -> dict[str, object]:
    daily = given.grant.daily
    return {
        "dataset": given.grant.dataset,
        "epsilon": given.limit.epsilon,
        "delta": given.limit.delta,
        "gamma": given.limit.gamma,
        "reserved": given.grant.reserved,
        "new": given.new,
        "epsilon_left": given.left,
        "spent_before": given.spent_before,
        "per_day": None if daily is None else daily.most,
    }


def _say_share(person: str, given: Given) -> Iterator[str]:
    """Say what a share means where that may not be what was meant."""
    dataset, size = given.grant.dataset, format_up(given.limit.epsilon)
    spent = format_up(given.spent_before)
    if not given.new:
        aside = ", set aside" if given.grant.reserved else ""
        left = format_down(given.left)
        yield (
            f"{person} has this share of {dataset} already{aside}: {left} of {size} is left; "
            "another size would count in full from now on"
        )
    elif given.spent_before:
        yield (
            f"{person} had spent {spent} of earlier shares of {dataset}; from now on {size} more"
        )
    if given.limit.gamma:
        gamma = format_up(given.limit.gamma)
        yield f"this share of {dataset} has a gamma of {gamma}, for registered functions"
    elif given.above.gamma:
        yield (
            f"this share of {dataset} has no gamma: {person} cannot ask a registered function with "
            "it; one of another size has a gamma, if it is not set aside"
        )
    if given.limit.epsilon > given.above.epsilon:
        above = format_up(given.above.epsilon)
        yield f"{size} is more than the budget of {dataset}, which binds all the same: {above}"
    if given.grant.daily is not None:
        yield f"{person} has a limit for each day on {dataset}: {given.grant.daily.say()}"


def _epsilon(text: str) -> float:
    try:
        return read_number(text.strip())
    except ValueError:
        raise ParameterError("--per-day is DATASET=EPSILON, such as --per-day stays=0.3") from None


def _cap(text: str) -> Guarantee:
    epsilon, _, delta = text.partition(":")
    try:
        if read_number(epsilon.strip()) == 0:
            raise ParameterError(
                "a share is an epsilon above 0; hushed serve revoke NAME --share DATASET takes one "
                "away"
            )
        return Guarantee(
            epsilon=read_number(epsilon.strip()), delta=read_number((delta or "0").strip())
        )
    except ValueError as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("--share is DATASET=EPSILON, such as --share stays=2") from None


def read_pairs(
    option: str, given: list[str] | None, such_as: str = "ward=A,B"
) -> list[tuple[str, str]]:
    """Read an option that is given as NAME=... again and again."""
    found = [each.partition("=") for each in given or ()]
    if not all(name and sign and rest for name, sign, rest in found):
        raise ParameterError(f"{option} is NAME=..., such as {option} {such_as}")
    names = [name for name, _, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{option} names {shown(name)} twice: give it once")
    return [(name, rest) for name, _, rest in found]


def list_people(folder: FolderOption = Path(), json: JsonOption = False) -> None:
    """List who is in, with shares and tokens; nothing that opens a door is shown."""
    with finish(json=json, stopped="stopped") as result:
        from hushed.server._setup import show_people  # noqa: PLC0415

        found, left = show_people(folder)
        result.update(
            people=[asdict(each) for each in found],
            datasets={name: told for names, told in left.items() for name in names},
        )
        if json:
            return
        for each in found:
            state = "" if each.active else ", let out"
            print_line(f"{each.name}, {each.role}{state}")
            for share in each.shares:
                print_line(f"  share of {share}")
            if each.kept:
                print_line(f"  takes {each.kept / 1e6:,.3f} MB of the disk, questions and answers")
            for token in each.tokens:
                told = f"{token.what}, made {token.made}, {token.ends}, {token.used}"
                print_line(f"  {token.id}  {told}")
        for names, told in left.items():
            several = f"data sets {' and '.join(names)}, which share one budget"
            print_line(f"{f'data set {names[0]}' if len(names) == 1 else several}: {told}")


def revoke(
    person: Annotated[str, typer.Argument(metavar="NAME", help="Whose tokens stop.")],
    token: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Stop this one alone, as hushed serve people lists it; its person stays in.",
        ),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET", help="Take the share of this data set away; its person stays in."
        ),
    ] = None,
    folder: FolderOption = Path(),
    json: JsonOption = False,
) -> None:
    """Let somebody out: all tokens and sessions stop at once, and what waits for approval goes.

    What was charged is answered. To let somebody in again, invite them.
    """
    with finish(json=json, stopped=_STOPPED) as result:
        from hushed.server._setup import end_share, stop_tokens  # noqa: PLC0415

        if share is not None:
            if token is not None:
                raise ParameterError("give --token or --share, and not both")
            declined = end_share(folder, person, share)
            result.update(person=person, share=share, declined=declined, kept=DONE)
            if not json:
                print_line(f"{flat(person)} has no share of {flat(share)} any more")
                print_note("what was spent, or set aside, stays charged to the data set")
                _note_declined(declined)
            return
        stopped, declined = stop_tokens(folder, person, token)
        result.update(person=person, stopped=stopped, declined=declined, kept=DONE)
        if not json:
            count = "1 token" if len(stopped) == 1 else f"{len(stopped)} tokens"
            out = f"; {flat(person)} is out" if token is None else ""
            print_line(f"stopped {count}{out}")
            _note_declined(declined)


def _note_declined(count: int) -> None:
    """Say how many requests that waited for approval are declined, if any."""
    if count:
        print_note(f"declined, uncharged: {count} that waited for approval")


def list_events(
    after: Annotated[
        int | None,
        typer.Option(metavar="N", help="Events after this number; by default the last ones."),
    ] = None,
    most: Annotated[int, typer.Option(metavar="N", help="How many, at most.")] = 100,
    folder: FolderOption = Path(),
    json: JsonOption = False,
) -> None:
    """List who did what, from the chain of digests, which is checked; no query is in it."""
    with finish(json=json, stopped="stopped") as result:
        from hushed.server._setup import read_trail  # noqa: PLC0415

        if most < 1 or (after is not None and after < 0):
            raise ParameterError("--most is at least 1, and --after at least 0")
        events, head = read_trail(folder, after, most)
        result.update(events=events, head=head)
        if json:
            return
        for each in events:
            told = f"{each['number']}  {each['at']}  {flat(each['actor'])} {each['action']}"
            print_line(f"{told}: {flat(each['about'])}")
        print_note(f"the trail ends with {head}; keep that elsewhere to notice a change")
