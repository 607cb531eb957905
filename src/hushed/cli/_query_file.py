"""A query as data on the command line: read from a file or an option, and written to a file."""

from __future__ import annotations

from pathlib import Path

import typer

import hushed as hs
from hushed.cli._panels import BOUNDS, QUERY, STATISTICS
from hushed.cli._written import check_targets
from hushed.errors import NotFound, ParameterError

_WHOLE = ("file", "question", "save")  # a whole query, or where it goes


def read_question(context: typer.Context, file: Path | None, text: str | None) -> hs.Query | None:
    """Read the query that a file or an option holds; no other option then says what is asked."""
    if file is None and text is None:
        return None
    beside = [
        max(each.opts, key=len)
        for each in context.command.params
        if (each.rich_help_panel in (BOUNDS, QUERY, STATISTICS) or each.name in ("user", "types"))  # type: ignore[attr-defined]
        and each.name not in _WHOLE
        and _is_typed(context, str(each.name))
    ]
    if beside or (file is not None and text is not None):
        given = " and ".join([*beside, *(["--query"] if file and text else [])])
        raise ParameterError(
            f"{'--query' if file is None else '--file'} says all that is asked: leave {given} out, "
            "or write it there"
        )
    if file is None:
        return hs.Query.from_json(str(text))
    return hs.Query.from_toml(_read(file))


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ParameterError(f"{path.name} is not a TOML file: not text in UTF-8") from None
    except OSError as error:
        raise NotFound(f"{path.name} cannot be read: {error.strerror}") from None


def save_question(path: Path | None, request: hs.Table, *inputs: Path, force: bool) -> None:
    """Write what is asked to a new file."""
    if path is not None:
        check_targets({"--save": path}, inputs, force=force, former=None)
        path.write_text(hs.Query.of(request).to_toml(), encoding="utf-8")
