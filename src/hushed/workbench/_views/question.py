"""What the page Data says of a table, and a question to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hushed._web.question import Known
from hushed._web.question import Question as AnyQuestion
from hushed.tables import Table

if TYPE_CHECKING:
    from hushed.workbench._views.besides import Beside

Question = AnyQuestion[Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the lines of a CSV file are read as rows."""

    header: str | None = None  # the line of names of a file that has none
    newlines_in_values: bool = False

    def as_arguments(self) -> dict[str, Any]:
        """Give what was said, as arguments of `hushed.table`."""
        told: dict[str, Any] = {} if self.header is None else {"header": self.header}
        return told | ({"newlines_in_values": True} if self.newlines_in_values else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Described(Known[Table]):
    """What the data page says of a table; nothing of it comes from its rows."""

    budget: str  # name of the budget that is charged; empty without one
    source: str = ""  # address or path, without a password
    place: str = "rows"  # name of the table in a database
    reading: Reading = Reading()
    public: Table | None = None  # a public table of the same columns
    base: Described | None = None  # without the columns that a public file added
    beside: Beside | None = None  # another private table, whose columns may be added

    @property
    def example(self) -> Table | None:
        """A public table that has all columns; none has those of another private table."""
        return self.public if self.beside is None else None
