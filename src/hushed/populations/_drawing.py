"""Rows of a population of the user's, whose code may fail."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushed._rows._owners import check_drawn
from hushed.errors import BadRows, HushedError
from hushed.populations._sources import Population, PublicTable


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


def count_public(population: Population) -> int | None:
    """Rows, or users, of a public table of which each table drawn has each at most once."""
    if type(population) is not PublicTable or population.promise == "table":
        return None
    return len(population.frame)


def say_shared(known: int | None, count: int, tables: int) -> str:
    """Say that tables of `count` rows share rows of a public one; empty if they need not."""
    if known is None or known >= count * tables:
        return ""
    apart = known // count
    enough = "one table" if apart == 1 else f"{apart} tables"
    return (
        f"The public table is enough for {enough} of this size without a row in common: the "
        f"{tables} drawn from it share rows, and differ less than tables of fresh rows."
    )
