"""What a comparison found, as a record, a table and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from hushed._ground.calls import called_as, given_by
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.printing import flat, format_up, list_problems, percent_up
from hushed._ground.read_only import read_state
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Neighbours

_WIDTH = 100

OTHER_LABEL = "other label"
LABEL_ERROR = "share of releases with another label than that of the whole table, or with none"
"""What the error of a label is."""
_CLOSED = {"extra": "forbid", "strict": True}


@given_by("hs.compare(f, population, rows=100, epsilon=1.0).routes[0]")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ComparedRoute(Shown):
    """One way to release the answer.

    Parameters
    ----------
    name : str
        What it is called.
    promise : str
        Whom its promise covers, in words.
    guarantee : Guarantee
        What it promises.
    error_50, error_95 : float
        Absolute error that half, and 95 %, of the releases of fresh tables keep to, in the unit of
        the answer; of several numbers the largest one. Of a mode: rows that would have to change
        to make the released category the right one. Of labels both are the share of releases with
        another label than that of the whole table, or with none.
    spread : float
        Standard error of ``error_95``, because the tables are simulated; 0 where no table matters.
        It is larger the more rows of a public table the simulated ones share, and infinite where
        each is the whole public table.
    calls : int
        How often the function is called, for one release and all that it needs before, but for a
        few calls that check it.
    how : str
        The mechanism as it is written in Python; ``s`` is the statistic, ``f`` the function.
    labels : bool, default False
        Whether the answer is a label, and the errors are shares of releases.
    """

    __pydantic_config__ = _CLOSED

    name: str
    promise: str
    guarantee: Guarantee
    error_50: float
    error_95: float
    spread: float
    calls: int
    how: str
    labels: bool = False

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that was pickled before answers could be labels, too."""
        read_state(self, state)

    def _card(self) -> Card:
        errors = f"{shown_number(self.error_50)} and {shown_number(self.error_95)}"
        said = ("error in 50 % and 95 % of releases", errors)
        if self.labels:
            said = (LABEL_ERROR, f"{percent_up(self.error_95)} %")
        return card_of_facts(
            f"Route {self.name}",
            (
                ("promise holds for", self.promise),
                ("epsilon", format_up(self.guarantee.epsilon)),
                said,
                ("calls", f"{self.calls:,}"),
                ("written", self.how),
            ),
        )


@given_by("hs.compare(f, population, rows=100, epsilon=1.0).left_out[0]")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LeftOut(Shown):
    """A way that does not apply.

    Parameters
    ----------
    name : str
        What it is called.
    reason : str
        Why it does not apply.
    """

    __pydantic_config__ = _CLOSED

    name: str
    reason: str

    def _card(self) -> Card:
        return card_of_facts(f"Left out: {self.name}", (("reason", self.reason),))


