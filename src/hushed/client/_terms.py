"""What a question is asked for, and under which key: read before anything is written or sent."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from hushed._ground.checks import read_epsilon, require_count
from hushed._ground.decimals import read
from hushed._ground.printing import as_given, flat
from hushed.errors import ParameterError

_KEY = re.compile(r"[!-~]([ -~]*[!-~])?")  # what a server takes
_LONGEST_KEY = 200
_LONGEST_NOTE = 500


def read_key(key: str | None) -> str:
    """Read the key of a request; one of its own where none is given."""
    if key is None:
        return str(uuid.uuid4())
    if not isinstance(key, str) or len(key) > _LONGEST_KEY or not _KEY.fullmatch(key):
        raise ParameterError(
            f"key must be a text of 1 to {_LONGEST_KEY} letters, digits, signs and spaces of ASCII "
            f"that begins and ends with no space, got {as_given(key)}",
            parameter="key",
        )
    return key


def read_terms(epsilon: Any, delta: Any, note: Any) -> dict[str, Any]:
    """Read what is paid and what for."""
    if not isinstance(note, str) or len(note) > _LONGEST_NOTE:
        raise ParameterError(
            f"note must be a text of at most {_LONGEST_NOTE} characters, got {as_given(note)}",
            parameter="note",
        )
    return {"epsilon": read_epsilon(epsilon), "delta": read_delta(delta), "note": note}


def read_price(
    *,
    epsilon: Any = None,
    delta: Any,
    error: Any = None,
    errors: Mapping[str, Any] | None = None,
    rows: Any = None,
) -> dict[str, Any]:
    """Read what a price is asked for, as it is sent; what is not given is left out."""
    told: dict[str, Any] = {"delta": read_delta(delta)}
    if epsilon is not None:
        told["epsilon"] = read_epsilon(epsilon)
    if error is not None:
        told["error"] = read("error", error, up=False)
    if errors is not None:
        wanted = {name: (f"error of {flat(str(name))}", each) for name, each in errors.items()}
        told["errors"] = {name: read(*each, up=False) for name, each in wanted.items()}
    if rows is not None:
        told["rows"] = require_count("rows", rows)
    return told


def read_delta(delta: Any) -> float:
    """Read a delta that somebody asks for."""
    level = read("delta", delta, up=False)
    if not 0 <= level < 1:
        raise ParameterError(
            f"delta must be 0 or more and below 1, got {as_given(delta)}", parameter="delta"
        )
    return level
