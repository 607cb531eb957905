"""OpenDP's transformations and measurements in a chain of ours, and ours in OpenDP.

What comes from OpenDP keeps its own function, arithmetic and map: its proofs are trusted, only
membership in the source domain is checked before, which OpenDP does not do. Answers go in without
rounding, so that its map speaks of ours: 32-bit floats are refused there, and whole numbers are
moved into the range of its type, which brings no two of them farther apart. What goes to OpenDP is
built anew from its constructors: it computes the same question in OpenDP's arithmetic, under
OpenDP's map and with OpenDP's noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from hushed import privacy_loss
from hushed.errors import NotFound, ParameterError
from hushed.measurements.losses import CurveLoss, Loss
from hushed.measurements.record import Measurement
from hushed.privacy_loss.rounding import double_above
from hushed.spaces import (
    ABSOLUTE,
    CHANGE_ONE,
    L1,
    L2,
    LOSS_CURVE,
    PURE,
    SUP,
    SYMMETRIC,
    ZCDP,
    Cell,
    Column,
    Domain,
    Measure,
    Numbers,
    Space,
)
from hushed.spaces.cells import LARGEST_INT
from hushed.transformations.chain import Transformation, guarded, linear

__all__ = ["from_opendp", "to_opendp"]

_METRICS = {
    "SymmetricDistance": SYMMETRIC,
    "ChangeOneDistance": CHANGE_ONE,
    "AbsoluteDistance": ABSOLUTE,
    "L1Distance": L1,
    "L2Distance": L2,
    "LInfDistance": SUP,
}
_MEASURES = {
    "MaxDivergence": PURE,
    "ZeroConcentratedDivergence": ZCDP,
    "Approximate(MaxDivergence)": LOSS_CURVE,
}
_KINDS = {"f64": "float", "f32": "float", "String": "text"} | {
    f"{sign}{bits}": "int" for sign in "iu" for bits in (8, 16, 32, 64)
}
_TYPES = {"float": "f64", "int": "i64", "text": "String"}


def from_opendp(thing: Any, *, dims: int | None = None) -> Transformation | Measurement:
    """Put an OpenDP transformation or measurement into a chain.

    Parameters
    ----------
    thing : opendp.Transformation or opendp.Measurement
        Between columns and answers of numbers or texts, under symmetric, change-one, absolute,
        L1, L2 or LInf distances; a measurement under max divergence, zero-concentrated
        divergence or approximate max divergence. Answers that it takes are whole numbers or f64.
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
    """
    source = _space(thing.input_domain, thing.input_metric, dims)
    if not source.metric.of_rows:
        _refuse_single(thing)
    whole = "f64" not in repr(thing.input_metric)
    reach = _reach(str(thing.input_domain.carrier_type))
    called = guarded(lambda data: thing(_within(data.tolist(), reach)))

    def bound(distance: float) -> Any:
        if math.isinf(distance):
            return math.inf
        exact = Fraction(distance)
        return thing.map(math.ceil(exact) if whole else double_above(exact))

    if hasattr(thing, "output_measure"):
        measure = _measure(thing.output_measure)
        return Measurement(
            name="opendp measurement",
            source=source,
            measure=measure,
            draw=called,
            known=lambda d_in: _loss(bound(d_in.value), measure),
        )
    target = _space(thing.output_domain, thing.output_metric, dims)
    given = _reach(str(thing.output_domain.carrier_type))
    return Transformation(
        name="opendp transformation",
        source=source,
        target=target,
        function=lambda data: target.domain.check(_within(called(data), given)),
        relation=linear(bound),
    )


def _refuse_single(thing: Any) -> None:
    """Refuse to round an answer: two answers may come farther apart than the map is asked for."""
    if "f32" in str(thing.input_domain.carrier_type) or "f32" in repr(thing.input_metric):
        raise ParameterError(
            "OpenDP takes these answers or their distance as 32-bit floats (f32), and the rounding "
            "is not in its map: build it with T='f64', or put all of the chain into OpenDP"
        )


def _reach(carrier: str) -> tuple[int, int] | None:
    """Whole numbers that both OpenDP's type and ours can hold; None for other types."""
    name = carrier.removeprefix("Vec<").removesuffix(">")
    if _KINDS.get(name) != "int":
        return None
    bits = int(name[1:])
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return max(low, -LARGEST_INT), min(high, LARGEST_INT)


