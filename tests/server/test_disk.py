"""What has to last is on the disk before anybody goes on: the text of a file, and its name."""

import os
import resource
import signal
import stat
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.server.conftest import make_folder

from hushed.errors import LedgerUnavailable, NotFound
from hushed.server import (
    _alone,
    _disk,
    _functions,
    _mark,
    _moved,
    _registering,
    _restoring,
    _setup,
)


def test_a_text_is_replaced_whole_and_its_name_is_on_the_disk(tmp_path, monkeypatch):
    """The file is synchronised under its new name first, and its folder last."""
    synced = []
    sync = os.fsync

    def watch(number):
        synced.append(os.readlink(f"/proc/self/fd/{number}"))
        sync(number)

    path = tmp_path / "mark"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", watch)
    _disk.replace_text(path, "new")
    assert synced == [f"{path}.new", str(tmp_path)]
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_text_that_cannot_be_replaced_leaves_the_old_one(tmp_path, monkeypatch):
    """The disk is full when the new text is brought to it."""
    path = tmp_path / "mark"
    path.write_text("old")

    def fail(number):
        raise OSError(28, "no room")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no room"):
        _disk.replace_text(path, "new")
    assert path.read_text() == "old"


def test_mark_settings_and_restored_ledgers_use_the_same_two_functions():
    """A folder was once synchronised in two ways, and in a third place not at all."""
    assert _mark.replace_text is _moved.replace_text is _disk.replace_text
    assert _functions.replace_file is _disk.replace_file
    assert _restoring.sync_folder is _disk.sync_folder
    for module in (_functions, _mark, _moved):
        assert not hasattr(module, "os")


def test_nobody_else_may_lock_what_a_server_locks(tmp_path):
    """Whoever may read a file may lock it: a server did not start while somebody held its lock."""
    before = os.umask(0o022)
    try:
        old = tmp_path / "l.db.serving"
        old.write_text("")  # as older versions have made it
        with _alone.locked_file(tmp_path / "l.db"), _disk.one_by_one(tmp_path / "mark"):
            pass
    finally:
        os.umask(before)
    for name in (old.name, "mark.lock"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_what_the_administrator_writes_belongs_to_whoever_serves(tmp_path, monkeypatch):
    """After `sudo hushed serve rotate-key` the server could not read its own key.

    Nor, after `add-function`, the folder of its functions.
    """
    given = []
    owner = tmp_path.stat()
    monkeypatch.setattr(os, "chown", lambda _, *to: given.append(to))
    for user, handed in ((owner.st_uid + 1, 0), (0, 4)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        _disk.replace_text(tmp_path / "mark", "1")
        _disk.open_lock(tmp_path / "lock").close()
        _setup._write_new(tmp_path / f"{user}", b"", 0o600)
        _registering.make_private_folder(tmp_path / f"functions{user}")
        _registering.make_private_folder(tmp_path / f"functions{user}")
        assert given == [(owner.st_uid, owner.st_gid)] * handed


def test_what_a_link_leads_to_is_neither_given_away_nor_written(tmp_path, monkeypatch):
    """Whoever owns the folder could have had any file of the administrator's."""
    folder, other = tmp_path / "stats", tmp_path / "other"
    folder.mkdir()
    other.write_text("of root")
    other.chmod(0o644)
    for name in ("mark.lock", "l.db.serving", "mark.new"):
        (folder / name).symlink_to(other)
    os.link(other, folder / "hard.lock")
    given = []
    monkeypatch.setattr(os, "chown", lambda file, *_: given.append(os.fstat(file).st_ino))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(OSError, match="symbolic link"), _disk.one_by_one(folder / "mark"):
        pass
    refused = pytest.raises(
        LedgerUnavailable, match=r"lock l\.db\.serving beside the ledger cannot"
    )
    with refused, _alone.locked_file(folder / "l.db"):
        pass
    _disk.replace_text(folder / "mark", "1")
    _disk.open_lock(folder / "hard.lock").close()
    assert given == [(folder / "mark").stat().st_ino]
    assert other.read_text() == "of root"
    assert (folder / "mark").read_text() == "1"
    assert not (folder / "mark").is_symlink()


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_a_text_is_added_whole_or_not_at_all(tmp_path, monkeypatch, fails):
    """A disk that is full left half of a data set in the settings, and no server started."""
    path = tmp_path / "hushed.toml"
    path.write_text("old")
    _disk.append_text(path, " and new")
    assert path.read_text() == "old and new"

    def fail(number):
        raise OSError(28, "no room")

    if fails == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no room"):
            _disk.append_text(path, " and more")
    else:
        with files_of_at_most(15), pytest.raises(OSError, match="too large"):
            _disk.append_text(path, " and more")
    assert path.read_text() == "old and new"


@contextmanager
def files_of_at_most(size):
    """Let this process write no file beyond a size."""
    before, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.RLIMIT_FSIZE
    soft, hard = resource.getrlimit(limits)
    resource.setrlimit(limits, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(limits, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("name", ["hushed.toml", "server.key"])
def test_a_file_that_another_account_owns_is_named(tmp_path, monkeypatch, name):
    """As after a folder was copied by the administrator: the command said `Permission denied`."""
    make_folder(tmp_path)
    ways = Path.read_text, Path.read_bytes

    def refuse(way):
        def read(path, *rest, **more):
            if path.name == name:
                raise PermissionError(13, "Permission denied")
            return way(path, *rest, **more)

        return read

    for way in ways:
        monkeypatch.setattr(Path, way.__name__, refuse(way))
    with pytest.raises(NotFound, match=rf"{name}.* cannot be read \(Permission denied\)"):
        _setup.check_server(tmp_path / "stats")


@pytest.mark.parametrize(
    ("free", "said"), [(10**12, []), (10**8, ["nearly full"]), (1000, ["nearly full", "no room"])]
)
def test_a_check_tells_of_a_disk_without_room(tmp_path, monkeypatch, free, said):
    """It was noticed when nothing could be asked any more, or a backup failed."""
    make_folder(tmp_path)
    folder = tmp_path / "stats"
    usage = _disk.shutil.disk_usage(folder)
    monkeypatch.setattr(_disk.shutil, "disk_usage", lambda _: usage._replace(free=free))
    problems = _setup.check_server(folder).problems
    assert len(problems) == len(said)
    assert all(each in told for each, told in zip(said, problems, strict=True))
