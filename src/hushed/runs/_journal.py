"""The journal of one run: what is kept of it, and what is added as trials are finished."""

from __future__ import annotations

import hashlib
import json
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from hushed._ground.calls import called_as
from hushed._ground.printing import KeptNote, as_given, flat
from hushed._ground.types import Floats
from hushed.errors import DamagedRun, HushedWarning, ParameterError
from hushed.runs._folders import Folder
from hushed.runs._records import Record, read_records, write_record
from hushed.runs._stores import open_store

FORMAT = 1
_MOST_TRIALS = 2**53


@called_as('hs.runs.Keep("runs")')
@dataclass(frozen=True, slots=True)
class Keep:
    """Where finished trials of long runs are kept.

    Parameters
    ----------
    path : str or path
        A folder, which is made if it is not there, or the address of an object store such as
        ``"s3://bucket/runs"`` (the extra ``s3``).
    private : bool, default False
        Keep what is private, too: the movements of a population that was made from the private
        rows. The folder must then be one that nobody else may read.
    purpose : str, default ""
        Runs that were kept for another purpose are not used.

    Raises
    ------
    ParameterError
        If the path is none.
    """

    path: str | PathLike[str]
    private: bool = False
    purpose: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | PathLike) or not str(fspath(self.path)).strip():
            raise ParameterError(
                f"keep must be a folder or the address of a store, got {as_given(self.path)}",
                parameter="keep",
            )


class Place(Protocol):
    """A folder or a store in which runs are kept."""

    def prepare(self, *, private: bool) -> None: ...
    def list_keys(self) -> list[str]: ...
    def read_facts(self, key: str) -> str | None: ...
    def write_facts(self, key: str, text: str) -> None: ...
    def parts(self, key: str) -> list[tuple[str, bytes]]: ...
    def writer(self, key: str) -> Writer: ...
    def measure(self, key: str) -> tuple[int, float]: ...
    def remove(self, key: str) -> None: ...


