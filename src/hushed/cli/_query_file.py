"""Files of a query on the command line: what is asked, and what is answered."""

from __future__ import annotations

from pathlib import Path

import typer

import hushed as hs
from hushed._ground.printing import name_missing, plain_path
from hushed._ground.whole_files import write_whole
from hushed.cli._outcome import finish, print_note
from hushed.cli._panels import BOUNDS, QUERY, STATISTICS
from hushed.cli._spelling import Hint
from hushed.cli._written import check_targets
from hushed.errors import HushedError, NotFound, ParameterError
from hushed.tables._layout import SUFFIXES, render, write_new

# A whole query, where it goes, and what is no part of it.
_WHOLE = ("file", "question", "save", "rows_per_user")
_TAKES_JSON = "--query takes the question itself, in JSON, and --file the name of a file of one"
_TAKES = (
    "--file takes a question in TOML, as --save writes it, and the table is named without an "
    "option: hushed query stays.csv --file question.toml"
)


def spell_hints(file: Path | None, text: str | None, others: dict[str, Hint]) -> dict[str, Hint]:
    """Spell what an error advises as a part of the question, where that says all that is asked."""
    if file is None and text is None:
        return others
    where = "--query" if file is None else plain_path(file.name)

    def spell(name: str, value: str) -> str:
        return f"{name} = {value} in {where}" if file else f'"{name}": {value} in {where}'

    column = '"COLUMN"'
    rows, groups = spell("max_rows_per_user", "N"), spell("max_groups_per_user", "N")
    return others | {
        "count": f"write aggregates in {where}, such as one of the kind count",
        "keys": f"write the keys of each column as keys of groups in {where}",
        "max_groups_per_user": f"write {groups}, or {rows}",
        "max_rows_per_user": f"write {rows}",
        "types": lambda hint: f"{hint.partition(',')[0]}, write the types under columns in {where}",
        "user": f"write {spell('user', column)}",
    }


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
    where, takes = ("--query", _TAKES_JSON) if file is None else (file.name, _TAKES)
    try:
        if file is None:
            return hs.Query.from_json(str(text))
        return hs.Query.from_toml(_read(file))
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}; {takes}") from None


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ParameterError("this is not text in UTF-8") from None
    except (FileNotFoundError, IsADirectoryError):
        raise NotFound(f"there is no file {name_missing(path)}") from None
    except OSError as error:
        raise NotFound(f"{path.name} cannot be read: {error.strerror}") from None


def check_files(
    save: Path | None, out: Path | None, *inputs: Path, force: bool, quote: bool
) -> None:
    """Check the files that will be written, before anything is charged."""
    if out is not None and (quote or out.suffix not in SUFFIXES):
        raise ParameterError(
            "--out takes the answer, and --quote gives none"
            if quote
            else f"--out takes a file that ends in {', '.join(SUFFIXES)}, got {plain_path(out)}"
        )
    check_targets({"--save": save, "--out": out}, inputs, force=force, former=None)
    if save is not None and save.is_file() and not _is_question(save):  # a pipe holds nothing
        raise ParameterError(
            f"--save {plain_path(save)} exists and is not an earlier query, so that even --force "
            "does not replace it; name another file, or remove it"
        )


def _is_question(path: Path) -> bool:
    """Whether a file holds a query that was written before: no other one is replaced."""
    try:
        text = _read(path)
        return "hushed query" in text and bool(hs.Query.from_toml(text))
    except HushedError:
        return False


def write_files(
    save: Path | None,
    asked: str,
    out: Path | None,
    answer: hs.Answer | None,
    *,
    force: bool,
    kept: str = "",
) -> None:
    """Write what is asked, and the answer, after it was printed: a failure now loses no answer.

    A query that was refused leaves no file behind, so that it can be asked again as it was.
    """
    stopped = "stopped; what was printed stands, a file may be missing"
    with finish(json=False, stopped=stopped, kept=kept):
        if answer is not None:
            _write_answer(out, b"" if out is None else render(answer, out.suffix), force=force)
        if save is not None:
            _write(save, asked.encode(), force=force)


def write_content(out: Path | None, content: bytes, *, force: bool) -> None:
    """Write an answer that was stored, after it was printed."""
    with finish(json=False, stopped="stopped; what was printed stands, a file may be missing"):
        _write_answer(out, content, force=force)


def _write_answer(out: Path | None, content: bytes, *, force: bool) -> None:
    if out is not None:
        _write(out, content, force=force)
        print_note(f"answer written to {out}")


def _write(path: Path, content: bytes, *, force: bool) -> None:
    if force:
        write_whole(path, content)
    else:
        write_new(path, content)
