"""The OpenAPI document tells all that the server says; every test that asks one checks it, too."""

from __future__ import annotations

import json
import os
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.server.compatible import list_breaks, simplify
from tests.server.conftest import QUERY
from tests.server.documented import PROBLEM

from hushed import Query
from hushed.server import _judging
from hushed.server._judging import check_size
from hushed.server._problems import CODES, Problem

BY_HAND = {"/v1/requests/{request}/answer"}  # its schema is that of `hushed.Answer`


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, told)
        for path, ways in document["paths"].items()
        for method, told in ways.items()
    ]


def test_it_is_written_once(quiet, monkeypatch):
    """To write it takes 20 ms, in which nobody else is answered, and anybody may ask for it."""
    written = quiet.client.get("/openapi.json")
    monkeypatch.setattr(json, "dumps", None)
    again = quiet.client.get("/openapi.json")
    assert again.status_code == written.status_code == 200
    assert again.headers["content-type"] == "application/json"
    assert again.content == written.content


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
    for method, path, told in operations(quiet.document):
        content = told.get("requestBody", {}).get("content", {})
        taken = [each["schema"] for each in [*told.get("parameters", ()), *content.values()]]
        assert bool(content) == (method in ("post", "put", "patch")) or "{request}/approve" in path
        assert list(list_endless(taken, schemas)) == [], (method, path)


def list_endless(taken, schemas, known=()):
    """List whatever may be as long, as many or as large as it likes; where each stands."""
    for schema in taken:
        named = schema.get("$ref", "").rpartition("/")[2]
        if named and named not in known:
            inside = list_endless([schemas[named]], schemas, (*known, named))
            yield from (f"{named}.{each}" for each in inside)
        ends = {
            "string": [{"maxLength"}],
            "array": [{"maxItems"}],
            "number": [{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}],
        }
        ends["integer"] = ends["number"]
        free = isinstance(schema.get("additionalProperties"), dict)
        ends["object"] = [{"maxProperties"}, {"propertyNames"}] if free else []
        closed = {"enum", "const"} & schema.keys()
        if not closed and not all(
            each & schema.keys() for each in ends.get(schema.get("type"), ())
        ):
            yield schema.get("title", schema["type"])
        within = [each for way in ("anyOf", "oneOf", "allOf") for each in schema.get(way, ())]
        within += [schema["items"]] if schema.get("type") == "array" else []
        within += [schema[each] for each in ("additionalProperties",) if free]
        within += schema.get("properties", {}).values()
        yield from list_endless(within, schemas, known)


COUNT = {"kind": "count"}
QUANTILES = {"kind": "quantiles", "column": "cost", "low": 0, "high": 50}


@pytest.mark.parametrize(
    "more",
    [
        {"steps": [{"filter": "cost > 1"}] * 11},
        {"aggregates": [COUNT | {"name": f"n{i}"} for i in range(21)]},
        {"aggregates": [QUANTILES | {"probabilities": [i / 202 for i in range(1, 202)]}]},
        {"aggregates": [COUNT | {"name": "n" * 501}]},
        {"aggregates": [COUNT | {"weight": 1e400}]},
        {"user": "u" * 501},
        {"columns": {"c" * 501: "int"}},
        {"columns": {f"c{i}": "int" for i in range(10_001)}},
        {"steps": [{"filter": "f" * 501}]},
        {"steps": [{"derive": "d" * 501, "expression": "1"}]},
        {"steps": [{"join": "ward", "keys": ["A"], "columns": {"x": ["c" * 501]}}]},
        {"groups": {"columns": ["g"] * 10_001}},
        {"groups": {"columns": ["ward"], "keys": [["k" * 201]]}},
    ],
    ids=lambda more: next(iter(more)),
)
def test_what_is_beyond_the_bounds_of_a_query_is_refused_by_both(quiet, more):
    """By the document that a program reads, and by the server; what is just within is not."""
    schema = {"components": quiet.document["components"], "$ref": "#/components/schemas/Query"}
    assert not Draft202012Validator(schema).is_valid(json.loads(json.dumps(QUERY | more)))
    assert Draft202012Validator(schema).is_valid(QUERY)
    with pytest.raises((Problem, ValueError)):
        check_size(Query(**QUERY | more))


KEPT = Path(__file__).parent / "openapi-v1.json"


def test_a_program_for_the_first_document_goes_on_working(quiet):
    """No path, field, code or type of v1 goes away, and nothing more is asked for.

    What is added belongs into the file, too, so that it stays:
    ``HUSHED_WRITE_OPENAPI=1 python -m pytest -n 0 tests/server/test_openapi.py -k goes_on``.
    """
    found = simplify(quiet.document)
    if os.environ.get("HUSHED_WRITE_OPENAPI"):
        KEPT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    assert list_breaks(json.loads(KEPT.read_text()), found) == []


