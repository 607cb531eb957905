"""The OpenAPI document tells all that the server says; every test that asks one checks it, too."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.server.documented import PROBLEM

from hushed.server._problems import CODES

BY_HAND = {"/v1/requests/{request}/answer"}  # its schema is that of `hushed.Answer`


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, told)
        for path, ways in document["paths"].items()
        for method, told in ways.items()
    ]


@pytest.mark.slow
def test_every_address_declares_what_it_answers(quiet):
    """A model for each success, a problem for each refusal, with the codes that it may have."""
    document = quiet.document
    assert document["openapi"] == "3.1.0"
    assert quiet.client.get("/openapi.json").json() == document
    named = [told["operationId"] for *_, told in operations(document)]
    assert len(set(named)) == len(named) >= 25
    for method, path, told in operations(document):
        assert told["description"], path
        for status, answer in told["responses"].items():
            content = answer.get("content", {})
            if status == "204":
                assert content == {}
            elif status < "300":
                schema = content["application/json"]["schema"]
                shared = schema if path not in BY_HAND else {"$ref": ""}
                assert "$ref" in shared or "additionalProperties" in shared, (method, path)
            else:
                assert set(content) == {PROBLEM}, (method, path, status)
                codes = answer["description"].replace("`", "").split(", ")
                assert {CODES[each][0] for each in codes} == {int(status)}
        guarded = path.startswith("/v1/") and path != "/v1/keys"
        assert bool(told.get("security")) == guarded
        assert ("401" in told["responses"]) == guarded


@pytest.mark.slow
def test_every_model_is_closed_and_every_input_bounded(quiet):
    """No field beyond those that are named; texts, lists and numbers that come in have an end."""
    schemas = quiet.document["components"]["schemas"]
    for name, schema in schemas.items():
        Draft202012Validator.check_schema(schema)
        if "properties" in schema:
            assert schema.get("additionalProperties") is False, name
    for _, path, told in operations(quiet.document):
        for each in told.get("parameters", ()):
            kinds = [each["schema"], *each["schema"].get("anyOf", ())]
            texts = [kind for kind in kinds if kind.get("type") == "string"]
            assert all("maxLength" in kind or "const" in kind for kind in texts), path
            numbers = [kind for kind in kinds if kind.get("type") == "integer"]
            assert all({"minimum", "maximum"} <= set(kind) for kind in numbers), path


@pytest.mark.slow
def test_what_every_role_is_told_is_documented(quiet):
    """Every address, by everybody, with nothing and with nonsense; `Team.send` checks it."""
    ids = {"dataset": "stays", "request": "0" * 36, "person": "nobody", "token": "none"}
    ids |= {"function": "none"}
    seen = set()
    for method, template, _ in operations(quiet.document):
        path = template.format(**ids)
        for token in (None, "nonsense", quiet.ana, quiet.sam):
            for body in (None, {"epsilon": "a lot"}, ["x"]):
                found = quiet.send(method.upper(), path, token, json=body)
                seen.add(found.status_code)
    assert {401, 403, 404, 422} <= seen
    assert 500 not in seen
    assert quiet.charges() == 0


def test_a_method_that_an_address_has_not_is_told_which_it_has(quiet):
    """Over all routes of the address, as the document lists them."""
    for path, ways in quiet.document["paths"].items():
        other = "PUT" if "put" not in ways else "PATCH"
        found = quiet.send(other, re.sub(r"\{\w+\}", "x", path), quiet.sam)
        assert found.status_code == 405
        assert found.headers["allow"] == ", ".join(sorted(map(str.upper, ways)))
