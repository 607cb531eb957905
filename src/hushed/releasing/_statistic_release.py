"""Release of a statistic that knows its sensitivities: checked, charged, computed and drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hushed._functions._calls import public_name
from hushed._functions._gate import (
    Outside,
    admit_rows,
    refuse_private_candidates,
    refuse_private_choice,
    refuse_private_prior,
    show_as_given,
)
from hushed._functions._row_functions import refuse_carrying_steps
from hushed._functions._silence import silence
from hushed._ground.stops import watch_stops
from hushed._rows._containers import as_table
from hushed.errors import BadFunction, ParameterError
from hushed.ledger._failures import write_failure
from hushed.ledger._payments import Charges, Payment, check_ledger, explain_stops, pay
from hushed.mechanisms._registry import StatisticMechanism
from hushed.releasing._certificate import Certificate
from hushed.releasing._certifying import certify_statistic
from hushed.releasing._layouts import refuse_layout
from hushed.releasing._statistics import check_chain, digest_question
from hushed.releasing._stored import read_release, write_release
from hushed.spaces import Column
from hushed.statistics._values import only_column
from hushed.transformations import Transformation
from hushed.transformations._chain import describe_chain

Released = tuple[Any, Certificate, int | None]


def release_statistic(
    statistic: Any,
    data: Any,
    mechanism: StatisticMechanism,
    ledger: Charges | None,
    *,
    budget: str | None,
    note: str,
    key: str | None,
    outside: Outside,
) -> Released:
    """Charge, compute and draw; value, certificate and number of the charge."""
    chain = statistic if isinstance(statistic, Transformation) else None
    if chain is not None:
        check_chain(chain, mechanism)
    elif type(statistic) is not type(mechanism.statistic) or statistic != mechanism.statistic:
        raise ParameterError(
            "the mechanism was made for another statistic: give its own, mechanism.statistic, or "
            "a chain of transformations to the column that it is computed from"
        )
    if outside != "clamp":
        raise ParameterError(
            "a statistic moves every row into its range: leave outside= out", parameter="outside"
        )
    check_ledger(ledger, budget, key)
    rows = admit_rows(as_table(data), None)
    refuse_private_choice(mechanism, data)
    refuse_private_prior(getattr(mechanism, "prior", None), data)
    refuse_private_candidates(getattr(mechanism, "candidates", None), data)
    refuse_private_candidates(getattr(mechanism.statistic, "categories", None), data)
    named = ""
    if chain is None:
        mechanism.statistic.check(rows)
    else:
        refuse_carrying_steps(chain, data)
        rows, named = show_as_given(rows, data), describe_chain(chain)
        if isinstance(chain.source.domain, Column):
            rows = only_column(rows)  # a statistic takes a frame of one, too
        refuse_layout(chain, rows)
    certify_statistic(mechanism, chain=named).to_json()  # whatever it refuses is unpaid
    question = "" if ledger is None else digest_question(mechanism, chain)
    promise, law = mechanism.guarantee, mechanism.loss
    with explain_stops(ledger, budget, key):
        paid = pay(ledger, budget, promise, note, loss=law, key=key, question=question)
        return draw_and_store(
            lambda: mechanism.draw(rows if chain is None else chain(rows)),
            lambda: certify_statistic(mechanism, charged=paid.terms, chain=named),
            paid,
            "statistic",
        )


def draw_and_store(
    draw: Callable[[], Any], certified: Callable[[], Certificate], paid: Payment, what: str
) -> Released:
    """Compute and draw after the charge; what is released is stored first, a failure, too.

    The certificate is written before: its time would tell how long the private rows took.
    """
    if paid.kept is not None:
        return _read_stored(paid, paid.kept)
    certificate = certified()
    try:
        value = _draw(draw, what, charged=paid.ledger is not None)
    except BadFunction as failure:
        if paid.number is None:
            raise
        text = write_failure(failure)
    else:
        if paid.number is None:
            return value, certificate, None
        text = write_release(value, certificate)
    return _read_stored(paid, paid.keep(text))


def _draw(draw: Callable[[], Any], what: str, *, charged: bool) -> Any:
    """Draw; what fails here fails on private rows, and stays paid for."""
    name = ""
    # Objects in cells may say something while they are read, and a caller's own setting makes an
    # error of a small number, which a single row may hold.
    with silence(), watch_stops() as is_stop, np.errstate(all="ignore"):
        try:
            return draw()
        except BaseException as cause:
            name = "" if is_stop(cause) else public_name(type(cause), "an exception")
    if not name:
        raise KeyboardInterrupt
    paid = "the charge stays" if charged else "count the budget as spent"
    raise BadFunction(f"the {what} was not drawn ({name}); {paid}")


def _read_stored(paid: Payment, text: str) -> Released:
    """Read a release as it is stored; a stored failure is raised."""
    value, certificate = read_release(text)
    return value, certificate, paid.number
