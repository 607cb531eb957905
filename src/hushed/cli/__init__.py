"""The command line: parse, call, print."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from typing import Annotated, Any, Never

import typer
from typer.core import TyperGroup

__all__ = ["COMMANDS", "app", "exit_codes", "load", "main"]

# Name: module, and what ``hushed --help`` says. A module is loaded when its command is run, for
# most of them take longer to load than anyone should wait for a help text.
COMMANDS = {
    "sensitivity": (
        "releasing",
        "Measure how far a function moves between neighbouring tables.",
    ),
    "release": ("releasing", "Release a private answer and its certificate."),
    "verify": ("releasing", "Run the sampling of a certificate again and compare bit for bit."),
    "risk": ("risks", "Show how likely a stronger level is: as published, and exactly."),
    "cost": ("costs", "Find the level for a tolerated error and a budget, or price a level."),
    "compose": ("composing", "Say what several releases on the same rows promise together."),
    "audit": (
        "auditing",
        "Judge what a mechanism claims: violated with a witness, or not refuted.",
    ),
    "query": ("querying", "Ask a private table for noisy aggregates."),
    "ledger": ("ledgers", "Budgets that cannot be overspent."),
}

# What 0 and 1 say of a command whose 1 is an answer; such a one ends with 2 whenever it has none.
_ANSWERS = {
    "audit": "0 not refuted; 1 violated (of the zoo: a private mechanism was accused)",
    "verify": "0 reproduced; 1 not reproduced",
}
_DONE = {"cost": "0 done; 1 not feasible, or refused"}
_NO_ANSWER = "2 no verdict: bad use, refused, or something could not be read or written"
_FAILED = "2 bad use, or something could not be read or written"


def exit_codes(name: str) -> str:
    """Say how a command may end.

    Parameters
    ----------
    name : str
        One of `COMMANDS`.

    Returns
    -------
    str
        One line for its help text.
    """
    if name in _ANSWERS:
        first = f"{_ANSWERS[name]}; {_NO_ANSWER}"
    else:
        first = f"{_DONE.get(name, '0 done; 1 refused')}; {_FAILED}"
    return f"Exit codes: {first}; 3 a failure that was not foreseen; 130 stopped."


def load(name: str) -> typer.Typer:
    """Load a command.

    Parameters
    ----------
    name : str
        One of `COMMANDS`.

    Returns
    -------
    typer.Typer
        The command, or a group of them.
    """
    found = getattr(import_module(f"hushed.cli.{COMMANDS[name][0]}"), name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(pretty_exceptions_show_locals=False, add_completion=False)
        alone.command(name)(found)
        found = alone
    for command in found.registered_commands:
        command.epilog = exit_codes(name)
    return found


class _Loading(TyperGroup):
    """A group whose commands are names and help texts until one is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found and typer.main.get_command(load(str(found.name))), rest


app = typer.Typer(
    name="hushed",
    cls=_Loading,
    help="Make any Python function private, and prove it.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


def _tell_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # noqa: PLC0415

        typer.echo(f"hushed {version('hushed')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_tell_version, is_eager=True),
    ] = False,
) -> None:
    """Make any Python function private, and prove it."""


for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def main() -> None:
    """Run the command line; SIGTERM stops it as Ctrl-C does, so that nothing is left behind."""
    signal.signal(signal.SIGTERM, _stop)
    from hushed.cli.outcome import run  # noqa: PLC0415

    sys.exit(run(app))


def _stop(number: int, frame: object) -> Never:  # noqa: ARG001
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: a second one would cut the cleaning short
    raise KeyboardInterrupt
