"""The option --pairs of the commands that run a mechanism."""

from __future__ import annotations

import json as decoder
from pathlib import Path
from typing import Any

import numpy as np

from hushed._ground.numerals import read_number
from hushed._ground.printing import plain_path
from hushed.auditing import Pair, Relation, extreme_pairs
from hushed.auditing._pairs import FAMILIES, describe_families
from hushed.cli._audit_options import ROWS, Inputs
from hushed.errors import NotFound, ParameterError

_EXTREMES = "extremes"
_CHOICES = (
    f"For a function of rows: '{_EXTREMES}' (tables at the ends of a domain, one row changed; with "
    "--low and --high), or a JSON file with a list of [ROWS, NEIGHBOUR]. For a function of a list "
    f"of query answers: {describe_families()}"
)


def _numbers(option: str, text: str) -> float | list[float]:
    try:
        found = [read_number(part.strip()) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"{option} takes numbers, LOW[,LOW...], got {text!r}") from None
    return found if len(found) > 1 else found[0]


def choose_pairs(asked: Inputs, relation: Relation) -> str | list[Pair]:
    """Name of a family of answers, tables at the ends of a domain, or pairs from a file."""
    spec = asked.pairs
    if spec is None:
        raise ParameterError(f"--pairs is needed. {_CHOICES}")
    given = [option for option, value in asked.domain.items() if value is not None]
    if spec != _EXTREMES and given:
        raise ParameterError(f"{', '.join(given)} belongs to --pairs {_EXTREMES}")
    if spec not in FAMILIES and asked.answers is not None:
        raise ParameterError(
            f"--answers belongs to a family of query answers: {', '.join(FAMILIES)}"
        )
    if spec == _EXTREMES:
        return _make_extremes(asked, relation)
    return spec if spec in FAMILIES else _pairs_in_file(spec)


def _make_extremes(asked: Inputs, relation: Relation) -> list[Pair]:
    """Make tables at the ends of a domain."""
    if relation == "answers":
        raise ParameterError("--pairs extremes gives tables of rows: leave out --relation answers")
    if asked.low is None or asked.high is None:
        raise ParameterError("--pairs extremes needs the domain of a row: --low LOW --high HIGH")
    ends = _numbers("--low", asked.low), _numbers("--high", asked.high)
    return extreme_pairs(*ends, ROWS if asked.rows is None else asked.rows, relation)


def _pairs_in_file(spec: str) -> list[Pair]:
    path = Path(spec)
    if not path.is_file():
        raise NotFound(
            f"there is no file {plain_path(spec)}, and no family of that name. {_CHOICES}"
        )
    try:
        content = decoder.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as cause:
        raise ParameterError(f"{path.name} is not JSON: {cause}") from None
    if not isinstance(content, list) or not all(
        isinstance(each, list) and len(each) == 2 for each in content
    ):
        raise ParameterError(f"{path.name} must hold a list of [ROWS, NEIGHBOUR]")
    return [
        Pair(rows=_table(one), neighbour=_table(other), name=f"pair {number}")
        for number, (one, other) in enumerate(content, start=1)
    ]


def _table(rows: Any) -> Any:
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        return rows
