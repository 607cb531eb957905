"""Functions that are asked about each row by itself, and must not know the other rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any
from weakref import WeakSet

from hushed._functions._carried import carries_rows, list_held
from hushed.errors import BadFunction

_ASKING_NONE: WeakSet[FunctionType] = WeakSet()  # chains of the library's own code, looked through


@dataclass(frozen=True, slots=True)
class RowFunction:
    """A function of the caller's that a step asks about each row, and that may know no other.

    ``read`` makes of its answer what the step takes.
    """

    function: Callable[[Any], Any]
    read: Callable[[Any], Any]

    def __call__(self, row: Any) -> Any:
        """Ask it about a row."""
        return self.read(self.function(row))

    def ask_each(self, data: Any) -> list[Any]:
        """Ask it about each row of a column, or of a dict of columns."""
        return [self(row) for row in list_rows(data)]


def list_rows(data: Any) -> list[Any]:
    """List the rows of a column as values, those of a dict of columns as dicts."""
    if not isinstance(data, Mapping):
        return list(data.tolist())
    columns = [values.tolist() for values in data.values()]
    return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)]


def refuse_carrying_steps(chain: Any, data: Any) -> None:
    """Refuse a chain of which a function of rows holds the private ones: one moves all answers."""
    if type(chain) is FunctionType and chain in _ASKING_NONE:
        return
    found, lasting = list_held(chain, RowFunction)
    if lasting and not found and type(chain) is FunctionType:
        _ASKING_NONE.add(chain)  # to look through a chain takes ten times as long as a draw
    if found and carries_rows([each.function for each in found], data):
        raise BadFunction(
            "a function of rows in the chain, as of map_rows or filter_rows, carries the private "
            "rows with it, in a global, a closure or an attribute, so that each row would see all "
            "of them: let it use its argument alone"
        )
