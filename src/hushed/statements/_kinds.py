"""Every kind of record that can be certified."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from hushed._ground.printing import flat
from hushed.errors import HushedError, ParameterError
from hushed.statements._answers import ANSWERS
from hushed.statements._audits import AUDITS
from hushed.statements._budgets import BUDGETS
from hushed.statements._fits import MOVEMENT_CHECKS, POPULATION_CHECKS
from hushed.statements._readings import Kind, Reading, canonical, clean
from hushed.statements._releases import RELEASES
from hushed.statements._searches import SEARCHES
from hushed.statements._studies import STUDIES

KINDS = (
    *(ANSWERS, RELEASES, SEARCHES, POPULATION_CHECKS, MOVEMENT_CHECKS),
    *(AUDITS, STUDIES, BUDGETS),
)

# What reading a record raises that nobody wrote: a field is missing, of another type or size.
_BROKEN = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(MemoryError, RecursionError),
)

# What is written where there is some, and was written by some versions where there was none.
_LEFT_OUT: tuple[tuple[str, object], ...] = (("value_scale", None), ("names", []))


def kind_of_record(text: str) -> Kind:
    """Find the kind that a record names."""
    found = _load(text)
    schema = found.get("schema") if isinstance(found, dict) else None
    for each in KINDS:
        if schema == each.schema:
            return each
    if isinstance(found, dict) and found.keys() >= {"guarantee", "mechanism"}:
        raise ParameterError(
            "this is a certificate already, of the promise alone: it does not hold the released "
            "number. To certify that, release with a ledger and name the charge: hushed certify "
            "--ledger URL --budget NAME --entry N"
        )
    known = ", ".join(each.schema for each in KINDS)
    raise ParameterError(f"no record that can be certified ({known}): got {flat(schema)!r}")


def names_kind(record: object) -> bool:
    """Whether a record names a kind of this version, whatever else it says."""
    return isinstance(record, dict) and any(record.get("schema") == each.schema for each in KINDS)


def kind_of_object(subject: object) -> Kind:
    """Find the kind of an object."""
    for each in KINDS:
        if isinstance(subject, each.takes):
            return each
    known = ", ".join(kind.__name__ for each in KINDS for kind in each.takes)
    raise ParameterError(
        f"a certificate is made of one of {known}, got {type(subject).__name__}"
        + "; of a private estimator once it is fitted" * hasattr(type(subject), "fit"),
        parameter="subject",
    )


@lru_cache(maxsize=32)
def read_record(text: str) -> Reading:
    """Read a record, which must be what this version would write of what it says."""
    kind = kind_of_record(text)
    try:
        found = kind.read(text)
        again = canonical(_load(kind.write_again(found)))
    except HushedError:
        raise
    except _BROKEN as bad:
        raise ParameterError(
            f"the record is no {kind.name} of this version ({type(bad).__name__})"
        ) from None
    if again != canonical(_load(text)):
        raise ParameterError(
            f"the record says more, or other things, than one of the kind {kind.name} does"
        )
    return clean(found)


def _load(text: str) -> Any:
    """Parse a record, without what some versions wrote though there was nothing to say."""
    try:
        return json.loads(text, object_hook=_leave_out_empty)
    except (ValueError, RecursionError):
        raise ParameterError("the record is not JSON") from None


def _leave_out_empty(part: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in part.items() if (name, each) not in _LEFT_OUT}
