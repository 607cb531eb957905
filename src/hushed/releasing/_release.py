"""The one verb: charge, evaluate on the private rows, draw, certify."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hushed._functions._calls import public_name
from hushed._functions._gate import Outside, admit_rows, answer_private_rows
from hushed.errors import BadFunction, BadRows, HushedError, ParameterError
from hushed.mechanisms import Bernstein
from hushed.mechanisms._calibration import Mechanism, check_shape, parameters
from hushed.releasing._certificate import Certificate, certify
from hushed.releasing._keeping import (
    Charges,
    Payment,
    check_ledger,
    explain_stops,
    pay,
    question_of,
    read_release,
    write_failure,
    write_release,
)
from hushed.sensitivity import Sensitivity

_LONGEST_NOTE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What may be published.

    Parameters
    ----------
    value : float, ndarray of float, int, ndarray of int, Winner or BernsteinPolynomial
        The private answer: a number, an array, the index of the chosen candidate, the indices of
        several, a candidate with its gap, or a function.
    certificate : Certificate
        What it promises.
    entry : int, optional
        Number of the charge, under which ``ledger.answer`` tells the answer again; None if it is
        not stored.
    """

    value: Any
    certificate: Certificate
    entry: int | None = None


def release(
    f: Callable[[Any], Any],
    data: Any,
    mechanism: Mechanism,
    ledger: Charges | None = None,
    *,
    budget: str | None = None,
    note: str = "",
    key: str | None = None,
    outside: Outside = "clamp",
) -> Release:
    """Evaluate a function on the private rows and release the answer with noise.

    Everything that can be checked without running the function is checked first. Then the ledger
    is charged, then the function sees the private rows, then the noise is drawn. A function that
    fails on the private rows stays paid for: that it failed is an answer, too. A `Ledger` stores
    the answer, or the failure, before it is shown.

    Parameters
    ----------
    f : callable
        The function whose sensitivity the mechanism was calibrated to.
    data : array, list or frame
        The private rows, in the container and number that were sampled. Not changed: the function
        sees a copy, in the sampled types.
    mechanism : Laplace, Gaussian, Exponential, TopK, NoisyMax or Bernstein
        The calibrated mechanism.
    ledger : Ledger or Charges, optional
        Where to charge the guarantee, and the law of the loss behind it, before anything is
        drawn; nothing is charged without it.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger; by default the mechanism and the name of the function.
    key : str, optional
        A name of your own for this release, which needs a `Ledger`: asking the same again under it
        tells the stored answer, at no cost and without a look at the rows. So may be done after a
        crash. Without a key every release is a new one.
    outside : {"clamp", "allow"}, default "clamp"
        What to do with private rows outside of the range that the population keeps to, where it
        keeps to one: move each of them into it before the function sees it, or let them pass. The
        certificate says which; rows that passed are not covered.

    Returns
    -------
    Release
        The private value and its certificate.

    Raises
    ------
    BadRows
        If the table is empty, its size or columns are not those that were sampled, or its types do
        not convert to them without loss.
    PrivateRowsAsPopulation
        If the private rows served as the public population without being declared so.
    BadFunction
        If the function is not the sampled one, or no longer answers as it did when sampled (refused
        before the charge); or if it fails on the private rows, or its answer cannot be released:
        no private value is shown, and the charge stays.
    KeyInUse
        If the key stands for another question; nothing is charged.
    KeyboardInterrupt
        If stopped from the charge on; it says what stays, and how to ask again.
    ParameterError
        If the mechanism is none, or of ledger and budget only one is given.
    """
    if not callable(f):
        raise ParameterError(f"the first argument must be a function, got {type(f).__name__}")
    carried = getattr(mechanism, "sensitivity", None)
    if not isinstance(carried, Sensitivity):
        raise ParameterError(
            "the third argument must be a mechanism such as hs.Laplace(s, epsilon=1.0), "
            f"got {type(mechanism).__name__}"
        )
    parameters(mechanism)  # refuses what only looks like a mechanism
    check_ledger(ledger, budget, key)
    sampling = carried.sampling
    rows = admit_rows(data, sampling, outside=outside)
    if len(rows) == 0 and carried.neighbours == "replace-one":  # else a row more is a neighbour
        raise BadRows("the table is empty")
    agreed: Literal["", "bits", "rounding"] = ""
    if sampling is not None:
        agreed = sampling.confirm(f).agreement
        check_shape(mechanism, sampling.shape)
    # Whatever it refuses, or cannot be written, is unpaid.
    certify(mechanism, values=_count_values(mechanism)).to_json()
    remark = note or default_note(f"{type(mechanism).__name__}: {_describe_question(carried)}")
    question = "" if ledger is None else question_of(f, mechanism, outside)
    promise, law = mechanism.guarantee, mechanism.loss
    with explain_stops(ledger, budget, key):
        paid = pay(ledger, budget, promise, remark, loss=law, key=key, question=question)
        if paid.kept is not None:
            return _read_stored(paid, paid.kept)
        return _evaluate_and_store(f, rows, mechanism, paid, outside=outside, confirmed=agreed)


