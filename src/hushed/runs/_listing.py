"""Which runs are kept, and how to get rid of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike

from hushed._ground.calls import called_as
from hushed._ground.notebook import Shown
from hushed._ground.printing import brief, flat
from hushed.errors import NotFound
from hushed.runs._journal import Keep, open_place, read_facts, read_keep, read_parts

_SHORTEST = 8


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KeptRun(Shown):
    """One run that is kept.

    Parameters
    ----------
    key : str
        Its name: the digest of all that decides its results.
    name : str
        What was run.
    kept, trials : int
        Trials that are kept, and how many were asked for.
    size : int
        Bytes that it takes.
    begun : str
        When it began: date and time in UTC; empty if unknown.
    written : str
        When something was last added to it; empty if the store does not say.
    unreadable : int
        Bytes that belong to no whole record: what a killed process left, or damage.
    """

    key: str
    name: str
    kept: int
    trials: int
    size: int
    begun: str
    written: str
    unreadable: int

    @property
    def done(self) -> bool:
        """Whether all trials that were asked for are kept."""
        return self.kept >= self.trials > 0

    def __str__(self) -> str:
        return f"{flat(self.name)}: {self.kept} of {self.trials} trials kept, {self.size} bytes"


@called_as('hs.runs.list_runs("runs")')
def list_runs(keep: str | PathLike[str] | Keep) -> list[KeptRun]:
    """List the runs that are kept somewhere.

    Parameters
    ----------
    keep : str, path or Keep
        What was given as ``keep`` to the functions that ran.

    Returns
    -------
    list of KeptRun
        The one that was written to last comes first.
    """
    place = open_place(read_keep(keep))
    found = []
    for key in place.list_keys():
        records, unreadable = read_parts(place, key)
        told = read_facts(place, key) or {"name": "?", "trials": 0, "begun": ""}
        size, written = place.measure(key)
        kept = upto = 0
        for each in records:
            kept += max(0, each.stop - max(upto, each.first))
            upto = max(upto, each.stop)
        found.append(
            KeptRun(
                key=key,
                name=told["name"],
                kept=kept,
                trials=told["trials"],
                size=size,
                begun=told["begun"],
                written=_date(written),
                unreadable=unreadable,
            )
        )
    return sorted(found, key=lambda each: each.written, reverse=True)


@called_as('hs.runs.remove_runs("runs")')
def remove_runs(keep: str | PathLike[str] | Keep, keys: Iterable[str] | None = None) -> list[str]:
    """Remove runs; nothing is removed by itself, ever.

    Parameters
    ----------
    keep : str, path or Keep
        Where they are kept.
    keys : iterable of str, optional
        Their keys, or the first eight letters of them or more; by default all runs.

    Returns
    -------
    list of str
        Keys of the runs that were removed.

    Raises
    ------
    NotFound
        If a key names no run or several; then nothing is removed.
    """
    place = open_place(read_keep(keep))
    known = place.list_keys()
    chosen = known if keys is None else [_find(key, known) for key in keys]
    for key in dict.fromkeys(chosen):
        place.remove(key)
    return list(dict.fromkeys(chosen))


def _find(key: str, known: list[str]) -> str:
    found = [each for each in known if each.startswith(key)] if len(key) >= _SHORTEST else []
    if len(found) != 1:
        raise NotFound(
            f"{brief(key)} names {len(found) or 'no'} run{'s' * (len(found) != 1)} there: give the "
            f"first {_SHORTEST} letters of a key, or more"
        )
    return found[0]


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else ""
