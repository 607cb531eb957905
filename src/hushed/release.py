"""The one verb: charge, evaluate on the private rows, draw, certify."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushed import rows as tables
from hushed.calibrate import Mechanism, check_shape, parameters
from hushed.certificate import Certificate, certify
from hushed.environment import one_thread
from hushed.errors import BadFunction, BadRows, ParameterError, PrivateRowsAsPopulation
from hushed.functions import answer
from hushed.guarantee import Guarantee
from hushed.populations import overlaps
from hushed.privacy_loss import LossCurve
from hushed.sensitivity import Sampling, Sensitivity

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
        The private rows, in the container and number that were sampled. Not changed.
    mechanism : Laplace, Gaussian, Exponential or Bernstein
        The calibrated mechanism.
    ledger : Ledger or Charges, optional
        Where to charge the guarantee, and the law of the loss behind it, before anything is
        drawn; nothing is charged without it.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger; by default the mechanism and the name of the function.

    Returns
    -------
    Release
        The private value and its certificate.

    Raises
    ------
    BadRows
        If the table is empty, or its size or columns are not those that were sampled.
    PrivateRowsAsPopulation
        If the private rows served as the public population without being declared so.
    BadFunction
        If the function is not the sampled one, or no longer answers as it did when sampled (refused
        before the charge); or if it fails on the private rows, or its answer has another shape
        than sampled: no private value is shown, and the charge stays.
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
    rows = _checked(data, sampling, carried.neighbours)
    agreed: Literal["", "bits", "rounding"] = ""
    if sampling is not None:
        agreed = sampling.confirm(f).agreement
        check_shape(mechanism, sampling.shape)
        certify(mechanism, values=math.prod(sampling.shape))  # whatever it refuses is unpaid
    terms = ""
    if ledger is not None and budget:
        said = note or default_note(f"{type(mechanism).__name__}: {_asked(carried)}")
        charged = ledger.charge(budget, mechanism.guarantee, note=said, loss=mechanism.loss)
        terms = str(getattr(charged, "terms", ""))
    try:
        with one_thread():
            exact = _exact(f, rows, sampling)
    except BadFunction as error:
        paid = "the charge stays" if ledger is not None else "count the budget as spent"
        raise type(error)(
            f"{error}; {paid}, because that it failed on the private rows is an answer, too"
        ) from None
    value = mechanism.draw(exact)
    return Release(
        value=value,
        certificate=certify(mechanism, values=exact.size, charged=terms, confirmed=agreed),
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


def _exact(f: Callable[[Any], Any], rows: Any, sampling: Sampling | None) -> NDArray[np.float64]:
    """Answer on the private rows; a function of stacked tables is given a stack of one."""
    if sampling is None:
        return answer(f, rows, private=True)
    stacked = sampling.batch
    exact = answer(f, rows[None] if stacked else rows, private=True)
    wanted = (1, *sampling.shape) if stacked else sampling.shape
    if exact.shape != wanted:  # the shape found is a fact about the private rows: withheld
        raise BadFunction(
            f"the answer on the private rows does not have the shape {wanted} that was sampled"
        )
    return exact[0] if stacked else exact


def _checked(data: Any, sampling: Sampling | None, neighbours: str) -> Any:
    """Rows that the function may see: a copy, in the type that was sampled."""
    found = tables.layout(data)
    if len(data) == 0 and neighbours == "replace-one":  # otherwise a row more is a neighbour
        raise BadRows("the table is empty")
    if sampling is not None:
        _check_against(data, found, sampling)
    own = copy.deepcopy(data)
    if found.container == "pandas":  # the sampled frames had no labels of rows either
        own = own.reset_index(drop=True)
        own.attrs.clear()
    if sampling is not None and _converts(found, sampling.layout):
        own = own.astype(sampling.layout.dtype)
    return own


def _converts(found: tables.Layout, wanted: tables.Layout) -> bool:
    """Whether the elements of an array are to be cast: not for texts of another width, say."""
    if not found.dtype or not wanted.dtype:
        return False
    kinds = np.dtype(found.dtype).kind, np.dtype(wanted.dtype).kind
    return kinds[0] != kinds[1] or kinds[0] in "biuf"


def _check_against(data: Any, found: tables.Layout, sampling: Sampling) -> None:
    if found != sampling.layout:
        raise BadRows(
            f"the sensitivity was sampled on {sampling.layout}; {sampling.layout.difference(found)}"
        )
    wanted = sampling.layout
    if _converts(found, wanted) and not np.can_cast(found.dtype, wanted.dtype, "safe"):
        ours, theirs = (np.dtype(each.dtype).type.__name__ for each in (wanted, found))
        raise BadRows(
            f"the sensitivity was sampled on elements of type {ours}, the data has {theirs}, "
            "which does not convert without loss"
        )
    if len(data) != sampling.rows:
        raise BadRows(
            f"the sensitivity was sampled for {sampling.rows} rows, the table has {len(data)}; "
            f"sample it again with rows={len(data)}"
        )
    if not sampling.data_dependent and overlaps(sampling.source, data):
        raise PrivateRowsAsPopulation(
            "the public population holds the private rows: the sensitivity then leaks about them; "
            "sample from a public table, a range or a simulator, or say data_dependent=True, "
            "which marks guarantee and certificate"
        )
