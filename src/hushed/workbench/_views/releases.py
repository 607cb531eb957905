"""What the page of a release says before the rows are read: question, promise, price."""

from __future__ import annotations

from dataclasses import dataclass

from hushed._ground.decimals import decimal_of
from hushed._ground.printing import flat, format_down, format_up, shown
from hushed._web.sentences import say_meaning
from hushed._web.svg import Picture, draw_gauge
from hushed.errors import HushedError, Overspent
from hushed.ledger import Balance, Ledger
from hushed.tables import Quote
from hushed.tables._joins import Join, JoinUsers
from hushed.workbench._views.question import Described, Question
from hushed.workbench._views.sentences import spell_field


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a question costs, and what is left after it."""

    sentence: str
    after: str = ""  # what is left then
    fits: bool = True
    largest: str = ""  # the largest epsilon that fits, where this one does not
    gauge: Picture | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What is asked, what it promises and to whom, and the price."""

    question: str
    steps: tuple[str, ...]
    promise: str
    whom: str
    errors: tuple[str, ...]
    cost: str
    price: Price


def find_price(ledger: Ledger, budget: str, question: Question, quote: Quote) -> Price:
    """Ask the ledger what would be left; nothing is charged."""
    before = ledger.balance(budget)
    epsilon, delta = quote.guarantee.epsilon, quote.guarantee.delta
    cost = f"epsilon {format_up(epsilon)}" + (f", delta {format_up(delta)}" if delta else "")
    limit = format_up(before.budget.limit.epsilon)
    used = format_up(before.spent.epsilon, 4)
    if question.table is None:
        raise ValueError(question)
    try:
        priced = question.table.quote(
            epsilon=epsilon, **question.terms.as_arguments(), ledger=ledger, budget=budget
        )
    except Overspent as error:
        left_now = format_down(error.epsilon_left, 4)
        slack = f", delta {format_down(before.delta_left, 3)}" if delta else ""
        # Where delta does not fit, no smaller epsilon does.
        helps = error.epsilon_left > 0 and delta <= before.delta_left
        free = "" if helps else " To look at answers that are stored costs nothing (History)."
        return Price(
            sentence=f"This does not fit: {left_now}{slack} is left of the "
            f"budget '{shown(budget)}'; this costs {cost}.{free}",
            after=error.message,
            fits=False,
            largest=left_now if helps else "",
            gauge=_draw(before, None),
        )
    left: Balance = priced.left
    return Price(
        sentence=f"Price: {cost}. Used of the budget '{shown(budget)}': {used}, then "
        f"{format_up(left.spent.epsilon, 4)} of {limit}.",
        after=_say_left(left, epsilon, delta),
        gauge=_draw(before, left),
    )


def _say_left(left: Balance, epsilon: float, delta: float) -> str:
    """Say what is left, and how many more like this surely fit."""
    told = f"Then {format_down(left.epsilon_left, 4)} is left"
    if delta:
        return f"{told}, and delta {format_down(left.delta_left, 3)}."
    more = decimal_of(left.epsilon_left) // decimal_of(epsilon)
    if more:
        return f"{told}: enough for {more:,} more like this."
    if left.epsilon_left:
        return f"{told}: not enough for one more like this."
    return f"{told}: this takes all of it, and nothing more can be asked under this budget."


def _percent(share: float) -> str:
    """Write a share in whole percent, beside which the numbers stand; only nothing is 0 %."""
    whole = round(100 * share)
    if share and not whole:
        return "less than 1 %"
    return f"{whole} %" if whole < 100 or share >= 1 else "more than 99 %"


def _draw(before: Balance, after: Balance | None) -> Picture:
    used = f"{_percent(before.used)} of the budget is used"
    if after is None:
        return draw_gauge(before.used, None, sentence=f"{used}.")
    sentence = f"{used}; with this question {_percent(after.used)}."
    return draw_gauge(before.used, after.used, sentence=sentence)


def describe_offer(described: Described, question: Question, quote: Quote, price: Price) -> Offer:
    """Say in words what is about to be released."""
    if question.table is None:
        raise ValueError(question)
    asked, promise = question.table, quote.guarantee
    delta = f" and delta {format_up(promise.delta)}" if promise.delta else ""
    unit = "each person, with all rows of that person" if quote.unit == "user" else "each row"
    others = [shown(step.table) for step in asked.steps if isinstance(step, JoinUsers)]
    unit += f", those in {others[0]} among them" if others else ""
    steps = []
    for step in asked.steps:
        text = getattr(getattr(step, "condition", None), "text", None)
        if text is not None:
            steps.append(flat(text))
        elif isinstance(step, Join):
            added = ", ".join(shown(each.name) for each in step.columns)
            rest = "kept" if step.keeps_all else "left out"
            steps.append(f"{added}: joined by {shown(step.on)}; rows without a match are {rest}")
        elif isinstance(step, JoinUsers):
            added = ", ".join(shown(name) for name, _ in step.columns)
            rest = "left out" if step.default is None else "kept, with the values that you state"
            steps.append(
                f"{added}: of one row of the same person in {shown(step.table)}; "
                f"rows of people who have none there are {rest}"
            )
    lines = quote.explain(spell_field, distances=False).split("\n")
    return Offer(
        question=_say_question(described, question),
        steps=tuple(steps),
        promise=f"Protected is {unit}, with epsilon {format_up(promise.epsilon)}{delta}. "
        + say_meaning(promise.epsilon, promise.delta, quote.unit),
        whom=unit,
        errors=tuple(lines[1:]),
        cost=format_up(promise.epsilon),
        price=price,
    )


def _say_question(described: Described, question: Question) -> str:
    """Say what is asked in one sentence."""
    if question.table is None:
        raise ValueError(question)
    asked = " and ".join(question.labels.values())
    groups = question.table.keys.columns
    by = f", for each {' and '.join(map(shown, groups))}" if groups else ""
    where = ", of the rows and columns described below" if question.table.steps else ""
    place = shown(described.place) if described.place != "rows" else ""
    file = described.source.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    name = place or shown(file) or "the table"
    return f"The {asked} of {name}{by}{where}."


def say_largest_error(question: Question, output: str, epsilon: str) -> str:
    """Say the error at the largest epsilon that fits."""
    if question.table is None or not output or not epsilon:
        return ""
    try:
        quote = question.table.quote(epsilon=float(epsilon), **question.terms.as_arguments())
    except HushedError:
        return ""
    error = quote.accuracy(output)
    return "" if error is None else format_up(error, 4)
