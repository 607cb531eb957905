"""Released values that nobody changes by mistake: what is certified is what was released."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from functools import partial
from typing import Any, NoReturn

from hushed.errors import ParameterError


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


def read_state(record: Any, state: Sequence[Any], *later: str) -> None:
    """Fill a record from its pickle; one of an earlier version lacks the fields that came later.

    These are the last ones, unless others are named, in the order in which they came.
    """
    known = fields(record)
    came = later or tuple(each.name for each in known)
    lacking = len(known) - len(state)
    missing = came[-lacking:] if 0 < lacking <= len(came) else ()
    made = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in known
        if each.name in missing
    }
    if len(missing) != lacking or MISSING in made.values():
        raise ParameterError(
            f"this {type(record).__name__} was pickled by another version of hushed, which does "
            "not fit: read it there, and write it as JSON"
        )
    told = iter(state)
    for each in known:
        value = made[each.name] if each.name in made else next(told)
        object.__setattr__(record, each.name, value)
