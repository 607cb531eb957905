"""Whether an answer is one that the OpenAPI document of the server tells of."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

PROBLEM = "application/problem+json"


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[a-z]+\\\}", "[^/]+", re.escape(template)))


def check_documented(document: dict[str, Any], method: str, path: str, answer: Any) -> None:
    """Status, type and body of an answer are declared; a problem's code, too."""
    path = path.partition("?")[0]
    known = [each for each in document["paths"] if _pattern(each).fullmatch(path)]
    if not known or method.lower() not in document["paths"][known[0]]:
        assert answer.status_code in (401, 404, 405, 400, 413, 421), answer.text
        return
    told = document["paths"][known[0]][method.lower()]["responses"]
    where = f"{method} {known[0]} {answer.status_code}"
    assert str(answer.status_code) in told, f"{where} is not documented: {answer.text}"
    declared = told[str(answer.status_code)]
    if answer.status_code == 204:
        assert not answer.content
        return
    kind = answer.headers["content-type"].partition(";")[0]
    assert kind in declared["content"], f"{where} has the type {kind}"
    if kind in ("text/csv", "text/html"):
        return
    body = answer.json()
    schema = declared["content"][kind]["schema"] | {"components": document["components"]}
    fault = next(iter(Draft202012Validator(schema).iter_errors(body)), None)
    assert fault is None, f"{where}: {fault.message if fault else ''}"
    if kind == PROBLEM:
        assert f"`{body['code']}`" in declared["description"], f"{where} says {body['code']}"
