"""Which promises a budget takes at all, whatever is left of it."""

from __future__ import annotations

from hushed._ground.printing import format_down
from hushed.accounting._explained import explains
from hushed.errors import ParameterError
from hushed.guarantee import Guarantee
from hushed.ledger._entries import Budget
from hushed.privacy_loss import PrivacyProfile


def check_promise(budget: Budget, promise: Guarantee, loss: PrivacyProfile | None) -> None:
    """Refuse what the budget's limit is not about."""
    limit = budget.limit
    if not isinstance(promise, Guarantee):
        raise ParameterError(
            f"a charge is a Guarantee, got {type(promise).__name__}; pass mechanism.guarantee, and "
            "loss=mechanism.loss"
        )
    if mismatches := _mismatches(limit, promise):
        raise ParameterError(
            f"budget {budget.name!r} does not take this charge: {'; '.join(mismatches)}. "
            f"{_way_out(budget.name, limit, promise)}. Nothing was charged"
        )
    if loss is not None and loss.one_sided:
        raise ParameterError(
            "the loss is that of one of two neighbours against the other only, which is no "
            "promise; charge the larger of both, hs.privacy_loss.pair(p, q), or the guarantee alone"
        )
    if loss is not None and not explains(loss, promise.epsilon, promise.delta):
        raise ParameterError(
            f"the loss needs more than delta {format_down(promise.delta, 4)} at epsilon "
            f"{format_down(promise.epsilon)}, which the guarantee says, or cannot be shown to keep "
            "it: they are not of the same release. State what all of its parts keep together "
            "(hushed compose). Nothing was charged"
        )


def _mismatches(limit: Guarantee, promise: Guarantee) -> list[str]:
    """Everything in which a promise is about something else than the limit, not just the first."""
    found = []
    if promise.neighbours != limit.neighbours:
        found.append(
            f"the budget is for {limit.neighbours} neighbours, the charge for {promise.neighbours}"
        )
    if promise.unit != limit.unit:
        found.append(f"the budget protects one {limit.unit}, the charge one {promise.unit}")
    if promise.distance != limit.distance:
        found.append(
            f"the budget is for {limit.distance} row(s) replaced at once, the charge for "
            f"{promise.distance}"
        )
    if _for_given(limit, promise):
        found.append(
            f"the budget is about protect={limit.protect!r}, the charge about "
            f"protect={promise.protect!r}, of which one is about given replacements only"
        )
    if found:
        found[-1] += ", and as they are they do not add up"
    if _for_fewer(limit, promise):
        found.append(
            f"the budget is about all records at once (protect={limit.protect!r}), the charge of "
            "one record at a time"
        )
    if promise.data_dependent and not limit.data_dependent:
        found.append(
            "the population behind the charge was made from private rows, so that its numbers are "
            "nominal, and the budget was not opened for that"
        )
    return found


def _for_given(limit: Guarantee, promise: Guarantee) -> bool:
    return promise.gamma > 0 and (promise.protect == "table") != (limit.protect == "table")


def _for_fewer(limit: Guarantee, promise: Guarantee) -> bool:
    return (
        promise.gamma > 0
        and promise.protect == "record"
        and limit.protect not in ("record", "table")
    )


def _way_out(name: str, limit: Guarantee, promise: Guarantee) -> str:
    """Say which budget would take a charge, in Python and on the command line."""
    asked = []
    if (promise.neighbours, promise.unit) != (limit.neighbours, limit.unit):
        asked += [f"neighbours={promise.neighbours!r}", f"unit={promise.unit!r}"]
    if promise.distance != limit.distance:
        asked.append(f"distance={promise.distance}")
    if _for_fewer(limit, promise) or _for_given(limit, promise):
        asked.append(f"protect={promise.protect!r}")
    options = ["--" + each.replace("=", " ").replace("'", "") for each in asked]
    if promise.data_dependent and not limit.data_dependent:
        asked.append("data_dependent=True")
        options.append("--data-dependent")
    command = f"hushed ledger open LEDGER NAME --epsilon EPSILON {' '.join(options)}"
    spelled = f"{', '.join(asked)} in its limit ({command})"
    others: list[str] = []
    if _can_be_turned(limit, promise):
        others.append(
            "release without a ledger, and charge by hand what it costs where a row is replaced, "
            f"2 epsilon and more than twice delta: ledger.charge({name!r}, "
            "guarantee.for_replacement())"
        )
    by_user = promise.unit != limit.unit and promise.neighbours == limit.neighbours == "add-remove"
    if by_user and limit.unit == "row":
        others.append("query tables without user=COLUMN")
    if _for_fewer(limit, promise):
        others.append(f"sample with protect={limit.protect!r}")
    told = ", or ".join([f"Open another budget with {spelled}", *others])
    if limit.unit != "row" and promise.unit == "row":
        return (
            "The budget protects people, and this release protects rows, which says less where "
            "somebody has several: query the table, or release, with user='COLUMN' (--user COLUMN) "
            f"where it can be given. {told}. Two budgets do not add up to one total"
        )
    return told


def _can_be_turned(limit: Guarantee, promise: Guarantee) -> bool:
    """Whether what a promise says of replaced rows is what a limit is about."""
    if promise.neighbours == limit.neighbours:
        return False
    try:
        return not _mismatches(limit, promise.for_replacement())
    except ParameterError:
        return False
