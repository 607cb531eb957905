"""What a price means, in sentences: of each statistic, of the error bar, of epsilon."""

from __future__ import annotations

from dataclasses import dataclass

from hushed._ground.printing import format_up
from hushed.tables import Quote
from hushed.tables._answers import percent
from hushed.tables._quotes import QuotedOutput, say_measured, say_rows
from hushed.workbench._views.question import Question


def spell_field(name: str, value: object) -> str:
    """Write the number of rows that a price advises as a field of the page; it has no other."""
    return f"{value}, under More" if name == "rows" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """What is said of one statistic."""

    prefix: str  # of its fields
    output: str
    label: str
    error: str  # "error within 47 rows", or what is needed for it


def list_statistics(question: Question, quote: Quote) -> tuple[Statistic, ...]:
    """Say the error of each statistic."""
    known = {each.name: each for each in quote.outputs}
    return tuple(
        Statistic(
            prefix=question.fields_of[name],
            output=name,
            label=label,
            error=_say_output(known[name], quote),
        )
        for name, label in question.labels.items()
    )


def _say_output(output: QuotedOutput, quote: Quote) -> str:
    if output.searched:
        return f"its error depends on the bounds that will be found: {say_measured(output)}"
    if output.accuracy is None:
        return "for its error, say under More about how many rows a group has"
    error = format_up(output.accuracy, 4)
    if _is_top(output):
        return f"each key within {error} {output.measured[0][0].split()[0]} of the best one"
    if _is_ranked(output):
        return f"error within {error} ranks"
    guess = f", if about {say_rows(quote)} have a value" if len(output.measured) > 1 else ""
    return f"error within {error}{guess}"


def _is_ranked(output: QuotedOutput) -> bool:
    return output.measured[0][0].startswith("rank")


def _is_top(output: QuotedOutput) -> bool:
    return output.measured[0][0] in ("rows of a key", "users of a key")


def say_error(question: Question, quote: Quote, error_of: str, error: float | None) -> str:
    """Say what the error bar holds, and what is not in it."""
    if error is None or question.table is None:
        return ""
    each = "each " if question.table.keys.columns else "the "
    output = next(e for e in quote.outputs if e.name == error_of)
    what = f"{each}{question.labels[error_of]} is within {format_up(error, 4)} of the one without "
    what += "noise"
    if _is_top(output):
        unit = output.measured[0][0].split()[0]
        what = f"each of the {question.labels[error_of]} has at most {format_up(error, 4)} {unit} "
        what += "less than the best one for its place"
    elif _is_ranked(output):
        what = f"{each}{question.labels[error_of]} is at most {format_up(error, 4)} ranks from "
        what += "the true one"
    limit = question.table.contribution_bounds.max_rows_per_user
    left_out = [] if _is_top(output) else ["values moved into their bounds"]
    left_out += [f"rows of a person beyond {limit}, which do not count"] if limit else []
    if not left_out:
        return f"With probability {percent(quote.level)}, {what}."
    chance = f"With probability {percent(quote.level)}"
    return f"{chance}, {what}. Not in that: {' and '.join(left_out)}."
