"""Released answers as text, and back, bit for bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hushed.errors import DamagedLedger, ParameterError
from hushed.ledger._failures import raise_failure
from hushed.mechanisms import Winner
from hushed.mechanisms._bernstein import BernsteinPolynomial
from hushed.releasing._certificate import Certificate

_VERSION = 1


def write_release(value: Any, certificate: Certificate) -> str:
    """Write a released answer as JSON, every double exact."""
    table = value.coefficients if isinstance(value, BernsteinPolynomial) else value
    kind = "polynomial" if table is not value else type(value).__name__
    if isinstance(value, Winner):
        kind, table = "winner", {"index": value.index, "gap": value.gap}
    elif value is None:
        kind = "refusal"
    elif isinstance(table, np.ndarray):
        if table.dtype == np.int64:
            kind = "indices"
        elif table.dtype != np.float64:
            raise ParameterError(f"an answer of type {table.dtype} cannot be stored")
        elif table is value:
            kind = "array"
        # A shape beside it: an array without numbers has one, too.
        table = {"shape": list(table.shape), "numbers": table.ravel().tolist()}
    elif kind not in ("int", "float", "str", "bool"):
        raise ParameterError(f"an answer of type {kind} cannot be stored")
    record = {"kind": kind, "value": table, "certificate": json.loads(certificate.to_json())}
    return json.dumps({"schema": "hushed release", "version": _VERSION} | record, sort_keys=True)


def read_release(text: str) -> tuple[Any, Certificate]:
    """Read what `write_release` wrote; a failure that was stored is raised again."""
    raise_failure(text)
    try:
        record = json.loads(text)
        if not _is_known(record):
            raise KeyError(record)  # noqa: TRY301
        value = record["value"]
        if record["kind"] in ("array", "indices", "polynomial"):
            kept = np.int64 if record["kind"] == "indices" else np.float64
            value = np.array(value["numbers"], dtype=kept).reshape(value["shape"])
        if record["kind"] == "winner":
            value = Winner(index=value["index"], gap=value["gap"])
        if record["kind"] == "polynomial":
            value = BernsteinPolynomial(value)
        return value, Certificate.from_json(json.dumps(record["certificate"]))
    except (KeyError, TypeError, ValueError):
        raise DamagedLedger("the stored answer is not one of hs.release of this version") from None


def _is_known(record: Any) -> bool:
    return isinstance(record, dict) and (record["schema"], record["version"]) == (
        "hushed release",
        _VERSION,
    )
