"""Words for whole outputs, of which an audit keeps codes and numbers."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushed import errors
from hushed.auditing._digits import EXCEPTION, FAILED, hash_text
from hushed.auditing._outputs import STRUCTURE, Encoder

Floats = NDArray[np.float64]

RARE = "a rare output"
_OTHER = "another exception"
_FAILED = "the run failed with "
_BELOW_ZERO = -5e-324  # how a zero with a minus is encoded
_SIMPLE = ("None", "True", "False", "nan", "inf", "-inf", "-0.0", "Ellipsis")


def name_outputs(encoder: Encoder, sample: Floats) -> tuple[str, ...]:
    """Name each of some encoded outputs: its text, or which exception a run failed with."""
    if encoder.objects:
        return tuple(_name_object(encoder, row) for row in sample)
    return tuple(", ".join(map(write_number, row.tolist())) for row in sample)


def name_type(encoder: Encoder, code: float) -> str:
    """Name a type of outputs, which may not have come up before names were learnt."""
    if code >= FAILED:
        return f"{EXCEPTION}{_name_exception(encoder, code)}"
    return encoder.names.get(code, _list_types().get(code, "another one"))


def write_number(value: float) -> str:
    """Write a number of an output; a zero with a minus is encoded as the number below zero."""
    if value != value:  # noqa: PLR0124
        return "NaN"
    return "-0" if value == _BELOW_ZERO else repr(value) if value % 1 else f"{value:.16g}"


def say_outputs(shown: Sequence[str]) -> str:
    """Say that the outcome is one of these."""
    failed = [each.removeprefix(EXCEPTION) for each in shown if each.startswith(EXCEPTION)]
    others = ["NaN" if each == "nan" else each for each in shown if not each.startswith(EXCEPTION)]
    parts = [f"the output is {' or '.join(others)}"] * bool(others)
    parts += [f"{_FAILED}{' or '.join(failed)}"] * bool(failed)
    return ", or ".join(parts)


def say_types(shown: Sequence[str]) -> str:
    """Say that the outcome is of one of these types."""
    failed = [each for each in shown if each.startswith(EXCEPTION)]
    others = [each for each in shown if not each.startswith(EXCEPTION)]
    parts = [f"the type of the output is {' or '.join(others)}"] * bool(others)
    return ", or ".join([*parts, *([say_outputs(failed)] * bool(failed))])


def _name_object(encoder: Encoder, row: Floats) -> str:
    kind, whole = float(row[0]), float(row[len(STRUCTURE) - 1])
    if kind >= FAILED:
        return f"{EXCEPTION}{_name_exception(encoder, kind)}"
    if whole in encoder.names:
        return encoder.names[whole]
    return next((text for text in _guess_texts(row) if hash_text(text) == whole), RARE)


def _guess_texts(row: Floats) -> Iterator[str]:
    """Guess what an output was written as: it is one number, or none."""
    yield from _SIMPLE
    first = float(row[len(STRUCTURE)])
    if np.isfinite(first):
        yield repr(first)
        yield repr(int(first)) if first % 1 == 0 else ""


def _name_exception(encoder: Encoder, code: float) -> str:
    known = encoder.names.get(code, "").removeprefix(EXCEPTION)
    return known or _list_exceptions().get(code, _OTHER)


@lru_cache(maxsize=1)
def _list_exceptions() -> dict[float, str]:
    """Exceptions of Python and of this library, and ends of programs, by their codes."""
    classes = [*vars(builtins).values(), *vars(errors).values()]
    names = [e.__name__ for e in classes if isinstance(e, type) and issubclass(e, BaseException)]
    names += [f"exit status {status}" for status in range(-64, 256)]
    return {hash_text(f"{EXCEPTION}{name}"): name for name in names}


@lru_cache(maxsize=1)
def _list_types() -> dict[float, str]:
    names = ("float", "int", "bool", "str", "None", "bytes", "list", "tuple", "dict", "ndarray")
    return {hash_text(name): name for name in names}
