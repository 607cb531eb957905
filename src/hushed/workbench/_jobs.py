"""Long work: commands of hushed in processes of their own, which outlive a page and the server.

A job is a command line. What it prints is kept in its folder, and so are the trials that it has
finished: a job that was cut short goes on where it was, whoever starts it again.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from hushed.errors import NotFound, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

Status = Literal["running", "done", "failed", "stopped", "interrupted"]

_ID = re.compile("[0-9a-f]{32}")
_STARTS = threading.Lock()
_PATIENCE = 10.0  # seconds that a stopped job may take to put its things in order
_MOST_NOTES, _LONGEST_NOTE = 5, 2**16
KEPT = "@kept@"  # stands for the folder of the trials in a command
CERTIFICATE = "@certificate@"  # stands for the file of its certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command, as it was asked for.

    Parameters
    ----------
    id : str
        32 hexadecimal digits; the same one is never run twice at once.
    kind : str
        What it does, such as ``"sensitivity"``.
    draft : str
        The draft that it belongs to.
    words : tuple of str
        Arguments of the command ``hushed``; `KEPT` stands for the folder of the trials, and
        `CERTIFICATE` for a file of the job.
    made : str
        When it was asked for first: date and time in UTC.
    kept : str
        Job whose trials it goes on with; its own where empty.
    """

    id: str
    kind: str
    draft: str
    words: tuple[str, ...]
    made: str
    kept: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """How far a job is.

    Parameters
    ----------
    job : Job
        What was asked for.
    status : {"running", "done", "failed", "stopped", "interrupted"}
        ``"interrupted"`` is one whose process is gone without a word.
    seconds : float
        How long it has run, the last time that it was started.
    result : dict
        What the command printed; empty until it is done.
    problem : str
        Why it failed, in the words of the command.
    notes : tuple of str
        The last remarks of the command.
    """

    job: Job
    status: Status
    seconds: float
    result: dict[str, Any]
    problem: str
    notes: tuple[str, ...]


def new_job(
    kind: str, draft: str, words: Sequence[str], *, identity: str = "", kept: str = ""
) -> Job:
    """Describe a job; one that pays is given an id that follows from what is paid for."""
    made = datetime.now(UTC).isoformat(timespec="microseconds")  # two within a second have an order
    known = identity or uuid.uuid4().hex
    return Job(id=known, kind=kind, draft=draft, words=tuple(words), made=made, kept=kept)


def start_job(
    home: Path, workspace: Path, job: Job, *, secret: Mapping[str, str] | None = None
) -> JobState:
    """Start a job, unless it runs, or has come to an end of its own.

    ``home`` is where jobs are kept; the command runs in the ``workspace``. A password is
    ``secret``: it is part of the environment, and never written down.
    """
    folder = _of(home, job.id)
    with _STARTS:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (folder / "job.json").exists():
            job = _read_job(folder)
            if read_job(home, job.id).status in ("running", "done", "failed"):
                return read_job(home, job.id)
        else:
            _write(folder / "job.json", json.dumps(asdict(job)))
        _spawn(home, folder, workspace, job, secret or {})
    return read_job(home, job.id)


def _spawn(home: Path, folder: Path, workspace: Path, job: Job, secret: Mapping[str, str]) -> None:
    """Run the command; its process holds the lock of the folder for as long as it lives."""
    places = {KEPT: folder_of_trials(home, job), CERTIFICATE: name_certificate(home, job)}
    (folder / "stopped").unlink(missing_ok=True)
    words = [str(places.get(each, each)) for each in job.words]
    with _hold_lock(folder) as lock, _new(folder / "notes") as notes, _new(folder / "out") as out:
        process = subprocess.Popen(  # noqa: S603 - our own command, without a shell
            [sys.executable, "-m", "hushed", *words],
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=notes,
            env={**os.environ, **secret, "NO_COLOR": "1", "COLUMNS": "200", "TERM": "dumb"},
            pass_fds=() if lock is None else (lock,),
            start_new_session=True,
        )
    _write(folder / "process", json.dumps({"pid": process.pid, "begun": time.time()}))
    threading.Thread(target=process.wait, daemon=True).start()  # so that none stays as a zombie


def read_job(home: Path, identity: str) -> JobState:
    """Read how far a job is, whichever server started it."""
    folder = _of(home, identity)
    if not (folder / "job.json").is_file():
        raise NotFound("there is no such work here; it may have been removed")
    job, begun = _read_job(folder), _read_json(folder / "process").get("begun", 0.0)
    running = _is_locked(folder)
    printed = {} if running else _read_json(folder / "out")
    ended = time.time() if running else _measure_end(folder)
    status, problem = _judge(printed, running=running)
    if status == "interrupted" and (folder / "stopped").exists():
        status = "stopped"  # before it could say so
    return JobState(
        job=job,
        status=status,
        seconds=max(0.0, ended - begun) if begun else 0.0,
        result=printed if status == "done" else {},
        problem=problem,
        notes=_read_notes(folder),
    )


