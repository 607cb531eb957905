"""What is asked, judged before anything is charged: sizes, names, types, price. No row is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr

from hushed.errors import (
    EngineUnavailable,
    HushedError,
    NotFeasible,
    NotFound,
    Overspent,
    ParameterError,
)
from hushed.ledger import Ledger
from hushed.server._config import Limits
from hushed.server._datasets import Dataset
from hushed.server._people import Grant
from hushed.server._problems import Problem
from hushed.tables import Query, Quote, Table
from hushed.tables._plan import Plan
from hushed.tables._prepared import Prepared
from hushed.tables._release import plan_query

MOST_AGGREGATES, MOST_STEPS, LONGEST_EXPRESSION = 20, 10, 500
MOST_KEYS, LONGEST_KEY = 10_000, 200
MOST_QUANTILES = 200  # of all aggregates: the engine plans a thousand for seconds, and others wait
LEAST_EPSILON, MOST_EPSILON = 1e-6, 10.0
_BETA = 0.05

Epsilon = Annotated[
    float, Field(ge=LEAST_EPSILON, le=MOST_EPSILON, allow_inf_nan=False, strict=True)
]
Delta = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False, strict=True)]
Noise = Literal["laplace", "gaussian"]


class Terms(BaseModel):
    """A query and its terms."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: Query
    delta: Delta = 0.0
    noise: Noise = "laplace"


class Ask(Terms):
    """A query that is going to be paid for."""

    epsilon: Epsilon
    note: Annotated[StrictStr, Field(max_length=500)] = ""

    def digest(self, dataset: str) -> str:
        """Digest what is asked and for how much: the same key means the same of it."""
        told = [dataset, self.query.digest(), self.epsilon, self.delta, self.noise, self.note]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


class AskQuote(Terms):
    """A query whose price is asked: for an epsilon, or for the errors that are wanted."""

    epsilon: Epsilon | None = None
    errors: dict[StrictStr, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(
        default=None, min_length=1, max_length=MOST_AGGREGATES
    )
    rows: Annotated[int, Field(ge=1, le=10**12)] | None = None


def require_table(dataset: Dataset) -> Table:
    """Give the table of a data set that may be asked."""
    if dataset.stale or dataset.table is None:
        raise Problem("dataset_changed")
    return dataset.table


def check_size(query: Query) -> None:
    """Refuse what is large, and what reaches beyond the table."""
    if len(query.aggregates) > MOST_AGGREGATES:
        raise Problem("bad_query", f"a query has at most {MOST_AGGREGATES} aggregates")
    if len(query.steps) > MOST_STEPS:
        raise Problem("bad_query", f"a query has at most {MOST_STEPS} steps")
    quantiles = sum(len(getattr(each, "probabilities", ())) for each in query.aggregates)
    if quantiles > MOST_QUANTILES:
        raise Problem("bad_query", f"a query has at most {MOST_QUANTILES} quantiles")
    keys: list[Any] = []
    for step in query.steps:
        if hasattr(step, "join_users"):  # it would name a table that nobody was granted
            raise Problem("bad_query", "another private table cannot be joined here")
        text = getattr(step, "filter", "") or getattr(step, "expression", "")
        if len(text) > LONGEST_EXPRESSION:
            raise Problem("bad_query", f"an expression has at most {LONGEST_EXPRESSION} characters")
        keys += getattr(step, "keys", ())
    for column in (query.groups and query.groups.keys) or ():
        keys += column
    if len(keys) > MOST_KEYS or any(len(str(each)) > LONGEST_KEY for each in keys):
        raise Problem(
            "bad_query", f"a query names at most {MOST_KEYS} keys of {LONGEST_KEY} characters"
        )


def check_price(dataset: Dataset, limits: Limits, terms: Terms, epsilon: float) -> None:
    """Refuse a price above what one request may cost."""
    most = dataset.settings.max_epsilon or limits.max_epsilon_per_request
    if epsilon > most:
        raise Problem("bad_value", f"one request may cost at most epsilon {most!r}")
    if terms.delta > dataset.settings.max_delta:
        raise Problem(
            "bad_value", f"one request may cost at most delta {dataset.settings.max_delta!r}"
        )


def prepare(dataset: Dataset, limits: Limits, asked: Ask, table: Table | None = None) -> Prepared:
    """Do all that no row decides, on the connection for those who ask, or on another one.

    The other one is for what is paid: a limit that was lowered since takes no answer away.
    """
    if table is None:
        table = require_table(dataset)
        check_size(asked.query)
        check_price(dataset, limits, asked, asked.epsilon)
    with _problems():
        return table.ask(asked.query).prepare(
            epsilon=asked.epsilon,
            delta=asked.delta,
            noise=asked.noise,
            beta=_BETA,
            timeout=limits.run_seconds,
        )


def price(
    dataset: Dataset, limits: Limits, asked: AskQuote, ledger: Ledger, grant: Grant | None
) -> dict[str, Any]:
    """Price a query; what is left is told of the caller's own share alone."""
    if (asked.epsilon is None) == (asked.errors is None):
        raise Problem("bad_value", "give epsilon, or the errors that are wanted: one of them")
    table = require_table(dataset)
    check_size(asked.query)
    terms: dict[str, Any] = {"delta": asked.delta, "noise": asked.noise, "beta": _BETA}
    with _problems():
        query = table.ask(asked.query)
        if asked.errors is not None:
            solved = query.quote_for(errors=asked.errors, rows=asked.rows, **terms)
            query, found = solved.table, solved.quote
        else:
            found = query.quote(epsilon=asked.epsilon or 0.0, rows=asked.rows, **terms)
        plan = plan_query(
            query.query,
            epsilon=found.guarantee.epsilon,
            delta=asked.delta,
            noise_name=asked.noise,
        )
    check_price(dataset, limits, asked, found.guarantee.epsilon)
    told = _tell_quote(found)
    return told if grant is None else told | _left(ledger, grant, plan)


def _tell_quote(found: Quote) -> dict[str, Any]:
    promise = found.guarantee
    return {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "neighbours": promise.neighbours,
        "unit": found.unit,
        "level": found.level,
        "threshold": found.threshold,
        "outputs": [
            {"name": each.name, "error": each.accuracy, "share": each.share}
            for each in found.outputs
        ],
        "words": found.explain(),
    }


def _left(ledger: Ledger, grant: Grant, plan: Plan) -> dict[str, Any]:
    """Say what the caller's share would have left, and whether it has room for this."""
    now = ledger.balance(grant.budget)
    told = {"left": {"epsilon": now.epsilon_left, "delta": now.delta_left}}
    try:
        after = ledger.quote(grant.budget, plan.guarantee, loss=plan.loss)
    except Overspent:
        return told | {"fits": False, "left_after": None}
    return told | {
        "fits": True,
        "left_after": {"epsilon": after.epsilon_left, "delta": after.delta_left},
    }


@contextmanager
def _problems() -> Iterator[None]:
    """Turn what the library refuses into problems; no text of an engine goes out."""
    try:
        yield
    except EngineUnavailable:
        raise Problem("dataset_unavailable") from None
    except (ParameterError, NotFound, NotFeasible) as error:
        raise Problem("bad_query", error.message) from None
    except HushedError:
        raise Problem("bad_query") from None
