"""The one gate through which private rows reach a user's function.

What is sampled and what is released must be the same function of the same kind of table. So a
private table becomes one as sampled before the function sees it: a plain container of its own, the
sampled types, the number of rows, no row outside of the population's range. All this follows from
types and public numbers, or treats each row by itself: neighbours stay neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from random import SystemRandom
from typing import Any, Literal, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from hushed._functions._calls import answer_named, public_name, read_privately
from hushed._functions._carried import carries_rows
from hushed._functions._environment import one_thread
from hushed._functions._fingerprints import list_changes, look_at_kinds
from hushed._functions._silence import silence
from hushed._functions._turns import Turn
from hushed._ground.checks import require_one_of
from hushed._ground.own_words import is_own
from hushed._ground.stops import watch_stops
from hushed._rows import _containers as containers
from hushed._rows._bundles import Bundles, holds_numbers
from hushed._rows._kinds import list_kinds
from hushed._rows._owned import cast_rows, copy_rows, deep
from hushed._rows._people import bundle_rows, number_users, show_rows
from hushed._rows._ranges import Range, clamp
from hushed._rows._variations import show_in_place
from hushed.errors import (
    BadFunction,
    BadRows,
    PrivateRowsAsPopulation,
)

Outside = Literal["clamp", "allow"]
Rows = TypeVar("Rows")


class Sampled(Protocol):
    """What the gate asks of a sampled sensitivity; see `hushed.sensitivity.Sampling`."""

    @property
    def layout(self) -> containers.Layout:
        """Container, columns and types of the sampled tables."""

    @property
    def rows(self) -> int:
        """Their number of rows."""

    @property
    def neighbours(self) -> str:
        """Whether rows are replaced, so that their number is public, or added and removed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the answer."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its numbers; empty if it gives none."""

    @property
    def batch(self) -> bool:
        """Whether the function takes stacked tables."""

    @property
    def data_dependent(self) -> bool:
        """Whether the population was made from the private rows."""

    @property
    def given(self) -> Any:
        """The population, as the caller handed it in, and an update of answers."""

    @property
    def support(self) -> tuple[Range, ...]:
        """Ranges that it keeps to."""

    @property
    def state(self) -> dict[str, str] | None:
        """Digests of what the function used, and of the classes of objects in its rows.

        None if no function is asked.
        """

    @property
    def unwatched(self) -> tuple[str, ...]:
        """What of it has no digest, or changes by itself."""

    @property
    def locked(self) -> bool:
        """Whether it was given arrays that it cannot write to."""

    @property
    def user(self) -> str | int | None:
        """Column of users, where a pair differs in all rows of one."""

    @property
    def limit(self) -> float:
        """Largest absolute number of an answer; infinite unless it is an average over blocks."""


def check_outside(outside: Outside) -> None:
    """Refuse what is no way to treat rows outside of the range."""
    require_one_of("outside", outside, get_args(Outside))


def admit_rows(
    data: Any, sampled: Sampled | None, *, function: Any = None, outside: Outside = "clamp"
) -> Any:
    """Make of private rows a table that a function may see, or refuse them.

    Neither the function, if one is given, nor the population may hold these very rows. Whether
    either holds rows of the same values is not asked: a refusal would tell.
    """
    check_outside(outside)
    return read_rows(lambda rows: _admit_rows(rows, sampled, function, outside=outside), data)


def read_rows(read: Callable[[Any], Rows], data: Any) -> Rows:
    """Read private rows in silence; words of an error that are not ours are withheld.

    A container of a class of the caller's, and objects in cells, may say something meanwhile.
    """
    problem = ""
    mute = type(data) is np.ndarray and not data.dtype.hasobject
    with nullcontext() if mute else silence(), watch_stops() as is_stop:
        try:
            return read(data)
        except BaseException as cause:
            if is_own(cause):
                raise
            name = public_name(type(cause), "an exception")
            problem = "" if is_stop(cause) else f"the rows cannot be read ({name}); no more "
    if not problem:
        raise KeyboardInterrupt
    raise BadRows(f"{problem}is said, because it may contain a private value")