def _within(data: Any, reach: tuple[int, int] | None) -> Any:
    """Move whole numbers into a range, one by one: an error would tell of one out of it."""
    if reach is None:
        return data
    low, high = reach
    if isinstance(data, list):
        return [min(max(each, low), high) for each in data]
    return min(max(data, low), high)


def _space(domain: Any, metric: Any, dims: int | None) -> Space:
    name = repr(metric).partition("(")[0]
    if name not in _METRICS:
        raise ParameterError(f"no equivalent of OpenDP's {metric!r}; there are {list(_METRICS)}")
    found = _METRICS[name]
    return Space(domain=_domain(domain, rows=found.of_rows, dims=dims), metric=found)


def _domain(domain: Any, *, rows: bool, dims: int | None) -> Domain:
    carrier = str(domain.carrier_type)
    listed = carrier.startswith("Vec<")
    kind = _KINDS.get(carrier.removeprefix("Vec<").removesuffix(">"))
    if kind is None or listed < rows:
        raise ParameterError(f"no equivalent of OpenDP's domain {domain!r}")
    if rows:
        atom = domain.element_domain
        bounds = None if kind == "text" else atom.bounds
        low, high = (_reach(carrier) or (None, None)) if bounds is None else bounds
        if (low, high) == (-LARGEST_INT, LARGEST_INT):  # as wide as any column of integers
            low, high = None, None
        missing = kind == "float" and bool(atom.nan)
        cell = Cell(kind=_kind(kind), low=low, high=high, missing=missing)
        return Column(cell=cell, size=domain.size)
    length = (domain.size or dims) if listed else None
    if listed and length is None:
        raise ParameterError("OpenDP does not know the length of the answers: give dims=")
    return Numbers(kind="int" if kind == "int" else "float", dims=length)


def _kind(name: str) -> Any:
    return name


def _measure(measure: Any) -> Measure:
    found = _MEASURES.get(repr(measure))
    if found is None:
        raise ParameterError(f"no equivalent of OpenDP's {measure!r}; there are {list(_MEASURES)}")
    return found


def _loss(loss: Any, measure: Measure) -> Mapping[Measure, Loss]:
    if measure != LOSS_CURVE:
        return {measure: float(loss)}
    epsilon, delta = loss if isinstance(loss, tuple) else (loss, 1.0)
    return {LOSS_CURVE: CurveLoss(curve=privacy_loss.approximate(float(epsilon), float(delta)))}


def to_opendp(chain: Transformation | Measurement) -> Any:
    """Build a chain anew in OpenDP.

    Parameters
    ----------
    chain : Transformation or Measurement
        From a column, by clip, impute, resize, to_change_one, to_symmetric, count, sum_of, mean,
        variance or histogram of texts and integers, to laplace or gaussian.

    Returns
    -------
    opendp.Transformation or opendp.Measurement
        The same question in OpenDP's arithmetic and under OpenDP's map.

    Raises
    ------
    NotFound
        If OpenDP is not installed.
    ParameterError
        If a step has no equivalent there; it is named.
    """
    dp = _opendp()
    first = chain.first if isinstance(chain, Measurement) else chain
    if first is None:
        raise ParameterError("only a chain that starts at a column can be exported")
    domain, metric = _start(dp, first.source)
    built: Any = None
    for step in first.steps or (first,):
        counted = not step.target.metric.of_rows or step.name.startswith("resize")
        if counted and repr(metric).startswith("ChangeOne"):  # these take symmetric distances
            built = _behind(built, dp.t.make_metric_unbounded(domain, metric))
            domain, metric = built.output_domain, built.output_metric
        built = _behind(built, _step(dp, step, domain, metric))
        domain, metric = built.output_domain, built.output_metric
    if isinstance(chain, Transformation):
        return built
    makers = {"laplace": dp.m.make_laplace, "gaussian": dp.m.make_gaussian}
    name, scale = chain.settings if len(chain.settings) == 2 else (chain.name, None)
    if name not in makers:
        raise ParameterError(f"OpenDP has no equivalent of {name}; there are {list(makers)}")
    return built >> makers[name](domain, metric, scale=scale)


