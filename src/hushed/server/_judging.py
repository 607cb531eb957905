"""What is asked, judged before anything is charged: sizes, names, types, price. No row is read."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictStr, WrapValidator

from hushed._ground.printing import format_up, name_count
from hushed.errors import Overspent
from hushed.guarantee import Guarantee
from hushed.ledger import Ledger
from hushed.ledger._laws import read_law
from hushed.privacy_loss import PrivacyProfile
from hushed.server._bounds import (
    LONGEST_EXPRESSION,
    LONGEST_KEY,
    LONGEST_TEXT,
    MOST_AGGREGATES,
    MOST_KEYS,
    MOST_QUANTILES,
    MOST_STEPS,
    check_parts,
)
from hushed.server._config import MOST_EPSILON, Limits, most_epsilon
from hushed.server._datasets import Dataset
from hushed.server._desk import Desk
from hushed.server._functions import check_function, require_function
from hushed.server._people import Grant
from hushed.server._problems import Problem
from hushed.server._refusing import require_gamma, say_short
from hushed.server._sources import fingerprint, is_away
from hushed.server._verdicts import Verdicts, key_of
from hushed.server._workers import Unforeseen
from hushed.tables import Query, Table
from hushed.tables._question_parts import read_named

MOST_ANSWERED = 2**16  # numbers of an answer: it is noised, stored and sent by the server
MOST_SPELLED = 4_000_000  # characters of its public keys, each of which stands in many of its rows
LEAST_EPSILON = 1e-6

Epsilon = Annotated[  # `check_price` refuses above what a data set allows, and names that
    float,
    Field(
        ge=LEAST_EPSILON,
        allow_inf_nan=False,
        strict=True,
        json_schema_extra={"maximum": MOST_EPSILON},
    ),
]
Delta = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False, strict=True)]
Error = Annotated[float, Field(gt=0, le=sys.float_info.max, allow_inf_nan=False, strict=True)]
Output = Annotated[StrictStr, Field(max_length=LONGEST_TEXT)]
Errors = Annotated[
    dict[Output, Error],
    Field(min_length=1, max_length=MOST_AGGREGATES),
    WrapValidator(read_named),
]
Noise = Literal["laplace", "gaussian"]
Note = Annotated[StrictStr, Field(max_length=500)]


class Terms(BaseModel):
    """A query and its terms."""

    function: ClassVar[None] = None

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: Query
    delta: Delta = 0.0
    noise: Noise = "laplace"

    @cached_property
    def text(self) -> str:
        """What is asked, as JSON: the same for the same question, whatever the note."""
        return self.model_dump_json(exclude={"note"})

    @cached_property
    def question(self) -> str:
        """The digest of the query."""
        return self.query.digest()


# A body as /openapi.json shows it, of a data set with the columns patient, ward and cost.
_EXAMPLE: dict[str, Any] = {
    "query": {
        "user": "patient",
        "max_rows_per_user": 1,
        "columns": {"cost": "float", "ward": "string"},
        "steps": [{"filter": "cost >= 1"}],
        "groups": {"columns": ["ward"], "keys": [["A", "B"]]},
        "aggregates": [{"kind": "count"}, {"kind": "mean", "column": "cost", "low": 0, "high": 50}],
    },
    "epsilon": 0.1,
}


_REGISTERED_AGAIN = "it was registered again since it was looked at: look again at the function"


class Ask(Terms):
    """A query that is going to be paid for."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE | {"note": "a report"}]})

    epsilon: Epsilon
    note: Note = ""

    def digest(self, dataset: str) -> str:
        """Digest what is asked and for how much: the same key means the same of it."""
        told = [dataset, self.question, self.epsilon, self.delta, self.noise, self.note]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


class FunctionPrice(BaseModel):
    """A price that is asked: for an epsilon, or for the error that 95 % of releases keep."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"epsilon": 0.1}]}
    )

    epsilon: Epsilon | None = None
    error: Error | None = None
    delta: Delta = 0.0


class AskFunctionPrice(FunctionPrice):
    """The same with the name of the function."""

    function: StrictStr


class FunctionTerms(BaseModel):
    """A function that is going to be paid for. Nothing that enters the function is among it."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"epsilon": 0.1, "note": "a report"}]},
    )

    epsilon: Epsilon
    delta: Delta = 0.0
    note: Note = ""
    record: Annotated[StrictStr, Field(max_length=64)] = ""  # that was looked at, if it is known


