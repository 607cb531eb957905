"""Which promises a budget takes at all, whatever is left of it."""

from __future__ import annotations

from functools import lru_cache

from hushed.errors import ParameterError
from hushed.guarantee import Guarantee, Unit
from hushed.ledger.entries import Budget
from hushed.privacy_loss import LossCurve
from hushed.privacy_loss.families import Family

__all__ = ["check_promise"]


def check_promise(budget: Budget, promise: Guarantee, loss: LossCurve | None) -> None:
    """Refuse what the budget's limit does not speak of.

    Parameters
    ----------
    budget : Budget
        The budget.
    promise : Guarantee
        What is to be charged.
    loss : LossCurve, optional
        The law behind it.

    Raises
    ------
    ParameterError
        If the promise is for other neighbours or another unit than the budget, or for fewer
        people, or not a promise at all, or does not hold under the law.
    """
    limit = budget.limit
    if not isinstance(promise, Guarantee):
        raise ParameterError(
            f"a charge is a Guarantee, got {type(promise).__name__}; pass mechanism.guarantee, and "
            "loss=mechanism.loss"
        )
    if promise.neighbours != limit.neighbours:
        raise ParameterError(
            f"budget {budget.name!r} is for {limit.neighbours} neighbours, the charge for "
            f"{promise.neighbours}; state the promise for {limit.neighbours}"
        )
    if promise.unit != limit.unit:
        raise ParameterError(_of_another_unit(budget.name, limit.unit, promise.unit))
    if promise.data_dependent and not limit.data_dependent:
        raise ParameterError(
            f"the population behind this charge was made from private rows: its numbers are "
            f"nominal, and budget {budget.name!r} was not opened for that (data_dependent=True)"
        )
    if promise.gamma > 0 and promise.protect == "record" and limit.protect != "record":
        raise ParameterError(
            f"budget {budget.name!r} speaks of all records at once (protect={limit.protect!r}), "
            "the charge of one record at a time; sample with protect='everyone'"
        )
    if loss is not None and len(loss.parts) == 1 and loss.parts[0][1] == 1:
        kept = _kept(loss.parts[0][0], promise.epsilon)
        if kept > promise.delta * (1 + 1e-9) + 1e-18:
            raise ParameterError(
                f"the loss needs delta {kept:.4g} at epsilon {promise.epsilon:g}, the guarantee "
                f"says {promise.delta:.4g}: they are not of the same release"
            )


def _of_another_unit(name: str, limit: Unit, promised: Unit) -> str:
    """Why a charge for users does not go into a budget for rows, nor the other way round."""
    ask = "with" if limit == "user" else "without"
    return (
        f"budget {name!r} protects one {limit}, the charge one {promised}: neither promise implies "
        f"the other, so they do not add up. Open a second budget with unit={promised!r}, or query "
        f"tables {ask} user=COLUMN. Nothing was charged"
    )


@lru_cache(maxsize=4096)
def _kept(family: Family, epsilon: float) -> float:
    return LossCurve(family).delta(epsilon)
