"""A check is paid for before it looks, and stored before it is shown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from hushed._functions._calls import public_name
from hushed._functions._silence import silence
from hushed._ground.stops import watch_stops
from hushed.errors import BadFunction
from hushed.ledger._failures import raise_failure, write_failure
from hushed.ledger._payments import Charges, explain_stops, pay
from hushed.mechanisms import Laplace
from hushed.releasing import Certificate, certify

Write = Callable[[Certificate], str]


def charge_and_store(
    look: Write,
    mechanism: Laplace,
    ledger: Charges | None,
    *,
    budget: str | None,
    note: str,
    key: str | None,
    question: str,
) -> tuple[str, int | None]:
    """Charge, look at the private rows, store; what was found as text, and number of the charge.

    ``look`` draws the noise, too, and writes down what it found.
    """
    certify(mechanism, values=1).to_json()  # whatever it refuses is unpaid
    with explain_stops(ledger, budget, key):
        paid = pay(
            ledger,
            budget,
            mechanism.guarantee,
            note,
            loss=mechanism.loss,
            key=key,
            question=question,
        )
        if paid.kept is None:
            certificate = certify(mechanism, values=1, charged=paid.terms)
            text = paid.keep(_look(look, certificate, charged=paid.ledger is not None))
        else:
            text = paid.kept
    raise_failure(text)
    return text, paid.number


def _look(look: Write, certificate: Certificate, *, charged: bool) -> str:
    """Look at the private rows in silence; that it failed on them is an answer, too."""
    name = ""
    # Objects in cells may say something while they are read.
    with silence(), watch_stops() as is_stop:
        try:
            return look(certificate)
        except BaseException as cause:
            name = "" if is_stop(cause) else public_name(type(cause), "an exception")
    if not name:
        raise KeyboardInterrupt
    paid = "the charge stays" if charged else "count the budget as spent"
    return write_failure(BadFunction(f"the check failed on the private rows ({name}); {paid}"))


def write_fields(check: Any) -> str:
    """Write a check as JSON; `read_fields` reads it."""
    record = {each.name: getattr(check, each.name) for each in fields(check)}
    record["certificate"] = json.loads(check.certificate.to_json())
    return json.dumps({"schema": check.schema} | record, sort_keys=True)


def read_fields(text: Any, kind: Any) -> dict[str, Any]:
    """Take the fields out of a stored check of one kind; ValueError for another text."""
    try:
        record = json.loads(text)
    except RecursionError:
        raise ValueError(kind.schema) from None
    if not isinstance(record, dict) or record.pop("schema", None) != kind.schema:
        raise ValueError(kind.schema)
    for each in fields(kind):
        if each.name in record and not _FITS.get(str(each.type), _fits)(record[each.name]):
            raise ValueError(each.name)
    record["certificate"] = Certificate.from_json(json.dumps(record["certificate"]))
    return record


def _fits(value: Any) -> bool:  # noqa: ARG001
    return True


def _is_number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # an integer that is no double
        return False


_FITS: dict[str, Callable[[Any], bool]] = {
    "float": _is_number,
    "int": lambda value: type(value) is int,
    "int | None": lambda value: value is None or type(value) is int,
    "str | int | None": lambda value: value is None or type(value) in (str, int),
    "tuple[float, ...]": lambda value: isinstance(value, list) and all(map(_is_number, value)),
    "tuple[str, ...]": lambda value: all(type(each) is str for each in value),
    "Null": lambda value: value in ("simulated", "disjoint", "resampled"),
    "Promise": lambda value: value in ("population", "given-the-rest", "table"),
    "dict[str, Any]": lambda value: isinstance(value, dict),
}