class AskFunction(FunctionTerms):
    """The same with the name of the function, as it is stored."""

    function: StrictStr

    def digest(self, dataset: str) -> str:
        """Digest what is asked and for how much: the same key means the same of it."""
        told = ["function", dataset, self.function, self.epsilon, self.delta, self.note]
        told += [self.record] if self.record else []
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


Asked = Ask | AskFunction


# Whoever waits asks for the same again; what is asked cannot be changed, and a body may be long.
@lru_cache(maxsize=32)
def read_asked(body: str) -> Asked:
    """Read what was asked, as it is stored with its request."""
    kind = AskFunction if "function" in json.loads(body) else Ask
    return kind.model_validate_json(body)


class AskQuote(Terms):
    """A query whose price is asked: for an epsilon, or for the errors that are wanted."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    epsilon: Epsilon | None = None
    errors: Errors | None = None
    rows: Annotated[int, Field(ge=1, le=10**12)] | None = None


def require_table(dataset: Dataset) -> Table:
    """Give the table of a data set that may be asked."""
    if dataset.away:
        raise Problem("dataset_unavailable")
    if dataset.stale or dataset.table is None:
        raise Problem("dataset_changed")
    if fingerprint(dataset.table) != dataset.known:  # looked at each time, for it may come back
        raise Problem("dataset_unavailable" if is_away(dataset.table) else "dataset_changed")
    return dataset.table


def can_be_asked(dataset: Dataset) -> bool:
    """Whether a question would not be refused for what the table is now."""
    try:
        require_table(dataset)
    except Problem:
        return False
    return True


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
    listed = (query.groups and query.groups.keys) or ()
    for column in listed:
        keys += column
    if len(keys) > MOST_KEYS or any(len(str(each)) > LONGEST_KEY for each in keys):
        raise Problem(
            "bad_query", f"a query names at most {MOST_KEYS} keys of {LONGEST_KEY} characters"
        )
    check_parts(query)
    _check_answer(query, listed)


def _check_answer(query: Query, listed: Sequence[Sequence[Any]]) -> None:
    """Refuse a large answer: a small question may have one, for next to no price."""
    groups = math.prod(map(len, listed))
    answered = groups * sum(_count_answered(each) for each in query.aggregates)
    if answered > MOST_ANSWERED:
        raise Problem(
            "bad_query",
            f"an answer has at most {MOST_ANSWERED} numbers (groups times outputs), and this one "
            f"would have {answered}: use fewer keys, bins or aggregates",
        )
    spelled = sum(groups // len(each) * sum(map(_count_spelled, each)) for each in listed if each)
    if spelled > MOST_SPELLED:
        raise Problem(
            "bad_query",
            f"the keys in all rows of an answer have at most {MOST_SPELLED:,} characters, as JSON "
            f"writes them, and these would have {spelled:,}: use fewer or shorter keys",
        )


def check_people(dataset: Dataset, query: Query) -> None:
    """Refuse a query that names other people than the data set protects, or nobody."""
    user = dataset.settings.user
    if query.user == user:
        return
    if user is None:
        raise Problem("bad_query", "this data set protects each row: leave user out of the query")
    bound = (
        "" if query.max_rows_per_user else ", and max_rows_per_user, the rows of each that count"
    )
    raise Problem(
        "bad_query",
        f"this data set protects each person, by the column {user!r}: the query names it, as user "
        f"= {user!r}{bound}",
    )


def check_rows(dataset: Dataset, query: Query) -> None:
    """Refuse another bound on the rows of a person than the one that the steward has declared."""
    most, asked = dataset.settings.max_rows_per_user, query.max_rows_per_user
    if most is not None and asked not in (None, most):
        count = f"{name_count(most, 'row')} count{'s' * (most == 1)}"
        raise Problem(
            "bad_query",
            f"of each person {count} in this data set, for all who ask it, and asked were "
            f"{asked}: leave the bound out in Python, or give max_rows_per_user={most}",
        )


def _count_spelled(key: Any) -> int:
    return len(json.dumps(key))


def _count_answered(aggregate: Any) -> int:
    """Count what an aggregate answers for one group."""
    return len(getattr(aggregate, "probabilities", "1")) * int(getattr(aggregate, "bins", 1))


def check_price(
    dataset: Dataset, limits: Limits, terms: Terms | FunctionPrice | FunctionTerms, epsilon: float
) -> None:
    """Refuse a price above what one request may cost."""
    most = most_epsilon(dataset.settings, limits)
    if epsilon > most:
        raise Problem(
            "bad_value",
            f"one request may cost at most epsilon {most!r}, and this one costs epsilon "
            f"{format_up(epsilon)}",
        )
    if terms.delta > dataset.settings.max_delta:
        raise Problem(
            "bad_value", f"one request may cost at most delta {dataset.settings.max_delta!r}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a process that judges questions has found: what is charged, and for which question."""

    guarantee: Guarantee
    loss: PrivacyProfile | None
    digest: str = ""
    quote: Mapping[str, Any] = field(default_factory=dict, repr=False)


