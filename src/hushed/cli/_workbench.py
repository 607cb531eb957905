"""The command ``hushed workbench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hushed.cli._outcome import finish


def workbench(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="Folder of the tables.")
    ] = Path(),
    ledger: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ledger; by default ledger.db in the folder."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Only 127.0.0.1: the workbench is for one person.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes any free one.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser at the address.")
    ] = True,
) -> None:
    """Open a page on this computer to ask tables, without Python."""
    with finish(json=False, stopped="the workbench has stopped"):
        from hushed.workbench import serve_workbench  # noqa: PLC0415

        serve_workbench(folder, ledger=ledger, host=host, port=port, browser=browser)