def refuse_private_prior(prior: Any, data: Any) -> None:
    """Refuse weights that `hushed.public_prior` made from the private rows."""
    if carries_rows(getattr(prior, "made_from", None), data):
        raise PrivateRowsAsPopulation(
            "the prior was made from the private rows, and leaks about them: make it from a public "
            "table, a range or a simulator",
            parameter="prior",
        )


def refuse_private_candidates(candidates: Any, data: Any) -> None:
    """Refuse candidates that are the private rows: what is released would be one of them."""
    if carries_rows(getattr(candidates, "made_from", None), data):
        raise PrivateRowsAsPopulation(
            "the candidates are the private rows, and what is released would be one of them: "
            "choose candidates without looking at the rows",
            parameter="candidates",
        )


def refuse_private_choice(mechanism: Any, data: Any) -> None:
    """Refuse a mechanism that was chosen by a population which holds the private rows."""
    if carries_rows(getattr(mechanism, "made_from", None), data):
        raise PrivateRowsAsPopulation(
            "the mechanism was chosen by a population that holds the private rows, and which one "
            "it is leaks about them: choose it by a public table, a range or a simulator",
            parameter="mechanism",
        )


def refuse_private_centre(centre: Any, data: Any) -> None:
    """Refuse a centre that is one of the private rows: answers would be moved towards it."""
    if carries_rows(getattr(centre, "made_from", None), data):
        raise PrivateRowsAsPopulation(
            "the centre is one of the private rows, and what is released would be near it: choose "
            "it without looking at the rows",
            parameter="centre",
        )


def _refuse_carried(data: Any, sampled: Sampled | None, function: Any) -> None:
    """Refuse what holds the private rows, unless the caller said so."""
    if sampled is not None and sampled.data_dependent:
        return
    if not carries_rows((None if sampled is None else sampled.given, function), data):
        return
    if sampled is not None and carries_rows(sampled.given, data):
        raise PrivateRowsAsPopulation(
            "the public population holds the private rows: the sensitivity then leaks about them; "
            "sample from a public table, a range or a simulator, with an update of answers, and "
            "given values, that hold none of them, either",
            parameter="data_dependent",
            hint="or say data_dependent=True, which marks guarantee and certificate",
        )
    if function is not None and carries_rows(function, data):
        raise BadFunction(
            "the function carries the private rows with it, in a global, a closure or an "
            "attribute: what is promised holds for a function of its argument alone"
        )


def _admit_rows(data: Any, sampled: Sampled | None, function: Any, *, outside: Outside) -> Any:
    rows = copy_rows(data, private=True)
    _refuse_carried(data, sampled, function)
    if sampled is None:
        return rows
    counted = sampled.neighbours == "replace-one"  # else the number of rows is private
    if len(rows) == 0 and counted:
        raise BadRows("the table is empty")
    if sampled.user is not None:
        rows = _bundle(rows, sampled.user, sampled.layout)
    found = containers.layout(rows)
    if found != sampled.layout:
        raise BadRows(
            f"the population's rows are {sampled.layout}; {sampled.layout.difference(found)}"
        )
    rows = cast_rows(rows, sampled.layout)
    _refuse_other_code(rows, sampled)
    if counted and len(rows) != sampled.rows:
        what = "rows" if sampled.user is None else "users"
        raise BadRows(
            f"the sensitivity was sampled for {sampled.rows} {what}, the table has {len(rows)}; "
            f"sample it again with rows={len(rows)}"
        )
    if counted and sampled.user is not None:
        rows = number_users(rows)  # refuses elements that would give several people one number
    rows = clamp(rows, sampled.support, sampled.layout) if outside == "clamp" else rows
    return rows if sampled.user is None else _show_shuffled(rows)


