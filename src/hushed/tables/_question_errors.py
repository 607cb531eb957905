"""What is wrong with a query as data, in words: the part, the key that was met, what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from hushed._ground.printing import brief, suggest
from hushed.tables._question_parts import AnyAggregate, AnyStep, Groups

_STEPS = {next(iter(each.model_fields)): each for each in get_args(AnyStep)}  # by their first key
_KINDS = {each.model_fields["kind"].default: each for each in get_args(get_args(AnyAggregate)[0])}


def explain_query(error: ValidationError, query: type[BaseModel], given: Mapping[str, Any]) -> str:
    """Name the first part that is wrong, and say how."""
    first = _choose(error.errors(include_url=False, include_context=False, include_input=False))
    place = tuple(first["loc"])
    listed = given.get(str(place[0])) if place else None
    if isinstance(listed, list | tuple) and len(place) > 1:
        part = listed[int(place[1])]
        if place[0] == "steps":
            return _explain_step(place[:2], part)
        if first["type"].startswith("union_tag") or len(place) == 2:
            return f"{_name(place)}: {_explain_kind(part)}"
    parts: Any = query
    if place[:1] == ("groups",):
        parts = Groups
    elif place[:1] == ("aggregates",) and len(place) > 2:
        parts = _KINDS.get(str(place[2]), query)
    return _explain(first, place, parts)


def _choose(found: Sequence[Any]) -> Any:
    """Choose the first problem; what is missing may stand there under a name that is not known."""
    unknown = [each for each in found if each["type"] == "extra_forbidden"]
    return unknown[0] if unknown and found[0]["type"] == "missing" else found[0]


def _explain_step(place: Sequence[Any], step: Any) -> str:
    """Explain what is wrong with a step, which may be one of several kinds."""
    at = f"{_name(place)}: "
    listed = ", ".join(_STEPS)
    if not isinstance(step, Mapping):
        return f'{at}a step is a table such as {{ filter = "age >= 18" }}, not {_type_of(step)}'
    kind = next((name for name in _STEPS if name in step), None)
    if kind is None:
        keys = _list_keys(step)
        return f"{at}a step has one of {listed}, and this one {keys}{_suggest(step, _STEPS)}"
    try:
        _STEPS[kind].model_validate(step)
    except ValidationError as error:
        first = _choose(error.errors(include_url=False, include_context=False, include_input=False))
        return _explain(first, (*place, *first["loc"]), _STEPS[kind])
    return f"{at}this is no step"


def _explain_kind(aggregate: Any) -> str:
    """Explain what is wrong with the kind of an aggregate."""
    listed = f"the kinds are {', '.join(_KINDS)}"
    if not isinstance(aggregate, Mapping):
        return f'an aggregate is a table such as {{ kind = "count" }}, not {_type_of(aggregate)}'
    if "kind" not in aggregate:
        return f"an aggregate needs a kind, and this one {_list_keys(aggregate)}; {listed}"
    kind = aggregate["kind"]
    return f"there is no kind {brief(str(kind))}{suggest(kind, _KINDS)}; {listed}"


def _explain(problem: Any, place: Sequence[Any], parts: type[BaseModel]) -> str:
    """Explain what is wrong with a part, which holds what a class says."""
    if problem["type"] == "extra_forbidden":
        key = place[-1]
        named = suggest(key, parts.model_fields)
        allowed = ", ".join(parts.model_fields)
        return f"{_name(place)} is not known here{named}; allowed are {allowed}"
    if problem["type"] == "missing":
        return f"{_name(place)} is missing"
    said = str(problem["msg"]).removeprefix("Value error, ")
    return f"{_name(place)}: {said}" if place else said


def _name(place: Iterable[Any]) -> str:
    parts = [str(each) for each in place]  # without what a parser calls a choice of words
    return brief(".".join(each for each in parts if not each.startswith("literal[")))


def _list_keys(given: Mapping[str, Any]) -> str:
    return f"has {', '.join(brief(str(each)) for each in given)}" if given else "is empty"


def _suggest(given: Mapping[str, Any], known: Iterable[str]) -> str:
    return next(filter(None, (suggest(each, known) for each in given)), "")


def _type_of(value: object) -> str:
    return f"something of type {type(value).__name__}"
