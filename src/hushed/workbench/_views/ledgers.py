"""The pages of the ledger: budgets, by person and by day, and the opening of a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from hushed._ground.printing import format_up
from hushed._web.balances import Gauge, describe_gauge
from hushed._web.fields import Form
from hushed.accounting import compose
from hushed.accounting._filters import check_limit
from hushed.errors import HushedError
from hushed.guarantee import Guarantee
from hushed.ledger import Entry, Ledger
from hushed.ledger._notes import read_note
from hushed.workbench._drafts import Draft
from hushed.workbench._views.recent import Charge, list_charges

NEIGHBOURS = (
    ("add-remove", "one is added or removed (questions to tables need this)"),
    (
        "replace-one",
        "one is replaced by another (functions of a public number of rows)",
    ),
)
UNITS = (("user", "one person, with all rows"), ("row", "one row"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What some entries of a budget cost together."""

    name: str
    charges: int
    cost: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """A budget on its own page."""

    gauge: Gauge
    lines: tuple[str, ...]
    note: str
    opened: str
    charges: tuple[Charge, ...]
    people: tuple[Total, ...]
    days: tuple[Total, ...]


def describe_budget(ledger: Ledger, name: str, drafts: tuple[Draft, ...]) -> BudgetView:
    """Say all about a budget; what is spent is rounded up."""
    balance = ledger.balance(name)
    entries = ledger.entries(name)
    return BudgetView(
        gauge=describe_gauge(balance),
        lines=tuple(balance.explain().split("\n")),
        note=balance.budget.note,
        opened=balance.budget.opened,
        charges=list_charges(ledger, name, drafts),
        people=sum_up(entries, lambda each: read_note(each.note)[0] or "not told"),
        days=sum_up(entries, lambda each: each.at[:10]),
    )


def sum_up(entries: tuple[Entry, ...], name_of: Callable[[Entry], str]) -> tuple[Total, ...]:
    """Add up entries by a name: each sum as the library composes these entries alone."""
    ordered = sorted(entries, key=name_of)
    return tuple(_total(name, tuple(found)) for name, found in groupby(ordered, key=name_of))


def _total(name: str, entries: tuple[Entry, ...]) -> Total:
    try:
        joint = compose(entries, method="basic").guarantee
    except HushedError as error:
        return Total(name=name, charges=len(entries), cost=error.message)
    if joint is None:
        return Total(name=name, charges=len(entries), cost="not known")
    cost = f"epsilon {format_up(joint.epsilon)}"
    cost += f", delta {format_up(joint.delta)}" if joint.delta else ""
    return Total(name=name, charges=len(entries), cost=cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The form of a new budget: its limit, if it can be read, and what is wrong."""

    name: str = ""
    note: str = ""
    limit: Guarantee | None = None
    errors: Mapping[str, str] = field(default_factory=dict)


def read_opening(fields: Mapping[str, str]) -> Opening:
    """Read the form of a new budget."""
    form = Form(fields)
    name = form.text("name")
    if not name:
        form.refuse("name", "give a name, for example that of the data set")
    epsilon, delta = form.number("epsilon"), form.number("delta", 0.0)
    gamma = form.number("gamma", 0.0)
    if epsilon is None:
        form.refuse("epsilon", "give the limit of the privacy loss, such as 1")
    units = {each for each, _ in UNITS}
    relations = {each for each, _ in NEIGHBOURS}
    if form.text("unit") not in units:
        form.refuse("unit", "say who is protected")
    if form.text("neighbours") not in relations:
        form.refuse("neighbours", "say what the promises compare")
    limit = None
    if not form.errors:
        limit = _make_limit(form, epsilon or 0.0, delta or 0.0, gamma or 0.0)
    return Opening(name=name, note=form.text("note"), limit=limit, errors=form.errors)


def _make_limit(form: Form, epsilon: float, delta: float, gamma: float) -> Guarantee | None:
    try:
        limit = Guarantee(
            epsilon=epsilon,
            delta=delta,
            gamma=gamma,
            unit="user" if form.text("unit") == "user" else "row",
            neighbours="add-remove" if form.text("neighbours") == "add-remove" else "replace-one",
        )
        check_limit(epsilon, delta)
    except HushedError as error:
        at = error.parameter if error.parameter in ("delta", "gamma") else "epsilon"
        form.refuse(str(at), error.message)
        return None
    return limit
