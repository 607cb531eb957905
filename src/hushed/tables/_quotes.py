"""Cost and accuracy of a query, before any row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from hushed._ground.calls import given_by
from hushed._ground.checks import require_probability
from hushed._ground.notebook import Card, Shown, card_of_facts
from hushed._ground.numeric import float_above
from hushed._ground.printing import (
    Spelling,
    flat,
    format_exactly,
    format_up,
    name_count,
    shown,
    spell_argument,
)
from hushed._ground.weak_promises import epsilon_warnings
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger._payments import check_ledger
from hushed.tables._answers import percent
from hushed.tables._distances import (
    Distances,
    explain_distances,
    name_unit,
    size_unit,
    trace_distances,
)
from hushed.tables._engine import Connection
from hushed.tables._held import held_warnings, unlisted_warnings
from hushed.tables._joins import publish_warnings
from hushed.tables._ladders import Candidates, describe_candidates
from hushed.tables._left_out import RATIOS, LeftOut, add_missing, count_missing, say_kept
from hushed.tables._outputs import error_bounds, rank_error
from hushed.tables._plan import Choice, Part, Plan
from hushed.tables._query import Query
from hushed.tables._release import plan_query
from hushed.tables._requests import Aggregate, require_int
from hushed.tables._top import TopChoice
from hushed.tables._wanted import no_output


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QuotedOutput(Shown):
    """Price and accuracy of one output.

    Parameters
    ----------
    name : str
        The output.
    share : float
        Share of the budget.
    accuracy : float or None
        Error that a value exceeds with probability at most ``1 - level``; for quantiles in ranks,
        for all of a group together. It includes what contribution bounds leave out, if a public
        guess of it was given. None for means and variances, unless the number of rows of a group
        was given, and where a bound is searched.
    measured : tuple of (str, float)
        What is measured for it, and the error of each number by itself, by the noise alone.
        Quantiles share the
        probability of a miss; their errors are those before sorting. A sum whose bound is searched
        is in multiples of the bound farther from 0, or of half the range of the bounds for a mean.
    candidates : Candidates or None
        What quantiles are chosen from.
    searched : bool
        Whether a bound is searched.
    one_by_one : float or None
        Of a top of several keys: the error if as many queries with ``k=1`` choose one key after
        the other and share epsilon. Smaller where many keys are close behind the best ones.
    """

    name: str
    share: float
    accuracy: float | None
    measured: tuple[tuple[str, float], ...]
    candidates: Candidates | None = None
    searched: bool = False
    one_by_one: float | None = None

    def _card(self) -> Card:
        error = "depends on the rows"
        if self.accuracy is not None:
            size, ranks = format_up(self.accuracy, 4), self.measured[0][0].startswith("rank")
            error = f"within {name_count(size, 'rank') if ranks else size}"
        share = f"{_write_share(self.share)} % of epsilon"
        measured = say_measured(self)
        return card_of_facts(
            f"Output {shown(self.name)}", (("error", error), ("share", share), ("by", measured))
        )


@given_by("table.count().quote(epsilon=1.0)")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Quote(Shown):
    """Price of a query, before anything is charged or read.

    Parameters
    ----------
    guarantee : Guarantee
        What the query would guarantee and cost.
    unit : str
        What it protects: a ``user`` or a ``row``.
    outputs : tuple of QuotedOutput
        Accuracy of each output.
    threshold : int or None
        For partition selection: tau. A key is released if its noisy number of users reaches it.
    level : float
        Confidence of the accuracies.
    rule : str
        How the budget is split.
    left : object or None
        What would be left of the budget; None without a ledger.
    rows : int or None
        Number of rows of a group that the accuracies of means and variances assume.
    warnings : tuple of str
        What the guarantee requires of the table, if it is a view.
    distances : tuple of Distances
        How far one user or row moves each number that is measured, step by step, and the noise that
        hides it.
    left_out : LeftOut or None
        Rows and users that contribution bounds leave out at most, by the public guess that was
        given. The accuracies include them, as the error bars of an answer do.
    kept : str
        What contribution bounds keep of each user, in words, if they may leave out something that
        no accuracy includes.
    moved : tuple of (str, float, float)
        Columns, and the public bounds that their values are moved into.
    grouped : bool
        Whether there are groups: then ``rows`` are those of each of them.
    """

    guarantee: Guarantee
    unit: str
    outputs: tuple[QuotedOutput, ...]
    threshold: int | None
    level: float
    rule: str
    left: Any = None
    rows: int | None = None
    warnings: tuple[str, ...] = ()
    distances: tuple[Distances, ...] = ()
    left_out: LeftOut | None = None
    kept: str = ""
    moved: tuple[tuple[str, float, float], ...] = ()
    grouped: bool = False

    def _brief(self) -> str:
        names = ", ".join(map(flat, (each.name for each in self.outputs)))
        promise = self.guarantee
        slack = f", delta {format_up(promise.delta)}" if promise.delta else ""
        return f"Quote of {names}: epsilon {format_up(promise.epsilon)}{slack}, for one {self.unit}"

    @property
    def epsilon(self) -> float:
        """Privacy loss of the whole query, in nats."""
        return self.guarantee.epsilon

    @property
    def delta(self) -> float:
        """Slack of the whole query; 0 where its promise is pure."""
        return self.guarantee.delta

    def accuracy(self, name: str) -> float | None:
        """Accuracy of an output.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        float or None
            See `QuotedOutput`.

        Raises
        ------
        ParameterError
            If there is no such output.
        """
        for each in self.outputs:
            if each.name == name:
                return each.accuracy
        named = [each.name for each in self.outputs]
        raise ParameterError(no_output(name, named), parameter="name")

    def explain(self, spell: Spelling = spell_argument, *, distances: bool = True) -> str:
        """Explain the price in a few lines.

        Parameters
        ----------
        spell : callable, default as in Python
            Words for an argument that is advised, from its name and its value; none where it
            cannot be given.
        distances : bool, default True
            Whether to show how far one user or row moves each number, and the noise that hides it.

        Returns
        -------
        str
            Plain text.
        """
        g = self.guarantee
        delta = f", delta {format_up(g.delta)}" if g.delta else ""
        lines = [f"epsilon {format_up(g.epsilon)}{delta} for adding or removing one {self.unit}"]
        lines += [self._line(each) for each in self.outputs]
        lines += self._say_not_included(spell)
        if any(each.searched for each in self.outputs):
            lines.append(
                "searched bounds are not known yet, so that the errors of sums are told as "
                "multiples of them; the answer has them as numbers"
            )
        if any(each.accuracy is None and not each.searched for each in self.outputs):
            lines.append(
                "for the error of a mean or variance, give the approximate number of rows of a "
                f"group, such as {spell('rows', 100)}"
            )
        if self.threshold is not None:
            lines.append(
                f"partition selection: a key is released if its noisy number of {self.unit}s is at "
                f"least {self.threshold} (tau)"
            )
        lines.append(f"each error holds with probability {percent(self.level)}; {self.rule}")
        if any(_is_for_any_rows(each) for each in self.outputs):
            lines.append(
                "the error of a mean, a variance, a quantile or a top key holds for any table; "
                "most tables keep to about half of it, or less"
            )
        lines += [
            f"{shown(each.name)}: by queries for one key each, which leave out the keys before and "
            f"share epsilon, within {format_up(each.one_by_one, 4)}; better where many keys are "
            "close behind the best, worse where the numbers fall off fast"
            for each in self.outputs
            if each.one_by_one is not None
        ]
        if self.left_out is not None:
            lines.append(
                f"contribution bounds leave out {self.left_out} "
                "at most, by the public guess; the error of each output includes them"
            )
        if distances:
            lines += explain_distances(self.distances, self.unit, g)
        lines += [*self.warnings, *epsilon_warnings(g.epsilon, self.unit)]
        if self.left is not None:
            explained = getattr(self.left, "explain", None)
            left = explained() if callable(explained) else str(self.left)
            lines += ["the budget after this query:", left]
        return "\n".join(lines)

    def _say_not_included(self, spell: Spelling) -> list[str]:
        """Say what no error includes: values moved into their bounds, and rows left out."""
        bounds = [
            f"{shown(column)} is moved into {format_exactly(low)} to {format_exactly(high)}"
            for column, low, high in self.moved
        ]
        lines = [f"{', '.join(bounds)}; no error includes that"] if bounds else []
        if self.kept:
            guess = spell("rows_per_user", {5: 300, 9: 20})
            advice = "; for errors that include it, say by a public guess how many users have so "
            advice += f"many rows, such as {guess}"
            said = f"each error is that of the noise alone: {self.kept}"
            lines.append(said + advice * bool(guess))
        return lines

    def _line(self, output: QuotedOutput) -> str:
        """Describe the error of an output, of its measurements, and its share."""
        parts = say_measured(output)
        text, first = parts, output.measured[0][0]
        if output.accuracy is not None:
            size = format_up(output.accuracy, 4)
            text = f"within {size}"
            if first.startswith("rank"):
                text = f"within {name_count(size, 'rank')}"
                if self.rows is not None:
                    text += f" of about {say_rows(self)}"
                text += f": {parts}" * (len(output.measured) > 1)
                text += f"; of {output.candidates}"
            elif len(output.measured) > 1:
                text += f" if about {say_rows(self)} have a value: {parts}"
            elif first == "rows of a bin":
                text = f"each bin {text}"
            elif first in ("rows of a key", "users of a key"):
                text += f" {first.split()[0]} of the best key for each place"
        return f"{shown(output.name)}: {text}; {_write_share(output.share)} % of epsilon"


def say_measured(output: QuotedOutput) -> str:
    """Say the error of each number that is measured for an output."""
    return ", ".join(_say_number(*each) for each in output.measured)


def _say_number(what: str, error: float) -> str:
    number = format_up(error, 4)
    what, _, unit = what.partition(" / ")
    if unit:
        return f"{what} within {number} times {unit}"
    return (
        f"at most {number} {what}" if what.startswith("rows beyond") else f"{what} within {number}"
    )


def _write_share(share: float) -> str:
    """Write a share in whole percent; only nothing is 0 %."""
    return f"{100 * share:.0f}" if round(100 * share) else f"{100 * share:.1g}"


def _is_for_any_rows(output: QuotedOutput) -> bool:
    """Whether its error depends on the rows, so that no table may reach what is stated."""
    first = output.measured[0][0]
    several = output.accuracy is not None and len(output.measured) > 1
    return several or first.startswith("rank") or first in ("rows of a key", "users of a key")


def say_rows(quote: Quote) -> str:
    """Say how many rows the errors are for, and of what."""
    return f"{name_count(quote.rows or 0, 'row')}{' of each group' * quote.grouped}"


def quote_query(
    connection: Connection,
    query: Query,
    plan: Plan,
    *,
    beta: float,
    rows: int | None,
    left_out: LeftOut | None = None,
    ledger: Any = None,
    budget: str | None = None,
) -> Quote:
    """Quote the price of a query and its plan, and what a budget would have left after it."""
    beta = require_probability("beta", beta)
    check_ledger(ledger, budget)
    can_quote = hasattr(ledger, "quote")
    left = ledger.quote(budget, plan.guarantee, loss=plan.loss) if can_quote else None
    smallest = None
    if plan.searches:
        least = query.with_smallest_bounds()
        promise = plan.guarantee
        again = plan_query(
            least, epsilon=promise.epsilon, delta=promise.delta, noise_name=plan.noise_name
        )
        smallest = (again, least.aggregates)
    missing = count_missing(query, left_out)
    quote = quote_plan(
        plan, query.aggregates, beta=beta, rows=rows, left=left, smallest=smallest, missing=missing
    )
    distances = trace_distances(query, plan)
    return replace(
        quote,
        warnings=(
            *connection.told,
            *publish_warnings(query.joins),
            *held_warnings(connection.casts, query),
            *unlisted_warnings(connection.listed, query),
        ),
        distances=distances,
        left_out=left_out,
        kept=say_kept(query, left_out),
        moved=_list_moved(query.aggregates),
        grouped=bool(query.keys.columns),
    )


def _list_moved(aggregates: Sequence[Aggregate]) -> tuple[tuple[str, float, float], ...]:
    """List the columns with public bounds, and these; each once."""
    found = [
        (each.column, each.low, each.high)
        for each in aggregates
        if each.column is not None and each.kind != "top" and not each.search
    ]
    return tuple(dict.fromkeys(found))


def quote_plan(
    plan: Plan,
    aggregates: Sequence[Aggregate],
    *,
    beta: float,
    rows: int | None,
    left: Any,
    smallest: tuple[Plan, Sequence[Aggregate]] | None = None,
    missing: Mapping[str, int] = MappingProxyType({}),
) -> Quote:
    """Quote the price of a plan; `smallest` is the same with the smallest bounds of each search.

    `missing` is what each output may lack by contribution bounds.
    """
    if rows is not None and require_int("rows", rows) < 1:
        raise ParameterError(f"rows must be 1 or more, got {rows}", parameter="rows")
    outputs = []
    for each in aggregates:
        own = [part for part in plan.parts if part.measurement.output == each.name]
        if each.search and smallest is not None:
            outputs.append(_quote_searched(plan, each, own, beta, smallest))
            continue
        alone = beta / len(own) if each.kind == "quantiles" else beta
        quantiles = each.kind == "quantiles"
        outputs.append(
            QuotedOutput(
                name=each.name,
                share=math.fsum(part.share for part in own),
                accuracy=_accuracy(each, own, beta, rows, missing.get(each.name, 0)),
                measured=tuple((_role(part), _error(part, each, alone)) for part in own),
                candidates=describe_candidates(each.low, each.high, each.bins, each.spacing)
                if quantiles
                else None,
                one_by_one=_one_by_one(each, own, beta, missing.get(each.name, 0)),
            )
        )
    return Quote(
        guarantee=plan.guarantee,
        unit=plan.unit,
        outputs=tuple(outputs),
        threshold=None if plan.selection is None else plan.selection.threshold,
        level=1 - beta,
        rule=plan.rule,
        left=left,
        rows=rows,
    )


def _quote_searched(
    plan: Plan,
    aggregate: Aggregate,
    parts: Sequence[Part],
    beta: float,
    smallest: tuple[Plan, Sequence[Aggregate]],
) -> QuotedOutput:
    """Quote an output in multiples of its bounds, which grow a little as these get smaller."""
    searches = [part for part in plan.searches if part.search.output == aggregate.name]
    found = [(f"rows beyond the {e.search.side} bound", e.error(beta)) for e in searches]
    least = next(each for each in smallest[1] if each.name == aggregate.name)
    others = [part for part in smallest[0].parts if part.measurement.output == aggregate.name]
    for part, other in zip(parts, others, strict=True):
        if part.measurement.feature is None or part.measurement.feature.grid is None:
            found.append((_role(part), _error(part, aggregate, beta)))
            continue
        several = ((part, aggregate), (other, least))
        error = max(_error_in_bounds(each, asked, beta) for each, asked in several)
        power = "the square of " if part.measurement.feature.kind == "square" else ""
        found.append((f"{_role(part)} / {power}{name_unit(aggregate)}", error))
    return QuotedOutput(
        name=aggregate.name,
        share=math.fsum([*(e.share for e in searches), *(e.share for e in parts)]),
        accuracy=None,
        measured=tuple(found),
        searched=True,
    )


def _error_in_bounds(part: Part, aggregate: Aggregate, beta: float) -> float:
    """Error of a sum in the unit of `name_unit`."""
    unit = size_unit(part.measurement, aggregate)
    return float_above(Fraction(_error(part, aggregate, beta)) / unit)


def _role(part: Part) -> str:
    feature = part.measurement.feature
    if part.measurement.role == "rank":
        return f"rank of quantile {format_exactly(part.measurement.probability)}"
    if feature is None or part.measurement.role == "bins":
        counted = {"top": "rows of a key", "top users": "users of a key", "bins": "rows of a bin"}
        return counted.get(part.measurement.role, part.measurement.role)
    return {"steps": "sum", "square": "sum of squares"}.get(feature.kind, "rows with a value")


def _error(part: Part, aggregate: Aggregate, beta: float) -> float:
    if isinstance(part.noise, Choice | TopChoice):
        return part.noise.error(beta, aggregate.bins)
    return part.noise.error(beta) * part.measurement.step


def _one_by_one(
    aggregate: Aggregate, parts: Sequence[Part], beta: float, missing: int
) -> float | None:
    """Error of a top whose keys are chosen one after the other; None of one key, and of others."""
    laws = [part.noise for part in parts if isinstance(part.noise, TopChoice)]
    if not laws or laws[0].mechanism.k == 1:
        return None
    return add_missing(aggregate, laws[0].error_one_by_one(beta, aggregate.bins), missing)


def _accuracy(
    aggregate: Aggregate, parts: Sequence[Part], beta: float, rows: int | None, missing: int
) -> float | None:
    """Error of the output as a whole; of a ratio for this many rows, whatever their values.

    All that is missing may be among these rows, so that a ratio is measured over the rest.
    """
    if aggregate.kind == "quantiles":
        return rank_error(aggregate, parts, beta, missing)
    if aggregate.kind not in RATIOS:
        return add_missing(aggregate, max(_error(part, aggregate, beta) for part in parts), missing)
    if rows is None:
        return None
    reach = (aggregate.high - aggregate.low) / 2
    errors = error_bounds(parts, beta)
    fewest = rows - missing - errors[-1]
    worst = 2 * reach if aggregate.kind == "mean" else reach * reach
    if fewest <= 0:
        return worst
    mean = (errors[0] + reach * errors[-1]) / fewest
    if aggregate.kind == "mean":
        return min(worst, add_missing(aggregate, mean, missing, rows))
    second = (errors[1] + reach * reach / 2 * errors[-1]) / fewest
    return min(worst, add_missing(aggregate, second + 2 * reach * mean, missing, rows))
