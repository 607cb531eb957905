"""What has to last is on the disk before anybody goes on: the text of a file, and its name."""

import os
import stat

import pytest

from hushed.server import _disk, _functions, _mark, _moving, _restoring


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
    assert _mark.replace_text is _moving.replace_text is _disk.replace_text
    assert _functions.replace_file is _disk.replace_file
    assert _restoring.sync_folder is _disk.sync_folder
    for module in (_functions, _mark, _moving):
        assert not hasattr(module, "os")
