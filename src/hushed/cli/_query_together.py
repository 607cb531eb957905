"""What several questions cost together: each is quoted, and their prices are added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hushed as hs
from hushed._ground.printing import format_up, shown
from hushed.cli._query_options import Files, Price
from hushed.errors import Overspent, ParameterError
from hushed.ledger import Balance


@dataclass(frozen=True, slots=True)
class Together:
    """Prices of several questions of one table, and what they are together."""

    prices: Mapping[str, hs.Quote]  # by file
    guarantee: hs.Guarantee
    unfit: str  # why the budget has no room for all; empty if it has, or none is named
    left: Balance | None = None  # of that budget, after all of them

    def explain(self, explain: Callable[[hs.Quote], str]) -> str:
        """Say the price of each, and of all."""
        parts = [f"{name}\n{explain(quoted)}" for name, quoted in self.prices.items()]
        promise = self.guarantee
        slack = f", delta {format_up(promise.delta)}" if promise.delta else ""
        unit = next(iter(self.prices.values())).unit
        parts.append(
            f"together: epsilon {format_up(promise.epsilon)}{slack} for adding or removing one "
            f"{unit}, if all {len(self.prices)} are asked: what they cost adds up"
        )
        if self.left is not None:
            parts.append(f"the budget after these:\n{self.left.explain()}")
        if self.unfit:
            parts.append(f"together they do not fit: {self.unfit}")
        return "\n\n".join(parts)


def check_several(files: Files, price: Price) -> None:
    """Refuse several questions with what is about one."""
    if not price.quote:
        raise ParameterError(
            "--file is given several times, and questions are asked one at a time: with --quote "
            "all are priced together"
        )
    for name, given in {"--error": price.error, "--save": files.save, "--plot": files.plot}.items():
        if given:
            raise ParameterError(f"{name} is about one question: leave it out, or all but one file")


def quote_together(
    files: Sequence[Path],
    quote: Callable[[Path], tuple[hs.Quote, str | None]],
    ledger: hs.Ledger | None,
    budget: str | None,
) -> Together:
    """Quote each question, and add up: an upper bound for every way of joining them.

    With the price of a question comes the column of its users. Those of two columns are two kinds
    of people: nobody is protected by the sum.
    """
    if len(set(files)) < len(files):
        raise ParameterError("a file is given twice: a question that is asked again is paid again")
    quoted = {str(each): quote(each) for each in files}
    prices = {name: each for name, (each, _) in quoted.items()}
    users = {name: user for name, (_, user) in quoted.items()}
    if len(set(users.values())) > 1:
        listed = ", ".join(f"{name}: one {_name_unit(user)}" for name, user in users.items())
        raise ParameterError(
            f"what these questions protect differs ({listed}), so that their prices do not add up: "
            'write the same user = "COLUMN" in all of them, or none'
        )
    joined = hs.compose([each.guarantee for each in prices.values()], method="basic").guarantee
    if joined is None:  # quotes always say their relation
        raise ParameterError("these questions have no common price")
    unfit, left = "", None
    if ledger is not None and budget is not None:
        try:
            left = ledger.quote(budget, joined)
        except Overspent as refusal:
            unfit = say_unfit(refusal)
    return Together(prices, joined, unfit, left)


def say_unfit(refusal: Overspent) -> str:
    """Say why a budget has no room, where only the price was asked: no charge was tried."""
    return str(refusal).removesuffix("Nothing was charged").rstrip()


def _name_unit(user: str | None) -> str:
    return "row" if user is None else f"user, by {shown(user)}"


def describe_together(found: Together, price: Callable[[hs.Quote], dict[str, Any]]) -> Any:
    """Describe the prices in plain values."""
    promise, unit = found.guarantee, next(iter(found.prices.values())).unit
    return {
        "questions": [{"file": name, **price(quoted)} for name, quoted in found.prices.items()],
        "together": {
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "neighbours": promise.neighbours,
            "unit": unit,
        },
        "refusal": found.unfit or None,
    }
