"""Rows of a population of the user's, whose code may fail."""

from __future__ import annotations

from typing import Any

import numpy as np

from hushed._rows._owners import check_drawn
from hushed.errors import BadRows, HushedError
from hushed.populations._sources import Population


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
