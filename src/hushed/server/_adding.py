"""What the steward at the machine does with data sets: adds them, and confirms a change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from hushed._ground.printing import plain_path
from hushed.errors import NotFound, ParameterError, Refusal
from hushed.guarantee import Guarantee
from hushed.ledger._accounts import new_budget
from hushed.ledger._together import find_budget
from hushed.server._carrying import Spent, carry_spent, find_spent, require_same_people
from hushed.server._config import DUCKDB, FILE, DatasetSettings, Settings, explain
from hushed.server._datasets import (
    find_registered,
    list_again,
    list_places,
    open_dataset,
    register,
    require_budget,
    require_dataset,
    require_keys,
    require_same_unit,
    say_again,
    say_may_change,
    say_untyped,
)
from hushed.server._disk import append_text
from hushed.server._layouts import list_changes, require_read_alike
from hushed.server._opening import open_own
from hushed.server._people_told import say_approvers

if TYPE_CHECKING:
    from hushed.ledger import Ledger
    from hushed.tables import Table


def add_dataset(
    folder: Path,
    name: str,
    told: Mapping[str, Any],
    limit: Guarantee,
    *,
    other_people: bool = False,
    same_people: bool = False,
    second_budget: bool = False,
) -> str:
    """Describe a data set in the file, with a budget of its own; opened first, to see that it can.

    A relative path is written as it is from the folder of the server on. What is wrong with its
    login, that a text file has no types, that the table is another data set, too, or what its rows
    must be like as a view, is told.
    """
    import tomli_w  # noqa: PLC0415

    settings, ledger, _ = open_own(folder)
    with ledger, ExitStack() as stack:
        found = _read_dataset(settings, folder, name, told)
        table = open_dataset(folder, found)
        require_keys(found, table)
        known = {each.name: each for each in ledger.budgets()}.get(found.budget)
        budget = known or new_budget(found.budget, limit, note=f"data set {name} of a server")
        require_same_unit(budget, found)
        if _numbers(budget.limit) != _numbers(limit):
            raise ParameterError(
                f"the ledger has a budget {found.budget!r} already, of epsilon "
                f"{budget.limit.epsilon!r}, delta {budget.limit.delta!r} and gamma "
                f"{budget.limit.gamma!r}, and a limit is not changed: give these numbers, or "
                "another name to the data set; then it has a budget of that name"
            )
        now_are = settings.model_copy(update={"dataset": {**settings.dataset, name: found}})
        if not second_budget:
            _require_once(folder, settings, name, found, table)
        places = list_places(folder, found, table)
        spent: tuple[Spent, ...] = ()
        if not other_people:
            if not same_people:
                require_same_people(ledger, now_are, name, table, places)
            spent = find_spent(ledger, stack, now_are, name, table, places, budget)
        problem = _say_problem(ledger, folder, now_are, name, table)
        if known is None:  # what can be refused was refused: a limit is never changed
            ledger.open_budget(found.budget, limit, note=budget.note)
        carried = carry_spent(ledger, found.budget, spent)
        register(ledger, name, found, table, places, other_people=other_people)
    plain = found.model_dump(exclude_none=True, exclude_defaults=True, mode="json")
    try:
        append_text(folder / FILE, "\n" + tomli_w.dumps({"dataset": {name: plain}}))
    except OSError as error:
        raise NotFound(
            f"{plain_path(folder / FILE)} cannot be written ({error.strerror}), and is as it was: "
            "nobody can ask the data set, and its budget is open. Make room, or look at the "
            "rights of the file, and give the same command again"
        ) from None
    return "; ".join([*carried, *filter(None, [problem])])


def _numbers(limit: Guarantee) -> tuple[float, float, float]:
    return limit.epsilon, limit.delta, limit.gamma


def _read_dataset(
    settings: Settings, folder: Path, name: str, told: Mapping[str, Any]
) -> DatasetSettings:
    if name in settings.dataset:
        raise ParameterError(
            f"there is a data set {name!r} in {FILE} already: to change its types, ranges or keys, "
            f"edit [dataset.{name}] there, then run hushed serve confirm {name}; its budget stays"
        )
    section = {**told, "source": _from_folder(folder, told["source"]), "budget": name}
    try:
        return Settings.model_validate({"dataset": {name: section}}).dataset[name]
    except ValidationError as error:
        raise ParameterError(explain(error)) from None


def _from_folder(folder: Path, source: str) -> str:
    """Write the path of a file, also of a DuckDB one, from the folder of the server on."""
    prefix = DUCKDB if source.startswith(DUCKDB) else ""
    if "://" in source and not prefix:
        return source
    path = Path(source.removeprefix(prefix))
    return prefix + os.path.relpath(path.resolve(), folder.resolve())


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What was confirmed: the budget it has, whether a server that runs takes it, what to know."""

    budget: str
    at_once: bool
    problem: str = ""
    changes: tuple[str, ...] = ()  # of what is public of the table: columns, types, delimiter
    carried: tuple[str, ...] = ()  # what was spent of other budgets, and is charged to this one


def confirm_dataset(
    folder: Path,
    name: str,
    *,
    accept_change: bool = False,
    other_people: bool = False,
    same_people: bool = False,
    second_budget: bool = False,
) -> Confirmed:
    """Take a data set as it is now, for somebody has looked at the change; the budget it has.

    A server that runs takes another file soon, but another description only when it is started.
    Another budget is charged with what was spent before, unless the rows are of other people.
    """
    settings, ledger, _ = open_own(folder)
    with ledger, ExitStack() as stack:
        found = require_dataset(settings, name)
        table = open_dataset(folder, found)
        require_keys(found, table)
        require_budget(ledger, found)
        before = find_registered(ledger, name)
        kept = before is not None and before.budget == found.budget  # was looked at then
        if not (kept or second_budget):
            _require_once(folder, settings, name, found, table)
        described = before is not None and before.describes(found)
        layout = "" if before is None else before.layout
        changes = list_changes(layout, table)
        if described and not accept_change:  # else a change of the description is what was meant
            require_read_alike(name, found, layout, table, changes)
        places = list_places(folder, found, table)
        spent: tuple[Spent, ...] = ()
        if not (same_people or other_people):
            require_same_people(ledger, settings, name, table, places)
        if not other_people:
            budget = find_budget(ledger, found.budget)
            spent = find_spent(ledger, stack, settings, name, table, places, budget)
        carried = carry_spent(ledger, found.budget, spent)
        register(ledger, name, found, table, places, other_people=other_people)
        problem = _say_problem(ledger, folder, settings, name, table)
    return Confirmed(
        carried=carried,
        budget=found.budget,
        at_once=described,
        changes=changes,
        problem=problem,
    )


def _require_once(
    folder: Path, settings: Settings, name: str, found: DatasetSettings, table: Table
) -> None:
    """Refuse one more budget for the people of a table, if nobody has said that it is meant."""
    others = list_again(folder, settings, name, found, table)
    if any(settings.dataset[each].budget == found.budget for each in others):
        return
    if again := say_again(settings, name, found, others):
        raise Refusal(f"{again}; if a second budget is what you mean, give --second-budget")


def _say_problem(ledger: Ledger, folder: Path, settings: Settings, name: str, table: Table) -> str:
    """Say what a steward has to know of a data set that can be asked."""
    found = settings.dataset[name]
    more = say_may_change(table) or say_untyped(folder, found, table)
    others = list_again(folder, settings, name, found, table)
    again = say_again(settings, name, found, others)
    own = settings.model_copy(update={"dataset": {name: found}})
    return "; ".join(
        filter(None, (more, again, say_approvers(ledger, own), *table.connection.told))
    )
