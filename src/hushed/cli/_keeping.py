"""The commands ``hushed runs``: what is kept of long runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

import hushed as hs
from hushed.cli._options import JsonOption
from hushed.cli._outcome import finish, print_line, print_table
from hushed.errors import ParameterError

PlaceArgument = Annotated[
    str,
    typer.Argument(metavar="DIR", help="The folder, or the address, that --keep was given."),
]
_STOPPED = "stopped"


def list_all(place: PlaceArgument, json: JsonOption = False) -> None:
    """List the runs that are kept: how old, how large, how much of them is done."""
    with finish(json=json, stopped=_STOPPED) as result:
        found = hs.runs.list_runs(place)
        result["runs"] = [asdict(each) | {"done": each.done} for each in found]
        if not json and found:
            print_table(
                f"{_count(found)}, {_size(sum(each.size for each in found))}",
                ["run", "what", "done", "size", "last written (UTC)"],
                [
                    (
                        each.key[:8],
                        each.name,
                        _share(each),
                        _size(each.size),
                        each.written[:16].replace("T", " "),
                    )
                    for each in found
                ],
            )
        elif not json:
            print_line("no run is kept there")


def remove(
    place: PlaceArgument,
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN...", help="Keys as listed, eight letters of them or more."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all runs there.")] = False,
    json: JsonOption = False,
) -> None:
    """Remove runs that are kept; none is ever removed by itself."""
    with finish(json=json, stopped="stopped; some runs may have been removed") as result:
        if bool(keys) == everything:
            raise ParameterError("name the runs to remove, or say --all, one of the two")
        result["removed"] = hs.runs.remove_runs(place, None if everything else keys)
        if not json:
            print_line(f"removed {_count(result['removed'])}")


def _count(found: Sequence[object]) -> str:
    return "1 run" if len(found) == 1 else f"{len(found):,} runs"


def _share(run: hs.runs.KeptRun) -> str:
    if run.done:
        return f"all {run.trials:,}"
    damaged = f", {run.unreadable} bytes unreadable" if run.unreadable else ""
    return f"{run.kept:,} of {run.trials:,}{damaged}"


def _size(bytes_: int) -> str:
    amount = float(bytes_)
    for unit in ("B", "kB", "MB"):
        if amount < 999.5:  # which three digits would make 1e+03
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} GB"


runs = typer.Typer(
    no_args_is_help=True,
    help="Runs that were kept with --keep: list them, remove them.",
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
runs.command("list")(list_all)
runs.command("remove")(remove)
