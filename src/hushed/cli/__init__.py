"""The command line: parse, call, print."""

from __future__ import annotations

import typer

from hushed.cli import pricing, releasing

__all__ = ["app", "main"]

app = typer.Typer(
    name="hushed",
    help="Make any Python function private, and prove it.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
releasing.register(app)
pricing.register(app)


def main() -> None:
    """Run the command line."""
    app()