def _count_values(mechanism: Mechanism) -> int:
    """Numbers released together, as far as they are known without the rows; at least one is."""
    sampling = getattr(mechanism.sensitivity, "sampling", None)
    if sampling is not None:
        return math.prod(sampling.shape)
    return mechanism.points if isinstance(mechanism, Bernstein) else 1


def _evaluate_and_store(
    f: Callable[[Any], Any],
    rows: Any,
    mechanism: Mechanism,
    paid: Payment,
    *,
    outside: Outside,
    confirmed: Literal["", "bits", "rounding"],
) -> Release:
    """Evaluate, draw, certify; what is released is stored first, a failure, too."""
    try:
        exact, value = _evaluate_and_draw(
            f, rows, mechanism, charged=paid.ledger is not None, key=paid.key
        )
    except BadFunction as failure:
        if paid.number is None:
            raise
        text = write_failure(failure)
    else:
        certificate = certify(
            mechanism,
            values=exact.size,
            charged=paid.terms,
            outside=outside,
            confirmed=confirmed,
        )
        if paid.number is None:
            return Release(value=value, certificate=certificate)
        text = write_release(value, certificate)
    return _read_stored(paid, paid.keep(text))


def _evaluate_and_draw(
    f: Callable[[Any], Any], rows: Any, mechanism: Mechanism, *, charged: bool, key: str | None
) -> tuple[NDArray[np.float64], Any]:
    """Evaluate and draw: what fails from here on fails on private rows, and stays paid for."""
    paid = "the charge stays" if charged else "count the budget as spent"
    problem = ""
    try:
        exact = answer_private_rows(f, rows, getattr(mechanism.sensitivity, "sampling", None))
        return exact, mechanism.draw(exact)
    except KeyboardInterrupt:
        pass
    except BadFunction as error:
        problem = str(error)
    except HushedError:  # its text may tell the shape of the answer
        problem = (
            f"{type(mechanism).__name__} cannot release the answer on the private rows, which has "
            "another shape or more numbers than it can"
        )
    except Exception as cause:  # as when the memory is too small, told with the size of the answer
        problem = f"the noise was not drawn ({public_name(type(cause), 'an exception')})"
    if not problem:
        again = "" if key is None else f": ask again under the key {key!r}, at no cost"
        raise KeyboardInterrupt(f"stopped; nothing was released, but {paid}{again}")
    raise BadFunction(
        f"{problem}; {paid}, because that it failed on the private rows is an answer, too"
    )


def _read_stored(paid: Payment, text: str) -> Release:
    """Release as it is stored; a stored failure is raised."""
    value, certificate = read_release(text)
    return Release(value=value, certificate=certificate, entry=paid.number)


def default_note(text: str) -> str:
    """Make a remark for the ledger that fits on a line."""
    plain = "".join(each if each.isprintable() else " " for each in text)
    return plain if len(plain) <= _LONGEST_NOTE else plain[: _LONGEST_NOTE - 3] + "..."


def _describe_question(carried: Sensitivity) -> str:
    """Name what is released as its certificate does."""
    return carried.argument if carried.sampling is None else carried.sampling.function
