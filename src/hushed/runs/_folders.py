"""Where runs are kept: a folder of this computer, that nobody else may write into."""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hushed._ground.printing import plain_path
from hushed.errors import DamagedRun, ParameterError

PART = ".part"
FACTS = "run.json"
_SYNC_SECONDS = 1.0
_SYNC_SHARE = 50  # so many times what it took is waited before the next one: 2 % of the time
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
_SEEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # nor on a pipe
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_KEY = re.compile("[0-9a-f]{64}")


def list_names(found: Iterable[tuple[str, str]]) -> list[str]:
    """Name the runs among folders within folders: what is called otherwise is none of ours.

    Runs are removed with all that is in their folders, and other programs have files of one name.
    """
    return sorted(key for outer, key in found if _KEY.fullmatch(key) and outer == key[:2])


class FileWriter:
    """One append-only file of one writer, which nobody else opens to write."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / f"{uuid.uuid4().hex}{PART}", _NEW | _NO_LINK, 0o600)
        self._synced, self._cost = time.monotonic(), 0.0
        # Trials that are written; and the record on its way, with its trials. Changed in one step,
        # for Ctrl-C may come at any.
        self._state: tuple[int, bytes, int] = (0, b"", 0)
        _sync_folder(folder)

    @property
    def kept(self) -> int:
        """Trials that are written."""
        return self._state[0]

    def append(self, record: bytes, trials: int) -> None:
        """Hand a record to the system, so that it outlives this process; now and then to the disk.

        At once where that is cheap against the time since the last one, after a second in any case.
        """
        self._state = (self.kept, record, trials)
        self._write()
        waited = time.monotonic() - self._synced
        if waited >= min(_SYNC_SECONDS, _SYNC_SHARE * self._cost):
            self.sync()

    def _write(self) -> None:
        """Write the record on its way, if there is one."""
        kept, record, trials = self._state
        view = memoryview(record)
        while view:
            view = view[os.write(self._file, view) :]
        self._state = (kept + trials, b"", 0)

    def sync(self) -> None:
        """Wait until all is on the disk."""
        begun = time.monotonic()
        os.fsync(self._file)
        self._synced = time.monotonic()
        self._cost = self._synced - begun

    def close(self) -> None:
        """Write what an interrupt cut short, sync and close.

        A record that is written twice does no harm, nor does the beginning of one.
        """
        with ExitStack() as last:
            last.callback(os.close, self._file)
            last.callback(self.sync)
            self._write()


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with one folder for each run, by its key."""

    path: Path

    def __str__(self) -> str:
        return plain_path(self.path)

    def prepare(self, *, private: bool) -> None:
        """Make the folder if it is not there; refuse one in which others may write, or may read."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as cause:
            raise ParameterError(
                f"keep={str(self)!r} is no folder and cannot be made one: "
                f"{cause.strerror or 'the system refused'}",
                parameter="keep",
            ) from None
        _check_owner(self.path, private=private)

    def list_keys(self) -> list[str]:
        """Keys of the runs in it."""
        places = [each.parent for each in self.path.glob(f"??/*/{FACTS}")]
        return list_names((each.parent.name, each.name) for each in places)

    def read_facts(self, key: str) -> str | None:
        """Read what a run says of itself; None if there is none."""
        path = self._of(key) / FACTS
        return _read(path).decode("utf-8", "replace") if path.exists() else None

    def write_facts(self, key: str, text: str) -> None:
        """Write what a run says of itself, all of it or nothing."""
        with _named(self):
            folder = self._of(key)
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            draft = folder / f"{uuid.uuid4().hex}.draft"
            file = os.open(draft, _NEW | _NO_LINK, 0o600)
            try:
                os.write(file, text.encode())
                os.fsync(file)
            finally:
                os.close(file)
            draft.replace(folder / FACTS)
            for each in (folder, folder.parent, self.path):
                _sync_folder(each)

    def parts(self, key: str) -> list[tuple[str, bytes]]:
        """Read the files of all writers of a run, by name."""
        folder = self._of(key)
        if not folder.is_dir():
            return []
        for each in (folder.parent, folder):
            _check_owner(each, private=False)
        with _named(self):
            return [(str(each), _read(each)) for each in sorted(folder.glob(f"*{PART}"))]

    def writer(self, key: str) -> FileWriter:
        """Open a file of one's own in a run."""
        with _named(self):
            return FileWriter(self._of(key))

    def measure(self, key: str) -> tuple[int, float]:
        """Bytes of a run, and when something was last written to it, in seconds since 1970."""
        found = []
        for each in self._of(key).iterdir():
            with suppress(FileNotFoundError):  # a draft, which got its name meanwhile
                found.append(each.stat())
        size = sum(each.st_size for each in found)
        return size, max((each.st_mtime for each in found), default=0.0)

    def remove(self, key: str) -> None:
        """Remove a run."""
        with _named(self):
            shutil.rmtree(self._of(key))
            with suppress(OSError):  # another run of the same beginning
                self._of(key).parent.rmdir()

    def _of(self, key: str) -> Path:
        return self.path / key[:2] / key


@contextmanager
def _named(folder: Folder) -> Iterator[None]:
    """Say which folder it was that the system refused."""
    try:
        yield
    except OSError as cause:
        raise ParameterError(
            f"the folder {folder} cannot be read or written: "
            f"{cause.strerror or 'the system refused'}",
            parameter="keep",
        ) from None


def _read(path: Path) -> bytes:
    """Read a plain file; a link may lead to what somebody else writes."""
    try:
        file = os.open(path, _SEEN | _NO_LINK)
    except OSError:
        if path.is_symlink():
            raise DamagedRun(f"{plain_path(path)} is a link, where a file was kept") from None
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise DamagedRun(f"{plain_path(path)} is no plain file")
    with os.fdopen(file, "rb") as stream:
        return stream.read()


def _check_owner(path: Path, *, private: bool) -> None:
    """Refuse a folder that others may write into, or read where what is kept is private."""
    if os.name != "posix":
        return
    found, shown = path.stat(), plain_path(path)
    if found.st_uid not in (os.geteuid(), 0):
        raise ParameterError(
            f"the folder {shown} belongs to somebody else, who could write movements into it: a "
            "forged movement makes a wrong sensitivity. Keep runs in a folder of your own",
            parameter="keep",
        )
    if found.st_mode & 0o022:
        raise ParameterError(
            f"others may write into the folder {shown}: a forged movement makes a wrong "
            f"sensitivity. Take that away (chmod go-w {shown}), or name another folder",
            parameter="keep",
        )
    if private and found.st_mode & 0o077:
        raise ParameterError(
            f"others may read the folder {shown}, and what is to be kept is private: take that "
            f"away (chmod 700 {shown}), or name another folder",
            parameter="keep",
        )


def _sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    if os.name == "posix":
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
