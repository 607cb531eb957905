"""Schemathesis asks every address what is allowed there, and what is not, as each role."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.server.conftest import ORIGIN, QUERY, open_team
from tests.server.functions import copy_place

MEANING = positive_data_acceptance  # no document says which columns a table has
POSITIVE, NEGATIVE = GenerationMode.POSITIVE, GenerationMode.NEGATIVE


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server on which nobody asks too often, and the tokens of its roles."""
    place = tmp_path_factory.mktemp("schemathesis")
    tokens = copy_place(place)
    file = place / "stats" / "hushed.toml"
    file.write_text(file.read_text().replace("per_minute = 120", "per_minute = 100000"))
    for team in open_team(place / "stats", tokens):
        path = f"/v1/people/{team.person('bo')}/tokens"
        quoting = team.send("POST", path, team.sam, json={"quote_only": True}).json()["token"]
        made = team.ask(team.ana, "first").json()["id"]
        # Tokens are given by the test: without its security, the document lets none be made up.
        document = team.document | {
            "paths": {
                path: {
                    way: {name: part for name, part in told.items() if name != "security"}
                    for way, told in ways.items()
                }
                for path, ways in team.document["paths"].items()
            }
        }
        roles = {"analyst": team.ana, "steward": team.sam, "quote-only": quoting, "nobody": None}
        known = {"dataset": "stays", "request": made, "person": team.person("bo")}
        known |= {"function": "mean_cost"}
        yield team, schemathesis.openapi.from_dict(document), roles, known


# Of each kind for each address, and role; the same ones in each run.
@pytest.mark.parametrize(
    "examples", [pytest.param(3, marks=pytest.mark.slow), pytest.param(20, marks=pytest.mark.soak)]
)
# The steward comes last, for what is asked then lets people out and revokes their tokens.
@pytest.mark.parametrize("role", ["analyst", "quote-only", "nobody", "steward"])
def test_20_every_answer_is_one_that_is_described(served, role, examples):
    """No 500, no status or body beyond the document, and nothing that breaks it is let in."""
    team, schema, roles, known = served
    token, seen, held = roles[role], Counter(), {}
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in (POSITIVE, NEGATIVE):
            takes = operation.body or any(operation.iter_parameters())
            if mode is POSITIVE or takes:
                ask(team, operation, mode, token, known, seen, examples)
        held[operation.label] = sum(seen[operation.label, status] for status in range(600))
    assert min(held.values()) > 0
    statuses = {status for _, status in seen}
    assert statuses <= {200, 201, 202, 204, 400, 401, 403, 404, 409, 422, 429}
    expected = {"analyst": {200, 404, 422}, "steward": {200, 201}, "quote-only": {200, 403}}
    assert statuses >= expected.get(role, {200, 401})
    # A steward may have set shares aside, which is charged, too.
    paid = [each for each in team.desk.ledger.entries("stays") if not each.key.startswith("share ")]
    assert len(paid) == len(team.send("GET", "/v1/requests", team.ana).json()["items"])


def ask(team, operation, mode, token, known, seen, examples):
    """Ask one address; half of what is allowed names things that there are."""
    drawn = Counter()

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def run(case):
        drawn["cases"] += 1
        if mode is POSITIVE and drawn["cases"] % 2:
            case.path_parameters.update(
                {name: known[name] for name in case.path_parameters if name in known}
            )
            if isinstance(case.body, dict) and "query" in case.body:
                case.body["query"] = QUERY
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        answer = case.call(app=team.client.app, base_url=ORIGIN, headers=headers)
        seen[operation.label, answer.status_code] += 1
        case.validate_response(answer, headers=headers, excluded_checks=[MEANING])

    run()