class Writer(Protocol):
    """What one process adds to a run."""

    @property
    def kept(self) -> int: ...  # trials that have come to where they are kept
    def append(self, record: bytes, trials: int) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What tells one run from another, and what its results look like.

    Parameters
    ----------
    facts : dict
        All that decides the results of a trial, in plain values; the key is its digest.
    name : str
        What to call it in a list.
    trials : int
        Trials that are wanted now.
    shape : tuple of int or None
        Shape of the results of one trial; None if only that it is the same for all is known.
    private : bool
        Whether they are private.
    check : callable, optional
        Tells whether results are possible ones.
    other_bits : bool
        Whether some trials may have run where numbers are rounded otherwise: a run of its own.
    """

    facts: Mapping[str, Any]
    name: str
    trials: int
    shape: tuple[int, ...] | None
    private: bool = False
    check: Callable[[Floats], bool] = field(default=lambda _: True)
    other_bits: bool = False

    @property
    def key(self) -> str:
        """Name of the run, by what decides its results."""
        text = json.dumps([FORMAT, dict(self.facts)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class Journal:
    """What is kept of one run; give it to `run_trials`, and close it, whatever happens."""

    def __init__(self, place: Place, run: Run) -> None:
        self.run, self._place = run, place
        self._pieces = _read_pieces(place, run)
        self._stopped = ""
        self._closed = False
        self._writer: Writer | None = None
        if self.count() < run.trials:
            write_facts(place, run)
            self._writer = place.writer(run.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, cause: BaseException | None, __: TracebackType | None
    ) -> None:
        self.close()
        if cause is not None:
            cause.add_note(KeptNote(self.explain()))

    def count(self) -> int:
        """Count the wanted trials that were kept when the run began."""
        stop = self.run.trials
        return sum(max(0, min(each.stop, stop) - each.first) for each in self._pieces)

    def describe_kept(self) -> str:
        """Say how many trials need not be run; nothing if there are none."""
        kept = self.count()
        return f" (kept {kept:,} of {self.run.trials:,}, resuming)" if kept else ""

    def spans(self, first: int, stop: int) -> Iterator[tuple[int, Floats, str]]:
        """Give what was kept of the trials from ``first`` up to ``stop``, in order, each once."""
        for each in self._pieces:
            start, end = max(first, each.first), min(stop, each.stop)
            if start < end:
                yield start, each.values[start - each.first : end - each.first], each.note

    def add(self, first: int, values: Floats, note: str = "") -> None:
        """Keep the results of finished trials; a full disk ends the keeping, not the run."""
        if self._writer is None or self._closed or self._stopped or not self.run.check(values):
            return
        try:
            self._writer.append(write_record(first, values, note), len(values))
        except OSError as cause:
            self._stop(cause)

    def close(self) -> None:
        """Bring what was added to where it is kept."""
        if self._writer is None or self._closed:
            return
        self._closed = True
        try:
            self._writer.close()
        except OSError as cause:
            self._stop(cause)

    def explain(self) -> str:
        """Say what is kept, and how to go on; true once it is closed, for that writes, too."""
        added = self._writer.kept if self._writer is not None else 0
        kept = min(self.count() + added, self.run.trials)
        text = (
            f"{kept:,} of {self.run.trials:,} trials are kept in {self._place}; the same call goes "
            "on from there"
        )
        return f"{text}. {self._stopped}" if self._stopped else text

    def _stop(self, cause: OSError) -> None:
        if not self._stopped:
            self._stopped = (
                f"{self._place} took no more of it ({cause.strerror or cause}): the run goes on, "
                "and what it finds from now on is not kept"
            )
            warnings.warn(self._stopped, HushedWarning, stacklevel=2)


def open_journal(keep: str | PathLike[str] | Keep, run: Run) -> Journal:
    """Read what is kept of a run, and open it for what is to come."""
    place = check_place(keep, private=run.private)
    facts = {**run.facts, "purpose": read_keep(keep).purpose}
    if run.other_bits:
        facts["other bits"] = "noted"
    return Journal(place, replace(run, facts=facts))


def check_place(keep: str | PathLike[str] | Keep, *, private: bool) -> Place:
    """Find the place where runs are kept, and make it ready; refuse one that is not fit."""
    asked = read_keep(keep)
    if private and not asked.private:
        raise ParameterError(
            "what would be kept is as private as the rows that the population was made from, so "
            "that nobody else may read the folder",
            parameter="keep",
            hint="say keep=hs.runs.Keep(FOLDER, private=True)",
        )
    place = open_place(asked)
    place.prepare(private=private)
    return place


def read_keep(keep: str | PathLike[str] | Keep) -> Keep:
    """Read where to keep runs."""
    return keep if isinstance(keep, Keep) else Keep(keep)


def open_place(keep: Keep) -> Place:
    """Find the folder or the store."""
    path = fspath(keep.path)
    if "://" in path and not path.startswith("file://"):
        return open_store(path)
    try:
        folder = Path(path.removeprefix("file://")).expanduser().absolute()
    except RuntimeError:  # nobody of that name
        raise ParameterError(
            f"keep={path!r} names the home folder of a user whom this computer does not know",
            parameter="keep",
        ) from None
    if folder.is_file():
        raise ParameterError(f"{folder.name} is no folder, and runs are kept in one")
    return Folder(folder)


def write_facts(place: Place, run: Run) -> None:
    """Write what a run is, unless it stands there; for most trials that anyone asked for."""
    known = read_facts(place, run.key)
    if known is not None and known["trials"] >= run.trials:
        return
    begun = known["begun"] if known else datetime.now(UTC).isoformat(timespec="seconds")
    told = {
        "format": FORMAT,
        "name": run.name,
        "trials": run.trials,
        "begun": begun,
        "private": run.private,
        "facts": dict(run.facts),
    }
    place.write_facts(run.key, json.dumps(told, indent=1, sort_keys=True) + "\n")


def read_facts(place: Place, key: str) -> dict[str, Any] | None:
    """Read what a run says of itself; None if it says nothing that can be read."""
    try:
        told = json.loads(place.read_facts(key) or "")
        plain = {"name": flat(told["name"]), "trials": max(0, int(told["trials"]))}
        return plain | {"begun": flat(told["begun"]), "facts": told["facts"]}
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def read_parts(place: Place, key: str) -> tuple[list[Record], int]:
    """Read all records of a run, in order of their trials; and count the bytes of no record."""
    found: list[Record] = []
    lost = 0
    for name, content in place.parts(key):
        records, unread = read_records(content, name)
        found += records
        lost += unread
    return sorted(found, key=attrgetter("first", "stop")), lost


def _read_pieces(place: Place, run: Run) -> list[Record]:
    """Read what is kept, each trial once; refuse what contradicts itself or cannot be."""
    pieces: list[Record] = []
    shape = run.shape
    for each in read_parts(place, run.key)[0]:
        shape = each.values.shape[1:] if shape is None else shape
        if each.values.shape[1:] != shape or each.stop > _MOST_TRIALS:
            raise DamagedRun(
                f"{each.file} holds results of another shape for trials {each.first} to "
                f"{each.stop - 1} than a trial has: {_ADVICE}"
            )
        if not run.check(each.values):
            raise DamagedRun(
                f"{each.file} holds results that no trial can have, in trials {each.first} to "
                f"{each.stop - 1}: {_ADVICE}"
            )
        _check_overlap(pieces, each, other_bits=run.other_bits)
        upto = pieces[-1].stop if pieces else 0
        new = max(0, upto - each.first)
        if new < len(each.values):
            pieces.append(replace(each, first=each.first + new, values=each.values[new:]))
    return pieces


def _check_overlap(pieces: list[Record], new: Record, *, other_bits: bool) -> None:
    """Refuse a record that says something else than those before it of the same trials.

    Where other bits are allowed, what ran in different places is not compared.
    """
    begin = max(0, bisect_right(pieces, new.first, key=attrgetter("first")) - 1)
    for each in pieces[begin : bisect_left(pieces, new.stop, key=attrgetter("first"))]:
        first, stop = max(each.first, new.first), min(each.stop, new.stop)
        ours = each.values[first - each.first : stop - each.first]
        theirs = new.values[first - new.first : stop - new.first]
        if other_bits and each.note != new.note:
            continue
        if first < stop and ours.tobytes() != theirs.tobytes():
            differ = np.flatnonzero(
                [a.tobytes() != b.tobytes() for a, b in zip(ours, theirs, strict=True)]
            )
            raise DamagedRun(
                f"{each.file} and {new.file} hold different results for trial "
                f"{first + int(differ[0])}: {_ADVICE}"
            )


_ADVICE = "remove the run (hushed runs remove) and let it be made again"
