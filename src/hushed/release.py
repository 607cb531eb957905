"""The one verb: charge, evaluate on the private rows, draw, certify."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hushed import rows as tables
from hushed.calibrate import Mechanism
from hushed.certificate import Certificate, certify
from hushed.errors import BadFunction, BadRows, ParameterError, PrivateRowsAsPopulation
from hushed.functions import answer
from hushed.guarantee import Guarantee
from hushed.populations import overlaps
from hushed.sensitivity import Sampling, Sensitivity

__all__ = ["Charges", "Release", "release"]


class Charges(Protocol):
    """A ledger, as a release needs it."""

    def charge(self, budget: str, guarantee: Guarantee, note: str = "") -> object:
        """Commit a charge, or raise and leave the budget as it was."""


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
    ledger : Charges, optional
        Where to charge the guarantee before anything is drawn; nothing is charged without it.
    budget : str, optional
        Name of the budget in the ledger; required with one.
    note : str, default ""
        Remark for the ledger.

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
        If the function fails on the private rows, or its answer has another shape than sampled.
        No private value is shown, and the charge stays.
    ParameterError
        If the mechanism is none, or the budget is not named.
    """
    if not callable(f):
        raise ParameterError(f"the first argument must be a function, got {type(f).__name__}")
    if not hasattr(mechanism, "draw") or not isinstance(mechanism.sensitivity, Sensitivity):
        raise ParameterError(
            "the third argument must be a mechanism such as hs.Laplace(s, epsilon=1.0), "
            f"got {type(mechanism).__name__}"
        )
    if ledger is not None and not budget:
        raise ParameterError("name the budget to charge: budget='...'")
    sampling = mechanism.sensitivity.sampling
    rows = _checked(data, sampling)
    if ledger is not None and budget:
        ledger.charge(budget, mechanism.guarantee, note=note)
    exact = answer(f, rows, private=True)
    if sampling is not None and exact.shape != sampling.shape:
        raise BadFunction(
            f"the answer has shape {exact.shape}, but shape {sampling.shape} was sampled"
        )
    value = mechanism.draw(exact)
    return Release(value=value, certificate=certify(mechanism, values=exact.size))


def _checked(data: Any, sampling: Sampling | None) -> Any:
    """Rows that the function may see: a copy, in the type that was sampled."""
    found = tables.layout(data)
    if len(data) == 0:
        raise BadRows("the table is empty")
    if sampling is not None:
        _check_against(data, found, sampling)
    own = copy.deepcopy(data)
    if sampling is not None and isinstance(own, np.ndarray):
        own = own.astype(sampling.layout.dtype)
    return own


def _check_against(data: Any, found: tables.Layout, sampling: Sampling) -> None:
    if found != sampling.layout:
        raise BadRows(f"the sensitivity was sampled on {sampling.layout}, the data is {found}")
    if found.dtype and not np.can_cast(found.dtype, sampling.layout.dtype, "safe"):
        raise BadRows(
            f"the sensitivity was sampled on elements of type {sampling.layout.dtype}, the data "
            f"has {found.dtype}, which does not convert without loss"
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