def judge(desk: Desk, person: str, dataset: Dataset, asked: Asked) -> Judged:
    """Have all done that no row decides, in a process that can be ended, or as it was before."""
    require_table(dataset)
    if isinstance(asked, AskFunction):
        function = require_function(desk.functions, asked.function)
        if function.dataset != dataset.id:  # it was registered again, for another one
            raise Problem("function_changed")
        if asked.record and asked.record != function.require_record().digest():
            raise Problem("function_changed", f"{_REGISTERED_AGAIN} {asked.function!r}")
        check_function(function, asked.epsilon)
        check_price(dataset, desk.settings.limits, asked, asked.epsilon)
        with desk.workers.turn(person):
            return _ask(desk, dataset, asked, "check")  # it is tried each time
    found = desk.verdicts.find(dataset, asked)
    if found is None:
        check_size(asked.query)
        check_people(dataset, asked.query)
        check_rows(dataset, asked.query)
    check_price(dataset, desk.settings.limits, asked, asked.epsilon)
    if found is None:
        found = _ask_once(desk, person, dataset, asked, "check", desk.verdicts)
    return found


def find_judged(desk: Desk, dataset: Dataset, asked: Ask) -> Judged | None:
    """Find what was judged of a question before, of a table that is as it was then."""
    found = desk.verdicts.find(dataset, asked)
    if found is not None:
        check_price(dataset, desk.settings.limits, asked, asked.epsilon)
    return found


def price(
    desk: Desk, person: str, dataset: Dataset, asked: AskQuote, grant: Grant | None
) -> dict[str, Any]:
    """Price a query; what is left is told of the caller's own share alone."""
    if (asked.epsilon is None) == (asked.errors is None):
        raise Problem("bad_value", "give epsilon, or the errors that are wanted: one of them")
    require_table(dataset)
    if asked.epsilon is not None:  # what is surely refused takes no process
        check_price(dataset, desk.settings.limits, asked, asked.epsilon)
    found = desk.prices.find(dataset, asked)
    if found is None:
        check_size(asked.query)
        check_people(dataset, asked.query)
        check_rows(dataset, asked.query)
        found = _ask_once(desk, person, dataset, asked, "price", desk.prices)
    check_price(dataset, desk.settings.limits, asked, found.guarantee.epsilon)
    told = dict(found.quote)
    waits = dataset.needs_approval(found.guarantee.epsilon)
    return told if grant is None else told | _left(desk.ledger, grant, found, waits=waits)


