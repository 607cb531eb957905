"""Whether programs that were written for one OpenAPI document go on working with another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TOLD = ("description", "title", "summary", "tags", "discriminator", "examples")
_LOWER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def simplify(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only people read; the codes of refusals stand in the words of an answer."""
    kept = {each: _strip(document[each]) for each in ("openapi", "paths", "components")}
    for path, ways in document["paths"].items():
        for method, told in ways.items():
            for status, answer in told["responses"].items():
                if status >= "400":
                    into = kept["paths"][path][method]["responses"][status]
                    into["description"] = answer["description"]
    return kept


def _strip(found: Any, named: bool = False) -> Any:
    """Copy without words; in `properties` every name is one of a field."""
    if isinstance(found, list):
        return [_strip(each) for each in found]
    if not isinstance(found, dict):
        return found
    return {
        name: _strip(each, name == "properties")
        for name, each in found.items()
        if named or name not in _TOLD
    }


def list_breaks(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """List what of the old document is gone, narrower, or asked for only now."""
    return [*_operations(old, new)]


def _operations(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    for path, ways in old["paths"].items():
        for method, told in ways.items():
            where = f"{method} {path}"
            found = new["paths"].get(path, {}).get(method)
            if found is None:
                yield f"{where} is gone"
                continue
            yield from _parameters(told, found, where, old, new)
            pairs = _bodies(told.get("requestBody"), found.get("requestBody"))
            if pairs is None:
                yield f"{where}: its body is gone"
            for kind, (was, now) in (pairs or {}).items():
                yield from _schemas(was, now, f"{where} takes {kind}", old, new, taken=True)
            if found.get("requestBody", {}).get("required") and not told.get("requestBody"):
                yield f"{where} needs a body now"
            for status, answer in told["responses"].items():
                yield from _answers(status, answer, found, where, old, new)


def _parameters(was: Any, now: Any, where: str, old: Any, new: Any) -> Iterator[str]:
    known = {(each["in"], each["name"]): each for each in was.get("parameters", ())}
    there = {(each["in"], each["name"]): each for each in now.get("parameters", ())}
    for place, each in known.items():
        if place not in there:
            yield f"{where}: the parameter {place} is gone"
            continue
        schemas = each["schema"], there[place]["schema"]
        yield from _schemas(*schemas, f"{where} takes {place}", old, new, taken=True)
    for place, each in there.items():
        if each.get("required") and not known.get(place, {}).get("required"):
            yield f"{where}: the parameter {place} is required now"


def _bodies(was: Any, now: Any) -> dict[str, tuple[Any, Any]] | None:
    known, there = ((each or {}).get("content", {}) for each in (was, now))
    if not known.keys() <= there.keys():
        return None
    return {kind: (known[kind]["schema"], there[kind]["schema"]) for kind in known}


def _answers(status: str, was: Any, now: Any, where: str, old: Any, new: Any) -> Iterator[str]:
    found = now["responses"].get(status)
    if found is None:
        yield f"{where}: {status} is gone"
        return
    if status >= "400":
        gone = set(was["description"].split(", ")) - set(found["description"].split(", "))
        yield from (f"{where}: {status} says {each} no more" for each in sorted(gone))
    pairs = _bodies(was, found)
    if pairs is None:
        yield f"{where}: {status} has a type less"
    for kind, (before, after) in (pairs or {}).items():
        yield from _schemas(before, after, f"{where} answers {kind}", old, new, taken=False)


def _schemas(
    was: Any, now: Any, where: str, old: Any, new: Any, *, taken: bool, deep: int = 0
) -> Iterator[str]:
    """Compare two schemas: of what is taken nothing may be refused now, of answers nothing gone."""
    was, now = _resolve(was, old), _resolve(now, new)
    if deep > 12:  # no schema here is so deep, but one that holds itself would be
        return
    ways = [each for way in ("anyOf", "oneOf") for each in was.get(way, ())]
    if ways:
        yield from _ways(ways, now, where, old, new, taken=taken, deep=deep)
        return
    if "type" in was and was["type"] not in (now.get("type"), *_types(now, new)):
        yield f"{where}: the type {was['type']} is gone"
        return
    values, there = _values(was), _values(now)
    if values - there and (there or not taken):
        yield f"{where}: {sorted(values - there)} is gone"
    lower = [each for each in _LOWER if each in now and now[each] < was.get(each, float("inf"))]
    yield from (f"{where}: {each} is lower" for each in lower if taken)
    yield from _required(was, now, where, taken=taken)
    for name, (before, after) in _inside(was, now).items():
        if after is None:
            yield f"{where}: the field {name} is gone"
        else:
            more = {"taken": taken, "deep": deep + 1}
            yield from _schemas(before, after, f"{where}.{name}", old, new, **more)


def _required(was: Any, now: Any, where: str, *, taken: bool) -> Iterator[str]:
    """What is taken may ask for nothing more, and an answer may leave nothing out."""
    wants, needs = set(was.get("required", ())), set(now.get("required", ()))
    changed = needs - wants if taken else wants - needs
    words = "is required now" if taken else "may be left out now"
    yield from (f"{where}: the field {name} {words}" for name in sorted(changed))


def _inside(was: Any, now: Any) -> dict[str, tuple[Any, Any]]:
    """Pair the schemas within; None where a field is gone."""
    found = now.get("properties", {})
    pairs = {name: (each, found.get(name)) for name, each in was.get("properties", {}).items()}
    for part in ("items", "additionalProperties"):
        if isinstance(was.get(part), dict) and isinstance(now.get(part), dict):
            pairs[part] = was[part], now[part]
    return pairs


def _values(schema: Any) -> set[str]:
    return {*map(str, schema.get("enum", [schema["const"]] if "const" in schema else ()))}


def _ways(
    was: list[Any], now: Any, where: str, old: Any, new: Any, *, taken: bool, deep: int
) -> Iterator[str]:
    """Each of the old ways has to be one of the new ones."""
    there = [*now.get("anyOf", ()), *now.get("oneOf", ())] or [now]
    for each in was:
        more = {"taken": taken, "deep": deep + 1}
        tried = [[*_schemas(each, one, where, old, new, **more)] for one in there]
        if all(tried):
            yield min(tried, key=len)[0]


def _types(schema: Any, document: Any) -> list[Any]:
    ways = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return [_resolve(each, document).get("type") for each in ways]


def _resolve(schema: Any, document: Any) -> Any:
    if "$ref" not in schema:
        return schema
    return document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
