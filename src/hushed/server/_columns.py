"""What a steward is told of the columns of a data set; no row is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hushed._ground.printing import brief
from hushed.server._config import DatasetSettings, read_settings
from hushed.server._datasets import find_source, open_dataset, require_dataset
from hushed.tables import Table

_MOST = 20  # names that are listed


def describe_columns(folder: Path, name: str) -> tuple[str, ...]:
    """Say which columns can be asked undeclared, and which whole numbers may lose cells."""
    settings = require_dataset(read_settings(folder), name)
    return say_columns(folder, settings, open_dataset(folder, settings))


def say_columns(folder: Path, settings: DatasetSettings, table: Table) -> tuple[str, ...]:
    """Say the same of a table that is open."""
    told = (_say_undeclared(settings, table), _say_whole(folder, settings))
    return tuple(filter(None, told))


def _say_undeclared(settings: DatasetSettings, table: Table) -> str:
    declared = {*settings.column, settings.user}
    names = [name for name in table.columns if name not in declared]
    if not names:
        return ""
    listed = ", ".join(map(brief, names[:_MOST])) + (", ..." if len(names) > _MOST else "")
    return (
        f"these columns can be asked, too, although nothing is declared of them: {listed}; to keep "
        "one out, serve a view, or a file, that does not have it"
    )


def _say_whole(folder: Path, settings: DatasetSettings) -> str:
    """Say that decimals become missing where whole numbers are declared, and stored are others."""
    whole = [name for name, kind in settings.types().items() if kind == "int"]
    if not whole:
        return ""
    stored = replace(find_source(folder, settings), types={}).open().columns
    whole = [name for name in whole if stored.get(name) != "int"]
    if not whole:
        return ""
    return (
        f"declared as whole numbers (int): {', '.join(map(brief, whole))}. A cell that is none, "
        "such as 3.7, is read as missing: declare float where there may be decimals"
    )
