"""Rows of a population of the user's, whose code may fail."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushed._rows._owners import check_drawn
from hushed._rows._people import show_rows
from hushed.errors import BadRows, HushedError, ParameterError
from hushed.populations._sources import Population, PublicTable, by_user
from hushed.populations._users import column_of_users


def draw_rows(population: Population, rng: np.random.Generator, count: int) -> Any:
    """Draw public rows; what a population raises, or gives in their place, is told as such."""
    try:
        table = population.draw(rng, count)
    except HushedError:
        raise
    except (Exception, SystemExit) as cause:
        raise BadRows(f"the population raised {type(cause).__name__}: {cause}") from cause
    check_drawn(table, count)
    return table


def give_units(population: Population, user: str | int | None) -> Population:
    """Let a population give users with all their rows, if a column of users is named."""
    named = column_of_users(population)
    if user is None and named is not None:
        raise ParameterError(f"the population draws users: say user={named!r}", parameter="user")
    return population if user is None else by_user(population, user)


def draw_shown(population: Population, rng: np.random.Generator, count: int) -> Any:
    """Draw so many rows, or users of `give_units`, as rows that a function is given."""
    return show_rows(draw_rows(population, rng, count))


def count_public(population: Population) -> int | None:
    """Rows, or users, of a public table of which each table drawn has each at most once."""
    if type(population) is not PublicTable or population.promise == "table":
        return None
    return len(population.frame)


def say_shared(known: int | None, count: int, tables: int, unit: str = "row") -> str:
    """Say that tables of `count` units share some of a public one; empty if they need not."""
    if known is None or known >= count * tables:
        return ""
    apart = known // count
    enough = "one table" if apart == 1 else f"{apart} tables"
    return (
        f"The public table is enough for {enough} of this size without a {unit} in common: the "
        f"{tables} drawn from it share {unit}s, and differ less than tables of fresh {unit}s."
    )