def _of(document, *names):
    for name in names:
        document = document[name]
    return document


ASK = ("components", "schemas", "Ask")
PROBLEM_CODE = ("components", "schemas", "Problem", "properties", "code")
POST = ("paths", "/v1/datasets/{dataset}/requests", "post")


@pytest.mark.parametrize(
    ("place", "change", "said"),
    [
        (("paths",), lambda at: at.pop("/v1/me"), "get /v1/me is gone"),
        (POST[:2], lambda at: at.pop("post"), "is gone"),
        ((*POST, "parameters"), lambda at: at.pop(), "parameter"),
        ((*POST, "parameters", 0), lambda at: at["schema"].update(maxLength=1), "maxLength"),
        (POST, lambda at: at["parameters"][-1].update(required=True, name="x"), "required now"),
        ((*POST, "responses"), lambda at: at.pop("409"), "409 is gone"),
        ((*POST, "responses", "409"), lambda at: at.update(description="`x`"), "no more"),
        ((*ASK, "properties"), lambda at: at.pop("note"), "note is gone"),
        (ASK, lambda at: at["required"].append("note"), "note is required now"),
        ((*ASK, "properties", "note"), lambda at: at.update(type="integer"), "type string is gone"),
        ((*ASK, "properties", "epsilon"), lambda at: at.update(maximum=1.0), "maximum is lower"),
        ((*ASK, "properties", "noise"), lambda at: at["enum"].pop(), "gaussian"),
        (
            ("components", "schemas", "Query", "properties", "steps"),
            lambda at: at["items"]["anyOf"].pop(0),
            "",
        ),
        (
            ("components", "schemas", "ShownRequest"),
            lambda at: at["properties"].pop("asked_at"),
            "asked_at is gone",
        ),
        (
            ("components", "schemas", "ShownRequest"),
            lambda at: at["required"].remove("entry"),
            "entry may be left out",
        ),
        (
            ("components", "schemas", "Problem", "properties", "code"),
            lambda at: at["enum"].pop(),
            "",
        ),
    ],
)
def test_whatever_would_break_a_program_is_seen(place, change, said):
    """Each kind of break, made in a copy of the document that is kept."""
    kept = json.loads(KEPT.read_text())
    assert list_breaks(kept, kept) == []
    new = deepcopy(kept)
    change(_of(new, *place))
    assert any(said in each for each in list_breaks(kept, new))


def test_what_is_added_breaks_nothing():
    """A path, a field that may be left out, one more of an answer, a wider bound."""
    kept = json.loads(KEPT.read_text())
    new = deepcopy(kept)
    new["paths"]["/v1/new"] = new["paths"]["/v1/me"]
    ask, told = (new["components"]["schemas"][each] for each in ("Ask", "ShownRequest"))
    ask["properties"]["more"] = {"type": "string", "maxLength": 5}
    ask["properties"]["note"]["maxLength"] = 1000
    told["properties"]["more"] = {"type": "string"}
    told["required"].append("more")
    assert list_breaks(kept, new) == []


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


@pytest.mark.slow
def test_the_examples_of_the_document_work(quiet):
    """A program that sends one as it stands is answered: each is priced, or taken by its model."""
    schemas = quiet.document["components"]["schemas"]
    for name in ("Ask", "AskQuote", "FunctionPrice", "FunctionTerms"):
        (example,) = schemas[name]["examples"]
        model = getattr(_judging, name)
        assert model.model_validate(example)
    priced = quiet.send(
        "POST", "/v1/datasets/stays/quote", quiet.ana, json=schemas["AskQuote"]["examples"][0]
    )
    assert priced.status_code == 200
    assert schemas["Ask"]["examples"][0]["query"] == schemas["AskQuote"]["examples"][0]["query"]


@pytest.mark.slow
@pytest.mark.parametrize("user", [None, "ward"])
def test_a_query_of_other_people_hears_whom_the_data_set_protects(quiet, user):
    """Over HTTP nobody has opened a table: the words are of the query."""
    told = {"query": {"user": user, "aggregates": [COUNT]}, "epsilon": 0.1}
    for path in ("quote", "requests"):
        found = quiet.send(
            "POST",
            f"/v1/datasets/stays/{path}",
            quiet.ana,
            json=told,
            headers={"Idempotency-Key": "one"},
        )
        assert (found.status_code, found.json()["code"]) == (422, "bad_query")
        assert found.json()["detail"] == (
            "this data set protects each person, by the column 'patient': the query names it, as "
            "user = 'patient', and max_rows_per_user, the rows of each that count"
        )
