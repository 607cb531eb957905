"""The commands about what guarantees mean, cost and add up to."""

from __future__ import annotations

import typer

from hushed.cli.composing import compose
from hushed.cli.costs import cost
from hushed.cli.risks import risk

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add ``hushed risk``, ``hushed cost`` and ``hushed compose`` to the application.

    Parameters
    ----------
    app : typer.Typer
        Application to add them to.
    """
    app.command("risk")(risk)
    app.command("cost")(cost)
    app.command("compose")(compose)