def price_function(
    desk: Desk, person: str, name: str, asked: FunctionPrice, grant: Grant | None
) -> dict[str, Any]:
    """Price a function, as a query is priced."""
    if (asked.epsilon is None) == (asked.error is None):
        raise Problem("bad_value", "give epsilon, or the error that is wanted: one of them")
    function = require_function(desk.functions, name)
    dataset = desk.datasets[function.dataset]
    require_table(dataset)
    if grant is not None:
        above = dataset.settings.budget
        require_gamma(desk.ledger, above, grant, function.require_record())
    if asked.epsilon is not None:  # what is surely refused takes no process
        check_function(function, asked.epsilon)
        check_price(dataset, desk.settings.limits, asked, asked.epsilon)
    wanted = AskFunctionPrice(function=name, **asked.model_dump())
    with desk.workers.turn(person):
        found = _ask(desk, dataset, wanted, "price")
    check_function(function, found.guarantee.epsilon)
    check_price(dataset, desk.settings.limits, asked, found.guarantee.epsilon)
    told = dict(found.quote)
    waits = dataset.needs_approval(found.guarantee.epsilon)
    return told if grant is None else told | _left(desk.ledger, grant, found, waits=waits)


def tell_run(desk: Desk, dataset: Dataset, asked: Asked, question: str) -> dict[str, Any]:
    """Write down for a process what it has to answer; limits of a price may be lower by now."""
    limits = desk.settings.limits
    return _tell(desk, dataset, asked, "run") | {
        "question": question,
        "run_seconds": limits.run_seconds,
        "run_memory": limits.run_memory,
    }


def _tell(
    desk: Desk, dataset: Dataset, asked: Terms | AskFunction | AskFunctionPrice, do: str
) -> dict[str, Any]:
    told = {
        "do": do,
        "source": asdict(dataset.source),
        "fingerprint": dataset.known,
        "asked": asked.model_dump(mode="json"),
    }
    if asked.function is not None:
        told["function"] = desk.functions[asked.function].told()
    return told


def _ask_once(
    desk: Desk, person: str, dataset: Dataset, asked: Ask | AskQuote, do: str, kept: Verdicts
) -> Judged:
    """Have a question judged, unless another one who waited had that done: many ask the same."""
    with desk.workers.turn(person, key_of(dataset, asked)):
        found = kept.find(dataset, asked)
        if found is None:
            found = _ask(desk, dataset, asked, do)
            kept.keep(dataset, asked, found)
    return found


def _ask(
    desk: Desk,
    dataset: Dataset,
    asked: Terms | AskFunction | AskFunctionPrice,
    do: str,
) -> Judged:
    limits = desk.settings.limits
    # A function is tried on public rows: it may take what it takes on private ones.
    tried = asked.function is not None
    told = _tell(desk, dataset, asked, do) | {
        "run_seconds": limits.run_seconds,
        "check_seconds": limits.run_seconds if tried else limits.check_seconds,
        "check_memory": limits.run_memory if tried else limits.check_memory,
    }
    try:
        found = desk.workers.judge(told)
    except Unforeseen as error:
        desk.log("unforeseen", error=str(error))
        raise Problem("unforeseen") from None
    except Problem as problem:
        if problem.why:
            desk.log("data set unavailable", dataset=dataset.id, reason=problem.why)
        raise
    promise = found["guarantee"]
    estimates = tuple((name, gamma) for name, gamma in promise.pop("estimates"))
    return Judged(
        guarantee=Guarantee(**promise, estimates=estimates),
        loss=None if found["law"] is None else read_law(found["law"]),
        digest=found.get("digest", ""),
        quote=found.get("quote", {}),
    )


def _left(ledger: Ledger, grant: Grant, judged: Judged, *, waits: bool) -> dict[str, Any]:
    """Say what the caller's share would have left, and whether it has room for this."""
    now = ledger.balance(grant.budget)
    told: dict[str, Any] = {"left": {"epsilon": now.epsilon_left, "delta": now.delta_left}}
    today = None if grant.daily is None else grant.daily.left()
    told |= {} if today is None else {"left_today": today}
    try:
        after = ledger.quote(grant.budget, judged.guarantee, loss=judged.loss)
    except Overspent:
        short = say_short(ledger, grant.budget, judged)
        return told | {"fits": False, "left_after": None, "short": short}
    told["left_after"] = {"epsilon": after.epsilon_left, "delta": after.delta_left}
    epsilon = judged.guarantee.epsilon
    # What waits for approval counts on the day on which it is approved.
    if grant.daily is None or epsilon <= (grant.daily.most if waits else grant.daily.left()):
        return told | {"fits": True}
    return told | {
        "fits": False,
        "short": f"epsilon {format_up(epsilon)} is asked; {grant.daily.say()}",
    }
