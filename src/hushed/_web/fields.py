"""What was typed into a form: texts by name, read one by one; what is wrong stands at its field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hushed._ground.numerals import is_whole_number, read_number
from hushed._ground.printing import brief, flat
from hushed.errors import HushedError

_LONGEST = 3100  # of a message: what the library shows at most


@dataclass(slots=True)
class Form:
    """The fields of a form, and what is wrong with them."""

    fields: Mapping[str, str]
    errors: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """Give what was typed, without blanks around it."""
        return self.fields.get(name, default).strip()

    def number(self, name: str, default: float | None = None) -> float | None:
        """Read a number; an empty field is the default."""
        typed = self.text(name)
        if not typed:
            return default
        try:
            found = read_number(typed)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            self.refuse(name, f"this must be a number such as 12.5, got {brief(typed)}")
            return default
        return found

    def whole(self, name: str, default: int | None = None) -> int | None:
        """Read a whole number of 1 or more; an empty field is the default."""
        typed = self.text(name)
        if not typed:
            return default
        if not (is_whole_number(typed) and int(typed) > 0):
            self.refuse(name, f"this must be a whole number of 1 or more, got {brief(typed)}")
            return default
        return int(typed)

    def refuse(self, name: str, message: str) -> None:
        """Note what is wrong with a field; the first remark stays."""
        self.errors.setdefault(name, flat(message)[:_LONGEST])

    def at(self, name: str) -> Refusing:
        """Note at a field what the library refuses."""
        return Refusing(self, name)

    def numbered(self, prefix: str) -> list[str]:
        """List the numbers of the rows of a repeated part, such as those of ``where.3.column``."""
        found = {
            parts[1]
            for parts in (name.split(".") for name in self.fields)
            if len(parts) == 3 and parts[0] == prefix and _is_row(parts[1])
        }
        return sorted(found, key=int)


@dataclass(slots=True)
class Refusing:
    """A block whose refusal is noted at a field."""

    form: Form
    name: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        if not isinstance(error, HushedError):
            return False
        self.form.refuse(self.name, error.message)
        return True


def _is_row(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 4
