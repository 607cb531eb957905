"""Whether an answer depends on what the function was asked before, and what that hides."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hushed._functions._anew import call_anew
from hushed._functions._calls import answer
from hushed._functions._environment import compute_alone, rounding_limit
from hushed._functions._streams import streams
from hushed._functions._trials import seed_from
from hushed._ground.types import Floats
from hushed._rows._owned import copy_rows
from hushed.errors import BadFunction, HushedError
from hushed.sensitivity._canary import Alike
from hushed.sensitivity._pairs import BlockTrial, Function, PairTrial

_SMALL = 1e-6  # share of the sampled sensitivity that it may move an answer by
_REMEMBERED_TRIALS = 8
_MOST_CALLS = 20_000  # whose tables are all kept for a while
_ASKED_ANEW = 16
_TO_START, _TIMES = 120.0, 20  # seconds for a new process, and times as long as the same took here


@dataclass(frozen=True, slots=True)
class _Apart:
    """A function that is asked of tables in memory of their own, with other tables between."""

    function: Function
    between: Any
    kept: list[Any] = field(default_factory=list)  # so that no place in memory is used twice

    def __call__(self, rows: Any) -> Any:
        between, apart = copy_rows(self.between), _move(rows)
        self.kept.extend((between, apart))
        self.function(between)
        return self.function(apart)


def _move(rows: Any) -> Any:
    """Copy a table as it lies: a part of a larger array stays one, for that may decide rounding."""
    if not isinstance(rows, np.ndarray) or rows.dtype.hasobject:
        return copy_rows(rows)
    whole = rows if rows.base is None else rows.base
    start = rows.ctypes.data - whole.ctypes.data
    moved = np.ndarray(rows.shape, rows.dtype, whole.copy(), start, rows.strides)
    moved.flags.writeable = rows.flags.writeable
    return moved


def check_memory(
    trial: PairTrial | BlockTrial, found: Floats, between: Any, value: float, *, seed: int
) -> None:
    """Refuse a function whose answer depends on what it was asked before.

    Neighbours are asked one after the other, and may lie in the same place of memory: what starts
    from its last answer, or gives that again for a table in the same place, hides how far it
    moves. Let pass is rounding that is small against the sensitivity: some libraries add up in an
    order that follows from where a table lies.
    """
    count = max(1, min(_REMEMBERED_TRIALS, len(found), _MOST_CALLS // trial.reach.count_calls()))
    apart = replace(trial, function=_Apart(trial.function, between))
    again = compute_alone(lambda: apart(streams(seed, 0, count)))
    largest = float(np.abs(found[..., 1]).max())
    allowed = min(rounding_limit(largest, trial.shape, "l1"), _SMALL * value)
    with np.errstate(invalid="ignore"):
        moved = np.where(again == found[:count], 0.0, np.abs(again - found[:count]))
    if not moved.max() <= allowed:
        raise BadFunction(
            "the function's answer depends on what it was asked before, or on where a table lies: "
            "neighbours are asked one after the other, in one place. Let it keep nothing of its "
            "rows, and start from the same state"
        )


@dataclass(frozen=True, slots=True)
class _Noted:
    """A function whose questions and answers are noted."""

    function: Function
    private: bool
    names: tuple[str, ...] = ()
    asked: list[tuple[Any, Floats]] = field(default_factory=list)

    def __call__(self, rows: Any) -> Any:
        given = copy_rows(rows)
        found = answer(self.function, rows, private=self.private, names=self.names)
        self.asked.append((given, found))
        return found


def check_anew(
    trial: PairTrial | BlockTrial,
    packed: bytes | None,
    alike: Alike,
    value: float,
) -> bool:
    """Refuse a function that keeps something, if neighbours alone get other answers than here.

    What keeps answers under a part of the rows that neighbours have in common hides how far it
    moves. In a new process, where it is loaded from what it was before it was sampled, it is asked
    of one neighbour of each pair, and never of the other. The pairs are new ones: of others it may
    have kept answers since an earlier sampling.

    Returns whether it was tried: it is not where the function cannot be loaded, is another one
    there, fails, or gives no answer, and the record of the sampling then says so.
    """
    begun = time.perf_counter()
    try:
        fresh, seed = _make_fresh(trial), seed_from(None)
        asked = [_ask_neighbour(fresh, number, seed) for number in range(_ASKED_ANEW)]
    except HushedError:
        return False
    plain = replace(trial, function=_Noted(len, trial.private))  # its own is in the pickle
    tables = [rows for rows, _ in asked]
    if packed is None:
        return False
    seconds = _TO_START + _TIMES * (time.perf_counter() - begun)
    found = call_anew(_answer_anew, packed, plain, alike, tables, seconds=seconds)
    if found is None:
        return False
    largest = max(float(np.abs(each).max()) for _, each in asked)
    allowed = min(rounding_limit(largest, trial.shape, "l1"), _SMALL * value)
    for (_, here), there in zip(asked, found, strict=True):
        if here.shape != there.shape or not float(np.abs(here - there).max()) <= allowed:
            raise BadFunction(
                "the function's answer depends on what it was asked before: in a new process, "
                "where it was not asked of the neighbour, it gives another one. Let it keep "
                "nothing of its rows, or all of them as the key"
            )
    return True


def stir(trial: PairTrial | BlockTrial) -> None:
    """Ask a pair that surely was never asked before, so that what is kept can be seen to change."""
    with suppress(HushedError):
        _ask_neighbour(_make_fresh(trial), 0, seed_from(None))


def _make_fresh(trial: PairTrial | BlockTrial) -> PairTrial | BlockTrial:
    """Take one pair at a time, and of a public table any rows: those dealt were asked before."""
    design = trial.design
    if design.route in ("disjoint", "given-the-rest"):
        design = replace(design, route="resampled")
    return replace(trial, design=design, at_once=1)


def _ask_neighbour(trial: PairTrial | BlockTrial, number: int, seed: int) -> tuple[Any, Floats]:
    """Ask a pair as it was sampled; give a neighbour that was asked after the first table."""
    noted = _Noted(trial.function, trial.private, trial.names)
    apart = replace(trial, function=noted, names=())  # it answers arrays, and looks at names itself
    compute_alone(lambda: apart(streams(seed, number, number + 1)))
    others = noted.asked[1:]
    return others[number % len(others)]


def _answer_anew(
    packed: bytes, plain: PairTrial | BlockTrial, alike: Alike, tables: list[Any]
) -> list[Floats] | None:
    """Answer tables in a new process; None if the function is another one there."""
    import cloudpickle  # noqa: PLC0415

    trial = replace(plain, function=cloudpickle.loads(packed))
    if not alike(trial):
        return None

    def ask() -> list[Floats]:
        return [
            answer(trial.function, rows, private=trial.private, names=trial.names)
            for rows in tables
        ]

    return compute_alone(ask)
