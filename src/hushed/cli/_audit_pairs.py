"""The option --pairs of the commands that run a mechanism."""

from __future__ import annotations

import json as decoder
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hushed._printing import plain_path
from hushed.auditing import Pair, Relation, extreme_pairs
from hushed.auditing._pairs import FAMILIES, describe_families
from hushed.cli import _audit_options as options
from hushed.errors import NotFound, ParameterError

_EXTREMES = "extremes"
_CHOICES = (
    f"For a function of rows: '{_EXTREMES}' (tables at the ends of a domain, one row changed; with "
    "--low and --high), or a JSON file with a list of [ROWS, NEIGHBOUR]. For a function of a list "
    f"of query answers: {describe_families()}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Options for tables at the ends of a domain."""

    low: str | None
    high: str | None
    rows: int | None

    def options(self) -> dict[str, object]:
        return {"--low": self.low, "--high": self.high, "--rows": self.rows}

    def given(self) -> list[str]:
        return [option for option, value in self.options().items() if value is not None]

    def pairs(self, relation: Relation) -> list[Pair]:
        if relation == "answers":
            raise ParameterError(
                "--pairs extremes gives tables of rows: leave out --relation answers"
            )
        if self.low is None or self.high is None:
            raise ParameterError(
                "--pairs extremes needs the domain of a row: --low LOW --high HIGH"
            )
        ends = _numbers("--low", self.low), _numbers("--high", self.high)
        return extreme_pairs(*ends, options.ROWS if self.rows is None else self.rows, relation)


def _numbers(option: str, text: str) -> float | list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"{option} takes numbers, LOW[,LOW...], got {text!r}") from None
    return found if len(found) > 1 else found[0]


def choose_pairs(
    spec: str | None, domain: Domain, answers: int | None, relation: Relation
) -> str | list[Pair]:
    """Name of a family of answers, tables at the ends of a domain, or pairs from a file."""
    if spec is None:
        raise ParameterError(f"--pairs is needed. {_CHOICES}")
    if spec != _EXTREMES and domain.given():
        raise ParameterError(f"{', '.join(domain.given())} belongs to --pairs {_EXTREMES}")
    if spec not in FAMILIES and answers is not None:
        raise ParameterError(
            f"--answers belongs to a family of query answers: {', '.join(FAMILIES)}"
        )
    if spec == _EXTREMES:
        return domain.pairs(relation)
    return spec if spec in FAMILIES else _pairs_in_file(spec)


def _pairs_in_file(spec: str) -> list[Pair]:
    path = Path(spec)
    if not path.is_file():
        raise NotFound(
            f"there is no file {plain_path(spec)}, and no family of that name. {_CHOICES}"
        )
    try:
        content = decoder.loads(path.read_text(encoding="utf-8"))
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
