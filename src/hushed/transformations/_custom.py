"""A user's own function as a transformation: with a declared map, or a sampled sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushed._functions._gate import (
    Outside,
    admit_rows,
    answer_private_rows,
    check_outside,
    copy_privately,
    guard_step,
)
from hushed._ground.calls import called_as
from hushed._ground.checks import read_bound, require_one_of
from hushed._ground.decimals import decimal_of, stated_above
from hushed._ground.numeric import finite_above
from hushed._ground.printing import as_given
from hushed.errors import ParameterError, ZeroSensitivity
from hushed.guarantee import Guarantee
from hushed.spaces import (
    ABSOLUTE,
    CHANGE_ONE,
    L1,
    L2,
    SUP,
    SYMMETRIC,
    Distance,
    Groups,
    Numbers,
    Opaque,
    SensitivityBound,
    Space,
    Table,
)
from hushed.spaces._bound import require_own_statistic
from hushed.transformations._chain import Transformation, linear, require_own_chain

_METRICS = {"l1": L1, "l2": L2, "sup": SUP}


@called_as(
    'hs.transformations.declared(f, source=space, target=space, stability=1, argument="...")'
)
def declared(
    function: Callable[[Any], Any],
    *,
    source: Space,
    target: Space,
    stability: float | Callable[[float], float],
    argument: str,
) -> Transformation:
    """State the stability of a function of your own.

    Parameters
    ----------
    function : callable
        Takes a checked member of the source domain; what it gives is checked against the target
        domain at every use. That it neither fails nor leaves the target domain, whatever the rows,
        is declared, too: an error would be an answer without noise.
    source, target : Space
        What it takes and gives.
    stability : float or callable
        Bound on the distance of outputs for each unit of distance of inputs; or a map from the
        one to the other that never decreases. For the function as computed, in floating point.
    argument : str
        Why it holds, or where to find the proof.

    Returns
    -------
    Transformation
        With gamma = 0: nothing here was checked. `hushed.check_sensitivity` searches for a
        counterexample.

    Raises
    ------
    ParameterError
        If the stability is NaN, negative or infinite, or the argument is empty.
    """
    if not argument.strip():
        raise ParameterError(
            "argument must say why the stability holds, got an empty string", parameter="argument"
        )
    if callable(stability):
        bound = stability
    else:
        factor = read_bound("stability", stability)
        if factor < 0:
            raise ParameterError(
                f"stability must be 0 or more, got {as_given(stability)}", parameter="stability"
            )
        bound = _times(factor)
    name = str(getattr(function, "__name__", type(function).__name__))
    return Transformation(
        name=f"{name} ({argument.strip()})",
        source=source,
        target=target,
        function=guard_step(function, target.domain.check),
        relation=_of_rows(bound) if target.metric.of_rows else linear(bound),
        settings=(function,),
    )


def _times(factor: float) -> Callable[[float], float]:
    return lambda distance: finite_above(Fraction(factor) * Fraction(distance))


def _of_rows(bound: Callable[[float], float]) -> Callable[[Distance], Distance]:
    return linear(lambda distance: math.floor(bound(distance)))


@called_as("hs.transformations.from_sensitivity(f, sensitivity)")
def from_sensitivity(
    function: Callable[[Any], Any],
    sensitivity: SensitivityBound,
    *,
    dims: int | None = None,
    source: Space | None = None,
    outside: Outside = "clamp",
) -> Transformation:
    """Carry a sensitivity, sampled or proven, into a chain.

    Parameters
    ----------
    function : callable
        The function whose sensitivity it is; gives finite numbers, and does not fail, whatever
        the rows: an error would be an answer without noise.
    sensitivity : Sensitivity
        From `hushed.sample_sensitivity` or `hushed.proven_sensitivity`; not in the range norm.
    dims : int, optional
        Length of the answer; None for a single number.
    source : Space, optional
        What the function takes; by default rows in any container under the relation of the
        sensitivity, in the number that was sampled. A sensitivity for users needs one. For a
        sampled one it is what was sampled: no step may come before it, but `to_change_one`.
    outside : {"clamp", "allow"}, default "clamp"
        As for `hushed.release`: what to do with rows outside of the population's range.

    Returns
    -------
    Transformation
        A proven sensitivity s gives the map ``t s``. A sampled one is known for one replaced row
        only: t replaced rows are t steps through tables of the same law, so the distance is
        ``t s`` and gamma ``t gamma``, by the union bound.

    Raises
    ------
    ParameterError
        If the source counts another kind of change than the sensitivity, or users where that counts
        rows or the other way round, rows are added or removed under a sampled one, several are
        replaced under one that is given the rest, the number of rows is not the sampled one, or the
        function takes stacked tables, it was sampled for users, or dims is not the shape of its
        answers. When it is used, the rows are held to what `hushed.release` asks of them.
    ZeroSensitivity
        If a sampled sensitivity is 0.
    BadFunction
        If the function is not the sampled one, or no longer answers as it did when sampled; asked
        again before each use.
    """
    check_outside(outside)
    promise = sensitivity.guarantee(0.0)
    wanted = CHANGE_ONE if sensitivity.neighbours == "replace-one" else SYMMETRIC
    require_own_statistic(function, sensitivity)
    require_own_chain(function, sensitivity)
    sampling = getattr(sensitivity, "sampling", None)
    if getattr(sampling, "user", None) is not None:
        raise ParameterError(
            "the sensitivity was sampled for people with several rows, whom no chain tells apart: "
            "release the function by hs.release, which splits the table by its column of people"
        )
    rows = None if sampling is None else sampling.rows
    given = Space(domain=Opaque(size=rows), metric=wanted) if source is None else source
    _check_source(given, sensitivity, rows)
    require_one_of("norm", sensitivity.norm, _METRICS)
    if sampling is not None and sampling.batch:
        raise ParameterError("the function takes stacked tables: sample it again with batch=False")
    if sampling is not None:
        _check_sampled(sensitivity, sampling.shape, dims)
        sampling.confirm(function)
    domain = Numbers(dims=dims)

    def evaluate(data: Any) -> NDArray[np.float64]:
        if sampling is not None:  # again: what the function uses may have changed since
            sampling.confirm(function)
            rows = admit_rows(data, sampling, function=function, outside=outside)
            return domain.check(answer_private_rows(function, rows, sampling))
        return domain.check(answer_private_rows(function, copy_privately(data), None))

    def relation(d_in: Distance) -> Distance:
        if d_in.value > 1 and getattr(getattr(sampling, "design", None), "rest", False):
            raise ParameterError(
                "a sensitivity given the rest is about one replaced row: on the way to several, "
                "the rest is no longer what was given; sample with promise='population'"
            )
        return _carried(d_in, sensitivity.value, promise)

    return Transformation(
        name=str(getattr(function, "__name__", type(function).__name__)),
        source=given,
        target=Space(
            domain=domain, metric=ABSOLUTE if dims is None else _METRICS[sensitivity.norm]
        ),
        function=evaluate,
        relation=relation,
        settings=(function, sensitivity),
        raw=sampling is not None,
    )


def _check_sampled(sensitivity: SensitivityBound, shape: tuple[int, ...], dims: int | None) -> None:
    """Refuse what would only fail on private rows, and noise that rests on no movement."""
    if shape != (() if dims is None else (dims,)):
        raise ParameterError(
            f"the function was sampled with answers of shape {shape}, which dims={dims} does not "
            "say: dims is None for a number, and the length of an array with one axis"
        )
    if not sensitivity.value:
        raise ZeroSensitivity(
            "the sampled sensitivity is 0: no pair moved the function, so that any noise would "
            "count as no loss at all, and the exact answer could be recovered"
        )


def _check_source(given: Space, sensitivity: SensitivityBound, rows: int | None) -> None:
    promise = sensitivity.guarantee(0.0)
    if promise.gamma and (sensitivity.neighbours, promise.distance) != ("replace-one", 1):
        raise ParameterError(
            "a chain adds up single replaced rows, and the sensitivity was sampled for "
            f"{'added and removed' if promise.distance == 1 else promise.distance} rows: release "
            "it by hs.release"
        )
    if promise.unit != given.metric.unit:
        raise ParameterError(
            f"the sensitivity is for one {promise.unit}, the source counts {given.metric}: how far "
            "an answer moves with one row says nothing of all rows of a user; "
            + (
                "give source=Space(...) that counts users"
                if promise.unit == "user"
                else "prove it for users, with hs.proven_sensitivity(..., unit='user')"
            )
        )
    if given.neighbours != sensitivity.neighbours or not given.metric.of_rows:
        raise ParameterError(
            f"the sensitivity is for {sensitivity.neighbours} neighbours, the source is {given}; "
            "sampled sensitivities cover replaced rows only"
        )
    if given.metric.name == "symmetric" and given.domain.size is not None:
        raise ParameterError(f"the source is {given}; put to_change_one() before it")
    if rows is not None and isinstance(given.domain, Table | Groups):
        raise ParameterError(
            f"the source is {given}, which gives a function columns by name, as no population "
            "does: leave source out, and give rows in the container that was sampled"
        )
    if rows is not None and given.domain.size != rows:
        raise ParameterError(
            f"the sensitivity was sampled for {rows} rows, the source is {given}: sample it again"
        )


def _carried(d_in: Distance, value: float, promise: Guarantee) -> Distance:
    """Carry t replaced rows, t steps of one row each."""
    steps = int(d_in.value)
    moved = finite_above(steps * Fraction(value))
    if not promise.gamma or not steps:
        return Distance(moved, d_in.terms)
    if steps > 1 and promise.protect != "record":
        raise ParameterError(
            f"gamma covers each of all rows, one of them replaced; for {steps} replaced rows "
            "sample the sensitivity with protect='record'"
        )
    gamma = stated_above(steps * decimal_of(promise.gamma))
    if gamma >= 1:
        raise ParameterError(
            f"{steps} replaced rows make gamma {gamma:.3g}: nothing is promised any more; sample "
            "the sensitivity with a smaller gamma"
        )
    estimates = tuple(
        (name, stated_above(steps * decimal_of(share))) for name, share in promise.estimates
    )
    return Distance(moved, (*d_in.terms, replace(promise, gamma=gamma, estimates=estimates)))
