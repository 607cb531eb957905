"""What to give, said where a call lacks an argument that nobody can choose for the caller."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from hushed.errors import ParameterError

_F = TypeVar("_F", bound=Callable[..., Any])


def explained(hint: str) -> Callable[[_F], _F]:
    """Decorate what is called by name: a call that does not fit is refused, and told the hint."""

    def decorate(call: _F) -> _F:
        @wraps(call)
        def answer(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs)
            except TypeError:
                wrong = _find_misfit(call, args, kwargs)
                if wrong is None:  # it was raised further in
                    raise
            raise ParameterError(f"{call.__name__} {wrong}: {hint}")

        return cast("_F", answer)

    return decorate


def _find_misfit(call: Callable[..., Any], args: Any, kwargs: Any) -> str | None:
    """Say what of the arguments does not fit the signature, if anything; no value is shown."""
    signature = inspect.signature(call)
    try:
        given = signature.bind_partial(*args, **kwargs).arguments
    except TypeError as error:  # too many, or a name that there is not
        return f"was called wrongly ({error})"
    lacking = [
        name
        for name, each in signature.parameters.items()
        if each.default is each.empty
        and each.kind not in {each.VAR_POSITIONAL, each.VAR_KEYWORD}
        and name not in given
    ]
    return f"lacks {', '.join(lacking)}" if lacking else None
