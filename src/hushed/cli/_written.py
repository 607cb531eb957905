"""Files that a command is to write, checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from glob import has_magic
from pathlib import Path
from typing import Any

from hushed.errors import NotFound, ParameterError

# With such an ending no browser would show a page.
_NO_PAGES = frozenset(
    [
        ".pdf",
        ".svg",
        ".png",
        ".json",
        ".jsonl",
        ".csv",
        ".parquet",
        ".txt",
        ".toml",
        ".md",
        ".py",
        ".docx",
    ]
)
_LOOKED_AT = 1 << 16  # bytes at either end of a file
_PAGES = {
    "certificate": "<title>Certificate of ",
    "audit report": "<title>Audit: ",
    "comparison": "<title>Which promise, at what price: ",
}


def inputs_of(*named: str | Path | None) -> tuple[Path, ...]:
    """Files among what the command line names as input."""
    found = [Path(str(text).rpartition(":")[0]) for text in named if ".py:" in str(text)]
    found += [Path(text) for text in named if text is not None]
    stored = (each for text in named if text is not None for each in _files_of_address(str(text)))
    parts = (part for text in named if text is not None for part in _parts_of(Path(text)))
    return (*(path for path in found if _is_file(path)), *stored, *parts)


def shares_files(public: Path, private: str) -> bool:
    """Whether a file, or one of several, is among those of a private table."""
    theirs = [each for each in inputs_of(private) if _is_file(each)]
    return any(_is_same(own, each) for own in inputs_of(public) if _is_file(own) for each in theirs)


def _parts_of(path: Path) -> tuple[Path, ...]:
    """Files of a table in several, and the folders that they are in: what is put there are rows."""
    with suppress(OSError):
        if path.is_dir() or has_magic(str(path)):
            from hushed.tables._engine.parts import list_parts  # noqa: PLC0415 - loads NumPy

            parts = list_parts(path)
            return (*parts, *{part.parent for part in parts})
    return ()


def _is_file(path: Path) -> bool:
    """Whether there is such a file; what keeps us from knowing is told where it is read."""
    try:
        return path.is_file()
    except OSError:
        return False


def _files_of_address(text: str) -> tuple[Path, ...]:
    """Files of a database in a file, if an address names one; they may be made yet."""
    _, found, place = text.partition("://")
    if not found:
        return ()
    path = _real(Path(place.removeprefix("/")))
    return path, path.with_name(path.name + ".wal")


def files_of(ledger: str | None) -> tuple[Path, ...]:
    """Files of a ledger, which are inputs of whatever charges it."""
    if ledger is None or not ledger.startswith("sqlite:///"):
        return ()
    path = Path(os.path.realpath(os.path.expanduser(ledger.removeprefix("sqlite:///"))))
    return tuple(path.with_name(path.name + each) for each in ("", "-wal", "-shm", "-journal"))


def check_targets(
    targets: Mapping[str, Path | None],
    inputs: Sequence[Path],
    *,
    force: bool,
    former: str | None = "certificate",
) -> None:
    """Refuse files that cannot, or should not, be written."""
    taken: dict[Path, str] = {_real(path): "an input of this command" for path in inputs}
    for option, path in targets.items():
        if path is None:
            continue
        for other, what in taken.items():
            if other in (_real(path), _real(path).parent) or _is_same(path, other):
                raise ParameterError(f"{option} {path} is {what}; name another file")
        taken[_real(path)] = f"the file of {option}, too"
        _check_place(option, path)
        if path.exists() and not force and not _former(path, former):
            what = "exists" if former is None else f"exists and is not an earlier {former}"
            raise ParameterError(
                f"{option} {path} {what}; name another file, or say --force to replace it"
            )


def check_figure(path: Path | None) -> None:
    """Refuse a figure that could not, or should not, be written, before anything is computed."""
    if path is not None:
        from hushed.plots import check_suffix  # noqa: PLC0415
        from hushed.plots._figures import is_figure  # noqa: PLC0415

        check_suffix(path)
        _check_place("--plot", path)
        if path.exists() and not is_figure(path):
            raise ParameterError(
                f"--plot {path} exists and is not a figure of hushed; name another file, or "
                "remove it"
            )


def check_comparison_page(path: Path | None) -> None:
    """Refuse a page of a comparison that could not, or should not, be written."""
    check_drawing(path)
    if path is not None:
        _check_place("--html", path)
        if path.exists() and not _former(path, "comparison"):
            raise ParameterError(
                f"--html {path} exists and is not an earlier comparison; name another file, or "
                "remove it"
            )


def check_drawing(path: Path | None) -> None:
    """Refuse a page with a figure where none can be drawn, before anything is computed."""
    if path is not None:
        from hushed.plots._figures import altair_or_refuse  # noqa: PLC0415

        altair_or_refuse()


def _real(path: Path) -> Path:
    """Where a path leads; a loop of links leads to one of them."""
    return Path(os.path.realpath(path))


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _check_place(option: str, path: Path) -> None:
    if path.is_dir():
        raise ParameterError(f"{option} {path} is a folder; name a file in it")
    if _real(path).is_symlink():
        raise ParameterError(f"{option} {path} is a loop of links; name another file")
    if not path.parent.is_dir():
        raise NotFound(f"{option} {path}: there is no folder {path.parent}")
    _check_kept(option, path)
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):
        raise ParameterError(f"{option} {path}: {place} is not writable")
    if option == "--html" and path.suffix.lower() in _NO_PAGES:
        raise ParameterError(
            f"--html {path} is a page: its name ends in .html, and a browser prints it as PDF"
        )


def _check_kept(option: str, path: Path) -> None:
    """Refuse to write over a ledger or a signing key, whatever is said with force."""
    from hushed.ledger._files import is_ledger  # noqa: PLC0415

    if is_ledger(path):
        raise ParameterError(f"{option} {path} is a ledger, or belongs to one; name another file")
    if path.is_file() and _is_private_key(path):
        raise ParameterError(f"{option} {path} is a private key; name another file")
    if option != "--save" and path.is_file() and _is_table_of_others(path):
        raise ParameterError(
            f"{option} {path} holds a table that hushed did not write, so that even --force does "
            "not replace it; name another file, or remove it"
        )
    if path.is_file() and path.stat().st_nlink > 1:
        raise ParameterError(
            f"{option} {path} is a file with another name (a hard link), which would be written "
            "over, too; name another file"
        )


def _is_table_of_others(path: Path) -> bool:
    """Whether a file is a table, or a database, and no answer as hushed writes them.

    An answer in CSV begins with the name of a column in quotation marks, and a table that begins
    so, too, is taken for one; those of Arrow and Parquet are marked.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_LOOKED_AT)
            file.seek(max(0, path.stat().st_size - _LOOKED_AT))
            tail = file.read()
    except OSError:
        return False
    if head.startswith(b"SQLite format 3") or head[8:12] == b"DUCK":
        return True
    if head.startswith((b"PAR1", b"ARROW1")):
        return b"not_included" not in tail
    named = path.suffix.lower() in (".csv", ".tsv")
    return named and not head.startswith(b'"') and b"\n" in head.strip()


def _is_private_key(path: Path) -> bool:
    """Whether a file is a private key in PEM; one that cannot be read is none."""
    try:
        with path.open("rb") as file:
            head = file.readline(100)
    except OSError:
        return False
    return b"-----BEGIN" in head and b"PRIVATE KEY" in head


def _former(path: Path, kind: str | None) -> bool:
    """Whether a file is of a kind that is replaced: a certificate, or a page of its own."""
    from hushed.releasing import Certificate  # noqa: PLC0415
    from hushed.statements import Statement  # noqa: PLC0415
    from hushed.statements._signing import is_signed, read_unchecked  # noqa: PLC0415
    from hushed.statements._statement import is_statement  # noqa: PLC0415

    if kind is None or not path.is_file():
        return False
    try:
        text = path.read_text(encoding="utf-8-sig")
        if _PAGES[kind] in text:
            return True
        read: Any = Statement.from_json if is_statement(text) else Certificate.from_json
        read = read_unchecked if is_signed(text) else read
        return kind == "certificate" and bool(read(text))
    except (UnicodeDecodeError, ParameterError):
        return False