@given_by("hs.compare(f, population, rows=100, epsilon=1.0)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Shown):
    """Ways to release an answer, side by side; all numbers are from public tables.

    Parameters
    ----------
    asked : str
        The statistic or function.
    categories : bool
        Whether the answers are categories, and errors count rows.
    neighbours : {"replace-one", "add-remove"}
        The change of a table that was asked about.
    population : dict
        Where the tables came from.
    rows : int
        Rows of each.
    epsilon : float or None
        Level at which errors are compared.
    error : float or None
        Error at which levels are compared.
    gamma, delta : float
        What a sampled sensitivity may miss; slack.
    worth : float
        How many times as large the price of a stronger promise may be.
    trials : int
        Simulated tables.
    seed : int
        Their seed.
    spread_50, spread_95 : float
        How far half, and 95 %, of the answers of simulated tables are from their median at most,
        without any noise. Of labels both are the share of tables that have another one than most.
    routes : tuple of ComparedRoute
        What applies; the most exact one first, or the one with the smallest epsilon.
    left_out : tuple of LeftOut
        What does not, with reasons.
    recommended : str
        Name of a route; empty if none applies.
    advice : str
        Why, in words.
    labels : bool, default False
        Whether the answers are labels, and errors are shares of releases.
    schema_version : {1}, default 1
        Version of this record.
    """

    __pydantic_config__ = _CLOSED

    asked: str
    categories: bool
    neighbours: Neighbours
    population: dict[str, Any] = field(repr=False)
    rows: int
    epsilon: float | None
    error: float | None
    gamma: float
    delta: float
    worth: float
    trials: int
    seed: int
    spread_50: float
    spread_95: float
    routes: tuple[ComparedRoute, ...]
    left_out: tuple[LeftOut, ...]
    recommended: str
    advice: str
    labels: bool = False
    schema_version: Literal[1] = 1

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Read one that was pickled before answers could be labels, too."""
        read_state(self, state, "labels")

    def _card(self) -> Card:
        return Card(
            title=self.title,
            text=self.explain(),
            words="\n\n".join(
                [self.advice, *(f"{each.name}: {each.reason}" for each in self.left_out)]
            ),
            facts=(("recommended", self.recommended or "nothing applies"),),
            lines=tuple(map(tuple, self.list_lines())),
        )

    def __str__(self) -> str:
        return self.explain()

    @property
    def title(self) -> str:
        """What was compared, at which level, and on which tables, in one sentence."""
        return _title(self)

    @called_as("comparison.price(comparison.routes[0])")
    def price(self, route: ComparedRoute) -> float:
        """Give what routes are compared by.

        Parameters
        ----------
        route : ComparedRoute
            One of them.

        Returns
        -------
        float
            Its error in 95 % of releases; its epsilon, if an error was given.
        """
        return route.error_95 if self.error is None else route.guarantee.epsilon

    def explain(self) -> str:
        """Show the routes as a table, with what does not apply and what is recommended.

        Returns
        -------
        str
            At most 100 columns wide.
        """
        lines = [*_fill(self.title), "", *_table(self), "", *_fill(self.advice)]
        if self.left_out:
            lines += ["", "Not applicable:"]
            for each in self.left_out:
                lines += _fill(f"{each.name}: {each.reason}", indent="  ")
        return "\n".join(lines)

    def list_lines(self) -> list[list[str]]:
        """List the routes as cells of text, as `explain` shows them.

        Returns
        -------
        list of list of str
            The names of the columns, then a line for each route.
        """
        header = ["route", "promise holds for", "50 %", "95 %", "calls"]
        body = [
            [
                flat(each.name),
                flat(each.promise),
                shown_number(each.error_50),
                shown_number(each.error_95),
                f"{each.calls:,}",
            ]
            for each in self.routes
        ]
        if self.labels:  # which are right or wrong
            header[2:4] = [OTHER_LABEL]
            for row, each in zip(body, self.routes, strict=True):
                row[2:4] = [f"{percent_up(each.error_95)} %"]
        if self.error is not None:
            header.insert(2, "epsilon")
            for row, each in zip(body, self.routes, strict=True):
                row.insert(2, format_up(each.guarantee.epsilon))
        return [header, *body]

    def to_json(self) -> str:
        """Write as canonical JSON: sorted keys, two spaces, every double exact.

        Returns
        -------
        str
            One JSON object.
        """
        import json  # noqa: PLC0415

        return json.dumps(_adapter().dump_python(self, mode="json"), indent=2, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Comparison:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            One JSON object.

        Returns
        -------
        Comparison
            The same comparison.

        Raises
        ------
        ParameterError
            If the text is no comparison of a known version; all problems are listed.
        """
        from pydantic import ValidationError  # noqa: PLC0415

        try:
            known: Comparison = _adapter().validate_json(text)
        except ValidationError as cause:
            problems = list_problems(cause.errors(include_input=False, include_url=False))
            raise ParameterError(f"not a hushed comparison of version 1: {problems}") from None
        return known


@lru_cache(maxsize=1)
def _adapter() -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(Comparison)


def shown_number(number: float) -> str:
    """Print an error with three digits, rounded up, and commas."""
    rounded = float(format_up(number, 3))
    return f"{rounded:,.0f}" if 100 <= rounded < 1e15 else f"{rounded:.3g}"


def say_level(found: Comparison) -> str:
    """Say at which level routes were compared, or for which error."""
    if found.error is None:
        level = f"epsilon = {format_up(found.epsilon or 0)}"
    else:
        level = f"an error of {shown_number(found.error)} or less in 95 % of releases"
        if found.labels:
            level = f"another label in {percent_up(found.error)} % of releases or less"
    slack = f", delta = {format_up(found.delta)} where it is used" if found.delta else ""
    return level + slack


def _title(found: Comparison) -> str:
    kind = found.population.get("name") or found.population.get("kind", "a population of your own")
    tables = f"{found.asked}, {say_level(found)}; on {found.trials} tables drawn from {flat(kind)}"
    if found.labels:
        return f"{tables}: {LABEL_ERROR}"
    what = "rows that would have to change" if found.categories else "error"
    return f"{tables}: {what} in 50 % and in 95 % of releases"


def _table(found: Comparison) -> list[str]:
    header, *body = found.list_lines()
    widths = [max(len(row[i]) for row in [header, *body]) for i in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, ["-" * width for width in widths], *body]
    ]


def _fill(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        flat(text),
        width=_WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  " if indent else "",
        break_on_hyphens=False,
    )
