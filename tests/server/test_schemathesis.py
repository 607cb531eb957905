"""Schemathesis asks every address what is allowed there, and what is not, as each role."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import FlakyStrategyDefinition
from schemathesis.generation import GenerationMode
from schemathesis.generation.hypothesis.builder import (
    HypothesisTestConfig,
    HypothesisTestMode,
    create_test,
)
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.server.conftest import ORIGIN, QUERY, open_team
from tests.server.functions import copy_place

from hushed.ledger._rows import run
from hushed.ledger._together import reading

FEW = 3
MEANING = positive_data_acceptance  # no document says which columns a table has
POSITIVE, NEGATIVE = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
GIVEN = [HypothesisTestMode.EXAMPLES, HypothesisTestMode.COVERAGE]
SETTINGS = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
STATUSES = {200, 201, 202, 204, 400, 401, 403, 404, 405, 409, 413, 422, 429}


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
        schema = schemathesis.openapi.from_dict(deepcopy(document))  # which it changes
        # Else it gives up after 10 s, on a busy machine too, and the server says 503 of that.
        schema.config.request_timeout = 600
        refusals = schema.config.checks.negative_data_rejection
        refusals.expected_statuses = [*refusals.expected_statuses, "413"]  # it may be too long
        roles = {"analyst": team.ana, "steward": team.sam, "quote-only": quoting, "nobody": None}
        known = {"dataset": "stays", "request": made, "person": team.person("bo")}
        known |= {"function": "mean_cost"}
        yield team, schema, roles, known


# Of each kind for each address, and chains of requests, by each role; the same ones in each run.
# Each bound of each value is 2,000 requests of a role, half a minute of a processor, and 25 drawn
# of each kind are as much again: the short form has chains and bounds as the analyst alone, who
# asks most, and no bounds of the two addresses that take a query, which make up 1,500 of them.
@pytest.mark.parametrize(
    "examples",
    [pytest.param(FEW, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.soak)],
)
# The steward comes last, for what is asked then lets people out and revokes their tokens.
@pytest.mark.parametrize("role", ["analyst", "quote-only", "nobody", "steward"])
def test_20_every_answer_is_one_that_is_described(served, role, examples):
    """No 500, no status or body beyond the document, and nothing that breaks it is let in."""
    team, schema, roles, known = served
    asks = Asks(team=team, token=roles[role], known=known)
    if role == "analyst" or examples > FEW:
        follow(asks, schema, max(25, examples))
    if role == "analyst":
        assert asks.linked > 0
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in (POSITIVE, NEGATIVE):
            takes = operation.body or any(operation.iter_parameters())
            if mode is POSITIVE or takes:
                draw(asks, operation, mode, examples)
        before = asks.count(operation)
        assert before > 0
        if examples > FEW or (role == "analyst" and not takes_query(operation)):
            cover(asks, operation)
            assert asks.count(operation) > before
    statuses = {status for _, status in asks.seen}
    assert statuses <= STATUSES
    expected = {"analyst": {200, 404, 422}, "steward": {200, 201}, "quote-only": {200, 403}}
    assert statuses >= expected.get(role, {200, 401})
    # A steward may have set shares aside, which is charged, too.
    paid = [each for each in team.desk.ledger.entries("stays") if not each.key.startswith("share ")]
    assert len(paid) == count_requests(team)


def takes_query(operation):
    """Whether its body is a question to a table."""
    path = "/v1/datasets/{dataset}/"
    return operation.method == "post" and operation.path in (f"{path}quote", f"{path}requests")


def count_requests(team):
    """Count what was charged to the analyst, of whom a page tells at most a hundred."""
    with reading(team.desk.ledger) as connection:
        statement = "SELECT COUNT(*) FROM @.hushed_s_requests WHERE entry IS NOT NULL"
        return run(connection, statement, {}).fetchone()[0]


@dataclass(kw_only=True)
class Asks:
    """Who asks, and what was answered."""

    team: Any
    token: str | None
    known: dict[str, str]
    seen: Counter = field(default_factory=Counter)
    linked: int = 0  # requests with what the answer to another one told

    def count(self, operation):
        return sum(self.seen[operation.label, status] for status in range(600))

    def name(self, case):
        """Let a case name things that there are."""
        case.path_parameters.update(
            {name: self.known[name] for name in case.path_parameters if name in self.known}
        )
        if isinstance(case.body, dict) and "query" in case.body:
            case.body["query"] = QUERY

    def told(self):
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def call(self, case):
        # Its client puts an Accept of its own in the place of the one of a case, if not told so.
        own = {
            name: each for name, each in (case.headers or {}).items() if name.lower() == "accept"
        }
        return case.call(app=self.team.client.app, base_url=ORIGIN, headers=own | self.told())

    def check(self, case, answer):
        self.seen[case.operation.label, answer.status_code] += 1
        but = [MEANING]
        if any(name.lower() == "accept" for name in case.headers or {}):
            # One that is too long by the blanks at its end is sent without them, and is let in.
            # Each way to be too long that counts is in test_threats.py.
            but.append(negative_data_rejection)
        case.validate_response(answer, headers=self.told(), excluded_checks=but)


def draw(asks, operation, mode, examples):
    """Ask one address what is drawn; half of what is allowed names things that there are."""
    drawn = Counter()

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(SETTINGS, max_examples=examples)
    def run(case):
        drawn["cases"] += 1
        if mode is POSITIVE and drawn["cases"] % 2:
            asks.name(case)
        asks.check(case, asks.call(case))

    run()


def cover(asks, operation):
    """Ask one address at each bound of each value, and with each value left out."""

    def run(case):
        asks.check(case, asks.call(case))

    made = create_test(
        operation=operation,
        test_func=run,
        config=HypothesisTestConfig(
            project=operation.schema.config,
            modes=GIVEN,
            settings=settings(SETTINGS, phases=[Phase.explicit]),
        ),
    )
    made()


def follow(asks, schema, chains):
    """Ask in chains: with the ids that were told before, as far as the document shows them.

    What is drawn next depends on what the server has told, which is not the same in each chain.
    Hypothesis gives up where it sees that, as if a test had failed: new chains begin then.
    """
    machine, begun = schema.as_state_machine(), Counter()

    class Chain(machine):
        def setup(self):
            begun["chains"] += 1

        def step(self, given):
            asks.linked += given.transition is not None and given.is_applied
            return super().step(given)

        def call(self, case, **_):
            return asks.call(case)

        def validate_response(self, response, case, **_):
            asks.check(case, response)

    while (left := chains - begun["chains"]) > 0:
        with suppress(FlakyStrategyDefinition):
            seed(begun["chains"])(Chain)
            Chain.run(settings=settings(SETTINGS, max_examples=left, stateful_step_count=6))