def _behind(built: Any, made: Any) -> Any:
    return made if built is None else built >> made


def _opendp() -> Any:
    try:
        import opendp.prelude as dp  # noqa: PLC0415  (1.5 s)
    except ImportError:
        raise NotFound("OpenDP is not installed: pip install 'hushed[opendp]'") from None
    dp.enable_features("contrib")
    return dp


def _start(dp: Any, space: Space) -> tuple[Any, Any]:
    column = space.domain
    if not isinstance(column, Column) or (column.cell.kind == "text" and column.cell.missing):
        raise ParameterError(f"only a chain that starts at a column can be exported, not {space}")
    cell = column.cell
    bounds = None if cell.low is None else (cell.low, cell.high)
    nan = {"nan": cell.missing} if cell.kind == "float" else {}
    atom = dp.atom_domain(T=_TYPES[cell.kind], bounds=bounds, **nan)
    metrics = {"symmetric": dp.symmetric_distance, "change-one": dp.change_one_distance}
    return dp.vector_domain(atom, size=column.size), metrics[space.metric.name]()


def _step(dp: Any, step: Transformation, domain: Any, metric: Any) -> Any:
    name = step.name.partition("(")[0]
    makers: dict[str, Callable[..., Any]] = {
        "clip": lambda: dp.t.make_clamp(domain, metric, _bounds(step)),
        "impute": lambda: dp.t.make_impute_constant(domain, metric, step.settings[0]),
        "resize": lambda: _resize(dp, step, domain, metric),
        "to_change_one": lambda: dp.t.make_metric_bounded(domain, metric),
        "to_symmetric": lambda: dp.t.make_metric_unbounded(domain, metric),
        "count": lambda: dp.t.make_count(domain, metric, TO="i64"),
        "sum_of": lambda: dp.t.make_sum(domain, metric),
        "mean": lambda: dp.t.make_mean(domain, metric),
        "variance": lambda: dp.t.make_variance(domain, metric, ddof=0),
        "histogram": lambda: _histogram(dp, step, domain, metric),
    }
    if name not in makers:
        raise ParameterError(f"OpenDP has no equivalent of {step.name}; there are {list(makers)}")
    try:
        return makers[name]()
    except (dp.OpenDPException, TypeError) as cause:  # settings are public, no rows are involved
        problem = str(cause).strip().splitlines()[-1:]
        raise ParameterError(
            f"OpenDP refuses {step.name} on {step.source}: {' '.join(problem)}"
        ) from cause


def _bounds(step: Transformation) -> tuple[Any, Any]:
    column = step.target.domain
    if not isinstance(column, Column):
        raise ParameterError(f"{step.name} does not give a column")
    return column.cell.low, column.cell.high


def _resize(dp: Any, step: Transformation, domain: Any, metric: Any) -> Any:
    sized = dp.t.make_resize(domain, metric, *step.settings)
    return sized >> dp.t.make_metric_bounded(sized.output_domain, sized.output_metric)


def _histogram(dp: Any, step: Transformation, domain: Any, metric: Any) -> Any:
    bins, norm = step.settings
    column = step.source.domain
    metrics = {"l1": "L1Distance<i64>", "l2": "L2Distance<f64>"}
    if norm not in metrics or not isinstance(column, Column) or column.cell.kind == "float":
        raise ParameterError("OpenDP counts texts and integers only, in the l1 or l2 norm")
    categories = [int(x) if isinstance(x, np.integer) else x for x in bins]
    return dp.t.make_count_by_categories(
        domain, metric, categories, null_category=False, MO=metrics[norm], TOA="i64"
    )
