"""OpenDP's transformations and measurements in a chain of ours.

What comes from OpenDP keeps its own function, arithmetic and map: its proofs are trusted, only
membership in the source domain is checked before, which OpenDP does not do. Answers go in without
rounding, so that its map is about ours: 32-bit floats are refused there, and numbers are moved
into the bounds of its domain and the range of its type, which brings no two of them farther apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from hushed import privacy_loss
from hushed._functions._gate import guard_step
from hushed._ground.calls import called_as
from hushed._ground.decimals import stated_above
from hushed._ground.exact import LARGEST_INT
from hushed._ground.numeric import finite_above
from hushed.errors import ParameterError
from hushed.measurements._losses import Loss
from hushed.measurements._record import Measurement
from hushed.spaces import (
    ABSOLUTE,
    CHANGE_ONE,
    DISCRETE,
    L1,
    L2,
    ONE_SIDED,
    PRIVACY_PROFILE,
    PURE,
    RENYI,
    SUP,
    SYMMETRIC,
    ZCDP,
    Cell,
    Column,
    Domain,
    Measure,
    Metric,
    Numbers,
    Space,
)
from hushed.transformations._chain import Transformation, linear

_METRICS = {
    "SymmetricDistance": SYMMETRIC,
    "ChangeOneDistance": CHANGE_ONE,
    "AbsoluteDistance": ABSOLUTE,
    "L1Distance": L1,
    "L2Distance": L2,
    "LInfDistance": SUP,
    "DiscreteDistance": DISCRETE,
}
# Rows in order are at least as far apart as rows in any order: true of what comes out, not of what
# goes in.
_ORDERED = {"HammingDistance": CHANGE_ONE, "InsertDeleteDistance": SYMMETRIC}
_MONOTONE = "LInfDistance(monotonic"
_SPLITS = 1024
_MEASURES = {
    "MaxDivergence": PURE,
    "ZeroConcentratedDivergence": ZCDP,
    "RenyiDivergence": RENYI,
    "SmoothedMaxDivergence": PRIVACY_PROFILE,
    "Approximate(MaxDivergence)": PRIVACY_PROFILE,
}
_TYPES = {"f64": "float", "f32": "float", "String": "string", "bool": "bool"} | {
    f"{sign}{bits}": "int" for sign in "iu" for bits in (8, 16, 32, 64, "size")
}


@called_as("hs.measurements.from_opendp(hs.measurements.to_opendp(measurement))")
def from_opendp(thing: Any, *, dims: int | None = None) -> Transformation | Measurement:
    """Put an OpenDP transformation or measurement into a chain.

    Parameters
    ----------
    thing : opendp.Transformation or opendp.Measurement
        Between columns and answers of numbers or strings, under symmetric, change-one, absolute,
        discrete, L1, L2 or LInf distances; also to ordered rows, under insert-delete or Hamming
        distances. A measurement under max, zero-concentrated, Renyi, smoothed max or approximate
        max divergence. Answers that it takes are whole numbers or f64.
    dims : int, optional
        Length of a vector of answers, where OpenDP does not know it.

    Returns
    -------
    Transformation or Measurement
        With OpenDP's function and map.

    Raises
    ------
    ParameterError
        If a domain, metric or measure has no equivalent here, or if it takes answers as 32-bit
        floats: the rounding to them is not in its map.

    Notes
    -----
    Two tables with rows in order are at least as far apart as without, so that ordered rows may
    come out, but must not go in: our distances say nothing of order. OpenDP's
    ``LInfDistance(monotonic=True)`` is infinite where answers move both ways. What comes out under
    it is no farther apart in our one-sided distance. What goes in is one step up by a and one step
    down by b with ``a + b <= d`` in ours: losses of both are added, at the worst split (up to one
    part in 1024); epsilons as they are, rhos as ``(sqrt(rho) + sqrt(rho'))**2``: the triangle
    inequality for Renyi divergences in Bun and Steinke, TCC 2016, Section 5, at its best order.
    """
    if not hasattr(thing, "input_domain"):
        raise ParameterError(
            f"a measurement or transformation of OpenDP is needed, got {type(thing).__name__}"
        )
    source = _space(thing.input_domain, thing.input_metric, dims, given=False)
    if not source.metric.of_rows:
        _refuse_single(thing)
    reach = _reach(thing.input_domain)
    called = guard_step(lambda data: thing(_within(data.tolist(), reach)))
    bound = _bound(thing, source.metric)
    if hasattr(thing, "output_measure"):
        measure = _measure(thing.output_measure)
        if source.metric == ONE_SIDED:
            bound = _two_steps(bound, thing, measure)
        lost = lru_cache(maxsize=32)(lambda distance: _loss(bound(distance), measure))
        return Measurement(
            name="opendp measurement",
            source=source,
            measure=measure,
            draw=called,
            known=lambda d_in: lost(d_in.value),
            settings=("opendp", thing),
        )
    if source.metric == ONE_SIDED:
        bound = _two_steps(bound, thing, None)
    target = _space(thing.output_domain, thing.output_metric, dims, given=True)
    given = _reach(thing.output_domain)
    return Transformation(
        name="opendp transformation",
        source=source,
        target=target,
        function=lambda data: target.domain.check(_within(called(data), given)),
        relation=linear(bound),
        settings=("opendp", thing),
    )


def _bound(thing: Any, metric: Metric) -> Callable[[float], Any]:
    """OpenDP's map of our distance, in its type, rounded up."""
    whole = "f64" not in repr(thing.input_metric)

    def bound(distance: float) -> Any:
        if metric == DISCRETE:
            distance = min(distance, 1)
        if math.isinf(distance):
            return math.inf
        exact = Fraction(distance)
        return thing.map(math.ceil(exact) if whole else finite_above(exact))

    return bound


def _two_steps(
    bound: Callable[[float], Any], thing: Any, measure: Measure | None
) -> Callable[[float], Any]:
    """Worst loss of a step in one direction and one in the other; exact where d is a small integer.

    Between two neighbouring splits the map is at most that of the longer ones, for it never
    decreases.
    """
    if measure not in (None, PURE, ZCDP):
        raise ParameterError(
            f"OpenDP's {thing.output_measure!r} of scores that move in one direction says nothing "
            "of scores that move both ways, as two rows can make them"
        )
    joined = _joined_rho if measure == ZCDP else _joined
    whole = "f64" not in repr(thing.input_metric)

    def both(distance: float) -> Any:
        if math.isinf(distance):
            return math.inf
        far = Fraction(math.ceil(distance) if whole else distance)
        if whole and far <= _SPLITS:
            moved = [bound(share) for share in range(int(far) + 1)]
            return max(map(joined, moved, reversed(moved)))
        cuts = [finite_above(far * k / _SPLITS) for k in range(_SPLITS + 1)]
        moved = [bound(cut) for cut in cuts]
        return max(map(joined, moved[1:], reversed(moved[1:])))

    return both


def _joined(one: float, other: float) -> float:
    if math.isinf(one) or math.isinf(other):
        return math.inf
    return finite_above(Fraction(one) + Fraction(other))


def _joined_rho(one: float, other: float) -> float:
    if math.isinf(one) or math.isinf(other):
        return math.inf
    root = math.nextafter(math.sqrt(one), math.inf) + math.nextafter(math.sqrt(other), math.inf)
    exact = (
        Fraction(math.nextafter(root, math.inf)) ** 2 if one and other else Fraction(one + other)
    )
    return finite_above(exact)


def _refuse_single(thing: Any) -> None:
    """Refuse to round an answer: two answers may come farther apart than the map is asked for."""
    if "f32" in str(thing.input_domain.carrier_type) or "f32" in repr(thing.input_metric):
        raise ParameterError(
            "OpenDP takes these answers or their distance as 32-bit floats (f32), and the rounding "
            "is not in its map: build it with T='f64', or put all of the chain into OpenDP"
        )


def _reach(domain: Any) -> tuple[Any, Any] | None:
    """Bounds of the numbers that both OpenDP's domain and ours can hold; None if there are none."""
    carrier = str(domain.carrier_type)
    name = carrier.removeprefix("Vec<").removesuffix(">")
    kind = _TYPES.get(name)
    if kind not in ("int", "float"):
        return None
    atom = domain.element_domain if carrier.startswith("Vec<") else domain
    if kind == "float":
        found: tuple[Any, Any] | None = atom.bounds
        return found
    low, high = _range(name) if atom.bounds is None else atom.bounds
    return max(low, -LARGEST_INT), min(high, LARGEST_INT)


def _range(name: str) -> tuple[int, int]:
    bits = int(name[1:].replace("size", "64"))
    return (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _within(data: Any, reach: tuple[Any, Any] | None) -> Any:
    """Move numbers into bounds, one by one: an error would tell of one out of them."""
    if reach is None:
        return data
    low, high = reach
    if isinstance(data, list):  # a missing number stays: no comparison holds for NaN
        return [low if each < low else high if each > high else each for each in data]
    return low if data < low else high if data > high else data


def _space(domain: Any, metric: Any, dims: int | None, *, given: bool) -> Space:
    words = repr(metric)
    name = words.partition("(")[0]
    found = _METRICS.get(name)
    if words.startswith(_MONOTONE):
        found = ONE_SIDED
    if given:
        found = _ORDERED.get(name, found)
    elif name in _ORDERED:
        raise ParameterError(
            f"rows in order under OpenDP's {metric!r} cannot be given: our distances say nothing "
            "of order; put opendp.transformations.make_ordered_random before it"
        )
    if found is None:
        raise ParameterError(f"no equivalent of OpenDP's {metric!r}; there are {list(_METRICS)}")
    return Space(domain=_domain(domain, rows=found.of_rows, dims=dims), metric=found)


def _domain(domain: Any, *, rows: bool, dims: int | None) -> Domain:
    carrier = str(domain.carrier_type)
    listed = carrier.startswith("Vec<")
    kind = _TYPES.get(carrier.removeprefix("Vec<").removesuffix(">"))
    if kind is None or listed < rows or (kind in ("string", "bool") and not rows):
        raise ParameterError(_unknown(domain))
    if rows:
        cell = Cell(type=_kind(kind), missing=kind == "float" and bool(domain.element_domain.nan))
        if kind not in ("string", "bool"):
            low, high = _reach(domain) or (None, None)
            if (low, high) == (-LARGEST_INT, LARGEST_INT):  # as wide as any column of integers
                low, high = None, None
            cell = replace(cell, low=low, high=high)
        return Column(cell=cell, size=domain.size)
    length = (domain.size or dims) if listed else None
    if listed and length is None:
        raise ParameterError("OpenDP does not know the length of the answers: give dims=")
    return Numbers(type="int" if kind == "int" else "float", dims=length)


def _unknown(domain: Any) -> str:
    if str(domain.carrier_type) == "ExtrinsicObject":
        return (
            "its domain is one that a user declared to OpenDP, and says nothing of the rows: a "
            "chain on tables that to_opendp exported does not come back. Keep the chain itself, "
            "or give one that starts from a column"
        )
    message = f"no equivalent of OpenDP's domain {domain!r}"
    if "Option<" in str(domain.carrier_type):
        message += (
            ", whose rows Python cannot give or take: put make_impute_constant or make_drop_null "
            "behind it in OpenDP"
        )
    return message


def _kind(name: str) -> Any:
    return name


def _measure(measure: Any) -> Measure:
    found = _MEASURES.get(repr(measure))
    if found is None:
        raise ParameterError(f"no equivalent of OpenDP's {measure!r}; there are {list(_MEASURES)}")
    return found


def _loss(loss: Any, measure: Measure) -> Mapping[Measure, Loss]:
    if measure == RENYI:
        return {RENYI: _curve_of_orders(loss)}
    if measure != PRIVACY_PROFILE:
        return {measure: _stated(loss)}
    if hasattr(loss, "delta"):
        return {PRIVACY_PROFILE: privacy_loss.profile(loss.delta)}
    epsilon, delta = loss if isinstance(loss, tuple) else (loss, 1.0)
    return {PRIVACY_PROFILE: privacy_loss.approximate(_stated(epsilon), _stated(delta))}


def _stated(loss: float) -> float:
    """OpenDP proves a bound on the double itself, which may lie above its decimal."""
    number = float(loss)
    return number if math.isinf(number) else stated_above(Fraction(number))


def _curve_of_orders(loss: Any) -> Callable[[float], float]:
    if not callable(loss):  # an infinite distance
        return lambda _order: math.inf
    return lambda order: float(loss(order))
