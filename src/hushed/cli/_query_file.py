"""A query file: the options of `hushed query`, in TOML, under the same names."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

_NOT_IN_A_FILE = ("file", "help")
_WANTED: tuple[tuple[type, str], ...] = (
    (list, "a list of strings"),
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a number"),
)


def read_query_file(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options of a query file as defaults, so that the command line wins.

    The parameters of the command say which keys there are, and of which type.
    """
    if path is not None:
        names = _parameters_by_key(context)
        callback = inspect.unwrap(context.command.callback)  # type: ignore[arg-type]
        types = get_type_hints(callback)
        given = _read_toml(path)
        for key, value in given.items():
            if key not in names:
                known = ", ".join(sorted(names))
                raise typer.BadParameter(f"unknown key {key!r}; the keys are {known}")
            _check_value(key, value, types[names[key]])
        context.default_map = {names[key]: value for key, value in given.items()}
    return path


def _parameters_by_key(context: typer.Context) -> dict[str, str]:
    """Names of the parameters, by the name of their option without the dashes."""
    found = {}
    for parameter in context.command.params:
        key = max(parameter.opts, key=len).removeprefix("--")
        if key not in _NOT_IN_A_FILE:
            found[key] = str(parameter.name)
    return found


def _read_toml(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "not text in UTF-8"
        raise typer.BadParameter(f"{path.name} is not a TOML file: {reason}") from None
    except OSError as error:
        raise typer.BadParameter(f"{path.name} cannot be read: {error.strerror}") from None


def _check_value(key: str, value: object, hint: Any) -> None:
    """Refuse a value of a wrong type; typer then checks choices and ranges, as for options."""
    types = {getattr(each, "__origin__", each) for each in (hint, *get_args(hint))}
    wanted = next((words for known, words in _WANTED if known in types), "a string")
    if not _is_of(value, wanted):
        raise typer.BadParameter(f"{key} must be {wanted}, got {value!r}")


def _is_of(value: object, wanted: str) -> bool:
    if wanted == "a list of strings":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if isinstance(value, bool):
        return wanted == "true or false"
    types = {"an integer": int, "a number": (int, float), "a string": str}
    return wanted in types and isinstance(value, types[wanted])  # type: ignore[arg-type]