def _refuse_other_code(rows: Any, sampled: Sampled) -> None:
    """Refuse objects whose class only has the name of a sampled one: a row is what it does."""
    if sampled.state is None:
        return
    found = look_at_kinds(list_kinds(rows)).marks
    known = {name: sampled.state.get(name, "") for name in found}
    if list_changes(known, found, sampled.unwatched):
        raise BadRows(
            "the rows hold objects of a class that is not the one of the sampled rows, or was "
            "changed since, though it may have its name: make the data and the population by the "
            "same code, and sample again"
        )


def _bundle(rows: Any, user: str | int, sampled: containers.Layout) -> Bundles:
    """Make of private rows a table of users, who are numbered.

    In an array of numbers they are when they are shuffled, after it was cast: a narrower one may
    not hold so many numbers, and how many users there are may be private.
    """
    if containers.container(rows) != sampled.container:
        found = containers.layout(rows)
        raise BadRows(f"the population's rows are {sampled}; {sampled.difference(found)}")
    table = bundle_rows(rows, user)
    return table if holds_numbers(table.rows) else number_users(table)


def _show_shuffled(table: Bundles) -> Any:
    """Show a function the rows of users in an order of chance alone.

    Users as they come up would change places where another one's rows come earlier or later, so
    that neighbours would differ in more than one place of the table.
    """
    order = list(range(len(table)))
    SystemRandom().shuffle(order)
    return show_rows(containers.take(table, np.array(order, dtype=np.int64)))


def answer_private_rows(
    function: Callable[[Any], Any], rows: Any, sampled: Sampled | None
) -> NDArray[np.float64]:
    """Answer of a function on private rows; one of stacked tables is given a stack of one."""
    if sampled is not None and sampled.locked:  # as sampled: it may ask whether it can write
        rows = show_in_place(rows)
    given = rows[None] if sampled is not None and sampled.batch else rows
    with one_thread():
        exact, names = answer_named(function, given, private=True)
    if sampled is None:
        return exact
    wanted = (1, *sampled.shape) if sampled.batch else sampled.shape
    named = sampled.names and names != sampled.names
    if exact.shape != wanted or named:  # what was found is a fact about the private rows: withheld
        raise BadFunction(
            f"the answer on the private rows does not have the shape {wanted} that was sampled"
            + (", with the names that were" if sampled.names else "")
        )
    exact = exact[0] if sampled.batch else exact
    return np.asarray(np.clip(exact, -sampled.limit, sampled.limit))


def guard_step(
    function: Callable[[Any], Any], check: Callable[[Any], Any] = lambda answer: answer
) -> Callable[[Any], Any]:
    """Let a user's step of a chain see private rows, as a copy and in silence; check its answer."""

    def step(data: Any) -> Any:
        with Turn(function), silence():
            return read_privately(function, copy_privately(data), check)

    return step


def copy_privately(data: Any) -> Any:
    """Copy what a step of a chain gives, in silence: it may speak, or fail with a value in words.

    It may be of a class of the caller's, as a function may.
    """
    return read_privately(lambda given: given, data, _copy_answer)


def show_as_given(rows: Any, data: Any) -> Any:
    """Show copied rows as the kind of array that they were copied from, where nothing was sampled.

    A function of a record array asks it for ``rows.column``, and finds no error before the charge.
    """
    kind = type(data)
    return rows.view(kind) if issubclass(kind, np.recarray | np.matrix) else rows


def _copy_answer(data: Any) -> Any:
    """Copy what a step of a chain gives, whatever it is."""
    if isinstance(data, Mapping):
        return {key: _copy_answer(part) for key, part in data.items()}
    if isinstance(data, np.ndarray) and not data.ndim:
        return data.copy()
    known = isinstance(data, np.ndarray | list) or hasattr(data, "columns")
    return show_as_given(copy_rows(data, private=True), data) if known else deep(data, private=True)
