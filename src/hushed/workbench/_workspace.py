"""The folder that a workbench works in: its files, its ledger, and what it keeps of its own."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hushed._ground.printing import brief
from hushed.errors import NotFound, ParameterError
from hushed.tables._engine.parts import list_parts

TABLE_FILES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".duckdb")
HIDDEN = ".hushed"
_MOST_FILES, _DEEPEST = 500, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A folder.

    Parameters
    ----------
    folder : Path
        The folder, resolved. Nothing outside of it is opened.
    ledger : str
        Address of the ledger.
    practice : bool
        Whether everything in it is made up.
    """

    folder: Path
    ledger: str
    practice: bool = False

    @property
    def hidden(self) -> Path:
        """Where drafts and jobs are kept."""
        return self.folder / HIDDEN

    @property
    def name(self) -> str:
        """Name of the folder."""
        return "practice" if self.practice else self.folder.name or str(self.folder)

    @property
    def has_own_ledger(self) -> bool:
        """Whether the ledger is the file in the folder."""
        return self.ledger == _own_ledger(self.folder)


def open_workspace(folder: Path, ledger: str | None = None, *, practice: bool = False) -> Workspace:
    """Open a folder that exists."""
    if not folder.is_dir():
        raise NotFound(
            f"there is no folder {brief(str(folder))}: make it (it may be empty) or name another"
        )
    folder = folder.resolve()
    if not os.access(folder, os.R_OK | os.X_OK):
        raise ParameterError(f"the folder {brief(str(folder))} cannot be read")
    return Workspace(folder=folder, ledger=ledger or _own_ledger(folder), practice=practice)


def practice_of(workspace: Workspace) -> Workspace:
    """Name the workspace of made-up people that belongs to a folder."""
    folder = workspace.hidden / "practice"
    return Workspace(folder=folder, ledger=_own_ledger(folder), practice=True)


def _own_ledger(folder: Path) -> str:
    return f"sqlite:///{folder / 'ledger.db'}"


def list_files(workspace: Workspace, endings: Sequence[str] = TABLE_FILES) -> tuple[str, ...]:
    """List files of these kinds, as paths relative to the folder.

    Hidden ones and links are not listed, nor names that are no text: no form can name them.
    """
    found: list[str] = []
    for place, folders, files in os.walk(workspace.folder):
        here = Path(place).relative_to(workspace.folder)
        deep = len(here.parts) >= _DEEPEST
        folders[:] = [] if deep else sorted(each for each in folders if not each.startswith("."))
        for name in sorted(files):
            path = PurePosixPath(here.as_posix()) / name
            wanted = name.lower().endswith(tuple(endings)) and not name.startswith(".")
            allowed = _is_text(str(path)) and not _is_ledger(workspace, str(path))
            if wanted and allowed and _is_plain(Path(place) / name):
                found.append(str(path))
        if len(found) >= _MOST_FILES:
            break
    return tuple(found[:_MOST_FILES])


def list_tables(workspace: Workspace) -> tuple[str, ...]:
    """List files of tables, and folders of Parquet files, whose names end with a slash."""
    files = list_files(workspace)
    parts = [PurePosixPath(each) for each in files if each.lower().endswith(".parquet")]
    folders = dict.fromkeys(f"{each.parent}/" for each in parts if each.parent.name)
    return (*files, *folders)


def find_table(workspace: Workspace, name: str) -> Path:
    """Find a file of a table, or a folder of Parquet files, by its path relative to the folder."""
    if not name.endswith("/"):
        return find_file(workspace, name)
    path = _find_inside(workspace, name.removesuffix("/"))
    if path.is_symlink() or not path.is_dir() or path.resolve() != path:
        raise NotFound(f"there is no folder {brief(name)} in the folder of the workbench")
    links = [each.name for each in list_parts(path) if not _is_plain(each)]
    if links:
        raise ParameterError(
            f"{brief(links[0])} in {brief(name)} is a link or no plain file; copy the file itself"
        )
    return path


def find_file(workspace: Workspace, name: str, endings: Sequence[str] = TABLE_FILES) -> Path:
    """Find a file by its path relative to the folder; no way leads out of it, links neither."""
    path = _find_inside(workspace, name)
    try:
        inside = path.resolve(strict=True) == path and _is_plain(path)
    except OSError:
        raise NotFound(f"there is no file {brief(name)} in the folder of the workbench") from None
    if not inside:
        raise ParameterError(f"{brief(name)} is a link or no plain file; copy the file itself here")
    if not name.lower().endswith(tuple(endings)):
        raise ParameterError(f"{brief(name)} is of another kind; allowed are {', '.join(endings)}")
    return path


def _find_inside(workspace: Workspace, name: str) -> Path:
    """Read a path relative to the folder, which has no way out of it."""
    parts = name.replace("\\", "/").split("/")
    if not name or "\0" in name or name.startswith("/") or ":" in parts[0]:
        raise ParameterError("name a file in the folder of the workbench, such as stays.csv")
    if any(each in ("", ".", "..") or each.startswith(".") for each in parts):
        raise ParameterError("a file is named without '..' and hidden folders, as in the list")
    return workspace.folder.joinpath(*parts)


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _is_text(name: str) -> bool:
    """Whether a name can be written in a page; one in an older encoding cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_ledger(workspace: Workspace, name: str) -> bool:
    return workspace.ledger == f"sqlite:///{workspace.folder / name}"
