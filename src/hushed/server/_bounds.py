"""How large the parts of a query may be at a server: one rule, written into its schema and checked.

A query of the library is bounded by what a table takes; one that comes over a network is smaller.
"""

from __future__ import annotations

import sys
from typing import Any

from hushed.server._problems import Problem
from hushed.tables import Query

MOST_AGGREGATES, MOST_STEPS, LONGEST_EXPRESSION = 20, 10, 500
MOST_KEYS, LONGEST_KEY = 10_000, 200
MOST_QUANTILES = 200  # of all aggregates: the engine plans a thousand for seconds
LONGEST_TEXT = LONGEST_EXPRESSION  # of every name and cell
MOST_PARTS = MOST_KEYS  # of every list and object

_LISTS = {"steps": MOST_STEPS, "aggregates": MOST_AGGREGATES, "probabilities": MOST_QUANTILES}


def check_parts(query: Query) -> None:
    """Refuse a text, a list or an object that is long, wherever it stands."""
    waiting: list[Any] = [query.model_dump()]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str) and len(found) > LONGEST_TEXT:
            raise Problem("bad_query", f"a text in a query has at most {LONGEST_TEXT} characters")
        if isinstance(found, dict | list | tuple):
            if len(found) > MOST_PARTS:
                raise Problem("bad_query", f"a list in a query has at most {MOST_PARTS} parts")
            waiting += found
            waiting += found.values() if isinstance(found, dict) else ()


def write_bounds(schemas: dict[str, Any]) -> None:
    """Write the bounds into the schema of a query, and of all that it is made of."""
    names, known = ["Query"], {"Query"}
    while names:
        found = _bound(schemas[names.pop()])
        names += found - known
        known |= found


def _bound(schema: dict[str, Any], name: str = "") -> set[str]:
    """Bound one schema and those within; the names of those that it refers to."""
    if "$ref" in schema:
        return {schema["$ref"].rpartition("/")[2]}
    kind = schema.get("type")
    if kind == "string" and not {"enum", "const"} & schema.keys():
        schema["maxLength"] = LONGEST_KEY if name == "keys" else LONGEST_TEXT
    elif kind == "number":
        schema |= {"minimum": -sys.float_info.max, "maximum": sys.float_info.max}
    elif kind == "array":
        schema["maxItems"] = _LISTS.get(name, MOST_PARTS)
    elif isinstance(schema.get("additionalProperties"), dict):
        schema |= {"maxProperties": MOST_PARTS, "propertyNames": {"maxLength": LONGEST_TEXT}}
    inside = [(each, name) for way in ("anyOf", "oneOf") for each in schema.get(way, ())]
    inside += [(schema[way], name) for way in ("items", "additionalProperties") if schema.get(way)]
    inside += [(each, named) for named, each in schema.get("properties", {}).items()]
    return {one for each, named in inside for one in _bound(each, named)}
