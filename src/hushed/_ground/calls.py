"""What to give, said where a call does not fit what it calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import product
from numbers import Number
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from hushed.errors import HushedError, ParameterError

_FEW = 8
_F = TypeVar("_F", bound=Callable[..., Any])


def explained(hint: str) -> Callable[[_F], _F]:
    """Decorate what users call: a call that does not fit is refused, and told the hint."""

    def decorate(call: _F) -> _F:
        if not isinstance(call, type):
            return cast("_F", _refuse_misfits(call, hint))
        made = cast("Any", call)
        made.__init__ = _refuse_misfits(made.__init__, hint)
        return call

    return decorate


def called_as(example: str) -> Callable[[_F], _F]:
    """Decorate what users call with a call that works."""
    return explained(f"call it as in {example}")


def given_by(example: str) -> Callable[[_F], _F]:
    """Decorate a record that the library makes with a call that gives one."""
    return explained(f"nobody needs to make one, for it is given, as by {example}")


def _refuse_misfits(call: Callable[..., Any], hint: str) -> Callable[..., Any]:
    """Wrap a function, or the ``__init__`` of a class."""
    makes = call.__name__ == "__init__"

    @wraps(call)
    def answer(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except TypeError:
            wrong = _find_misfit(call, args, kwargs) or _find_wrong_type(call, args, kwargs)
            if wrong is None:  # it was raised further in
                raise
        except HushedError:  # said in words already
            raise
        except (AttributeError, ValueError):  # of what another type would have, or be
            wrong = _find_wrong_type(call, args, kwargs)
            if wrong is None:
                raise
        name = type(args[0]).__name__ if makes else call.__name__
        raise ParameterError(f"{name} {wrong}: {hint}")

    return answer


def _find_wrong_type(
    call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str | None:
    """Say which argument is of a type that its annotation does not name, if one is; no value."""
    try:
        hints = get_type_hints(call)
    except (NameError, TypeError):  # a name that is there for type checkers alone
        return None
    given = inspect.signature(call).bind(*args, **kwargs).arguments
    for arrays, (name, value) in product([(list, tuple), ()], given.items()):  # lists last of all
        if not isinstance(value, arrays) and not _fits(value, hints.get(name, Any)):
            allowed = " or ".join(
                getattr(each, "__name__", str(each)) for each in _parts(hints[name])
            )
            return f"takes {allowed} as {name}, got {type(value).__name__}"
    return None


def _parts(hint: Any) -> tuple[Any, ...]:
    """Split a union, without None, into its types; their parameters are left away."""
    parts = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    return tuple(get_origin(each) or each for each in parts if each is not type(None))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value may be meant by an annotation; in doubt it may."""
    classes = [each for each in _parts(hint) if each is not float and each is not int]
    numbers = len(classes) < len(_parts(hint))
    if value is None and type(None) in (hint, *get_args(hint)):
        return True
    if numbers and isinstance(value, Number):
        return True
    if Any in classes or not all(
        isinstance(each, type) and not getattr(each, "_is_protocol", False) for each in classes
    ):
        return True
    return isinstance(value, tuple(classes))


def _find_misfit(
    call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str | None:
    """Say what of the arguments does not fit the signature, if anything; no value is shown."""
    found = list(inspect.signature(call).parameters.values())
    kinds = {each.kind for each in found}
    own = 1 if found and found[0].name == "self" else 0
    named = {
        each.name: each
        for each in found[own:]
        if each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}
    }
    placed = [each.name for each in found if each.kind <= each.POSITIONAL_OR_KEYWORD]
    given = placed[: len(args)]
    lacking = [name for name, each in named.items() if each.default is each.empty]
    takes, closed = len(placed) - own, inspect.Parameter.VAR_KEYWORD not in kinds
    wrong = [
        (
            "has no argument {} (it has " + _list(named) + ")",
            [each for each in kwargs if closed and each not in named],
        ),
        ("got {} twice", [each for each in given if each in kwargs]),
        ("lacks {}", [each for each in lacking if each not in given and each not in kwargs]),
    ]
    said = [words.format(_list(names)) for words, names in wrong if names]
    if len(args) > len(placed) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        plural = "" if takes == 1 else "s"
        said.insert(
            0, f"takes {takes or 'no'} argument{plural} without a name, got {len(args) - own}"
        )
    return ", and ".join(said) or None


def _list(names: Iterable[str]) -> str:
    """Name the first few, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - _FEW} more" if len(found) > _FEW else ""
    return (", ".join(found[:_FEW]) or "none") + more
