"""What is wrong with a value that was sent or written down, in plain words; it is not quoted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_SAID: Final = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be {le} or less",
    "finite_number": "must be a finite number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be a text",
    "string_too_long": "has at most {max_length} characters",
    "string_too_short": "has at least {min_length} characters",
    "string_pattern_mismatch": "must have the form {pattern}",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "literal_error": "must be {expected}",
    "too_long": "has at most {max_length} parts",
    "too_short": "has at least {min_length} parts",
    "missing": "is missing",
    "extra_forbidden": "is not known here: leave it out",
    "json_invalid": "is no JSON",
}


def say_value(error: Mapping[str, Any]) -> str:
    """Say what an error of Pydantic means."""
    known = _SAID.get(str(error["type"]))
    if known is not None:
        return known.format(**error.get("ctx") or {})
    return str(error["msg"]).removeprefix("Value error, ")
