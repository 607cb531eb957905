"""The command line: parse, call, print."""

from __future__ import annotations

import signal
from importlib.metadata import version
from typing import Annotated, Never

import typer

from hushed.cli import auditing, ledgers, pricing, releasing

__all__ = ["app", "main"]

app = typer.Typer(
    name="hushed",
    help="Make any Python function private, and prove it.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


def _tell_version(asked: bool) -> None:
    if asked:
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


releasing.register(app)
pricing.register(app)
auditing.register(app)
ledgers.register(app)


def main() -> None:
    """Run the command line; SIGTERM stops it as Ctrl-C does, so that nothing is left behind."""
    signal.signal(signal.SIGTERM, _stop)
    app()


def _stop(number: int, frame: object) -> Never:  # noqa: ARG001
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: a second one would cut the cleaning short
    raise KeyboardInterrupt
