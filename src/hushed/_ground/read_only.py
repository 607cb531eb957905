"""Released values that nobody changes by mistake: what is certified is what was released."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, NoReturn


class ReadOnly(dict[Any, Any]):
    """A dict, also to JSON and to dataclasses, that refuses to be changed; pickled and copied."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a released answer is read-only: dict(...) makes a copy to change")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)


def make_again(record: Any) -> tuple[Any, ...]:
    """Reduce a record to a call of its class, which checks and freezes a copy as the first one."""
    kind: Callable[..., Any] = type(record)
    return partial(kind, **{each.name: getattr(record, each.name) for each in fields(record)}), ()
