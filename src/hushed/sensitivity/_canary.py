"""The canary: before private rows are touched, the function answers a sampled table once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._functions._calls import answer
from hushed._functions._environment import compute_alone, differences, facts, rounding_limit
from hushed._functions._fingerprints import (
    Look,
    content,
    list_changes,
    look,
    look_at_kinds,
    strangers,
)
from hushed._functions._settings import reset, settings
from hushed._functions._streams import streams
from hushed._rows._digest import digest
from hushed._rows._kinds import list_kinds
from hushed._rows._owned import copy_rows
from hushed._rows._people import show_rows
from hushed.errors import BadFunction, HushedError
from hushed.populations import OWN, Population, PublicTable
from hushed.sensitivity._designs import Design
from hushed.sensitivity._pairs import BlockTrial, PairTrial, draw_table

if TYPE_CHECKING:
    from hushed.sensitivity._record import Sampling


_SMALL = 1e-6  # of the sampled sensitivity: what rounding may add to a movement


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How well a function agrees with itself when it was sampled.

    Parameters
    ----------
    agreement : {"bits", "rounding"}
        Bit for bit, or within rounding in an environment that differs.
    differences : tuple of str
        What differs in the environment.
    """

    agreement: Literal["bits", "rounding"]
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Tells whether a function, loaded in a worker, is the one of the process that sent it there.

    Parameters
    ----------
    seed : int
        Seed of the sampler.
    batch : bool
        Whether the function takes stacked tables.
    marks : dict of str to str
        Digests of the code and the data that the function uses where it was sent from.
    settings : dict of str to str
        How Python and libraries are set there.
    answer : ndarray of float
        What it answered there on the first table.
    table : str
        Name of that table by its content.
    sources : dict of str to str
        Digests of what the population and an update of answers use, but for what changes by itself.
    packages : frozenset of str
        Installed packages that are used.
    texts : bool
        Whether rows hold what each process hashes in its own way, as texts.
    """

    seed: int
    batch: bool
    marks: dict[str, str]
    settings: dict[str, str]
    answer: NDArray[np.float64]
    table: str
    sources: dict[str, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()
    texts: bool = False

    def __call__(self, trial: PairTrial | BlockTrial, *, exact: bool = True) -> bool:
        """Look at the function, draw the first table and ask for the answer.

        It may differ by rounding unless it must be exact.
        """
        try:
            table = first_table(trial.design, seed=self.seed, private=trial.private)
            given = copy_rows(shown(table, trial.design.rows, batch=self.batch))
            found = compute_alone(lambda: answer(trial.function, given, private=trial.private))
        except HushedError:
            return False
        if reset(self.settings, settings()):
            return False
        found = found[0] if self.batch and found.ndim else found
        if name_table(table) != self.table or found.shape != self.answer.shape:
            return False
        limit = rounding_limit(float(np.abs(self.answer).max()), (1,))
        if (np.abs(found - self.answer) > (0.0 if exact else limit)).any():
            return False
        # Methods that Python made for a class look like its own code in one of the processes.
        now = look(trial.function, list_kinds(table)).marks
        rows = look_at_sources(trial.design.population, getattr(trial, "update", None))
        return all(
            found.get(name) == mark
            for known, found in ((self.marks, now), (self.sources, rows))
            for name, mark in known.items()
            if not mark.startswith("=")
        )


def name_table(table: Any) -> str:
    """Name a table by its content, in every process; classes of its objects are looked at apart."""
    return digest(table) if look_at_kinds(list_kinds(table)).marks else content(table)


def look_at_sources(population: Population, update: Any) -> dict[str, str]:
    """Look at the code of a population and of an update; rows of a public table travel along."""
    own = type(population) in OWN
    found = [] if own else [("population", population)]
    found += [] if update is None else [("update", update)]
    return {
        f"{what}: {name}": mark for what, each in found for name, mark in look(each).marks.items()
    }


def first_table(design: Design, *, seed: int, private: bool) -> Any:
    """Draw the rows of the first trial of a sampling."""
    return draw_table(design, next(streams(seed, 0, 1)), 0, None, private=private)


def shown(table: Any, rows: int, *, batch: bool) -> Any:
    """Rows of a table as the function is given them."""
    return table[None, :rows] if batch else show_rows(table[:rows])


def confirm(function: Callable[[Any], Any], sampling: Sampling) -> Agreement:
    """Refuse a function that is not, or no longer, the one that was sampled."""
    if function is not sampling.called:
        _refuse_strangers(look(function), sampling)
    if odd := [n for n in reset(sampling.settings, settings()) if n not in sampling.unwatched]:
        raise BadFunction(
            f"since the sensitivity was sampled, {_name_few(odd)} changed, on which answers may "
            "depend: set it as it was, or sample again"
        )
    _check_public_table(sampling)
    table = first_table(sampling.design, seed=sampling.seed, private=sampling.data_dependent)
    drawn, kinds = content(table), list_kinds(table)
    found = look(function, kinds)
    since = list_changes(sampling.state, found.marks, sampling.unwatched)
    try:
        again = _answer(function, table, sampling)
    except BadFunction:
        if since:
            raise _report_change(function, sampling, since) from None
        raise
    if since:  # unless it was only not imported or filled yet, as after the call of the sampler
        since = list_changes(sampling.state, look(function, kinds).marks, sampling.unwatched)
    if since:
        raise _report_change(function, sampling, since)
    if again.shape == sampling.answer.shape and np.array_equal(again, sampling.answer):
        return Agreement(agreement="bits")
    others = differences(sampling.environment, facts(found.packages))
    if others and _is_rounding(again, sampling):
        return Agreement(agreement="rounding", differences=others)
    raise BadFunction(_why(others, same_rows=drawn == sampling.table))


def _check_public_table(sampling: Sampling) -> None:
    """Refuse a public table that was written to: what was sampled is nowhere to be compared."""
    source = sampling.source
    if not isinstance(source, PublicTable):
        return
    if source.describe().get("sha256") != sampling.population.get("sha256"):
        raise BadFunction(
            "the public table was changed since the sensitivity was sampled: nobody can tell "
            "whether it held the private rows; sample it again"
        )


def _refuse_strangers(found: Look, sampling: Sampling) -> None:
    before = look(sampling.called)
    code = "its own code"
    if found.marks.get(code) != sampling.state.get(code):
        raise _report_another(sampling, [code])
    if odd := strangers(found, before):
        raise _report_another(sampling, odd)


def _report_change(function: Any, sampling: Sampling, names: list[str]) -> BadFunction:
    if function is not sampling.called:
        return _report_another(sampling, names)
    return BadFunction(
        f"the function uses {_name_few(names)}, which changed since its sensitivity was sampled: "
        "sample it again"
    )


def _report_another(sampling: Sampling, names: list[str]) -> BadFunction:
    return BadFunction(
        f"the sensitivity was sampled on another function, {sampling.function!r} (what differs: "
        f"{_name_few(names)}); sample it on the one to be released"
    )


def _name_few(names: list[str]) -> str:
    named = ", ".join(name or "the function itself" for name in names[:5])
    return named + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _answer(function: Callable[[Any], Any], table: Any, sampling: Sampling) -> NDArray[np.float64]:
    """Answer of the function on the first table."""
    given = copy_rows(shown(table, sampling.design.rows, batch=sampling.batch))
    try:
        found = compute_alone(
            lambda: answer(function, given, private=sampling.data_dependent, names=sampling.names)
        )
    except BadFunction as failed:
        raise BadFunction(
            f"asked the first sampled table again, {failed}: it did not when it was sampled; "
            "sample it again"
        ) from None
    return found[0] if sampling.batch and found.ndim else found


def _is_rounding(again: NDArray[np.float64], sampling: Sampling) -> bool:
    """Whether a difference is rounding, and rounding small against the sensitivity."""
    if again.shape != sampling.answer.shape:
        return False
    limit = rounding_limit(sampling.largest, ())
    value = float(sampling.draws[sampling.rank - 1])
    moved = 2 * rounding_limit(sampling.largest, sampling.shape, "l1")
    return float(np.abs(again - sampling.answer).max()) <= limit and moved <= _SMALL * value


def _why(others: tuple[str, ...], *, same_rows: bool) -> str:
    if not same_rows:
        return (
            "the population no longer gives the rows that were sampled, and the function's answer "
            "on the first table is different: a population must draw equal rows from equal "
            "generators; sample it again"
        )
    said = (
        "asked the first sampled table again, the function gave another answer than when it was "
        "sampled: something that it uses has changed"
    )
    if others:
        said += f", or this computer rounds too differently ({'; '.join(others)})"
    return said + "; sample it again" + (" here" if others else "")
