"""The registered functions of a server: what is public of each, and whether it may be asked.

The process that serves neither loads nor runs a function. What it tells of one was written down
when a person at the machine has registered it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError

from hushed.ledger import Ledger
from hushed.ledger._rows import run
from hushed.ledger._together import reading
from hushed.server._audit import add_event
from hushed.server._config import Name, Number, Settings
from hushed.server._disk import replace_file
from hushed.server._problems import Problem
from hushed.server._schema import fetch_one

if TYPE_CHECKING:
    from hushed.ledger._rows import Transaction

PLACE = "functions"  # folder of what is registered
_LARGEST = 1_000_000  # bytes of a record
Digest = Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{64}$")]
Noise = Literal["laplace", "gaussian"]


class Record(BaseModel):
    """What was written down of a function; no analyst sees the paths and digests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["hushed function 1"] = "hushed function 1"
    dataset: Name
    source: StrictStr  # FILE.py:NAME, from the folder of the server on
    code: Digest  # of that file
    sampled: Digest  # of the file of the sampled sensitivity
    columns: tuple[StrictStr, ...] = Field(min_length=1)  # what it is given, in this order
    block_rows: int | None = None
    noise: Noise = "laplace"
    min_epsilon: Annotated[Number, Field(ge=0)] = 0.0
    max_epsilon: Annotated[Number, Field(gt=0)] | None = None
    answer_grid: Annotated[Number, Field(ge=0, le=3600)] = 10.0  # its time may depend on the rows
    says: Annotated[StrictStr, Field(max_length=500)] = ""  # what it answers
    numbers: Annotated[int, Field(ge=1)]  # of an answer
    neighbours: StrictStr
    unit: StrictStr
    protect: StrictStr
    gamma: Annotated[Number, Field(ge=0, lt=1)]
    population: StrictStr  # in words
    words: StrictStr  # how far it moves, and how that is known
    outsider: StrictStr  # what an outsider could learn, at the largest epsilon
    # What older versions did not write down.
    estimates: tuple[tuple[StrictStr, Number], ...] | None = None  # behind gamma
    rows: tuple[int, ...] | None = None  # rows, or people, of the tables that the promise is for

    def digest(self) -> str:
        """Digest all of it, so that a change of the file is noticed."""
        older = {name for name in ("estimates", "rows") if getattr(self, name) is None}
        return hashlib.sha256(self.model_dump_json(exclude=older).encode()).hexdigest()

    def say_rows(self) -> str:
        """Say for which tables the promise is; empty where that was not written down."""
        if not self.rows:
            return ""
        kind = "people" if self.unit == "user" else "rows"
        return f"a table of {' or '.join(map(str, self.rows))} {kind}, or of one more or less"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function that can be asked, or the reason why not."""

    id: str
    folder: Path = field(repr=False)  # of the server
    record: Record | None  # none if its file cannot be read
    stale: str = ""  # why nobody may ask; for the log and the steward

    @property
    def dataset(self) -> str:
        """The data set that it belongs to; empty if that is not known."""
        return "" if self.record is None else self.record.dataset

    def require_record(self) -> Record:
        """Give the record of one that may be asked."""
        if self.record is None:
            raise KeyError(self.id)
        return self.record

    def told(self) -> dict[str, Any]:
        """Write down for a process where the function is, and what it must look like."""
        record = self.require_record()
        return {
            "source": str(self.folder / record.source),
            "code": record.code,
            "sampled": str(sampled_file(self.folder, self.id)),
            "digest": record.sampled,
            "columns": list(record.columns),
            "block_rows": record.block_rows,
            "noise": record.noise,
        }


def require_function(functions: Mapping[str, Function], name: str) -> Function:
    """Find a function that may be asked; its files are looked at again."""
    found = functions.get(name)
    if found is None:
        raise Problem("not_found")
    if found.stale or found.record is None or is_changed(found.folder, name, found.record):
        raise Problem("function_changed")
    return found


def check_function(function: Function, epsilon: float) -> None:
    """Refuse a price outside of what the steward allows for a function."""
    record = function.require_record()
    if epsilon < record.min_epsilon:
        raise Problem("bad_value", f"it is released for epsilon {record.min_epsilon!r} or more")
    if record.max_epsilon is not None and epsilon > record.max_epsilon:
        raise Problem("bad_value", f"it is released for epsilon {record.max_epsilon!r} at most")


def record_file(folder: Path, name: str) -> Path:
    """Give the file of a record."""
    return folder / PLACE / f"{name}.json"


def sampled_file(folder: Path, name: str) -> Path:
    """Give the file of a sampled sensitivity."""
    return folder / PLACE / f"{name}.sampled"


def digest_file(path: str | Path) -> str:
    """Digest a file; empty if it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _digest_once(path: Path) -> str:
    """Digest a file that was not written since it was digested last.

    A process digests it again before it loads it.
    """
    try:
        found = path.stat()
    except OSError:
        return ""
    return _digest_seen(path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


@lru_cache(maxsize=1000)
def _digest_seen(path: Path, state: tuple[int, ...]) -> str:  # noqa: ARG001
    return digest_file(path)


def write_private(path: Path, content: bytes) -> None:
    """Put a file in place that nobody else reads: all of it, or nothing."""
    replace_file(path, content)


def register_function(connection: Transaction, name: str, record: Record, actor: str) -> None:
    """Write down that a function was registered as it is, so that a change is noticed."""
    run(
        connection,
        "INSERT INTO @.hushed_s_state VALUES (:name, :digest) "
        "ON CONFLICT (name) DO UPDATE SET value = :digest",
        {"name": f"function {name}", "digest": record.digest()},
    )
    add_event(connection, actor=actor, action="registered a function", about=name)


def forget_function(connection: Transaction, name: str, actor: str) -> None:
    """Write down that a function was taken away."""
    name_kept = {"name": f"function {name}"}
    run(connection, "DELETE FROM @.hushed_s_state WHERE name = :name", name_kept)
    add_event(connection, actor=actor, action="took a function away", about=name)


def open_functions(folder: Path, settings: Settings, ledger: Ledger) -> dict[str, Function]:
    """Open every function; one that is not as it was registered is there, and cannot be asked."""
    place = folder / PLACE
    names = sorted(each.stem for each in place.glob("*.json")) if place.is_dir() else []
    return {name: _open(folder, name, settings, ledger) for name in names}


def _open(folder: Path, name: str, settings: Settings, ledger: Ledger) -> Function:
    again = f": register it again with hushed serve add-function {name} --replace"
    try:
        content = record_file(folder, name).read_bytes()[: _LARGEST + 1]
        record = Record.model_validate_json(content)
    except (OSError, ValidationError):
        return Function(id=name, folder=folder, record=None, stale=f"its record is damaged{again}")
    with reading(ledger) as connection:
        statement = "SELECT value FROM @.hushed_s_state WHERE name = :name"
        known = fetch_one(connection, statement, name=f"function {name}")
    stale = ""
    if known is None or known["value"] != record.digest():
        stale = f"its record is not the one that was registered{again}"
    elif record.dataset not in settings.dataset:
        stale = f"there is no data set {record.dataset!r}"
    elif is_changed(folder, name, record):
        stale = f"its file, or what was sampled, was changed{again}"
    return Function(id=name, folder=folder, record=record, stale=stale)


def is_changed(folder: Path, name: str, record: Record) -> bool:
    """Whether the files of a function are not those that were registered."""
    found = record.source.rpartition(":")[0]
    code, sampled = _digest_once(folder / found), _digest_once(sampled_file(folder, name))
    return (code, sampled) != (record.code, record.sampled)