def _judge(printed: dict[str, Any], *, running: bool) -> tuple[Status, str]:
    if running:
        return "running", ""
    error = printed.get("error")
    if isinstance(error, dict):
        kind, words = error.get("kind"), str(error.get("message", ""))
        if kind == "unforeseen":
            words = (
                f"{error.get('type')} {error.get('place')}: not foreseen, please report it; its "
                "message is withheld, for it may quote rows"
            )
        return ("stopped" if kind == "stopped" else "failed"), words
    return ("done", "") if printed else ("interrupted", "")


def list_jobs(home: Path, draft: str | None = None) -> list[JobState]:
    """List jobs, those of one draft or all, the last one first."""
    folders = sorted(home.glob("*/job.json")) if home.is_dir() else []
    found = []
    for each in folders:
        with suppress(NotFound):  # damaged: the others stay usable
            if _ID.fullmatch(each.parent.name):
                found.append(read_job(home, each.parent.name))
    chosen = [each for each in found if draft is None or each.job.draft == draft]
    return sorted(chosen, key=lambda each: (each.job.made, each.job.id), reverse=True)


def stop_job(home: Path, identity: str) -> JobState:
    """Stop a job as Ctrl-C does; one that does not listen is killed. What it kept stays."""
    folder = _of(home, identity)
    if _is_locked(folder):
        _write(folder / "stopped", "")
    for number, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, 1.0)):
        end = time.monotonic() + patience
        if _is_locked(folder):
            with suppress(ProcessLookupError, PermissionError, KeyError):
                pid = int(_read_json(folder / "process")["pid"])
                (os.kill if number == signal.SIGTERM else os.killpg)(pid, number)
        while _is_locked(folder) and time.monotonic() < end:
            time.sleep(0.05)
    return read_job(home, identity)


def stop_public_jobs(home: Path, draft: str | None = None) -> None:
    """Stop what runs, but for what has been or may be paid for: that comes to its end."""
    running = [each for each in list_jobs(home, draft) if each.status == "running"]
    for each in running:
        if not is_paid(each.job):
            stop_job(home, each.job.id)


def is_paid(job: Job) -> bool:
    """Whether a job may charge a budget."""
    return "--ledger" in job.words


def folder_of_trials(home: Path, job: Job) -> Path:
    """Name the folder in which a job keeps its trials."""
    return _of(home, job.kept or job.id) / "kept"


def name_certificate(home: Path, job: Job) -> Path:
    """Name the file to which a job writes its certificate."""
    return _of(home, job.id) / "certificate.json"


def _of(home: Path, identity: str) -> Path:
    if not _ID.fullmatch(identity):
        raise ParameterError("work is named by 32 hexadecimal digits")
    return home / identity


def _read_job(folder: Path) -> Job:
    told = _read_json(folder / "job.json")
    try:
        return Job(**{**told, "words": tuple(told["words"])})
    except (KeyError, TypeError):
        raise NotFound(
            f"the record of this work, {folder / 'job.json'}, is damaged; look at the ledger "
            "whether it was paid for"
        ) from None


def _read_json(path: Path) -> dict[str, Any]:
    """Read an object; nothing where there is none, or half of one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_notes(folder: Path) -> tuple[str, ...]:
    """Read the last remarks; those before it may be many."""
    try:
        with (folder / "notes").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_NOTE))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(line for line in text.splitlines() if line.strip())[-_MOST_NOTES:]


def _measure_end(folder: Path) -> float:
    """Find when a process wrote something for the last time."""
    times = [0.0]
    for name in ("out", "notes"):
        with suppress(OSError):
            times.append((folder / name).stat().st_mtime)
    return max(times)


def _write(path: Path, text: str) -> None:
    """Write a file, all of it or nothing."""
    draft = path.with_suffix(f".{uuid.uuid4().hex}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _new(path: Path) -> IO[bytes]:
    """Open a file that nobody else may read, empty."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    return os.fdopen(file, "wb")


@contextmanager
def _hold_lock(folder: Path) -> Iterator[int | None]:
    """Lock a folder; who inherits the open file holds the lock, too, until the last one is gone."""
    if find_spec("fcntl") is None:
        raise ParameterError(
            "long work needs the file locks of Linux or macOS, which this system has not: use the "
            "command line here"
        )
    import fcntl  # noqa: PLC0415  (not on all systems)

    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for _ in range(100):
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)  # somebody only looks
        else:
            raise ParameterError("this work runs already")
        yield file
    finally:
        os.close(file)


def _is_locked(folder: Path) -> bool:
    """Whether a process of the job lives."""
    import fcntl  # noqa: PLC0415

    try:
        file = os.open(folder / "lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
