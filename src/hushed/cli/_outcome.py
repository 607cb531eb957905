"""How every command ends: text or one JSON object, and an exit code."""

from __future__ import annotations

import json as encoder
import math
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import typer

from hushed._ground.printing import list_kept
from hushed.cli._exits import exits_of_c_told, exits_raise
from hushed.cli._spelling import Hint, describe_error
from hushed.errors import DoesNotHold, HushedError, HushedWarning, Refusal

REFUSED, BAD_USE, UNFORESEEN, STOPPED = 1, 2, 3, 130
DONE = "it was done all the same"  # where the output of what is not undone cannot be written
_ENDED = "the function ended the process, by exit() of C: nothing was found or judged"
_OURS = Path(__file__).resolve().parents[1]


class _Unwritten(Exception):
    """Standard output could not be written."""


def print_line(text: str) -> None:
    """Print a line of the answer on standard output."""
    with _output():
        typer.echo(text)


def print_note(text: str) -> None:
    """Print a remark on standard error; one that cannot be written stops nothing."""
    with suppress(OSError):
        typer.echo(text, err=True)


def print_notes(texts: Iterable[str]) -> None:
    """Print remarks on standard error."""
    for text in texts:
        print_note(text)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output."""
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console = Console()  # it would end the program itself when nobody reads it
    with _output(), console.capture() as drawn:
        console.print(table)
    with _output():
        sys.stdout.write(drawn.get())


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings of the library in their words: no line of the user's has called it."""
    before = warnings.formatwarning

    def show(message: Any, category: type[Warning], *place: Any, **line: Any) -> str:
        if issubclass(category, HushedWarning):
            return f"warning: {message}\n"
        return before(message, category, *place, **line)

    warnings.formatwarning = show
    try:
        yield
    finally:
        warnings.formatwarning = before


@contextmanager
def finish(
    *,
    json: bool,
    stopped: str = "stopped; nothing was released",
    refused: int = REFUSED,
    unheld: int = BAD_USE,
    hints: Mapping[str, Hint] | None = None,
    kept: str = "",
) -> Iterator[dict[str, Any]]:
    """Turn the end of a command into output and an exit code.

    Errors name the options of the command that runs; `hints` are of this command only. Once an
    answer is paid for, the result says how it is `kept`, and every error repeats it.
    """
    if sys.stdout is None:  # before anything is run, or paid
        print_note("standard output is closed; let it go somewhere")
        raise typer.Exit(BAD_USE)
    result: dict[str, Any] = {"kept": kept}
    try:
        with (
            _plain_warnings(),
            exits_raise(),
            exits_of_c_told(lambda: _tell("system", "", _ENDED, json=json), BAD_USE),
        ):
            yield result
        code = result.pop("exit_code", 0)
        if json:
            _write({key: value for key, value in result.items() if key != "kept"})
        with _output():
            pass  # flush what else was printed
    except HushedError as error:
        kind, code = _judge(error, refused, unheld)
        words = _join(describe_error(error, hints or {}), *list_kept(error), result["kept"])
        _refuse(kind, type(error).__name__, words, code, json=json)
    except (typer.Exit, typer.Abort):
        raise
    except _Unwritten as error:
        _drop_output()
        words = _join(f"standard output was not written: {error}", result["kept"])
        _refuse("system", "", words, BAD_USE, json=False)
    except (OSError, UnicodeError, MemoryError) as error:
        words = _join(_describe_system(error), result["kept"])
        _refuse("system", _name_error(error), words, BAD_USE, json=json)
    except KeyboardInterrupt as stop:  # one of ours says what was paid for
        words = _join(str(stop) or stopped, *list_kept(stop), result["kept"])
        _refuse("stopped", "", words, STOPPED, json=json)
    except BaseException as error:  # what asyncio and generators raise is no Exception
        _unforeseen(error, json=json)
        raise typer.Exit(UNFORESEEN) from None
    if code:
        raise typer.Exit(code)


def run(app: Callable[[], object]) -> int:
    """Run the command line, with all that happens before and after its commands."""
    try:
        with finish(json=False) as result:
            try:
                app()
            except SystemExit as end:
                lost = isinstance(end.__context__, OSError)  # who read it has left
                result["exit_code"] = BAD_USE if lost else end.code
            except OSError as error:  # help, version, mistakes in the options
                raise _Unwritten(error.strerror or "the system refused") from None
    except typer.Exit as end:
        return end.exit_code
    return 0


def _judge(error: HushedError, refused: int, unheld: int) -> tuple[str, int]:
    """Name the kind of an error of ours, and its exit code."""
    if isinstance(error, DoesNotHold):
        return "does-not-hold", unheld
    return ("refused", refused) if isinstance(error, Refusal) else ("bad-use", BAD_USE)


def _join(*parts: str) -> str:
    """Join the parts of a message; nothing is said twice."""
    return "; ".join(dict.fromkeys(filter(None, parts)))


def _name_error(error: BaseException) -> str:
    return "MemoryError" if isinstance(error, MemoryError) else type(error).__name__


def _describe_system(error: BaseException) -> str:
    """Say what the system refused; the error's own text may quote what was read."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
    return reason or "the system refused"


def _unforeseen(error: BaseException, *, json: bool) -> None:
    """Tell of an exception that nobody planned for, without its message."""
    name = type(error).__name__
    place = _place(error)
    print_note(
        f"{name} {place}: not foreseen, please report it; its message is withheld, for it may "
        "quote rows"
    )
    if json:
        with suppress(_Unwritten):
            _write({"error": {"kind": "unforeseen", "type": name, "place": place}})


def _refuse(kind: str, name: str, message: str, code: int, *, json: bool) -> NoReturn:
    _tell(kind, name, message, json=json)
    raise typer.Exit(code) from None


def _tell(kind: str, name: str, message: str, *, json: bool) -> None:
    print_note(f"{name}: {message}" if name else message)
    if json:
        error = {"kind": kind, "message": message} | ({"type": name} if name else {})
        try:
            _write({"error": error})
        except _Unwritten:
            _drop_output()


@contextmanager
def _output() -> Iterator[None]:
    """Spell out letters that a terminal has not; what goes wrong inside is the output's fault."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
        sys.stdout.flush()
    except (OSError, ValueError) as error:  # a full device, a broken pipe, a closed stream
        raise _Unwritten(getattr(error, "strerror", None) or "it cannot be written to") from None


def _drop_output() -> None:
    """Let nothing try again to write what could not be: Python would, at its end, and fail."""
    with suppress(OSError, ValueError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)


def _place(error: BaseException) -> str:
    """Where an error came up: the last line of ours, whatever the folders above are called."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if _OURS in Path(frame.filename).resolve().parents]
    last = (ours or frames)[-1:]
    return f"in {Path(last[0].filename).name}, line {last[0].lineno}" if last else "somewhere"


def _write(result: dict[str, Any]) -> None:
    text = encoder.dumps(_plain(result), sort_keys=True, allow_nan=False)
    with _output():
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
