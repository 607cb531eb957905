"""How a population is shown: what it says of itself, and what its parts are, in one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import flat

_LONGEST = 100  # of a list of numbers; all of them are in the value


class ShownPopulation(Shown):
    """A population that a notebook shows as what it says of itself."""

    __slots__ = ()

    def describe(self) -> dict[str, Any]:
        """Describe the source."""
        raise NotImplementedError

    def _card(self) -> Card:
        told = self.describe()
        return card_of_facts(
            f"Population: {flat(told['kind'])}",
            [(name, _show(value)) for name, value in told.items() if name != "kind"],
        )


def _show(value: Any) -> str:
    """Show a value of a description; a part by its kind and name."""
    if isinstance(value, Mapping):
        own = [value.get(name) for name in ("kind", "name", "model") if value.get(name)]
        inside = value.get("table")
        of = f" of {_show(inside)}" if isinstance(inside, Mapping) else ""
        return flat(" ".join(map(str, own))) + of
    text = flat(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
