"""Functions that are asked about each row by itself, and must not know the other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hushed._functions._carried import carries_rows, list_held
from hushed.errors import BadFunction


@dataclass(frozen=True, slots=True)
class RowFunction:
    """A function of the caller's that a step asks about each row, and that may know no other."""

    function: Callable[[Any], Any]

    def __call__(self, row: Any) -> Any:
        """Ask it about a row."""
        return self.function(row)


def refuse_carrying_steps(chain: Any, data: Any) -> None:
    """Refuse a chain of which a function of rows holds the private ones: one moves all answers."""
    asked = [each.function for each in list_held(chain, RowFunction)]
    if asked and carries_rows(asked, data):
        raise BadFunction(
            "a function of rows in the chain, as of map_rows or filter_rows, carries the private "
            "rows with it, in a global, a closure or an attribute, so that each row would see all "
            "of them: let it use its argument alone"
        )
