"""How every command ends: text or one JSON object, and an exit code."""

from __future__ import annotations

import json as encoder
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import typer

from hushed.errors import (
    BadFunction,
    DamagedLedger,
    EngineUnavailable,
    HushedError,
    LedgerUnavailable,
    NewerLedger,
    NotALedger,
    NotFeasible,
    Overspent,
    PrivateRowsAsPopulation,
    QueryFailed,
    WorkerLost,
    ZeroSensitivity,
)

__all__ = ["BAD_USE", "REFUSED", "STOPPED", "finish", "note", "notes", "print_table", "say"]

REFUSED, BAD_USE, STOPPED = 1, 2, 130
_REFUSALS = (
    BadFunction,
    DamagedLedger,
    EngineUnavailable,
    LedgerUnavailable,
    NewerLedger,
    NotALedger,
    NotFeasible,
    Overspent,
    PrivateRowsAsPopulation,
    QueryFailed,
    WorkerLost,
    ZeroSensitivity,
)


def say(text: str) -> None:
    """Print a line of the answer on standard output.

    Parameters
    ----------
    text : str
        The line.
    """
    with _printing():
        typer.echo(text)


def note(text: str) -> None:
    """Print a remark on standard error.

    Parameters
    ----------
    text : str
        The remark.
    """
    typer.echo(text, err=True)


def notes(texts: Iterable[str]) -> None:
    """Print remarks on standard error.

    Parameters
    ----------
    texts : iterable of str
        The remarks.
    """
    for text in texts:
        note(text)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output.

    Parameters
    ----------
    title : str
        Stands above it.
    columns : sequence of str
        Their names; the first is set to the left, the others to the right.
    rows : iterable of sequence of str
        The cells.
    """
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row)
    with _printing():
        Console().print(table)


class _NotWritten(OSError):
    """Standard output did not take what was printed."""


@contextmanager
def _printing() -> Iterator[None]:
    """Print what a console cannot show as escapes; what cannot be written at all is told apart."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and sys.stdout.errors == "strict":
        reconfigure(errors="backslashreplace")
    try:
        yield
        sys.stdout.flush()
    except (OSError, ValueError) as error:  # of a full device, a broken pipe, a closed stream
        reason = getattr(error, "strerror", None) or "it cannot be written to"
        raise _NotWritten(reason) from None


def _drop_output() -> None:
    """Send what is still to be flushed nowhere, or the interpreter would fail on it at its end."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


@contextmanager
def finish(
    *,
    json: bool,
    stopped: str = "stopped; nothing was released",
    refused: int = REFUSED,
    tell: Callable[[str], str] = str,
) -> Iterator[dict[str, Any]]:
    """Turn the end of a command into output and an exit code.

    Parameters
    ----------
    json : bool
        True to print the collected result, or the error, as one JSON object.
    stopped : str, optional
        What to say if the user stops the command.
    refused : int, optional
        Exit code of a refusal, and of what was not foreseen; for a command whose 1 is an answer.
    tell : callable, optional
        Puts the message of a refusal, which speaks of arguments in Python, into the words of the
        command; as it is by default.

    Yields
    ------
    dict
        To be filled with the result. Put ``exit_code`` into it for an end that is not 0, and
        ``kept`` for what to say if the output cannot be written: how to read it again.

    Raises
    ------
    typer.Exit
        1 if the job was refused, 2 for bad use and for output that cannot be written, 130 if
        stopped by the user; 1 for any exception
        that was not foreseen, too: its type and place are told, its message, which may quote
        rows, is withheld.
    """
    result: dict[str, Any] = {}
    try:
        yield result
    except HushedError as error:
        code = refused if isinstance(error, _REFUSALS) else BAD_USE
        _refuse(type(error).__name__, tell(_told(error)), code, json=json)
    except (typer.Exit, typer.Abort):
        raise
    except _NotWritten as error:
        _lose(error, result)
    except (OSError, UnicodeError) as error:  # its own text may quote what was read
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        _refuse(type(error).__name__, reason or "the system refused", BAD_USE, json=json)
    except KeyboardInterrupt:
        note(stopped)
        raise typer.Exit(STOPPED) from None
    except Exception as error:
        place = _place(error)
        note(
            f"{type(error).__name__} {place}: not foreseen, please report it; its message is "
            "withheld, for it may quote rows"
        )
        _write_error({"type": type(error).__name__, "place": place}, json=json)
        raise typer.Exit(refused) from None
    _end(result, json=json)


def _end(result: dict[str, Any], *, json: bool) -> None:
    code, kept = result.pop("exit_code", 0), result.pop("kept", "")
    try:
        if json:
            _write(result)
    except _NotWritten as error:
        _lose(error, {"kept": kept})
    if code:
        raise typer.Exit(code)


def _lose(error: _NotWritten, result: dict[str, Any]) -> NoReturn:
    """End with output that was not written, and say how to read it again."""
    _drop_output()
    kept = result.get("kept", "")
    note(f"standard output was not written: {error}{'; ' if kept else ''}{kept}")
    raise typer.Exit(BAD_USE) from None


def _refuse(name: str, message: str, code: int, *, json: bool) -> NoReturn:
    note(f"{name}: {message}")
    _write_error({"type": name, "message": message}, json=json)
    raise typer.Exit(code) from None


def _place(error: Exception) -> str:
    """Where an error came up: the last line of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "hushed" in Path(frame.filename).parts]
    last = (ours or frames)[-1]
    return f"in {Path(last.filename).name}, line {last.lineno}"


def _told(error: HushedError) -> str:
    """Message of an error, with the option's name on the command line where they differ."""
    told = str(error)
    if "data_dependent=True" in told and "--data-dependent" not in told:
        told += " (--data-dependent on the command line)"
    return told


def _write_error(error: dict[str, str], *, json: bool) -> None:
    """Print an error as JSON, where it was asked for and can be written; it was told before."""
    try:
        if json:
            _write({"error": error})
    except _NotWritten:
        _drop_output()


def _write(result: dict[str, Any]) -> None:
    text = encoder.dumps(_plain(result), sort_keys=True, allow_nan=False)
    with _printing():
        sys.stdout.write(text + "\n")


def _plain(value: Any) -> Any:
    """Infinity as text, for a JSON number cannot be infinite."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
