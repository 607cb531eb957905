"""The errors that a query is to keep, as the command line names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hushed as hs
from hushed._ground.numerals import read_number
from hushed.errors import ParameterError


def check_target(
    epsilon: float | None, errors: Sequence[str], rows: int | None, *, quote: bool, share: str
) -> None:
    """Refuse options that do not say what the query costs, or say it twice."""
    if (epsilon is None) == (not errors):
        raise ParameterError("give --epsilon, or --error NAME=VALUE, one of the two")
    if share != "weights" and not errors:
        raise ParameterError("--share is for --error")
    if rows is not None and not (quote or errors):
        raise ParameterError("--about-rows is for --quote and --error")


def read_errors(texts: Sequence[str]) -> dict[str, float]:
    """Read NAME=VALUE, where the name may hold equals signs."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            value = read_number(number.strip())
        except ValueError:
            name, value = "", 0.0
        if not name:
            raise ParameterError(f"--error takes NAME=VALUE, such as count=50, got {text!r}")
        if name in found:
            raise ParameterError(f"--error names {name!r} twice")
        found[name] = value
    return found


def describe_errors(found: hs.tables.QuotedErrors) -> dict[str, Any]:
    """Describe as JSON what was asked for, and what decides epsilon."""
    return {
        "errors": dict(found.errors),
        "binding": list(found.binding),
        "weights": dict(found.weights),
    }
