"""What was asked and not read yet, in files of the user: written before anything is sent."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushed.errors import KeyInUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A request whose answer was not read yet."""

    key: str
    dataset: str
    body: dict[str, Any]
    function: str = ""  # in place of a question to the data set
    unseen: bool = False  # it was refused when it was sent last, and not charged then

    @property
    def path(self) -> str:
        """Where it is sent."""
        if self.function:
            return f"/v1/functions/{self.function}/requests"
        return f"/v1/datasets/{self.dataset}/requests"


def pending_folder(url: str, who: str) -> Path:
    """Give the folder for one server and one person."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    name = hashlib.sha256(f"{url}\n{who}".encode()).hexdigest()[:32]
    return Path(base) / "hushed" / "pending" / name


def write_pending(folder: Path, pending: Pending) -> None:
    """Write down a request; on the disk when this returns."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = _file(folder, pending.key)
    told: dict[str, Any] = {"key": pending.key, "dataset": pending.dataset, "body": pending.body}
    told |= {"function": pending.function} if pending.function else {}
    if path.exists() and _asked(json.loads(path.read_text())) != _asked(told):
        raise KeyInUse(
            "this key belongs to another question of yours, whose answer was not read yet: "
            "client.recover() reads it; take another key"
        )
    told |= {"unseen": True} if pending.unseen else {}
    fresh = path.with_suffix(f".{uuid.uuid4()}")  # threads may write the same request
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(told, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def list_pending(folder: Path) -> list[Pending]:
    """List what was not read yet."""
    if not folder.is_dir():
        return []
    return [Pending(**json.loads(each.read_text())) for each in sorted(folder.glob("*.json"))]


def forget_pending(folder: Path, key: str) -> None:
    """Forget a request: its answer was read, or nothing was charged."""
    _file(folder, key).unlink(missing_ok=True)


def _asked(told: dict[str, Any]) -> dict[str, Any]:
    """Give what is asked, whatever its note, and whether it was refused or not."""
    return told | {"body": told["body"] | {"note": ""}, "unseen": False}


def _file(folder: Path, key: str) -> Path:
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
