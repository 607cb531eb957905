"""What a query would cost and how exact it would be; no data is touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hushed._printing import Spelling, format_up, shown, spell_argument
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.tables._answers import errors_of, percent, rank_error
from hushed.tables._plan import Choice, Part, Plan
from hushed.tables._remarks import hardly_private
from hushed.tables._requests import Aggregate, require_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedOutput:
    """Price and accuracy of one output.

    Parameters
    ----------
    name : str
        The output.
    share : float
        Share of the budget.
    accuracy : float or None
        Error that a value keeps within but with chance ``1 - level``; for quantiles in ranks, all
        of a group together. None for means and variances unless the number of rows of a group was
        given.
    measured : tuple of (str, float)
        What is measured for it, and the error of each number by itself; of quantiles, which share
        the chance of a miss, before they are put in order.
    """

    name: str
    share: float
    accuracy: float | None
    measured: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A price, before anything is charged or read.

    Parameters
    ----------
    guarantee : Guarantee
        What the query would promise and cost.
    unit : str
        Whom it protects: a ``user`` or a ``row``.
    outputs : tuple of QuotedOutput
        Accuracy of each output.
    threshold : int or None
        For private keys: noisy number of users from which on a key is named.
    level : float
        Confidence of the accuracies.
    rule : str
        How the budget is split.
    left : object or None
        What the ledger says would be left of the budget; None without a ledger.
    rows : int or None
        Rows of a group that the accuracies of means and variances are for.
    remarks : tuple of str
        What the promise asks of the table, if it is a view.
    """

    guarantee: Guarantee
    unit: str
    outputs: tuple[QuotedOutput, ...]
    threshold: int | None
    level: float
    rule: str
    left: Any = None
    rows: int | None = None
    remarks: tuple[str, ...] = ()

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
        """
        return next(each.accuracy for each in self.outputs if each.name == name)

    def explain(self, spell: Spelling = spell_argument) -> str:
        """Say the price in a few lines.

        Parameters
        ----------
        spell : callable, default as in Python
            Words for an argument that is advised, from its name and its value.

        Returns
        -------
        str
            Plain text.
        """
        g = self.guarantee
        delta = f", delta {format_up(g.delta)}" if g.delta else ""
        lines = [f"epsilon {format_up(g.epsilon)}{delta} for adding or removing one {self.unit}"]
        lines += [self._line(each) for each in self.outputs]
        if any(each.accuracy is None for each in self.outputs):
            lines.append(
                "for the error of a mean or variance itself, say about how many rows a group has, "
                f"such as {spell('rows', 100)}"
            )
        if self.threshold is not None:
            lines.append(
                f"keys are named from {self.threshold} {self.unit}s on, counted with noise"
            )
        lines.append(f"each within its error with {percent(self.level)}; {self.rule}")
        lines += [*self.remarks, *hardly_private(g.epsilon, self.unit)]
        if self.left is not None:
            explained = getattr(self.left, "explain", None)
            left = explained() if callable(explained) else str(self.left)
            lines += ["the budget afterwards:", left]
        return "\n".join(lines)

    def _line(self, output: QuotedOutput) -> str:
        """Error of an output, of what is measured for it, and its share."""
        parts = ", ".join(f"{what} within {format_up(error, 4)}" for what, error in output.measured)
        said, first = parts, output.measured[0][0]
        if output.accuracy is not None:
            said = f"within {format_up(output.accuracy, 4)}"
            if first.startswith("rank"):
                said += " ranks" if len(output.measured) == 1 else f" ranks: {parts}"
            elif len(output.measured) > 1:
                said += f" if about {self.rows} rows have a value: {parts}"
            elif first == "rows of a bin":
                said = f"each bin {said}"
        return f"{shown(output.name)}: {said}; {output.share:.0%} of epsilon"


def quoted(
    plan: Plan, aggregates: Sequence[Aggregate], *, beta: float, rows: int | None, left: Any
) -> Quote:
    """Price a plan."""
    if rows is not None and require_whole("rows", rows) < 1:
        raise ParameterError(f"rows must be 1 or more, got {rows}")
    outputs = []
    for each in aggregates:
        own = [part for part in plan.parts if part.measurement.output == each.name]
        alone = beta / len(own) if each.kind == "quantiles" else beta
        outputs.append(
            QuotedOutput(
                name=each.name,
                share=math.fsum(part.share for part in own),
                accuracy=_accuracy(each, own, beta, rows),
                measured=tuple((_role(part), _error(part, each, alone)) for part in own),
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


def _role(part: Part) -> str:
    feature = part.measurement.feature
    if part.measurement.role == "rank":
        return f"rank of quantile {part.measurement.probability:g}"
    if feature is None or part.measurement.role == "bins":
        return {"rows": "rows", "users": "users"}.get(part.measurement.role, "rows of a bin")
    return {"steps": "sum", "square": "sum of squares"}.get(feature.kind, "rows with a value")


def _error(part: Part, aggregate: Aggregate, beta: float) -> float:
    if isinstance(part.noise, Choice):
        return part.noise.error(beta, aggregate.bins + 1)
    return part.noise.error(beta) * part.measurement.step


def _accuracy(
    aggregate: Aggregate, parts: Sequence[Part], beta: float, rows: int | None
) -> float | None:
    """Error of the output as a whole; of a ratio, for so many rows, whatever they hold."""
    if aggregate.kind == "quantiles":
        return rank_error(aggregate, parts, beta)
    if aggregate.kind not in ("mean", "variance"):
        return max(_error(part, aggregate, beta) for part in parts)
    if rows is None:
        return None
    reach = (aggregate.high - aggregate.low) / 2
    errors = errors_of(parts, beta)
    fewest = rows - errors[-1]
    worst = 2 * reach if aggregate.kind == "mean" else reach * reach
    if fewest <= 0:
        return worst
    mean = (errors[0] + reach * errors[-1]) / fewest
    if aggregate.kind == "mean":
        return min(worst, mean)
    second = (errors[1] + reach * reach / 2 * errors[-1]) / fewest
    return min(worst, second + 2 * reach * mean)
