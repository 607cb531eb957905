"""The one verb: charge, evaluate on the private rows, draw, certify."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushed.calibrate import Mechanism, check_shape, parameters
from hushed.certificate import Certificate, certify
from hushed.errors import BadFunction, BadRows, HushedError, ParameterError
from hushed.fingerprints import changed, same_function
from hushed.functions import public_name
from hushed.gate import Outside, admitted, answered
from hushed.guarantee import Guarantee
from hushed.mechanisms import Bernstein
from hushed.privacy_loss import LossCurve
from hushed.sensitivity import Sensitivity

__all__ = ["Charges", "Release", "check_ledger", "default_note", "release"]

_LONGEST_NOTE = 200


class Charges(Protocol):
    """A ledger, as a release needs it."""

    def charge(
        self, budget: str, guarantee: Guarantee, note: str = "", *, loss: LossCurve | None = None
    ) -> object:
        """Commit a charge, or raise and leave the budget as it was.

        What is returned may have a text ``terms``: under which terms it was charged. It goes into
        the certificate.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What may be published.

    Parameters
    ----------
    value : float, ndarray of float, int or BernsteinPolynomial
        The private answer: a number, an array, the index of the chosen candidate, or a function.
    certificate : Certificate
        What it promises.
    """

    value: Any
    certificate: Certificate


def release(
    f: Callable[[Any], Any],
    data: Any,
    mechanism: Mechanism,
    ledger: Charges | None = None,
    *,
    budget: str | None = None,
    note: str = "",
    outside: Outside = "clamp",
) -> Release:
    """Evaluate a function on the private rows and release the answer with noise.

    Everything that can be checked without running the function is checked first. Then the ledger
    is charged, then the function sees the private rows, then the noise is drawn. A function that
    fails on the private rows stays paid for: that it failed is an answer, too.

    Parameters
    ----------
    f : callable
        The function whose sensitivity the mechanism was calibrated to.
    data : array, list or frame
        The private rows, in the container and number that were sampled. Not changed: the function
        sees a copy, in the sampled types.
    mechanism : Laplace, Gaussian, Exponential or Bernstein
        The calibrated mechanism.
    ledger : Ledger or Charges, optional
        Where to charge the guarantee, and the law of the loss behind it, before anything is
        drawn; nothing is charged without it.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger; by default the mechanism and the name of the function.
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
        If the function is not the sampled one (refused before the charge); or if it fails on the
        private rows, or its answer cannot be released: no private value is shown, and the charge
        stays.
    KeyboardInterrupt
        If stopped while the function ran; it says that the charge stays.
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
    check_ledger(ledger, budget)
    sampling = carried.sampling
    rows = admitted(data, sampling, outside=outside)
    if (
        len(rows) == 0 and carried.neighbours == "replace-one"
    ):  # otherwise a row more is a neighbour
        raise BadRows("the table is empty")
    if sampling is not None:
        if not same_function(f, sampling.called):
            raise BadFunction(
                f"the sensitivity was sampled on another function, {sampling.function!r}; "
                "sample it on the one to be released"
            )
        if since := changed(f, sampling.state):
            raise BadFunction(
                f"the function uses {', '.join(since)}, which changed since its sensitivity was "
                "sampled: sample it again"
            )
        check_shape(mechanism, sampling.shape)
    certify(mechanism, values=_known_values(mechanism))  # whatever it refuses is unpaid
    terms = ""
    if ledger is not None and budget:
        said = note or default_note(f"{type(mechanism).__name__}: {_asked(carried)}")
        charged = ledger.charge(budget, mechanism.guarantee, note=said, loss=mechanism.loss)
        terms = str(getattr(charged, "terms", ""))
    exact, value = _paid(f, rows, mechanism, charged=ledger is not None)
    certificate = certify(mechanism, values=exact.size, charged=terms, outside=outside)
    return Release(value=value, certificate=certificate)


def _known_values(mechanism: Mechanism) -> int:
    """Numbers released together, as far as they are known without the rows; at least one is."""
    sampling = getattr(mechanism.sensitivity, "sampling", None)
    if sampling is not None:
        return math.prod(sampling.shape)
    return mechanism.points if isinstance(mechanism, Bernstein) else 1


def _paid(
    f: Callable[[Any], Any], rows: Any, mechanism: Mechanism, *, charged: bool
) -> tuple[NDArray[np.float64], Any]:
    """Evaluate and draw: what fails from here on fails on private rows, and stays paid for."""
    paid = "the charge stays" if charged else "count the budget as spent"
    problem = ""
    try:
        exact = answered(f, rows, getattr(mechanism.sensitivity, "sampling", None))
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
        raise KeyboardInterrupt(f"stopped; nothing was released, but {paid}")
    raise BadFunction(
        f"{problem}; {paid}, because that it failed on the private rows is an answer, too"
    )


def check_ledger(ledger: object, budget: str | None) -> None:
    """Refuse a ledger without a budget, a budget without a ledger, and what is no ledger.

    Parameters
    ----------
    ledger : Ledger or Charges, optional
        The ledger.
    budget : str, optional
        Name of the budget in it.

    Raises
    ------
    ParameterError
        If only one is given, or the ledger cannot be charged; the message says what to write.
    """
    if ledger is None:
        if budget:
            raise ParameterError(
                f"budget={budget!r} was named, but there is no ledger to charge: ledger="
                "hs.Ledger('sqlite:///FILE')"
            )
        return
    if not hasattr(ledger, "charge"):
        advice = "give a hs.Ledger, or an object with such a method charge as hs.Ledger has"
        if isinstance(ledger, str):
            advice = "open it first: ledger=hs.Ledger(...)"
        raise ParameterError(f"a {type(ledger).__name__} cannot be charged; {advice}")
    if not budget:
        raise ParameterError("there is a ledger, but no budget was named in it: budget='NAME'")


def default_note(text: str) -> str:
    """Make a remark for the ledger that fits on a line.

    Parameters
    ----------
    text : str
        What was asked, in public names.

    Returns
    -------
    str
        The same in printable characters, cut off after 200.
    """
    plain = "".join(each if each.isprintable() else " " for each in text)
    return plain if len(plain) <= _LONGEST_NOTE else plain[: _LONGEST_NOTE - 3] + "..."


def _asked(carried: Sensitivity) -> str:
    """Name what is released as its certificate does."""
    return carried.argument if carried.sampling is None else carried.sampling.function
