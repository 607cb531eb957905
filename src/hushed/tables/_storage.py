"""Answers as JSON, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import Any, get_args

from hushed.errors import DamagedLedger
from hushed.guarantee import Guarantee, Neighbours, Unit
from hushed.ledger._failures import raise_failure
from hushed.tables._answers import Answer, Asked
from hushed.tables._ladders import Candidates
from hushed.tables._left_out import read_counts
from hushed.tables._plan import NoiseName
from hushed.tables._question import Query

_SCHEMA, _VERSION = "hushed answer", 1
_MAPPINGS = ("values", "low", "high", "present")
_WIDEST = 26  # characters of a number and what stands behind it
_REMARKS = 2_000  # characters said of one output, and of all; which ones, the noise decides


def plain_rows(answer: Answer) -> list[dict[str, Any]]:
    """Rows of an answer as JSON holds them: dates as strings."""
    return [{name: _plain_cell(cell) for name, cell in row.items()} for row in answer.rows()]


def _plain_cell(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, date) else cell


def write_answer(answer: Answer) -> str:
    """Write an answer as JSON, every number exact."""
    record: dict[str, Any] = {"schema": _SCHEMA, "version": _VERSION}
    record["keys"] = {
        name: {
            "dates": any(isinstance(each, date) for each in column),
            "values": list(map(_plain_cell, column)),
        }
        for name, column in answer.keys.items()
    }
    record |= {name: dict(getattr(answer, name)) for name in _MAPPINGS}
    record |= {"rank_error": dict(answer.rank_error), "warnings": answer.warnings}
    record["shortfall"] = dict(answer.shortfall)
    record["candidates"] = {name: asdict(each) for name, each in answer.candidates.items()}
    record["bounds"] = dict(answer.bounds)
    record |= {"edges": dict(answer.edges), "probabilities": dict(answer.probabilities)}
    promise = answer.guarantee
    record |= {
        "level": answer.level,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "neighbours": promise.neighbours,
        "unit": answer.unit,
    }
    if answer.asked is not None:
        asked = answer.asked
        record["asked"] = {
            "query": json.loads(asked.query.to_json()),
            "noise": asked.noise,
            "beta": asked.beta,
        }
        if asked.left_out is not None:
            record["asked"]["left_out"] = {
                "rows": asked.left_out.rows,
                "users": asked.left_out.users,
            }
    return json.dumps(record)


def bound_length(group: Answer, values: Sequence[Sequence[Any]], asked: Asked) -> int:
    """Bound the characters of an answer of which one group and the public keys are known."""
    groups = math.prod(map(len, values))
    numbers = sum(1 for name in _MAPPINGS for _ in _list_cells(dict(getattr(group, name))))
    keys = sum(
        groups // len(each) * sum(len(json.dumps(_plain_cell(key))) + 2 for key in each)
        for each in values
    )
    told = len(write_answer(replace(group, asked=asked))) + _REMARKS * (1 + len(group.values))
    return told + keys + groups * numbers * _WIDEST


def read_answer(text: str) -> Answer:
    """Read what `write_answer` wrote; a stored failure is raised again."""
    raise_failure(text)
    try:
        found = _read_record(json.loads(text))
        str(found)  # whoever may append may have stored anything: it is read as a whole, or not
    except Exception:
        raise DamagedLedger(
            "the stored answer was not written by a query of this version"
        ) from None
    return found


def _read_record(record: Any) -> Answer:
    neighbours: Neighbours = record["neighbours"]
    unit: Unit = record["unit"]
    if (record["schema"], record["version"]) != (_SCHEMA, _VERSION):
        raise KeyError(record["schema"])
    if neighbours not in get_args(Neighbours):
        raise KeyError(neighbours)
    if not all(isinstance(each, str) for each in record["warnings"]):
        raise TypeError("warnings")
    columns = {
        name: tuple(map(date.fromisoformat, each["values"]) if each["dates"] else each["values"])
        for name, each in record["keys"].items()
    }
    cells = {
        name: {output: tuple(column) for output, column in record[name].items()}
        for name in _MAPPINGS
    }
    if any(isinstance(cell, bool) for each in cells.values() for cell in _list_cells(each)):
        raise TypeError("a truth value among numbers")
    return Answer(
        keys=columns,
        values=cells["values"],
        low=cells["low"],
        high=cells["high"],
        rank_error=record["rank_error"],
        shortfall=record["shortfall"],
        candidates={name: Candidates(**each) for name, each in record["candidates"].items()},
        bounds={name: (low, high) for name, (low, high) in record["bounds"].items()},
        edges={name: tuple(each) for name, each in record["edges"].items()},
        probabilities={name: tuple(each) for name, each in record["probabilities"].items()},
        present=cells["present"],
        warnings=tuple(record["warnings"]),
        level=record["level"],
        guarantee=Guarantee(
            epsilon=record["epsilon"], delta=record["delta"], neighbours=neighbours, unit=unit
        ),
        unit=unit,
        asked=_read_asked(record.get("asked")),
    )


def _list_cells(found: Any) -> Iterator[Any]:
    """List the single values of columns, lists within them too."""
    if isinstance(found, dict):
        found = found.values()
    elif not isinstance(found, list | tuple):
        yield found
        return
    for each in found:
        yield from _list_cells(each)


def _read_asked(record: Any) -> Asked | None:
    if record is None:
        return None
    noise: NoiseName = record["noise"]
    if noise not in get_args(NoiseName):
        raise KeyError(noise)
    given = record.get("left_out")
    return Asked(
        query=Query(**record["query"]),
        noise=noise,
        beta=float(record["beta"]),
        left_out=None if given is None else read_counts(given),
    )
