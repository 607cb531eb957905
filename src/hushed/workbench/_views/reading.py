"""Fields of a form as the arguments of a command: texts as they were typed, once they are right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hushed._ground.printing import brief
from hushed._web.fields import Form


class Words(Form):
    """A form that becomes a command; what is wrong is noted at its field, as in every form."""

    def say_text(self, name: str, needed: str = "") -> str:
        """Give a text; words in ``needed`` say what to do if it is empty."""
        found = self.text(name)
        if not found and needed:
            self.refuse(name, needed)
        return found

    def is_ticked(self, name: str) -> bool:
        """Whether a box is ticked."""
        return bool(self.text(name))

    def choose(self, name: str, allowed: Sequence[str], needed: str = "") -> str:
        """Give one of several values; where nothing was chosen the first one, unless needed."""
        found = self.text(name)
        if not found and (needed or not allowed):
            self.refuse(name, needed or "there is nothing to choose from")
        elif found and found not in allowed:
            self.refuse(name, f"{brief(found)} is none of those there are")
        return found or ("" if needed or not allowed else allowed[0])

    def say_number(self, name: str, above: float = -math.inf, needed: str = "give a number") -> str:
        """Give a number as it was typed, if it is finite and above a limit."""
        found = self.number(name)
        if found is None:
            if needed:
                self.refuse(name, needed)
            return ""
        if not found > above:
            self.refuse(name, f"this must be above {above:g}, got {brief(self.text(name))}")
        return self.text(name)

    def say_whole(self, name: str, least: int, most: int, default: str = "") -> str:
        """Give a whole number as it was typed, within its limits."""
        typed = self.text(name) or default
        if not (typed.isascii() and typed.isdecimal() and least <= int(typed[:20]) <= most):
            got = f", got {brief(typed)}" if typed else ""
            self.refuse(name, f"this must be a whole number from {least} to {most:,}{got}")
        return typed
