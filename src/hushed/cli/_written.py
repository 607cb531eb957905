"""Files that a command is to write, checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hushed.errors import NotFound, ParameterError

_PAGES = {
    "certificate": "<title>Certificate of a private release</title>",
    "audit report": "<title>Audit</title>",
}


def inputs_of(*named: str | Path | None) -> tuple[Path, ...]:
    """Files among what the command line names as input."""
    found = [Path(str(text).rpartition(":")[0]) for text in named if ".py:" in str(text)]
    found += [Path(text) for text in named if text is not None]
    stored = (each for text in named if text is not None for each in _files_of_address(str(text)))
    return (*(path for path in found if _is_file(path)), *stored)


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
            if _real(path) == other or _is_same(path, other):
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


def _check_kept(option: str, path: Path) -> None:
    """Refuse to write over a ledger, by whatever name, and whatever is said with force."""
    from hushed.ledger._files import is_ledger  # noqa: PLC0415

    if is_ledger(path):
        raise ParameterError(f"{option} {path} is a ledger, or belongs to one; name another file")
    if path.is_file() and path.stat().st_nlink > 1:
        raise ParameterError(
            f"{option} {path} is a file with another name (a hard link), which would be written "
            "over, too; name another file"
        )


def _former(path: Path, kind: str | None) -> bool:
    """Whether a file is of a kind that is replaced: a certificate, or a page of its own."""
    from hushed.releasing import Certificate  # noqa: PLC0415

    if kind is None or not path.is_file():
        return False
    try:
        text = path.read_text(encoding="utf-8")
        if _PAGES[kind] in text:
            return True
        return kind == "certificate" and bool(Certificate.from_json(text))
    except (UnicodeDecodeError, ParameterError):
        return False
