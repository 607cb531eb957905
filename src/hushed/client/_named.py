"""Names that an object of the client has not: what it has in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Never

from hushed._ground.printing import suggest


class Named:
    """An object that says which names it has, where another one is asked for."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker knows which names there are

        def __getattr__(self, name: str) -> Never:
            """Refuse it; notebooks ask for names that begin with a line, and read no words."""
            kind = type(self)
            words = f"a {kind.__name__} has no {name!r}"
            if not name.startswith("_"):
                public = [each for each in dir(kind) if not each.startswith("_")]
                methods = [each for each in public if callable(getattr(kind, each))]
                near = suggest(name, methods) or "."
                words += f"{near} Its methods: {', '.join(methods)}; help() tells more"
            raise AttributeError(words)
