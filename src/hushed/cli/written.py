"""Files that a command is to write, checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hushed.errors import NotFound, ParameterError

__all__ = ["check_figure", "check_targets", "inputs_of"]

_PAGE = "<title>Certificate of a private release</title>"


def inputs_of(*named: str | Path | None) -> tuple[Path, ...]:
    """Files among what the command line names as input.

    Parameters
    ----------
    *named : str, Path or None
        Paths, ``FILE.py:NAME``, or anything else, which is left out.

    Returns
    -------
    tuple of Path
        Those that exist.
    """
    found = [Path(str(text).rpartition(":")[0]) for text in named if ".py:" in str(text)]
    found += [Path(text) for text in named if text is not None]
    return tuple(path for path in found if path.is_file())


def check_targets(
    targets: Mapping[str, Path | None], inputs: Sequence[Path], *, force: bool
) -> None:
    """Refuse files that cannot, or should not, be written.

    Parameters
    ----------
    targets : mapping of str to Path or None
        Option and the file it names; None if it was not given.
    inputs : sequence of Path
        Files that are read: never written to, not even with ``force``.
    force : bool
        True to allow that a file which is no former certificate is replaced.

    Raises
    ------
    ParameterError
        If a target is an input, another target, a folder, not writable, or exists and is no
        former certificate.
    NotFound
        If the folder of a target does not exist.
    """
    taken: dict[Path, str] = {path.resolve(): "an input of this command" for path in inputs}
    for option, path in targets.items():
        if path is None:
            continue
        for other, what in taken.items():
            if path.resolve() == other or _same(path, other):
                raise ParameterError(f"{option} {path} is {what}; name another file")
        taken[path.resolve()] = f"the file of {option}, too"
        _check_place(option, path)
        if path.exists() and not force and not _former(path):
            raise ParameterError(
                f"{option} {path} exists and is no former certificate; name another file, "
                "or say --force to replace it"
            )


def check_figure(path: Path | None) -> None:
    """Refuse a figure that could not be written, before anything is computed.

    Parameters
    ----------
    path : Path or None
        The file; None if no figure is wanted. An old figure there is replaced.

    Raises
    ------
    ParameterError
        If the suffix is none of a figure, the path is a folder, or it is not writable.
    NotFound
        If its folder does not exist, or the extra ``hushed[plot]`` is not installed.
    """
    if path is not None:
        from hushed.plots import check_suffix  # noqa: PLC0415

        check_suffix(path)
        _check_place("--plot", path)


def _same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _check_place(option: str, path: Path) -> None:
    if path.is_dir():
        raise ParameterError(f"{option} {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise NotFound(f"{option} {path}: there is no folder {path.parent}")
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):
        raise ParameterError(f"{option} {path}: {place} is not writable")


def _former(path: Path) -> bool:
    """Whether a file is a certificate, as JSON or as a page."""
    from hushed.certificate import Certificate  # noqa: PLC0415

    if not path.is_file():
        return False
    try:
        text = path.read_text(encoding="utf-8")
        return _PAGE in text or bool(Certificate.from_json(text))
    except (UnicodeDecodeError, ParameterError):
        return False
