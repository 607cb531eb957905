"""What a release asks, as a digest that is the same in another process."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from hushed.calibrate import Mechanism, parameters
from hushed.fingerprints import state

__all__ = ["question_of"]

_DEEPEST = 20


def question_of(function: Callable[[Any], Any], mechanism: Mechanism) -> str:
    """Digest what a release asks; the same for the same script in another process.

    Parameters
    ----------
    function : callable
        The function.
    mechanism : Laplace, Gaussian, Exponential or Bernstein
        The calibrated mechanism.

    Returns
    -------
    str
        SHA-256 over the code and data of the function, the mechanism with its parameters, and the
        sensitivity: the sampled movements, which are answers of the function, or the proof. It
        does not depend on the private rows.
    """
    sensitivity: Any = mechanism.sensitivity
    sampling = sensitivity.sampling
    public = sampling is not None and not sampling.data_dependent
    movements = sensitivity.draws.tobytes() if public else b""
    facts = {
        "function": sorted(_code_of(function, "", set())),
        "data": sorted((state(function) if sampling is None else sampling.state).items()),
        "mechanism": parameters(mechanism),
        "sensitivity": [sensitivity.value, sensitivity.norm, sensitivity.neighbours],
        "proof": [sensitivity.unit, sensitivity.argument],
        "movements": hashlib.sha256(movements).hexdigest(),
        "rows": None if sampling is None else [sampling.rows, sampling.seed],
        "population": sampling.population if public else None,
    }
    text = json.dumps(facts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _code_of(function: Any, within: str, seen: set[int]) -> Iterator[str]:
    """Digests of the code of a function, and of those it uses from its own module, by name."""
    if id(function) in seen or within.count(".") > _DEEPEST:
        return
    seen.add(id(function))
    code = getattr(function, "__code__", None)
    if hasattr(function, "__self__") and not isinstance(function.__self__, type | ModuleType):
        yield from _code_of(function.__self__, within + "self.", seen)
    if code is None:
        kind = function if isinstance(function, type) else type(function)
        yield f"{within}{kind.__module__}.{kind.__qualname__} {getattr(function, '__name__', '')}"
    else:
        yield f"{within}{function.__name__} {_digest(code)}"
    for name, value in _callables(function, code):
        yield from _code_of(value, f"{within}{name}.", seen)


def _callables(function: Any, code: CodeType | None) -> list[tuple[str, Any]]:
    """List the functions that a function uses and that may change with it, by name."""
    found: dict[str, Any] = {}
    if isinstance(function, functools.partial):
        found = {"func": function.func, **function.keywords}
        found |= {str(i): value for i, value in enumerate(function.args)}
    elif code is None:
        kind: Any = type(function)
        found = {"call": kind.__call__} if isinstance(kind.__call__, FunctionType) else {}
        found |= _attributes(function)
    else:
        plain = getattr(function, "__func__", function)
        try:
            used = inspect.getclosurevars(plain)
        except (TypeError, ValueError):  # no plain function, or one still being defined
            return []
        near = {**used.globals, **used.nonlocals}
        found = {
            name: value
            for name, value in near.items()
            if getattr(value, "__module__", None) == plain.__module__
        }
    return [(name, value) for name, value in sorted(found.items()) if callable(value)]


def _attributes(thing: Any) -> Mapping[str, Any]:
    """Give what an object holds, in its dictionary and its slots."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    found = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return found | dict(getattr(thing, "__dict__", {}))


def _digest(code: CodeType) -> str:
    """Digest code without its place: instructions, names and constants."""
    constants = [
        _digest(each) if isinstance(each, CodeType) else _constant(each) for each in code.co_consts
    ]
    text = repr((code.co_code.hex(), code.co_names, code.co_varnames, constants))
    return hashlib.sha256(text.encode()).hexdigest()


def _constant(value: Any) -> str:
    """Text of a constant; the order of a set differs between processes."""
    if isinstance(value, str) and "<locals>" in value:
        return ""  # the name of a function defined within
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
