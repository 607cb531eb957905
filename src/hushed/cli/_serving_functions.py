"""``hushed serve add-function`` and ``remove-function``: functions that analysts may ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hushed._functions._loading import read_function
from hushed._ground.printing import format_up
from hushed.cli._inputs import find_user
from hushed.cli._options import FunctionArgument, JsonOption
from hushed.cli._outcome import DONE, finish, print_line, print_note
from hushed.cli._records import Sampling, Source, take_records
from hushed.errors import ParameterError
from hushed.spaces import Norm

if TYPE_CHECKING:
    from hushed.cli._tables import Frame
    from hushed.populations import Population

_NORMS: dict[str, Norm] = {"laplace": "l1", "gaussian": "l2"}


@dataclass(frozen=True, kw_only=True)
class Added(Sampling):
    """What is asked of a function of a server: rows, or people, are added or removed."""

    neighbours: Literal["add-remove"] = field(default="add-remove", init=False)
    block_rows: None = field(default=None, init=False)  # blocks are about replaced rows


@take_records
def add_function(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name that analysts use.")],
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Data set of its rows.")],
    function: FunctionArgument,
    public: Source,
    asked: Added,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of the table that the function is given; once for each, in their order. "
            "By default those of the population."
        ),
    ] = None,
    noise: Annotated[
        Literal["laplace", "gaussian"], typer.Option(help="Noise of its releases.")
    ] = "laplace",
    says: Annotated[str, typer.Option(help="What it answers, for those who ask.")] = "",
    min_epsilon: Annotated[float, typer.Option(help="The least that one release costs.")] = 0.0,
    max_epsilon: Annotated[
        float | None, typer.Option(help="The most; by default that of the data set.")
    ] = None,
    answer_grid: Annotated[
        float,
        typer.Option(
            help="Seconds: its answers become readable at multiples of it, for how long it takes "
            "may depend on the rows."
        ),
    ] = 10.0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of one of this name.")
    ] = False,
    folder: Annotated[Path, typer.Option("--folder", help="Folder of the server.")] = Path(),
    json: JsonOption = False,
) -> None:
    """Sample a function on public rows, and register it for analysts; no private row is read.

    A data set's budget is about rows, or people, that are added or removed: so is what is sampled.
    """
    with finish(json=json, stopped="stopped; nothing was registered") as result:
        from hushed.server._config import read_settings, source_of  # noqa: PLC0415
        from hushed.server._datasets import require_dataset  # noqa: PLC0415
        from hushed.server._registering import add_function as register  # noqa: PLC0415
        from hushed.server._registering import check_wanted, say_failing  # noqa: PLC0415

        found = require_dataset(read_settings(folder), dataset)
        sizes = asked.rows or []
        if not sizes:
            raise ParameterError(
                "give public numbers of rows, or people, that the promise is to be for, each with "
                "--rows: that of the table is private",
                parameter="rows",
            )
        asked = with_fields(asked, user=_find_people(asked, found.user))
        private = source_of(folder, found.source)
        source, columns = public.read(asked.user, private=private)
        given = tuple(column or columns or ())
        whose = _find_place(asked.user, public.frame, given, source)
        f = read_function(function)
        rows = sizes[0] if len(sizes) == 1 else sizes
        terms = {
            "noise": noise,
            "says": says,
            "min_epsilon": min_epsilon,
            "max_epsilon": max_epsilon,
            "answer_grid": answer_grid,
        }
        check_wanted(
            folder,
            name,
            dataset,
            given,
            terms,
            gamma=asked.gamma,
            symmetric=asked.symmetric,
            replace=replace,
        )
        s = asked.measure(f, source, rows=rows, norm=_NORMS[noise], user=whose)
        record, failing = register(
            folder, name, dataset, function, s, given, terms, replace=replace
        )
        result.update(function=name, gamma=record.gamma, sensitivity=s.value, kept=DONE)
        result.update(rows=list(record.rows or ()), fails_on_missing=failing)
        if not json:
            print_line(
                f"registered {name} of {dataset}: sensitivity {format_up(s.value)}, gamma = "
                f"{format_up(record.gamma)}; it can be asked after the next start"
            )
            print_note(
                f"its promise is for {record.say_rows()}: no release is refused if the table has "
                "others, and nothing is promised then"
            )
            if failing:
                print_note(say_failing(failing))


def remove_function(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name that analysts use.")],
    folder: Annotated[Path, typer.Option("--folder", help="Folder of the server.")] = Path(),
    json: JsonOption = False,
) -> None:
    """Take a function away; what it has answered stays readable."""
    with finish(json=json, stopped="stopped; see hushed serve check") as result:
        from hushed.server._registering import remove_function as remove  # noqa: PLC0415

        remove(folder, name)
        result.update(function=name, kept=DONE)
        if not json:
            print_line(f"took {name} away; a server that runs has it until its next start")


def _find_place(
    user: str | None, frame: Frame, columns: tuple[str, ...], population: Population
) -> str | int | None:
    """Find the column of the people in what the population gives: its rows may be arrays."""
    if user is not None and frame == "numpy" and not columns:
        raise ParameterError(
            f"people are told apart by the column {user!r}, and the population has no names of "
            "columns: name those that the function is given, by --column, in their order; where "
            "the population and the function take frames, give --frame pandas or --frame polars, "
            "too",
            parameter="column",
        )
    return find_user(user, frame, columns, population)


def _find_people(asked: Sampling, user: str | None) -> str | None:
    """Take the column of the people of the data set, and no other one."""
    if asked.user not in (None, user):
        raise ParameterError(
            "the function protects whom the data set protects: leave --user out", parameter="user"
        )
    return user
