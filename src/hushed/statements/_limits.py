"""How much of a report of a budget is worked out: whoever wrote one keeps nobody for hours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hushed.errors import ParameterError
from hushed.ledger import Entry
from hushed.ledger._entries import write_promise
from hushed.statements._readings import canonical
from hushed.statements._studies import is_stronger

_MOST_PARTS = 100_000  # of all different laws; each takes half a millisecond
_MOST_RANGES = 2_000  # of bounded range, of which each takes 5 ms
_MOST_COMPARED = 32  # laws of several parts, of which each takes 0.2 s
_MOST_ANSWERS, _MOST_CHARACTERS = 1_000, 4_000_000  # of stored answers that are read


def require_priced_soon(told: Iterable[Mapping[str, Any]]) -> None:
    """Refuse charges whose different laws would take too long to be priced."""
    parts = {
        canonical(part) for each in told if each.get("law") is not None for part in each["law"]
    }
    ranges = sum('"law":"bounded-range"' in part for part in parts)
    if len(parts) > _MOST_PARTS or ranges > _MOST_RANGES:
        raise ParameterError(
            f"the report of a budget has at most {_MOST_PARTS:,} different laws, {_MOST_RANGES:,} "
            f"of them of bounded range, got {len(parts):,} with {ranges:,}: check the ledger "
            "itself, hushed ledger verify"
        )


def find_smaller(entries: Iterable[Entry], share: float) -> tuple[list[int], list[int]]:
    """Find charges of which a share less is counted than they promise, and those not compared.

    Of laws of several parts, the first different ones are compared.
    """
    known: dict[str, bool | None] = {}
    smaller, unknown = [], []
    composed = 0
    for each in entries:
        loss = each.loss
        if loss is None:
            continue
        name = canonical([write_promise(each.guarantee), each.law])
        if name not in known:
            composed += len(loss.parts) > 1
            late = len(loss.parts) > 1 and composed > _MOST_COMPARED
            known[name] = None if late else is_stronger(loss, each.guarantee, share)
        if known[name] is None:
            unknown.append(each.number)
        elif known[name]:
            smaller.append(each.number)
    return smaller, unknown


def choose_read(answers: Mapping[int, str]) -> set[int]:
    """Choose the last stored answers that are read to say what they are; very long ones are not."""
    chosen: set[int] = set()
    together = 0
    for number in sorted(answers, reverse=True)[:_MOST_ANSWERS]:
        if together + len(answers[number]) <= _MOST_CHARACTERS:
            together += len(answers[number])
            chosen.add(number)
    return chosen
